package hlo

import (
	"slices"
	"strings"
)

// Operations in generic form are uniform. Pretty forms differ for each operation;
// almost all of them are sequences of the same pieces, of which an mlirOp keeps
// what was there, so that one reader does for all of them: see prettyForm.

// An mlirOp is one operation as it was read; pretty and generic form give the
// same. It is used again for the next operation of the module.
type mlirOp struct {
	// at is where the operation begins, for errors.
	at position
	// dialect and name are the parts of the operation's name around the period.
	dialect string
	name    string
	// results are the names of the values it defines.
	results []mlirName
	// operands are the values it uses.
	operands []*Instr
	// attrs are named attributes; [ranges] without a name are under "[]".
	attrs mlirAttrs
	// words are bare words of the pretty form, such as LT and FLOAT.
	words []string
	// symbol is f of @f.
	symbol string
	// regions are the regions in order, already read.
	regions []*block
	// types are the types of the results.
	types []Shape
	// captured are values that the regions of an operation use that is not read.
	captured []*Instr
	// literal is the value of a constant; of a splat it holds one element.
	literal *Literal
	splat   bool
}

// An mlirName is %name or %name:count.
type mlirName struct {
	name  string
	count int
}

// op reads one operation of b and appends what it means to b's computation.
func (m *mlir) op(b *block) error {
	o := m.acquireOp()
	defer m.releaseOp(o)
	o.at = m.nextPosition()
	if b.returned != nil {
		return m.Fail(o.at, "expected } after return, found %s", m.found())
	}
	if err := m.resultNames(o); err != nil {
		return err
	}
	if m.peek() == '%' || m.peek() == '^' {
		return m.failNext("expected an operation, found %s", m.found())
	}
	o.at = m.nextPosition()
	generic, err := m.opName(o)
	if err != nil {
		return err
	}
	if generic {
		err = m.genericForm(b, o)
	} else {
		err = m.prettyForm(b, o)
	}
	if err != nil {
		return err
	}
	place, err := m.place()
	if err != nil {
		return err
	}
	first := len(b.comp.Instrs)
	if err := m.emit(b, o); err != nil {
		return err
	}
	if made := b.comp.Instrs[first:]; place.end > 0 && len(made) > 0 {
		m.located = append(m.located, located{slices.Clone(made), place})
	}
	return nil
}

// acquireOp returns an empty operation; its lists keep their memory.
func (m *mlir) acquireOp() *mlirOp {
	n := len(m.freeOps)
	if n == 0 {
		return &mlirOp{}
	}
	o := m.freeOps[n-1]
	m.freeOps = m.freeOps[:n-1]
	return o
}

// releaseOp takes back an operation that acquireOp returned; its lists are
// emptied and keep their memory.
func (m *mlir) releaseOp(o *mlirOp) {
	*o = mlirOp{
		results:  o.results[:0],
		operands: o.operands[:0],
		attrs:    o.attrs[:0],
		words:    o.words[:0],
		regions:  o.regions[:0],
		types:    o.types[:0],
	}
	m.freeOps = append(m.freeOps, o)
}

// resultNames reads %a, %b:2 =.
func (m *mlir) resultNames(o *mlirOp) error {
	for m.peek() == '%' {
		name, err := m.ssa()
		if err != nil {
			return err
		}
		r := mlirName{name, 1}
		if m.accept(":") {
			at := m.nextPosition()
			n, err := m.integer()
			if err != nil {
				return err
			}
			if n < 1 || n > maxResults {
				return m.Fail(at, "%d results", n)
			}
			r.count = int(n)
		}
		o.results = append(o.results, r)
		if m.accept("=") {
			return nil
		}
		if err := m.expect(","); err != nil {
			return err
		}
	}
	return nil
}

// maxResults bounds the results of one operation; real ones stay under a
// thousand.
const maxResults = 1 << 16

// isValueByte reports whether the name of a value may have c.
func isValueByte(c byte) bool {
	return isNameByte(c) || c == '$' || c == '#'
}

