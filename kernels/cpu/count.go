package cpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/cpu/internal/narrowing"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/running"
	"github.com/tilewright/tilewright/kernels/cpu/internal/selection"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/mask"
	"github.com/tilewright/tilewright/symtile/scattering"
)

// Counts are what one run of a program does at a tiling. All are totals over all
// tile programs unless they say otherwise.
type counts struct {
	// Tile programs.
	programs float64
	// Tile programs, and iterations of their loops.
	bodies float64
	// Tile ops and stores.
	steps float64
	// Tile ops, those included that only rename elements.
	runs float64

	// Arithmetic, masked elements and what is computed again included.

	// Element operations: one for each element that an op makes, reduces or
	// multiplies.
	work float64
	// Those of dots among them.
	products float64
	// Flop of dots.
	dots float64
	// Flop of divisions, roots and transcendental functions.
	functions float64
	// Element operations that are neither.
	moved float64

	// Dots only.

	// Elements of the operands, each time they are packed.
	left, right float64
	// Contiguous runs of elements that operands are read in.
	pieces float64
	// Rows of the operands of dots that parts of a contraction cut.
	cut float64
	// Products of matrices, one for each element of a batch, beside the first of a dot.
	matrices float64
	// Elements of the results.
	sums float64
	// The same, each time terms are added to them.
	passes float64
	// Elements of operands that are made in scratch, computed or widened, and bytes of the
	// largest of their tiles.
	made, madeBytes float64
	// Tiles that a contraction is divided into.
	trips float64
	// Elements of the results of reductions.
	reduced float64

	// Movement.

	// Bytes that ops other than pointwise ones read and write.
	touched float64
	// Bytes that go to the second cache and back in tiles of scratch.
	stored float64
	// Innermost loops of tile ops, loads and stores.
	rows float64
	// Elements that are moved one at a time.
	strided float64
	// Elements that are moved in rows shorter than a vector.
	short float64
	// Elements of operands of dots and reductions whose tiles may be masked.
	masked float64
	// Bytes contiguous in memory per access, a harmonic mean weighted by bytes.
	innerRun float64
	// Runs of two and more contiguous elements that parameters are read and outputs
	// written in, and lines at their beginnings that nobody foresaw.
	starts, late float64
	// Elements that loops in Go convert or reduce, one at a time.
	scalar float64
	// Rounds in which neighbours of a row are combined by a computation, for each operand.
	rounds float64

	// Of all tiles of a tile program.
	elements float64
	// Bytes that a lane needs.
	scratch float64
	// Bytes of results of dots that are made in outputs, and in scratch where tile programs
	// share a tile.
	results float64
	// Sequential dimensions of several tiles, and the product of their tiles.
	loops, iterations float64
	// 1 where rows leave the second cache before they are read again; a part of it
	// where tiles of an online loop are short.
	reread float64
}

// turnedRow is rows that the beginning of a row takes as long as, where rows of what is
// read become columns: the hardware fetches ahead anew in each.
const turnedRow = 7

// periodicElements is elements of short rows that are copied by periods while a row begins:
// 0.1 to 0.15 ns each in the first two caches of a Zen 4 (f32, 2 to 8 in a row).
const periodicElements = 24

// gatheredRow is rows that a slice of a gather takes as long as: its indices are read and
// clamped, and machine code has several slices on their way. 300,000 single f32 take 0.7 ns
// each of a lane, 65,536 rows of eight 1.2 ns (Zen 4, two lanes, load 2).
const gatheredRow = 0.25

// scatteredRow is rows that a row of a window takes as long as, beside the check of its index:
// 20,000 rows of 32 f32 that are added to 100 take 3.9 ns each of a lane (Zen 4, two lanes).
const scatteredRow = 0.5

// onlineTile is elements of a row that are as good as more in an online loop.
const onlineTile = 128

// vectorElements is elements that are computed at a time.
const vectorElements = 8

// scalarFlops are flop of the peak in the time of one flop of a function that Go computes,
// element by element: two fused multiply-adds of eight f32 against one operation. Sine,
// cosine, power and all functions of f64 have no machine code.
const scalarFlops = 2 * 2 * vectorElements

// laneFlops are flop of the peak in the time of one flop of a dot of lanes: each of its
// multiply-adds loads both operands, where a core loads two vectors a cycle and multiplies
// two.
const laneFlops = 2

// iotaShare is what an element of an iota takes, which loops in Go write, of one that they
// convert: 0.15 ns on a core of Zen 5 at 3.9 GHz, six tenths of a cycle of three.
const iotaShare = 1.0 / 5

// Rows and columns that the kernel of a dot computes at a time.
const (
	microRows    = 6
	microColumns = 16
)

// pageBytes is the bytes of a page.
const pageBytes = 4096

// turnedRows is rows of a matrix from which on package gemm computes its product with a
// vector as that of a row with the transposed matrix.
const turnedRows = 16

// An opKind says how an op is counted.
type opKind uint8

const (
	opRenames   opKind = iota // the same elements under another name
	opPointwise               // stays in registers
	opLoads                   // a parameter
	opArranges                // moves elements, row by row
	opReduces
	opMultiplies // a dot
	opScatters   // goes through updates, and combines those that fall into its tile
	opOther
)

