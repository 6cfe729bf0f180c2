package check

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Content is what inputs are filled with. Zeros are never used: they hide
// errors, and a processor draws less power on them.
type Content uint8

const (
	// Normals are normally distributed numbers of standard deviation 1; in
	// types of powers of two only (f8e8m0fnu), 2 to the power of such a number.
	Normals Content = iota
	// Integers are small whole numbers, −3 … 3 without 0 for signed types, for
	// which sums and products are exact.
	Integers
	// Spikes are Normals of which, in types of 16 bits and more, one in 16 is
	// 256 times as large, so that exponentials overflow where another than the
	// largest element was subtracted. Of the last elements along a dimension, which
	// the masks of the last tiles are about, it is every other one, and most of them
	// are positive and larger than all others.
	Spikes
	// Scores are Normals but for the operands of scores: each row has one score that is
	// much larger than the others (see scores.go).
	Scores
)

const (
	integerMagnitude = 3
	spikeMagnitude   = 256
	tailMagnitude    = 1024
	spikeEvery       = 16 // elements
)

// Inputs makes a buffer for each parameter of c, the same ones for the same
// seed. Parameters that become start indices are filled with positions, some of
// them slightly out of range, whatever the content.
func Inputs(c *hlo.Computation, content Content, seed int64) ([]kernels.Buffer, error) {
	return InputsContext(context.Background(), c, content, seed)
}

// InputsContext is Inputs with a context: when it ends, its cause is the error.
func InputsContext(
	ctx context.Context, c *hlo.Computation, content Content, seed int64,
) ([]kernels.Buffer, error) {
	if err := checkArrays(c); err != nil {
		return nil, err
	}
	in := make([]kernels.Buffer, len(c.Params))
	for k, p := range c.Params {
		var err error
		if in[k], err = kernels.NewBuffer(p.Shape); err != nil {
			return nil, err
		}
	}
	return in, fillAll(ctx, c, in, content, seed)
}

// checkArrays is an error if there is no room for the inputs and outputs of c together,
// of which each alone might find some.
func checkArrays(c *hlo.Computation) error {
	bytes := int64(0)
	for _, s := range slices.Concat(c.ParamShapes(), kernels.OutputShapes(c)) {
		bytes += min(s.Bytes(), math.MaxInt64-bytes)
	}
	if err := kernels.CheckFreeMemory(bytes); err != nil {
		return fmt.Errorf("all parameters and results: %w", err)
	}
	return nil
}

// fillAll overwrites the buffers of all parameters of c.
func fillAll(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer, content Content, seed int64,
) error {
	rng := rand.New(rand.NewPCG(uint64(seed), 0x7469_6c65))
	indices := indexRanges(c)
	for k, p := range c.Params {
		if r, ok := indices[p]; ok {
			r.fill(in[k], rng)
		} else if err := fill(ctx, in[k].Parts(), content, rng); err != nil {
			return err
		}
	}
	if content == Scores {
		fillScores(c, in, rng)
	}
	return nil
}

// fillsBetweenLooks is the number of elements between two looks at the context.
const fillsBetweenLooks = 1 << 16

// fill overwrites b in the order of its logical indices, so that the content
// does not depend on the layout; unless b is large: see fillPooled. The error is that
// of ctx.
func fill(ctx context.Context, b kernels.Buffer, content Content, rng *rand.Rand) error {
	if b.Shape.Elements() >= pooledFrom {
		return fillPooled(ctx, b, content, rng)
	}
	w := reference.NewWalk(
		b.Shape.Dims, b.Shape.Strides(),
	)
	for n := range b.Shape.Elements() {
		if n%fillsBetweenLooks == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		tail := isLast(w.Index, b.Shape.Dims)
		at := w.Next()
		switch d := b.Shape.DType; {
		case d == hlo.F8E8M0FNU && content != Integers:
			b.SetFloat(at, math.Exp2(rng.NormFloat64()))
		case d == hlo.F8E8M0FNU:
			b.SetFloat(at, float64(1+rng.Int64N(2)))
		case d.IsFloat() &&
			(content == Normals || content == Scores ||
				content == Spikes && d.Bits() < 16):
			b.SetFloat(at, rng.NormFloat64())
		case d.IsFloat() && content == Spikes:
			b.SetFloat(at, spike(rng, tail))
		case d.IsFloat():
			b.SetFloat(at, float64(smallInt(rng)))
		case d == hlo.Pred:
			b.SetInt(at, rng.Int64N(2))
		case d.IsUnsigned():
			b.SetInt(at, 1+rng.Int64N(integerMagnitude))
		case content != Integers && d.Bits() >= 8:
			b.SetInt(at, rng.Int64N(201)-100)
		default:
			b.SetInt(at, smallInt(rng))
		}
	}
	return nil
}

