package gpu

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

const (
	maxEnumerated = 1 << 16 // tilings looked at
	maxOffered    = 4096    // plans offered; the estimate's cheapest

	maxOfferedStages = 4 // slots of the rings of tilings that are not among the cheapest
)

// Plans yields plans that fit the device by the estimate, the cheapest first.
func (b *Backend) Plans(p *symtile.Program) iter.Seq[kernels.Plan] {
	return func(yield func(kernels.Plan) bool) {
		// Default says why there are none
		all, _ := feasibleCandidates(
			p, b.session.Spec(), b.precisions(p),
		)
		for _, c := range all[:min(len(all), maxOffered)] {
			if !yield(c.plan()) {
				return
			}
		}
	}
}

// Default is the plan with the least estimate that can be compiled.
func (b *Backend) Default(p *symtile.Program) (kernels.Plan, error) {
	return DefaultPlan(p, b.session.Spec())
}

// DefaultPlan is the default for a device with a sheet. It never rounds to tf32.
func DefaultPlan(p *symtile.Program, s device.Spec) (kernels.Plan, error) {
	return cheapest(p, s, noTF32)
}

// TF32Plan is the plan with the least estimate that can be compiled where products
// of f32 may round their operands to tf32.
func TF32Plan(p *symtile.Program, s device.Spec) (kernels.Plan, error) {
	return cheapest(p, s, roundings(p))
}

func cheapest(
	p *symtile.Program, s device.Spec, tf32 []int,
) (kernels.Plan, error) {
	all, err := feasibleCandidates(p, s, tf32)
	if err != nil {
		return kernels.Plan{}, err
	}
	err = fmt.Errorf("%s has no plan that fits %s", p.Fusion.Name, s.Target)
	for _, c := range all[:min(len(all), 64)] {
		if _, err = compile(p, c.plan(), s); err == nil {
			return c.plan(), nil
		}
	}
	return kernels.Plan{}, err
}

// noTF32 is the knob tf32 of plans that need no permission.
var noTF32 = []int{0}

// precisions are the values of tf32 that are worth trying and allowed.
func (b *Backend) precisions(p *symtile.Program) []int {
	if b.tf32 {
		return roundings(p)
	}
	return noTF32
}

// roundings are the values of tf32 that are worth trying.
func roundings(p *symtile.Program) []int {
	if slices.ContainsFunc(p.Ops, func(op symtile.Op) bool {
		return takesTF32(p, op)
	}) {
		return []int{0, 1}
	}
	return noTF32
}

// takesTF32 says whether an op is a product of f32.
func takesTF32(p *symtile.Program, op symtile.Op) bool {
	return op.Code == hlo.OpDot &&
		p.Ops[op.Args[0]].Instr.Shape.DType == hlo.F32 &&
		p.Ops[op.Args[1]].Instr.Shape.DType == hlo.F32
}

// feasibleCandidates lists the candidates that fit, the cheapest first.
func feasibleCandidates(
	p *symtile.Program, s device.Spec, tf32 []int,
) ([]candidate, error) {
	m, err := newEstimate(p, s)
	if err != nil {
		return nil, err
	}
	var all []candidate
	limit := math.Inf(1) // of what is cheap enough to be kept
	looked := 0
	launches := choices(p, s, tf32)
	for t := range p.Space.Tilings() {
		if looked++; looked > maxEnumerated {
			break
		}
		programs := m.set(t)
		if programs > math.MaxInt32 || !m.inOrder() {
			continue
		}
		shares := m.shares(programs)
		for _, k := range launches {
			k.group = m.group(t)
			for _, k.splitk = range shares {
				c := m.candidate(t, programs, k)
				if c.seconds < limit && m.fits(c) {
					all = append(all, c)
				}
			}
		}
		if len(all) > 4*maxOffered {
			all = cheapestOffered(all)
			limit = all[len(all)-1].seconds
		}
	}
	return m.ranked(cheapestOffered(m.scheduled(cheapestOffered(all)))), nil
}

// cheapestOffered sorts candidates, and keeps as many as are offered.
func cheapestOffered(all []candidate) []candidate {
	slices.SortStableFunc(all, func(x, y candidate) int {
		return cmp.Compare(x.seconds, y.seconds)
	})
	return all[:min(len(all), maxOffered)]
}

