// Package symtile works out what can be tiled: integer expressions in normal
// form, indexing maps, constraints, and the propagation of symbolic tiles from
// the results of a fusion to its parameters.
//
// Analyze makes a Program with symbolic tile sizes, or says which instruction
// cannot be tiled, by which rule and why; At puts numbers in. Tilings lists the
// sizes that satisfy the constraints.
//
// # What a tile of the result says about the operands
//
// This table is made from the propagators, and a test compares them.
//
//	bitcast               transpose to physical order, reshape, transpose to logical order
//	                      is written as reshape, where both layouts are row-major
//	bitcast-convert       refused: it changes the width of the elements
//	broadcast             operand dimensions pick the result's
//	cholesky              refused: it is a library routine, not a tile program
//	concatenate           offset − prefix, masked to the operand
//	conditional           refused: control flow is not part of a tile program
//	constant              is there
//	convolution           is written as dot of an unfold of a pad; groups are batch dims
//	custom-call           refused: what it computes is not known here
//	dot                   contracting dims are sequential dims of the space
//	dynamic-slice         is written as slice, where all starts are constants
//	                      offset + run-time start, clamped
//	dynamic-update-slice  is written as itself with scalar starts, where they are given as one array
//	                      the same tile of the operand; offset − run-time start of the update, masked to it
//	elementwise           the same tile; scalars have none
//	fft                   refused: every result depends on every element
//	fusion, call          taken apart: what they call is propagated through
//	gather                slices by their offset dims, whole where starts are known at run time; index vectors whole
//	get-tuple-element     the tile of the variadic reduce
//	iota                  counts from its offset
//	map                   refused: only a map of one operation is elementwise
//	pad                   offset − low, masked to the operand; interior padding thins it by interior + 1
//	parameter             loads its tile
//	reduce                reduced dims are sequential dims of the space
//	reduce-window         is written as reduce of an unfold of a pad
//	reshape               is written as one with its operand where that is a reshape, or none
//	                      result dims → digits of the linear index → operand dims; a digit that crosses rows is whole rows or inside one
//	reverse               mirrors; the op flips
//	rng                   refused: its values depend on the order of evaluation
//	rng-bit-generator     refused: its values depend on the order of evaluation
//	scaled-dot            is written as dot of the operands times their scales, repeated over blocks
//	scatter               refused: which elements it writes is known at run time only
//	select-and-scatter    refused: which element of a window it writes to is known at run time only
//	slice                 offset·stride + start
//	sort                  refused: every result depends on every element
//	topk                  refused: every result depends on every element
//	transpose             permutes
//	triangular-solve      refused: it is a library routine, not a tile program
//	tuple                 refused: a tuple is only tiled at the root
//	unfold                positions and places of windows → the indices between the first and the last, halo included
//	while                 refused: control flow is not part of a tile program
package symtile
