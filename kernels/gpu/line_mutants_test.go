package gpu

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/mutate"
)

var (
	lineMutants = flag.Int("line-mutants", 40, "mutants of TestLineMutants")
	lineSeed    = flag.Uint64("line-seed", 1, "by which they are drawn")
)

// The mutants that kernels of other compilers are given (make judge-foreign) are found
// in kernels of this one: refused, by a check, or by their results.
func TestLineMutants(t *testing.T) {
	rng := rand.New(rand.NewPCG(*lineSeed, 7))
	all := subjects(t)
	total := map[string]int{}
	for drawn := 0; drawn < *lineMutants; {
		s := all[rng.IntN(len(all))]
		m := mutate.Draw(s.kernel.work.PTX, rng)
		if m == nil {
			continue
		}
		drawn++
		how := s.foundIn(m.Text)
		if total[how]++; how == "not found" || how == "the same results" {
			t.Logf("%s: %s: %s, line %d: %s", how, s.name(), m.Change, m.Line, m.Before)
		}
	}
	t.Log(total)
	missed := total["not found"] + total["the same results"]
	if found := *lineMutants - missed; 100*found < 85**lineMutants {
		t.Errorf("%d of %d mutants found", found, *lineMutants)
	}
}

// foundIn says how a text in the place of the subject's is found to be wrong.
func (s *subject) foundIn(text string) string {
	m, err := ptx.Parse(s.class, []byte(text))
	if err == nil {
		err = m.Check()
	}
	if err != nil {
		return "refused"
	}
	r := s.run(&m.Entries[0], s.options())
	switch {
	case len(r.findings) > 0:
		return "found by a check"
	case errors.As(r.err, new(*check.WrongResult)):
		return "wrong result"
	case r.err != nil:
		return "refused"
	case slices.EqualFunc(r.out, s.out, bytes.Equal):
		return "the same results"
	}
	return "not found"
}
