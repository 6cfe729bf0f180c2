package sim

import (
	"math"
)

// wgmmaQueue holds the wgmmas of a warp that have not been waited for. They read
// their operands and write their accumulators at the wait, as late as the program
// allows, so that a missing wait shows in the results.
type wgmmaQueue struct {
	// issued is the number of operations since the start.
	issued int
	// last is the instruction of the latest operation.
	last int32
	// open are the operations that are not committed.
	open []wgmmaOp
	// groups are the committed groups, oldest first.
	groups [][]wgmmaOp
	// busy is the number of operations under way that use a register.
	busy []uint8
	// dirty is set for registers written since the last wgmma.fence.
	dirty []bool
}

// wgmmaOp is an operation under way.
type wgmmaOp struct {
	in *instr
	pc int32
	// descA and descB are the matrix descriptors.
	descA uint64
	descB uint64
	// scaleD is set if the product is added to the accumulators instead of
	// replacing them.
	scaleD bool
}

// init allocates the state of the registers if the entry has wgmmas.
func (q *wgmmaQueue) init(e *entry) {
	if e.usesTensor() {
		q.busy = make([]uint8, e.count[bank32])
		q.dirty = make([]bool, e.count[bank32])
	}
}

// reset empties the queue; registers count as written before any fence.
func (q *wgmmaQueue) reset() {
	q.open = q.open[:0]
	q.groups = nil
	q.issued = 0
	clear(q.busy)
	for i := range q.dirty {
		q.dirty[i] = true
	}
}

// touch checks an instruction that reads or writes registers of wgmmas.
func (q *wgmmaQueue) touch(w *warp, in *instr) {
	for _, r := range in.tensor {
		if q.busy[r.index] > 0 {
			w.report(
				Finding{
					Kind:   MissingWait,
					Space:  "register",
					Detail: w.cta.entry.registerName(r) + " is used by a wgmma that has not been waited for",
				},
				-1,
			)
			return
		}
	}
	for _, r := range in.tensorWrites {
		q.dirty[r.index] = true
	}
}

// wgmmaFence is wgmma.fence: it orders earlier writes of registers before later
// operations.
func wgmmaFence(w *warp, in *instr) { clear(w.wg.dirty) }

// wgmma begins an operation. With Options.Races, it also checks that the
// registers were fenced and marks what the operation will read.
func wgmma(w *warp, in *instr) {
	if w.active != allLanes {
		w.notWhole("wgmma")
		return
	}
	s := in.mods.wg
	rest := in.list[s.acc:]
	op := wgmmaOp{in: in, pc: w.pc}
	if s.fromRegs {
		rest = rest[s.na:]
	} else {
		op.descA = w.get(rest[0], 0)
		rest = rest[1:]
	}
	op.descB = w.get(rest[0], 0)
	op.scaleD = w.get(rest[1], 0) == 1
	if op.scaleD && w.cta.watch &&
		w.cta.grid.opt.Uninitialised {
		w.checkAssigned(in.mods.sums)
	}
	c := &w.cta.work.counters
	// The operation is counted once for its four warps.
	if w.id%4 == 0 {
		c.WGMMA++
		c.MatrixFLOPs += int64(2 * s.m * s.n * s.k)
	}
	// From here to the wait, the operands may not be written.
	if w.cta.watch && w.cta.grid.opt.Races {
		w.checkFenced(in)
		w.useRegisters(in, 1)
		w.markOperands(&op, +1)
	}
	w.wg.open = append(w.wg.open, op)
	w.wg.issued++
	w.wg.last = w.pc
}

// checkWarpgroups reports, when the CTA has ended, wgmmas that not all four warps
// of a warpgroup executed and operations that were never waited for.
func (t *cta) checkWarpgroups() {
	for i, w := range t.warps {
		first := t.warps[i/4*4]
		// Four neighbouring warps form a warpgroup and must execute the same
		// wgmmas.
		lacks := i%4 == 3 || i == len(t.warps)-1
		if w.wg.issued != first.wg.issued ||
			lacks && i%4 != 3 && w.wg.issued > 0 {
			more := first
			if w.wg.issued > first.wg.issued {
				more = w
			}
			more.pc = more.wg.last
			more.reportf(
				DivergentBarrier, -1,
				"warp %d of the warpgroup executed %d wgmmas, warp %d %d",
				w.id, w.wg.issued, first.id, first.wg.issued,
			)
			return
		}
		if len(w.wg.open) > 0 || len(w.wg.groups) > 0 {
			w.pc = w.wg.last
			w.reportf(MissingWait, -1, "the warp exits without waiting for its wgmmas")
			return
		}
	}
}

