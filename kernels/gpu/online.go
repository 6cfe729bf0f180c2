package gpu

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/internal/functions"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/mask"
)

// This file emits the loops of symtile.Program.Online on tensor cores: attention in one
// pass over keys and values (Dao, FlashAttention-2, 2023, algorithm 1).
//
// An iteration computes the scores, a product, of the block's rows and of one tile of
// columns. Each warp has whole rows, so that a row is in the registers of four
// neighbouring lanes: its maximum takes two shuffles, and what the program computes from
// scores (scale, mask, bias, exponential) is computed where they are. Fragments of scores
// have the layout of the left operand of the next product, whose sums stay in registers
// over all iterations. What is legal follows from that: an element that the loop needs of
// the scores and that another thread holds is a reason to reject the plan.

// onlineProgram is a concrete program with its loops joined. Factors that are applied after
// a loop, such as the sum of a row, are not rounded to the type of what they divide.
func onlineProgram(p *symtile.Program) (*symtile.Program, error) {
	q := p.Online()
	if q == p {
		return nil, errors.New("online=1: no loops are apart only because one needs the maximum that another finds")
	}
	old := map[*hlo.Instr]bool{}
	for _, op := range p.Ops {
		old[op.Instr] = true
	}
	for n, op := range q.Ops {
		if op.Code == hlo.OpConvert &&
			!old[op.Instr] &&
			narrowFloat(op.Instr.Shape.DType) {
			wide := *op.Instr
			wide.Shape.DType = hlo.F32
			q.Ops[n].Instr = &wide
		}
	}
	return q, nil
}

// An onlineLoop is such a loop of a block.
//
// For rows of a query Q, keys K and values V an iteration is, with the running maximum m
// and with what is before it in the program as f:
//
//	S  = f(Q·Kᵀ)                m' = max(m, rows of S)
//	P  = exp(S − m')            l  = l·exp(m − m') + Σ P
//	O  = O·exp(m − m') + P·V    m  = m'
//
// After the loop the program divides O by l.
type onlineLoop struct {
	e *emitter
	l *symtile.Loop
	// Pipe brings a tile of the right operands of all products to shared memory for each
	// iteration.
	pipe   *pipeline
	scores *rowProduct
	// Left are the fragments of the left operand of the scores, by k and by 16 rows; none
	// where it stays in shared memory.
	left [][][]operand
	// Held is the shared memory up to the end of the left operand, while it is there.
	held int64
	// Most is the maximum of each row of this lane so far.
	most []operand
	// Sums and products are the accumulators that are proportional to exp(−maximum), or
	// to nothing.
	sums     []*rowSum
	products []*rowProduct
	// Rough is set where exponentials end in 16 bits.
	rough bool
	// Groups is set where warpgroups multiply.
	groups *groupLoop
	// Hidden says which scores are masked by their place, and seen where a tile has any
	// that are not (see hide); nil where none are known.
	hidden *mask.Mask
	seen   []tileBound
}

// A rowSum is a sum over the columns of each row.
type rowSum struct {
	n        int
	op       symtile.Op
	rescaled bool
	// Accs are the sums of this lane's columns, by row.
	accs []operand
}

// A rowProduct is a product of which each warp computes whole rows. The left operand is
// in registers.
type rowProduct struct {
	*tensorDot
	// From is the product as the program has it: with the operands exchanged where swapped
	// is set, because the rows of the loop are its columns.
	from     *product
	swapped  bool
	rescaled bool
}

// newRowProduct divides the rows of dot n among the warps; swapped exchanges its operands.
func (e *emitter) newRowProduct(n int, swapped bool) *rowProduct {
	from := e.newProduct(n)
	p := *from
	if swapped {
		p.lhs, p.rhs = from.rhs, from.lhs
		p.m, p.c = from.c, from.m
	}
	d := e.typeOf(p.lhs.arg, 0)
	inst, ok := tensorProduct(
		e.spec, d,
		e.typeOf(p.rhs.arg, 0),
		e.knobs,
	)
	if !ok || d.Size() != 2 ||
		wideSum(p.d) != inst.sum {
		e.reject(
			"online=1: %s is no product of 16-bit floats on tensor cores", p.op.Instr.Name,
		)
	}
	if p.b != 1 {
		e.reject(
			"online=1: a tile of %s has %d matrices", p.op.Instr.Name, p.b,
		)
	}
	warps := e.threads / device.WarpThreads
	t := &tensorDot{
		product: &p,
		mma:     inst,
		size:    d.Size(),
		wm:      warps, wn: 1,
		rows: index.CeilDiv(
			index.CeilDiv(p.m, mmaM), warps,
		) * mmaM,
		cols:  index.CeilDiv(p.c, mmaN) * mmaN,
		depth: index.CeilDiv(p.k, inst.k) * inst.k,
		lane:  e.thread.Mod(device.WarpThreads),
		warpM: e.thread.Div(device.WarpThreads),
		warpN: e.ring.Const(0),
		accs:  make([][]operand, 1),
	}
	count := t.rows * t.cols / device.WarpThreads
	if count > maxPartials {
		e.reject(
			"%s: each thread would keep %d sums; at most %d are kept", p.op.Instr.Name, count, maxPartials,
		)
	}
	e.hints.multiplies(d)
	t.b = e.matrixTile("B", t, p.rhs, t.cols)
	return &rowProduct{tensorDot: t, from: from, swapped: swapped}
}

// at is the index in the product's tile of the element of row m and column n, as this file
// numbers them.
func (p *rowProduct) at(m, n index.Expr) []index.Expr {
	b := p.e.ring.Const(0)
	if p.swapped {
		return p.from.result(b, n, m)
	}
	return p.from.result(b, m, n)
}

// rowDims are the dimensions of the result that number the rows: those of the left operand
// that are not contracted, wherever the program has them.
func (p *rowProduct) rowDims() (all []int) {
	first := len(p.from.lhs.batch)
	if p.swapped {
		first += len(p.from.lhs.free)
	}
	for d := range p.lhs.free {
		all = append(all, first+d)
	}
	return all
}

// row is the number of a row of this lane: lane l has rows l/4 and l/4 + 8 of each
// fragment of 16.
func (p *rowProduct) row(r int) index.Expr {
	return p.warpM.Scale(p.rows).AddConst(
		int64(r)/2*mmaM + int64(r)%2*8,
	).Add(p.lane.Div(4))
}

// column is the first of the two neighbouring columns that this lane has of fragment j.
func (p *rowProduct) column(j int64) index.Expr {
	return p.lane.Mod(4).Scale(2).AddConst(j * mmaN)
}

// lanesRows is the number of rows that each lane has elements of.
func (p *rowProduct) lanesRows() int {
	return int(p.rows / mmaM * 2)
}

// acc is the place among the accumulators of the elements of row r in fragment j.
func (p *rowProduct) acc(r int, j int64) int {
	return (r/2*int(p.cols/mmaN)+int(j))*4 + r%2*2
}

