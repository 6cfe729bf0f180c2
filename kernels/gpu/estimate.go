package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// An estimate says, for a tiling and launch choices, what a block needs and
// about how long the kernel takes, without generating it. The sizes of tiles are
// compiled once.
type estimate struct {
	p       *symtile.Program
	sheet   device.Spec
	extents *symtile.Extents
	tensor  [2][]bool              // by tf32, of ops that are products: tensor cores have it
	groups  [2][]bool              // and warpgroups may have it
	orders  map[int]reductionOrder // of the reductions that depend on it
	parted  splitProgram
	over    []symtile.DimSet // parallel dimensions that the tiles of parameters depend on
	feeds   []int            // of parameters: the product by warpgroups that reads it, −1: none
	brought []float64        // bytes of each parameter that a block reads
	covered []float64        // tiles of a wave along each dimension
	// unique is the bytes of all arrays, which memory moves once at least.
	unique float64
	pitch  []int64 // bytes from a row of each op to the next
	order  [][]int // of the dimensions of every op, the fastest in memory last
	picks  []int   // of parameters: the gather that picks elements of it, −1: none
	dots   bool    // there are products
}

func newEstimate(p *symtile.Program, s device.Spec) (*estimate, error) {
	x, err := symtile.NewExtents(p)
	if err != nil {
		return nil, err
	}
	m := &estimate{p: p, sheet: s, extents: x, orders: map[int]reductionOrder{}}
	m.lie()
	m.products()
	m.operands()
	m.parted = splitProgramOf(p)
	for n, op := range p.Ops {
		if op.Code != hlo.OpReduce {
			continue
		}
		_, any := op.Instr.Attrs.ToApply.Monoid()
		if !any || len(op.Args) > 2 {
			m.orders[n] = orderOf(p, op)
		}
	}
	for _, x := range append(p.Fusion.ParamShapes(), kernels.OutputShapes(p.Fusion)...) {
		m.unique += float64(x.Bytes())
	}
	return m, nil
}

// products notes which products tensor cores and warpgroups have, without and
// with tf32.
func (m *estimate) products() {
	for tf32 := range m.tensor {
		k := knobs{tf32: tf32}
		m.tensor[tf32], m.groups[tf32] = make(
			[]bool, len(m.p.Ops),
		), make([]bool, len(m.p.Ops))
		for n, op := range m.p.Ops {
			m.tensor[tf32][n] = op.Code == hlo.OpDot &&
				onTensorCores(m.p, n, m.sheet, k)
			m.groups[tf32][n] = op.Code == hlo.OpDot &&
				groupable(m.p, n, m.sheet, k)
		}
	}
}

// lie notes how ops lie in memory, and which are of the same parameter.
func (m *estimate) lie() {
	for n, op := range m.p.Ops {
		order := majorToMinor(op.Instr.Shape)
		pitch := op.Instr.Shape.DType.Size()
		if len(order) > 0 {
			pitch *= max(
				1,
				op.Instr.Shape.Dims[order[len(order)-1]],
			)
		}
		m.order = append(m.order, order)
		m.pitch = append(m.pitch, pitch)
		m.picks = append(m.picks, -1)
		m.dots = m.dots || op.Code == hlo.OpDot
		if op.Code == hlo.OpGather {
			m.picks[op.Args[0]] = n
		}
	}
}

// A candidate is a tiling and launch choices with what they cost.
type candidate struct {
	tiling   symtile.Tiling
	knobs    knobs
	shared   float64 // bytes of a block
	partials float64 // results that a thread keeps
	moved    float64 // bytes between memory and all blocks
	slots    float64 // elements of an op that a thread has at once
	terms    terms
	seconds  float64
	threads  float64 // of all blocks
}

// A load is what one block does.
type load struct {
	bytes   float64 // moved to and from memory
	sectors float64 // bytes of the sectors of the L2 cache that it asks for
	copied  float64 // of them, by tensor copies
	given   float64 // of them, by other blocks of the cluster
	scratch float64 // bytes between the kernels of a plan
	lanes   float64 // operations of the arithmetic units, those of idle threads too
	steps   float64 // operations of a thread that wait for each other
	asks    float64 // accesses of memory by a thread
	tensor  float64 // cycles of an SM's tensor cores
	groups  float64 // of them, by warpgroups
	traffic float64 // bytes read from shared memory
	exposed float64 // cycles that its warps wait for memory
}

