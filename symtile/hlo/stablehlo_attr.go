package hlo

import (
	"strconv"
	"strings"
)

// Attributes are passed over when they are met and read when a lowering asks for
// one: most of what a dump carries is never looked at. The reader keeps where the
// text of each value is (span) and comes back to it with within.

// A span is the text of an attribute value, from its position up to but not
// including offset end. It is read when it is asked for.
type span struct {
	position
	end int
}

// An mlirAttr is a named attribute; its span is empty when it has no value.
type mlirAttr struct {
	name string
	span
}

// mlirAttrs are the attributes of an operation, in order of the text.
type mlirAttrs []mlirAttr

// find returns the first attribute with one of the names.
func (a mlirAttrs) find(names ...string) (span, bool) {
	for _, name := range names {
		for _, x := range a {
			if x.name == name {
				return x.span, true
			}
		}
	}
	return span{}, false
}

// text is the text of a span without blanks around it.
func (m *mlir) text(s span) string {
	return strings.TrimSpace(string(m.Src[s.At:s.end]))
}

// unquoted is the text of a string attribute, or of any other as it stands.
func (m *mlir) unquoted(s span) string {
	text := m.text(s)
	if len(text) >= 2 && text[0] == '"' {
		if end := strings.LastIndexByte(text, '"'); end > 0 {
			return unescaped(text[1:end])
		}
	}
	return text
}

// dict reads {name = value, flag, …}.
func (m *mlir) dict() (mlirAttrs, error) {
	if err := m.expect("{"); err != nil {
		return nil, err
	}
	return m.entries('}')
}

// entries reads name = value, … up to and with the closing bracket; a comma
// may stand before it.
func (m *mlir) entries(end byte) (mlirAttrs, error) {
	var all mlirAttrs
	for m.peek() != end {
		a, err := m.attribute()
		if err != nil {
			return nil, err
		}
		all = append(all, a)
		if !m.accept(",") && m.peek() != end {
			return nil, m.failNext("expected %q, found %s", end, m.found())
		}
	}
	m.At++
	return all, nil
}

// attribute reads name = value, or a name alone, whose value is then empty.
// Names may be quoted.
func (m *mlir) attribute() (mlirAttr, error) {
	var a mlirAttr
	var err error
	if m.peek() == '"' {
		start := m.At
		if err = m.skipString(); err != nil {
			return a, err
		}
		a.name = unescaped(string(m.Src[start+1 : m.At-1]))
	} else if a.name, err = m.bareWord("an attribute"); err != nil {
		return a, err
	}
	a.span = span{m.Here(), m.At}
	if m.accept("=") {
		a.span, err = m.value()
	}
	return a, err
}

// value passes over an attribute value, up to a comma or a closing bracket.
func (m *mlir) value() (span, error) {
	s := span{position: m.nextPosition()}
	for m.peek() != 0 {
		switch c := m.Src[m.At]; {
		case c == ',' || c == '>' || c == ')' ||
			c == ']' || c == '}':
			s.end = m.At
			return s, nil
		case c == '-' && m.Has("->"):
			m.At += 2
		case c == '"' || c == '<' || closing[c] != 0:
			if _, err := m.group(); err != nil {
				return s, err
			}
		default:
			m.At++
		}
	}
	return s, m.Fail(s.position, "the value that starts here never ends")
}

// angled are the brackets of MLIR with those that close them. HLO has no < >.
var angled = map[byte]byte{
	'(': ')',
	'[': ']',
	'{': '}',
	'<': '>',
}

// group passes over one bracketed text, string or word.
func (m *mlir) group() (span, error) {
	s := span{position: m.nextPosition()}
	var stack []byte
	for m.peek() != 0 {
		c := m.Src[m.At]
		switch {
		case c == '"':
			if err := m.skipString(); err != nil {
				return s, err
			}
		case c == '-' && m.Has("->"):
			m.At += 2
		case angled[c] != 0:
			if stack = append(stack, angled[c]); len(stack) > maxDepth {
				return s, m.Fail(m.Here(), "brackets nested more than %d deep", maxDepth)
			}
			m.At++
		case c == '>' || c == ')' || c == ']' || c == '}':
			if len(stack) == 0 || stack[len(stack)-1] != c {
				return s, m.Fail(m.Here(), "a bracket closes that was not opened")
			}
			stack = stack[:len(stack)-1]
			m.At++
		default:
			m.At++
		}
		if len(stack) == 0 {
			s.end = m.At
			return s, nil
		}
	}
	return s, m.Fail(s.position, "the bracket opened here is never closed")
}

