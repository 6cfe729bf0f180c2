package check

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Content says what inputs are filled with. Zeros are never timed or checked
// with: they hide errors and draw less power.
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
	// largest element was subtracted.
	Spikes
)

const (
	integerMagnitude = 3
	spikeMagnitude   = 256
	spikeEvery       = 16 // elements
)

// Inputs makes one buffer a parameter of c, the same for the same seed.
// Parameters that become start indices get places, some slightly out of range,
// whatever the content.
func Inputs(c *hlo.Computation, content Content, seed int64) ([]kernels.Buffer, error) {
	rng := rand.New(rand.NewPCG(uint64(seed), 0x7469_6c65))
	in := make([]kernels.Buffer, len(c.Params))
	indices := indexRanges(c)
	for k, p := range c.Params {
		b, err := kernels.NewBuffer(p.Shape)
		if err != nil {
			return nil, err
		}
		if r, ok := indices[p]; ok {
			r.fill(b, rng)
		} else {
			Fill(b, content, rng)
		}
		in[k] = b
	}
	return in, nil
}

// Fill overwrites b, in logical order, so that layouts do not change contents.
func Fill(b kernels.Buffer, content Content, rng *rand.Rand) {
	w := reference.NewWalk(
		b.Shape.Dims, b.Shape.Strides(),
	)
	for range b.Shape.Elements() {
		at := w.Next()
		switch d := b.Shape.DType; {
		case d == hlo.F8E8M0FNU && content != Integers:
			b.SetFloat(at, math.Exp2(rng.NormFloat64()))
		case d == hlo.F8E8M0FNU:
			b.SetFloat(at, float64(1+rng.Int64N(2)))
		case d.IsFloat() &&
			(content == Normals || content == Spikes && d.Bits() < 16):
			b.SetFloat(at, rng.NormFloat64())
		case d.IsFloat() && content == Spikes:
			b.SetFloat(at, spike(rng))
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
}

func spike(rng *rand.Rand) float64 {
	v := rng.NormFloat64()
	if rng.IntN(spikeEvery) == 0 {
		v *= spikeMagnitude
	}
	return v
}

// plantNaN makes one element of each floating-point parameter NaN, at the start
// of a row, where whoever reads past the end of the row before comes by:
// results that do not depend on it stay numbers in a right kernel.
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

// determinesNaN says whether it is determined where a NaN gets: not among the weights
// of a convolution, where it may get into all that is padded, nor through
// comparisons of a reducer, which give one thing or another by the order of
// elements.
func determinesNaN(c *hlo.Computation) bool {
	return !slices.ContainsFunc(c.Instrs, func(i *hlo.Instr) bool {
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

// rowOf is the elements of an array that follow each other along one dimension.
func rowOf(s hlo.Shape) int64 {
	for d, stride := range s.Strides() {
		if stride == 1 && s.Dims[d] > 1 {
			return s.Dims[d]
		}
	}
	return 1
}

// mostlyNaN says whether a NaN has got into more than a quarter of an output.
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

func smallInt(rng *rand.Rand) int64 {
	v := 1 + rng.Int64N(integerMagnitude)
	if rng.Int64N(2) == 0 {
		return -v
	}
	return v
}

// magnitudeRules bounds the magnitude of an instruction's whole-number result
// from those of its operands; operations without a row can give fractions.
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

// reducedMagnitude bounds the result of folding values into an initial one by the
// computation of i.
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

// overwrites says whether c gives its second parameter.
func overwrites(c *hlo.Computation) bool {
	return len(c.Params) == 2 && c.Root == c.Params[1]
}

// Exact says whether, for Integers, every value of c is a whole number that
// every type it passes through holds exactly, so that results must agree in
// every bit whatever the order of summation.
func Exact(c *hlo.Computation) bool {
	return exactUpTo(c, math.Inf(1))
}

// exactUpTo is Exact where operands of products are at most so large.
func exactUpTo(c *hlo.Computation, most float64) bool {
	magnitude := make(
		map[*hlo.Instr]float64, len(c.Instrs),
	)
	indices := indexRanges(c)
	for _, i := range c.Instrs {
		m := math.Inf(1)
		operands := make([]float64, len(i.Operands))
		for k, o := range i.Operands {
			operands[k] = magnitude[o]
			if multipliesF32(i) && magnitude[o] > most {
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

// maxExactInteger is the magnitude up to which a type holds every whole number.
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
