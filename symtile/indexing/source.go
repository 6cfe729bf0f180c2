package indexing

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// InstrSource is the index.Source of the run-time variables of indexing maps:
// the output of an instruction, or the replica that a collective reads from.
// Two are equal when all their fields are.
type InstrSource struct {
	Instr *hlo.Instr
	// Replica is NoReplica for an element of Instr's output; else it is which
	// replica of the collective Instr the variable stands for.
	Replica ReplicaRole

	// Within are the fusions and calls whose computation Instr is in, innermost
	// first; none for an instruction of the computation that the map is of.
	Within []*hlo.Instr
}

// ReplicaRole is the replica of a collective that a run-time variable stands
// for.
type ReplicaRole uint8

const (
	// NoReplica is the role of variables that are elements of an array.
	NoReplica ReplicaRole = iota
	// GroupPosition is the position, in its replica group, of the executing replica.
	GroupPosition
	// PermuteSource is the id of the replica that a collective-permute sends
	// from to the executing replica.
	PermuteSource
	// PermuteTarget is the id of the replica that a collective-permute sends to
	// from the executing replica.
	PermuteTarget
)

// String is the name of the role's variables: "replica", "source" or "target".
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
