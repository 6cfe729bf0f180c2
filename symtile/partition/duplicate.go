package partition

import (
	"encoding/hex"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Frameworks print an operation again wherever it is used: each layer of a graph network
// counts the edges of the nodes. In a flat computation, work on the same operands is done
// once, by the first of its instructions, with the name and the metadata of that, as after
// XLA's pass HloCSE.
//
// What joins its users (elementwise operations, and what moves elements) stays as often as
// it is written, although what reads it counts as reading the same: each fusion computes it
// for itself. One instruction for all would be an array in memory as soon as one of them
// has to read it there: 26 gradients of embeddings begin with the same zeros, and all
// layers of an encoder with the same mask.

// duplicate is the instruction of the flat computation that does the work of i, whose
// operands are in it. Where there is none, or i joins its users, it is nil and i is
// remembered.
func (f *flattener) duplicate(i *hlo.Instr) *hlo.Instr {
	if !f.repeatable(i) {
		return nil
	}
	key := f.computed(i)
	same := f.equal[key]
	switch {
	case same == nil:
		f.equal[key] = i
	case joinsUsers(i.Op):
		f.first[i] = same
	default:
		f.repeated = append(f.repeated, i)
		return same
	}
	return nil
}

// joinsUsers reports whether an operation becomes a part of the fusions that read it.
func joinsUsers(op hlo.Opcode) bool {
	switch op.Class() {
	case hlo.ClassElementwise, hlo.ClassSource, hlo.ClassMove, hlo.ClassDynamic:
		return true
	}
	return op == hlo.OpMap
}

// repeatable reports whether a second evaluation of i has the result of the first, and
// nothing but the result tells whether there was one. Left out are side effects, random
// numbers, custom calls, control flow, what differs between devices, and barriers, behind
// which a program computes something again on purpose (rematerialisation).
func (p *partitioner) repeatable(i *hlo.Instr) bool {
	if p.effects.Of(i) != nil || i.Text("control-predecessors") != "" {
		return false
	}
	switch i.Op {
	case hlo.OpParameter:
		return false
	case hlo.OpConstant:
		// Longer ones are data, whose text takes long to compare.
		return i.Literal != nil && !i.Literal.Elided &&
			i.Shape.DType.IsArray() && i.Shape.Elements() <= maxDuplicatedElements
	case hlo.OpTuple, hlo.OpGetTupleElement, hlo.OpSort, hlo.OpTopK:
		return true
	}
	switch i.Op.Class() {
	case hlo.ClassReduction, hlo.ClassContraction, hlo.ClassUpdate:
		return true
	}
	return joinsUsers(i.Op)
}

// computed is a text that says what i computes: that of its instruction without its name
// and without what only tells where it comes from, with the first of equal operands, and
// with the fingerprints of the computations that it calls for their names, since each
// reduction has one of its own. Placement (sharding) and what a framework asks of a
// compiler are in it.
func (f *flattener) computed(i *hlo.Instr) string {
	named := *i
	named.Name = ""
	named.Operands = slices.Clone(i.Operands)
	for k, o := range i.Operands {
		if same := f.first[o]; same != nil {
			named.Operands[k] = same
		}
	}
	a := &named.Attrs
	a.Other = slices.DeleteFunc(slices.Clone(a.Other), tellsOrigin)
	a.ToApply, a.Select = f.byContent(a.ToApply), f.byContent(a.Select)
	return named.String()
}

// tellsOrigin reports whether an attribute says only where an instruction comes from.
func tellsOrigin(a hlo.Attr) bool {
	switch a.Name {
	case "metadata", "origin", "original_value":
		return true
	}
	return false
}

// byContent is a computation whose name is the fingerprint of c.
func (p *partitioner) byContent(c *hlo.Computation) *hlo.Computation {
	if c == nil {
		return nil
	}
	named := p.contents[c]
	if named == nil {
		print := c.Fingerprint()
		named = &hlo.Computation{Name: hex.EncodeToString(print[:])}
		p.contents[c] = named
	}
	return named
}
