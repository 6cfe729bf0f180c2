package cpu

import (
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// longWork is element operations that no thread does alone in the time that
// waking the others takes.
const longWork = 1 << 24

// offerThreads offers one where waking the others may cost more than they do.
func offerThreads(f facts) []int64 {
	if f.lanes > 1 &&
		f.programs > 1 && f.work < longWork {
		return []int64{1}
	}
	return nil
}

// offerGroups offers orders for rows and columns of tiles: of dots a few group
// sizes, since programs of one row share an operand and those of one column the
// other; of anything else the columns' order, which is the sequence in memory of
// what is transposed. Where all fits the last cache the order is all the same.
func offerGroups(f facts) []int64 {
	several := severalOf(f.grid)
	if len(several) < 2 ||
		f.reads+f.writes < float64(f.spec.last)/8 {
		return nil
	}
	rows := f.grid[several[len(several)-2]]
	if !f.dot {
		return []int64{rows}
	}
	var groups []int64
	for _, g := range []int64{2, 4, 8} {
		if g < rows {
			groups = append(groups, g)
		}
	}
	return append(groups, rows)
}

// offerPacks offers both for dots that take long enough for it to matter.
func offerPacks(f facts) []int64 {
	if !f.dot || f.products < longWork/4 {
		return nil
	}
	return []int64{0, 1}
}

// longContraction is terms of a dot from which on a part of them is work enough;
// longReduction elements of a reduction.
const (
	longContraction = 1024
	longReduction   = 1 << 16
)

// offerSplits offers parts of long contractions, and of long reductions in several
// steps, where there are few tile programs.
func offerSplits(f facts) []int64 {
	n := splittableOp(f.p)
	if n < 0 || f.lanes < 2 ||
		f.programs > 2*float64(f.lanes) {
		return nil
	}
	parts := []int64{2, 4, 8}
	if x := f.p.Ops[n].Instr; x.Op == hlo.OpDot {
		terms := int64(1)
		for _, d := range x.Attrs.LHSContract {
			terms *= x.Operands[0].Shape.Dims[d]
		}
		if terms < longContraction {
			return nil
		}
		return parts
	}
	most := min(f.steps(), int64(f.work)/longReduction)
	return slices.DeleteFunc(parts, func(n int64) bool {
		return n > most
	})
}

// steps is how many tiles there are along the sequential dimensions.
func (f facts) steps() int64 {
	steps := int64(1)
	for k, d := range f.p.Space.Dims {
		if d.Kind != symtile.Parallel {
			steps *= (max(1, d.Extent) + f.tiling[k] - 1) /
				f.tiling[k]
		}
	}
	return steps
}

// offerStreams offers what the default is not, where outputs neither surely stay
// in the last cache nor surely leave it.
func offerStreams(f facts) []int64 {
	switch {
	case f.dot ||
		f.writes < float64(f.spec.last)/8 ||
		f.writes > 8*float64(f.spec.last):
		return nil
	case 2*f.writes >= float64(f.spec.last):
		return []int64{0}
	}
	return []int64{1}
}

// offerPrefetch offers fewer and more rows where parameters come from memory.
func offerPrefetch(f facts) []int64 {
	computes := func(op symtile.Op) bool {
		return op.Code == hlo.OpReduce || op.Code.Elementwise()
	}
	if f.dot ||
		f.reads < float64(f.spec.last)/8 ||
		!slices.ContainsFunc(f.p.Ops, computes) {
		return nil
	}
	return []int64{1, 4}
}

// offerStrips offers longer strips where loops in Go do several pointwise
// operations on tiles that the first cache does not hold; that measures up to a
// twentieth faster, and shorter ones slower.
func offerStrips(f facts) []int64 {
	const few = 3                     // operations
	held := float64(f.spec.First / 4) // elements
	passes := 0
	for _, op := range f.p.Ops {
		if op.Code.Elementwise() && !vector.Has(op.Instr) {
			passes++
		}
	}
	if passes < few ||
		f.elements < held*float64(len(f.p.Ops)) {
		return nil
	}
	return []int64{2048}
}

// factsOf fills in what is the same for every tiling of a program.
func (b *Backend) factsOf(p *symtile.Program) facts {
	f := facts{
		p:     p,
		spec:  b.spec(),
		lanes: int64(lanes()),
	}
	f.dot = slices.ContainsFunc(p.Ops, func(op symtile.Op) bool {
		return op.Code == hlo.OpDot || op.Code == hlo.OpScaledDot
	})
	for _, s := range p.Fusion.ParamShapes() {
		f.reads += float64(s.Bytes())
	}
	for _, s := range kernels.OutputShapes(p.Fusion) {
		f.writes += float64(s.Bytes())
	}
	return f
}

// with is the facts of a tiling.
func (f facts) with(c candidate) facts {
	f.candidate, f.grid = c, nil
	for k, d := range f.p.Space.Dims {
		if d.Kind == symtile.Parallel {
			f.grid = append(
				f.grid,
				(max(1, d.Extent)+c.tiling[k]-1)/
					c.tiling[k],
			)
		}
	}
	return f
}

// variants are the plans of a tiling: every combination of the values its knobs
// offer and of their absence. The first has no knobs, then come those of one
// knob, of two and so on, so that a part of them is the simplest.
func (f facts) variants() []kernels.Plan {
	plans := []kernels.Plan{{Tiles: f.tiling}}
	for _, k := range knobs {
		if k.offers == nil {
			continue
		}
		values := k.offers(f)
		for _, plan := range plans[:len(plans):len(plans)] {
			for _, v := range values {
				plans = append(plans, plan.With(k.name, v))
			}
		}
	}
	slices.SortStableFunc(plans, func(x, y kernels.Plan) int {
		return len(x.Knobs) - len(y.Knobs)
	})
	return plans
}
