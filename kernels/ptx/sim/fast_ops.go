package sim

import "math"

// The operations that kernels spend their time in, one loop each: Go inlines no
// function value, and a call a lane would cost more than the operation.
// They compute all lanes; the warp keeps those of the active ones.

func add32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] + b[l]
	}
}

func sub32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] - b[l]
	}
}

func mul32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] * b[l]
	}
}

func and32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] & b[l]
	}
}

func or32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] | b[l]
	}
}

func xor32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] ^ b[l]
	}
}

func shl32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] << min(b[l], 32)
	}
}

func shr32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] >> min(b[l], 32)
	}
}

func sar32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint32(int32(a[l]) >> min(b[l], 31))
	}
}

func minS32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint32(min(int32(a[l]), int32(b[l])))
	}
}

func maxS32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint32(max(int32(a[l]), int32(b[l])))
	}
}

func minU32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = min(a[l], b[l])
	}
}

func maxU32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = max(a[l], b[l])
	}
}

func mulHiU32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint32(uint64(a[l]) * uint64(b[l]) >> 32)
	}
}

func addF32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = canonical(math.Float32frombits(a[l]) +
			math.Float32frombits(b[l]))
	}
}

func subF32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = canonical(math.Float32frombits(a[l]) -
			math.Float32frombits(b[l]))
	}
}

func mulF32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = canonical(math.Float32frombits(a[l]) *
			math.Float32frombits(b[l]))
	}
}

func mad32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	c := &w.r32[in.c]
	for l := range d {
		d[l] = a[l]*b[l] + c[l]
	}
}

// fmaF32 is a·b+c rounded once to float32: the product is exact in float64 and
// the sum is rounded to odd where it might otherwise lie on a tie.
func fmaF32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	c := &w.r32[in.c]
	for l := range d {
		p := float64(math.Float32frombits(a[l])) *
			float64(math.Float32frombits(b[l]))
		s := p + float64(math.Float32frombits(c[l]))
		if math.Float64bits(s)&(1<<28-1) == 0 {
			s = oddSum(p, float64(math.Float32frombits(c[l])))
		}
		d[l] = canonical(float32(s))
	}
}

func add64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] + b[l]
	}
}

func sub64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] - b[l]
	}
}

func mul64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] * b[l]
	}
}

func and64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] & b[l]
	}
}

func or64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] | b[l]
	}
}

func xor64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] ^ b[l]
	}
}

func shl64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] << min(b[l], 64)
	}
}

func shr64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] >> min(b[l], 64)
	}
}

func mulWideS32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint64(int64(int32(a[l])) *
			int64(int32(b[l])))
	}
}

func mulWideU32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint64(a[l]) * uint64(b[l])
	}
}

func madWideS32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	c := &w.r64[in.c]
	for l := range d {
		d[l] = uint64(int64(int32(a[l]))*
			int64(int32(b[l]))) +
			c[l]
	}
}

func madWideU32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	c := &w.r64[in.c]
	for l := range d {
		d[l] = uint64(a[l])*uint64(b[l]) + c[l]
	}
}

func widenS32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	for l := range d {
		d[l] = uint64(int64(int32(a[l])))
	}
}

func widenU32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	for l := range d {
		d[l] = uint64(a[l])
	}
}

func narrow64(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r64[in.a]
	for l := range d {
		d[l] = uint32(a[l])
	}
}

func mov32(w *warp, in *instr) {
	*w.dst32(in) = w.r32[in.a]
}

func mov64(w *warp, in *instr) {
	*w.dst64(in) = w.r64[in.a]
}

func selp32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	p := w.pred[in.c]
	for l := range d {
		v := b[l]
		if p>>(l&31)&1 == 1 {
			v = a[l]
		}
		d[l] = v
	}
}

// setPred writes the active lanes of a predicate.
func (w *warp) setPred(d int32, v uint32) {
	w.pred[d] = w.pred[d]&^w.active | v&w.active
}

func setpEqB32(w *warp, in *instr) {
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	var p uint32
	for l := range a {
		if a[l] == b[l] {
			p |= 1 << (l & 31)
		}
	}
	w.setPred(in.d, p)
}

func setpNeB32(w *warp, in *instr) {
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	var p uint32
	for l := range a {
		if a[l] != b[l] {
			p |= 1 << (l & 31)
		}
	}
	w.setPred(in.d, p)
}

func setpLtS32(w *warp, in *instr) {
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	var p uint32
	for l := range a {
		if int32(a[l]) < int32(b[l]) {
			p |= 1 << (l & 31)
		}
	}
	w.setPred(in.d, p)
}

func setpLeS32(w *warp, in *instr) {
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	var p uint32
	for l := range a {
		if int32(a[l]) <= int32(b[l]) {
			p |= 1 << (l & 31)
		}
	}
	w.setPred(in.d, p)
}

func setpLtU32(w *warp, in *instr) {
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	var p uint32
	for l := range a {
		if a[l] < b[l] {
			p |= 1 << (l & 31)
		}
	}
	w.setPred(in.d, p)
}

func setpLeU32(w *warp, in *instr) {
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	var p uint32
	for l := range a {
		if a[l] <= b[l] {
			p |= 1 << (l & 31)
		}
	}
	w.setPred(in.d, p)
}
