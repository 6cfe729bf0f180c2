// Package kernels is the contract between the tuner and the backends that run
// fusions: devices, plans, backends, compiled kernels and the arrays they work
// on. It computes nothing itself.
//
// A Backend drives one Device. It lists the plans of a tiled program
// (symtile.Program), and compiles the program with one of them to a Kernel. A
// Plan is text: tile sizes, and knobs whose names only its backend knows. A
// Kernel runs once on Buffers and says how long the device took. Package
// kernels/reference interprets the same computations slowly and exactly, and
// package kernels/check holds kernels against it before they are timed.
//
// A new backend implements the five methods of Backend and the three of Kernel:
//
//   - Identity names the device and the revision of the code generator. The
//     tuner stores winners under it, so the revision has to change whenever a
//     plan begins to mean other code.
//   - Device adds rates and memory levels, which the cost model needs.
//   - Plans and Default choose from symtile.Program.Space, whose tilings are
//     legal by construction. Default costs little and never fails for a program
//     that the backend can run at all.
//   - Compile takes the symbolic program and a plan. A plan that the device or
//     the code generator cannot take is a *Rejected, which the tuner records and
//     passes over; any other error is recorded as a failure of the plan.
//   - Kernel.Run copies nothing it does not have to, writes every element of
//     its outputs, and neither writes to its inputs nor outside its buffers:
//     package check puts red zones around them.
//
// Further abilities are interfaces of their own, which a Backend or a Kernel may
// implement and which callers find by a type assertion:
//
//   - PricedBackend predicts what plans cost, in terms that the cost model can
//     fit to measurements. Without it plans are tried in the order of Plans.
//   - SampleObserver records the clock of the device while kernels are timed.
//   - TF32Backend can trade precision for speed, if the user allows it.
//   - Sampler is a Kernel whose arrays live on a device while it is timed.
//
// KnobTable reads, checks and offers the knobs of a backend; a backend may as
// well do so itself. An Identity is what a lookup needs to know of a device; it
// can be written down for a device that is not present.
package kernels
