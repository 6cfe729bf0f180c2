package sim

import (
	"errors"
	"fmt"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// fastForms are the operations with a loop of their own, by opcode as written, and
// the banks of their result and operands.
var fastForms = map[string]struct {
	run   handler
	banks string // d a b c, 3 for 32 bits, 6 for 64, p
}{
	"add.s32": {add32, "333"}, "add.u32": {add32, "333"},
	"sub.s32": {sub32, "333"}, "sub.u32": {sub32, "333"},
	"mul.lo.s32": {mul32, "333"}, "mul.lo.u32": {mul32, "333"},
	"mul.hi.u32": {mulHiU32, "333"},
	"mad.lo.s32": {mad32, "3333"}, "mad.lo.u32": {mad32, "3333"},
	"and.b32": {and32, "333"}, "or.b32": {or32, "333"},
	"xor.b32": {xor32, "333"},
	"shl.b32": {shl32, "333"}, "shr.u32": {shr32, "333"},
	"shr.b32": {shr32, "333"}, "shr.s32": {sar32, "333"},
	"min.s32": {minS32, "333"}, "max.s32": {maxS32, "333"},
	"min.u32": {minU32, "333"}, "max.u32": {maxU32, "333"},
	"add.f32": {addF32, "333"}, "add.rn.f32": {addF32, "333"},
	"sub.f32": {subF32, "333"}, "sub.rn.f32": {subF32, "333"},
	"mul.f32": {mulF32, "333"}, "mul.rn.f32": {mulF32, "333"},
	"fma.rn.f32": {fmaF32, "3333"},
	"add.s64":    {add64, "666"}, "add.u64": {add64, "666"},
	"sub.s64": {sub64, "666"}, "sub.u64": {sub64, "666"},
	"mul.lo.s64": {mul64, "666"}, "mul.lo.u64": {mul64, "666"},
	"and.b64": {and64, "666"}, "or.b64": {or64, "666"},
	"xor.b64": {xor64, "666"},
	"shl.b64": {shl64, "663"}, "shr.u64": {shr64, "663"},
	"shr.b64":      {shr64, "663"},
	"mul.wide.s32": {mulWideS32, "633"}, "mul.wide.u32": {mulWideU32, "633"},
	"mad.wide.s32": {madWideS32, "6336"}, "mad.wide.u32": {madWideU32, "6336"},
	"cvt.s64.s32": {widenS32, "63"}, "cvt.u64.u32": {widenU32, "63"},
	"cvt.u32.u64": {narrow64, "36"}, "cvt.s32.s64": {narrow64, "36"},
	"mov.b32": {mov32, "33"}, "mov.u32": {mov32, "33"},
	"mov.s32": {mov32, "33"}, "mov.f32": {mov32, "33"},
	"mov.b64": {mov64, "66"}, "mov.u64": {mov64, "66"},
	"mov.s64": {mov64, "66"}, "mov.f64": {mov64, "66"},
	"selp.b32": {selp32, "333p"}, "selp.u32": {selp32, "333p"},
	"selp.s32": {selp32, "333p"}, "selp.f32": {selp32, "333p"},
	"setp.eq.s32": {setpEqB32, "p33"}, "setp.eq.u32": {setpEqB32, "p33"},
	"setp.eq.b32": {setpEqB32, "p33"},
	"setp.ne.s32": {setpNeB32, "p33"}, "setp.ne.u32": {setpNeB32, "p33"},
	"setp.ne.b32": {setpNeB32, "p33"},
	"setp.lt.s32": {setpLtS32, "p33"}, "setp.le.s32": {setpLeS32, "p33"},
	"setp.gt.s32": {swap(setpLtS32), "p33"}, "setp.ge.s32": {swap(setpLeS32), "p33"},
	"setp.lt.u32": {setpLtU32, "p33"}, "setp.le.u32": {setpLeU32, "p33"},
	"setp.gt.u32": {swap(setpLtU32), "p33"}, "setp.ge.u32": {swap(setpLeU32), "p33"},
}

// swap exchanges the operands of a comparison: a > b is b < a.
func swap(h handler) handler {
	return func(w *warp, in *instr) {
		x := instr{d: in.d, a: in.b, b: in.a}
		h(w, &x)
	}
}

// errNotModelled is the error of an instruction that PTX allows and the simulator
// does not execute.
var errNotModelled = errors.New("is not modelled")

// bankLetters are the letters of the register banks in fastForms.
var bankLetters = map[bank]byte{
	bank32:   '3',
	bank64:   '6',
	bankPred: 'p',
}

// decode finds the handler of an instruction and its operands.
func (d *decoder) decode(in *instr, src *ptx.Instr) error {
	err := d.decodeOperation(in, src)
	if err != nil || !src.Opcode.Has(ptx.ModL2CacheHint) {
		return err
	}
	return d.policy(in, src)
}

// Cache policies have these upper bits, of which CUTLASS (TMA::CacheHintSm90) knows the
// values 0x10f0…, 0x12f0… and 0x14f0…; the rest of them is not documented. CUTLASS's DSL
// gives 0 where it means none.
const policyBits, policyShift = 1, 60

// policy makes an instruction with a cache hint check its last operand, which has no other
// effect: a register that createpolicy, or a constant, has made a policy.
func (d *decoder) policy(in *instr, src *ptx.Instr) error {
	r, err := d.source(&src.Operands[len(src.Operands)-1], ptx.B64)
	if err != nil {
		return err
	}
	access := in.run
	in.run = func(w *warp, in *instr) {
		for m := w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			if v := w.get(r, l); v != 0 && v>>policyShift != policyBits {
				w.reportf(InvalidOperation, l, "%#x is no cache policy", v)
				return
			}
		}
		access(w, in)
	}
	return nil
}

