package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/layout"
)

// physical is flat with its arrays as they lie in memory: a parameter in a tiled
// layout such as f32[5,7]{1,0:T(2,4)} is a parameter of the physical extents, here
// f32[3,2,2,4], and the transposes, reshapes and slices that take the array out of
// it are operations of the computation; a result in a tiled layout is padded,
// reshaped and transposed at the end. The operations are index arithmetic like any
// other: a kernel loads and stores the physical array, and nothing is copied. The
// result is c where flat has no tiled layouts.
func physical(c, flat *hlo.Computation) (*hlo.Computation, error) {
	if !slices.ContainsFunc(flat.Instrs, hasTiles) {
		return c, nil
	}
	p := &physicalizer{
		out: &hlo.Computation{
			Name:   flat.Name,
			Params: slices.Clone(flat.Params),
		},
		names: map[string]int{},
		value: make(map[*hlo.Instr]*hlo.Instr, len(flat.Instrs)),
	}
	for _, i := range flat.Instrs {
		p.names[i.Name] = 0
	}
	for _, i := range flat.Instrs {
		v, err := p.instr(i)
		if err != nil {
			return nil, err
		}
		p.value[i] = v
	}
	root, err := p.result(flat.Root)
	p.out.Root = root
	return p.out, err
}

// hasTiles reports whether an array of an instruction's result has a tiled layout.
func hasTiles(i *hlo.Instr) bool {
	return slices.ContainsFunc(i.Shape.Arrays(), func(s hlo.Shape) bool {
		return len(s.Layout.Tiles) > 0
	})
}

// A physicalizer copies a computation for physical.
type physicalizer struct {
	out *hlo.Computation
	// names are those taken, for hlo.UniqueName.
	names map[string]int
	// value is the logical array of each instruction of the original.
	value map[*hlo.Instr]*hlo.Instr
}

// instr copies an instruction. Between parameters and results a layout means
// nothing, except to a bitcast.
func (p *physicalizer) instr(i *hlo.Instr) (*hlo.Instr, error) {
	operands := make([]*hlo.Instr, len(i.Operands))
	for k, o := range i.Operands {
		operands[k] = p.value[o]
	}
	tiled := hasTiles(i)
	switch {
	case i.Op == hlo.OpParameter && tiled:
		return p.parameter(i)
	case i.Op == hlo.OpBitcast && (tiled || hasTiles(i.Operands[0])):
		return p.bitcast(i, operands[0])
	case !tiled && slices.Equal(operands, i.Operands):
		p.out.Instrs = append(p.out.Instrs, i)
		return i, nil
	}
	copied := *i
	copied.Operands, copied.Shape = operands, withoutTiles(i.Shape)
	p.out.Instrs = append(p.out.Instrs, &copied)
	return &copied, nil
}

// withoutTiles is a shape without its tiles, and without those of its elements.
func withoutTiles(s hlo.Shape) hlo.Shape {
	if len(s.Layout.Tiles) > 0 {
		s.Layout = hlo.Layout{MinorToMajor: s.Layout.MinorToMajor}
	}
	s.Tuple = slices.Clone(s.Tuple)
	for k, e := range s.Tuple {
		s.Tuple[k] = withoutTiles(e)
	}
	return s
}

// layoutOf is the layout of the array that i is; one that no kernel reads is
// refused. Elements take whole bytes, and nothing follows the last tile.
func layoutOf(i *hlo.Instr) (*layout.Layout, error) {
	l, err := layout.Of(i.Shape)
	if err != nil {
		return nil, refuse(i, "tiled-layout", "%v", err)
	}
	n := hlo.Elements(l.Physical)
	if l.ElementBits() != 8*i.Shape.DType.Size() || l.Elements() != n {
		return nil, refuse(
			i, "tiled-layout",
			"%s has elements of %d bits and %d positions; kernels read elements of %d bits, and %d positions",
			i.Shape, l.ElementBits(), l.Elements(), 8*i.Shape.DType.Size(), n,
		)
	}
	return l, nil
}

// parameter makes a parameter of the physical extents and takes the array out of
// it.
func (p *physicalizer) parameter(i *hlo.Instr) (*hlo.Instr, error) {
	if !i.Shape.DType.IsArray() {
		return nil, refuse(i, "tiled-layout", "%s is a tuple of arrays in tiled layouts", i.Shape)
	}
	l, err := layoutOf(i)
	if err != nil {
		return nil, err
	}
	copied := *i
	copied.Shape = hlo.Shape{
		DType: i.Shape.DType,
		Dims:  l.Physical,
	}
	p.out.Instrs = append(p.out.Instrs, &copied)
	p.out.Params[slices.Index(p.out.Params, i)] = &copied
	return p.steps(i, l.Steps().Inverse(), &copied), nil
}