// isLast reports whether an index is the last along a dimension of several elements.
func isLast(index, dims []int64) bool {
	for d, x := range index {
		if dims[d] > 1 && x == dims[d]-1 {
			return true
		}
	}
	return false
}

// spike is a random number that is large now and then, and more often at a tail.
func spike(rng *rand.Rand, tail bool) float64 {
	v := rng.NormFloat64()
	if tail && rng.IntN(2) == 0 {
		v = tailMagnitude * (1 + math.Abs(v))
		if rng.IntN(4) == 0 {
			v = -v
		}
		return v
	}
	if rng.IntN(spikeEvery) == 0 {
		v *= spikeMagnitude
	}
	return v
}

// plantNaN makes one element of each floating-point parameter NaN, at the start
// of a row, where a kernel that reads past the end of the row before would find
// it. Results that do not depend on the element remain numbers in a correct
// kernel.
func plantNaN(c *hlo.Computation, in []kernels.Buffer) {
	if !determinesNaN(c) {
		return
	}
	indices := indexRanges(c)
	for k, b := range in {
		n := b.Shape.Elements()
		_, ok := indices[c.Params[k]]
		if !ok && b.Shape.DType.IsFloat() &&
			b.Shape.DType != hlo.F8E8M0FNU && n > 1 {
			row := rowOf(b.Shape)
			b.SetFloat(n*5/8/row*row, math.NaN())
		}
	}
}

// determinesNaN reports whether the semantics of c determine which results a
// NaN reaches. They do not for a convolution, where a NaN may reach all that is
// padded, nor for a reducer with comparisons, whose result depends on the order
// of the elements, nor for attention with a mask of positions or products of groups of rows,
// where tiles that are hidden may be left out.
func determinesNaN(c *hlo.Computation) bool {
	return !hidesProducts(c) && !slices.ContainsFunc(c.Instrs, func(i *hlo.Instr) bool {
		if i.Op == hlo.OpConvolution {
			return true
		}
		if i.Attrs.ToApply == nil || i.Op == hlo.OpMap {
			return false
		}
		_, ok := i.Attrs.ToApply.Monoid()
		return !ok
	})
}

// hidesProducts reports whether a computation multiplies by exponentials of what is
// selected by positions, or by what is selected itself, as groups of rows are.
func hidesProducts(c *hlo.Computation) bool {
	// What an instruction follows from, from few to all.
	const positions, selected, weights = 1, 2, 3
	next := map[hlo.Opcode]int{
		hlo.OpIota: positions, hlo.OpSelect: selected, hlo.OpExponential: weights,
	}
	reached := map[*hlo.Instr]int{}
	for _, i := range c.Instrs {
		for _, o := range i.Operands {
			reached[i] = max(reached[i], reached[o])
			if i.Op == hlo.OpDot && o.Op == hlo.OpSelect && reached[o] >= selected {
				return true
			}
		}
		if i.Op == hlo.OpDot && reached[i] == weights {
			return true
		}
		if n := next[i.Op]; n == reached[i]+1 {
			reached[i] = n
		}
	}
	return false
}

// rowOf is the number of elements that are contiguous along one dimension.
func rowOf(s hlo.Shape) int64 {
	for d, stride := range s.Strides() {
		if stride == 1 && s.Dims[d] > 1 {
			return s.Dims[d]
		}
	}
	return 1
}

// mostlyNaN reports whether more than a quarter of an output is NaN.
func mostlyNaN(out []kernels.Buffer) bool {
	for _, b := range out {
		n := int64(0)
		all := b.Shape.Elements()
		if !b.Shape.DType.IsFloat() {
			continue
		}
		for k := range all {
			if v := b.Float(k); v != v {
				n++
			}
		}
		if 4*n > all {
			return true
		}
	}
	return false
}

// smallInt is a random integer from −3 to 3 without 0.
func smallInt(rng *rand.Rand) int64 {
	v := 1 + rng.Int64N(integerMagnitude)
	if rng.Int64N(2) == 0 {
		return -v
	}
	return v
}

