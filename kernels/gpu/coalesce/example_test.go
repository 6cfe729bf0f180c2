package coalesce_test

import (
	"fmt"
	"log"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// Eight rows of 32 threads with four elements each read an array row by row: in
// memory that is row-major every sector is used; in column-major memory each
// thread touches sectors of its own.
func ExampleAssignment() {
	a := coalesce.Assignment{
		Tile: []int64{8, 128}, Threads: []int64{8, 32}, Elements: []int64{1, 4}, Order: []int{1, 0},
	}
	for _, shape := range []string{"f32[1024,1024]{1,0}", "f32[1024,1024]{0,1}"} {
		l, err := layout.Parse(shape)
		if err != nil {
			log.Fatal(err)
		}
		x, err := a.Of(index.NewRing(), l)
		if err != nil {
			log.Fatal(err)
		}
		v := x.VectorWidth()
		c, err := x.Coalescing(v.Width, layout.Sectors{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: vectors of %d, %.0f times the sectors that would do\n", shape, v.Width, c.Mean())
	}
	// Output:
	// f32[1024,1024]{1,0}: vectors of 4, 1 times the sectors that would do
	// f32[1024,1024]{0,1}: vectors of 1, 8 times the sectors that would do
}

// A box of 32 by 64 elements is read from a row-major array and written to a
// transposed one. No layout of the threads coalesces both: one array should come
// through shared memory.
func ExampleBox_ChooseElementwise() {
	r := index.NewRing()
	i := r.Var(index.Variable{Name: "i", Hi: 31, Role: index.RoleElement})
	j := r.Var(index.Variable{Name: "j", Hi: 63, Role: index.RoleElement})
	at := []index.Expr{i, j}
	box := coalesce.Box{Sizes: []int64{32, 64}, Threads: 128, Vector: 4}
	c := box.ChooseElementwise([]coalesce.ArrayAccess{
		{Index: at, Offset: i.Scale(1024).Add(j), Bytes: 4, Shared: true},
		{Index: at, Offset: j.Scale(512).Add(i), Bytes: 4, Shared: true},
	})
	fmt.Println("order", c.Layout.Order(), "vectors of", c.Layout.Vector, "coalesced", c.Coalesced)
	// Output:
	// order [0 1] vectors of 4 coalesced [true false]
}

// The sectors that a load of a generated kernel touches: thread t of 64 loads four
// bytes at 8·t, so that half of each sector is wasted.
func ExampleRequest_Count() {
	r := index.NewRing()
	block := r.Var(index.Variable{Name: "block", Hi: 9, Role: index.RoleBlock})
	t := r.Var(index.Variable{Name: "t", Hi: 63, Role: index.RoleThread})
	q := coalesce.Request{
		Offset: block.Scale(512).Add(t.Scale(8)), Bytes: 4,
		Blocks: []index.Expr{block}, Threads: []index.Expr{t}, Block: 64,
	}
	n, err := q.Count(r, layout.Sectors{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n.Requests, "requests,", n.Sectors, "sectors where", n.Ideal, "would do")
	// Output:
	// 20 requests, 160 sectors where 80 would do
}
