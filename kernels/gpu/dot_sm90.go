package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Products by warpgroups (sm_90a): tensor copies bring boxes of A and B to
// shared memory, a ring of slots ahead, each with a barrier that counts its
// bytes; wgmma reads them from there.

const (
	groupThreads = 128 // of a warpgroup
	groupRows    = 64  // of C that one wgmma computes
	groupBytes   = 32  // its k
	mostColumns  = 256 // of C that one wgmma computes
	mostBox      = 256 // elements along a dimension of a tensor copy
	widest       = 128 // bytes of a swizzled row
	atom         = 1024
)

// A wgmma is how the instruction takes operands of a type. Columns come in
// multiples of 16, which all types have (PTX ISA, wgmma.mma_async).
type wgmma struct {
	name string // in the opcode
	sum  hlo.DType
	turn bool // operands may have rows along the free dimension
	sign bool // operands may be negated: there are operands that say whether
}

// groupTypes are the products that warpgroups have. The sums of 8-bit floats
// have about 14 bits while they are in the tensor cores (DeepSeek-V3 Technical
// Report, 2024, §3.3.2), which is within what is allowed of a dot of such types.
var groupTypes = map[hlo.DType]wgmma{
	hlo.F16:      {"f16", hlo.F32, true, true},
	hlo.BF16:     {"bf16", hlo.F32, true, true},
	hlo.F8E4M3FN: {"e4m3", hlo.F32, false, true},
	hlo.F8E5M2:   {"e5m2", hlo.F32, false, true},
	hlo.S8:       {"s8", hlo.S32, false, false},
	hlo.U8:       {"u8", hlo.S32, false, false},
}

// groupProduct says whether warpgroups multiply two types: the same, or floats
// of 8 bits.
func groupProduct(a, b hlo.DType) (wgmma, bool) {
	x, ok := groupTypes[a]
	y, both := groupTypes[b]
	return x, ok && both && (a == b || x.sum == hlo.F32 && a.Size() == 1 && y.sum == hlo.F32 && b.Size() == 1)
}

// A groupDot is a product computed by wgmma. Warpgroups stand gm×gn over C, each
// with rows×cols elements of it.
type groupDot struct {
	*product
	wgmma
	from       hlo.DType // of A; B has the size of it
	gm, gn     int64
	rows, cols int64
	depth      int64
	a, b       *boxTile
	accs       [][]operand // by 64 rows
}

// A boxTile is an operand in shared memory as tensor copies leave it: chunks of
// rows of inner elements, swizzled. Rows are along the free dimension and
// elements along k, or the other way round.
type boxTile struct {
	name   string
	op     int   // the parameter
	free   int64 // extent, padded
	depth  int64
	byK    bool // a row is one k
	inner  int64
	fd, kd int // dimensions of the tensor that are the free and the contracted one
	bytes  int64
	at     int64 // in a slot
	number int   // of the tensor map
}

// A tensorMap is a parameter of the kernel that describes another.
type tensorMap struct {
	param int
	spec  TensorMapSpec // without the base
}

// newGroupDot is the product of op n by warpgroups, nil where it is not one.
func (e *emitter) newGroupDot(n int) *groupDot {
	p := e.newProduct(n)
	from := e.typeOf(p.lhs.arg, 0)
	inst, ok := groupProduct(from, e.typeOf(p.rhs.arg, 0))
	if !ok || wideSum(p.d) != inst.sum || p.b != 1 || p.m < groupRows/2 {
		return nil
	}
	step := groupBytes / from.Size()
	t := &groupDot{product: p, wgmma: inst, from: from, depth: ceilDiv(p.k, step) * step}
	if !t.divide(e.threads/groupThreads) || t.rows/groupRows*t.cols/2 > mostPartials {
		return nil
	}
	t.a = e.boxTile("A", p.lhs, t.rows*t.gm, groupRows, t.depth)
	t.b = e.boxTile("B", p.rhs, t.cols*t.gn, t.cols, t.depth)
	if t.a == nil || t.b == nil || !t.turn && (t.a.byK || t.b.byK) {
		return nil
	}
	return t
}

