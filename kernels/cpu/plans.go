package cpu

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// What makes a legal tiling not sensible. None of it is about right or wrong.
const (
	enumerated  = 1 << 17 // tilings looked at
	offered     = 4096    // plans offered; more are thinned evenly
	leastWork   = 64      // elements a step on average, unless the fusion is smaller
	mostScratch = 4 << 20 // bytes of scratch a worker
)

// Plans yields legal tilings whose scratch fits the caches and whose steps are
// worth their overhead, each with one thread and with all.
func (b *Backend) Plans(p *symtile.Program) iter.Seq[kernels.Plan] {
	return func(yield func(kernels.Plan) bool) {
		candidates := thin(sensible(p), offered)
		for _, c := range candidates {
			plan := kernels.Plan{Tiles: c.tiling}
			if !yield(plan) {
				return
			}
			if lanes() > 1 && !yield(plan.With("threads", 1)) {
				return
			}
		}
	}
}

// Default is the plan of the tiling with the best static score.
func (b *Backend) Default(p *symtile.Program) (kernels.Plan, error) {
	all := sensible(p)
	if len(all) == 0 {
		return kernels.Plan{}, fmt.Errorf("%s has no legal tiling", p.Fusion.Name)
	}
	best := slices.MinFunc(all, func(x, y candidate) int { return cmp.Compare(x.score(), y.score()) })
	return kernels.Plan{Tiles: best.tiling}, nil
}

// A candidate is a tiling with what it does.
type candidate struct {
	tiling   symtile.Tiling
	programs float64 // tile programs
	steps    float64 // tile programs times iterations of sequential dimensions
	elements float64 // of all tiles of a step
	inner    float64 // share of the innermost parallel dimension in a tile
	whole    float64 // sequential dimensions that are not one step
}

// score is low for what one would choose by hand: tiles between a third of the
// first cache and a quarter of the second, eight programs a lane, few steps,
// rows whole.
func (c candidate) score() float64 {
	fill := max(0, math.Log2(4096/c.elements)) + max(0, math.Log2(c.elements/32768))
	slack := max(0, math.Log2(8*float64(lanes())/c.programs))
	return fill + slack + 0.5*math.Log2(c.steps) + 0.25*c.whole - math.Log2(c.inner)
}

// sensible lists candidates in the order of Tilings; when none passes, every
// legal tiling looked at.
func sensible(p *symtile.Program) []candidate {
	m := newMeasure(p)
	var good, all []candidate
	looked := 0
	for t := range p.Space.Tilings() {
		if looked++; looked > enumerated {
			break
		}
		c := m.candidate(t)
		all = append(all, c)
		if 8*c.elements <= mostScratch && c.elements >= min(leastWork, m.largest) {
			good = append(good, c)
		}
	}
	if len(good) == 0 {
		return all
	}
	return good
}

// thin keeps n of the candidates, evenly spread.
func thin(all []candidate, n int) []candidate {
	if len(all) <= n {
		return all
	}
	kept := make([]candidate, n)
	for k := range kept {
		kept[k] = all[k*len(all)/n]
	}
	return kept
}

// A measure evaluates the sizes of a symbolic program's tiles for a tiling.
type measure struct {
	p       *symtile.Program
	code    *symtile.Code
	ops     [][2]int // results of each op
	out     []int64
	scratch []int64
	largest float64 // elements of all tiles when every size is the extent
}

func newMeasure(p *symtile.Program) *measure {
	m := &measure{p: p}
	var vars, sizes []symtile.Expr
	for _, d := range p.Space.Dims {
		if _, fixed := d.Size.Value(); !fixed {
			vars = append(vars, d.Size)
		}
	}
	for _, op := range p.Ops {
		first := len(sizes)
		for _, d := range op.Tile {
			sizes = append(sizes, d.Size)
		}
		m.ops = append(m.ops, [2]int{first, len(sizes)})
	}
	m.code, _ = symtile.Compile(vars, sizes) // sizes are functions of tile sizes only
	m.out = make([]int64, len(sizes))
	m.scratch = make([]int64, m.code.ScratchLen())
	full := make(symtile.Tiling, len(p.Space.Dims))
	for k, d := range p.Space.Dims {
		full[k] = max(1, d.Extent)
	}
	m.largest = m.candidate(full).elements
	return m
}

func (m *measure) candidate(t symtile.Tiling) candidate {
	c := candidate{tiling: t, programs: 1, steps: 1, inner: 1}
	vals := make([]int64, 0, len(t))
	for k, d := range m.p.Space.Dims {
		if _, fixed := d.Size.Value(); !fixed {
			vals = append(vals, t[k])
		}
		tiles := math.Ceil(float64(max(1, d.Extent)) / float64(t[k]))
		c.steps *= tiles
		if d.Kind == symtile.Parallel {
			c.programs *= tiles
			c.inner = float64(t[k]) / float64(max(1, d.Extent)) // the last one stays
		} else if tiles > 1 {
			c.whole++
		}
	}
	m.code.Eval(vals, m.out, m.scratch)
	for _, r := range m.ops {
		n := 1.0
		for _, s := range m.out[r[0]:r[1]] {
			n *= float64(s)
		}
		c.elements += n
	}
	return c
}
