// Command symbolic judges the simplifier of indexing maps against isl and MLIR
// on chains of maps that nobody has seen: it makes them from a seed, lets every
// engine compose and simplify them, and counts. `make judge-symbolic` builds the
// drivers of the other engines (bench/isl.c, bench/mlir.cpp) and runs it.
//
// # Chains
//
// Three in four chains are what tensor programs make: reshape, transpose,
// reverse, slice, pad, broadcast, reduce, thread maps, tiles. The others are
// quotients and remainders of each other by unrelated divisors, with constraints
// on some of the very expressions.
//
// # Correctness
//
// A judge that shared code with the simplifier would share its errors. So this
// command has its own reader of expressions, its own evaluation and its own count
// of operations. Every answer is compared with the maps of the chain, evaluated
// one after the other, at every point of the box of its variables, or at a sample
// of a larger one.
//
// # Operations
//
// The cost of a result is its number of + − · floordiv, mod and ceildiv, and of
// signs that are neither part of a constant nor of a sum. The results of the
// simplifier count as they are printed. Those of other engines get the least of
// that, of the count with like terms collected, and of the count with x −
// m·⌊x/m⌋ written as x mod m, so that an engine without remainders is not charged
// for that. The best form of a result is the least of all engines and of the text
// that composing the maps by substitution makes.
package main
