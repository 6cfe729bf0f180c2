package kernels

import "github.com/tilewright/tilewright/symtile/hlo"

// A Buffer is an array in memory, elements in the physical order of
// Shape.Layout, each in its own width (pred, s4/u4 and f8 take a byte;
// little-endian).
type Buffer struct {
	Shape hlo.Shape
	Data  []byte
}
