package cost

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Features of one plan on one device. The cost model and every report read
// them from here and nowhere else. All are totals over the whole run unless
// they say otherwise; they come from closed forms (sizes times trips), never
// from going through tiles.
type Features struct {
	FLOPs         float64   `json:"flops"`         // useful arithmetic, flop: each element of each instruction once
	PaddedFLOPs   float64   `json:"paddedFlops"`   // arithmetic the tiles really do, flop: masked elements and recomputation included
	DotFLOPs      float64   `json:"dotFlops"`      // of PaddedFLOPs, in dots
	FunctionFLOPs float64   `json:"functionFlops"` // of PaddedFLOPs, in divisions, roots and transcendental functions
	Traffic       []float64 `json:"traffic"`       // bytes moved from each Device.Level inwards, innermost first
	Tiles         float64   `json:"tiles"`         // tile programs
	Bodies        float64   `json:"bodies"`        // tile programs and iterations of their loops
	Steps         float64   `json:"steps"`         // tile ops and stores run
	Rows          float64   `json:"rows"`          // innermost loops of tile ops, loads and stores
	Strided       float64   `json:"strided"`       // elements moved one at a time: neighbours in the tile that are none where they come from
	Short         float64   `json:"short"`         // elements moved in rows too short for a vector
	Masked        float64   `json:"masked"`        // elements folded, contracted or moved whose tiles may be masked
	Compulsory    float64   `json:"compulsory"`    // bytes of the parameters and outputs that are touched at all
	Lanes         float64   `json:"lanes"`         // lanes the plan uses
	Waves         float64   `json:"waves"`         // ⌈Tiles/Lanes⌉·Lanes/Tiles ≥ 1: what the last, partly filled wave costs
	InnerRun      float64   `json:"innerRun"`      // bytes contiguous in memory per access, harmonic mean weighted by bytes
	Scratch       float64   `json:"scratch"`       // bytes of scratch a tile program touches
	Own           []float64 `json:"own,omitempty"` // seconds of the terms of the device's own account
}

// Measure computes the features of a concrete program.
//
// Traffic is by the usual argument of nested loops (Wolf and Lam, A Data
// Locality Optimizing Algorithm, PLDI 1991): walking the nest outwards, what a
// loop touches either fits into the level inside, then each distinct byte comes
// in once; or one iteration fits, then what does not change from iteration to
// iteration stays; or nothing stays. Tile programs run in the order of their
// tile ids, the last fastest, split over lanes along the first dimensions; with
// the knob group=, rows of a group faster than columns. The knob splitk= divides
// tile programs with a dot or a reduction into parts, whose results one lane joins at
// the end.
//
// Where the CPU backend joins loops, they are one (symtile's Program.Online).
func Measure(p *symtile.Program, plan kernels.Plan, d kernels.Device) Features {
	if d.Backend == "cpu" && plan.Knob("online", 1) == 1 {
		p = p.Online()
	}
	m := newMeter(p, plan, d)
	m.body(p.Body, nil, p.Roots, m.tiles)
	m.raster(plan.Knob("group", 1))
	m.parts(float64(plan.Knob("splitk", 1)))
	f := m.features()
	f.FLOPs = usefulFLOPs(p.Fusion)
	return f
}

// raster makes spans of the parallel dimensions, the fastest first. Groups are of
// the last two dimensions with several tiles.
func (m *meter) raster(group int64) {
	var several []int
	for k, d := range m.p.Space.Dims {
		if d.Kind == symtile.Parallel && m.trips[k] > 1 {
			several = append(several, k)
		}
	}
	row, column := -1, -1
	if n := len(several); group > 1 && n > 1 {
		row = several[n-2]
		column = several[n-1]
	}
	for n := len(several) - 1; n >= 0; n-- {
		s := span{dim: several[n], hi: len(m.accesses)}
		switch s.dim {
		case column:
			m.spans = append(m.spans, span{
				dim:   row,
				hi:    s.hi,
				inner: float64(group),
			})
		case row:
			s.outer = float64(group)
		}
		m.spans = append(m.spans, s)
	}
}