// decodeOperation is decode without the cache policy.
func (d *decoder) decodeOperation(in *instr, src *ptx.Instr) error {
	ops := src.Operands
	switch src.Opcode.Op {
	case ptx.OpMov, ptx.OpCvt, ptx.OpCvta:
		return d.move(in, src)
	case ptx.OpSetp:
		return d.setp(in, src)
	case ptx.OpSelp, ptx.OpSlct, ptx.OpSet, ptx.OpTestp:
		return d.choose(in, src)
	case ptx.OpLd, ptx.OpSt, ptx.OpAtom, ptx.OpRed:
		return d.memory(in, src)
	case ptx.OpBra:
		in.flow = branch
		d.jumps = append(d.jumps, jump{
			len(d.e.code), d.scope, ops[0].Sym,
		})
		return nil
	case ptx.OpRet, ptx.OpExit:
		in.flow = leave
		return nil
	case ptx.OpPrefetch, ptx.OpPrefetchu, ptx.OpNanosleep,
		ptx.OpApplypriority, ptx.OpDiscard,
		ptx.OpCpAsyncBulkPrefetch, ptx.OpCpAsyncBulkPrefetchTensor, ptx.OpBrkpt:
		// These have no effect on a functional model.
		in.run = func(*warp, *instr) {}
		return nil
	case ptx.OpGriddepcontrol:
		// Launches run one after the other: launch_dependents has no effect.
		in.run = func(*warp, *instr) {}
		if src.Opcode.Has(ptx.ModWait) {
			in.run = gridWait
		}
		return nil
	case ptx.OpTrap:
		in.run = func(w *warp, _ *instr) {
			w.reportf(InvalidOperation, w.first(), "trap")
		}
		return nil
	case ptx.OpCreatepolicy:
		in.list = d.destinations(&ops[0])
		in.run = func(w *warp, in *instr) {
			w.putAll(in.list[0], policyBits<<policyShift)
		}
		return nil
	case ptx.OpIsspacep:
		return d.isspacep(in, src)
	case ptx.OpLdmatrix, ptx.OpStmatrix, ptx.OpMovmatrix,
		ptx.OpMMA, ptx.OpWgmmaMMAAsync:
		return d.matrix(in, src)
	}
	if in.class == Synchronise || in.class == Exchange ||
		in.class == AsyncCopy || in.class == Matrix {
		return d.synchronise(in, src)
	}
	return d.arithmetic(in, src)
}

// fastForm uses the specialised loop for an opcode if there is one and the
// registers are of its banks.
func (d *decoder) fastForm(in *instr, src *ptx.Instr, regs []register) bool {
	h, ok := fastForms[src.Opcode.String()]
	if !ok || len(regs) != len(h.banks) {
		return false
	}
	for i, r := range regs {
		if bankLetters[r.bank] != h.banks[i] {
			return false
		}
	}
	index := [4]int32{}
	for i, r := range regs {
		index[i] = r.index
	}
	in.run = h.run
	in.d = index[0]
	in.a = index[1]
	in.b = index[2]
	in.c = index[3]
	if regs[0].bank != bankPred {
		in.result = regs[0].bank
	}
	return true
}

