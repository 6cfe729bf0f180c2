package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/mask"
)

// An estimate predicts, for a tiling and knobs, what a block of threads needs and how
// long the kernels of a plan take, without generating code. It counts the work of one
// block by resource (blockCost), derives from the occupancy how many blocks run at the
// same time, and adds up the seconds of each resource over all blocks (terms). Tile
// sizes are evaluated once for each tiling (symtile.Extents).
type estimate struct {
	p       *symtile.Program
	spec    device.Spec
	extents *symtile.Extents
	// Tensor and groups are the products that tensor cores and warpgroups can compute,
	// by the value of the knob tf32.
	tensor [cutOff + 1][]bool
	groups [cutOff + 1][]bool
	// Computed are the operands that products by warpgroups read from registers; nil where
	// both operands are in shared memory (see inRegisters).
	computed []*computedOperand
	// Scaled are the products of 8-bit floats that warpgroups apply scales to, and absorbs
	// the dot by warpgroups that does without an op; nil and −1 for others.
	scaled  []*scaledProduct
	absorbs []int
	// Sums are, for the reductions that add up a product of a loop, that product; −1 for others.
	sums []int
	// Undivided are those of which k tiles of the current tiling do not divide the blocks.
	undivided []bool
	// Orders are those of the reductions that are not commutative.
	orders map[int]reductionOrder
	// Split is the program as two kernels (knob splitk).
	split splitProgram
	// DependsOn are the parallel dimensions that the tile of each parameter depends
	// on.
	dependsOn []symtile.DimSet
	// ReadBy is the product by warpgroups that reads each parameter; −1 where there is
	// none.
	readBy []int
	// Staged is what shared memory holds of each op that a product reads.
	staged []int
	// LoadedBytes of each parameter by one block.
	loadedBytes []float64
	// WaveTiles is the number of different tiles along each dimension in a wave.
	waveTiles []float64
	// DistinctBytes of all arrays, which memory transfers at least once.
	distinctBytes float64
	// Pitch is the bytes from a row of each op to the next.
	pitch []int64
	// Order of the dimensions of each op, fastest in memory last.
	order [][]int
	// GatheredBy is the gather that reads elements of each parameter; −1 where there
	// is none.
	gatheredBy []int
	// Dots reports whether there are products.
	dots bool
	// Known is what the kernel takes, where there is one.
	known *Resources
	// Online is the estimate of plans with online=1; nil where there are none.
	online *onlineEstimate
	// Grouped are the groups of rows of a product; nil where there are none.
	grouped *mask.Groups
	// Facts are what is known of each op for the current tiling.
	facts []tileFacts
	// AnyGroups says whether warpgroups compute a product of the current tiling, by the
	// value of the knob tf32, where whole warpgroups are launched.
	anyGroups [cutOff + 1]answer
}

// TileFacts are what all candidates of a tiling have in common of an op.
type tileFacts struct {
	// Transferred are the bytes of transferredBytes, by the grain as a multiple of a sector;
	// 0 where they were not asked for.
	transferred [lineBytes/sectorBytes + 1]float64
	// Groupable says whether the tile is one that warpgroups compute.
	groupable answer
}

// An answer is found out when it is first needed.
type answer int8

// The values of an answer.
const (
	unasked answer = iota
	denied
	affirmed
)

// is asks unless the answer is known.
func (a *answer) is(ask func() bool) bool {
	if *a == unasked {
		if *a = denied; ask() {
			*a = affirmed
		}
	}
	return *a == affirmed
}

// newEstimate collects what the estimates of all plans of a program have in common.
func newEstimate(p *symtile.Program, s device.Spec) (*estimate, error) {
	m, err := newPlainEstimate(p, s)
	if err == nil && m.dots {
		m.online = onlineEstimateOf(p, s)
	}
	return m, err
}

// newPlainEstimate is newEstimate for plans with online=0.
func newPlainEstimate(p *symtile.Program, s device.Spec) (*estimate, error) {
	x, err := symtile.NewExtents(p)
	if err != nil {
		return nil, err
	}
	m := &estimate{
		p:       p,
		spec:    s,
		extents: x,
		orders:  map[int]reductionOrder{},
		facts:   make([]tileFacts, len(p.Ops)),
	}
	m.memoryOrders()
	m.products()
	m.operands()
	m.stagedOperands()
	m.split = splitProgramOf(p)
	for n, op := range p.Ops {
		if op.Code != hlo.OpReduce {
			continue
		}
		_, any := op.Instr.Attrs.ToApply.Monoid()
		if !any || len(op.Args) > 2 {
			m.orders[n] = orderOf(p, op)
		}
	}
	for _, x := range append(p.Physical.ParamShapes(), kernels.OutputShapes(p.Physical)...) {
		m.distinctBytes += float64(x.Bytes())
	}
	return m, nil
}

// products finds which products tensor cores and warpgroups can compute.
func (m *estimate) products() {
	m.computed = make([]*computedOperand, len(m.p.Ops))
	m.scaled = make(
		[]*scaledProduct, len(m.p.Ops),
	)
	m.undivided = make(
		[]bool, len(m.p.Ops),
	)
	for n, op := range m.p.Ops {
		m.sums = append(m.sums, -1)
		if s := blockSumOf(m.p, n); s != nil {
			m.sums[n] = s.sum.dot
			m.scaled[m.sums[n]] = s
		}
		if op.Code == hlo.OpDot {
			m.scaled[n] = scaledProductOf(m.p, n)
			m.computed[n] = inRegisters(m.p, n, m.scaled[n])
		}
		if g, ok := mask.GroupsOf(m.p, n); ok {
			m.grouped = &g
		}
	}
	for tf32 := range m.tensor {
		k := knobs{tf32: tf32}
		m.tensor[tf32], m.groups[tf32] = make(
			[]bool, len(m.p.Ops),
		), make([]bool, len(m.p.Ops))
		for n, op := range m.p.Ops {
			m.tensor[tf32][n] = op.Code == hlo.OpDot &&
				onTensorCores(m.p, n, m.spec, k)
			m.groups[tf32][n] = op.Code == hlo.OpDot &&
				groupable(m.p, n, m.spec, k)
		}
	}
	m.absorbs = m.absorbed()
}

// usesTensorCores reports whether tensor cores can compute some product.
func (m *estimate) usesTensorCores(k knobs) bool {
	return slices.Contains(m.tensor[k.tf32], true) ||

		slices.Contains(m.groups[k.tf32], true)
}

// memoryOrders finds the order and the pitch of each op in memory.
func (m *estimate) memoryOrders() {
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
		m.gatheredBy = append(m.gatheredBy, -1)
		m.dots = m.dots || op.Code == hlo.OpDot
		if op.Code == hlo.OpGather {
			m.gatheredBy[op.Args[0]] = n
		}
	}
}

