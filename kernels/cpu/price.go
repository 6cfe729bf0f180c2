package cpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Costs beside the rates of the data sheet (spec.go). They are those of this backend's
// machine code on x86 cores at about 2.5 GHz, from the timings of the corpus
// (cost.TestCorpus -timings); a model that was fitted on a device has factors for each
// term.
const (
	elementFLOPs   = 3       // flop of the peak that an elementwise flop takes: no product is added to it
	functionFLOPs  = 3.5     // the same for functions, whose polynomials are
	rowSeconds     = 3.5e-9  // to start an innermost loop
	stridedSeconds = 0.45e-9 // to move an element on its own
	shortSeconds   = 2e-9    // to move an element of a row that is no vector
	scalarSeconds  = 1e-9    // for an element in a loop in Go: about three cycles
	roundSeconds   = 27e-9   // to combine neighbours of a strip, of one operand: a call of machine code
	maskedSeconds  = 0.6e-9  // to see whether an element is masked
	bodySeconds    = 130e-9  // to locate the tiles of a tile program or an iteration
	stepSeconds    = 10e-9   // to start a tile op
	productSeconds = 160e-9  // to multiply matrices of few elements: 100 ns on a Zen 5 at 3.9 GHz (BenchmarkMultiply, 1×1×9)
	launchSeconds  = 1.5e-6  // to run at all
	wakeSeconds    = 1e-6    // to wake and join each lane but the first: a worker that spins begins in less (internal/workers), 0.2 µs on a Zen 5 and 2 where a hypervisor has its cores far apart
	hiddenShare    = 1.0 / 5 // what counts of arithmetic and traffic that is not the longest: cores hide the rest
)

// How long a run of contiguous bytes takes to begin in arrays that stay in the last cache,
// a third of its latency, since a core begins a run before others end; and how long each
// of its first lines takes from memory, a tenth of the latency, since ten are on their way
// at once. Column sums of 8192×1024 take 1.2, 2.6 and 3.8 ms on a lane of Zen 4 in tiles of
// 1024, 512 and 256 columns, which begin 16,384 and 32,768 runs more than the first, and
// 5.5 and 8.9 ms in tiles of 64 and 32.
const (
	startSeconds = 6e-9
	lateSeconds  = 10e-9
)

// What dots take time for besides products, in products: few large tile programs,
// which pack little, are best.
const (
	packLeft       = 8    // to fetch and pack an element of the left operand, in rows
	packRight      = 16   // the same of the right one, in panels of a line each
	accumulateCost = 16   // to load and store an element of what is added to, each time a dot runs
	partialSumCost = 12   // to add or copy an element of a partial sum, which one lane does for all
	jumpCost       = 1024 // to go on elsewhere in memory: a page and the lines the hardware did not foresee
	dotRunCost     = 4096 // to run a tile op of a program of dots at all
	sumCopies      = 4    // times that elements of partial sums are copied, besides being added
	// Times as long as that partial sums of bytes take where tiles multiply: those of another
	// lane come from its caches (3×3 of 14×14 windows: 100 to 130 µs, Emerald Rapids).
	byteSumCost = 2
)

// Shares of the time of arithmetic and traffic by which tilings take longer, and
// exponents of ratios by which they do.
const (
	loopCost           = 0.19 // for each sequential dimension of several tiles
	rereadCost         = 0.27 // where rows are read again from beyond the second cache
	dotScratchExponent = 0.2  // of how many times the scratch of dots takes half the second cache
	slackExponent      = 0.01 // of how many times fewer programs there are than four for each lane: something else runs now and then on one of them
)

// parallelWork is element operations that are worth waking other lanes for.
const parallelWork = 1 << 18

// longTileProgram is element operations beyond which one waits for a tile program of a
// run that was cancelled: a fifth of a second.
const longTileProgram = 1 << 33

// unmodelledShare is by how much of its time a plan is expected to be slower for each
// knob whose effect no term describes: what the backend chooses by itself is best on
// average.
const unmodelledShare = 0.02