// An opCount is what is known of an op for every tiling.
type opCount struct {
	kind opKind
	op   *symtile.Op
	// A parameter that is read where it is, element by element.
	direct bool
	// The scatter that reads a parameter's elements where they are as its updates, those
	// only that fall into a tile; −1: none.
	scattered int
	// A dot whose result is read in the program, not only stored.
	read bool
	// A dot whose result is made in an output, if its tiles are full and have the strides:
	// lowering.outputStrides.
	output bool
	// The gathers that read it where it is direct.
	gathers []int
	// Its elements are all in scratch at once.
	tiled bool
	// Bytes of an element in scratch.
	width float64
	// Flop of an element.
	weight float64
	// Its flop are those of functions.
	function bool
	// A transpose whose last dimension stays the last.
	keepsLast bool
	// A reduction by a loop in Go.
	scalar bool
	// Of a reduction by a computation: its operands; 0 elsewhere.
	operands int
	// A reduction that searches rows for the pair that it keeps.
	selects bool
	// Of places: the selection that alone reads them; −1 of all else.
	places int
	// Of a dot: dimensions of its left operand.
	contracted []int64
	// Of a dot: operands that must be brought into another order.
	packs [2]bool
	// Of a dot: the dimensions of its operands as batch, rows and columns.
	parts [2][3][]int64
	// Of a reduction, and of what is not made for it where tiles have whole windows.
	running *running.Reduce
	users   []int
	// Masks of its tile do not depend on ragged tiles only.
	masked bool
	// Of what is left out where a tile has all of a dimension: that dimension; −1 of all else.
	joins int
	// Of a dot that may multiply lanes, of its windows, and of the transposes that read
	// it: the dot; −1 of all else.
	lanes int
	// It is not made: the dot that reads it packs it from what it reads itself.
	packed bool
}

// A counter counts what a program does at tilings, without building the concrete
// program. The program is either the symbolic one or the one with joined loops.
type counter struct {
	p       *symtile.Program
	spec    deviceSpec
	extents *symtile.Extents
	ops     []opCount
	// Of each loop: the dimensions of it and of the loops around it.
	loops []symtile.DimSet
	// Of each loop: its own dimensions.
	own     []symtile.DimSet
	traffic traffic
	// Of joined loops: each dimension with that of the loop it was joined to.
	joins [][2]int
	// The fastest dimension of each of those loops.
	shorts []int
	idle   symtile.DimSet
	// Pointwise ops with an instruction that an earlier op has, too.
	repeated []int
	// Of a loop whose iterations a mask may hide: the mask, the scores, the dimensions along
	// which they are reduced, and what is inside of it. Visible is the share of the
	// iterations that is left at the tiling that is counted.
	hidden  mask.Mask
	scores  int
	reduced []int64
	within  []bool
	visible float64
	counts  counts
	// The tiling that counts are of; nil before the first one.
	counted symtile.Tiling
}

// newCounter compiles a program and notes what is the same for every tiling of it.
func newCounter(p *symtile.Program, spec deviceSpec) (*counter, error) {
	x, err := symtile.NewExtents(p)
	if err != nil {
		return nil, err
	}
	c := &counter{
		p:       p,
		spec:    spec,
		extents: x,
		ops:     make([]opCount, len(p.Ops)),
		within:  make([]bool, len(p.Ops)),
		visible: 1,
	}
	for n := range p.Ops {
		c.ops[n] = opCountOf(p, n)
	}
	c.narrowParts()
	for n := range p.Ops {
		c.findTiled(n)
	}
	for n := range p.Ops {
		c.findLanes(n)
		c.findPacked(n)
	}
	for n := range p.Ops {
		if r := running.Of(p, n); r != nil {
			c.ops[n].running = r
			c.ops[r.Unfold].running = r
			if r.OfParameter(p) {
				c.ops[r.Padded].running = r
			}
		}
	}
	for n, op := range p.Ops {
		for _, a := range op.Args {
			c.ops[a].users = append(c.ops[a].users, n)
		}
	}
	c.repeated = repeatedOps(c.ops)
	c.nest(p.Body, 0)
	c.traffic = newTraffic(c)
	for _, s := range p.Body {
		if s.Loop != nil && s.Loop.Online != nil {
			c.joinedAs(s.Loop.Online.FusedDims)
			c.hide(s.Loop)
		}
	}
	return c, nil
}

// Joins cost nothing where their parts are stored in place, and operands of a join are counted
// for their part of the tile. A tiling that divides the joined dimension has neither: each of
// its tile programs computes all operands under masks.

// narrowParts notes what is computed for parts of tiles, see package narrowing.
func (c *counter) narrowParts() {
	parts := narrowing.Find(c.p)
	for n := range c.ops {
		if parts.Narrow[n] {
			c.extents.Limit(n)
		}
		c.ops[n].joins = parts.Axis[n]
	}
}

// joinsParts reports whether an op is left out, since a tile has all of a dimension along which
// parts are joined.
func (c *counter) joinsParts(n int) bool {
	info := &c.ops[n]
	if info.joins < 0 {
		return false
	}
	size := c.extents.Sizes(n)[info.joins]
	shape := info.op.Instr.Shape
	return size == shape.Dims[info.joins]
}

// repeatedOps are the pointwise ops that may compute what an earlier op has computed.
func repeatedOps(ops []opCount) (list []int) {
	met := map[*hlo.Instr]bool{}
	for n := range ops {
		i := ops[n].op.Instr
		if met[i] && ops[n].kind == opPointwise {
			list = append(list, n)
		}
		met[i] = true
	}
	return list
}

// joinedAs notes that a loop is what loops over such dimensions were.
func (c *counter) joinedAs(loops [][]int) {
	to := loops[0]
	for _, dims := range loops[1:] {
		for k, d := range dims {
			c.joins = append(c.joins, [2]int{d, to[k]})
			c.idle |= 1 << d
		}
	}
	c.shorts = append(c.shorts, to[len(to)-1])
}

// hide notes which scores of an online loop are hidden.
func (c *counter) hide(l *symtile.Loop) {
	m, ok := maskOf(c.p, l)
	if !ok {
		return
	}
	op := &c.p.Ops[l.Online.Statistic]
	c.hidden = m
	c.scores, c.reduced = op.Args[0], op.Instr.Attrs.Dimensions
	c.mark(l)
}

// mark notes the ops of a loop, and of those inside of it.
func (c *counter) mark(l *symtile.Loop) {
	for _, n := range l.Accumulators {
		c.within[n] = true
	}
	for _, s := range l.Body {
		if s.Loop != nil {
			c.mark(s.Loop)
		} else {
			c.within[s.Op] = true
		}
	}
}

