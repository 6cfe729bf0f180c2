package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
)

// An edit puts statements in the place of from … to−1 of a body.
type edit struct {
	from, to int
	with     []ptx.Stmt
}

// apply is an entry with the edit made.
func (x *edit) apply(e *ptx.Entry) ptx.Entry {
	changed := *e
	changed.Body = slices.Concat(
		e.Body[:x.from], x.with, e.Body[x.to:],
	)
	return changed
}

// A damage is one way to break a kernel wherever it has something of the kind.
type damage struct {
	name string
	ops  []ptx.Op // it is for
	// at damages statement k, an instruction of ops; nil: there is nothing to
	// damage. It may add registers to the entry, but changes none of the body.
	at func(e *ptx.Entry, k int) *edit
}

// sites are the damages done to an entry, one for each place.
func (d *damage) sites(e *ptx.Entry) (all []int) {
	for k := range e.Body {
		if s := &e.Body[k]; s.Kind == ptx.StmtInstr &&
			slices.Contains(d.ops, s.Instr.Opcode.Op) {
			scratch := *e
			if d.at(&scratch, k) != nil {
				all = append(all, k)
			}
		}
	}
	return all
}

func instruction(in ptx.Instr) ptx.Stmt { return ptx.Stmt{Kind: ptx.StmtInstr, Instr: in} }

// opcode reads an opcode of a test.
func opcode(text string) ptx.Opcode {
	c, err := ptx.ParseOpcode(text)
	if err != nil {
		panic(err)
	}
	return c
}

func instr(text string, operands ...ptx.Operand) ptx.Stmt {
	return instruction(ptx.Instr{Opcode: opcode(text), Operands: operands})
}

// register adds a register to an entry, and is it with the statement that
// declares it.
func register(e *ptx.Entry, t ptx.Type) (ptx.Operand, ptx.Stmt) {
	e.Regs = append(slices.Clip(e.Regs), ptx.RegSet{
		Prefix: "%damaged",
		Type:   t,
		N:      1,
	})
	n := int32(len(e.Regs))
	e.Regs[n-1].Prefix += string(rune('a' + n))
	return ptx.Operand{Kind: ptx.KindReg, Reg: ptx.Reg{Set: n}},
		ptx.Stmt{Kind: ptx.StmtReg, Index: n - 1}
}

// change is the damage of one instruction by another in its place.
func change(
	do func(e *ptx.Entry, in *ptx.Instr) bool,
) func(e *ptx.Entry, k int) *edit {
	return func(e *ptx.Entry, k int) *edit {
		in := e.Body[k].Instr
		in.Operands = slices.Clone(in.Operands)
		if !do(e, &in) {
			return nil
		}
		return &edit{k, k + 1, []ptx.Stmt{instruction(in)}}
	}
}

// drop leaves an instruction out where if says so; nil: everywhere.
func drop(if_ func(in *ptx.Instr) bool) func(e *ptx.Entry, k int) *edit {
	return func(e *ptx.Entry, k int) *edit {
		if if_ != nil && !if_(&e.Body[k].Instr) {
			return nil
		}
		return &edit{k, k + 1, nil}
	}
}

// before puts an instruction that computes anew what operand n of this one is:
// from its register, by opcode with number y.
func before(n int, opcode string, y int64) func(e *ptx.Entry, k int) *edit {
	return func(e *ptx.Entry, k int) *edit {
		in := e.Body[k].Instr
		if n >= len(in.Operands) {
			return nil
		}
		in.Operands = slices.Clone(in.Operands)
		o := &in.Operands[n]
		if o.Kind == ptx.KindTensor { // its first coordinate
			o.List = slices.Clone(o.List)
			o.List[1].List = slices.Clone(o.List[1].List)
			o = &o.List[1].List[0]
		}
		if o.Kind != ptx.KindReg {
			return nil
		}
		fresh, declared := register(e, e.RegType(o.Reg))
		first := instr(opcode, fresh, *o, ptx.Int(y))
		if opcode == "not.pred" {
			first = instr(opcode, fresh, *o)
		}
		*o = fresh
		return &edit{k, k + 1, []ptx.Stmt{declared, first, instruction(in)}}
	}
}

