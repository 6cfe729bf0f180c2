package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

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
	c.terms[len(c.terms)-1] += launchGap
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
