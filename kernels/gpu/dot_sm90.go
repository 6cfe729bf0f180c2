package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Products by warpgroups (sm_90a): tensor copies bring boxes of A and B to
// shared memory, a ring of slots ahead, each with a barrier that counts its
// bytes; wgmma reads them from there.

const (
	// GroupRows is the rows of C that one wgmma computes.
	groupRows = 64
	// MaxColumns is the most columns of C that one wgmma computes.
	maxColumns = 256
	// MaxBoxExtent is the most elements of a tensor copy along one dimension.
	maxBoxExtent = 256
	// MaxRowBytes is the widest row that a swizzle of tensor copies supports.
	maxRowBytes = 128
	// Atom is the alignment of swizzled tiles, in bytes.
	atom = 1024
)

// wholeAtoms is the next multiple of the alignment of swizzled tiles.
func wholeAtoms(bytes int64) int64 {
	return (bytes + atom - 1) / atom * atom
}

// groupProduct is the instruction by which warpgroups multiply elements of two types.
// Types are as for warps, but integers may not be mixed. Operands of 32 bits are
// rounded to tf32 by the tensor copies. Sums of 8-bit floats have about 14 bits while they
// are in the tensor cores (DeepSeek-V3 Technical Report, 2024, §3.3.2), which is more
// than their factors have.
func groupProduct(s device.Spec, a, b hlo.DType, k knobs) (mma, bool) {
	m, ok := tensorProduct(s, a, b, k)
	return m, ok && s.Warpgroups() &&
		(a == b || a.IsFloat()) &&
		(a != hlo.F32 || k.tf32 != cutOff)
}

// readsTransposed reports whether wgmma can read operands of a type whose rows are
// along the free dimension (PTX ISA, wgmma.mma_async: imm-trans-a).
func readsTransposed(d hlo.DType) bool { return d.Size() == 2 }

// A groupDot is a product computed by wgmma. Warpgroups are arranged gm×gn over C, and
// each computes rows×cols elements.
type groupDot struct {
	*product
	mma mma
	// From is the element type of A; elements of B have the same size.
	from       hlo.DType
	gm, gn     int64
	rows, cols int64
	// Depth is the extent of k, padded to whole instructions.
	depth int64
	a, b  *boxTile
	// Left is the left operand where wgmma reads it from registers; a is nil then.
	left *registerOperand
	// Right is the right operand where warps copy it to rows along k, and data the address of
	// the first slot.
	right *turnedTile
	data  operand
	// Accs are the accumulators, by 64 rows, and totals what they are added to after each
	// iteration (knob promote); nil where the accumulators have all iterations.
	accs   [][]operand
	totals [][]operand
	// Scaled are the scales of the operands, which sums are multiplied by; nil where there
	// are none. Current are those of an iteration.
	scaled  *scaledProduct
	current scales
}

// A boxTile is an operand in shared memory as tensor copies write it: chunks of
// swizzled rows of inner elements. Rows are numbered by the free dimension and their
// elements are along k, or the other way round.
type boxTile struct {
	// Name is "A" or "B", for comments and errors.
	name string
	// Op is the parameter of the fusion, as an op.
	op int
	// Free and depth are the padded extents along the free dimension and k.
	free  int64
	depth int64
	// ByK is set where a row has one k.
	byK bool
	// Inner is the elements of a row of a chunk.
	inner int64
	// Fd and kd are the free and the contracted dimension of the tensor.
	fd, kd int
	// Bytes is the size of the tile.
	bytes int64
	// At is the offset of the tile in a slot.
	at int64
	// Number is the number of the tensor map.
	number int
	// Parts is the number of blocks of a cluster that each load a part of the rows for
	// all; 1 where every block loads its own tile.
	parts int64
	// Raw is set where threads read the elements, as they are in memory.
	raw bool
	// Stands is the op whose elements these are then.
	stands int
}

// newGroupDot is dot n computed by warpgroups, nil where they cannot.
func (e *emitter) newGroupDot(n int) *groupDot {
	p, scaled := e.scaledProductOf(n)
	if p == nil {
		return nil
	}
	computed := inRegisters(e.p, scaled.dot(n), scaled)
	if computed != nil && computed.turned {
		p, scaled = p.turn(), scaled.turn()
	}
	from := e.typeOf(p.lhs.arg, 0)
	inst, ok := groupProduct(
		e.spec, from,
		e.typeOf(p.rhs.arg, 0),
		e.knobs,
	)
	if !ok || wideSum(p.d) != inst.sum ||
		p.b != 1 || p.m < groupRows/2 {
		return nil
	}
	t := &groupDot{
		product: p,
		mma:     inst,
		from:    from,
		depth:   index.CeilDiv(p.k, inst.k) * inst.k,
		scaled:  scaled,
	}
	if e.knobs.promote > 0 &&
		(!t.short() || scaled != nil &&
			scaled.varies) {
		return nil
	}
	if !t.divide(e.threads/device.WarpgroupThreads) ||
		t.sums() > maxPartials {
		return nil
	}
	t.b = e.boxTile(
		"B", p.rhs,
		t.cols*t.gn, t.cols,
		t.depth,
	)
	if computed != nil {
		t.left = t.registerOperand(computed)
	} else {
		t.a = e.boxTile(
			"A", p.lhs, t.rows*t.gm, groupRows, t.depth,
		)
	}
	if t.a == nil && t.left == nil || t.b == nil {
		return nil
	}
	if computed != nil && computed.both {
		t.right = t.turnedRight()
		return t.ifTurned()
	}
	if !readsTransposed(from) &&
		(t.b.byK || t.a != nil && t.a.byK) {
		return nil
	}
	return t
}