// The terms of a price begin with those of arithmetic, which are followed by one for
// each level of memory. These overlap; the others are added to them.
const (
	termDots      = iota // products of dots, at the peak of a lane
	termElements         // element operations of one flop, and elements that are moved
	termFunctions        // divisions, roots and transcendental functions
	computeTerms
)

const (
	termRows    = iota // starts of innermost loops
	termStrided        // elements that are moved one at a time
	termShort          // elements that are moved in rows shorter than a vector
	termScalar         // elements that loops in Go convert or reduce
	termRounds         // rounds of reductions by a computation
	termMasks          // tests whether elements are masked
	termBodies         // starts of tile programs and of iterations of their loops
	termSteps          // starts of tile ops, and of products of matrices
	termPacking        // packing of the operands of dots, and sums of partial results
	termLoops          // loops over tiles: accumulators, rows that are read again, parts that are joined
	termNarrow         // runs of bytes that begin anew since tiles are shorter than rows in memory
	termScratch        // scratch beyond half the second cache, and tiles in it beyond the first
	termIdle           // lanes without a tile program while others have one
	termKnobs          // knobs that no other term describes
	termLaunch         // the launch, and waking lanes
	overheadTerms
)

var computeNames = [...]string{
	termDots:      "dots",
	termElements:  "elements",
	termFunctions: "functions",
}

var overheadNames = [...]string{
	termRows:    "rows",
	termStrided: "strided",
	termShort:   "short rows",
	termScalar:  "scalar",
	termRounds:  "rounds",
	termMasks:   "masks",
	termBodies:  "tile programs",
	termSteps:   "tile ops",
	termPacking: "packing",
	termLoops:   "loops",
	termNarrow:  "narrow tiles",
	termScratch: "scratch",
	termIdle:    "idle lanes",
	termKnobs:   "other knobs",
	termLaunch:  "launch",
}

// A pricer prices the plans of one program.
//
// A price is made in three steps. The counter of the program, or of the program with
// joined loops where the plan runs that, counts what the tiling does (count.go):
// arithmetic, movement, starts of loops. The counts times rates are the terms of
// arithmetic and of overheads, and the traffic model (traffic.go) gives the bytes of each
// level of memory for the order of tiles and the number of lanes that the knobs choose.
// What slows down all of the work is a share of the time of arithmetic and traffic: loops
// over tiles, scratch that leaves the second cache, idle lanes.
//
// The pricer reads the caches, the lanes and the width of vectors of a device, and the
// data sheet of its family, not its measured rates: the order of plans, and with it the default plan, is the same on every
// start.
type pricer struct {
	p      *symtile.Program
	device kernels.Device
	prior  prior // its rates
	spec   deviceSpec
	// Of the program, and of the program with joined loops; nil where none can be
	// joined.
	plain, joined *counter
	terms         kernels.PriceTerms
	// The ops that splitk= divides.
	divided []int
	// Of the device of another backend, whose knobs are not known.
	foreign bool
	past    int64 // bytes of an output that is written past the caches by default
	kept    bool  // all arrays are in the last cache from the run before
	half    half  // of all dots
	// How many times faster than multiply-adds dots are, where all are of bytes.
	bytes float64
	// The values of its knob that are offered; nil: none.
	halves func(half) []int64
	wide   bool // row kernels may have vectors of 512 bits
	// Flop/s of a lane in dots.
	flops     float64
	slowness  float64 // of its clock, beside the typical core's
	bandwidth []float64
	last      lastPrice
}

// A lastPrice is the plan that was priced last, and its price: plans that follow each
// other often differ in nothing but knobs that no term describes.
type lastPrice struct {
	known bool // there is one
	tiles symtile.Tiling
	knobs []kernels.Knob
	price kernels.Price
}