// checkFenced reports a register of the operation that was written since the last
// wgmma.fence.
func (w *warp) checkFenced(in *instr) {
	s := in.mods.wg
	for _, r := range in.list[:s.acc+s.registersA()] {
		if w.wg.dirty[r.index] {
			w.report(
				Finding{
					Kind:   MissingFence,
					Space:  "register",
					Detail: w.cta.entry.registerName(r) + " was written since the last wgmma.fence",
				},
				-1,
			)
			return
		}
	}
}

// useRegisters adds by to the number of operations that use the registers of an
// instruction.
func (w *warp) useRegisters(in *instr, by int) {
	s := in.mods.wg
	for _, r := range in.list[:s.acc+s.registersA()] {
		w.wg.busy[r.index] += uint8(by)
	}
}

// wgmmaCommit is wgmma.commit_group.
func wgmmaCommit(w *warp, in *instr) {
	w.wg.groups = append(
		w.wg.groups,
		append([]wgmmaOp(nil), w.wg.open...),
	)
	w.wg.open = w.wg.open[:0]
}

// wgmmaWait is wgmma.wait_group c: all but the latest c groups are executed.
// Every lane has then waited for what the operations of the warp read: whichever
// lane arrives at a barrier next arrives for all.
func wgmmaWait(w *warp, in *instr) {
	n := len(w.wg.groups) - int(in.c)
	if n <= 0 {
		return
	}
	for _, g := range w.wg.groups[:n] {
		for i := range g {
			w.execute(&g[i])
		}
	}
	w.wg.groups = append(
		w.wg.groups[:0],
		w.wg.groups[n:]...,
	)
	w.clock.joinLanes()
}

// operand is a matrix in shared memory as a descriptor defines it (PTX ISA,
// "Matrix descriptor"): bits 0–13 are the start, 16–29 the leading offset, 32–45
// the stride offset, all in units of 16 bytes; 62–63 are the swizzle.
type operand struct {
	start, leading, stride int64
	swizzle                Swizzle
	// mnMajor is set if elements along m or n are contiguous, and not those along
	// k.
	mnMajor bool
	// bytes is the size of an element.
	bytes int64
}

// decodeDescriptor reads a descriptor; it returns false for a base offset, which
// is not modelled.
func decodeDescriptor(d uint64, bits int, mnMajor bool) (operand, bool) {
	o := operand{
		start:   int64(d&0x3fff) << 4,
		leading: int64(d>>16&0x3fff) << 4,
		stride:  int64(d>>32&0x3fff) << 4,
		mnMajor: mnMajor,
		bytes:   int64(bits / 8),
	}
	o.swizzle = [4]Swizzle{SwizzleNone, Swizzle128, Swizzle64, Swizzle32}[d>>62]
	return o, d>>49&7 == 0
}

// address of element (mn, k): canonical layouts of CUTLASS' GMMA descriptors,
// in units of 16 bytes.
//
//	K-major:  swizzled rows of the swizzle's width, groups of 8 rows a stride
//	          apart; unswizzled 8×16-byte core matrices, leading along k
//	MN-major: swizzled the same with mn and k exchanged, leading along mn;
//	          unswizzled core matrices, stride along mn, leading along k
func (o *operand) address(mn, k int64) int64 {
	width := int64(o.swizzle.Bytes())
	if o.swizzle == SwizzleNone {
		width = 16
	}
	fast, slow := k*o.bytes, mn
	if o.mnMajor {
		fast, slow = mn*o.bytes, k
	}
	// An address consists of a position in a row of the swizzle's width, the
	// row within a group of eight, and the steps to the group and along the
	// operand.
	inner, outer := fast%width, fast/width
	group, row := slow/8, slow%8
	outerStep, groupStep := o.leading, o.stride
	if o.mnMajor && o.swizzle == SwizzleNone {
		outerStep, groupStep = o.stride, o.leading
	}
	return o.swizzle.apply(o.start + row*width + inner + outer*outerStep + group*groupStep)
}

// operands decodes both descriptors of an operation.
func (w *warp) operands(op *wgmmaOp) (a, b operand, ok bool) {
	s := op.in.mods.wg
	okA := true
	if !s.fromRegs {
		a, okA = decodeDescriptor(
			op.descA, s.a.bits, s.transA,
		)
	}
	b, okB := decodeDescriptor(
		op.descB, s.a.bits, s.transB,
	)
	if !okA || !okB {
		w.reportf(InvalidOperation, -1, "a matrix descriptor with a base offset is not modelled")
	}
	return a, b, okA && okB
}

