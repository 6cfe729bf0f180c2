package check

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A turncoat is right in its first runs.
type turncoat struct {
	tampered
	deterministic bool
	left          int // right runs that are left
}

func (k *turncoat) Deterministic() bool { return k.deterministic }

func (k *turncoat) Run(
	ctx context.Context, in, out []kernels.Buffer,
) (time.Duration, error) {
	right := k.tampered
	if k.left--; k.left >= 0 {
		right.tamper = func([]kernels.Buffer) {}
	}
	return right.Run(ctx, in, out)
}

// A witness finds results that change after the verification: in any bit if the
// kernel is deterministic, beyond the tolerance if it is not, and elements that are
// no longer written.
func TestWitness(t *testing.T) {
	m, err := hlo.Parse("w", []byte(`x = f32[40,24] parameter(0)
ROOT y = f32[40,24] tanh(x)`))
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(t.Context(), m.Entry, 1)
	if err != nil {
		t.Fatal(err)
	}
	bit := func(out []kernels.Buffer) { out[0].Data[40] ^= 1 }
	for name, c := range map[string]struct {
		tamper        func(out []kernels.Buffer)
		deterministic bool
		want          string
	}{
		"right":             {func([]kernels.Buffer) {}, true, ""},
		"another bit":       {bit, true, "other bits"},
		"another order":     {bit, false, ""},
		"another value":     {func(out []kernels.Buffer) { out[0].SetFloat(7, 3) }, false, "in 1 of 960"},
		"one of that size":  {func(out []kernels.Buffer) { out[0].SetFloat(7, 3) }, true, "in 1 of 960"},
		"no longer written": {func(out []kernels.Buffer) { copy(out[0].Data[:4], "\xff\xff\xff\xff") }, false, "in 1 of 960"},
	} {
		bench, err := NewBench(t.Context(), m.Entry, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		k := &turncoat{tampered{m.Entry, c.tamper}, c.deterministic, len(v.cases) + 3}
		w, err := v.Examine(t.Context(), Bounded(k, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		for _, recheck := range []func(context.Context, kernels.Kernel, *Witness) error{bench.Rerun, bench.CompareLast} {
			if _, err := bench.Sample(t.Context(), k, 1); err != nil {
				t.Fatal(err)
			}
			if err := recheck(t.Context(), k, w); err != nil {
				t.Errorf("%s: right results: %v", name, err)
			}
		}
		if _, err := bench.Sample(t.Context(), k, 1); err != nil {
			t.Fatal(err)
		}
		var wrong *WrongResult
		err = bench.CompareLast(t.Context(), k, w)
		if c.want == "" && err != nil ||
			c.want != "" && (!errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