// sumMoves is how often elements of partial sums are moved besides being added:
// each is left, the first fetched, and the sum brought to what follows the dot.
const sumMoves = 4

// parts divides the tile programs of a dot, or else of a reduction, into so many.
// While one lane joins their results nothing hides it: a line of them counts as a row
// on every lane.
func (m *meter) parts(n float64) {
	of := func(code hlo.Opcode) int {
		return slices.IndexFunc(m.p.Ops, func(op symtile.Op) bool {
			return op.Code == code
		})
	}
	at := of(hlo.OpDot)
	if at < 0 {
		at = of(hlo.OpReduce)
	}
	if at < 0 || n <= 1 {
		return
	}
	op := m.p.Ops[at]
	m.sums.Rows += m.tiles *
		(n + sumMoves) * elementsOf(op.Tile) *
		widthOf(op.Instr.Shape) / line * m.lanes
	m.sums.Steps += m.tiles * n
	m.sums.Bodies += m.tiles * (n - 1)
	m.tiles *= n
}

// A meter adds up what a tile program does.
type meter struct {
	p     *symtile.Program
	plan  kernels.Plan
	d     kernels.Device
	tiles float64 // tile programs
	lanes float64
	trips []float64 // tiles along each dimension of the space
	fill  []float64 // extent / (tiles · size): what of the tiles is inside, along each dimension

	sums     Features // totals so far
	touched  float64  // bytes tile ops read and write
	runs     float64  // contiguous pieces of memory accessed
	runBytes float64  // their bytes
	accesses []access
	spans    []span
}

func newMeter(p *symtile.Program, plan kernels.Plan, d kernels.Device) *meter {
	m := &meter{p: p, plan: plan, d: d, tiles: 1}
	for _, dim := range p.Space.Dims {
		trips := valueOf(dim.Tiles)
		size := valueOf(dim.Size)
		m.trips = append(m.trips, trips)
		m.fill = append(
			m.fill,
			math.Min(1, float64(dim.Extent)/(trips*size)),
		)
		if dim.Kind == symtile.Parallel {
			m.tiles *= trips
		}
	}
	most := float64(max(1, d.Lanes))
	m.lanes = math.Max(
		1,
		math.Min(float64(plan.Knob("threads", int64(d.Lanes))), most),
	)
	return m
}

// valueOf is the value of a constant expression; 1 for others, which a concrete
// program has none of.
func valueOf(e index.Expr) float64 {
	if v, ok := e.Value(); ok {
		return float64(max(0, v))
	}
	return 1
}

func (m *meter) features() Features {
	f := m.sums
	f.Tiles = m.tiles
	f.Lanes = m.lanes
	f.Waves = math.Ceil(m.tiles/m.lanes) *
		m.lanes / math.Max(m.tiles, 1)
	if f.InnerRun = line; m.runs > 0 {
		f.InnerRun = m.runBytes / m.runs
	}
	f.Traffic = make([]float64, len(m.d.Levels))
	for k := range f.Traffic {
		f.Traffic[k] = m.traffic(k)
	}
	f.Compulsory = m.compulsory()
	return f
}

// plausible says whether f can be what was computed for a device; what is stored may come from elsewhere.
func (f *Features) plausible(d *kernels.Device) bool {
	all := append(
		[]float64{
			f.FLOPs, f.PaddedFLOPs, f.DotFLOPs, f.FunctionFLOPs,
			f.Steps, f.Rows, f.Strided, f.Short,
			f.Masked, f.Compulsory, f.InnerRun, f.Scratch,
			f.Tiles - 1, f.Bodies - f.Tiles,
			f.Lanes - 1,
			f.PaddedFLOPs - f.DotFLOPs - f.FunctionFLOPs,
		},
		f.Traffic...,
	)
	all = append(all, f.Own...)
	for _, x := range all {
		if !(x >= -1e-9*f.PaddedFLOPs) ||
			math.IsInf(x, 0) {
			return false
		}
	}
	if d.Account != nil &&
		len(f.Own) != len(d.Account.Terms) {
		return false
	}
	return len(f.Traffic) == len(d.Levels) &&
		f.Waves >= 1-1e-9
}

