package narrowing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// programs are fusions, a tiling of each, and the sizes of the tiles of what is computed then.
var programs = map[string]struct {
	text   string
	tiling symtile.Tiling
	sizes  string
}{
	"halves": {`
		x = f32[6,20] parameter(0)
		y = f32[6,44] parameter(1)
		u = f32[6,20] negate(x)
		v = f32[6,44] multiply(y, y)
		ROOT r = f32[6,64] concatenate(u, v), dimensions={1}`,
		symtile.Tiling{2, 64}, "negate [2 20], multiply [2 44]"},
	"parts of the dimension": {`
		x = f32[6,32] parameter(0)
		y = f32[6,32] parameter(1)
		u = f32[6,32] negate(x)
		v = f32[6,32] multiply(y, y)
		ROOT r = f32[6,64] concatenate(u, v), dimensions={1}`,
		symtile.Tiling{2, 32}, "negate [2 32], multiply [2 32]"},
	"an operation on a join": {`
		x = f32[6,64] parameter(0)
		a = f32[6,32] slice(x), slice={[0:6], [0:32]}
		b = f32[6,32] slice(x), slice={[0:6], [32:64]}
		n = f32[6,32] negate(b)
		j = f32[6,64] concatenate(n, a), dimensions={1}
		ROOT r = f32[6,64] add(j, x)`,
		symtile.Tiling{3, 64}, "negate [3 32], add [3 32], add [3 32]"},
	"few elements": {`
		x = f32[6,4] parameter(0)
		y = f32[6,60] parameter(1)
		j = f32[6,64] concatenate(x, y), dimensions={1}
		ROOT r = f32[6,64] add(j, j)`,
		symtile.Tiling{3, 64}, "add [3 64]"},
	"all is read, too": {`
		x = f32[6,64] parameter(0)
		u = f32[6,64] negate(x)
		p = f32[] constant(0)
		c = f32[6,63] slice(u), slice={[0:6], [1:64]}
		d = f32[6,64] pad(c, p), padding=0_0x0_1
		ROOT r = (f32[6,64], f32[6,64]) tuple(u, d)`,
		symtile.Tiling{3, 64}, "negate [3 64], negate [3 63]"},
	"a mask": {`
		x = f32[6,64] parameter(0)
		i = s32[6,64] iota(), iota_dimension=1
		k = s32[] constant(24)
		ks = s32[6,64] broadcast(k), dimensions={}
		m = pred[6,64] compare(i, ks), direction=LT
		u = f32[6,64] negate(x)
		v = f32[6,64] multiply(x, x)
		ROOT r = f32[6,64] select(m, u, v)`,
		symtile.Tiling{6, 64}, "negate [6 24], multiply [6 40]"},
}

// Tiles are as narrow as what joins them needs, and no narrower.
func TestProgram(t *testing.T) {
	for name, c := range programs {
		m, err := hlo.Parse(name, []byte("ENTRY e {\n"+c.text+"\n}"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := symtile.Analyze(t.Context(), m.Entry)
		if err != nil {
			t.Fatal(err)
		}
		at, err := p.At(c.tiling)
		if err != nil {
			t.Fatal(err)
		}
		q, _ := Program(at)
		if got := computedSizes(q); got != c.sizes {
			t.Errorf("%s: %s, want %s", name, got, c.sizes)
		}
	}
}

// computedSizes are the elementwise ops that the roots need, in order, with their sizes.
func computedSizes(p *symtile.Program) string {
	needed := map[int]bool{}
	var visit func(n int)
	visit = func(n int) {
		if !needed[n] {
			needed[n] = true
			for _, a := range p.Ops[n].Args {
				visit(a)
			}
		}
	}
	for _, r := range p.Roots {
		visit(r.Op)
	}
	var list []string
	for n, op := range p.Ops {
		if needed[n] && slices.Contains([]hlo.Opcode{hlo.OpNegate, hlo.OpMultiply, hlo.OpAdd}, op.Code) {
			list = append(list, fmt.Sprint(op.Code, " ", op.Tile.Sizes()))
		}
	}
	return strings.Join(list, ", ")
}
