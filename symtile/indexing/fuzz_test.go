package indexing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// FuzzIndexing: whatever parses has maps, or says why not.
func FuzzIndexing(f *testing.F) {
	files, _ := filepath.Glob("testdata/indexing/*")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for block := range strings.SplitSeq(string(text), "\n\n") {
			_, block, _ = strings.Cut(block, "\n")
			block, _, _ = strings.Cut(block, "\n----")
			f.Add(block)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := hlo.Parse("fuzz", []byte(text))
		if err != nil || len(text) > 2000 {
			return
		}
		for output := range m.Entry.Root.Shape.Arrays() {
			all, err := ParamMaps(index.NewRing(), m.Entry, output)
			explained(t, all, err)
		}
		for param := range m.Entry.Params {
			all, err := OutputMaps(index.NewRing(), m.Entry, param)
			explained(t, all, err)
		}
	})
}

func explained(t *testing.T, all [][]index.Map, err error) {
	for _, maps := range all {
		for _, m := range maps {
			if m.State == index.StateUndefined && m.Why == "" && err == nil {
				t.Error("undefined without a reason")
			}
			_, _ = m.String(), m.RuntimeText()
		}
	}
}