// divide arranges warpgroups for the least padding, then the least reading.
func (t *groupDot) divide(groups int64) bool {
	best := int64(-1)
	for gm := int64(1); gm <= groups; gm *= 2 {
		gn := groups / gm
		rows, cols := ceilDiv(ceilDiv(t.m, groupRows), gm)*groupRows, ceilDiv(ceilDiv(t.c, 16), gn)*16
		if cost := rows*cols*4096 + rows + cols; cols <= mostColumns && (best < 0 || cost < best) {
			best, t.gm, t.gn, t.rows, t.cols = cost, gm, gn, rows, cols
		}
	}
	return best >= 0
}

// boxTile says how an operand is copied; nil where tensor copies cannot. part is
// how much of the free side a warpgroup reads at once.
func (e *emitter) boxTile(name string, o operandTile, free, part, depth int64) *boxTile {
	op := e.p.Ops[o.arg]
	shape := op.Instr.Shape
	fd, okF := single1(o.sizes, o.free)
	kd, okK := single1(o.sizes, o.contract)
	if op.Code != "parameter" || !okF || !okK || shape.Rank() > 5 || !e.copyable(op) {
		return nil
	}
	size := shape.DType.Size()
	if k := op.Tile[kd]; o.sizes[kd]*size%groupBytes != 0 && (constantOf(k.Size) != shape.Dims[kd] || len(k.Offset.Vars()) > 0) {
		return nil // what is beyond the tile is not beyond the tensor
	}
	order := majorToMinor(shape)
	b := &boxTile{name: name, op: o.arg, free: free, depth: depth, fd: fd, kd: kd, byK: order[len(order)-1] == fd}
	along := depth
	if b.byK {
		along = part
	} else if order[len(order)-1] != kd {
		return nil
	}
	for b.inner = widest / size; along%b.inner != 0; b.inner /= 2 {
	}
	if b.inner*size < groupBytes || b.rows() > mostBox {
		return nil
	}
	b.bytes = free * depth * size
	return b
}

// single1 is the one dimension of dims with more than one element, or the first.
func single1(sizes []int64, dims []int) (d int, ok bool) {
	if len(dims) == 0 {
		return 0, false
	}
	d = dims[0]
	n := 0
	for _, x := range dims {
		if sizes[x] > 1 {
			d, n = x, n+1
		}
	}
	return d, n <= 1
}

// copyable says whether tensor copies see a parameter's tile as it is: runs
// without gaps, masked at the tensor's end only, strides of whole 16 bytes.
func (e *emitter) copyable(op symtile.Op) bool {
	shape := op.Instr.Shape
	strides := shape.Strides()
	for d, x := range op.Tile {
		if x.Digits != nil || constantOf(x.Stride) != 1 || x.MaskedBelow() || x.MaskedAbove() && x.Bound != e.ring.Const(shape.Dims[d]) {
			return false
		}
		if strides[d] != 1 && strides[d]*shape.DType.Size()%matrixRow != 0 {
			return false
		}
	}
	return true
}

// rows of a chunk, and the number of chunks.
func (b *boxTile) rows() int64 {
	if b.byK {
		return b.depth
	}
	return b.free
}

func (b *boxTile) chunkBytes(size int64) int64 { return b.rows() * b.inner * size }

// spec describes the tensor to the copy unit.
func (b *boxTile) spec(e *emitter) TensorMapSpec {
	shape := e.p.Ops[b.op].Instr.Shape
	strides := shape.Strides()
	s := TensorMapSpec{DType: shape.DType, Swizzle: Swizzle(b.inner * shape.DType.Size())}
	for k, d := range slices.Backward(majorToMinor(shape)) {
		s.Dims = append(s.Dims, uint64(shape.Dims[d]))
		if k < shape.Rank()-1 {
			s.Strides = append(s.Strides, uint64(strides[d]*shape.DType.Size()))
		}
		box := int64(1)
		switch d {
		case b.fd:
			box = b.free
		case b.kd:
			box = b.depth
		}
		if k == shape.Rank()-1 {
			box = b.inner
		}
		s.Box = append(s.Box, uint32(box))
	}
	return s
}