// result is the value of i as it lies in memory: of a tuple, of each element.
func (p *physicalizer) result(i *hlo.Instr) (*hlo.Instr, error) {
	v := p.value[i]
	if !hasTiles(i) {
		return v, nil
	}
	if i.Op != hlo.OpTuple && i.Shape.DType == hlo.Tuple {
		return nil, refuse(i, "tiled-layout", "it has several results, in tiled layouts: %s", i.Shape)
	}
	if i.Op == hlo.OpTuple {
		copied := *v
		copied.Operands = slices.Clone(i.Operands)
		copied.Shape.Tuple = slices.Clone(v.Shape.Tuple)
		for k, o := range i.Operands {
			e, err := p.result(o)
			if err != nil {
				return nil, err
			}
			copied.Operands[k], copied.Shape.Tuple[k] = e, e.Shape
		}
		p.out.Instrs = slices.DeleteFunc(p.out.Instrs, func(x *hlo.Instr) bool {
			return x == v
		})
		p.out.Instrs = append(p.out.Instrs, &copied)
		return &copied, nil
	}
	l, err := layoutOf(i)
	if err != nil {
		return nil, err
	}
	return p.steps(i, l.Steps(), v), nil
}

// bitcast reads the physical array of x, the operand of i, as that of the result.
// What it has of padding is zero.
func (p *physicalizer) bitcast(i, x *hlo.Instr) (*hlo.Instr, error) {
	from, err := layoutOf(i.Operands[0])
	if err != nil {
		return nil, err
	}
	to, err := layoutOf(i)
	if err != nil {
		return nil, err
	}
	if from.Elements() != to.Elements() || i.Shape.DType != i.Operands[0].Shape.DType {
		return nil, refuse(i, "bitcast", "%s", refusalReason(hlo.OpBitcast))
	}
	x = p.steps(i, from.Steps(), x)
	reshape := layout.Step{
		Kind: layout.Reshape,
		From: from.Physical,
		To:   to.Physical,
	}
	x = p.steps(i, layout.Steps{reshape}, x)
	return p.steps(i, to.Steps().Inverse(), x), nil
}

// steps appends the operations that steps stand for, named after i.
func (p *physicalizer) steps(i *hlo.Instr, steps layout.Steps, x *hlo.Instr) *hlo.Instr {
	for _, s := range steps {
		switch s.Kind {
		case layout.Reshape:
			x = p.add(i, hlo.OpReshape, s, x)
		case layout.Transpose:
			x = p.add(i, hlo.OpTranspose, s, x)
			for _, d := range s.Perm {
				x.Attrs.Dimensions = append(x.Attrs.Dimensions, int64(d))
			}
		case layout.Slice:
			x = p.add(i, hlo.OpSlice, s, x)
			for _, d := range s.To {
				kept := hlo.SliceDim{Limit: d, Stride: 1}
				x.Attrs.Slice = append(x.Attrs.Slice, kept)
			}
		case layout.Pad:
			x = p.add(i, hlo.OpPad, s, x, p.zero(i))
			for k, d := range s.To {
				pad := hlo.PadDim{High: d - s.From[k]}
				x.Attrs.Padding = append(x.Attrs.Padding, pad)
			}
		}
	}
	return x
}

// add appends the operation of a step.
func (p *physicalizer) add(
	i *hlo.Instr,
	op hlo.Opcode,
	s layout.Step,
	operands ...*hlo.Instr,
) *hlo.Instr {
	return p.append(i, op, hlo.Shape{
		DType: operands[0].Shape.DType,
		Dims:  s.To,
	}, operands...)
}

// zero is what padding holds.
func (p *physicalizer) zero(i *hlo.Instr) *hlo.Instr {
	scalar := hlo.Shape{DType: i.Shape.DType}
	z := p.append(i, hlo.OpConstant, scalar)
	z.Literal = &hlo.Literal{Shape: z.Shape}
	switch d := i.Shape.DType; {
	case d.IsComplex():
		z.Literal.Complex = []complex128{0}
	case d.IsFloat():
		z.Literal.Floats = []float64{0}
	default:
		z.Literal.Ints = []int64{0}
	}
	return z
}

// append appends an instruction named after i.
func (p *physicalizer) append(
	i *hlo.Instr,
	op hlo.Opcode,
	shape hlo.Shape,
	operands ...*hlo.Instr,
) *hlo.Instr {
	added := &hlo.Instr{
		Name:     hlo.UniqueName(p.names, i.Name+".layout"),
		Op:       op,
		Shape:    shape,
		Operands: operands,
		Pos:      i.Pos,
	}
	p.out.Instrs = append(p.out.Instrs, added)
	return added
}
