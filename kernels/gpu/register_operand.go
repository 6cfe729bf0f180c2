package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/mask"
)

// Operands that are computed on the way to wgmma: tensor copies bring what they are
// computed from to a slot as it is, warps load their fragments from there, compute, and
// pass the results to wgmma in registers (PTX ISA, wgmma.mma_async with A in registers;
// CUTLASS, sm90_mma_multistage_gmma_rs_warpspecialized). Only the left operand can be in
// registers, so that C is computed transposed where the right one is computed.

// A computedOperand says which operand of a product is computed element by element, and
// from what, as far as the program shows it.
type computedOperand struct {
	// Turned is set for the right operand, arg is its op.
	turned bool
	arg    int
	// Raw are the parameters with an element for each of the operand, in order, or their
	// broadcasts along dimensions of which a tile has one element.
	raw []int
	// Beside are the ops with fewer elements that are repeated, such as scales of rows.
	beside []int
	// Steps is the elementwise operations between them and the operand.
	steps int
	// Groups are those of rows, of which the operand has one where another has 0.
	groups *mask.Groups
	// Plain is set where the operand is a parameter as it is, whose rows are along the free
	// dimension (see plainOperandOf), and both where those of the other operand are, too.
	plain, both bool
}

// inRegisters is the operand of dot n that warpgroups read from registers; nil where both are
// in shared memory. S are the scales of the product, if they are apart from it.
func inRegisters(p *symtile.Program, n int, s *scaledProduct) *computedOperand {
	if c := computedOperandOf(p, n); c != nil {
		return c
	}
	return plainOperandOf(p, n, multiplied(p, n, s))
}

// plainOperandOf is the one of two parameters that are multiplied whose rows are along the
// free dimension, of 8 or 32 bits, which wgmma reads from shared memory only where rows are
// along k. Registers can have it in any order. Where it could be either one it is the left one of
// 8-bit floats, whose products mma.sync emulates; those of other types are faster by mma.sync than
// by copies of the right one. It is nil for other types and layouts.
func plainOperandOf(p *symtile.Program, n int, args []int) *computedOperand {
	a := p.Ops[n].Instr.Attrs
	var along [2]bool
	for side, dims := range [][]int64{a.LHSContract, a.RHSContract} {
		op := p.Ops[args[side]]
		shape := op.Instr.Shape
		if op.Code != hlo.OpParameter ||
			len(shape.Dims) == 0 ||
			readsTransposed(shape.DType) {
			return nil
		}
		order := majorToMinor(shape)
		fastest := int64(order[len(order)-1])
		along[side] = !slices.Contains(dims, fastest)
	}
	first := p.Ops[args[0]].Instr.Shape
	both := along[0] && along[1]
	if !along[0] && !along[1] ||
		both && !isF8(first.DType) {
		return nil
	}
	c := &computedOperand{
		turned: !along[0],
		arg:    args[0],
		plain:  true,
		both:   both,
	}
	if c.turned {
		c.arg = args[1]
	}
	c.raw = []int{c.arg}
	return c
}

// maxRaw bounds the parameters that are copied for an operand.
const maxRaw = 2

// rawTypes are the elements that fragments of operands are computed from.
var rawTypes = map[hlo.DType]bool{
	hlo.F32: true, hlo.S32: true,
	hlo.U32: true,
	hlo.F16: true, hlo.BF16: true,
	hlo.S8: true, hlo.U8: true,
	// A byte each in memory.
	hlo.S4: true, hlo.U4: true,
	// Converted by an instruction of their own.
	hlo.F8E4M3FN: true, hlo.F8E5M2: true,
}

// computedOperandOf is the computed operand of dot n; nil where both operands are
// parameters, or neither is, or one is not computed in a way that fragments can be.
func computedOperandOf(p *symtile.Program, n int) *computedOperand {
	args := p.Ops[n].Args
	whole := func(a int) bool {
		return p.Ops[a].Code == hlo.OpParameter
	}
	left, right := whole(args[0]), whole(args[1])
	if left == right {
		return nil
	}
	c := &computedOperand{turned: left, arg: args[0]}
	if left {
		c.arg = args[1]
	}
	if g, ok := mask.GroupsOf(p, n); ok && g.Op == c.arg {
		c.groups = &g
	}
	if !c.collect(p, c.arg) ||
		len(c.raw) == 0 || len(c.raw) > maxRaw {
		return nil
	}
	return c
}