// mapNumber declares the tensor map of a tile, once for equal ones.
func (e *emitter) mapNumber(b *boxTile) int {
	m := tensorMap{int(e.p.Ops[b.op].Instr.Attrs.Param), b.spec(e)}
	for k, x := range e.maps {
		if fmt.Sprint(x) == fmt.Sprint(m) {
			return k
		}
	}
	e.maps = append(e.maps, m)
	name := fmt.Sprintf("map%d", len(e.maps)-1)
	e.asm.code.ParamBytes(name, 64, 128)
	return len(e.maps) - 1
}

// A ring is a loop of products by warpgroups, or one of them that has no loop.
type ring struct {
	e     *emitter
	dots  []*groupDot
	tiles []*boxTile
	dims  []int
	trips []int64
	total int64
	slots int64
	bytes int64 // of a slot
	at    int64
	full0 int64 // where the barriers are
	lag   int64 // iterations that are still multiplied when the next begins

	special           bool   // a producer fills the slots
	outside           *scope // of the loop
	data, full, empty operand
	leads             operand
	maps              []operand
}

// grouped emits products that one loop over dims accumulates, by warpgroups; it
// says whether it did.
func (e *emitter) grouped(closers, dims []int, body []symtile.Step) bool {
	if !e.sheet.Warpgroups() || e.threads%groupThreads != 0 || e.nested > 0 {
		return false
	}
	r := &ring{e: e, dims: dims, total: 1}
	for _, n := range closers {
		if e.p.Ops[n].Code != "dot" {
			return false
		}
		d := e.newGroupDot(n)
		if d == nil {
			return false
		}
		r.dots = append(r.dots, d)
	}
	for _, s := range body {
		if s.Loop != nil || e.hints.staged[s.Op] || len(e.p.Ops[s.Op].Needs) > 0 {
			return false
		}
	}
	for _, d := range dims {
		r.trips = append(r.trips, constantOf(e.p.Space.Dims[d].Tiles))
		r.total *= r.trips[len(r.trips)-1]
	}
	r.slots = min(int64(e.knobs.stages), r.total)
	r.lag = min(1, r.slots-1)
	r.special = e.knobs.producer > 0 && r.total > r.slots && e.asm.waits == 0 && int(e.threads)+e.knobs.producer*WarpThreads <= e.sheet.BlockThreads
	r.layOut()
	r.emit()
	if e.knobs.epilogue > 0 {
		e.release(r.at, r.bytes*r.slots)
		e.barrier() // all are done with the ring
	}
	for _, d := range r.dots {
		d.finish()
	}
	return true
}

func (r *ring) layOut() {
	e := r.e
	known := map[string]*boxTile{}
	for _, d := range r.dots {
		for _, b := range []*boxTile{d.a, d.b} {
			key := fmt.Sprint(b.op, b.free, b.depth, b.byK, b.inner)
			if x := known[key]; x != nil {
				b.at = x.at
				continue
			}
			known[key] = b
			b.at, b.number = r.bytes, e.mapNumber(b)
			r.bytes += (b.bytes + atom - 1) / atom * atom
			r.tiles = append(r.tiles, b)
		}
	}
	e.shared = (e.shared + atom - 1) / atom * atom
	r.at = e.room(r.bytes * r.slots)
	r.full0 = e.room(16 * r.slots)
}

