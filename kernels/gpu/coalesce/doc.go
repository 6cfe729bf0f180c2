// Package coalesce counts the memory traffic of GPU threads: which sectors of
// memory the loads and stores of warps touch, how wide their vectors can be, and
// which assignment of elements to threads touches the fewest sectors.
//
// Memory is moved in sectors (32 bytes on NVIDIA GPUs). The threads of a warp
// that execute one load together make one request; it moves every sector that it
// touches, however few bytes of it are asked for. An access is coalesced when the
// sectors are no more than the bytes need.
//
// There are three ways to describe an access:
//
//   - An [Assignment] distributes an array over the threads of a grid. Composed
//     with a layout it is an [Access], whose maps go from block, warp, lane, round
//     and element to the index and the byte offset. [Access.Coalescing] counts,
//     [Access.VectorWidth] proves how wide vectors can be, [Access.Parts] separates
//     the interior, which needs no mask, from the edges.
//   - A [Request] is one instruction of a generated kernel, as the expressions
//     describe it from which it was generated. [Request.Count] counts.
//   - A [Box] is a tile that the threads of a block process together, and an
//     [ArrayAccess] an array that its elements are loaded from or stored to.
//     [Box.ChooseElementwise] and [Box.ChooseReduction] choose the [ThreadLayout]
//     for all arrays of a fusion at once, and say which should be staged through
//     shared memory.
//
// Counts are exact for accesses and requests: maps are compiled and evaluated for
// every thread of one block of each class of blocks that behave alike. Counts of
// thread layouts ignore masks, and extrapolate large boxes.
package coalesce
