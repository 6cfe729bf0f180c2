package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// rowKernelArgs are what the function of a nest is called with: how much to do, the
// scratch of the worker, and where its streams begin.
type rowKernelArgs struct {
	count int64 // rows, or indices of a dimension before them
	arena unsafe.Pointer
	at    [maxAccesses]unsafe.Pointer
}

// A rowEmitter is a nest as it becomes machine code: rows in RAX, the element of
// the row in RCX, the scratch in RDI.
type rowEmitter struct {
	kernel      *rowKernel
	a           *amd64.Assembler
	accesses    []*rowAccess
	reg         map[*rowAccess]amd64.Reg
	ahead       map[*rowAccess]amd64.Reg // of those that are fetched some rows ahead
	nonTemporal bool                     // streaming stores where they may be
	unroll      int                      // vectors in turn
	fetch       int64                    // rows ahead
	batch       int64                    // rows at a time: with folds across them, or to read at several places
	rowSpacing  int64                    // rows between those
	c           amd64.Chain              // the one at hand
	made        map[*value]amd64.Value   // of it
	splats      map[*value]amd64.Value   // of it, narrow ones of a pass
}

var accessRegs = [maxAccesses]amd64.Reg{
	amd64.RSI, amd64.RDX, amd64.RBX, amd64.R8,
	amd64.R9, amd64.R10, amd64.R11, amd64.R12,
	amd64.R13, amd64.R14,
}

const prefetchRows = 2

const (
	foldRows         = 8  // rows joined at a time
	maxReductionRegs = 10 // registers of the folds of a pass
	spacedRows       = 3  // rows read at a time at places far from each other
	spacedColumnRows = 4  // the same where they are joined
)

// emit makes the machine code of a nest.
func (n *rowKernel) emit(l *lowering, large bool) (*amd64.Assembler, error) {
	e := &rowEmitter{
		kernel:      n,
		a:           &amd64.Assembler{},
		accesses:    n.movingAccesses(),
		reg:         map[*rowAccess]amd64.Reg{},
		ahead:       map[*rowAccess]amd64.Reg{},
		made:        map[*value]amd64.Value{},
		splats:      map[*value]amd64.Value{},
		nonTemporal: large,
		unroll:      int(l.knob("unroll", n.defaultUnroll())),
		fetch:       l.knob("prefetch", n.defaultPrefetch()),
	}
	e.batch, e.rowSpacing = n.rowBatch()
	e.assignRegisters()
	e.emitPrologue()
	if err := e.emitIndices(); err != nil {
		return nil, err
	}
	if large {
		e.a.Emit(amd64.SFENCE)
	}
	e.a.Emit(amd64.RET)
	return e.a, nil
}

// defaultUnroll is how many vectors are computed in turn: two where a row takes three
// passes or more, which measures up to a sixth faster for a layernorm and about the
// same for a softmax. With two passes four are faster for an rmsnorm; with one
// pass measurements differ from run to run.
func (n *rowKernel) defaultUnroll() int64 {
	if n.schedule.sweeps > 2 {
		return vector.RoundVectors / 2
	}
	return vector.RoundVectors
}

// defaultPrefetch is how many rows ahead are fetched: what only reads is faster when
// the machine does that by itself.
func (n *rowKernel) defaultPrefetch() int64 {
	if slices.ContainsFunc(n.storeOrder, func(v *value) bool {
		return !n.scalars[v]
	}) {
		return prefetchRows
	}
	return 0
}

// concurrentRows is how many places a nest reads rows at in turn: several where it only reads,
// since the machine fetches ahead at each. Where rows are joined into one that changes
// the order of them.
func (n *rowKernel) concurrentRows() int64 {
	switch {
	case len(n.movingAccesses()) >= maxAccesses ||
		n.defaultPrefetch() > 0:
		return 1
	case n.reducesColumns():
		return spacedColumnRows
	case n.onlyReduces():
		return spacedRows
	}
	return 1
}

// reducesColumns says whether a nest joins rows.
func (n *rowKernel) reducesColumns() bool {
	return len(n.reductions) > 0 &&
		n.reductions[0].acrossRows
}

// rowBatch is how many rows are done at a time, and how far apart those are.
func (n *rowKernel) rowBatch() (rows, apart int64) {
	rows = n.concurrentRows()
	if rows > 1 && n.rows() >= 2*rows {
		apart = min(n.rowsPerCall(), n.rows()) / rows
	} else if rows, apart = 1, 1; n.reducesColumns() {
		rows = min(foldRows, n.rows())
	}
	for _, s := range n.movingAccesses() {
		far := s.bytes() * (s.row()*rows*apart + n.cols())
		if far != int64(int32(far)) {
			return 1, 1
		}
	}
	return rows, apart
}