// ssa reads %name or %name#2, without the %.
func (m *mlir) ssa() (string, error) {
	if err := m.expect("%"); err != nil {
		return "", err
	}
	start := m.At
	for m.At < len(m.Src) &&
		isValueByte(m.Src[m.At]) &&
		!m.Has("->") {
		m.At++
	}
	if m.At == start || m.At-start > MaxName {
		return "", m.failNext("expected a name after %%, found %s", m.found())
	}
	return string(m.Src[start:m.At]), nil
}

// opName reads "stablehlo.add" or stablehlo.add; return and call may stand
// without func.
func (m *mlir) opName(o *mlirOp) (generic bool, err error) {
	name := ""
	if m.peek() == '"' {
		start := m.At
		if err := m.skipString(); err != nil {
			return false, err
		}
		name = string(m.Src[start+1 : m.At-1])
		generic = true
	} else if name, err = m.bareWord("an operation"); err != nil {
		return false, err
	}
	dialect, op, dotted := strings.Cut(name, ".")
	if !dotted {
		dialect, op = "func", name
	}
	o.dialect, o.name = dialect, op
	return generic, m.checkName(o)
}

// genericForm reads (operands) <{properties}> ({regions}) {attributes} : type.
func (m *mlir) genericForm(b *block, o *mlirOp) error {
	if err := m.expect("("); err != nil {
		return err
	}
	for first := true; !m.accept(")"); first = false {
		if !first {
			if err := m.expect(","); err != nil {
				return err
			}
		}
		if err := m.operandOf(b, o); err != nil {
			return err
		}
	}
	if err := m.properties(o); err != nil {
		return err
	}
	if m.accept("(") {
		if err := m.regionList(b, o); err != nil {
			return err
		}
	}
	if m.peek() == '{' {
		if err := m.attributes(o); err != nil {
			return err
		}
	}
	return m.opTypes(o)
}

// properties reads <{…}>, when it is there.
func (m *mlir) properties(o *mlirOp) error {
	if !m.accept("<") {
		return nil
	}
	if err := m.attributes(o); err != nil {
		return err
	}
	return m.expect(">")
}

// attributes reads {name = value, …} and appends it to those of o.
func (m *mlir) attributes(o *mlirOp) error {
	all, err := m.dict()
	o.attrs = append(o.attrs, all...)
	return err
}

// regionList reads ({ … }, { … }) of the generic form.
func (m *mlir) regionList(b *block, o *mlirOp) error {
	for first := true; !m.accept(")"); first = false {
		if !first {
			if err := m.expect(","); err != nil {
				return err
			}
		}
		if err := m.regionOf(b, o); err != nil {
			return err
		}
	}
	return nil
}

// regionOf reads { … } of o; of an operation that is not read only the values that it
// uses.
func (m *mlir) regionOf(b *block, o *mlirOp) error {
	if m.unread(o) != "" {
		return m.skipRegion(b, o)
	}
	r, err := m.region(b, o.name, nil)
	if err != nil {
		return err
	}
	o.regions = append(o.regions, r)
	return nil
}

// skipRegion passes over a region, whatever it holds, or over attributes. The values
// from outside that it uses are noted, so that nothing that it needs is dropped.
func (m *mlir) skipRegion(b *block, o *mlirOp) error {
	s, err := m.group()
	if err != nil {
		return err
	}
	seen := map[*Instr]bool{}
	for rest := m.text(s); ; {
		_, after, ok := strings.Cut(rest, "%")
		if !ok {
			return nil
		}
		n := 0
		for n < len(after) && isValueByte(after[n]) {
			n++
		}
		name, _, _ := strings.Cut(after[:n], "->")
		i := b.value(name)
		if i != nil && !seen[i] {
			seen[i] = true
			o.captured = append(o.captured, i)
		}
		rest = after[n:]
	}
}

// operandOf reads one operand and appends it to those of o.
func (m *mlir) operandOf(b *block, o *mlirOp) error {
	i, err := m.use(b)
	if err != nil {
		return err
	}
	o.operands = append(o.operands, i)
	return nil
}

