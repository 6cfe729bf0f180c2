package hlo

import (
	"slices"
	"strconv"
	"strings"
)

// Instructions in HLO text:
//
//	instr    = [ "ROOT" ] name "=" shape opcode "(" operands ")" { "," attr } .
//	operands = number | literal | [ operand { "," operand } ] .
//	operand  = [ shape ] name .
//	attr     = name "=" text .
//
// Operands are instructions above; the text is read once, from top to bottom.

// instr reads name = shape opcode(operands), attributes.
func (p *parser) instr(scope map[string]*Instr) (*Instr, error) {
	p.skip()
	i := p.newInstr(p.Position())
	var err error
	if i.Name, err = p.name("an instruction"); err != nil {
		return nil, err
	}
	if err = p.expect("="); err != nil {
		return nil, err
	}
	if i.Shape, err = p.shape(0); err != nil {
		return nil, err
	}
	if err = p.opcode(i); err != nil {
		return nil, err
	}
	if err = p.operands(i, scope); err != nil {
		return nil, err
	}
	for p.nextOnLine(',') {
		p.At++
		if err = p.attr(i); err != nil {
			return nil, err
		}
	}
	if c := p.afterInstr(); c != 0 {
		return nil, p.failNext(
			"expected , or the end of the line after %s, found %s", i.Op, p.found(),
		)
	}
	return i, nil
}

// afterInstr returns the next byte when it may not follow an instruction.
func (p *parser) afterInstr() byte {
	p.skipBlanks()
	if p.At >= len(p.Src) ||
		strings.IndexByte("\n;}/", p.Src[p.At]) >= 0 {
		return 0
	}
	return p.Src[p.At]
}

// opcode reads the operation of i and suggests the nearest name for one that
// is not known.
func (p *parser) opcode(i *Instr) error {
	at := p.nextPosition()
	name, err := p.nameText("an operation")
	if err != nil {
		return err
	}
	var known bool
	if i.Op, known = opcodes[string(name)]; known {
		return nil
	}
	if near := Opcode(name).nearest(); near != "" {
		return p.Fail(at, "%q is not an HLO operation (did you mean %q?)", name, near)
	}
	return p.Fail(at, "%q is not an HLO operation", name)
}

// operands reads (…) after the operation: a number for a parameter, a literal
// for a constant, names of earlier instructions of scope otherwise.
func (p *parser) operands(i *Instr, scope map[string]*Instr) error {
	if err := p.expect("("); err != nil {
		return err
	}
	switch i.Op {
	case OpParameter:
		return p.parameterNumber(i)
	case OpConstant:
		return p.constant(i)
	}
	var buffer [8]*Instr
	list := buffer[:0]
	for !p.accept(")") {
		if len(list) > 0 {
			if err := p.expect(","); err != nil {
				return err
			}
		}
		o, err := p.operand(i, scope)
		if err != nil {
			return err
		}
		list = append(list, o)
	}
	i.Operands = p.operandList(list)
	if want := i.wrongArity(); want != "" {
		return p.failAt(
			i, "%s takes %s, %d given", i.Op, want, len(i.Operands),
		)
	}
	return nil
}

// wrongArity describes the operands that the operation of i takes when i has
// another number of them; "" when i has the right number.
func (i *Instr) wrongArity() string {
	minimum, maximum := i.Op.Arity()
	n := len(i.Operands)
	switch {
	case n >= minimum && (maximum == many || n <= maximum):
		return ""
	case maximum == many:
		return strconv.Itoa(minimum) + " operands or more"
	case maximum == 1:
		return "1 operand"
	}
	return strconv.Itoa(maximum) + " operands"
}

// parameterNumber reads the number of a parameter and the closing parenthesis.
func (p *parser) parameterNumber(i *Instr) error {
	at := p.nextPosition()
	n, err := p.integer()
	if err != nil {
		return err
	}
	if n < 0 || n > 1<<20 {
		return p.Fail(at, "parameter number %d", n)
	}
	i.Attrs.Param = int(n)
	return p.expect(")")
}