// magnitudeRules bound the magnitude of a whole-number result by those of the
// operands. An operation without a row may have fractions as results.
var magnitudeRules = map[hlo.Opcode]func(i *hlo.Instr, a []float64) float64{
	hlo.OpParameter: func(*hlo.Instr, []float64) float64 { return integerMagnitude },
	hlo.OpConstant: func(i *hlo.Instr, _ []float64) float64 {
		return literalMagnitude(i.Literal)
	},
	hlo.OpIota: func(i *hlo.Instr, _ []float64) float64 {
		return float64(i.Shape.Dims[i.Attrs.IotaDim])
	},
	hlo.OpAdd: func(_ *hlo.Instr, a []float64) float64 {
		return a[0] + a[1]
	},
	hlo.OpSubtract: func(_ *hlo.Instr, a []float64) float64 {
		return a[0] + a[1]
	},
	hlo.OpMultiply: func(_ *hlo.Instr, a []float64) float64 {
		return a[0] * a[1]
	},
	hlo.OpDot: func(i *hlo.Instr, a []float64) float64 {
		return a[0] * a[1] * reference.Terms(i)
	},
	hlo.OpScaledDot: func(i *hlo.Instr, a []float64) float64 {
		if l, r := a[0]*a[2],
			a[1]*a[3]; max(l, r) <= maxExactInteger(hlo.F32) {
			return l * r * reference.Terms(i)
		}
		return math.Inf(1)
	},
	hlo.OpConvolution: func(i *hlo.Instr, a []float64) float64 {
		return a[0] * a[1] * reference.Terms(i)
	},
	hlo.OpReduce: func(i *hlo.Instr, a []float64) float64 {
		return reducedMagnitude(i, a[0], a[1])
	},
	hlo.OpReduceWindow: func(i *hlo.Instr, a []float64) float64 {
		return reducedMagnitude(i, max(a[0], a[1]), a[1])
	},
	hlo.OpSelectAndScatter: func(i *hlo.Instr, a []float64) float64 {
		return reducedMagnitude(i, a[1], a[2])
	},
	hlo.OpScatter: func(i *hlo.Instr, a []float64) float64 {
		return reducedMagnitude(i, a[len(a)-1], a[0])
	},
	hlo.OpDynamicSlice: func(_ *hlo.Instr, a []float64) float64 {
		return a[0]
	},
	hlo.OpDynamicUpdateSlice: func(_ *hlo.Instr, a []float64) float64 {
		return max(a[0], a[1])
	},
	hlo.OpGather: func(_ *hlo.Instr, a []float64) float64 {
		return a[0]
	},
	hlo.OpCompare: func(*hlo.Instr, []float64) float64 { return 1 },
}

// literalMagnitude is the largest magnitude in a constant; it is infinite if a
// value is not a whole number or not known. Infinities themselves are exact.
func literalMagnitude(l *hlo.Literal) float64 {
	if l == nil || l.Elided {
		return math.Inf(1)
	}
	m := 0.0
	for _, v := range l.Ints {
		m = max(m, math.Abs(float64(v)))
	}
	for _, v := range l.Floats {
		if v != math.Trunc(v) && !math.IsInf(v, 0) {
			return math.Inf(1)
		}
		if !math.IsInf(v, 0) {
			m = max(m, math.Abs(v))
		}
	}
	return m
}

// reducedMagnitude bounds the result of reducing values and an initial one by
// the computation of i.
func reducedMagnitude(i *hlo.Instr, values, initial float64) float64 {
	switch op, _ := i.Attrs.ToApply.Monoid(); {
	case op == hlo.OpAdd:
		return values*reference.Terms(i) + initial
	case op == hlo.OpMaximum, op == hlo.OpMinimum,
		i.Op == hlo.OpScatter && overwrites(i.Attrs.ToApply):
		return max(values, initial)
	}
	return math.Inf(1)
}

// overwrites reports whether c returns its second parameter.
func overwrites(c *hlo.Computation) bool {
	return len(c.Params) == 2 && c.Root == c.Params[1]
}

// Exact reports whether, for Integers, every value of c is a whole number that
// all types it passes through represent exactly. Then results have to agree in
// every bit, whatever the order of summation.
func Exact(c *hlo.Computation) bool {
	return exactUpTo(c, math.Inf(1))
}

// exactUpTo is Exact with a bound on the operands of products of f32.
func exactUpTo(c *hlo.Computation, maxOperand float64) bool {
	magnitude := make(
		map[*hlo.Instr]float64, len(c.Instrs),
	)
	indices := indexRanges(c)
	for _, i := range c.Instrs {
		m := math.Inf(1)
		operands := make([]float64, len(i.Operands))
		for k, o := range i.Operands {
			operands[k] = magnitude[o]
			if multipliesF32(i) && magnitude[o] > maxOperand {
				return false
			}
		}
		if f := magnitudeRules[i.Op]; f != nil {
			m = f(i, operands)
		} else if i.Op.Has(hlo.KeepsMagnitude) {
			m = 0
			for _, x := range operands {
				m = max(m, x)
			}
		}
		if r, ok := indices[i]; ok {
			m = r.magnitude()
		}
		if limit := maxExactInteger(i.Shape.DType); m > limit {
			return false
		}
		magnitude[i] = m
	}
	return true
}

// maxExactInteger is the magnitude up to which a type represents every whole
// number.
func maxExactInteger(d hlo.DType) float64 {
	switch {
	case d == hlo.Tuple:
		return math.MaxFloat64
	case d == hlo.F64:
		return 1 << 53
	case d == hlo.F32:
		return 1 << 24
	case d == hlo.F16:
		return 1 << 11
	case d == hlo.BF16:
		return 1 << 8
	case d.IsFloat():
		return 0
	}
	return math.MaxFloat64 // integers wrap alike
}