// emit emits the ring. With a producer a warp of its own does nothing but fill
// slots that the warpgroups give back; without, thread 0 fills the slot before
// when all have passed it.
func (r *ring) emit() {
	e, a := r.e, r.e.asm
	for _, d := range r.dots {
		d.begin()
	}
	for k := range e.maps {
		p := a.get(kindB64, "mov.b64", operand(fmt.Sprintf("map%d", k)))
		r.maps = append(r.maps, a.get(kindB64, "cvta.param.u64", p))
	}
	r.outside = a.scope
	r.data, r.full, r.empty = a.get(kindB32, "add.s32", e.smem, r.at), a.get(kindB32, "add.s32", e.smem, r.full0), a.get(kindB32, "add.s32", e.smem, r.full0+8*r.slots)
	r.leads = a.get(kindPred, "setp.eq.s32", e.num(e.thread), 0)
	a.note("barriers of %d slots of %d bytes", r.slots, r.bytes)
	for s := range r.slots {
		a.when(r.leads, "mbarrier.init.shared.b64", address{r.full, 8 * s}, 1)
		if r.special {
			a.when(r.leads, "mbarrier.init.shared.b64", address{r.empty, 8 * s}, e.threads/WarpThreads)
		}
	}
	a.when(r.leads, "fence.mbarrier_init.release.cluster")
	a.when(r.leads, "fence.proxy.async")
	e.barrier()
	if r.special {
		e.extra = e.knobs.producer * WarpThreads
		r.produce()
	} else {
		r.prefill()
	}
	r.consume()
}

// prefill fills the slots of the first iterations.
func (r *ring) prefill() {
	a := r.e.asm
	follower := a.label("FOLLOW")
	a.branch(a.not(r.leads), follower)
	a.enter()
	for s := range min(r.slots-r.lag, r.total) {
		r.copy(a.in(kindB32, integer(s)), address{r.data, s * r.bytes}, address{r.full, 8 * s})
	}
	a.leave()
	a.place(follower)
}

// produce is all that the first thread after the warpgroups does; those beside
// it do nothing.
func (r *ring) produce() {
	e, a := r.e, r.e.asm
	consumer, again, wait := a.label("CONSUMER"), a.label("PRODUCE"), a.label("EMPTY")
	a.branch(a.get(kindPred, "setp.lt.s32", e.num(e.thread), e.threads), consumer)
	a.note("the producer: %d iterations", r.total)
	a.enter()
	inc := r.share()
	if inc > 0 {
		a.do("setmaxnreg.dec.sync.aligned.u32", producerRegisters)
	}
	a.when(a.get(kindPred, "setp.gt.s32", e.num(e.thread), e.threads), "ret")
	c := r.cursor(r.empty, 0, 1) // the first time slots are empty
	to, signal := a.fresh(kindB32), a.fresh(kindB32)
	a.do("mov.b32", to, r.data)
	a.do("mov.b32", signal, r.full)
	counter, more := a.fresh(kindB32), a.fresh(kindPred)
	a.do("mov.b32", counter, 0)
	a.place(again)
	a.place(wait)
	r.wait(c, wait)
	r.copy(counter, address{to, 0}, address{signal, 0})
	a.do("add.s32", to, to, r.bytes)
	a.do("add.s32", signal, signal, 8)
	wrap := r.advance(c)
	a.when(wrap, "mov.b32", to, r.data)
	a.when(wrap, "mov.b32", signal, r.full)
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, r.total)
	a.branch(more, again)
	a.do("ret")
	a.leave()
	a.place(consumer)
	if inc > 0 {
		a.do("setmaxnreg.inc.sync.aligned.u32", inc)
	}
}

// producerRegisters are what a thread of a producer warpgroup keeps.
const producerRegisters = 40

// share is how many registers a thread of the other warpgroups has when those of
// the producer's are given to them; 0 where the producer is no warpgroup, or
// there is nothing to gain. All start with the same part of the block's
// registers; counts are multiples of 8 up to 256 (PTX ISA, setmaxnreg).
func (r *ring) share() int {
	e := r.e
	if e.extra != groupThreads {
		return 0
	}
	groups := int(e.threads) / groupThreads
	first := e.sheet.BlockRegisters / (groups + 1) / groupThreads / 8 * 8
	if first >= e.sheet.ThreadRegisters || first <= producerRegisters {
		return 0
	}
	return min(first+(first-producerRegisters)/groups, e.sheet.ThreadRegisters) / 8 * 8
}

// A cursor is a place in the ring: the barrier of the slot and the parity of the
// phase that is waited for.
type cursor struct{ first, at, parity operand }

func (r *ring) cursor(first operand, slot, parity int64) cursor {
	a := r.e.asm
	c := cursor{first, a.fresh(kindB32), a.fresh(kindB32)}
	a.do("add.s32", c.at, first, 8*slot)
	a.do("mov.b32", c.parity, parity)
	return c
}