// within reads the text of a span and comes back.
func (m *mlir) within(s span, read func() error) error {
	saved := m.Here()
	m.Place = s.position
	err := read()
	m.Place = saved
	return err
}

// ints reads 3, 3 : i64, [0, 1], array<i64: 0, 1>, dense<[0, 1]> : tensor<2xi64>,
// lists of those, and true and false as 1 and 0.
func (m *mlir) ints(s span) (v []int64, err error) {
	err = m.within(s, func() error {
		v, err = m.intList(nil, 0)
		return err
	})
	if err == nil && v == nil {
		v = []int64{}
	}
	return v, err
}

// intList appends the numbers of one value to v; see ints. depth bounds the
// nesting.
func (m *mlir) intList(v []int64, depth int) ([]int64, error) {
	switch {
	case depth > maxDepth:
		return nil, m.failNext("brackets nested more than %d deep", maxDepth)
	case m.accept("dense<"):
		return m.denseInts(v)
	case m.accept("array<"):
		if _, err := m.elementType(); err != nil {
			return nil, err
		}
		m.accept(":")
		return m.intItems(v, ">", depth)
	case m.accept("["):
		return m.intItems(v, "]", depth)
	case m.word("true"):
		return append(v, 1), nil
	case m.word("false"):
		return append(v, 0), nil
	}
	n, err := m.integer()
	return append(v, n), err
}

// intItems reads value, value, … up to and with end.
func (m *mlir) intItems(
	v []int64, end string, depth int,
) (_ []int64, err error) {
	for first := true; !m.accept(end); first = false {
		if !first {
			if err = m.expect(","); err != nil {
				return nil, err
			}
		}
		if v, err = m.intList(v, depth+1); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// maxAttrInts bounds the numbers of one attribute; real ones stay under a few
// thousand.
const maxAttrInts = 1 << 16

// denseInts reads what follows dense<, a splat as often as it has elements.
func (m *mlir) denseInts(v []int64) ([]int64, error) {
	at := m.Here()
	l, splat, err := m.dense()
	if err != nil {
		return nil, err
	}
	n := l.Shape.Elements()
	if l.Elided ||
		l.Ints == nil && n > 0 ||
		n > maxAttrInts {
		return nil, m.Fail(at, "expected at most %d integers", maxAttrInts)
	}
	if !splat {
		return append(v, l.Ints...), nil
	}
	for range n {
		v = append(v, l.Ints[0])
	}
	return v, nil
}

// lastEnumWord is the enumerator in LT, "LT", #stablehlo<comparison_direction LT>
// and #stablehlo.comparison_direction<LT>.
func lastEnumWord(text string) string {
	text = strings.TrimRight(text, `>" `)
	return text[strings.LastIndexAny(text, ` <"`)+1:]
}

// sub reads the names and values of #stablehlo.dot<a = …, b = …>, <a = …> or {a = …}.
func (m *mlir) sub(s span) (all mlirAttrs, err error) {
	err = m.within(s, func() error {
		for m.peek() != '<' &&
			m.peek() != '{' && m.At < s.end {
			m.At++
		}
		end := angled[m.peek()]
		if end == 0 {
			return m.Fail(s.position, "expected names and values in < > or { }, found %s", m.found())
		}
		m.At++
		all, err = m.entries(end)
		return err
	})
	return all, err
}

// braces prints v as HLO does: {1,2}.
func braces(v []int64) string {
	return "{" + string(appendInts(nil, v)) + "}"
}

// windowSizes prints 3x3.
func windowSizes(v []int64) string {
	words := make([]string, len(v))
	for k, x := range v {
		words[k] = strconv.FormatInt(x, 10)
	}
	return strings.Join(words, "x")
}