// again reports whether a plan has the price of the last one: the same tiles, and the
// same knobs but for the values of those that no term describes.
func (l *lastPrice) again(plan kernels.Plan) bool {
	if !l.known || !slices.Equal(l.tiles, plan.Tiles) {
		return false
	}
	alike := func(a, b kernels.Knob) bool {
		return a.Name == b.Name &&
			(a.Value == b.Value || !isPriced(a.Name))
	}
	return slices.EqualFunc(l.knobs, plan.Knobs, alike)
}

// keep notes a plan and its price; it allocates for the first ones only.
func (l *lastPrice) keep(plan kernels.Plan, price *kernels.Price) {
	l.known = true
	l.tiles = append(l.tiles[:0], plan.Tiles...)
	l.knobs = append(l.knobs[:0], plan.Knobs...)
	seconds := append(l.price.Seconds[:0], price.Seconds...)
	l.price = *price
	l.price.Seconds = seconds
}

// Pricer prices the plans of a program on this machine, by what is typical of cores with
// its caches and vectors.
func (b *Backend) Pricer(p *symtile.Program) (kernels.Pricer, error) {
	return b.pricer(p)
}

// pricer prices the plans of a program on this machine, and offers what it has.
func (b *Backend) pricer(p *symtile.Program) (*pricer, error) {
	x, err := newPricer(p, b.Identity(), b.prior)
	if err == nil {
		x.halves, x.wide = b.halves, b.wide
	}
	return x, err
}

// Roofline prices the plans of any backend on a device by its lanes and the levels of its
// memory, at its rates where they are known. Knobs of that backend are taken for what
// they are called here.
func Roofline(p *symtile.Program, d kernels.Device) (kernels.Pricer, error) {
	x, err := newPricer(p, d, unknownPrior())
	if err != nil {
		return nil, err
	}
	x.foreign = true
	lanes := float64(max(1, d.Lanes))
	if d.FLOPS > 0 {
		x.flops = d.FLOPS / lanes
	}
	for k, l := range d.Levels {
		if l.Bandwidth > 0 {
			x.bandwidth[k] = l.Bandwidth / lanes
		}
	}
	return x, nil
}

// newPricer compiles the counters of a program and lays out the terms for a device.
func newPricer(p *symtile.Program, d kernels.Device, prior prior) (*pricer, error) {
	d.Levels = believed(d)
	x := &pricer{
		p:       p,
		device:  d,
		prior:   prior,
		spec:    deviceSpecOf(d),
		divided: dividedOps(p),
		half:    halfOfDots(p),
	}
	var err error
	if x.plain, err = newCounter(turnedProducts(p), x.spec); err != nil {
		return nil, err
	}
	if q := p.Online(); q != p {
		if x.joined, err = newCounter(turnedProducts(q), x.spec); err != nil {
			return nil, err
		}
	}
	x.spec.past = prior.sheet.PastBytes
	x.past = x.spec.pastFrom(hasDot(p))
	x.kept = x.stays()
	x.bytes = 1
	if dotsOfBytes(p) {
		x.bytes = prior.bytes(x.spec.vector)
	}
	x.flops = prior.flops(x.spec.vector)
	x.slowness = prior.slowness()
	x.bandwidth = prior.bandwidth(d.Levels)
	x.terms = kernels.PriceTerms{
		Hidden:      hiddenShare,
		Overlapping: computeTermCount(d),
	}
	x.terms.Names = append(x.terms.Names, computeNames[:]...)
	for _, l := range d.Levels {
		x.terms.Names = append(x.terms.Names, l.Name)
	}
	x.terms.Names = append(x.terms.Names, overheadNames[:]...)
	return x, nil
}

// computeTermCount is the number of terms that overlap: arithmetic and memory.
func computeTermCount(d kernels.Device) int {
	return computeTerms + len(d.Levels)
}

// Terms are arithmetic, levels of memory and overheads.
func (x *pricer) Terms() kernels.PriceTerms { return x.terms }

