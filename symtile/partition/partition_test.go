package partition

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// FuzzPartition: whatever module is read, its partition prints as text that
// reads as the same module.
func FuzzPartition(f *testing.F) {
	for _, pattern := range []string{"testdata/modules/*", "../../testdata/stablehlo/*", "../../testdata/hlo/*.hlo"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(src))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := hlo.Parse("fuzz", []byte(text))
		if err != nil {
			return
		}
		if m.Name == "" {
			m.Name = "named"
		}
		r, err := Module(t.Context(), m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		fused := r.Module
		again, err := hlo.Parse("again", []byte(fused.String()))
		if err != nil || again.Entry.Fingerprint() != fused.Entry.Fingerprint() {
			t.Fatalf("%v\n%s", err, fused)
		}
	})
}

// TestModules: random programs of JAX whose partition once had a cycle through a copied scalar, and a fusion that took
// the pair of an argmax. Fusions take and return arrays.
func TestModules(t *testing.T) {
	files, err := filepath.Glob("testdata/modules/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
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
		r, err := Module(t.Context(), m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for c := range r.Fusions {
			for _, p := range c.Params {
				if p.Shape.DType == hlo.Tuple {
					t.Errorf("%s: %s takes %s", file, c.Name, p.Shape)
				}
			}
			for _, s := range c.Root.Shape.Tuple {
				if s.DType == hlo.Tuple {
					t.Errorf("%s: %s returns %s", file, c.Name, c.Root.Shape)
				}
			}
		}
	}
}

// Splitting takes time in proportion too: a chain, and one constant that every
// fusion uses.
func BenchmarkPartition(b *testing.B) {
	for _, n := range []int{12_000, 120_000} {
		var text strings.Builder
		text.WriteString("HloModule wide\nENTRY %main {\n  p0 = f32[8,8] parameter(0)\n  c = f32[] constant(2)\n  k = f32[8,8] broadcast(c), dimensions={}\n")
		for k := range n {
			fmt.Fprintf(&text, "  p%d = f32[8,8] dot(p%d, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", k+1, k)
		}
		text.WriteString("}\n")
		m, err := hlo.Parse("wide", []byte(text.String()))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Module(b.Context(), m, Options{})
			}
			b.ReportMetric(
				float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/instr",
			)
		})
	}
}