// set evaluates a tiling; it returns the number of blocks.
func (m *estimate) set(t symtile.Tiling) (programs float64) {
	m.extents.Set(t)
	return m.extents.Programs()
}

// inOrder reports whether tiles of the sizes that are set go through what depends on
// their order in order.
func (m *estimate) inOrder() bool {
	for n, o := range m.orders {
		sizes := m.sizes(m.p.Ops[n].Args[0])
		tiles := func(d int) int64 { return int64(m.extents.Trips(d)) }
		if o.broken(sizes, tiles) >= 0 {
			return false
		}
	}
	return true
}

func (m *estimate) sizes(n int) []int64 { return m.extents.Sizes(n) }

func (m *estimate) elements(n int) float64 { return m.extents.Elements(n) }

// runs is how many times a block comes to an op.
func (m *estimate) runs(n int) float64 { return m.extents.Runs(n) }

// candidate costs a tiling, which has been set.
func (m *estimate) candidate(t symtile.Tiling, programs float64, k knobs) candidate {
	c := candidate{tiling: t, knobs: k}
	if k.splitk > 1 {
		m.split(programs, &c)
	} else {
		l := m.work(nil, &c)
		m.store(&c, &l)
		l.exposed += m.spills(c)
		c.terms = m.terms(c, programs, l, m.unique)
		c.moved = programs * l.bytes
	}
	c.seconds = c.terms.total()
	c.threads = programs * float64(k.warps*device.WarpThreads)
	return c
}

// work is what a block does for some ops, nil for all.
func (m *estimate) work(ops []bool, c *candidate) load {
	k := c.knobs
	threads := float64(c.knobs.warps * device.WarpThreads)
	part := 1.0
	if k.splitk > 1 {
		part = m.longest(k.splitk)
	}
	l := load{exposed: latency, lanes: prologue * threads}
	clear(m.brought)
	for n, op := range m.p.Ops {
		if ops != nil && !ops[n] ||
			ops == nil && m.extents.Duplicate(n) {
			continue
		}
		runs := m.runs(n)
		if m.parted.inside[n] {
			runs *= part
		}
		switch op.Code {
		case hlo.OpParameter:
			m.bring(n, k, runs, &l)
		case hlo.OpDot:
			m.dot(n, k, runs, c, &l)
		case hlo.OpReduce:
			all := m.elements(op.Args[0])
			m.operate(all, runs, c, &l)
			c.partials += m.partials(n, threads)
			if runs > 1 || all/threads > 2*unrolled { // does not stay in registers: comes again, from L2
				l.sectors += all *
					float64(op.Instr.Shape.DType.Size()) *
					runs
			}
			l.exposed += latency/2*runs + latency/2
		default:
			m.operate(m.elements(n), runs, c, &l)
		}
	}
	if c.slots > 2*unrolled && !m.dots { // a loop over parts of the tile, which asks for one when it has done another
		l.exposed += latency *
			(math.Ceil(c.slots/unrolled) - 1)
	}
	return l
}

// operate adds an operation of each of a number of elements. Every thread takes
// its turns, those too that have no element in them.
func (m *estimate) operate(elements, runs float64, c *candidate, l *load) {
	threads := float64(c.knobs.warps * device.WarpThreads)
	slots := math.Ceil(elements / threads)
	l.lanes += slots * threads * runs
	l.steps += slots * runs
	c.slots = max(c.slots, slots)
}

// ask adds the accesses of a tile, as wide as emitter.vectorOf has them.
func (m *estimate) ask(n int, runs float64, k knobs, l *load) {
	shape := m.p.Ops[n].Instr.Shape
	threads := float64(k.warps * device.WarpThreads)
	elements := m.picked(n)
	v := int64(k.vector) / shape.DType.Size()
	if order := m.order[n]; len(order) > 0 {
		fast := order[len(order)-1]
		for v > 1 &&
			(m.sizes(n)[fast]%v != 0 ||
				shape.Dims[fast]%v != 0 ||
				elements < float64(v)*threads) {
			v /= 2
		}
	}
	l.asks += math.Ceil(elements/
		(threads*float64(max(1, v)))) * runs
}