// collect adds what op n is computed from, and reports whether fragments can be.
func (c *computedOperand) collect(p *symtile.Program, n int) bool {
	op := p.Ops[n]
	switch {
	case op.Code == hlo.OpParameter && len(op.Tile) > 0,
		c.grouped(p, n):
		if !slices.Contains(c.raw, n) {
			c.raw = append(c.raw, n)
		}
		return rawTypes[op.Instr.Shape.DType]
	// What is not element by element has to be repeated, so that little of it is read
	// outside of the slots.
	case !op.Code.Elementwise():
		if !slices.Contains(c.beside, n) {
			c.beside = append(c.beside, n)
		}
		return repeated(p, n, len(op.Tile) == 0)
	}
	c.steps++
	return !slices.ContainsFunc(op.Args, func(a int) bool {
		return !c.collect(p, a)
	})
}

// grouped reports whether op n has, for each group of rows, a whole parameter.
func (c *computedOperand) grouped(p *symtile.Program, n int) bool {
	op := p.Ops[n]
	if op.Code != hlo.OpBroadcast || c.groups == nil {
		return false
	}
	dims := op.Instr.Attrs.Dimensions
	return stored(p, n) != n &&
		p.Ops[stored(p, n)].Code == hlo.OpParameter &&
		len(dims) == len(op.Tile)-1 &&
		!slices.Contains(dims, int64(c.groups.Dim))
}

// stored is the parameter behind one of raw.
func stored(p *symtile.Program, n int) int {
	if p.Ops[n].Code == hlo.OpBroadcast {
		return p.Ops[n].Args[0]
	}
	return n
}

// repeated reports whether op n has each element of the parameters that it is computed
// from several times, and is computed without a loop. Within is set inside a broadcast.
func repeated(p *symtile.Program, n int, within bool) bool {
	op := p.Ops[n]
	switch op.Code {
	case hlo.OpParameter:
		return within
	case hlo.OpBroadcast:
		within = true
	case hlo.OpConstant, hlo.OpIota, hlo.OpReshape, hlo.OpTranspose,
		hlo.OpSlice, hlo.OpConcatenate:
	default:
		if !op.Code.Elementwise() {
			return false
		}
	}
	return !slices.ContainsFunc(op.Args, func(a int) bool {
		return !repeated(p, a, within)
	})
}

// dependsOnTile reports whether what op n is computed from depends on the tile along one
// of the dimensions.
func dependsOnTile(p *symtile.Program, n int, dims []int) bool {
	if len(p.Ops[n].Args) == 0 {
		return slices.ContainsFunc(dims, func(d int) bool {
			return dependsOn(
				p.Ops[n], p.Space.Dims[d].Tid,
			)
		})
	}
	return slices.ContainsFunc(p.Ops[n].Args, func(a int) bool {
		return dependsOnTile(p, a, dims)
	})
}

// turn is the product with its operands exchanged: Cᵀ = Bᵀ·Aᵀ.
func (p *product) turn() *product {
	t := *p
	t.lhs, t.rhs = p.rhs, p.lhs
	t.m, t.c = p.c, p.m
	t.turned = true
	return &t
}

// A registerOperand is the left operand of a product by warpgroups, computed in
// registers from what is in a slot. A thread has rows l/4 and l/4 + 8 of the 16 of its
// warp, l its number in the warp, and of 16 k those numbered 2·(l mod 4) and 8 + 2·(l mod
// 4), and the ones after them, as for mma.sync.
type registerOperand struct {
	t    *groupDot
	tile operandTile
	*computedOperand
	boxes []*boxTile
	// Paired is set where ldmatrix loads pairs of bytes along the free dimension: rows
	// l/4 and l/4 + 8 of a fragment are rows 2·(l/4) and 2·(l/4) + 1 of the tile then.
	paired bool
	// Loaded are the fragments of an iteration that were loaded together with others.
	loaded map[wordKey][]operand
	// Selectors are those of the bytes of both rows of a thread, where it is plain.
	selectors [2]operand
}

// A wordKey is a box, 64 rows of a warpgroup and the k of a fragment.
type wordKey struct {
	box *boxTile
	i   int
	k   int64
}

