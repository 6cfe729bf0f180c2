package indexing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// TestIndexingText runs the cases under testdata/indexing. "read" prints what
// each parameter is read through for an output (output=0), "used" what each
// output is made through from a parameter (param=NAME).
func TestIndexingText(t *testing.T) {
	for _, file := range []string{"move", "window", "dynamic", "fold", "collective", "fusion", "unknown"} {
		datadriven.RunTest(t, "testdata/indexing/"+file, func(t *testing.T, d *datadriven.TestData) string {
			m, err := hlo.Parse("case", []byte(d.Input))
			if err != nil {
				return err.Error()
			}
			text, err := indexingText(t, d, m.Entry)
			if err != nil {
				return err.Error()
			}
			return text
		})
	}
}

func indexingText(t *testing.T, d *datadriven.TestData, c *hlo.Computation) (string, error) {
	var b strings.Builder
	if d.Cmd == "used" {
		var name string
		d.MaybeScanArgs(t, "param", &name)
		k := slices.IndexFunc(c.Params, func(p *hlo.Instr) bool { return p.Name == name })
		maps, err := OutputMaps(index.NewRing(), c, k)
		for o, ms := range maps {
			writeMaps(&b, fmt.Sprintf("output %d", o), ms)
		}
		return b.String(), err
	}
	output := 0
	d.MaybeScanArgs(t, "output", &output)
	maps, err := ParamMaps(index.NewRing(), c, output)
	for k, ms := range maps {
		writeMaps(&b, c.Params[k].Name, ms)
	}
	return b.String(), err
}

func writeMaps(b *strings.Builder, name string, ms []index.Map) {
	if len(ms) == 0 {
		fmt.Fprintf(b, "%s: nothing\n", name)
	}
	for _, m := range ms {
		approximate := ""
		if m.Approximate {
			approximate = " at most"
		}
		fmt.Fprintf(b, "%s:%s %s\n", name, approximate, m)
		for _, rt := range m.RuntimeText() {
			fmt.Fprintf(b, "  %s\n", rt)
		}
		if m.State == index.StateUndefined {
			fmt.Fprintf(b, "  %s\n", m.Why)
		}
	}
}