// shown is the share of the iterations of the hidden loop that a tiling's sides leave.
func (c *counter) shown() float64 {
	if len(c.hidden.Bounds) == 0 {
		return 1
	}
	dims := c.ops[c.scores].op.Instr.Shape.Dims
	share, _ := c.hidden.Visible(dims, c.extents.Sizes(c.scores), c.reduced)
	return share
}

// applies reports whether loops that c has as one have several steps, of the same
// tiles.
func (c *counter) applies(t symtile.Tiling) bool {
	several := false
	for _, j := range c.joins {
		if t[j[0]] != t[j[1]] {
			return false
		}
		several = several ||
			t[j[0]] < c.p.Space.Dims[j[0]].Extent
	}
	return several
}

// nest notes the dimensions of all loops.
func (c *counter) nest(body []symtile.Step, around symtile.DimSet) {
	for _, s := range body {
		if s.Loop == nil {
			continue
		}
		own := symtile.DimSet(0)
		for _, d := range s.Loop.Dims {
			own |= 1 << d
		}
		c.own = append(c.own, own)
		c.loops = append(c.loops, own|around)
		c.nest(s.Loop.Body, own|around)
	}
}

// vectorFlops are the flop of functions whose code in vectors takes longer beside an
// exponential than HLO's own table says (BenchmarkFunctions and BenchmarkPower of package
// amd64; an exponential counts 15).
var vectorFlops = map[hlo.Opcode]float64{
	hlo.OpCosine: 90,
	hlo.OpPower:  85,
	hlo.OpSine:   90,
	hlo.OpTan:    95,
}

// functionWeight is the flop of an element of a function.
func functionWeight(op *symtile.Op) float64 {
	weight := flopWeight(op.Code)
	if isLoop(op.Instr) {
		return weight * scalarFlops
	}
	return max(weight, vectorFlops[op.Code])
}

// gathersOf are the gathers that read op n.
func gathersOf(p *symtile.Program, n int) (all []int) {
	for k, op := range p.Ops {
		if op.Code == hlo.OpGather && op.Args[0] == n {
			all = append(all, k)
		}
	}
	return all
}

// opCountOf is what is known of op n of a program for every tiling.
func opCountOf(p *symtile.Program, n int) opCount {
	op := &p.Ops[n]
	x := opCount{
		kind:   kindOf(op),
		op:     op,
		width:  scratchWidth(op.Instr.Shape),
		weight: flopWeight(op.Code),

		scattered: -1,
		places:    selection.ReadBy(p, n),
		lanes:     -1,
	}
	x.function = x.weight > 1
	if x.function && op.Code.Elementwise() {
		x.weight = functionWeight(op)
	}
	for _, d := range op.Tile {
		x.masked = x.masked || d.MaskedBelow()
	}
	switch x.kind {
	case opLoads:
		if x.direct = readByGathersOnly(p, n); x.direct {
			x.gathers = gathersOf(p, n)
		}
		x.scattered = updatesRead(p, n)
	case opArranges:
		x.keepsLast = len(op.Perm) == 0 ||
			op.Perm[len(op.Perm)-1] == len(op.Perm)-1
	case opReduces:
		x.weight = reducerWeight(op.Instr)
		monoid, simple := op.Instr.Attrs.ToApply.Monoid()
		x.function = !simple
		x.scalar = simple && !vector.HasReduction(monoid, op.Instr.Shape.DType)
		if !simple || len(op.Args) > 2 {
			x.operands = len(op.Args) / 2
		}
		_, x.selects = selection.Of(p, *op)
	case opMultiplies:
		a := op.Instr.Attrs
		x.contracted = a.LHSContract
		x.read = len(readersOf(p, op.Instr)) > 0
		x.output = !x.read && makesOutput(p, op)
		left := p.Ops[op.Args[0]].Tile
		right := p.Ops[op.Args[1]].Tile
		x.packs[0] = reorders(
			len(left), a.LHSBatch, a.LHSContract, false,
		)
		x.packs[1] = reorders(
			len(right), a.RHSBatch, a.RHSContract, true,
		)
		x.parts = [2][3][]int64{
			{a.LHSBatch, remainingDims(len(left), a.LHSBatch, a.LHSContract), a.LHSContract},
			{a.RHSBatch, a.RHSContract, remainingDims(len(right), a.RHSBatch, a.RHSContract)},
		}
	}
	return x
}

// makesOutput reports whether one root, which all tile programs store, has the result of a dot
// in the type that it is computed in.
func makesOutput(p *symtile.Program, op *symtile.Op) bool {
	stores := 0
	for _, r := range p.Roots {
		if p.Ops[r.Op].Instr == op.Instr {
			stores++
			if len(r.Once) > 0 {
				return false
			}
		}
	}
	return stores == 1 && !op.Tile.HasDigits() &&
		portable.IsNative(op.Instr.Shape.DType)
}

// kindOf says how an op is counted.
func kindOf(op *symtile.Op) opKind {
	switch op.Code {
	case hlo.OpReshape, hlo.OpSlice, hlo.OpDynamicSlice,
		hlo.OpCopy, hlo.OpGetTupleElement:
		return opRenames
	case hlo.OpParameter:
		return opLoads
	case hlo.OpConstant, hlo.OpTranspose, hlo.OpReverse, hlo.OpBroadcast, hlo.OpConcatenate, hlo.OpPad:
		return opArranges
	case hlo.OpReduce:
		return opReduces
	case hlo.OpDot:
		return opMultiplies
	case hlo.OpScatter:
		return opScatters
	}
	if op.Code.Elementwise() {
		return opPointwise
	}
	return opOther
}

// findTiled decides whether all elements of an op are in scratch at once. Those of a
// pointwise op, and what it reads, are only in strips, unless an op that moves,
// contracts or looks up elements reads them.
func (c *counter) findTiled(n int) {
	x := &c.ops[n]
	switch x.kind {
	case opReduces, opMultiplies, opScatters, opOther:
		x.tiled = true
	case opArranges:
		x.tiled = x.op.Code != hlo.OpConstant &&
			x.op.Code != hlo.OpBroadcast
	}
	if x.kind != opArranges &&
		x.kind != opMultiplies && x.kind != opScatters && x.kind != opOther {
		return
	}
	for _, a := range x.op.Args {
		if c.ops[a].kind == opPointwise && x.joins < 0 {
			c.ops[a].tiled = true
		}
	}
}