// registerOperand is the left operand of t; nil where tensor copies cannot bring what it
// is computed from.
func (t *groupDot) registerOperand(c *computedOperand) *registerOperand {
	e := t.e
	o := &registerOperand{t: t, tile: t.lhs, computedOperand: c}
	if !c.plain &&
		(t.from.Size() != 2 || t.k%t.mma.k != 0) {
		return nil
	}
	for _, n := range c.raw {
		raw, ok := o.rawTile(n)
		if !ok {
			return nil
		}
		b := e.boxTile(
			"A", raw, t.rows*t.gm, t.rows, t.depth,
		)
		if b == nil {
			return nil
		}
		// Tensor copies round elements that wgmma multiplies as they are.
		b.raw, b.stands = !c.plain, n
		o.boxes = append(o.boxes, b)
		o.paired = o.paired || b.byK && e.typeOf(n, 0).Size() == 1
	}
	return o
}

// rawTile is the tile of the parameter behind one of raw, with the dimensions that it has of
// the operand's. It reports whether it has as many elements.
func (o *registerOperand) rawTile(n int) (operandTile, bool) {
	p, raw := o.t.e.p, o.tile
	raw.arg = stored(p, n)
	if !slices.Equal(p.Ops[n].Tile.Sizes(), raw.sizes) {
		return raw, false
	}
	if raw.arg == n {
		return raw, true
	}
	// The parameter has the operand's dimensions but for that of the groups.
	dims := p.Ops[n].Instr.Attrs.Dimensions
	own := func(all []int) (kept []int) {
		for _, d := range all {
			if k := slices.Index(dims, int64(d)); k >= 0 {
				kept = append(kept, k)
			}
		}
		return kept
	}
	raw.sizes = p.Ops[raw.arg].Tile.Sizes()
	raw.batch = own(o.tile.batch)
	raw.free = own(o.tile.free)
	raw.contract = own(o.tile.contract)
	return raw, o.tile.sizes[o.groups.Dim] == 1
}

// fragmentDepth is the k of a fragment of 16-bit elements.
const fragmentDepth = 16

// fragmentsAlong are the k at which the fragments of an iteration begin.
func (t *groupDot) fragmentsAlong() (all []int64) {
	for k := int64(0); k < t.depth; k += t.mma.k {
		all = append(all, k)
	}
	return all
}

// multiply emits an iteration: while the products of one fragment along k run, the next
// is computed. Registers of a fragment are written again when its products are complete.
//
// Counter is the number of the iteration, which plain operands do not need.
func (o *registerOperand) multiply(
	r *ring, s slot, b descriptor, counter operand,
) {
	t, e := o.t, o.t.e
	a := e.asm
	a.enter()
	defer a.leave()
	if !o.plain {
		defer e.leaveLoop(e.around, e.ids)
		e.enterLoop(
			e.atIteration(r.part, counter),
			coalesce.LoopRange{Hi: r.part.count - 1},
		)
	}
	defer o.withoutStaging()()
	// What memory has to supply is on its way while the slot is waited for.
	o.loadBeside(r, true)
	r.wait(cursor{"", s.parity}, s.full, "FULL")
	tiles := r.memoryOf(s)
	if t.right != nil {
		t.right.copy(tiles)
		s.offset, s.bytes = t.right.offset, 0
	}
	o.loaded = map[wordKey][]operand{}
	right := t.b
	if t.right != nil {
		right = t.right.tile
	}
	zero := e.ring.Const(0)
	all := t.fragmentsAlong()
	for some := range slices.Chunk(all, o.together(r)) {
		left := map[int64][][]operand{}
		for _, k := range some {
			for i := range t.accs {
				left[k] = append(left[k], o.fragment(tiles, i, k))
			}
		}
		// The registers of the fragments were written by other instructions.
		a.do("wgmma.fence.sync.aligned")
		for _, k := range some {
			at := right.offset(zero, k, t.from.Size())
			t.issue(
				left[k],
				b.moved(a, s.offset, s.bytes+constantOf(at)), k,
			)
		}
		a.do("wgmma.commit_group.sync.aligned")
		// All but the latest products are complete: the registers of the next fragments
		// and, after the first ones, the slot of the iteration before are free.
		running := int64(1)
		if some[len(some)-1] == all[len(all)-1] {
			running = r.lag
		}
		a.do("wgmma.wait_group.sync.aligned", running)
	}
	if t.right != nil {
		t.right.advance()
	}
}

// besideFragments is what ptxas 12.9 and 13.5 give a thread beside sums and fragments.
const besideFragments = 22

// together is how many fragments along k are multiplied by one group of products: four or two,
// where a thread has registers for those of two groups.
func (o *registerOperand) together(r *ring) int {
	t := o.t
	if !o.plain {
		return 1
	}
	given := t.e.spec.RegistersPerThread(int(r.threads()))
	if r.hasProducer {
		given = max(given, r.registers())
	}
	given -= int(t.sums()) + besideFragments
	for _, n := range []int{4, 2} {
		two := t.depth >= 2*int64(n)*t.mma.k || r.alternates()
		// Four registers of each fragment, and those that the next one is made of.
		if two && len(t.accs)*(2*n*4+4) <= given {
			return n
		}
	}
	return 1
}

