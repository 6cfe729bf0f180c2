// Command foreign runs kernels that other compilers wrote in the simulator of PTX, and
// compares what they give with NumPy's results. It judges the parser, the opcode table,
// the simulator and its checks, which otherwise see only code of this repository.
// `make judge-foreign` installs the compilers in a virtual environment under out/, makes
// the cases and runs it; no GPU is needed. A sample of the cases is in testdata.
//
// # Cases
//
// A case is a zip file that case.py writes: a module, one launch, its arrays, and the
// results. triton_make.py compiles the kernels of triton_kernels.py with the arguments of
// triton_cases.py for sm_80 and sm_90a; cuda_make.py the sources of the folder cuda by
// nvcc, by nvcc with fast mathematics and line numbers, and by clang; cutlass_make.py
// kernels in CUTLASS's DSL, of its own.
//
// # Judgement
//
// A case is right if the parser takes its module, the simulator finds nothing with all
// checks on, and each result is NumPy's: exactly, or within the tolerance of the case.
// known.txt lists findings that are no errors of the simulator, with their causes; any other
// makes the exit status 1. With -modules, further modules are only parsed and checked.
//
// # Mutants
//
// With -mutants, so many random changes of single instructions are made, one a kernel
// (see changes): what the checks or the comparison do not find is listed.
package main
