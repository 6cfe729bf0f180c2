package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// nestArgs are what the function of a nest is called with: how much to do, the
// scratch of the worker, and where its streams begin.
type nestArgs struct {
	count int64 // rows, or indices of a dimension before them
	arena unsafe.Pointer
	at    [pointers]unsafe.Pointer
}

// A nestCode is a nest as it becomes machine code: rows in RAX, the element of
// the row in RCX, the scratch in RDI.
type nestCode struct {
	n       *nest
	a       *amd64.Assembler
	streams []*stream
	reg     map[*stream]amd64.Reg
	ahead   map[*stream]amd64.Reg  // of those that are fetched some rows ahead
	large   bool                   // streaming stores where they may be
	unroll  int                    // vectors in turn
	fetch   int64                  // rows ahead
	batch   int64                  // rows at a time: with folds across them, or to read at several places
	apart   int64                  // rows between those
	c       amd64.Chain            // the one at hand
	made    map[*value]amd64.Value // of it
	repeats map[*value]amd64.Value // of it, narrow ones of a pass
}

var nestRegs = [pointers]amd64.Reg{amd64.RSI, amd64.RDX, amd64.RBX, amd64.R8, amd64.R9, amd64.R10, amd64.R11, amd64.R12, amd64.R13, amd64.R14}

const prefetchRows = 2

const (
	group      = 4  // vectors of a round: those that partial results of a fold stand for
	lanesOf    = 8  // elements of a vector
	foldRows   = 8  // rows joined at a time
	mostFold   = 10 // registers of the folds of a pass
	farRows    = 3  // rows read at a time at places far from each other
	farColumns = 4  // the same where they are joined
)

// code makes the machine code of a nest.
func (n *nest) code(l *lowering, large bool) (*amd64.Assembler, error) {
	e := &nestCode{
		n: n, a: &amd64.Assembler{}, streams: n.moving(), reg: map[*stream]amd64.Reg{}, ahead: map[*stream]amd64.Reg{},
		made: map[*value]amd64.Value{}, repeats: map[*value]amd64.Value{},
		large: large, unroll: int(l.knob("unroll", n.unroll())), fetch: l.knob("prefetch", n.prefetch()),
	}
	e.batch, e.apart = n.batch()
	e.registers()
	e.begin()
	if err := e.indices(); err != nil {
		return nil, err
	}
	if large {
		e.a.Emit(amd64.SFENCE)
	}
	e.a.Emit(amd64.RET)
	return e.a, nil
}

// unroll is how many vectors are computed in turn: two where a row takes three
// passes or more, which measures up to a sixth faster for a layernorm and about the
// same for a softmax. With two passes four are faster for an rmsnorm; with one
// pass measurements differ from run to run.
func (n *nest) unroll() int64 {
	if n.plan.passes > 2 {
		return group / 2
	}
	return group
}

// prefetch is how many rows ahead are fetched: what only reads is faster when
// the machine does that by itself.
func (n *nest) prefetch() int64 {
	if slices.ContainsFunc(n.order, func(v *value) bool { return !n.narrow[v] }) {
		return prefetchRows
	}
	return 0
}

// places is how many places a nest reads rows at in turn: several where it only reads,
// since the machine fetches ahead at each. Where rows are joined into one that changes
// the order of them.
func (n *nest) places() int64 {
	switch {
	case len(n.moving()) >= pointers || n.prefetch() > 0:
		return 1
	case n.columns():
		return farColumns
	case n.readsOnly():
		return farRows
	}
	return 1
}

// columns says whether a nest joins rows.
func (n *nest) columns() bool { return len(n.folds) > 0 && n.folds[0].columns }

// batch is how many rows are done at a time, and how far apart those are.
func (n *nest) batch() (rows, apart int64) {
	if rows = n.places(); rows > 1 && n.rows() >= 2*rows {
		apart = min(n.callRows(), n.rows()) / rows
	} else if rows, apart = 1, 1; n.columns() {
		rows = min(foldRows, n.rows())
	}
	for _, s := range n.moving() {
		if far := s.bytes() * (s.row()*rows*apart + n.cols()); far != int64(int32(far)) {
			return 1, 1
		}
	}
	return rows, apart
}

// readsOnly says whether a nest only folds rows, in one pass and few registers.
func (n *nest) readsOnly() bool {
	if len(n.folds) != 1 || n.columns() || n.plan.passes != 1 || len(n.plan.after[0]) > 0 {
		return false
	}
	return n.folds[0].machine().registers() == group && n.cols()%lanesOf == 0
}