// alternates reports whether an iteration may be one group of products: while they run, the
// fragments of the next one are loaded to other registers, which is so where iterations are
// unrolled. Of odd numbers of iterations ptxas 12.9 and 13.5 serialise the products (C7513).
func (r *ring) alternates() bool {
	return r.unrolled() && r.slots%2 == 0 &&
		r.part.count%2 == 0
}

// issue begins the products of fragments in registers at k, one for each 64 rows.
func (t *groupDot) issue(left [][]operand, right operand, k int64) {
	opcode := t.opcode()
	for i, c := range t.accs {
		t.e.asm.do(
			opcode,
			append([]any{
				c, left[i], right, t.adds(k),
			}, t.flags()...)...,
		)
	}
}

// withoutStaging keeps loads that are not coalesced from being staged until the returned
// function is called: few elements are loaded, or loaded once for a tile.
func (o *registerOperand) withoutStaging() (end func()) {
	return o.t.e.withLayout(&coalesce.ThreadLayout{})
}

// prepare emits, before the loop, what is the same in all iterations: elements that are
// repeated along k, and the positions of fragments.
func (o *registerOperand) prepare(r *ring) {
	defer o.withoutStaging()()
	if o.plain && !o.words() {
		o.selectBytes()
	}
	if o.t.right != nil {
		o.t.right.prepare(r)
	}
	o.loadBeside(r, false)
	for _, b := range o.boxes {
		for i := range o.t.accs {
			for _, k := range o.t.fragmentsAlong() {
				for _, at := range o.places(b, i, k) {
					_, c := at.Terms()
					o.t.e.num(at.AddConst(-c))
				}
			}
		}
	}
}

// loadBeside computes the elements of ops that are repeated: those that differ between
// iterations, or the others.
func (o *registerOperand) loadBeside(r *ring, differ bool) {
	t := o.t
	for _, n := range o.beside {
		varies := dependsOnTile(t.e.p, n, r.part.dims)
		if varies != differ {
			continue
		}
		for i := range t.accs {
			for _, k := range t.fragmentsAlong() {
				t.e.elements(
					n, o.points(i, k),
				)
			}
		}
	}
}

// points are the elements of this thread in a fragment, two of each register.
func (o *registerOperand) points(i int, k int64) []point {
	e := o.t.e
	zero := e.ring.Const(0)
	var all []point
	for part := range int64(4) {
		free := o.t.row(int64(i), part%2)
		own := conditions(nil).and(
			free.Neg().AddConst(o.t.m - 1),
		)
		for q := range int64(2) {
			along := o.along(k, part, q)
			all = append(all, point{
				o.tile.index(zero, free, along),
				own,
			})
		}
	}
	return all
}

// along is k of an element of this thread: number q of a register of a fragment.
func (o *registerOperand) along(k, register, q int64) index.Expr {
	lane := o.t.e.thread.Mod(device.WarpThreads)
	k += register/2*8 + q
	return lane.Mod(4).Scale(2).AddConst(k)
}

// fragment is the four registers of 64 rows and 16 k.
func (o *registerOperand) fragment(slot memory, i int, k int64) []operand {
	if o.plain {
		return o.asItIs(slot, i, k)
	}
	e := o.t.e
	points := o.points(i, k)
	if words := o.selected(slot, i, k, points); words != nil {
		return words
	}
	for _, b := range o.boxes {
		for j, v := range o.load(b, slot, i, k) {
			at := point{points[j].at, nil}
			key := e.keyOf(b.stands, 0, at)
			// Known without conditions: what is outside is computed from zeros.
			e.asm.scope.values[key] = v
		}
	}
	vals := e.operandElements(o.tile, points)
	return e.pack(o.t.from, vals)
}