// A candidate is a tiling and knobs with their estimate.
type candidate struct {
	tiling symtile.Tiling
	knobs  knobs
	// Shared memory of a block, in bytes, and of its operands as the code generator
	// keeps them, converted to the type that is multiplied.
	shared    float64
	converted float64
	// Bytes of shared memory of an SM that loads of a product's operands fill.
	inFlight float64
	// Results that a thread holds in registers.
	partials float64
	// Registers of a thread for operands of a product, and for those of the next
	// iteration that it loads itself because there is one slot.
	operands float64
	// How the product with the most of them is computed.
	unit productUnit
	// Iterations of the longest loop over operands of a product.
	iterations float64
	// Bytes between memory and all blocks.
	transferred float64
	// Elements of an op that a thread computes at a time.
	slots   float64
	terms   terms
	seconds float64
	// Threads of all blocks.
	threads float64
}

// A blockCost is the work of one block by resource.
type blockCost struct {
	// Bytes from and to memory.
	bytes float64
	// Bytes of the L2 sectors that are requested.
	sectors float64
	// TensorCopied is the part of sectors that tensor copies request, and multicast
	// the part that other blocks of the cluster supply.
	tensorCopied float64
	multicast    float64
	// Bytes of partial results between kernels.
	scratch float64
	// Operations of the arithmetic units, including those of idle threads.
	lanes float64
	// Loads of 16 bytes from shared memory for multiply-adds, one for each thread.
	loads float64
	// Dependent operations of a thread.
	steps float64
	// Memory accesses of a thread.
	accesses float64
	// Cycles of the tensor cores of an SM, and the part of them by warpgroups.
	tensor      float64
	groupTensor float64
	// Overlapped is set where threads compute an operand of warpgroups' products while
	// the ones before run.
	overlapped bool
	// Bytes read from shared memory.
	traffic float64
	// Cycles in which all warps of the block wait for memory.
	exposed float64
	// Cycles of the loads of all iterations of loops whose operands are in a ring of
	// slots, from request to data.
	ring  float64
	slots float64
	// Cycles of the tensor cores where each warp has a sub-partition to itself or
	// shares it with others of the block: its products wait for the sums of the ones
	// before.
	chain float64
}

// set evaluates a tiling and returns the number of blocks.
func (m *estimate) set(t symtile.Tiling) (programs float64) {
	m.place(t)
	for n, s := range m.scaled {
		m.undivided[n] = s != nil && !s.divides(
			m.p, n, m.sizes,
		)
	}
	if m.online != nil {
		m.online.place(t)
	}
	return m.extents.Programs()
}

// place evaluates a tiling for the program as it is.
func (m *estimate) place(t symtile.Tiling) {
	m.extents.Set(t)
	clear(m.facts)
	clear(m.anyGroups[:])
}

// inOrder reports whether the current tiles visit the elements of reductions that are
// not commutative in order.
func (m *estimate) inOrder() bool {
	for n, o := range m.orders {
		sizes := m.sizes(m.p.Ops[n].Args[0])
		tiles := func(d int) int64 {
			return int64(m.extents.Trips(d))
		}
		if o.broken(sizes, tiles) >= 0 {
			return false
		}
	}
	return true
}

// sizes are the tile sizes of op n.
func (m *estimate) sizes(n int) []int64 {
	return m.extents.Sizes(n)
}

// elements is the number of elements of the tile of op n.
func (m *estimate) elements(n int) float64 { return m.extents.Elements(n) }

// runs is how often a block computes op n.
func (m *estimate) runs(n int) float64 { return m.extents.Runs(n) }

// candidate estimates the current tiling with knobs.
func (m *estimate) candidate(t symtile.Tiling, programs float64, k knobs) candidate {
	if k.online > 0 {
		return m.joined(t, programs, k)
	}
	c := candidate{tiling: t, knobs: k}
	if k.splitk > 1 {
		m.priceSplit(programs, &c)
	} else {
		l := m.work(nil, &c)
		m.store(&c, &l)
		l.traffic += m.spills(c)
		c.terms = m.terms(
			c, programs, l, m.distinctBytes,
		)
		c.transferred = programs * l.bytes
	}
	c.inFlight = 1
	if c.iterations > 1 {
		at := m.spec.Occupancy(m.needs(c))
		sms := float64(max(1, m.spec.SMs))
		resident := min(
			float64(at.Blocks), math.Ceil(programs/sms),
		)
		c.inFlight += c.shared * resident
	}
	c.seconds = c.terms.total()
	c.threads = programs * float64(k.warps*device.WarpThreads)
	return c
}

// work is the work of a block for the given ops, nil for all.
func (m *estimate) work(ops []bool, c *candidate) blockCost {
	k := c.knobs
	threads := float64(c.knobs.warps * device.WarpThreads)
	part := 1.0
	if k.splitk > 1 {
		part = m.longestPiece(k.splitk)
	}
	part *= m.groupShare(k)
	l := blockCost{
		exposed: latency,
		lanes:   prologue * threads,
		slots:   1,
	}
	// Parameters record what they load, for the traffic of a wave.
	clear(m.loadedBytes)
	for n, op := range m.p.Ops {
		if ops != nil && !ops[n] ||
			ops == nil && m.extents.Duplicate(n) ||
			m.absorbs[n] >= 0 &&
				m.byGroups(m.absorbs[n], k) {
			continue
		}
		runs := m.runs(n)
		if m.split.inside[n] {
			runs *= part
		}
		switch op.Code {
		case hlo.OpParameter:
			m.loadParameter(n, k, runs, &l)
		case hlo.OpDot:
			m.dot(n, k, runs, c, &l)
		case hlo.OpReduce:
			if m.addedByGroups(n, k) {
				continue
			}
			all := m.elements(op.Args[0])
			m.operate(all, runs, c, &l)
			c.partials += m.partials(n, threads)
			// An argument that does not fit in registers is loaded again from the L2
			// cache.
			if runs > 1 || all/threads > 2*unrolled {
				l.sectors += all *
					float64(op.Instr.Shape.DType.Size()) *
					runs
			}
			l.exposed += latency/2*runs + latency/2
		default:
			m.operate(m.elements(n), runs, c, &l)
		}
	}
	// A loop over parts of the tile waits for each part.
	if c.slots > 2*unrolled && !m.dots {
		l.exposed += latency *
			(math.Ceil(c.slots/unrolled) - 1)
	}
	return l
}

// groupShare is the share of the iterations of a product of groups of rows that blocks have,
// where groups have as many rows each: a tile of rows has those of one group, and those of one
// more at each of their ends.
func (m *estimate) groupShare(k knobs) float64 {
	g := m.grouped
	if g == nil || !groupsLeftOut(k) ||
		m.sizes(g.Op)[g.Dim] > 1 {
		return 1
	}
	shape := m.p.Ops[g.Op].Instr.Shape
	if shape.Dims[g.Dim] > mostGroups(k) {
		return 1
	}
	tiles := 1.0
	for d, f := range g.Bounds[0].Factors {
		if f != 0 {
			tiles *= float64(index.CeilDiv(
				shape.Dims[d], m.sizes(g.Op)[d],
			))
		}
	}
	// Each of the groups but one begins within a tile, which has iterations for both.
	groups := float64(shape.Dims[g.Dim])
	return min(1, (tiles+groups-1)/(tiles*groups))
}