// sourceTypes are the types that the operands of an opcode are read as.
func sourceTypes(code *ptx.Opcode) [3]ptx.Type {
	t := code.Type(0)
	switch code.Op {
	case ptx.OpShl, ptx.OpShr, ptx.OpSzext:
		return [3]ptx.Type{t, ptx.U32, ptx.U32}
	case ptx.OpBfe:
		return [3]ptx.Type{t, ptx.U32, ptx.U32}
	case ptx.OpShf, ptx.OpPrmt, ptx.OpLop3,
		ptx.OpDp4a, ptx.OpDp2a, ptx.OpBmsk:
		return [3]ptx.Type{ptx.B32, ptx.B32, ptx.B32}
	case ptx.OpMad, ptx.OpMul:
		if code.Has(ptx.ModWide) {
			wide := map[ptx.Type]ptx.Type{
				ptx.U16: ptx.U32,
				ptx.S16: ptx.S32,
				ptx.U32: ptx.U64,
				ptx.S32: ptx.S64,
			}[t]
			return [3]ptx.Type{t, t, wide}
		}
	}
	return [3]ptx.Type{t, t, t}
}

// arithmetic decodes d = f(a, b, c): with a specialised loop if there is one, and
// with a function for one lane otherwise.
func (d *decoder) arithmetic(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	if code.Op == ptx.OpBfi || code.Op == ptx.OpLop3 {
		return d.fourSources(in, src)
	}
	types := sourceTypes(code)
	regs := []register{d.destination(&src.Operands[0])}
	for i := range src.Operands[1:] {
		r, err := d.source(
			&src.Operands[1+i],
			types[min(i, 2)],
		)
		if err != nil {
			return err
		}
		regs = append(regs, r)
	}
	if len(regs) > 4 {
		return errNotModelled
	}
	if d.fastForm(in, src, regs) {
		return nil
	}
	if code.Type(0) == ptx.Pred {
		return logic(in, code, regs)
	}
	if usesCarry(code) {
		in.carry(code, regs)
		return nil
	}
	f, err := scalarOf(code)
	if err != nil {
		return err
	}
	in.scalar(f, regs)
	return nil
}

// scalar makes the instruction one that computes lane by lane. The registers are
// the destination and up to three sources; if all have 32 bits, the loop avoids
// the look-up of the bank.
func (in *instr) scalar(f scalar, regs []register) {
	zero := register{bank32, 0}
	all := [4]register{{}, zero, zero, zero}
	copy(all[:], regs)
	in.list = regs[:1]
	narrow := true
	for _, r := range all {
		narrow = narrow && r.bank == bank32
	}
	if narrow {
		in.run = func(w *warp, _ *instr) {
			d := &w.r32[all[0].index]
			a := &w.r32[all[1].index]
			b := &w.r32[all[2].index]
			c := &w.r32[all[3].index]
			for m := w.active; m != 0; m &= m - 1 {
				l := firstLane(m)
				d[l] = uint32(f(
					uint64(a[l]),
					uint64(b[l]),
					uint64(c[l]),
				))
			}
		}
		return
	}
	in.run = func(w *warp, in *instr) {
		for m := w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			w.put(
				all[0],
				l,
				f(
					w.get(all[1], l),
					w.get(all[2], l),
					w.get(all[3], l),
				),
			)
		}
	}
}

// scalarOf is the operation of an opcode on one lane. Mixed precision and the
// pairs of sm_100 are not modelled.
func scalarOf(code *ptx.Opcode) (scalar, error) {
	switch code.Op {
	case ptx.OpPrmt:
		return permute(code), nil
	case ptx.OpDp4a:
		return dot4(
			code.Type(0).Signed(),
			code.Type(1).Signed(),
		), nil
	case ptx.OpDp2a:
		return dot2(
			code.Type(0).Signed(),
			code.Type(1).Signed(),
			code.Has(ptx.ModHi),
		), nil
	}
	var f scalar
	t := code.Type(0)
	switch {
	// Mixed precision and the pairs of sm_100 are not modelled.
	case code.Type(1) != ptx.NoMod || t == ptx.F32x2:
	case t == ptx.U16x2 || t == ptx.S16x2:
		f = halves16(code)
	case t.Float():
		f = floating(code)
	default:
		if f = integer(code); f != nil {
			f = clampNegative(code, f, t.Bits())
		}
	}
	if f == nil {
		return nil, errNotModelled
	}
	return f, nil
}

