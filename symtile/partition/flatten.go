package partition

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/origin"
)

// maxInlined bounds the instructions that inlining calls may make; beyond,
// calls stay calls.
const maxInlined = 1 << 19

// maxPrefix bounds the bytes of the callers' names before that of an inlined
// instruction: calls may be nested deeply.
const maxPrefix = 128

// size is the number of instructions of c with its calls inlined, at most
// maxInlined + 1.
func (p *partitioner) size(c *hlo.Computation) int64 {
	if n, ok := p.sizes[c]; ok {
		return n
	}
	var n int64
	for _, i := range c.Instrs {
		n++
		if i.Op == hlo.OpCall {
			n += p.size(i.Attrs.Calls)
		}
		n = min(n, maxInlined+1)
	}
	p.sizes[c] = n
	return n
}

// flatten copies c with calls inlined, without tuples that are taken apart again,
// without what simplified drops and without duplicates of work.
func (p *partitioner) flatten(
	c *hlo.Computation,
) *hlo.Computation {
	f := &flattener{
		partitioner: p,
		out:         &hlo.Computation{Name: c.Name},
		names:       map[string]int{},
		equal:       map[string]*hlo.Instr{},
		first:       map[*hlo.Instr]*hlo.Instr{},
		inline:      p.size(c) <= maxInlined,
	}
	for _, i := range c.Params {
		param := *i
		f.names[i.Name] = 0
		f.out.Instrs = append(f.out.Instrs, &param)
		f.out.Params = append(f.out.Params, &param)
	}
	f.out.Root = f.computation(c, f.out.Params, caller{})
	return f.out
}

// A flattener copies instructions, under unique names, into out.
type flattener struct {
	*partitioner
	out   *hlo.Computation
	names map[string]int
	// equal is the first instruction that computes what a text says (computed), and first
	// that of an instruction that computes the same and stays.
	equal  map[string]*hlo.Instr
	first  map[*hlo.Instr]*hlo.Instr
	inline bool
}

// A caller is what stands in front of the names of what is inlined.
type caller struct {
	// prefix is that of instructions.
	prefix string
	// source is the op_name of the call, which is that of the framework.
	source string
}

// computation copies c with its parameters bound to args and returns its root.
func (f *flattener) computation(
	c *hlo.Computation, args []*hlo.Instr, by caller,
) *hlo.Instr {
	value := make(
		map[*hlo.Instr]*hlo.Instr,
		len(c.Instrs),
	)
	for k, i := range c.Params {
		value[i] = args[k]
	}
	for _, i := range c.Instrs {
		if i.Op != hlo.OpParameter {
			value[i] = f.instr(i, value, by)
		}
	}
	return value[c.Root]
}

// instr copies one instruction, or inlines it, and returns what has its value.
func (f *flattener) instr(
	i *hlo.Instr,
	value map[*hlo.Instr]*hlo.Instr,
	by caller,
) *hlo.Instr {
	operands := make([]*hlo.Instr, len(i.Operands))
	for k, o := range i.Operands {
		operands[k] = value[o]
	}
	switch {
	case i.Op == hlo.OpCall && f.inline:
		name := by.prefix + i.Attrs.Calls.Name
		return f.computation(
			i.Attrs.Calls,
			operands,
			caller{
				name[:min(len(name), maxPrefix)] + ".",
				origin.Of(origin.Under(by.source, i.Text("metadata"))).Op,
			},
		)
	case i.Op == hlo.OpGetTupleElement &&
		operands[0].Op == hlo.OpTuple:
		return operands[0].Operands[i.Attrs.Index]
	}
	clone := *i
	clone.Name = by.prefix + truncatedName(i.Name)
	clone.Operands = operands
	clone.Attrs.Other = sourceUnder(by.source, i.Attrs.Other)
	if same := simplified(&clone); same != nil {
		return same
	}
	if parts := f.expanded(&clone); parts != nil {
		return parts
	}
	return f.put(f.sunk(&clone))
}

// sourceUnder is attributes with the name of a caller in front of the name in the
// metadata.
func sourceUnder(caller string, attrs []hlo.Attr) []hlo.Attr {
	for k, a := range attrs {
		if a.Name != "metadata" || caller == "" {
			continue
		}
		attrs = slices.Clone(attrs)
		attrs[k].Value = origin.Under(caller, a.Value)
	}
	return attrs
}

// put appends an instruction under a name of its own. Where one does the same work already,
// it returns that.
func (f *flattener) put(
	i *hlo.Instr,
) *hlo.Instr {
	if same := f.duplicate(i); same != nil {
		return same
	}
	i.Name = hlo.UniqueName(f.names, i.Name)
	f.out.Instrs = append(f.out.Instrs, i)
	return i
}
