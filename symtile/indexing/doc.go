// Package indexing makes the indexing maps of HLO operations: which elements of
// its operands an element of the result is made from ([OperandMaps]), and which
// elements of the result an element of an operand takes part in ([UserMaps]).
// [ParamMaps] and [OutputMaps] compose them through a computation, from a result
// to the parameters and from a parameter to the results.
//
// A map is an index.Map. Its dimensions d0, d1, … are the index that is asked
// about. Its ranges s0, s1, … stand for all of their values: where several
// elements are read for one. Run-time variables are numbers that a program
// computes, such as the starts of a dynamic-slice; their origin, an
// [InstrSource], says which element of which instruction. The replica of a map is
// where the element is, for collectives. In the notation of XLA and MLIR:
//
//	transpose, dimensions={1,0}      (d0, d1) -> (d1, d0)
//	reshape f32[4,8] to f32[32]      (d0) -> (d0 floordiv 8, d0 mod 8)
//	slice={[2:10:2]}                 (d0) -> (d0 * 2 + 2)
//	reduce, dimensions={1}           (d0)[s0] -> (d0, s0)
//	dot, left operand                (d0, d1)[s0] -> (d0, s0)
//	dynamic-slice                    (d0){rt0} -> (d0 + rt0)
//
// Maps are exact but in two cases, which they state. An approximate map is a
// superset of what is read: it depends on values, as for a pad's value. An
// undefined map says why nothing is known, as for a sort.
//
// The order of this package: indexing.go is the table of operations, with one
// entry for each direction; data_movement.go, dot.go, window.go, dynamic.go,
// scan.go and collective.go are its rows; computation.go composes the maps of a
// computation; runtime_fold.go replaces run-time variables whose values are known.
package indexing