// Price is the price of a plan that is legal.
func (x *pricer) Price(plan kernels.Plan, price *kernels.Price) error {
	if err := x.p.Check(plan.Tiles); err != nil {
		return err
	}
	if !x.foreign {
		if err := CheckKnobs(plan); err != nil {
			return err
		}
	}
	if x.last.again(plan) {
		copy(price.Seconds, x.last.price.Seconds)
		price.Lanes = x.last.price.Lanes
		price.Scratch = x.last.price.Scratch
		return nil
	}
	x.price(plan, x.count(plan), price)
	x.last.keep(plan, price)
	return nil
}

// counter is the one whose program a plan runs.
func (x *pricer) counter(plan kernels.Plan) *counter {
	if x.joined != nil &&
		x.joined.applies(plan.Tiles) &&
		plan.Knob("online", 1) == 1 {
		return x.joined
	}
	return x.plain
}

// count counts what a plan does but for its knobs.
func (x *pricer) count(plan kernels.Plan) *counter {
	c := x.counter(plan)
	k := c.count(plan.Tiles)
	if x.joined != nil && c == x.plain &&
		4*k.elements > float64(x.spec.Second)*c.rowsAtOnce(plan.Tiles) {
		k.reread = 1
	}
	return c
}

// price writes the terms of a plan that was counted.
func (x *pricer) price(plan kernels.Plan, c *counter, price *kernels.Price) {
	k := &c.counts
	lanes := float64(max(1, x.device.Lanes))
	lanes = max(1, min(float64(plan.Knob("threads", int64(lanes))), lanes))
	parts := x.parts(plan, c)
	t := price.Seconds
	clear(t)
	flops := x.flops * x.dotRate(plan)
	t[termDots] = k.dots / flops / lanes
	t[termElements] = elementFLOPs * k.moved / x.flops / lanes
	t[termFunctions] = functionFLOPs * k.functions / x.flops / lanes
	levels := t[computeTerms:]
	x.memory(plan, c, lanes, levels)
	x.operands(plan, k, lanes, parts, t)

	base := price.Total(&x.terms)
	t = t[x.terms.Overlapping:]
	x.overheads(k, lanes, parts, t)
	if 3*k.products < k.work {
		x.shares(k, base, lanes, parts, t)
		t[termIdle] = (base + sum(t)) * idleShare(k, lanes, parts)
	} else {
		x.dotShares(k, base, lanes, parts, t)
		t[termIdle] = (base + sum(t)) * dotIdleShare(k, lanes, parts)
	}
	busy := min(lanes, k.programs*parts)
	t[termLaunch] = launchSeconds + wakeSeconds*x.slowness*(busy-1)
	if n := unmodelled(plan); n > 0 {
		t[termKnobs] = n * unmodelledShare * price.Total(&x.terms)
	}
	price.Lanes = busy
	price.Scratch = k.scratch + k.results // what tiles take, wherever they are
}

// parts is the number of tile programs that share a tile: those of splitk=, but one where
// a reduction has fewer iterations than parts, which planSplit does not divide.
func (x *pricer) parts(plan kernels.Plan, c *counter) float64 {
	if x.divided == nil {
		return 1
	}
	parts := float64(plan.Knob("splitk", 1))
	if isDot(x.p.Ops[x.divided[0]]) {
		return parts
	}
	trips := 1.0
	for k, d := range c.p.Space.Dims {
		if d.Kind != symtile.Parallel {
			trips *= c.extents.Trips(k)
		}
	}
	if trips < parts {
		return 1
	}
	return parts
}

// dotRate is how many times faster the dots of a plan are than multiply-adds.
func (x *pricer) dotRate(plan kernels.Plan) float64 {
	if x.foreign || x.half == noHalf {
		return x.bytes
	}
	way := plan.Knob(string(x.half), 0)
	how := x.half.products(way)
	return x.prior.half(how, x.spec.vector)
}

