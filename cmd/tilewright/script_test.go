package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
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
		Setup: func(e *testscript.Env) error {
			e.Setenv("HLO", corpus)
			e.Setenv("STABLEHLO", filepath.Join(filepath.Dir(corpus), "stablehlo"))
			return nil
		},
	})
}
