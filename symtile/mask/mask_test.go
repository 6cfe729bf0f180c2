package mask_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/mask"
)

// testdata/masks.txt has masks in many forms. What is said to be hidden is compared with
// what the reference computes from random operands; how many elements have the value is
// printed beside how many are known to have it.
func TestMasks(t *testing.T) {
	datadriven.RunTest(t, "testdata/masks.txt", func(t *testing.T, d *datadriven.TestData) string {
		p := kerneltest.Program(t, d.Input+"\n")
		m, err := mask.Of(p, p.Roots[0].Op)
		if err != nil {
			return err.Error() + "\n"
		}
		var out strings.Builder
		for _, b := range m.Bounds {
			fmt.Fprintf(&out, "%v where %v·x %+d < 0\n", m.Value, b.Factors, b.Const)
		}
		out.WriteString(compare(t, p, m))
		return out.String()
	})
}

// testdata/groups.txt has operands of products that are 0 but for the rows of a group. TestGroupedProducts of
// the GPU backend compares what is left out with the reference.
func TestGroups(t *testing.T) {
	datadriven.RunTest(t, "testdata/groups.txt", func(t *testing.T, d *datadriven.TestData) string {
		p := kerneltest.Program(t, d.Input+"\n")
		n := slices.IndexFunc(p.Ops, func(op symtile.Op) bool { return op.Code == hlo.OpDot })
		g, ok := mask.GroupsOf(p, n)
		if !ok {
			return "no groups\n"
		}
		var out strings.Builder
		fmt.Fprintf(&out, "%s, of which dimension %d numbers the groups\n", p.Ops[g.Op].Instr.Name, g.Dim)
		for _, b := range g.Bounds {
			fmt.Fprintf(&out, "0 where %v·x %+d %+d·%s < 0\n", b.Factors, b.Const, b.Sign, p.Ops[b.Numbers].Instr.Name)
		}
		return out.String()
	})
}

// compare counts elements that are hidden, and those that have the value.
func compare(t *testing.T, p *symtile.Program, m mask.Mask) string {
	t.Helper()
	in, err := check.Inputs(p.Physical, check.Normals, 1)
	if err != nil {
		t.Fatal(err)
	}
	e := reference.NewElementEvaluator(t.Context(), p.Physical, in, 1<<40)
	dims := p.Physical.Root.Shape.Dims
	hidden, equal, all := 0, 0, p.Physical.Root.Shape.Elements()
	for k := range all {
		x := make([]int64, len(dims))
		for d, rest := len(dims)-1, k; d >= 0; d-- {
			x[d] = rest % dims[d]
			rest /= dims[d]
		}
		v, err := e.Output(0, k)
		if err != nil {
			t.Fatal(err)
		}
		below := false
		for _, b := range m.Bounds {
			below = below || b.At(x) < 0
		}
		if below && v != m.Value {
			t.Errorf("element %v is %v, not %v", x, v, m.Value)
		}
		if below {
			hidden++
		}
		if v == m.Value {
			equal++
		}
	}
	return fmt.Sprintf("%d of %d are known to be hidden, %d are\n", hidden, all, equal)
}