// fragments visits the elements of this lane, with the conditions that they are inside of
// the tile.
func (p *rowProduct) fragments(visit func(points []point, vals []operand)) {
	for r := range p.lanesRows() {
		m := p.row(r)
		for j := range p.cols / mmaN {
			var points []point
			for q := range int64(2) {
				n := p.column(j).AddConst(q)
				points = append(points, point{
					p.at(m, n),
					conditions(nil).and(
						m.Neg().AddConst(p.m - 1),
					).and(n.Neg().AddConst(p.c - 1)),
				})
			}
			at := p.acc(r, j)
			visit(
				points,
				p.accs[0][at:at+2],
			)
		}
	}
}

// clear sets the sums to 0. Their registers are the same in all iterations, since products
// are added in place.
func (p *rowProduct) clear() {
	if p.accs[0] == nil {
		p.accs[0] = p.e.asm.fresher(
			kindF32,
			int(
				p.rows*p.cols/device.WarpThreads,
			),
		)
	}
	for _, acc := range p.accs[0] {
		p.e.set(
			kindF32, acc, zero(kindF32),
		)
	}
}

// add multiplies fragments of the left operand, by 16 rows, with step k of the right one
// in shared memory. Sixteen columns are loaded at a time, so that few registers hold them.
func (p *rowProduct) add(left [][]operand, b memory, k int64) {
	e := p.e
	for n := int64(0); n < p.cols; n += 2 * mmaN {
		right := p.load(b, p.b, p.elementsB(
			e.ring.Const(0),
			e.ring.Const(k*p.mma.k), n,
		))
		for f := range left {
			for j := 0; j < len(right); j += 2 {
				at := p.acc(2*f, n/mmaN+int64(j/2))
				c := p.accs[0][at : at+4]
				e.asm.do(
					p.mma.opcode(), c,
					left[f], right[j:j+2], c,
				)
			}
		}
	}
}

// online emits a loop that reads its first accumulator before it is complete.
func (e *emitter) online(l *symtile.Loop) {
	o := e.newOnlineLoop(l)
	o.begin()
	if e.knobs.online == byWarpgroups {
		o.byWarpgroups()
		o.finish()
		return
	}
	o.loadLeft()
	o.pipe.layOut()
	e.shared = max(e.shared, o.held)
	o.skipHidden(o.pipe.emit)
	if e.knobs.epilogue > 0 {
		e.release(
			o.pipe.at,
			o.pipe.bytes*o.pipe.slots,
		)
		e.barrier()
	}
	o.finish()
}

// newOnlineLoop divides the ops of a loop into scores, sums and products. A loop that is
// not of this form, or a plan with a schedule that it cannot have, is rejected.
func (e *emitter) newOnlineLoop(l *symtile.Loop) *onlineLoop {
	part := e.iterationRange(l.Dims)
	slots := min(
		int64(e.knobs.stages),
		part.minCount+1,
	)
	switch {
	case l.Online.Deviation >= 0:
		e.reject("online=1: a mean and a variance take a loop each")
	case e.phase != phaseWhole,
		e.loopDepth > 0,
		e.loopsOverTiles():
		e.reject("online=1: such a loop is not shared by blocks, and a block has one tile")
	case slots < 2 && e.knobs.online != byWarpgroups:
		e.reject("online=1: operands are copied ahead, which takes two stages")
	}
	o := &onlineLoop{e: e, l: l}
	o.pipe = &pipeline{
		e:     e,
		part:  part,
		slots: slots,
		dots:  []pipelinedDot{o},
	}
	o.findScores()
	for _, n := range l.Accumulators[1:] {
		o.accumulator(n)
	}
	o.rough = true
	for _, x := range l.Online.Rescaled {
		o.rough = o.rough && e.narrowed[x.Op]
	}
	o.hide()
	return o
}

// findScores finds the product that the loop is about: the only one that is computed from
// scratch in each iteration. Its rows are those of the maximum.
func (o *onlineLoop) findScores() {
	e := o.e
	var dots []int
	for _, s := range o.l.Body {
		op := e.p.Ops[s.Op]
		switch {
		case s.Loop != nil:
			e.reject(
				"online=1: %s is contracted in several tiles",
				e.p.Ops[s.Loop.Accumulators[0]].Instr.Name,
			)
		case op.Code == hlo.OpReduce,
			len(op.RuntimeArgs) > 0,
			e.hints.staged[s.Op]:
			e.reject("online=1: %s needs code of its own in each iteration", op.Instr.Name)
		case op.Code == hlo.OpDot:
			dots = append(dots, s.Op)
		}
	}
	if len(dots) != 1 {
		e.reject("online=1: %d products in an iteration, not one", len(dots))
	}
	of := o.statistic()
	sizes := e.p.Ops[dots[0]].Tile.Sizes()
	from := e.p.Ops[of.Args[0]]
	if !slices.Equal(sizes, from.Tile.Sizes()) {
		e.reject(
			"online=1: the maximum is not of the elements of %s",
			e.p.Ops[dots[0]].Instr.Name,
		)
	}
	for _, swapped := range []bool{false, true} {
		s := e.newRowProduct(dots[0], swapped)
		kept := s.rowDims()
		for d := range s.from.lhs.batch {
			kept = append(kept, d)
		}
		if len(kept)+len(of.Instr.Attrs.Dimensions) == len(sizes) &&
			!slices.ContainsFunc(kept, func(d int) bool {
				return slices.Contains(
					of.Instr.Attrs.Dimensions,
					int64(d),
				)
			}) {
			o.scores = s
		}
	}
	if o.scores == nil {
		e.reject(
			"online=1: the maximum is not one of rows or columns of %s",
			e.p.Ops[dots[0]].Instr.Name,
		)
	}
	o.checkScores()
}

// checkScores rejects scores whose tiles have incomplete steps of the products that follow,
// scores whose left operand is another one in each iteration, or that
// other threads would have to read.
func (o *onlineLoop) checkScores() {
	e, s := o.e, o.scores
	if s.c%s.mma.k != 0 {
		e.reject(
			"online=1: a tile has %d columns, no multiple of %d", s.c,
			s.mma.k,
		)
	}
	for n, used := range usedBy(e.p, []int{s.lhs.arg}, nil) {
		for _, d := range o.l.Dims {
			tid := e.p.Space.Dims[d].Tid
			if used && dependsOn(e.p.Ops[n], tid) {
				e.reject(
					"online=1: %s is another one in each iteration",
					e.p.Ops[n].Instr.Name,
				)
			}
		}
	}
	if e.hints.sharedResults[bufferKey{s.n, 0}] {
		e.reject(
			"online=1: elements of %s are needed by other threads than hold them", s.op.Instr.Name,
		)
	}
}