// prettyForm reads the forms operations print themselves in. They are made of
// few pieces, in an order of their own each: operands, (, ), commas, words,
// name = value, [ranges], @symbols, {attributes}, and at the end : types.
func (m *mlir) prettyForm(b *block, o *mlirOp) error {
	switch {
	case o.name == "return":
		return m.returnForm(b, o)
	case m.unread(o) != "":
		return m.foreignForm(b, o)
	case o.name == "constant":
		return m.constantForm(o)
	case o.dialect != "func" && o.name == "reduce":
		return m.reduceForm(b, o)
	case o.dialect != "func" && o.name == "while":
		return m.whileForm(b, o)
	case o.dialect == "sdy" && strings.HasSuffix(o.name, "_computation"):
		return m.manualForm(b, o)
	}
	return m.pieces(b, o)
}

// foreignForm reads the form of an operation that is not read, where it is of the same
// pieces; a region may follow its types.
func (m *mlir) foreignForm(b *block, o *mlirOp) error {
	err := m.pieces(b, o)
	for err == nil && m.peek() == '{' {
		err = m.skipRegion(b, o)
	}
	if err != nil {
		return m.Fail(
			o.at, "%s.%s is not read (%s), nor is the form that it has here",
			o.dialect, o.name,
			m.unread(o),
		)
	}
	return nil
}

// pieces reads the pieces of a pretty form and the types at its end.
func (m *mlir) pieces(b *block, o *mlirOp) error {
	open := 0
	for {
		switch c := m.peek(); {
		case c == ':':
			if open != 0 {
				return m.failNext("expected ), found %s", m.found())
			}
			return m.opTypes(o)
		case c == '(':
			open++
			m.At++
		case c == ')' && open > 0:
			open--
			m.At++
		case c == ',':
			m.At++
		default:
			if err := m.piece(b, o, c); err != nil {
				return err
			}
		}
	}
}

// piece reads one piece of a pretty form whose first byte is c; see
// prettyForm.
func (m *mlir) piece(b *block, o *mlirOp, c byte) (err error) {
	switch {
	case c == '%':
		return m.operandOf(b, o)
	case c == '@':
		o.symbol, err = m.symbol()
		return err
	case c == '{' && m.unread(o) != "":
		return m.skipRegion(b, o)
	case c == '{':
		return m.attributes(o)
	case c == '[':
		s, err := m.group()
		o.attrs = append(o.attrs, mlirAttr{"[]", s})
		return err
	case c == '"' || c == '<':
		_, err := m.group()
		return err
	case !isNameByte(c):
		return m.failNext("expected the operands, attributes or type of %s, found %s", o.name, m.found())
	}
	word, err := m.bareWord("a word")
	if err != nil {
		return err
	}
	if word == "padding_value" && m.peek() == '(' {
		return m.paddingValue(b, o)
	}
	if !m.accept("=") {
		o.words = append(o.words, word)
		return nil
	}
	s, err := m.prettyValue()
	o.attrs = append(o.attrs, mlirAttr{word, s})
	return err
}

// paddingValue reads (%value : type) of a pack.
func (m *mlir) paddingValue(b *block, o *mlirOp) error {
	m.At++
	if err := m.operandOf(b, o); err != nil {
		return err
	}
	if err := m.expect(":"); err != nil {
		return err
	}
	at := m.nextPosition()
	shape, err := m.typ(0)
	if err != nil {
		return err
	}
	if x := o.operands[len(o.operands)-1]; !shape.Compatible(x.Shape) {
		return m.Fail(at, "the padding value is %s; its type here says %s", x.Shape, shape)
	}
	return m.expect(")")
}

// prettyValue passes over a word, a number, a string, or bracketed groups
// joined by x or ->: [0] x [1], [b, 0, f]x[0, i, o]->[b, 0, f].
func (m *mlir) prettyValue() (span, error) {
	s := span{position: m.nextPosition()}
	c := m.peek()
	if isNameByte(c) || c == '#' || c == '+' {
		for m.At < len(m.Src) &&
			(isNameByte(m.Src[m.At]) ||
				m.Src[m.At] == '#' ||
				m.Src[m.At] == '+') {
			m.At++
		}
		s.end = m.At
		return s, nil
	}
	for {
		g, err := m.group()
		if err != nil {
			return s, err
		}
		s.end = g.end
		if !m.accept("x") && !m.accept("->") {
			return s, nil
		}
	}
}

