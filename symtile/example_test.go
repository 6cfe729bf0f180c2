package symtile_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A product with a bias, 32×64 by 64×48.
const gemmBias = `
	x = f32[32,64] parameter(0)
	y = f32[64,48] parameter(1)
	b = f32[48] parameter(2)
	d = f32[32,48] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
	bs = f32[32,48] broadcast(b), dimensions={1}
	ROOT r = f32[32,48] add(d, bs)`

func parse(text string) *hlo.Computation {
	m, err := hlo.Parse("example.hlo", []byte(text))
	if err != nil {
		log.Fatal(err)
	}
	return m.Entry
}

// Analyze finds the tiles of all operations from a tile of the result, with
// symbolic sizes.
func ExampleAnalyze() {
	p, err := symtile.Analyze(context.Background(), parse(gemmBias))
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range p.Space.Dims {
		fmt.Printf("%s: extent %d, %s, from %s\n", d.Name, d.Extent, d.Kind, d.From.Name)
	}
	for _, op := range p.Ops {
		fmt.Println(op.Instr.Name, op.Tile)
	}
	// Output:
	// t0: extent 32, parallel, from r
	// t1: extent 48, parallel, from r
	// t2: extent 64, sequential, from d
	// x offsets [t0 * s0, t2 * s2] sizes [s0, s2] below [32, 64]
	// y offsets [t2 * s2, t1 * s1] sizes [s2, s1] below [64, 48]
	// d offsets [t0 * s0, t1 * s1] sizes [s0, s1] below [32, 48]
	// b offsets [t1 * s1] sizes [s1] below [48]
	// bs offsets [t0 * s0, t1 * s1] sizes [s0, s1] below [32, 48]
	// r offsets [t0 * s0, t1 * s1] sizes [s0, s1] below [32, 48]
}

// At substitutes tile sizes. Masks that a tiling does not need disappear.
func ExampleProgram_At() {
	p, err := symtile.Analyze(context.Background(), parse(gemmBias))
	if err != nil {
		log.Fatal(err)
	}
	concrete, err := p.At(symtile.Tiling{16, 16, 32})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(concrete)
	fmt.Println("tile programs:", concrete.Programs(), "in a grid of", concrete.Grid())
	// Output:
	// t0: parallel, extent 32, size 16, tiles 2, from r
	// t1: parallel, extent 48, size 16, tiles 3, from r
	// t2: sequential, extent 64, size 32, tiles 2, from d
	// for t2 {
	//   %0 = x parameter() offsets [t0 * 16, t2 * 32] sizes [16, 32]
	//   %1 = y parameter() offsets [t2 * 32, t1 * 16] sizes [32, 16]
	//   %2 = d dot(%0, %1) offsets [t0 * 16, t1 * 16] sizes [16, 16]
	// }
	// %3 = b parameter() offsets [t1 * 16] sizes [16]
	// %4 = bs broadcast(%3) offsets [t0 * 16, t1 * 16] sizes [16, 16]
	// %5 = r add(%2, %4) offsets [t0 * 16, t1 * 16] sizes [16, 16]
	// store output 0 from %5
	//
	// tile programs: 6 in a grid of [2 3]
}

// Tilings yields the tile sizes that satisfy the constraints of a fusion: here a
// tile of the result has to be whole rows of four of the parameter, or a part of one
// row that divides it.
func ExampleSpace_Tilings() {
	p, err := symtile.Analyze(context.Background(), parse(`
		x = f32[6,4] parameter(0)
		ROOT r = f32[24] reshape(x)`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("where", p.Space.Where)
	fmt.Print(p.Space.Count(), " tilings:")
	for t := range p.Space.Tilings() {
		fmt.Print(" ", t[0])
	}
	// Output:
	// where s0 in [1, 1] || s0 mod 4 in [0, 0] || 4 mod s0 in [0, 0]
	// 7 tilings: 1 2 4 8 12 16 24
}

// A fusion that has no tiles is an error that names the instruction, the rule and
// the reason.
func ExampleUntileable() {
	_, err := symtile.Analyze(context.Background(), parse(`
		x = f32[16] parameter(0)
		ROOT s = f32[16] sort(x), dimensions={0}`))
	var no *symtile.Untileable
	if errors.As(err, &no) {
		fmt.Println(no.Instr.Name, no.Rule)
		fmt.Println(no.Reason)
	}
	// Output:
	// s not-in-op-table
	// every result depends on every element
}
