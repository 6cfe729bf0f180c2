// Package amd64 makes x86-64 machine code and runs it, in four layers: an
// Assembler for AVX2, FMA and F16C with the integer instructions a loop needs; a
// Chain of vector operations whose values get registers, with functions such as
// exp made of them; a Loop of a chain over memory, its remainder under a mask;
// and pages to execute it all from. It imports nothing of this project.
//
// The assembler works on every platform. Loading code needs Linux on amd64, a
// CPU with AVX2, FMA and F16C, and a build without the tag noasm; elsewhere
// Supported and Load return an error and the rest of the program goes on.
//
// Generated code is called with the address of its argument block in RDI, and
// may use every register but RSP and RBP. It keeps no stack of its own: what
// does not fit in registers goes to memory that the argument block names. It
// ends with RET; the upper halves of the vector registers are cleared by Call.
// A fault in it, such as a read past a buffer, ends the process.
// The goroutine cannot be preempted in it, so a call should take less than about
// 200 µs, or the garbage collector waits.
package amd64

import "unsafe"

// A Func is a function in loaded code. It is valid until its Code is closed;
// the zero Func must not be called.
type Func struct{ pc uintptr }

// Call runs f on its argument block. What the block points to must stay alive
// and in place until Call returns: pointers into Go memory are kept as pointers,
// not as numbers.
func (f Func) Call(args unsafe.Pointer) { call(f.pc, args) }
