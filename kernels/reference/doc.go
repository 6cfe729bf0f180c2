// Package reference interprets HLO directly, by its semantics, with plain loops. It
// is the oracle of this module: the elements that a tile claims are those that the
// interpreter reads, and every kernel is compared with its results.
//
//	Interpret         all outputs of a computation
//	ElementEvaluator  single elements of a computation that is too large for that
//	Deviations        how far other roundings move the outputs
//	Bounds            the interval of each element that a correct kernel may have
//	BoundsAt          the same of single elements
//	ElementDeviations how far other roundings move single elements
//	FloatUnary, …     the scalar semantics of the operations
//
// # Numbers
//
// Values are computed in float64 or int64 and rounded or wrapped to the element type
// of each instruction. The sums of an instruction are accumulated in float64 or
// wrapping int64 and rounded once at its end. The terms of every sum are added in
// row-major order, beginning with the initial value. Work is divided among the cores
// only where the results do not depend on it.
//
// # Structural operations
//
// In the following, o is the result, a, b, … the operands, i, j, … indices of any
// number of dimensions, and a bracket may permute, pick or add dimensions:
//
//	iota              o[i] = i[dimension]
//	broadcast         o[i] = a[i[dimensions]]
//	transpose         o[i] = a[j], where i[k] = j[dimensions[k]]
//	reshape           o = a in row-major order
//	bitcast           o = a in the order of memory
//	slice             o[i] = a[start + i·stride]
//	reverse           o[i] = a[extent − 1 − i], along some dimensions
//	concatenate       o[i] = the operand that i is in, minus the extents before it
//	pad               o[low + i·(interior + 1)] = a[i], the padding value elsewhere
//	reduce            o[i] = Σ a[i, j] over the reduced dimensions j
//	reduce-window     o[i] = Σ a[i·stride + w·dilation − low] over the window w;
//	                  the initial value stands for the padding
//	dot               o[b, m, n] = Σ x[b, m, k]·y[b, n, k]
//	scaled-dot        dot of x·scale and y·scale, with scales repeated over blocks
//	convolution       o[b, f, i] = Σ x[b, c, i·stride + w·dilation − low]·y[f, c, w];
//	                  x is 0 in the padding, where 0·∞ is NaN
//	dynamic-slice     o[i] = a[clamp(start) + i]
//	dynamic-update-   o = a, but o[clamp(start) + i] = update[i]
//	slice
//	gather            o[b, w] = a[clamp(start(b)) + w], without collapsed dimensions
//	scatter           o = a, but o[start(b) + w] = combine(o[…], update[b, w]) in
//	                  the order of the updates, skipping windows that reach outside
//	select-and-       o[the element of window i that select keeps] =
//	scatter           scatter(source[i], o[…])
//
// Σ stands for the computation that the instruction applies. A Walk visits indices
// in row-major order with their positions; rows are its innermost loops.
package reference
