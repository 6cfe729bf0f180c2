package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/mask"
)

// An onlineEstimate is the estimate of plans with online=1, whose program has its loops
// joined (see online.go): each warp has whole rows of scores, so that it reads all of the
// right operands.
//
// What it takes for n columns of keys and r rows of a block, with w warps, by resource:
//
//	tensor cores   two products, padded to fragments of 16 rows a warp
//	shared memory  each tile of keys and values is written once and read by w warps
//	arithmetic     one operation an element of scores for each op of the loop, more for
//	               exponentials, and one an element of the sums, which are rescaled
//	memory         queries once, keys and values once for r rows, mostly from the L2 cache
//
// The two kinds of work of a warp follow each other, so that the shorter one is exposed
// where an SM has no other warps.
type onlineEstimate struct {
	*estimate
	loop *symtile.Loop
	// Scores is the product that iterations begin with, and fixed the ops that its left
	// operand is computed from, which is loaded once.
	scores int
	fixed  []bool
	// Rows, single and whole are the dimensions that number the rows of scores, those that
	// a tile has one element of, and those that it has all of.
	rows, single, whole symtile.DimSet
	// Hidden are the bounds of the mask of the scores; see onlineLoop.hide.
	hidden mask.Mask
}

// onlineEstimateOf is nil where no loops can be joined, or tensor cores cannot compute them.
// The program is joined with symbolic sizes; which tilings that is right for is a matter of
// applies.
func onlineEstimateOf(p *symtile.Program, s device.Spec) *onlineEstimate {
	q := p.Online()
	if q == p || !s.Generated() {
		return nil
	}
	var loops []*symtile.Loop
	for _, l := range topLoops(q.Body) {
		if l.Online != nil && l.Online.Deviation < 0 {
			loops = append(loops, l)
		}
	}
	if len(loops) != 1 {
		return nil
	}
	m, err := newPlainEstimate(q, s)
	if err != nil {
		return nil
	}
	o := &onlineEstimate{estimate: m, loop: loops[0], scores: -1}
	if !o.findScores() {
		return nil
	}
	o.divide()
	o.hidden, err = mask.Of(q, q.Ops[o.loop.Online.Statistic].Args[0])
	if err != nil {
		o.hidden = mask.Mask{}
	}
	// Warps multiply, and operands come by cp.async.
	for k := range o.groups {
		clear(o.groups[k])
	}
	for n := range o.readBy {
		o.readBy[n] = -1
	}
	return o
}

// findScores finds the only product of an iteration, and reports whether tensor cores can
// compute it and those that follow.
func (o *onlineEstimate) findScores() bool {
	dots := 0
	for n, op := range o.p.Ops {
		if op.Code != hlo.OpDot {
			continue
		}
		if !o.tensor[0][n] || o.p.Ops[op.Args[0]].Instr.Shape.DType.Size() != 2 {
			return false
		}
		if !slices.Contains(o.loop.Accumulators, n) {
			o.scores = n
			dots++
		}
	}
	return dots == 1 && len(o.loop.Accumulators) > 1
}

// divide finds the dimensions of rows, batches and columns: the tile ids that occur in the
// offsets of the scores tell which dimension of the tiling numbers what.
func (o *onlineEstimate) divide() {
	op := o.p.Ops[o.scores]
	reduced := o.p.Ops[o.loop.Online.Statistic].Instr.Attrs.Dimensions
	batch := len(op.Instr.Attrs.LHSBatch)
	left := op.Args[0]
	for d := range op.Tile {
		over := o.extents.OverDim(o.scores, d)
		switch {
		case slices.Contains(reduced, int64(d)):
			if d == batch {
				left = op.Args[1]
			}
		case d < batch:
			o.single |= over
		default:
			o.rows |= over
		}
	}
	o.fixed = usedBy(o.p, []int{left}, nil)
	for k, d := range o.p.Space.Dims {
		seen := o.rows.Has(k) || o.single.Has(k)
		for _, list := range o.loop.Online.FusedDims {
			seen = seen || slices.Contains(list, k)
		}
		if !seen && d.Extent > 0 {
			o.whole |= 1 << k
		}
	}
}

