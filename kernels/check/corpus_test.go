package check

import (
	"context"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

// forCorpus calls check for every fusion of the corpus.
func forCorpus(t *testing.T, check func(t *testing.T, c *hlo.Computation)) {
	all, err := corpus.Fusions()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		t.Run(f.Name, func(t *testing.T) { check(t, f.Computation) })
	}
}

// Reference computes every fusion of the corpus, whatever backends can do, on
// inputs that give no NaN but where one is planted.
func TestCorpusIsComputed(t *testing.T) { forCorpus(t, computes) }

func computes(t *testing.T, c *hlo.Computation) {
	v, err := NewVerifier(context.Background(), c, 1)
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
