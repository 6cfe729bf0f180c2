package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Products on tensor cores with mma.sync: A and B are in shared memory, rows 16
// bytes further apart than they are long, so that the eight rows an ldmatrix
// reads at once lie in different banks; C is in registers.

// An mma is one instruction: m16, n8, and k rows of so many bytes.
type mma struct {
	opcode string
	k      int64
	sum    hlo.DType
}

// tensorTypes are the products tensor cores of sm_80 have (PTX ISA, mma.sync).
var tensorTypes = map[hlo.DType]mma{
	hlo.F16:  {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, hlo.F32},
	hlo.BF16: {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, hlo.F32},
	hlo.S8:   {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 32, hlo.S32},
	hlo.U8:   {"mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32", 32, hlo.S32},
}

const (
	mmaM, mmaN = 16, 8
	matrixRow  = 16 // bytes of a row of an 8×8 matrix that ldmatrix reads
)

// A tensorDot is a product of tiles by mma.sync. Warps stand wm×wn over C, each
// with rows×cols elements of it; C is padded to what they cover.
type tensorDot struct {
	*product
	mma        mma
	from       hlo.DType
	wm, wn     int64
	rows, cols int64 // of a warp
	depth      int64 // k, padded
	a, b       *matrixTile
	accs       [][]operand // by batch element; then fragment by fragment, 4 each
	warpM      symtile.Expr
	warpN      symtile.Expr
	lane       symtile.Expr
}

// A matrixTile is an operand in shared memory: for every element of the batch
// rows of pitch bytes. Rows are along the free dimension, or along k where that
// is what follows itself in memory.
type matrixTile struct {
	name    string
	tile    operandTile
	byK     bool  // a row is one k
	free, k int64 // padded extents
	pitch   int64 // elements
	bytes   int64
	at      int64
}

// newTensorDot is the product on tensor cores, nil where they do not have it.
func (e *emitter) newTensorDot(p *product) closer {
	from := e.typeOf(p.lhs.arg, 0)
	inst, ok := tensorTypes[from]
	if !ok || e.typeOf(p.rhs.arg, 0) != from || wideSum(p.d) != inst.sum || p.d.Bits() < from.Bits() {
		return nil
	}
	t := &tensorDot{product: p, mma: inst, from: from}
	t.depth = ceilDiv(p.k, inst.k) * inst.k
	e.divideWarps(t)
	if count := p.b * t.rows * t.cols / WarpThreads; count > mostPartials {
		e.refuse("%s: each of %d threads would keep %d sums; at most %d are kept", p.op.Instr.Name, e.threads, count, mostPartials)
	}
	t.lane, t.warpM, t.warpN = e.thread.Mod(WarpThreads), e.thread.Div(WarpThreads).Div(t.wn), e.thread.Div(WarpThreads).Mod(t.wn)
	t.a = e.matrixTile("A", t, p.lhs, t.rows*t.wm)
	t.b = e.matrixTile("B", t, p.rhs, t.cols*t.wn)
	if t.a == nil || t.b == nil {
		return nil
	}
	t.accs = make([][]operand, p.b)
	return t
}

// divideWarps picks the arrangement of warps that computes the least padding,
// and then reads the least from shared memory.
func (e *emitter) divideWarps(t *tensorDot) {
	warps := e.threads / WarpThreads
	best := int64(-1)
	for wm := int64(1); wm <= warps; wm *= 2 {
		wn := warps / wm
		rows, cols := ceilDiv(ceilDiv(t.m, mmaM), wm)*mmaM, ceilDiv(ceilDiv(t.c, mmaN), wn)*mmaN
		cost := rows*cols*1024 + rows + cols
		if best < 0 || cost < best {
			best, t.wm, t.wn, t.rows, t.cols = cost, wm, wn, rows, cols
		}
	}
}

// matrixTile lays an operand out; nil where ldmatrix cannot read it.
func (e *emitter) matrixTile(name string, t *tensorDot, o operandTile, free int64) *matrixTile {
	order := e.memoryOrder(o.arg)
	m := &matrixTile{name: name, tile: o, free: free, k: t.depth}
	for _, d := range slices.Backward(order) {
		if o.sizes[d] > 1 {
			m.byK = !slices.Contains(o.contract, d)
			break
		}
	}
	if m.byK && t.from.Size() != 2 {
		m.byK = false // .trans moves 16-bit elements only
	}
	rows, row := m.free, m.k
	if m.byK {
		rows, row = m.k, ceilDiv(m.free, 8)*8
	}
	extra := matrixRow / t.from.Size()
	m.pitch = row
	if row*t.from.Size()/matrixRow%2 == 0 {
		m.pitch += extra
	}
	m.bytes = t.product.b * rows * m.pitch * t.from.Size()
	return m
}

// position is the element of the tile in shared memory of (b, free, k).
func (m *matrixTile) position(b, free, k symtile.Expr) symtile.Expr {
	if m.byK {
		return b.Scale(m.k).Add(k).Scale(m.pitch).Add(free)
	}
	return b.Scale(m.free).Add(free).Scale(m.pitch).Add(k)
}