// wait tries again from a label on until the phase is over.
func (r *ring) wait(c cursor, again operand) {
	a := r.e.asm
	done := a.fresh(kindPred)
	a.do("mbarrier.try_wait.parity.shared.b64", done, address{c.at, 0}, c.parity)
	a.unless(done, "bra", again)
}

// advance moves on to the next slot; after the last the parity changes. The
// result says whether it was the last.
func (r *ring) advance(c cursor) (wrap operand) {
	a := r.e.asm
	wrap = a.fresh(kindPred)
	a.do("add.s32", c.at, c.at, 8)
	a.do("setp.ge.s32", wrap, c.at, a.get(kindB32, "add.s32", c.first, 8*r.slots))
	a.when(wrap, "mov.b32", c.at, c.first)
	a.when(wrap, "xor.b32", c.parity, c.parity, 1)
	return wrap
}

// consume waits for a slot, multiplies what is in it, and gives the slot before
// back.
func (r *ring) consume() {
	a := r.e.asm
	descriptors := r.descriptors(r.data)
	c, offset := r.cursor(r.full, 0, 0), a.fresh(kindB64)
	before := r.refill()
	counter, more := a.fresh(kindB32), a.fresh(kindPred)
	a.do("mov.b64", offset, 0)
	a.do("mov.b32", counter, 0)
	again, wait := a.label("LOOP"), a.label("FULL")
	a.note("for %d iterations", r.total)
	a.place(again)
	a.place(wait)
	r.wait(c, wait)
	a.do("wgmma.fence.sync.aligned")
	a.enter()
	for k, d := range r.dots {
		d.multiply(descriptors[k], offset)
	}
	a.leave()
	a.do("wgmma.commit_group.sync.aligned")
	a.do("wgmma.wait_group.sync.aligned", r.lag)
	before(counter)
	a.do("add.s64", offset, offset, r.bytes/matrixRow)
	a.when(r.advance(c), "mov.b64", offset, 0)
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, r.total)
	a.branch(more, again)
	a.do("wgmma.wait_group.sync.aligned", 0)
}

// refill prepares what is done about the slot of the iteration before (of this
// one, when there is one slot): it is given back to the producer, or filled.
func (r *ring) refill() func(counter operand) {
	e, a := r.e, r.e.asm
	switch {
	case r.special:
		c := r.cursor(r.empty, (r.slots-r.lag)%r.slots, 0)
		one := a.get(kindPred, "setp.eq.s32", e.num(e.thread.Mod(WarpThreads)), 0) // of each warp, which waited for its own part
		return func(counter operand) {
			p := a.fresh(kindPred)
			a.do("setp.ge.and.s32", p, counter, r.lag, one)
			a.when(p, "mbarrier.arrive.shared.b64", sink, address{c.at, 0})
			r.advance(c)
		}
	case r.total <= r.slots-r.lag:
		return func(operand) {}
	}
	signal, to := r.cursor(r.full, (r.slots-r.lag)%r.slots, 0), a.fresh(kindB32)
	next, more := a.fresh(kindB32), a.fresh(kindPred)
	a.do("add.s32", to, r.data, r.bytes*((r.slots-r.lag)%r.slots))
	return func(counter operand) {
		skip := a.label("NEXT")
		e.barrier()
		a.do("add.s32", next, counter, r.slots-r.lag)
		a.do("setp.ge.s32", more, next, r.total)
		a.branch(more, skip)
		a.branch(a.not(r.leads), skip)
		r.copy(next, address{to, 0}, address{signal.at, 0})
		a.place(skip)
		a.do("add.s32", to, to, r.bytes)
		a.when(r.advance(signal), "mov.b32", to, r.data)
	}
}

