package hlo

import (
	"encoding/hex"
	"math"
	"strconv"
)

// Values of constants:
//
//	values = "dense<" ( value | list | hex | nothing ) ">" ":" type .
//	list   = "[" [ ( list | value ) { "," ( list | value ) } ] "]" .
//	value  = number | "true" | "false" | "(" number "," number ")" .
//
// One value for a whole array is a splat. It is kept as one element whatever the
// size of the array, so that text of a few bytes cannot ask for much memory.

// dense reads what follows "dense<": values, >, : and the type. A splat has
// one value for all elements; its literal holds just that one.
func (m *mlir) dense() (l *Literal, splat bool, err error) {
	body := m.nextPosition()
	if err = m.skipDense(); err != nil {
		return nil, false, err
	}
	end := m.At - 1
	if err = m.expect(":"); err != nil {
		return nil, false, err
	}
	shape, err := m.typ(0)
	if err != nil {
		return nil, false, err
	}
	l = &Literal{Shape: shape}
	if shape.DType == Opaque {
		l.Elided = true
		return l, false, nil
	}
	err = m.within(span{body, end}, func() error {
		splat, err = m.denseBody(l, end)
		return err
	})
	return l, splat, err
}

// skipDense moves behind the > that closes dense<.
func (m *mlir) skipDense() error {
	open := m.Here()
	for m.At < len(m.Src) {
		switch m.Src[m.At] {
		case '>':
			m.At++
			return nil
		case '"':
			if err := m.skipString(); err != nil {
				return err
			}
		case '\n':
			m.Newline()
		default:
			m.At++
		}
	}
	return m.Fail(open, "dense< is never closed")
}

// denseBody reads the values between < and >, which is at offset end:
// hexadecimal memory, a nested list, one value for all elements (a splat), or
// nothing for an array without elements.
func (m *mlir) denseBody(l *Literal, end int) (splat bool, err error) {
	switch m.peek() {
	case '"':
		return m.denseHex(l)
	case '[':
		if err = m.denseList(l, 0); err != nil {
			return false, err
		}
	case '>':
		if l.Shape.Elements() != 0 {
			return false, m.failNext(
				"%s needs %d elements, none given", l.Shape, l.Shape.Elements(),
			)
		}
		return false, nil
	default:
		if err = m.denseElement(l); err != nil {
			return false, err
		}
		splat = true
	}
	if m.skip(); m.At != end {
		return false, m.failNext("expected the end of the values, found %s", m.found())
	}
	return splat, nil
}

// denseList reads the part of l below dimension depth.
func (m *mlir) denseList(l *Literal, depth int) error {
	if depth == l.Shape.Rank() {
		return m.denseElement(l)
	}
	at := m.nextPosition()
	if err := m.expect("["); err != nil {
		return err
	}
	n := l.Shape.Dims[depth]
	for k := range n {
		if k > 0 && !m.accept(",") ||
			k == 0 && m.peek() == ']' {
			return m.Fail(
				at, "dimension %d of %s has %d elements, %d given", depth, l.Shape, n, k,
			)
		}
		if err := m.denseList(l, depth+1); err != nil {
			return err
		}
	}
	if !m.accept("]") {
		return m.Fail(at, "dimension %d of %s has %d elements, more given", depth, l.Shape, n)
	}
	return nil
}

// denseElement reads one value of l's type and appends it. Integers of types
// iN may be written with or without sign: 255 : i8 is −1.
func (m *mlir) denseElement(l *Literal) error {
	at := m.nextPosition()
	d := l.Shape.DType
	if d.IsComplex() {
		return m.denseComplex(l)
	}
	word := m.number()
	switch {
	case word == "":
		return m.Fail(at, "expected a value of type %s, found %s", d, m.found())
	case d.IsFloat():
		v, err := mlirFloat(word, d)
		if err != nil {
			return m.Fail(at, "%q is not a number of type %s", word, d)
		}
		l.Floats = append(l.Floats, v)
		return nil
	case word == "true" || word == "false":
		if d != Pred {
			return m.Fail(at, "%q is not a %s", word, d)
		}
		l.Ints = append(
			l.Ints, int64(len("false")-len(word)),
		)
		return nil
	case !d.IsArray():
		return m.Fail(at, "%s has no values", d)
	}
	v, err := parseInt(word, d)
	bits, wide := strconv.ParseUint(word, 0, d.Bits())
	if err != nil && wide == nil && d.IsSigned() {
		v, err = d.intFromBits(bits), nil // iN has no sign of its own: 255 : i8 is −1
	}
	if err != nil {
		return m.Fail(at, "%v", err)
	}
	l.Ints = append(l.Ints, v)
	return nil
}

// denseComplex reads (re, im).
func (m *mlir) denseComplex(l *Literal) error {
	at := m.nextPosition()
	part := l.Shape.DType.Component()
	var re, im float64
	err := m.expect("(")
	for k, v := range []*float64{&re, &im} {
		if err != nil {
			return err
		}
		m.skip()
		if *v, err = mlirFloat(m.number(), part); err != nil {
			return m.Fail(at, "a complex value is (real, imaginary)")
		}
		err = m.expect([]string{",", ")"}[k])
	}
	l.Complex = append(l.Complex, complex(re, im))
	return err
}

