package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A wave is the blocks that run at the same time. What several of them read is
// transferred from memory once, if they read it at about the same time.

// operands finds the parallel dimensions that each parameter depends on, and the
// parameters that products by warpgroups read.
func (m *estimate) operands() {
	m.dependsOn = make(
		[]symtile.DimSet, len(m.p.Ops),
	)
	m.readBy = make([]int, len(m.p.Ops))
	m.loadedBytes = make([]float64, len(m.p.Ops))
	m.waveTiles = make(
		[]float64, len(m.p.Space.Dims),
	)
	for n, op := range m.p.Ops {
		m.readBy[n] = -1
		if op.Code != hlo.OpParameter {
			continue
		}
		for k, d := range m.p.Space.Dims {
			if d.Kind == symtile.Parallel &&
				m.extents.Over(n).Has(k) {
				m.dependsOn[n] |= 1 << k
			}
		}
	}
	for n := range m.p.Ops {
		if m.groups[0][n] || m.groups[1][n] {
			for _, a := range m.copied(n) {
				m.readBy[a] = n
			}
		}
	}
}

// loadParameter adds what a block reads of a parameter. Operands of warpgroups are
// loaded by tensor copies, in a cluster a part of the shared ones by each block.
func (m *estimate) loadParameter(n int, k knobs, runs float64, l *blockCost) {
	bytes := m.transferredBytes(n, sectorBytes) * runs
	m.loadedBytes[n] = m.transferredBytes(n, m.burst()) * runs
	l.bytes += m.loadedBytes[n]
	l.sectors += bytes
	dot := m.readBy[n]
	if dot < 0 || !m.byGroups(dot, k) {
		m.countAccesses(n, runs, k, l)
		return
	}
	// A cluster loads what it shares once.
	l.tensorCopied += bytes
	along, _ := m.neighbours(k.group)
	if k.cluster > 1 &&
		(along < 0 || !m.dependsOn[n].Has(along)) {
		l.multicast += bytes *
			(1 - 1/float64(k.cluster))
	}
}

// neighbours is emitter.neighbours for the current tiling.
func (m *estimate) neighbours(group int) (dim int, run float64) {
	rows, cols := m.rowsAndColumns()
	switch {
	case cols < 0:
		return -1, 1
	case group > 1 && rows >= 0:
		// A last group has fewer rows.
		all := int64(m.extents.Trips(rows))
		return rows, float64(index.GCD(int64(group), all))
	}
	return cols, m.extents.Trips(cols)
}

// rowsAndColumns are the last parallel dimensions with several tiles; −1 where there is
// none.
func (m *estimate) rowsAndColumns() (rows, cols int) {
	rows, cols = -1, -1
	for k, d := range m.p.Space.Dims {
		if d.Kind == symtile.Parallel &&
			m.extents.Trips(k) > 1 {
			rows, cols = cols, k
		}
	}
	return rows, cols
}

// countWaveTiles counts the different tiles along each parallel dimension that
// consecutive blocks have (see raster).
func (m *estimate) countWaveTiles(blocks float64, group int) {
	along, run := m.neighbours(group)
	if rows, _ := m.rowsAndColumns(); group > 1 && rows >= 0 {
		run = float64(group)
	}
	remaining := blocks
	for k := len(m.waveTiles) - 1; k >= 0; k-- {
		trips := m.extents.Trips(k)
		m.waveTiles[k] = 1
		if m.p.Space.Dims[k].Kind != symtile.Parallel {
			continue
		}
		each := 1.0
		if k != along && run == float64(group) && remaining == blocks {
			// Blocks traverse run rows before the next column.
			each = run
		}
		if k == along && run == float64(group) && run > 1 {
			m.waveTiles[k] = min(
				trips, run*math.Ceil(remaining),
			)
			remaining *= run / trips
			continue
		}
		m.waveTiles[k] = min(
			trips, math.Ceil(remaining/each),
		)
		remaining /= each * trips
	}
}

