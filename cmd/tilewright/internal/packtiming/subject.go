package packtiming

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/layout"
)

// A Subject is a fusion of which a parameter may be packed.
type Subject struct {
	Fusion    *hlo.Computation
	Parameter int
	// Pack packs it.
	Pack layout.Pack
}

// SubjectOf is what a measurement is about, of the canonical text of its fusion.
func SubjectOf(canonical string, p cache.Packing) (s Subject, err error) {
	m, err := hlo.Parse("canonical", []byte(canonical))
	if err != nil {
		return s, err
	}
	if p.Parameter >= len(m.Entry.Params) {
		return s, fmt.Errorf("the fusion has no parameter %d", p.Parameter)
	}
	pack, err := layout.ParsePack(p.Pack)
	return Subject{Fusion: m.Entry, Parameter: p.Parameter, Pack: pack}, err
}

// Packed is the fusion that takes the parameter packed and unpacks it, which is index
// arithmetic of its kernel. Instructions and parameters keep their names; its own says
// which parameter is packed.
func (s Subject) Packed() *hlo.Computation {
	f := s.Fusion
	made := make(map[*hlo.Instr]*hlo.Instr, len(f.Instrs))
	name := f.Name + ".packed." + f.Params[s.Parameter].Name
	c := &hlo.Computation{Name: name, Params: slices.Clone(f.Params)}
	for _, i := range f.Instrs {
		clone := *i
		clone.Operands = make([]*hlo.Instr, len(i.Operands))
		for k, o := range i.Operands {
			clone.Operands[k] = made[o]
		}
		// The readers of the parameter read what is unpacked.
		made[i] = &clone
		c.Instrs = append(c.Instrs, &clone)
		if i.Op == hlo.OpParameter {
			c.Params[i.Attrs.Param] = &clone
		}
		if i == f.Params[s.Parameter] {
			clone.Shape.Dims = s.Pack.Packed()
			clone.Shape.Layout = hlo.Layout{}
			unpack := s.Pack
			unpack.Unpack = true
			made[i] = steps(c, &clone, unpack.Steps())
		}
	}
	c.Root = made[f.Root]
	return c
}

// Move is an array of the parameter packed, with zeros as padding.
func (s Subject) Move(x kernels.Buffer) kernels.Buffer {
	shape := hlo.Shape{
		DType: x.Shape.DType,
		Dims:  s.Pack.Packed(),
	}
	data := s.Pack.Steps().Move(x.Data, shape.DType.Size(), nil)
	return kernels.Buffer{Shape: shape, Data: kernels.Aligned(data)}
}

// packing is the computation that packs the parameter, with zeros as padding.
func (s Subject) packing() *hlo.Computation {
	x := *s.Fusion.Params[s.Parameter]
	x.Attrs.Param = 0
	only := []*hlo.Instr{&x}
	c := &hlo.Computation{
		Name:   "pack",
		Params: only,
		Instrs: only,
	}
	c.Root = steps(c, &x, s.Pack.Steps())
	if c.Root != &x {
		return c
	}
	// A pack that moves nothing is a copy.
	c.Root = &hlo.Instr{
		Name:     x.Name + ".copy",
		Op:       hlo.OpCopy,
		Shape:    x.Shape,
		Operands: only[:1:1],
	}
	c.Instrs = append(c.Instrs, c.Root)
	return c
}

// steps appends instructions to a computation that do steps to x, and returns the last.
func steps(c *hlo.Computation, x *hlo.Instr, all layout.Steps) *hlo.Instr {
	for n, s := range all {
		i := &hlo.Instr{
			Name:     fmt.Sprintf("%s.%s.%d", x.Name, s.Kind, n),
			Shape:    x.Shape,
			Operands: []*hlo.Instr{x},
		}
		i.Shape.Dims = s.To
		describe(i, s)
		if s.Kind == layout.Pad {
			zero := zeroOf(x)
			c.Instrs = append(c.Instrs, zero)
			i.Operands = append(i.Operands, zero)
		}
		c.Instrs = append(c.Instrs, i)
		x = i
	}
	return x
}

// describe sets the operation of a step and its attributes, as HLO has them.
func describe(i *hlo.Instr, s layout.Step) {
	switch s.Kind {
	case layout.Pad:
		// Padding is after the elements only.
		i.Op = hlo.OpPad
		for d, to := range s.To {
			more := hlo.PadDim{High: to - s.From[d]}
			i.Attrs.Padding = append(i.Attrs.Padding, more)
		}
	case layout.Reshape:
		i.Op = hlo.OpReshape
	case layout.Transpose:
		// HLO and tensor.pack number dimensions alike: dimension d of the operand
		// becomes dimension k of the result.
		i.Op = hlo.OpTranspose
		for _, d := range s.Perm {
			dims := append(i.Attrs.Dimensions, int64(d))
			i.Attrs.Dimensions = dims
		}
	case layout.Slice:
		// What is left out is the padding, behind the elements.
		i.Op = hlo.OpSlice
		for _, to := range s.To {
			kept := hlo.SliceDim{Limit: to, Stride: 1}
			i.Attrs.Slice = append(i.Attrs.Slice, kept)
		}
	}
}

// zeroOf is a constant 0 of the type of x.
func zeroOf(x *hlo.Instr) *hlo.Instr {
	shape := hlo.Shape{DType: x.Shape.DType}
	value := &hlo.Literal{Shape: shape}
	if shape.DType.IsFloat() {
		value.Floats = []float64{0}
	} else {
		value.Ints = []int64{0}
	}
	return &hlo.Instr{
		Name:    x.Name + ".zero",
		Op:      hlo.OpConstant,
		Shape:   shape,
		Literal: value,
	}
}

// A Dot is a product of matrices, [M, K] and [K, N], of which one operand may be packed.
type Dot struct {
	M, N, K int64
	DType   hlo.DType
	// Right reports that the packed operand is the right one.
	Right bool
	// Pack packs it.
	Pack layout.Pack
}

// Subject is the dot as a fusion.
func (d Dot) Subject() (Subject, error) {
	text := fmt.Sprintf(`ENTRY dot {
  a = %[1]s[%[2]d,%[4]d] parameter(0)
  b = %[1]s[%[4]d,%[3]d] parameter(1)
  ROOT d = %[1]s[%[2]d,%[3]d] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
`, d.DType, d.M, d.N, d.K)
	m, err := hlo.Parse("dot.hlo", []byte(text))
	if err != nil {
		return Subject{}, err
	}
	s := Subject{Fusion: m.Entry, Pack: d.Pack}
	if d.Right {
		s.Parameter = 1
	}
	return s, nil
}
