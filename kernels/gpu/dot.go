package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// This file has what all products have in common, and products on the arithmetic
// units. Products on tensor cores are in dot_sm80.go (mma.sync) and dot_sm90.go
// (wgmma); pipeline.go and ring.go overlap their copies with the multiplications.

// A product is a dot of one tile program as batches of matrices: C[b,m,n] = Σ
// A[b,m,k]·B[b,k,n]. Each of b, m, k and n is the row-major number of some dimensions
// of a tile.
type product struct {
	// E is the emitter of the kernel.
	e *emitter
	// N is the op's number.
	n int
	// Op is the dot itself, with its operands.
	op       symtile.Op
	lhs, rhs operandTile
	// The extents of b, m, k and n. The last is named c, as the columns of C.
	b, m, k, c int64
	// D is the element type of C.
	d hlo.DType
	// Turned is set where A and B are exchanged, so that C is transposed.
	turned bool
	// Kept has, where op is a reduction that adds up the products of a loop, the dimension of
	// a product for each of its own, and blocks are the sizes of a product; nil where op is
	// the dot (see blockSum).
	kept   []int
	blocks []int64
}

// An operandTile is an argument of a product, with its dimensions divided into batch,
// free and contracted ones.
type operandTile struct {
	// Arg is the op of the argument, and sizes are those of its tile.
	arg   int
	sizes []int64
	// Batch, free and contract are dimensions of the tile.
	batch, free, contract []int
}

// newProduct divides the dimensions of dot n.
func (e *emitter) newProduct(n int) *product {
	op := e.p.Ops[n]
	a := op.Instr.Attrs
	p := &product{
		e:  e,
		n:  n,
		op: op,
		d:  op.Instr.Shape.DType,
	}
	p.lhs = e.operandTile(
		op.Args[0], a.LHSBatch, a.LHSContract,
	)
	p.rhs = e.operandTile(
		op.Args[1], a.RHSBatch, a.RHSContract,
	)
	p.b, p.m, p.k, p.c = p.lhs.extent(p.lhs.batch),
		p.lhs.extent(p.lhs.free),
		p.lhs.extent(p.lhs.contract),
		p.rhs.extent(p.rhs.free)
	return p
}

// operandTile divides the dimensions of one argument.
func (e *emitter) operandTile(arg int, batch, contract []int64) operandTile {
	t := operandTile{
		arg:   arg,
		sizes: e.p.Ops[arg].Tile.Sizes(),
	}
	for _, d := range batch {
		t.batch = append(t.batch, int(d))
	}
	for _, d := range contract {
		t.contract = append(t.contract, int(d))
	}
	for d := range t.sizes {
		if !slices.Contains(t.batch, d) &&
			!slices.Contains(t.contract, d) {
			t.free = append(t.free, d)
		}
	}
	return t
}

// extent is the number of elements along dims.
func (t operandTile) extent(dims []int) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= t.sizes[d]
	}
	return n
}

// index is the index in the argument's tile of element (b, free, k).
func (t operandTile) index(b, free, k index.Expr) []index.Expr {
	at := make([]index.Expr, len(t.sizes))
	for i, dims := range [][]int{t.batch, t.free, t.contract} {
		sizes := make([]int64, len(dims))
		for j, d := range dims {
			sizes[j] = t.sizes[d]
		}
		for j, x := range digitsOf([]index.Expr{b, free, k}[i], sizes) {
			at[dims[j]] = x
		}
	}
	return at
}

// result is the index in the tile of op of element (b, m, n).
func (p *product) result(b, m, n index.Expr) []index.Expr {
	if p.kept == nil {
		sizes := p.op.Tile.Sizes()
		return p.place(sizes, b, m, n)
	}
	all := p.place(p.blocks, b, m, n)
	return pick(all, p.kept)
}

// pick are the elements of x at some places.
func pick[T any](x []T, at []int) (some []T) {
	for _, k := range at {
		some = append(some, x[k])
	}
	return some
}

