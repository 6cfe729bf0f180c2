package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"text/tabwriter"

	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/mutate"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// A mutant is a case with one changed line.
type mutant struct {
	base *foreignCase
	*mutate.Mutant
}

// mutantOf changes one line of a case; nil if it has none that the drawn change is for.
func mutantOf(c *foreignCase, rng *rand.Rand) *mutant {
	m := mutate.Draw(string(c.PTX), rng)
	if m == nil {
		return nil
	}
	// The case is copied, because its other mutants start from the same text.
	broken := *c
	broken.PTX = []byte(m.Text)
	return &mutant{&broken, m}
}

// found says how a mutant was found: refused, by a finding, or by its results; "" if it
// was not.
func (m *mutant) found(known []excuse) string {
	c := m.base
	// A change may leave text that is no PTX, which is found, too.
	module, err := ptx.Parse(c.Name, c.PTX)
	if err != nil {
		return "refused"
	}
	p, err := sim.Load(module)
	if err != nil {
		return "refused"
	}
	o, err := c.run(p)
	switch {
	case err != nil:
		return "refused"
	case len(unexplained(known, c.Name, o.Findings)) > 0:
		return "found by a check"
	case o.Wrong > 0:
		return "wrong result"
	}
	return ""
}

// judgeMutants draws mutants of cases that are right, and prints how they were found.
func judgeMutants(good []*foreignCase, known []excuse, n int, seed uint64, out io.Writer) {
	rng := rand.New(rand.NewPCG(seed, 7))
	// Counts by change and by how mutants were found.
	count := map[string]map[string]int{}
	total := map[string]int{}
	for drawn := 0; drawn < n && len(good) > 0; {
		// Kernels without a place for the change are drawn again.
		m := mutantOf(good[rng.IntN(len(good))], rng)
		if m == nil {
			continue
		}
		drawn++
		how := m.found(known)
		if how == "" {
			how = "not found"
			fmt.Fprintf(out, "not found: %s: %s, line %d: %s\n", m.base.Name, m.Change, m.Line, m.Before)
		}
		if count[m.Change] == nil {
			count[m.Change] = map[string]int{}
		}
		count[m.Change][how]++
		total[how]++
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	// The table has a row for each change that was drawn, in the order of changes.
	ways := []string{"found by a check", "wrong result", "refused", "not found"}
	fmt.Fprintln(w, "change\t"+strings.Join(ways, "\t"))
	row := func(name string, c map[string]int) {
		fmt.Fprint(w, name)
		for _, how := range ways {
			fmt.Fprintf(w, "\t%d", c[how])
		}
		fmt.Fprintln(w)
	}
	for _, name := range mutate.Names() {
		if count[name] != nil {
			row(name, count[name])
		}
	}
	row("all", total)
	w.Flush()
}