// number returns the word that comes next.
func (m *mlir) number() string {
	start := m.At
	for m.At < len(m.Src) &&
		(isNameByte(m.Src[m.At]) || m.Src[m.At] == '+') {
		m.At++
	}
	return string(m.Src[start:m.At])
}

// mlirFloat reads a decimal number, or the bits of one in hexadecimal.
func mlirFloat(word string, d DType) (float64, error) {
	if len(word) > 2 && word[:2] == "0x" {
		bits, err := strconv.ParseUint(
			word[2:], 16, d.Bits(),
		)
		return d.FloatFromBits(bits), err
	}
	v, err := parseFloat(word)
	return d.RoundFloat(v), err
}

// denseHex reads "0x…": the elements as they lie in memory, little endian, or
// the one element of a splat. Predicates take a bit or a byte each.
func (m *mlir) denseHex(l *Literal) (splat bool, err error) {
	at := m.Here()
	start := m.At + 1
	if err = m.skipString(); err != nil {
		return false, err
	}
	text := m.Src[start : m.At-1]
	if len(text) < 2 ||
		text[0] != '0' || text[1] != 'x' {
		return false, m.Fail(at, "expected \"0x…\"")
	}
	data := make([]byte, hex.DecodedLen(len(text)-2))
	if _, err := hex.Decode(data, text[2:]); err != nil {
		return false, m.Fail(at, "the hexadecimal data: %v", err)
	}
	n := l.Shape.Elements()
	size := l.Shape.DType.Size()
	switch have := int64(len(data)); {
	case size == 0:
		return false, m.Fail(at, "%s has no values", l.Shape)
	case have == n*size ||
		l.Shape.DType == Pred && have == (n+7)/8:
		l.fill(data, n)
		return false, nil
	case have == size:
		l.fill(data, 1)
		return true, nil
	default:
		return false, m.Fail(
			at, "%s takes %d bytes, %d given", l.Shape, n*size, have,
		)
	}
}

// fill reads n elements from memory.
func (l *Literal) fill(data []byte, n int64) {
	d := l.Shape.DType
	size := int(d.Size())
	for k := range int(n) {
		switch {
		case d == Pred && int64(len(data)) != n:
			l.Ints = append(
				l.Ints,
				int64(data[k/8]>>(k%8)&1),
			)
		case d == Pred:
			l.Ints = append(l.Ints, int64(data[k]&1))
		case d == C64:
			l.Complex = append(
				l.Complex,
				complex(
					F32.FloatFromBits(littleEndian(data[k*8:], 4)),
					F32.FloatFromBits(littleEndian(data[k*8+4:], 4)),
				),
			)
		case d == C128:
			l.Complex = append(
				l.Complex,
				complex(
					F64.FloatFromBits(littleEndian(data[k*16:], 8)),
					F64.FloatFromBits(littleEndian(data[k*16+8:], 8)),
				),
			)
		case d.IsFloat():
			l.Floats = append(
				l.Floats,
				d.FloatFromBits(littleEndian(data[k*size:], size)),
			)
		default:
			l.Ints = append(
				l.Ints,
				d.intFromBits(littleEndian(data[k*size:], size)),
			)
		}
	}
}

// littleEndian is the integer in the first size bytes of data.
func littleEndian(data []byte, size int) (bits uint64) {
	for k := range size {
		bits |= uint64(data[k]) << (8 * k)
	}
	return bits
}

// intFromBits widens the low bits of an integer.
func (d DType) intFromBits(bits uint64) int64 {
	unused := 64 - d.Bits()
	if d.IsSigned() {
		return int64(bits<<unused) >> unused
	}
	return int64(bits << unused >> unused)
}

// sameFloat is == but for NaN, which is like itself, and −0, which is not 0.
func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) ||
		a != a && b != b
}

// uniform reports whether all elements of l are alike.
func (l *Literal) uniform() bool {
	for _, v := range l.Ints {
		if v != l.Ints[0] {
			return false
		}
	}
	for _, v := range l.Floats {
		if !sameFloat(v, l.Floats[0]) {
			return false
		}
	}
	for _, v := range l.Complex {
		if !sameFloat(real(v), real(l.Complex[0])) ||
			!sameFloat(imag(v), imag(l.Complex[0])) {
			return false
		}
	}
	return !l.Elided && l.Tuple == nil
}

// first is the scalar literal of l's first element.
func (l *Literal) first() *Literal {
	s := &Literal{Shape: Shape{DType: l.Shape.DType}}
	s.Ints = l.Ints[:min(1, len(l.Ints))]
	s.Floats = l.Floats[:min(1, len(l.Floats))]
	s.Complex = l.Complex[:min(1, len(l.Complex))]
	return s
}