func (t *tensorDot) begin() {
	e := t.e
	e.asm.note("%%%d %s: dot %d×(%d×%d)·(%d×%d), %d×%d warps of %d×%d", t.n, t.op.Instr.Name, t.product.b, t.m, t.k, t.k, t.c, t.wm, t.wn, t.rows, t.cols)
	k := kindFor(t.mma.sum)
	for i := range t.accs {
		t.accs[i] = e.asm.fresher(k, int(t.rows/mmaM*t.cols/mmaN*4))
		for _, acc := range t.accs[i] {
			e.set(k, acc, zero(k))
		}
	}
}

func (t *tensorDot) accumulate() {
	e := t.e
	for _, m := range []*matrixTile{t.a, t.b} { // one after the other: both may be the same tile
		if t.room(m); !e.present(t, m) {
			t.bring(m, memory{shared, e.smem, m.at})
			e.fresh = true
		}
	}
	e.settle()
	t.multiply(memory{shared, e.smem, t.a.at}, memory{shared, e.smem, t.b.at})
}

// room gives a tile its place, one that is there if the same tile is.
func (t *tensorDot) room(m *matrixTile) *matrixTile {
	e := t.e
	key := m.key(t)
	for sc := e.asm.scope; sc != nil; sc = sc.outer {
		if b := sc.tiles[key]; b != nil {
			m.at = b.at
			return m
		}
	}
	m.at = e.room(m.bytes)
	return m
}

func (m *matrixTile) key(t *tensorDot) string {
	return fmt.Sprint("matrix ", m.tile, m.byK, m.free, m.k, t.from)
}

// present says whether the tile is in shared memory, and from now on it is.
func (e *emitter) present(t *tensorDot, m *matrixTile) bool {
	key := m.key(t)
	for sc := e.asm.scope; sc != nil; sc = sc.outer {
		if sc.tiles[key] != nil {
			return true
		}
	}
	e.asm.scope.tiles[key] = &buffer{d: t.from, at: m.at}
	return false
}

// bring copies an operand's tile to shared memory, 16 bytes a thread at a time,
// with zeros around it. Chunks that lie in memory as they do here are copied
// asynchronously.
func (t *tensorDot) bring(m *matrixTile, to memory) {
	e := t.e
	e.asm.note("%s of %%%d to shared memory", m.name, t.n)
	per := matrixRow / t.from.Size()
	sizes := []int64{t.product.b, m.free, m.k}
	if m.byK {
		sizes = []int64{t.product.b, m.k, m.free}
	}
	s := newSpread(sizes, nil, []int{0, 1, 2}, e.threads, e.threads, per)
	e.asm.enter()
	e.each(s, func(points []point) {
		from := make([]point, len(points))
		for i, x := range points {
			free, k, extent := x.at[1], x.at[2], t.m
			if m.byK {
				free, k = k, free
			}
			if m == t.b {
				extent = t.c
			}
			when := x.when.and(free.Neg().AddConst(extent - 1)).and(k.Neg().AddConst(t.k - 1))
			from[i] = point{m.tile.index(x.at[0], free, k), when}
		}
		at := points[0].at
		first := m.position(at[0], at[1], at[2])
		if m.byK {
			first = m.position(at[0], at[2], at[1])
		}
		t.copyChunk(m, from, e.at(to, first, t.from.Size()), e.guard(points[0].when))
	})
	e.asm.leave()
}

// copyChunk copies 16 bytes, where p holds.
func (t *tensorDot) copyChunk(m *matrixTile, from []point, to address, p operand) {
	e := t.e
	if places, param, ok := e.placesOf(m.tile, from); ok && e.together(places) {
		in := memory{inputs, e.parameter(param), 0}
		source := e.at(in, places[0].at, t.from.Size())
		e.copyAsync(to, source, matrixRow, p, e.guard(places[0].when))
		return
	}
	vals := e.operandElements(m.tile, from)
	for k, x := range from {
		vals[k] = e.choose(t.from, e.guard(x.when), vals[k], zero(kindFor(t.from)))
	}
	e.store(shared, t.from, to, vals, p)
}

// placesOf is where the elements of an operand are in memory, if they are only
// moved there.
func (e *emitter) placesOf(o operandTile, points []point) (places []place, param int, ok bool) {
	n, direct := e.trace(o.arg, points)
	if !direct {
		return nil, 0, false
	}
	for k := range points {
		points[k].when = points[k].when.all(e.contracted(o, points[k].at))
	}
	at := points
	for x := o.arg; x != n; x = e.p.Ops[x].Args[0] {
		op := e.p.Ops[x]
		switch op.Code {
		case "transpose", "broadcast", "reverse":
			at = e.moved(op, at)
		case "reshape", "slice", "dynamic-slice":
			at = e.reshaped(op, at)
		}
	}
	op := e.p.Ops[n]
	strides := op.Instr.Shape.Strides()
	for _, p := range at {
		index, there := e.tensor(op.Tile, p.at)
		places = append(places, place{e.dotted(index, strides), p.when.all(there)})
	}
	return places, int(op.Instr.Attrs.Param), true
}

