// Package executable runs a whole module: a kernel for each fusion, the
// reference interpreter for what no backend compiles, and arrays that are
// reused as soon as nothing reads them any more.
//
// It is the oracle of partition and of plans on whole models: what it returns
// is compared with what another compiler computes from the same text. A module
// is compiled once and run any number of times:
//
//	e, err := executable.Compile(ctx, module, backend, executable.Options{})
//	defer e.Close()
//	out, err := e.Run(ctx, in)
//
// # Memory
//
// Every value counts its references: one for each value that is alive, where a
// tuple, an element of it and an array under another shape share the storage of
// what they are made from. The last step that reads a value releases it, and
// memory without references goes to a pool, from which the next result of at
// least half its size takes it. The caller's inputs and the constants of the
// module are never in the pool, and outputs only when they are given back (GiveBack). A loop holds its state once, and what its body
// needs besides: the memory of a run does not grow with the number of rounds.
//
// # Launches
//
// Small kernels that follow one another and read nothing of each other are launched
// together, where the backend can do that (kernels.GroupingBackend): an optimiser's updates
// of biases and norms are one launch.
//
// # Weights in loops
//
// What the body of a loop hands on from round to round as it is, such as weights, does not
// change while the loop runs. From the second round on a kernel that multiplies by it keeps
// the packed operand, where the backend can do that (kernels.KeepingBackend), up to 512 MiB
// in an executable; a round then copies and packs nothing of it. Each step has a kernel of
// its own for that, since others of the same computation have other weights.
//
// # Control flow
//
// The bodies of while, conditional and call are programs of their own, compiled
// once however often they are executed. A Unit counts its executions, so that
// the time of a fusion in a loop is known by itself.
//
// The module has to be partitioned already, or fused by its compiler: an
// instruction outside of fusions is a kernel of its own where it can be tiled
// and is large, and is interpreted otherwise. A dynamic-update-slice outside of fusions,
// and a scatter that adds f32 or s32 or keeps the last update, is written directly: into
// its operand where nothing else reads that, else into a copy. A fusion whose result is such a
// slice writes it there itself, if the slice is in one piece (inplace.Slices).
package executable
