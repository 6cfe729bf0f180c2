package gpu

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// testdata/defaults.txt has the default plans of fusions on devices, to be read.
func TestDefaults(t *testing.T) {
	datadriven.RunTest(t, "testdata/defaults.txt", func(t *testing.T, d *datadriven.TestData) string {
		var devices []string
		for _, a := range d.CmdArgs {
			if a.Key == "device" {
				devices = a.Vals
			}
		}
		m, err := hlo.Parse("defaults.txt", []byte(d.Input+"\n"))
		if err != nil {
			return err.Error() + "\n"
		}
		p, err := symtile.Analyze(m.Entry)
		if err != nil {
			return err.Error() + "\n"
		}
		text := ""
		for _, name := range devices {
			s, err := ParseSheet(name)
			if err != nil {
				return err.Error() + "\n"
			}
			plan, err := DefaultPlan(p, s)
			if err != nil {
				return err.Error() + "\n"
			}
			text += fmt.Sprintf("%s: %s\n", name, plan)
		}
		return text
	})
}