// waveBytes is what memory transfers for a wave of blocks, each of which requests
// bytes.
func (m *estimate) waveBytes(blocks, bytes float64, group int) float64 {
	m.countWaveTiles(blocks, group)
	total := bytes * blocks
	for n, b := range m.loadedBytes {
		different := 1.0
		for k := range m.waveTiles {
			if m.dependsOn[n].Has(k) {
				different *= m.waveTiles[k]
			}
		}
		total -= b * max(0, blocks-different)
	}
	return total
}

// scheduled adds to the cheapest candidates the same tilings with deeper rings,
// clusters, persistent blocks and producers that give registers away, where device and
// tiling allow them.
func (m *estimate) scheduled(all []candidate) []candidate {
	for _, c := range all[:min(len(all), rescheduled)] {
		if !m.usesTensorCores(c.knobs) {
			continue
		}
		programs := m.set(c.tiling)
		for _, k := range m.deeperRings(c.knobs) {
			base := m.candidate(c.tiling, programs, k)
			if k != c.knobs {
				all = m.appendFitting(all, base)
			}
			all = m.streams(all, base, programs)
			all = m.groupSchedules(all, base, programs)
		}
	}
	return all
}

// deeperRings are knobs with more slots than all tilings are offered, at most as many
// as there are iterations.
func (m *estimate) deeperRings(k knobs) []knobs {
	all, iterations := []knobs{k}, 0.0
	for n, op := range m.p.Ops {
		if op.Code == hlo.OpDot {
			iterations = max(
				iterations, m.runs(n)/float64(k.splitk),
			)
		}
	}
	if k.stages < maxOfferedStages {
		return all
	}
	for k.stages++; k.stages <= maxStages && float64(k.stages) <= iterations; k.stages++ {
		all = append(all, k)
	}
	return all
}

// groupSchedules adds the schedules that only a single product by warpgroups can have.
func (m *estimate) groupSchedules(all []candidate, base candidate, programs float64) []candidate {
	if m.spec.Cluster < 2 ||
		!m.onlyGroupProduct(base.knobs) ||
		len(m.p.Runtime) > 0 {
		return all
	}
	for _, epilogue := range m.epilogues(base.knobs) {
		base.knobs.epilogue = epilogue
		for _, promote := range m.promotions(base.knobs) {
			base.knobs.promote = promote
			all = m.schedulesOf(all, base, programs)
		}
	}
	return all
}

// epilogues are the values of the knob epilogue for the only product: that of k and, where
// results go through shared memory, the one with tensor copies, if these can store them.
func (m *estimate) epilogues(k knobs) []int {
	all := []int{k.epilogue}
	if k.epilogue != 1 || k.splitk > 1 ||
		len(m.p.Roots) != 1 {
		return all
	}
	// The conditions are those of boxStore, as far as they are known without code: results of
	// 16 bits, rows that tensor maps can have, and tiles of whole boxes.
	n := m.p.Roots[0].Op
	shape := m.p.Ops[n].Instr.Shape
	sizes := m.sizes(n)
	last := len(sizes) - 1
	if !shape.DType.IsFloat() ||
		shape.DType.Size() != 2 || last < 1 ||
		m.order[n][last] != last ||
		m.pitch[n]%matrixRow != 0 ||
		sizes[last-1]%groupRows != 0 ||
		sizes[last]%mmaM != 0 {
		return all
	}
	return append(all, byBoxes)
}

// promotions are the values of the knob promote: sums of 14 bits are exact enough for few
// products, and the check of a plan says for how many.
func (m *estimate) promotions(k knobs) []int {
	for n, op := range m.p.Ops {
		if op.Code == hlo.OpDot &&
			m.byGroups(n, k) &&
			m.runs(n) > 1 &&
			!m.promotes(n, k) &&
			m.multipliesF8(n) {
			return []int{0, 1}
		}
	}
	return []int{0}
}

