package indexing_test

import (
	"fmt"
	"log"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// The maps of a dot say which elements of its operands an element of the result
// reads: s0 runs over the contracting dimension.
func ExampleOperandMaps() {
	m, err := hlo.Parse("dot.hlo", []byte(`
		x = f32[8,32] parameter(0)
		y = f32[32,16] parameter(1)
		ROOT z = f32[8,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`))
	if err != nil {
		log.Fatal(err)
	}
	for k, maps := range indexing.OperandMaps(index.NewRing(), m.Entry.Root, 0) {
		fmt.Println(m.Entry.Root.Operands[k].Name, maps[0])
	}
	// Output:
	// x (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 7], d1 in [0, 15], s0 in [0, 31]
	// y (d0, d1)[s0] -> (s0, d1), domain: d0 in [0, 7], d1 in [0, 15], s0 in [0, 31]
}

// The map of a whole fusion is composed through its instructions and simplified.
func ExampleParamMaps() {
	m, err := hlo.Parse("turn.hlo", []byte(`
		x = f32[64,32] parameter(0)
		t = f32[32,64] transpose(x), dimensions={1,0}
		ROOT r = f32[2048] reshape(t)`))
	if err != nil {
		log.Fatal(err)
	}
	maps, err := indexing.ParamMaps(index.NewRing(), m.Entry, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(maps[0][0])
	// Output:
	// (d0) -> (d0 mod 64, d0 floordiv 64), domain: d0 in [0, 2047]
}

// The elements of a padded array that an element of the operand becomes.
func ExampleUserMaps() {
	m, err := hlo.Parse("pad.hlo", []byte(`
		x = f32[10] parameter(0)
		z = f32[] constant(0)
		ROOT y = f32[20] pad(x, z), padding=1_0_1`))
	if err != nil {
		log.Fatal(err)
	}
	for k, maps := range indexing.UserMaps(index.NewRing(), m.Entry.Root, 0) {
		fmt.Println(m.Entry.Root.Operands[k].Name, maps[0])
	}
	// Output:
	// x (d0) -> (d0 * 2 + 1), domain: d0 in [0, 9], d0 * 2 + 1 in [0, 19]
	// z ()[s0] -> (s0), domain: s0 in [0, 19]
}

// The results that an element of a parameter takes part in: its own square, and
// the sum of its row.
func ExampleOutputMaps() {
	m, err := hlo.Parse("squares.hlo", []byte(`
		HloModule squares
		add {
		  a = f32[] parameter(0)
		  b = f32[] parameter(1)
		  ROOT s = f32[] add(a, b)
		}
		ENTRY main {
		  x = f32[4,8] parameter(0)
		  z = f32[] constant(0)
		  q = f32[4,8] multiply(x, x)
		  r = f32[4] reduce(q, z), dimensions={1}, to_apply=add
		  ROOT t = (f32[4,8], f32[4]) tuple(q, r)
		}`))
	if err != nil {
		log.Fatal(err)
	}
	maps, err := indexing.OutputMaps(index.NewRing(), m.Entry, 0)
	if err != nil {
		log.Fatal(err)
	}
	for output, maps := range maps {
		fmt.Println(output, maps[0])
	}
	// Output:
	// 0 (d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 7]
	// 1 (d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [0, 7]
}
