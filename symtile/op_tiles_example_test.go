package symtile_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A compiler that propagates tiles through a graph of its own asks for one
// instruction at a time: which parts of its operands does a tile of 8 by 16
// elements of a product need?
func ExampleOperandTiles() {
	m, err := hlo.Parse("dot.hlo", []byte(`
		x = f32[64,32] parameter(0)
		y = f32[32,128] parameter(1)
		ROOT z = f32[64,128] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`))
	if err != nil {
		log.Fatal(err)
	}
	r := index.NewRing()
	tile := func(name string, size, extent int64) symtile.DimTile {
		id := r.Var(index.Variable{Name: name, Hi: extent/size - 1, Role: index.RoleTileID})
		return symtile.DimTile{
			Offset: id.Scale(size), Size: r.Const(size), Stride: r.Const(1),
			Lower: r.Const(0), Bound: r.Const(extent),
		}
	}
	out := symtile.Tile{tile("i", 8, 64), tile("j", 16, 128)}
	rel, err := symtile.OperandTiles(r, m.Entry.Root, out)
	if err != nil {
		log.Fatal(err)
	}
	for k, tiles := range rel.Tiles {
		fmt.Println(m.Entry.Root.Operands[k].Name, tiles[0])
	}
	// Output:
	// x offsets [i * 8, t2 * s2] sizes [8, s2] below [64, 32]
	// y offsets [t2 * s2, j * 16] sizes [s2, 16] below [32, 128]
}

// The opposite direction: which elements of the result are made from a tile of an
// operand?
func ExampleResultTiles() {
	m, err := hlo.Parse("pad.hlo", []byte(`
		x = f32[64] parameter(0)
		z = f32[] constant(0)
		ROOT y = f32[70] pad(x, z), padding=4_2`))
	if err != nil {
		log.Fatal(err)
	}
	r := index.NewRing()
	id := r.Var(index.Variable{Name: "i", Hi: 7, Role: index.RoleTileID})
	tile := symtile.Tile{{
		Offset: id.Scale(8), Size: r.Const(8), Stride: r.Const(1),
		Lower: r.Const(0), Bound: r.Const(64),
	}}
	rel, err := symtile.ResultTiles(r, m.Entry.Root, 0, tile)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rel.Tiles[0][0])
	// Output:
	// offsets [i * 8 + 4] sizes [8]
}

// The softmax of a row needs its maximum first, then the sum of exponentials, then
// the quotients: two loops over the row. Online fuses them.
func ExampleProgram_Online() {
	m, err := hlo.Parse("softmax.hlo", []byte(`
		HloModule softmax
		max { a = f32[] parameter(0)
		      b = f32[] parameter(1)
		      ROOT m = f32[] maximum(a, b) }
		add { a = f32[] parameter(0)
		      b = f32[] parameter(1)
		      ROOT s = f32[] add(a, b) }
		ENTRY main {
		  x = f32[16,256] parameter(0)
		  low = f32[] constant(-inf)
		  m = f32[16] reduce(x, low), dimensions={1}, to_apply=max
		  b = f32[16,256] broadcast(m), dimensions={0}
		  d = f32[16,256] subtract(x, b)
		  e = f32[16,256] exponential(d)
		  zero = f32[] constant(0)
		  ROOT s = f32[16] reduce(e, zero), dimensions={1}, to_apply=add
		}`))
	if err != nil {
		log.Fatal(err)
	}
	p, err := symtile.Analyze(context.Background(), m.Entry)
	if err != nil {
		log.Fatal(err)
	}
	loops := func(p *symtile.Program) (n int) {
		for _, s := range p.Body {
			if s.Loop != nil {
				n++
			}
		}
		return n
	}
	fmt.Println(loops(p), "loops,", loops(p.Online()), "online")
	// Output:
	// 2 loops, 1 online
}