// multipliesF8 reports whether a product is one of 8-bit floats.
func (m *estimate) multipliesF8(n int) bool {
	first := m.multiplied(n)[0]
	return isF8(m.p.Ops[first].Instr.Shape.DType)
}

// schedulesOf adds clusters, persistent blocks and producers of a warpgroup.
func (m *estimate) schedulesOf(all []candidate, base candidate, programs float64) []candidate {
	for _, cluster := range []int{1, 2, 4} {
		k := base.knobs
		k.cluster = cluster
		if cluster > 1 &&
			(k.splitk > 1 || !m.formsClusters(k)) {
			continue
		}
		one := m.candidate(base.tiling, programs, k)
		if cluster > 1 || k.promote > 0 ||
			k.epilogue == byBoxes {
			all = m.appendFitting(all, one)
		}
		all = m.withProducer(all, one, programs)
		if cluster == 1 && k.epilogue == byBoxes {
			all = m.streams(all, one, programs)
		}
		for k.persistent = 1; k.persistent <= pingpong && k.splitk == 1; k.persistent++ {
			x := m.candidate(base.tiling, programs, k)
			if x.seconds < one.seconds {
				all = m.withProducer(
					m.appendFitting(all, x), x, programs,
				)
			}
		}
	}
	return all
}

// streamGain is the share of its price that a plan must lose by sharing tiles (knob
// streamk) to be offered so: nobody has timed the flags.
const streamGain = 0.85

// Iterations that each block has at least of shared tiles, blocks an SM, and blocks a
// tile at most.
const streamTrips, streamResident, streamPeers = 4, 2, 8

// streams adds a candidate with its tiles shared by as many blocks as run at the same time.
func (m *estimate) streams(all []candidate, c candidate, programs float64) []candidate {
	k := c.knobs
	if k.splitk > 1 || k.online > 0 || len(m.p.Runtime) > 0 || !m.onlyLoopOfProducts() {
		return all
	}
	trips := int64(m.iterations(m.split.loops[0]))
	at := m.spec.Occupancy(m.needs(c))
	for each := range min(streamResident, at.Blocks) {
		k.streamk = max(1, m.spec.SMs) * (each + 1)
		s := stream{blocks: int64(k.streamk), tiles: int64(programs), trips: trips}
		s.divide()
		if k.streamk > maxPieces || trips < 2 || s.tiles%s.blocks == 0 ||
			s.shared*trips < streamTrips*s.blocks || s.tiles*streamPeers < s.blocks {
			continue
		}
		x := m.candidate(c.tiling, programs, k)
		if x.seconds >= streamGain*c.seconds {
			continue
		}
		if all = m.appendFitting(all, x); m.onlyGroupProduct(k) {
			all = m.withProducer(all, x, programs)
		}
	}
	return all
}

// onlyLoopOfProducts reports whether all products of the program are in one loop, and
// there is no reduction.
func (m *estimate) onlyLoopOfProducts() bool {
	if len(m.split.loops) != 1 {
		return false
	}
	dots := 0
	for _, op := range m.p.Ops {
		if op.Code == hlo.OpReduce {
			return false
		}
		if op.Code == hlo.OpDot {
			dots++
		}
	}
	return dots == len(m.split.accumulators)
}

// streamRounds is the rounds of tiles of a block, those of the SM that has most, and the
// cycles of a block from its start to its end, where blocks share tiles evenly. A block stores
// its sums and sets a flag, and waits for each block that has begun a tile which it ends.
func (m *estimate) streamRounds(
	c candidate, programs float64, l blockCost, wave float64,
) (rounds, busiest, whole float64) {
	blocks, sms := float64(c.knobs.streamk), float64(max(1, m.spec.SMs))
	again := math.Ceil(blocks / wave)
	rounds = programs / blocks
	busiest = rounds * math.Ceil(blocks/sms)
	peers := math.Ceil(max(1, blocks/programs))
	alone := l.soloCycles(float64(c.knobs.warps), m.spec.Rates)
	threads := float64(c.knobs.warps * device.WarpThreads)
	bytes := 0.0
	for _, n := range m.split.accumulators {
		bytes += m.elements(n) * float64(wideSum(m.p.Ops[n].Instr.Shape.DType).Size())
	}
	loads := math.Ceil(bytes / threads / maxVectorBytes / (peerSums / 4))
	// Of a tile in two pieces both begin and the second ends.
	whole = rounds*(alone-l.exposed) + (rounds+1)*l.exposed +
		latency*(2+peers*(1+loads)) + 2*bytes*peers/l2AClock
	return rounds * again, busiest * again, whole * again
}