// logic is and, or, xor, not and mov of predicates, on all lanes at once.
func logic(in *instr, code *ptx.Opcode, regs []register) error {
	f := map[ptx.Op]func(a, b uint32) uint32{
		ptx.OpAnd: func(a, b uint32) uint32 { return a & b },
		ptx.OpOr:  func(a, b uint32) uint32 { return a | b },
		ptx.OpXor: func(a, b uint32) uint32 { return a ^ b },
		ptx.OpNot: func(a, _ uint32) uint32 { return ^a },
		ptx.OpMov: func(a, _ uint32) uint32 { return a },
	}[code.Op]
	if f == nil {
		return errNotModelled
	}
	in.d = regs[0].index
	in.a = regs[1].index
	if len(regs) > 2 {
		in.b = regs[2].index
	}
	in.list = regs[:1]
	in.run = func(w *warp, in *instr) {
		w.setPred(
			in.d,
			f(w.pred[in.a], w.pred[in.b]),
		)
	}
	return nil
}

// fourSources decodes bfi and lop3, which have four sources.
func (d *decoder) fourSources(in *instr, src *ptx.Instr) error {
	dst, p := d.pair(&src.Operands[0])
	var s [4]register
	var err error
	types := [4]ptx.Type{
		src.Opcode.Type(0),
		src.Opcode.Type(0),
		ptx.U32,
		ptx.U32,
	}
	for i := range s {
		s[i], err = d.source(&src.Operands[1+i], types[i])
		if err != nil {
			return err
		}
	}
	in.list = []register{dst, p}
	if p.bank != noBank || len(src.Operands) > 5 {
		return errNotModelled
	}
	n := src.Opcode.Type(0).Bits()
	isLop := src.Opcode.Op == ptx.OpLop3
	in.run = func(w *warp, in *instr) {
		for m := w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			x := w.get(s[0], l)
			y := w.get(s[1], l)
			z := w.get(s[2], l)
			u := w.get(s[3], l)
			if isLop {
				w.put(dst, l, logic3(x, y, z, u))
				continue
			}
			w.put(
				dst,
				l,
				insertField(x, y, int(z&255), int(u&255), n),
			)
		}
	}
	return nil
}

// move decodes mov, cvt and cvta. A move of a special register that counts reads
// the clock; other special registers are preloaded.
func (d *decoder) move(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	dst := &src.Operands[0]
	from := &src.Operands[1]
	switch {
	case code.Op == ptx.OpMov &&
		(dst.Kind == ptx.KindVec || from.Kind == ptx.KindVec):
		return d.pack(in, src)
	case code.Op == ptx.OpMov &&
		from.Kind == ptx.KindSpecial && isClock(from.Special):
		in.list = d.destinations(dst)
		s := from.Special
		in.run = func(w *warp, in *instr) {
			w.readClock(in, s)
		}
		return nil
	case code.Op == ptx.OpCvt:
		return d.convert(in, src)
	case code.Op == ptx.OpCvta:
		return d.cvta(in, src)
	}
	r, err := d.source(from, code.Type(0))
	if err != nil {
		return err
	}
	regs := []register{d.destination(dst), r}
	if code.Type(0) == ptx.Pred {
		return logic(in, code, regs)
	}
	if !d.fastForm(in, src, regs) {
		in.scalar(
			func(a, _, _ uint64) uint64 { return a }, regs,
		)
	}
	return nil
}

// isClock reports whether a special register counts.
func isClock(s ptx.Special) bool {
	return s >= ptx.Clock && s <= ptx.GlobaltimerHi
}

