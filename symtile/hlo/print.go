package hlo

import (
	"fmt"
	"slices"
	"strings"
)

// String prints the module as XLA would; it parses back to the same module.
func (m *Module) String() string {
	var b strings.Builder
	if m.Name != "" {
		b.WriteString("HloModule " + m.Name)
		for _, a := range m.Attrs {
			b.WriteString(", " + a.Name + "=" + a.Value)
		}
		b.WriteString("\n\n")
	}
	for k, c := range m.Computations {
		if k > 0 {
			b.WriteString("\n")
		}
		if c == m.Entry {
			b.WriteString("ENTRY ")
		}
		b.WriteString(c.String())
	}
	return b.String()
}

// String prints the computation alone: what it calls is named, not printed.
func (c *Computation) String() string {
	var b strings.Builder
	b.WriteString("%" + c.Name + " (")
	for k, p := range c.Params {
		if k > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %s", p.Name, p.Shape)
	}
	fmt.Fprintf(&b, ") -> %s {\n", c.Root.Shape)
	for _, i := range c.Instrs {
		b.WriteString("  ")
		if i == c.Root {
			b.WriteString("ROOT ")
		}
		b.WriteString(i.String() + "\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// String prints the instruction on one line.
func (i *Instr) String() string {
	return string(i.append(nil, printOptions{
		instr: func(o *Instr) string { return o.Name },
		comp:  func(c *Computation) string { return c.Name },
	}))
}

// printOptions says how things are named and what is left out.
type printOptions struct {
	// instr and comp are the names of instructions and computations: those of the
	// text, or numbers in the canonical form.
	instr func(*Instr) string
	comp  func(*Computation) string
	// canonical leaves out what does not change what is computed.
	canonical bool
}

// append prints %name = shape opcode(operands), attributes.
func (i *Instr) append(b []byte, p printOptions) []byte {
	b = append(append(b, '%'), p.instr(i)...)
	b = append(b, " = "...)
	b = i.Shape.append(b)
	op := i.Op
	if !p.canonical {
		op = i.spelling()
	}
	b = append(append(append(b, ' '), op...), '(')
	switch i.Op {
	case OpParameter:
		b = fmt.Appendf(b, "%d", i.Attrs.Param)
	case OpConstant:
		b = i.Literal.append(b)
	}
	for k, o := range i.Operands {
		if k > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, '%'), p.instr(o)...)
	}
	b = append(b, ')')
	return i.appendAttrs(b, p)
}

// spelling is XLA's name of i's operation: call-start is an async-start whose
// computation does not say what it wraps.
func (i *Instr) spelling() Opcode {
	if i.Op == OpOptimizationBarrier {
		return shortBarrier
	}
	if wrapped := i.Text(asyncWrapped); i.Op == OpAsyncStart && wrapped != "" {
		return Opcode(wrapped + "-start")
	}
	return i.Op
}

// calleeName is the attribute that names the computation of i.
func (i *Instr) calleeName(canonical bool) string {
	if i.Op == OpCall || !canonical && i.spelling() == OpCall+"-start" {
		return "to_apply"
	}
	return "calls"
}

// appendAttrs prints the attributes in one fixed order: typed ones, then those
// kept as text, which the canonical form sorts by name and prints only where
// they are semantic.
func (i *Instr) appendAttrs(b []byte, p printOptions) []byte {
	put := func(name, value string) {
		if value != "" {
			b = append(
				append(append(append(b, ", "...), name...), '='),
				value...,
			)
		}
	}
	a := &i.Attrs
	put("dimensions", printInts(a.Dimensions))
	if i.Op == OpIota {
		put("iota_dimension", fmt.Sprint(a.IotaDim))
	}
	if i.Op == OpGetTupleElement {
		put("index", fmt.Sprint(a.Index))
	}
	i.appendIndexingAttrs(put)
	for _, row := range attrTable {
		if p.canonical && row.name == "kind" {
			continue
		}
		put(row.name, row.print(a))
	}
	if a.Calls != nil {
		put(i.calleeName(p.canonical), "%"+p.comp(a.Calls))
	}
	if a.Select != nil {
		put("select", "%"+p.comp(a.Select))
	}
	if a.ToApply != nil && i.Op == OpSelectAndScatter {
		put("scatter", "%"+p.comp(a.ToApply))
	} else if a.ToApply != nil {
		put("to_apply", "%"+p.comp(a.ToApply))
	}
	i.appendBranches(put, p)
	others := a.Other
	if p.canonical && len(others) > 1 {
		others = slices.SortedStableFunc(slices.Values(others), func(x, y Attr) int {
			return strings.Compare(x.Name, y.Name)
		})
	}
	for _, o := range others {
		if p.canonical && i.isSemantic(o.Name) ||
			!p.canonical && o.Name != asyncWrapped {
			put(o.Name, o.Value)
		}
	}
	return b
}

// branchAttrNames are the attributes that name the computations of an operation,
// in the order of Branches.
var branchAttrNames = map[Opcode][]string{
	OpWhile: {"condition", "body"},
}

// appendBranches prints the computations of control flow under the names XLA
// uses: condition and body of while, true_computation and false_computation of
// a conditional on pred, a list otherwise.
func (i *Instr) appendBranches(put func(name, value string), p printOptions) {
	names := branchAttrNames[i.Op]
	if i.Op == OpConditional && len(i.Operands) > 0 &&
		i.Operands[0].Shape.DType == Pred {
		names = []string{"true_computation", "false_computation"}
	}
	if len(names) == len(i.Attrs.Branches) {
		for k, c := range i.Attrs.Branches {
			put(names[k], "%"+p.comp(c))
		}
		return
	}
	texts := make([]string, len(i.Attrs.Branches))
	for k, c := range i.Attrs.Branches {
		texts[k] = "%" + p.comp(c)
	}
	name := "called_computations"
	if i.Op == OpConditional {
		name = "branch_computations"
	}
	if len(texts) > 0 {
		put(name, "{"+strings.Join(texts, ", ")+"}")
	}
}

// nonSemanticAttrs are attributes that do not change what is computed.
var nonSemanticAttrs = map[string]bool{
	"metadata": true, "frontend_attributes": true, "backend_config": true, "origin": true, "original_value": true,
	"statistics": true, "sharding": true, "control-predecessors": true, "is_scheduled": true, "channel_id": true,
}

// isSemantic reports whether an attribute is part of the canonical text. A
// custom-call is what its backend_config says it is.
func (i *Instr) isSemantic(attr string) bool {
	return !nonSemanticAttrs[attr] || i.Op == OpCustomCall && attr == "backend_config"
}