// body measures a level of the program that runs times times.
func (m *meter) body(
	steps []symtile.Step, closers []int,
	roots []symtile.Root, times float64,
) {
	first := len(m.accesses)
	m.sums.Bodies += times
	for _, s := range steps {
		if s.Loop != nil {
			m.loop(s.Loop, times)
		} else {
			m.op(s.Op, times)
		}
	}
	for _, c := range closers {
		m.op(c, times)
	}
	for _, r := range roots {
		m.store(r)
	}
	m.spans = append(m.spans, span{
		dim: -1,
		lo:  first,
		hi:  len(m.accesses),
	})
}

func (m *meter) loop(l *symtile.Loop, times float64) {
	first := len(m.accesses)
	trips := 1.0
	for _, d := range l.Dims {
		trips *= m.trips[d]
	}
	m.body(l.Body, l.Accumulators, nil, times*trips)
	for k := len(l.Dims) - 1; k >= 0; k-- {
		m.spans = append(m.spans, span{
			dim: l.Dims[k],
			lo:  first,
			hi:  len(m.accesses),
		})
	}
}

// op measures an op that runs times times in all.
func (m *meter) op(n int, times float64) {
	op := &m.p.Ops[n]
	switch op.Code {
	case hlo.OpReshape, hlo.OpSlice, hlo.OpCopy, hlo.OpGetTupleElement:
		return // the same elements under another name
	}
	size := elementsOf(op.Tile)
	bytes := size * widthOf(op.Instr.Shape)
	m.sums.Steps += times
	m.arithmetic(op, size, times)
	m.rows(op, size, times)
	if op.Code == hlo.OpParameter {
		m.load(op, times)
	}
	reads := 0.0
	for _, a := range op.Args {
		reads += elementsOf(m.p.Ops[a].Tile) *
			widthOf(m.p.Ops[a].Instr.Shape)
	}
	m.sums.Scratch += bytes
	if !op.Code.Elementwise() { // what is pointwise stays in registers
		m.touched += times * (bytes + reads)
	}
	m.accesses = append(m.accesses, access{
		array:   -2,
		bytes:   bytes,
		tile:    bytes,
		touches: 2,
	})
}

// arithmetic adds the flop of an op with a result of size elements.
func (m *meter) arithmetic(op *symtile.Op, size, times float64) {
	switch op.Code {
	case hlo.OpDot:
		m.mask(m.p.Ops[op.Args[0]].Tile, times)
		m.mask(m.p.Ops[op.Args[1]].Tile, times)
		flops := times * 2 * size *
			contracted(op.Instr, m.p.Ops[op.Args[0]].Tile)
		m.sums.PaddedFLOPs += flops
		m.sums.DotFLOPs += flops
	case hlo.OpReduce:
		m.mask(m.p.Ops[op.Args[0]].Tile, times)
		flops := times *
			elementsOf(m.p.Ops[op.Args[0]].Tile) *
			reducerWeight(op.Instr)
		m.sums.PaddedFLOPs += flops
		if _, simple := op.Instr.Attrs.ToApply.Monoid(); !simple {
			m.sums.FunctionFLOPs += flops
		}
	default:
		w := weight(op.Code)
		m.sums.PaddedFLOPs += times * size * w
		if w > 1 {
			m.sums.FunctionFLOPs += times * size * w
		}
	}
}

// mask counts the elements of a tile in which some may be masked.
func (m *meter) mask(t symtile.Tile, times float64) {
	for _, d := range t {
		if d.MaskedBelow() || d.MaskedAbove() {
			m.sums.Masked += times * elementsOf(t)
			return
		}
	}
}

