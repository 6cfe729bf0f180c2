package hlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Instructions in HLO text:
//
//	instr    = [ "ROOT" ] name "=" value { "," attr } .
//	value    = [ shape ] opcode "(" operands ")" .
//	operands = number | literal | [ operand { "," operand } ] .
//	operand  = [ shape ] name { "#" number } | value .
//	attr     = name "=" ( text | "{" instrs "}" ) .
//
// Operands are instructions above; the text is read once, from top to bottom. A
// shape that is left out is inferred (shape_infer.go). name#k is element k of a
// tuple; an operand that is a value is an instruction of its own, without
// attributes; an attribute that names a computation may hold it.

// instr reads name = value, attributes.
func (p *parser) instr(s *scope) (*Instr, error) {
	p.skip()
	i := p.newInstr(p.Position())
	var err error
	if i.Name, err = p.name("an instruction"); err != nil {
		return nil, err
	}
	if err = p.expect("="); err != nil {
		return nil, err
	}
	wrapped, err := p.value(i, s)
	if err != nil {
		return nil, err
	}
	attrsOf := i
	if wrapped != nil {
		attrsOf = wrapped
	}
	line := p.Line
	for p.accept(",") {
		if err = p.attr(attrsOf); err != nil {
			return nil, err
		}
		line = p.Line
	}
	if line == p.Line && p.wrongEnd() {
		return nil, p.failNext(
			"expected , or the end of the line after %s, found %s", i.Op, p.found(),
		)
	}
	if wrapped != nil {
		return i, p.wrapAsync(i, wrapped)
	}
	return i, p.inferShape(i)
}

// value reads [shape] opcode(operands) into i. For an operation that runs in the
// background, such as fusion-start, wrapped is that operation, whose attributes
// follow.
func (p *parser) value(i *Instr, s *scope) (wrapped *Instr, err error) {
	if !p.opcodeNext() {
		if i.Shape, err = p.shape(0); err != nil {
			return nil, err
		}
	}
	if wrapped, err = p.opcode(i); err != nil {
		return nil, err
	}
	if p.splatNext(i) {
		return nil, p.splat(i, s)
	}
	return wrapped, p.operands(i, s)
}

// opcodeNext reports whether an operation comes next, so that the shape is left
// out: a name with a parenthesis. b(…) is the shape of a buffer.
func (p *parser) opcodeNext() bool {
	p.skip()
	end := p.At
	for end < len(p.Src) && nameBytes[p.Src[end]] {
		end++
	}
	word := p.Src[p.At:end]
	return len(word) > 0 && end < len(p.Src) &&
		p.Src[end] == '(' && string(word) != "b"
}

// wrongEnd reports that neither an instruction nor the end of the list follows.
func (p *parser) wrongEnd() bool {
	p.skipBlanks()
	if p.At >= len(p.Src) ||
		strings.IndexByte("\n;}/", p.Src[p.At]) >= 0 {
		return false
	}
	return !p.startsInstr()
}

// backgroundOps are the steps of an operation that runs in the background, by
// the ending of their names: fusion-start is an async-start of a computation
// that is the fusion.
var backgroundOps = map[string]Opcode{
	"-start":  OpAsyncStart,
	"-update": OpAsyncUpdate,
	"-done":   OpAsyncDone,
}

// opcode reads the operation of i and suggests the nearest name for one that
// is not known. wrapped is the operation that an async-start runs.
func (p *parser) opcode(i *Instr) (wrapped *Instr, err error) {
	at := p.nextPosition()
	name, err := p.nameText("an operation")
	if err != nil {
		return nil, err
	}
	var known bool
	if i.Op, known = opcodes[string(name)]; known {
		return nil, nil
	}
	for ending, step := range backgroundOps {
		base, found := strings.CutSuffix(string(name), ending)
		if op, ok := opcodes[base]; found && ok {
			if i.Op = step; step == OpAsyncStart {
				wrapped = p.newInstr(i.Pos)
				wrapped.Op = op
			}
			return wrapped, nil
		}
	}
	if near := Opcode(name).nearest(); near != "" {
		return nil, p.Fail(at, "%q is not an HLO operation (did you mean %q?)", name, near)
	}
	i.Op = Opcode(name)
	i.forget(fmt.Sprintf("%q is not an HLO operation that is known here", name))
	return nil, nil
}

// operands reads (…) after the operation: a number for a parameter, a literal
// for a constant, names of earlier instructions of scope otherwise.
func (p *parser) operands(i *Instr, s *scope) error {
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
		o, err := p.operand(i, s)
		if err != nil {
			return err
		}
		list = append(list, o)
	}
	i.Operands = p.operandList(list)
	if i.Op == OpConvolution && len(list) > 2 {
		i.forget("a convolution of operands that are stored sparsely is not read")
	}
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
	if i.Shape.open() {
		return p.Fail(at, "a constant of %s: its extents have to be numbers", i.Shape)
	}
	if i.Literal, err = parseLiteral(text, i.Shape); err != nil {
		return p.Fail(at, "%v", err)
	}
	return nil
}

