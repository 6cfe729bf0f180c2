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
//	bitcast            transpose to physical order, reshape, transpose to logical order
//	broadcast          operand dimensions pick the result's
//	concatenate        offset − prefix, masked to the operand
//	constant           is there
//	dot                contracting dims are sequential dims of the space
//	elementwise        the same tile; scalars have none
//	fusion, call       taken apart: what they call is propagated through
//	get-tuple-element  the tile of the variadic reduce
//	iota               counts from its offset
//	pad                offset − low, masked to the operand; interior divides by interior + 1 (result stride 1)
//	parameter          loads its tile
//	reduce             reduced dims are sequential dims of the space
//	reshape            result dims → digits of the linear index → operand dims; a digit that crosses rows is whole rows or inside one
//	reverse            mirrors; the op flips
//	slice              offset·stride + start
//	transpose          permutes
package symtile
