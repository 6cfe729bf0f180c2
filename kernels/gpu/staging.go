package gpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Staging is work that all threads of a block share: they bring a value to shared
// memory, where others read it after a barrier, or store a result.

// stage copies the tile of op n to shared memory, in the order in which it is loaded.
// A tile that is read in another order is swizzled; rows of others are padded to an
// odd number of words, so that the elements of a column are in different banks.
func (e *emitter) stage(n int) {
	op := e.p.Ops[n]
	d := registerType(op.Instr.Shape.DType)
	threads := e.flat(n, d.Size()).Layout
	sizes := op.Tile.Sizes()
	order := threads.Order()
	key := bufferKey{n, 0}
	// The elements are computed, not loaded from an earlier copy of the tile.
	delete(e.buffers, key)
	var b *buffer
	if c := e.transposedTileOf(n, order, d.Size()); c != nil {
		b = e.transposedBuffer(
			&buffer{d: d, sizes: sizes}, c, order,
		)
	} else {
		b = e.newBuffer(
			d, sizes,
			e.bankStrides(sizes, order, d.Size()),
		)
	}
	e.asm.note("%s to shared memory", e.describe(n))
	e.asm.enter()
	e.each(threads, func(points []point) {
		vals := e.elements(n, points)
		e.put(b, points, vals)
	})
	e.asm.leave()
	e.barrier()
	e.buffers[key] = b
}

// storeRoot stores a result of the program to its output. A root that several tile
// programs compute is stored by the first of them (Once).
func (e *emitter) storeRoot(r symtile.Root) {
	op := e.p.Ops[r.Op]
	shape := op.Instr.Shape
	e.asm.note(
		"output %d from %s", r.Output, e.describe(r.Op),
	)
	e.root = r.Op
	clear(e.noted)
	e.asm.enter()
	defer e.asm.leave()
	if e.knobs.epilogue == byBoxes && e.phase != phaseCombine {
		e.storeBoxes(r)
		return
	}
	out := memory{
		e.passing(global, e.outgrows(shape)),
		e.output(r.Output), 0,
	}
	// Where several tile programs compute a root, the one with tile id 0 along the
	// dimensions that do not divide it stores it.
	var once conditions
	for _, d := range r.Once {
		once = once.and(e.p.Space.Dims[d].Tid.Neg())
	}
	e.distribute(r.Op, shape, func(points []point) {
		places := make([]place, len(points))
		for k := range points {
			points[k].when = points[k].when.all(once)
			index, valid := e.tensor(
				op.Tile, points[k].at,
			)
			points[k].when = points[k].when.all(valid)
			places[k] = place{
				e.dotted(index, shape.Strides()),
				points[k].when,
			}
		}
		e.scatterPlaces(
			out, shape.DType, places,
			e.elements(r.Op, points),
		)
	})
}

// A boxStore stores a product of warpgroups, or what is computed from its elements, by
// tensor copies: each warpgroup writes 64 rows of up to 128 bytes to shared memory by
// stmatrix, in the swizzle of the tensor map, and one of its threads starts the copy,
// which ends while the next box is written, or the next tile multiplied. There are two
// boxes in shared memory for each warpgroup (CUTLASS, sm90_epilogue_tma_warpspecialized).
type boxStore struct {
	e   *emitter
	dot *groupDot
	// Op is the result, which is stored by a tensor map.
	op     symtile.Op
	n      int
	number int
	// Row and col are the dimensions of the result along m and n.
	row, col int
	// Inner is the elements of a row of a box, and at the offset in shared memory of the
	// boxes of warpgroup 0.
	inner, at int64
	// Barrier is the named barrier of the warpgroup, and leader holds for the thread that
	// copies.
	barrier, leader operand
}

// boxBarrier is the named barrier of the first warpgroup of a block; the barriers of math
// groups are before it.
const boxBarrier = turnBarrier + 2

// boxBuffers is the boxes of a warpgroup in shared memory.
const boxBuffers = 2