// selected is the fragment of an operand that is its box for the rows of a group, and 0 for
// others: words are selected as they are loaded, for both elements of one have the same row.
// It is nil for other operands.
func (o *registerOperand) selected(slot memory, i int, k int64, points []point) (words []operand) {
	e, b := o.t.e, o.boxes[0]
	op := e.p.Ops[o.tile.arg]
	switch {
	case o.groups == nil || o.groups.Op != o.tile.arg,
		len(o.boxes) > 1 || op.Args[1] != b.stands,
		e.typeOf(b.op, 0) != o.t.from || !o.matrices(b):
		return nil
	}
	// Points have conditions, so that the numbers of groups are read for rows of the tile only.
	own := e.elements(op.Args[0], points)
	for part := range 4 {
		if own[2*part] != own[2*part+1] {
			return nil
		}
	}
	// What is beyond the tile, or k, is whatever was in memory before, and becomes 0, too: the
	// sums of other rows would not notice, but those of k would.
	for part, word := range o.wordsOf(b, slot.plus(b.at), i, k) {
		p := points[2*part]
		valid := p.when.all(e.contracted(o.tile, p.at))
		words = append(words, e.choose(
			hlo.U32, e.asm.and(own[2*part], e.guard(valid)), word, zero(kindB32),
		))
	}
	return words
}

// words reports whether fragments are words as they are in the slot: elements of 32 bits.
func (o *registerOperand) words() bool {
	return o.plain && o.t.from.Size() == 4
}

// asItIs is the fragment of an operand whose elements are multiplied as they are.
//
// Of bytes, ldmatrix gives a thread two rows of k, each with the pair of rows of the operand
// that the thread has, so that two matrices make the four k of a register for both (PTX ISA,
// wgmma.mma_async, figure of matrix A of 8 bits).
func (o *registerOperand) asItIs(slot memory, i int, k int64) (all []operand) {
	e, b := o.t.e, o.boxes[0]
	in := slot.plus(b.at)
	if !o.words() {
		words := o.wordsOf(b, in, i, k)
		for half := range 2 {
			for row := range 2 {
				pair := words[2*half:]
				all = append(all, e.asm.get(
					kindB32, "prmt.b32",
					pair[0], pair[1], o.selectors[row],
				))
			}
		}
		return all
	}
	// Two rows of one k are next to each other.
	for _, at := range o.places(b, i, k) {
		all = append(all, e.read(
			shared, kindB32, "32", e.at(in, at, 4), 2, yes,
		)...)
	}
	return all
}

// select makes the selectors of the bytes of both rows of a thread. Lanes 2 and 3 of each four
// have the later k in the first matrix (see bytesRow).
func (o *registerOperand) selectBytes() {
	e := o.t.e
	a := e.asm
	later := a.get(
		kindPred, "setp.ge.s32", e.num(e.thread.Mod(4)), 2,
	)
	for row, both := range [2][2]int{{0x6420, 0x2064}, {0x7531, 0x3175}} {
		o.selectors[row] = a.get(kindB32, "selp.b32", both[1], both[0], later)
	}
}

// bytesRow is the k, from that of a fragment on, whose row in the slot a lane supplies to
// ldmatrix: row r of matrix q. Lane t of each four gets rows 2t and 2t+1 of a matrix, and has
// k 4t … 4t+3 of the first half of a fragment (matrices 0 and 1) and of the second. Rows of
// the eight that are read at once are in different banks: the last digits of their k, of base
// 8, are different, for which the lanes 2 and 3 have the later k first.
func (e *emitter) bytesRow(row, matrix index.Expr) index.Expr {
	t := row.Div(2)
	later := t.Div(2)
	pair := e.xor(matrix.Mod(2), later, 2)
	half := matrix.Div(2).Scale(16)
	k := half.Add(t.Scale(4))
	k = k.Add(pair.Scale(2))
	return k.Add(row.Mod(2))
}

// spreadRow is the first of the two rows of a thread, of 64, where they are loaded as words
// next to each other: of a warp and the number of its four lanes. The lanes that load at once
// have four k, whose rows have units of 16 bytes permuted by numbers below 4; two such units
// that are four apart stay in different banks.
func spreadRow(warp, row index.Expr) index.Expr {
	m := row.Mod(2).Scale(2)
	m = m.Add(row.Div(4).Scale(4))
	m = m.Add(warp.Mod(2).Scale(8))
	apart := row.Div(2).Mod(2)
	m = m.Add(apart.Scale(16))
	return m.Add(warp.Div(2).Scale(32))
}

// A turnedTile is the right operand of a product of bytes both of whose operands have their rows
// along the free dimensions: the warps copy it, in each iteration, from the slot to a
// tile with rows along k, which wgmma reads.
type turnedTile struct {
	t   *groupDot
	raw *boxTile
	// Tile is what is copied to, of which there are turnedTiles, one after the other. Its place
	// is from the first slot on.
	tile *boxTile
	// Offset is that of the current tile, in units of 16 bytes.
	offset    operand
	selectors [2]operand
	// Units are what each warp copies of a tile.
	units int64
}

