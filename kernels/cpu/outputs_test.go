package cpu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// randomOutputs is a random program that returns two to four of its values,
// most of them moved or computed element by element from each other.
func randomOutputs(rng *rand.Rand) string {
	c := &chain{rng: rng}
	for range 1 + rng.IntN(3) {
		c.dims = append(c.dims, pickExtent(rng))
	}
	if rng.IntN(4) == 0 {
		c.dims[len(c.dims)-1] = []int64{64, 72, 130}[rng.IntN(3)]
	}
	fmt.Fprintf(&c.text, "v0 = %s parameter(0)\nzero = f32[] constant(0)\npadding = f32[] constant(7)\n", shapeText(c.dims))
	shapes := []string{shapeText(c.dims)}
	for range 2 + rng.IntN(5) {
		steps := []func(*chain){
			(*chain).reshape, (*chain).transpose, (*chain).reverse,
			(*chain).elementwise, (*chain).reshape, (*chain).transpose,
			(*chain).broadcast, (*chain).reduce, (*chain).dot, (*chain).slice,
		}
		before := c.n
		if steps[rng.IntN(len(steps))](c); c.n > before {
			shapes = append(shapes, shapeText(c.dims))
		}
	}
	var names, types []string
	for _, k := range rng.Perm(len(shapes))[:min(len(shapes), 2+rng.IntN(3))] {
		names = append(names, fmt.Sprint("v", k))
		types = append(types, shapes[k])
	}
	fmt.Fprintf(&c.text, "ROOT t = (%s) tuple(%s)", strings.Join(types, ", "), strings.Join(names, ", "))
	return c.text.String()
}

// TestRandomOutputs compares programs of several outputs, which share tiles,
// with the reference.
func TestRandomOutputs(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 15))
	b := New()
	programs, verified, rejected := 300, 0, 0
	if testing.Short() {
		programs = 80
	}
	for range programs {
		text := randomOutputs(rng)
		m, err := hlo.Parse("random", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		p, err := symtile.Analyze(t.Context(), m.Entry)
		var no *symtile.Untileable
		if errors.As(err, &no) {
			t.Logf("%v\n%s", err, text)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		v, err := check.NewVerifier(context.Background(), m.Entry, 3)
		if err != nil {
			t.Fatal(err)
		}
		compileOffered(t, b, p, text)
		plans := []kernels.Plan{}
		if plan, err := b.Default(t.Context(), p); err != nil {
			t.Logf("no default: %v\n%s", err, text)
			rejected++
		} else {
			plans = append(plans, plan)
		}
		for _, tiling := range some(rng, p, 3) {
			plans = append(plans, kernels.Plan{Tiles: tiling})
		}
		for _, plan := range plans {
			k, err := b.Compile(context.Background(), p, plan)
			if err != nil && strings.Contains(err.Error(), errDigits.Error()) {
				rejected++
				continue
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if err := v.Verify(context.Background(), k); err != nil {
				t.Errorf("%s: %v\n%s\n%s", plan, err, text, k.Source())
			}
			verified++
			k.Close()
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d plans verified, %d rejected for digits", verified, rejected)
}

// movedOutputs are fusions of two outputs of which one moves what the other
// computes, by the move.
var movedOutputs = []struct{ name, text string }{
	{"negate", "r = f32[1024,1024] negate(a); ROOT t = (f32[1024,1024], f32[1024,1024]) tuple(a, r)"},
	{"reshape", "r = f32[2048,512] reshape(a); ROOT t = (f32[1024,1024], f32[2048,512]) tuple(a, r)"},
	{"split", "r = f32[1024,32,32] reshape(a); ROOT t = (f32[1024,1024], f32[1024,32,32]) tuple(a, r)"},
	{"transpose", "r = f32[1024,1024] transpose(a), dimensions={1,0}; ROOT t = (f32[1024,1024], f32[1024,1024]) tuple(a, r)"},
}

// BenchmarkMovedOutputs times the default plans of movedOutputs in turns, and
// reports the time of each over that of two outputs that are computed element by
// element.
func BenchmarkMovedOutputs(b *testing.B) {
	const a = "x = f32[1024,1024] parameter(0); y = f32[1024,1024] parameter(1); a = f32[1024,1024] add(x, y); "
	best := make([]float64, len(movedOutputs))
	kernelOf := make([]kernels.Kernel, len(movedOutputs))
	benches := make([]*check.Bench, len(movedOutputs))
	for k, c := range movedOutputs {
		p, bench := landscape(b, a+c.text)
		plan, err := New().Default(b.Context(), p)
		if err != nil {
			b.Fatal(err)
		}
		if kernelOf[k], err = New().Compile(b.Context(), p, plan); err != nil {
			b.Fatal(err)
		}
		defer kernelOf[k].Close()
		benches[k] = bench
	}
	for b.Loop() {
		for k := range movedOutputs {
			d, err := benches[k].Run(b.Context(), kernelOf[k])
			if err != nil {
				b.Fatal(err)
			}
			if s := d.Seconds(); best[k] == 0 || s < best[k] {
				best[k] = s
			}
		}
	}
	for k, c := range movedOutputs[1:] {
		b.ReportMetric(best[k+1]/best[0], c.name+"/negate")
	}
}
