package hlo_test

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// The table of operations says what is known of each: how many operands it takes,
// how its elements depend on theirs, what it costs and where it comes from.
func ExampleOpcode() {
	for _, op := range []hlo.Opcode{hlo.OpErfInv, hlo.OpMaximum, hlo.OpReshape, hlo.OpDot} {
		operands, _ := op.Arity()
		fmt.Println(op, operands, op.Elementwise(), op.FLOPs(), op.Has(hlo.Monoid), op.MLIR())
	}
	// Output:
	// erf-inv 1 true 50 false [chlo.erf_inv]
	// maximum 2 true 1 true [stablehlo.maximum]
	// reshape 1 false 0 false [stablehlo.reshape stablehlo.dynamic_reshape]
	// dot 2 false 1 false [stablehlo.dot_general stablehlo.dot]
}

// HLO and StableHLO read to the same module: fingerprints are equal.
func ExampleParse() {
	one, err := hlo.Parse("one.hlo", []byte("x = f32[8] parameter(0); ROOT y = f32[8] erf-inv(x)"))
	if err != nil {
		fmt.Println(err)
		return
	}
	other, err := hlo.Parse("other.mlir", []byte(`
func.func @main(%u: tensor<8xf32>) -> tensor<8xf32> {
  %0 = chlo.erf_inv %u : tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(other.Entry.Canonical())
	fmt.Println(one.Entry.Fingerprint() == other.Entry.Fingerprint())
	// Output:
	// ENTRY %c0 {
	//   %v0 = f32[8] parameter(0)
	//   ROOT %v1 = f32[8] erf-inv(%v0)
	// }
	// true
}
