package partition_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
)

// Module splits a module that no compiler has fused.
func ExampleModule() {
	m, err := hlo.Parse("module.hlo", []byte(`
		HloModule example
		ENTRY main {
			x = f32[64,64] parameter(0)
			y = f32[64,64] parameter(1)
			d = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
			t = f32[64,64] tanh(d)
			s = f32[64,64] sort(t), dimensions={1}
			ROOT n = f32[64,64] negate(s)
		}`))
	if err != nil {
		log.Fatal(err)
	}
	split, err := partition.Module(context.Background(), m, partition.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range split.Module.Fusions() {
		fmt.Println("fusion", f.Name)
	}
	for _, u := range split.Outside {
		fmt.Println("outside", u.Instr.Name, u.Instr.Op, u.Reason)
	}
	// Output:
	// fusion fused.t
	// fusion fused.n
	// outside s sort every result depends on every element
}
