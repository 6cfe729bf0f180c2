package indexing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// TestManyWays: computations that call each other twice reach a parameter in
// 2ⁿ ways; that ends, soon, and is not known.
func TestManyWays(t *testing.T) {
	var b strings.Builder
	b.WriteString("f0 {\nx = f32[9] parameter(0)\ni = s32[] parameter(1)\na = s32[] negate(i)\nd = f32[3] dynamic-slice(x, a), dynamic_slice_sizes={3}\nROOT r = f32[3] copy(d)\n}\n")
	for k := 1; k < 30; k++ {
		call := fmt.Sprintf("f32[3] fusion(x, i), kind=kLoop, calls=f%d", k-1)
		fmt.Fprintf(&b, "f%d {\nx = f32[9] parameter(0)\ni = s32[] parameter(1)\nd = %s\ne = %s\nROOT r = f32[3] add(d, e)\n}\n", k, call, call)
	}
	m, err := hlo.Parse("many", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	maps, err := ParamMaps(index.NewRing(), m.Entry, 0)
	if err != nil || len(maps[0]) != 1 || maps[0][0].State != index.StateUndefined {
		t.Errorf("%v %v", maps[0], err)
	}
	t.Logf("%v: %s", time.Since(began), maps[0][0].Why)
}