// each16 calls f with the address of every 16 bytes of shared memory that the
// warp's part of the operation reads, and the coordinates (mn, k) of their first
// element.
func (o *operand) each16(
	mn0, mn, k int64, f func(addr, mn, k int64),
) {
	per := 16 / o.bytes
	if o.mnMajor {
		for c := range k {
			for r := int64(0); r < mn; r += per {
				f(o.address(mn0+r, c), r, c)
			}
		}
		return
	}
	for r := range mn {
		for c := int64(0); c < k; c += per {
			f(o.address(mn0+r, c), r, c)
		}
	}
}

// firstRow is the first of the 16 rows that the warp computes of the 64 of its
// warpgroup.
func (w *warp) firstRow() int64 { return int64(w.id%4) * 16 }

// markOperands adds by to the number of asynchronous reads of the operands in
// shared memory.
func (w *warp) markOperands(op *wgmmaOp, by int) {
	a, b, ok := w.operands(op)
	if !ok {
		return
	}
	s := op.in.mods.wg
	mark := func(addr, _, _ int64) {
		if t, off := w.cta.sharedAt(uint64(addr), 16); t != nil {
			w.mark(t, off, 16, false, by)
		}
	}
	if !s.fromRegs {
		a.each16(w.firstRow(), 16, int64(s.k), mark)
	}
	b.each16(0, int64(s.n), int64(s.k), mark)
}

// loadOperand reads an operand from shared memory into m[k][mn], with n elements
// along mn; it returns false if the operand is out of bounds.
func (w *warp) loadOperand(
	o *operand, mn0, n, k int64,
	el *elementType, m []float32,
) bool {
	inBounds := true
	per := int(16 / o.bytes)
	mask := lowBits(el.bits)
	o.each16(mn0, n, k, func(addr, r, c int64) {
		t, off := w.cta.sharedAt(uint64(addr), 16)
		if t == nil {
			if inBounds {
				w.sharedOutside(uint64(addr), 16, -1)
			}
			inBounds = false
			return
		}
		w.asyncRead(t, off, 16, 0)
		b := t.shared[off : off+16]
		for i := range per {
			v := el.decode(
				uint32(
					fetch(b[i*int(o.bytes):], uint8(o.bytes)) & mask,
				),
			)
			if o.mnMajor {
				m[c*n+r+int64(i)] = v
			} else {
				m[(c+int64(i))*n+r] = v
			}
		}
	})
	return inBounds
}

// execute computes the warp's 16 rows of an operation.
func (w *warp) execute(op *wgmmaOp) {
	at := w.pc
	// Findings belong to the instruction that issued the operation.
	w.pc = op.pc
	defer func() { w.pc = at }()
	s := op.in.mods.wg
	da, db, ok := w.operands(op)
	if !ok {
		return
	}
	if w.cta.watch && w.cta.grid.opt.Races {
		w.useRegisters(op.in, -1)
		w.markOperands(op, -1)
	}
	var a [32 * 16]float32 // [k][row]
	var b [32 * 256]float32
	// The operands are converted to float32, which holds all of their types
	// exactly.
	if s.fromRegs {
		w.fragmentsA(op.in, &a)
	} else if !w.loadOperand(
		&da, w.firstRow(), 16,
		int64(s.k), &s.a, a[:],
	) {
		return
	}
	if !w.loadOperand(
		&db, 0, int64(s.n),
		int64(s.k), &s.b,
		b[:s.n*s.k],
	) {
		return
	}
	sign := float32(1)
	if s.negA != s.negB {
		sign = -1
	}
	if sign < 0 {
		for i := range a {
			a[i] = -a[i]
		}
	}
	if s.integer {
		w.accumulateInteger(op, &a, b[:s.n*s.k])
		return
	}
	w.accumulate(op, &a, b[:s.n*s.k])
}

// fragmentsA collects A from registers into a[k][row].
func (w *warp) fragmentsA(in *instr, a *[32 * 16]float32) {
	s := in.mods.wg
	for i := range s.na {
		w.scatter(
			in.list[s.acc+i], &s.a,
			func(l, e int, v float32) {
				r, c := s.fragmentA(l, i, e)
				a[c*16+r] = v
			},
		)
	}
}

// accumulate adds A·B to the warp's 16×n accumulators, in order of k. Register
// i of lane l (or half of one, for 16-bit results) is at row l/4 + 8(i/2%2) and
// column 2(l%4) + i%2 + 8(i/4).
func (w *warp) accumulate(
	op *wgmmaOp, a *[32 * 16]float32, b []float32,
) {
	s := op.in.mods.wg
	half := s.d.bits == 16
	var acc [256]float32
	for r := range 16 {
		row := acc[:s.n]
		w.accumulators(op, r, row, half)
		if s.a.bits == 8 && w.cta.grid.opt.ShortSums {
			for j := range row {
				row[j] = addShort(row[j], r, j, s, a, b)
			}
			w.setAccumulators(op, r, row, half)
			continue
		}
		// k is 8, 16 or 32: a multiple of four.
		for k := 0; k < s.k; k += 4 {
			addFour(
				row,
				[4]float32{
					a[k*16+r],
					a[(k+1)*16+r],
					a[(k+2)*16+r],
					a[(k+3)*16+r],
				},
				b[k*s.n:],
			)
		}
		w.setAccumulators(op, r, row, half)
	}
}