// copy has the copy unit fill a slot with the tiles of an iteration.
func (r *ring) copy(iteration operand, to, signal address) {
	e, a := r.e, r.e.asm
	inside := a.scope
	a.scope = newScope(r.outside)
	defer func() { a.scope = inside }()
	e.atIteration(r.dims, r.trips, r.total, iteration)
	bytes := int64(0)
	for _, b := range r.tiles {
		bytes += b.bytes
	}
	a.do("mbarrier.arrive.expect_tx.shared.b64", sink, signal, bytes)
	for _, b := range r.tiles {
		r.boxes(b, to.plus(b.at), signal)
	}
}

// boxes copies the chunks of a tile.
func (r *ring) boxes(b *boxTile, to, signal address) {
	e, a := r.e, r.e.asm
	op := e.p.Ops[b.op]
	shape := op.Instr.Shape
	chunks := b.depth / b.inner
	if b.byK {
		chunks = b.free / b.inner
	}
	for c := range chunks {
		var at []operand
		for k, d := range slices.Backward(majorToMinor(shape)) {
			x := op.Tile[d].Offset
			if k == shape.Rank()-1 {
				x = x.AddConst(c * b.inner)
			}
			at = append(at, a.in(kindB32, e.num(x)))
		}
		opcode := fmt.Sprintf("cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes", shape.Rank())
		a.do(opcode, to.plus(c*b.chunkBytes(shape.DType.Size())), tensorAt{r.maps[b.number], at}, signal)
	}
}

// A tensorAt is [map, {coordinates}].
type tensorAt struct {
	tensor operand
	at     []operand
}

// descriptors are the matrix descriptors of slot 0 for this thread's warpgroup.
func (r *ring) descriptors(data operand) [][2]operand {
	e := r.e
	group := e.thread.Div(groupThreads)
	var all [][2]operand
	for _, d := range r.dots {
		size := d.from.Size()
		m, n := group.Div(d.gn).Scale(d.rows), group.Mod(d.gn).Scale(d.cols)
		all = append(all, [2]operand{e.descriptor(d.a, data, m, size), e.descriptor(d.b, data, n, size)})
	}
	return all
}

// offset is how many bytes into the tile the row (or column) first of C and k
// are. first is a multiple of what a chunk has.
func (b *boxTile) offset(first symtile.Expr, k, size int64) symtile.Expr {
	if b.byK {
		return first.Scale(b.depth * size).AddConst(k * b.inner * size)
	}
	return first.Scale(b.inner * size).AddConst(k/b.inner*b.chunkBytes(size) + k%b.inner*size)
}

// swizzleCode is the swizzle of a descriptor (PTX ISA, wgmma matrix descriptor).
var swizzleCode = map[Swizzle]int64{Swizzle128: 1, Swizzle64: 2, Swizzle32: 3}

// descriptor is a tile from a row on: the start in units of 16 bytes, at bit 16
// the distance of chunks of columns, at bit 32 that of groups of eight rows.
func (e *emitter) descriptor(b *boxTile, data operand, first symtile.Expr, size int64) operand {
	a := e.asm
	start := a.get(kindB32, "add.s32", data, e.num(b.offset(first, 0, size).AddConst(b.at)))
	start = a.get(kindB32, "and.b32", a.get(kindB32, "shr.u32", start, 4), 0x3fff)
	leading := int64(1)
	if b.byK {
		leading = b.chunkBytes(size) / matrixRow
	}
	fixed := leading<<16 | 8*b.inner*size/matrixRow<<32 | swizzleCode[Swizzle(b.inner*size)]<<62
	return a.get(kindB64, "or.b64", a.get(kindB64, "cvt.u64.u32", start), a.in(kindB64, integer(fixed)))
}

func (t *groupDot) begin() {
	e := t.e
	e.asm.note("%%%d %s: dot (%d×%d)·(%d×%d), %d×%d warpgroups of %d×%d", t.n, t.op.Instr.Name, t.m, t.k, t.k, t.c, t.gm, t.gn, t.rows, t.cols)
	t.accs = make([][]operand, t.rows/groupRows)
	k := kindFor(t.sum)
	for i := range t.accs {
		t.accs[i] = e.asm.fresher(k, int(t.cols/2))
		for _, acc := range t.accs[i] {
			e.set(k, acc, zero(k))
		}
	}
}