// Estimates of plans that are as good as each other differ by up to tie; those
// of products by less, as stages and schedules gain that little by the estimate
// and more in fact.
const tie, productTie = 0.01, 0.001

// ranked puts those that tie with the cheapest of them in the order of what they
// take of the device (D9), the least first.
func (m *estimate) ranked(all []candidate) []candidate {
	near := 1 + tie
	if m.dots {
		near = 1 + productTie
	}
	for left := all; len(left) > 0; {
		n := 1
		for n < len(left) &&
			left[n].seconds <= left[0].seconds*near {
			n++
		}
		slices.SortStableFunc(left[:n], candidate.compareResources)
		left = left[n:]
	}
	return all
}

// compareResources compares what candidates take of the device: bytes moved; threads,
// counted as more where a thread has so many elements that it needs registers for
// them; quarters of an SM that a block leaves without a warp; shared memory of a
// block; elements of a thread.
func (c candidate) compareResources(d candidate) int {
	return cmp.Or(
		cmp.Compare(roundedLog(c.moved), roundedLog(d.moved)),
		cmp.Compare(c.effectiveThreads(), d.effectiveThreads()),
		cmp.Compare(c.idleQuarters(), d.idleQuarters()),
		cmp.Compare(c.shared, d.shared),
		cmp.Compare(c.slots, d.slots),
	)
}

// effectiveThreads is the threads of all blocks.
func (c candidate) effectiveThreads() float64 {
	return roundedLog(c.threads * max(1, c.slots/coveringElements))
}

// roundedLog is a logarithm, in whole steps of about a tenth.
func roundedLog(x float64) float64 { return math.Round(7 * math.Log2(x)) }

// coveringElements is the elements of a thread that hide what its addresses cost: two
// accesses of 16 bytes of f32.
const coveringElements = 8

// idleQuarters are the quarters of an SM without a warp of a block that has elements for it.
func (c candidate) idleQuarters() int {
	return max(0, device.SubPartitions-max(1, c.knobs.warps)) *
		min(1, int(max(c.slots, c.partials))/2)
}

// group is how many rows of tiles of a product go together: enough for blocks
// that run at the same time to be about square, and a divisor of all.
func (m *estimate) group(t symtile.Tiling) int {
	rows := int64(1)
	cols := int64(1)
	dots := false
	for k, d := range m.p.Space.Dims {
		n := index.CeilDiv(max(1, d.Extent), t[k])
		dots = dots ||
			d.Kind == symtile.Sequential && d.From.Op == hlo.OpDot
		if d.Kind == symtile.Parallel && n > 1 {
			rows, cols = cols, n
		}
	}
	g := int64(16)
	for g > 1 && (rows%g != 0 || g*g > rows*cols) {
		g /= 2
	}
	if !dots || cols < 2 {
		return 1
	}
	return int(g)
}

// choices lists the launch choices worth trying for every tiling of a program: all
// combinations of the values that knobs offer.
func choices(p *symtile.Program, s device.Spec, tf32 []int) []knobs {
	f := launchFacts{
		spec: s,
		dots: slices.ContainsFunc(p.Ops, func(op symtile.Op) bool { return op.Code == hlo.OpDot }),
	}
	var all []knobs
	for _, x := range tf32 {
		var k knobs
		for _, row := range knobTable {
			*k.field(row.Name) = int(row.Default)
		}
		k.tf32 = x
		f.tensor = hasTensor(p, s, k)
		for _, warps := range offerWarps(f) {
			for _, stages := range offerStages(f) {
				for _, epilogue := range offerEpilogues(f) {
					k.warps, k.stages, k.epilogue = int(warps), int(stages), int(epilogue)
					all = append(all, k)
				}
			}
		}
	}
	return all
}

// hasTensor says whether tensor cores have a product of the program.
func hasTensor(p *symtile.Program, s device.Spec, k knobs) bool {
	for n, op := range p.Ops {
		if op.Code == hlo.OpDot &&
			onTensorCores(p, n, s, k) {
			return true
		}
	}
	return false
}