// applies reports whether the code generator takes the current tiling: the dimensions that
// are joined have tiles of one size, several of them; a tile has one matrix, all columns of
// the results, and the whole of the dimension that scores are contracted over.
func (o *onlineEstimate) applies() bool {
	first := o.loop.Online.FusedDims[0]
	tiling := o.extents.Tiling()
	trips := 1.0
	for i, k := range first {
		trips *= o.extents.Trips(k)
		for _, list := range o.loop.Online.FusedDims {
			if i >= len(list) || tiling[list[i]] != tiling[k] {
				return false
			}
		}
	}
	for k := range o.p.Space.Dims {
		if o.single.Has(k) && tiling[k] != 1 ||
			o.whole.Has(k) && o.extents.Trips(k) > 1 {
			return false
		}
	}
	return trips > 1 && int64(o.columns())%mmaSteps == 0
}

// mmaSteps is the columns of a step of mma.sync for 16-bit floats.
const mmaSteps = mmaBytes / 2

// columns and tileRows are the sides of a tile of scores.
func (o *onlineEstimate) columns() float64 {
	n := 1.0
	for _, d := range o.p.Ops[o.loop.Online.Statistic].Instr.Attrs.Dimensions {
		n *= float64(o.sizes(o.scores)[d])
	}
	return n
}
func (o *onlineEstimate) tileRows() float64 { return o.elements(o.scores) / o.columns() }

// exponentialLanes is the operations of the arithmetic units that an exponential takes the
// time of: 16 results of an SM and clock against 128 (CUDA C++ Programming Guide,
// Arithmetic Instructions).
const exponentialLanes = 8

// joined estimates the current tiling with online=1; without such loops it takes forever.
func (m *estimate) joined(t symtile.Tiling, programs float64, k knobs) candidate {
	if m.online == nil {
		endless := math.Inf(1)
		return candidate{tiling: t, knobs: k, terms: terms{endless}, seconds: endless}
	}
	m.online.known = m.known
	return m.online.candidate(t, programs, k)
}

// candidate estimates the current tiling with knobs.
func (o *onlineEstimate) candidate(t symtile.Tiling, programs float64, k knobs) candidate {
	c := candidate{tiling: t, knobs: k, unit: unitMMA}
	byGroups := k.online == byWarpgroups
	if byGroups {
		c.unit = unitWGMMA
	}
	if k.stages < 2 || k.splitk > 1 || k.epilogue > 1 || !o.applies() || byGroups && !o.grouped(k) {
		c.terms = terms{math.Inf(1)}
		c.seconds = math.Inf(1)
		return c
	}
	l := o.work(&c, o.visible(programs))
	o.store(&c, &l)
	c.terms = o.terms(
		c, programs, l, o.distinctBytes,
	)
	if o.spills(c) > 0 && o.known == nil {
		c.terms = terms{math.Inf(1)}
	}
	c.transferred = programs * l.bytes
	c.inFlight = 1 + c.shared
	c.seconds = c.terms.total()
	c.threads = programs * float64(k.warps*device.WarpThreads)
	return c
}

// work is the work of a block that computes a share of the iterations.
func (o *onlineEstimate) work(c *candidate, share float64) blockCost {
	threads := float64(
		c.knobs.warps * device.WarpThreads,
	)
	l := blockCost{
		exposed: 2 * latency,
		lanes:   prologue * threads,
		slots:   float64(c.knobs.stages),
	}
	clear(o.loadedBytes)
	c.iterations = o.iterationCount() * share
	for n, op := range o.p.Ops {
		if o.extents.Duplicate(n) {
			continue
		}
		runs := o.runs(n)
		if o.fixed[n] {
			runs = 1
		}
		runs = max(1, runs*share)
		switch {
		case op.Code == hlo.OpParameter:
			o.loadParameter(n, c.knobs, runs, &l)
		case op.Code == hlo.OpDot:
			o.multiply(n, c, &l)
		case op.Code == hlo.OpReduce:
			o.compute(
				o.elements(op.Args[0]),
				runs, 1, c, &l,
			)
		case op.Code == hlo.OpExponential:
			o.compute(
				o.elements(n), runs,
				2+exponentialLanes, c, &l,
			)
		case op.Code.Elementwise():
			o.compute(
				o.elements(n), runs, 1,
				c, &l,
			)
		}
	}
	// A warp waits for the products of scores before it computes weights, and for these
	// before it multiplies: its two kinds of work do not overlap, those of others do, as
	// those of other warpgroups of the block.
	beside := 1.0
	if c.knobs.online == byWarpgroups {
		beside = float64(c.knobs.warps * device.WarpThreads / device.WarpgroupThreads)
	}
	l.exposed += min(
		l.chain,
		l.arithmeticCycles(o.spec.Rates),
	) / beside
	l.ring = latency * (c.iterations - 1)
	c.shared *= float64(c.knobs.stages)
	o.holdLeft(c, &l)
	c.converted = c.shared
	return l
}

