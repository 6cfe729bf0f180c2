package gpu

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// golden/testdata/ptx has whole kernels, to be read: the fusion, the plan, the text.
func TestPTX(t *testing.T) {
	datadriven.Walk(t, "golden/testdata/ptx", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var target string
			d.ScanArgs(t, "target", &target)
			s, err := device.ParseSpec(target)
			if err != nil {
				return err.Error() + "\n"
			}
			words := []string{}
			for _, a := range d.CmdArgs {
				if a.Key == "plan" {
					words = a.Vals
				}
			}
			plan, err := kernels.ParsePlan(strings.ReplaceAll(strings.Join(words, " "), ";", ","))
			if err != nil {
				return err.Error() + "\n"
			}
			m, err := hlo.Parse(path, []byte(d.Input+"\n"))
			if err != nil {
				return err.Error() + "\n"
			}
			p, err := symtile.Analyze(t.Context(), m.Entry)
			if err != nil {
				return err.Error() + "\n"
			}
			text, err := PTX(p, plan, s)
			if err != nil {
				return err.Error() + "\n"
			}
			return text
		})
	})
}
