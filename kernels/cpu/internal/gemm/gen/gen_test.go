package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCommitted generates again: what is committed is what comes out, but for
// the first line, which holds the command.
func TestCommitted(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "kernels_amd64.s")
	stubs := filepath.Join(dir, "kernels_amd64.go")
	tables := filepath.Join(dir, "tables_amd64.go")
	if text, err := exec.Command(
		"go", "run", ".", "-out", out, "-stubs", stubs, "-tables", tables, "-pkg", "gemm",
	).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, name := range []string{"kernels_amd64.s", "kernels_amd64.go", "tables_amd64.go"} {
		got := generated(t, filepath.Join(dir, name))
		want := generated(t, filepath.Join("..", name))
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator makes: run go generate in kernels/cpu/internal/gemm", name)
		}
	}
}

func generated(t *testing.T, name string) []byte {
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(src, []byte("\n"))
	return rest
}
