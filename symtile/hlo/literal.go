package hlo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Literals in HLO text:
//
//	literal = value | "{" [ literal { "," literal } ] "}" | "(" literals ")" | "{...}" .
//	value   = number | "true" | "false" | "inf" | "nan" | "(" number "," number ")" .
//
// Braces nest as the dimensions do. XLA prints {...} for values that it leaves out.

// A Literal is the value of a constant, elements in logical row-major order,
// each a number of its type: Parse rounds what is written to it.
//
// Exactly one of the slices is set, by the type of Shape, and has as many entries
// as the shape has elements.
type Literal struct {
	Shape Shape
	// Ints holds integers and pred, as 0 and 1. Values of u64 are stored as their
	// two's complement bits.
	Ints []int64
	// Floats holds real floating-point numbers; every type fits an f64.
	Floats []float64
	// Complex holds complex numbers.
	Complex []complex128
	// Tuple holds the values of the elements of a tuple.
	Tuple []*Literal
	// Elided is set for a value that the text leaves out, {...}; no slice is.
	Elided bool
}

// parseLiteral reads the text between the parentheses of constant(…).
func parseLiteral(text string, shape Shape) (*Literal, error) {
	l := &Literal{Shape: shape}
	p := &literalScanner{text: text}
	if strings.ReplaceAll(text, " ", "") == "{...}" {
		l.Elided = true
		return l, nil
	}
	if err := p.value(l); err != nil {
		return nil, err
	}
	if tok := p.next(); tok != "" {
		return nil, fmt.Errorf("unexpected %q after the value", tok)
	}
	return l, nil
}

// A literalScanner reads the tokens of a literal: brackets and words.
type literalScanner struct {
	text string
	// at is the offset of the next byte.
	at int
}

// next returns the next token: a bracket or a word, which the payload of a NaN
// belongs to, nan(0x7f); commas and blanks separate.
func (p *literalScanner) next() string {
	for p.skipBlank() {
	}
	if p.at >= len(p.text) {
		return ""
	}
	if strings.IndexByte("{}()", p.text[p.at]) >= 0 {
		p.at++
		return p.text[p.at-1 : p.at]
	}
	n := strings.IndexAny(p.text[p.at:], ", \t\r\n{}()")
	if n < 0 {
		n = len(p.text) - p.at
	}
	start := p.at
	p.at += n
	if strings.HasSuffix(p.text[start:p.at], "nan") &&
		strings.HasPrefix(p.text[p.at:], "(") {
		p.at += strings.IndexByte(p.text[p.at:]+")", ')') + 1
		p.at = min(p.at, len(p.text))
	}
	return p.text[start:p.at]
}

// skipBlank moves over one blank, comma or comment.
func (p *literalScanner) skipBlank() bool {
	rest := p.text[p.at:]
	end := ""
	switch {
	case rest == "":
		return false
	case strings.IndexByte(", \t\r\n", rest[0]) >= 0:
		p.at++
		return true
	case strings.HasPrefix(rest, "/*"):
		end = "*/"
	case strings.HasPrefix(rest, "//"):
		end = "\n"
	default:
		return false
	}
	n := strings.Index(rest, end)
	if n < 0 {
		n = len(rest) - len(end)
	}
	p.at += n + len(end)
	return true
}

// value reads the value of l by its shape: a tuple or an array.
func (p *literalScanner) value(l *Literal) error {
	if l.Shape.DType == Tuple {
		return p.tuple(l)
	}
	if !l.Shape.DType.IsArray() {
		return fmt.Errorf("%s has no literals", l.Shape)
	}
	return p.array(l, 0)
}

// tuple reads (value, value, …), one for each element of l's shape.
func (p *literalScanner) tuple(l *Literal) error {
	if tok := p.next(); tok != "(" {
		return fmt.Errorf("a tuple literal starts with ( and not %q", tok)
	}
	for _, s := range l.Shape.Tuple {
		e := &Literal{Shape: s}
		if err := p.value(e); err != nil {
			return err
		}
		l.Tuple = append(l.Tuple, e)
	}
	if tok := p.next(); tok != ")" {
		return fmt.Errorf("a tuple literal of %d elements ends with ) and not %q", len(l.Tuple), tok)
	}
	return nil
}

// array reads the part of l below dimension depth.
func (p *literalScanner) array(l *Literal, depth int) error {
	if depth == l.Shape.Rank() {
		return p.element(l)
	}
	if tok := p.next(); tok != "{" {
		return fmt.Errorf("expected { for dimension %d of %s, found %q", depth, l.Shape, tok)
	}
	for range l.Shape.Dims[depth] {
		if err := p.array(l, depth+1); err != nil {
			return err
		}
	}
	if tok := p.next(); tok != "}" {
		return fmt.Errorf(
			"expected } after %d elements of dimension %d of %s, found %q",
			l.Shape.Dims[depth], depth, l.Shape, tok,
		)
	}
	return nil
}