// pack decodes mov between a register and the vector of its parts, the lowest
// part first.
func (d *decoder) pack(in *instr, src *ptx.Instr) error {
	dst := d.destinations(&src.Operands[0])
	from, err := d.sources(
		&src.Operands[1], src.Opcode.Type(0),
	)
	if err != nil {
		return err
	}
	// The side with more registers determines the width of a part.
	n := src.Opcode.Type(0).Bits() /
		max(len(dst), len(from))
	mask := lowBits(n)
	in.list = dst
	in.run = func(w *warp, in *instr) {
		for m := w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			v := uint64(0)
			for i, r := range from {
				v |= w.get(r, l) & lowBits(64/len(from)) << (i * n)
			}
			for i, r := range dst {
				if len(dst) == 1 {
					w.put(r, l, v)
				} else {
					w.put(r, l, v>>(i*n)&mask)
				}
			}
		}
	}
	if src.Opcode.Type(0).Bits() > 64 {
		return errNotModelled
	}
	return nil
}

// convert decodes cvt. The destination register may be wider than the type:
// signed results are extended to it.
func (d *decoder) convert(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	regs := []register{d.destination(&src.Operands[0])}
	for i := range src.Operands[1:] {
		r, err := d.source(
			&src.Operands[1+i], code.Type(1),
		)
		if err != nil {
			return err
		}
		regs = append(regs, r)
	}
	if d.fastForm(in, src, regs) {
		return nil
	}
	make := conversion
	if len(regs) == 3 {
		make = packing
	}
	f, err := make(code)
	if err != nil {
		return err
	}
	// Registers may be wider than the type: the result is sign-extended.
	if t := code.Type(0); t.Signed() {
		narrow := f
		n := t.Bits()
		f = func(a, b, c uint64) uint64 {
			return uint64(signExtend(narrow(a, b, c), n))
		}
		// Registers of 16 bits take 16 bits of a sign-extended 8-bit result,
		// those of 32 bits all of it.
		if n == 16 || n == 8 {
			f = signedInto(
				f, regs[0], d.width(&src.Operands[0]),
			)
		}
	}
	in.scalar(f, regs)
	return nil
}

// signedInto keeps as many bits as the destination register has.
func signedInto(f scalar, _ register, bits int) scalar {
	return cut(bits, f)
}

// width is the bits of the register an operand names.
func (d *decoder) width(o *ptx.Operand) int {
	if o.Kind != ptx.KindReg {
		return 64
	}
	return d.src.RegType(o.Reg).Bits()
}

// cvta turns addresses of a space into generic ones, or back.
func (d *decoder) cvta(in *instr, src *ptx.Instr) error {
	r, err := d.source(
		&src.Operands[1], src.Opcode.Type(0),
	)
	if err != nil {
		return err
	}
	regs := []register{
		d.destination(&src.Operands[0]), r,
	}
	window := map[space]uint64{
		shared:        sharedWindow,
		sharedCluster: sharedWindow,
		local:         localWindow,
		param:         paramWindow,
	}[spaceOf(src.Opcode.Space())]
	// Generic addresses of global memory are the addresses themselves.
	switch {
	case window == 0:
		in.scalar(
			func(a, _, _ uint64) uint64 { return a }, regs,
		)
		if regs[0].bank == bank64 &&
			regs[1].bank == bank64 {
			in.run = mov64
			in.d = regs[0].index
			in.a = regs[1].index
			in.result = bank64
		}
	case src.Opcode.Has(ptx.ModTo):
		in.scalar(
			func(a, _, _ uint64) uint64 { return a &^ windowMask },
			regs,
		)
	default:
		in.scalar(
			func(a, _, _ uint64) uint64 { return a | window },
			regs,
		)
	}
	return nil
}

// isspacep decodes the test whether a generic address lies in a state space,
// which its window tells.
func (d *decoder) isspacep(in *instr, src *ptx.Instr) error {
	r, err := d.source(&src.Operands[1], ptx.U64)
	if err != nil {
		return err
	}
	window := map[space]uint64{
		shared:        sharedWindow,
		sharedCluster: sharedWindow,
		local:         localWindow,
		param:         paramWindow,
	}[spaceOf(src.Opcode.Space())]
	in.scalar(func(a, _, _ uint64) uint64 {
		if window == 0 {
			return boolBit(a&windowMask == deviceBase)
		}
		return boolBit(a&windowMask == window)
	}, []register{d.destination(&src.Operands[0]), r})
	return nil
}

