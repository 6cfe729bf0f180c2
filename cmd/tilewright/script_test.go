package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/line"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tilewright": main, "tilewright-hanging": hangingMain})
}

// hangingMain is tune with a backend of which kernels hang: with HANG=all all of
// them, with HANG=others those of plans that are not the default, and with HANG=once
// these, in the first process only.
func hangingMain() {
	c := tuneCommand.call(os.Args[2:], os.Stdin, os.Stdout, os.Stderr)
	c.tamper = func(b kernels.Backend) kernels.Backend { return hangingBackend{b} }
	os.Exit(c.conclude(c.work()))
}

// A hangingBackend has kernels that never return.
type hangingBackend struct{ kernels.Backend }

// Compile makes a kernel that hangs of some plans.
func (b hangingBackend) Compile(
	ctx context.Context, p *symtile.Program, plan kernels.Plan,
) (kernels.Kernel, error) {
	k, err := b.Backend.Compile(ctx, p, plan)
	if err != nil {
		return nil, err
	}
	standard, err := b.Default(ctx, p)
	mode := os.Getenv("HANG")
	if mode == "all" || plan.String() != standard.String() &&
		(mode == "others" || firstProcess().restarts == 0) {
		return hangingKernel{k}, err
	}
	return k, err
}

// A hangingKernel never returns from a run, and looks at no context.
type hangingKernel struct{ kernels.Kernel }

// Run does not return.
func (hangingKernel) Run(context.Context, []kernels.Buffer, []kernels.Buffer) (time.Duration, error) {
	select {}
}

// The command line as a person uses it. UPDATE_SCRIPTS=1 rewrites what scripts
// compare with.
func TestScripts(t *testing.T) {
	corpus, err := filepath.Abs("../../testdata/hlo")
	if err != nil {
		t.Fatal(err)
	}
	messages, err := filepath.Abs("../../symtile/hloproto/testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"clocked": clocked, "spoildefault": spoilDefault, "fits": fits, "adam": adam},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HLO", corpus)
			e.Setenv("HLOPROTO", messages)
			e.Setenv("STABLEHLO", filepath.Join(filepath.Dir(corpus), "stablehlo"))
			return nil
		},
	})
}

// fits FILE demands that no line has more than 80 characters, but for those that are
// one word, such as a path.
func fits(ts *testscript.TestScript, _ bool, args []string) {
	for text := range strings.SplitSeq(ts.ReadFile(args[0]), "\n") {
		if n := utf8.RuneCountInString(text); n > line.Width && strings.Contains(strings.TrimSpace(text), " ") {
			ts.Fatalf("%d characters in %q", n, text)
		}
	}
}

