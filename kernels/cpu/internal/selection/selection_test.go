package selection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestSelections reads computations of pairs, and prints what each of them keeps.
//
//	computation
//	its instructions after the parameters v, i (left) and w, j (right)
//	----
//	maximum, minimum or nothing
//
// The argument of the line, places=(…), is the operand beside the values; it is an iota where
// nothing is said.
func TestSelections(t *testing.T) {
	datadriven.RunTest(t, "testdata/selections.txt", func(t *testing.T, d *datadriven.TestData) string {
		places := "s32[4,40] iota(), iota_dimension=1"
		for _, arg := range d.CmdArgs {
			places = strings.Join(arg.Vals, ", ")
		}
		text := fmt.Sprintf(`HloModule selection
pair {
v = f32[] parameter(0)
i = s32[] parameter(1)
w = f32[] parameter(2)
j = s32[] parameter(3)
%s
}
ENTRY main {
x = f32[4,40] parameter(0)
y = s32[4,40] parameter(1)
n = %s
low = f32[] constant(-inf)
zero = s32[] constant(0)
ROOT r = (f32[4], s32[4]) reduce(x, n, low, zero), dimensions={1}, to_apply=pair
}`, d.Input, places)
		m, err := hlo.Parse("selection", []byte(text))
		if err != nil {
			return err.Error() + "\n"
		}
		p, err := symtile.Analyze(t.Context(), m.Entry)
		if err != nil {
			return err.Error() + "\n"
		}
		var out strings.Builder
		for n, op := range p.Ops {
			if op.Code == hlo.OpReduce {
				kept, ok := Of(p, op)
				if !ok {
					kept = "nothing"
				}
				fmt.Fprintln(&out, kept)
			}
			if ReadBy(p, n) >= 0 {
				fmt.Fprintln(&out, "places are read by it alone")
			}
		}
		return out.String()
	})
}