// store adds what the results of a block cost.
func (m *estimate) store(c *candidate, l *load) {
	for _, r := range m.p.Roots {
		l.bytes += m.moved(r.Op, burst)
		l.sectors += m.moved(r.Op, sectorBytes)
		m.ask(r.Op, 1, c.knobs, l)
		m.leave(r.Op, c.knobs, c, l)
	}
}

// leave adds what the fragments of a product cost on their way out: stored as
// they are they fill a part of each burst; in shared memory they take the place
// of operands, and time.
func (m *estimate) leave(n int, k knobs, c *candidate, l *load) {
	switch {
	case !slices.Contains(m.tensor[k.tf32], true):
	case k.epilogue > 0:
		bytes := m.elements(n) *
			float64(m.p.Ops[n].Instr.Shape.DType.Size()) *
			1.1
		if k.persistent > 0 {
			c.shared += bytes * float64(k.mathGroups()) // beside the operands of the next tile
		}
		c.shared = max(c.shared, bytes)
		l.exposed += latency / 2
	default:
		l.bytes += m.moved(n, burst) / 4
		l.sectors += m.moved(n, sectorBytes) / 4
	}
}

// latency is the cycles from asking memory to having the data, a barrier and
// what is around them included (Jia et al., Dissecting the NVIDIA Volta GPU
// Architecture via Microbenchmarking, 2018, §3: 400 to 600 for global memory).
const latency = 800

// perSlot is the cycles between the end of a product by warpgroups and the start
// of the next that a barrier takes (Luo et al., Dissecting the NVIDIA Hopper
// Architecture, 2025: 33 for an access to shared memory, and what follows it).
const perSlot = 40

// picked is the elements of a tile that are read.
func (m *estimate) picked(n int) float64 {
	if g := m.picks[n]; g >= 0 {
		return min(m.elements(n), m.elements(g))
	}
	return m.elements(n)
}

// burst is the bytes memory moves at a time, at the rate it is said to have, and
// sectorBytes those that the L2 cache gives an SM, a quarter of its line (CUDA C++ Best
// Practices Guide, Coalesced Access to Global Memory; JESD238, HBM3: 64 bytes).
const burst, sectorBytes = 64, 32

// moved is the bytes that are moved to load or store a tile: the grains that rows
// of the dimension fastest in memory lie in, on an average of the places where
// they can begin.
func (m *estimate) moved(n int, grain float64) float64 {
	shape := m.p.Ops[n].Instr.Shape
	total := m.picked(n) * float64(shape.DType.Size())
	row := int64(1)
	for _, d := range slices.Backward(m.order[n]) {
		size := m.sizes(n)[d]
		row *= size
		if size < shape.Dims[d] {
			break
		}
	}
	bytes := row * shape.DType.Size()
	aligned := int64(grain)
	for _, x := range []int64{bytes, m.pitch[n]} {
		for x%aligned != 0 {
			aligned /= 2
		}
	}
	return total / float64(bytes) * (float64(bytes-aligned) + grain)
}

// dot adds what a product needs. What is read from shared memory is the sides of
// a thread's, or a warp's, part of the result, taken for square.
func (m *estimate) dot(
	n int, k knobs, runs float64, c *candidate, l *load,
) {
	op := m.p.Ops[n]
	contracted := 1.0
	for _, d := range op.Instr.Attrs.LHSContract {
		contracted *= float64(m.sizes(op.Args[0])[d])
	}
	warps := float64(k.warps)
	sums := math.Ceil(m.elements(n) / (warps * device.WarpThreads))
	c.partials += sums
	from := m.p.Ops[op.Args[0]].Instr.Shape.DType
	if m.tensor[k.tf32][n] {
		m.multiply(n, k, contracted*runs, l)
		size := float64(from.Size())
		pitch := 1.25
		if m.byGroups(n, k) {
			pitch = 1
			l.exposed += perSlot * runs
		}
		c.shared += pitch * size * float64(k.stages) *
			(m.elements(op.Args[0]) + m.elements(op.Args[1]))
		l.exposed += latency * runs / float64(k.stages*k.stages)
		return
	}
	size := float64(max(4, wideSum(op.Instr.Shape.DType).Size()))
	l.lanes += sums * warps * device.WarpThreads * contracted * runs // a multiply-add is one
	side := math.Sqrt(sums)
	// sums do not wait for each other; what is read from shared memory takes two cycles
	l.steps += (sums + 4*side + 4) /
		8 * contracted * runs
	// Of a row of threads each reads columns of its own, and all the same rows.
	l.traffic += 1.125 * side * size * warps *
		device.WarpThreads * contracted * runs
	slots := 1.0
	if m.direct(n) {
		slots = float64(k.stages)
	}
	c.shared += 1.125 * size * slots *
		(m.elements(op.Args[0]) + m.elements(op.Args[1]))
	l.exposed += latency * runs / (slots * slots)
}