// onlyReduces says whether a nest only folds rows, in one pass and few registers.
func (n *rowKernel) onlyReduces() bool {
	if len(n.reductions) != 1 ||
		n.reducesColumns() || n.schedule.sweeps != 1 ||
		len(n.schedule.after[0]) > 0 {
		return false
	}
	return n.reductions[0].vectorReduction().Registers() == vector.RoundVectors &&
		n.cols()%vector.Lanes == 0
}

// rowsPerCall is how many rows are done in one call.
func (n *rowKernel) rowsPerCall() int64 {
	most := int64(maxCallElements)
	unit := int64(1)
	if n.reducesColumns() {
		unit = foldRows
	}
	places := n.concurrentRows()
	if places > 1 &&
		!slices.ContainsFunc(n.reductions, func(f *rowReduction) bool {
			return n.recomputeCost(f.arg) > maxRecomputeCost
		}) {
		most, unit = maxReadElements, places
	}
	return max(unit, most/n.cols()/unit*unit)
}

// callDim is the dimension of which a call does some indices, and all of those
// after it, and how many: where rows are short, a call for every few would take as
// long as they do.
func (n *rowKernel) callDim() (dim int, most int64) {
	dim = len(n.extents) - 2
	size := n.cols()
	for dim > 0 && size*n.extents[dim] <= maxCallElements {
		size *= n.extents[dim]
		dim--
	}
	if dim == len(n.extents)-2 {
		return dim, n.rowsPerCall()
	}
	return dim, max(1, maxCallElements/size)
}