// turnedTiles is the number of tiles that are copied to: the products of two iterations may
// run in other warpgroups while the next is copied, since a barrier follows each copy and each
// iteration waits for the products of the one before it.
const turnedTiles = 3

// turnedRight is the turned tile of the right operand; nil where warps cannot copy it evenly.
func (t *groupDot) turnedRight() *turnedTile {
	e := t.e
	if t.b == nil || e.knobs.mathGroups() > 1 {
		return nil
	}
	u := &turnedTile{t: t, raw: t.b}
	u.tile = &boxTile{
		name:  "B along k",
		op:    t.b.op,
		free:  t.b.free,
		depth: t.b.depth,
		bytes: t.b.bytes,
		parts: 1,
		inner: maxRowBytes,
	}
	for u.tile.depth%u.tile.inner != 0 {
		u.tile.inner /= 2
	}
	across := u.tile.free / unitRows
	units := across * (u.tile.depth / mmaBytes)
	warps := e.threads / device.WarpThreads
	if units%warps != 0 {
		return nil
	}
	u.units = units / warps
	return u
}

// unitRows is the rows of what a warp copies at once, of mmaBytes each.
const unitRows = 16

// allocate reserves the tiles, whose places are from the first slot of the ring on.
func (u *turnedTile) allocate(r *ring) {
	e := u.t.e
	e.shared = wholeAtoms(e.shared)
	bytes := wholeAtoms(u.tile.bytes)
	at := e.allocateShared(turnedTiles * bytes)
	u.tile.at = at - r.at
}

// begin starts with the first tile. Tiles follow each other over all iterations of a block, also
// of different tiles of the result.
func (u *turnedTile) begin() {
	u.offset = u.t.e.asm.fresh(kindB32)
	u.t.e.asm.do("mov.b32", u.offset, 0)
}

// prepare emits, before the loop, what is the same in all iterations.
func (u *turnedTile) prepare(r *ring) {
	e := u.t.e
	a := e.asm
	// Of eight rows of a matrix four are even ones and four odd, so that the rows that are
	// stored at once are in different banks.
	lane := e.thread.Mod(device.WarpThreads)
	odd := a.get(
		kindPred, "setp.ge.s32",
		e.num(lane), device.WarpThreads/2,
	)
	both := u.t.left.selectors
	for k := range u.selectors {
		u.selectors[k] = a.get(
			kindB32, "selp.b32",
			both[1-k], both[k], odd,
		)
	}
	for n := range u.units {
		for _, place := range []func(int64) index.Expr{
			u.source, u.target,
		} {
			at := place(n)
			_, c := at.Terms()
			e.num(at.AddConst(-c))
		}
	}
}

// corner is the first row and the first k of unit n of this warp.
func (u *turnedTile) corner(n int64) (free, k index.Expr) {
	e := u.t.e
	warps := e.threads / device.WarpThreads
	warp := e.thread.Div(device.WarpThreads)
	unit := warp.AddConst(n * warps)
	across := u.tile.free / unitRows
	free = unit.Mod(across).Scale(unitRows)
	k = unit.Div(across).Scale(mmaBytes)
	return free, k
}

// source is the position in the slot, in elements, of the row of a matrix that this lane supplies
// to ldmatrix of a unit.
func (u *turnedTile) source(n int64) index.Expr {
	e := u.t.e
	free, k := u.corner(n)
	lane := e.thread.Mod(device.WarpThreads)
	row := e.bytesRow(lane.Mod(8), lane.Div(8))
	return u.raw.position(e, free, k.Add(row))
}

// target is the position of the row of a matrix that this lane supplies to stmatrix: of the two
// rows of a thread each matrix has one, and matrices 2 and 3 have the second half of k.
func (u *turnedTile) target(n int64) index.Expr {
	e := u.t.e
	free, k := u.corner(n)
	lane := e.thread.Mod(device.WarpThreads)
	row := lane.Mod(8)
	matrix := lane.Div(8)
	second := matrix.Mod(2)
	odd := e.xor(row.Div(4), second, 2)
	free = free.Add(row.Scale(2)).Add(odd)
	half := matrix.Div(2).Scale(16)
	return u.tile.position(e, free, k.Add(half))
}

