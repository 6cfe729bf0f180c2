package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// This file moves elements between memory and registers. Elements in registers have
// the kind that their type is computed in (kindFor): 8- and 16-bit elements are
// unpacked from words when they are loaded and packed when they are stored.
// Consecutive elements are moved by one instruction of up to 16 bytes.

const (
	global space = "global"
	shared space = "shared"
	// Global memory that nothing writes while the kernel runs (read-only cache).
	inputs space = "global.nc"
	// What comes after a space where the access has a cache policy (knob l2).
	hinted space = ".L2::cache_hint"
)

// passing is the space of an array that passes through the L2 cache once: accesses have the
// policy that makes it leave first. Others are as they are.
func (e *emitter) passing(s space, once bool) space {
	if e.knobs.l2 == 0 || !once {
		return s
	}
	e.hintedSome = true
	return s + hinted
}

// access emits an access of global memory where p holds, with the cache policy where its
// space has one.
func (e *emitter) access(p operand, s space, opcode string, args ...any) {
	if s.hinted() {
		args = append(args, e.policy)
	}
	e.asm.when(p, opcode, args...)
}

// hinted reports whether accesses have a cache policy.
func (s space) hinted() bool {
	return strings.HasSuffix(string(s), string(hinted))
}

// readOnce reports whether each element of a parameter is in one tile only, of those
// that all blocks load, so that it is not needed again.
func (e *emitter) readOnce(param int) bool {
	readers := 0
	for _, op := range e.p.Ops {
		if op.Code != hlo.OpParameter || int(op.Instr.Attrs.Param) != param {
			continue
		}
		readers++
		for _, d := range e.p.Space.Dims {
			if constantOf(d.Tiles) > 1 && !dependsOn(op, d.Tid) {
				return false
			}
		}
	}
	return readers == 1
}

// outgrows reports whether an array is larger than the L2 cache, so that what reads it
// later finds little of it there.
func (e *emitter) outgrows(s hlo.Shape) bool {
	return e.spec.L2 > 0 && s.Bytes() > e.spec.L2
}

// load reads n consecutive elements. n·size is a power of two of at most 16 bytes, and
// the address a multiple of it. Where p does not hold, memory is not accessed and the
// elements are 0. A load that is known in the scope is not repeated.
func (e *emitter) load(
	s space, d hlo.DType, at address, n int, p operand,
) []operand {
	bytes := int(d.Size()) * n
	key := valueKey{
		text: fmt.Sprint(s, d, at, n, p),
	}
	if all := e.loaded(key, n); all != nil {
		return all
	}
	var words []operand
	switch {
	case d.Size() == 8:
		words = e.read(s, kindFor(d), "64", at, n, p)
	case d == hlo.F32:
		words = e.read(s, kindF32, "32", at, n, p)
	case bytes >= 4:
		words = e.read(
			s, kindB32, "32", at, bytes/4, p,
		)
	case bytes == 2:
		words = e.read(s, kindB32, "16", at, 1, p)
	default:
		words = e.read(s, kindB32, "8", at, 1, p)
	}
	all := make([]operand, n)
	for k := range all {
		all[k] = e.unpack(d, words, k)
		key.part = k
		e.asm.scope.values[key] = all[k]
	}
	return all
}

// loaded finds the elements of an earlier load of the same text, nil if one is
// missing.
func (e *emitter) loaded(key valueKey, n int) []operand {
	all := make([]operand, n)
	for k := range all {
		key.part = k
		r, ok := e.asm.value(key)
		if !ok {
			return nil
		}
		all[k] = r
	}
	return all
}

// read emits one load of n words; registers of words that are not loaded are zeroed
// before.
func (e *emitter) read(
	s space, k kind, bits string, at address, n int, p operand,
) []operand {
	words := e.asm.fresher(k, n)
	if p == no {
		return e.blank(k, words)
	}
	e.loads++
	// The instruction does not write its registers where p does not hold.
	if p != yes {
		e.blank(k, words)
	}
	typ := map[kind]string{kindB32: "b", kindB64: "b", kindF32: "f", kindF64: "f"}[k] +
		bits
	if bits == "16" || bits == "8" {
		typ = "u" + bits
	}
	if n == 1 {
		e.access(
			p, s, "ld."+string(s)+"."+typ, words[0], at,
		)
	} else {
		e.access(
			p, s, fmt.Sprintf("ld.%s.v%d.%s", s, n, typ),
			words, at,
		)
	}
	return words
}