// ifTurned is t; nil where its right operand cannot be copied.
func (t *groupDot) ifTurned() *groupDot {
	if t.right == nil {
		return nil
	}
	return t
}

// boxes are the tiles of the product that tensor copies bring.
func (t *groupDot) boxes() []*boxTile {
	if t.left != nil {
		return append(slices.Clone(t.left.boxes), t.b)
	}
	return []*boxTile{t.a, t.b}
}

// short reports whether tensor cores keep about 14 bits of the sums: products of 8-bit
// floats (DeepSeek-V3 Technical Report, 2024, §3.5.2).
func (t *groupDot) short() bool {
	return t.from.IsFloat() &&
		t.from.Size() == 1
}

// sums is the registers of a thread for sums.
func (t *groupDot) sums() int64 {
	n := t.rows / groupRows * t.cols / 2
	if t.promotes() {
		n *= 2
	}
	return n
}

// divide chooses the arrangement of warpgroups that computes the least padding and,
// among those, reads the least from shared memory. It reports whether there is one.
func (t *groupDot) divide(groups int64) bool {
	best := int64(-1)
	for gm := int64(1); gm <= groups; gm *= 2 {
		gn := groups / gm
		rows := index.CeilDiv(index.CeilDiv(t.m, groupRows), gm) * groupRows
		cols := index.CeilDiv(index.CeilDiv(t.c, 16), gn) * 16
		// Padding weighs more than what is read: columns again for every 64 rows.
		cost := rows*cols*4096 + rows/groupRows*(groupRows+cols)
		if cols <= maxColumns && (best < 0 || cost < best) {
			best = cost
			t.gm = gm
			t.gn = gn
			t.rows = rows
			t.cols = cols
		}
	}
	return best >= 0
}

// boxTile describes the tensor copies of an operand; nil where they cannot make it.
// part is the extent along the free dimension that a warpgroup reads at once.
func (e *emitter) boxTile(name string, o operandTile, free, part, depth int64) *boxTile {
	op := e.p.Ops[o.arg]
	shape := op.Instr.Shape
	fd, okF := singleDim(o.sizes, o.free)
	kd, okK := singleDim(o.sizes, o.contract)
	if op.Code != hlo.OpParameter || !okF || !okK ||
		shape.Rank() > 5 || !e.copyable(op) {
		return nil
	}
	size := shape.DType.Size()
	k := op.Tile[kd]
	if o.sizes[kd]*size%mmaBytes != 0 &&
		(constantOf(k.Size) != shape.Dims[kd] ||
			len(k.Offset.Vars()) > 0) {
		// Elements beyond the tile would not be zeros, because they are not beyond the
		// tensor.
		return nil
	}
	order := majorToMinor(shape)
	b := &boxTile{
		name:  name,
		op:    o.arg,
		free:  free,
		depth: depth,
		fd:    fd,
		kd:    kd,
		parts: 1,
		byK:   order[len(order)-1] == fd,
	}
	// A row of a chunk is 128 bytes, halved until it divides what is read at once.
	along := depth
	if b.byK {
		along = part
	} else if order[len(order)-1] != kd {
		return nil
	}
	for b.inner = maxRowBytes / size; along%b.inner != 0; b.inner /= 2 {
	}
	if b.inner*size < mmaBytes || b.rows() > maxBoxExtent {
		return nil
	}
	b.bytes = free * depth * size
	return b
}