// copy copies the tile of an iteration from the slot, and makes it known to wgmma.
func (u *turnedTile) copy(slot memory) {
	e := u.t.e
	a := e.asm
	from := slot.plus(u.raw.at)
	current := a.get(
		kindB32, "mad.lo.s32",
		u.offset, matrixRow, u.t.data,
	)
	to := memory{shared, current, u.tile.at}
	for n := range u.units {
		words := a.fresher(kindB32, 4)
		a.do(
			"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
			words, e.at(from, u.source(n), 1),
		)
		var turned []operand
		for q := range 4 {
			pair := words[q/2*2:]
			turned = append(turned, a.get(
				kindB32, "prmt.b32",
				pair[0], pair[1], u.selectors[q%2],
			))
		}
		a.do(
			"stmatrix.sync.aligned.m8n8.x4.shared.b16",
			e.at(to, u.target(n), 1), turned,
		)
	}
	a.do("fence.proxy.async.shared::cta")
	e.barrier()
}

// advance moves on to the next tile.
func (u *turnedTile) advance() {
	a := u.t.e.asm
	bytes := wholeAtoms(u.tile.bytes)
	last := a.fresh(kindPred)
	step := bytes / matrixRow
	a.do("add.s32", u.offset, u.offset, step)
	a.do(
		"setp.ge.s32",
		last, u.offset, turnedTiles*step,
	)
	a.when(last, "mov.b32", u.offset, 0)
}

// matrices reports whether ldmatrix loads fragments of a box: elements of 16 bits, which
// it can transpose, and pairs of bytes along the free dimension.
func (o *registerOperand) matrices(b *boxTile) bool {
	size := o.size(b)
	if size == 1 {
		return b.byK
	}
	return size == 2 && !(o.paired && b.byK)
}

// size is the bytes of an element of a box.
func (o *registerOperand) size(b *boxTile) int64 {
	return o.t.e.typeOf(b.op, 0).Size()
}

// load loads the elements of this thread in a fragment, in the order of points.
func (o *registerOperand) load(
	b *boxTile, slot memory, i int, k int64,
) (all []operand) {
	e := o.t.e
	d := e.typeOf(b.op, 0)
	in := slot.plus(b.at)
	if o.matrices(b) {
		return o.fromMatrices(b, in, i, k)
	}
	// Pairs along k are next to each other where rows are along k.
	each := int64(2)
	if b.byK {
		each = 1
	}
	for _, at := range o.places(b, i, k) {
		words := e.readBytes(
			d, e.at(in, at, d.Size()),
			each*d.Size(),
		)
		for q := range int(each) {
			x := e.unpackWords(d, words, q)
			all = append(all, x)
		}
	}
	return all
}

// fromMatrices is load by ldmatrix. A register has two k of a row of the fragment or, of
// bytes, two rows of one k and then of the next.
func (o *registerOperand) fromMatrices(
	b *boxTile, in memory, i int, k int64,
) (all []operand) {
	e := o.t.e
	d := e.typeOf(b.op, 0)
	words := o.wordsOf(b, in, i, k)
	for part := range 4 {
		for q := range 2 {
			var x operand
			if d.Size() == 1 {
				x = e.unpackNarrow(
					d, words[part/2],
					2*q+part%2,
				)
			} else {
				x = e.unpack(
					d, words[part:part+1], q,
				)
			}
			all = append(all, x)
		}
	}
	return all
}

// wordsOf loads the registers of a fragment by ldmatrix. Those of bytes are two, and the
// next fragment's are loaded with them.
func (o *registerOperand) wordsOf(
	b *boxTile, in memory, i int, k int64,
) []operand {
	key := wordKey{b, i, k}
	if o.loaded[key] != nil {
		return o.loaded[key]
	}
	e := o.t.e
	count := o.count(b, k)
	places := o.places(b, i, k)
	to := e.asm.fresher(kindB32, count)
	opcode := fmt.Sprintf("ldmatrix.sync.aligned.m8n8.x%d", count)
	if b.byK {
		opcode += ".trans"
	}
	e.asm.do(
		opcode+".shared.b16", to,
		e.at(in, places[0], o.size(b)),
	)
	if o.plain || o.size(b) == 2 {
		o.loaded[key] = to
		return to
	}
	for j := 0; j < count; j += 2 {
		next := wordKey{b, i, k + int64(j)*8}
		o.loaded[next] = to[j : j+2]
	}
	return to[:2]
}

// count is the matrices that are loaded for the fragment at k.
func (o *registerOperand) count(b *boxTile, k int64) int {
	if !o.plain && o.size(b) == 1 && k+2*fragmentDepth > o.t.depth {
		return 2
	}
	return 4
}