// storeBoxes stores a root by tensor copies, or rejects the plan.
func (e *emitter) storeBoxes(r symtile.Root) {
	b := e.boxStore(r)
	if b == nil {
		e.reject("epilogue=%d is for results of 16 bits of one product by warpgroups, in whole boxes of 16 columns and more", byBoxes)
	}
	e.boxed = append(e.boxed, b)
	e.unpredictable = "results are stored by tensor copies"
	before := e.asm.waits
	b.begin()
	steps := int64(len(b.dot.accs))
	steps *= b.dot.cols / b.inner
	for k := range steps {
		b.step(k, steps)
	}
	// These barriers order nothing but the boxes.
	if e.tileLoop != nil && e.tileLoop.waits == before {
		e.tileLoop.waits = e.asm.waits
	}
}

// boxStore describes how tensor copies store a root; nil where they cannot.
func (e *emitter) boxStore(r symtile.Root) *boxStore {
	op := e.p.Ops[r.Op]
	shape := op.Instr.Shape
	sizes := op.Tile.Sizes()
	if len(e.groupDots) != 1 ||
		len(e.p.Roots) != 1 || len(r.Once) > 0 ||
		e.hints.separateStores[r.Op] ||
		e.loopDepth > 0 || shape.Rank() > 5 ||
		!shape.DType.IsFloat() ||
		shape.DType.Size() != 2 || !e.copyable(op) {
		return nil
	}
	t := e.groupDots[0]
	permuted := t.left != nil &&
		(t.left.paired || t.left.words())
	if t.turned || t.kept != nil || permuted {
		return nil // fragments are not as stmatrix stores them
	}
	// A copy stores whole boxes: rows and columns that a tile is padded by would overwrite
	// those of the next tile. What is beyond the end of the array is not stored.
	whole := t.rows*t.gm == t.m && t.cols*t.gn == t.c
	if !whole || !slices.Equal(t.op.Tile.Sizes(), sizes) {
		return nil
	}
	b := &boxStore{
		e: e, dot: t, op: op, n: r.Op,
	}
	dims := identity(len(sizes))
	i := len(t.lhs.batch)
	j := i + len(t.lhs.free)
	var okM, okN bool
	b.row, okM = singleDim(sizes, dims[i:j])
	b.col, okN = singleDim(sizes, dims[j:])
	order := majorToMinor(shape)
	if !okM || !okN ||
		order[len(order)-1] != b.col {
		return nil
	}
	// A row of a box is 128 bytes, halved until it divides the columns of a warpgroup, of
	// which there are multiples of 16: at least 32 bytes, the smallest swizzle.
	b.inner = maxRowBytes / shape.DType.Size()
	for t.cols%b.inner != 0 {
		b.inner /= 2
	}
	b.number = e.declareMap(tensorMap{
		device.Output(r.Output),
		b.spec(shape),
	})
	return b
}

// spec is the tensor map of the result.
func (b *boxStore) spec(shape hlo.Shape) device.TensorMapSpec {
	size := shape.DType.Size()
	strides := shape.Strides()
	s := device.TensorMapSpec{
		DType:   shape.DType,
		Swizzle: device.Swizzle(b.inner * size),
	}
	for k, d := range slices.Backward(majorToMinor(shape)) {
		s.Dims = append(
			s.Dims, uint64(shape.Dims[d]),
		)
		if k < shape.Rank()-1 {
			pitch := uint64(strides[d] * size)
			s.Strides = append(s.Strides, pitch)
		}
		box := int64(1)
		switch d {
		case b.row:
			box = groupRows
		case b.col:
			box = b.inner
		}
		s.Box = append(s.Box, uint32(box))
	}
	return s
}

// bytes is the size of a box.
func (b *boxStore) bytes() int64 {
	d := b.op.Instr.Shape.DType
	return groupRows * b.inner * d.Size()
}

// begin allocates the boxes and finds the warpgroup's barrier and leader.
func (b *boxStore) begin() {
	e := b.e
	a := e.asm
	groups := e.threads / device.WarpgroupThreads
	groups *= boxBuffers
	b.at = e.allocateAtoms(groups * b.bytes())
	// The shuffle makes the number uniform for the assembler.
	const shift = 7 // 128 threads
	own := a.get(
		kindB32, "shfl.sync.idx.b32",
		a.get(kindB32, "shr.u32", e.tid, shift),
		0, device.WarpThreads-1, -1,
	)
	b.barrier = a.get(kindB32, "add.s32", own, boxBarrier)
	first := e.thread.Mod(device.WarpgroupThreads)
	b.leader = a.get(
		kindPred, "setp.eq.s32", e.num(first), 0,
	)
}