// swap exchanges operands i and j.
func swap(i, j int) func(e *ptx.Entry, k int) *edit {
	return change(func(_ *ptx.Entry, in *ptx.Instr) bool {
		o := in.Operands
		if j >= len(o) || same(&o[i], &o[j]) {
			return false
		}
		o[i], o[j] = o[j], o[i]
		return true
	})
}

func same(x, y *ptx.Operand) bool {
	return x.Kind == y.Kind && x.Neg == y.Neg &&
		x.Special == y.Special && x.Reg == y.Reg &&
		x.Bits == y.Bits && x.Sym == y.Sym &&
		slices.EqualFunc(x.List, y.List, func(a, b ptx.Operand) bool {
			return same(&a, &b)
		})
}

// swapElements exchanges the first two elements of vector operand n.
func swapElements(n int) func(e *ptx.Entry, k int) *edit {
	return change(func(_ *ptx.Entry, in *ptx.Instr) bool {
		if n >= len(in.Operands) ||
			in.Operands[n].Kind != ptx.KindVec ||
			len(in.Operands[n].List) < 2 {
			return false
		}
		list := slices.Clone(in.Operands[n].List)
		list[0], list[1] = list[1], list[0]
		in.Operands[n].List = list
		return !same(&list[0], &list[1])
	})
}

// number changes the integer that operand n is, from the end where n < 0.
func number(n int, to func(v int64) int64) func(e *ptx.Entry, k int) *edit {
	return change(func(_ *ptx.Entry, in *ptx.Instr) bool {
		if n < 0 {
			n += len(in.Operands)
		}
		if n < 0 || n >= len(in.Operands) || in.Operands[n].Kind != ptx.KindInt {
			return false
		}
		old := in.Operands[n].Int()
		in.Operands[n] = ptx.Int(to(old))
		return in.Operands[n].Int() != old
	})
}

func plus(y int64) func(int64) int64 { return func(v int64) int64 { return v + y } }
func halved(v int64) int64           { return v / 2 }

// shift moves the address that operand n is by bytes; 0: by its element.
func shift(
	n int, bytes int64, if_ func(in *ptx.Instr) bool,
) func(e *ptx.Entry, k int) *edit {
	return change(func(_ *ptx.Entry, in *ptx.Instr) bool {
		if n >= len(in.Operands) ||
			in.Operands[n].Kind != ptx.KindMem ||
			if_ != nil && !if_(in) {
			return false
		}
		by := bytes
		if by == 0 {
			by = int64(in.Opcode.Type(0).Bytes() * in.Opcode.Vec())
		}
		in.Operands[n].Bits += uint64(by)
		return true
	})
}

// become makes one modifier or operation another.
func become(pairs ...string) func(e *ptx.Entry, k int) *edit {
	return change(func(_ *ptx.Entry, in *ptx.Instr) bool {
		text := in.Opcode.String()
		for n := 0; n < len(pairs); n += 2 {
			if to, found := replaceWord(text, pairs[n], pairs[n+1]); found {
				c, err := ptx.ParseOpcode(to)
				in.Opcode = c
				return err == nil
			}
		}
		return false
	})
}

// replaceWord replaces dotted words of an opcode, once.
func replaceWord(text, old, by string) (string, bool) {
	for at := 0; at+len(old) <= len(text); at++ {
		whole := (at == 0 || text[at-1] == '.') &&
			(at+len(old) == len(text) || text[at+len(old)] == '.')
		if whole && text[at:at+len(old)] == old {
			return text[:at] + by + text[at+len(old):], true
		}
	}
	return "", false
}

func inGlobal(in *ptx.Instr) bool { return in.Opcode.Space() == ptx.ModGlobal }
func inShared(in *ptx.Instr) bool { return in.Opcode.Space() == ptx.ModShared }
func guarded(in *ptx.Instr) bool  { return !in.Guard.None() }