// callRows is how many rows are done in one call.
func (n *nest) callRows() int64 {
	most, unit := int64(longestCall), int64(1)
	if n.columns() {
		unit = foldRows
	}
	if places := n.places(); places > 1 && !slices.ContainsFunc(n.folds, func(f *reduction) bool { return n.cost(f.arg) > cheap }) {
		most, unit = longestRead, places
	}
	return max(unit, most/n.cols()/unit*unit)
}

// counted is the dimension of which a call does some indices, and all of those
// after it, and how many: where rows are short, a call for every few would take as
// long as they do.
func (n *nest) counted() (dim int, most int64) {
	dim = len(n.sizes) - 2
	size := n.cols()
	for dim > 0 && size*n.sizes[dim] <= longestCall {
		size *= n.sizes[dim]
		dim--
	}
	if dim == len(n.sizes)-2 {
		return dim, n.callRows()
	}
	return dim, max(1, longestCall/size)
}

// indices does those of the call, whose number is in RAX if they are rows.
func (e *nestCode) indices() error {
	dim, _ := e.n.counted()
	if dim == len(e.n.sizes)-2 {
		return e.batches()
	}
	loop := e.a.NewLabel()
	e.a.Bind(loop)
	if err := e.inside(dim + 1); err != nil {
		return err
	}
	e.next(dim)
	e.a.Emit(amd64.SUB, indicesLeft, amd64.Imm(1))
	e.a.Emit(amd64.JG, loop)
	return nil
}

// indicesLeft counts them where they are not rows.
const indicesLeft = amd64.R15

// inside does all of dimension d and those after it, counting in memory.
func (e *nestCode) inside(d int) error {
	e.a.Emit(amd64.MOV, amd64.RAX, amd64.Imm(e.n.sizes[d]))
	if d == len(e.n.sizes)-2 {
		return e.batches()
	}
	left, loop := amd64.Mem{Base: amd64.RDI, Disp: int32(e.n.plan.counters()) + int32(8*d)}, e.a.NewLabel()
	e.a.Emit(amd64.MOV, left, amd64.RAX)
	e.a.Bind(loop)
	if err := e.inside(d + 1); err != nil {
		return err
	}
	e.next(d)
	e.a.Emit(amd64.MOV, amd64.RAX, left)
	e.a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	e.a.Emit(amd64.MOV, left, amd64.RAX)
	e.a.Emit(amd64.JG, loop)
	return nil
}

// next moves all streams from the end of an index of dimension d to the next.
func (e *nestCode) next(d int) {
	for _, s := range e.streams {
		if step := s.bytes() * (s.strides[d] - e.n.sizes[d+1]*s.strides[d+1]); step != 0 {
			e.a.Emit(amd64.ADD, e.reg[s], amd64.Imm(step))
		}
	}
}

// batches does all rows: as many batches as there are, then single rows.
func (e *nestCode) batches() error {
	if e.apart > 1 {
		if err := e.far(); err != nil || e.whole() {
			return err
		}
		if e.apart = 1; !e.n.columns() {
			e.batch = 1
		}
	}
	if err := e.rows(e.batch); err != nil || e.whole() {
		return err
	}
	e.batch = 1
	return e.rows(1)
}

// whole says whether batches are all of the rows of every call.
func (e *nestCode) whole() bool {
	rows, unit := e.n.rows(), e.batch*e.apart
	if dim, most := e.n.counted(); dim == len(e.n.sizes)-2 && most < rows {
		return most%unit == 0 && rows%most%unit == 0
	}
	return rows%unit == 0
}

// far does rows that are apart at a time, the first ones, the next ones, ….
func (e *nestCode) far() error {
	a := e.a
	loop, more, done := a.NewLabel(), a.NewLabel(), a.NewLabel()
	a.Bind(more)
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(e.batch*e.apart))
	a.Emit(amd64.JL, done)
	a.Emit(amd64.MOV, turns, amd64.Imm(e.apart))
	a.Bind(loop)
	if err := e.row(e.batch); err != nil {
		return err
	}
	e.advance(1)
	a.Emit(amd64.SUB, turns, amd64.Imm(1))
	a.Emit(amd64.JG, loop)
	e.advance((e.batch - 1) * e.apart)
	a.Emit(amd64.JMP, more)
	a.Bind(done)
	a.Emit(amd64.ADD, amd64.RAX, amd64.Imm(e.batch*e.apart))
	return nil
}