// place is the index in the dot's tile, of sizes, of element (b, m, n).
func (p *product) place(sizes []int64, b, m, n index.Expr) []index.Expr {
	left := p.lhs
	if p.turned {
		left, m, n = p.rhs, n, m
	}
	i := len(left.batch)
	j := i + len(left.free)
	return slices.Concat(
		digitsOf(b, sizes[:i]),
		digitsOf(m, sizes[i:j]),
		digitsOf(n, sizes[j:]),
	)
}

// contracted adds the conditions that an element of the argument is inside the tensor
// along the contracted dimensions. Elements outside must not contribute to a sum;
// those outside along free dimensions are not stored.
func (e *emitter) contracted(t operandTile, at []index.Expr) conditions {
	var c conditions
	for _, d := range t.contract {
		_, c = e.index(
			e.p.Ops[t.arg].Tile[d],
			at[d],
			c,
		)
	}
	return c
}

// operandElements computes elements of an argument, 0 where they are outside along a
// contracted dimension.
func (e *emitter) operandElements(t operandTile, points []point) []operand {
	d := e.typeOf(t.arg, 0)
	valid := make([]conditions, len(points))
	for k := range points {
		valid[k] = points[k].when.all(
			e.contracted(t, points[k].at),
		)
		points[k].when = valid[k]
	}
	vals := slices.Clone(e.elements(t.arg, points))
	if _, direct := e.trace(t.arg, points); direct {
		// Masked loads give 0 already.
		return vals
	}
	// Values that were computed from masked loads need not be 0.
	for k := range vals {
		vals[k] = e.choose(
			d, e.guard(valid[k]),
			vals[k], zero(kindFor(d)),
		)
	}
	return vals
}

// trace follows op n to a parameter through operations that only move elements. direct
// is false where there is another operation or a tile in shared memory on the way.
func (e *emitter) trace(n int, points []point) (param int, direct bool) {
	for {
		op := e.p.Ops[n]
		if e.hints.staged[n] {
			return 0, false
		}
		switch op.Code {
		case hlo.OpParameter:
			return n, true
		case hlo.OpReshape, hlo.OpSlice, hlo.OpCopy,
			hlo.OpTranspose, hlo.OpBroadcast, hlo.OpOptimizationBarrier, hlo.OpReverse,
			hlo.OpDynamicSlice:
			n = op.Args[0]
		default:
			return 0, false
		}
	}
}

// A scalarDot computes a product with multiply-adds of single threads: every thread
// holds tm×tn elements of C in registers, and reads its rows of A and columns of B
// from shared memory, a few k at a time.
type scalarDot struct {
	*product
	// Sum is the type that is accumulated.
	sum hlo.DType
	// Tm and tn are the rows and columns of C of a thread.
	tm, tn int64
	// Positions is the number of tm×tn blocks of C; a thread has one in each round.
	positions int64
	// Accs are the accumulators, by round, then by i·tn + j.
	accs  [][]operand
	left  *rowTile
	right *rowTile
}

// newScalarDot chooses the elements of a thread: at most 8×8 (4×4 of 64-bit sums),
// divisors of the extents, and no more than keep all threads busy.
func (e *emitter) newScalarDot(p *product) *scalarDot {
	s := &scalarDot{
		product: p,
		sum:     wideSum(p.d),
		tm:      8,
		tn:      8,
	}
	if kindFor(s.sum) == kindF64 ||
		kindFor(s.sum) == kindB64 {
		s.tm, s.tn = 4, 4
	}
	// Blocks of a thread do not cross the edges of C.
	for p.m%s.tm != 0 {
		s.tm /= 2
	}
	for p.c%s.tn != 0 {
		s.tn /= 2
	}
	count := func() int64 {
		return p.b * (p.m / s.tm) * (p.c / s.tn)
	}
	// Smaller blocks keep more threads busy.
	for count() < e.threads && s.tm*s.tn > 1 {
		if s.tm >= s.tn {
			s.tm /= 2
		} else {
			s.tn /= 2
		}
	}
	s.positions = count()
	rounds := index.CeilDiv(s.positions, e.threads)
	if rounds*s.tm*s.tn > maxPartials {
		e.reject(
			"%s: each of %d threads would keep %d sums; at most %d are kept",
			p.op.Instr.Name, e.threads,
			rounds*s.tm*s.tn, maxPartials,
		)
	}
	s.accs = make([][]operand, rounds)
	s.left, s.right = e.rowTile(
		"A", s, p.lhs, p.m, s.tm,
	), e.rowTile("B", s, p.rhs, p.c, s.tn)
	return s
}

