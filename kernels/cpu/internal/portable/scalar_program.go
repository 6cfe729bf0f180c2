package portable

import (
	"fmt"
	"math"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A scalar program evaluates the computation of a reduce, or of another operation
// that applies one, for a single pair of elements. It is the slowest way to do so,
// and the one that serves every computation of scalars: an instruction is a closure
// over the numbers of its registers, and the program calls one after the other. The
// computations that occur in practice are one operation, which has loops of its own,
// or consist of elementwise operations, which package cpu applies to strips of pairs.

// A Scalar is one element of a scalar program.
type Scalar struct {
	// The value of floating types, exact in f64 for all of them.
	F float64
	I int64 // The value of integers and pred.
}

// A ScalarProgram is a scalar computation, such as that of a reduce, as a list
// of instructions over registers. The parameters are in the first registers.
type ScalarProgram struct {
	// The instructions. Each reads registers and writes one.
	code   []func(r []Scalar)
	Params int // The number of parameters.
	// The registers of the results: of the root, or of the elements of a tuple.
	Results   []int
	Registers int // The number of registers.
}

// Run runs the program on its registers.
func (p *ScalarProgram) Run(r []Scalar) {
	for _, f := range p.code {
		f(r)
	}
}

// CompileScalar compiles a computation whose values are all scalars. It fails
// on values of other shapes, constants whose value was left out of the text,
// and operations that the reference does not compute on scalars.
func CompileScalar(c *hlo.Computation) (*ScalarProgram, error) {
	p := &ScalarProgram{
		Params:    len(c.Params),
		Registers: len(c.Params),
	}
	at := map[*hlo.Instr]int{}
	for k, param := range c.Params {
		at[param] = k
	}
	for _, i := range c.Instrs {
		if i.Op == hlo.OpParameter || i.Op == hlo.OpTuple {
			continue
		}
		if i.Shape.Rank() > 0 || !i.Shape.DType.IsArray() {
			return nil, fmt.Errorf("%s of its computation is not a scalar", i.Name)
		}
		f, err := scalarOp(i, p.Registers, at)
		if err != nil {
			return nil, err
		}
		at[i] = p.Registers
		p.Registers++
		p.code = append(p.code, f)
	}
	results := []*hlo.Instr{c.Root}
	if c.Root.Op == hlo.OpTuple {
		results = c.Root.Operands
	}
	for _, r := range results {
		n, ok := at[r]
		if !ok {
			return nil, fmt.Errorf("%s of its computation is not a scalar", r.Name)
		}
		p.Results = append(p.Results, n)
	}
	return p, nil
}

// scalarOp compiles an instruction with result register to, where at holds the
// registers of the instructions before it.
func scalarOp(
	i *hlo.Instr, to int, at map[*hlo.Instr]int,
) (func(r []Scalar), error) {
	var a [3]int
	for k, o := range i.Operands {
		if k < len(a) {
			a[k] = at[o]
		}
	}
	x := a[0]
	y := a[1]
	z := a[2]
	d := i.Shape.DType
	from := d
	if len(i.Operands) > 0 {
		from = i.Operands[0].Shape.DType
	}
	switch i.Op {
	case hlo.OpConstant:
		return scalarConstant(i, to)
	case hlo.OpSelect:
		return func(r []Scalar) {
			if r[to] = r[z]; r[x].I != 0 {
				r[to] = r[y]
			}
		}, nil
	case hlo.OpCompare:
		if from.IsFloat() {
			f := reference.CompareFloats(i)
			return func(r []Scalar) {
				r[to].I = bit(f(r[x].F, r[y].F))
			}, nil
		}
		f := reference.CompareInts(i, from)
		return func(r []Scalar) {
			r[to].I = bit(f(r[x].I, r[y].I))
		}, nil
	case hlo.OpConvert:
		return scalarConvert(d, from, to, x), nil
	}
	if f := scalarArithmetic(i, d, from, to, x, y); f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("its computation uses %s, which is not computed here", i.Op)
}

// scalarArithmetic is a unary or binary operation on registers x and y, by the
// semantics of the reference and rounded or wrapped to type d; nil if the
// operation is neither.
func scalarArithmetic(
	i *hlo.Instr, d, from hlo.DType, to, x, y int,
) func(r []Scalar) {
	unary := len(i.Operands) == 1
	binary := len(i.Operands) == 2
	if from.IsFloat() {
		if f := reference.FloatUnary(i.Op); f != nil && unary {
			return func(r []Scalar) {
				r[to].F = kernels.RoundFloat(d, f(r[x].F))
			}
		}
		f := reference.FloatBinary(i.Op)
		if f != nil && binary {
			return func(r []Scalar) {
				r[to].F = kernels.RoundFloat(
					d,
					f(r[x].F, r[y].F),
				)
			}
		}
		return nil
	}
	if f := reference.IntUnary(i.Op); f != nil && unary {
		return func(r []Scalar) {
			r[to].I = kernels.WrapInt(d, f(d, r[x].I))
		}
	}
	f := reference.IntBinary(i.Op)
	if f != nil && binary {
		return func(r []Scalar) {
			r[to].I = kernels.WrapInt(
				d,
				f(d, r[x].I, r[y].I),
			)
		}
	}
	return nil
}

// bit is pred as the integer of a Scalar.
func bit(b bool) int64 { return int64(boolInt(b)) }

// scalarConstant compiles a constant.
func scalarConstant(i *hlo.Instr, to int) (func(r []Scalar), error) {
	if i.Literal == nil || i.Literal.Elided {
		return nil, fmt.Errorf("the value of %s was left out of the text", i.Name)
	}
	v := Scalar{F: math.NaN()}
	if i.Literal.Floats != nil {
		v.F = kernels.RoundFloat(
			i.Shape.DType, i.Literal.Floats[0],
		)
	} else {
		v.I = i.Literal.Ints[0]
	}
	return func(r []Scalar) { r[to] = v }, nil
}

// scalarConvert compiles a convert of register x from one type to another.
// Floating results are rounded to d, integers wrap, and floats that do not fit
// an integer type become the nearest end of its range, as in the reference.
func scalarConvert(d, from hlo.DType, to, x int) func(r []Scalar) {
	switch {
	case d.IsFloat() && from.IsFloat():
		return func(r []Scalar) {
			r[to].F = kernels.RoundFloat(d, r[x].F)
		}
	case d.IsFloat() && from == hlo.U64:
		return func(r []Scalar) {
			r[to].F = kernels.RoundFloat(
				d, float64(uint64(r[x].I)),
			)
		}
	case d.IsFloat():
		return func(r []Scalar) {
			r[to].F = kernels.RoundFloat(d, float64(r[x].I))
		}
	case from.IsFloat():
		return func(r []Scalar) {
			r[to].I = reference.FloatToInt(d, r[x].F)
		}
	}
	return func(r []Scalar) {
		r[to].I = kernels.WrapInt(d, r[x].I)
	}
}