// unguard and negate are for what a predicate guards, jumps apart.
func unguard(_ *ptx.Entry, in *ptx.Instr) bool {
	was := guarded(in)
	in.Guard = ptx.Guard{}
	return was
}

func negate(_ *ptx.Entry, in *ptx.Instr) bool {
	in.Guard.Neg = !in.Guard.Neg
	return guarded(in)
}

// labelled is the index of the label that a jump goes to.
func labelled(e *ptx.Entry, in *ptx.Instr) int {
	name := in.Operands[0].Sym
	return slices.IndexFunc(e.Body, func(s ptx.Stmt) bool {
		return s.Kind == ptx.StmtLabel && s.Text == name
	})
}

// A jump is told by where it goes, and what sets its predicate.
func forward(e *ptx.Entry, k int) bool {
	return labelled(e, &e.Body[k].Instr) > k
}
func polls(e *ptx.Entry, k int) bool {
	to := labelled(e, &e.Body[k].Instr)
	return to < k &&
		slices.ContainsFunc(e.Body[to:k], func(s ptx.Stmt) bool {
			return s.Instr.Opcode.Op == ptx.OpMbarrierTryWait || s.Instr.Opcode.Has(ptx.ModAcquire)
		}) &&
		k-to < 5
}

func jump(
	if_ func(e *ptx.Entry, k int) bool,
) func(e *ptx.Entry, k int) *edit {
	return func(e *ptx.Entry, k int) *edit {
		if !guarded(&e.Body[k].Instr) || !if_(e, k) {
			return nil
		}
		return &edit{k, k + 1, nil}
	}
}

// early moves an instruction before the store or copy to shared memory that is
// the last one before it, with no label between.
func early(e *ptx.Entry, k int) *edit {
	for j := k - 1; j >= 0 && e.Body[j].Kind != ptx.StmtLabel; j-- {
		in := &e.Body[j].Instr
		op := in.Opcode.Op
		if op == ptx.OpBra || op == ptx.OpBarSync {
			return nil
		}
		if op == ptx.OpSt && inShared(in) || op == ptx.OpCpAsyncWaitGroup || op == ptx.OpWgmmaMMAAsync {
			return &edit{
				j,
				k + 1,
				slices.Concat([]ptx.Stmt{e.Body[k]}, e.Body[j:k]),
			}
		}
	}
	return nil
}

// someWarps lets only the first warp execute an instruction.
func someWarps(e *ptx.Entry, k int) *edit {
	if e.ReqNTid[0] <= device.WarpThreads || guarded(&e.Body[k].Instr) {
		return nil
	}
	p, declared := register(e, ptx.Pred)
	in := e.Body[k].Instr
	in.Guard = ptx.Guard{Reg: p.Reg}
	tid, declaredToo := register(e, ptx.B32)
	return &edit{
		k,
		k + 1,
		[]ptx.Stmt{
			declared, declaredToo, instr("mov.u32", tid, ptx.Sreg(ptx.TidX)),
			instr("setp.lt.u32", p, tid, ptx.Int(device.WarpThreads)), instruction(in),
		},
	}
}

// copySource makes a move of an operation: its result is source n.
func copySource(n int) func(e *ptx.Entry, k int) *edit {
	return change(func(e *ptx.Entry, in *ptx.Instr) bool {
		o := in.Operands
		if n >= len(o) || o[n].Kind != ptx.KindReg ||
			o[0].Kind != ptx.KindReg ||
			e.RegType(o[0].Reg) != e.RegType(o[n].Reg) {
			return false
		}
		t := e.RegType(o[0].Reg)
		in.Opcode = opcode("mov." + t.String())
		in.Operands = []ptx.Operand{o[0], o[n]}
		return true
	})
}