// wideSum is the type in which products of type d are accumulated.
func wideSum(d hlo.DType) hlo.DType {
	switch kindFor(d) {
	case kindF32:
		return hlo.F32
	case kindB32:
		return hlo.S32
	case kindPred:
		return hlo.Pred
	}
	return d
}

// begin clears the accumulators.
func (s *scalarDot) begin() {
	e := s.e
	e.asm.note(
		"%%%d %s: dot %dx(%dx%d)*(%dx%d), %dx%d elements a thread",
		s.n, s.op.Instr.Name, s.b,
		s.m, s.k, s.k, s.c,
		s.tm, s.tn,
	)
	k := kindFor(s.sum)
	for r := range s.accs {
		s.accs[r] = e.asm.fresher(k, int(s.tm*s.tn))
		for _, acc := range s.accs[r] {
			e.set(k, acc, zero(k))
		}
	}
}

// position is the batch element and the positions along m and n of this thread's
// elements in a round, clamped to positions that exist, with the condition that they
// are this thread's own.
func (s *scalarDot) position(r int) (b, mi, ni index.Expr, own conditions) {
	e := s.e
	// Threads beyond the last position compute it again, and do not store it.
	n := e.ring.Const(int64(r) * e.threads).Add(e.thread)
	own = own.and(n.Neg().AddConst(s.positions - 1))
	if len(own) > 0 {
		n = n.Min(e.ring.Const(s.positions - 1))
	}
	// Up to 8 threads stand along n, a vector each of different banks, then all
	// of m.
	// Up to 8 threads are neighbours along n, so that their vectors are in different
	// banks, and then all of m.
	lanes := int64(8)
	for s.c/s.tn%lanes != 0 {
		lanes /= 2
	}
	d := digitsOf(n, []int64{
		s.b,
		s.c / s.tn / lanes,
		s.m / s.tm,
		lanes,
	})
	return d[0], d[2],
		d[1].Scale(lanes).Add(d[3]),
		own
}

// accumulate copies both operands to shared memory and adds the products.
func (s *scalarDot) accumulate() {
	e := s.e
	s.stageTile(s.left)
	s.stageTile(s.right)
	e.waitForWrites()
	s.products(memory{shared, e.smem, s.left.at}, memory{
		shared, e.smem, s.right.at,
	})
}

// products adds the products of two tiles in shared memory. Where a row of an operand
// is along k, v neighbouring k are read as one vector; about 8 k are unrolled.
func (s *scalarDot) products(a, b memory) {
	e := s.e
	v := int64(1)
	// Rows along k allow vectors of k.
	for !(s.left.byK && s.right.byK) &&
		s.k%(2*v) == 0 &&
		2*v <= min(4, maxVectorBytes/s.sum.Size()) {
		v *= 2
	}
	e.rounds(
		"k", s.k/v,
		wholeRounds(s.k/v, 8/v),
		func(k index.Expr) {
			when := conditions(nil).and(
				k.Neg().AddConst(s.k/v - 1),
			)
			for r := range s.accs {
				s.multiply(r, a, b, k.Scale(v), v, when)
			}
		},
	)
}

