package indexing_test

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// parse reads a computation; examples have no errors.
func parse(text string) *hlo.Computation {
	m, err := hlo.Parse("example", []byte(text))
	if err != nil {
		panic(err)
	}
	return m.Entry
}

// The elements of its operands that element (d0, d1) of a product is made from.
func ExampleOperandMaps() {
	c := parse(`
a = f32[8,16] parameter(0)
b = f32[16,32] parameter(1)
ROOT c = f32[8,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}`)
	for k, maps := range indexing.OperandMaps(index.NewRing(), c.Root, 0) {
		fmt.Println(c.Root.Operands[k].Name, maps[0])
	}
	// Output:
	// a (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 7], d1 in [0, 31], s0 in [0, 15]
	// b (d0, d1)[s0] -> (s0, d1), domain: d0 in [0, 7], d1 in [0, 31], s0 in [0, 15]
}

// The elements of a padded array that an element of the operand becomes.
func ExampleUserMaps() {
	c := parse(`
x = f32[10] parameter(0)
z = f32[] constant(0)
ROOT y = f32[20] pad(x, z), padding=1_0_1`)
	for k, maps := range indexing.UserMaps(index.NewRing(), c.Root, 0) {
		fmt.Println(c.Root.Operands[k].Name, maps[0])
	}
	// Output:
	// x (d0) -> (d0 * 2 + 1), domain: d0 in [0, 9], d0 * 2 + 1 in [0, 19]
	// z ()[s0] -> (s0), domain: s0 in [0, 19]
}

// What a fusion reads of its parameter: the middle half of each row, reversed.
func ExampleParamMaps() {
	c := parse(`
x = f32[4,8] parameter(0)
s = f32[4,4] slice(x), slice={[0:4],[2:6]}
r = f32[4,4] reverse(s), dimensions={1}
ROOT y = f32[16] reshape(r)`)
	maps, err := indexing.ParamMaps(index.NewRing(), c, 0)
	if err != nil {
		panic(err)
	}
	fmt.Println(maps[0][0])
	// Output:
	// (d0) -> (d0 floordiv 4, -(d0 mod 4) + 5), domain: d0 in [0, 15]
}

// Which outputs an element of a parameter takes part in: its own square, and the
// sum of its row.
func ExampleOutputMaps() {
	c := parse(`
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
}`)
	maps, err := indexing.OutputMaps(index.NewRing(), c, 0)
	if err != nil {
		panic(err)
	}
	for output, m := range maps {
		fmt.Println(output, m[0])
	}
	// Output:
	// 0 (d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 7]
	// 1 (d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [0, 7]
}
