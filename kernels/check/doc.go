// Package check verifies kernels against the reference interpreter and times them.
//
// # Verification
//
// A Verifier has the results of the reference on inputs that are chosen to expose
// errors: integers, on which exact arithmetic has to agree in every bit; numbers of
// very different magnitude, the largest at the ends of rows; the extremes of the types;
// and random numbers. Results that are rounded are compared element by element with the
// intervals of reference.Bounds, and with a Tolerance that follows from the types and
// operations of the fusion. The outputs
// of a kernel are filled with NaN before it runs, every buffer lies between red
// zones, and one element of each input is NaN, so that an element that was not
// written, a write out of bounds and a read out of bounds are all found.
//
// A kernel is verified before it is timed, always: Verifier.Verify, then Bench. A
// Witness, which Verifier.Examine returns, goes on comparing what is timed: bit for bit
// with what was verified where the kernel is kernels.Deterministic, otherwise within the
// tolerance.
//
// # Timing
//
// A Bench runs a kernel on several sets of buffers in turn, so that its inputs come
// from memory. Paired compares the samples of two kernels that were timed in the
// same blocks, with an interval that assumes nothing about their distribution.
package check
