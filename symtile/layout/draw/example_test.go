package draw_test

import (
	"fmt"
	"log"

	"github.com/tilewright/tilewright/symtile/layout"
	"github.com/tilewright/tilewright/symtile/layout/draw"
)

// A picture of an array of 3 by 5 elements in tiles of 2 by 2, as an SVG page to
// write to a file.
func ExampleLayoutSVG() {
	l, err := layout.Parse("f32[3,5]{1,0:T(2,2)}")
	if err != nil {
		log.Fatal(err)
	}
	page, err := draw.LayoutSVG(l, layout.Sectors{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.39s\n", page)
	// Output:
	// <svg xmlns="http://www.w3.org/2000/svg"
}