// setp decodes comparisons into one or two predicates; the second receives the
// negated result.
func (d *decoder) setp(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	t := code.Type(0)
	p, q := d.pair(&src.Operands[0])
	a, err := d.source(&src.Operands[1], t)
	if err != nil {
		return err
	}
	b, err := d.source(&src.Operands[2], t)
	if err != nil {
		return err
	}
	if q.bank == noBank && p.bank == bankPred &&
		d.fastForm(in, src, []register{p, a, b}) {
		in.list = []register{p}
		return nil
	}
	// The general form: one or two destinations, any type, and a third operand
	// that the result is combined with.
	test := comparisonOf(code, t)
	if test == nil {
		return errNotModelled
	}
	join, err := d.joined(code, src.Operands)
	if err != nil {
		return err
	}
	compare := d.fastComparison(code, t, a, b)
	if compare == nil {
		compare = comparing(test, a, b)
	}
	in.list = []register{p, q}
	in.run = func(w *warp, in *instr) {
		v := compare(w)
		// The second destination receives the negated comparison, joined with
		// the same predicate.
		for i, r := range [2]register{p, q} {
			if r.bank == bankPred {
				w.setPred(r.index, join(w, v^-uint32(i)))
			}
		}
	}
	return nil
}

// comparing evaluates a test of two registers in every active lane; bit l of the
// result is that of lane l.
func comparing(
	test func(a, b uint64) bool, a, b register,
) func(w *warp) uint32 {
	return func(w *warp) (v uint32) {
		for m := w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			if test(w.get(a, l), w.get(b, l)) {
				v |= 1 << l
			}
		}
		return v
	}
}

// fastComparison is comparing by a specialised loop, into a predicate register of
// its own; nil if there is none.
func (d *decoder) fastComparison(
	code *ptx.Opcode, t ptx.Type, a, b register,
) func(w *warp) uint32 {
	h, ok := fastForms[fmt.Sprintf("setp.%v.%v", code.Mods()[0], t)]
	if !ok || a.bank != bank32 || b.bank != bank32 {
		return nil
	}
	x := &instr{
		d: int32(d.e.count[bankPred]),
		a: a.index,
		b: b.index,
	}
	d.e.count[bankPred]++
	return func(w *warp) uint32 {
		h.run(w, x)
		return w.pred[x.d]
	}
}

// comparisonOf is the test of two operands that a modifier of the opcode names,
// or nil.
func comparisonOf(code *ptx.Opcode, t ptx.Type) func(a, b uint64) bool {
	for _, m := range code.Mods() {
		if f := comparison(m, t, code.Has(ptx.ModFTZ)); f != nil {
			return f
		}
	}
	return nil
}

// joined returns the function that combines the result of a comparison with the
// predicate operand of setp.and, setp.or and setp.xor.
func (d *decoder) joined(code *ptx.Opcode, ops []ptx.Operand) (
	func(w *warp, v uint32) uint32, error,
) {
	if len(ops) < 4 {
		return func(_ *warp, v uint32) uint32 { return v }, nil
	}
	c, err := d.source(&ops[3], ptx.Pred)
	if err != nil {
		return nil, err
	}
	flip := uint32(0)
	if ops[3].Neg {
		flip = allLanes
	}
	switch {
	case code.Has(ptx.ModAnd):
		return func(w *warp, v uint32) uint32 {
			return v & (w.pred[c.index] ^ flip)
		}, nil
	case code.Has(ptx.ModOr):
		return func(w *warp, v uint32) uint32 {
			return v | (w.pred[c.index] ^ flip)
		}, nil
	}
	return func(w *warp, v uint32) uint32 {
		return v ^ w.pred[c.index] ^ flip
	}, nil
}

// choose decodes selp, slct, set and testp.
func (d *decoder) choose(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	types := [3]ptx.Type{
		code.Type(0), code.Type(0), ptx.Pred,
	}
	switch code.Op {
	case ptx.OpSlct:
		types[2] = code.Type(1)
	case ptx.OpSet:
		types = [3]ptx.Type{
			code.Type(1), code.Type(1), ptx.Pred,
		}
	}
	regs := []register{d.destination(&src.Operands[0])}
	for i := range src.Operands[1:] {
		r, err := d.source(&src.Operands[1+i], types[i])
		if err != nil {
			return err
		}
		regs = append(regs, r)
	}
	neg := len(src.Operands) > 3 && src.Operands[3].Neg
	if !neg && d.fastForm(in, src, regs) {
		return nil
	}
	f := chooser(code, neg)
	if f == nil {
		return errNotModelled
	}
	in.scalar(f, regs)
	return nil
}