// operands adds what operands of dots that are made in scratch take besides. Parts of a
// contraction without a loop that they could share make the whole operand each; what lanes
// hold of it beyond the last cache is written to memory, for which its lines are read, and
// read back. 8 parts of 4,096 by 14,336 numbers of bf16 take 100 ms and more on a Zen 4, one 22 to
// 30, and 6 where pairs are packed from where they lie.
func (x *pricer) operands(
	plan kernels.Plan, k *counts, lanes, parts float64, t []float64,
) {
	inPlace := x.half != noHalf && plan.Knob(string(x.half), 0) != 0
	if k.made == 0 || inPlace || k.products == 0 {
		return
	}
	times := 1.0
	if k.trips < parts {
		times = parts
	}
	again := k.made * (times - 1)
	t[termElements] += elementFLOPs * again / x.flops / lanes
	last := len(x.device.Levels) - 1
	if last < 0 || k.madeBytes*lanes <= float64(x.spec.last) {
		return
	}
	const passes = 3
	bytes := passes * narrowest * k.made * times
	t[computeTerms+last] += bytes / (x.bandwidth[last] * lanes)
}

// narrowest is bytes of a number in scratch, at least.
const narrowest = 4

// sum adds terms up.
func sum(t []float64) float64 {
	total := 0.0
	for _, seconds := range t {
		total += seconds
	}
	return total
}

// overheads writes the terms that are counts times seconds, which are instructions and so as
// many times shorter as the clock is faster.
func (x *pricer) overheads(k *counts, lanes, parts float64, t []float64) {
	bodies := k.bodies + k.programs*(parts-1)
	steps := k.steps + k.programs*parts*min(1, parts-1)
	each := x.slowness / lanes
	t[termRows] = k.rows * rowSeconds * each
	t[termStrided] = k.strided * stridedSeconds * each
	t[termShort] = k.short * shortSeconds * each
	t[termScalar] = k.scalar * scalarSeconds * each
	t[termRounds] = k.rounds * roundSeconds * each
	t[termMasks] = k.masked * maskedSeconds * each
	t[termBodies] = bodies * bodySeconds * each
	t[termSteps] = (steps*stepSeconds + k.matrices*productSeconds) * each
}

// shares writes the terms that are shares of the time of arithmetic and traffic, and that
// of runs of bytes that begin.
func (x *pricer) shares(k *counts, base, lanes, parts float64, t []float64) {
	loops := k.loops
	if parts > 1 && parts >= k.iterations {
		loops = 0 // each part has one iteration
	}
	t[termLoops] = base * (loopCost*loops + rereadCost*k.reread)
	if parts > 1 {
		t[termLoops] += partialSumCost * k.reduced * (parts + sumCopies) * 2 / x.flops
	}
	t[termNarrow] = k.starts * startSeconds / lanes
	if !x.kept {
		t[termNarrow] = k.late * lateSeconds / lanes
	}
	t[termScratch] = base * (x.spilled(k, parts) - 1)
	if k.stored > 0 {
		t[termScratch] += k.stored / x.bandwidth[min(1, len(x.bandwidth)-1)] / lanes
	}
}

// stays reports whether all arrays take half of the last cache at most, where they are from
// the run before, and that cache is faster than memory: it is not where outputs of that size
// are best written past it.
func (x *pricer) stays() bool {
	t := &x.plain.traffic
	past := slices.ContainsFunc(t.accesses, func(a arrayAccess) bool {
		return a.array < 0 && a.bytes >= float64(x.past)
	})
	return !past && 2*t.bytes <= float64(x.spec.last)
}

// dotShares is shares for programs that are mostly dots, with the packing of their
// operands. Dots divide tiles for the caches themselves.
func (x *pricer) dotShares(k *counts, base, lanes, parts float64, t []float64) {
	products := packLeft*k.left + packRight*k.right
	products += accumulateCost * k.passes
	products += jumpCost * k.pieces
	products += dotRunCost * k.runs * parts
	if parts > 1 {
		products += jumpCost * k.cut * parts
		sums := partialSumCost * k.sums * (parts + sumCopies) * lanes
		if x.bytes > 1 {
			sums *= byteSumCost
		}
		products += sums
	}
	t[termPacking] = products * 2 / x.flops / lanes
	t[termLoops] = base * (loopCost*k.loops + rereadCost*k.reread)
	t[termScratch] = base * (math.Pow(x.spilled(k, parts), dotScratchExponent) - 1)
}

