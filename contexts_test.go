package tilewright_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
)

// A countdown is a context that ends when it has been asked a number of times whether
// it has. It counts how often it is asked afterwards.
type countdown struct {
	context.Context
	left, late int
}

func (c *countdown) Err() error {
	if c.left--; c.left >= 0 {
		return nil
	}
	c.late++
	return context.Canceled
}

// asked is how often a context that never ends is asked.
func asked(step func(context.Context) error) (int, error) {
	const never = 1 << 40
	c := &countdown{Context: context.Background(), left: never}
	err := step(c)
	return never - c.left, err
}

// scan is a module of running sums by halves: most of what is slow is in it.
func scan(rows int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "HloModule scan\nENTRY e {\n  v0 = f32[%d,64] parameter(0)\n  zero = f32[] constant(0)\n", rows)
	n := 0
	for step := 1; step < rows; step *= 2 {
		fmt.Fprintf(&text, "  s%d = f32[%d,64] slice(v%d), slice={[0:%d], [0:64]}\n", n, rows-step, n, rows-step)
		fmt.Fprintf(&text, "  p%d = f32[%d,64] pad(s%d, zero), padding=%d_0x0_0\n", n, rows, n, step)
		fmt.Fprintf(&text, "  v%d = f32[%d,64] add(v%d, p%d)\n", n+1, rows, n, n)
		n++
	}
	fmt.Fprintf(&text, "  ROOT r = f32[%d,64] exponential(v%d)\n}\n", rows, n)
	return text.String()
}

const product = `
	ENTRY product {
	  a = f32[768,1024] parameter(0)
	  b = f32[1024,512] parameter(1)
	  d = f32[768,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
	  ROOT e = f32[768,512] exponential(d)
	}`

// TestContextsEndWork ends the context of each long step in the middle, at several
// places: the step returns the context's error, and asks it a few times more at most, which
// is to say that it does not go on.
func TestContextsEndWork(t *testing.T) {
	parse := func(text string) *hlo.Module {
		m, err := hlo.Parse("test", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	module := parse(scan(256))
	fusion := parse(product).Entry
	program, err := symtile.Analyze(t.Context(), fusion)
	if err != nil {
		t.Fatal(err)
	}
	processor := cpu.New()
	plans := slices.Collect(processor.Plans(t.Context(), program))
	sheet, err := device.ParseSpec("sm_80")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"partition", func(ctx context.Context) error {
			_, err := partition.Module(ctx, module, partition.Options{})
			return err
		}},
		{"Analyze", func(ctx context.Context) error {
			_, err := symtile.Analyze(ctx, module.Entry)
			return err
		}},
		{"cpu.Plans", func(ctx context.Context) error {
			if n := len(slices.Collect(processor.Plans(ctx, program))); n < len(plans) {
				return context.Canceled
			}
			return nil
		}},
		{"cpu.Default", func(ctx context.Context) error {
			_, err := processor.Default(ctx, program)
			return err
		}},
		{"gpu.Default", func(ctx context.Context) error {
			_, err := gpu.DefaultPlan(ctx, program, sheet)
			return err
		}},
		{"Rank", func(ctx context.Context) error {
			pricer, err := kernels.PricerOf(processor, program)
			if err != nil {
				return err
			}
			_, err = new(cost.Model).Rank(ctx, pricer, plans)
			return err
		}},
	} {
		n, err := asked(step.do)
		if err != nil || n < 8 {
			t.Errorf("%s asks its context %d times: %v", step.name, n, err)
			continue
		}
		for _, left := range []int{0, 1, n / 3, n / 2, n - n/8} {
			c := &countdown{Context: context.Background(), left: left}
			if err := step.do(c); !errors.Is(err, context.Canceled) && err != nil {
				t.Errorf("%s, ended at %d of %d: %v", step.name, left, n, err)
			} else if err == nil {
				t.Errorf("%s, ended at %d of %d: no error", step.name, left, n)
			}
			if c.late > 64 {
				t.Errorf("%s, ended at %d of %d, goes on: it asks %d times more", step.name, left, n, c.late)
			}
		}
	}
}
