package cost

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/tilewright/tilewright/kernels"
)

// TestFeatures shows features of plans in testdata/features.txt on the device of
// cost_test.go: two lanes with 32 KiB and 512 KiB each, then memory.
//
//	features show=(rows,short) plan=(8,128;group=2)
//	HLO
func TestFeatures(t *testing.T) {
	datadriven.RunTest(t, "testdata/features.txt", func(t *testing.T, d *datadriven.TestData) string {
		p := program(t, d.Input)
		var show, plans []string
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "show":
				show = a.Vals
			case "plan":
				plans = append(plans, strings.Join(a.Vals, ","))
			}
		}
		var b strings.Builder
		for _, text := range plans {
			plan, err := kernels.ParsePlan(strings.ReplaceAll(text, ";", " "))
			if err != nil {
				return err.Error()
			}
			q, err := p.At(plan.Tiles)
			if err != nil {
				return err.Error()
			}
			f := Measure(q, plan, device)
			fmt.Fprintf(&b, "%s:", plan)
			for _, name := range show {
				fmt.Fprintf(&b, " %s %g", name, shown(f, name))
			}
			b.WriteByte('\n')
		}
		return b.String()
	})
}

func shown(f Features, name string) float64 {
	return map[string]float64{
		"rows":      f.Rows,
		"short":     f.Short,
		"strided":   f.Strided,
		"masked":    f.Masked,
		"L2":        f.Traffic[1],
		"memory":    f.Traffic[2],
		"functions": f.FunctionFLOPs,
		"tiles":     f.Tiles,
		"waves":     f.Waves,
	}[name]
}