// iterationCount is the iterations of the loop.
func (o *onlineEstimate) iterationCount() float64 {
	n := 1.0
	for _, k := range o.loop.Dims {
		n *= o.extents.Trips(k)
	}
	return n
}

// visible is the share of the iterations that blocks do not skip, because a mask hides all
// of their scores: the mean, and with few blocks an SM that of the longest.
func (o *onlineEstimate) visible(programs float64) float64 {
	if len(o.hidden.Bounds) == 0 {
		return 1
	}
	arg := o.p.Ops[o.loop.Online.Statistic].Args[0]
	mean, longest := o.hidden.Visible(
		o.p.Ops[arg].Instr.Shape.Dims, o.sizes(arg),
		o.p.Ops[o.loop.Online.Statistic].Instr.Attrs.Dimensions,
	)
	waves := max(1, programs/float64(max(1, o.spec.SMs)))
	return mean + max(0, longest-mean)/waves
}

// paddedRows is the rows of a tile in whole fragments of each warp.
func (o *onlineEstimate) paddedRows(k knobs) float64 {
	each := float64(mmaM * k.warps)
	return math.Ceil(o.tileRows()/each) * each
}

// contracted is the products of an element of dot n.
func (o *onlineEstimate) contracted(n int) float64 {
	op := o.p.Ops[n]
	all := 1.0
	for _, d := range op.Instr.Attrs.LHSContract {
		all *= float64(o.sizes(op.Args[0])[d])
	}
	return math.Ceil(all/mmaSteps) * mmaSteps
}

// holdLeft adds the left operand of scores: registers, or shared memory that iterations
// read where registers are short.
func (o *onlineEstimate) holdLeft(c *candidate, l *blockCost) {
	bytes := o.paddedRows(c.knobs) * o.contracted(o.scores) * 2
	left := bytes / float64(
		c.knobs.warps*device.WarpThreads,
	) / 4
	scores := o.paddedRows(c.knobs) * o.columns() / float64(
		c.knobs.warps*device.WarpThreads,
	)
	if c.knobs.online == byWarpgroups {
		c.shared += bytes
		return
	}
	if c.partials+scores+left <= heldRegisters {
		c.operands += left
		c.shared = max(c.shared, bytes)
		return
	}
	c.shared += bytes
	l.traffic += bytes * c.iterations
}

// compute adds operations on elements that threads hold in registers, each of so many
// operations. Elements do not wait for each other, so that about eight of a thread are
// computed at the same time.
func (o *onlineEstimate) compute(elements, runs, each float64, c *candidate, l *blockCost) {
	threads := float64(
		c.knobs.warps * device.WarpThreads,
	)
	slots := math.Ceil(elements / threads)
	l.lanes += slots * threads * runs * each
	l.steps += math.Ceil(slots/8) * runs
}

// multiply adds a product of the loop. Its sums are in registers; those of scores only in
// an iteration, beside fragments of operands. Results of the weights take no registers of
// their own: they replace the scores that they are computed from.
func (o *onlineEstimate) multiply(n int, c *candidate, l *blockCost) {
	warps := float64(c.knobs.warps)
	rows := o.paddedRows(c.knobs)
	cols := math.Ceil(
		o.elements(n)/o.tileRows()/mmaN,
	) * mmaN
	depth := o.contracted(n)
	if c.knobs.online == byWarpgroups {
		o.multiplyByGroups(n, cols, depth, c, l)
		return
	}
	rate := o.spec.Rates.Tensor(hlo.F16)
	if o.spec.Warpgroups() {
		rate *= mmaShare
	}
	l.tensor += rows * cols * depth * c.iterations / rate
	each := mmaM * mmaN * mmaSteps * device.SubPartitions / rate
	fragments := rows / warps / mmaM * cols / mmaN
	beside := math.Ceil(warps / device.SubPartitions)
	l.chain += c.iterations * depth / mmaSteps *
		max(mmaLatency, fragments*each*beside)
	// Tiles are written once and read by each warp.
	bytes := cols * depth * 2
	l.traffic += bytes * (1 + warps) * c.iterations
	c.shared += bytes
	held := rows * cols / (warps * device.WarpThreads)
	if n == o.scores {
		c.operands += held
		return
	}
	// Sums are rescaled in each iteration.
	c.partials += held
	c.operands += cols / mmaN * 2
	l.lanes += rows * cols * c.iterations
}

