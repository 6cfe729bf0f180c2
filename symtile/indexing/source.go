package indexing

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// An InstrSource is the Source of the run-time variables of indexing maps: the output of an
// instruction, or the replica that a collective reads from. Two are equal when
// all their fields are.
type InstrSource struct {
	Instr   *hlo.Instr
	Replica ReplicaRole // not an element: which replica, for the collective Instr

	// Within are the fusions and calls whose computation Instr is in, innermost
	// first; none for an instruction of the computation the map is of.
	Within []*hlo.Instr
}

// ReplicaRole says which replica of a collective a run-time variable is.
type ReplicaRole uint8

const (
	NoReplica     ReplicaRole = iota
	Asking                    // the position, in its replica group, of the replica that asks
	PermuteSource             // the replica id a collective-permute sends from to the one that asks
	PermuteTarget             // the replica id a collective-permute sends to from the one that asks
)

func (o ReplicaRole) String() string {
	return [...]string{"", "replica", "source", "target"}[o]
}

// AppendKey appends the addresses of the instructions and the role.
func (s InstrSource) AppendKey(b []byte) []byte {
	b = fmt.Appendf(b, "%p %d", s.Instr, s.Replica)
	for _, in := range s.Within {
		b = fmt.Appendf(b, " %p", in)
	}
	return b
}

// VariableName is "replica", "source" or "target" for a replica.
func (s InstrSource) VariableName() string { return s.Replica.String() }

// sourceOf is the source of an origin that this package made.
func sourceOf(o *index.Origin) InstrSource { return o.Source.(InstrSource) }

// String names the instruction, after what it is within.
func (s InstrSource) String() string {
	name := s.Instr.Name
	for _, in := range s.Within {
		name = in.Name + "/" + name
	}
	if s.Replica != NoReplica {
		return "a replica of " + name
	}
	return name
}