// wholeRounds is the number of n rounds to unroll: about the given number and, if
// possible, a divisor of n, so that no round is masked.
func wholeRounds(n, about int64) int64 {
	for step := about; 2*step > about; step-- {
		if n%step == 0 {
			return step
		}
	}
	return min(n, about)
}

// multiply adds the products of v neighbouring k for the elements of a round.
func (s *scalarDot) multiply(
	r int, a, b memory, k index.Expr, v int64, when conditions,
) {
	e := s.e
	bi, mi, ni, _ := s.position(r)
	// Elements of A and B are loaded once for all products of the block.
	x := e.rows(a, s.left, bi, mi, k, v, when)
	y := e.rows(b, s.right, bi, ni, k, v, when)
	p := e.guard(when)
	for q := range v {
		for i := range s.tm {
			for j := range s.tn {
				s.multiplyAdd(
					s.accs[r][i*s.tn+j],
					x[i*v+q],
					y[j*v+q], p,
				)
			}
		}
	}
}

// rows reads v neighbouring k of a thread's rows (or columns): element i·v + q is k +
// q of row i.
func (e *emitter) rows(
	m memory, r *rowTile,
	b, position, k index.Expr, v int64,
	when conditions,
) []operand {
	all := make([]operand, r.each*v)
	read := func(first, step, n int64) {
		places := make([]place, n)
		for j := range n {
			i := first + j*step
			places[j] = e.placeIn(
				r, b, r.element(i/v, position),
				k.AddConst(i%v), when,
			)
		}
		for j, x := range e.gatherPlaces(m, r.d, places) {
			all[first+int64(j)*step] = x
		}
	}
	if r.byK {
		for q := range v {
			read(q, v, r.each)
		}
		return all
	}
	for i := range r.each {
		read(i*v, 1, v)
	}
	return all
}

// multiplyAdd emits acc += x·y where p holds; predicates are a disjunction of
// conjunctions.
func (s *scalarDot) multiplyAdd(acc, x, y, p operand) {
	a := s.e.asm
	switch kindFor(s.sum) {
	case kindF32:
		a.when(p, "fma.rn.f32", acc, x, y, acc)
	case kindF64:
		a.when(p, "fma.rn.f64", acc, x, y, acc)
	case kindB32:
		a.when(p, "mad.lo.s32", acc, x, y, acc)
	case kindB64:
		a.when(p, "mad.lo.s64", acc, x, y, acc)
	case kindPred:
		a.when(
			p, "or.pred", acc, acc,
			a.get(
				kindPred, "and.pred", a.in(kindPred, x),
				a.in(kindPred, y),
			),
		)
	}
}

// stageTile computes an operand into shared memory, converted to the type of the sums,
// unless an equal tile is there.
func (s *scalarDot) stageTile(r *rowTile) {
	e := s.e
	key := s.key(r)
	// An operand that two products share is copied once.
	for sc := e.asm.scope; sc != nil; sc = sc.outer {
		if b := sc.tiles[key]; b != nil {
			r.at = b.at
			return
		}
	}
	r.at = e.allocateShared(r.bytes(s.b))
	from := e.typeOf(r.tile.arg, 0)
	e.asm.note("%s of %%%d to shared memory", r.name, s.n)
	e.asm.enter()
	e.each(
		e.flat(r.tile.arg, s.sum.Size()).Layout,
		func(points []point) {
			own := s.places(r, points)
			vals := e.operandElements(r.tile, points)
			for k := range vals {
				vals[k] = e.convert(s.sum, from, vals[k])
			}
			e.scatterPlaces(
				memory{shared, e.smem, r.at},
				s.sum, own, vals,
			)
		},
	)
	e.asm.leave()
	e.asm.scope.tiles[key] = &buffer{
		d:  s.sum,
		at: r.at,
	}
	e.fresh = true
}