// multiply adds what tensor cores do for a product, in all of its runs.
func (m *estimate) multiply(n int, k knobs, contracted float64, l *load) {
	from := m.p.Ops[m.p.Ops[n].Args[0]].Instr.Shape.DType
	size := float64(from.Size())
	readers := float64(k.warps)
	cycles := m.padded(n) * contracted /
		m.sheet.Rates.Tensor(from)
	switch {
	case m.byGroups(n, k):
		readers /= device.WarpgroupThreads / device.WarpThreads
		l.groups += cycles
	case m.sheet.Warpgroups():
		cycles /= mmaShare
	}
	l.tensor += cycles
	l.traffic += 2 *
		math.Sqrt(m.elements(n)/readers) *
		size * readers * contracted
}

// direct says whether the operands of a product on the arithmetic units are
// copied as they are.
func (m *estimate) direct(n int) bool {
	op := m.p.Ops[n]
	for _, a := range op.Args {
		x := m.p.Ops[a].Instr.Shape.DType
		if x.Size() < 4 ||
			x != wideSum(op.Instr.Shape.DType) ||
			m.p.Ops[a].Code.Elementwise() {
			return false
		}
	}
	return true
}

// mmaShare is how much of the tensor cores' rate mma.sync reaches where there is
// wgmma (Luo et al., Dissecting the NVIDIA Hopper Architecture, 2025: 63 %).
const mmaShare = 0.63

// byGroups says whether a product is likely to be computed by warpgroups.
func (m *estimate) byGroups(n int, k knobs) bool {
	if !m.groups[k.tf32][n] ||
		k.warps*device.WarpThreads%device.WarpgroupThreads != 0 {
		return false
	}
	sizes := m.sizes(n)
	args := m.p.Ops[n].Args
	last := len(sizes) - 1
	return last >= 1 && sizes[last-1] >= groupRows &&
		m.elements(n) == float64(sizes[last-1]*sizes[last]) &&
		m.rows(args[0]) <= maxBoxExtent &&
		m.rows(args[1]) <= maxBoxExtent
}

// groupable says whether warpgroups can have a product of some tiling: of what
// tensor copies bring from parameters, of a type and a layout that wgmma reads.
func groupable(p *symtile.Program, n int, s device.Spec, k knobs) bool {
	op := p.Ops[n]
	a := p.Ops[op.Args[0]].Instr.Shape
	b := p.Ops[op.Args[1]].Instr.Shape
	inst, ok := groupProduct(s, a.DType, b.DType, k)
	if !ok ||
		wideSum(op.Instr.Shape.DType) != inst.sum {
		return false
	}
	for k, shape := range []hlo.Shape{a, b} {
		order := majorToMinor(shape)
		contracted := [][]int64{op.Instr.Attrs.LHSContract, op.Instr.Attrs.RHSContract}[k]
		if p.Ops[op.Args[k]].Code != hlo.OpParameter ||
			!readsTransposed(shape.DType) &&
				!slices.Contains(contracted, int64(order[len(order)-1])) {
			return false
		}
		for _, stride := range shape.Strides() {
			if stride != 1 &&
				stride*shape.DType.Size()%matrixRow != 0 {
				return false
			}
		}
	}
	return true
}

// onTensorCores says whether tensor cores have a product.
func onTensorCores(p *symtile.Program, n int, s device.Spec, k knobs) bool {
	args := p.Ops[n].Args
	_, ok := tensorProduct(
		s,
		p.Ops[args[0]].Instr.Shape.DType,
		p.Ops[args[1]].Instr.Shape.DType,
		k,
	)
	return ok
}

