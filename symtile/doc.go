// Package symtile finds the legal tilings of a fusion. It propagates tiles with
// symbolic sizes from the results of a computation to its parameters, collects
// the constraints under which that is possible, and enumerates the tile sizes
// that satisfy them.
//
// The way from a module to a tile program:
//
//   - Package symtile/partition splits a module that no compiler has fused into
//     fusions.
//   - [Analyze] makes the symbolic [Program] of a fusion, or an [*Untileable]
//     that says which instruction cannot be tiled, by which rule and why.
//   - [Space], in Program.Space, is the set of its tilings: a [Dim] for each
//     parallel dimension of the result and each reduced dimension, with
//     constraints on their tile sizes. [Space.Tilings], [Space.Sample] and
//     [Space.Count] enumerate the legal ones; [Program.Check] tests one.
//   - [Program.At] puts the sizes of a [Tiling] in. A backend generates code from
//     the concrete program: each [Op] computes one [Tile] from the tiles of its
//     arguments, each [Loop] accumulates reductions and contractions.
//   - [Program.Online] fuses the loops of softmax, attention and normalization.
//   - [Extents] are the numbers that cost models need of a tiling, without
//     building the program.
//
// Expressions, maps and constraints are those of symtile/index; the indexing
// maps of single operations are in symtile/indexing.
//
// # The tile that an operand needs for a tile of the result
//
// This table is made from the propagators, and a test compares them.
//
//	add-dependency        refused: it orders operations, and computes nothing
//	after-all             refused: it orders operations, and computes nothing
//	async-done            refused: it exchanges data between devices; what stands before and behind it is tiled for one device
//	async-start           refused: it exchanges data between devices; what stands before and behind it is tiled for one device
//	async-update          refused: it exchanges data between devices; what stands before and behind it is tiled for one device
//	batch-norm-grad       refused: it is several operations, which a partition takes apart
//	batch-norm-inference  refused: it is several operations, which a partition takes apart
//	batch-norm-training   refused: it is several operations, which a partition takes apart
//	bitcast               tiled as a transpose to physical order, a reshape and a transpose to logical order
//	                      rewritten as reshape, where both layouts are row-major
//	bitcast-convert       rewritten as shifts of bits, between types of different width
//	broadcast             the tile of the result dimensions that the operand has
//	cholesky              refused: it is a library routine, not a tile program
//	collectives           refused: it exchanges data between devices; what stands before and behind it is tiled for one device
//	concatenate           offset − the extents of the operands before it, masked to the operand
//	conditional           refused: control flow is not part of a tile program
//	constant              reads no operand
//	convolution           rewritten as dot of an unfold of a pad; groups become batch dimensions
//	copy-done             refused: it runs in the background, between operations that are computed
//	copy-start            refused: it runs in the background, between operations that are computed
//	custom-call           refused: what it computes is not known here
//	domain                refused: it orders operations, and computes nothing
//	dot                   rewritten as itself, contracted first along what a mask of the operand alone depends on
//	                      the tiles of batch and free dimensions, and sequential dimensions of the space for the contracting ones
//	dynamic-reshape       refused: its extents are known at run time only
//	dynamic-slice         rewritten as slice, where all starts are constants
//	                      offset + start, a run-time value that is clamped to keep the slice inside
//	dynamic-update-slice  rewritten as itself with scalar starts, where HLO gives them as one array
//	                      of the operand the same tile; of the update offset − start (a run-time value), masked to the update
//	elementwise           the same tile; scalar operands need none
//	fft                   refused: every result depends on every element
//	fusion, call          inlined: tiles propagate through what they call
//	gather                of the operand the tile along offset dimensions and everything along dimensions with start indices; whole index vectors
//	get-dimension-size    refused: extents at run time are not known to a tile program
//	get-tuple-element     the same tile, of the variadic reduce
//	imag                  rewritten as 0, of real numbers
//	infeed                refused: it exchanges data with the host
//	iota                  reads no operand: element i is offset + i·stride
//	map                   refused: only a map of one operation is elementwise
//	mulhi                 refused: it is new in XLA, and no program that was seen has it
//	outfeed               refused: it exchanges data with the host
//	pad                   offset − low padding, masked to the operand; with interior padding every (interior + 1)-th index
//	parameter             reads no operand: its tile is loaded from memory
//	ragged-dot            refused: it is several operations, which a partition takes apart
//	recv                  refused: it exchanges data between devices; what stands before and behind it is tiled for one device
//	recv-done             refused: it exchanges data between devices; what stands before and behind it is tiled for one device
//	reduce                the tile, and sequential dimensions of the space for the reduced ones
//	reduce-window         rewritten as reduce of an unfold of a pad
//	reshape               rewritten as one reshape of what its operand reshapes, or nothing where the two cancel
//	                      the linear index, divided anew into the operand's dimensions; a tile that crosses a row of one must be whole rows, or within a row
//	reverse               the mirrored interval in ascending order; the op reverses the elements
//	rng                   refused: its values depend on the order of evaluation
//	rng-bit-generator     refused: its values depend on the order of evaluation
//	rng-get-and-update-state refused: its values depend on the order of evaluation
//	scaled-dot            rewritten as dot of the operands multiplied by their scales, repeated over blocks
//	scan                  refused: it is new in XLA, and no program that was seen has it
//	scatter               of the operand the same tile; of the updates the tile along windows, and a sequential dimension of the space for the first one of several index vectors, whole ones along with it
//	select-and-scatter    refused: which element of a window it writes to is known at run time only
//	send                  refused: it exchanges data between devices; what stands before and behind it is tiled for one device
//	send-done             refused: it exchanges data between devices; what stands before and behind it is tiled for one device
//	set-dimension-size    refused: it sets an extent at run time; tiles are of extents that are known, or of their bounds
//	slice                 offset·stride + start, with the stride multiplied
//	sort                  refused: every result depends on every element
//	stochastic-convert    rewritten as a comparison of the fraction with the random bits
//	topk                  refused: every result depends on every element
//	transpose             the tile with its dimensions permuted back
//	triangular-solve      refused: it is a library routine, not a tile program
//	tuple                 refused: a tuple is only tiled at the root
//	unfold                all indices from the first element of the first window to the last element of the last, halo included
//	while                 refused: control flow is not part of a tile program
package symtile