// blank zeroes registers.
func (e *emitter) blank(k kind, words []operand) []operand {
	for _, w := range words {
		e.asm.do(kindTable[k].move, w, zero(k))
	}
	return words
}

// unpack extracts element k from the words of a load, in the kind of register that its
// type is computed in. Elements of 8-bit floats are looked up in a table of their 256
// values.
func (e *emitter) unpack(d hlo.DType, words []operand, k int) operand {
	a := e.asm
	switch d {
	case hlo.F32, hlo.F64, hlo.S64,
		hlo.U64, hlo.S32, hlo.U32:
		return words[k]
	case hlo.BF16, hlo.F16:
		v := e.unpackHalf(d, words[k/2], k%2 == 1)
		at := int64(k%2) * d.Size()
		a.parts[v] = wordPart{d, words[k/2], at}
		return v
	}
	// Elements of 8 bits are extracted from their word, with their sign.
	bits := int(d.Size()) * 8
	extract := "bfe.u32"
	if d.IsSigned() {
		extract = "bfe.s32"
	}
	x := a.get(
		kindB32, extract, words[k*bits/32],
		k*bits%32, bits,
	)
	switch {
	case d == hlo.Pred:
		return a.get(kindPred, "setp.ne.s32", x, 0)
	case d.IsFloat():
		return e.decoded(d, x)
	}
	at := int64(k * bits % 32 / 8)
	a.parts[x] = wordPart{d, words[k*bits/32], at}
	return x
}

// unpackHalf is the low or the high 16-bit float of a word, as f32.
func (e *emitter) unpackHalf(d hlo.DType, word operand, high bool) operand {
	a := e.asm
	switch {
	case d == hlo.F16 && high:
		return a.get(
			kindF32, "cvt.f32.f16",
			a.get(kindB16, "cvt.u16.u32", a.get(kindB32, "shr.u32", word, 16)),
		)
	case d == hlo.F16:
		return a.get(
			kindF32, "cvt.f32.f16", a.get(kindB16, "cvt.u16.u32", word),
		)
	// A bf16 is the upper half of an f32.
	case high:
		return a.get(
			kindF32, "mov.b32",
			a.get(kindB32, "and.b32", word, -1<<16),
		)
	}
	return a.get(
		kindF32, "mov.b32", a.get(kindB32, "shl.b32", word, 16),
	)
}

// at32 is the address base + x·size for a 32-bit register x.
func (e *emitter) at32(base, x operand, size int64) address {
	return address{
		e.asm.get(kindB64, "mad.wide.s32", x, size, base),
		0,
	}
}

// tableOf has the 256 values of an 8-bit type as f32.
func tableOf(d hlo.DType) []byte {
	codes := make([]byte, 256)
	for k := range codes {
		codes[k] = byte(k)
	}
	list := kernels.Buffer{
		Shape: hlo.Shape{DType: d, Dims: []int64{256}},
		Data:  codes,
	}
	var table []byte
	for k := range int64(256) {
		table = binary.LittleEndian.AppendUint32(
			table, math.Float32bits(float32(list.Float(k))),
		)
	}
	return table
}

