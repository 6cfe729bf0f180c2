package sim

import (
	"fmt"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// flow says what an instruction does to the program counter.
type flow uint8

const (
	onward  flow = iota // falls through, never waits
	branch              // goes to target where its guard holds
	leave               // ret, exit
	waiting             // the handler moves pc itself and may block the warp
)

// place is a memory operand: the address in a register and an offset in bytes.
type place struct {
	reg    int32
	narrow bool // reg is of bank32
	offset int64
}

type handler func(w *warp, in *instr)

// instr is one decoded instruction. d, a, b and c are indices into the register
// files that the handler expects; register 0 of each file is a constant zero
// (of the predicates: true), so that an absent operand can be read.
type instr struct {
	run          handler
	d, a, b, c   int32
	guard        int32
	flip         uint32 // xor of the guard
	target       int32
	flow         flow
	result       bank  // where the handler's d lies if it computes all lanes at once
	space        space // of memory instructions
	size         uint8 // bytes of an element in memory
	signed       bool  // elements are sign-extended
	mods         *operation
	at           place
	list         []register // vector operand, results first
	reads        []register // not proven to be written before; checked with Options.Uninitialised
	writes       []register // those that somewhere are read unproven
	tensor       []register // read or written here and used by a wgmma somewhere
	tensorWrites []register
	pc           int32
	class        Class
}

// operation is what rarer instructions need to know beyond instr's fields.
type operation struct {
	code     ptx.Opcode
	src      place // second memory operand
	barrier  place // mbarrier operand
	more     []register
	strong   bool // volatile, relaxed, acquire, release, atomic
	acquire  bool
	release  bool
	ignore   int32 // cp.async: predicate that turns the copy into zeros, 0 none
	atomic   func(old, b, c uint64) uint64
	product  *product
	wg       *wgmmaShape
	sums     []register // of a wgmma: not proven to be written before
	matrices int
	trans    bool
	zeros    bool // cp.async: copies no bytes, only zeros
	reduces  bool // bulk stores: reduce by the opcode's operation
}

// Program is an entry's module decoded for execution. It is read-only and may
// be launched by several goroutines.
type Program struct {
	target  ptx.Target
	entries map[string]*entry
	globals []ptx.Var
}

// entry is one kernel.
type entry struct {
	name            string
	source          *ptx.Entry
	code            []instr
	sites           []Site // text of each instruction
	count           [4]int // registers of each bank
	const32         map[uint32]int32
	const64         map[uint64]int32
	special         map[ptx.Special]register
	variables       map[string]variable
	statics         int64            // bytes of static shared memory
	dynamic         int64            // offset of dynamic shared memory
	locals          int64            // bytes of local memory of a thread
	params          []int            // offset of each parameter
	block           int              // bytes of the parameter block
	globals         map[string]int32 // constant registers that hold addresses of module variables
	tensor          bool             // has wgmmas
	tracked         bool             // some register may be read before it is written
	launchInvariant bool             // launches alike but for data and addresses are checked alike
	blockInvariant  bool             // what is checked in shared memory and registers is so in every CTA
}

// variable is where a named variable lies: an offset in its space.
type variable struct {
	space  space
	offset int64
}

// space is a state space.
type space uint8

const (
	generic space = iota
	global
	shared
	sharedCluster
	local
	param
	constant
)

func (s space) String() string {
	return [...]string{"generic", "global", "shared", "shared::cluster", "local", "param", "const"}[s]
}

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