// element reads one number and appends it to the slice of l's type, rounded to
// that type.
func (p *literalScanner) element(l *Literal) error {
	tok := p.next()
	switch d := l.Shape.DType; {
	case tok == "":
		return fmt.Errorf(
			"%s needs %d elements; the literal ends early", l.Shape, l.Shape.Elements(),
		)
	case d.IsComplex():
		return p.complexElement(l, tok)
	case d.IsFloat():
		v, err := parseFloat(tok)
		l.Floats = append(l.Floats, d.RoundFloat(v))
		return err
	case d == Pred && (tok == "true" || tok == "false"):
		l.Ints = append(
			l.Ints, int64(len("false")-len(tok)),
		)
		return nil
	}
	v, err := parseInt(tok, l.Shape.DType)
	l.Ints = append(l.Ints, v)
	return err
}

// complexElement reads the rest of (re, im); tok is its first token.
func (p *literalScanner) complexElement(l *Literal, tok string) error {
	re, im := tok, "0"
	if tok == "(" {
		re = p.next()
		im = p.next()
		if end := p.next(); end != ")" {
			return fmt.Errorf("a complex element is (re, im), found %q", end)
		}
	}
	r, err := parseFloat(re)
	if err != nil {
		return err
	}
	i, err := parseFloat(im)
	part := l.Shape.DType.Component()
	l.Complex = append(
		l.Complex,
		complex(part.RoundFloat(r), part.RoundFloat(i)),
	)
	return err
}

// parseFloat reads a decimal number, inf or nan with a sign. A number too large
// for f64 is infinite; the payload of a NaN, as in nan(0x7f), is dropped.
func parseFloat(tok string) (float64, error) {
	if s := strings.TrimPrefix(tok, "-"); strings.HasPrefix(s, "nan") {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(tok, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a number", tok)
	}
	return v, nil
}

// parseInt reads an integer, decimal or with a prefix such as 0x, in the range
// of d. Values of u64 are returned as their two's complement bits.
func parseInt(tok string, d DType) (int64, error) {
	if d == U64 {
		v, err := strconv.ParseUint(tok, 0, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a u64", tok)
		}
		return int64(v), nil
	}
	v, err := strconv.ParseInt(tok, 0, 64)
	lo, hi := d.IntRange()
	if err != nil || v < lo || v > hi {
		return 0, fmt.Errorf("%q is not a %s", tok, d)
	}
	return v, nil
}

// IntRange is the least and the greatest value of an integer type or pred;
// for u64 the greatest is int64's, since values are kept as bits.
func (d DType) IntRange() (lo, hi int64) {
	switch bits := d.Bits(); {
	case d.IsSigned():
		return -1 << (bits - 1), 1<<(bits-1) - 1
	case d == U64:
		return 0, math.MaxInt64
	default:
		return 0, 1<<bits - 1
	}
}

// append prints the literal as parseLiteral reads it.
func (l *Literal) append(b []byte) []byte {
	if l.Elided {
		return append(b, "{...}"...)
	}
	if l.Shape.DType == Tuple {
		b = append(b, '(')
		for k, e := range l.Tuple {
			if k > 0 {
				b = append(b, ", "...)
			}
			b = e.append(b)
		}
		return append(b, ')')
	}
	at := 0
	return l.appendArray(b, 0, &at)
}

// appendArray prints the part of l below dimension depth; at is the number of
// the next element in row-major order.
func (l *Literal) appendArray(b []byte, depth int, at *int) []byte {
	if depth == l.Shape.Rank() {
		b = l.appendElement(b, *at)
		*at++
		return b
	}
	b = append(b, '{')
	for k := range l.Shape.Dims[depth] {
		if k > 0 {
			b = append(b, ", "...)
		}
		b = l.appendArray(b, depth+1, at)
	}
	return append(b, '}')
}

// appendElement prints element at.
func (l *Literal) appendElement(b []byte, at int) []byte {
	switch d := l.Shape.DType; {
	case d == Pred:
		return strconv.AppendBool(b, l.Ints[at] != 0)
	case d == U64:
		return strconv.AppendUint(
			b, uint64(l.Ints[at]), 10,
		)
	case d.IsFloat():
		return appendFloat(b, l.Floats[at], d)
	case d.IsComplex():
		b = append(
			appendFloat(
				append(b, '('),
				real(l.Complex[at]),
				d.Component(),
			),
			", "...,
		)
		return append(
			appendFloat(b, imag(l.Complex[at]), d.Component()),
			')',
		)
	}
	return strconv.AppendInt(b, l.Ints[at], 10)
}

// appendFloat prints the shortest number that reads back as v in type d.
func appendFloat(b []byte, v float64, d DType) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "nan"...)
	case math.IsInf(v, 1):
		return append(b, "inf"...)
	case math.IsInf(v, -1):
		return append(b, "-inf"...)
	}
	return strconv.AppendFloat(
		b, v, 'g', -1,
		max(32, d.Bits()),
	)
}
