package kernels

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// forCorpus calls check for every fusion of the corpus.
func forCorpus(t *testing.T, check func(t *testing.T, c *hlo.Computation)) {
	files, err := filepath.Glob("../testdata/hlo/*.hlo")
	if err != nil || len(files) < 16 {
		t.Fatalf("%d files in the corpus, %v", len(files), err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := hlo.Parse(file, src)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range m.Fusions() {
			t.Run(filepath.Base(file)+"/"+c.Name, func(t *testing.T) { check(t, c) })
		}
	}
}

// Reference computes every fusion of the corpus, whatever backends can do, on
// inputs that give no NaN but where one is planted.
func TestCorpusIsComputed(t *testing.T) { forCorpus(t, computes) }

func computes(t *testing.T, c *hlo.Computation) {
	v, err := NewVerifier(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range v.cases {
		if mostlyNaN(k.want) {
			t.Fatalf("the outputs on %s are NaN", k.name)
		}
		for n, out := range k.want {
			if k.name != "random inputs" {
				continue
			}
			for at := range out.Shape.Elements() {
				if x := out.Float(at); x != x {
					t.Fatalf("output %d on %s has %v", n, k.name, x)
				}
			}
		}
	}
}