// allocateAtoms reserves shared memory from a multiple of 1024 bytes on, which an earlier
// loop may have released.
func (e *emitter) allocateAtoms(bytes int64) int64 {
	at := wholeAtoms(e.freed.at)
	if at+bytes <= e.freed.end {
		e.freed.at = at + bytes
		return at
	}
	e.shared = wholeAtoms(e.shared)
	return e.allocateShared(bytes)
}

// step stores box k of as many: the boxes of each 64 rows from left to right.
func (b *boxStore) step(k, steps int64) {
	e := b.e
	a := e.asm
	across := b.dot.cols / b.inner
	i, first := k/across, k%across*b.inner
	again := e.tileLoop != nil
	if again || k >= boxBuffers {
		// The copy of the latest box may go on, unless it is from this buffer: the first
		// box of a tile follows the last of another.
		running := boxBuffers - 1
		if k == 0 && steps%boxBuffers == 1 {
			running = 0
		}
		a.when(b.leader, "cp.async.bulk.wait_group.read", running)
		a.do("bar.sync", b.barrier, device.WarpgroupThreads)
	}
	group := e.thread.Div(device.WarpgroupThreads)
	buffer := k % boxBuffers * b.bytes()
	// The boxes of a warpgroup are beside each other.
	to := memory{shared, e.smem, b.at + buffer}
	size := b.op.Instr.Shape.DType.Size()
	box := group.Scale(boxBuffers * b.bytes() / size)
	for j := int64(0); j < b.inner; j += 2 * mmaN {
		at := box.Add(b.place(j))
		b.write(i, first+j, e.at(to, at, size))
	}
	// The copy reads what all threads have written.
	a.do("fence.proxy.async.shared::cta")
	a.do("bar.sync", b.barrier, device.WarpgroupThreads)
	b.copy(i, first, e.at(to, box, size))
}

// place is the position in a box, in elements, of the row of a matrix whose address this
// lane supplies: of the 16 rows of its warp and 16 columns from j on.
func (b *boxStore) place(j int64) index.Expr {
	e := b.e
	size := b.op.Instr.Shape.DType.Size()
	warp, lane := e.warpAndLane()
	// Matrices 0 and 1 are the upper and the lower eight rows of the first eight columns,
	// 2 and 3 those of the others, as their registers are in the fragments of wgmma.
	row := warp.Scale(mmaM)
	row = row.Add(lane.Mod(mmaM))
	col := lane.Div(mmaM).Scale(mmaN)
	s := newSwizzle(matrixRow, b.inner*size)
	col = e.swizzled(s, row, col.AddConst(j), size)
	return row.Scale(b.inner).Add(col)
}

// write stores 16 columns, from one on, of the 64 rows i to a box.
func (b *boxStore) write(i, first int64, to address) {
	e := b.e
	d := b.op.Instr.Shape.DType
	var words []operand
	j := first / mmaN
	for range 2 {
		for half := range int64(2) {
			points := b.dot.neighbours(i, j, half)
			for q := range points {
				x := &points[q]
				_, valid := e.tensor(b.op.Tile, x.at)
				x.when = x.when.all(valid)
			}
			// What else the result is computed from is loaded where it exists.
			pair := e.elements(b.n, points)
			words = append(
				words, e.pack(d, pair)...,
			)
		}
		j++
	}
	e.asm.do("stmatrix.sync.aligned.m8n8.x4.shared.b16", to, words)
}