// promotions are the instructions that add a sum of wgmma, times a scale, to a total: d += x·s.
func promotions(e *ptx.Entry) (at []int) {
	sums := map[ptx.Reg]bool{}
	for _, s := range e.Body {
		if s.Kind == ptx.StmtInstr && s.Instr.Opcode.Op == ptx.OpWgmmaMMAAsync {
			for _, x := range s.Instr.Operands[0].List {
				sums[x.Reg] = true
			}
		}
	}
	for k, s := range e.Body {
		if o := s.Instr.Operands; s.Kind == ptx.StmtInstr && s.Instr.Opcode.Op == ptx.OpFma &&
			same(&o[0], &o[3]) && sums[o[1].Reg] {
			at = append(at, k)
		}
	}
	return at
}

// scaled is the damage of a promotion by another scale than s; all are those of the kernel.
func scaled(
	by func(e *ptx.Entry, s ptx.Operand, all []ptx.Operand) (with []ptx.Stmt, other ptx.Operand),
) func(e *ptx.Entry, k int) *edit {
	return func(e *ptx.Entry, k int) *edit {
		at := promotions(e)
		if !slices.Contains(at, k) {
			return nil
		}
		var all []ptx.Operand
		for _, n := range at {
			all = append(all, e.Body[n].Instr.Operands[2])
		}
		in := e.Body[k].Instr
		in.Operands = slices.Clone(in.Operands)
		with, other := by(e, in.Operands[2], all)
		if same(&other, &in.Operands[2]) {
			return nil
		}
		in.Operands[2] = other
		return &edit{k, k + 1, append(with, instruction(in))}
	}
}

// promotedEarly moves a wait for products behind the promotions of their sums.
func promotedEarly(e *ptx.Entry, k int) *edit {
	end := k + slices.IndexFunc(e.Body[k:], func(s ptx.Stmt) bool { return s.Kind == ptx.StmtLabel })
	last := -1
	for _, n := range promotions(e) {
		if n > k && n < end {
			last = n
		}
	}
	if last < 0 {
		return nil
	}
	return &edit{k, last + 1, append(slices.Clone(e.Body[k+1:last+1]), e.Body[k])}
}

// special replaces a special register by a number.
func special(s ptx.Special, by ptx.Operand) func(e *ptx.Entry, k int) *edit {
	return change(func(_ *ptx.Entry, in *ptx.Instr) bool {
		n := slices.IndexFunc(in.Operands, func(o ptx.Operand) bool {
			return o.Kind == ptx.KindSpecial && o.Special == s
		})
		if n >= 0 {
			in.Operands[n] = by
		}
		return n >= 0
	})
}

// float changes the float number among the sources.
func float(
	to func(e *ptx.Entry, v float32) float32,
) func(e *ptx.Entry, k int) *edit {
	return change(func(e *ptx.Entry, in *ptx.Instr) bool {
		n := slices.IndexFunc(in.Operands, func(o ptx.Operand) bool { return o.Kind == ptx.KindF32 })
		if n < 0 {
			return false
		}
		v := floatOf(in.Operands[n])
		in.Operands[n] = ptx.F32Imm(to(e, v))
		return floatOf(in.Operands[n]) != v
	})
}

func floatOf(o ptx.Operand) float32 { return math.Float32frombits(uint32(o.Bits)) }

