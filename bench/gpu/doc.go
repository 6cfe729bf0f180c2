// Command gpu judges the code of the GPU backend by NVIDIA's own tools, without a GPU.
// `make judge-gpu` installs them in a virtual environment under out/ and runs it;
// -sample judges a random share of the kernels.
//
// # Kernels
//
// Programs are the corpus, the large ones of `tilewright doctor`, and those of
// shapes.txt (products, and products of groups of rows), for sm_80, 86, 89, 90a, and sm_89's code for sm_120. Of each: the default plan, the
// eight cheapest, the default with each other value of each knob, and eight at random
// among those that are offered.
//
// # Promises
//
// Each kernel is assembled by two major versions of ptxas; in a sample, by one of them.
//
//	assembles    no error, in either version
//	warnings     lines with "warning", "C75" or "Potential"
//	stack        bytes of the stack frame where the estimate expects no spill
//	spills       bytes a thread stores of a default plan for want of registers
//	fences, calls, local, uniform, stores, others: instructions of the innermost loop
//	with tensor instructions (see loopLimits)
//	square share, ldmatrix, copies: of default products on sm_80 whose warps have 64x64
//
// and of all kernels together, as shares:
//
//	registers    the estimate is within 16 of the assembler's
//	blocks       it gives the same number of blocks an SM
//	shared       its shared memory is what the kernel is launched with
//
// The file known.txt lists what is not kept yet, with the cause: a promise, a regular
// expression for the kernels, and the number that is tolerated. Anything else that is
// broken makes the exit status 1.
//
// # Output
//
// A table of the promises goes to the standard output, and a line of JSON for each kernel
// to -json: program, architecture, plan, hash of the text, estimated resources, what each
// assembler said, main loops, and what is beyond a limit. Nothing of it is a time: the
// tools say what the machine will execute, not how fast.
package main