// opTypes reads : (operands) -> results, or : types, of which the last is the result's.
func (m *mlir) opTypes(o *mlirOp) error {
	if err := m.expect(":"); err != nil {
		return err
	}
	at := m.nextPosition()
	if m.accept("(") {
		in, err := m.typeList(")")
		if err != nil {
			return err
		}
		if err := m.checkOperands(o, in, at); err != nil {
			return err
		}
		if err := m.expect("->"); err != nil {
			return err
		}
		o.types, err = m.resultTypes()
		return err
	}
	for {
		s, err := m.typ(0)
		if err != nil {
			return err
		}
		o.types = append(o.types, s)
		if m.accept("->") {
			o.types, err = m.resultTypes()
			return err
		}
		if !m.accept(",") {
			break
		}
	}
	if o.name != "optimization_barrier" {
		o.types = append(
			o.types[:0],
			o.types[len(o.types)-1],
		)
	}
	return nil
}

// checkOperands compares the types written with those of the operands.
func (m *mlir) checkOperands(o *mlirOp, in []Shape, at position) error {
	if len(in) != len(o.operands) {
		return m.Fail(
			at, "%s has %d operands and %d types for them",
			o.name, len(o.operands), len(in),
		)
	}
	for k, i := range o.operands {
		if !in[k].Compatible(i.Shape) {
			return m.Fail(
				at, "operand %d of %s is %s; its type here says %s",
				k, o.name, i.Shape, in[k],
			)
		}
	}
	return nil
}

// returnForm reads return %a, %b : types.
func (m *mlir) returnForm(b *block, o *mlirOp) error {
	for m.peek() == '%' {
		if err := m.operandOf(b, o); err != nil {
			return err
		}
		if !m.accept(",") {
			break
		}
	}
	if m.peek() == '{' {
		if err := m.attributes(o); err != nil {
			return err
		}
	}
	if m.peek() != ':' {
		return nil
	}
	m.At++
	at := m.nextPosition()
	var types []Shape
	for len(types) == 0 || m.accept(",") {
		s, err := m.typ(0)
		if err != nil {
			return err
		}
		types = append(types, s)
	}
	return m.checkOperands(o, types, at)
}

// constantForm reads {attributes} dense<…> : type, or () {value = dense<…> : type} : () -> type.
func (m *mlir) constantForm(o *mlirOp) (err error) {
	if m.accept("(") {
		if err := m.expect(")"); err != nil {
			return err
		}
		if err := m.properties(o); err != nil {
			return err
		}
		if m.peek() == '{' {
			if err := m.attributes(o); err != nil {
				return err
			}
		}
		return m.opTypes(o)
	}
	if m.peek() == '{' {
		if err := m.attributes(o); err != nil {
			return err
		}
	}
	if err := m.elements(o); err != nil {
		return err
	}
	o.types = []Shape{o.literal.Shape}
	return nil
}

// elements reads dense<…> : type, dense_resource<…> : type or 1.0 : f32.
func (m *mlir) elements(o *mlirOp) (err error) {
	at := m.nextPosition()
	switch {
	case m.accept("dense<"):
		o.literal, o.splat, err = m.dense()
		return err
	case m.accept("dense_resource<"):
		if err := m.skipDense(); err != nil {
			return err
		}
		if err := m.expect(":"); err != nil {
			return err
		}
		shape, err := m.typ(0)
		o.literal = &Literal{Shape: shape, Elided: true}
		return err
	}
	if m.number() == "" {
		return m.Fail(at, "expected dense<…> with the values of the constant, found %s", m.found())
	}
	if err := m.expect(":"); err != nil {
		return err
	}
	shape, err := m.typ(0)
	if err != nil {
		return err
	}
	o.literal = &Literal{Shape: shape, Elided: shape.DType == Opaque}
	if o.literal.Elided {
		return nil
	}
	return m.within(span{position: at}, func() error {
		return m.denseElement(o.literal)
	})
}
