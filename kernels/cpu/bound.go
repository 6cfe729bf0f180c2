package cpu

import (
	"container/heap"
	"math"
	"math/bits"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A bounds has lower bounds of the prices of all tilings that begin with some sizes, with any
// knobs that are offered. Such a bound counts only what no choice of the open sizes avoids:
//
//   - arithmetic and movement, as tiles of any size together cover an array at least once;
//   - starts of tile programs, of iterations and of tile ops, which are fewest where open
//     dimensions are one tile;
//   - each byte of the arrays once from every level that does not keep them;
//   - lanes that idle once the number of tile programs is known, the launch, and loops over
//     dimensions that are known to have several tiles.
//
// What is left out counts 0: short rows, narrow tiles, scratch, masks and what is read again
// are not monotone in the sizes of tiles, and depend mostly on the last dimensions, which
// are open until a tiling is priced as a whole. Sizes of tiles are not taken to be monotone
// either: what a side is at least is tabulated over all sizes of its dimension.
//
// Of corpus fusions the bound of a whole tiling is 0.14 to 0.71 of its price, on average over
// a spread sample; small tiles have the lowest, and are far from the best. To prove that no
// tiling is cheaper than the best takes 30 to 249 prices in spaces of 9,000 to 73,695.
type bounds struct {
	x    *pricer
	ways []*programBounds // of the program, and of that with joined loops
	// The parts that a contraction may be divided into: a tiling with few tile programs has
	// more of them to divide among the lanes.
	parts []float64
	rate  float64 // of dots: the fastest way of multiplying that is offered
	past  bool    // outputs may be written past the caches by a knob
	dot   bool    // there is one
}

// newBounds prepares the bounds of a search: about a tenth of a millisecond for a fusion of the
// corpus, most of it to tabulate the sides of tiles.
func newBounds(s *search) (*bounds, error) {
	b := &bounds{
		x:     s.pricer,
		parts: []float64{1},
		rate:  s.bytes,
	}
	f := s.facts
	if s.divided != nil && f.lanes > 1 {
		for _, n := range splitParts {
			b.parts = append(b.parts, float64(n))
		}
	}
	if !s.foreign {
		for _, way := range f.halves {
			how := f.half.products(way)
			rate := s.prior.half(how, s.spec.vector)
			b.rate = max(b.rate, rate)
		}
	}
	b.dot = f.dot
	inside := beyondSecond * float64(s.spec.Second)
	b.past = !f.dot && f.writes > inside
	for _, c := range []*counter{s.plain, s.joined} {
		if c == nil {
			continue
		}
		way, err := newProgramBounds(c, s.program.Space)
		if err != nil {
			return nil, err
		}
		b.ways = append(b.ways, way)
	}
	return b, nil
}

// below is at most the price of each tiling that begins as t does, whose other sizes, those
// of the open dimensions, have to be the extents.
func (b *bounds) below(t symtile.Tiling, open symtile.DimSet) float64 {
	least := math.Inf(1)
	for _, way := range b.ways {
		least = min(least, way.seconds(b, t, open))
	}
	return least
}

// A programBounds counts for one program, at tilings whose open dimensions are one tile.
type programBounds struct {
	c *counter // its counts are not used: it may have counted another tiling
	// Extents at the sizes that are known. Programs, trips and runs are those of one tile in
	// each open dimension, and so the fewest that any completion has.
	extents *symtile.Extents
	// Of each op: the sizes of its tile, and the dimensions that are loops around it, or tile
	// programs, wherever they have several tiles.
	factors  [][]factor
	repeated []symtile.DimSet
	open     symtile.DimSet // whose sizes are not known
	visible  float64        // at least, of the iterations of a loop that a mask hides
	// Ops that may compute what an earlier one has computed.
	again []bool
	// Of each array, the bytes that come from afar; slot 0 is for all outputs that go through
	// the caches. Those that may not are in counts.late, a field that has no other use here.
	distinct []float64
	counts   counts // in the units of those of a counter, each too low rather than too high
}

// A factor is one side of a tile.
type factor struct {
	deps symtile.DimSet // sizes that it depends on
	dim  int            // the only one of these; −1: there are others, or none
	// Over the sizes of that dimension, the least side, side times tiles, and side for each
	// element of a tile times all elements of the dimension.
	least, covers, spreads float64
	most                   float64 // the longest side
}

// newProgramBounds tabulates the sides of tiles, over the proposals for each dimension.
func newProgramBounds(c *counter, space *symtile.Space) (*programBounds, error) {
	x, err := symtile.NewExtents(c.p)
	if err != nil {
		return nil, err
	}
	w := &programBounds{
		c:        c,
		extents:  x,
		factors:  make([][]factor, len(c.ops)),
		repeated: make([]symtile.DimSet, len(c.ops)),
		again:    make([]bool, len(c.ops)),
		distinct: make([]float64, 1+len(c.p.Fusion.Params)),
		visible:  leastVisible(c),
	}
	dims := c.p.Space.Dims
	type computation struct {
		instr *hlo.Instr
		code  hlo.Opcode
	}
	met := map[computation]bool{}
	for n, op := range c.p.Ops {
		same := computation{op.Instr, op.Code}
		w.again[n], met[same] = met[same], true
		for _, d := range op.Tile {
			f := newFactor(d.Size, dims)
			w.factors[n] = append(w.factors[n], f)
		}
	}
	t := wholeTiling(dims)
	for k := range dims {
		for n, size := range space.Sizes(k) {
			t[k] = size
			x.Set(t)
			w.tabulate(k, n == 0)
		}
		t[k] = max(1, dims[k].Extent)
	}
	return w, nil
}

// newFactor is a side that is not tabulated.
func newFactor(size index.Expr, dims []symtile.Dim) factor {
	all := math.Inf(1)
	f := factor{
		dim:     -1,
		least:   all,
		covers:  all,
		spreads: all,
	}
	for _, v := range size.Vars() {
		k := slices.IndexFunc(dims, func(d symtile.Dim) bool {
			return d.Size == v
		})
		if k < 0 {
			f.deps = math.MaxUint64 // never known
		} else {
			f.deps |= 1 << k
		}
	}
	if bits.OnesCount64(uint64(f.deps)) == 1 {
		f.dim = bits.TrailingZeros64(uint64(f.deps))
	}
	return f
}

// wholeTiling has one tile in each dimension.
func wholeTiling(dims []symtile.Dim) symtile.Tiling {
	t := make(symtile.Tiling, len(dims))
	for k, d := range dims {
		t[k] = max(1, d.Extent)
	}
	return t
}

// tabulate takes over the sides of tiles at one size of a dimension, the smallest first. With
// that size in one dimension and one tile in the others, an op whose loops have the dimension
// is in them whatever the other sizes are: they follow its tile ids, or are its accumulator's.
func (w *programBounds) tabulate(k int, smallest bool) {
	x := w.extents
	dim := &w.c.p.Space.Dims[k]
	extent := float64(max(1, dim.Extent))
	size := float64(x.Tiling()[k])
	parallel := dim.Kind == symtile.Parallel
	for n := range w.factors {
		if smallest && (parallel || x.Loops(n).Has(k)) {
			w.repeated[n] |= 1 << k
		}
		sizes := x.Sizes(n)
		for j := range w.factors[n] {
			f := &w.factors[n][j]
			if f.dim != k {
				continue
			}
			side := float64(sizes[j])
			f.least = min(f.least, side)
			f.most = max(f.most, side)
			all := side * x.Trips(k)
			f.covers = min(f.covers, all)
			all = side * extent / size
			f.spreads = min(f.spreads, all)
		}
	}
}

// A coverage multiplies sides of tiles with the times that something is done with them. A
// dimension that is open is covered by all of its tiles together, once.
type coverage struct {
	w     *programBounds
	times symtile.DimSet // dimensions whose tiles are counted in elements, or may be
	value float64
}

// cover begins with the times that op n runs.
func (w *programBounds) cover(n int) coverage {
	return coverage{w, w.repeated[n], w.runs(n)}
}

// runs is at least how often op n runs in all tile programs.
func (w *programBounds) runs(n int) float64 {
	runs := w.extents.Programs() * w.extents.Runs(n)
	if w.c.within[n] {
		runs *= w.visible
	}
	return runs
}

// visibleSlack is by how much shares of a mask's tiles differ that few rows are looked at for.
const visibleSlack = 0.02

// leastVisible is at most the share of the iterations that a mask leaves of a loop at any
// tiling: with tiles of one element nothing is computed that is hidden.
func leastVisible(c *counter) float64 {
	if len(c.hidden.Bounds) == 0 {
		return 1
	}
	dims := c.ops[c.scores].op.Instr.Shape.Dims
	ones := make([]int64, len(dims))
	for d := range ones {
		ones[d] = 1
	}
	share, _ := c.hidden.Visible(dims, ones, c.reduced)
	return max(0, share-visibleSlack)
}

// side multiplies by a side of the tile of op n.
func (v *coverage) side(n, j int) {
	f := &v.w.factors[n][j]
	switch {
	case f.deps&v.w.open == 0:
		v.value *= float64(v.w.extents.Sizes(n)[j])
	case f.dim < 0:
	case v.times.Has(f.dim):
		v.times &^= 1 << f.dim
		v.value *= f.covers
	default:
		v.value *= f.least
	}
}

// sides multiplies by all sides of the tile of op n.
func (v coverage) sides(n int) coverage {
	for j := range v.w.factors[n] {
		v.side(n, j)
	}
	return v
}

// elements is at least the elements of tiles of op a, each time that op n runs.
func (w *programBounds) elements(a, n int) float64 {
	return w.cover(n).sides(a).value
}

// seconds is the lower bound of the prices of the program at tilings that begin as t does.
func (w *programBounds) seconds(b *bounds, t symtile.Tiling, open symtile.DimSet) float64 {
	w.open = open
	x := w.extents
	x.Set(t)
	k := &w.counts
	*k = counts{}
	k.programs = x.Programs()
	k.bodies = k.programs
	several := x.Several()
	for n, dims := range w.c.loops {
		if w.c.own[n]&several != 0 {
			k.bodies += k.programs * x.Product(dims) * w.visible
		}
	}
	several &^= w.c.idle
	for d, dim := range w.c.p.Space.Dims {
		if dim.Kind == symtile.Sequential && several.Has(d) {
			k.loops++
		}
	}
	for n, info := range w.c.ops {
		if info.running == nil && info.lanes < 0 && !info.packed && !w.again[n] {
			w.op(n)
		}
	}
	w.arrays(b)
	return w.least(b)
}

// op counts what an op does at least. It follows counter.op, which is where each count is
// explained.
func (w *programBounds) op(n int) {
	k := &w.counts
	info := &w.c.ops[n]
	runs := w.runs(n)
	k.runs += runs
	if info.kind == opRenames || info.scattered >= 0 ||
		info.places >= 0 || info.joins >= 0 {
		return
	}
	k.steps += runs
	all := w.elements(n, n)
	rows := runs
	switch info.kind {
	case opScatters:
		// A bound from below: no update need fall into a tile.
		return
	case opMultiplies:
		w.dot(n, runs)
	case opReduces:
		each := w.elements(info.op.Args[0], n)
		rows = each / w.row(info.op.Args[0])
		if info.selects {
			k.moved += each
			break
		}
		k.moved += 3 * float64(info.operands) * each
		if info.function {
			k.functions += each * info.weight
		} else {
			k.moved += each * info.weight
		}
		if info.scalar {
			k.scalar += each
		}
	default:
		w.c.boundArithmetic(k, info, all)
		rows = w.rows(n, runs, all)
	}
	k.rows += rows
	if info.kind == opPointwise || info.direct {
		return
	}
	touched := all * info.width
	for _, a := range info.op.Args {
		if w.c.ops[a].direct {
			touched += all * info.width
			continue
		}
		if w.c.ops[a].places < 0 {
			touched += w.elements(a, n) * w.c.ops[a].width
		}
	}
	k.touched += touched
}

// boundArithmetic is arithmetic, counted elsewhere.
func (c *counter) boundArithmetic(k *counts, info *opCount, elements float64) {
	kept := c.counts
	c.counts = *k
	c.arithmetic(info, elements)
	*k, c.counts = c.counts, kept
}

// rows is at least the rows of an op that computes or moves elements.
func (w *programBounds) rows(n int, runs, all float64) float64 {
	info := &w.c.ops[n]
	switch {
	case info.op.Code == hlo.OpGather:
		return 0 // slices may be long
	case info.kind != opArranges:
		return runs
	case info.op.Code == hlo.OpReverse:
		w.counts.strided += all
	case info.op.Code == hlo.OpTranspose:
		if !info.keepsLast {
			w.counts.strided += all
		}
	}
	row := w.row(n)
	if w.c.movesOut(n) {
		row = max(row, periodicElements)
	}
	return all / row
}

// row is at most the last side of the tile of op n that is not of one element.
func (w *programBounds) row(n int) float64 {
	most := 1.0
	sizes := w.extents.Sizes(n)
	for j, f := range slices.Backward(w.factors[n]) {
		switch {
		case f.deps&w.open == 0:
			if sizes[j] > 1 {
				return max(most, float64(sizes[j]))
			}
		case f.dim < 0:
			return math.Inf(1)
		default:
			most = max(most, f.most)
			if f.least > 1 {
				return most
			}
		}
	}
	return most
}

// dot counts what a dot multiplies and packs at least.
func (w *programBounds) dot(n int, runs float64) {
	k := &w.counts
	info := &w.c.ops[n]
	v := w.cover(n).sides(n)
	k.passes += v.value
	for _, d := range info.contracted {
		v.side(info.op.Args[0], int(d))
	}
	k.products += v.value
	k.dots += 2 * v.value
	left := w.elements(info.op.Args[0], n)
	right := w.elements(info.op.Args[1], n)
	k.left += left
	k.right += right
	k.pieces += 2 * runs
	for side, elements := range [...]float64{left, right} {
		if info.packs[side] && !w.c.ops[info.op.Args[side]].packed {
			k.strided += elements
		}
	}
}

// arrays counts each byte of the arrays once.
func (w *programBounds) arrays(b *bounds) {
	clear(w.distinct)
	past := float64(b.x.past)
	for i := range w.c.traffic.accesses {
		a := &w.c.traffic.accesses[i]
		if w.again[a.op] ||
			a.gathered || a.once != 0 ||
			w.c.ops[a.op].scattered >= 0 {
			continue
		}
		bytes := min(a.bytes, w.touches(a)*a.width)
		switch {
		case a.array >= 0:
			d := &w.distinct[1+a.array]
			*d = max(*d, bytes)
		case b.past || a.bytes >= past:
			w.counts.late += bytes // through the outermost level alone, if it is written so
		default:
			w.distinct[0] += 2 * bytes
		}
	}
}

// touches is at least the elements of an array that all its tiles have inside of it. As in
// traffic.set the last tile along a known size has what is left of the extent; along an open
// one it is at least half full on average, since there is at least one more than that.
func (w *programBounds) touches(a *arrayAccess) float64 {
	times := w.repeated[a.op] & a.dims
	if a.array < 0 {
		times = 0
		for _, d := range w.c.traffic.parallel {
			times |= a.dims & (1 << d)
		}
	}
	elements := 1.0
	t := w.extents.Tiling()
	for d, dim := range w.c.p.Space.Dims {
		if !a.dims.Has(d) || w.open.Has(d) {
			continue
		}
		elements *= float64(max(1, dim.Extent))
		elements /= float64(t[d])
		if !times.Has(d) {
			elements /= w.extents.Trips(d)
		}
	}
	covered := times & w.open
	sizes := w.extents.Sizes(a.op)
	for j, f := range w.factors[a.op] {
		switch {
		case f.deps&w.open == 0:
			elements *= float64(sizes[j])
		case f.dim < 0:
		case covered.Has(f.dim):
			covered &^= 1 << f.dim
			elements *= f.spreads
		default:
			elements *= f.least
		}
	}
	spread := times & w.open &^ covered
	ragged := a.dims & w.open &^ spread
	for range bits.OnesCount64(uint64(ragged)) {
		elements /= 2 // tiles are outside by less than half, on average
	}
	return elements
}

// least is the lowest price of what was counted. Programs that are mostly products also pack;
// others with products have at least twice as many other element operations, half of which
// are functions or not.
func (w *programBounds) least(b *bounds) float64 {
	k := &w.counts
	if k.products == 0 {
		return w.shared(b, 0)
	}
	products := packLeft*k.left + packRight*k.right
	products += accumulateCost * k.passes
	products += jumpCost * k.pieces
	products += dotRunCost * k.runs
	packed := w.shared(b, products*2/b.x.flops)
	k.moved = max(k.moved, k.products)
	return min(packed, w.shared(b, 0))
}

// shared is the lowest price over the knobs that decide how lanes share the work: all lanes,
// the work divided evenly but for lanes that idle, or one lane, which nobody wakes.
func (w *programBounds) shared(b *bounds, packing float64) float64 {
	k := &w.counts
	over := k.bodies * bodySeconds
	over += k.steps * stepSeconds
	over += k.rows * rowSeconds
	over += k.strided * stridedSeconds
	over += k.scalar * scalarSeconds
	all := packing + over*b.x.slowness
	all += w.base(b) * (1 + loopCost*b.loops(k))
	lanes := float64(max(1, b.x.device.Lanes))
	shared := all / lanes * (1 + w.idle(b, lanes))
	shared += wakeSeconds * b.x.slowness * (min(lanes, k.programs) - 1)
	return launchSeconds + min(all, shared)
}

// loops are the fewest that a lane runs: parts of a reduction may have an iteration each.
func (b *bounds) loops(k *counts) float64 {
	if len(b.parts) > 1 && !b.dot {
		return 0
	}
	return k.loops
}

// idle is at least the share of the time in which lanes have no tile program.
func (w *programBounds) idle(b *bounds, lanes float64) float64 {
	k := &w.counts
	for _, d := range w.c.traffic.parallel {
		if w.open.Has(d) {
			return 0
		}
	}
	idle := math.Inf(1)
	for _, parts := range b.parts {
		longer := uneven(k.programs*parts, lanes)
		idle = min(idle, longer-1)
	}
	if b.dot {
		idle *= min(1, k.products/parallelWork)
	}
	return max(0, idle)
}

// base is the seconds of arithmetic and traffic on one lane. Terms that overlap are each at
// their least, so that the longest of them and a share of the others are, too.
func (w *programBounds) base(b *bounds) float64 {
	k := &w.counts
	x := b.x
	longest, sum := 0.0, 0.0
	add := func(seconds float64) {
		longest = max(longest, seconds)
		sum += seconds
	}
	add(k.dots / (x.flops * b.rate))
	add(elementFLOPs * k.moved / x.flops)
	add(functionFLOPs * k.functions / x.flops)
	afar := 0.0
	for _, bytes := range w.distinct {
		afar += bytes
	}
	levels := x.device.Levels
	for n := range levels {
		outermost := n == len(levels)-1
		switch {
		case n == 0:
			add(k.touched / x.bandwidth[0])
		case outermost && x.kept:
		case outermost:
			add((afar + k.late) / x.bandwidth[n])
		default:
			add(afar / x.bandwidth[n])
		}
	}
	return longest + (sum-longest)*hiddenShare
}

// lowerBound is that of the tilings that begin as t does: see bounds.below. It is 0 where
// there is no bound.
func (s *search) lowerBound(t symtile.Tiling, open symtile.DimSet) float64 {
	if s.bounds == nil {
		b, err := newBounds(s)
		if err != nil {
			return 0
		}
		s.bounds = b
	}
	return s.bounds.below(t, open)
}

// A bounded search looks at partial tilings, the first sizes of one, in the order of their
// bounds (best-first branch and bound: E. L. Lawler and D. E. Wood, Branch-and-Bound Methods: A
// Survey, Operations Research 14, 1966). A partial tiling that no legal one begins with is
// never met, as far as the tables of the space say, so that there is at most a partial tiling
// for each tiling that a list of all would have.
type bounded struct {
	*search
	next  *symtile.Completions
	open  partialTilings
	sizes []int64
	try   symtile.Tiling
}

// A partialTiling is the first sizes of a tiling.
type partialTiling struct {
	below float64
	sizes symtile.Tiling
}

// PartialTilings are a heap, the least bound first.
type partialTilings []partialTiling

func (p partialTilings) Len() int           { return len(p) }
func (p partialTilings) Less(i, j int) bool { return p[i].below < p[j].below }
func (p partialTilings) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *partialTilings) Push(x any)        { *p = append(*p, x.(partialTiling)) }
func (p *partialTilings) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