// constant reads the literal of a constant, with its parentheses.
func (p *parser) constant(i *Instr) error {
	p.At-- // back to (
	at := p.Here()
	text, err := p.balanced()
	if err != nil {
		return err
	}
	if i.Literal, err = parseLiteral(text, i.Shape); err != nil {
		return p.Fail(at, "%v", err)
	}
	return nil
}

// operand reads [shape] name.
func (p *parser) operand(
	i *Instr, scope map[string]*Instr,
) (*Instr, error) {
	at := p.nextPosition()
	if p.shapeNext() {
		if _, err := p.shape(0); err != nil {
			return nil, err
		}
		at = p.nextPosition()
	}
	word, err := p.nameText("an operand")
	if err != nil {
		return nil, err
	}
	if o := scope[string(word)]; o != nil {
		return o, nil
	}
	name := string(word)
	if name == i.Name {
		return nil, p.Fail(at, "%s uses itself; that is a cycle", name)
	}
	if p.definedLater(name) {
		return nil, p.Fail(at, "%s is used before it is defined; operands come first, and a cycle cannot be ordered", name)
	}
	return nil, p.Fail(at, "%s is not defined in this computation", name)
}

// shapeNext reports whether a shape and not a name comes next.
func (p *parser) shapeNext() bool {
	c := p.peek()
	if c == '(' || c == '%' {
		return c == '('
	}
	end := p.At
	for end < len(p.Src) && nameBytes[p.Src[end]] {
		end++
	}
	_, isType := dtypeNames[string(p.Src[p.At:end])]
	return isType && end < len(p.Src) &&
		p.Src[end] == '['
}

// definedLater looks for "name =" in the rest of this computation.
func (p *parser) definedLater(name string) bool {
	rest := string(
		p.Src[p.At:min(len(p.Src), p.At+1<<20)],
	)
	if end := strings.Index(rest, "\n}"); end >= 0 {
		rest = rest[:end]
	}
	return strings.Contains(rest, " "+name+" = ") ||
		strings.Contains(rest, "%"+name+" = ") ||
		strings.Contains(rest, "\n"+name+" = ")
}

// attr reads one name=value.
func (p *parser) attr(i *Instr) error {
	name, err := p.name("an attribute")
	if err != nil {
		return err
	}
	if err = p.expect("="); err != nil {
		return err
	}
	at := p.nextPosition()
	text, err := p.raw()
	if err != nil {
		return err
	}
	if err := p.setAttr(i, name, text, at); err != nil {
		if _, placed := err.(*Error); placed {
			return err
		}
		return p.Fail(at, "%s: %v", name, err)
	}
	return nil
}

// setAttr sets the field of i.Attrs that holds the attribute name, or appends
// it as text to Other. An attribute that is typed on some operations only
// (typedAttrOps) is text on all others.
func (p *parser) setAttr(i *Instr, name, text string, at position) (err error) {
	ops, limited := typedAttrOps[name]
	if limited && !slices.Contains(ops, i.Op) {
		i.Attrs.Other = append(
			i.Attrs.Other, Attr{name, text},
		)
		return nil
	}
	a := &i.Attrs
	switch name {
	case "dimensions":
		a.Dimensions, err = parseInts(text)
		if err == nil && a.Dimensions == nil {
			a.Dimensions = []int64{}
		}
		return err
	case "iota_dimension":
		a.IotaDim, err = strconv.ParseInt(text, 10, 32)
		return err
	case "index":
		a.Index, err = strconv.Atoi(text)
		return err
	case "to_apply", "calls", "body", "condition", "true_computation", "false_computation",
		"branch_computations", "called_computations", "select", "scatter":
		return p.callee(i, name, text, at)
	}
	if handled, err := setIndexingAttr(i, name, text); handled {
		return err
	}
	for _, row := range attrTable {
		if row.name == name {
			return row.parse(a, text)
		}
	}
	a.Other = append(a.Other, Attr{name, text})
	return nil
}

// callee records the computations that an attribute names, one or a list in
// braces; resolve finds them when all are read.
func (p *parser) callee(i *Instr, attr, text string, at position) error {
	if inner, ok := unbrace(text); ok {
		text = inner
	}
	for _, name := range splitList(text) {
		p.callees = append(p.callees, callee{
			i, attr, strings.TrimPrefix(name, "%"), at,
		})
	}
	return nil
}
