package sim

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels/ptx"
)

var (
	number   = regexp.MustCompile(`[+ ,]-?\d+\b`)
	anyReg   = regexp.MustCompile(`%(r|rd|f|p|h)\d+`)
	specials = []string{
		"0", "1", "2", "4", "7", "16", "31", "32", "100",
		"1024", "65536", "-1", "-4", "2147483647", "4294967295", "1099511627776",
	}
)

// damage changes one place of a kernel: a number, a register, or a line.
func damage(r *rand.Rand, text string) string {
	body := strings.Index(text, "{")
	head, text := text[:body], text[body:]
	switch r.IntN(5) {
	case 0, 1:
		all := number.FindAllStringIndex(text, -1)
		at := all[r.IntN(len(all))]
		return head + text[:at[0]+1] +
			specials[r.IntN(len(specials))] +
			text[at[1]:]
	case 2, 3:
		all := anyReg.FindAllStringIndex(text, -1)
		at, other := all[r.IntN(len(all))], all[r.IntN(len(all))]
		return head + text[:at[0]] +
			text[other[0]:other[1]] +
			text[at[1]:]
	}
	lines := strings.Split(text, "\n")
	i := 1 + r.IntN(len(lines)-2)
	j := 1 + r.IntN(len(lines)-2)
	if r.IntN(2) == 0 {
		lines[i], lines[j] = lines[j], lines[i]
	} else {
		lines[i] = ""
	}
	return head + strings.Join(lines, "\n")
}

// FuzzDamaged runs kernels with random damage: the simulator must come to an
// end and never panic, whatever it finds.
func FuzzDamaged(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	names := []string{"vadd", "transpose", "reduce", "softmax", "warpsync", "pipeline", "wgmma", "bulkstore", "cluster"}
	opt := everything
	opt.Budget = 1 << 14
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := random(seed)
		name := names[r.IntN(len(names))]
		text := damage(r, kernelText(t, name))
		for r.IntN(3) == 0 {
			text = damage(r, text)
		}
		m, err := ptx.Parse("damaged.ptx", []byte(text))
		if err != nil {
			return
		}
		if _, err := Load(m); err == nil {
			survive(t, name, text, opt)
		}
	})
}

// survive runs a damaged kernel; a launch may be refused.
func survive(t *testing.T, name, text string, opt Options) {
	defer func() {
		if p := recover(); p != nil && p != (refused{}) {
			t.Fatalf("%s: panic: %v\n%s", name, p, text)
		}
	}()
	kernelCases[name](tolerant{t}, text, opt)
}

// tolerant is a test that launch errors end quietly.
type tolerant struct{ *testing.T }

type refused struct{}

func (tolerant) Fatal(...any) { panic(refused{}) }