// padded is the elements of a product with its sides rounded up to fragments.
func (m *estimate) padded(n int) float64 {
	sizes := m.sizes(n)
	product := m.elements(n)
	if k := len(sizes); k >= 2 {
		rows := float64(sizes[k-2])
		cols := float64(sizes[k-1])
		product = product / rows / cols *
			math.Ceil(rows/mmaM) * mmaM *
			math.Ceil(cols/mmaN) * mmaN
	}
	return product
}

// partials is at most how many results of a reduction a thread keeps.
func (m *estimate) partials(n int, threads float64) float64 {
	op := m.p.Ops[n]
	rows := m.elements(n)
	all := m.elements(op.Args[0])
	sharers := min(threads, max(1, all/rows))
	if len(op.Instr.Attrs.Dimensions) > 0 {
		last := op.Instr.Attrs.Dimensions[len(op.Instr.Attrs.Dimensions)-1]
		if int(last) == len(m.p.Ops[op.Args[0]].Tile)-1 {
			sharers = min(sharers, max(device.WarpThreads, threads/rows))
		}
	}
	kept := math.Ceil(rows*sharers/threads) *
		float64(len(op.Args)/2)
	if _, carried := m.orders[n]; carried {
		kept *= 2
	}
	return kept
}

// baseRegisters is the registers of a thread beside its results: addresses, fragments.
const baseRegisters = 40

// priceTerms name what terms gives.
var priceTerms = []string{
	"memory", "arithmetic", "tensor cores", "shared memory", "L2", "blocks", "waiting", "start",
}

// terms are the seconds of all blocks, by priceTerms: what memory, the
// arithmetic units, the tensor cores, shared memory and the L2 cache take for all
// of them, and starting them; what one takes from start to end, times the rounds
// in which they run, as many at once as fit, of which only a share counts while
// one of the former is busy; and the start of the first blocks.
type terms [8]float64

// Of the first terms, which overlap, the longest counts, and a share of the
// others: warps of a block that wait for one have others beside them.
const (
	overlappingTerms = 6
	hiddenShare      = 1.0 / 16
)

func (t terms) total() float64 {
	longest := 0.0
	all := 0.0
	rest := 0.0
	for k, seconds := range t {
		if k < overlappingTerms {
			longest = max(longest, seconds)
			all = all + seconds
		} else {
			rest += seconds
		}
	}
	if math.IsInf(longest, 1) {
		return longest
	}
	return longest + (all-longest)*hiddenShare + rest
}

// terms: what comes again within a round is in the L2 cache. unique is the bytes
// that memory moves at least.
func (m *estimate) terms(c candidate, programs float64, l load, unique float64) terms {
	s := m.sheet
	at := s.Occupancy(m.needs(c))
	if at.Blocks == 0 {
		return terms{math.Inf(1)}
	}
	sms := float64(max(1, s.ClusteredSMs(c.knobs.cluster)))
	clock := s.Clock
	bandwidth := s.Bandwidth
	if clock == 0 {
		clock = 1e9
	}
	if bandwidth == 0 {
		bandwidth = 16 * sms * clock // 16 bytes a clock
	}
	resident := min(
		float64(at.Blocks), math.Ceil(programs/sms),
	)
	rounds := math.Ceil(programs / (sms * resident))
	wave := min(programs, sms*resident)
	blocks := programs
	alone := l.alone(float64(c.knobs.warps), s.Rates)
	whole := rounds * alone
	if c.knobs.persistent > 0 { // what the next tile begins with comes while this one ends
		whole -= (rounds - 1) * latency
		blocks = wave
	}
	if c.knobs.persistent == pingpong {
		whole -= (rounds - 1) *
			min(l.after(float64(c.knobs.warps), s.Rates), l.groups)
	}
	bytes := min(
		programs*l.bytes,
		max(unique, programs*l.bytes-float64(s.L2)*rounds),
	)
	if c.knobs.splitk <= 1 {
		bytes = min(
			bytes,
			max(unique, programs/wave*m.waveBytes(
				wave, l.bytes, c.knobs.group,
			)),
		)
	}
	// from the L2 cache
	spilled := max(
		0, programs*l.scratch-float64(s.L2)/2,
	)
	all := rounds * resident / clock
	t := terms{
		(bytes + spilled) / bandwidth,
		all * l.lanes / s.Rates.F32,
		all * l.tensor, all * l.traffic / sharedAClock,
		all * (l.sectors + l.scratch - l.given) / l2AClock,
		blocks * blockStart / clock,
		0,
		(min(alone/2, 2*latency) + wave*blockStart) / clock,
	}
	t[overlappingTerms] = whole/clock - (1-hiddenShare)*
		min(whole/clock, slices.Max(t[:overlappingTerms]))
	return t
}