// withProducer adds a candidate whose producer is a warpgroup, if that has registers
// to give away.
func (m *estimate) withProducer(all []candidate, c candidate, programs float64) []candidate {
	k := c.knobs
	k.producer = device.WarpgroupThreads / device.WarpThreads
	if _, given := m.threads(k); given == 0 ||
		k == c.knobs {
		return all
	}
	return m.appendFitting(
		all, m.candidate(c.tiling, programs, k),
	)
}

// appendFitting adds a candidate that fits the device.
func (m *estimate) appendFitting(all []candidate, c candidate) []candidate {
	if m.fits(c) {
		return append(all, c)
	}
	return all
}

// rescheduled is the number of candidates that other schedules are tried for.
const rescheduled = 512

// onlyGroupProduct reports whether the program has one product, by warpgroups, and no
// reduction.
func (m *estimate) onlyGroupProduct(k knobs) bool {
	only := 0
	for n, op := range m.p.Ops {
		switch {
		case op.Code == hlo.OpDot &&
			m.byGroups(n, k):
			only++
		case m.addedByGroups(n, k):
		case op.Code == hlo.OpDot || op.Code == hlo.OpReduce:
			return false
		}
	}
	return only == 1
}

// formsClusters reports whether consecutive blocks form whole clusters with an operand
// in common.
func (m *estimate) formsClusters(k knobs) bool {
	along, run := m.neighbours(k.group)
	if along < 0 ||
		math.Mod(run, float64(k.cluster)) != 0 ||
		k.cluster > m.spec.Cluster {
		return false
	}
	common := false
	for n, dot := range m.readBy {
		if dot >= 0 && !m.dependsOn[n].Has(along) {
			if common = true; m.rows(n)%int64(k.cluster*swizzleRows) != 0 {
				return false
			}
		}
	}
	return common
}

// rows is the rows of an operand of warpgroups in memory order, padded to the fewest
// that wgmma reads.
func (m *estimate) rows(n int) int64 {
	order := m.order[n]
	return (int64(m.elements(n))/
		m.sizes(n)[order[len(order)-1]] + 15) /
		16 * 16
}

// A splitProgram is a program as two kernels, of which the first shares the iterations
// of the loops among blocks (see phase).
type splitProgram struct {
	// Loops are the dimensions of each loop; none where the loops cannot be shared.
	loops        [][]int
	accumulators []int
	// Inside marks the ops in these loops, inPartials those that the first kernel
	// needs, and inCombine those of the second.
	inside     []bool
	inPartials []bool
	inCombine  []bool
}

// splitProgramOf divides a program.
func splitProgramOf(p *symtile.Program) splitProgram {
	x := splitProgram{
		inside: make([]bool, len(p.Ops)),
	}
	loops := topLoops(p.Body)
	for _, l := range loops {
		if needsTotal(p, l, loops) >= 0 {
			return x
		}
	}
	var roots []int
	for _, r := range p.Roots {
		roots = append(roots, r.Op)
	}
	for _, l := range loops {
		x.loops = append(x.loops, l.Dims)
		x.accumulators = append(x.accumulators, l.Accumulators...)
		x.mark(l)
	}
	x.inPartials, x.inCombine = usedBy(p, x.accumulators, nil),
		usedBy(p, roots, x.accumulators)
	for _, n := range x.accumulators {
		x.inCombine[n] = false
	}
	return x
}

