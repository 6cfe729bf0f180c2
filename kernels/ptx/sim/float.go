package sim

import "math"

// rounding is a PTX rounding modifier.
type rounding uint8

const (
	nearest  rounding = iota // .rn, .rni: ties to even
	zero                     // .rz, .rzi
	down                     // .rm, .rmi
	up                       // .rp, .rpi
	awayTies                 // .rna: ties away from zero
)

// nudge returns the float64 next to v towards rest's sign when the exact value
// is v + rest, |rest| < an ulp, and the mode asks for it.
func nudge(v, rest float64, mode rounding) float64 {
	if rest == 0 || rest != rest || math.IsInf(v, 0) {
		return v
	}
	switch {
	case mode == zero && v > 0 && rest < 0, mode == down && rest < 0:
		return math.Nextafter(v, math.Inf(-1))
	case mode == zero && v < 0 && rest > 0, mode == up && rest > 0:
		return math.Nextafter(v, math.Inf(1))
	}
	return v
}

// odd returns v made odd in its last bit when the exact value is v + rest and
// rest is not zero: rounding the result to a type at least two bits narrower
// equals rounding the exact value (Boldo and Melquiond, 2008).
func odd(v, rest float64) float64 {
	bits := math.Float64bits(v)
	if rest == 0 || rest != rest || bits&1 != 0 || math.IsInf(v, 0) || v != v {
		return v
	}
	if (rest > 0) == (v > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}

// sumRest returns a+b rounded and what rounding lost (Knuth's TwoSum).
func sumRest(a, b float64) (s, rest float64) {
	s = a + b
	t := s - a
	return s, (a - (s - t)) + (b - t)
}

// oddSum is a+b rounded to odd.
func oddSum(a, b float64) float64 {
	s, rest := sumRest(a, b)
	if rest == 0 {
		return s
	}
	return odd(s, rest)
}

// to32 rounds an exact v + rest to float32.
func to32(v, rest float64, mode rounding) float32 {
	v = odd(v, rest)
	f := float32(v)
	w := float64(f)
	if mode == nearest || w == v || v != v || math.IsInf(v, 0) {
		return f
	}
	toward := w
	switch {
	case mode == zero && math.Abs(w) > math.Abs(v):
		toward = 0
	case mode == down && w > v:
		toward = math.Inf(-1)
	case mode == up && w < v:
		toward = math.Inf(1)
	}
	if toward == w {
		return f
	}
	return math.Nextafter32(f, float32(toward))
}

func flush32(bits uint32) uint32 {
	if bits&0x7f800000 == 0 {
		return bits & 0x80000000
	}
	return bits
}

// halfToFloat widens an IEEE half; exact.
func halfToFloat(h uint16) float32 {
	bits := uint32(h&0x7fff) << 13
	sign := uint32(h&0x8000) << 16
	if h&0x7c00 == 0x7c00 {
		return math.Float32frombits(bits | 0x7f800000 | sign)
	}
	// The half's exponent field read as a float32's is too small by 112.
	return math.Float32frombits(math.Float32bits(math.Float32frombits(bits)*0x1p112) | sign)
}

func bfloatToFloat(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// smallFormat describes a binary floating-point type of at most 16 bits.
type smallFormat struct {
	mantissa, bias int
	largest        float64 // largest finite
	infinity       bool    // has infinities (else overflow saturates or is NaN)
	nan            uint16
	bits           int
}

var (
	halfFormat   = smallFormat{10, 15, 65504, true, 0x7fff, 16}
	bfloatFormat = smallFormat{7, 127, 0x1.fep127, true, 0x7fff, 16}
	e4m3Format   = smallFormat{3, 7, 448, false, 0x7f, 8}
	e5m2Format   = smallFormat{2, 15, 57344, true, 0x7f, 8}
)

// round turns v into the format's bits. saturate is .satfinite.
func (f smallFormat) round(v float64, mode rounding, saturate bool) uint16 {
	if v != v {
		return f.nan
	}
	sign := uint16(0)
	if math.Signbit(v) {
		sign, v = 1<<(f.bits-1), -v
		mode = flip(mode)
	}
	_, e := math.Frexp(v)
	e = max(e-1, 1-f.bias)
	ulp := math.Ldexp(1, e-f.mantissa)
	r := roundInteger(v/ulp, mode) * ulp
	if v == 0 {
		r = 0
	}
	if r > f.largest || math.IsInf(v, 1) {
		return sign | f.overflow(v, mode, saturate)
	}
	return sign | f.encode(r)
}

func (f smallFormat) overflow(v float64, mode rounding, saturate bool) uint16 {
	toLargest := mode == zero || mode == down
	switch {
	case saturate, toLargest && !math.IsInf(v, 1):
		return f.encode(f.largest)
	case f.infinity:
		return uint16(1<<(f.bits-1-f.mantissa)-1) << f.mantissa
	}
	return f.nan
}

// encode packs r, which the format holds exactly and is not negative.
func (f smallFormat) encode(r float64) uint16 {
	if r == 0 {
		return 0
	}
	frac, e := math.Frexp(r)
	e--
	if e < 1-f.bias { // subnormal
		return uint16(math.Ldexp(r, f.bias-1+f.mantissa))
	}
	return uint16(e+f.bias)<<f.mantissa | uint16((frac*2-1)*float64(int(1)<<f.mantissa))
}

func (f smallFormat) value(bits uint16) float64 {
	neg := bits>>(f.bits-1)&1 == 1
	bits &= 1<<(f.bits-1) - 1
	e, m := int(bits>>f.mantissa), float64(bits&(1<<f.mantissa-1))
	top := 1<<(f.bits-1-f.mantissa) - 1
	var v float64
	switch {
	case !f.infinity && bits == f.nan, f.infinity && e == top && m != 0:
		return math.NaN()
	case f.infinity && e == top:
		v = math.Inf(1)
	case e == 0:
		v = math.Ldexp(m, 1-f.bias-f.mantissa)
	default:
		v = math.Ldexp(1+m/float64(int(1)<<f.mantissa), e-f.bias)
	}
	if neg {
		return -v
	}
	return v
}

func flip(mode rounding) rounding {
	switch mode {
	case down:
		return up
	case up:
		return down
	}
	return mode
}

// roundInteger rounds to an integer in the mode.
func roundInteger(v float64, mode rounding) float64 {
	switch mode {
	case zero:
		return math.Trunc(v)
	case down:
		return math.Floor(v)
	case up:
		return math.Ceil(v)
	case awayTies:
		return math.Round(v)
	}
	return math.RoundToEven(v)
}

// tf32 keeps ten bits of mantissa, as cvt.rna.tf32.f32 does.
func tf32(bits uint32) uint32 {
	if bits&0x7f800000 == 0x7f800000 {
		return bits
	}
	return (bits + 1<<12) &^ (1<<13 - 1)
}

// floatToHalf rounds to nearest even, as halfFormat.round does.
func floatToHalf(f float32) uint16 {
	bits := math.Float32bits(f)
	sign, abs := uint16(bits>>16)&0x8000, bits&0x7fffffff
	switch {
	case abs > 0x7f800000:
		return 0x7fff
	case abs >= 0x47800000: // 2^16 and more
		return sign | 0x7c00
	case abs < 0x38800000: // below 2^-14: the sum's last bit is worth 2^-24
		return sign | uint16(math.Float32bits(math.Float32frombits(abs)+0.5)-0x3f000000)
	}
	return sign | uint16((abs+0xfff+abs>>13&1-0x38000000)>>13)
}

func floatToBfloat(f float32) uint16 {
	bits := math.Float32bits(f)
	if f != f {
		return 0x7fff
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
