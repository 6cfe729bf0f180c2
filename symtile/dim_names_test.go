package symtile

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestDimNames prints the names of the dimensions of the corpus, which
// testdata/dim_names.txt holds, and demands that they are distinct, can be read back,
// and are those of the concrete program, too.
func TestDimNames(t *testing.T) {
	files, err := filepath.Glob("../testdata/*/*.hlo")
	more, err2 := filepath.Glob("../testdata/*/*.mlir")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	name := regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	var out strings.Builder
	for _, file := range append(files, more...) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := hlo.Parse(file, src)
		if err != nil {
			continue
		}
		for _, f := range m.Fusions() {
			p, err := Analyze(t.Context(), f)
			if err != nil {
				continue
			}
			names := p.DimNames()
			fmt.Fprintf(&out, "%s:", f.Name)
			for k, d := range p.Space.Dims {
				fmt.Fprintf(&out, " %s=%d", names[k], d.Extent)
				if !name.MatchString(names[k]) || slices.Contains(names[:k], names[k]) {
					t.Errorf("%s: names %q", f.Name, names)
				}
			}
			out.WriteString("\n")
			checkConcreteNames(t, p, names)
		}
	}
	const golden = "testdata/dim_names.txt"
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != out.String() {
		t.Errorf("names are not those of %s (%v):\n%s", golden, err, out.String())
	}
}

// checkConcreteNames compares names with those of the program with tiles of one element,
// where those are legal.
func checkConcreteNames(t *testing.T, p *Program, names []string) {
	ones := make(Tiling, len(names))
	for k := range ones {
		ones[k] = 1
	}
	q, err := p.At(ones)
	if err != nil {
		return
	}
	got := q.DimNames()
	for k := range names {
		if q.Space.Dims[k].Tid != q.Space.Ring.Const(0) && got[k] != names[k] {
			t.Errorf("%s: concrete names %q, symbolic %q", p.Fusion.Name, got, names)
			return
		}
	}
}