// store writes consecutive elements where p holds; sizes and alignment are as for
// load.
func (e *emitter) store(
	s space, d hlo.DType, at address, vals []operand, p operand,
) {
	k := kindFor(d)
	var words []operand
	// Words are what one instruction stores: elements of 4 and 8 bytes, or packed
	// smaller ones.
	typ := "b32"
	switch {
	case d.Size() == 8:
		typ = "b64"
		words = e.inRegisters(k, vals)
		if k == kindF64 {
			typ = "f64"
		}
	case d == hlo.F32:
		typ = "f32"
		words = e.inRegisters(k, vals)
	case d.Size() == 4:
		words = e.inRegisters(k, vals)
	default:
		words = e.pack(d, vals)
		typ = map[int]string{
			1: "u8",
			2: "u16",
		}[int(d.Size())*len(vals)]
		if typ == "" {
			typ = "b32"
		}
	}
	if len(words) == 1 {
		e.access(
			p, s, "st."+string(s)+"."+typ, at, words[0],
		)
		return
	}
	e.access(
		p, s,
		fmt.Sprintf("st.%s.v%d.%s", s, len(words), typ),
		at, words,
	)
}

// inRegisters moves immediates to registers.
func (e *emitter) inRegisters(k kind, vals []operand) []operand {
	all := make([]operand, len(vals))
	for i, v := range vals {
		all[i] = e.asm.in(k, v)
	}
	return all
}

// pack combines elements of less than 32 bits to words.
func (e *emitter) pack(d hlo.DType, vals []operand) []operand {
	a := e.asm
	per := int(4 / d.Size())
	var words []operand
	for at := 0; at < len(vals); at += per {
		part := vals[at:min(at+per, len(vals))]
		if word := e.regrouped(d, part); word != "" {
			words = append(words, word)
			continue
		}
		// Pairs of 16-bit floats have an instruction of their own.
		if (d == hlo.F16 || d == hlo.BF16) &&
			len(part) == 2 {
			words = append(
				words,
				e.packHalves(d, part[0], part[1]),
			)
			continue
		}
		word := e.bitsOf(d, part[0])
		for k, v := range part[1:] {
			word = a.get(
				kindB32, "bfi.b32", e.bitsOf(d, v), word,
				(k+1)*int(d.Size())*8,
				d.Size()*8,
			)
		}
		words = append(words, word)
	}
	return words
}

// regrouped is a word of two or four elements that are parts of words that were loaded:
// the same word if they are all of it, in its order, or bytes of others. It is "" where
// one of them is not.
func (e *emitter) regrouped(d hlo.DType, vals []operand) operand {
	parts := make([]wordPart, len(vals))
	whole := true
	for k, v := range vals {
		p := e.asm.parts[v]
		if p.word == "" || p.d != d {
			return ""
		}
		parts[k] = p
		first := parts[0]
		first.at = int64(k) * d.Size()
		whole = whole && p == first
	}
	switch {
	case len(vals) == 1:
		return ""
	case whole:
		return parts[0].word
	case len(vals) == 2:
		return e.bytePair(parts[0], parts[1])
	}
	low := e.bytePair(parts[0], parts[1])
	high := e.bytePair(parts[2], parts[3])
	selector := int64(0x5410)
	// Elements of the same place in four words: the bytes of two words are paired once for
	// two results.
	at := parts[0].at
	other := func(p wordPart) bool { return p.at != at }
	if !slices.ContainsFunc(parts, other) {
		low = e.interleaved(parts[0], parts[1])
		high = e.interleaved(parts[2], parts[3])
		selector = [2]int64{0x5410, 0x7632}[at%2]
	}
	return e.asm.get(kindB32, "prmt.b32", low, high, selector)
}

// interleaved has the half of two words that bytes at the same place are in, by turns.
func (e *emitter) interleaved(x, y wordPart) operand {
	selector := [2]int64{0x5140, 0x7362}[x.at/2]
	return e.asm.get(
		kindB32, "prmt.b32", x.word, y.word, selector,
	)
}

// bytePair has an element of one word and one of another in its low bytes.
func (e *emitter) bytePair(x, y wordPart) operand {
	selector, at := int64(0), 0
	for _, first := range []int64{x.at, 4 + y.at} {
		for k := range x.d.Size() {
			selector |= (first + k) << at
			at += 4
		}
	}
	return e.asm.get(
		kindB32, "prmt.b32", x.word, y.word, selector,
	)
}