// statistic is the op of the maximum.
func (o *onlineLoop) statistic() symtile.Op {
	return o.e.p.Ops[o.l.Online.Statistic]
}

// allProducts are the scores and what is computed from them.
func (o *onlineLoop) allProducts() []*rowProduct {
	return append(
		[]*rowProduct{o.scores},
		o.products...,
	)
}

// accumulator adds a sum of rows or a product with what follows from scores, on either
// side of it. What is rescaled has to have the rows of the maximum, in their order.
func (o *onlineLoop) accumulator(n int) {
	e, op := o.e, o.e.p.Ops[n]
	at := slices.IndexFunc(
		o.l.Online.Rescaled,
		func(r symtile.Rescaled) bool { return r.Op == n },
	)
	if op.Code == hlo.OpReduce {
		o.addSum(n, at >= 0)
		return
	}
	after := func(k int) bool {
		return usedBy(
			e.p,
			[]int{op.Args[k]}, nil,
		)[o.scores.n]
	}
	if after(0) == after(1) {
		e.reject(
			"online=1: not one operand of %s follows from %s", op.Instr.Name,
			o.scores.op.Instr.Name,
		)
	}
	p := e.newRowProduct(n, after(1))
	p.rescaled = at >= 0
	if p.rows != o.scores.rows ||
		p.k != o.scores.c {
		e.reject(
			"online=1: the rows of %s are not those of %s", op.Instr.Name,
			o.scores.op.Instr.Name,
		)
	}
	if at >= 0 && !slices.Equal(
		o.long(
			op,
			o.l.Online.Rescaled[at].Dims,
		),
		o.long(op, p.rowDims()),
	) {
		e.reject("online=1: the rows of %s are in another order than those of the maximum", op.Instr.Name)
	}
	o.products = append(o.products, p)
}

// long are those of some dimensions along which the tile of op has more than one element.
func (o *onlineLoop) long(op symtile.Op, dims []int) (all []int) {
	for _, d := range dims {
		if constantOf(op.Tile[d].Size) > 1 {
			all = append(all, d)
		}
	}
	return all
}

// addSum adds a sum over columns.
func (o *onlineLoop) addSum(n int, rescaled bool) {
	e, op := o.e, o.e.p.Ops[n]
	code, ok := op.Instr.Attrs.ToApply.Monoid()
	if !ok || code != hlo.OpAdd ||
		len(op.Args) != 2 ||
		kindFor(e.typeOf(n, 0)) != kindF32 ||
		!slices.Equal(
			op.Instr.Attrs.Dimensions,
			o.statistic().Instr.Attrs.Dimensions,
		) ||
		!slices.Equal(
			e.p.Ops[op.Args[0]].Tile.Sizes(),
			o.scores.op.Tile.Sizes(),
		) {
		e.reject(
			"online=1: %s is no sum over the columns of %s", op.Instr.Name,
			o.scores.op.Instr.Name,
		)
	}
	o.sums = append(
		o.sums,
		&rowSum{n: n, op: op, rescaled: rescaled},
	)
}

// begin sets what iterations carry: the maximum to its start value, sums to 0.
func (o *onlineLoop) begin() {
	e, s := o.e, o.scores
	e.asm.note(
		"%%%d %s: dot (%dx%d)*(%dx%d), %d warps of %d rows, online over %d iterations",
		s.n, s.op.Instr.Name,
		s.m, s.k, s.k, s.c,
		s.wm, s.rows,
		o.pipe.part.count,
	)
	start := e.elements(
		o.statistic().Args[1],
		[]point{{}},
	)[0]
	for range s.lanesRows() {
		m := e.asm.fresh(kindF32)
		e.set(kindF32, m, start)
		o.most = append(o.most, m)
	}
	for _, x := range o.sums {
		x.accs = e.asm.fresher(kindF32, s.lanesRows())
		for _, acc := range x.accs {
			e.set(
				kindF32, acc, zero(kindF32),
			)
		}
	}
	for _, p := range o.products {
		p.clear()
	}
}

// heldRegisters is the registers of a thread for sums, scores and the left operand from
// which on the left operand stays in shared memory.
const heldRegisters = 192

// loadLeft brings the left operand, Q, of the scores to registers, through shared memory
// that the ring takes afterwards. Where registers are short it stays there.
func (o *onlineLoop) loadLeft() {
	e, s := o.e, o.scores
	before := e.shared
	s.a = e.matrixTile(
		"A", s.tensorDot, s.lhs,
		s.rows*s.wm,
	)
	s.a.at = e.allocateShared(s.a.bytes)
	s.stageTile(
		s.a,
		memory{shared, e.smem, s.a.at},
	)
	e.fresh = true
	e.waitForWrites()
	held := s.rows * (s.cols + s.depth/2)
	for _, p := range o.products {
		held += p.rows * p.cols
	}
	if held/device.WarpThreads > heldRegisters {
		return
	}
	for k := range s.depth / s.mma.k {
		o.left = append(o.left, o.leftStep(k))
	}
	e.barrier()
	o.held = e.shared
	e.shared = before
}

// leftStep is the fragments of the left operand of the scores for step k.
func (o *onlineLoop) leftStep(k int64) (all [][]operand) {
	e, s := o.e, o.scores
	if o.left != nil && k < int64(len(o.left)) {
		return o.left[k]
	}
	at := memory{shared, e.smem, s.a.at}
	for f := range s.rows / mmaM {
		x := s.elementsA(
			e.ring.Const(0),
			e.ring.Const(k*s.mma.k),
			f*mmaM,
		)
		all = append(all, s.load(at, s.a, x))
	}
	return all
}

// parts implements pipelinedDot: the right operands of all products.
func (o *onlineLoop) parts() (all []slotOperand) {
	for _, p := range o.allProducts() {
		all = append(all, slotOperand{
			p.b.key(p.tensorDot),
			p.b.bytes, &p.b.at,
			func(to memory) { p.stageTile(p.b, to) },
		})
	}
	return all
}

// prepare implements pipelinedDot; see tensorDot.prepare. Where registers are short, parts
// of addresses are computed where they are used.
func (o *onlineLoop) prepare() {
	e := o.e
	if o.left == nil {
		return
	}
	zero := e.ring.Const(0)
	for _, p := range o.allProducts() {
		p.knowCopies(p.b)
		for k := range min(8, p.depth/p.mma.k) {
			for n := int64(0); n < p.cols; n += 2 * mmaN {
				step := e.ring.Const(k * p.mma.k)
				for _, at := range p.elementsB(zero, step, n).at {
					_, c := at.Terms()
					e.num(at.AddConst(-c))
				}
			}
		}
	}
}

// multiplySlot implements pipelinedDot: one iteration.
func (o *onlineLoop) multiplySlot(slot memory) {
	e := o.e
	defer e.leaveLoop(e.around, e.ids)
	step := e.atIteration(
		o.pipe.part, o.pipe.counter,
	)
	e.enterLoop(
		step,
		coalesce.LoopRange{Hi: o.pipe.part.count - 1},
	)
	o.masked(func() { o.tile(slot) })
}

