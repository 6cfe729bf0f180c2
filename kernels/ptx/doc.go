// Package ptx is PTX, the virtual instruction set of NVIDIA GPUs: a data model
// of modules, a builder that code generators write kernels with, a printer, a
// parser and a checker.
//
//	Builder ─► Module ─ Text ─► PTX ─ Parse ─► Module ─► simulator
//	              └──── Check
//
// A [Module] has entries, an [Entry] has a flat list of statements, and an
// instruction is a guard, an [Opcode] and operands. An opcode is an operation
// and its modifiers, all small integers: a reader switches on [Op] and asks the
// opcode for its types, state space, vector length or shape.
//
// The opcode table (table.go and table_*.go) lists the instructions as data:
// one row for each way to write one, with the legal modifiers, the
// kinds and types of the operands, the PTX ISA version and the target that first
// have it, and the section of the PTX ISA 9.0 that defines it. Parser, checker,
// builder and the tests that write random instructions all read that table.
package ptx