// operate adds an operation on some elements. Every thread executes all rounds, also
// those in which it has no element.
func (m *estimate) operate(elements, runs float64, c *candidate, l *blockCost) {
	threads := float64(c.knobs.warps * device.WarpThreads)
	slots := math.Ceil(elements / threads)
	l.lanes += slots * threads * runs
	l.steps += slots * runs
	c.slots = max(c.slots, slots)
}

// countAccesses adds the accesses of a tile, as wide as the code generator makes them.
func (m *estimate) countAccesses(n int, runs float64, k knobs, l *blockCost) {
	shape := m.p.Ops[n].Instr.Shape
	threads := float64(k.warps * device.WarpThreads)
	elements := m.accessedElements(n)
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
	l.accesses += math.Ceil(elements/
		(threads*float64(max(1, v)))) * runs
}

// store adds the stores of the results.
func (m *estimate) store(c *candidate, l *blockCost) {
	for _, r := range m.p.Roots {
		l.bytes += m.transferredBytes(r.Op, m.burst())
		l.sectors += m.transferredBytes(r.Op, sectorBytes)
		if c.knobs.epilogue != byBoxes {
			m.countAccesses(r.Op, 1, c.knobs, l)
		}
		m.storeProduct(r.Op, c.knobs, c, l)
	}
}

// storeProduct adds what it costs to store fragments of a product: stored directly,
// they fill a part of each burst; through shared memory (knob epilogue), they take its
// space and a barrier, and tensor copies end while the next tile is multiplied.
func (m *estimate) storeProduct(n int, k knobs, c *candidate, l *blockCost) {
	switch {
	case !m.usesTensorCores(k):
	case k.epilogue == byBoxes:
		threads := k.warps * k.mathGroups() * device.WarpThreads
		boxes := threads / device.WarpgroupThreads * boxBuffers
		bytes := float64(boxes * groupRows * maxRowBytes)
		if k.persistent > 0 || k.streamk > 0 {
			c.shared += bytes
		}
		c.shared = max(c.shared, bytes)
		l.exposed += latency / 2
	// Rows are padded, so that fragments of eight rows are in different banks.
	case k.epilogue > 0:
		bytes := m.elements(n) *
			float64(m.p.Ops[n].Instr.Shape.DType.Size()) *
			1.1
		if k.persistent > 0 || k.streamk > 0 && m.byGroups(n, k) {
			// The tile is stored while the operands of the next tile are loaded.
			c.shared += bytes * float64(k.mathGroups())
		}
		c.shared = max(c.shared, bytes)
		l.exposed += latency / 2
	default:
		l.bytes += m.transferredBytes(n, m.burst()) / 4
		l.sectors += m.transferredBytes(n, sectorBytes) / 4
	}
}

// latency is the cycles from a memory request to its data, with the barrier and the
// code around it (Jia et al., Dissecting the NVIDIA Volta GPU Architecture via
// Microbenchmarking, 2018, §3: 400 to 600 for global memory).
const latency = 800

// perSlot is the cycles between the end of a product by warpgroups and the start of
// the next because of the barrier (Luo et al., Dissecting the NVIDIA Hopper
// Architecture, 2025: 33 for an access to shared memory, and what follows it).
const perSlot = 40

// accessedElements is the elements of a tile that are accessed: a gather reads only
// some.
func (m *estimate) accessedElements(n int) float64 {
	if g := m.gatheredBy[n]; g >= 0 {
		return min(m.elements(n), m.elements(g))
	}
	return m.elements(n)
}

// burst is the unit of memory transfers at the nominal bandwidth, and sectorBytes the
// unit of the L2 cache, a quarter of its line (CUDA C++ Best Practices Guide,
// Coalesced Access to Global Memory; JESD238, HBM3: 64 bytes).
const burst, sectorBytes = 64, 32

// burst is what memory transfers at least: before sm_80 whole lines, because halves of
// lines reach a fraction of the rate there. That fraction is an assumption.
func (m *estimate) burst() float64 {
	if m.beforeSM80() {
		return lineBytes
	}
	return burst
}

// beforeSM80 reports whether the device lacks copies from memory to shared memory that do
// not pass through registers (cp.async).
func (m *estimate) beforeSM80() bool {
	return m.spec.WaveWarps() > 1 ||
		m.spec.Target == "sm_70" || m.spec.Target == "sm_75"
}

// transferredBytes is the bytes that are transferred to load or store a tile: the
// grains that its rows overlap, on average over the positions at which a row can
// begin.
func (m *estimate) transferredBytes(n int, grain float64) float64 {
	bytes := &m.facts[n].transferred[int(grain)/sectorBytes]
	if *bytes == 0 {
		*bytes = m.grains(n, grain)
	}
	return *bytes
}

// grains is transferredBytes, evaluated.
func (m *estimate) grains(n int, grain float64) float64 {
	shape := m.p.Ops[n].Instr.Shape
	total := m.accessedElements(n) *
		float64(shape.DType.Size())
	row := int64(1)
	for _, d := range slices.Backward(m.order[n]) {
		size := m.sizes(n)[d]
		row *= size
		if size < shape.Dims[d] {
			break
		}
	}
	bytes := row * shape.DType.Size()
	// Rows begin at multiples of the largest power of two that divides both their
	// length and their pitch.
	aligned := int64(grain)
	for _, x := range []int64{bytes, m.pitch[n]} {
		for x%aligned != 0 {
			aligned /= 2
		}
	}
	return total / float64(bytes) *
		(float64(bytes-aligned) + grain)
}