var (
	copies      = []ptx.Op{ptx.OpCpAsync}
	ldOrSt      = []ptx.Op{ptx.OpLd, ptx.OpSt}
	setps       = []ptx.Op{ptx.OpSetp}
	products    = []ptx.Op{ptx.OpMMA}
	wgmmas      = []ptx.Op{ptx.OpWgmmaMMAAsync}
	bulks       = []ptx.Op{ptx.OpCpAsyncBulkTensor}
	arrivals    = []ptx.Op{ptx.OpMbarrierArrive}
	shuffles    = []ptx.Op{ptx.OpShflSync}
	named       = []ptx.Op{ptx.OpBarArrive, ptx.OpBarrierArrive}
	arithmetics = []ptx.Op{
		ptx.OpAdd, ptx.OpSub, ptx.OpMul, ptx.OpDiv, ptx.OpMin,
		ptx.OpMax, ptx.OpFma, ptx.OpEx2, ptx.OpLg2, ptx.OpSqrt,
		ptx.OpRsqrt, ptx.OpNeg, ptx.OpAbs,
	}
	jumps  = []ptx.Op{ptx.OpBra}
	acting = []ptx.Op{
		ptx.OpLd, ptx.OpSt, ptx.OpCpAsync, ptx.OpMov, ptx.OpXor,
		ptx.OpMbarrierInit, ptx.OpMbarrierArrive, ptx.OpCpAsyncBulkTensor, ptx.OpRet, ptx.OpRed,
		ptx.OpAtom, ptx.OpAdd, ptx.OpFence, ptx.OpFenceProxy,
	}
)

func isFloat(in *ptx.Instr) bool { return in.Opcode.Type(-1).Float() }