// findLanes notes a dot whose batch may be lanes of vectors, see lowering.hasLanes: that of
// a convolution by channel whose channels are the last dimension of the weights.
func (c *counter) findLanes(n int) {
	op := c.ops[n].op
	if op.Code != hlo.OpDot ||
		portable.ClassOf(op.Instr.Shape.DType) != portable.Float32 ||
		c.p.Ops[op.Args[0]].Code != symtile.OpUnfold {
		return
	}
	a := op.Instr.Attrs
	dims := op.Instr.Operands[1].Shape.Dims
	if len(a.RHSBatch) != 1 ||
		hlo.RowMajor(dims)[a.RHSBatch[0]] != 1 ||
		product(dims, c.ops[n].parts[1][2]) != 1 {
		return
	}
	readers := readersOf(c.p, op.Instr)
	turned := func(r int) bool { return c.ops[r].op.Code == hlo.OpTranspose }
	if len(readers) == 0 || slices.ContainsFunc(readers, func(r int) bool { return !turned(r) }) {
		return
	}
	for _, k := range append(readers, n, op.Args[0]) {
		c.ops[k].lanes = n
	}
}

// findPacked notes the windows and the reversed weights that a dot of floats reads where they
// lie, see lowering.packsUnfold and packsReverse.
func (c *counter) findPacked(n int) {
	op := c.ops[n].op
	class := portable.ClassOf(op.Instr.Shape.DType)
	if op.Code != hlo.OpDot || class != portable.Float32 && class != portable.Float64 {
		return
	}
	terms := op.Instr.Attrs.LHSContract
	windows := len(c.p.Ops[op.Args[0]].Tile) - 1
	for side, code := range [...]hlo.Opcode{symtile.OpUnfold, hlo.OpReverse} {
		arg := &c.p.Ops[op.Args[side]]
		if code == symtile.OpUnfold && !slices.Contains(terms, int64(windows)) {
			continue
		}
		if arg.Code == code && portable.ClassOf(arg.Instr.Shape.DType) == class &&
			len(readersOf(c.p, arg.Instr)) == 1 {
			c.ops[op.Args[side]].packed = true
		}
	}
}

// inLanes reports whether an op is a dot of lanes, or has no work since a dot is one.
func (c *counter) inLanes(info *opCount) bool {
	if info.lanes < 0 {
		return false
	}
	dot := c.ops[info.lanes].op
	return c.extents.Sizes(dot.Args[1])[dot.Instr.Attrs.RHSBatch[0]]%gemm.LaneUnit == 0
}

// scratchWidth is bytes that an element takes in scratch.
func scratchWidth(s hlo.Shape) float64 {
	if s.DType == hlo.Tuple {
		width := 0.0
		for _, e := range s.Tuple {
			width += scratchWidth(e)
		}
		return width
	}
	return float64(max(1, s.DType.Size()))
}

// reorders reports whether an operand of a dot must be brought into the order
// batch, then contracted dimensions first, then the rest, or the other way round.
func reorders(rank int, batch, contract []int64, contractedFirst bool) bool {
	var free []int64
	for d := range int64(rank) {
		if !slices.Contains(batch, d) &&
			!slices.Contains(contract, d) {
			free = append(free, d)
		}
	}
	order := slices.Concat(batch, free, contract)
	if contractedFirst {
		order = slices.Concat(batch, contract, free)
	}
	return !slices.IsSorted(order)
}

// count counts what the program does at a tiling, once where several plans in turn have it.
func (c *counter) count(t symtile.Tiling) *counts {
	known := c.counted != nil
	if known && slices.Equal(c.counted, t) {
		return &c.counts
	}
	c.counted = append(c.counted[:0], t...)
	x := c.extents
	x.Set(t)
	k := &c.counts
	*k = counts{
		programs: x.Programs(),
	}
	c.shape()
	c.visible = c.shown()
	k.bodies = k.programs
	for n, dims := range c.loops {
		if c.own[n]&x.Several() != 0 {
			k.bodies += k.programs * x.Product(dims) * c.visible
		}
	}
	ragged := c.ragged(t)
	for n := range c.ops {
		if !x.Duplicate(n) {
			c.op(n, ragged)
		}
	}
	for _, n := range c.repeated {
		if x.Duplicate(n) {
			c.hold(n, t)
		}
	}
	c.traffic.set(c, ragged)
	c.passesOverRows(t)
	return k
}

// ragged is the dimensions whose last tile is not full.
func (c *counter) ragged(t symtile.Tiling) (set symtile.DimSet) {
	for k := range c.p.Space.Dims {
		tiled := int64(c.extents.Trips(k)) * t[k]
		if tiled != max(1, c.p.Space.Dims[k].Extent) {
			set |= 1 << k
		}
	}
	return set
}

// shape counts what follows from the sizes of tiles alone.
func (c *counter) shape() {
	k := &c.counts
	several := c.extents.Several()
	k.iterations = 1
	for d := range c.p.Space.Dims {
		sequential := c.p.Space.Dims[d].Kind != symtile.Parallel
		if sequential && several.Has(d) && !c.idle.Has(d) {
			k.loops++
			k.iterations *= c.extents.Trips(d)
		}
	}
}