// key identifies a tile of an operand in the scope.
func (s *scalarDot) key(r *rowTile) string {
	return fmt.Sprint(
		"rows ", r.tile, r.byK, s.sum,
	)
}

// places are the positions in shared memory of elements of an operand.
func (s *scalarDot) places(r *rowTile, points []point) []place {
	e := s.e
	all := make([]place, len(points))
	for k, p := range points {
		all[k] = e.placeIn(
			r,
			e.numbered(r.tile, r.tile.batch, p.at),
			e.numbered(r.tile, r.tile.free, p.at),
			e.numbered(r.tile, r.tile.contract, p.at),
			p.when,
		)
	}
	return all
}

// numbered is the row-major number of some dimensions of an index.
func (e *emitter) numbered(
	t operandTile, dims []int, at []index.Expr,
) index.Expr {
	n := e.ring.Const(0)
	for _, d := range dims {
		n = n.Scale(t.sizes[d]).Add(at[d])
	}
	return n
}

func (s *scalarDot) storePartial() { s.storePartialSums(s.sum, s.accs) }
func (s *scalarDot) addPartials()  { s.addPartialSums(s.sum, s.accs) }

// finish converts the sums and publishes them.
func (s *scalarDot) finish() {
	e := s.e
	e.freeze(kindFor(s.sum), s.accs)
	for r := range s.accs {
		for i, v := range s.accs[r] {
			s.accs[r][i] = e.convert(s.d, s.sum, v)
		}
	}
	s.publish(func(
		visit func(points []point, vals []operand),
	) {
		for r := range s.accs {
			bi, mi, ni, own := s.position(r)
			for i := range s.tm {
				// Columns that are neighbours in C are visited as one vector.
				piece := s.right.piece()
				for j := int64(0); j < s.tn; j += piece {
					var points []point
					for q := range piece {
						points = append(points, point{
							s.result(
								bi,
								s.left.element(i, mi),
								s.right.element(j+q, ni),
							),
							own,
						})
					}
					visit(
						points,
						s.accs[r][i*s.tn+j:i*s.tn+j+piece],
					)
				}
			}
		}
	})
}

// freeze copies accumulators to registers that are written once, so that values
// computed from them can be remembered (asm.stable).
func (e *emitter) freeze(k kind, accs [][]operand) {
	for r := range accs {
		for i, v := range accs[r] {
			accs[r][i] = e.asm.fresh(k)
			e.asm.do(kindTable[k].move, accs[r][i], v)
			e.asm.stable[accs[r][i]] = true
		}
	}
}

// rowPadded has row-major strides with rows one vector longer than their elements, so
// that fragments of eight rows are in different banks.
func rowPadded(sizes []int64, size int64) []int64 {
	padded := slices.Clone(sizes)
	if len(padded) > 1 {
		padded[len(padded)-1] += maxVectorBytes / size
	}
	return dense(padded)
}

// publish makes the elements of C available in the registers that they are in and, if
// other threads need them (hints), in shared memory. each visits the vectors of this
// thread, with the conditions that they are its own.
func (p *product) publish(
	each func(visit func(points []point, vals []operand)),
) {
	e := p.e
	key := bufferKey{p.n, 0}
	delete(e.buffers, key)
	// A side without free dimensions still has a fragment of several rows or
	// columns, whose elements have one index in the result. The first of them is
	// the element at place 0, the only one inside of the tile.
	known := map[valueKey]bool{}
	// The values are known without conditions: elements outside of C are not asked
	// for.
	each(func(points []point, vals []operand) {
		for k, x := range points {
			at := e.keyOf(p.n, 0, point{x.at, nil})
			if known[at] {
				continue
			}
			known[at] = true
			e.asm.scope.values[at] = vals[k]
		}
	})
	e.fragments[fmt.Sprint(p.op.Tile.Sizes())] = func(
		body func(points []point),
	) {
		each(func(points []point, _ []operand) {
			body(points)
		})
	}
	if !e.hints.sharedResults[key] {
		return
	}
	sizes := p.op.Tile.Sizes()
	b := &buffer{
		d:       registerType(p.d),
		sizes:   sizes,
		strides: rowPadded(sizes, registerType(p.d).Size()),
	}
	b.at = e.allocateFreed(span(sizes, b.strides) * b.d.Size())
	each(func(points []point, vals []operand) {
		e.put(b, points, vals)
	})
	e.buffers[key] = b
	e.barrier()
}

