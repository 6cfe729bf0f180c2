package gpu

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

const (
	enumerated = 1 << 16 // tilings looked at
	offered    = 4096    // plans offered; the estimate's cheapest
)

// Plans yields plans that fit the device by the estimate, the cheapest first.
func (b *Backend) Plans(p *symtile.Program) iter.Seq[kernels.Plan] {
	return func(yield func(kernels.Plan) bool) {
		all, _ := sensible(p, b.session.Sheet()) // Default says why there are none
		for _, c := range all[:min(len(all), offered)] {
			if !yield(c.plan()) {
				return
			}
		}
	}
}

// Default is the plan with the least estimate that can be compiled.
func (b *Backend) Default(p *symtile.Program) (kernels.Plan, error) {
	return DefaultPlan(p, b.session.Sheet())
}

// DefaultPlan is the default for a device with a sheet.
func DefaultPlan(p *symtile.Program, s Sheet) (kernels.Plan, error) {
	all, err := sensible(p, s)
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

// sensible lists the candidates that fit, the cheapest first.
func sensible(p *symtile.Program, s Sheet) ([]candidate, error) {
	m, err := newEstimate(p, s)
	if err != nil {
		return nil, err
	}
	var all []candidate
	looked, launches := 0, choices(p, s)
	for t := range p.Space.Tilings() {
		if looked++; looked > enumerated {
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
				if c := m.candidate(t, programs, k); m.fits(c) {
					all = append(all, c)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(x, y candidate) int { return cmp.Compare(x.seconds, y.seconds) })
	return all, nil
}

// group is how many rows of tiles of a product go together: enough for blocks
// that run at the same time to be about square, and a divisor of all.
func (m *estimate) group(t symtile.Tiling) int {
	rows, cols, dots := int64(1), int64(1), false
	for k, d := range m.p.Space.Dims {
		n := ceilDiv(max(1, d.Extent), t[k])
		dots = dots || d.Kind == symtile.Sequential && d.From.Op == "dot"
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

// choices lists the launch choices worth trying for a program.
func choices(p *symtile.Program, s Sheet) []knobs {
	stages, epilogues := []int{2}, []int{0} // of no effect without products, and the defaults
	switch {
	case hasTensor(p, s):
		stages, epilogues = []int{1, 2, 3, 4}, []int{0, 1}
	case slices.ContainsFunc(p.Ops, func(op symtile.Op) bool { return op.Code == "dot" }):
		stages = []int{1, 2, 3}
	}
	var all []knobs
	for warps := 1; warps*WarpThreads <= min(512, s.BlockThreads); warps *= 2 {
		for _, n := range stages {
			for _, x := range epilogues {
				all = append(all, knobs{epilogue: x, warps: warps, stages: n, group: 1, vector: most, producer: 1, cluster: 1, splitk: 1})
			}
		}
	}
	return all
}

// hasTensor says whether tensor cores have a product of the program.
func hasTensor(p *symtile.Program, s Sheet) bool {
	for n, op := range p.Ops {
		if op.Code == "dot" && tensorProduct(p, n, s) {
			return true
		}
	}
	return false
}
