package layout_test

import (
	"fmt"
	"log"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// Packing a matrix into tiles of 8 by 32: the shape of the result, the steps, and
// the proof that unpacking undoes it.
func ExampleParsePack() {
	p, err := layout.ParsePack("pack 128x256 inner_dims_pos=[0, 1] inner_tiles=[8, 32]")
	if err != nil {
		log.Fatal(err)
	}
	_, proved := p.RoundTrip(index.NewRing())
	fmt.Println(layout.ExtentsText(p.Packed()), proved)
	fmt.Println(p.Steps())
	fmt.Println(p.ToSource(index.NewRing()))
	// Output:
	// 16x8x8x32 true
	// reshape to 16x8x8x32; transpose [0, 2, 1, 3] to 16x8x8x32
	// (d0, d1, d2, d3) -> (d0 * 8 + d2, d1 * 32 + d3), domain: d0 in [0, 15], d1 in [0, 7], d2 in [0, 7], d3 in [0, 31]
}

// Whether packing an operand of a product pays for the cache lines and page walks
// that it saves.
func ExampleOperand_PackCost() {
	_, b := layout.Dot{M: 512, N: 2048, K: 2048, DType: hlo.F32}.Operands()
	c, err := b.PackCost(layout.Memory{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Pays, "from", c.BreakEven, "visits on; there are", c.Operand.Visits)
	// Output:
	// true from 2 visits on; there are 8
}
