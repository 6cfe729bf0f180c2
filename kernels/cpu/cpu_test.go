package cpu

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

func corpusProgram(t testing.TB, name string) (*hlo.Computation, *symtile.Program) {
	t.Helper()
	src, err := os.ReadFile("../../testdata/hlo/" + name + ".hlo")
	if err != nil {
		t.Fatal(err)
	}
	m, err := hlo.Parse(name, src)
	if err != nil {
		t.Fatal(err)
	}
	p, err := symtile.Analyze(t.Context(), m.Fusions()[0])
	if err != nil {
		t.Fatal(err)
	}
	return m.Fusions()[0], p
}

func compiled(t testing.TB, name, plan string) (kernels.Kernel, *check.Bench) {
	t.Helper()
	_, p := corpusProgram(t, name)
	pl, err := kernels.ParsePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	return benched(t, p, pl)
}

// benched is a plan's kernel, and what it is timed on.
func benched(t testing.TB, p *symtile.Program, plan kernels.Plan) (kernels.Kernel, *check.Bench) {
	t.Helper()
	k, err := New().Compile(context.Background(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	b, err := check.NewBench(context.Background(), p.Fusion, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	return k, b
}

// Running allocates nothing, however many tiles there are.
func TestRunDoesNotAllocate(t *testing.T) {
	for name, plan := range map[string]string{
		"softmax": "1,512,64,64", "layernorm": "1,384,96,384", "gemm_bias_gelu": "4,64,16", "argmax": "4,16", "pad": "8,8", "concat_reshape_slice": "1,4,20",
	} {
		k, b := compiled(t, name, plan)
		run := func() {
			if _, err := b.Run(context.Background(), k); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(3, run); n > 0 {
			t.Errorf("%s at %s: %v allocations a run", name, plan, n)
		}
		k.Close()
	}
}

func TestRunStopsWhenAsked(t *testing.T) {
	k, b := compiled(t, "softmax", "1,1,1,1")
	defer k.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := b.Run(ctx, k); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("stopped after %v", d)
	}
}

func TestRejected(t *testing.T) {
	_, p := corpusProgram(t, "softmax")
	for _, plan := range []string{"1,2", "1,1,1,513", "8,512,512,512 warps=2", "8,512,512,512 threads=0"} {
		pl, err := kernels.ParsePlan(plan)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New().Compile(context.Background(), p, pl)
		var no *kernels.Rejected
		if !errors.As(err, &no) || no.Reason == "" {
			t.Errorf("%s: %v", plan, err)
		}
	}
}

func TestWrongBuffersAreErrors(t *testing.T) {
	k, _ := compiled(t, "softmax", "8,512,512,512")
	defer k.Close()
	if _, err := k.Run(context.Background(), nil, nil); err == nil {
		t.Error("ran without buffers")
	}
}

// Tilings differ for real: run with -bench and compare.
func BenchmarkTilings(b *testing.B) {
	for _, c := range []struct{ name, plan string }{
		{"gemm_bias_gelu", "8,256,64 threads=1"}, {"gemm_bias_gelu", "128,8,192 threads=1"}, {"gemm_bias_gelu", "1,16,8 threads=1"},
		{"softmax", "8,512,512,512 threads=1"}, {"softmax", "8,64,512,512 threads=1"}, {"softmax", "1,512,16,16 threads=1"},
		{"transpose_bitcast", "40,384 threads=1"}, {"transpose_bitcast", "4,4 threads=1"}, {"transpose_bitcast", "1,384 threads=1"},
		{"col_reduce", "320,24 threads=1"}, {"col_reduce", "4,768 threads=1"},
	} {
		b.Run(c.name+"/"+c.plan, func(b *testing.B) {
			k, bench := compiled(b, c.name, c.plan)
			defer k.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bench.Run(context.Background(), k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A group computes what its kernels compute one by one, also where one is there twice, and
// none has a number of threads of its own.
func TestGroup(t *testing.T) {
	b := New()
	p, _ := landscape(t, "x = f32[64,48] parameter(0)\nr = f32[64,48] negate(x)")
	compile := func(plan kernels.Plan) kernels.Kernel {
		k, err := b.Compile(t.Context(), p, plan)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { k.Close() })
		return k
	}
	one := compile(kernels.Plan{Tiles: symtile.Tiling{64, 48}})
	many := compile(kernels.Plan{Tiles: symtile.Tiling{1, 16}})
	in, err := check.InputsContext(t.Context(), p.Fusion, check.Normals, 1)
	if err != nil {
		t.Fatal(err)
	}
	all := []kernels.Kernel{one, many, one, one, many}
	g := b.Group(all)
	defer g.Close()
	var ins, outs []kernels.Buffer
	for range all {
		out, err := kernels.NewBuffer(p.Fusion.Root.Shape)
		if err != nil {
			t.Fatal(err)
		}
		ins, outs = append(ins, in[0]), append(outs, out)
	}
	if _, err := g.Run(t.Context(), ins, outs); err != nil {
		t.Fatal(err)
	}
	for n, out := range outs {
		for k := range out.Shape.Elements() {
			if out.Float(k) != -in[0].Float(k) {
				t.Fatalf("output %d is %v at %d, want %v", n, out.Float(k), k, -in[0].Float(k))
			}
		}
	}
	if _, err := g.Run(t.Context(), ins, outs[:4]); err == nil {
		t.Error("a run with too few outputs has no error")
	}
	threads := compile(kernels.Plan{Tiles: symtile.Tiling{1, 16}, Knobs: []kernels.Knob{{Name: "threads", Value: 1}}})
	if b.Group([]kernels.Kernel{threads}) != nil {
		t.Error("a kernel of one thread is in a group")
	}
}