// op counts an op that is no duplicate.
func (c *counter) op(n int, ragged symtile.DimSet) {
	x := c.extents
	k := &c.counts
	info := &c.ops[n]
	along := info.running != nil && c.runs(info.running)
	if along && info.kind != opReduces ||
		info.kind != opMultiplies && c.inLanes(info) || info.packed {
		return
	}
	size := x.Elements(n)
	runs := k.programs * x.Runs(n)
	if c.within[n] {
		runs *= c.visible
	}
	k.runs += runs
	if !info.direct {
		k.elements += size
	}
	if info.kind == opRenames || info.scattered >= 0 ||
		c.searched(n) || c.joinsParts(n) {
		return
	}
	k.steps += runs
	rows := 1.0
	switch info.kind {
	case opMultiplies:
		rows = c.dot(n, size, runs, ragged)
	case opScatters:
		c.scatter(n, size, runs, ragged)
		return
	case opReduces:
		if along {
			c.scan(n, size, runs)
			return
		}
		k.reduced += size * k.programs
		rows = c.reduce(n, runs, ragged)
	default:
		if !info.direct {
			k.work += size * runs
		}
		c.arithmetic(info, size*runs)
		if info.kind != opPointwise {
			rows = c.arrange(n, size, runs)
		}
	}
	k.rows += rows * runs
	c.movement(n, size, runs, ragged)
}

// arithmetic counts element operations that are neither products nor reductions.
// Moving an element counts like an operation of one flop.
func (c *counter) arithmetic(info *opCount, elements float64) {
	switch {
	case info.direct:
	case info.function:
		c.counts.functions += elements * info.weight
	case info.op.Code == hlo.OpIota:
		c.counts.moved += elements
		c.counts.scalar += elements * iotaShare
	default:
		c.counts.moved += elements
	}
}

// arrange is the rows of an op that loads or moves elements.
func (c *counter) arrange(n int, size, runs float64) float64 {
	info := &c.ops[n]
	if info.op.Code == hlo.OpGather && c.ops[info.op.Args[0]].direct {
		return gatheredRow * size / c.slice(n)
	}
	if info.kind == opOther {
		return 1
	}
	last := c.last(n)
	if info.direct {
		return 1
	}
	if info.kind == opLoads {
		return max(1, c.inside(n)/max(last, c.contiguous(n)))
	}
	if info.op.Code == hlo.OpTranspose && !info.keepsLast ||
		info.op.Code == hlo.OpReverse {
		c.counts.strided += runs * size
	}
	rows := size / last
	if d := c.lastDim(n); d >= 0 &&
		last >= float64(info.op.Instr.Shape.Dims[d]) &&
		c.movesOut(n) {
		rows = min(rows, size/periodicElements)
	}
	if c.turnsArrays(n) {
		read := c.last(info.op.Args[0])
		rows += turnedRow * size / read
	}
	return rows
}

// reduce counts a reduction; it returns its rows.
func (c *counter) reduce(n int, runs float64, ragged symtile.DimSet) float64 {
	k := &c.counts
	info := &c.ops[n]
	arg := info.op.Args[0]
	elements := c.extents.Elements(arg)
	if c.storesOperand(info) {
		c.store(arg, elements, runs)
	}
	k.work += elements * runs
	if info.scalar {
		k.scalar += elements * runs
	}
	c.mask(arg, runs, ragged)
	if c.searches(info) {
		k.moved += elements * runs
		return elements / c.last(arg)
	}
	c.combine(info, elements*runs)
	if info.function {
		k.functions += elements * runs * info.weight
	} else {
		k.moved += elements * runs * info.weight
	}
	return elements / c.last(arg)
}

// storesOperand reports whether all of what a reduction reads is in scratch first: what is
// computed, but for f32 in row kernels, and what is widened as it is loaded.
func (c *counter) storesOperand(info *opCount) bool {
	arg := info.op.Args[0]
	if c.readsNarrow(info) {
		return false
	}
	switch d := c.ops[arg].op.Instr.Shape.DType; c.ops[arg].kind {
	case opPointwise:
		return d != hlo.F32 || c.last(arg) > maxRowLength
	case opLoads:
		return !portable.IsNative(d) && !c.searches(info)
	}
	return false
}

// readsNarrow reports whether a reduction reads integers of one and two bytes in their array, see
// lowering.narrowStrides. Tiles that are masked, or whose rows are short, are widened to scratch all
// the same, which is not counted: their masks are known for some tilings only.
func (c *counter) readsNarrow(info *opCount) bool {
	d, held := info.op.Instr.Shape.DType, &c.p.Ops[info.op.Args[0]]
	for held.Code == hlo.OpConvert && sameInScratch(
		c.p.Ops[held.Args[0]].Instr.Shape.DType, held.Instr.Shape.DType,
	) {
		held = &c.p.Ops[held.Args[0]]
	}
	monoid, single := info.op.Instr.Attrs.ToApply.Monoid()
	return single && held.Code == hlo.OpParameter &&
		info.operands == 0 &&
		vector.HasNarrowReduction(monoid, d, held.Instr.Shape.DType)
}

// store counts what is written to scratch and read again. What the first cache does not keep
// comes through the second one, while nothing else is done: maxima of rows of s8[1024,1024] take 0.13 ms on a core of
// Emerald Rapids in tiles of 8 rows, 0.18 in such of 32, and 0.68 in one tile of 4 MiB.
func (c *counter) store(n int, elements, runs float64) {
	class := portable.ClassOf(c.ops[n].op.Instr.Shape.DType)
	bytes := elements * float64(class.Bytes())
	c.counts.scratch += bytes
	if 4*bytes > 3*float64(c.spec.First) {
		c.counts.stored += 2 * bytes * runs
	}
}

// searches reports whether a reduction searches rows for the pair that it keeps: where rows
// of a tile lie along the reduced dimension.
func (c *counter) searches(info *opCount) bool {
	return info.selects && slices.Contains(
		info.op.Instr.Attrs.Dimensions, c.lastDim(info.op.Args[0]),
	)
}

// searched reports whether an op is places of which a search makes those that it needs.
func (c *counter) searched(n int) bool {
	reader := c.ops[n].places
	return reader >= 0 && c.searches(&c.ops[reader])
}

// runs reports whether tiles have whole windows of a running reduction.
func (c *counter) runs(r *running.Reduce) bool {
	return c.extents.Sizes(r.Unfold)[r.Axis+1] == r.Size
}