// packHalves combines two 16-bit floats to a word. Values that were rounded from f32 are
// rounded together by one instruction.
func (e *emitter) packHalves(d hlo.DType, low, high operand) operand {
	a := e.asm
	low = a.unroundedSource(d, low)
	high = a.unroundedSource(d, high)
	return a.get(
		kindB32, "cvt.rn."+d.String()+"x2.f32",
		a.in(kindF32, high),
		a.in(kindF32, low),
	)
}

// unroundedSource is the value that was rounded to d to give v, or v itself.
func (a *asm) unroundedSource(d hlo.DType, v operand) operand {
	r, known := a.rounded[v]
	if known && r.d == d {
		return r.of
	}
	return v
}

// bitsOf is an element of less than 32 bits as an integer register.
func (e *emitter) bitsOf(d hlo.DType, v operand) operand {
	a := e.asm
	switch {
	case v == yes:
		return a.in(kindB32, "1")
	case v == no:
		return a.in(kindB32, "0")
	case d == hlo.Pred:
		return a.get(kindB32, "selp.b32", 1, 0, v)
	case d == hlo.F16 || d == hlo.BF16:
		return a.get(
			kindB32, "cvt.u32.u16",
			a.get(
				kindB16,
				"cvt.rn."+d.String()+".f32",
				a.in(kindF32, a.unroundedSource(d, v)),
			),
		)
	case d.IsFloat():
		return e.codeOf(d, a.in(kindF32, v))
	}
	return a.in(kindB32, v)
}

// decoded is the number of a code of an 8-bit float, from a table.
func (e *emitter) decoded(d hlo.DType, code operand) operand {
	table := e.constant(tableOf(d))
	e.unpredictable = "a table is read, at what the data says"
	return e.load(global, hlo.F32, e.at32(table, code, 4), 1, yes)[0]
}

// codeOf is the code of the number of 8 or fewer bits that is nearest to an f32, halves to
// even. What is too large or NaN has the code that hlo.DType.FloatBits says.
func (e *emitter) codeOf(d hlo.DType, v operand) operand {
	a := e.asm
	bits := a.get(kindB32, "mov.b32", v)
	if d == hlo.F8E8M0FNU {
		return e.powerCode(v, bits)
	}
	code := e.magnitudeCode(d, a.get(kindF32, "abs.f32", v))
	top := d.ExponentBits() + d.FractionBits()
	sign := a.get(kindB32, "shr.u32", bits, 31)
	sign = a.get(kindB32, "shl.b32", sign, top)
	if d.FloatBits(math.Copysign(0, -1)) == 0 { // there is no −0
		none := a.get(kindPred, "setp.eq.s32", code, 0)
		sign = a.get(kindB32, "selp.b32", 0, sign, none)
	}
	code = a.get(kindB32, "or.b32", code, sign)
	nan := a.get(kindPred, "setp.nan.f32", v, v)
	return a.get(
		kindB32, "selp.b32",
		int64(d.FloatBits(math.NaN())), code, nan,
	)
}

// magnitudeCode is codeOf for numbers that are not negative. Those below the least normal
// number are rounded by an addition of one whose last bit is worth a denormal unit, the
// others by their bits.
func (e *emitter) magnitudeCode(d hlo.DType, x operand) operand {
	a := e.asm
	frac := d.FractionBits()
	drop := hlo.F32.FractionBits() - frac
	normal := d.FloatFromBits(1 << frac)
	shift := math.Ldexp(
		d.FloatFromBits(1), hlo.F32.FractionBits(),
	)
	sum := a.get(kindF32, "add.f32", x, f32(shift))
	below := a.get(
		kindB32, "sub.s32",
		a.get(kindB32, "mov.b32", sum),
		bitsOfF32(shift),
	)

	bits := a.get(kindB32, "mov.b32", x)
	odd := a.get(kindB32, "bfe.u32", bits, drop, 1)
	code := a.get(kindB32, "add.u32", bits, odd)
	half := int64(1) << (drop - 1)
	code = a.get(kindB32, "add.u32", code, half-1)
	code = a.get(kindB32, "shr.u32", code, drop)
	// The code of the least normal number is 1<<frac.
	least := bitsOfF32(normal) >> drop
	code = a.get(
		kindB32, "sub.s32", code, least-1<<frac,
	)

	small := a.get(kindPred, "setp.lt.f32", x, f32(normal))
	code = a.get(kindB32, "selp.b32", below, code, small)
	over := a.get(
		kindPred, "setp.gt.s32", code, largestCode(d),
	)
	return a.get(
		kindB32, "selp.b32",
		int64(d.FloatBits(math.Inf(1))), code, over,
	)
}