// dot adds the work of a product. The reads of shared memory are the two sides of the
// part of the result that a thread, or a warp, computes, which is assumed to be
// square.
func (m *estimate) dot(
	n int, k knobs, runs float64, c *candidate, l *blockCost,
) {
	op := m.p.Ops[n]
	contracted := 1.0
	for _, d := range op.Instr.Attrs.LHSContract {
		contracted *= float64(m.sizes(op.Args[0])[d])
	}
	warps := float64(k.warps)
	sums := math.Ceil(m.elements(n) / (warps * device.WarpThreads))
	c.partials += sums
	c.unit = max(c.unit, m.unit(n, k))
	if m.unit(n, k) != unitFMA {
		m.multiply(n, k, contracted, runs, c, l)
		return
	}
	size := float64(max(4, wideSum(op.Instr.Shape.DType).Size()))
	// A multiply-add is one operation.
	l.lanes += sums * warps * device.WarpThreads * contracted * runs
	side := math.Sqrt(sums)
	l.loads += 2 * side * size / 16 * warps * device.WarpThreads * contracted * runs
	// Multiply-adds that do not fit the instruction cache are fetched by every warp.
	body := sums * contracted * instructionBytes
	if body > instructionCache {
		l.sectors += body * warps * runs
		l.lanes += sums * contracted * runs *
			warps * device.WarpThreads
	}
	// sums do not wait for each other; what is read from shared memory takes two cycles
	l.steps += (sums + 4*side + 4) /
		8 * contracted * runs
	// The threads of a warp are a square, too: it reads two sides of its part.
	warpSide := math.Sqrt(sums * device.WarpThreads)
	reads := 2*warpSide + m.conflicts(n, sums, contracted)
	l.traffic += reads * size * warps *
		contracted * runs
	slots := 1
	if m.direct(n) {
		slots = k.stages
	}
	c.operands = max(c.operands, 4*side)
	m.stage(op.Args, size, runs, slots, c, l)
}

// conflicts is the elements that a warp could read of shared memory in the time that it
// loses by bank conflicts, for each k of a product without tensor cores. Half a warp is
// along the columns of the result. Where the second operand lies along k they
// read as many of its rows, which begin in the same few banks where the length of a row is
// a multiple of a power of two.
func (m *estimate) conflicts(n int, sums, contracted float64) float64 {
	op := m.p.Ops[n]
	b := op.Args[1]
	order := m.order[b]
	summed := op.Instr.Attrs.RHSContract
	if len(order) == 0 ||
		!slices.Contains(summed, int64(order[len(order)-1])) {
		return 0
	}
	sizes := m.sizes(n)
	columns := float64(sizes[len(sizes)-1])
	block := 4.0
	for block > 1 && block*block > sums {
		block /= 2
	}
	read := min(columns, device.WarpThreads/2*block)
	// Lanes of a half warp to a bank; accesses of 16 bytes have at most 8.
	degree := int64(1)
	for degree < 8 && int64(contracted)%(4*degree) == 0 {
		degree *= 2
	}
	return read * float64(degree-1)
}

// instructionBytes is the size of an instruction, and instructionCache the bytes that
// an SM keeps of them (Jia et al., Dissecting the NVIDIA Volta GPU Architecture via
// Microbenchmarking, 2018, §3.1: 16 and 128 KiB).
const instructionBytes, instructionCache = 16, 128<<10 - 1

// stage adds the loads of a product's operands, which it reads as elements of a size:
// lines of them are written to shared memory, and their latency is hidden by as many
// iterations as there are slots. With one slot, threads hold the next iteration's.
func (m *estimate) stage(args []int, size, runs float64, slots int, c *candidate, l *blockCost) {
	bytes := 0.0
	for _, a := range args {
		n := m.staged[a]
		from := m.p.Ops[n].Instr.Shape.DType
		narrow := min(size, float64(from.Size()))
		all := m.elements(a)
		bytes += all * narrow
		c.converted += all * size * float64(slots)
		lines := m.transferredBytes(n, lineBytes)
		l.traffic += lines * runs
	}
	c.shared += bytes * float64(slots)
	l.ring += latency * max(0, runs-1)
	l.slots = max(l.slots, float64(slots))
	c.iterations = max(c.iterations, runs)
	if (slots == 1 || m.beforeSM80()) && runs > 1 {
		threads := float64(c.knobs.warps * device.WarpThreads)
		c.operands += bytes / threads / 4
	}
}

// stagedOperands finds what is kept in shared memory of each op that a product reads: the
// op itself, or the one that it is converted from, if that is smaller.
func (m *estimate) stagedOperands() {
	m.staged = make([]int, len(m.p.Ops))
	for n, op := range m.p.Ops {
		m.staged[n] = n
		if op.Code != hlo.OpConvert {
			continue
		}
		from := &m.p.Ops[op.Args[0]]
		size := op.Instr.Shape.DType.Size()
		if from.Code == hlo.OpParameter &&
			from.Instr.Shape.DType.Size() < size {
			m.staged[n] = op.Args[0]
		}
	}
}

// unit is what computes a product.
func (m *estimate) unit(n int, k knobs) productUnit {
	switch {
	case m.byGroups(n, k):
		return unitWGMMA
	case !m.tensor[k.tf32][n]:
		return unitFMA
	}
	return unitMMA
}

// multiply adds what tensor cores do in all runs of a product.
func (m *estimate) multiply(n int, k knobs, contracted, runs float64, c *candidate, l *blockCost) {
	args := m.p.Ops[n].Args
	if m.byGroups(n, k) {
		args = m.multiplied(n)
	}
	from := m.p.Ops[args[0]].Instr.Shape.DType
	size := float64(from.Size())
	readers := float64(k.warps)
	rate := m.spec.Rates.Tensor(from)
	cycles := m.padded(n) * contracted * runs / rate
	switch {
	case m.byGroups(n, k):
		readers /= device.WarpgroupThreads / device.WarpThreads
		l.groupTensor += cycles
		l.exposed += perSlot * runs
		m.applyScales(n, cycles, runs, c, l)
		if m.promotes(n, k) {
			// The sums of each iteration are added to others.
			threads := k.warps * device.WarpThreads
			c.partials += math.Ceil(
				m.elements(n) / float64(threads),
			)
			l.lanes += m.elements(n) * runs
		}
		if m.computed[n] != nil {
			l.tensor += cycles
			m.fromRegisters(n, k, contracted, runs, c, l)
			return
		}
	case m.spec.Warpgroups():
		if from.IsFloat() && from.Size() == 1 {
			rate = m.spec.Rates.Tensor(hlo.F16)
			products := m.padded(n) * contracted * runs
			l.lanes += products / (mmaM * mmaN * mmaBytes) *
				emulatedF8 * device.WarpThreads
		}
		rate *= mmaShare
		cycles = m.padded(n) * contracted * runs / rate
		fallthrough
	default:
		depth := mmaBytes / size
		each := mmaM * mmaN * depth * device.SubPartitions / rate
		part := m.padded(n) / readers
		sums := math.Ceil(part / (mmaM * mmaN))
		beside := math.Ceil(readers / device.SubPartitions)
		fragments := 2 * math.Sqrt(part) * mmaBytes
		c.operands = max(
			c.operands,
			fragments/4/device.WarpThreads,
		)
		step := max(mmaLatency, sums*each*beside)
		l.chain += runs * step *
			math.Ceil(contracted/depth)
	}
	l.tensor += cycles
	fragments := m.fragmentRows(n, readers) *
		contracted * runs
	l.traffic += fragments * size
	if k.tf32 == 1 && from == hlo.F32 && !m.byGroups(n, k) {
		l.lanes += fragments * roundingSteps
	}
	if o := m.computed[n]; o != nil && !o.plain {
		// Threads load and compute the operand of a later iteration before they multiply.
		l.exposed += latency / 2 * runs
	}
	m.stage(
		args, size, runs, k.stages, c, l,
	)
}