// scanSteps is what an element of a row takes that is combined with the ones before it,
// in element operations: three steps of a shuffle, a selection and an operation each, and
// two operations with the carry. It is an estimate from the instructions.
const scanSteps = 5

// scan counts a running reduction: what is padded is read once, and less of it along
// the dimension itself than of other rows.
func (c *counter) scan(n int, size, runs float64) {
	k := &c.counts
	info := &c.ops[n]
	r := info.running
	read := c.extents.Elements(r.Padded)
	sizes := c.extents.Sizes(r.Padded)
	inner := hlo.Elements(sizes[r.Axis+1:])
	k.work += read * runs
	switch {
	case info.function:
		// A row is a call for the elements of as many lanes as there are.
		lanes := min(float64(inner*hlo.Elements(sizes[:r.Axis])), runningLanes)
		vector := max(lanes, pairsInVector)
		k.functions += read * vector / lanes * info.weight * runs
		k.moved += 2 * read * runs // to a strip, and back
		k.rows += read / lanes * runs
	case inner == 1:
		k.moved += (read - size + size*scanSteps) * info.weight * runs
		k.rows += read / c.last(r.Padded) * runs
	default:
		k.moved += read * info.weight * runs
		k.rows += read / c.last(r.Padded) * runs
	}
	k.touched += (read + size) * info.width * runs
	k.scratch += size * info.width
}

// scatter counts a scatter: each tile program reads all indices, and combines the share of
// the windows that falls into its tile, as if they were spread evenly. Single elements that
// are added are found and added by one loop in Go; a run of others begins like a row.
func (c *counter) scatter(n int, size, runs float64, ragged symtile.DimSet) {
	x := c.extents
	k := &c.counts
	info := &c.ops[n]
	updates := info.op.Args[2]
	window, run := 1.0, 1.0
	for u, d := range scattering.WindowDims(info.op.Instr) {
		if d >= 0 {
			size := x.Sizes(updates)[u]
			run = max(1, float64(size)) // at last, of the last one
			window *= run
		}
	}
	share := c.scatterShare(n)
	all := x.Elements(updates) * runs
	met := all * share          // elements that are combined
	result := size * k.programs // begins as the operand, once
	k.work += met + result
	k.scalar += all / window
	if window == 1 {
		k.scalar += met
	} else {
		k.rows += scatteredRow * met / run
	}
	k.moved += met + result
	k.touched += (3*met + 2*result) * info.width
	vectors := info.op.Args[1]
	k.touched += all / window * c.ops[vectors].width
	if len(info.users) > 0 || x.Over(n)&ragged != 0 ||
		!portable.IsNative(info.op.Instr.Shape.DType) {
		k.scratch += size * info.width // else it is in the output
	}
	// Updates and indices that are loaded are in scratch as a whole, too.
	for _, a := range info.op.Args[1:] {
		if c.ops[a].kind == opLoads && c.ops[a].scattered < 0 {
			k.scratch += x.Elements(a) *
				c.ops[a].width
		}
	}
}

// scatterShare is the part of the windows of a scatter that falls into a tile: along
// dimensions that index vectors address, as if they were spread evenly.
func (c *counter) scatterShare(n int) float64 {
	share := 1.0
	i := c.ops[n].op.Instr
	for _, d := range i.Attrs.Scatter.ToOperand {
		extent := max(1, i.Shape.Dims[d])
		share *= float64(c.extents.Sizes(n)[d]) /
			float64(extent)
	}
	return min(1, share)
}

// updatesRead is the scatter that reads parameter n in its array as updates; −1 for none.
func updatesRead(p *symtile.Program, n int) int {
	if !readByScattersOnly(p, n) {
		return -1
	}
	return slices.IndexFunc(p.Ops, func(op symtile.Op) bool {
		return op.Code == hlo.OpScatter && op.Args[2] == n
	})
}

// combine counts what a reduction by a computation does besides computing (reduce.go).
// Elements along a kept dimension and the results so far are copied to strips, and back.
// A row along a reduced one is divided into strips, whose neighbours are combined in
// rounds, each of which has half of the elements of the one before; what is left of the
// strips of a longer row is collected and combined in turn, and the last element with the
// result so far.
func (c *counter) combine(info *opCount, elements float64) {
	operands := float64(info.operands)
	if operands == 0 {
		return
	}
	arg := info.op.Args[0]
	row := c.last(arg)
	strips := math.Ceil(row / stripLength)
	rounds := strips
	c.counts.moved += 3 * operands * elements
	if slices.Contains(info.op.Instr.Attrs.Dimensions, c.lastDim(arg)) {
		rounds = 1 + math.Ceil(math.Log2(min(row, stripLength)))
		if strips > 1 {
			rounds += (stripRounds + 1) * strips
		}
	}
	c.counts.rounds += operands * rounds * elements / row
}

// dot counts a dot; it returns its rows: those that are packed, and the blocks of the
// result that its kernel computes at a time.
func (c *counter) dot(n int, size, runs float64, ragged symtile.DimSet) float64 {
	x := c.extents
	k := &c.counts
	info := &c.ops[n]
	left := info.op.Args[0]
	right := info.op.Args[1]
	terms := 1.0
	for _, d := range info.contracted {
		terms *= float64(x.Sizes(left)[d])
	}
	k.work += size * terms * runs
	k.products += size * terms * runs
	if c.inLanes(info) {
		k.dots += 2 * laneFlops * size * terms * runs
		return size / float64(x.Sizes(right)[info.parts[1][0][0]])
	}
	k.dots += 2 * size * terms * runs
	k.left += x.Elements(left) * runs
	k.right += x.Elements(right) * runs
	k.pieces += (c.piecesOf(left) + c.piecesOf(right)) * runs
	k.trips = c.tripsOf(info)
	c.makes(left, runs)
	c.makes(right, runs)
	attrs := &info.op.Instr.Attrs
	k.cut += c.cutRows(left, attrs.LHSContract) * runs
	k.cut += c.cutRows(right, attrs.RHSContract) * runs
	k.sums += size * k.programs
	k.passes += size * runs
	if c.storesApart(n) {
		k.passes += size * k.programs
	}
	c.mask(left, runs, ragged)
	c.mask(right, runs, ragged)
	for side, arg := range [...]int{left, right} {
		if c.ops[arg].packed {
			continue
		}
		if info.packs[side] {
			k.strided += runs * x.Elements(arg)
		}
		k.rows += c.arrangedRows(arg, &info.parts[side]) * runs
	}
	batch := 1.0
	for _, b := range info.op.Instr.Attrs.RHSBatch {
		batch *= float64(x.Sizes(right)[b])
	}
	k.matrices += (batch - 1) * runs
	columns := x.Elements(right) / terms / batch
	rows := size / columns / batch
	if columns == 1 && rows >= turnedRows {
		rows, columns = 1, rows
	}
	blocks := math.Ceil(rows/microRows) * math.Ceil(columns/microColumns)
	return batch * (blocks + rows + terms)
}