// bitsOfF32 are the bits of a number as an f32.
func bitsOfF32(x float64) int64 {
	return int64(math.Float32bits(float32(x)))
}

// largestCode is the code of the largest number of a small type.
func largestCode(d hlo.DType) int64 {
	code := int64(1)<<(d.ExponentBits()+d.FractionBits()) - 1
	for {
		x := d.FloatFromBits(uint64(code))
		if x == x && !math.IsInf(x, 0) {
			return code
		}
		code--
	}
}

// powerCode is codeOf for f8e8m0fnu: the exponent of the nearest power of two, halves up,
// and NaN for what is not positive or too large. Denormal numbers of f32 are 2^−127 below
// 1.5 times that.
func (e *emitter) powerCode(v, bits operand) operand {
	a := e.asm
	code := a.get(kindB32, "add.u32", bits, int64(1)<<22)
	code = a.get(kindB32, "shr.u32", code, 23)
	up := a.get(kindPred, "setp.ge.u32", bits, int64(3)<<21)
	below := a.get(kindB32, "selp.b32", 1, 0, up)
	denormal := a.get(kindPred, "setp.lt.u32", bits, int64(1)<<23)
	code = a.get(kindB32, "selp.b32", below, code, denormal)
	positive := a.get(kindPred, "setp.gt.f32", v, f32(0))
	return a.get(kindB32, "selp.b32", code, 255, positive)
}

// fit rounds or wraps a result to its element type, where registers are wider.
func (e *emitter) fit(d hlo.DType, v operand) operand {
	a := e.asm
	switch {
	case d == hlo.F32 || d == hlo.F64 ||
		d == hlo.Pred || d.Bits() >= 32:
		return v
	case d == hlo.F16 || d == hlo.BF16:
		v = a.in(kindF32, v)
		r := e.roundHalf(d, v)
		// The value before rounding may be packed together with another one later.
		if a.stable[v] {
			a.rounded[r] = unrounded{d, v}
		}
		return r
	case d.IsFloat():
		return e.decoded(d, e.codeOf(d, a.in(kindF32, v)))
	case d.IsSigned():
		return a.get(
			kindB32, "bfe.s32", a.in(kindB32, v),
			0, d.Bits(),
		)
	}
	return a.get(
		kindB32, "and.b32", v,
		int64(1)<<d.Bits()-1,
	)
}

// roundHalf rounds an f32 to a 16-bit float, and is an f32 again.
func (e *emitter) roundHalf(d hlo.DType, v operand) operand {
	a := e.asm
	bits := a.get(
		kindB16, "cvt.rn."+d.String()+".f32", v,
	)
	if d == hlo.F16 {
		return a.get(kindF32, "cvt.f32.f16", bits)
	}
	return a.get(
		kindF32,
		"mov.b32",
		a.get(kindB32, "shl.b32", a.get(kindB32, "cvt.u32.u16", bits), 16),
	)
}

// constant declares an array in global memory, once for equal bytes, and returns its
// address.
func (e *emitter) constant(data []byte) operand {
	name, ok := e.constants[string(data)]
	if !ok {
		name = operand(fmt.Sprintf("constant_%d", len(e.constants)))
		e.constants[string(data)] = name
		e.builder.Global(string(name), maxVectorBytes, data)
	}
	return e.asm.get(
		kindB64, "cvta.to.global.u64", e.asm.get(kindB64, "mov.u64", name),
	)
}