// places are the positions of loads of a fragment, in elements of the box: of the row of
// a matrix that this lane supplies, or of this thread's elements (one of each pair along
// k, where rows are along k).
func (o *registerOperand) places(
	b *boxTile, i int, k int64,
) (all []index.Expr) {
	e := o.t.e
	if o.matrices(b) {
		free, along := o.matrixRow(b, k)
		warp, _ := e.warpAndLane()
		first, _ := o.t.corner()
		first = first.AddConst(int64(i) * groupRows)
		first = first.Add(warp.Scale(mmaM))
		return append(all, b.position(
			e, first.Add(free), along.AddConst(k),
		))
	}
	if o.words() {
		_, lane := e.warpAndLane()
		for half := range int64(2) {
			row := o.t.row(int64(i), 0)
			along := lane.Mod(4).AddConst(k + 4*half)
			all = append(
				all, b.position(e, row, along),
			)
		}
		return all
	}
	for part := range int64(4) {
		row := o.t.row(int64(i), part%2)
		for q := range int64(2) {
			if q == 1 && !b.byK {
				continue
			}
			along := o.along(k, part, q)
			all = append(
				all, b.position(e, row, along),
			)
		}
	}
	return all
}

// matrixRow is the row whose address this lane supplies to ldmatrix, along the free
// dimension from the first row of the warp and along k from that of the fragment. Lanes
// 8·q … 8·q + 7 supply matrix q, which becomes register q of the fragment.
func (o *registerOperand) matrixRow(
	b *boxTile, k int64,
) (free, along index.Expr) {
	e := o.t.e
	lane := e.thread.Mod(device.WarpThreads)
	row := lane.Mod(8)
	matrix := lane.Div(8)
	below := matrix.Mod(2)
	later := matrix.Div(2).Scale(8)
	switch {
	case o.plain:
		return e.ring.Const(0), e.bytesRow(row, matrix)
	case o.size(b) == 1:
		// A matrix has 16 bytes along the free dimension and 8 k.
		if o.count(b, k) == 2 {
			matrix = below
		}
		return e.ring.Const(0), matrix.Scale(8).Add(row)
	case b.byK:
		return below.Scale(8), later.Add(row)
	case o.paired:
		return row.Scale(2).Add(below), later
	}
	return below.Scale(8).Add(row), later
}

// position is the position of element (free, k) in the tile, in elements: its chunk, and
// in it the row, whose units of 16 bytes are permuted.
func (b *boxTile) position(e *emitter, free, k index.Expr) index.Expr {
	row, col := free, k
	if b.byK {
		row, col = k, free
	}
	size := e.typeOf(b.op, 0).Size()
	s := newSwizzle(matrixRow, b.inner*size)
	chunk := col.Div(b.inner).Scale(
		b.rows() * b.inner,
	)
	in := e.swizzled(s, row, col.Mod(b.inner), size)
	return chunk.Add(row.Scale(b.inner)).Add(in)
}

// readBytes loads 1 to 8 bytes of elements of a type from shared memory as words.
func (e *emitter) readBytes(d hlo.DType, at address, bytes int64) []operand {
	k, bits := kindB32, "32"
	if d == hlo.F32 {
		k = kindF32
	}
	if bytes < 4 {
		bits = fmt.Sprint(8 * bytes)
	}
	n := int(max(1, bytes/4))
	words := e.read(
		shared, k, bits, at, n, yes,
	)
	for _, w := range words {
		// They are written once in an iteration.
		e.asm.stable[w] = true
	}
	return words
}

// unpackWords is element k of words.
func (e *emitter) unpackWords(d hlo.DType, words []operand, k int) operand {
	if d.Size() == 1 {
		return e.unpackNarrow(d, words[0], k)
	}
	return e.unpack(d, words, k)
}

// unpackNarrow is byte k of a word as an element of 8 bits; floats have an instruction that
// converts two to f16, which has all their values.
func (e *emitter) unpackNarrow(d hlo.DType, word operand, k int) operand {
	if !d.IsFloat() {
		return e.unpack(d, []operand{word}, k)
	}
	a := e.asm
	if k >= 2 {
		word = a.get(kindB32, "shr.u32", word, 16)
	}
	pair := a.get(
		kindB32, "cvt.rn.f16x2."+tensorTypes[d].name+"x2",
		a.get(kindB16, "cvt.u16.u32", word),
	)
	return e.unpackHalf(
		hlo.F16, pair, k%2 == 1,
	)
}