// copy starts the copy of a box of the 64 rows i, from a column on.
func (b *boxStore) copy(i, first int64, from address) {
	e := b.e
	a := e.asm
	m, n := b.dot.corner()
	shape := b.op.Instr.Shape
	var at []operand
	for _, d := range slices.Backward(majorToMinor(shape)) {
		x := b.op.Tile[d].Offset
		switch d {
		case b.row:
			x = x.Add(m).AddConst(i * groupRows)
		case b.col:
			x = x.Add(n).AddConst(first)
		}
		first := a.in(kindB32, e.num(x))
		at = append(at, first)
	}
	// Groups of copies belong to the thread that commits them, so it waits for them, too.
	name := operand(mapName(b.number))
	p := a.get(kindB64, "mov.b64", name)
	p = a.get(kindB64, "cvta.param.u64", p)
	s := e.passing(global, e.outgrows(shape))
	hint := strings.TrimPrefix(string(s), string(global))
	e.access(
		b.leader, s,
		fmt.Sprintf("cp.async.bulk.tensor.%dd.global.shared::cta.tile.bulk_group%s", shape.Rank(), hint),
		tensorAt{p, at}, from,
	)
	a.when(b.leader, "cp.async.bulk.commit_group")
}

// distribute emits body for all elements of a root, by the layout in which a product
// or a reduction has left a tile of these sizes in registers, or else by the layout
// that was chosen for storing it.
func (e *emitter) distribute(
	n int, shape hlo.Shape, body func(points []point),
) {
	sizes := e.p.Ops[n].Tile.Sizes()
	f := e.fragments[fmt.Sprint(sizes)]
	if f != nil && !e.hints.separateStores[n] {
		if e.knobs.epilogue == 0 {
			f(body)
			return
		}
		if e.narrowsProduct(n) {
			e.stageRoot(n, shape, f)
		}
	}
	if s := e.layouts[fmt.Sprint(sizes)]; s != nil {
		e.vectors(s, body)
		return
	}
	if s := e.transposedLayout(n, shape.DType.Size()); s != nil {
		e.each(s, body)
		return
	}
	c := e.stored(n)
	e.share(c)
	e.each(c.Layout, body)
}

// narrowsProduct reports whether a root is computed from a product alone, in a narrower
// type: it is converted where it is in registers, so that less is staged.
func (e *emitter) narrowsProduct(n int) bool {
	d := registerType(e.typeOf(n, 0))
	for k, used := range usedBy(e.p, []int{n}, nil) {
		op := e.p.Ops[k]
		if !used || op.Code != hlo.OpDot {
			continue
		}
		sizes := e.p.Ops[n].Tile.Sizes()
		if slices.Equal(op.Tile.Sizes(), sizes) &&
			e.typeOf(k, 0).Size() > d.Size() {
			return k != n && len(e.accesses(n, false)) == 0
		}
	}
	return false
}

// stageRoot computes a root from the fragments of a product, and puts it in shared
// memory.
func (e *emitter) stageRoot(
	n int, shape hlo.Shape, fragments func(body func(points []point)),
) {
	sizes := e.p.Ops[n].Tile.Sizes()
	d := registerType(shape.DType)
	b := &buffer{
		d: d, sizes: sizes,
		strides: rowPadded(sizes, d.Size()),
	}
	b.at = e.allocateFreed(span(sizes, b.strides) * d.Size())
	e.asm.enter()
	fragments(func(points []point) {
		e.put(b, points, e.elements(n, points))
	})
	e.asm.leave()
	e.buffers[bufferKey{n, 0}] = b
	// Threads store what others have computed.
	e.barrier()
}

// lineVectors is the number of 16-byte vectors in a line of the banks: the threads
// that share a row of a result before the next threads begin another row.
const lineVectors = lineBytes / maxVectorBytes