// turns counts where rows are apart: the last of the registers of streams.
const turns = amd64.R14

// advance moves all streams by rows.
func (e *nestCode) advance(rows int64) {
	for _, s := range e.streams {
		if step := s.bytes() * rows * s.row(); step != 0 {
			e.a.Emit(amd64.ADD, e.reg[s], amd64.Imm(step))
		}
	}
}

// row does a batch of rows.
func (e *nestCode) row(batch int64) error {
	if err := e.known(-1, 0); err != nil {
		return err
	}
	fetching := e.n.dearest()
	for q := range e.n.plan.passes {
		p := &nestPass{nestCode: e, q: q, batch: batch, fetching: q == fetching}
		if err := p.emit(); err != nil {
			return err
		}
		for row := range batch {
			if err := e.known(q, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// registers of the streams, and of those fetched ahead as long as there are some.
func (e *nestCode) registers() {
	free := nestRegs[:]
	for _, s := range e.streams {
		e.reg[s], free = free[0], free[1:]
	}
	for _, s := range e.streams {
		if len(free) > 0 && (e.n.onward(s) != 0 || e.fetch > 0 && e.apart == 1 && e.n.fetched(s)) {
			e.ahead[s], free = free[0], free[1:]
		}
	}
}

// fetched says whether the rows of a stream are read from an array of the
// caller, one after another.
func (n *nest) fetched(s *stream) bool {
	if n.stores[s.v] == s || s.col() != 1 || s.row() == 0 || n.rows() == 1 {
		return false
	}
	return s.v.where == inMemory || s.view != nil && s.view.from == nil
}

// onward is by how many bytes the next tile of a stream is further on, where it
// is worth to fetch that while the nest computes; else 0.
func (n *nest) onward(s *stream) int64 {
	step := s.bytes() * n.l.onward[s.v]
	dim, _ := n.counted()
	if n.stores[s.v] == s || dim < len(n.sizes)-2 || s.col() != 1 || len(n.made) == 0 || step != int64(int32(step)) {
		return 0
	}
	return step
}

func (e *nestCode) begin() {
	count := amd64.RAX
	if dim, _ := e.n.counted(); dim < len(e.n.sizes)-2 {
		count = indicesLeft
	}
	e.a.Emit(amd64.MOV, count, amd64.Mem{Base: amd64.RDI})
	for k, s := range e.streams {
		e.a.Emit(amd64.MOV, e.reg[s], amd64.Mem{Base: amd64.RDI, Disp: int32(16 + 8*k)})
	}
	e.a.Emit(amd64.MOV, amd64.RDI, amd64.Mem{Base: amd64.RDI, Disp: 8})
}

// rows is the loop over the rows that are left, some at a time.
func (e *nestCode) rows(batch int64) error {
	a := e.a
	loop, done := a.NewLabel(), a.NewLabel()
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(batch))
	a.Emit(amd64.JL, done)
	a.Bind(loop)
	e.lookAhead(batch)
	if err := e.row(batch); err != nil {
		return err
	}
	e.advance(batch)
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(batch))
	a.Emit(amd64.JGE, loop)
	a.Bind(done)
	a.Emit(amd64.ADD, amd64.RAX, amd64.Imm(batch))
	return nil
}

// lookAhead points at the rows to fetch: those of the next tile where loops say so,
// else some rows ahead; at the end, where there are none, at those at hand.
func (e *nestCode) lookAhead(batch int64) {
	for _, s := range e.streams {
		r := e.ahead[s]
		if r == 0 {
			continue
		}
		if step := e.n.onward(s); step != 0 {
			e.a.Emit(amd64.LEA, r, amd64.Mem{Base: e.reg[s], Disp: int32(step)})
			continue
		}
		e.a.Emit(amd64.LEA, r, amd64.Mem{Base: e.reg[s], Disp: int32(s.bytes() * s.row() * e.fetch * batch)})
		e.a.Emit(amd64.CMP, amd64.RAX, amd64.Imm(e.fetch*batch))
		e.a.Emit(amd64.CMOVL, r, e.reg[s])
	}
}

// dearest is the pass that computes most, in which the fetching does not show.
func (n *nest) dearest() int {
	most, at := -1, 0
	for q := range n.plan.passes {
		cost := 0
		for v, first := range n.plan.first {
			if first == q {
				cost++
				if costs[n.made[v].op.Code] == 0 {
					cost += dear
				}
			}
		}
		if cost > most {
			most, at = cost, q
		}
	}
	return at
}

// at is where a stream is, disp bytes on in the row, so many rows on; one that
// repeats an element stays.
func (e *nestCode) at(s *stream, disp int32, row int64) amd64.Mem {
	switch {
	case s.fixed():
		return amd64.Mem{Base: amd64.RDI, Disp: int32(s.v.at)}
	case s.col() == 0:
		return amd64.Mem{Base: e.reg[s], Disp: int32(s.bytes() * row * e.apart * s.row())}
	}
	return amd64.Mem{Base: e.reg[s], Index: amd64.RCX, Scale: uint8(s.bytes()), Disp: disp*int32(s.bytes())/4 + int32(s.bytes()*row*e.apart*s.row())}
}

// slotAt is where a narrow value is kept.
func (e *nestCode) slotAt(v *value) amd64.Mem {
	return amd64.Mem{Base: amd64.RDI, Disp: int32(e.n.plan.room.at) + int32(32*e.n.plan.slots[v])}
}

func (e *nestCode) spill(p amd64.Placement) amd64.Placement {
	if p.Copies == 1 {
		p.Spill = amd64.Mem{Base: amd64.RDI, Disp: int32(e.n.plan.room.at) + int32(32*len(e.n.plan.kept))}
		p.SpillSlots = spills
	}
	return p
}

// chain is an empty chain, in the memory of the one before, and where its values go.
func (e *nestCode) chain() (*amd64.Chain, map[*value]amd64.Value) {
	e.c.Reset()
	clear(e.made)
	clear(e.repeats)
	return &e.c, e.made
}

// known computes the narrow values that are known after pass q, of one of the
// rows of a batch.
func (e *nestCode) known(q int, row int64) error {
	list := e.n.plan.after[q+1]
	if len(list) == 0 {
		return nil
	}
	c, made := e.chain()
	folds, regs := e.n.foldsOf(q), e.n.registersOf(q, e.batch)
	for k, f := range folds {
		if !f.columns && slices.Contains(list, f.out) {
			made[f.out] = e.result(c, f, regs[k+int(row)*len(folds)], row)
		}
	}
	for _, v := range list {
		x := e.narrow(c, v, q, row, made)
		if _, ok := e.n.plan.slots[v]; ok {
			c.Store(amd64.VMOVUPS, e.slotAt(v), 0, x)
		}
		if s := e.n.stores[v]; s != nil {
			c.Store(amd64.VMOVSS, e.at(s, 0, row), 0, x)
		}
	}
	return c.Emit(e.a, e.spill(amd64.Placement{Copies: 1, Reserved: slices.Concat(regs...)}))
}

// result joins the partial results of a fold, and what it starts from.
func (e *nestCode) result(c *amd64.Chain, f *reduction, regs []amd64.Reg, row int64) amd64.Value {
	x := f.machine().result(c, regs)
	var start amd64.Value
	if f.start == nil || !f.final {
		start = c.Load(amd64.VBROADCASTSS, e.at(e.n.stores[f.out], 0, row), 0)
	} else {
		start = e.scalar(c, f.start, row)
	}
	return f.machine().join(c, start, x)
}

// scalar is a narrow value that is not of the nest.
func (e *nestCode) scalar(c *amd64.Chain, v *value, row int64) amd64.Value {
	if v.bits != nil {
		return c.Const32(*v.bits)
	}
	return e.copies(c, e.n.leaves[v], row)
}

func (e *nestCode) narrow(c *amd64.Chain, v *value, q int, row int64, made map[*value]amd64.Value) amd64.Value {
	n := e.n
	if x, ok := made[v]; ok {
		return x
	}
	switch {
	case n.inverted[v] != nil:
		made[v] = c.Do(amd64.VDIVPS, c.Float32(1), e.narrow(c, n.inverted[v], q, row, made))
	case n.makes(v) && n.plan.level[v] < q:
		made[v] = c.Load(amd64.VMOVUPS, e.slotAt(v), 0)
	case n.made[v] != nil:
		p := n.made[v]
		x := make([]amd64.Value, len(p.args))
		for k, arg := range p.args {
			x[k] = e.narrow(c, n.one(arg), q, row, made)
		}
		made[v] = p.emit(c, x)
	default:
		made[v] = e.scalar(c, v, row)
	}
	return made[v]
}

// foldsOf are the folds that end with pass q.
func (n *nest) foldsOf(q int) []*reduction {
	var list []*reduction
	for _, f := range n.folds {
		if n.plan.level[f.out] == q {
			list = append(list, f)
		}
	}
	return list
}

// registersOf are the registers of the folds of a pass, one list for each, of
// the first row of a batch, then of the others.
func (n *nest) registersOf(q int, batch int64) [][]amd64.Reg {
	var lists [][]amd64.Reg
	next := 14
	for range batch {
		for _, f := range n.foldsOf(q) {
			if f.columns {
				return nil
			}
			var list []amd64.Reg
			for range f.machine().registers() {
				list = append(list, amd64.Y(next))
				next--
			}
			lists = append(lists, list)
		}
	}
	return lists
}

// A nestPass is a pass over a row as it becomes machine code.
type nestPass struct {
	*nestCode
	q        int
	batch    int64
	fetching bool
	exactly  bool // divide where a reciprocal would do
	folds    []*reduction
	regs     [][]amd64.Reg        // of them
	pinned   map[*value]amd64.Reg // narrow values
	order    []*value             // those, as they are met
	taken    []amd64.Reg
	divisors []*value // of which reciprocals are used
	unrolled int      // most vectors in turn, 0 for what the plan says
	copies   int      // vectors in turn
	held     []held   // constants in the loop
}

func (p *nestPass) emit() error {
	p.folds, p.regs = p.n.foldsOf(p.q), p.n.registersOf(p.q, p.batch)
	p.pin()
	divisors := p.divisors
	if len(divisors) == 0 {
		return p.loop()
	}
	exact, done := p.a.NewLabel(), p.a.NewLabel()
	for _, s := range divisors {
		p.checkDivisor(s, exact)
	}
	if err := p.loop(); err != nil {
		return err
	}
	p.a.Emit(amd64.JMP, done)
	p.a.Bind(exact)
	p.exactly, p.unrolled = true, 1
	err := p.loop()
	p.a.Bind(done)
	return err
}

// checkDivisor jumps if s or its reciprocal is negative, 0, denormal, infinite or
// NaN.
func (p *nestPass) checkDivisor(s *value, exact amd64.Label) {
	at := p.slotAt(s)
	if _, ok := p.n.plan.slots[s]; !ok {
		at = p.at(p.n.leaves[s], 0, 0)
	}
	p.a.Emit(amd64.MOV, amd64.ECX, at)
	p.a.Emit(amd64.SUB, amd64.ECX, amd64.Imm(1<<23))
	p.a.Emit(amd64.CMP, amd64.ECX, amd64.Imm(252<<23))
	p.a.Emit(amd64.JAE, exact)
}

func (p *nestPass) loop() error {
	p.start()
	a, cols := p.a, p.n.cols()
	a.Emit(amd64.XOR, amd64.RCX, amd64.RCX)
	if whole := cols &^ (group*lanesOf - 1); whole > 0 {
		p.hold()
		loop := a.NewLabel()
		a.Align(32)
		a.Bind(loop)
		p.fetchAhead()
		if err := p.round(); err != nil {
			return err
		}
		a.Emit(amd64.ADD, amd64.RCX, amd64.Imm(group*lanesOf))
		a.Emit(amd64.CMP, amd64.RCX, amd64.Imm(whole))
		a.Emit(amd64.JL, loop)
	}
	disp := int32(0)
	for k := cols % (group * lanesOf); k >= lanesOf; k -= lanesOf {
		if err := p.chain(disp, 1, 0).Emit(a, p.spill(amd64.Placement{Copies: 1, Reserved: p.taken})); err != nil {
			return err
		}
		disp += 32
	}
	if rest := cols % lanesOf; rest > 0 {
		a.Emit(amd64.VMOVUPS, amd64.Y15, a.Data(firstLanes(int(rest))))
		return p.chain(disp, 1, 0).Emit(a, p.spill(amd64.Placement{Copies: 1, Mask: amd64.Y15, Reserved: p.taken}))
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
func (p *nestPass) pin() {
	p.pinned, p.taken = map[*value]amd64.Reg{}, nil
	p.taken = slices.Concat(p.regs...)
	const enough = 8
	p.chain(0, 1, 0) // finds the narrow values
	for k, v := range p.order {
		if r := 14 - len(p.taken); k < 4 && r >= enough && p.batch == 1 {
			p.pinned[v] = amd64.Y(r)
			p.taken = append(p.taken, amd64.Y(r))
		}
	}
}

func (p *nestPass) start() {
	for k, regs := range p.regs {
		p.folds[k%len(p.folds)].machine().clear(p.a, regs)
	}
	for _, v := range p.order {
		r, ok := p.pinned[v]
		_, kept := p.n.plan.slots[v]
		switch {
		case !ok:
		case kept:
			p.a.Emit(amd64.VMOVUPS, r, p.slotAt(v))
		default:
			p.copiesIn(r, p.n.leaves[v])
		}
	}
}

func (p *nestPass) fetchAhead() {
	if !p.fetching {
		return
	}
	for _, s := range p.streams {
		if r := p.ahead[s]; r != 0 {
			for row := range p.batch {
				for line := range int32(s.bytes() / 2) {
					p.a.Emit(amd64.PREFETCHT0, amd64.Mem{Base: r, Index: amd64.RCX, Scale: uint8(s.bytes()), Disp: 64*line + int32(s.bytes()*row*s.row())})
				}
			}
		}
	}
}

// A held constant is in a register.
type held struct {
	of  amd64.Constant
	reg amd64.Reg
}

// hold chooses the vectors in turn, as many as registers hold, which is worth more
// than not to load constants, and gives those used most the registers that are left.
func (p *nestPass) hold() {
	p.held, p.copies = nil, group
	if p.unrolled > 0 {
		p.copies = p.unrolled
		return
	}
	c := p.chain(0, 1, 0)
	pressure := c.Pressure()
	var free []amd64.Reg
	for n := 15; n >= 0; n-- {
		if !slices.Contains(p.taken, amd64.Y(n)) {
			free = append(free, amd64.Y(n))
		}
	}
	for p.copies > 1 && (p.copies > p.unroll || p.copies*pressure > len(free)) {
		p.copies /= 2
	}
	for n, k := range c.Constants() {
		if n+1+p.copies*pressure > len(free) {
			break
		}
		p.held = append(p.held, held{k, free[n]})
		p.a.Keep(k, free[n])
	}
}

// round appends four vectors: as many at once as registers hold.
func (p *nestPass) round() error {
	var err error
	for copies := p.copies; copies > 0; copies /= 2 {
		before := p.a.Mark()
		for k := 0; k < group; k += copies {
			c := p.chain(int32(32*k), copies, k)
			for _, h := range p.held {
				c.Hold(h.of, h.reg)
			}
			if err = c.Emit(p.a, p.spill(amd64.Placement{Copies: copies, Reserved: p.taken})); err != nil {
				p.a.Undo(before)
				break
			}
		}
		if !amd64.NeedsRegisters(err) {
			return err
		}
		p.held = nil
	}
	return err
}

// chain is what the pass does to vectors of a row, which begin disp bytes on,
// the first with partial result number part.
func (p *nestPass) chain(disp int32, copies, part int) *amd64.Chain {
	b := &passChain{nestPass: p, disp: disp}
	b.c, b.made = p.nestCode.chain()
	joined := make([]amd64.Value, len(p.folds))
	for row := range p.batch {
		b.row = row
		clear(b.made)
		for k, f := range p.folds {
			x := b.get(f.arg)
			switch {
			case f.columns && row == 0:
				joined[k] = b.c.Load(amd64.VMOVUPS, p.at(p.n.stores[f.out], disp, 0), 32)
				fallthrough
			case f.columns:
				joined[k] = f.machine().join(b.c, joined[k], x)
			default:
				f.machine().add(b.c, p.regs[k+int(row)*len(p.folds)], part, copies, x)
			}
		}
		for _, v := range p.n.order {
			if !p.n.narrow[v] && p.n.plan.level[v] == p.q {
				b.put(p.n.stores[v], b.get(v))
			}
		}
	}
	for k, f := range p.folds {
		if f.columns {
			b.c.Store(amd64.VMOVUPS, p.at(p.n.stores[f.out], disp, 0), 32, joined[k])
		}
	}
	return b.c
}

// A passChain builds the chain of a pass.
type passChain struct {
	*nestPass
	c    *amd64.Chain
	disp int32
	row  int64
	made map[*value]amd64.Value
}

func (b *passChain) put(s *stream, x amd64.Value) {
	b.store(b.c, s, b.disp, b.row, x, s.large && b.large)
}

// get is a value of the pass.
func (b *passChain) get(v *value) amd64.Value {
	n := b.n
	if v.bits != nil {
		return b.c.Const32(*v.bits)
	}
	if narrow := n.alias[v]; narrow != nil {
		return b.repeated(narrow)
	}
	if s := n.leaves[v]; s != nil && s.col() == 0 {
		return b.repeated(v)
	}
	if x, ok := b.made[v]; ok {
		return x
	}
	b.made[v] = b.compute(v)
	return b.made[v]
}

func (b *passChain) compute(v *value) amd64.Value {
	n := b.n
	if s := n.leaves[v]; s != nil {
		return b.load(b.c, s, b.disp, b.row)
	}
	saved := slices.Contains(n.plan.saved, v)
	kept := amd64.Mem{Base: amd64.RDI, Index: amd64.RCX, Scale: 4, Disp: int32(v.at) + b.disp}
	if n.plan.first[v] < b.q {
		if s := n.stores[v]; s != nil {
			return b.load(b.c, s, b.disp, b.row)
		}
		if saved {
			return b.c.Load(amd64.VMOVUPS, kept, 32)
		}
	}
	y := b.operation(n.made[v])
	if saved && n.plan.first[v] == b.q {
		b.c.Store(amd64.VMOVUPS, kept, 32, y)
	}
	return y
}

func (b *passChain) operation(p *pure) amd64.Value {
	if s := b.n.divisor(p); s != nil && !b.exactly {
		if !slices.Contains(b.divisors, s) {
			b.nestPass.divisors = append(b.nestPass.divisors, s)
		}
		x := b.get(p.args[0])
		if e := b.n.made[p.args[0]]; e != nil && b.n.power(e) {
			return smallQuotient(b.c, x, b.repeated(s), b.repeated(b.n.inverse[s]))
		}
		return quotient(b.c, x, b.repeated(s), b.repeated(b.n.inverse[s]))
	}
	if v := tanh1pOf(p, b.n.made); v != nil && b.n.stores[p.args[0]] == nil {
		return b.c.Tanh1p32(b.get(v))
	}
	x := make([]amd64.Value, len(p.args))
	for k, arg := range p.args {
		x[k] = b.get(arg)
	}
	switch {
	case b.n.excess[p.out]:
		return b.c.ExcessExp32(x[0])
	case b.n.power(p):
		return b.c.ExpBelow32(x[0])
	}
	return p.emit(b.c, x)
}

// power says whether an operation is e to what is at most 0, so that it is at most 1.
func (n *nest) power(p *pure) bool {
	return p.op.Code == hlo.OpExponential && p.op.Instr.Shape.DType == hlo.F32 && n.below(p.args[0])
}

// below says whether a value is what an element is less than the maximum of its row, so
// that it is at most 0.
func (n *nest) below(v *value) bool {
	p := n.made[v]
	if p == nil || p.op.Code != hlo.OpSubtract || n.alias[p.args[1]] == nil {
		return false
	}
	most := n.alias[p.args[1]]
	return slices.ContainsFunc(n.folds, func(f *reduction) bool {
		return f.out == most && f.monoid == hlo.OpMaximum && f.arg == p.args[0] && f.final
	})
}

// tanh1pOf is x where an operation is tanh x + 1 in f32, nil elsewhere; gelu has it.
func tanh1pOf(p *pure, made map[*value]*pure) *value {
	if p.op.Code != hlo.OpAdd || p.op.Instr.Shape.DType != hlo.F32 {
		return nil
	}
	one := p.args[1].bits
	t := made[p.args[0]]
	if one == nil || *one != math.Float32bits(1) || t == nil || t.op.Code != hlo.OpTanh {
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
	excess := c.Do(amd64.VMINPS, c.MulSub32(q, y, x), c.Float32(math.MaxFloat32))
	excess = c.Do(amd64.VMAXPS, excess, c.Float32(-math.MaxFloat32))
	return c.NegMulAdd32(excess, r, q)
}

// smallQuotient is the quotient for x that is at most 2^32, so that x·r is finite for sums of such.
func smallQuotient(c *amd64.Chain, x, y, r amd64.Value) amd64.Value {
	q := c.Do(amd64.VMULPS, x, r)
	return c.NegMulAdd32(c.MulSub32(q, y, x), r, q)
}

// repeated is a vector of copies of a narrow value.
func (b *passChain) repeated(v *value) amd64.Value {
	if x, ok := b.repeats[v]; ok && b.batch == 1 {
		return x
	}
	if r, ok := b.pinned[v]; ok && b.row == 0 {
		b.repeats[v] = b.c.Pinned(r)
		return b.repeats[v]
	}
	if !slices.Contains(b.order, v) {
		b.nestPass.order = append(b.nestPass.order, v)
	}
	if _, kept := b.n.plan.slots[v]; kept {
		b.repeats[v] = b.c.Load(amd64.VMOVUPS, b.slotAt(v), 0)
	} else {
		b.repeats[v] = b.nestCode.copies(b.c, b.n.leaves[v], b.row)
	}
	return b.repeats[v]
}

// emit is the operation on one vector of each argument.
func (p *pure) emit(c *amd64.Chain, x []amd64.Value) amd64.Value {
	y := machineOps[p.op.Code](c, p.op, x)
	if !exact[p.op.Code] && p.op.Code != hlo.OpCompare && p.op.Code != hlo.OpSelect {
		y = roundings[p.op.Instr.Shape.DType](c, y)
	}
	return y
}

// A nestRun runs a nest.
type nestRun struct {
	code, plain *amd64.Func // plain: without streaming stores; nil when there are none
	streams     []*stream
	sizes       []int64
	dim         int   // of which a call does some indices, and all of those after it
	most        int64 // of them
	begin       []step
}

// How many elements a nest does in one call, some 50 µs: where it reads at several
// places the more of them follow each other, the better they are fetched.
const (
	longestCall = 1 << 16
	longestRead = 1 << 18
)

// compile makes the function; what runs without it is up to the caller.
func (n *nest) compile(l *lowering) (step, error) {
	large := slices.ContainsFunc(n.moving(), n.aligned)
	a, err := n.code(l, large)
	if err != nil {
		return nil, err
	}
	text, err := a.Assemble()
	if err != nil {
		return nil, err
	}
	r := &nestRun{code: l.keepText(text), streams: n.moving(), sizes: n.sizes}
	if large {
		r.plain = l.keepText(a.Cached(text))
	}
	r.dim, r.most = n.counted()
	for _, f := range n.folds {
		if f.start != nil && !f.final {
			r.begin = append(r.begin, f.begin...)
		}
	}
	return r.run, nil
}

// aligned says whether a stream is stored past the caches and all its rows are
// whole vectors, if the first is.
func (n *nest) aligned(s *stream) bool {
	if !s.large {
		return false
	}
	for k, step := range s.strides[:len(s.strides)-1] {
		if n.sizes[k] > 1 && step%lanesOf != 0 {
			s.large = false
		}
	}
	return s.large
}

func (r *nestRun) run(w *worker) {
	for _, f := range r.begin {
		f(w)
	}
	var base [pointers]unsafe.Pointer
	for k, s := range r.streams {
		base[k] = s.base(w)
	}
	args := &w.nest
	args.arena = unsafe.Pointer(unsafe.SliceData(w.arena))
	var index [maxRank + 2]int64
	for {
		r.calls(args, base[:len(r.streams)])
		d := r.dim - 1
		for ; d >= 0; d-- {
			if index[d]++; index[d] < r.sizes[d] { // never past the last: a pointer beyond its array must not be
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

func (r *nestRun) move(base *[pointers]unsafe.Pointer, d int, by int64) {
	for k, s := range r.streams {
		base[k] = s.skip(base[k], by*s.strides[d])
	}
}

// calls does all indices of the dimension that calls divide.
func (r *nestRun) calls(args *nestArgs, base []unsafe.Pointer) {
	size := r.sizes[r.dim]
	for first := int64(0); first < size; first += r.most {
		args.count = min(r.most, size-first)
		f := r.code
		for k, s := range r.streams {
			args.at[k] = s.skip(base[k], first*s.strides[r.dim])
			if s.large && uintptr(args.at[k])%s.vector() != 0 {
				f = r.plain
			}
		}
		f.Call(unsafe.Pointer(args))
	}
}

func (s *stream) base(w *worker) unsafe.Pointer {
	at := w.base[s.v.id]
	if s.view != nil {
		at = s.view.base(w)
	}
	return s.skip(at, s.start)
}
