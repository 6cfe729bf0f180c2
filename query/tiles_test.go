package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestManyResults: of a fusion with many results of many parameters the first maps are
// written, and which are left out is said; all tiles are.
func TestManyResults(t *testing.T) {
	const n = 200
	var text, results strings.Builder
	for k := range n {
		fmt.Fprintf(&text, "p%d = f32[8] parameter(%d)\n", k, k)
		fmt.Fprintf(&results, ", p%d", k)
	}
	m, err := hlo.Parse("many", []byte(text.String()+"ROOT t = tuple("+results.String()[2:]+")"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFusion(t.Context(), m.Entry, nil, Point{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Indexing) > maxIndexings || len(f.Indexing) < maxIndexings-n {
		t.Errorf("%d pairs are written", len(f.Indexing))
	}
	if want := fmt.Sprintf("outputs from %d on", maxIndexings/n); !strings.Contains(f.Unindexed, want) {
		t.Errorf("left out are %q, want %s", f.Unindexed, want)
	}
	if len(f.Tiles) != n {
		t.Errorf("%d tiles", len(f.Tiles))
	}
}