// tile is the work of one iteration.
func (o *onlineLoop) tile(slot memory) {
	s := o.scores
	// The scores of the tile: S = Q·Kᵀ.
	if o.groups != nil {
		o.groups.scores()
	} else {
		s.clear()
		for k := range s.depth / s.mma.k {
			s.add(
				o.leftStep(k),
				memory{shared, slot.base, slot.first + s.b.at},
				k,
			)
		}
	}
	// P = exp(S − m), and with it the sums of rows and O = P·V, which are rescaled before.
	o.publishScores()
	factors := o.raise()
	for _, x := range o.sums {
		o.addColumns(x, factors)
	}
	for _, p := range o.products {
		o.multiply(
			p, factors,
			memory{shared, slot.base, slot.first + p.b.at},
		)
	}
}

// publishScores makes the scores of this lane known in the scope.
func (o *onlineLoop) publishScores() {
	e, s := o.e, o.scores
	// Values are copied, because the registers of sums are written again.
	known := map[valueKey]bool{}
	s.fragments(func(points []point, vals []operand) {
		for k, x := range points {
			// The first of several elements with one index is that at place 0.
			at := e.keyOf(
				s.n, 0, point{x.at, nil},
			)
			if known[at] {
				continue
			}
			known[at] = true
			v := e.asm.fresh(kindF32)
			e.asm.do("mov.f32", v, vals[k])
			e.asm.stable[v] = true
			e.asm.scope.values[at] = e.convert(
				s.d, s.mma.sum, v,
			)
		}
	})
}

// ofRow computes the elements of op n, which has the scores' tile, in a row of this lane;
// those outside of the tensor are the identity. Pairs of columns are neighbours, so that
// masks and biases are loaded in pairs, too.
func (o *onlineLoop) ofRow(n, r int, identity operand) (all []operand) {
	e, s := o.e, o.scores
	tile := e.p.Ops[n].Tile
	for j := range s.cols / mmaN {
		points := make([]point, 2)
		valid := make([]operand, 2)
		for q := range points {
			points[q].at = s.at(
				s.row(r),
				s.column(j).AddConst(int64(q)),
			)
			var c conditions
			for _, d := range o.statistic().Instr.Attrs.Dimensions {
				_, c = e.index(
					tile[d],
					points[q].at[d], c,
				)
			}
			valid[q] = e.guard(c)
		}
		for q, v := range e.elements(n, points) {
			all = append(
				all,
				e.choose(
					hlo.F32, valid[q], v,
					identity,
				),
			)
		}
	}
	return all
}

// rowKey is the key of a number of a row of this lane, a result of op n.
func (o *onlineLoop) rowKey(n, r int) valueKey {
	return o.e.keyOf(
		n, 0,
		point{o.rowAt(r), nil},
	)
}

// rowAt is the index of a row of this lane in tiles of row numbers.
func (o *onlineLoop) rowAt(r int) (at []index.Expr) {
	reduced := o.statistic().Instr.Attrs.Dimensions
	first := o.e.ring.Const(0)
	for d, x := range o.scores.at(o.scores.row(r), first) {
		if !slices.Contains(reduced, int64(d)) {
			at = append(at, x)
		}
	}
	return at
}

// lowest is −∞.
var lowest32 = f32(math.Inf(-1))

// raise brings the maxima up to date with the scores of a tile, and returns by what each row's sums are multiplied:
// exp(old − new). What is subtracted from the scores of a row of nothing but −∞ is the lowest finite number.
func (o *onlineLoop) raise() (factors []operand) {
	e, arg := o.e, o.statistic().Args[0]
	defer e.roughly(o.rough)()
	var tops []operand
	for r := range o.most {
		// Two chains of maxima are half as long.
		all := o.ofRow(arg, r, lowest32)
		for len(all) > 1 {
			half := len(all) / 2
			for k := range half {
				all[k] = o.larger(
					all[k],
					all[len(all)-1-k],
				)
			}
			all = all[:len(all)-half]
		}
		tops = append(tops, all[0])
	}
	// The four lanes of a row are neighbours.
	for _, lanes := range []int64{1, 2} {
		for r, x := range tops {
			tops[r] = o.larger(
				x, e.shuffle(kindF32, x, lanes),
			)
		}
	}
	e.bases = map[operand]weightBase{}
	for r, old := range o.most {
		next := o.larger(tops[r], old)
		base := o.larger(next, f32(-math.MaxFloat32))
		factors = append(factors, o.factor(old, base))
		e.set(kindF32, old, next)
		key := o.rowKey(o.l.Online.Statistic, r)
		if _, known := e.asm.scope.values[key]; !known {
			e.asm.scope.values[key] = base
		}
	}
	return factors
}

// factor is e^(old − base), by which what the maximum old was subtracted for is multiplied.
// Rough weights are powers of two of multiples of the scores less that of the base, which
// is rounded once: see weights.
func (o *onlineLoop) factor(old, base operand) operand {
	e := o.e
	m := e.floats(kindF32)
	if !e.rough {
		return e.scalar(
			hlo.OpExponential, nil, hlo.F32, hlo.F32,
			[]operand{m.Sub(old, base)},
		)
	}
	w := weightBase{times: o.logOfRoot(base)}
	scaled := m.Mul(base, w.times)
	w.less = m.Neg(scaled)
	e.bases[base] = w
	return m.Squared(m.Sub(m.Mul(old, w.times), scaled))
}

// coarse is the maximum from which on neighbouring numbers of f32 are 32 apart, so that
// all but the largest weights of a row are less than 2^-46.
const coarse = 0x1p28

// logOfRoot is log₂√e, and 1 for maxima from coarse on: their multiple by 1 is exact, and
// that by another number is off by so much that its power of two would overflow.
func (o *onlineLoop) logOfRoot(base operand) operand {
	m := o.e.floats(kindF32)
	return m.Pick(
		m.Is("lt", m.Abs(base), m.C(coarse)),
		m.Reg(functions.RootOfE), m.C(1),
	)
}

// unrounded are the factors that rough weights and their sums lack because the multiple of
// each row's maximum was rounded; 1 for exact ones.
func (o *onlineLoop) unrounded() (factors []operand) {
	m := o.e.floats(kindF32)
	defer o.e.roughly(o.rough)()
	for _, x := range o.most {
		c := f32(1)
		if o.e.rough {
			times := o.logOfRoot(x)
			// What the rounding has added: the rounded less the exact multiple.
			c = m.Squared(m.FMA(m.Neg(x), times, m.Mul(x, times)))
		}
		factors = append(factors, c)
	}
	return factors
}

