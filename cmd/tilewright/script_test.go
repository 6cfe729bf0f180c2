package main

import (
	"context"
	"encoding/json"
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
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"clocked": clocked, "spoildefault": spoilDefault, "fits": fits},
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
