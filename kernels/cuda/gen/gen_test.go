package main

import (
	"bytes"
	"os"
	"testing"
)

// TestCommitted: the committed trampolines are those of the committed header.
func TestCommitted(t *testing.T) {
	header, err := os.ReadFile("../dlopen/cuda.h")
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile("../dlopen/trampolines.c")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, trampolines(header)) {
		t.Error("trampolines.c is not what gen makes of cuda.h: run go generate ./kernels/cuda/gen")
	}
	if n := len(declaration.FindAll(header, -1)); n < 160 {
		t.Errorf("%d declarations found", n)
	}
}