// uniform is the value of a literal whose elements are all equal.
func uniform(l *hlo.Literal) (operand, bool) {
	for k := range l.Ints {
		if l.Ints[k] != l.Ints[0] {
			return "", false
		}
	}
	for k := range l.Floats {
		if math.Float64bits(l.Floats[k]) != math.Float64bits(l.Floats[0]) {
			return "", false
		}
	}
	switch {
	case len(l.Ints) > 0:
		return immediate(
			l.Shape.DType,
			l.Ints[0],
			float64(l.Ints[0]),
		), true
	case len(l.Floats) > 0:
		return immediate(
			l.Shape.DType, 0, l.Floats[0],
		), true
	}
	return "", false
}

// literalBytes is a literal as a row-major array in memory.
func literalBytes(l *hlo.Literal) []byte {
	d := l.Shape.DType
	n := int64(max(len(l.Ints), len(l.Floats)))
	b := kernels.Buffer{
		Shape: hlo.Shape{DType: d, Dims: []int64{n}},
		Data:  make([]byte, n*d.Size()),
	}
	for k, v := range l.Ints {
		b.SetInt(int64(k), v)
	}
	for k, v := range l.Floats {
		b.SetFloat(int64(k), v)
	}
	return b.Data
}

// gatherPlaces loads elements, with one instruction for consecutive ones where
// alignment and conditions allow it.
func (e *emitter) gatherPlaces(m memory, d hlo.DType, places []place) []operand {
	var all []operand
	for len(places) > 0 {
		n := e.contiguousRun(d, places)
		p := e.guard(places[0].when)
		before := e.loads
		all = append(
			all,
			e.load(m.space, d, e.at(
				m, places[0].at, d.Size(),
			), n, p)...,
		)
		// Only global memory counts as traffic, and a load that was known already does
		// not.
		if m.space != shared && e.loads > before {
			e.logAccess(
				m.base, false, places[0].at, d.Size(),
				int64(n), places[0].when,
			)
		}
		places = places[n:]
	}
	return all
}

// scatterPlaces stores elements; see gatherPlaces.
func (e *emitter) scatterPlaces(
	m memory, d hlo.DType, places []place, vals []operand,
) {
	for len(places) > 0 {
		n := e.contiguousRun(d, places)
		p := e.guard(places[0].when)
		e.store(
			m.space, d,
			e.at(m, places[0].at, d.Size()),
			vals[:n], p,
		)
		if m.space != shared && p != no {
			e.logAccess(
				m.base, true, places[0].at, d.Size(),
				int64(n), places[0].when,
			)
		}
		places = places[n:]
		vals = vals[n:]
	}
}

// contiguousRun is the number of the first places that one instruction can access, a
// power of two.
func (e *emitter) contiguousRun(d hlo.DType, places []place) int {
	n := 1
	for 2*n <= len(places) &&
		int64(2*n)*d.Size() <= maxVectorBytes &&
		e.contiguous(places[:2*n]) {
		n *= 2
	}
	return n
}

// contiguous reports whether places are consecutive, begin at a multiple of their
// number, and have equal conditions.
func (e *emitter) contiguous(places []place) bool {
	at := make([]index.Expr, len(places))
	for k, x := range places {
		at[k] = x.at
		if !slices.Equal(x.when, places[0].when) {
			return false
		}
	}
	return coalesce.Contiguous(at)
}

// copyAsync copies bytes from global to shared memory (cp.async) where p holds. Where
// there does not hold, zeros are written instead of what is at from. The space is that of
// from.
func (e *emitter) copyAsync(s space, to, from address, bytes int64, p, valid operand) {
	opcode := "cp.async.ca.shared.global"
	if bytes == maxVectorBytes {
		opcode = "cp.async.cg.shared.global"
	}
	if s.hinted() {
		opcode += string(hinted)
	}
	e.async = true
	if valid == yes {
		e.access(p, s, opcode, to, from, bytes)
		return
	}
	// With a source size of 0, cp.async writes zeros and does not read.
	size := e.asm.get(
		kindB32, "selp.b32", bytes, 0,
		e.asm.in(kindPred, valid),
	)
	e.access(p, s, opcode, to, from, bytes, size)
}