// groupLatency is the cycles in which nothing follows a warpgroup's last product, as between
// the slots of other rings.
const groupLatency = perSlot

// multiplyByGroups adds a product of warpgroups, each of which reads the right operand, and
// for scores its part of the left one, from shared memory. Weights are rounded to registers
// of their own.
func (o *onlineEstimate) multiplyByGroups(n int, cols, depth float64, c *candidate, l *blockCost) {
	rows := o.paddedRows(c.knobs)
	// Products of a warpgroup use all tensor cores of an SM, as those of others do.
	cycles := rows * cols * depth * c.iterations / o.spec.Rates.Tensor(hlo.F16)
	l.tensor += cycles
	l.chain += cycles + groupLatency*c.iterations
	bytes := cols * depth * 2
	l.traffic += bytes * (1 + rows/groupRows) * c.iterations
	c.shared += bytes
	held := rows * cols / float64(c.knobs.warps*device.WarpThreads)
	if n == o.scores {
		l.traffic += rows * depth * 2 * c.iterations
		c.operands += held + held/2
		return
	}
	c.partials += held
	l.lanes += rows * cols * c.iterations
}

// grouped reports whether warpgroups can have the loop of the current tiling: 64 rows each,
// and operands that tensor copies make.
func (o *onlineEstimate) grouped(k knobs) bool {
	if !o.spec.Warpgroups() ||
		k.warps*device.WarpThreads%device.WarpgroupThreads != 0 ||
		o.tileRows() > float64(mmaM*k.warps) || o.columns() > maxBoxExtent {
		return false
	}
	// Ops come after their arguments; what follows from scores is in registers.
	after := make([]bool, len(o.p.Ops))
	for n, op := range o.p.Ops {
		after[n] = n == o.scores || slices.ContainsFunc(op.Args, func(a int) bool { return after[a] })
		for _, a := range op.Args {
			for op.Code == hlo.OpDot && movesOnly(o.p.Ops[a]) {
				a = o.p.Ops[a].Args[0]
			}
			// A row of a chunk has 32 bytes or more.
			shape := o.p.Ops[a].Instr.Shape
			if op.Code == hlo.OpDot && !after[a] &&
				(o.p.Ops[a].Code != hlo.OpParameter || o.sizes(a)[majorToMinor(shape)[shape.Rank()-1]]%mmaSteps != 0) {
				return false
			}
		}
	}
	return true
}

// tilings are those that online loops take: rows and columns of each offered size, with
// one size for the dimensions that are joined. Of all tilings these are few, and a sample
// that is drawn from the whole space hardly meets any of them.
func (o *onlineEstimate) tilings(look func(symtile.Tiling)) {
	space := o.p.Space
	t := make(
		symtile.Tiling, len(space.Dims),
	)
	var choose func(k int)
	choose = func(k int) {
		if k == len(t) {
			if o.p.Check(t) == nil {
				look(slices.Clone(t))
			}
			return
		}
		sizes := space.Sizes(k)
		switch joined := o.joinedWith(k); {
		case joined < k:
			sizes = t[joined : joined+1]
		case o.single.Has(k):
			sizes = []int64{1}
		case o.whole.Has(k):
			sizes = []int64{slices.Max(sizes)}
		}
		for _, size := range sizes {
			t[k] = size
			choose(k + 1)
		}
	}
	choose(0)
}

// joinedWith is the first dimension whose tiles are those of dimension k.
func (o *onlineEstimate) joinedWith(k int) int {
	first := k
	for _, list := range o.loop.Online.FusedDims {
		i := slices.Index(list, k)
		for _, other := range o.loop.Online.FusedDims {
			if i >= 0 && i < len(other) {
				first = min(first, other[i])
			}
		}
	}
	return first
}
