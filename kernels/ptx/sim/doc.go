// Package sim runs PTX kernels without a GPU: a functional interpreter that
// executes exactly the modules that a device would be given, finds what is
// wrong with them (out-of-bounds and uninitialised accesses, data races,
// missing waits and fences, deadlocks) and counts their accesses to memory.
//
// It is not a timing simulator. Asynchronous operations (cp.async, bulk and
// tensor copies, wgmma) read and write as late as the program's waits allow, so
// that a missing wait shows. try_wait reports once that a phase is not complete
// before it waits, as a device may. mma and wgmma add in float32 in order of k,
// which differs from a device in the last bits (of 8-bit floats, which wgmma adds in 14
// bits, in more: see Options.ShortSums); the .approx functions are
// computed in float64 and rounded once, so they are closer than a device's.
// Clocks count instructions. Data races are looked for at warps, and between
// lanes of a warp where nothing synchronises them; where bookkeeping is coarser
// than the memory model, it errs towards silence.
//
// Load refuses, by name, what is not modelled: 128-bit values, fns, lop3 with a
// predicate, im2col, st.async and red.async, reductions into shared memory,
// mma.m8n8k16 of integers, functions that call themselves, brx, wmma, tensor maps
// that kernels change, and what needs sm_100.
//
// # Use
//
// Load decodes a module into a Program. A Machine holds global memory: the host
// allocates and writes it with Alloc and Write. Launch executes a kernel and
// returns a Report with findings and counters; Options select what is looked
// for. A kernel that errs is no error of Launch: Report.Err is one.
//
// # Decoding
//
// The decoder (decode.go, decode_scalar.go, decode_memory.go) turns an entry
// into an array of instructions, each with a handler and the indices of its
// registers. Registers lie in one file for each width; a register of a warp is
// an array of 32 lanes. Constants, special registers and addresses of variables
// are registers that are preloaded when a warp is made, so that handlers read
// registers only. The frequent operations have a loop of their own over the
// lanes (fast_ops.go); the others are functions of one lane (integer.go,
// float.go, convert.go) that a generic loop calls.
//
// Two analyses (dataflow.go) follow. Definite assignment proves for most
// registers that they are written before they are read, so that only the others
// are tracked at run time. Taint analysis proves that branches and addresses
// do not depend on data, so that the checks of one launch or one CTA stand for
// those of others.
//
// # Execution
//
// A launch is a grid whose clusters are distributed to workers, one goroutine
// each (worker.go). A worker runs the warps of a cluster in turn, each for a
// slice of instructions or until it waits. When no warp can run, one
// asynchronous operation that some warp waits for completes; when there is
// none, the cluster is deadlocked. A diverged warp is a list of groups of lanes
// of which the one with the smallest program counter runs (warp.go).
//
// # Checks
//
// Every access is resolved to an allocation or to shared memory (access.go),
// mostly for 32 lanes at once. With Options.Races, shadow memory (shadow.go)
// records the latest write and reads of each word of 4 bytes as stamps: party,
// lane and clock. An access conflicts with a recorded one that its warp does not
// know of; barriers, mbarriers, fences and atomics carry knowledge from warp to
// warp as vector clocks (race.go). The async proxy is a party of its own, and a
// proxy fence is needed before it may read what others wrote.
package sim
