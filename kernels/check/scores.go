package check

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Scores are products that become exponents less their maximum: those of attention, of
// queries and keys. On random inputs many of a row's weights are alike, and an element that
// a kernel masks wrongly, or leaves out of the maximum, moves the result by little or
// nothing. So in one case each row has one weight of 1, and all others are 0:
//
//	steep rows   the scores rise, or fall, with the number of the key, so that the last, or
//	             first, key that the row's mask shows has the weight: one element more
//	             or less gives another row of values
//	peaked rows  the scores are those of a wave over the keys, of another phase for each
//	             row, plus a slope or none: the largest ones are anywhere in tiles of any size, and one
//	             that a maximum omits makes an exponential infinite
//
// Waves and slopes are products of two components each. Their values have eight significant bits, so that types of 16
// bits and more represent them, and nearly all products and sums are exact.

const (
	// The largest scores of a wave are about waveRow·waveKey.
	waveKey = 1 << 6
	waveRow = 1 << 14
	// By this a steep row's scores differ from key to key.
	steepSlope = 1 << 13
	// The numbers of f16 end at 2¹⁶.
	narrowWaveRow = 1 << 9
	narrowScores  = 1 << 15
	// The components of a slope are keys' numbers in digits of this base.
	slopeDigit = 16
	// The first and the number of the exponents of slopes of peaked rows, as fractions of
	// the wave.
	firstSlope, slopes = 9, 9
	// The golden ratio's fraction: multiples of it are spread evenly in any window.
	goldenFraction = 0.6180339887498949
	// Two components are those of the wave, and two those of the slope.
	scoreComponents = 4
	// The largest number of elements of an operand.
	maxScoreElements = 1 << 20
	// The largest number of element operations for which there is such a case: 32 matrices of
	// 256 rows and keys of 72 components are 2^25.8.
	maxScoreWork = 1 << 26
)

// Of eight rows so many have scores of each kind.
const (
	risingKinds  = 2
	steepKinds   = 3 // rising or falling
	peakKinds    = 5 // steep, or peaked without a slope
	kindsOfScore = 8
)

// scoreProduct is the first product of c whose results are scores, and the operand that has the keys.
func scoreProduct(c *hlo.Computation) (dot *hlo.Instr, keys int, ok bool) {
	// From shows the product that an instruction follows from, and a maximum's reduction.
	type origin struct{ dot, top *hlo.Instr }
	from := map[*hlo.Instr]origin{}
	for _, i := range c.Instrs {
		x := origin{}
		for _, o := range i.Operands {
			y := from[o]
			if x.dot == nil ||
				x.top == nil && y.top != nil {
				x = y
			}
		}
		switch {
		case i.Op == hlo.OpDot && i.Operands[0] != i.Operands[1]:
			x = origin{dot: i}
		case i.Op == hlo.OpReduce && x.dot != nil:
			op, ok := i.Attrs.ToApply.Monoid()
			if ok && op == hlo.OpMaximum {
				x.top = i
			}
		case i.Op == hlo.OpExponential && x.top != nil:
			return x.dot, keyOperand(x.dot, x.top), true
		}
		from[i] = x
	}
	return nil, 0, false
}

// keyOperand is the operand of a product along whose own dimensions a maximum is taken.
func keyOperand(dot, top *hlo.Instr) int {
	batch := len(dot.Attrs.LHSBatch)
	left := dot.Operands[0].Shape.Rank()
	left -= len(dot.Attrs.LHSContract)
	if !dot.Shape.SameDims(top.Operands[0].Shape) {
		return 1
	}
	for _, d := range top.Attrs.Dimensions {
		if int(d) >= batch && int(d) < left {
			return 0
		}
	}
	return 1
}

// A scoreOperand is an operand of such a product.
type scoreOperand struct {
	of    *hlo.Instr
	batch []int64
	depth []int64 // contracted
	trace trace
}

// scoreOperands are the rows and the keys of the scores of c; none where there are no
// scores, or their operands are not elements of parameters that represent waves.
func scoreOperands(c *hlo.Computation) (rows, keys *scoreOperand) {
	dot, k, ok := scoreProduct(c)
	if !ok {
		return nil, nil
	}
	a := dot.Attrs
	both := []*scoreOperand{
		{
			of:    dot.Operands[0],
			batch: a.LHSBatch,
			depth: a.LHSContract,
		},
		{
			of:    dot.Operands[1],
			batch: a.RHSBatch,
			depth: a.RHSContract,
		},
	}
	for _, o := range both {
		o.trace, ok = traceOf(o.of)
		if !ok || !o.representsWaves() {
			return nil, nil
		}
	}
	return both[1-k], both[k]
}

// representsWaves reports whether the types of an operand have the numbers of waves.
func (o *scoreOperand) representsWaves() bool {
	from := o.trace.param.Shape
	return from.DType.IsFloat() &&
		from.DType.Bits() >= 16 &&
		o.of.Shape.DType.Bits() >= 16 &&
		from.Elements() <= maxScoreElements
}

// A trace leads from the indices of an instruction to those of a parameter whose elements
// it has.
type trace struct {
	param *hlo.Instr
	steps []func(index []int64) []int64
}