// transposedTileOf is the layout in shared memory of the tile of op n, which is loaded
// in the given order of dimensions but stored in another; nil where the fastest
// dimensions are the same.
func (e *emitter) transposedTileOf(n int, order []int, size int64) *transposedTile {
	sizes := e.p.Ops[n].Tile.Sizes()
	along := coalesce.FastestDim(sizes, order)
	across := along
	for _, r := range e.p.Roots {
		if perm := e.permutationFrom(n, r.Op); perm != nil {
			across = perm[coalesce.FastestDim(
				e.p.Ops[r.Op].Tile.Sizes(),
				e.stored(r.Op).Layout.Order(),
			)]
			break
		}
	}
	if across == along {
		return nil
	}
	c := &transposedTile{along: along, across: across}
	// The unit of the swizzle is as wide as the rows that one vector of threads reads,
	// and divides the pitch.
	c.vector = e.box(sizes, size).VectorWidth(sizes[across])
	c.step = sizes[across] / c.vector
	c.pitch = index.CeilDiv(sizes[along]*size, maxVectorBytes) *
		maxVectorBytes / size
	unit := maxVectorBytes * lineVectors / min(lineVectors, powerOver(c.step))
	for c.pitch*size%unit != 0 {
		unit /= 2
	}
	c.swizzle = newSwizzle(unit, c.pitch*size)
	if c.swizzle.span > 1 {
		c.step |= 1
	}
	return c
}

// permutationFrom maps the dimensions of op m to those of op n, where m is computed
// from n by elementwise operations and transposes; nil where it is not.
func (e *emitter) permutationFrom(n, m int) []int {
	if n == m {
		return identity(len(e.p.Ops[n].Tile))
	}
	op := e.p.Ops[m]
	switch {
	case op.Code == hlo.OpTranspose:
		from := e.permutationFrom(n, op.Args[0])
		if from == nil {
			return nil
		}
		perm := make([]int, len(op.Perm))
		for k, d := range op.Perm {
			perm[k] = from[d]
		}
		return perm
	case op.Code.Elementwise():
		for _, a := range op.Args {
			if len(e.p.Ops[a].Tile) != len(op.Tile) {
				continue
			}
			if perm := e.permutationFrom(n, a); perm != nil {
				return perm
			}
		}
	}
	return nil
}

// transposedBuffer allocates a tile that is read in another order than it is written.
func (e *emitter) transposedBuffer(b *buffer, c *transposedTile, order []int) *buffer {
	b.transposed = c
	b.strides = make([]int64, len(b.sizes))
	n := c.vector * c.step * c.pitch
	for _, d := range slices.Backward(order) {
		if d != c.along && d != c.across {
			b.strides[d] = n
			n *= b.sizes[d]
		}
	}
	b.at = e.allocateShared(n * b.d.Size())
	return b
}

// transposedLayout is the thread layout of a result that is read from a transposed
// tile: lineVectors threads along a row of the result, the others along what are rows
// in shared memory. It is nil for other results.
func (e *emitter) transposedLayout(n int, size int64) *coalesce.ThreadLayout {
	for _, s := range e.hints.stagedOps() {
		perm := e.permutationFrom(s, n)
		b := e.buffers[bufferKey{s, 0}]
		if perm == nil || b == nil || b.transposed == nil {
			continue
		}
		sizes := e.p.Ops[n].Tile.Sizes()
		along := slices.Index(perm, b.transposed.across)
		across := slices.Index(perm, b.transposed.along)
		outer := slices.DeleteFunc(
			e.stored(n).Layout.Order(),
			func(d int) bool { return d == along || d == across },
		)
		v := e.box(sizes, size).VectorWidth(sizes[along])
		lanes := min(
			lineVectors, powerOver(index.CeilDiv(sizes[along], v)),
			e.threads,
		)
		s := coalesce.NewThreadLayout(
			sizes, append(outer, across),
			[]int{along}, e.threads, lanes, v,
		)
		s.OuterRun = e.transposedRun(n, s, across, size)
		return s
	}
	return nil
}

// transposedRun is the number of neighbouring rows of a result that a thread has, so that
// it loads as many elements of each row of shared memory at once, and puts the bytes of
// several words together (see regrouped). It is 1 where a row may not exist, for then
// words would be loaded that nothing was written to, and for elements of whole words.
func (e *emitter) transposedRun(n int, s *coalesce.ThreadLayout, across int, size int64) int64 {
	extent := e.p.Ops[n].Instr.Shape.Dims[across]
	rows := s.Sizes[across]
	all := s.OuterRounds * s.OuterThreads
	if size >= 4 || all != s.OuterElements || extent%rows != 0 {
		return 1
	}
	run := min(e.vectorBytes/size, powerIn(s.OuterRounds))
	return max(1, min(run, powerIn(rows)))
}
