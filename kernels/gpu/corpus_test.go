package gpu

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// forCorpus calls check for every fusion of the corpus.
func forCorpus(t *testing.T, check func(t *testing.T, p *symtile.Program)) {
	files, err := filepath.Glob("../../testdata/hlo/*.hlo")
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
			p, err := symtile.Analyze(c)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(filepath.Base(file)+"/"+c.Name, func(t *testing.T) { check(t, p) })
		}
	}
}

// middling is a tiling of moderate size: the last legal one with at most 64
// along each dimension.
func middling(p *symtile.Program) symtile.Tiling {
	var best symtile.Tiling
	n := 0
	for t := range p.Space.Tilings() {
		good := true
		for _, s := range t {
			good = good && s <= 64
		}
		if good {
			best = t
		}
		if n++; n > 100000 {
			break
		}
	}
	return best
}

func TestZZ(t *testing.T) {
	s, _ := ParseSheet("sm_80")
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		text, err := PTX(p, kernels.Plan{Tiles: middling(p)}, s)
		if err != nil {
			t.Error(err)
			return
		}
		os.MkdirAll("/tmp/w/emit_ptx", 0o755)
		os.WriteFile("/tmp/w/emit_ptx/"+p.Fusion.Name+".ptx", []byte(text), 0o644)
	})
}

func TestZZDefault(t *testing.T) {
	for _, name := range []string{"sm_80", "H200"} {
		s, _ := ParseSheet(name)
		forCorpus(t, func(t *testing.T, p *symtile.Program) {
			plan, err := DefaultPlan(p, s)
			t.Log(name, p.Fusion.Name, plan, err)
		})
	}
}
