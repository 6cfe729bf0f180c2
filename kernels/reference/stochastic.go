package reference

import (
	"fmt"
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// stochasticElements returns a function that rounds element n to a whole number: up in
// magnitude with the probability of the fraction, which random bits of the width of the
// operand decide, as XLA's evaluator does it. NaN is 0, and what is out of range is the
// end of the range.
func stochasticElements(i *hlo.Instr, out value, a []value) (func(n int64), error) {
	d := i.Shape.DType
	if !d.IsSigned() {
		return nil, fmt.Errorf("stochastic-convert to %s is not defined: it rounds to signed integers", d)
	}
	// The fraction as a number of the width of the random bits is exact: those of the
	// operand have as many bits, and fewer of them are a fraction.
	lo, hi := d.IntRange()
	width := a[1].shape.DType.Bits()
	return func(n int64) {
		x := a[0].floats[n]
		whole, fraction := math.Modf(math.Abs(x))
		switch {
		case x != x:
			out.ints[n] = 0
		case x <= float64(lo):
			out.ints[n] = lo
		case x >= float64(hi):
			out.ints[n] = hi
		default:
			v := int64(whole)
			if uint64(a[1].ints[n]) < uint64(math.Ldexp(fraction, width)) {
				v++
			}
			if x < 0 {
				v = -v
			}
			out.ints[n] = v
		}
	}, nil
}
