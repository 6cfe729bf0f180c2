package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// What parameters that become indices are filled with: the least and largest
// value of each component.
func TestIndices(t *testing.T) {
	datadriven.RunTest(t, "testdata/indices.txt", func(t *testing.T, d *datadriven.TestData) string {
		m, err := hlo.Parse("f", []byte(d.Input))
		if err != nil {
			t.Fatal(err)
		}
		in, err := Inputs(m.Entry, Integers, 1)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		ranges := indexRanges(m.Entry)
		for k, p := range m.Entry.Params {
			r, ok := ranges[p]
			if !ok {
				continue
			}
			fmt.Fprintf(&text, "%s:", p.Name)
			for c := range r.last {
				least, most := extremes(in[k], r.vector, c)
				fmt.Fprintf(&text, " %d … %d", least, most)
			}
			text.WriteString("\n")
		}
		return text.String()
	})
}

// extremes are the least and largest elements of component c along a dimension.
func extremes(b kernels.Buffer, vector, c int) (least, most int64) {
	w := reference.NewWalk(b.Shape.Dims, b.Shape.Strides())
	first := true
	for range b.Shape.Elements() {
		mine := vector < 0 || w.Index[vector] == int64(c)
		x := b.Int(w.Next())
		if !mine {
			continue
		}
		if first {
			least, most, first = x, x, false
		}
		least, most = min(least, x), max(most, x)
	}
	return least, most
}