// shortBits is the bits of each of the products of 8-bit floats that a wgmma adds, counted
// from the leading bit of the largest of them, and of its sums (DeepSeek-V3 Technical
// Report, 2024, §3.5.2; Zhang et al., SageAttention2, 2024, §3.4: 13 bits after the
// point). What is below is cut off.
const shortBits = 14

// addShort adds row r of a, times column j of b, to a sum of shortBits bits.
func addShort(sum float32, r, j int, s *wgmmaShape, a *[32 * 16]float32, b []float32) float32 {
	var all [32]float32
	largest := uint32(0)
	for k := range s.k {
		// Products of f8 are exact in f32.
		all[k] = a[k*16+r] * b[k*s.n+j]
		largest = max(largest, math.Float32bits(all[k])>>23&0xff)
	}
	total := float64(sum)
	if largest == 0xff {
		for _, x := range all[:s.k] {
			total += float64(x)
		}
		return float32(total)
	}
	// In units of the last bit that is kept, products are integers.
	exponent := int(largest) - 127 - (shortBits - 1)
	scale := math.Ldexp(1, -exponent)
	units := int64(0)
	for _, x := range all[:s.k] {
		units += int64(float64(x) * scale)
	}
	total += math.Ldexp(float64(units), exponent)
	const cut = 1<<(53-shortBits) - 1
	return float32(math.Float64frombits(math.Float64bits(total) &^ cut))
}

// addFour adds four rows of b to a row, each weighted by an element of x, one
// after the other. Four at once halve the loads and stores of the row.
func addFour(row []float32, x [4]float32, b []float32) {
	n := len(row)
	b0 := b[:n]
	b1 := b[n : 2*n]
	b2 := b[2*n : 3*n]
	b3 := b[3*n : 4*n]
	for j, s := range row {
		s += x[0] * b0[j]
		s += x[1] * b1[j]
		s += x[2] * b2[j]
		s += x[3] * b3[j]
		row[j] = s
	}
}

// accumulators reads a row of the accumulators, or zeros if the operation
// replaces them.
func (w *warp) accumulators(op *wgmmaOp, r int, row []float32, half bool) {
	if !op.scaleD {
		clear(row)
		return
	}
	for j := range row {
		i, l := accumulatorAt(r, j)
		if half {
			row[j] = halfToFloat(
				uint16(w.r32[op.in.list[i>>1].index][l] >> (i &
					1 * 16)),
			)
			continue
		}
		row[j] = math.Float32frombits(
			w.r32[op.in.list[i].index][l],
		)
	}
}

// setAccumulators writes a row of the accumulators.
func (w *warp) setAccumulators(op *wgmmaOp, r int, row []float32, half bool) {
	for j, v := range row {
		i, l := accumulatorAt(r, j)
		if half {
			d := &w.r32[op.in.list[i>>1].index]
			d[l] = d[l]&^(0xffff<<(i&1*16)) |
				uint32(floatToHalf(v))<<(i&1*16)
			continue
		}
		w.r32[op.in.list[i].index][l] = canonical(v)
	}
}

// accumulateInteger is accumulate for integers, with 64-bit sums that are clamped
// or truncated.
func (w *warp) accumulateInteger(
	op *wgmmaOp, a *[32 * 16]float32, b []float32,
) {
	s := op.in.mods.wg
	for r := range 16 {
		for j := range s.n {
			i, l := accumulatorAt(r, j)
			d := &w.r32[op.in.list[i].index]
			v := int64(0)
			if op.scaleD {
				v = int64(int32(d[l]))
			}
			for k := range s.k {
				v += int64(a[k*16+r]) *
					int64(b[k*s.n+j])
			}
			if s.saturate {
				v = int64(int32(saturate32(v)))
			}
			d[l] = uint32(v)
		}
	}
}

// setmaxnreg has no effect in the simulator, but its count must be one that
// devices accept.
func setmaxnreg(w *warp, in *instr) {
	n := in.c
	if n < 24 || n > 256 || n%8 != 0 {
		w.reportf(InvalidOperation, -1, "setmaxnreg %d: it must be a multiple of 8 from 24 to 256", n)
	}
}