// mark marks the ops of a loop.
func (x *splitProgram) mark(l *symtile.Loop) {
	for _, n := range l.Accumulators {
		x.inside[n] = true
	}
	for _, s := range l.Body {
		if s.Loop != nil {
			x.mark(s.Loop)
		} else {
			x.inside[s.Op] = true
		}
	}
}

// splitCounts are the numbers of pieces that are worth trying for the current tiling:
// 1 and, where that leaves SMs without a block, powers of two from about half
// occupancy on, and the number that occupies all SMs.
func (m *estimate) splitCounts(programs float64) []int {
	all, sms, limit := []int{1},
		float64(m.spec.SMs),
		min(maxPieces, m.minIterations())
	if programs >= sms {
		return all
	}
	for n := 2; n <= limit && len(all) < 4; n *= 2 {
		if float64(n)*programs >= sms/2 ||
			2*n > limit {
			all = append(all, n)
		}
	}
	n := int(sms / programs)
	if n > 2 && n <= limit &&
		!slices.Contains(all, n) {
		all = append(all, n)
	}
	return all
}

// minIterations is the iterations of the shortest loop that can be shared.
func (m *estimate) minIterations() int {
	minimum := 0
	for _, dims := range m.split.loops {
		trips := m.iterations(dims)
		if trips > 1 && (minimum == 0 || trips < minimum) {
			minimum = trips
		}
	}
	return minimum
}

// iterations is the number of iterations of a loop over dims.
func (m *estimate) iterations(dims []int) int {
	trips := 1
	for _, d := range dims {
		trips *= int(m.extents.Trips(d))
	}
	return trips
}

// longestPiece is the share of a loop's iterations that the longest piece has.
func (m *estimate) longestPiece(pieces int) float64 {
	part := 1 / float64(pieces)
	for _, dims := range m.split.loops {
		trips := float64(m.iterations(dims))
		part = max(
			part, math.Ceil(trips/float64(pieces))/trips,
		)
	}
	return part
}

// launchGap is the seconds between dependent kernels of a graph, about a microsecond
// and a half. It is not calibrated by measurements.
const launchGap = 1.5e-6

// priceSplit estimates a plan with two kernels.
func (m *estimate) priceSplit(programs float64, c *candidate) {
	pieces := float64(c.knobs.splitk)
	first := m.work(m.split.inPartials, c)
	second := m.work(m.split.inCombine, c)
	for _, n := range m.split.accumulators {
		m.exchangePartials(n, pieces, c, &first, &second)
	}
	m.store(c, &second)
	first.traffic += m.spills(*c)
	x := m.terms(
		*c, programs*pieces, first, m.distinctBytes,
	)
	y := m.terms(*c, programs, second, 0)
	for k := range x {
		c.terms[k] = x[k] + y[k]
	}
	start := &c.terms[len(c.terms)-1]
	*start += launchGap
	// The second kernel is launched while the first one runs. What is left is the time
	// from the end of that to the end of the wait, which is taken to be the gap.
	if c.knobs.pdl > 0 {
		*start -= launch
	}
}

// exchangePartials adds the partial results of an accumulator that one kernel stores
// and the next one loads: the sums of all threads with 16 vectors in flight, or the
// results of a reduction.
func (m *estimate) exchangePartials(n int, pieces float64, c *candidate, first, second *blockCost) {
	op := m.p.Ops[n]
	threads := float64(c.knobs.warps * device.WarpThreads)
	if op.Code == hlo.OpDot {
		bytes := m.elements(n) *
			float64(wideSum(op.Instr.Shape.DType).Size())
		first.scratch += bytes
		second.scratch += bytes * pieces
		second.exposed += latency *
			math.Ceil(bytes*pieces/threads/maxVectorBytes/16)
		return
	}
	bytes := m.elements(n) * 4 *
		float64(len(op.Args)/2)
	first.scratch += bytes
	second.scratch += bytes * pieces
	second.exposed += latency/2 +
		latency*math.Ceil(pieces*m.elements(n)/threads/8)
}
