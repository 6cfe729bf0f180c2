package rowkernel

import (
	"cmp"
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A rowEmitter emits the function of a kernel. The remaining rows are in RAX,
// the element of the row is in RCX, the address of the scratch in RDI, and the
// addresses of accesses are in accessRegs.
type rowEmitter struct {
	kernel      *Kernel
	a           *amd64.Assembler
	accesses    []*Access
	reg         map[*Access]amd64.Reg // The address register of an access.
	ahead       map[*Access]amd64.Reg // The registers of prefetch addresses.
	nonTemporal bool                  // Stores are non-temporal where they may be.
	unroll      int                   // The number of vectors in turn.
	wide        bool                  // Rounds have vectors of 64 bytes.
	rounds      bool                  // These are rounded to bf16 by an instruction.
	// Rows of a batch are read a cache line at a time, each in turn: at four places, two
	// lines at a time take 1.03 to 1.1 times as long from memory (Zen 4).
	lineByLine bool
	fetch      int64                  // The number of rows to prefetch ahead, or 0.
	distance   int64                  // The number of bytes to prefetch ahead, or 0.
	second     int64                  // The same to the second cache.
	fetching   []int                  // The sweeps that prefetch, each its part of a row.
	batch      int64                  // The number of rows that are done at a time.
	rowSpacing int64                  // The distance of these rows.
	c          *amd64.Chain           // The chain at hand, see newChain.
	made       map[*Value]amd64.Value // The values of the chain at hand.
	// The row scalars of the chain at hand, as vectors.
	splats map[*Value]amd64.Value
}

// accessRegs are the address registers.
var accessRegs = [MaxAccesses]amd64.Reg{
	amd64.RSI, amd64.RDX, amd64.RBX, amd64.R8,
	amd64.R9, amd64.R10, amd64.R11, amd64.R12,
	amd64.R13, amd64.R14,
}

// Memory is what assembling code uses again: an assembler, and the chain at hand. One code
// is assembled in it at a time; the zero Memory is ready.
type Memory struct {
	Assembler amd64.Assembler
	Chain     amd64.Chain

	made, splats map[*Value]amd64.Value // Those of a rowEmitter.
}

// emit emits the function of a kernel.
func (n *Kernel) emit(o Options, nonTemporal bool) (*amd64.Assembler, error) {
	m := cmp.Or(o.Memory, &Memory{})
	if m.made == nil {
		m.made, m.splats = map[*Value]amd64.Value{}, map[*Value]amd64.Value{}
	}
	m.Assembler.Reset()
	m.Assembler.Record = o.record
	e := &rowEmitter{
		kernel:      n,
		a:           &m.Assembler,
		c:           &m.Chain,
		accesses:    n.moving(),
		reg:         map[*Access]amd64.Reg{},
		ahead:       map[*Access]amd64.Reg{},
		made:        m.made,
		splats:      m.splats,
		nonTemporal: nonTemporal,
		unroll:      int(o.Unroll),
		wide:        o.Wide,
		rounds:      o.RoundsHalves,
		fetch:       max(0, o.Prefetch),
		distance:    o.Ahead,
		fetching:    n.fetchingSweeps(o),
	}
	if e.lineByLine = o.Unroll == 0; e.lineByLine {
		e.unroll = int(n.defaultUnroll())
	}
	switch {
	case o.Prefetch >= 0:
		e.distance = 0
	case o.Ahead < 0:
		e.distance = n.defaultAhead(o)
		e.second = n.secondAhead(o, e.distance)
	}
	e.batch, e.rowSpacing = n.rowBatch()
	e.assignRegisters()
	e.emitPrologue()
	if err := e.emitIndices(); err != nil {
		return nil, err
	}
	if nonTemporal {
		e.a.Emit(amd64.SFENCE)
	}
	e.a.Emit(amd64.RET)
	return e.a, nil
}

// emitIndices emits the loop over the indices of a call. If they are rows,
// their number is in RAX.
func (e *rowEmitter) emitIndices() error {
	dim, _ := e.kernel.callDim()
	if dim == len(e.kernel.Extents)-2 {
		return e.emitBatches()
	}
	loop := e.a.NewLabel()
	e.a.Bind(loop)
	if err := e.emitInside(dim + 1); err != nil {
		return err
	}
	e.advanceIndex(dim)
	e.a.Emit(amd64.SUB, indicesLeft, amd64.Imm(1))
	e.a.Emit(amd64.JG, loop)
	return nil
}

// indicesLeft counts the indices of a call where they are not rows.
const indicesLeft = amd64.R15

// emitInside emits all of dimension d and those after it, with a counter in
// memory.
func (e *rowEmitter) emitInside(d int) error {
	e.a.Emit(
		amd64.MOV,
		amd64.RAX,
		amd64.Imm(e.kernel.Extents[d]),
	)
	if d == len(e.kernel.Extents)-2 {
		return e.emitBatches()
	}
	left, loop := amd64.Mem{
		Base: amd64.RDI,
		Disp: int32(e.kernel.schedule.counterOffset()) + int32(8*d),
	}, e.a.NewLabel()
	e.a.Emit(amd64.MOV, left, amd64.RAX)
	e.a.Bind(loop)
	if err := e.emitInside(d + 1); err != nil {
		return err
	}
	e.advanceIndex(d)
	e.a.Emit(amd64.MOV, amd64.RAX, left)
	e.a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	e.a.Emit(amd64.MOV, left, amd64.RAX)
	e.a.Emit(amd64.JG, loop)
	return nil
}

// advanceIndex moves all accesses from the end of an index of dimension d to
// the next index.
func (e *rowEmitter) advanceIndex(d int) {
	for _, s := range e.accesses {
		step := s.bytes() *
			(s.Strides[d] -
				e.kernel.Extents[d+1]*s.Strides[d+1])
		if step != 0 {
			e.a.Emit(amd64.ADD, e.reg[s], amd64.Imm(step))
		}
	}
}

// emitBatches emits all rows: as many batches as there are, then single rows.
func (e *rowEmitter) emitBatches() error {
	if e.rowSpacing > 1 {
		err := e.emitSpacedRows()
		if err != nil || e.batchesDivide() {
			return err
		}
		if e.rowSpacing = 1; !e.kernel.ReducesColumns() {
			e.batch = 1
		}
	}
	err := e.emitRows(e.batch)
	if err != nil || e.batchesDivide() {
		return err
	}
	e.batch = 1
	return e.emitRows(1)
}

// batchesDivide reports whether the rows of every call are a whole number of
// batches.
func (e *rowEmitter) batchesDivide() bool {
	rows := e.kernel.rows()
	unit := e.batch * e.rowSpacing
	dim, maxCount := e.kernel.callDim()
	if dim == len(e.kernel.Extents)-2 && maxCount < rows {
		return maxCount%unit == 0 && rows%maxCount%unit == 0
	}
	return rows%unit == 0
}

// emitSpacedRows emits batches of rows at a distance: the first rows of each
// part, the second ones, and so on.
func (e *rowEmitter) emitSpacedRows() error {
	a := e.a
	loop := a.NewLabel()
	more := a.NewLabel()
	done := a.NewLabel()
	a.Bind(more)
	a.Emit(
		amd64.SUB,
		amd64.RAX,
		amd64.Imm(e.batch*e.rowSpacing),
	)
	a.Emit(amd64.JL, done)
	a.Emit(
		amd64.MOV, batchesLeft, amd64.Imm(e.rowSpacing),
	)
	a.Bind(loop)
	if err := e.emitRow(e.batch); err != nil {
		return err
	}
	e.advanceRows(1)
	a.Emit(amd64.SUB, batchesLeft, amd64.Imm(1))
	a.Emit(amd64.JG, loop)
	e.advanceRows((e.batch - 1) * e.rowSpacing)
	a.Emit(amd64.JMP, more)
	a.Bind(done)
	a.Emit(
		amd64.ADD,
		amd64.RAX,
		amd64.Imm(e.batch*e.rowSpacing),
	)
	return nil
}

// batchesLeft counts batches of rows at a distance. It is the last of
// accessRegs, which such kernels do not need.
const batchesLeft = amd64.R14

// advanceRows moves all accesses by rows.
func (e *rowEmitter) advanceRows(rows int64) {
	for _, s := range e.accesses {
		if step := s.bytes() * rows * s.row(); step != 0 {
			e.a.Emit(amd64.ADD, e.reg[s], amd64.Imm(step))
		}
	}
}

// emitRow emits a batch of rows: the row scalars that need no sweep, then each
// sweep and the row scalars that are known after it.
func (e *rowEmitter) emitRow(batch int64) error {
	if err := e.emitScalars(-1, 0); err != nil {
		return err
	}
	for q := range e.kernel.schedule.sweeps {
		p := &sweepEmitter{
			rowEmitter: e,
			sweep:      q,
			batch:      batch,
		}
		if k := slices.Index(e.fetching, q); k >= 0 {
			p.part, p.parts = int64(k), int64(len(e.fetching))
		}
		if err := p.emit(); err != nil {
			return err
		}
		for row := range batch {
			if err := e.emitScalars(q, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// assignRegisters gives accesses registers, and prefetch addresses what
// remains.
func (e *rowEmitter) assignRegisters() {
	free := accessRegs[:]
	for _, s := range e.accesses {
		e.reg[s], free = free[0], free[1:]
	}
	for _, s := range e.accesses {
		if len(free) > 0 &&
			(e.kernel.nextTileOffset(s) != 0 || e.fetch > 0 &&
				e.rowSpacing == 1 && e.kernel.prefetches(s)) {
			e.ahead[s], free = free[0], free[1:]
		}
	}
}

// emitPrologue loads the fields of the argument block.
func (e *rowEmitter) emitPrologue() {
	count := amd64.RAX
	dim, _ := e.kernel.callDim()
	if dim < len(e.kernel.Extents)-2 {
		count = indicesLeft
	}
	e.a.Emit(
		amd64.MOV, count, amd64.Mem{Base: amd64.RDI},
	)
	for k, s := range e.accesses {
		e.a.Emit(amd64.MOV, e.reg[s], amd64.Mem{
			Base: amd64.RDI,
			Disp: int32(16 + 8*k),
		})
	}
	e.a.Emit(amd64.MOV, amd64.RDI, amd64.Mem{
		Base: amd64.RDI,
		Disp: 8,
	})
}

// emitRows emits the loop over the remaining rows, a batch at a time.
func (e *rowEmitter) emitRows(batch int64) error {
	a := e.a
	loop := a.NewLabel()
	done := a.NewLabel()
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(batch))
	a.Emit(amd64.JL, done)
	a.Bind(loop)
	e.emitPrefetchAddresses(batch)
	if err := e.emitRow(batch); err != nil {
		return err
	}
	e.advanceRows(batch)
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(batch))
	a.Emit(amd64.JGE, loop)
	a.Bind(done)
	a.Emit(amd64.ADD, amd64.RAX, amd64.Imm(batch))
	return nil
}

// emitPrefetchAddresses points at the rows to prefetch: those of the next tile
// where a loop asks for it, else some rows ahead, and in the last rows, where
// there are none, the rows at hand.
func (e *rowEmitter) emitPrefetchAddresses(batch int64) {
	for _, s := range e.accesses {
		r := e.ahead[s]
		if r == 0 {
			continue
		}
		if step := e.kernel.nextTileOffset(s); step != 0 {
			e.a.Emit(amd64.LEA, r, amd64.Mem{
				Base: e.reg[s],
				Disp: int32(step),
			})
			continue
		}
		e.a.Emit(amd64.LEA, r, amd64.Mem{
			Base: e.reg[s],
			Disp: int32(s.bytes() * s.row() * e.fetch * batch),
		})
		e.a.Emit(
			amd64.CMP, amd64.RAX, amd64.Imm(e.fetch*batch),
		)
		e.a.Emit(amd64.CMOVL, r, e.reg[s])
	}
}

// memory is the operand of an access, disp bytes of f32 on in the row and a
// number of rows on. An access that repeats an element stays in its row.
func (e *rowEmitter) memory(s *Access, disp int32, row int64) amd64.Mem {
	switch {
	case s.isFixed():
		return amd64.Mem{
			Base: amd64.RDI,
			Disp: int32(s.Value.Offset),
		}
	case s.col() == 0:
		return amd64.Mem{
			Base: e.reg[s],
			Disp: int32(s.bytes() * row * e.rowSpacing * s.row()),
		}
	}
	step := s.bytes() * s.col()
	return amd64.Mem{
		Base:  e.reg[s],
		Index: amd64.RCX,
		Scale: uint8(step),
		Disp: disp*int32(step)/4 +
			int32(s.bytes()*row*e.rowSpacing*s.row()),
	}
}

// slotMemory is the slot of a row scalar.
func (e *rowEmitter) slotMemory(v *Value) amd64.Mem {
	return amd64.Mem{
		Base: amd64.RDI,
		Disp: int32(e.kernel.schedule.slab.Offset) +
			int32(32*e.kernel.schedule.slots[v]),
	}
}

// withSpill lets a placement of one copy spill to the slab.
func (e *rowEmitter) withSpill(p amd64.Placement) amd64.Placement {
	if p.Copies == 1 {
		p.Spill = amd64.Mem{
			Base: amd64.RDI,
			Disp: int32(e.kernel.schedule.slab.Offset) +
				int32(32*len(e.kernel.schedule.kept)),
		}
		p.SpillSlots = maxSpills
	}
	return p
}

// newChain empties the chain, whose memory is used again, and the maps of its
// values.
func (e *rowEmitter) newChain() (*amd64.Chain, map[*Value]amd64.Value) {
	e.c.Reset()
	clear(e.made)
	clear(e.splats)
	return e.c, e.made
}

// emitScalars emits the row scalars that are known after sweep q, of one row of
// a batch.
func (e *rowEmitter) emitScalars(q int, row int64) error {
	list := e.kernel.schedule.after[q+1]
	if len(list) == 0 {
		return nil
	}
	c, made := e.newChain()
	reductions := e.kernel.reductionsOf(q)
	regs := e.kernel.reductionRegisters(q, e.batch)
	for k, f := range reductions {
		if !f.AcrossRows && slices.Contains(list, f.Out) {
			made[f.Out] = e.reductionResult(
				c, f,
				regs[k+int(row)*len(reductions)],
				row,
			)
		}
	}
	for _, v := range list {
		x := e.scalarValue(c, v, q, row, made)
		if _, ok := e.kernel.schedule.slots[v]; ok {
			c.Store(amd64.VMOVUPS, e.slotMemory(v), 0, x)
		}
		if s := e.kernel.Stores[v]; s != nil {
			c.Store(amd64.VMOVSS, e.memory(s, 0, row), 0, x)
		}
	}
	return c.Emit(
		e.a,
		e.withSpill(amd64.Placement{Copies: 1, Reserved: slices.Concat(regs...)}),
	)
}

// reductionResult combines the accumulators of a reduction, and the value to
// begin with.
func (e *rowEmitter) reductionResult(
	c *amd64.Chain, f *Reduction,
	regs []amd64.Reg, row int64,
) amd64.Value {
	x := f.vectorReduction().EmitResult(c, regs)
	var start amd64.Value
	if f.Init == nil || !f.PerRow {
		start = c.Load(
			amd64.VBROADCASTSS,
			e.memory(e.kernel.Stores[f.Out], 0, row),
			0,
		)
	} else {
		start = e.externalScalar(c, f.Init, row)
	}
	return f.vectorReduction().Combine(c, start, x)
}

// externalScalar is a row scalar that the kernel does not compute.
func (e *rowEmitter) externalScalar(c *amd64.Chain, v *Value, row int64) amd64.Value {
	if v.Constant != nil {
		return c.Const32(*v.Constant)
	}
	return e.splat(c, e.kernel.Loads[v], row)
}

// scalarValue is a row scalar in the chain after sweep q. Those of earlier
// sweeps are loaded from their slots.
func (e *rowEmitter) scalarValue(
	c *amd64.Chain, v *Value, q int,
	row int64, made map[*Value]amd64.Value,
) amd64.Value {
	n := e.kernel
	if x, ok := made[v]; ok {
		return x
	}
	switch {
	case n.reciprocalOf[v] != nil:
		made[v] = c.Do(
			amd64.VDIVPS,
			c.Float32(1),
			e.scalarValue(c, n.reciprocalOf[v], q, row, made),
		)
	case n.defines(v) && n.schedule.sweepOf[v] < q:
		made[v] = c.Load(amd64.VMOVUPS, e.slotMemory(v), 0)
	case n.ops[v] != nil:
		p := n.ops[v]
		x := make([]amd64.Value, len(p.Args))
		for k, arg := range p.Args {
			x[k] = e.scalarValue(
				c, n.scalarOf(arg), q, row, made,
			)
		}
		made[v] = vector.EmitFloat32(c, p.Instr, x)
	default:
		made[v] = e.externalScalar(c, v, row)
	}
	return made[v]
}

// load is a vector of an access, disp bytes of f32 on in the row.
func (e *rowEmitter) load(
	c *amd64.Chain, s *Access, disp int32, row int64,
) amd64.Value {
	if d := s.Half; d != 0 {
		return vector.HalfCodecs[d].Load(
			c, e.memory(s, disp, row), 16,
		)
	}
	return c.Load(
		amd64.VMOVUPS, e.memory(s, disp, row), 32,
	)
}

// splat is a vector of copies of an element of an access. Of the types of two
// bytes, this is done for bf16 only, see halfAccessFits of package cpu.
func (e *rowEmitter) splat(c *amd64.Chain, s *Access, row int64) amd64.Value {
	if s.Half != 0 {
		return c.Do(
			amd64.VPSLLD,
			c.Load(amd64.VPBROADCASTW, e.memory(s, 0, row), 0),
			amd64.Imm(16),
		)
	}
	return c.Load(
		amd64.VBROADCASTSS, e.memory(s, 0, row), 0,
	)
}

// emitSplat emits a splat outside of a chain, into r.
func (e *rowEmitter) emitSplat(r amd64.Reg, s *Access) {
	if s.Half == 0 {
		e.a.Emit(amd64.VBROADCASTSS, r, e.memory(s, 0, 0))
		return
	}
	e.a.Emit(amd64.VPBROADCASTW, r, e.memory(s, 0, 0))
	e.a.Emit(amd64.VPSLLD, r, r, amd64.Imm(16))
}

// store stores a vector that is rounded to the type of the access already, in a wide chain
// or another.
func (e *rowEmitter) store(
	c *amd64.Chain, s *Access, disp int32,
	row int64, x amd64.Value, nonTemporal, wide bool,
) {
	op := amd64.VMOVUPS
	if nonTemporal {
		op = amd64.VMOVNTPS
	}
	advance := int32(8 * s.bytes())
	switch s.Half {
	case hlo.BF16:
		x = c.Do(amd64.VPSRLD, x, amd64.Imm(16))
		if wide {
			x = c.Do(amd64.VPMOVDW, x)
			break
		}
		x = c.Do(
			amd64.VPACKUSDW,
			c.Do(amd64.VEXTRACTI128, x, amd64.Imm(0)),
			c.Do(amd64.VEXTRACTI128, x, amd64.Imm(1)),
		)
	case hlo.F16:
		x = c.Do(amd64.VCVTPS2PH, x, amd64.Imm(0))
	}
	c.Store(op, e.memory(s, disp, row), advance, x)
}