// traceOf reports whether i has the elements of a parameter, or these times one number.
func traceOf(i *hlo.Instr) (t trace, ok bool) {
	for i.Op != hlo.OpParameter {
		operand := 0
		var step func(from, to []int64)
		dims := i.Attrs.Dimensions
		switch i.Op {
		case hlo.OpConvert, hlo.OpCopy, hlo.OpNegate:
		case hlo.OpMultiply, hlo.OpDivide:
			if isUniform(i.Operands[0]) {
				operand = 1
			}
			if !isUniform(i.Operands[1-operand]) {
				return t, false
			}
		case hlo.OpBroadcast:
			step = func(from, to []int64) {
				for k, d := range dims {
					to[k] = from[d]
				}
			}
		case hlo.OpTranspose:
			step = func(from, to []int64) {
				for k, d := range dims {
					to[d] = from[k]
				}
			}
		case hlo.OpReshape:
			old := i.Shape.Dims
			dims := i.Operands[0].Shape.Dims
			step = func(from, to []int64) {
				n := int64(0)
				for k, x := range from {
					n = n*old[k] + x
				}
				for d := range slices.Backward(dims) {
					to[d], n = n%dims[d], n/dims[d]
				}
			}
		default:
			return t, false
		}
		i = i.Operands[operand]
		if step != nil {
			to := make([]int64, len(i.Shape.Dims))
			t.steps = append(t.steps, func(from []int64) []int64 {
				step(from, to)
				return to
			})
		}
	}
	t.param = i
	return t, true
}

// isUniform reports whether an instruction has one number, whatever its index is.
func isUniform(i *hlo.Instr) bool {
	if i.Shape.Elements() == 1 {
		return true
	}
	return i.Op == hlo.OpBroadcast &&
		isUniform(i.Operands[0])
}

// fillScores overwrites the components of waves and slopes in the operands of scores.
func fillScores(c *hlo.Computation, in []kernels.Buffer, rng *rand.Rand) {
	rows, keys := scoreOperands(c)
	if rows == nil {
		return
	}
	narrow := false
	for _, i := range c.Instrs {
		narrow = narrow ||
			i.Op == hlo.OpDot && i.Shape.DType == hlo.F16
	}
	r := scoreRows{
		seed:  rng.Uint64(),
		wave:  waveRow,
		steep: steepSlope,
	}
	if narrow {
		n := keys.of.Shape.Extent(keys.own())
		r.wave = narrowWaveRow
		r.steep = min(r.steep, narrowScores/float64(n))
	}
	rows.fill(c, in, r.component)
	keys.fill(c, in, keyComponent)
}

// own are the dimensions that the other operand has not.
func (o *scoreOperand) own() (dims []int64) {
	for d := range int64(o.of.Shape.Rank()) {
		other := slices.Contains(o.batch, d) ||
			slices.Contains(o.depth, d)
		if !other {
			dims = append(dims, d)
		}
	}
	return dims
}

// fill sets elements of the operand's parameter: those that value has for a matrix, a
// row or key of it, and a component of that.
func (o *scoreOperand) fill(
	c *hlo.Computation, in []kernels.Buffer, value func(matrix, n, component int64) (float64, bool),
) {
	own := o.own()
	b := in[slices.Index(c.Params, o.trace.param)]
	strides := b.Shape.Strides()
	w := reference.NewWalk(
		o.of.Shape.Dims, o.of.Shape.Strides(),
	)
	for range o.of.Shape.Elements() {
		number := func(dims []int64) (n int64) {
			for _, d := range dims {
				n = n*o.of.Shape.Dims[d] + w.Index[d]
			}
			return n
		}
		v, ok := value(
			number(o.batch), number(own),
			number(o.depth),
		)
		if ok {
			at, index := int64(0), w.Index
			for _, step := range o.trace.steps {
				index = step(index)
			}
			for d, x := range index {
				at += x * strides[d]
			}
			b.SetFloat(at, v)
		}
		w.Next()
	}
}

// keyComponent is a component of key n.
func keyComponent(_, n, component int64) (v float64, ok bool) {
	turns := goldenFraction * float64(n)
	sin, cos := math.Sincos(2 * math.Pi * turns)
	switch component {
	case 0:
		return eightBits(waveKey * cos), true
	case 1:
		return eightBits(waveKey * sin), true
	case 2:
		return float64(n / slopeDigit * slopeDigit), true
	case 3:
		return float64(n % slopeDigit), true
	}
	return 0, false
}

// scoreRows makes rows.
type scoreRows struct {
	seed        uint64
	wave, steep float64
}

// component is a component of row n of a matrix.
func (r scoreRows) component(matrix, n, component int64) (v float64, ok bool) {
	if component >= scoreComponents {
		return 0, false
	}
	rng := rand.New(rand.NewPCG(r.seed, uint64(matrix)))
	// Kinds, phases and slopes are spread evenly over any few rows.
	part := func(step float64) float64 {
		_, f := math.Modf(rng.Float64() + step*float64(n))
		return f
	}
	kind := int(kindsOfScore * part(math.Sqrt2))
	phase := part(math.Sqrt(3))
	u := int(slopes * part(math.Sqrt(7)))
	slope := r.steep
	if kind >= steepKinds {
		part := math.Exp2(float64(-firstSlope - u))
		slope = r.wave * waveKey * part
	}
	if kind >= risingKinds &&
		(kind < peakKinds || u%2 == 0) {
		slope = -slope
	}
	sin, cos := math.Sincos(2 * math.Pi * phase)
	switch {
	case component == 0 && kind >= steepKinds:
		return eightBits(r.wave * cos), true
	case component == 1 && kind >= steepKinds:
		return eightBits(r.wave * sin), true
	case component < 2:
		return 0, false
	}
	sloped := kind < steepKinds || kind >= peakKinds
	return eightBits(slope), sloped
}

// eightBits rounds a number to eight significant bits.
func eightBits(x float64) float64 {
	m, e := math.Frexp(x)
	return math.Ldexp(math.Round(m*256)/256, e)
}