// larger is the maximum of two numbers; NaN where one is.
func (o *onlineLoop) larger(x, y operand) operand {
	return o.e.maximum(hlo.F32, x, y)
}

// addColumns adds a tile's columns to a sum of rows.
func (o *onlineLoop) addColumns(x *rowSum, factors []operand) {
	e := o.e
	for r, acc := range x.accs {
		if x.rescaled {
			e.asm.do(
				"mul.rn.f32", acc, acc, factors[r],
			)
		}
		terms := o.ofRow(
			x.op.Args[0], r,
			zero(kindF32),
		)
		for _, v := range terms {
			e.asm.do(
				"add.rn.f32", acc, acc,
				e.asm.in(kindF32, v),
			)
		}
	}
}

// multiply adds a tile's products to a product, after its sums are rescaled; its left operand is computed in the
// registers that hold the scores.
func (o *onlineLoop) multiply(p *rowProduct, factors []operand, b memory) {
	e := o.e
	for r, factor := range factors {
		if !p.rescaled {
			break
		}
		for j := range p.cols / mmaN {
			at := p.acc(r, j)
			for _, acc := range p.accs[0][at : at+2] {
				e.asm.do(
					"mul.rn.f32", acc, acc, factor,
				)
			}
		}
	}
	if o.groups != nil {
		o.groups.multiply(p)
		return
	}
	for k := range p.depth / p.mma.k {
		// P is rounded in pairs, which are words of a fragment.
		var left [][]operand
		for f := range p.rows / mmaM {
			left = append(
				left,
				o.leftFragment(p, f, k),
			)
		}
		p.add(left, b, k)
	}
}

// leftFragment is one fragment of mma.sync: 16 rows of the left operand for step k: two neighbouring columns of
// rows l/4 and l/4 + 8 of the first half of k, then of the second.
func (o *onlineLoop) leftFragment(p *rowProduct, f, k int64) (words []operand) {
	e := o.e
	d := e.typeOf(p.lhs.arg, 0)
	for q := range int64(4) {
		m := p.row(int(2*f + q%2))
		points := make([]point, 2)
		valid := make([]operand, 2)
		for i := range points {
			n := p.column(2*k + q/2)
			points[i].at = p.lhs.index(
				e.ring.Const(0), m,
				n.AddConst(int64(i)),
			)
			valid[i] = e.guard(
				e.contracted(p.lhs, points[i].at),
			)
		}
		vals := slices.Clone(
			e.elements(p.lhs.arg, points),
		)
		for i := range vals {
			vals[i] = e.choose(
				d, valid[i], vals[i],
				zero(kindF32),
			)
		}
		// A word has the lower column in its lower half.
		words = append(
			words,
			e.packHalves(d, vals[0], vals[1]),
		)
	}
	return words
}

// finish ends the sums of rows, which the four lanes of a row have parts of, and
// makes the results available to the steps after the loop, in f32: they are rounded
// where they are stored. Where all of a row is −∞, they are NaN.
func (o *onlineLoop) finish() {
	e := o.e
	m := e.floats(kindF32)
	empty := make([]operand, len(o.most))
	for r, x := range o.frozen(o.most) {
		o.most[r] = x
		empty[r] = m.Is("eq", x, lowest32)
	}
	o.publishRows(
		o.l.Online.Statistic,
		o.most,
	)
	nan := f32(math.NaN())
	whole := o.unrounded()
	e.bases = nil
	for _, x := range o.sums {
		x.accs = o.frozen(x.accs)
		init := e.elements(
			x.op.Args[1],
			[]point{{}},
		)[0]
		for r := range x.accs {
			for _, lanes := range []int64{1, 2} {
				x.accs[r] = m.Add(
					x.accs[r],
					e.shuffle(
						kindF32, x.accs[r], lanes,
					),
				)
			}
			if x.rescaled {
				x.accs[r] = m.Times(x.accs[r], whole[r])
				x.accs[r] = m.Pick(empty[r], nan, x.accs[r])
			}
			x.accs[r] = m.Add(init, x.accs[r])
		}
		o.publishRows(x.n, x.accs)
	}
	for _, p := range o.products {
		e.freeze(kindF32, p.accs)
		for r := range empty {
			for j := range 2 * p.cols / mmaN {
				at := p.acc(r, j/2) + int(j%2)
				v := &p.accs[0][at]
				if p.rescaled {
					*v = m.Times(*v, whole[r])
					*v = m.Pick(empty[r], nan, *v)
				}
			}
		}
		p.publish(p.fragments)
	}
}

// frozen is a copy of registers that are written more than once, from which values can be
// remembered.
func (o *onlineLoop) frozen(accs []operand) []operand {
	all := [][]operand{slices.Clone(accs)}
	o.e.freeze(kindF32, all)
	return all[0]
}

// publishRows makes a number of each row available in the registers of the four lanes
// that share the row and, if other threads need it (hints), in shared memory.
func (o *onlineLoop) publishRows(n int, vals []operand) {
	e, s := o.e, o.scores
	key := bufferKey{n, 0}
	delete(e.buffers, key)
	for r := range vals {
		k := o.rowKey(n, r)
		if e.asm.scope.values[k] == "" {
			e.asm.scope.values[k] = vals[r]
		}
	}
	if !e.hints.sharedResults[key] {
		return
	}
	sizes := e.p.Ops[n].Tile.Sizes()
	b := e.newBuffer(
		registerType(e.typeOf(n, 0)), sizes,
		dense(sizes),
	)
	for r := range vals {
		own := conditions(nil).and(
			s.row(r).Neg().AddConst(s.m - 1),
		).and(s.lane.Mod(4).Neg())
		e.put(
			b,
			[]point{{o.rowAt(r), own}},
			vals[r:r+1],
		)
	}
	e.buffers[key] = b
	e.barrier()
}

// The loop is one pipelinedDot, which its pipeline neither divides nor ends.
func (o *onlineLoop) accumulate() {
	panic(fmt.Sprintf("%T has no iteration outside of its pipeline", o))
}
func (o *onlineLoop) storePartial() { panic(fmt.Sprintf("%T is not divided", o)) }
func (o *onlineLoop) addPartials()  { panic(fmt.Sprintf("%T is not divided", o)) }

// Masks hide whole tiles of keys from a tile of queries: all that are after it where the
// mask is causal, and those before a window. Iterations of such tiles are left out, and
// tiles that a mask hides nothing of are computed without it.
//
// That changes nothing where what is hidden is −∞: its weights are 0, and a row of nothing
// else is NaN, as in plain evaluation. (An infinite or NaN value of v has weight 0, too,
// and a bias of −∞ hides infinite scores.) Where it is finite, weights are 0 only if the
// row has a score that is much larger. The block looks at that when its tiles are done, and
// computes the hidden ones, too, if it is not so for all rows.