// arrangedRows is the rows in which an operand of a dot that is made in scratch is copied, one
// element at a time, before it is multiplied: where its rows or columns have no one stride,
// and the elements of a row do not follow each other. Windows of three by three of each
// channel, with the channels last, are rows of three elements.
func (c *counter) arrangedRows(n int, parts *[3][]int64) float64 {
	sizes := c.extents.Sizes(n)
	if c.ops[n].kind == opLoads || isMatrix(sizes, parts) {
		return 0
	}
	last := int64(-1) // of the dimensions of several elements in the order of the product
	for _, dims := range parts {
		for _, d := range dims {
			if sizes[d] > 1 {
				last = d
			}
		}
	}
	if last < 0 || last == c.lastDim(n) {
		return 0 // a row is copied as it lies
	}
	return c.extents.Elements(n) / float64(sizes[last])
}

// isMatrix reports whether the dimensions of each part of dense elements are one: no other
// of several elements is between them.
func isMatrix(sizes []int64, parts *[3][]int64) bool {
	for _, dims := range parts {
		last := int64(-1) // of the part, with several elements
		for _, d := range dims {
			if sizes[d] == 1 {
				continue
			}
			if last >= 0 && (d < last || hlo.Elements(sizes[last+1:d]) > 1) {
				return false
			}
			last = d
		}
	}
	return true
}

// tripsOf is the number of tiles of a contraction.
func (c *counter) tripsOf(info *opCount) float64 {
	left := info.op.Args[0]
	sizes := c.extents.Sizes(left)
	dims := c.ops[left].op.Instr.Shape.Dims
	trips := 1.0
	for _, d := range info.contracted {
		trips *= math.Ceil(float64(dims[d]) / float64(sizes[d]))
	}
	return trips
}

// makes counts an operand of a dot, unless it is read where it lies or packed from there.
func (c *counter) makes(n int, runs float64) {
	for c.ops[n].kind == opRenames && len(c.ops[n].op.Args) == 1 {
		n = c.ops[n].op.Args[0]
	}
	info := &c.ops[n]
	dtype := info.op.Instr.Shape.DType
	if info.kind == opLoads && (!dtype.IsFloat() || dtype.Bits() != 16) {
		return
	}
	elements := c.extents.Elements(n)
	k := &c.counts
	k.made += elements * runs
	k.madeBytes = max(k.madeBytes, elements*info.width)
}

// storesApart reports whether the result of a dot that nothing reads is computed in
// scratch and stored from there, since its rows or its columns have no one stride in the
// output: a tile of 16 by 28 places of a convolution's 112 by 112, but none of 8 by 112.
func (c *counter) storesApart(n int) bool {
	if c.ops[n].read {
		return false
	}
	op := c.ops[n].op
	a := &op.Instr.Attrs
	batch := len(a.LHSBatch)
	rows := batch + len(c.p.Ops[op.Args[0]].Tile) - batch - len(a.LHSContract)
	sizes, shape := c.extents.Sizes(n), op.Instr.Shape.Dims
	return isApart(sizes[:batch], shape[:batch]) ||
		isApart(sizes[batch:rows], shape[batch:rows]) ||
		isApart(sizes[rows:], shape[rows:])
}

// isApart reports whether the elements of a part of an array are not all one stride from
// the one before.
func isApart(sizes, shape []int64) bool {
	several, partial := false, false
	for d := len(sizes) - 1; d >= 0; d-- {
		if partial && sizes[d] > 1 {
			return true
		}
		several = several || sizes[d] > 1
		partial = partial || several && sizes[d] < shape[d]
	}
	return false
}

// mask counts the elements of an operand whose tiles may be masked.
func (c *counter) mask(n int, runs float64, ragged symtile.DimSet) {
	if c.ops[n].masked ||
		c.extents.Over(n)&ragged != 0 {
		c.counts.masked += runs * c.extents.Elements(n)
	}
}

// movement counts the bytes that an op touches and the scratch that it needs.
func (c *counter) movement(n int, size, runs float64, ragged symtile.DimSet) {
	k := &c.counts
	info := &c.ops[n]
	if info.kind != opPointwise && !info.direct {
		touched := size * info.width
		for _, a := range info.op.Args {
			if c.ops[a].direct { // a gather's table, of which it reads slices
				touched += size * info.width
				continue
			}
			if c.searched(a) {
				continue
			}
			touched += c.extents.Elements(a) * c.ops[a].width
		}
		k.touched += touched * runs
	}
	switch {
	case info.kind == opLoads || c.turnsArrays(n):
	case info.output && c.extents.Over(n)&ragged == 0 && !c.storesApart(n):
		k.results += size * info.width
	case info.tiled:
		k.scratch += size * info.width
	default:
		k.scratch += min(size, stripLength) * info.width
	}
}

// movesOut reports whether elements that an op moves go to an output, perhaps moved again,
// where short rows that are whole are copied by periods (vector.PeriodicCopy).
func (c *counter) movesOut(n int) bool {
	for _, user := range c.ops[n].users {
		x := &c.ops[user]
		moves := x.kind == opRenames || x.kind == opArranges
		if !moves || !c.movesOut(user) {
			return false
		}
	}
	return true
}