// multiply adds the products of the tiles in shared memory.
func (t *tensorDot) multiply(a, b memory) {
	e := t.e
	e.rounds("k", t.depth/t.mma.k, 8, func(k symtile.Expr) {
		if len(conditions(nil).and(k.Neg().AddConst(t.depth/t.mma.k-1))) > 0 {
			e.refuse("%s: %d steps of k are no multiple of 8", t.op.Instr.Name, t.depth/t.mma.k)
		}
		for i := range t.accs {
			t.step(i, a, b, k.Scale(t.mma.k))
		}
	})
}

// step is one k of the instruction for batch element i.
func (t *tensorDot) step(i int, a, b memory, k symtile.Expr) {
	e := t.e
	batch := e.ring.Const(int64(i))
	var left, right [][]operand
	for m := int64(0); m < t.rows; m += mmaM {
		left = append(left, t.loadMatrices(a, t.a, 4, t.addressA(batch, k, m)))
	}
	for n := int64(0); n < t.cols; n += 2 * mmaN {
		count := min(2, (t.cols-n)/mmaN)
		both := t.loadMatrices(b, t.b, 2*count, t.addressB(batch, k, n, count))
		for j := 0; j < len(both); j += 2 {
			right = append(right, both[j:j+2])
		}
	}
	for m := range left {
		for j := range right {
			n := j
			if m%2 == 1 { // there and back, so that the last fragment is used again
				n = len(right) - 1 - j
			}
			at := (m*len(right) + n) * 4
			c := t.accs[i][at : at+4]
			e.asm.do(t.mma.opcode, c, left[m], right[n], c)
		}
	}
}

// addressA is the element whose address lane l gives to read 16 rows of A for
// one k: four 8×8 matrices of 16-bit elements, or of pairs of 8-bit ones. It is
// row l mod 8 of matrix l / 8: rows 0–7, then 8–15, of the first half of k, then
// of the second.
func (t *tensorDot) addressA(batch, k symtile.Expr, m int64) symtile.Expr {
	q, r, half := t.lane.Div(8), t.lane.Mod(8), t.mma.k/2
	row := t.warpM.Scale(t.rows).AddConst(m).Add(q.Mod(2).Scale(8))
	k = k.Add(q.Div(2).Scale(half))
	if t.a.byK {
		return t.a.position(batch, row, k.Add(r))
	}
	return t.a.position(batch, row.Add(r), k)
}

// addressB is the element for 8 or 16 columns of B: the halves of k of the first
// 8, then of the others.
func (t *tensorDot) addressB(batch, k symtile.Expr, n, count int64) symtile.Expr {
	q, r, half := t.lane.Div(8), t.lane.Mod(8), t.mma.k/2
	col := t.warpN.Scale(t.cols).AddConst(n)
	if count == 2 {
		col = col.Add(q.Div(2).Scale(8))
	}
	k = k.Add(q.Mod(2).Scale(half))
	if t.b.byK {
		return t.b.position(batch, col, k.Add(r))
	}
	return t.b.position(batch, col.Add(r), k)
}

func (t *tensorDot) loadMatrices(m memory, tile *matrixTile, n int64, at symtile.Expr) []operand {
	e := t.e
	to := e.asm.fresher(kindB32, int(n))
	opcode := fmt.Sprintf("ldmatrix.sync.aligned.m8n8.x%d", n)
	if tile.byK {
		opcode += ".trans"
	}
	e.asm.do(opcode+".shared.b16", to, e.at(m, at, t.from.Size()))
	return to
}

func (t *tensorDot) leave()  { t.leaveSums(t.mma.sum, t.accs) }
func (t *tensorDot) gather() { t.gatherSums(t.mma.sum, t.accs) }

func (t *tensorDot) finish() {
	e := t.e
	e.freeze(kindFor(t.mma.sum), t.accs)
	for i := range t.accs {
		for k, v := range t.accs[i] {
			t.accs[i][k] = e.convert(t.d, t.mma.sum, v)
		}
	}
	t.publish(t.fragments)
}

// fragments visits C: lane l has columns 2·(l mod 4) and the next of rows l/4 and
// l/4 + 8 of each 16×8.
func (t *tensorDot) fragments(visit func(points []point, vals []operand)) {
	e := t.e
	cols := t.cols / mmaN
	for i := range t.accs {
		batch := e.ring.Const(int64(i))
		for f := range t.rows / mmaM * cols {
			for half := range int64(2) {
				m := t.warpM.Scale(t.rows).AddConst(f/cols*mmaM + half*8).Add(t.lane.Div(4))
				n := t.warpN.Scale(t.cols).AddConst(f % cols * mmaN).Add(t.lane.Mod(4).Scale(2))
				var points []point
				for q := range int64(2) {
					own := conditions(nil).and(m.Neg().AddConst(t.m - 1)).and(n.Neg().AddConst(t.c - 1 - q))
					points = append(points, point{t.result(batch, m, n.AddConst(q)), own})
				}
				at := f*4 + half*2
				visit(points, t.accs[i][at:at+2])
			}
		}
	}
}
