package cpu

import (
	"math"
	"math/bits"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Traffic says which bytes of the parameters and outputs come through each level of
// memory, by the usual argument of nested loops (Wolf and Lam, A Data Locality
// Optimizing Algorithm, PLDI 1991): walking the nest outwards, what a loop touches
// either fits into the level inside, then each distinct byte comes in once; or one
// iteration fits, then what does not change from iteration to iteration stays; or
// nothing stays. What a tile program keeps in scratch is taken to stay in the first
// two caches.
//
// Tile programs run in the order of their tile ids, the last fastest, split over
// lanes along the first dimensions; with the knob group=, rows of a group faster than
// columns.
type traffic struct {
	// Of each op: its dimensions from minor to major.
	orders [][]int
	// Of each op: dimensions of its tile whose stride is 1.
	unitStride []symtile.DimSet
	// Of each op: of dimensions with digits, at most how many elements the innermost
	// one has; nil without.
	lastDigit [][]int64
	// Of each op: it loads the first or the second ones of pairs of f32, and another op the
	// others, so that vectors of both are loaded at once.
	paired   []bool
	accesses []arrayAccess
	// Of the loops of a tile program, from the inside out.
	body []span
	// Of all parameters and outputs.
	bytes float64
	// The parallel dimensions.
	parallel []int

	// Those of body, then those of the tile programs of a plan.
	spans []span
	// Of one lane along each dimension.
	trips []float64
	// The accesses while a level is computed.
	work []arrayAccess
	most mostTouched
}

// An arrayAccess is a tile of an array that a tile program touches.
type arrayAccess struct {
	op int
	// Parameter number; −1 for an output.
	array int
	// Of the whole array.
	bytes float64
	// Bytes of an element.
	width float64
	// Bytes of one tile inside the array, on average; 0 for a duplicate.
	tile float64
	// Times that the tile is moved in all.
	runs float64
	// What is in the array of all tiles together: a part where they are those of a longer
	// dimension, as of an operand of a concatenate.
	inside float64
	// Dimensions of the space that its place depends on.
	dims symtile.DimSet
	// Dimensions along which only the first tile program touches it.
	once symtile.DimSet
	// Its place in mostTouched: 1 + array.
	slot int
	// An output that is written past the caches.
	past bool
	// Its elements are read by gathers where they are.
	gathered bool
	// Its elements are converted one at a time (portable.Transfer).
	scalar bool

	// Bytes, while the traffic of a level is added up.
	distinct, moved float64
}

// A span says that accesses lo … hi−1 are in a body (dim −1) or in a loop over the
// tiles of dim; of at most inner of them, or of groups of outer, where those are not
// 0.
type span struct {
	dim, lo, hi  int
	inner, outer float64
}

// count is the iterations of a span over a dimension with so many tiles.
func (s span) count(all float64) float64 {
	switch {
	case s.inner > 0:
		return min(s.inner, all)
	case s.outer > 0:
		return math.Ceil(all / s.outer)
	}
	return all
}

// memoryLine is bytes that memory moves at a time.
const memoryLine = 64

// lateLines are lines at the beginning of a run of bytes that come before those that the
// hardware fetches ahead.
const lateLines = 8

// newTraffic lists the accesses and loops of a program, which are the same for every
// tiling.
func newTraffic(c *counter) (t traffic) {
	for _, shape := range append(
		c.p.Physical.ParamShapes(),
		kernels.OutputShapes(c.p.Physical)...,
	) {
		t.bytes += float64(shape.Bytes())
	}
	for n := range c.p.Ops {
		op := &c.p.Ops[n]
		set := symtile.DimSet(0)
		var digits []int64
		for k, d := range op.Tile {
			if v, known := d.Stride.Value(); known && v == 1 && d.Digits == nil {
				set |= 1 << k
			}
			if last := len(d.Digits) - 1; last >= 0 {
				digits = append(
					digits,
					make([]int64, len(op.Tile)-len(digits))...,
				)
				digits[k] = 1
				v, known := d.Digits[last].Stride.Value()
				if known && v == 1 {
					digits[k] = d.Digits[last].Size.Range().Hi
				}
			}
		}
		t.lastDigit = append(t.lastDigit, digits)
		t.unitStride = append(t.unitStride, set)
		t.orders = append(
			t.orders, op.Instr.Shape.MinorToMajor(),
		)
	}
	t.nest(c, c.p.Body, nil)
	t.findPaired(c.p)
	for _, r := range c.p.Roots {
		t.access(c, r.Op, -1)
		last := &t.accesses[len(t.accesses)-1]
		for _, d := range r.Once {
			last.once |= 1 << d
		}
	}
	t.body = append(t.body, span{
		dim: -1,
		hi:  len(t.accesses),
	})
	t.findAgain(1 + len(c.p.Fusion.Params))
	for k, d := range c.p.Space.Dims {
		if d.Kind == symtile.Parallel {
			t.parallel = append(t.parallel, k)
		}
	}
	t.trips = make([]float64, len(c.p.Space.Dims))
	t.work = make([]arrayAccess, len(t.accesses))
	t.spans = make(
		[]span,
		0,
		len(t.body)+2*len(t.parallel),
	)
	return t
}

// findAgain finds whether some array is accessed several times, which mostTouched is for.
func (t *traffic) findAgain(slots int) {
	t.most = make(mostTouched, slots)
	again := false
	for i := range t.accesses {
		a := &t.accesses[i]
		a.slot = 1 + max(-1, a.array)
		again = again ||
			a.slot > 0 && t.most[a.slot] > 0
		t.most[a.slot]++
	}
	if !again {
		t.most = nil
	}
}

// findPaired finds the loads of pairs.
func (t *traffic) findPaired(p *symtile.Program) {
	t.paired = make([]bool, len(p.Ops))
	for i := range t.accesses {
		for j := range i {
			a := &t.accesses[i]
			b := &t.accesses[j]
			x := &p.Ops[a.op]
			y := &p.Ops[b.op]
			if a.array == b.array &&
				x.Instr.Shape.DType == hlo.F32 &&
				arePairs(x.Tile, y.Tile, t.orders[a.op]) {
				t.paired[a.op] = true
				t.paired[b.op] = true
			}
		}
	}
}

// arePairs reports whether two tiles of an array have neighbours along its last dimension, and
// every second element of it.
func arePairs(x, y symtile.Tile, order []int) bool {
	if len(order) == 0 {
		return false
	}
	last := order[0]
	for k, d := range x {
		e := y[k]
		if d.Size != e.Size || d.Stride != e.Stride ||
			d.Digits != nil || e.Digits != nil {
			return false
		}
		if k != last && d.Offset != e.Offset {
			return false
		}
	}
	// Neighbours are one element apart in every tile program.
	d := x[last]
	step := d.Offset.Sub(y[last].Offset)
	apart, known := step.Value()
	if !known || apart != 1 && apart != -1 {
		return false
	}
	// A part of complex numbers is one element of two.
	size, one := d.Size.Value()
	stride, _ := d.Stride.Value()
	return stride == 2 || one && size == 1
}

// nest lists the accesses and loops of a body.
func (t *traffic) nest(
	c *counter, body []symtile.Step, loop *symtile.Loop,
) {
	first := len(t.accesses)
	for _, s := range body {
		if s.Loop != nil {
			inner := len(t.accesses)
			t.nest(c, s.Loop.Body, s.Loop)
			for k := len(s.Loop.Dims) - 1; k >= 0; k-- {
				t.body = append(t.body, span{
					dim: s.Loop.Dims[k],
					lo:  inner,
					hi:  len(t.accesses),
				})
			}
		} else if c.ops[s.Op].kind == opLoads {
			t.access(
				c,
				s.Op,
				int(c.p.Ops[s.Op].Instr.Attrs.Param),
			)
		}
	}
	if loop != nil && len(t.accesses) > first {
		t.body = append(t.body, span{
			dim: -1,
			lo:  first,
			hi:  len(t.accesses),
		})
	}
}

func (t *traffic) access(c *counter, n, array int) {
	shape := c.p.Ops[n].Instr.Shape
	t.accesses = append(t.accesses, arrayAccess{
		op:     n,
		array:  array,
		bytes:  float64(shape.Bytes()),
		width:  float64(max(1, shape.DType.Size())),
		dims:   c.extents.Over(n),
		inside: insideShare(c.p, n),
		scalar: shape.DType.IsFloat() &&
			shape.DType.Size() == 1,
	})
	if array < 0 || !c.ops[n].direct || len(t.orders[n]) == 0 {
		return
	}
	a := &t.accesses[len(t.accesses)-1]
	a.gathered = true
	for _, k := range c.ops[n].gathers { // each slice is at a place of its own
		a.dims |= c.extents.Over(k)
	}
}

// insideShare is how much of the tiles of an op is in its array: masked dimensions, whose
// tiles are those of a dimension of the space, may be shorter than that.
func insideShare(p *symtile.Program, n int) float64 {
	op := &p.Ops[n]
	share := 1.0
	for k, t := range op.Tile {
		if t.Digits != nil || !t.Masked() {
			continue
		}
		for _, d := range p.Space.Dims {
			extent := op.Instr.Shape.Dims[k]
			if t.Size == d.Size && extent < d.Extent {
				share *= float64(extent) / float64(d.Extent)
				break
			}
		}
	}
	return share
}

// set takes over the sizes of the tiling that was counted last, whose last tiles are not
// full along ragged, and counts how parameters and outputs are moved.
func (t *traffic) set(c *counter, ragged symtile.DimSet) {
	x, k := c.extents, &c.counts
	runBytes, pieces := 0.0, 0.0
	for i := range t.accesses {
		a := &t.accesses[i]
		a.tile = 0
		if a.array >= 0 && x.Duplicate(a.op) {
			continue
		}
		a.tile = x.Elements(a.op) * a.width
		for dims := a.dims & ragged; dims != 0; dims &= dims - 1 {
			d := bits.TrailingZeros64(uint64(dims))
			a.tile *= float64(c.p.Space.Dims[d].Extent) /
				(x.Trips(d) * float64(x.Tiling()[d]))
		}
		if !x.Cut(a.op) {
			a.tile *= a.inside
		}
		a.tile = min(a.tile, a.bytes)
		a.runs = k.programs * x.Runs(a.op)
		run := c.contiguous(a.op)
		if a.gathered {
			elements, slice := c.gathered(a.op)
			a.tile, run = min(elements*a.width, a.bytes), slice
		}
		if s := c.ops[a.op].scattered; s >= 0 {
			a.tile *= c.scatterShare(s)
		}
		if a.array < 0 {
			a.runs = k.programs / x.Product(a.once)
			k.steps += k.programs
			k.rows += a.runs *
				x.Elements(a.op) /
				max(c.last(a.op), run)
		}
		bytes := a.tile * a.runs
		if a.scalar {
			k.scalar += bytes / a.width
		}
		runBytes += bytes
		starts := bytes / max(run*a.width, 1)
		pieces += starts
		switch rank := len(t.orders[a.op]); {
		case rank == 0 || bytes == 0:
		case run == 1 && x.Elements(a.op) > 1:
			k.strided += bytes / a.width
			starts = 0
		case run < vectorElements && x.Elements(a.op) > run:
			k.short += bytes / a.width
		}
		k.starts += starts
		k.late += starts * max(1, min(run*a.width/memoryLine, lateLines))
	}
	if k.innerRun = memoryLine; pieces > 0 {
		k.innerRun = runBytes / pieces
	}
}

// order makes spans of the parallel dimensions, the fastest first. Groups are of the
// last two dimensions with several tiles.
func (t *traffic) order(c *counter, group float64) {
	t.spans = append(t.spans[:0], t.body...)
	row, column := -1, -1
	several := c.extents.Several()
	for _, d := range t.parallel {
		if several.Has(d) {
			row, column = column, d
		}
	}
	if group <= 1 || row < 0 {
		row, column = -1, -1
	}
	for n := len(t.parallel) - 1; n >= 0; n-- {
		s := span{dim: t.parallel[n], hi: len(t.accesses)}
		switch {
		case !several.Has(s.dim):
			continue
		case s.dim == column:
			t.spans = append(t.spans, span{
				dim:   row,
				hi:    s.hi,
				inner: group,
			})
		case s.dim == row:
			s.outer = group
		}
		t.spans = append(t.spans, s)
	}
}

// past decides which outputs are written past the caches: as the knob stream= says,
// or those with so many bytes.
func (t *traffic) past(plan kernels.Plan, from int64) {
	knob := plan.Knob("stream", -1)
	for i := range t.accesses {
		if a := &t.accesses[i]; a.array < 0 {
			a.past = knob == 1 ||
				knob < 0 && a.bytes >= float64(from)
		}
	}
}

// pastBytes is the bytes of the outputs that are written past the caches.
func (t *traffic) pastBytes() float64 {
	sum := 0.0
	for _, a := range t.accesses {
		if a.array < 0 && a.past {
			sum += a.bytes
		}
	}
	return sum
}

// through is the bytes that come through a level outside of one that keeps so many
// bytes, for each lane alone or for all of them together. An output that is written to
// a cache is read first (write-allocate) and comes twice; one that is written past the
// caches comes once, through the outermost level only.
func (t *traffic) through(c *counter, keeps float64, lanes float64, alone, outermost bool) float64 {
	copies := 1.0
	for k := range t.trips {
		t.trips[k] = c.extents.Trips(k)
	}
	if alone {
		copies = t.split(lanes)
	}
	copy(t.work, t.accesses)
	if t.bytes <= keeps {
		t.once()
	} else {
		t.run(keeps)
	}
	sum := 0.0
	for i := range t.work {
		sum += t.work[i].moved * copies *
			t.work[i].passes(outermost)
	}
	return sum
}

// once computes what accesses move into something that keeps all arrays: each distinct
// byte once. It is what run computes then.
func (t *traffic) once() {
	for i := range t.work {
		a := &t.work[i]
		a.distinct = a.tile
		for dims := a.dims; dims != 0; dims &= dims - 1 {
			a.distinct *= t.trips[bits.TrailingZeros64(uint64(dims))]
		}
		a.distinct = min(a.distinct, a.bytes)
	}
	t.most.find(t.work)
	for i := range t.work {
		a := &t.work[i]
		a.moved = 0
		if t.most.of(t.work, i) == i {
			a.moved = a.distinct
		}
	}
}

// passes is how often what an access moves comes through a level.
func (a *arrayAccess) passes(outermost bool) float64 {
	switch {
	case a.array >= 0:
		return 1
	case !a.past:
		return 2
	case outermost:
		return 1
	}
	return 0
}

// split gives one lane its trips, when lanes share the tile programs along the first
// dimensions; it returns how many lanes that feeds.
func (t *traffic) split(lanes float64) float64 {
	fed := 1.0
	for _, k := range t.parallel {
		part := math.Floor(min(lanes/fed, t.trips[k]))
		if part > 1 {
			t.trips[k] = math.Ceil(t.trips[k] / part)
			fed *= part
		}
	}
	return fed
}

// run computes what accesses move into something that keeps so many bytes.
func (t *traffic) run(keeps float64) {
	for i := range t.work {
		a := &t.work[i]
		a.distinct = a.tile
		a.moved = a.tile
	}
	for _, s := range t.spans {
		inside := t.work[s.lo:s.hi]
		if s.dim < 0 {
			t.most.keep(inside, keeps)
		} else if trips := s.count(t.trips[s.dim]); trips > 1 {
			t.most.around(inside, s.dim, trips, keeps)
		}
	}
}

// mostTouched is, for the array of each slot, one more than the index of the access
// that touches most of it: the first of several. Slot 0 is for outputs, each of which
// is touched by one access. It is found in one pass, since a parameter may be read at
// hundreds of tiles. It is nil where no array has two accesses.
type mostTouched []int

// find looks at accesses, whose distinct bytes are known.
func (m mostTouched) find(inside []arrayAccess) {
	if m == nil {
		return
	}
	for i := range inside {
		m[inside[i].slot] = 0
	}
	for i := range inside {
		a := &inside[i]
		if best := m[a.slot]; best == 0 || a.distinct > inside[best-1].distinct {
			m[a.slot] = i + 1
		}
	}
}

// of is the access that touches most of what access i touches.
func (m mostTouched) of(inside []arrayAccess, i int) int {
	if m == nil || inside[i].slot == 0 {
		return i
	}
	return m[inside[i].slot] - 1
}

// keep is for accesses that may fit: then each distinct byte comes in once. Of several
// accesses to one array, the one that touches most of it stands for all.
func (m mostTouched) keep(inside []arrayAccess, keeps float64) {
	if m.footprint(inside) > keeps {
		return
	}
	if m != nil {
		m.join(inside)
	}
	for i := range inside {
		if a := &inside[i]; a.distinct < a.moved {
			a.moved = a.distinct
		}
	}
}

// join moves what several accesses to one array move to the one that stands for all.
func (m mostTouched) join(inside []arrayAccess) {
	for i := range inside {
		a := &inside[i]
		if by := m.of(inside, i); by != i {
			inside[by].moved = max(inside[by].moved, a.moved)
			a.moved = 0
		}
	}
}

// around is for a loop over so many tiles of dim.
func (m mostTouched) around(inside []arrayAccess, dim int, trips, keeps float64) {
	stays := m.footprint(inside) <= keeps
	for i := range inside {
		a := &inside[i]
		changes := a.dims.Has(dim)
		if changes {
			a.distinct *= trips
			if a.distinct > a.bytes {
				a.distinct = a.bytes
			}
		}
		if !a.once.Has(dim) && (changes || !stays) {
			a.moved *= trips
		}
	}
	m.keep(inside, keeps)
}

// footprint finds what is touched most, and is the distinct bytes of accesses; of
// several to one array, the largest.
func (m mostTouched) footprint(inside []arrayAccess) float64 {
	sum := 0.0
	if m == nil {
		for i := range inside {
			sum += inside[i].distinct
		}
		return sum
	}
	m.find(inside)
	for i := range inside {
		if m.of(inside, i) == i {
			sum += inside[i].distinct
		}
	}
	return sum
}
