// Package ptx is the language of NVIDIA GPUs as the rest of the tree speaks it:
// a data model of PTX modules, a builder that emitters write kernels with, a
// printer, a parser and a checker. It imports nothing of this project.
//
//	Builder ─► Module ─ Text ─► PTX ─ Parse ─► Module ─► simulator
//	              └──── Check
//
// A [Module] has entries, an [Entry] has a flat list of statements, and an
// instruction is a guard, an [Opcode] and operands. An opcode is an operation
// and its modifiers, all small integers: a reader switches on [Op] and asks the
// opcode for its types, state space, vector length or shape.
//
// The opcode table (table.go and beside it) says as data which instructions
// there are: one row for each way to write one, with the legal modifiers, the
// kinds and types of the operands, the PTX ISA version and the target that first
// have it, and the section of the PTX ISA 9.0 that it comes from. Parser, checker,
// builder and the tests that write random instructions all read that table.
package ptx
