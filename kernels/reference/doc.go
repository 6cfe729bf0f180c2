// Package reference interprets HLO directly, by its semantics, with plain loops. It
// is the oracle of this module: the elements that a tile claims are those that the
// interpreter reads, and every kernel is compared with its results.
//
//	Interpret         all outputs of a computation
//	ElementEvaluator  single elements of a computation that is too large for that
//	Deviations        how far other roundings move the outputs
//	FloatUnary, …     the scalar semantics of the operations
//
// Values are computed in float64 or int64 and rounded to the type of each
// instruction, sums are accumulated in float64 and rounded once, and the order of
// the operands of every sum is that of plain loops. Work is divided among the cores
// only where the results do not depend on it.
package reference
