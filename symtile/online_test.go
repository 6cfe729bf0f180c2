package symtile

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestOnline: which loops are fused. Commands: online, with the sizes of tiles,
// prints the steps of the fused program, or that nothing was fused.
func TestOnline(t *testing.T) {
	datadriven.Walk(t, "testdata/online", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			m, err := hlo.Parse(path, []byte(d.Input))
			if err != nil {
				return err.Error() + "\n"
			}
			p, err := Analyze(t.Context(), m.Entry)
			if err != nil {
				return err.Error() + "\n"
			}
			var tiling Tiling
			for _, text := range d.CmdArgs {
				size, err := strconv.ParseInt(text.Key, 10, 64)
				if err != nil {
					return err.Error() + "\n"
				}
				tiling = append(tiling, size)
			}
			if p, err = p.At(tiling); err != nil {
				return err.Error() + "\n"
			}
			q := p.Online()
			if q == p {
				return "nothing is joined\n"
			}
			var b strings.Builder
			q.writeSteps(&b, q.Body, "")
			return b.String()
		})
	})
}