// newBounded begins with all tilings.
func newBounded(s *search) *bounded {
	return &bounded{
		search: s,
		next:   s.program.Space.Completions(),
		open:   partialTilings{{}},
		try:    make(symtile.Tiling, len(s.p.Space.Dims)),
	}
}

// look prices tilings that may be cheaper than a limit, at most n and those of one more
// partial tiling. It returns them, and what all tilings cost at least that were not priced.
func (b *bounded) look(limit float64, n int) (all []pricedTiling, below float64) {
	for len(all) < n && len(b.open) > 0 && !b.ended() {
		if b.open[0].below >= limit {
			break
		}
		p := heap.Pop(&b.open).(partialTiling)
		all = b.expand(p.sizes, limit, all)
	}
	below = limit
	if len(b.open) > 0 {
		below = min(below, b.open[0].below)
	}
	return all, below
}

// expand goes on with each size of the next dimension: with the last one, tilings are priced;
// before, partial tilings that may be cheaper than the limit wait for their turn.
func (b *bounded) expand(first symtile.Tiling, limit float64, all []pricedTiling) []pricedTiling {
	n := len(first)
	if n == len(b.try) { // a tiling of no dimension
		return append(all, b.tiling(first))
	}
	open := symtile.DimSet(0)
	for d, dim := range b.p.Space.Dims {
		if d > n {
			open |= 1 << d
			b.try[d] = max(1, dim.Extent)
		}
	}
	copy(b.try, first)
	b.sizes = b.next.After(first, n, b.sizes[:0])
	for _, b.try[n] = range b.sizes {
		next := slices.Clone(b.try[:n+1])
		if open == 0 {
			all = append(all, b.tiling(next))
			continue
		}
		below := b.lowerBound(b.try, open)
		if below < limit {
			heap.Push(&b.open, partialTiling{below, next})
		}
	}
	return all
}
