package gpu

import (
	"fmt"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Products on tensor cores with mma.sync: A and B are in shared memory, swizzled,
// so that the eight rows an ldmatrix reads at once are in different banks; C is in
// registers.

// A tensorType is an operand type of mma.sync with m16, n8 and 32 bytes along k.
type tensorType struct {
	name string
	// Sum is the type of the accumulators.
	sum hlo.DType
	// Since is the first target with the type.
	since string
}

// tensorTypes are the operands tensor cores have (PTX ISA, mma.sync).
var tensorTypes = map[hlo.DType]tensorType{
	// Operands of f32 only with the knob tf32.
	hlo.F32:      {"tf32", hlo.F32, "sm_80"},
	hlo.F16:      {"f16", hlo.F32, "sm_80"},
	hlo.BF16:     {"bf16", hlo.F32, "sm_80"},
	hlo.F8E4M3FN: {"e4m3", hlo.F32, "sm_89"},
	hlo.F8E5M2:   {"e5m2", hlo.F32, "sm_89"},
	hlo.S8:       {"s8", hlo.S32, "sm_80"},
	hlo.U8:       {"u8", hlo.S32, "sm_80"},
}

// multipliesF8 reports whether an op is a dot of 8-bit floats.
func multipliesF8(p *symtile.Program, op symtile.Op) bool {
	if op.Code != hlo.OpDot {
		return false
	}
	return isF8(
		p.Ops[op.Args[0]].Instr.Shape.DType,
	)
}

// isF8 reports whether a type is a float of 8 bits.
func isF8(d hlo.DType) bool { return d.IsFloat() && d.Size() == 1 }

// An mma is a tensor core instruction, by the types of A and B.
type mma struct {
	a, b tensorType
	// K is the extent along k of one instruction.
	k   int64
	sum hlo.DType
}

// tensorProduct is the instruction that multiplies elements of two types. Two 8-bit
// types may be mixed, but not integers with floats.
func tensorProduct(
	s device.Spec, a, b hlo.DType, k knobs,
) (m mma, ok bool) {
	x, okA := tensorTypes[a]
	y, okB := tensorTypes[b]
	switch {
	case !okA, !okB, x.sum != y.sum,
		a != b && (a.Size() != 1 || b.Size() != 1):
		return m, false
	case s.Target < x.since,
		s.Target < y.since,
		a == hlo.F32 && k.tf32 == 0:
		return m, false
	}
	return mma{
		x, y, mmaBytes / a.Size(), x.sum,
	}, true
}

// opcode is the instruction mma.sync.
func (m mma) opcode() string {
	d := m.sum
	return fmt.Sprintf(
		"mma.sync.aligned.m16n8k%d.row.col.%s.%s.%s.%s",
		m.k, d, m.a.name,
		m.b.name, d,
	)
}

const (
	mmaM, mmaN = 16, 8
	// MmaBytes is a row of A or a column of B along k, in bytes.
	mmaBytes = 32
	// MatrixRow is a row of an 8×8 matrix that ldmatrix reads, in bytes.
	matrixRow = 16
)

// A tensorDot computes a product with mma.sync. The warps of a block are arranged
// wm×wn over C, and each computes rows×cols elements; C is padded to what they cover.
type tensorDot struct {
	*product
	mma mma
	// Size is the bytes of an element of A and B.
	size   int64
	wm, wn int64
	// Rows and cols are the elements of C of one warp.
	rows, cols int64
	// Depth is the extent of k, padded to whole instructions.
	depth int64
	a, b  *matrixTile
	// Accs are the accumulators by batch element, then by fragment of 16×8, 4 of each.
	accs [][]operand
	// WarpM and warpN are the coordinates of this warp among wm×wn; lane is the
	// thread's number in its warp.
	warpM index.Expr
	warpN index.Expr
	lane  index.Expr
}

// A matrixTile is an operand of a tensorDot in shared memory: rows of pitch elements
// for each element of the batch. Rows are along the free dimension, or along k where
// that is the order in memory.
type matrixTile struct {
	// Name is "A" or "B", for comments in the code.
	name string
	tile operandTile
	d    hlo.DType
	// ByK is set where a row has one k, and its elements are along the free dimension.
	byK bool
	// The extents along the free dimension and k, padded.
	free, k int64
	// Pitch is in elements.
	pitch   int64
	swizzle swizzle
	// Bytes is the size of the tile, and at its offset in shared memory or in a slot.
	bytes int64
	at    int64
}

// bare reports whether fragments are loaded element by element, because ldmatrix can
// transpose elements of 16 bits only.
func (m *matrixTile) bare() bool {
	return m.byK && m.d.Size() == 4
}

// paired reports whether ldmatrix reads pairs of bytes along the free dimension as its
// 16-bit elements. Two registers then have four k of one row (or column) in their even
// bytes, and of the next row in the odd bytes, so two fragments share neighbouring
// rows: rows g and g + 8 of a fragment of A are rows 2·g and 2·g + 1 of the tile, and
// column g of two instructions are columns 2·g and 2·g + 1 of B.
func (m *matrixTile) paired() bool {
	return m.byK && m.d.Size() == 1
}

// rowOf is the row of the tile that stores k. Where bytes are paired, a lane gets two
// neighbouring rows from each of two matrices, and these have to be four neighbouring
// k: 4·i + 2·q + p is row 2·(i xor q) + p of matrix q. The xor puts four k, which may
// be written at the same time, and the eight rows of a matrix in different banks.
func (e *emitter) rowOf(m *matrixTile, k index.Expr) index.Expr {
	if !m.paired() {
		return k
	}
	i := k.Div(4).Mod(4)
	q := k.Div(2).Mod(2)
	p := k.Mod(2)
	low := e.xor(i.Mod(2), q, 2).Scale(2).Add(p)
	return k.Div(16).Scale(16).Add(
		q.Scale(8),
	).Add(i.Div(2).Scale(4)).Add(low)
}

// newTensorDot is a product on tensor cores, nil where they do not have the types.
func (e *emitter) newTensorDot(p *product) accumulator {
	from := e.typeOf(p.lhs.arg, 0)
	inst, ok := tensorProduct(
		e.spec, from,
		e.typeOf(p.rhs.arg, 0),
		e.knobs,
	)
	if !ok ||
		wideSum(p.d) != inst.sum ||
		p.d.Bits() < min(16, from.Bits()) {
		return nil
	}
	t := &tensorDot{
		product: p,
		mma:     inst,
		size:    from.Size(),
	}
	t.depth = index.CeilDiv(p.k, inst.k) * inst.k
	e.divideWarps(t)
	if count := p.b * t.rows * t.cols / device.WarpThreads; count > maxPartials {
		e.reject(
			"%s: each of %d threads would keep %d sums; at most %d are kept",
			p.op.Instr.Name, e.threads, count, maxPartials,
		)
	}
	t.lane, t.warpM, t.warpN = e.thread.Mod(device.WarpThreads),
		e.thread.Div(device.WarpThreads).Div(t.wn),
		e.thread.Div(device.WarpThreads).Mod(t.wn)
	e.hints.multiplies(e.typeOf(p.lhs.arg, 0))
	t.a = e.matrixTile(
		"A", t, p.lhs, t.rows*t.wm,
	)
	t.b = e.matrixTile(
		"B", t, p.rhs, t.cols*t.wn,
	)
	t.accs = make([][]operand, p.b)
	return t
}

// divideWarps chooses the arrangement of warps that computes the least padding and,
// among those, reads the least from shared memory.
func (e *emitter) divideWarps(t *tensorDot) {
	warps := e.threads / device.WarpThreads
	step := int64(mmaN)
	if t.size == 1 &&
		e.alongFree(t.rhs, t.size) {
		// Columns are read in pairs.
		step = 2 * mmaN
	}
	best := int64(-1)
	for wm := int64(1); wm <= warps; wm *= 2 {
		wn := warps / wm
		rows := index.CeilDiv(index.CeilDiv(t.m, mmaM), wm) * mmaM
		cols := index.CeilDiv(index.CeilDiv(t.c, step), wn) * step
		// Padding weighs more than the reads of rows and columns.
		cost := rows*cols*1024 + rows + cols
		if best < 0 || cost < best {
			best = cost
			t.wm = wm
			t.wn = wn
			t.rows = rows
			t.cols = cols
		}
	}
}

// matrixTile chooses the layout of an operand in shared memory.
func (e *emitter) matrixTile(name string, t *tensorDot, o operandTile, free int64) *matrixTile {
	m := &matrixTile{
		name: name,
		tile: o,
		d:    e.typeOf(o.arg, 0),
		free: free,
		k:    t.depth,
	}
	m.byK = e.alongFree(o, t.size)
	rows, unit := m.free, int64(matrixRow)
	m.pitch = m.k
	if m.bare() {
		// The unit is eight columns of a fragment.
		unit = 8 * t.size
	}
	if m.byK {
		rows, m.pitch = m.k, index.CeilDiv(m.free*t.size, unit)*
			unit/t.size
	}
	m.swizzle = newSwizzle(unit, m.pitch*t.size)
	m.bytes = t.product.b * rows *
		m.pitch * t.size
	return m
}

// position is the position in shared memory of element (b, free, k), in elements.
func (e *emitter) position(m *matrixTile, b, free, k index.Expr) index.Expr {
	row := free
	col := k
	rows := m.free
	if m.byK {
		row = k
		col = free
		rows = m.k
	}
	return b.Scale(rows).Add(row).Scale(m.pitch).Add(
		e.swizzled(m.swizzle, row, col, m.d.Size()),
	)
}

// begin clears the accumulators.
func (t *tensorDot) begin() {
	e := t.e
	e.asm.note(
		"%%%d %s: dot %dx(%dx%d)*(%dx%d), %dx%d warps of %dx%d",
		t.n, t.op.Instr.Name,
		t.product.b, t.m, t.k,
		t.k, t.c, t.wm,
		t.wn, t.rows, t.cols,
	)
	k := kindFor(t.mma.sum)
	for i := range t.accs {
		t.accs[i] = e.asm.fresher(
			k,
			int(t.rows/mmaM*t.cols/mmaN*4),
		)
		for _, acc := range t.accs[i] {
			e.set(k, acc, zero(k))
		}
	}
}

// accumulate copies both operands to shared memory, unless equal tiles are there, and
// adds the products.
func (t *tensorDot) accumulate() {
	e := t.e
	// The tiles are copied one after the other, because both operands may be the same
	// tile.
	for _, m := range []*matrixTile{t.a, t.b} {
		if t.allocate(m); !e.present(t, m) {
			t.stageTile(m, memory{shared, e.smem, m.at})
			e.fresh = true
		}
	}
	e.waitForWrites()
	t.multiply(memory{shared, e.smem, t.a.at}, memory{
		shared, e.smem, t.b.at,
	})
}

// allocate reserves shared memory for a tile, or shares that of an equal tile.
func (t *tensorDot) allocate(m *matrixTile) *matrixTile {
	e := t.e
	key := m.key(t)
	for sc := e.asm.scope; sc != nil; sc = sc.outer {
		if b := sc.tiles[key]; b != nil {
			m.at = b.at
			return m
		}
	}
	m.at = e.allocateShared(m.bytes)
	return m
}

// key is equal for equal tiles.
func (m *matrixTile) key(t *tensorDot) string {
	return fmt.Sprint(
		"matrix ", m.tile, m.byK,
		m.free, m.k, m.d,
	)
}

// present reports whether an equal tile is in shared memory already, and records that
// it is from here on.
func (e *emitter) present(t *tensorDot, m *matrixTile) bool {
	key := m.key(t)
	for sc := e.asm.scope; sc != nil; sc = sc.outer {
		if sc.tiles[key] != nil {
			return true
		}
	}
	e.asm.scope.tiles[key] = &buffer{
		d:  m.d,
		at: m.at,
	}
	return false
}

// stageTile copies an operand to shared memory, 16 bytes a thread at a time, padded
// with zeros.
func (t *tensorDot) stageTile(m *matrixTile, to memory) {
	e := t.e
	e.asm.note("%s of %%%d to shared memory", m.name, t.n)
	e.asm.enter()
	e.each(t.copyLayout(m), func(points []point) {
		from := make([]point, len(points))
		for i, x := range points {
			free := x.at[1]
			k := x.at[2]
			extent := t.m
			if m.byK {
				free, k = k, free
			}
			if m == t.b {
				extent = t.c
			}
			when := x.when.and(free.Neg().AddConst(extent - 1)).and(
				k.Neg().AddConst(t.k - 1),
			)
			// Elements beyond the extents of the product are zeros.
			from[i] = point{
				m.tile.index(x.at[0], free, k), when,
			}
		}
		t.copyChunk(
			m, from,
			e.at(to, t.chunkPosition(m, points[0]), t.size),
			e.guard(points[0].when),
		)
	})
	e.asm.leave()
}

// copyLayout divides a tile among the threads that copy it, 16 bytes each at a time.
func (t *tensorDot) copyLayout(m *matrixTile) *coalesce.ThreadLayout {
	sizes := []int64{t.product.b, m.free, m.k}
	if m.byK {
		sizes = []int64{t.product.b, m.k, m.free}
	}
	return coalesce.NewThreadLayout(
		sizes, nil, []int{0, 1, 2},
		t.e.threads, t.e.threads, matrixRow/t.size,
	)
}

// chunkPosition is the position in shared memory of a chunk that begins at a point of the
// layout of copies, in elements.
func (t *tensorDot) chunkPosition(m *matrixTile, x point) index.Expr {
	free, k := x.at[1], x.at[2]
	if m.byK {
		free, k = k, t.e.rowOf(m, free)
	}
	return t.e.position(m, x.at[0], free, k)
}

// copyChunk copies 16 bytes where p holds: with cp.async if they are consecutive in
// memory in pieces of at least 4 bytes, and a select keeps all of them or none, or else
// through registers.
func (t *tensorDot) copyChunk(m *matrixTile, from []point, to address, p operand) {
	e := t.e
	source := e.keptOrZero(m.tile)
	places, param, moved := e.placesOf(source.operandTile, from)
	in := memory{
		e.passing(inputs, moved && e.readOnce(param)),
		e.params[max(0, param)], 0,
	}
	moved = moved && (source.always || e.pieces(m.d, places))
	kept := yes
	if moved {
		kept, moved = source.together(e, from)
	}
	if moved && e.pieces(m.d, places) {
		for k := 0; k < len(places); {
			n := e.contiguousRun(m.d, places[k:])
			e.logAccess(
				in.base, false, places[k].at, t.size,
				int64(n), places[k].when,
			)
			e.copyAsync(
				in.space,
				to.plus(int64(k)*t.size),
				e.at(in, places[k].at, t.size),
				int64(n)*t.size, p,
				e.asm.and(e.guard(places[k].when), kept),
			)
			k += n
		}
		return
	}
	// Bytes that are only moved need no conversion to registers of their type.
	d := m.d
	var vals []operand
	if d.Size() == 1 && moved {
		d = hlo.U8
		vals = e.gatherPlaces(in, d, places)
	} else {
		vals = e.operandElements(m.tile, from)
		for k, x := range from {
			vals[k] = e.choose(
				d, e.guard(x.when),
				vals[k], zero(kindFor(d)),
			)
		}
	}
	e.store(shared, d, to, vals, p)
}

// A keptOperand is an operand that is moved from a parameter, or that a select takes from
// one where a predicate holds and makes 0 elsewhere, such as the rows of a group.
type keptOperand struct {
	operandTile
	// Always is set where there is no select, and when is the op of its predicate.
	always bool
	when   int
}

// keptOrZero looks through a select between an operand and 0. The bits of 0 are what
// cp.async writes where it reads nothing.
func (e *emitter) keptOrZero(o operandTile) keptOperand {
	op := e.p.Ops[o.arg]
	if op.Code != hlo.OpSelect || e.hints.staged[o.arg] ||
		!e.zeros(op.Args[2]) {
		return keptOperand{o, true, 0}
	}
	o.arg = op.Args[1]
	return keptOperand{o, false, op.Args[0]}
}

// zeros reports whether all elements of op n are +0.
func (e *emitter) zeros(n int) bool {
	op := e.p.Ops[n]
	switch op.Code {
	case hlo.OpBroadcast, hlo.OpReshape, hlo.OpTranspose:
		return e.zeros(op.Args[0])
	case hlo.OpConstant:
		l := op.Instr.Literal
		if l == nil || l.Elided {
			return false
		}
		v, ok := uniform(l)
		return ok && v == zero(kindFor(op.Instr.Shape.DType))
	}
	return false
}

// together is the predicate of a chunk's elements, which depends on data; ok is false where
// they have several.
func (o keptOperand) together(e *emitter, points []point) (kept operand, ok bool) {
	if o.always {
		return yes, true
	}
	e.unpredictable = "a predicate says which rows are read"
	all := e.elements(o.when, points)
	for _, p := range all {
		if p != all[0] {
			return "", false
		}
	}
	return all[0], true
}

// pieces reports whether all instructions that move the places, as many at a time as
// possible, move at least 4 bytes, the minimum of cp.async.
func (e *emitter) pieces(d hlo.DType, places []place) bool {
	for len(places) > 0 {
		n := e.contiguousRun(d, places)
		if int64(n)*d.Size() < 4 {
			return false
		}
		places = places[n:]
	}
	return true
}

// placesOf are the positions in global memory of elements of an operand, if these are
// only moved on the way from a parameter.
func (e *emitter) placesOf(o operandTile, points []point) (places []place, param int, ok bool) {
	n, direct := e.trace(o.arg, points)
	if !direct {
		return nil, 0, false
	}
	for k := range points {
		points[k].when = points[k].when.all(
			e.contracted(o, points[k].at),
		)
	}
	// The points are mapped through each operation on the way, from the product to the
	// parameter.
	at := points
	for x := o.arg; x != n; x = e.p.Ops[x].Args[0] {
		op := e.p.Ops[x]
		switch op.Code {
		case hlo.OpTranspose, hlo.OpBroadcast, hlo.OpReverse:
			at = e.moved(op, at)
		case hlo.OpReshape, hlo.OpSlice, hlo.OpDynamicSlice:
			at = e.reshaped(op, at)
		}
	}
	op := e.p.Ops[n]
	strides := op.Instr.Shape.Strides()
	for _, p := range at {
		index, valid := e.tensor(op.Tile, p.at)
		places = append(places, place{
			e.dotted(index, strides), p.when.all(valid),
		})
	}
	return places, int(op.Instr.Attrs.Param), true
}

// multiply adds the products of two tiles in shared memory, at most 8 instructions
// deep without a loop.
func (t *tensorDot) multiply(a, b memory) {
	e := t.e
	e.rounds("k", t.depth/t.mma.k, 8, func(k index.Expr) {
		if len(conditions(nil).and(k.Neg().AddConst(
			t.depth/t.mma.k-1,
		))) > 0 {
			e.reject(
				"%s: %d steps of k are no multiple of 8", t.op.Instr.Name,
				t.depth/t.mma.k,
			)
		}
		for i := range t.accs {
			t.step(i, a, b, k.Scale(t.mma.k))
		}
	})
}

// step emits the instructions of one k for batch element i. Columns are traversed back
// and forth, so that the fragment of B that was used last is used again.
func (t *tensorDot) step(i int, a, b memory, k index.Expr) {
	e := t.e
	batch := e.ring.Const(int64(i))
	var left, right [][]operand
	for m := int64(0); m < t.rows; m += mmaM {
		left = append(
			left,
			t.load(a, t.a, t.elementsA(batch, k, m)),
		)
	}
	for n := int64(0); n < t.cols; n += 2 * mmaN {
		both := t.load(
			b, t.b, t.elementsB(batch, k, n),
		)
		for j := 0; j < len(both); j += 2 {
			right = append(right, both[j:j+2])
		}
	}
	for m := range left {
		for j := range right {
			// Odd rows go through the columns backwards.
			n := j
			if m%2 == 1 {
				n = len(right) - 1 - j
			}
			at := (m*len(right) + n) * 4
			c := t.accs[i][at : at+4]
			e.asm.do(
				t.mma.opcode(), c,
				left[m], right[n], c,
			)
		}
	}
}

// A matrices value is what one ldmatrix reads: count 8×8 matrices of 16-bit elements,
// which are halves of 32-bit elements or pairs of 8-bit ones. at has the element whose
// address this lane supplies. Where ldmatrix cannot read the tile, at has the elements
// of this lane, one of each matrix.
type matrices struct {
	count int
	at    []index.Expr
}

// elementsA is 16 rows of A for one k: rows 0–7, then 8–15, of the first half of k,
// then of the second. Lane l supplies the address of row l mod 8 of matrix l/8.
func (t *tensorDot) elementsA(batch, k index.Expr, m int64) matrices {
	row := t.warpM.Scale(t.rows).AddConst(m)
	half := t.mma.k / 2
	return t.matrices(
		t.a, batch, row, k, 4,
		func(q index.Expr) (free, along index.Expr) {
			return q.Mod(2).Scale(8),
				q.Div(2).Scale(half)
		},
	)
}

// elementsB is 8 or 16 columns of B: both halves of k of the first 8 columns, then of
// the others.
func (t *tensorDot) elementsB(batch, k index.Expr, n int64) matrices {
	col := t.warpN.Scale(t.cols).AddConst(n)
	half := t.mma.k / 2
	return t.matrices(
		t.b, batch, col, k,
		2*int(min(2, (t.cols-n)/mmaN)),
		func(q index.Expr) (free, along index.Expr) {
			if t.cols-n < 2*mmaN {
				return t.e.ring.Const(0),
					q.Mod(2).Scale(half)
			}
			return q.Div(2).Scale(8),
				q.Mod(2).Scale(half)
		},
	)
}

// matrices are count matrices of a tile; of is the start of matrix q along the free
// dimension and k.
func (t *tensorDot) matrices(
	tile *matrixTile, batch, free, k index.Expr, count int,
	of func(q index.Expr) (free, along index.Expr),
) matrices {
	e, lane := t.e, t.lane
	if tile.bare() {
		all := matrices{count: count}
		for q := range count {
			// Lanes 8·q … 8·q + 7 supply the rows of matrix q.
			f, along := of(e.ring.Const(int64(q)))
			all.at = append(
				all.at,
				e.position(
					tile, batch,
					free.Add(f).Add(lane.Div(4)),
					k.Add(along).Add(lane.Mod(4)),
				),
			)
		}
		return all
	}
	if tile.paired() {
		return matrices{
			4,
			[]index.Expr{e.position(
				tile, batch, free, k.Add(e.rowsOfPairs(lane)),
			)},
		}
	}
	f, along := of(lane.Div(8))
	free = free.Add(f)
	k = k.Add(along)
	if tile.byK {
		k = k.Add(lane.Mod(8))
	} else {
		free = free.Add(lane.Mod(8))
	}
	return matrices{
		count,
		[]index.Expr{e.position(tile, batch, free, k)},
	}
}

// rowsOfPairs is the row whose address lane 8·q + 2·i + p supplies where bytes are
// paired (see rowOf).
func (e *emitter) rowsOfPairs(lane index.Expr) index.Expr {
	i := lane.Div(2).Mod(4)
	q := lane.Div(8)
	p := lane.Mod(2)
	return q.Scale(8).Add(i.Div(2).Scale(4)).Add(e.xor(
		i.Mod(2), q.Mod(2), 2,
	).Scale(2)).Add(p)
}

// load reads matrices into one register each. Elements of f32 are rounded to tf32, unless
// the knob tf32 says that they are cut off.
func (t *tensorDot) load(m memory, tile *matrixTile, x matrices) []operand {
	a := t.e.asm
	to := a.fresher(kindB32, x.count)
	if tile.bare() {
		for k, at := range x.at {
			a.do(
				"ld.shared.b32",
				to[k],
				t.e.at(m, at, t.size),
			)
		}
	} else {
		opcode := fmt.Sprintf("ldmatrix.sync.aligned.m8n8.x%d", x.count)
		if tile.byK {
			opcode += ".trans"
		}
		a.do(
			opcode+".shared.b16",
			to,
			t.e.at(m, x.at[0], t.size),
		)
	}
	if tile.paired() {
		return t.unpaired(tile, to)
	}
	// Tensor cores ignore the lower bits, so elements are rounded before.
	if tile.d == hlo.F32 && t.e.knobs.tf32 != cutOff {
		for _, r := range to {
			a.do("cvt.rna.tf32.f32", r, r)
		}
	}
	return to
}

func (t *tensorDot) storePartial() {
	t.storePartialSums(t.mma.sum, t.accs)
}
func (t *tensorDot) addPartials() {
	t.addPartialSums(t.mma.sum, t.accs)
}

// unpaired separates the bytes of four matrices of pairs into fragments: rows 2·g,
// then 2·g + 1, of the first half of k, then of the second; of B, both halves of the
// even columns, then of the odd ones.
func (t *tensorDot) unpaired(tile *matrixTile, pairs []operand) []operand {
	a := t.e.asm
	// Selectors of the bytes of two registers.
	const even, odd = 0x6420, 0x7531
	to := a.fresher(kindB32, 4)
	for k := range to {
		half, which := k/2, k%2
		if tile == t.b {
			half, which = which, half
		}
		a.do(
			"prmt.b32", to[k], pairs[2*half],
			pairs[2*half+1],
			[2]int{even, odd}[which],
		)
	}
	return to
}

// finish converts the sums and publishes them.
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

// fragments visits the elements of C of this thread: lane l has columns 2·(l mod 4)
// and the next of rows l/4 and l/4 + 8 of each 16×8 fragment. Where bytes of A are
// paired, these are rows 2·(l/4) and the next; where those of B are, they are four
// neighbouring columns of each 16×16.
func (t *tensorDot) fragments(visit func(points []point, vals []operand)) {
	e := t.e
	// Paired columns make vectors of four neighbours.
	wide := int64(1)
	if t.b.paired() {
		wide = 2
	}
	cols := t.cols / mmaN / wide
	for i := range t.accs {
		batch := e.ring.Const(int64(i))
		for f := range t.rows / mmaM * cols {
			for half := range int64(2) {
				m := t.warpM.Scale(t.rows).AddConst(f /
					cols * mmaM).Add(t.rowOf(half))
				n := t.warpN.Scale(t.cols).AddConst(f % cols * mmaN * wide).Add(
					t.lane.Mod(4).Scale(2 * wide),
				)
				var points []point
				var vals []operand
				for q := range 2 * wide {
					own := conditions(nil).and(m.Neg().AddConst(t.m - 1)).and(
						n.Neg().AddConst(t.c - 1 - q),
					)
					points = append(points, point{
						t.result(batch, m, n.AddConst(q)), own,
					})
					vals = append(
						vals,
						t.accs[i][(f*wide+q%wide)*4+half*2+q/wide],
					)
				}
				visit(points, vals)
			}
		}
	}
}

// rowOf is the row of a fragment that a lane has in each half of its registers.
func (t *tensorDot) rowOf(half int64) index.Expr {
	if t.a.paired() {
		return t.lane.Div(4).Scale(2).AddConst(half)
	}
	return t.lane.Div(4).AddConst(8 * half)
}
