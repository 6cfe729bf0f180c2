package hlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// String prints the module as XLA would; it parses back to the same module.
func (m *Module) String() string { return m.text(byName) }

// ForXLA is String without the reasons why nothing is known of an instruction, which XLA
// does not read.
func (m *Module) ForXLA() string {
	p := *byName
	p.foreign = true
	return m.text(&p)
}

// text prints the module.
func (m *Module) text(p *printOptions) string {
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
		b.WriteString(c.text(p))
	}
	return b.String()
}

// String prints the computation alone: what it calls is named, not printed.
func (c *Computation) String() string { return c.text(byName) }

// text prints the computation alone.
func (c *Computation) text(p *printOptions) string {
	var b strings.Builder
	b.WriteString("%" + c.Name + " (")
	for k, x := range c.Params {
		if k > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %s", x.Name, x.Shape)
	}
	fmt.Fprintf(&b, ") -> %s {\n", c.Root.Shape)
	for _, i := range c.Instrs {
		b.WriteString("  ")
		if i == c.Root {
			b.WriteString("ROOT ")
		}
		b.Write(append(i.append(nil, p), '\n'))
	}
	b.WriteString("}\n")
	return b.String()
}

// String prints the instruction on one line.
func (i *Instr) String() string { return string(i.append(nil, byName)) }

// byName names things as the text does.
var byName = &printOptions{
	instr: func(b []byte, o *Instr) []byte { return append(b, o.Name...) },
	comp:  func(b []byte, c *Computation) []byte { return append(b, c.Name...) },
}

// printOptions says how things are named and what is left out.
type printOptions struct {
	// instr and comp append the names of instructions and computations: those of the
	// text, or numbers in the canonical form.
	instr func([]byte, *Instr) []byte
	comp  func([]byte, *Computation) []byte
	// canonical leaves out what does not change what is computed.
	canonical bool
	// foreign leaves out what XLA does not read.
	foreign bool
}

// append prints %name = shape opcode(operands), attributes.
func (i *Instr) append(b []byte, p *printOptions) []byte {
	b = p.instr(append(b, '%'), i)
	b = append(b, " = "...)
	b = i.Shape.append(b)
	op := i.Op
	if !p.canonical {
		op = i.spelling()
	}
	b = append(b, ' ')
	b = append(b, op...)
	b = append(b, '(')
	switch i.Op {
	case OpParameter:
		b = strconv.AppendInt(b, int64(i.Attrs.Param), 10)
	case OpConstant:
		b = i.Literal.append(b)
	}
	for k, o := range i.Operands {
		if k > 0 {
			b = append(b, ", "...)
		}
		b = p.instr(append(b, '%'), o)
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

// beginAttr prints the name of an attribute.
func beginAttr(b []byte, name string) []byte {
	b = append(b, ", "...)
	b = append(b, name...)
	return append(b, '=')
}

// appendAttrs prints the attributes in one fixed order: typed ones, then those
// kept as text, which the canonical form sorts by name and prints only where
// they are semantic.
func (i *Instr) appendAttrs(b []byte, p *printOptions) []byte {
	a := &i.Attrs
	if p.foreign && i.Unknown() != "" {
		return i.appendOpaqueAttrs(b, p)
	}
	if a.Dimensions != nil {
		b = appendList(beginAttr(b, "dimensions"), a.Dimensions)
	}
	if i.Op == OpIota {
		b = beginAttr(b, "iota_dimension")
		b = strconv.AppendInt(b, a.IotaDim, 10)
	}
	if i.Op == OpGetTupleElement {
		b = beginAttr(b, "index")
		b = strconv.AppendInt(b, int64(a.Index), 10)
	}
	b = i.appendIndexingAttrs(b)
	if a.isTyped() {
		b = a.appendTyped(b, p)
	}
	b = i.appendCallees(b, p)
	b = i.appendBranches(b, p)
	others := a.Other
	if p.canonical && len(others) > 1 {
		others = slices.SortedStableFunc(slices.Values(others), func(x, y Attr) int {
			return strings.Compare(x.Name, y.Name)
		})
	}
	for _, o := range others {
		isPrinted := p.canonical && i.isSemantic(o.Name) ||
			!p.canonical && o.Name != asyncWrapped && !(p.foreign && isReason(o.Name))
		if isPrinted && o.Value != "" {
			b = beginAttr(b, o.Name)
			b = append(b, o.Value...)
		}
	}
	return b
}

// customCallAttrs are the attributes that XLA reads of a custom-call, but for those that
// name computations.
var customCallAttrs = map[string]bool{
	"custom_call_target": true, "window": true, "dim_labels": true, "feature_group_count": true, "batch_group_count": true,
	"operand_layout_constraints": true, "custom_call_has_side_effect": true, "output_to_operand_aliasing": true,
	"api_version": true, "literal": true, "metadata": true, "frontend_attributes": true, "backend_config": true,
	"sharding": true, "control-predecessors": true,
}

// appendOpaqueAttrs prints what XLA reads of the attributes of an operation that is not
// known here, and is a custom-call for it.
func (i *Instr) appendOpaqueAttrs(b []byte, p *printOptions) []byte {
	b = i.appendCallees(b, p)
	why := i.Text(unreadReason)
	for _, o := range i.Attrs.Other {
		if customCallAttrs[o.Name] && o.Value != "" && (o.Name != frontendAttributes || why == "") {
			b = beginAttr(b, o.Name)
			b = append(b, o.Value...)
		}
	}
	if why != "" {
		b = beginAttr(b, frontendAttributes)
		b = append(b, withReason(i.Text(frontendAttributes), why)...)
	}
	return b
}

// appendTyped prints the attributes of attrTable.
func (a *Attrs) appendTyped(b []byte, p *printOptions) []byte {
	for k := range attrTable {
		row := &attrTable[k]
		if row.has(a) && (!p.canonical || row.name != "kind") {
			b = row.append(beginAttr(b, row.name), a)
		}
	}
	return b
}

// appendCallees prints the computations that an instruction calls, but for those of
// control flow.
func (i *Instr) appendCallees(b []byte, p *printOptions) []byte {
	put := func(name string, c *Computation) {
		if c != nil {
			b = append(beginAttr(b, name), '%')
			b = p.comp(b, c)
		}
	}
	apply := "to_apply"
	if i.Op == OpSelectAndScatter {
		apply = "scatter"
	}
	put(i.calleeName(p.canonical), i.Attrs.Calls)
	put("select", i.Attrs.Select)
	put(apply, i.Attrs.ToApply)
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
func (i *Instr) appendBranches(b []byte, p *printOptions) []byte {
	if len(i.Attrs.Branches) == 0 {
		return b
	}
	names := branchAttrNames[i.Op]
	if i.Op == OpConditional && len(i.Operands) > 0 &&
		i.Operands[0].Shape.DType == Pred {
		names = []string{"true_computation", "false_computation"}
	}
	if len(names) == len(i.Attrs.Branches) {
		for k, c := range i.Attrs.Branches {
			b = beginAttr(b, names[k])
			b = append(b, '%')
			b = p.comp(b, c)
		}
		return b
	}
	name := "called_computations"
	if i.Op == OpConditional {
		name = "branch_computations"
	}
	b = append(beginAttr(b, name), '{')
	for k, c := range i.Attrs.Branches {
		if k > 0 {
			b = append(b, ", "...)
		}
		b = p.comp(append(b, '%'), c)
	}
	return append(b, '}')
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