// singleDim is the only dimension of dims with more than one element, or the first of
// dims. ok is false where there are several.
func singleDim(sizes []int64, dims []int) (d int, ok bool) {
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

// copyable reports whether tensor copies can load a parameter's tile as it is: a
// contiguous box that is cut off at the end of the tensor only, with strides that are
// multiples of 16 bytes.
func (e *emitter) copyable(op symtile.Op) bool {
	shape := op.Instr.Shape
	strides := shape.Strides()
	// Tensor copies write zeros only for what is beyond the end of the tensor.
	for d, x := range op.Tile {
		if x.Digits != nil || constantOf(x.Stride) != 1 ||
			x.MaskedBelow() ||
			x.MaskedAbove() && x.Bound != e.ring.Const(shape.Dims[d]) {
			return false
		}
		if strides[d] != 1 &&
			strides[d]*shape.DType.Size()%matrixRow != 0 {
			return false
		}
	}
	return true
}

// key is equal for equal tiles.
func (b *boxTile) key() string {
	return fmt.Sprint(
		b.op, b.free, b.depth,
		b.byK, b.inner, b.raw,
	)
}

// rows is the number of rows of a chunk.
func (b *boxTile) rows() int64 {
	if b.byK {
		return b.depth
	}
	return b.free
}

// chunks is the number of chunks of the tile.
func (b *boxTile) chunks() int64 {
	return b.free * b.depth / b.rows() / b.inner
}

// slow is the dimension of the tensor that numbers the rows.
func (b *boxTile) slow() int {
	if b.byK {
		return b.kd
	}
	return b.fd
}

// chunkBytes is the size of a chunk of elements of the given size.
func (b *boxTile) chunkBytes(size int64) int64 {
	return b.rows() * b.inner * size
}

// spec is the tensor map of the tile.
func (b *boxTile) spec(e *emitter) device.TensorMapSpec {
	shape := e.p.Ops[b.op].Instr.Shape
	strides := shape.Strides()
	s := device.TensorMapSpec{
		DType:   shape.DType,
		TF32:    shape.DType == hlo.F32 && !b.raw,
		Swizzle: device.Swizzle(b.inner * shape.DType.Size()),
	}
	for k, d := range slices.Backward(majorToMinor(shape)) {
		s.Dims = append(
			s.Dims, uint64(shape.Dims[d]),
		)
		if k < shape.Rank()-1 {
			s.Strides = append(
				s.Strides,
				uint64(strides[d]*shape.DType.Size()),
			)
		}
		box := int64(1)
		switch d {
		case b.fd:
			box = b.free
		case b.kd:
			box = b.depth
		}
		// The innermost extent is a row of a chunk; blocks of a cluster copy a part of
		// the rows each.
		switch {
		case k == shape.Rank()-1:
			box = b.inner
		case d == b.slow():
			box /= b.parts
		}
		s.Box = append(s.Box, uint32(box))
	}
	return s
}

// mapNumber declares the tensor map of a tile as a parameter of the kernel, once for
// equal maps.
func (e *emitter) mapNumber(b *boxTile) int {
	param := e.p.Ops[b.op].Instr.Attrs.Param
	return e.declareMap(tensorMap{
		device.Input(int(param)),
		b.spec(e),
	})
}

// declareMap declares a tensor map as a parameter of the kernel, once for equal maps, and
// returns its number.
func (e *emitter) declareMap(m tensorMap) int {
	for k, x := range e.maps {
		if fmt.Sprint(x) == fmt.Sprint(m) {
			return k
		}
	}
	e.maps = append(e.maps, m)
	e.args = append(
		e.args,
		m.of.Mapped(m.spec),
	)
	n := len(e.maps) - 1
	e.asm.code.ParamBytes(mapName(n), 64, 128)
	return n
}

// mapName is the parameter that is a tensor map.
func mapName(number int) string {
	return fmt.Sprintf("map%d", number)
}

// offset is the offset in bytes of row (or column) first of C at k. first is a
// multiple of the rows of a chunk.
func (b *boxTile) offset(first index.Expr, k, size int64) index.Expr {
	// A chunk has all k, and a row of it has inner elements of the free dimension.
	if b.byK {
		return first.Scale(b.depth * size).AddConst(k * b.inner * size)
	}
	return first.Scale(b.inner * size).AddConst(
		k/b.inner*b.chunkBytes(size) + k%b.inner*size,
	)
}

// swizzleCode is the swizzle of a descriptor (PTX ISA, wgmma matrix descriptor).
var swizzleCode = map[device.Swizzle]int64{
	device.Swizzle128: 1,
	device.Swizzle64:  2,
	device.Swizzle32:  3,
}

// begin clears the accumulators.
func (t *groupDot) begin() {
	e := t.e
	e.asm.note(
		"%%%d %s: dot (%dx%d)*(%dx%d), %dx%d warpgroups of %dx%d",
		t.n, t.op.Instr.Name, t.m,
		t.k, t.k, t.c, t.gm,
		t.gn, t.rows, t.cols,
	)
	t.accs = t.cleared()
	if t.promotes() {
		t.totals = t.cleared()
		e.promoted = true
	}
}

// cleared are registers of 0, by 64 rows.
func (t *groupDot) cleared() [][]operand {
	e := t.e
	k := kindFor(t.mma.sum)
	all := make([][]operand, t.rows/groupRows)
	for i := range all {
		all[i] = e.asm.fresher(
			k, int(t.cols/2),
		)
		for _, acc := range all[i] {
			e.set(k, acc, zero(k))
		}
	}
	return all
}

// promote adds the sums of an iteration, which are complete, to those of all, times the scales
// of the iteration.
//
// The warpgroup's products stand still meanwhile, those of the other warpgroups of the block
// do not, and the slot has been released.
func (t *groupDot) promote() {
	a := t.e.asm
	a.enter()
	defer a.leave()
	for i := range t.totals {
		for j, total := range t.totals[i] {
			sum := t.accs[i][j]
			// Scales of rows and columns are multiplied once for all sums that have both:
			// a asks for equal products again without code.
			if s := t.current.of(a, i, j); s != "" {
				a.do("fma.rn.f32", total, sum, s, total)
			} else {
				a.do("add.rn.f32", total, total, sum)
			}
		}
	}
}

// multiply begins the products of a slot (wgmma is asynchronous).
func (t *groupDot) multiply(d [2]descriptor, s slot) {
	e := t.e
	a := t.e.asm
	size := t.from.Size()
	opcode := t.opcode()
	zero := e.ring.Const(0)
	for k := int64(0); k < t.depth; k += t.mma.k {
		// The descriptors of later k differ by a constant number of bytes.
		db := d[1].moved(
			a, s.offset,
			s.bytes+constantOf(t.b.offset(zero, k, size)),
		)
		for i, c := range t.accs {
			rows := e.ring.Const(int64(i) * groupRows)
			da := d[0].moved(
				a, s.offset,
				s.bytes+constantOf(t.a.offset(rows, k, size)),
			)
			a.do(
				opcode,
				append([]any{
					c, da, db, t.adds(k),
				}, t.flags()...)...,
			)
		}
	}
}

// adds is the operand of wgmma that says whether the products at k of an iteration are added
// to the sums: those that are promoted begin anew in each iteration.
func (t *groupDot) adds(k int64) operand {
	add := yes
	if t.totals != nil && k == 0 {
		add = no
	}
	return t.e.asm.in(kindPred, add)
}

// opcode is the instruction of the product.
func (t *groupDot) opcode() string {
	return fmt.Sprintf(
		"wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s",
		t.cols, t.mma.k, t.mma.sum,
		t.mma.a.name, t.mma.b.name,
	)
}

// flags are the operands of wgmma after scale-d: the signs of both operands for
// floats, and whether each operand in shared memory has its rows along the free dimension
// where the type allows it.
func (t *groupDot) flags() []any {
	var list []any
	if t.from.IsFloat() {
		list = append(list, 1, 1)
	}
	if readsTransposed(t.from) {
		for _, b := range []*boxTile{t.a, t.b} {
			if b == nil {
				continue
			}
			list = append(
				list, map[bool]int{true: 1}[b.byK],
			)
		}
	}
	return list
}

// accumulate does nothing: the ring multiplies.
func (t *groupDot) accumulate() {}

func (t *groupDot) storePartial() {
	t.storePartialSums(t.mma.sum, t.complete())
}

// complete are the sums of all iterations.
func (t *groupDot) complete() [][]operand {
	if t.totals != nil {
		return t.totals
	}
	return t.accs
}

func (t *groupDot) addPartials() {
	t.addPartialSums(t.mma.sum, t.complete())
}

// finish converts the sums and publishes them.
func (t *groupDot) finish() {
	t.accs = t.complete()
	t.e.freeze(kindFor(t.mma.sum), t.accs)
	t.scaleTotals()
	for i := range t.accs {
		for k, v := range t.accs[i] {
			t.accs[i][k] = t.e.convert(
				t.d, t.mma.sum, v,
			)
		}
	}
	t.publish(t.fragments)
}

// fragments visits the elements of C of this thread: warp w of a warpgroup has rows
// 16·w … 16·w + 15 of each 64, and its lane l has rows l/4 and l/4 + 8 and, of every 8
// columns, 2·(l mod 4) and the next.
func (t *groupDot) fragments(visit func(points []point, vals []operand)) {
	for i := range t.accs {
		for j := range t.cols / mmaN {
			for half := range int64(2) {
				visit(
					t.neighbours(int64(i), j, half),
					t.accs[i][j*4+half*2:j*4+half*2+2],
				)
			}
		}
	}
}

// corner is the row and the column of C at which this thread's warpgroup begins.
func (t *groupDot) corner() (m, n index.Expr) {
	// Warpgroups lie over the tile row by row, gn of them beside each other.
	group := t.e.thread.Div(device.WarpgroupThreads)
	across := group.Div(t.gn)
	along := group.Mod(t.gn)
	return across.Scale(t.rows), along.Scale(t.cols)
}

// neighbours are the two elements of this thread in half a fragment of 16 rows: of the
// 64 rows i and the eight columns j of its warpgroup.
func (t *groupDot) neighbours(i, j, half int64) []point {
	e := t.e
	m := t.row(i, half)
	points := make([]point, 2)
	for q := range points {
		n := t.column(j, int64(q))
		var own conditions
		own = own.and(m.Neg().AddConst(t.m - 1))
		own = own.and(n.Neg().AddConst(t.c - 1))
		points[q] = point{
			t.result(e.ring.Const(0), m, n),
			own,
		}
	}
	return points
}

// column is column q of this thread, of two, of the eight columns j of its warpgroup.
func (t *groupDot) column(
	j, q int64,
) index.Expr {
	_, n := t.corner()
	n = n.AddConst(j * mmaN)
	// Four lanes share a row of eight columns: two neighbours each.
	pair := t.e.thread.Mod(device.WarpThreads).Mod(4)
	return n.Add(pair.Scale(2)).AddConst(q)
}

// row is the row of C of this thread in each half of a fragment of 16 rows, of the 64 rows
// i of its warpgroup.
func (t *groupDot) row(i, half int64) index.Expr {
	warp, lane := t.e.warpAndLane()
	m, _ := t.corner()
	m = m.AddConst(i * groupRows)
	row := lane.Div(4)
	if t.left != nil && t.left.words() {
		row = spreadRow(warp, row)
		return m.Add(row).AddConst(half)
	}
	m = m.Add(warp.Scale(mmaM))
	if t.left != nil && t.left.paired {
		// Bytes are loaded in pairs along the rows, so that a thread has rows 2r and
		// 2r+1 in place of r and r+8.
		pair := row.Scale(2)
		return m.Add(pair).AddConst(half)
	}
	// The layout of the accumulator (PTX ISA, wgmma.mma_async, figure of matrix D).
	return m.Add(row).AddConst(half * 8)
}

// warpAndLane are the number of the thread's warp in its warpgroup, and that of the
// thread in the warp.
func (e *emitter) warpAndLane() (warp, lane index.Expr) {
	const warps = device.WarpgroupThreads / device.WarpThreads
	warp = e.thread.Div(device.WarpThreads)
	lane = e.thread.Mod(device.WarpThreads)
	return warp.Mod(warps), lane
}

// Products of 8-bit floats that a program converts and multiplies by scales before the dot
// (DeepSeek-V3 Technical Report, 2024, §3.3.2: 1×128 of the left operand, 128×128 of the
// right one; DeepGEMM). Where scales are the same along k in a tile, they are factors of the
// tile's sums: Σ (s·a)·(t·b) = s·t·Σ a·b. Warpgroups multiply the 8-bit floats as they are.
//
// What is left out is the rounding of scaled operands, so that results are nearer to the
// exact ones than those of plain evaluation. They differ where s·t is not a normal number
// of f32, or not finite.

// A scaledProduct has the operands of a product, which are parameters of 8-bit floats times
// factors.
type scaledProduct struct {
	operands [2]scaledOperand
	// Varies is set where some factors differ between iterations of the loop.
	varies bool
	// Sum adds up the products of a loop; nil where the dot does.
	sum *blockSum
}

// A scaledOperand is the parameter, as an op, that an operand is computed from, and what it
// is multiplied by.
type scaledOperand struct {
	raw     int
	factors []factor
	// Passed are the ops between the parameter and the operand.
	passed []int
}

// A factor is an op whose elements an operand is multiplied by, or the results of a dot.
type factor struct {
	op int
	// Through are the reshapes between its product and the operand, the operand's first.
	through []int
	// Of has the dimension of the dot for each of the op where results are multiplied.
	of     []int
	varies bool
}

// turn is s of the transposed product.
func (s *scaledProduct) turn() *scaledProduct {
	if s == nil {
		return nil
	}
	t := *s
	t.operands[0], t.operands[1] = s.operands[1], s.operands[0]
	return &t
}

// scaledProductOf is dot n with its scales apart; nil where its operands are not two
// parameters of 8-bit floats that are converted.
func scaledProductOf(p *symtile.Program, n int) *scaledProduct {
	s := &scaledProduct{}
	for side, arg := range p.Ops[n].Args {
		o := &s.operands[side]
		if !o.collect(p, arg, nil) ||
			!slices.Equal(
				p.Ops[o.raw].Instr.Shape.Dims, p.Ops[arg].Instr.Shape.Dims,
			) {
			return nil
		}
	}
	if len(s.operands[0].passed)+len(s.operands[1].passed) == 0 {
		return nil
	}
	s.findVarying(p)
	return s
}

// findVarying says which factors differ between iterations of loops.
func (s *scaledProduct) findVarying(p *symtile.Program) {
	dims := loopDims(p)
	for _, o := range s.operands {
		for k := range o.factors {
			f := &o.factors[k]
			f.varies = dependsOnTile(p, f.op, dims)
			s.varies = s.varies || f.varies
		}
	}
}

// A blockSum is a reduction that adds up dots, times scales of their rows and columns:
// Σ_b s[b,m]·t[b,n]·Σ_k A[b,m,k]·B[b,k,n], which is how blocks of k are written whose results
// are scaled. Where a tile has one b and all of its k, an iteration of the reduction's loop
// is one of a product whose operands are scaled.
type blockSum struct {
	reduce, dot int
	// At has the dimension of the reduction's argument for each of the dot, and kept that of
	// the dot for each of the reduction.
	at, kept []int
	// Passed are the ops between the dot and the reduction.
	passed []int
	// Leaves are what results are multiplied by.
	leaves []factor
}

// blockSumOf is reduction n as a product with scales; nil where it is something else.
func blockSumOf(p *symtile.Program, n int) *scaledProduct {
	op := p.Ops[n]
	if op.Code != hlo.OpReduce ||
		len(op.Args) != 2 ||
		op.Instr.Shape.DType != hlo.F32 {
		return nil
	}
	arg, first := op.Args[0], op.Args[1]
	by, ok := op.Instr.Attrs.ToApply.Monoid()
	if !ok || by != hlo.OpAdd ||
		!isZero(p.Ops[first]) {
		return nil
	}
	b := &blockSum{reduce: n}
	rank := len(p.Ops[arg].Tile)
	if !b.collect(p, arg, identity(rank)) ||
		!b.match(p, op.Instr.Attrs.Dimensions) {
		return nil
	}
	s := scaledProductOf(p, b.dot)
	if s == nil {
		s = &scaledProduct{}
		for side, a := range p.Ops[b.dot].Args {
			if p.Ops[a].Code != hlo.OpParameter {
				return nil
			}
			s.operands[side].raw = a
		}
	}
	if s.sum = b; !s.apply(p) {
		return nil
	}
	s.findVarying(p)
	return s
}

// isZero reports whether an op is the constant 0.
func isZero(op symtile.Op) bool {
	if op.Code != hlo.OpConstant {
		return false
	}
	values := op.Instr.Literal.Floats
	return len(values) == 1 && values[0] == 0
}

// collect follows op n to the dot through transposes and products with scales. To has the
// dimension of the reduction's argument for each of the op.
func (b *blockSum) collect(p *symtile.Program, n int, to []int) bool {
	op := p.Ops[n]
	if op.Instr.Shape.DType != hlo.F32 {
		return false
	}
	switch op.Code {
	case hlo.OpDot:
		b.dot, b.at = n, to
		return true
	case hlo.OpTranspose:
		from := make([]int, len(to))
		for k, d := range op.Instr.Attrs.Dimensions {
			from[d] = to[k]
		}
		b.passed = append(b.passed, n)
		return b.collect(p, op.Args[0], from)
	case hlo.OpMultiply:
		for k, a := range op.Args {
			if !repeated(p, a, true) {
				continue
			}
			b.passed = append(b.passed, n)
			b.split(p, a, to)
			return b.collect(p, op.Args[1-k], to)
		}
	}
	return false
}

// split adds what op n is the product of, so that each depends on fewer dimensions.
func (b *blockSum) split(p *symtile.Program, n int, to []int) {
	op := p.Ops[n]
	if op.Code == hlo.OpMultiply {
		b.passed = append(b.passed, n)
		for _, a := range op.Args {
			b.split(p, a, to)
		}
		return
	}
	b.leaves = append(
		b.leaves, factor{op: n, of: to},
	)
}

// match reports whether what is reduced are the batch dimensions of the dot, and finds those
// that are kept.
func (b *blockSum) match(p *symtile.Program, reduced []int64) bool {
	batch := len(p.Ops[b.dot].Instr.Attrs.LHSBatch)
	if batch == 0 || batch != len(reduced) {
		return false
	}
	for d := range b.at {
		k := slices.Index(b.at, d)
		if slices.Contains(reduced, int64(d)) != (k < batch) {
			return false
		}
		if k >= batch {
			b.kept = append(b.kept, k)
		}
	}
	// From here on, those of the dot for dimensions of the reduction's argument.
	for i, f := range b.leaves {
		of := make([]int, len(f.of))
		for d, to := range f.of {
			of[d] = slices.Index(b.at, to)
		}
		b.leaves[i].of = of
	}
	return true
}

// apply makes the leaves factors of the operands whose free dimensions they depend on, and
// reports whether none depends on those of both.
func (s *scaledProduct) apply(p *symtile.Program) bool {
	op := p.Ops[s.sum.dot]
	whole := func(n int) []int64 { return p.Ops[n].Instr.Shape.Dims }
	for _, f := range s.sum.leaves {
		side := slices.IndexFunc([]int{1, 0}, func(other int) bool {
			return sameAlong(
				p, f.op, f.free(p, op, other), whole,
			)
		})
		if side < 0 {
			return false
		}
		o := &s.operands[side]
		o.factors = append(
			slices.Clone(o.factors), f,
		)
	}
	return true
}

// free are the dimensions of a factor of results that are free dimensions of an operand of the
// dot.
func (f factor) free(p *symtile.Program, dot symtile.Op, side int) (dims []int64) {
	a := dot.Instr.Attrs
	from := len(a.LHSBatch)
	to := len(p.Ops[dot.Args[0]].Tile) - len(a.LHSContract)
	if side == 1 {
		from, to = to, len(dot.Tile)
	}
	for d, k := range f.of {
		if k >= from && k < to {
			dims = append(dims, int64(d))
		}
	}
	return dims
}

// dot is the dot of the product: n itself, or the one that reduction n adds up.
func (s *scaledProduct) dot(n int) int {
	if s == nil || s.sum == nil {
		return n
	}
	return s.sum.dot
}

// wholeBlocks reports whether a tile has one of what is added up, and all of its k.
func (b *blockSum) wholeBlocks(p *symtile.Program, sizes func(int) []int64) bool {
	op := p.Ops[b.dot]
	for d := range op.Instr.Attrs.LHSBatch {
		if sizes(b.dot)[d] != 1 {
			return false
		}
	}
	for _, d := range op.Instr.Attrs.LHSContract {
		a := op.Args[0]
		extent := p.Ops[a].Instr.Shape.Dims[d]
		if sizes(a)[d] != extent {
			return false
		}
	}
	return true
}

// loopDims are the dimensions of all loops.
func loopDims(p *symtile.Program) (dims []int) {
	for _, loop := range topLoops(p.Body) {
		dims = append(dims, loop.Dims...)
	}
	return dims
}

// scaleTypes are the types in which operands may be scaled: those with the exponents of the
// sums, so that no product overflows that the sums have.
var scaleTypes = map[hlo.DType]bool{hlo.F32: true}

// collect follows op n to the parameter, and reports whether it is one of 8-bit floats that
// is only converted, reshaped and multiplied on the way.
func (o *scaledOperand) collect(
	p *symtile.Program, n int, through []int,
) bool {
	op := p.Ops[n]
	d := op.Instr.Shape.DType
	if op.Code == hlo.OpParameter {
		o.raw = n
		return isF8(d) && rawTypes[d]
	}
	o.passed = append(o.passed, n)
	switch {
	case op.Code == hlo.OpReshape:
		return o.collect(
			p, op.Args[0], append(slices.Clone(through), n),
		)
	case op.Code == hlo.OpConvert && scaleTypes[d]:
		return o.collect(p, op.Args[0], through)
	case op.Code == hlo.OpMultiply && scaleTypes[d]:
		for k, f := range op.Args {
			if repeated(p, f, len(op.Tile) == 0) {
				o.factors = append(
					o.factors, factor{op: f, through: through},
				)
				return o.collect(
					p, op.Args[1-k], through,
				)
			}
		}
	}
	return false
}

// divides reports whether all factors of dot n are the same along k in a tile, by the sizes
// of the tiles of ops.
func (s *scaledProduct) divides(
	p *symtile.Program, n int, sizes func(int) []int64,
) bool {
	if s.sum != nil && !s.sum.wholeBlocks(p, sizes) {
		return false
	}
	a := p.Ops[n].Instr.Attrs
	for side, dims := range [][]int64{a.LHSContract, a.RHSContract} {
		for _, f := range s.operands[side].factors {
			if f.of == nil && !f.sameAlong(p, dims, sizes) {
				return false
			}
		}
	}
	return true
}

// sameAlong reports whether the elements of a factor in a tile are the same along dimensions
// of the operand.
func (f factor) sameAlong(
	p *symtile.Program, dims []int64, sizes func(int) []int64,
) bool {
	for _, r := range f.through {
		dims = refoldedDims(
			dims, sizes(r), sizes(p.Ops[r].Args[0]),
		)
	}
	return sameAlong(p, f.op, dims, sizes)
}

// sameAlong reports whether the elements of the tile of op n are the same along dimensions.
func sameAlong(
	p *symtile.Program, n int, dims []int64, sizes func(int) []int64,
) bool {
	op, own := p.Ops[n], sizes(n)
	dims = slices.DeleteFunc(slices.Clone(dims), func(d int64) bool {
		return len(own) == 0 || own[d] == 1
	})
	if len(dims) == 0 {
		return true
	}
	// The dimensions of arguments that the elements can differ along.
	within := dims
	switch {
	case op.Code == hlo.OpBroadcast:
		within = nil
		for k, d := range op.Instr.Attrs.Dimensions {
			if slices.Contains(dims, d) {
				within = append(within, int64(k))
			}
		}
	case op.Code == hlo.OpReshape:
		within = refoldedDims(
			dims, own, sizes(op.Args[0]),
		)
	case op.Code != hlo.OpSlice &&
		!op.Code.Elementwise():
		return false
	}
	return len(op.Args) > 0 &&
		!slices.ContainsFunc(op.Args, func(a int) bool {
			return !sameAlong(p, a, within, sizes)
		})
}

// refoldedDims are the dimensions of an array of sizes to that dimensions of one of sizes
// from with the same elements depend on: those of the groups of refold.
func refoldedDims(
	dims, from, to []int64,
) (all []int64) {
	for i, j := 0, 0; i < len(from) ||
		j < len(to); {
		i0, j0 := i, j
		i, j = refoldGroup(from, to, i, j)
		for _, d := range dims {
			if int(d) < i0 || int(d) >= i {
				continue
			}
			for k := j0; k < j; k++ {
				all = append(all, int64(k))
			}
			break
		}
	}
	return all
}

// scaledProductOf is op n as a product with its scales apart, or without scales. It is nil for
// reductions that are no such product.
func (e *emitter) scaledProductOf(n int) (*product, *scaledProduct) {
	s := blockSumOf(e.p, n)
	if s == nil && e.p.Ops[n].Code == hlo.OpReduce {
		return nil, nil
	}
	if s == nil {
		return e.withoutScales(
			e.newProduct(n), scaledProductOf(e.p, n),
		)
	}
	p := e.newProduct(s.sum.dot)
	p, s = e.withoutScales(p, s)
	if s == nil {
		return nil, nil
	}
	p.blocks = p.op.Tile.Sizes()
	p.kept = s.sum.kept
	p.n = n
	p.op = e.p.Ops[n]
	return p, s
}

// withoutScales is p of the parameters behind its operands, with the scales s; p and nil where
// there are none, or warpgroups cannot apply them.
func (e *emitter) withoutScales(
	p *product, s *scaledProduct,
) (*product, *scaledProduct) {
	if s == nil ||
		!s.divides(e.p, p.n, e.tileSizes) {
		return p, nil
	}
	raw := *p
	// Elements have the same places in the parameters as in the operands, since only
	// reshapes that cancel each other are between them.
	raw.lhs.arg = s.operands[0].raw
	raw.rhs.arg = s.operands[1].raw
	for _, o := range []operandTile{raw.lhs, raw.rhs} {
		if !slices.Equal(e.tileSizes(o.arg), o.sizes) {
			return p, nil
		}
	}
	return &raw, s
}

// tileSizes are the sizes of the tile of op n.
func (e *emitter) tileSizes(n int) []int64 {
	op := e.p.Ops[n]
	return op.Tile.Sizes()
}

// promotes reports whether the sums of each iteration are added to others: where scales
// differ between iterations, or the knob says so.
func (t *groupDot) promotes() bool {
	return t.e.knobs.promote > 0 ||
		t.scaled != nil &&
			t.scaled.varies
}

// factors are the products of the factors of one side that differ between iterations, or of
// the others: of this thread's rows (side 0; two of each 64) or columns (two of each eight).
// They are nil where there are none.
func (t *groupDot) factors(
	side int, varies bool,
) (all []operand) {
	if t.scaled == nil {
		return nil
	}
	e := t.e
	for _, f := range t.scaled.operands[side].factors {
		if f.varies != varies {
			continue
		}
		// Several scales of an operand are one.
		vals := t.factor(side, f)
		for k := range all {
			vals[k] = e.asm.get(
				kindF32, "mul.rn.f32", all[k], vals[k],
			)
		}
		all = vals
	}
	return all
}

// factor has the elements of a factor, in f32.
func (t *groupDot) factor(
	side int, f factor,
) (all []operand) {
	e := t.e
	d := e.typeOf(f.op, 0)
	for _, points := range t.lines(side, f) {
		for _, r := range f.through {
			points = e.reshaped(
				e.p.Ops[r], points,
			)
		}
		for _, v := range e.elements(f.op, points) {
			all = append(
				all, e.convert(hlo.F32, d, v),
			)
		}
	}
	return all
}

// lines are elements of an operand at the first k of a tile, of this thread's rows or
// columns, in pairs, or those of a factor of results.
func (t *groupDot) lines(
	side int, f factor,
) (all [][]point) {
	e := t.e
	zero := e.ring.Const(0)
	tile, extent := t.lhs, t.m
	pairs := t.rows / groupRows
	if side == 1 {
		tile, extent = t.rhs, t.c
		pairs = t.cols / mmaN
	}
	for k := range pairs {
		var points []point
		for q := range int64(2) {
			at := t.row(k, q)
			if side == 1 {
				at = t.column(k, q)
			}
			place := tile.index(zero, at, zero)
			switch {
			case f.of != nil && side == 0:
				place = t.place(t.blocks, zero, at, zero)
			case f.of != nil:
				place = t.place(t.blocks, zero, zero, at)
			}
			if f.of != nil {
				place = pick(place, f.of)
			}
			points = append(points, point{
				place,
				conditions(nil).and(
					at.Neg().AddConst(extent - 1),
				),
			})
		}
		all = append(all, points)
	}
	return all
}

// A scales value has factors of this thread's rows and columns; nil are 1.
type scales struct{ rows, cols []operand }

// of is the factor of sum j of 64 rows i; "" where there is none.
func (s scales) of(
	a *asm, i, j int,
) operand {
	var both []operand
	if s.rows != nil {
		both = append(
			both, s.rows[2*i+j/2%2],
		)
	}
	if s.cols != nil {
		both = append(
			both, s.cols[j/4*2+j%2],
		)
	}
	switch len(both) {
	case 0:
		return ""
	case 1:
		return both[0]
	}
	return a.get(
		kindF32, "mul.rn.f32", both[0], both[1],
	)
}

// loadScales loads the scales of an iteration, which arrive while its products run.
// Counter is the number of the iteration.
func (t *groupDot) loadScales(r *ring, counter operand) {
	if t.scaled == nil || !t.scaled.varies {
		return
	}
	e := t.e
	e.asm.enter()
	defer e.asm.leave()
	defer e.leaveLoop(e.around, e.ids)
	e.enterLoop(
		e.atIteration(r.part, counter),
		coalesce.LoopRange{Hi: r.part.count - 1},
	)
	defer e.withLayout(&coalesce.ThreadLayout{})()
	t.current = scales{
		rows: t.factors(0, true),
		cols: t.factors(1, true),
	}
}

// scaleTotals multiplies the sums of all iterations by the scales that are the same in all.
func (t *groupDot) scaleTotals() {
	defer t.e.withLayout(&coalesce.ThreadLayout{})()
	s := scales{
		rows: t.factors(0, false),
		cols: t.factors(1, false),
	}
	for i := range t.accs {
		for j, v := range t.accs[i] {
			if f := s.of(t.e.asm, i, j); f != "" {
				t.accs[i][j] = t.e.asm.get(
					kindF32, "mul.rn.f32", v, f,
				)
			}
		}
	}
}

// multiplied are the ops whose elements dot n multiplies where s are its scales.
func multiplied(
	p *symtile.Program, n int, s *scaledProduct,
) []int {
	if s == nil {
		return p.Ops[n].Args
	}
	return []int{
		s.operands[0].raw,
		s.operands[1].raw,
	}
}
