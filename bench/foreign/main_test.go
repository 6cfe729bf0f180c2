package main

import (
	"bytes"
	"testing"
)

// The cases of testdata, one in each kind of code that the compilers write, are right,
// and mutants of them are found.
func TestSample(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"-cases", "testdata", "-mutants", "40"}, &out); err != nil {
		t.Errorf("%v\n%s", err, out.Bytes())
	}
	// Those that are not found change nothing: a guard that always holds, a barrier
	// that nobody waits for any more, a path that no element takes.
	if n := bytes.Count(out.Bytes(), []byte("not found: ")); n > 8 {
		t.Errorf("%d of 40 mutants are not found\n%s", n, out.Bytes())
	}
}
