package check

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Extreme inputs are the ends of what a type represents: the largest and the smallest
// numbers, infinities, NaN, denormal numbers, both zeros, and numbers whose quotients
// are huge. They are for fusions whose results depend on few elements each; in a sum
// one infinity would hide all other terms.

// extremeInputs names the cases of extreme inputs.
const extremeInputs = "extreme inputs"

const (
	// The values of a palette. In the first paletteSize² elements each value of the
	// first parameter meets each of the second.
	paletteSize = 32
	// The distance in a palette of the values that neighbours meet; odd.
	pairStep = 7
	// The largest number of cases in which small parameters take turns.
	maxExtremeCases = 2
	// The largest number of element operations of a computation that is checked on
	// extreme inputs.
	maxExtremeWork = 1 << 24
)

// floatPalette are extremes of every floating-point type, as far as it represents
// them. The others of a palette depend on the type.
var floatPalette = []float64{
	0, math.Copysign(0, -1), 1, -1, 2, -2, 0.5, 3, -3, 10, -0.7,
	math.Inf(1), math.Inf(-1), math.NaN(),
	math.Pi, 88.5, -104, 0x1p24 + 1, 0x1p31, -0x1p63, 3e38, -3e4,
}

// intPalette are extremes of integers, wrapped to a type; counts of shifts are among
// them. The others of a palette depend on the type.
var intPalette = []int64{
	0, 1, -1, 2, -2, 3, 5, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 100, 200, 255, -128, 0x55,
}

// definesExtremes reports whether the results of c for extreme inputs are defined: each
// depends on few elements, and neither on the bits of a NaN nor on the order of sums.
func definesExtremes(c *hlo.Computation) bool {
	for _, i := range c.Instrs {
		if !definesExtreme(i) {
			return false
		}
	}
	return elementOperations(c) <= maxExtremeWork
}

// definesExtreme is definesExtremes for one instruction.
func definesExtreme(i *hlo.Instr) bool {
	switch i.Op {
	case hlo.OpBitcastConvert, hlo.OpBitcast:
		return !i.Operands[0].Shape.DType.IsFloat()
	case hlo.OpCompare:
		return i.Attrs.CompareType != "TOTALORDER"
	case hlo.OpFusion, hlo.OpCall:
		return definesExtremes(i.Attrs.Calls)
	case hlo.OpReduce, hlo.OpReduceWindow:
		op, monoid := i.Attrs.ToApply.Monoid()
		return monoid && (!i.Shape.DType.IsFloat() || op == hlo.OpMaximum || op == hlo.OpMinimum)
	case hlo.OpDot, hlo.OpConvolution:
		return !i.Shape.DType.IsFloat()
	case hlo.OpTuple, hlo.OpGetTupleElement, hlo.OpOptimizationBarrier:
		return true
	}
	switch i.Op.Class() {
	case hlo.ClassElementwise, hlo.ClassMove, hlo.ClassSource:
		return true
	}
	return false
}

// addExtremes adds the cases of extreme inputs. What has no bounds is left out.
func (v *Verifier) addExtremes(ctx context.Context, c *hlo.Computation, seed int64) error {
	if !definesExtremes(c) || inputBytes(c) > maxCopiedBytes {
		return nil
	}
	largest := int64(1)
	for _, s := range append(c.ParamShapes(), kernels.OutputShapes(c)...) {
		largest = max(largest, s.Elements())
	}
	for k := range min(maxExtremeCases, (paletteSize*paletteSize+largest-1)/largest) {
		vc := verifyCase{name: extremeInputs, boundsOnly: true}
		var err error
		if vc.in, err = extremeArrays(c, seed, k); err != nil {
			return err
		}
		if vc.want, err = reference.InterpretContext(ctx, c, vc.in); err != nil {
			return err
		}
		vc.bounds = &bounds{c: c, in: vc.in}
		if b, err := vc.bounds.all(ctx); b == nil {
			return err
		}
		v.cases = append(v.cases, vc)
	}
	return nil
}

// extremeArrays makes a buffer for each parameter of c; turn is the number of the case.
func extremeArrays(c *hlo.Computation, seed, turn int64) ([]kernels.Buffer, error) {
	in := make([]kernels.Buffer, len(c.Params))
	for k, p := range c.Params {
		b, err := kernels.NewBuffer(p.Shape)
		if err != nil {
			return nil, err
		}
		rng := rand.New(rand.NewPCG(uint64(seed), 0x65_0000+uint64(k)))
		fillExtremes(b, k, rng, turn)
		in[k] = b
	}
	return in, nil
}

// fillExtremes writes the palette of parameter k again and again, in an order in which
// it meets all values of the parameter before, and then numbers of all magnitudes among
// them.
func fillExtremes(b kernels.Buffer, k int, rng *rand.Rand, turn int64) {
	palette := paletteOf(b.Shape.DType, rng)
	w := reference.NewWalk(b.Shape.Dims, b.Shape.Strides())
	all := b.Shape.Elements()
	for n := range all {
		n += turn * all
		v := palette[n%paletteSize]
		if k == 1 {
			v = palette[(pairStep*n+n/paletteSize)%paletteSize]
		}
		if k > 1 || n >= paletteSize*paletteSize && rng.IntN(2) == 0 {
			v = palette[rng.IntN(paletteSize)]
			if rng.IntN(2) == 0 {
				v = randomBits(b.Shape.DType, rng)
			}
		}
		v(b, w.Next())
	}
}

// A writer writes one element.
type writer func(b kernels.Buffer, at int64)

// paletteOf are the extremes of a type, filled up by random numbers.
func paletteOf(d hlo.DType, rng *rand.Rand) (all []writer) {
	if d.IsFloat() {
		for _, v := range append(limitsOf(d), floatPalette...) {
			all = append(all, func(b kernels.Buffer, at int64) { b.SetFloat(at, v) })
		}
	} else {
		lo, hi := d.IntRange()
		for _, v := range append([]int64{lo, hi, lo + 1, hi - 1}, intPalette...) {
			all = append(all, writeInt(d, v))
		}
	}
	for len(all) < paletteSize {
		all = append(all, randomBits(d, rng))
	}
	return all
}

// writeInt writes an integer, wrapped to a type.
func writeInt(d hlo.DType, v int64) writer {
	return func(b kernels.Buffer, at int64) { b.SetInt(at, kernels.WrapInt(d, v)) }
}

// limitsOf are the largest number of a type, the smallest normal one, and the largest
// and the smallest denormal one, with both signs.
func limitsOf(d hlo.DType) (all []float64) {
	bits := uint(d.FractionBits())
	one := d.FloatBits(1)
	for _, v := range []float64{
		d.FloatFromBits(d.FloatBits(math.Inf(1)) - 1),
		d.FloatFromBits(1 << bits), d.FloatFromBits(1<<bits - 1), d.FloatFromBits(1),
		d.FloatFromBits(one + 1), d.FloatFromBits(one - 1),
	} {
		all = append(all, v, -v)
	}
	return all[:10]
}

// randomBits writes any number of a type but NaN, so that all magnitudes are as likely.
func randomBits(d hlo.DType, rng *rand.Rand) writer {
	if !d.IsFloat() {
		return writeInt(d, int64(rng.Uint64()))
	}
	v := d.FloatFromBits(rng.Uint64() >> (64 - d.Bits()))
	if v != v {
		v = 1
	}
	return func(b kernels.Buffer, at int64) { b.SetFloat(at, v) }
}