// multiply begins the products of one slot, offset being where it is.
func (t *groupDot) multiply(d [2]operand, offset operand) {
	e, a := t.e, t.e.asm
	size := t.from.Size()
	step := groupBytes / size
	opcode := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s", t.cols, step, t.sum, t.name, groupTypes[e.typeOf(t.rhs.arg, 0)].name)
	zero := e.ring.Const(0)
	for k := int64(0); k < t.depth; k += step {
		db := t.moved(d[1], offset, constantOf(t.b.offset(zero, k, size)))
		for i, c := range t.accs {
			rows := e.ring.Const(int64(i) * groupRows)
			da := t.moved(d[0], offset, constantOf(t.a.offset(rows, k, size)))
			a.do(opcode, append([]any{c, da, db, a.in(kindPred, yes)}, t.flags()...)...)
		}
	}
}

// flags are the operands after scale-d: both operands' signs, then whether each
// has rows along the free dimension, as far as the type has them.
func (t *groupDot) flags() []any {
	var list []any
	if t.sign {
		list = append(list, 1, 1)
	}
	if t.turn {
		for _, b := range []*boxTile{t.a, t.b} {
			list = append(list, map[bool]int{true: 1}[b.byK])
		}
	}
	return list
}

// moved is a descriptor some bytes further in a slot. The slot's offset is
// written more than once: this is no value to be found again.
func (t *groupDot) moved(d, offset operand, bytes int64) operand {
	a := t.e.asm
	r := a.fresh(kindB64)
	a.do("add.s64", r, d, offset)
	if bytes != 0 {
		a.do("add.s64", r, r, bytes/matrixRow)
	}
	return r
}

func (t *groupDot) finish() {
	t.e.freeze(kindFor(t.sum), t.accs)
	for i := range t.accs {
		for k, v := range t.accs[i] {
			t.accs[i][k] = t.e.convert(t.d, t.sum, v)
		}
	}
	t.publish(t.fragments)
}

// fragments visits C: warp w of a warpgroup has rows 16·w on of each 64; its lane
// l has rows l/4 and l/4 + 8 and of every 8 columns 2·(l mod 4) and the next.
func (t *groupDot) fragments(visit func(points []point, vals []operand)) {
	e := t.e
	group, warp, lane := e.thread.Div(groupThreads), e.thread.Div(WarpThreads).Mod(groupThreads/WarpThreads), e.thread.Mod(WarpThreads)
	zero := e.ring.Const(0)
	for i := range t.accs {
		for j := range t.cols / mmaN {
			for half := range int64(2) {
				m := group.Div(t.gn).Scale(t.rows).AddConst(int64(i)*groupRows + half*8).Add(warp.Scale(16)).Add(lane.Div(4))
				n := group.Mod(t.gn).Scale(t.cols).AddConst(j * mmaN).Add(lane.Mod(4).Scale(2))
				var points []point
				for q := range int64(2) {
					own := conditions(nil).and(m.Neg().AddConst(t.m - 1)).and(n.Neg().AddConst(t.c - 1 - q))
					points = append(points, point{t.result(zero, m, n.AddConst(q)), own})
				}
				visit(points, t.accs[i][j*4+half*2:j*4+half*2+2])
			}
		}
	}
}

// atIteration binds the tile ids of dims to those of iteration n of a loop.
func (e *emitter) atIteration(dims []int, trips []int64, total int64, n operand) {
	e.loops++
	step := e.ring.Var(symtile.Variable{Name: "iteration" + string(integer(int64(e.loops))), Lo: 0, Hi: total - 1, Role: symtile.RoleLoop})
	if total == 1 {
		return
	}
	e.bind(step, n)
	for k, x := range digitsOf(step, trips) {
		if trips[k] > 1 {
			e.bind(e.p.Space.Dims[dims[k]].Tid, e.num(x))
		}
	}
}

// tensor is the operand of a tensor copy.
func (a *asm) tensor(x tensorAt) ptx.Operand {
	var at []ptx.Operand
	for _, o := range x.at {
		at = append(at, a.operand(o))
	}
	return ptx.Tensor(a.operand(x.tensor), at...)
}
