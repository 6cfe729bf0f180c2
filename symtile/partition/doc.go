// Package partition splits a module that no compiler has fused into fusions.
//
// # What is decided, and how
//
// [Module] first inlines calls, drops operations that change nothing, and does work that is
// written twice once. Then it makes clusters in two passes, each of which becomes a fusion.
//
// The first pass goes from the results to the parameters. Every operation joins
// the cluster of its users where that repeats no work and costs no traffic:
//
//   - Elementwise operations and those that move data (broadcast, reshape,
//     transpose, slice, pad, concatenate, reverse, …) join. An operation that
//     follows a dot or a reduction, however, stays with that, where it is
//     computed once, rather than join a dot or a window that reads it.
//   - A dot or convolution, the hero of its cluster, joins operations that
//     follow it, unless one of them broadcasts, which would compute it many
//     times.
//   - A reduction joins operations on its result. It joins across a broadcast
//     only if that restores the shape that was reduced, as softmax and the
//     norms do. The reductions of one cluster reduce the same dimensions of the
//     same shape, and read something in common: loops that share nothing would
//     save a launch, and multiply the tilings.
//   - Constants, iotas and views of an operand are copied into every cluster
//     that uses them, and so is what costs less to compute again than to write
//     and read ([Machine]).
//
// The second pass joins neighbours: a cluster and one that it reads, or that
// reads the same array. Both ways are priced ([Price]), apart and joined, and
// the cheaper one is taken. The joined cluster is analysed as a tile program, so
// that repeated work is what its best tiling within [Machine.Scratch] repeats,
// with online loops where [symtile.Program.Online] finds them. That joins
// dot, softmax and dot to attention, two products to SwiGLU, outputs of the same
// tiles (an optimiser's update and its moments), and statistics with what they are
// taken of; and keeps apart what would be computed again for every tile. A sum that
// several tiles need is computed for each of them, unless a tile has whole rows: the
// price of the work says which. Joins that add loops, or in which a contraction reads
// another's tiles, have to save more.
//
// Any other operation starts a cluster. A cluster of scalars, or of nothing but
// reshapes, is dissolved again: there is nothing to tune. What the caller's
// [Options.Outside] or [symtile.UntileableReason] refuses is in no fusion. Nor is a
// dynamic-update-slice of an array that a loop carries and nothing else reads, where
// writing the slice in place costs less than a fusion, which moves the whole array.
//
// A module that a compiler has fused keeps its fusions. What it left outside of them,
// and moves 16 KiB or more, becomes a fusion of one instruction.
package partition