// damages are the kinds of mutants.
var damages = []damage{
	// Threads waiting for each other.
	{"barrier dropped", []ptx.Op{ptx.OpBarSync}, drop(nil)},
	{"barrier of the first warp only", []ptx.Op{ptx.OpBarSync}, someWarps},
	{"barrier before the last store", []ptx.Op{ptx.OpBarSync}, early},
	{"turn not passed", named, drop(nil)},
	{"turn of another", named, before(0, "add.s32", 1)},
	{"turn of fewer threads", append([]ptx.Op{ptx.OpBarSync}, named...), number(1, halved)},
	{"cluster barrier dropped", []ptx.Op{ptx.OpBarrierClusterArrive, ptx.OpBarrierClusterWait}, drop(nil)},

	// Copies that go on by themselves.
	{"copy dropped", copies, drop(nil)},
	{"commit dropped", []ptx.Op{ptx.OpCpAsyncCommitGroup}, drop(nil)},
	{"wait dropped", []ptx.Op{ptx.OpCpAsyncWaitGroup, ptx.OpCpAsyncWaitAll}, drop(nil)},
	{"waits for one group too few", []ptx.Op{ptx.OpCpAsyncWaitGroup}, number(0, plus(1))},
	{"wait before the last store", []ptx.Op{ptx.OpCpAsyncWaitGroup, ptx.OpCpAsyncWaitAll}, early},
	{"copies half the bytes", copies, change(func(_ *ptx.Entry, in *ptx.Instr) bool {
		n := in.Operands[2].Int() / 2
		in.Opcode, _ = ptx.ParseOpcode("cp.async.ca.shared.global")
		in.Operands[2] = ptx.Int(n)
		return n >= 4
	})},
	{"bytes beyond the end copied", copies, change(func(_ *ptx.Entry, in *ptx.Instr) bool {
		was := len(in.Operands) > 3
		in.Operands = in.Operands[:3]
		return was
	})},
	{"copy from the next place", copies, shift(1, 16, nil)},
	{"copy to the next place", copies, shift(0, 16, nil)},

	// What runs, and how often.
	{"guard dropped", acting, change(unguard)},
	{"guard negated", acting, change(negate)},
	{"jump forward dropped", jumps, jump(forward)},
	{"loop ended after one turn", jumps, jump(func(e *ptx.Entry, k int) bool {
		return !forward(e, k) && !polls(e, k)
	})},
	{"jump negated", jumps, change(negate)},
	{"comparison off by one", setps, become("lt", "le", "le", "lt", "ge", "gt", "gt", "ge")},
	{"comparison turned round", setps, become(
		"lt", "ge", "le", "gt", "ge", "lt", "gt", "le", "eq", "ne", "ne", "eq",
	)},
	{"compared with the next number", setps, number(2, plus(1))},
	{"comparison's sides swapped", setps, swap(1, 2)},
	{
		"one condition of two dropped", []ptx.Op{ptx.OpAnd, ptx.OpOr},
		change(func(_ *ptx.Entry, in *ptx.Instr) bool {
			was := in.Opcode.Type(0) == ptx.Pred
			in.Opcode, in.Operands = opcode("mov.pred"), in.Operands[:2]
			return was
		}),
	},

	// Where things are.
	{"global load from the next place", ldOrSt[:1], shift(1, 0, inGlobal)},
	{"global store to the next place", ldOrSt[1:], shift(0, 0, inGlobal)},
	{"shared load from the next place", ldOrSt[:1], shift(1, 0, inShared)},
	{"shared store to the next place", ldOrSt[1:], shift(0, 0, inShared)},
	{"thread number always 0", []ptx.Op{ptx.OpMov}, special(ptx.TidX, ptx.Int(0))},
	{"block number always 0", []ptx.Op{ptx.OpMov}, special(ptx.CTAidX, ptx.Int(0))},
	{"added number off by one", []ptx.Op{ptx.OpAdd, ptx.OpSub}, number(2, plus(1))},
	{"factor off by one", []ptx.Op{ptx.OpMul, ptx.OpMad}, number(2, plus(1))},
	{"shift off by one", []ptx.Op{ptx.OpShl, ptx.OpShr}, number(2, plus(1))},
	{
		"mask of one bit less",
		[]ptx.Op{ptx.OpAnd},
		number(2, func(v int64) int64 { return int64(uint64(v) >> 1) }),
	},
	{"swizzle dropped", []ptx.Op{ptx.OpXor}, copySource(1)},
	{"index arithmetic dropped", []ptx.Op{ptx.OpShr, ptx.OpShl, ptx.OpAnd}, copySource(1)},

	// Values.
	{"load dropped", ldOrSt[:1], drop(nil)},
	{"store dropped", ldOrSt[1:], drop(nil)},
	{"elements of a load swapped", ldOrSt[:1], swapElements(0)},
	{"elements of a store swapped", ldOrSt[1:], swapElements(1)},
	{"words of a permutation swapped", []ptx.Op{ptx.OpPrmt}, swap(1, 2)},
	{"sign of a load", ldOrSt[:1], become("s8", "u8", "u8", "s8", "s16", "u16", "u16", "s16")},
	{"operands swapped", []ptx.Op{
		ptx.OpSub, ptx.OpDiv, ptx.OpRem, ptx.OpSelp, ptx.OpShl, ptx.OpShr,
	}, swap(1, 2)},
	{"another operation", arithmetics, become("add.rn.f32", "sub.rn.f32", "sub.rn.f32", "add.rn.f32", "mul.rn.f32", "add.rn.f32", "max.NaN.f32", "min.NaN.f32", "min.NaN.f32", "max.NaN.f32",
		"div.rn.f32", "mul.rn.f32", "ex2", "lg2", "sqrt", "neg", "rsqrt", "sqrt")},
	{"arithmetic dropped", arithmetics, drop(isFloat)},
	{"sum not added to", arithmetics, copySource(2)},
	{"first value dropped", []ptx.Op{ptx.OpMov}, drop(func(in *ptx.Instr) bool {
		return in.Operands[1].IsImm()
	})},
	{"another first value", []ptx.Op{ptx.OpMov}, float(func(_ *ptx.Entry, v float32) float32 {
		if math.IsInf(float64(v), 0) {
			return -v
		}
		return v + 1
	})},
	{"constant doubled", arithmetics, float(func(_ *ptx.Entry, v float32) float32 { return 2 * v })},

	// Within a warp.
	{"shuffle over half the lanes", shuffles, number(2, halved)},
	{"shuffle dropped", shuffles, copySource(1)},
	{"shuffle of half a warp", shuffles, number(4, func(int64) int64 { return 0xffff })},
	{"vote of half a warp", []ptx.Op{ptx.OpVoteSync}, number(2, func(int64) int64 { return 0xffff })},
	{"vote of the lanes that have none", []ptx.Op{ptx.OpVoteSync}, before(1, "not.pred", 0)},
	{"bits not reversed", []ptx.Op{ptx.OpBrev}, copySource(1)},
	{
		"matrix turned round", []ptx.Op{ptx.OpLdmatrix},
		change(func(_ *ptx.Entry, in *ptx.Instr) bool {
			text := in.Opcode.String()
			to, found := replaceWord(text, "trans.shared", "shared")
			if !found {
				to, _ = replaceWord(text, "shared", "trans.shared")
			}
			in.Opcode = opcode(to)
			return true
		}),
	},
	{"matrix from the next place", []ptx.Op{ptx.OpLdmatrix}, shift(1, 16, nil)},
	{"parts of a matrix swapped", []ptx.Op{ptx.OpLdmatrix}, swapElements(0)},
	{"parts of a product's first operand swapped", products, swapElements(1)},
	{"parts of a product's second operand swapped", products, swapElements(2)},
	{"parts of a product's sum swapped", products, swapElements(3)},
	{"product dropped", products, drop(nil)},
	{"sum over blocks dropped", []ptx.Op{ptx.OpRed, ptx.OpAtom}, drop(nil)},

	// Warpgroups.
	{"wgmma dropped", wgmmas, drop(nil)},
	{"descriptor: next 16 bytes", wgmmas, before(1, "add.s64", 1)},
	{"descriptor: another leading offset", wgmmas, before(2, "xor.b64", 1<<21)},
	{"descriptor: another stride", wgmmas, before(1, "xor.b64", 1<<37)},
	{"descriptor: another stride of the second", wgmmas, before(2, "xor.b64", 1<<37)},
	{"descriptor: another swizzle", wgmmas, before(1, "xor.b64", -1<<63)},
	{"descriptors swapped", wgmmas, swap(1, 2)},
	{"products subtracted", wgmmas, number(4, func(v int64) int64 { return -v })},
	{"first operand turned round", wgmmas, number(6, func(v int64) int64 { return 1 - v })},
	{"second operand turned round", wgmmas, number(7, func(v int64) int64 { return 1 - v })},
	{"sum not kept", wgmmas, before(3, "not.pred", 0)},
	{"wgmma.fence dropped", []ptx.Op{ptx.OpWgmmaFence}, drop(nil)},
	{"wgmma.commit_group dropped", []ptx.Op{ptx.OpWgmmaCommitGroup}, drop(nil)},
	{"wgmma.wait_group dropped", []ptx.Op{ptx.OpWgmmaWaitGroup}, drop(nil)},
	{"wgmma.wait_group of one too few", []ptx.Op{ptx.OpWgmmaWaitGroup}, number(0, plus(1))},
	{"registers not asked for", []ptx.Op{ptx.OpSetmaxnreg}, drop(func(in *ptx.Instr) bool {
		return in.Opcode.Has(ptx.ModInc)
	})},

	// mbarriers and bulk copies.
	{"mbarrier not initialised", []ptx.Op{ptx.OpMbarrierInit}, drop(nil)},
	{"mbarrier of one arrival more", []ptx.Op{ptx.OpMbarrierInit}, number(1, plus(1))},
	{
		"mbarrier of one arrival fewer",
		[]ptx.Op{ptx.OpMbarrierInit},
		number(1, func(v int64) int64 { return max(1, v-1) }),
	},
	{"arrival dropped", arrivals, drop(nil)},
	{"arrival at the next mbarrier", arrivals, shift(1, 8, nil)},
	{"expects more bytes", arrivals, number(2, plus(16))},
	{"expects fewer bytes", arrivals, number(2, halved)},
	{"wrong parity", []ptx.Op{ptx.OpMbarrierTryWait}, before(2, "xor.b32", 1)},
	{"wait at the next mbarrier", []ptx.Op{ptx.OpMbarrierTryWait}, shift(1, 8, nil)},
	{"does not wait", jumps, jump(polls)},
	{"bulk copy dropped", bulks, drop(nil)},
	{"bulk commit dropped", []ptx.Op{ptx.OpCpAsyncBulkCommitGroup}, drop(nil)},
	{"bulk wait dropped", []ptx.Op{ptx.OpCpAsyncBulkWaitGroup}, drop(nil)},
	{"bulk wait for one group too few", []ptx.Op{ptx.OpCpAsyncBulkWaitGroup}, number(0, plus(1))},
	{"box from the next place", bulks, shift(1, 128, nil)},
	{"matrix to the next place", []ptx.Op{ptx.OpStmatrix}, shift(0, 16, nil)},
	{"parts of a stored matrix swapped", []ptx.Op{ptx.OpStmatrix}, swapElements(1)},
	{"matrix not stored", []ptx.Op{ptx.OpStmatrix}, drop(nil)},
	{"coordinate off by one", bulks, before(1, "add.s32", 1)},
	{"coordinates swapped", bulks, change(func(_ *ptx.Entry, in *ptx.Instr) bool {
		// Stores have the map before the address.
		n := slices.IndexFunc(in.Operands, func(o ptx.Operand) bool { return o.Kind == ptx.KindTensor })
		at := in.Operands[n]
		list := slices.Clone(at.List[1].List)
		if len(list) < 2 || same(&list[0], &list[1]) {
			return false
		}
		list[0], list[1] = list[1], list[0]
		at.List = []ptx.Operand{at.List[0], ptx.Vec(list...)}
		in.Operands[n] = at
		return true
	})},
	{"bulk copy to the next place", bulks, shift(0, 128, nil)},
	{"bulk copy tells the next mbarrier", bulks, shift(2, 8, nil)},
	{"both fences dropped", []ptx.Op{ptx.OpFenceMbarrierInit}, func(e *ptx.Entry, k int) *edit {
		if e.Body[k+1].Instr.Opcode.Op != ptx.OpFenceProxy {
			return nil
		}
		return &edit{k, k + 2, nil}
	}},
	{"fence.proxy.async dropped", []ptx.Op{ptx.OpFenceProxy}, drop(nil)},
	{"fence.mbarrier_init dropped", []ptx.Op{ptx.OpFenceMbarrierInit}, drop(nil)},
	// Scales of sums.
	{"scale not applied", []ptx.Op{ptx.OpFma}, scaled(func(*ptx.Entry, ptx.Operand, []ptx.Operand) ([]ptx.Stmt, ptx.Operand) {
		return nil, ptx.F32Imm(1)
	})},
	{"scale applied twice", []ptx.Op{ptx.OpFma}, scaled(func(e *ptx.Entry, s ptx.Operand, _ []ptx.Operand) ([]ptx.Stmt, ptx.Operand) {
		twice, declared := register(e, ptx.F32)
		return []ptx.Stmt{declared, instr("mul.rn.f32", twice, s, s)}, twice
	})},
	{"scale of a neighbour", []ptx.Op{ptx.OpFma}, scaled(func(_ *ptx.Entry, s ptx.Operand, all []ptx.Operand) ([]ptx.Stmt, ptx.Operand) {
		n := slices.IndexFunc(all, func(x ptx.Operand) bool { return !same(&x, &s) })
		return nil, all[max(0, n)]
	})},
	{"sums promoted before they are complete", []ptx.Op{ptx.OpWgmmaWaitGroup}, promotedEarly},
	{"total not kept", []ptx.Op{ptx.OpFma}, func(e *ptx.Entry, k int) *edit {
		if !slices.Contains(promotions(e), k) {
			return nil
		}
		return change(func(_ *ptx.Entry, in *ptx.Instr) bool {
			in.Operands[3] = ptx.F32Imm(0)
			return true
		})(e, k)
	}},
	// Flags between blocks.
	{"release weakened", ldOrSt[1:], become("release", "relaxed")},
	{"acquire weakened", ldOrSt[:1], become("acquire", "relaxed")},
	{"fence dropped", []ptx.Op{ptx.OpFence, ptx.OpMembar}, drop(nil)},
}
