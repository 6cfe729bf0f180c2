package cpu

import (
	"math"
	"math/bits"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A measure evaluates, for a tiling, how large the tiles of a symbolic program
// are, how often each is computed and what scratch they need, without building
// the concrete program.
type measure struct {
	p          *symtile.Program
	spec       deviceSpec
	code       *index.Evaluator           // of the fields of every dimension of every tile
	tiles      [][2]int                   // results of each op
	around     [][]loops                  // around each op, outermost first
	own        []loops                    // of each closer
	moves      []loops                    // dimensions whose tile ids occur in each op's tile
	inside     []loops                    // the active loops of each op
	duplicates [][]int                    // earlier ops of the same instruction, per op
	live       map[string][][]liveScratch // by kind of tiling, see rooms
	vals       []int64
	out        []int64
	scratch    []int64
	sizes      []float64 // elements of each op's tile
	trips      []float64 // tiles along each dimension
	several    loops     // dimensions of several tiles
	largest    float64   // element operations a tile op when every size is the extent
	online     *measure  // of the program with joined loops, for tilings that join all of them; nil without
	joins      [][2]int  // of that program: dimensions of joined loops, each with that of the loop it was joined to
	shorts     []int     // … and the fastest of those loops
	idle       loops     // of that program: dimensions that no loop walks
	along      int       // the parallel dimension of rows in memory, the same for all arrays; −1 without
}

const onlineTile = 128 // elements of a row that are as good as more in an online loop

const fields = 5 // of a DimTile, the size first

// loops is a set of dimensions of the space.
type loops uint64

func newMeasure(p *symtile.Program, c deviceSpec) (*measure, error) {
	m, err := measureOf(p, c)
	if err != nil {
		return nil, err
	}
	q := p.Online()
	if q == p {
		return m, nil
	}
	if m.online, err = measureOf(q, c); err != nil {
		return nil, err
	}
	for _, s := range q.Body {
		if s.Loop != nil && s.Loop.Online != nil {
			m.online.joinedAs(s.Loop.Online.FusedDims)
		}
	}
	return m, nil
}

// joinedAs notes that a loop is what loops over such dimensions were.
func (m *measure) joinedAs(loops [][]int) {
	to := loops[0]
	for _, dims := range loops[1:] {
		for k, d := range dims {
			m.joins = append(m.joins, [2]int{d, to[k]})
			m.idle |= 1 << d
		}
	}
	m.shorts = append(m.shorts, to[len(to)-1])
}

// applies says whether the loops that m has as one have several steps, of the
// same tiles.
func (m *measure) applies(t symtile.Tiling) bool {
	several := false
	for _, j := range m.joins {
		if t[j[0]] != t[j[1]] {
			return false
		}
		several = several ||
			t[j[0]] < m.p.Space.Dims[j[0]].Extent
	}
	return several
}

func measureOf(p *symtile.Program, c deviceSpec) (*measure, error) {
	n := len(p.Ops)
	m := &measure{
		p:          p,
		spec:       c,
		live:       map[string][][]liveScratch{},
		trips:      make([]float64, len(p.Space.Dims)),
		sizes:      make([]float64, n),
		around:     make([][]loops, n),
		own:        make([]loops, n),
		moves:      make([]loops, n),
		inside:     make([]loops, n),
		duplicates: make([][]int, n),
	}
	if err := m.compile(); err != nil {
		return nil, err
	}
	m.nest(p.Body, nil)
	m.along = m.rowDim()
	for n, op := range p.Ops {
		m.moves[n] = m.movesOf(op.Tile)
		for k, other := range p.Ops[:n] {
			if other.Instr == op.Instr && other.Code == op.Code {
				m.duplicates[n] = append(m.duplicates[n], k)
			}
		}
	}
	full := make(symtile.Tiling, len(p.Space.Dims))
	for k, d := range p.Space.Dims {
		full[k] = max(1, d.Extent)
	}
	most := m.candidate(full)
	m.largest = most.work / most.runs
	return m, nil
}

// compile makes the code, whose variables are the sizes, then the tile
// ids, then what is known at run time.
func (m *measure) compile() (err error) {
	var vars, results []index.Expr
	for _, d := range m.p.Space.Dims {
		vars = append(vars, d.Size)
	}
	for _, d := range m.p.Space.Dims {
		vars = append(vars, d.Tid)
	}
	for _, r := range m.p.Runtime {
		vars = append(vars, r.Var)
	}
	for _, op := range m.p.Ops {
		first := len(results)
		for _, d := range op.Tile {
			results = append(
				results, d.Size, d.Offset,
				d.Stride, d.Lower, d.Bound,
			)
		}
		m.tiles = append(
			m.tiles, [2]int{first, len(results)},
		)
	}
	if m.code, err = index.Compile(vars, results); err != nil {
		return err
	}
	m.vals = make([]int64, len(vars))
	for k := range m.p.Runtime {
		// any, and far from each other
		m.vals[2*len(m.p.Space.Dims)+k] = 7919 *
			int64(k+1)
	}
	m.out = make([]int64, len(results))
	m.scratch = make([]int64, m.code.ScratchLen())
	return nil
}

// nest notes the loops around every op of a body.
func (m *measure) nest(body []symtile.Step, around []loops) {
	for _, s := range body {
		if s.Loop == nil {
			m.around[s.Op] = around
			continue
		}
		set := loops(0)
		for _, d := range s.Loop.Dims {
			set |= 1 << d
		}
		m.nest(
			s.Loop.Body,
			append(around[:len(around):len(around)], set),
		)
		for _, c := range s.Loop.Accumulators {
			m.around[c], m.own[c] = around, set
		}
	}
}

// rowDim is along of a program: the parallel dimension that the last one of all
// parameters and outputs moves with.
func (m *measure) rowDim() int {
	along := loops(0)
	add := func(op *symtile.Op) {
		if last := len(op.Tile) - 1; last >= 0 {
			along |= m.movesOf(op.Tile[last:])
		}
	}
	for n := range m.p.Ops {
		if m.p.Ops[n].Code == hlo.OpParameter {
			add(&m.p.Ops[n])
		}
	}
	for _, r := range m.p.Roots {
		add(&m.p.Ops[r.Op])
	}
	if bits.OnesCount64(uint64(along)) != 1 {
		return -1
	}
	d := bits.TrailingZeros64(uint64(along))
	if m.p.Space.Dims[d].Kind != symtile.Parallel {
		return -1
	}
	return d
}

// movesOf is the dimensions whose tile ids occur in a tile.
func (m *measure) movesOf(t symtile.Tile) (set loops) {
	for _, d := range t {
		for _, v := range d.Offset.Vars() {
			for k, dim := range m.p.Space.Dims {
				if v == dim.Tid {
					set |= 1 << k
				}
			}
		}
	}
	return set
}

func (m *measure) candidate(t symtile.Tiling) candidate {
	if m.online != nil && m.online.applies(t) {
		return m.online.candidate(t)
	}
	c := candidate{
		tiling:   t,
		programs: 1,
		inner:    1,
		page:     1,
	}
	if m.along >= 0 {
		n := min(
			rowPage,
			max(1, m.p.Space.Dims[m.along].Extent),
		)
		c.page = float64(min(t[m.along], n)) / float64(n)
	}
	for k, d := range m.p.Space.Dims {
		tiles := math.Ceil(
			float64(max(1, d.Extent)) / float64(t[k]),
		)
		m.trips[k] = tiles

		if d.Kind == symtile.Parallel {
			c.programs *= tiles
			// the last one stays
			c.inner = float64(min(t[k], m.spec.vector)) /
				float64(min(max(1, d.Extent), m.spec.vector))
		} else if tiles > 1 && m.idle&(1<<k) == 0 {
			c.whole++
		}
	}
	m.evaluate(t)
	for n := range m.p.Ops {
		if !m.known(n) {
			c.elements += m.sizes[n]
			runs := c.programs * m.iterations(n)
			c.runs += runs
			work := m.work(n) * runs
			c.work += work
			if op := &m.p.Ops[n]; op.Code == hlo.OpDot {
				c.products += work
				c.left += m.sizes[op.Args[0]] * runs
				c.right += m.sizes[op.Args[1]] * runs
				c.pieces += (m.pieces(op.Args[0]) +
					m.pieces(op.Args[1])) * runs
				c.sums += m.sizes[n] * c.programs
				c.passes += m.sizes[n] * runs
			}
		}
	}
	switch {
	case m.online != nil &&
		4*c.elements > float64(m.spec.Second)*m.rowsOf(t, c):
		c.again = 1
	default: // every iteration begins and ends rows: 64 keys measure 6 % slower than 128
		for _, d := range m.shorts {
			c.again = max(
				c.again,
				0.25*math.Log2(onlineTile/float64(t[d])),
			)
		}
	}
	live := m.liveScratchOf(t)
	c.lowers, c.scratch = live != nil, m.peak(live)
	c.spill = max(
		0,
		math.Log2(c.scratch/float64(m.spec.Second/2)),
	)
	return c
}

// rowsOf is how many rows along the last parallel dimension a tile has that are done one
// after the other, all of a row before the next, so that it is a row that stays in the
// caches: 1 where dots are among it.
func (m *measure) rowsOf(t symtile.Tiling, c candidate) float64 {
	rows, last := 1.0, 1.0
	for k, d := range m.p.Space.Dims {
		if d.Kind == symtile.Parallel && c.products == 0 {
			rows = rows * last
			last = float64(t[k])
		}
	}
	return rows
}

// evaluate computes all tiles of a tiling for tile ids so far from each other
// that different offsets have different values; where there is one tile it is 0.
func (m *measure) evaluate(t symtile.Tiling) {
	m.several = 0
	for k := range t {
		m.vals[k], m.vals[len(t)+k] = t[k], 0
		if m.trips[k] > 1 {
			m.vals[len(t)+k] = 1000003 * int64(k+1)
			m.several |= 1 << k
		}
	}
	m.code.Eval(m.vals, m.out, m.scratch)
	for n, r := range m.tiles {
		m.sizes[n] = 1
		if readByGathersOnly(m.p, n) {
			m.sizes[n] = 0
		}
		for k := r[0]; k < r[1]; k += fields {
			m.sizes[n] *= float64(m.out[k])
		}
		m.inside[n] = m.active(n)
	}
}

// known says whether an earlier op computes the same tile of the same
// instruction: where a loop has one step, its ops and those outside are one.
func (m *measure) known(n int) bool {
	for _, k := range m.duplicates[n] {
		if m.inside[k] == m.inside[n] &&
			m.same(m.tiles[k], m.tiles[n]) {
			return true
		}
	}
	return false
}

// active is the loops of several steps that an op runs in: those inside of the
// innermost whose tile ids occur in its tile it is taken out of.
func (m *measure) active(n int) loops {
	set := m.own[n]
	levels := m.around[n]
	for len(levels) > 0 &&
		levels[len(levels)-1]&m.several&m.moves[n] == 0 {
		levels = levels[:len(levels)-1]
	}
	for _, l := range levels {
		set |= l
	}
	return set & m.several
}

func (m *measure) same(x, y [2]int) bool {
	for k := range x[1] - x[0] {
		if m.out[x[0]+k] != m.out[y[0]+k] {
			return false
		}
	}
	return true
}

// work is the element operations of an op each time it runs: of a reduce,
// one for each element it folds; of a dot, one for each product.
func (m *measure) work(n int) float64 {
	op := &m.p.Ops[n]
	w := m.sizes[n]
	switch op.Code {
	case hlo.OpReshape, hlo.OpSlice, hlo.OpDynamicSlice,
		hlo.OpCopy, hlo.OpGetTupleElement:
		return 0 // the same elements under another name
	case hlo.OpReduce:
		w = m.sizes[op.Args[0]]
	case hlo.OpDot:
		for _, d := range op.Instr.Attrs.LHSContract {
			w *= float64(
				m.out[m.tiles[op.Args[0]][0]+fields*int(d)],
			)
		}
	}
	return w
}

// pieces is how many runs of elements next to each other a tile of an op is read in.
func (m *measure) pieces(n int) float64 {
	op := &m.p.Ops[n]
	if op.Code != hlo.OpParameter {
		return 1 // it is in scratch
	}
	run := 1.0
	for d := len(op.Tile) - 1; d >= 0; d-- {
		size := m.out[m.tiles[n][0]+fields*d]
		if run *= float64(size); size < op.Instr.Shape.Dims[d] {
			break
		}
	}
	return m.sizes[n] / max(1, run)
}

// iterations is how often an op runs in one tile program.
func (m *measure) iterations(n int) float64 {
	w := 1.0
	for d, trips := range m.trips {
		if m.inside[n]&(1<<d) != 0 {
			w *= trips
		}
	}
	return w
}

// A liveScratch is what a value takes in scratch: the tile of an op, or a strip of it.
type liveScratch struct {
	tile  int     // the op, or splats where the size is always n
	n     float64 // elements
	strip bool
	bytes float64 // an element
}

// peak is the bytes of the values needed at the same time, at most.
func (m *measure) peak(live [][]liveScratch) float64 {
	most := 0.0
	for _, rooms := range live {
		sum := 0.0
		for _, r := range rooms {
			n := r.n
			if r.tile != noTile {
				n = m.sizes[r.tile]
			}
			if r.strip {
				n = min(n, stripLength)
			}
			sum += n * r.bytes
		}
		most = max(most, sum)
	}
	return most
}

// kind says for every dimension whether its tile is all of it, one element, a
// divisor or ragged, whether it has eight elements, and whether it is too long for
// a row of a nest. Tilings of one kind are lowered to the same instructions, but
// for sizes that happen to be equal.
func (m *measure) kind(t symtile.Tiling) string {
	text := make([]byte, len(t))
	for k, d := range m.p.Space.Dims {
		switch {
		case m.trips[k] == 1:
			text[k] = 'w'
		case t[k] == 1:
			text[k] = '1'
		case d.Extent%t[k] == 0:
			text[k] = 'd'
		default:
			text[k] = 'r'
		}
		if t[k] > maxRowLength {
			text[k] -= 'a' - 'A'
		}
		if t[k] >= 8 { // a block can be transposed
			text[k] |= 0x80
		}
	}
	return string(text)
}

// liveScratchOf lowers the program at the first tiling of a kind and lists what is
// needed at the same time, at each moment a value is born; nil when it cannot be
// lowered.
func (m *measure) liveScratchOf(t symtile.Tiling) [][]liveScratch {
	kind := m.kind(t)
	live, met := m.live[kind]
	if met {
		return live
	}
	if q, err := m.p.At(t); err == nil {
		l, _ := lower(q, kernels.Plan{}, m.spec)
		if l.err == nil {
			live = liveScratchSets(l, m.distinct())
		}
	}
	m.live[kind] = live
	return live
}

// distinct lists the ops that no earlier one makes superfluous: those of the
// concrete program, in its order.
func (m *measure) distinct() []int {
	var ops []int
	for n := range m.p.Ops {
		if !m.known(n) {
			ops = append(ops, n)
		}
	}
	return ops
}

// liveScratchSets lists what is alive whenever a value is born. The sizes of values
// change with the tiling where ops, which names those of l, has as many.
func liveScratchSets(l *lowering, ops []int) [][]liveScratch {
	live := [][]liveScratch{}
	for _, v := range l.values {
		var rooms []liveScratch
		for _, u := range l.values {
			if u.where == inMemory ||
				u.liveFrom > v.liveFrom ||
				v.liveFrom > u.liveTo {
				continue
			}
			r := liveScratch{
				noTile,
				float64(u.n),
				u.where == inStrip || u.where == inSplat,
				float64(u.class.Bytes()),
			}
			if u.tile != noTile && len(ops) == len(l.p.Ops) {
				r.tile = ops[u.tile]
			}
			rooms = append(rooms, r)
		}
		live = append(live, rooms)
	}
	return live
}