// rows counts innermost loops: one for a pointwise op, whose tile is dense, and
// one for each row of what is rearranged or folded. A dot packs
// rows of its operands and calls a kernel for few rows and columns at a time.
func (m *meter) rows(op *symtile.Op, size, times float64) {
	rows := 1.0
	switch op.Code {
	case hlo.OpParameter:
		rows = size /
			math.Max(lastOf(op.Tile), contiguous(op.Instr.Shape, op.Tile))
	case hlo.OpConstant, hlo.OpTranspose, hlo.OpReverse,
		hlo.OpBroadcast, hlo.OpConcatenate, hlo.OpPad:
		rows = size / lastOf(op.Tile)
	case hlo.OpReduce:
		arg := m.p.Ops[op.Args[0]].Tile
		rows = elementsOf(arg) / lastOf(arg)
	case hlo.OpDot:
		rows = m.dotRows(op, size, times)
	}
	m.sums.Rows += times * rows
	if op.Code == hlo.OpTranspose && !keepsLast(op) ||
		op.Code == hlo.OpReverse {
		m.sums.Strided += times * size
	}
}

// Rows and columns that the kernel of a dot does at a time.
const (
	microRows    = 6
	microColumns = 16
)

func (m *meter) dotRows(op *symtile.Op, size, times float64) float64 {
	a := op.Instr.Attrs
	left := m.p.Ops[op.Args[0]].Tile
	right := m.p.Ops[op.Args[1]].Tile
	k := contracted(op.Instr, left)
	n := elementsOf(right) / k
	for _, b := range a.RHSBatch {
		n /= valueOf(right[b].Size)
	}
	m.pack(left, a.LHSBatch, a.LHSContract, false, times)
	m.pack(right, a.RHSBatch, a.RHSContract, true, times)
	rows := size / n
	return math.Ceil(rows/microRows)*math.Ceil(n/microColumns) + rows + k
}

// pack counts the elements of an operand of a dot that must be brought into the
// order batch, then (first) contracting, then the rest, or the other way round.
func (m *meter) pack(
	t symtile.Tile, batch, contract []int64, first bool, times float64,
) {
	free := make([]int64, 0, len(t))
	for d := range int64(len(t)) {
		if !contains(batch, d) && !contains(contract, d) {
			free = append(free, d)
		}
	}
	order := append(make([]int64, 0, len(t)), batch...)
	if first {
		order = append(append(order, contract...), free...)
	} else {
		order = append(append(order, free...), contract...)
	}
	for k, d := range order {
		if int64(k) != d {
			m.sums.Strided += times * elementsOf(t)
			return
		}
	}
}

func contains(v []int64, x int64) bool {
	for _, y := range v {
		if x == y {
			return true
		}
	}
	return false
}

func keepsLast(op *symtile.Op) bool {
	return len(op.Perm) == 0 ||
		op.Perm[len(op.Perm)-1] == len(op.Perm)-1
}

// lastOf is the size of the last dimension of a tile that is not of size 1.
func lastOf(t symtile.Tile) float64 {
	for k := len(t) - 1; k >= 0; k-- {
		if size := valueOf(t[k].Size); size > 1 {
			return size
		}
	}
	return 1
}

func contracted(i *hlo.Instr, left symtile.Tile) float64 {
	n := 1.0
	for _, d := range i.Attrs.LHSContract {
		n *= valueOf(left[d].Size)
	}
	return n
}

func elementsOf(t symtile.Tile) float64 {
	n := 1.0
	for _, d := range t {
		n *= valueOf(d.Size)
	}
	return n
}

// widthOf is bytes an element takes in scratch.
func widthOf(s hlo.Shape) float64 {
	if s.DType == hlo.Tuple {
		width := 0.0
		for _, e := range s.Tuple {
			width += widthOf(e)
		}
		return width
	}
	return float64(max(1, s.DType.Size()))
}