// fromRegisters adds what an operand in registers takes: threads load what it is computed
// from, and every warpgroup that shares its rows with others computes them again. What is
// repeated along it is loaded by each thread, once for a tile or in each iteration.
func (m *estimate) fromRegisters(n int, k knobs, contracted, runs float64, c *candidate, l *blockCost) {
	o := m.computed[n]
	l.overlapped = true
	rows, cols := m.groupSides(n)
	groups := float64(k.warps * device.WarpThreads / device.WarpgroupThreads)
	down := min(groups, math.Ceil(rows/groupRows))
	across := groups / down
	elements := rows * contracted * runs
	l.lanes += (across - 1) * elements * float64(o.steps)
	bytes := 0.0
	for _, raw := range o.raw {
		size := float64(
			m.p.Ops[raw].Instr.Shape.DType.Size(),
		)
		bytes += size
		// Two elements a load, and less where these are not next to each other; of bytes
		// that are multiplied as they are, 16 a load and a permutation for each four.
		each := 1.0 / 2
		if o.plain && size == 1 {
			each = 1.0/16 + 1.0/4
		}
		l.lanes += across * elements * each
		l.traffic += across * elements * size
	}
	first := m.multiplied(n)[0]
	size := float64(
		m.p.Ops[first].Instr.Shape.DType.Size(),
	)
	blocks := math.Ceil(rows / groupRows / down)
	l.traffic += down * blocks * cols * size * contracted * runs
	for _, x := range o.beside {
		if m.varies(x) {
			l.exposed += latency / 2 * runs
		}
	}
	if o.both {
		// The other operand is loaded and stored, with 6 instructions for 512 bytes.
		copied := cols * size * contracted * runs
		l.lanes += copied * 6 * device.WarpThreads / 512
		l.traffic += 2 * copied
		l.exposed += perSlot * runs
		c.shared += turnedTiles * cols * size * contracted
	}
	// Two fragments, and what the second is computed from.
	from := 8 * float64(len(o.raw))
	if o.plain {
		from = 4
	}
	c.operands = max(c.operands, blocks*(2*4+from))
	m.ring(m.copied(n), runs, k.stages, c, l)
}

// groupSides are the rows and columns of a product as warpgroups compute it.
func (m *estimate) groupSides(n int) (rows, cols float64) {
	sizes := m.sizes(n)
	last := len(sizes) - 1
	rows, cols = float64(sizes[last-1]), float64(sizes[last])
	if o := m.computed[n]; o != nil && o.turned {
		rows, cols = cols, rows
	}
	return rows, cols
}

// varies reports whether the tile of an op depends on an iteration of a loop.
func (m *estimate) varies(n int) bool {
	var dims []int
	for _, loop := range topLoops(m.p.Body) {
		dims = append(dims, loop.Dims...)
	}
	return dependsOnTile(m.p, n, dims)
}

// ring adds tensor copies of arrays as they are to a ring of slots.
func (m *estimate) ring(arrays []int, runs float64, slots int, c *candidate, l *blockCost) {
	bytes := 0.0
	for _, n := range arrays {
		bytes += m.elements(n) * float64(
			m.p.Ops[n].Instr.Shape.DType.Size(),
		)
		l.traffic += m.transferredBytes(n, lineBytes) * runs
	}
	c.shared += bytes * float64(slots)
	c.converted += bytes * float64(slots)
	l.ring += latency * max(0, runs-1)
	l.slots = max(l.slots, float64(slots))
	c.iterations = max(c.iterations, runs)
}

// roundingSteps is the instructions of cvt.rna.tf32.f32 (ptxas 13.5 for sm_80: 2.0 and 2.4
// of each element of a fragment in the loops of two products).
const roundingSteps = 2

// emulatedF8 is the instructions of a warp beside the two of f16 that ptxas makes of an
// mma.sync of f8 for devices with wgmma: conversions, additions of both sums (ptxas 13.5:
// 281 instructions for 16 of m16n8k32, 32 of them HMMA, 48 F2FP and 128 FADD).
const emulatedF8 = 16

// mmaLatency is the cycles from an mma.sync to one that needs its sums (Abdelkhalik et
// al., Demystifying the Nvidia Ampere Architecture through Microbenchmarking, 2022:
// 33 for m16n8k16 of f16).
const mmaLatency = 33

// fragmentRows is the rows and columns that readers of a product, warps or warpgroups,
// load together: they are arranged in the way that needs the fewest.
func (m *estimate) fragmentRows(n int, readers float64) float64 {
	sizes := m.sizes(n)
	rows, cols := 1.0, m.elements(n)
	if k := len(sizes); k >= 2 {
		rows = float64(sizes[k-2])
		cols /= rows
	}
	rows = math.Ceil(rows/mmaM) * mmaM
	cols = math.Ceil(cols/mmaN) * mmaN
	best := math.Inf(1)
	for down := 1.0; down <= max(1, readers); down *= 2 {
		across := max(1, readers) / down
		best = min(best, rows*across+cols*down)
	}
	return best
}

// direct reports whether the operands of a product on the arithmetic units are copied
// unchanged.
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

// mmaShare is the share of the tensor cores' rate that mma.sync reaches on devices
// with wgmma (Luo et al., Dissecting the NVIDIA Hopper Architecture, 2025: 63 %).
const mmaShare = 0.63

// byGroups reports whether warpgroups are likely to compute a product of the current
// tiling.
func (m *estimate) byGroups(n int, k knobs) bool {
	o := m.computed[n]
	if !m.groups[k.tf32][n] ||
		m.undivided[n] ||
		o != nil && o.both && k.mathGroups() > 1 ||

		k.warps*device.WarpThreads%device.WarpgroupThreads != 0 {
		return false
	}
	return m.facts[n].groupable.is(func() bool { return m.tileForGroups(n) })
}

// addedByGroups reports whether a reduction adds up a product in the registers of warpgroups.
func (m *estimate) addedByGroups(n int, k knobs) bool {
	dot := m.sums[n]
	return dot >= 0 && m.byGroups(dot, k)
}

// tileForGroups reports whether the tile of a product is one that warpgroups compute.
func (m *estimate) tileForGroups(n int) bool {
	sizes := m.sizes(n)
	last := len(sizes) - 1
	if last < 1 || m.elements(n) != float64(sizes[last-1]*sizes[last]) {
		return false
	}
	if rows, _ := m.groupSides(n); rows < groupRows {
		return false
	}
	return !slices.ContainsFunc(m.copied(n), func(a int) bool {
		return m.rows(a) > maxBoxExtent
	}) && m.wholeFragments(n)
}

