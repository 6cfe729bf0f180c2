package sim

import "math"

// The operations that kernels spend their time in, one loop each: Go inlines no
// function value, and a call a lane would cost more than the operation.
// They compute all lanes; the warp keeps those of the active ones.

// add32 is add.s32 and add.u32: d = a + b modulo 2³².
func add32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] + b[l]
	}
}

// sub32 is sub.s32 and sub.u32: d = a − b modulo 2³².
func sub32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] - b[l]
	}
}

// mul32 is mul.lo.s32 and mul.lo.u32: d = a·b modulo 2³².
func mul32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] * b[l]
	}
}

// and32 is and.b32.
func and32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] & b[l]
	}
}

// or32 is or.b32.
func or32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] | b[l]
	}
}

// xor32 is xor.b32.
func xor32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] ^ b[l]
	}
}

// shl32 is shl.b32: PTX clamps shift amounts above 31, as Go does.
func shl32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] << min(b[l], 32)
	}
}

// shr32 is shr.u32 and shr.b32: zeros are shifted in.
func shr32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] >> min(b[l], 32)
	}
}

// sar32 is shr.s32: the sign is shifted in.
func sar32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint32(int32(a[l]) >> min(b[l], 31))
	}
}

// minS32 is min.s32.
func minS32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint32(min(int32(a[l]), int32(b[l])))
	}
}

// maxS32 is max.s32.
func maxS32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint32(max(int32(a[l]), int32(b[l])))
	}
}

// minU32 is min.u32.
func minU32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = min(a[l], b[l])
	}
}

// maxU32 is max.u32.
func maxU32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = max(a[l], b[l])
	}
}

// mulHiU32 is mul.hi.u32: the upper half of the product of 64 bits.
func mulHiU32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint32(uint64(a[l]) * uint64(b[l]) >> 32)
	}
}

// addF32 is add.rn.f32 with a canonical NaN, as all operations on floats give.
func addF32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = canonical(math.Float32frombits(a[l]) +
			math.Float32frombits(b[l]))
	}
}

// subF32 is sub.rn.f32.
func subF32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = canonical(math.Float32frombits(a[l]) -
			math.Float32frombits(b[l]))
	}
}

// mulF32 is mul.rn.f32.
func mulF32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = canonical(math.Float32frombits(a[l]) *
			math.Float32frombits(b[l]))
	}
}

// mad32 is mad.lo.s32 and mad.lo.u32: d = a·b + c modulo 2³².
func mad32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	c := &w.r32[in.c]
	for l := range d {
		d[l] = a[l]*b[l] + c[l]
	}
}

// fmaF32 is fma.rn.f32. The product of two float32 is exact in float64, and the
// float64 sum rounded to float32 is the fused result unless the sum lies on a tie
// or a number of float32, which shows as zeros in its low bits: it is then
// rounded to odd first.
func fmaF32(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	c := &w.r32[in.c]
	for l := range d {
		p := float64(math.Float32frombits(a[l])) *
			float64(math.Float32frombits(b[l]))
		s := p + float64(math.Float32frombits(c[l]))
		// Only a sum whose low bits are zero can be rounded twice in a harmful
		// way.
		if math.Float64bits(s)&(1<<28-1) == 0 {
			s = oddSum(p, float64(math.Float32frombits(c[l])))
		}
		d[l] = canonical(float32(s))
	}
}

// add64 is add.s64 and add.u64.
func add64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] + b[l]
	}
}

// sub64 is sub.s64 and sub.u64.
func sub64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] - b[l]
	}
}

// mul64 is mul.lo.s64 and mul.lo.u64.
func mul64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] * b[l]
	}
}

// and64 is and.b64.
func and64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] & b[l]
	}
}

// or64 is or.b64.
func or64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] | b[l]
	}
}

// xor64 is xor.b64.
func xor64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r64[in.b]
	for l := range d {
		d[l] = a[l] ^ b[l]
	}
}

// shl64 is shl.b64; the amount has 32 bits.
func shl64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] << min(b[l], 64)
	}
}

// shr64 is shr.u64 and shr.b64.
func shr64(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r64[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = a[l] >> min(b[l], 64)
	}
}

// mulWideS32 is mul.wide.s32: the product of 64 bits of signed operands.
func mulWideS32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint64(int64(int32(a[l])) *
			int64(int32(b[l])))
	}
}

// mulWideU32 is mul.wide.u32: the product of 64 bits of unsigned operands.
func mulWideU32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	for l := range d {
		d[l] = uint64(a[l]) * uint64(b[l])
	}
}

// madWideS32 is mad.wide.s32: c has 64 bits.
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

// madWideU32 is mad.wide.u32: c has 64 bits.
func madWideU32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	b := &w.r32[in.b]
	c := &w.r64[in.c]
	for l := range d {
		d[l] = uint64(a[l])*uint64(b[l]) + c[l]
	}
}

// widenS32 is cvt.s64.s32: the sign is extended.
func widenS32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	for l := range d {
		d[l] = uint64(int64(int32(a[l])))
	}
}

// widenU32 is cvt.u64.u32: zeros are extended.
func widenU32(w *warp, in *instr) {
	d := w.dst64(in)
	a := &w.r32[in.a]
	for l := range d {
		d[l] = uint64(a[l])
	}
}

// narrow64 is cvt.u32.u64 and cvt.s32.s64: the low word is kept.
func narrow64(w *warp, in *instr) {
	d := w.dst32(in)
	a := &w.r64[in.a]
	for l := range d {
		d[l] = uint32(a[l])
	}
}

// mov32 is mov of 32-bit registers.
func mov32(w *warp, in *instr) {
	*w.dst32(in) = w.r32[in.a]
}

// mov64 is mov of 64-bit registers.
func mov64(w *warp, in *instr) {
	*w.dst64(in) = w.r64[in.a]
}

// selp32 is selp of 32-bit types: d = a in the lanes where predicate c holds, and
// b elsewhere.
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

// setPred writes a predicate in the active lanes.
func (w *warp) setPred(d int32, v uint32) {
	w.pred[d] = w.pred[d]&^w.active | v&w.active
}

// setpEqB32 is setp.eq of 32-bit integers: bit l of the predicate is the result
// of lane l.
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

// setpNeB32 is setp.ne of 32-bit integers.
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

// setpLtS32 is setp.lt.s32, and setp.gt.s32 with swapped operands.
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

// setpLeS32 is setp.le.s32, and setp.ge.s32 with swapped operands.
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

// setpLtU32 is setp.lt.u32, and setp.gt.u32 with swapped operands.
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

// setpLeU32 is setp.le.u32, and setp.ge.u32 with swapped operands.
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