// peerSums is the sums of another block that are loaded before the first is added.
const peerSums = 32

// addPeerSums adds the sums of the block that the stream names.
func (p *product) addPeerSums(a sumArray, sums []operand) {
	e := p.e
	at := a.places(e, len(sums), e.stream.peer, nil)
	for k := 0; k < len(at); k += peerSums {
		some := at[k:min(len(at), k+peerSums)]
		for i, x := range e.gatherPlaces(a.memory, a.d, some) {
			e.asm.do(
				additions[kindFor(a.d)],
				sums[k+i], sums[k+i], x,
			)
		}
	}
}

// A rowTile is an operand of a scalarDot in shared memory, in the order that it is
// loaded in: rows of pitch elements, along the free dimension or along k, for each
// element of the batch. Rows along k are swizzled, because neighbouring threads read
// the same k of neighbouring rows.
type rowTile struct {
	name string
	tile operandTile
	// D is the element type in shared memory.
	d       hlo.DType
	free, k int64
	// Each is the rows or columns of a thread.
	each int64
	// ByK is set where a row has one k, and its elements are along the free dimension.
	byK bool
	// Pitch is in elements.
	pitch   int64
	swizzle swizzle
	at      int64
}

// rowTile chooses the layout of an operand.
func (e *emitter) rowTile(name string, s *scalarDot, o operandTile, free, each int64) *rowTile {
	r := &rowTile{
		name: name,
		tile: o,
		d:    s.sum,
		free: free,
		k:    s.k,
		each: each,
		byK:  e.alongFree(o, s.sum.Size()),
	}
	row, size := r.k, s.sum.Size()
	if r.byK {
		row = r.free
	}
	r.pitch = index.CeilDiv(row*size, maxVectorBytes) *
		maxVectorBytes / size
	r.swizzle = newSwizzle(maxVectorBytes, r.pitch*size)
	if r.byK {
		r.swizzle.group = 1
	}
	return r
}

// alongFree reports whether neighbouring threads load neighbouring elements along a
// free or batch dimension of an operand, not along a contracted one.
func (e *emitter) alongFree(o operandTile, size int64) bool {
	d := coalesce.FastestDim(
		o.sizes,
		e.flat(o.arg, size).Layout.Order(),
	)
	return d >= 0 && o.sizes[d] > 1 &&
		!slices.Contains(o.contract, d)
}

// bytes is the size of the tile in shared memory.
func (r *rowTile) bytes(batch int64) int64 {
	rows := r.free
	if r.byK {
		rows = r.k
	}
	return batch * rows * r.pitch * r.d.Size()
}

// placeIn is the position of element (b, free, k) in a tile.
func (e *emitter) placeIn(
	r *rowTile, b, free, k index.Expr, when conditions,
) place {
	row := free
	col := k
	rows := r.free
	if r.byK {
		row = k
		col = free
		rows = r.k
	}
	return place{
		b.Scale(rows).Add(row).Scale(r.pitch).Add(e.swizzled(
			r.swizzle, row, col, r.d.Size(),
		)),
		when,
	}
}

// piece is the number of neighbouring rows or columns of a thread that are consecutive
// in shared memory: vectors of 16 bytes where rows are along the free dimension. The
// vectors of neighbouring threads are consecutive, and a thread's next vector is a
// part of the tile further.
func (r *rowTile) piece() int64 {
	if !r.byK {
		return 1
	}
	return min(
		r.each,
		max(1, maxVectorBytes/r.d.Size()),
	)
}

