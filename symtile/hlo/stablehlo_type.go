package hlo

import (
	"bytes"
	"slices"
	"strings"
)

// Types:
//
//	type    = "tensor<" { ( extent | "?" ) "x" } element ">" | "tuple<" types ">"
//	        | "!stablehlo.token" | element .
//	element = "f32" | "bf16" | "i1" | "i8" | "ui8" | … | "complex<" element ">" .
//
// An element type alone is a scalar. Equal texts are read once: dumps repeat few
// types often.

// typ reads a type: tensor<8x16xf32>, tuple<…>, !stablehlo.token, complex<f32>
// or an element type alone, which is a scalar.
func (m *mlir) typ(depth int) (Shape, error) {
	at := m.nextPosition()
	if depth > maxDepth {
		return Shape{}, m.Fail(at, "types nested more than %d deep", maxDepth)
	}
	switch {
	case m.Has("tensor<"):
		return m.keptTensor(at)
	case m.accept("tuple<"):
		shape := Shape{DType: Tuple}
		var err error
		shape.Tuple, err = m.types(">", depth+1)
		return shape, err
	case m.accept("!stablehlo.token"), m.accept("!mhlo.token"):
		return Shape{DType: Token}, nil
	}
	d, err := m.elementType()
	return Shape{DType: d}, err
}

// keptTensor is tensor, read once for each text of a line, up to the first >.
func (m *mlir) keptTensor(at position) (Shape, error) {
	end := m.At
	n := bytes.IndexAny(
		m.Src[m.At:min(len(m.Src), m.At+80)],
		">\n",
	)
	if n >= 0 && m.Src[m.At+n] == '>' {
		end += n + 1
	}
	if shape, ok := m.shapes[string(m.Src[m.At:end])]; ok {
		m.At = end
		return shape, nil
	}
	m.At += len("tensor<")
	shape, err := m.tensor(at)
	if err == nil && m.At == end {
		m.shapes[string(m.Src[at.At:end])] = shape
	}
	return shape, err
}

// tensor reads 8x16xf32> after tensor<; an encoding may be bounds.
func (m *mlir) tensor(at position) (Shape, error) {
	var shape Shape
	for m.skip(); m.At < len(m.Src) && (m.Src[m.At] == '?' ||
		m.Src[m.At] == '*' ||
		m.Src[m.At] >= '0' && m.Src[m.At] <= '9'); {
		d, err := m.tensorExtent()
		if err != nil {
			return shape, err
		}
		if shape.Dims = append(shape.Dims, d); len(shape.Dims) > maxRank {
			return shape, m.Fail(at, "the shape has more than %d dimensions", maxRank)
		}
		if err := m.expect("x"); err != nil {
			return shape, err
		}
	}
	var err error
	if shape.DType, err = m.elementType(); err != nil {
		return shape, err
	}
	if m.accept(",") {
		if err := m.bounds(&shape); err != nil {
			return shape, err
		}
	}
	if err := m.expect(">"); err != nil {
		return shape, err
	}
	if err := shape.checkSize(); err != nil {
		return shape, m.Fail(at, "%v", err)
	}
	shape.Dims = slices.Clip(shape.Dims)
	return shape, nil
}

// bounds reads #stablehlo.bounds<8, ?>, the bounds of open extents; other encodings are
// refused.
func (m *mlir) bounds(shape *Shape) error {
	at := m.nextPosition()
	if !m.accept("#stablehlo.bounds<") {
		return m.Fail(at, "tensor encodings are not supported")
	}
	for k := range shape.Dims {
		if k > 0 {
			if err := m.expect(","); err != nil {
				return err
			}
		}
		if m.accept("?") {
			continue
		}
		at := m.nextPosition()
		n, err := m.integer()
		if err != nil {
			return err
		}
		if shape.Dims[k] != openExtent || n < 0 {
			return m.Fail(at, "dimension %d of %s cannot have the bound %d", k, *shape, n)
		}
		shape.Dims[k] = n
		shape.setBounded(k)
	}
	return m.expect(">")
}

