package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tilewright/tilewright/cache"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tilewright": main})
}

// The command line as a person uses it. UPDATE_SCRIPTS=1 rewrites what scripts
// compare with.
func TestScripts(t *testing.T) {
	corpus, err := filepath.Abs("../../testdata/hlo")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"clocked": clocked},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HLO", corpus)
			e.Setenv("STABLEHLO", filepath.Join(filepath.Dir(corpus), "stablehlo"))
			return nil
		},
	})
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