// element is the i-th row or column of the thread at a position.
func (r *rowTile) element(i int64, position index.Expr) index.Expr {
	p := r.piece()
	return position.Scale(p).AddConst(
		i/p*(r.free/(r.each/p)) + i%p,
	)
}

// A sumArray is the scratch memory for partial sums of a product. The sums of a thread
// are vectors of 16 bytes (or 4 elements), and vectors with the same number of
// neighbouring threads are consecutive, so that accesses are coalesced.
type sumArray struct {
	memory
	d hlo.DType
	// Vector is the elements of a vector; groups is the vectors of a thread.
	vector int64
	groups int64
}

// sumArray allocates scratch memory for n sums of each thread of all pieces.
func (p *product) sumArray(d hlo.DType, n int64) sumArray {
	e := p.e
	a := sumArray{
		d:      d,
		vector: min(4, maxVectorBytes/d.Size()),
	}
	a.groups = index.CeilDiv(n, a.vector)
	pieces := int64(e.knobs.splitk) * e.p.Programs()
	if e.stream != nil {
		pieces = e.stream.blocks
	}
	bytes := pieces * a.groups * e.threads *
		a.vector * d.Size()
	if e.stream != nil {
		a.memory = e.stream.sumsOf(e, p.n, bytes)
	} else {
		a.memory = e.scratchArray(bytes)
	}
	return a
}

// places are the positions of the n sums of this thread in a piece of this tile or,
// where the block of the piece is known by its number, of that block.
func (a sumArray) places(
	e *emitter, n int, piece index.Expr, valid conditions,
) []place {
	var all []place
	if e.stream == nil {
		piece = piece.Scale(e.p.Programs()).Add(e.block)
	}
	first := piece.Scale(a.groups)
	for k := range int64(n) {
		at := first.AddConst(
			k / a.vector,
		).Scale(e.threads).Add(e.thread).Scale(a.vector).AddConst(
			k % a.vector,
		)
		all = append(all, place{at, valid})
	}
	return all
}

// storePartialSums stores the accumulators, of type d.
func (p *product) storePartialSums(d hlo.DType, accs [][]operand) {
	e, sums := p.e, slices.Concat(accs...)
	e.asm.note("the sums of %%%d to scratch", p.n)
	a := p.sumArray(d, int64(len(sums)))
	piece := e.piece
	if e.stream != nil {
		piece = e.stream.block
	}
	e.scatterPlaces(
		a.memory, d,
		a.places(e, len(sums), piece, nil),
		sums,
	)
}

// additions are the instructions that add two partial sums, by kind of register.
var additions = [kinds]string{
	kindF32:  "add.rn.f32",
	kindF64:  "add.rn.f64",
	kindB32:  "add.s32",
	kindB64:  "add.s64",
	kindPred: "or.pred",
}

// addPartialSums adds the sums of all pieces to the accumulators, in the order of the
// pieces.
func (p *product) addPartialSums(d hlo.DType, accs [][]operand) {
	e, sums := p.e, slices.Concat(accs...)
	a := p.sumArray(d, int64(len(sums)))
	if e.stream != nil {
		p.addPeerSums(a, sums)
		return
	}
	pieces := int64(e.knobs.splitk)
	// About 16 vectors are loaded before the first is used, which hides the latency of
	// memory.
	step := powerOver(max(1, 16/a.groups))
	e.rounds("piece", pieces, wholeRounds(pieces, step), func(piece index.Expr) {
		// A round beyond the last piece is masked.
		valid := conditions(nil).and(piece.Neg().AddConst(pieces - 1))
		p := e.guard(valid)
		for k, x := range e.gatherPlaces(
			a.memory,
			d,
			a.places(e, len(sums), piece, valid),
		) {
			e.asm.when(
				p, additions[kindFor(d)],
				sums[k], sums[k], x,
			)
		}
	})
}