const (
	// prologue is the operations of a thread before its first access: tile ids,
	// addresses (as counted in testdata/ptx).
	prologue = 40
	// blockStart is the cycles between the starts of blocks, of all SMs together.
	// No source states it; streaming kernels with 3 KiB a block at the memory's
	// rate bound it to about two. Nothing of this has been measured here.
	blockStart = 1
	// warpsForRate is the warps with mma.sync that keep an SM's tensor cores busy:
	// two for each, one of which multiplies while the other loads fragments.
	warpsForRate = 2 * device.SubPartitions
)

// alone is the cycles of a block that has an SM to itself: of threads that wait
// for each operation, but not for those of tensor copies and warpgroups.
func (l load) alone(warps float64, r device.Rates) float64 {
	return l.exposed + max(
		l.groups+l.after(warps, r),
		(l.copied-l.given)/l2AClock,
		l.traffic/sharedAClock,
	)
}

// after is the cycles of what the threads of a block do themselves.
func (l load) after(warps float64, r device.Rates) float64 {
	return max(
		l.steps*8, l.asks*30,
		l.lanes/r.F32,
		(l.sectors+l.scratch-l.copied)/l2AClock,
		(l.tensor-l.groups)*max(1, warpsForRate/warps),
	)
}

// needs are the registers of a thread, the bytes of shared memory and the
// threads of a block. Where a producer gives registers away all of an SM's are
// shared out.
func (m *estimate) needs(c candidate) (registers, shared, threads int) {
	registers = int(min(
		float64(m.sheet.ThreadRegisters),
		baseRegisters+max(c.partials, min(c.slots, 2*unrolled)),
	))
	threads, given := m.threads(c.knobs)
	if given > 0 {
		registers = m.sheet.RegistersPerThread(threads)
	}
	return registers, int(c.shared), threads
}

// threads are those of a block, and what registers a producer gives threads of the
// others; 0: none.
func (m *estimate) threads(k knobs) (threads, given int) {
	threads = k.warps * device.WarpThreads * k.mathGroups()
	extra := k.producer * device.WarpThreads
	for n := range m.p.Ops {
		if m.byGroups(n, k) &&
			threads+extra <= m.sheet.BlockThreads {
			return threads + extra, m.sheet.ConsumerRegisters(threads/device.WarpgroupThreads, extra)
		}
	}
	return threads, 0
}

// registerMargin is the registers of a thread, beside its results and addresses, that what
// follows a product is happier with: operands on their way.
const registerMargin = 16

// spills are the cycles that registers take to memory and back that a thread of a
// block has not got; none of it is measured here.
func (m *estimate) spills(c candidate) float64 {
	threads, granted := m.threads(c.knobs)
	if granted == 0 {
		granted = m.sheet.RegistersPerThread(threads)
	}
	short := max(
		0,
		min(float64(m.sheet.ThreadRegisters), baseRegisters+registerMargin+c.partials)-float64(granted),
	)
	return 2 * short * 4 * float64(threads) / sharedAClock
}

// fits says whether a block of the candidate fits the device.
func (m *estimate) fits(c candidate) bool {
	_, given := m.threads(c.knobs)
	if given > 0 && float64(given) < baseRegisters+c.partials {
		return false
	}
	return c.shared <= float64(m.sheet.BlockShared) &&
		c.partials <= maxPartials &&
		!math.IsInf(c.seconds, 1)
}

// plan is the candidate as a plan.
func (c candidate) plan() kernels.Plan { return c.knobs.plan(c.tiling) }
