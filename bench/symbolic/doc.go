// Command symbolic judges the simplifier of indexing maps against isl and MLIR
// on chains of maps that nobody has seen: it makes them from a seed, lets every
// engine compose and simplify them, and counts. `make judge-symbolic` builds the
// drivers of the other engines (bench/isl.c, bench/mlir.cpp) and runs it; with
// -workload it judges and times the chains of a file (`make bench-symbolic`, or
// bench-rivals with the other engines in the same rounds); with -check it evaluates
// our answers to as many chains as you like and does nothing else.
//
// # Chains
//
// Three in four chains are what tensor programs make: reshape, transpose,
// reverse, slice, pad, broadcast, reduce, thread maps, tiles. The others are
// quotients and remainders of each other by unrelated divisors, with constraints
// on some of the very expressions.
//
// # Files
//
// A line of a workload is a chain, the first map first, in the syntax of MLIR:
//
//	{"id": "split", "chain": [{
//	  "dims": [{"name": "d0", "lo": 0, "hi": 63}], "syms": [],
//	  "exprs": ["d0 floordiv 8", "d0 mod 8"],
//	  "constraints": [{"expr": "d0", "lo": 0, "hi": 59}]}]}
//
// A line of -answers has our results over d0.. and s0.., the narrowed ranges of all
// variables, the number of constraints that are left, and that of operations; -results
// reads the same of other engines, of which only id and exprs are needed:
//
//	{"engine": "tilewright", "id": "split", "pieces": 1, "exprs": ["d0"],
//	 "vars": [[0, 59]], "ncons": 0, "ops": 0}
//
// The file of -times has nanoseconds of a run from an empty ring: simplify is compose
// and simplify, extract is that and choosing how the results are written, eval one
// evaluation of the compiled results at a point; allocs are the allocations of a run.
// The folder of -out gets what the drivers read and write, and missed.jsonl: the
// chains that are longer than the best form, with the answers of all engines.
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