// chooser is selp, slct, set or testp on one lane, or nil; with neg, the
// predicate of selp is negated.
func chooser(code *ptx.Opcode, neg bool) scalar {
	switch code.Op {
	case ptx.OpSelp:
		return func(a, b, c uint64) uint64 {
			if (c == 1) != neg {
				return a
			}
			return b
		}
	case ptx.OpSlct:
		ge := comparison(
			ptx.ModGE, code.Type(1), code.Has(ptx.ModFTZ),
		)
		return func(a, b, c uint64) uint64 {
			if ge(c, 0) {
				return a
			}
			return b
		}
	case ptx.OpTestp:
		for _, m := range code.Mods() {
			if m >= ptx.ModFinite && m <= ptx.ModSubnormal {
				is := classOf(m, floatTypes[code.Type(0)])
				return func(a, _, _ uint64) uint64 {
					return boolBit(is(a))
				}
			}
		}
	case ptx.OpSet:
		return setter(code)
	}
	return nil
}

// setter is set: all ones, or 1.0, where the comparison holds, and 0 elsewhere.
func setter(code *ptx.Opcode) scalar {
	test := comparisonOf(code, code.Type(1))
	if test == nil || code.Has(ptx.ModAnd) ||
		code.Has(ptx.ModOr) ||
		code.Has(ptx.ModXor) {
		return nil
	}
	yes := lowBits(code.Type(0).Bits())
	if ft, ok := floatTypes[code.Type(0)]; ok {
		yes = ft.encode(1, 0, nearest)
	}
	return func(a, b, _ uint64) uint64 {
		if test(a, b) {
			return yes
		}
		return 0
	}
}

// classOfOp is the class under which instructions of an opcode are counted.
func classOfOp(code *ptx.Opcode) Class {
	op := code.Op
	switch {
	case op == ptx.OpLd || op == ptx.OpSt:
		return memoryClass(code)
	case op == ptx.OpAtom || op == ptx.OpRed:
		return Atomic
	case op >= ptx.OpSqrt && op <= ptx.OpCos ||
		op == ptx.OpDiv && code.Type(0).Float():
		return Special
	case op >= ptx.OpAdd && op <= ptx.OpNeg &&
		code.Type(0).Float():
		return Floating
	case op >= ptx.OpBra && op <= ptx.OpNanosleep ||
		op == ptx.OpGriddepcontrol:
		return Control
	case op >= ptx.OpBarSync && op <= ptx.OpFenceMbarrierInit,
		op >= ptx.OpMbarrierInit && op <= ptx.OpMbarrierPendingCount,
		op == ptx.OpMapa, op == ptx.OpGetctarank:
		return Synchronise
	case op >= ptx.OpShflSync && op <= ptx.OpElectSync:
		return Exchange
	case op >= ptx.OpCpAsync && op <= ptx.OpCpReduceAsyncBulkTensor,
		op == ptx.OpStAsync, op == ptx.OpRedAsync:
		return AsyncCopy
	case op >= ptx.OpLdmatrix && op <= ptx.OpMMA,
		op >= ptx.OpWgmmaFence && op <= ptx.OpSetmaxnreg:
		return Matrix
	}
	return Arithmetic
}

// memoryClass is the class of a load or a store, by its state space.
func memoryClass(code *ptx.Opcode) Class {
	switch spaceOf(code.Space()) {
	case generic, global:
		return GlobalMemory
	case shared, sharedCluster:
		return SharedMemory
	}
	return OtherMemory
}

// carry makes the instruction one that reads or writes the carry flag, which each
// lane has one of.
func (in *instr) carry(code *ptx.Opcode, regs []register) {
	var all [4]register
	for i := range all {
		all[i] = register{bank32, 0}
	}
	copy(all[:], regs)
	f := carryOperation(code)
	takes := code.Op == ptx.OpAddc ||
		code.Op == ptx.OpSubc || code.Op == ptx.OpMadc
	gives := code.Has(ptx.ModCC)
	in.list = regs[:1]
	in.run = func(w *warp, _ *instr) {
		for m := w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			carry := uint64(0)
			if takes {
				carry = uint64(w.carry >> l & 1)
			}
			r, out := f(
				w.get(all[1], l),
				w.get(all[2], l),
				w.get(all[3], l), carry,
			)
			w.put(all[0], l, r)
			if gives {
				w.carry = w.carry&^(1<<l) | uint32(out)<<l
			}
		}
	}
}