// copied are the arrays of which tensor copies bring tiles for a product.
func (m *estimate) copied(n int) []int {
	args := m.multiplied(n)
	o := m.computed[n]
	if o == nil {
		return args
	}
	other := args[1]
	if o.turned {
		other = args[0]
	}
	all := []int{other}
	for _, raw := range o.raw {
		all = append(all, stored(m.p, raw))
	}
	return all
}

// wholeFragments reports whether the tile of an operand in registers has whole fragments
// along k, and rows of 32 bytes of what it is computed from.
func (m *estimate) wholeFragments(n int) bool {
	o := m.computed[n]
	if o == nil || o.plain {
		return true
	}
	if o.groups != nil &&
		m.sizes(o.arg)[o.groups.Dim] > 1 {
		return false
	}
	a := m.p.Ops[n].Instr.Attrs
	dims := a.LHSContract
	if o.turned {
		dims = a.RHSContract
	}
	extent := int64(1)
	for _, d := range dims {
		extent *= m.sizes(o.arg)[d]
	}
	for _, raw := range o.raw {
		if extent*m.p.Ops[raw].Instr.Shape.DType.Size()%mmaBytes != 0 {
			return false
		}
	}
	return extent%fragmentDepth == 0
}

// groupable reports whether warpgroups can compute a product with some tiling: its
// operands are parameters that tensor copies can load, of a type and a layout that
// wgmma reads, or one is computed from such parameters.
func groupable(p *symtile.Program, n int, s device.Spec, k knobs) bool {
	scaled := scaledProductOf(p, n)
	op, args := p.Ops[n], multiplied(
		p, n, scaled,
	)
	a := p.Ops[args[0]].Instr.Shape
	b := p.Ops[args[1]].Instr.Shape
	inst, ok := groupProduct(
		s, a.DType, b.DType, k,
	)
	if !ok ||
		wideSum(op.Instr.Shape.DType) != inst.sum {
		return false
	}
	computed := inRegisters(p, n, scaled)
	if computed != nil && !computed.plain &&
		a.DType.Size() != fragmentDepth/8 {
		return false
	}
	for k, shape := range []hlo.Shape{a, b} {
		if len(shape.Dims) == 0 {
			return false // tensor copies load boxes
		}
		order := majorToMinor(shape)
		contracted := [][]int64{op.Instr.Attrs.LHSContract, op.Instr.Attrs.RHSContract}[k]
		if computed != nil && computed.arg == args[k] {
			continue
		}
		if computed != nil && computed.both &&
			copyableShape(shape) {
			continue
		}
		if p.Ops[args[k]].Code != hlo.OpParameter ||

			!readsTransposed(shape.DType) &&
				!slices.Contains(contracted, int64(order[len(order)-1])) ||
			!copyableShape(shape) {
			return false
		}
	}
	return computed == nil || !slices.ContainsFunc(computed.raw, func(n int) bool {
		return !copyableShape(p.Ops[stored(p, n)].Instr.Shape)
	})
}

// copyableShape reports whether the strides of an array are those of tensor maps.
func copyableShape(shape hlo.Shape) bool {
	for _, stride := range shape.Strides() {
		if stride != 1 &&
			stride*shape.DType.Size()%matrixRow != 0 {
			return false
		}
	}
	return true
}

