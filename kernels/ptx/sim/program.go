package sim

import (
	"fmt"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// flow is the effect of an instruction on the program counter.
type flow uint8

const (
	// The instruction falls through and never waits.
	onward flow = iota
	// The instruction goes to its target in the lanes where its guard holds.
	branch
	// The instruction is ret or exit: the lanes where its guard holds end.
	leave
	// The handler moves the program counter itself and may block the warp.
	waiting
)

// place is a memory operand: the address is the value of a register plus an
// offset in bytes.
type place struct {
	// reg is the register of the address, in bank32 if narrow is set and in
	// bank64 otherwise.
	reg int32
	// narrow is set for addresses of 32 bits, which are zero-extended.
	narrow bool
	offset int64
}

// handler executes one decoded instruction for the active lanes of a warp.
type handler func(w *warp, in *instr)

// instr is one decoded instruction. The operands d, a, b and c are indices into
// the register files that the handler expects. Register 0 of each file is a
// constant zero (of the predicates: true), so that an absent operand can be read.
type instr struct {
	// run executes the instruction; it is nil for branches and exits, which the
	// loop of the warp executes itself.
	run handler
	// d is the destination; a, b and c are the sources.
	d, a, b, c int32
	// guard is the predicate register of the guard; predicate 0 is constantly
	// true.
	guard int32
	// flip is xored with the guard: all ones for a negated guard, zero otherwise.
	flip uint32
	// target is the instruction that a branch goes to.
	target int32
	flow   flow
	// result is the bank of d if the handler computes all lanes at once, whatever
	// their activity; the warp then merges the results of the active lanes.
	result bank
	// space is the state space of a memory instruction.
	space space
	// size is the number of bytes of an element in memory.
	size uint8
	// signed is set if elements are sign-extended. Some handlers reuse the flag,
	// as their comments say.
	signed bool
	// mods holds the operands of rarer instructions.
	mods *operation
	// at is the memory operand.
	at place
	// list holds the registers of vector operands and other operands of any bank,
	// results first.
	list []register
	// reads are the registers that are not proven to be written before the
	// instruction reads them. They are checked at run time with
	// Options.Uninitialised.
	reads []register
	// writes are the registers that some instruction reads unproven, so that
	// writing them has to be recorded.
	writes []register
	// tensor are the registers that the instruction reads or writes and that some
	// wgmma of the entry uses.
	tensor []register
	// tensorWrites are the registers of tensor that the instruction writes.
	tensorWrites []register
	// pc is the index of the instruction in the entry.
	pc int32
	// class is the class under which the instruction is counted.
	class Class
}

// operation holds what rarer instructions need beyond the fields of instr, which
// stay few so that the instructions of the inner loop lie close in memory.
type operation struct {
	code ptx.Opcode
	// src is the second memory operand, of copies from memory to memory.
	src place
	// barrier is the mbarrier operand of a bulk copy.
	barrier place
	// more holds the value operands of an atomic operation, first operands first.
	more []register
	// strong is set for volatile, relaxed, acquire, release and atomic accesses,
	// which may not tear.
	strong bool
	// acquire is set if the access acquires.
	acquire bool
	// release is set if the access releases.
	release bool
	// ignore is the predicate register that turns a cp.async into zeros, and the
	// register of the multicast mask of a bulk copy; 0 is none.
	ignore int32
	// atomic computes the new value of a word from the old one and two operands.
	atomic func(old, b, c uint64) uint64
	// product is the shape and the types of an mma.
	product *product
	// wg is the shape and the types of a wgmma.
	wg *wgmmaShape
	// sums are the accumulators of a wgmma that are not proven to be written
	// before it.
	sums []register
	// matrices is the number of 8×8 matrices of ldmatrix and stmatrix, and the
	// mode of shfl.
	matrices int
	// trans is set if ldmatrix or stmatrix transposes.
	trans bool
	// zeros is set if a cp.async copies no bytes and writes zeros only.
	zeros bool
	// reduces is set for bulk stores that reduce by the operation of the opcode.
	reduces bool
}

// Program is a module decoded for execution. It is read-only and may be launched
// by several goroutines.
type Program struct {
	target  ptx.Target
	entries map[string]*entry
	globals []ptx.Var
}

// entry is one kernel of a module: its code, the layout of its variables and
// parameters, and what static analysis found out about it.
type entry struct {
	name   string
	source *ptx.Entry
	// code is the instructions, ended by one that exits.
	code []instr
	// sites holds the source position and the text of each instruction.
	sites []Site
	// count is the number of registers of each bank.
	count [4]int
	// const32 maps a constant of 32 bits to the register that is preloaded with
	// it.
	const32 map[uint32]int32
	// const64 maps a constant of 64 bits to the register that is preloaded with
	// it.
	const64 map[uint64]int32
	// special maps a special register such as %tid.x to the register that is
	// preloaded with it.
	special map[ptx.Special]register
	// variables maps the names of variables, parameters included, to their
	// places.
	variables map[string]variable
	// statics is the number of bytes of static shared memory.
	statics int64
	// dynamic is the offset of dynamic shared memory.
	dynamic int64
	// locals is the number of bytes of local memory of a thread.
	locals int64
	// params is the offset of each parameter in the parameter block.
	params []int
	// block is the number of bytes of the parameter block.
	block int
	// globals maps module variables to the registers that are preloaded with
	// their addresses.
	globals map[string]int32
	// tensor is set if the entry has wgmmas.
	tensor bool
	// tracked is set if some register may be read before it is written.
	tracked bool
	// isolated is set if no instruction acquires what another cluster has released.
	isolated bool
	// launchInvariant is set if launches that differ in data and addresses only
	// make the same accesses in the same order.
	launchInvariant bool
	// blockInvariant is set if every CTA makes the same accesses to shared memory
	// and registers.
	blockInvariant bool
}

// variable is the place of a named variable: an offset in its state space.
type variable struct {
	space  space
	offset int64
}

// space is a state space of PTX.
type space uint8

const (
	// A generic address selects the space by its window.
	generic space = iota
	global
	shared
	// sharedCluster is the shared memory of all CTAs of the cluster.
	sharedCluster
	local
	param
	constant
)

// String is the name of the space as PTX spells it.
func (s space) String() string {
	return [...]string{"generic", "global", "shared", "shared::cluster", "local", "param", "const"}[s]
}

// bankOf is the register bank of a type; noBank for 128 bits.
func bankOf(t ptx.Type) bank {
	switch n := t.Bits(); {
	case t == ptx.Pred:
		return bankPred
	case n <= 32:
		return bank32
	case n == 64:
		return bank64
	}
	return noBank
}

// registerName is the PTX name of a register of the entry.
func (e *entry) registerName(r register) string {
	next := [4]int32{bank32: 1, bank64: 1, bankPred: 1}
	for i := range e.source.Regs {
		s := &e.source.Regs[i]
		b := bankOf(s.Type)
		first := next[b]
		if b == r.bank && r.index >= first &&
			r.index < first+int32(s.Len()) {
			if s.N == 0 {
				return s.Prefix
			}
			return fmt.Sprintf("%s%d", s.Prefix, r.index-first)
		}
		next[b] += int32(s.Len())
	}
	return fmt.Sprintf("register %d", r.index)
}

func (e *entry) usesTensor() bool { return e.tensor }

// shape is that of a wgmma, nil for other instructions.
func (in *instr) shape() *wgmmaShape {
	if in.mods == nil {
		return nil
	}
	return in.mods.wg
}
