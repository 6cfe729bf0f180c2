// Package layout says how arrays lie in memory: tiled layouts with their
// padding, packed arrays (tensor.pack, tensor.unpack), and which bytes the
// threads of a device touch.
//
// A [Layout] is a shape whose tiles have been checked. It gives the position of
// an element and the element at a position, as numbers ([Layout.Linear],
// [Layout.Index]), as indexing maps ([Layout.Map], [Layout.Inverse]) and as the
// explicit sequence of pads, reshapes and transposes ([Layout.Steps]).
//
// A [Pack] is the operation that does to a tensor, as data, what a tiled layout
// does in memory. [Judge] weighs what packing moves against what strided access
// wastes.
//
// An [Assignment] gives the elements of an array to the threads of a grid;
// composed with a layout it is an [Access], which knows its sectors
// ([Access.Coalescing]), its vector width ([Access.VectorWidth]) and the parts
// of its domain that need no mask ([Peel]). A [Request] is one that a kernel
// makes. A [Box] is what a block of threads goes over together: [Box.Flat] and
// [Box.Fold] choose the order in which, and how many elements a thread takes at
// once, for all the arrays that it reaches.
//
// The formulas of tiled layouts are those of XLA's "Tiled layout" page; pack and
// unpack follow MLIR's linalg.pack, with outer_dims_perm a permutation of the
// source's dimensions.
package layout