// tensorExtent reads a number, or ? for an extent that is open.
func (m *mlir) tensorExtent() (int64, error) {
	if m.peek() == '*' {
		return 0, m.failNext("arrays of any number of dimensions are not supported")
	}
	if m.accept("?") {
		return openExtent, nil
	}
	return m.integer()
}

// elementType reads f32, bf16, i1, si8, ui4, f8E4M3FN, complex<f64> …
func (m *mlir) elementType() (DType, error) {
	at := m.nextPosition()
	if m.peek() == '!' {
		m.quantized = m.quantized || m.Has("!quant.")
		return Opaque, m.foreignType(at)
	}
	name, err := m.bareWord("a type")
	if err != nil {
		return 0, err
	}
	if name == "complex" {
		return m.complexType(at)
	}
	if name == "index" {
		return S64, nil
	}
	d, ok := mlirDType(name)
	if !ok {
		return 0, m.Fail(at, "%q is not an element type of StableHLO", name)
	}
	return d, nil
}

// foreignType reads !quant.uniform<i8:f32, 0.5:3> and types of other dialects. What such
// elements stand for is not known here: what has them is in no fusion.
func (m *mlir) foreignType(at position) error {
	m.At++
	if _, err := m.bareWord("a type"); err != nil {
		return err
	}
	if m.At == len(m.Src) || m.Src[m.At] != '<' {
		return nil
	}
	for depth := 0; m.At < len(m.Src); m.At++ {
		switch m.Src[m.At] {
		case '<':
			depth++
		case '>':
			depth--
		case '\n':
			depth = -1
		}
		if depth == 0 {
			m.At++
			return nil
		}
		if depth < 0 {
			break
		}
	}
	return m.Fail(at, "the < of a type is not closed on its line")
}

// complexType reads <f32> or <f64> after complex.
func (m *mlir) complexType(at position) (DType, error) {
	if err := m.expect("<"); err != nil {
		return 0, err
	}
	part, err := m.elementType()
	if err != nil {
		return 0, err
	}
	switch part {
	case F32:
		return C64, m.expect(">")
	case F64:
		return C128, m.expect(">")
	}
	return 0, m.Fail(at, "complex numbers are made of f32 or f64, not %s", part)
}

// sixBits are types that HLO lacks.
var sixBits = map[string]bool{"f6E2M3FN": true, "f6E3M2FN": true}

// mlirDType finds the type of MLIR's name: i1 is pred, iN and siN are signed.
func mlirDType(name string) (DType, bool) {
	switch {
	case name == "i1":
		return Pred, true
	case strings.HasPrefix(name, "ui"):
		d, ok := ParseDType(name[:1] + name[2:])
		return d, ok && d.IsUnsigned()
	case strings.HasPrefix(name, "si"):
		d, ok := ParseDType("s" + name[2:])
		return d, ok && d.IsSigned()
	case strings.HasPrefix(name, "i"):
		d, ok := ParseDType("s" + name[1:])
		return d, ok && d.IsSigned()
	}
	if sixBits[name] {
		return Opaque, true
	}
	d, ok := ParseDType(strings.ToLower(name))
	return d, ok && d.IsFloat() && name != "f8"
}

// typeList reads types up to end; attributes and locations may follow each.
func (m *mlir) typeList(end string) ([]Shape, error) {
	return m.types(end, 0)
}

// types is typeList at a depth of nesting.
func (m *mlir) types(end string, depth int) ([]Shape, error) {
	var all []Shape
	for !m.accept(end) {
		if len(all) > 0 {
			if err := m.expect(","); err != nil {
				return nil, err
			}
		}
		s, err := m.typ(depth)
		if err != nil {
			return nil, err
		}
		if err := m.afterType(); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// afterType passes over the attributes and the location of an argument or result.
func (m *mlir) afterType() error {
	if m.peek() == '{' {
		if _, err := m.dict(); err != nil {
			return err
		}
	}
	return m.location()
}

// resultTypes reads what follows ->: one type or a list in parentheses.
func (m *mlir) resultTypes() ([]Shape, error) {
	if m.accept("(") {
		return m.typeList(")")
	}
	s, err := m.typ(0)
	return []Shape{s}, err
}