// A tileBound is a bound of a mask for the tiles of a block: any element of tile t may be
// visible only if factor·t + most ≥ 0, and all are if factor·t + least ≥ 0.
type tileBound struct {
	factor      int64
	most, least index.Expr
	compare     int
	holds       bool
}

// underflows is by how much a number has to be smaller than the maximum of its row for a
// weight of 0: exp(−104) is less than half of the smallest f32.
const underflows = 104

// hide finds the bounds of tiles, and with them the iterations of this block.
func (o *onlineLoop) hide() {
	e, part := o.e, &o.pipe.part
	d, single := o.onlyDim()
	hidden, err := mask.Of(e.p, o.statistic().Args[0])
	if err != nil || !single || !o.proportional() ||
		e.knobs.online == byWarpgroups && !math.IsInf(hidden.Value, -1) {
		return
	}
	// Bounds that fall with the tile's number end the tiles, those that rise begin them.
	end, first := e.ring.Const(part.total), e.ring.Const(0)
	for _, b := range hidden.Bounds {
		t, ok := o.boundOf(b, e.p.Space.Dims[d].Tid)
		if !ok {
			continue
		}
		o.seen = append(o.seen, t)
		switch {
		case t.factor < 0:
			end = end.Min(t.most.Div(-t.factor).AddConst(1))
		case math.IsInf(hidden.Value, -1):
			first = first.Max(t.most.Div(t.factor).Neg())
		}
	}
	if len(o.seen) == 0 {
		return
	}
	o.hidden = &hidden
	// A block whose tiles are all hidden computes one of them.
	part.first = first.Min(e.ring.Const(part.total - 1))
	count := end.Sub(part.first).Max(e.ring.Const(1))
	part.limit = e.num(count)
}

// onlyDim is the dimension of the loop with more than one tile.
func (o *onlineLoop) onlyDim() (dim int, ok bool) {
	n := 0
	for k, trips := range o.pipe.part.trips {
		if trips > 1 {
			dim = o.l.Dims[k]
			n++
		}
	}
	return dim, n == 1
}

// proportional reports whether all that the loop computes is proportional to weights.
func (o *onlineLoop) proportional() bool {
	for _, x := range o.sums {
		if !x.rescaled {
			return false
		}
	}
	for _, p := range o.products {
		if !p.rescaled {
			return false
		}
	}
	return true
}

// boundOf is a bound for the tiles that tid numbers. It reports whether it has the form of
// a tileBound.
func (o *onlineLoop) boundOf(b mask.Bound, tid index.Expr) (t tileBound, ok bool) {
	e, s := o.e, o.scores
	local := map[index.Expr]int64{}
	within := func(name string, n int64) index.Expr {
		v := e.ring.Var(index.Variable{Name: name, Hi: n - 1, Role: index.RoleLoop})
		local[v] = n - 1
		return v
	}
	at := s.at(within("row", s.m), within("column", s.c))
	x := e.ring.Const(b.Const)
	for d, tile := range e.p.Ops[o.statistic().Args[0]].Tile {
		if b.Factors[d] == 0 {
			continue
		}
		place, _ := e.index(tile, at[d], nil)
		x = x.Add(place.Scale(b.Factors[d]))
	}
	// What depends on the place in the tile is at most, or at least, so much; the rest is
	// known to a block.
	t = tileBound{compare: b.Compare, holds: b.Holds}
	terms, c := x.Terms()
	t.most = e.ring.Const(c)
	t.least = t.most
	for _, y := range terms {
		last, own := local[y.Of]
		switch {
		case y.Of == tid:
			t.factor = y.Factor
		case own:
			t.most = t.most.AddConst(max(0, y.Factor*last))
			t.least = t.least.AddConst(min(0, y.Factor*last))
		default:
			t.most = t.most.Add(y.Of.Scale(y.Factor))
			t.least = t.least.Add(y.Of.Scale(y.Factor))
		}
	}
	for _, v := range t.most.Vars() {
		_, own := local[v]
		if own || v == tid {
			return t, false
		}
	}
	return t, t.factor != 0
}

// skipHidden emits the loop for the tiles that are visible, and once more for those after
// them where they may count.
func (o *onlineLoop) skipHidden(emit func()) {
	e, a, part := o.e, o.e.asm, &o.pipe.part
	if !o.hiddenCounts() {
		emit()
		return
	}
	first, limit := a.fresh(kindB32), a.fresh(kindB32)
	a.do("mov.b32", first, 0)
	a.do("mov.b32", limit, part.limit)
	from := e.ring.Var(index.Variable{
		Name: "from",
		Hi:   part.total - 1,
		Role: index.RoleLoop,
	})
	e.bind(from, first)
	part.first, part.limit = from, limit
	// All of the pipeline is in this loop: it begins with the copies of the first slots.
	start, done := a.label("TILES"), a.label("DONE")
	a.place(start)
	emit()
	o.passHidden(done)
	a.do("mov.b32", first, limit)
	a.do("sub.s32", limit, part.total, limit)
	a.do("bra.uni", start)
	a.place(done)
}

// hiddenCounts reports whether what is hidden is finite.
func (o *onlineLoop) hiddenCounts() bool {
	return o.hidden != nil && !math.IsInf(o.hidden.Value, -1)
}

// passHidden branches to done if no tiles are left, or if what is hidden has weights of 0
// in all rows of the block.
func (o *onlineLoop) passHidden(done operand) {
	e, a, part := o.e, o.e.asm, &o.pipe.part
	last := a.fresh(kindB32)
	a.do("add.s32", last, part.limit, e.num(part.first))
	all := a.fresh(kindPred)
	a.do("setp.ge.s32", all, last, part.total)
	a.branch(all, done)
	// Large numbers are more than that apart.
	least := float32(o.hidden.Value + underflows)
	for float64(least)-o.hidden.Value < underflows {
		least = math.Nextafter32(least, float32(math.Inf(1)))
	}
	// A NaN is not larger than anything, so that its row is computed wholly.
	for k, m := range o.most {
		if k == 0 {
			a.do("setp.ge.f32", all, m, f32(float64(least)))
			continue
		}
		a.do("setp.ge.and.f32", all, m, f32(float64(least)), all)
	}
	a.do("bar.red.and.pred", all, 0, e.threads, all)
	a.waits++
	a.branch(all, done)
}

// masked emits the work of a tile: without the comparisons of the mask where it hides
// nothing of the tile.
func (o *onlineLoop) masked(work func()) {
	e, a := o.e, o.e.asm
	var whole conditions
	d, _ := o.onlyDim()
	for _, t := range o.seen {
		tid := e.p.Space.Dims[d].Tid
		whole = whole.and(tid.Scale(t.factor).Add(t.least))
	}
	p := no
	if len(o.seen) > 0 {
		p = e.guard(whole)
	}
	if p == no {
		work()
		return
	}
	partial, done := a.label("MASKED"), a.label("TILE")
	if p != yes {
		a.branch(a.not(p), partial)
	}
	a.enter()
	for _, t := range o.seen {
		e.decided[t.compare] = map[bool]operand{true: yes, false: no}[t.holds]
	}
	work()
	clear(e.decided)
	a.leave()
	if p == yes {
		return
	}
	a.do("bra.uni", done)
	a.place(partial)
	a.enter()
	work()
	a.leave()
	a.place(done)
}

