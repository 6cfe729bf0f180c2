package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// splitProgram is a program seen as two kernels, of which the first has blocks share
// the loops; see split.go.
type splitProgram struct {
	loops   [][]int // the dimensions of each; nil: they cannot be shared
	closers []int
	inside  []bool // of ops: they are in these loops
	pieces  []bool // the first kernel needs them
	rest    []bool // the second does
}

func splitProgramOf(p *symtile.Program) splitProgram {
	x := splitProgram{inside: make([]bool, len(p.Ops))}
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
		x.closers = append(x.closers, l.Accumulators...)
		x.mark(l)
	}
	x.pieces, x.rest = usedBy(p, x.closers, nil),
		usedBy(p, roots, x.closers)
	for _, n := range x.closers {
		x.rest[n] = false
	}
	return x
}

// mark notes what is in a loop.
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

// shares are the numbers of pieces worth trying for the tiling that is set: one
// and, where that leaves SMs without a block, powers of two from what occupies
// about half of them on, and what occupies all.
func (m *estimate) shares(programs float64) []int {
	all, sms, most := []int{1},
		float64(m.sheet.SMs),
		min(maxPieces, m.fewest())
	if programs >= sms {
		return all
	}
	for n := 2; n <= most && len(all) < 4; n *= 2 {
		if float64(n)*programs >= sms/2 || 2*n > most {
			all = append(all, n)
		}
	}
	n := int(sms / programs)
	if n > 2 && n <= most && !slices.Contains(all, n) {
		all = append(all, n)
	}
	return all
}

// fewest is the iterations of the loop with the fewest of those that can be shared.
func (m *estimate) fewest() int {
	fewest := 0
	for _, dims := range m.parted.loops {
		trips := m.around(dims)
		if trips > 1 && (fewest == 0 || trips < fewest) {
			fewest = trips
		}
	}
	return fewest
}

func (m *estimate) around(dims []int) int {
	trips := 1
	for _, d := range dims {
		trips *= int(m.extents.Trips(d))
	}
	return trips
}

// longest is the part of a loop's iterations that the longest of pieces has.
func (m *estimate) longest(pieces int) float64 {
	part := 1 / float64(pieces)
	for _, dims := range m.parted.loops {
		trips := float64(m.around(dims))
		part = max(
			part, math.Ceil(trips/float64(pieces))/trips,
		)
	}
	return part
}

// launchGap is the seconds from the end of a kernel to the start of the next, which
// waits for it, in a graph: about a microsecond and a half. Nothing of this has
// been measured here.
const launchGap = 1.5e-6

// split costs a plan of two kernels.
func (m *estimate) split(programs float64, c *candidate) {
	pieces := float64(c.knobs.splitk)
	first := m.work(m.parted.pieces, c)
	second := m.work(m.parted.rest, c)
	for _, n := range m.parted.closers {
		m.pass(n, pieces, c, &first, &second)
	}
	m.store(c, &second)
	first.exposed += m.spills(*c)
	x := m.terms(*c, programs*pieces, first, m.unique)
	y := m.terms(*c, programs, second, 0)
	for k := range x {
		c.terms[k] = x[k] + y[k]
	}
	c.terms[len(c.terms)-1] += launchGap
}

// pass adds what a closer leaves in one kernel and the next takes up: the sums of
// all threads, 16 vectors on their way at once, or results that are joined once
// more.
func (m *estimate) pass(n int, pieces float64, c *candidate, first, second *load) {
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