// adam FILE makes the text of an optimiser's step, optax's adam, as JAX prints it: 300
// parameters of 20 shapes.
func adam(ts *testscript.TestScript, _ bool, args []string) {
	const parameters, shapes = 300, 20
	var in, body, out, types []string
	for k := range parameters {
		shape := fmt.Sprintf("tensor<%dx%dxf32>", 16+8*(k%shapes), 32)
		for _, name := range []string{"p", "m", "v", "g"} {
			in = append(in, fmt.Sprintf("%%%s%d: %s", name, k, shape))
		}
		update := strings.NewReplacer("NN", fmt.Sprint(k), "TT", shape).Replace(adamUpdate)
		body = append(body, update)
		out = append(out, fmt.Sprintf("%%new%d, %%mu%d, %%nu%d", k, k, k))
		types = append(types, shape, shape, shape)
	}
	text := fmt.Sprintf("module @jit_step {\n  func.func public @main(%%count: tensor<i32>, %s) -> (%s) {\n%s%s    return %s : %s\n  }\n}\n",
		strings.Join(in, ", "), strings.Join(types, ", "), adamCorrections,
		strings.Join(body, ""), strings.Join(out, ", "), strings.Join(types, ", "))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// adamCorrections are 1 − 0.9ⁿ and 1 − 0.999ⁿ of step n, and adamUpdate the update of
// parameter NN of type TT.
const (
	adamCorrections = `    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %count, %one : tensor<i32>
    %n = stablehlo.convert %next : (tensor<i32>) -> tensor<f32>
    %f1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %b1 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %b2 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %c1 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %c2 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %eps = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %lr = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
    %pow1 = stablehlo.power %b1, %n : tensor<f32>
    %pow2 = stablehlo.power %b2, %n : tensor<f32>
    %k1 = stablehlo.subtract %f1, %pow1 : tensor<f32>
    %k2 = stablehlo.subtract %f1, %pow2 : tensor<f32>
`
	adamUpdate = `    %c1_NN = stablehlo.broadcast_in_dim %c1, dims = [] : (tensor<f32>) -> TT
    %gm_NN = stablehlo.multiply %c1_NN, %gNN : TT
    %b1_NN = stablehlo.broadcast_in_dim %b1, dims = [] : (tensor<f32>) -> TT
    %mm_NN = stablehlo.multiply %b1_NN, %mNN : TT
    %muNN = stablehlo.add %gm_NN, %mm_NN : TT
    %gg_NN = stablehlo.multiply %gNN, %gNN : TT
    %c2_NN = stablehlo.broadcast_in_dim %c2, dims = [] : (tensor<f32>) -> TT
    %gv_NN = stablehlo.multiply %c2_NN, %gg_NN : TT
    %b2_NN = stablehlo.broadcast_in_dim %b2, dims = [] : (tensor<f32>) -> TT
    %vv_NN = stablehlo.multiply %b2_NN, %vNN : TT
    %nuNN = stablehlo.add %gv_NN, %vv_NN : TT
    %k1_NN = stablehlo.broadcast_in_dim %k1, dims = [] : (tensor<f32>) -> TT
    %mh_NN = stablehlo.divide %muNN, %k1_NN : TT
    %k2_NN = stablehlo.broadcast_in_dim %k2, dims = [] : (tensor<f32>) -> TT
    %nh_NN = stablehlo.divide %nuNN, %k2_NN : TT
    %root_NN = stablehlo.sqrt %nh_NN : TT
    %eps_NN = stablehlo.broadcast_in_dim %eps, dims = [] : (tensor<f32>) -> TT
    %by_NN = stablehlo.add %root_NN, %eps_NN : TT
    %ratio_NN = stablehlo.divide %mh_NN, %by_NN : TT
    %lr_NN = stablehlo.broadcast_in_dim %lr, dims = [] : (tensor<f32>) -> TT
    %step_NN = stablehlo.multiply %lr_NN, %ratio_NN : TT
    %newNN = stablehlo.add %pNN, %step_NN : TT
`
)

// clocked FROM TO makes an export one of a device that knows its clock: 1.5 GHz
// while the default was timed, 1.4 GHz while others were.
func clocked(ts *testscript.TestScript, _ bool, args []string) {
	var out strings.Builder
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var r cache.Record
		ts.Check(json.Unmarshal([]byte(line), &r))
		for k := range r.Trials {
			x := &r.Trials[k]
			for range x.Samples {
				hertz := 1.4e9
				if x.Plan == r.Default {
					hertz = 1.5e9
				}
				x.Clocks = append(x.Clocks, hertz)
			}
		}
		ts.Check(json.NewEncoder(&out).Encode(r))
	}
	ts.Check(os.WriteFile(
		ts.MkAbs(args[1]), []byte(out.String()), 0o644,
	))
}

// spoildefault FROM TO makes an export one of a device on which the default plan gives
// wrong results.
func spoilDefault(ts *testscript.TestScript, _ bool, args []string) {
	var out strings.Builder
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var r cache.Record
		ts.Check(json.Unmarshal([]byte(line), &r))
		for k := range r.Trials {
			if x := &r.Trials[k]; x.Plan == r.Default {
				x.Failure = cache.FailedWrong
				x.Detail = "output 0 is wrong"
			}
		}
		ts.Check(json.NewEncoder(&out).Encode(r))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(out.String()), 0o644))
}