// A groupLoop is such a loop on warpgroups (sm_90a): Q, K and V come by tensor copies, Q
// once and tiles of the others into a ring of slots that a producer fills; scores are
// products of two operands in shared memory, and weights are multiplied from registers
// (Shah et al., FlashAttention-3, 2024, §3.1). The layouts of rows in registers are those
// of mma.sync, with 16 rows a warp. While one warpgroup computes weights others multiply:
// they take turns to issue products (§3.1, pingpong), each of them those of the weights of
// a tile and then those of the scores of the next. The former are complete before the
// latter begin: with both running, ptxas 12.9 and 13.5 copy sums, or serialise them
// (C7512, C7514).
type groupLoop struct {
	o    *onlineLoop
	ring *ring
	// Left is Q, and right the tiles of a slot, by product.
	left  *boxTile
	right map[*rowProduct]*boxTile
	// The descriptors of Q for this warpgroup and of the tiles of slot 0; offset is that
	// of the slot.
	query  descriptor
	tiles  map[*rowProduct]descriptor
	offset operand
	// Turn and nextTurn are the named barriers at which this warpgroup waits for its turn,
	// and at which the one whose turn follows does; first holds in all warpgroups but
	// the last. Empty where there is one warpgroup.
	turn, nextTurn, first operand
}

// byWarpgroups emits the loop for warpgroups.
func (o *onlineLoop) byWarpgroups() {
	g := o.newGroupLoop()
	o.groups = g
	r := g.ring
	g.layOut()
	// The barrier of Q follows those of the slots. One thread makes it known with them, and
	// starts the copy, which the producer need not wait for.
	queries := o.e.asm.get(kindB32, "add.s32", o.e.smem, r.full0+16*r.slots)
	r.setUp = func() {
		o.e.asm.when(r.leader, "mbarrier.init.shared.b64", address{queries, 0}, 1)
	}
	r.prologue = func() { g.loadQueries(queries) }
	r.consumer = func() { g.consume(queries) }
	r.emit()
	if e := o.e; e.knobs.epilogue > 0 {
		e.release(r.at, r.bytes*r.slots)
		e.barrier()
	}
}

// newGroupLoop describes the tensor copies. A plan whose operands they cannot make, or
// whose warps have more rows than a warpgroup's, is rejected.
func (o *onlineLoop) newGroupLoop() *groupLoop {
	e, s := o.e, o.scores
	if !e.spec.Warpgroups() || e.threads%device.WarpgroupThreads != 0 || s.rows != mmaM {
		e.reject("online=2 is for warpgroups, of 64 rows each")
	}
	if e.knobs.producer == 0 {
		e.reject("online=2 needs a producer")
	}
	if e.knobs.stages < 2 && o.pipe.part.total > 1 &&
		e.threads > device.WarpgroupThreads {
		// In its turn a warpgroup waits for the next slot, which others release in theirs.
		e.reject("online=2: warpgroups that take turns need two stages")
	}
	g := &groupLoop{
		o:     o,
		right: map[*rowProduct]*boxTile{},
		tiles: map[*rowProduct]descriptor{},
	}
	g.ring = &ring{
		e:           e,
		part:        o.pipe.part,
		total:       o.pipe.part.total,
		blocks:      1,
		hasProducer: true,
		slots:       min(int64(e.knobs.stages), o.pipe.part.total),
	}
	g.left = e.boxTile(
		"Q", e.movedTile(s.lhs), s.rows*s.wm, groupRows, s.depth,
	)
	whole := g.left != nil && !g.left.byK
	for _, p := range o.allProducts() {
		b := e.boxTile("B", e.movedTile(p.rhs), p.cols, p.cols, p.depth)
		whole = whole && b != nil && p.cols <= maxColumns
		g.right[p] = b
	}
	if !whole {
		e.reject("online=2: tensor copies do not make the operands of %s", s.op.Instr.Name)
	}
	return g
}

// movedTile is the tile of the parameter whose elements an operand has, where operations
// between them only move elements and keep the order of the tile's: heads of keys that several heads of
// queries share are broadcast, and perhaps merged with others. It is o where that is not so.
func (e *emitter) movedTile(o operandTile) operandTile {
	t := o
	for e.p.Ops[t.arg].Code != hlo.OpParameter {
		next, ok := e.beforeMove(t)
		if !ok {
			return o
		}
		t = next
	}
	return t
}

// beforeMove is a tile of the operand of an op that moves elements.
func (e *emitter) beforeMove(t operandTile) (from operandTile, ok bool) {
	op := e.p.Ops[t.arg]
	if !movesOnly(op) {
		return from, false
	}
	from = operandTile{arg: op.Args[0], sizes: e.p.Ops[op.Args[0]].Tile.Sizes()}
	// Where each long dimension of the tile was before.
	place := map[int]int{}
	switch op.Code {
	case hlo.OpBroadcast:
		for d, to := range op.Instr.Attrs.Dimensions {
			place[int(to)] = d
		}
	case hlo.OpTranspose:
		for to, d := range op.Perm {
			place[to] = d
		}
	default:
		before, after := longDims(from.sizes), longDims(t.sizes)
		if len(before) != len(after) {
			return from, false
		}
		for k, to := range after {
			place[to] = before[k]
		}
	}
	for _, side := range []struct {
		dims []int
		to   *[]int
	}{{t.free, &from.free}, {t.contract, &from.contract}} {
		for _, d := range side.dims {
			was, known := place[d]
			if t.sizes[d] > 1 && (!known || from.sizes[was] != t.sizes[d]) {
				return from, false
			}
			if t.sizes[d] > 1 {
				*side.to = append(*side.to, was)
			}
		}
	}
	for d := range from.sizes {
		if !slices.Contains(from.free, d) && !slices.Contains(from.contract, d) {
			from.batch = append(from.batch, d)
		}
	}
	return from, true
}

// movesOnly reports whether the elements of an op are those of its operand, of which a tile keeps its order.
func movesOnly(op symtile.Op) bool {
	switch op.Code {
	case hlo.OpBroadcast, hlo.OpReshape, hlo.OpTranspose, hlo.OpCopy:
		return len(op.Args) == 1
	}
	return false
}

// longDims are the dimensions of several elements.
func longDims(sizes []int64) (dims []int) {
	for d, n := range sizes {
		if n > 1 {
			dims = append(dims, d)
		}
	}
	return dims
}