// operand reads [shape] name, name#0, or a value that is an instruction of its own.
func (p *parser) operand(i *Instr, s *scope) (*Instr, error) {
	start := p.scanner
	at := p.nextPosition()
	if p.opcodeNext() {
		return p.unnamed(start, s)
	}
	if p.shapeNext() {
		if _, err := p.shape(0); err != nil {
			return nil, err
		}
		if at = p.nextPosition(); p.opcodeNext() {
			return p.unnamed(start, s)
		}
	}
	word, err := p.nameText("an operand")
	if err != nil {
		return nil, err
	}
	if o := s.byName[string(word)]; o != nil {
		return p.elements(o, s)
	}
	return nil, p.undefined(i, string(word), at)
}

// undefined is the error of an operand that names no instruction above i.
func (p *parser) undefined(i *Instr, name string, at position) error {
	if name == i.Name {
		return p.Fail(at, "%s uses itself; that is a cycle", name)
	}
	if p.definedLater(name) {
		return p.Fail(at, "%s is used before it is defined; operands come first, and a cycle cannot be ordered", name)
	}
	return p.Fail(at, "%s is not defined in this computation", name)
}

// unnamed reads an operand that is written in place, from where it starts:
// negate(f32[] constant(1)).
func (p *parser) unnamed(start scanner, s *scope) (*Instr, error) {
	p.scanner = start
	p.skip()
	if p.depth++; p.depth > maxDepth {
		return nil, p.failNext("operands nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	o := p.newInstr(p.Position())
	wrapped, err := p.value(o, s)
	if err != nil {
		return nil, err
	}
	if wrapped != nil {
		return nil, p.failAt(o, "%s-start needs an instruction of its own", wrapped.Op)
	}
	if err := p.inferShape(o); err != nil {
		return nil, err
	}
	if o.Op == OpBroadcast && o.Attrs.Dimensions == nil {
		o.Attrs.Dimensions = []int64{}
	}
	s.addUnnamed(string(o.Op)+".anon", o)
	return o, nil
}

// elements reads #k after an operand, which is its element k, and so on.
func (p *parser) elements(o *Instr, s *scope) (*Instr, error) {
	for p.At < len(p.Src) && p.Src[p.At] == '#' {
		p.At++
		at := p.nextPosition()
		k, err := p.integer()
		if err != nil {
			return nil, err
		}
		if k < 0 || k >= int64(len(o.Shape.Tuple)) {
			return nil, p.Fail(at, "%s, which is %s, has no element %d", o.Name, o.Shape, k)
		}
		o = s.element(o, int(k), p.newInstr(o.Pos))
	}
	return o, nil
}

// element is element k of the tuple o: the one that name#k made before, or the
// fresh instruction.
func (s *scope) element(o *Instr, k int, fresh *Instr) *Instr {
	if made := s.elements[elementOf{o, k}]; made != nil {
		return made
	}
	fresh.Op = OpGetTupleElement
	fresh.Shape = o.Shape.Tuple[k]
	fresh.Operands = []*Instr{o}
	fresh.Attrs.Index = k
	s.addUnnamed(fmt.Sprintf("%s.%d", o.Name, k), fresh)
	if s.elements == nil {
		s.elements = map[elementOf]*Instr{}
	}
	s.elements[elementOf{o, k}] = fresh
	return fresh
}

// splatNext reports whether i is a constant whose value is one number for all of
// its elements: f32[2,3] constant(1).
func (p *parser) splatNext(i *Instr) bool {
	if i.Op != OpConstant ||
		!i.Shape.DType.IsArray() || i.Shape.Rank() == 0 {
		return false
	}
	saved := p.scanner
	defer func() { p.scanner = saved }()
	if !p.accept("(") {
		return false
	}
	c := p.peek()
	return c != '{' && (c != '(' || i.Shape.DType.IsComplex())
}

// splat makes i a broadcast of the number that stands for all elements, which is
// what the same value is in StableHLO.
func (p *parser) splat(i *Instr, s *scope) error {
	if err := p.expect("("); err != nil {
		return err
	}
	one := p.newInstr(i.Pos)
	one.Op = OpConstant
	one.Shape = Shape{DType: i.Shape.DType}
	if err := p.constant(one); err != nil {
		return err
	}
	base := i.Name
	if base == "" {
		base = "constant.anon"
	}
	s.addUnnamed(base+".splat", one)
	i.Op = OpBroadcast
	i.Operands = []*Instr{one}
	i.Attrs.Dimensions = []int64{}
	return nil
}

// asyncThread is the attribute of an async-start that names where it runs, and
// asyncWrapped that of one whose computation cannot say what it wraps: the operation.
const (
	asyncThread  = "async_execution_thread"
	asyncWrapped = "async_wrapped_opcode"
)

// wrapAsync gives i the computation that it runs in the background: parameters
// for its operands and the wrapped operation of them.
func (p *parser) wrapAsync(i, wrapped *Instr) error {
	if len(i.Shape.Tuple) < 2 {
		return p.failAt(
			i, "%s-start is a tuple of operands, results and more, not %s", wrapped.Op, i.Shape,
		)
	}
	wrapped.Operands = i.Operands
	if p.setKnownCallees(wrapped); wrapped.incomplete() {
		i.Attrs = Attrs{Calls: wrapped.Attrs.Calls, Other: wrapped.Attrs.Other}
		i.Attrs.Other = append(i.Attrs.Other, Attr{asyncWrapped, string(wrapped.Op)})
		return nil
	}
	c := &Computation{Root: wrapped}
	wrapped.Attrs.Other = slices.DeleteFunc(wrapped.Attrs.Other, func(a Attr) bool {
		if a.Name == asyncThread {
			i.Attrs.Other = append(i.Attrs.Other, a)
		}
		return a.Name == asyncThread
	})
	wrapped.Name = i.Name + ".wrapped"
	wrapped.Shape = i.Shape.Tuple[1]
	for k, o := range i.Operands {
		param := p.newInstr(i.Pos)
		param.Name = fmt.Sprintf("%s.p%d", i.Name, k)
		param.Op = OpParameter
		param.Shape = o.Shape
		param.Attrs.Param = k
		c.Params = append(c.Params, param)
	}
	wrapped.Operands = c.Params
	c.Instrs = append(slices.Clone(c.Params), wrapped)
	i.Attrs.Calls = c
	return p.defineUnnamed(c, i.Name+".async")
}

// incomplete reports that i has fewer operands than its operation needs. The
// others of an operation in the background come with its later steps.
func (i *Instr) incomplete() bool {
	c := i.Attrs.Calls
	return i.wrongArity() != "" || c != nil && len(c.Params) != len(i.Operands)
}

// defineUnnamed defines a computation that has no name in the text.
func (p *parser) defineUnnamed(c *Computation, name string) error {
	c.Name = name
	for n := 1; p.byName[c.Name] != nil; n++ {
		c.Name = fmt.Sprintf("%s.%d", name, n)
	}
	return p.define(c, false, p.Here())
}

// shapeNext reports whether a shape and not a name comes next.
func (p *parser) shapeNext() bool {
	c := p.peek()
	if c == '(' || c == '%' || p.Has("b(") {
		return c != '%'
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
	if calleeAttrs[name] && p.bodyNext() {
		return p.inlineCallee(i, name, at)
	}
	text, err := p.attrText()
	if err != nil {
		return err
	}
	if name == "metadata" {
		text = p.frames.Resolve(text)
	}
	if err := p.setAttr(i, name, text, at); err != nil {
		if _, placed := err.(*Error); placed {
			return err
		}
		return p.Fail(at, "%s: %v", name, err)
	}
	return nil
}

// attrText reads the value of an attribute: raw text, of a mesh with its
// device_ids, which follow after a comma.
func (p *parser) attrText() (string, error) {
	text, err := p.raw()
	if err != nil || !strings.HasPrefix(text, "mesh[") ||
		strings.HasSuffix(text, "}") || !p.accept(",") {
		return text, err
	}
	rest, err := p.raw()
	return text + ", " + rest, err
}

// calleeAttrs are the attributes that name computations.
var calleeAttrs = map[string]bool{
	"to_apply": true, "calls": true, "body": true, "condition": true, "true_computation": true, "false_computation": true,
	"branch_computations": true, "called_computations": true, "select": true, "scatter": true,
}

// bodyNext reports whether { and an instruction come next.
func (p *parser) bodyNext() bool {
	saved := p.scanner
	defer func() { p.scanner = saved }()
	return p.accept("{") && p.startsInstr()
}

// inlineCallee reads the computation that stands where its name could.
func (p *parser) inlineCallee(i *Instr, attr string, at position) error {
	if p.depth++; p.depth > maxDepth {
		return p.failNext("computations nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	if err := p.expect("{"); err != nil {
		return err
	}
	c := &Computation{Name: "_"}
	if err := p.body(c, at); err != nil {
		return err
	}
	if err := p.expect("}"); err != nil {
		return err
	}
	if err := p.defineUnnamed(c, i.Name+"."+attr); err != nil {
		return err
	}
	p.callees = append(p.callees, callee{i, attr, c.Name, at})
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
	case frontendAttributes:
		a.Other = append(a.Other, frontendAttrs(text)...)
		return nil
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
	}
	if calleeAttrs[name] {
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