// spilled is how often the scratch of a lane takes half of the second cache, at least 1. Parts
// of a tile are in scratch before they are added to an output.
func (x *pricer) spilled(k *counts, parts float64) float64 {
	scratch := k.scratch
	if parts > 1 {
		scratch += k.results
	}
	return max(1, scratch/float64(x.spec.Second/2))
}

// idleShare is by how much longer a program takes than if its tile programs could be
// divided among the lanes: prices are of a quiet machine. Where something else runs, many
// programs are divided better, but with 15 % for that the first plan took 1.098 times the
// fastest of 150 on two quiet cores of a Zen 5, and takes 1.055 (29 fusions of the corpus).
func idleShare(k *counts, lanes, parts float64) float64 {
	if lanes < 2 {
		return 0
	}
	return uneven(k.programs*parts, lanes) - 1
}

// dotIdleShare is idleShare for programs that are mostly dots, whose tile programs are
// long enough to be divided evenly; but not so long that one waits for them.
func dotIdleShare(k *counts, lanes, parts float64) float64 {
	worth := min(1, k.work/parallelWork)
	share := 1 + worth*(uneven(k.programs*parts, lanes)-1)
	return share*max(1, k.work/k.programs/longTileProgram) - 1
}

// unmodelled is the number of knobs of a plan that no term describes.
func unmodelled(plan kernels.Plan) float64 {
	n := 0.0
	for _, k := range plan.Knobs {
		if !isPriced(k.Name) {
			n++
		}
	}
	return n
}

// isPriced reports whether a term describes what a knob does.
func isPriced(knob string) bool {
	row := knobs.Find(knob)
	return row != nil && row.Priced
}

// uneven is how many times longer so many programs take on so many lanes than if they
// could be divided among them.
func uneven(programs, lanes float64) float64 {
	if lanes < 2 {
		return 1
	}
	waves := math.Ceil(programs/lanes) * lanes / programs
	return waves * math.Pow(max(1, 4*lanes/programs), slackExponent)
}

// memory writes the seconds of every level. Nothing comes from memory where all arrays
// take half of the last cache at most: they are there from the run before, but for what
// is written past the caches.
func (x *pricer) memory(
	plan kernels.Plan, c *counter, lanes float64, t []float64,
) {
	k := &c.counts
	levels := x.device.Levels
	if len(levels) == 0 {
		return
	}
	c.traffic.order(c, float64(plan.Knob("group", 1)))
	c.traffic.past(plan, x.past)
	wasted := max(1, memoryLine/2/max(k.innerRun, 1))
	t[0] = k.touched / (x.bandwidth[0] * lanes)
	for n := 1; n < len(levels); n++ {
		rate := x.bandwidth[n] * lanes
		if x.kept && n == len(levels)-1 {
			t[n] = c.traffic.pastBytes() / rate
			break
		}
		inside := levels[n-1]
		keeps := math.Inf(1)
		if inside.Bytes > 0 {
			keeps = float64(inside.Bytes)
			if inside.Shared {
				keeps /= lanes
			}
		}
		bytes := c.traffic.through(
			c, keeps, lanes,
			!inside.Shared && inside.Bytes > 0,
			n == len(levels)-1,
		)
		t[n] = bytes * wasted / rate
	}
}

// flopWeight is the flop of an element of an operation; operations of tile programs that
// HLO does not have, which address memory, count 1.
func flopWeight(code hlo.Opcode) float64 {
	if !code.Known() {
		return 1
	}
	return code.FLOPs()
}

// reducerWeight is the flop of combining two elements.
func reducerWeight(i *hlo.Instr) float64 {
	sum := 0.0
	for _, x := range i.Attrs.ToApply.Instrs {
		sum += flopWeight(x.Op)
	}
	return sum
}