// layOut assigns offsets to Q, which stays, and to what is in slots.
func (g *groupLoop) layOut() {
	r, e := g.ring, g.o.e
	for _, p := range g.o.allProducts() {
		b := g.right[p]
		b.at, b.number = r.bytes, e.mapNumber(b)
		r.bytes += wholeAtoms(b.bytes)
		r.tiles = append(r.tiles, b)
	}
	e.shared = wholeAtoms(e.shared)
	r.at = e.allocateShared(r.bytes*r.slots + wholeAtoms(g.left.bytes))
	g.left.at, g.left.number = r.bytes*r.slots, e.mapNumber(g.left)
	r.full0 = e.allocateShared(16*r.slots + 8)
	e.common = e.shared
}

// loadQueries starts the copy of Q.
func (g *groupLoop) loadQueries(barrier operand) {
	r, a := g.ring, g.o.e.asm
	skip := a.label("FOLLOW")
	a.branch(a.not(r.leader), skip)
	a.enter()
	signal := address{barrier, 0}
	a.do("mbarrier.arrive.expect_tx.shared.b64", sink, signal, g.left.bytes)
	r.boxes(g.left, address{r.data, g.left.at}, signal)
	a.leave()
	a.place(skip)
}

// consume emits the loop of the warpgroups; see ring.consume.
func (g *groupLoop) consume(queries operand) {
	r, o := g.ring, g.o
	e, a := o.e, o.e.asm
	g.query = r.descriptor(g.left, r.warpgroup().Scale(groupRows), 2)
	for _, p := range o.allProducts() {
		g.tiles[p] = r.descriptor(g.right[p], e.ring.Const(0), 2)
	}
	c := r.cursor(0)
	g.offset = a.fresh(kindB32)
	a.do("mov.b32", g.offset, 0)
	counter := a.fresh(kindB32)
	more := a.fresh(kindPred)
	a.do("mov.b32", counter, 0)
	_, inWarp := e.warpAndLane()
	lane := e.num(inWarp)
	signals := a.get(kindPred, "setp.eq.s32", lane, 0)
	a.in(kindPred, yes)
	a.in(kindPred, no)
	g.setTurns()
	o.pipe.part = r.part
	o.pipe.counter = counter
	r.wait(cursor{queries, a.in(kindB32, "0")}, address{queries, 0}, "QUERIES")
	a.note("%s", r.part.note())
	g.takeTurn()
	again := a.label("LOOP")
	a.place(again)
	r.wait(c, r.isFull(c.at), "FULL")
	a.enter()
	o.multiplySlot(memory{})
	a.leave()
	// This warp has read the slot.
	a.when(signals, "mbarrier.arrive.shared.b64", sink, r.isEmpty(c.at))
	a.do("add.s32", g.offset, g.offset, r.bytes/matrixRow)
	a.when(r.advance(c), "mov.b32", g.offset, 0)
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, r.limit)
	a.branch(more, again)
	g.passTurn(g.first)
}

// setTurns finds the barriers of turns. Warpgroup 0 has the first turn.
func (g *groupLoop) setTurns() {
	e, a := g.o.e, g.o.e.asm
	groups := e.threads / device.WarpgroupThreads
	if groups == 1 {
		return
	}
	own := e.num(g.ring.warpgroup())
	g.turn = a.get(kindB32, "add.s32", own, turnBarrier)
	g.first = a.get(kindPred, "setp.lt.s32", own, groups-1)
	g.nextTurn = a.get(
		kindB32, "selp.b32",
		a.get(kindB32, "add.s32", own, turnBarrier+1), turnBarrier, g.first,
	)
	a.when(a.not(g.first), "bar.arrive", g.nextTurn, 2*device.WarpgroupThreads)
}

// takeTurn waits until the warpgroup before this one has issued its products.
func (g *groupLoop) takeTurn() {
	if g.turn != "" {
		g.o.e.asm.do("bar.sync", g.turn, 2*device.WarpgroupThreads)
	}
}

// passTurn lets the next warpgroup issue products, where p holds or is no. Nobody waits for
// the last turn of the last warpgroup. The barrier is not .aligned: see ring.passTurn.
func (g *groupLoop) passTurn(p operand) {
	if g.turn == "" {
		return
	}
	if p == no {
		g.o.e.asm.do("barrier.arrive", g.nextTurn, 2*device.WarpgroupThreads)
		return
	}
	g.o.e.asm.when(p, "barrier.arrive", g.nextTurn, 2*device.WarpgroupThreads)
}

// scores emits the product of Q and the tile of K.
func (g *groupLoop) scores() {
	s, a := g.o.scores, g.o.e.asm
	if s.accs[0] == nil {
		s.accs[0] = a.fresher(kindF32, int(s.rows*s.cols/device.WarpThreads))
	}
	// The sums were read by other instructions.
	a.do("wgmma.fence.sync.aligned")
	for k := int64(0); k < s.depth; k += s.mma.k {
		left := g.query.moved(a, "0", constantOf(g.left.offset(g.o.e.ring.Const(0), k, 2)))
		g.issue(s, left, k)
	}
	a.do("wgmma.commit_group.sync.aligned")
	g.passTurn(no)
	g.complete()
}

// multiply emits the product of weights in registers and the tile of V. The first of a
// tile takes the turn.
func (g *groupLoop) multiply(p *rowProduct) {
	// All weights are in registers before the first product: one that was computed between
	// two would have to wait for the one before.
	a := g.o.e.asm
	var left [][]operand
	for k := range p.depth / p.mma.k {
		left = append(left, g.o.leftFragment(p, 0, k))
	}
	if p == g.o.products[0] {
		g.takeTurn()
	}
	a.do("wgmma.fence.sync.aligned")
	for k, words := range left {
		g.issue(p, words, int64(k)*p.mma.k)
	}
	a.do("wgmma.commit_group.sync.aligned")
	g.complete()
}

// issue begins one wgmma, of a left operand that is a descriptor or registers.
func (g *groupLoop) issue(p *rowProduct, left any, k int64) {
	e, a := g.o.e, g.o.e.asm
	b := g.right[p]
	opcode := fmt.Sprintf(
		"wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s",
		p.cols, p.mma.k, p.mma.sum, p.mma.a.name, p.mma.b.name,
	)
	right := g.tiles[p].moved(a, g.offset, constantOf(b.offset(e.ring.Const(0), k, 2)))
	// Scores begin anew in each iteration.
	add := yes
	if p == g.o.scores && k == 0 {
		add = no
	}
	args := []any{p.accs[0], left, right, a.in(kindPred, add), 1, 1}
	if _, shared := left.(operand); shared {
		args = append(args, 0)
	}
	a.do(opcode, append(args, map[bool]int{true: 1}[b.byK])...)
}

// complete waits for the products. What follows reads their sums, or writes the registers
// of their left operand, in each case before the next products of this warpgroup begin.
func (g *groupLoop) complete() { g.o.e.asm.do("wgmma.wait_group.sync.aligned", 0) }