// turnsArrays reports whether an op moves rows of a parameter to columns of an output,
// which takes a block of scratch and no more, however large the tile is.
func (c *counter) turnsArrays(n int) bool {
	x := &c.ops[n]
	return x.op.Code == hlo.OpTranspose &&
		!x.keepsLast && len(x.users) == 0 &&
		c.ops[x.op.Args[0]].kind == opLoads
}

// hold counts the scratch of a pointwise op that stands for others: what one loop over a
// row computes and a later one reads again is held for a whole row.
func (c *counter) hold(n int, t symtile.Tiling) {
	for _, user := range c.ops[n].users {
		if !c.extents.Duplicate(user) {
			c.counts.scratch += c.extents.Elements(n) /
				c.rowsAtOnce(t) * c.ops[n].width
			return
		}
	}
}

// last is the size of the last dimension of a tile that is not of size 1.
func (c *counter) last(n int) float64 {
	if d := c.lastDim(n); d >= 0 {
		return float64(c.extents.Sizes(n)[d])
	}
	return 1
}

// lastDim is the last dimension of a tile that is not of size 1; −1 without.
func (c *counter) lastDim(n int) int64 {
	sizes := c.extents.Sizes(n)
	for k := len(sizes) - 1; k >= 0; k-- {
		if sizes[k] > 1 {
			return int64(k)
		}
	}
	return -1
}

// inside is the elements of the tile of an op that are in its array, at most: an update of
// few elements has tiles as large as those of what it is put into.
func (c *counter) inside(n int) float64 {
	dims := c.ops[n].op.Instr.Shape.Dims
	elements := 1.0
	for d, size := range c.extents.Sizes(n) {
		elements *= float64(min(size, dims[d]))
	}
	return elements
}

// contiguous is how many elements of the tile of an op follow each other in memory.
func (c *counter) contiguous(n int) float64 {
	op := c.ops[n].op
	shape, sizes := &op.Instr.Shape, c.extents.Sizes(n)
	run := 1.0
	for _, d := range c.traffic.orders[n] {
		size := sizes[d]
		last := c.traffic.orders[n][0]
		if d == last && c.traffic.paired[n] {
			// Both elements of a pair are read at once.
			both := min(2*size, shape.Dims[d])
			run = float64(both)
			if both < shape.Dims[d] {
				break
			}
			continue
		}
		digit := c.traffic.lastDigit[n]
		if digit != nil && digit[d] > 0 {
			return run * float64(min(size, digit[d]))
		}
		if size > 1 && !c.traffic.unitStride[n].Has(d) {
			break
		}
		run *= float64(min(size, shape.Dims[d]))
		if size < shape.Dims[d] {
			break
		}
	}
	return run
}

// slice is the elements that a gather of a tile has from one index: along the last dimension,
// where that is one of slices.
func (c *counter) slice(n int) float64 {
	last := len(c.ops[n].op.Tile) - 1
	if !slices.Contains(c.ops[n].op.Instr.Attrs.Gather.OffsetDims, int64(last)) {
		return 1
	}
	return float64(c.extents.Sizes(n)[last])
}

// gathered is the elements of an array that gathers read from op n of it in a run, and how
// many of them follow each other: those of a slice along the last dimension.
func (c *counter) gathered(n int) (elements, run float64) {
	run = c.contiguous(n)
	minor := c.traffic.orders[n][0]
	for _, k := range c.ops[n].gathers {
		elements += c.extents.Elements(k)
		slice := c.ops[k].op.Instr.Attrs.Gather.SliceSizes
		run = min(run, float64(min(c.extents.Sizes(n)[minor], slice[minor])))
	}
	return elements, run
}

// piecesOf is how many jumps a dot makes to read a tile, runs of elements next to each other
// of which the hardware does not foresee the next: one if it is in scratch, and of runs in
// one page one, since equal steps within a page are foreseen (Intel 64 and IA-32
// Architectures Optimization Reference Manual, Data Prefetching).
func (c *counter) piecesOf(n int) float64 {
	op := c.ops[n].op
	if c.ops[n].kind != opLoads {
		return 1
	}
	sizes := c.extents.Sizes(n)
	run, step := 1.0, 1.0 // elements from a run to the next
	for d := len(sizes) - 1; d >= 0; d-- {
		run *= float64(sizes[d])
		step *= float64(op.Instr.Shape.Dims[d])
		if sizes[d] < op.Instr.Shape.Dims[d] {
			break
		}
	}
	pieces := c.extents.Elements(n) / max(1, run)
	return max(1, pieces*min(1, step*c.ops[n].width/pageBytes))
}

// cutRows is the rows of an operand along which its last dimension is contracted: parts
// of the contraction read a piece of each.
func (c *counter) cutRows(n int, contracted []int64) float64 {
	sizes := c.extents.Sizes(n)
	last := len(sizes) - 1
	if c.ops[n].kind != opLoads || !slices.Contains(contracted, int64(last)) {
		return 0
	}
	return c.extents.Elements(n) / float64(sizes[last])
}

// passesOverRows counts how often rows are read again from beyond the second cache.
func (c *counter) passesOverRows(t symtile.Tiling) {
	k := &c.counts
	for _, d := range c.shorts { // every iteration begins and ends rows: 64 keys measure 6 % slower than 128
		k.reread = max(
			k.reread,
			0.25*math.Log2(onlineTile/float64(t[d])),
		)
	}
}

// rowsAtOnce is how many rows along the last parallel dimension a tile has that are
// computed one after the other, all of a row before the next: 1 where dots are among
// what is computed.
func (c *counter) rowsAtOnce(t symtile.Tiling) float64 {
	rows, last := 1.0, 1.0
	for k, d := range c.p.Space.Dims {
		if d.Kind == symtile.Parallel && c.counts.products == 0 {
			rows *= last
			last = float64(t[k])
		}
	}
	return rows
}
