package cost

import (
	"math"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// An access is a tile of an array, or a piece of scratch, that a body touches.
type access struct {
	array   int     // parameter number; −1 for an output, −2 for scratch
	bytes   float64 // of the whole array
	tile    float64 // bytes of one tile inside the array, on average
	touches float64 // times the tile is read or written when it is touched
	dims    uint64  // dimensions of the space that its place depends on
	once    uint64  // dimensions along which only the first tile program touches it
	past    bool    // an output written past the caches

	distinct, moved float64 // bytes, while a level's traffic is added up
}

// A span says that accesses lo … hi−1 are in a body (dim −1) or in a loop over
// the tiles of dim; of at most inner of them, or of groups of outer, when those
// are not 0. Spans are listed from the inside out.
type span struct {
	dim, lo, hi  int
	inner, outer float64
}

func (s span) trips(all float64) float64 {
	switch {
	case s.inner > 0:
		return math.Min(s.inner, all)
	case s.outer > 0:
		return math.Ceil(all / s.outer)
	}
	return all
}

// load is the access of a parameter, which runs times times.
func (m *meter) load(op *symtile.Op, times float64) {
	a := m.memory(op.Instr.Shape, op.Tile)
	a.array = int(op.Instr.Attrs.Param)
	m.accesses = append(m.accesses, a)
	m.pieces(op.Instr.Shape, op.Tile, a.tile*times)
}

// store is the access of an output, by the tile programs that own it.
func (m *meter) store(r symtile.Root) {
	op := &m.p.Ops[r.Op]
	a := m.memory(op.Instr.Shape, op.Tile)
	a.past = m.past(a.bytes)
	times := m.tiles
	for _, d := range r.Once {
		a.once |= 1 << d
		times /= m.trips[d]
	}
	m.accesses = append(m.accesses, a)
	m.sums.Steps += m.tiles
	m.sums.Rows += times * elementsOf(op.Tile) /
		math.Max(lastOf(op.Tile), contiguous(op.Instr.Shape, op.Tile))
	m.pieces(op.Instr.Shape, op.Tile, a.tile*times)
}

// past says whether an output is written past the caches: as the knob stream=
// says, or when it has half the bytes of the last cache.
func (m *meter) past(bytes float64) bool {
	def := int64(0)
	n := len(m.d.Levels)
	if n > 1 &&
		bytes >= float64(m.d.Levels[n-2].Bytes)/2 {
		def = 1
	}
	return m.plan.Knob("stream", def) == 1
}

func (m *meter) memory(shape hlo.Shape, t symtile.Tile) access {
	width := float64(max(1, shape.DType.Size()))
	a := access{
		array:   -1,
		bytes:   float64(shape.Bytes()),
		tile:    elementsOf(t) * width,
		touches: 1,
	}
	for k, d := range m.p.Space.Dims {
		if dependsOn(t, d.Tid) {
			a.dims |= 1 << k
			a.tile *= m.fill[k]
		}
	}
	a.tile = math.Min(a.tile, a.bytes)
	return a
}

func dependsOn(t symtile.Tile, tid index.Expr) bool {
	if _, fixed := tid.Value(); fixed {
		return false
	}
	for _, d := range t {
		for _, v := range d.Offset.Vars() {
			if v == tid {
				return true
			}
		}
	}
	return false
}

// pieces counts the contiguous pieces of memory that bytes moved through a tile
// come in.
func (m *meter) pieces(shape hlo.Shape, t symtile.Tile, bytes float64) {
	width := float64(max(1, shape.DType.Size()))
	m.runBytes += bytes
	m.runs += bytes /
		math.Max(contiguous(shape, t)*width, 1)
	switch run := contiguous(shape, t); {
	case len(t) == 0 || bytes == 0:
	case run == 1 && elementsOf(t) > 1:
		m.sums.Strided += bytes / width
	case run < vector && elementsOf(t) > run:
		m.sums.Short += bytes / width
	}
}

// vector is elements that are computed at a time.
const vector = 8

// contiguous is how many elements of a tile follow each other in memory.
func contiguous(shape hlo.Shape, t symtile.Tile) float64 {
	run := 1.0
	for _, d := range shape.MinorToMajor() {
		if n := len(t[d].Digits); n > 0 {
			if last := t[d].Digits[n-1]; valueOf(last.Stride) == 1 {
				run *= valueOf(last.Size)
			}
			break
		}
		size := valueOf(t[d].Size)
		if valueOf(t[d].Stride) != 1 && size > 1 {
			break
		}
		run *= math.Min(size, float64(shape.Dims[d]))
		if size < float64(shape.Dims[d]) {
			break
		}
	}
	return run
}

// traffic is the bytes that come through level k: what tile ops touch for the
// innermost, what the level inside cannot keep for the others. An output that is
// written to a cache is read first (write-allocate) and comes twice; one that is
// written past the caches comes once, through the outermost level only, also
// when a cache could have kept it.
func (m *meter) traffic(k int) float64 {
	if k == 0 {
		return m.touched
	}
	n := nest{
		m:        m,
		keeps:    math.Inf(1),
		trips:    m.trips,
		accesses: m.accesses,
	}
	copies := 1.0
	last := k == len(m.d.Levels)-1
	if l := m.d.Levels[k-1]; l.Bytes > 0 {
		n.keeps = float64(l.Bytes)
		if l.Shared {
			n.keeps /= m.lanes
		} else {
			n.trips, copies = m.split()
		}
	}
	sum := 0.0
	n.run()
	for _, a := range n.accesses {
		sum += a.moved * copies * a.passes(last)
	}
	return sum
}

// passes is how often what an access moves comes through a level.
func (a access) passes(last bool) float64 {
	switch {
	case a.array != -1:
		return 1
	case !a.past:
		return 2
	case last:
		return 1
	}
	return 0
}

// compulsory is what must come in or go out whatever is kept where.
func (m *meter) compulsory() float64 {
	n := nest{
		m:        m,
		keeps:    math.Inf(1),
		trips:    m.trips,
		accesses: m.accesses,
	}
	n.run()
	sum := 0.0
	for k, a := range n.accesses {
		if a.array >= -1 && !twin(n.accesses, k) {
			sum += a.distinct
		}
	}
	return sum
}

// split gives the trips of one lane, when lanes share the tile programs along
// the first dimensions, and how many lanes that feeds.
func (m *meter) split() (trips []float64, lanes float64) {
	trips = append([]float64(nil), m.trips...)
	lanes = 1
	for k, d := range m.p.Space.Dims {
		part := math.Min(m.lanes/lanes, trips[k])
		if d.Kind == symtile.Parallel && part > 1 {
			part = math.Floor(part)
			trips[k] = math.Ceil(trips[k] / part)
			lanes *= part
		}
	}
	return trips, lanes
}

// A nest adds up what comes into something that keeps so many bytes.
type nest struct {
	m        *meter
	keeps    float64
	trips    []float64
	accesses []access
}

// run computes what accesses move.
func (n *nest) run() {
	for k := range n.accesses {
		a := &n.accesses[k]
		a.distinct = a.tile
		a.moved = a.tile * a.touches
	}
	for _, s := range n.m.spans {
		if s.dim < 0 {
			n.keep(n.accesses[s.lo:s.hi])
		} else if trips := s.trips(n.trips[s.dim]); trips > 1 {
			n.around(s.dim, trips, n.accesses[s.lo:s.hi])
		}
	}
}

// keep is for what fits: each distinct byte comes in once.
func (n *nest) keep(inside []access) bool {
	if footprint(inside) > n.keeps {
		return false
	}
	for k := range inside {
		a := &inside[k]
		a.moved = math.Min(a.moved, a.distinct)
		if twin(inside, k) {
			a.moved = 0
		}
	}
	return true
}

// around is for a loop over so many tiles of dim.
func (n *nest) around(dim int, trips float64, inside []access) {
	bit := uint64(1) << dim
	stays := footprint(inside) <= n.keeps
	for k := range inside {
		a := &inside[k]
		changes := a.dims&bit != 0
		if changes {
			a.distinct = math.Min(a.bytes, a.distinct*trips)
		}
		if a.once&bit == 0 && (changes || !stays) {
			a.moved *= trips
		}
	}
	n.keep(inside)
}

// footprint is the distinct bytes of accesses; of several to one array, the
// largest.
func footprint(inside []access) float64 {
	sum := 0.0
	for k := range inside {
		if !twin(inside, k) {
			sum += inside[k].distinct
		}
	}
	return sum
}

// twin says whether another access to the same array reaches as far, and comes
// first if equally far.
func twin(inside []access, k int) bool {
	a := &inside[k]
	if a.array < 0 {
		return false
	}
	for j := range inside {
		b := &inside[j]
		if j != k && b.array == a.array &&
			(b.distinct > a.distinct || b.distinct == a.distinct && j < k) {
			return true
		}
	}
	return false
}
