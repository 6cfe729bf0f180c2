// Package layout describes where the elements of arrays are in memory: tiled
// layouts with their padding, and packed arrays (tensor.pack, tensor.unpack).
//
// A [Layout] is a shape whose tiles have been checked. It gives the position of
// an element and the element at a position, as numbers ([Layout.Linear],
// [Layout.Index]), as indexing maps ([Layout.Map], [Layout.Inverse]), and as the
// explicit sequence of pads, reshapes and transposes ([Layout.Steps]).
//
// A [Pack] is the operation that does to a tensor, as data, what a tiled layout
// does in memory. [Operand.PackCost] weighs what packing moves against what
// strided access wastes.
//
// [Peel] divides the domain of a map into an interior without masks and edges.
//
// The formulas of tiled layouts are those of XLA's "Tiled layout" page; pack and
// unpack follow MLIR's linalg.pack; see symtile/hlo/packing for the rules. How threads of a GPU access a layout is the subject of
// kernels/gpu/coalesce; symtile/layout/draw makes pictures.
package layout
