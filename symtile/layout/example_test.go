package layout_test

import (
	"fmt"
	"log"

	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// A tiled layout pads the array to whole tiles. Positions and indices are computed
// as numbers or as indexing maps.
func ExampleLayout() {
	l, err := layout.Parse("f32[3,5]{1,0:T(2,2)}")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("physical", l.Physical, "padding", l.Padding())
	position := l.Linear([]int64{2, 3})
	index23, valid := l.Index(position)
	fmt.Println("element [2 3] is at", position, index23, valid)
	fmt.Println(l.Map(index.NewRing()))
	fmt.Println(l.Steps())
	// Output:
	// physical [2 3 2 2] padding 9
	// element [2 3] is at 17 [2 3] true
	// (d0, d1) -> (d0 * 6 + d1 * 2 - (d0 mod 2) * 4 - d1 mod 2), domain: d0 in [0, 2], d1 in [0, 4]
	// pad to 4x6; reshape to 2x2x3x2; transpose [0, 2, 1, 3] to 2x3x2x2
}

// A pack makes of a tensor what a tiled layout makes of memory. Unpacking is
// proved to be its inverse.
func ExamplePack() {
	p := layout.Pack{Source: []int64{32, 64}, InnerDimsPos: []int{0, 1}, InnerTiles: []int64{8, 16}}
	if err := p.Check(); err != nil {
		log.Fatal(err)
	}
	r := index.NewRing()
	fmt.Println("packed", p.Packed())
	fmt.Println(p.ToSource(r))
	_, proved := p.RoundTrip(r)
	fmt.Println("round trip proved:", proved)
	// Output:
	// packed [4 4 8 16]
	// (d0, d1, d2, d3) -> (d0 * 8 + d2, d1 * 16 + d3), domain: d0 in [0, 3], d1 in [0, 3], d2 in [0, 7], d3 in [0, 15]
	// round trip proved: true
}