// onTensorCores reports whether tensor cores have the types of a product, also on devices
// that code is not generated for.
func onTensorCores(p *symtile.Program, n int, s device.Spec, k knobs) bool {
	args := p.Ops[n].Args
	a := p.Ops[args[0]].Instr.Shape.DType
	b := p.Ops[args[1]].Instr.Shape.DType
	if !s.Generated() {
		_, known := tensorTypes[a]
		return known && a == b && s.Rates.Tensor(a) > 0 &&
			(a != hlo.F32 || k.tf32 > 0)
	}
	_, ok := tensorProduct(s, a, b, k)
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

// partials bounds the results of a reduction that a thread holds.
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

// priceTerms are the names of terms.
var priceTerms = [...]string{
	"memory", "arithmetic", "tensor cores", "shared memory", "L2", "blocks", "waiting", "start",
}

// terms are seconds, by priceTerms: for all blocks the time of memory, arithmetic
// units, tensor cores, shared memory, L2 cache and of starting blocks; the time of one
// block from start to end times the rounds of blocks, of which only a share counts
// while a resource is busy; and the start of the first blocks.
type terms [len(priceTerms)]float64

// Of the first terms, which overlap, the longest counts, and a share of the
// others: warps of a block that wait for one have others beside them.
const (
	// The first terms overlap: the longest counts whole and of the others a share,
	// because warps that wait for one resource leave the others to other warps. The
	// share is an assumption without a source.
	overlappingTerms = 6
	hiddenShare      = 1.0 / 8
)

// total adds up the terms; infinite for a block that does not fit.
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

// terms converts the work of a block to seconds of all blocks. Bytes that several
// blocks of a round load come from the L2 cache after the first time; distinct is the
// least that memory transfers.
func (m *estimate) terms(c candidate, programs float64, l blockCost, distinct float64) terms {
	s := m.spec
	at := s.Occupancy(m.needs(c))
	if at.Blocks == 0 {
		return terms{math.Inf(1)}
	}
	m.serialise(&l)
	sms := float64(max(1, s.ClusteredSMs(c.knobs.cluster)))
	clock := s.Clock
	bandwidth := s.Bandwidth
	if clock == 0 {
		clock = 1e9
	}
	if bandwidth == 0 {
		// Without a known bandwidth, 16 bytes an SM and clock.
		bandwidth = 16 * sms * clock
	}
	resident := min(
		float64(at.Blocks), math.Ceil(programs/sms),
	)
	wave := min(programs, sms*resident)
	rounds, busiest := roundsOf(programs, sms, resident)
	blocks := programs
	alone := l.soloCycles(float64(c.knobs.warps), s.Rates)
	whole := rounds * alone
	// The first operands of the next tile are loaded while this tile ends.
	if c.knobs.persistent > 0 {
		whole -= (rounds - 1) * latency
		blocks = wave
	}
	if n := c.knobs.streamk; n > 0 {
		wave = min(float64(n), sms*float64(at.Blocks))
		rounds, busiest, whole = m.streamRounds(c, programs, l, wave)
	}
	if c.knobs.persistent == pingpong {
		whole -= (rounds - 1) *
			min(l.threadCycles(float64(c.knobs.warps), s.Rates), l.groupTensor)
	}
	// Memory supplies what the L2 cache does not keep from one round to the next, and
	// within a wave each different tile once.
	bytes := min(
		programs*l.bytes,
		max(distinct, programs*l.bytes-float64(s.L2)*rounds),
	)
	if c.knobs.splitk <= 1 {
		bytes = min(
			bytes,
			max(distinct, programs/wave*m.waveBytes(
				wave, l.bytes, c.knobs.group,
			)),
		)
	}
	// from the L2 cache
	spilled := max(
		0, programs*l.scratch-float64(s.L2)/2,
	)
	all := busiest / clock
	t := terms{
		(bytes + spilled) / bandwidth,
		all * l.arithmeticCycles(s.Rates),
		all * l.tensor, all * l.traffic / sharedAClock,
		all * (l.sectors + l.scratch - l.multicast) / l2AClock,
		blocks * blockStart / clock,
		0,
		launch + (min(alone/2, 2*latency)+wave*blockStart)/clock,
	}
	t[overlappingTerms] = whole/clock - (1-hiddenShare)*
		min(whole/clock, slices.Max(t[:overlappingTerms]))
	return t
}

// roundsOf is the rounds that blocks run in, as many at a time as fit on all SMs, and
// the blocks of the SM that has most of them: in the last round there are as many as are
// left.
func roundsOf(programs, sms, resident float64) (rounds, busiest float64) {
	full := math.Floor(programs / (sms * resident))
	left := programs - full*sms*resident
	last := math.Ceil(left / sms)
	rounds = full + min(1, last)
	busiest = full*resident + last
	return rounds, busiest
}

// serialised is how much longer products of warpgroups take that wait for each other: an
// estimate from the SASS of one such kernel, 2 to 3.
const serialised = 3

// serialise lengthens the products of warpgroups of a kernel in which they wait for each
// other.
func (m *estimate) serialise(l *blockCost) {
	if m.known != nil && m.known.Serialised {
		l.tensor *= serialised
		l.groupTensor *= serialised
	}
}

const (
	// Prologue is the operations of a thread before its first access: tile ids and
	// addresses (as counted in golden/testdata/ptx).
	prologue = 40
	// blockStart is the cycles between the starts of blocks, of all SMs together.
	// No source states it; streaming kernels with 3 KiB a block at the memory's
	// rate bound it to about two. Nothing of this has been measured here.
	blockStart = 1
	// Launch is the seconds from the request of a kernel to its first instruction, and
	// from its last one to the event that ends its time. (Zhang et al., A Study of
	// Single and Multi-device Synchronization Methods in Nvidia GPUs, 2020: 1 to 2 µs
	// between kernels of a stream.)
	launch = 2e-6
)

// soloCycles is the time of a block that has an SM to itself, in cycles: its threads
// wait for each operation, but not for tensor copies and warpgroups.
func (l blockCost) soloCycles(warps float64, r device.Rates) float64 {
	threads := l.threadCycles(warps, r)
	own := l.groupTensor + threads
	if l.overlapped {
		own -= (1 - hiddenShare) * min(l.groupTensor, threads)
	}
	busy := max(
		own,
		(l.tensorCopied-l.multicast)/l2AClock,
		l.traffic/sharedAClock,
	)
	// With one slot nothing is loaded while an iteration computes; with more, the
	// loads of as many iterations overlap.
	loads := l.ring + l.sectors/l2AClock
	return l.exposed + max(busy, (loads+busy)/l.slots)
}

// threadCycles is the cycles of what the threads of a block do themselves.
func (l blockCost) threadCycles(warps float64, r device.Rates) float64 {
	return max(
		l.steps*8, l.accesses*30,
		l.arithmeticCycles(r),
		(l.sectors+l.scratch-l.tensorCopied)/l2AClock,
		l.chain,
	)
}

// arithmeticCycles is the cycles of an SM's arithmetic units. Each sub-partition issues one
// instruction a cycle for a warp (CUDA C++ Programming Guide, compute capabilities 7.x to
// 12.0): where that is all that its units can take, loads between multiply-adds delay them.
func (l blockCost) arithmeticCycles(r device.Rates) float64 {
	const issued = device.SubPartitions * device.WarpThreads
	return max(l.lanes/r.F32, (l.lanes+l.loads)/issued)
}

// needs is the registers of a thread, the shared memory and the threads of a block.
// Where a producer gives registers away, a block has all registers of the SM.
func (m *estimate) needs(c candidate) (registers, shared, threads int) {
	if m.known != nil {
		return m.known.Registers, m.known.Shared, m.known.Threads
	}
	registers = int(min(
		float64(m.spec.ThreadRegisters), c.registers(),
	))
	threads, given := m.threads(c.knobs)
	if given > 0 {
		registers = m.spec.RegistersPerThread(threads)
	}
	return registers, int(c.shared), threads
}

// threads is the threads of a block, and the registers of the consumer threads where a
// producer gives registers away; 0 where none does.
func (m *estimate) threads(k knobs) (threads, given int) {
	threads = k.warps * device.WarpThreads * k.mathGroups()
	extra := k.producer * device.WarpThreads
	if (k.online == byWarpgroups || m.groupsAtAll(k)) &&
		threads+extra <= m.spec.BlockThreads {
		return threads + extra, m.spec.ConsumerRegisters(threads/device.WarpgroupThreads, extra)
	}
	return threads, 0
}

// groupsAtAll reports whether warpgroups compute a product.
func (m *estimate) groupsAtAll(k knobs) bool {
	return k.warps*device.WarpThreads%device.WarpgroupThreads == 0 &&
		m.anyGroups[k.tf32].is(func() bool {
			for n := range m.p.Ops {
				if m.byGroups(n, k) {
					return true
				}
			}
			return false
		})
}

// spills is the bytes that a block stores and loads in all iterations because a thread
// needs more registers than it can have. It is not calibrated by measurements.
func (m *estimate) spills(c candidate) float64 {
	if m.known != nil {
		bytes := m.known.Spilled * m.known.Threads
		return 2 * float64(bytes) * max(1, c.iterations)
	}
	threads, granted := m.threads(c.knobs)
	if granted == 0 {
		granted = m.spec.RegistersPerThread(threads)
	}
	short := max(0, c.registers()-float64(granted))
	return 2 * 4 * short * float64(threads) * max(1, c.iterations)
}

// A productUnit is what computes a product.
type productUnit int

// In the order in which one stands for a kernel that has several.
const (
	unitNone productUnit = iota
	unitFMA
	unitMMA
	unitWGMMA
)

// addressRegisters is what ptxas 12.9 and 13.5 give a thread beside its results and
// operands, as most kernels of bench/gpu show: fragments of mma.sync are addressed by one
// register and immediate offsets, descriptors of wgmma and the operands of multiply-adds,
// which are loaded some steps ahead, take more.
var addressRegisters = [...]float64{
	unitNone:  22,
	unitFMA:   36,
	unitMMA:   6,
	unitWGMMA: 26,
}

// registers is what a thread of a compiler's kernel needs, for the price: addresses,
// results, operands of a product, or the elements that are unrolled.
func (c candidate) registers() float64 { return baseRegisters + c.values() }

// values is the registers of a thread for what is computed.
func (c candidate) values() float64 {
	return max(c.partials+c.operands, min(c.slots, 2*unrolled))
}

// kept is the registers for values of the kernel that this package emits: tiles of which
// a thread has more elements than it keeps are gone over in pieces of half as many as are
// unrolled, beside which each further array has a half of that.
func (m *estimate) kept(c candidate) float64 {
	if c.unit == unitNone && c.slots > 2*unrolled {
		arrays := min(len(m.p.Physical.Params), 3)
		piece := unrolled/4 + unrolled/4*max(1, arrays)
		return max(c.partials, float64(piece))
	}
	return c.values()
}

// resources is what the kernel of this package takes. Its registers are fewer than those
// of the price, with which the timings of Triton's kernels are ranked better.
func (m *estimate) resources(c candidate) Resources {
	if c.knobs.online > 0 && m.online != nil {
		return m.online.resources(c)
	}
	r := Resources{Spills: m.spills(c) > 0}
	r.Registers, r.Shared, r.Threads = m.needs(c)
	if _, given := m.threads(c.knobs); given == 0 {
		own := addressRegisters[c.unit] + m.kept(c)
		r.Registers = int(min(own, float64(m.spec.ThreadRegisters)))
	}
	return r
}

// fits reports whether a block of the candidate fits the device.
func (m *estimate) fits(c candidate) bool {
	if c.knobs.online > 0 && m.online != nil {
		return m.online.fits(c)
	}
	_, given := m.threads(c.knobs)
	if given > 0 && float64(given) < baseRegisters+c.partials ||
		!m.fragmentsFit(c, given) {
		return false
	}
	return max(c.shared, c.converted) <= float64(m.spec.BlockShared) &&
		c.partials <= maxPartials &&
		!math.IsInf(c.seconds, 1)
}

// fragmentsFit reports whether a thread has registers for fragments beside the sums:
// ptxas serialises products that it lacks registers for (C7512). It divides the
// registers among whole warpgroups.
func (m *estimate) fragmentsFit(c candidate, given int) bool {
	if c.unit != unitWGMMA || !slices.ContainsFunc(
		m.computed, func(o *computedOperand) bool { return o != nil },
	) {
		return true
	}
	if given == 0 {
		threads, _ := m.threads(c.knobs)
		groups := (threads + device.WarpgroupThreads - 1) / device.WarpgroupThreads
		given = m.spec.RegistersPerThread(groups * device.WarpgroupThreads)
	}
	return c.partials+c.operands+besideFragments <= float64(given)
}

// plan is the candidate as a plan.
func (c candidate) plan() kernels.Plan {
	return c.knobs.plan(c.tiling)
}

// absorbed finds, for each op, the dot by warpgroups that does without it; −1 where another
// op or a result needs it.
func (m *estimate) absorbed() []int {
	by := slices.Repeat(
		[]int{-1}, len(m.p.Ops),
	)
	for dot, s := range m.scaled {
		if s == nil {
			continue
		}
		if s.sum != nil {
			for _, n := range s.sum.passed {
				by[n] = dot
			}
		}
		for _, o := range s.operands {
			for _, n := range o.passed {
				by[n] = dot
			}
			for _, f := range o.factors {
				m.absorb(f.op, dot, by)
			}
		}
	}
	// Ops are after their arguments.
	for n, op := range slices.Backward(m.p.Ops) {
		for _, a := range op.Args {
			if by[a] >= 0 && by[a] != n &&
				by[n] != by[a] &&
				m.sums[n] != by[a] {
				by[a] = -1
			}
		}
	}
	for _, r := range m.p.Roots {
		by[r.Op] = -1
	}
	return by
}

// absorb records a dot for what a factor is computed by: few elements of it are.
func (m *estimate) absorb(
	n, dot int, by []int,
) {
	if m.p.Ops[n].Code == hlo.OpParameter {
		return
	}
	by[n] = dot
	for _, a := range m.p.Ops[n].Args {
		m.absorb(a, dot, by)
	}
}

// promotes is groupDot.promotes.
func (m *estimate) promotes(n int, k knobs) bool {
	return k.promote > 0 || m.scaled[n] != nil &&
		m.scaled[n].varies
}

// multiplied are the ops whose elements a product multiplies: its arguments, or what is
// scaled.
func (m *estimate) multiplied(n int) []int {
	return multiplied(m.p, n, m.scaled[n])
}

// applyScales adds what scales of a product by warpgroups take: each thread loads them for
// its rows and columns, while the products of the iteration run, and multiplies its sums.
// Cycles are those of the tensor cores in all runs.
func (m *estimate) applyScales(
	n int, cycles, runs float64, c *candidate, l *blockCost,
) {
	s := m.scaled[n]
	if s == nil {
		return
	}
	threads := float64(c.knobs.warps * device.WarpThreads)
	held, loaded, both := 0.0, 0.0, 1.0
	for side, lines := range m.threadLines(n, c.knobs) {
		each := 0.0
		for _, f := range s.operands[side].factors {
			own, times := lines, 1.0
			free := m.freeDims(n, side)
			if f.of != nil {
				free = f.free(m.p, m.p.Ops[n], side)
			}
			if f.sameAlong(m.p, free, m.sizes) {
				own = 1
			}
			if f.varies {
				times = runs
			}
			loaded += own * times
			each = max(each, own)
		}
		held += each
		both *= each
	}
	// What of the latency of the loads the products of an iteration do not hide is waited
	// for, as in fromRegisters.
	times := 1.0
	if s.varies {
		times = runs
		l.exposed += max(0, latency/2*runs-cycles)
		c.operands = max(c.operands, held)
	} else {
		l.lanes += m.elements(n)
	}
	// Sums that are promoted are multiplied as they are added.
	l.lanes += threads * (loaded + both*times)
}

// threadLines are the rows of the left operand and the columns of the right one, of a product
// by warpgroups, that a thread has sums of.
func (m *estimate) threadLines(
	n int, k knobs,
) [2]float64 {
	rows, cols := m.groupSides(n)
	groups := float64(k.warps * device.WarpThreads / device.WarpgroupThreads)
	down := min(groups, math.Ceil(rows/groupRows))
	lines := [2]float64{
		2 * math.Ceil(rows/groupRows/down),
		cols / (groups / down) / 4,
	}
	if o := m.computed[n]; o != nil && o.turned {
		lines[0], lines[1] = lines[1], lines[0]
	}
	return lines
}

// freeDims are the dimensions of an argument of a product that are not contracted.
func (m *estimate) freeDims(
	n, side int,
) (all []int64) {
	op := m.p.Ops[n]
	summed := op.Instr.Attrs.LHSContract
	if side == 1 {
		summed = op.Instr.Attrs.RHSContract
	}
	for d := range m.p.Ops[op.Args[side]].Tile {
		if !slices.Contains(summed, int64(d)) {
			all = append(all, int64(d))
		}
	}
	return all
}
