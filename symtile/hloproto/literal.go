package hloproto

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// literalText is the value of a constant of a shape: numbers in braces, which nest
// as the dimensions do. A message has the elements in the order of the layout.
func literalText(l message, shape string) (string, error) {
	s, err := hlo.ParseShape(shape)
	if err != nil {
		return "", err
	}
	if s.DType == hlo.Tuple {
		return tupleLiteral(l, s)
	}
	elements, err := elementTexts(l, s)
	if err != nil {
		return "", err
	}
	if int64(len(elements)) != s.Elements() {
		return "", fmt.Errorf("the literal has %d elements, %s %d", len(elements), shape, s.Elements())
	}
	var b strings.Builder
	writeArray(&b, s, elements, s.Strides(), 0, 0)
	return b.String(), nil
}

// tupleLiteral are the values of the elements in parentheses, each by its own shape
// in the tuple.
func tupleLiteral(l message, s hlo.Shape) (string, error) {
	parts := l.messages("tuple_literals")
	if len(parts) != len(s.Tuple) {
		return "", fmt.Errorf("the literal has %d elements, the tuple %d", len(parts), len(s.Tuple))
	}
	var all []string
	for k, e := range s.Tuple {
		text, err := literalText(parts[k], e.String())
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	return "(" + strings.Join(all, ", ") + ")", nil
}

// writeArray prints the part of an array below dimension d that begins at an
// offset. HLO text has the elements in logical order, whatever the layout; strides are
// the distances in the message.
func writeArray(b *strings.Builder, s hlo.Shape, elements []string, strides []int64, d int, at int64) {
	if d == s.Rank() {
		b.WriteString(elements[at])
		return
	}
	b.WriteByte('{')
	for k := range s.Dims[d] {
		if k > 0 {
			b.WriteString(", ")
		}
		writeArray(b, s, elements, strides, d+1, at+k*strides[d])
	}
	b.WriteByte('}')
}

// elementTexts are the elements in the order in which they are stored: a repeated
// field, or bytes of codes. The field has the name of the type and an s, as in f32s;
// complex numbers are pairs of its entries.
func elementTexts(l message, s hlo.Shape) ([]string, error) {
	field := s.DType.String() + "s"
	if l.field(field) == nil {
		return nil, fmt.Errorf("literals of %s are not read", s.DType)
	}
	if codes := l.field(field); !codes.IsList() {
		return codeTexts(l.text(field), s), nil
	}
	var all []string
	for _, v := range l.list(field) {
		switch x := v.Interface().(type) {
		case float32:
			all = append(all, floatText(float64(x), 32))
		case float64:
			all = append(all, floatText(x, 64))
		default:
			all = append(all, fmt.Sprint(x))
		}
	}
	if !s.DType.IsComplex() {
		return all, nil
	}
	// Real and imaginary parts follow each other.
	var pairs []string
	for k := 0; k+1 < len(all); k += 2 {
		pairs = append(pairs, "("+all[k]+", "+all[k+1]+")")
	}
	return pairs, nil
}

// codeTexts are elements whose codes are bytes, little-endian. Those of less than a
// byte have one each, or, from some versions of XLA, are packed, the first in the
// low bits.
func codeTexts(codes string, s hlo.Shape) (all []string) {
	bits := s.DType.Bits()
	if bits < 8 && int64(len(codes)) < s.Elements() {
		codes = unpacked(codes, bits, s.Elements())
	}
	// width is the bytes of a code: 1, or 2 for f16, bf16, s16 and u16.
	width := max(1, bits/8)
	for k := 0; k+width <= len(codes); k += width {
		code := uint64(codes[k])
		if width == 2 {
			code = uint64(binary.LittleEndian.Uint16([]byte(codes[k : k+2])))
		}
		switch unused := 64 - bits; {
		case s.DType.IsFloat():
			all = append(all, floatText(s.DType.FloatFromBits(code), 64))
		case s.DType.IsSigned():
			all = append(all, strconv.FormatInt(int64(code<<unused)>>unused, 10))
		default:
			all = append(all, strconv.FormatUint(code, 10))
		}
	}
	return all
}

// unpacked has a byte for each of n codes of some bits.
func unpacked(codes string, bits int, n int64) string {
	each := 8 / bits
	var b strings.Builder
	for k := int64(0); k < n && k/int64(each) < int64(len(codes)); k++ {
		// Code k is in byte k/each.
		shift := bits * (int(k) % each)
		b.WriteByte(codes[k/int64(each)] >> shift & (1<<bits - 1))
	}
	return b.String()
}

// floatText is the shortest number that reads back in a type of 32 or 64 bits. HLO
// text has infinities and NaN as words; which NaN it is gets lost.
func floatText(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}