// emitIndices does those of the call, whose number is in RAX if they are rows.
func (e *rowEmitter) emitIndices() error {
	dim, _ := e.kernel.callDim()
	if dim == len(e.kernel.extents)-2 {
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

// indicesLeft counts them where they are not rows.
const indicesLeft = amd64.R15

// emitInside does all of dimension d and those after it, counting in memory.
func (e *rowEmitter) emitInside(d int) error {
	e.a.Emit(
		amd64.MOV,
		amd64.RAX,
		amd64.Imm(e.kernel.extents[d]),
	)
	if d == len(e.kernel.extents)-2 {
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

// advanceIndex moves all streams from the end of an index of dimension d to the next.
func (e *rowEmitter) advanceIndex(d int) {
	for _, s := range e.accesses {
		step := s.bytes() *
			(s.strides[d] -
				e.kernel.extents[d+1]*s.strides[d+1])
		if step != 0 {
			e.a.Emit(amd64.ADD, e.reg[s], amd64.Imm(step))
		}
	}
}

// emitBatches does all rows: as many batches as there are, then single rows.
func (e *rowEmitter) emitBatches() error {
	if e.rowSpacing > 1 {
		err := e.emitSpacedRows()
		if err != nil || e.batchesDivide() {
			return err
		}
		if e.rowSpacing = 1; !e.kernel.reducesColumns() {
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

// batchesDivide says whether batches are all of the rows of every call.
func (e *rowEmitter) batchesDivide() bool {
	rows := e.kernel.rows()
	unit := e.batch * e.rowSpacing
	dim, most := e.kernel.callDim()
	if dim == len(e.kernel.extents)-2 && most < rows {
		return most%unit == 0 && rows%most%unit == 0
	}
	return rows%unit == 0
}

// emitSpacedRows does rows that are apart at a time, the first ones, the next ones, ….
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

// batchesLeft counts where rows are apart: the last of the registers of streams.
const batchesLeft = amd64.R14

// advanceRows moves all streams by rows.
func (e *rowEmitter) advanceRows(rows int64) {
	for _, s := range e.accesses {
		if step := s.bytes() * rows * s.row(); step != 0 {
			e.a.Emit(amd64.ADD, e.reg[s], amd64.Imm(step))
		}
	}
}

// emitRow does a batch of rows.
func (e *rowEmitter) emitRow(batch int64) error {
	if err := e.emitScalars(-1, 0); err != nil {
		return err
	}
	fetching := e.kernel.costliestSweep()
	for q := range e.kernel.schedule.sweeps {
		p := &sweepEmitter{
			rowEmitter: e,
			sweep:      q,
			batch:      batch,
			fetching:   q == fetching,
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

// assignRegisters of the streams, and of those fetched ahead as long as there are some.
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

// prefetches says whether the rows of a stream are read from an array of the
// caller, one after another.
func (n *rowKernel) prefetches(s *rowAccess) bool {
	if n.stores[s.v] == s ||
		s.col() != 1 ||
		s.row() == 0 ||
		n.rows() == 1 {
		return false
	}
	return s.v.where == inMemory ||
		s.view != nil && s.view.from == nil
}

// nextTileOffset is by how many bytes the next tile of a stream is further on, where it
// is worth to fetch that while the nest computes; else 0.
func (n *rowKernel) nextTileOffset(s *rowAccess) int64 {
	step := s.bytes() * n.l.nextTile[s.v]
	dim, _ := n.callDim()
	if n.stores[s.v] == s ||
		dim < len(n.extents)-2 ||
		s.col() != 1 ||
		len(n.ops) == 0 ||
		step != int64(int32(step)) {
		return 0
	}
	return step
}

func (e *rowEmitter) emitPrologue() {
	count := amd64.RAX
	dim, _ := e.kernel.callDim()
	if dim < len(e.kernel.extents)-2 {
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

// emitRows is the loop over the rows that are left, some at a time.
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

// emitPrefetchAddresses points at the rows to fetch: those of the next tile where loops say so,
// else some rows ahead; at the end, where there are none, at those at hand.
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

// costliestSweep is the pass that computes most, in which the fetching does not show.
func (n *rowKernel) costliestSweep() int {
	most, at := -1, 0
	for q := range n.schedule.sweeps {
		cost := 0
		for v, first := range n.schedule.firstSweep {
			if first == q {
				cost++
				if opCosts[n.ops[v].instr.Op] == 0 {
					cost += expensiveOp
				}
			}
		}
		if cost > most {
			most, at = cost, q
		}
	}
	return at
}

// memory is where a stream is, disp bytes on in the row, so many rows on; one that
// repeats an element stays.
func (e *rowEmitter) memory(s *rowAccess, disp int32, row int64) amd64.Mem {
	switch {
	case s.inScratch():
		return amd64.Mem{
			Base: amd64.RDI,
			Disp: int32(s.v.at),
		}
	case s.col() == 0:
		return amd64.Mem{
			Base: e.reg[s],
			Disp: int32(s.bytes() * row * e.rowSpacing * s.row()),
		}
	}
	return amd64.Mem{
		Base:  e.reg[s],
		Index: amd64.RCX,
		Scale: uint8(s.bytes()),
		Disp: disp*int32(s.bytes())/4 +
			int32(s.bytes()*row*e.rowSpacing*s.row()),
	}
}

// slotMemory is where a narrow value is kept.
func (e *rowEmitter) slotMemory(v *value) amd64.Mem {
	return amd64.Mem{
		Base: amd64.RDI,
		Disp: int32(e.kernel.schedule.slab.at) +
			int32(32*e.kernel.schedule.slots[v]),
	}
}

func (e *rowEmitter) withSpill(p amd64.Placement) amd64.Placement {
	if p.Copies == 1 {
		p.Spill = amd64.Mem{
			Base: amd64.RDI,
			Disp: int32(e.kernel.schedule.slab.at) +
				int32(32*len(e.kernel.schedule.kept)),
		}
		p.SpillSlots = maxSpills
	}
	return p
}

// newChain is an empty chain, in the memory of the one before, and where its values go.
func (e *rowEmitter) newChain() (*amd64.Chain, map[*value]amd64.Value) {
	e.c.Reset()
	clear(e.made)
	clear(e.splats)
	return &e.c, e.made
}

// emitScalars computes the narrow values that are known after pass q, of one of the
// rows of a batch.
func (e *rowEmitter) emitScalars(q int, row int64) error {
	list := e.kernel.schedule.after[q+1]
	if len(list) == 0 {
		return nil
	}
	c, made := e.newChain()
	folds := e.kernel.reductionsOf(q)
	regs := e.kernel.reductionRegisters(q, e.batch)
	for k, f := range folds {
		if !f.acrossRows && slices.Contains(list, f.out) {
			made[f.out] = e.reductionResult(
				c, f,
				regs[k+int(row)*len(folds)],
				row,
			)
		}
	}
	for _, v := range list {
		x := e.scalarValue(c, v, q, row, made)
		if _, ok := e.kernel.schedule.slots[v]; ok {
			c.Store(amd64.VMOVUPS, e.slotMemory(v), 0, x)
		}
		if s := e.kernel.stores[v]; s != nil {
			c.Store(amd64.VMOVSS, e.memory(s, 0, row), 0, x)
		}
	}
	return c.Emit(
		e.a,
		e.withSpill(amd64.Placement{Copies: 1, Reserved: slices.Concat(regs...)}),
	)
}

// reductionResult joins the partial results of a fold, and what it starts from.
func (e *rowEmitter) reductionResult(
	c *amd64.Chain, f *rowReduction,
	regs []amd64.Reg, row int64,
) amd64.Value {
	x := f.vectorReduction().EmitResult(c, regs)
	var start amd64.Value
	if f.init == nil || !f.perRow {
		start = c.Load(
			amd64.VBROADCASTSS,
			e.memory(e.kernel.stores[f.out], 0, row),
			0,
		)
	} else {
		start = e.externalScalar(c, f.init, row)
	}
	return f.vectorReduction().Combine(c, start, x)
}

// externalScalar is a narrow value that is not of the nest.
func (e *rowEmitter) externalScalar(c *amd64.Chain, v *value, row int64) amd64.Value {
	if v.constant != nil {
		return c.Const32(*v.constant)
	}
	return e.splat(c, e.kernel.loads[v], row)
}

func (e *rowEmitter) scalarValue(
	c *amd64.Chain, v *value, q int,
	row int64, made map[*value]amd64.Value,
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
		x := make([]amd64.Value, len(p.args))
		for k, arg := range p.args {
			x[k] = e.scalarValue(
				c, n.scalarOf(arg), q, row, made,
			)
		}
		made[v] = vector.EmitFloat32(c, p.instr, x)
	default:
		made[v] = e.externalScalar(c, v, row)
	}
	return made[v]
}

// reductionsOf are the folds that end with pass q.
func (n *rowKernel) reductionsOf(q int) []*rowReduction {
	var list []*rowReduction
	for _, f := range n.reductions {
		if n.schedule.sweepOf[f.out] == q {
			list = append(list, f)
		}
	}
	return list
}

// reductionRegisters are the registers of the folds of a pass, one list for each, of
// the first row of a batch, then of the others.
func (n *rowKernel) reductionRegisters(q int, batch int64) [][]amd64.Reg {
	var lists [][]amd64.Reg
	next := 14
	for range batch {
		for _, f := range n.reductionsOf(q) {
			if f.acrossRows {
				return nil
			}
			var list []amd64.Reg
			for range f.vectorReduction().Registers() {
				list = append(list, amd64.Y(next))
				next--
			}
			lists = append(lists, list)
		}
	}
	return lists
}

// A sweepEmitter is a pass over a row as it becomes machine code.
type sweepEmitter struct {
	*rowEmitter
	sweep         int
	batch         int64
	fetching      bool
	exactDivision bool // divide where a reciprocal would do
	reductions    []*rowReduction
	regs          [][]amd64.Reg        // of them
	pinned        map[*value]amd64.Reg // narrow values
	order         []*value             // those, as they are met
	reserved      []amd64.Reg
	divisors      []*value         // of which reciprocals are used
	maxCopies     int              // most vectors in turn, 0 for what the plan says
	copies        int              // vectors in turn
	constants     []pinnedConstant // constants in the loop
}

func (p *sweepEmitter) emit() error {
	p.reductions, p.regs = p.kernel.reductionsOf(p.sweep),
		p.kernel.reductionRegisters(p.sweep, p.batch)
	p.pin()
	divisors := p.divisors
	if len(divisors) == 0 {
		return p.emitLoop()
	}
	exact := p.a.NewLabel()
	done := p.a.NewLabel()
	for _, s := range divisors {
		p.checkDivisor(s, exact)
	}
	if err := p.emitLoop(); err != nil {
		return err
	}
	p.a.Emit(amd64.JMP, done)
	p.a.Bind(exact)
	p.exactDivision, p.maxCopies = true, 1
	err := p.emitLoop()
	p.a.Bind(done)
	return err
}

// checkDivisor jumps if s or its reciprocal is negative, 0, denormal, infinite or
// NaN.
func (p *sweepEmitter) checkDivisor(s *value, exact amd64.Label) {
	at := p.slotMemory(s)
	if _, ok := p.kernel.schedule.slots[s]; !ok {
		at = p.memory(p.kernel.loads[s], 0, 0)
	}
	p.a.Emit(amd64.MOV, amd64.ECX, at)
	p.a.Emit(amd64.SUB, amd64.ECX, amd64.Imm(1<<23))
	p.a.Emit(amd64.CMP, amd64.ECX, amd64.Imm(252<<23))
	p.a.Emit(amd64.JAE, exact)
}

func (p *sweepEmitter) emitLoop() error {
	p.emitPrologue()
	a, cols := p.a, p.kernel.cols()
	a.Emit(amd64.XOR, amd64.RCX, amd64.RCX)
	if whole := cols &^ (vector.RoundVectors*vector.Lanes - 1); whole > 0 {
		p.pinConstants()
		loop := a.NewLabel()
		a.Align(32)
		a.Bind(loop)
		p.emitPrefetches()
		if err := p.emitRound(); err != nil {
			return err
		}
		a.Emit(
			amd64.ADD, amd64.RCX, amd64.Imm(vector.RoundVectors*vector.Lanes),
		)
		a.Emit(amd64.CMP, amd64.RCX, amd64.Imm(whole))
		a.Emit(amd64.JL, loop)
	}
	disp := int32(0)
	for k := cols % (vector.RoundVectors * vector.Lanes); k >= vector.Lanes; k -= vector.Lanes {
		err := p.chain(disp, 1, 0).Emit(
			a,
			p.withSpill(amd64.Placement{Copies: 1, Reserved: p.reserved}),
		)
		if err != nil {
			return err
		}
		disp += 32
	}
	if rest := cols % vector.Lanes; rest > 0 {
		a.Emit(
			amd64.VMOVUPS,
			amd64.Y15,
			a.Data(firstLanes(int(rest))),
		)
		return p.chain(disp, 1, 0).Emit(
			a,
			p.withSpill(amd64.Placement{
				Copies:   1,
				Mask:     amd64.Y15,
				Reserved: p.reserved,
			}),
		)
	}
	return nil
}

// firstLanes is a mask of n lanes of four bytes.
func firstLanes(n int) []byte {
	mask := make([]byte, 32)
	for k := range 4 * n {
		mask[k] = 0xff
	}
	return mask
}

// pin gives the narrow values of the pass registers, as far as that leaves
// enough, and sets the partial results of folds to the identity.
func (p *sweepEmitter) pin() {
	p.pinned = map[*value]amd64.Reg{}
	p.reserved = nil
	p.reserved = slices.Concat(p.regs...)
	const enough = 8
	p.chain(0, 1, 0) // finds the narrow values
	for k, v := range p.order {
		r := 14 - len(p.reserved)
		if k < 4 && r >= enough && p.batch == 1 {
			p.pinned[v] = amd64.Y(r)
			p.reserved = append(p.reserved, amd64.Y(r))
		}
	}
}

func (p *sweepEmitter) emitPrologue() {
	for k, regs := range p.regs {
		p.reductions[k%len(p.reductions)].vectorReduction().EmitInit(p.a, regs)
	}
	for _, v := range p.order {
		r, ok := p.pinned[v]
		_, kept := p.kernel.schedule.slots[v]
		switch {
		case !ok:
		case kept:
			p.a.Emit(amd64.VMOVUPS, r, p.slotMemory(v))
		default:
			p.emitSplat(r, p.kernel.loads[v])
		}
	}
}

func (p *sweepEmitter) emitPrefetches() {
	if !p.fetching {
		return
	}
	for _, s := range p.accesses {
		if r := p.ahead[s]; r != 0 {
			for row := range p.batch {
				for line := range int32(s.bytes() / 2) {
					p.a.Emit(amd64.PREFETCHT0, amd64.Mem{
						Base:  r,
						Index: amd64.RCX,
						Scale: uint8(s.bytes()),
						Disp:  64*line + int32(s.bytes()*row*s.row()),
					})
				}
			}
		}
	}
}

// A pinnedConstant constant is in a register.
type pinnedConstant struct {
	constant amd64.Constant
	reg      amd64.Reg
}

// pinConstants chooses the vectors in turn, as many as registers hold, which is worth more
// than not to load constants, and gives those used most the registers that are left.
func (p *sweepEmitter) pinConstants() {
	p.constants, p.copies = nil, vector.RoundVectors
	if p.maxCopies > 0 {
		p.copies = p.maxCopies
		return
	}
	c := p.chain(0, 1, 0)
	pressure := c.Pressure()
	var free []amd64.Reg
	for n := 15; n >= 0; n-- {
		if !slices.Contains(p.reserved, amd64.Y(n)) {
			free = append(free, amd64.Y(n))
		}
	}
	for p.copies > 1 &&
		(p.copies > p.unroll || p.copies*pressure > len(free)) {
		p.copies /= 2
	}
	for n, k := range c.Constants() {
		if n+1+p.copies*pressure > len(free) {
			break
		}
		p.constants = append(
			p.constants, pinnedConstant{k, free[n]},
		)
		p.a.LoadConstant(k, free[n])
	}
}

// emitRound appends four vectors: as many at once as registers hold.
func (p *sweepEmitter) emitRound() error {
	var err error
	for copies := p.copies; copies > 0; copies /= 2 {
		before := p.a.Mark()
		for k := 0; k < vector.RoundVectors; k += copies {
			c := p.chain(int32(32*k), copies, k)
			for _, h := range p.constants {
				c.PinConstant(h.constant, h.reg)
			}
			err = c.Emit(
				p.a,
				p.withSpill(amd64.Placement{Copies: copies, Reserved: p.reserved}),
			)
			if err != nil {
				p.a.Undo(before)
				break
			}
		}
		if !amd64.NeedsRegisters(err) {
			return err
		}
		p.constants = nil
	}
	return err
}

// chain is what the pass does to vectors of a row, which begin disp bytes on,
// the first with partial result number part.
func (p *sweepEmitter) chain(disp int32, copies, part int) *amd64.Chain {
	b := &sweepChain{sweepEmitter: p, disp: disp}
	b.c, b.made = p.rowEmitter.newChain()
	joined := make([]amd64.Value, len(p.reductions))
	for row := range p.batch {
		b.row = row
		clear(b.made)
		for k, f := range p.reductions {
			x := b.get(f.arg)
			switch {
			case f.acrossRows && row == 0:
				joined[k] = b.c.Load(
					amd64.VMOVUPS,
					p.memory(p.kernel.stores[f.out], disp, 0),
					32,
				)
				fallthrough
			case f.acrossRows:
				joined[k] = f.vectorReduction().Combine(
					b.c, joined[k], x,
				)
			default:
				f.vectorReduction().EmitUpdate(
					b.c,
					p.regs[k+int(row)*len(p.reductions)],
					part, copies, x,
				)
			}
		}
		for _, v := range p.kernel.storeOrder {
			if !p.kernel.scalars[v] &&
				p.kernel.schedule.sweepOf[v] == p.sweep {
				b.put(p.kernel.stores[v], b.get(v))
			}
		}
	}
	for k, f := range p.reductions {
		if f.acrossRows {
			b.c.Store(
				amd64.VMOVUPS,
				p.memory(p.kernel.stores[f.out], disp, 0),
				32, joined[k],
			)
		}
	}
	return b.c
}

// A sweepChain builds the chain of a pass.
type sweepChain struct {
	*sweepEmitter
	c    *amd64.Chain
	disp int32
	row  int64
	made map[*value]amd64.Value
}

func (b *sweepChain) put(s *rowAccess, x amd64.Value) {
	b.store(
		b.c, s, b.disp, b.row,
		x, s.nonTemporal && b.nonTemporal,
	)
}

// get is a value of the pass.
func (b *sweepChain) get(v *value) amd64.Value {
	n := b.kernel
	if v.constant != nil {
		return b.c.Const32(*v.constant)
	}
	if narrow := n.broadcasts[v]; narrow != nil {
		return b.splatOf(narrow)
	}
	s := n.loads[v]
	if s != nil && s.col() == 0 {
		return b.splatOf(v)
	}
	if x, ok := b.made[v]; ok {
		return x
	}
	b.made[v] = b.compute(v)
	return b.made[v]
}

func (b *sweepChain) compute(v *value) amd64.Value {
	n := b.kernel
	if s := n.loads[v]; s != nil {
		return b.load(b.c, s, b.disp, b.row)
	}
	saved := slices.Contains(n.schedule.saved, v)
	kept := amd64.Mem{
		Base:  amd64.RDI,
		Index: amd64.RCX,
		Scale: 4,
		Disp:  int32(v.at) + b.disp,
	}
	if n.schedule.firstSweep[v] < b.sweep {
		if s := n.stores[v]; s != nil {
			return b.load(b.c, s, b.disp, b.row)
		}
		if saved {
			return b.c.Load(amd64.VMOVUPS, kept, 32)
		}
	}
	y := b.operation(n.ops[v])
	if saved && n.schedule.firstSweep[v] == b.sweep {
		b.c.Store(amd64.VMOVUPS, kept, 32, y)
	}
	return y
}

func (b *sweepChain) operation(p *pointwiseOp) amd64.Value {
	s := b.kernel.rowDivisor(p)
	if s != nil && !b.exactDivision {
		if !slices.Contains(b.divisors, s) {
			b.sweepEmitter.divisors = append(b.sweepEmitter.divisors, s)
		}
		x := b.get(p.args[0])
		e := b.kernel.ops[p.args[0]]
		if e != nil && b.kernel.isSmallExp(e) {
			return smallQuotient(
				b.c, x, b.splatOf(s),
				b.splatOf(b.kernel.reciprocals[s]),
			)
		}
		return quotient(
			b.c, x, b.splatOf(s),
			b.splatOf(b.kernel.reciprocals[s]),
		)
	}
	v := tanh1pOf(p, b.kernel.ops)
	if v != nil && b.kernel.stores[p.args[0]] == nil {
		return b.c.Tanh1p32(b.get(v))
	}
	x := make([]amd64.Value, len(p.args))
	for k, arg := range p.args {
		x[k] = b.get(arg)
	}
	switch {
	case b.kernel.scaledExps[p.out]:
		return b.c.ExcessExp32(x[0])
	case b.kernel.isSmallExp(p):
		return b.c.ExpBelow32(x[0])
	}
	return vector.EmitFloat32(b.c, p.instr, x)
}

// isSmallExp says whether an operation is e to what is at most 0, so that it is at most 1.
func (n *rowKernel) isSmallExp(p *pointwiseOp) bool {
	return p.instr.Op == hlo.OpExponential &&
		p.instr.Shape.DType == hlo.F32 &&
		n.isBelowMax(p.args[0])
}

// isBelowMax says whether a value is what an element is less than the maximum of its row, so
// that it is at most 0.
func (n *rowKernel) isBelowMax(v *value) bool {
	p := n.ops[v]
	if p == nil || p.instr.Op != hlo.OpSubtract ||
		n.broadcasts[p.args[1]] == nil {
		return false
	}
	most := n.broadcasts[p.args[1]]
	return slices.ContainsFunc(n.reductions, func(f *rowReduction) bool {
		return f.out == most && f.monoid == hlo.OpMaximum &&
			f.arg == p.args[0] && f.perRow
	})
}

// tanh1pOf is x where an operation is tanh x + 1 in f32, nil elsewhere; gelu has it.
func tanh1pOf(p *pointwiseOp, made map[*value]*pointwiseOp) *value {
	if p.instr.Op != hlo.OpAdd ||
		p.instr.Shape.DType != hlo.F32 {
		return nil
	}
	one := p.args[1].constant
	t := made[p.args[0]]
	if one == nil || *one != math.Float32bits(1) ||
		t == nil || t.instr.Op != hlo.OpTanh {
		return nil
	}
	return t.args[0]
}

// quotient is x/y for y and its reciprocal r that are positive normal numbers:
// x·r less what that is too much, times r, which makes the rounding right
// (Markstein, Computation of elementary functions on the IBM RISC System/6000,
// 1990), but for 1 ulp of results under 2^-119. Where x·r is infinite the excess is too,
// or no number, and then any finite one does.
func quotient(c *amd64.Chain, x, y, r amd64.Value) amd64.Value {
	q := c.Do(amd64.VMULPS, x, r)
	excess := c.Do(
		amd64.VMINPS,
		c.MulSub32(q, y, x),
		c.Float32(math.MaxFloat32),
	)
	excess = c.Do(
		amd64.VMAXPS, excess, c.Float32(-math.MaxFloat32),
	)
	return c.NegMulAdd32(excess, r, q)
}

// smallQuotient is the quotient for x that is at most 2^32, so that x·r is finite for sums of such.
func smallQuotient(c *amd64.Chain, x, y, r amd64.Value) amd64.Value {
	q := c.Do(amd64.VMULPS, x, r)
	return c.NegMulAdd32(c.MulSub32(q, y, x), r, q)
}

// splatOf is a vector of copies of a narrow value.
func (b *sweepChain) splatOf(v *value) amd64.Value {
	if x, ok := b.splats[v]; ok && b.batch == 1 {
		return x
	}
	r, ok := b.pinned[v]
	if ok && b.row == 0 {
		b.splats[v] = b.c.Pinned(r)
		return b.splats[v]
	}
	if !slices.Contains(b.order, v) {
		b.sweepEmitter.order = append(b.sweepEmitter.order, v)
	}
	if _, kept := b.kernel.schedule.slots[v]; kept {
		b.splats[v] = b.c.Load(
			amd64.VMOVUPS, b.slotMemory(v), 0,
		)
	} else {
		b.splats[v] = b.rowEmitter.splat(
			b.c, b.kernel.loads[v], b.row,
		)
	}
	return b.splats[v]
}

// A rowKernelRun runs a nest.
type rowKernelRun struct {
	code, cached *amd64.Func // plain: without streaming stores; nil when there are none
	accesses     []*rowAccess
	extents      []int64
	dim          int   // of which a call does some indices, and all of those after it
	maxCount     int64 // of them
	initSteps    []step
}

// How many elements a nest does in one call, some 50 µs: where it reads at several
// places the more of them follow each other, the better they are fetched.
const (
	maxCallElements = 1 << 16
	maxReadElements = 1 << 18
)

// compile makes the function; what runs without it is up to the caller.
func (n *rowKernel) compile(l *lowering) (step, error) {
	large := slices.ContainsFunc(n.movingAccesses(), n.storesAligned)
	a, err := n.emit(l, large)
	if err != nil {
		return nil, err
	}
	text, err := a.Assemble()
	if err != nil {
		return nil, err
	}
	r := &rowKernelRun{
		code:     l.addText(text),
		accesses: n.movingAccesses(),
		extents:  n.extents,
	}
	if large {
		r.cached = l.addText(a.WithoutNonTemporal(text))
	}
	r.dim, r.maxCount = n.callDim()
	for _, f := range n.reductions {
		if f.init != nil && !f.perRow {
			r.initSteps = append(r.initSteps, f.initSteps...)
		}
	}
	return r.run, nil
}

// storesAligned says whether a stream is stored past the caches and all its rows are
// whole vectors, if the first is.
func (n *rowKernel) storesAligned(s *rowAccess) bool {
	if !s.nonTemporal {
		return false
	}
	for k, step := range s.strides[:len(s.strides)-1] {
		if n.extents[k] > 1 && step%vector.Lanes != 0 {
			s.nonTemporal = false
		}
	}
	return s.nonTemporal
}

func (r *rowKernelRun) run(w *worker) {
	for _, f := range r.initSteps {
		f(w)
	}
	var base [maxAccesses]unsafe.Pointer
	for k, s := range r.accesses {
		base[k] = s.base(w)
	}
	args := &w.rowArgs
	args.arena = unsafe.Pointer(unsafe.SliceData(w.arena))
	var index [maxRank + 2]int64
	for {
		r.calls(args, base[:len(r.accesses)])
		d := r.dim - 1
		for ; d >= 0; d-- {
			if index[d]++; index[d] < r.extents[d] { // never past the last: a pointer beyond its array must not be
				r.move(&base, d, 1)
				break
			}
			r.move(&base, d, 1-index[d])
			index[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

func (r *rowKernelRun) move(base *[maxAccesses]unsafe.Pointer, d int, by int64) {
	for k, s := range r.accesses {
		base[k] = s.skip(base[k], by*s.strides[d])
	}
}

// calls does all indices of the dimension that calls divide.
func (r *rowKernelRun) calls(args *rowKernelArgs, base []unsafe.Pointer) {
	size := r.extents[r.dim]
	for first := int64(0); first < size; first += r.maxCount {
		args.count = min(r.maxCount, size-first)
		f := r.code
		for k, s := range r.accesses {
			args.at[k] = s.skip(
				base[k], first*s.strides[r.dim],
			)
			if s.nonTemporal &&
				uintptr(args.at[k])%s.vectorBytes() != 0 {
				f = r.cached
			}
		}
		f.Call(unsafe.Pointer(args))
	}
}

func (s *rowAccess) base(w *worker) unsafe.Pointer {
	at := w.addresses[s.v.id]
	if s.view != nil {
		at = s.view.base(w)
	}
	return s.skip(at, s.start)
}

// vectorReduction is the vector code of the reduction.
func (f *rowReduction) vectorReduction() vector.Reduction {
	if f.relaxed {
		return vector.Reductions[f.monoid].WithoutSigns()
	}
	return vector.Reductions[f.monoid]
}
