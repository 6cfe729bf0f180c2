package gpu

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/kerneltest"
)

// testdata/online.txt has attention in many forms. A plan whose tiles a command names gives
// the reference's results in one pass on each target, without a finding, or is rejected for
// the reason that is printed.
func TestOnline(t *testing.T) {
	devices := map[string]*Backend{}
	for _, target := range targets {
		devices[target] = New(simulatedSession(t, target))
	}
	datadriven.RunTest(t, "testdata/online.txt", func(t *testing.T, d *datadriven.TestData) string {
		p := kerneltest.Program(t, d.Input+"\n")
		v := kerneltest.Verifier(t, p, 1)
		var out []string
		for _, a := range d.CmdArgs {
			plan, err := kernels.ParsePlan(strings.ReplaceAll(strings.Join(a.Vals, " "), ";", ",") + " online=1")
			if err != nil {
				t.Fatal(err)
			}
			for _, target := range targets {
				line := "agrees\n"
				k, err := devices[target].Compile(t.Context(), p, plan)
				var no *kernels.Rejected
				switch {
				case errors.As(err, &no):
					line = no.Reason + "\n"
				case err != nil:
					t.Fatalf("%s: %v", plan, err)
				default:
					if err := v.For(plan, false).Verify(t.Context(), k); err != nil {
						line = err.Error() + "\n"
					}
					k.Close()
				}
				if !slices.Contains(out, line) {
					out = append(out, line)
				}
			}
		}
		return strings.Join(out, "")
	})
}
