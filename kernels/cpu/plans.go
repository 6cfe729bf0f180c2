package cpu

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// What makes a legal tiling not sensible. None of it is about right or wrong.
const (
	maxEnumerated     = 1 << 15 // tilings looked at; of larger spaces a spread sample
	maxTilings        = 2048    // offered without knobs; more are thinned
	maxOffered        = 4096    // plans in all
	maxPlansPerTiling = 64      // plans of a tiling
	minOpWork         = 64      // element operations a tile op on average, unless the fusion is smaller
	maxRelativeWork   = 8       // times the least element operations of a tiling
	worthLanes        = 1 << 18 // element operations that are worth waking other lanes for
)

// Plans yields legal tilings whose scratch fits a quarter of the last cache's share of a lane and whose steps are
// worth their overhead, and those of the best also with the values their knobs
// offer, the best by static score first. None repeats more work than the
// bound: its element operations, masked elements and everything computed again
// in other tile programs or iterations included, are at most eight times those
// of the offered plan with the fewest, counted on the loop nests of the program.
func (b *Backend) Plans(p *symtile.Program) iter.Seq[kernels.Plan] {
	return func(yield func(kernels.Plan) bool) {
		all, _ := b.sensible(p) // Default says why there are none
		for _, s := range b.factsOf(p).offers(all) {
			if !yield(s.plan) {
				return
			}
		}
	}
}

// Default is the plan with the best static score.
func (b *Backend) Default(p *symtile.Program) (kernels.Plan, error) {
	all, err := b.sensible(p)
	if err != nil {
		return kernels.Plan{}, err
	}
	if len(all) == 0 {
		if p.Space.Count() == 0 {
			return kernels.Plan{},
				fmt.Errorf("%s has no legal tiling", p.Fusion.Name)
		}
		return kernels.Plan{},
			fmt.Errorf("%s: %w", p.Fusion.Name, errDigits)
	}
	return b.factsOf(p).best(all).plan, nil
}

// A scored plan has its static score.
type scored struct {
	plan  kernels.Plan
	score float64
}

// best is the plan with the best score; of knobs, only splitk has one.
func (f facts) best(all []candidate) scored {
	best := scored{score: math.Inf(1)}
	for _, f.candidate = range all {
		if s := f.score(1); s < best.score {
			best = scored{kernels.Plan{Tiles: f.tiling}, s}
		}
		for _, parts := range offerSplits(f) {
			if s := f.score(float64(parts)); s < best.score {
				best = scored{
					kernels.Plan{Tiles: f.tiling}.With("splitk", parts),
					s,
				}
			}
		}
	}
	return best
}

// unmodelledKnobPenalty is what a knob is put behind by that scores do not tell of, so that
// tilings nearly as good come before every knob of one.
const unmodelledKnobPenalty = 0.02

// offers are the plans of candidates, the best by score first.
func (f facts) offers(all []candidate) []scored {
	slices.SortStableFunc(all, func(x, y candidate) int {
		return cmp.Compare(x.score(1), y.score(1))
	})
	var out []scored
	for _, c := range thin(all, maxTilings) {
		out = append(out, scored{
			kernels.Plan{Tiles: c.tiling}, c.score(1),
		})
	}
	for _, c := range all {
		variants := f.with(c).variants()
		for _, plan := range variants[1:min(len(variants), maxPlansPerTiling)] {
			if len(out) == maxOffered {
				break
			}
			out = append(out, scored{
				plan,
				c.score(float64(plan.Knob("splitk", 1))) +
					unmodelledKnobPenalty*float64(len(plan.Knobs)),
			})
		}
	}
	slices.SortStableFunc(out, func(x, y scored) int {
		return cmp.Compare(x.score, y.score)
	})
	return out
}

// A candidate is a tiling with what it does.
type candidate struct {
	tiling      symtile.Tiling
	programs    float64 // tile programs
	elements    float64 // of all tiles of a step
	runs        float64 // tile ops run
	work        float64 // element operations of the whole run
	products    float64 // those of dots among them
	left, right float64 // elements of the operands of dots, each time they are arranged
	pieces      float64 // runs of elements next to each other they are read in
	sums        float64 // elements dots make
	passes      float64 // the same, each time they are added to
	scratch     float64 // bytes a worker needs, about
	lowers      bool    // so far as its kind tells, see measure.rooms
	spill       float64 // log₂ of how often scratch takes half the second cache, if more than once
	inner       float64 // share of the innermost parallel dimension, or of 32 vectors of f32 of it, in a tile
	page        float64 // share of rowPage elements, or of a row of all arrays, in a tile
	whole       float64 // sequential dimensions that are not one step
	again       float64 // 1 where rows leave the second cache and are read once more than by an online loop; a part of it where its tiles are short
}

// rowPage is elements of a row of which half as many, where rows pass by once, take
// longer: a page of f32, where the hardware begins to fetch ahead anew.
const rowPage = 1024

// pageCost is log₂ of how much longer: column sums of 8192×1024 take 2.0, 2.9 and 3.8 ms
// in tiles of 1024, 512 and 256 columns.
const pageCost = 0.6

// joinCost is log₂ of how much longer a reduction takes whose parts are joined, where
// that is not needed to have work for all lanes: rows of 512×768 take 39 µs in eight
// parts, 20 to 25 in one.
const joinCost = 0.85

// score is low for what one would choose by hand, with the contraction in so
// many parts: little work in few steps, a few thousand elements a step, scratch
// that fits the second cache, rows whole, and where there is work for several
// lanes four programs each.
func (c candidate) score(parts float64) float64 {
	steps := math.Log2(c.work) +
		max(0, math.Log2(4096/c.elements)) +
		0.25*c.whole + 0.35*c.again
	worth := min(1, c.work/worthLanes)
	if 3*c.products < c.work {
		slack := max(0, math.Log2(
			4*float64(lanes())/(c.programs*parts),
		)) * worth
		lone := 0.5 * worth *
			idling(c.programs*parts, float64(lanes()))
		if parts > 1 {
			lone += joinCost
		}
		// of equals, that with fewer runs
		return steps + 0.05*math.Log2(c.runs) +
			c.spill + 0.5*slack + lone -
			math.Log2(c.inner) -
			pageCost*math.Log2(c.page)
	}
	long := max(
		0, math.Log2(c.work/c.programs/longProgram),
	)
	return steps + c.overhead(parts) + long +
		worth*idling(c.programs*parts, float64(lanes())) +
		0.2*c.spill - 0.15*math.Log2(c.inner)
}

// What else than products dots take time for, in products.
const (
	leftCost  = 8    // to fetch and arrange an element of the left operand, in rows
	rightCost = 16   // the same of the right one, in panels of a line each
	passCost  = 16   // to fetch and leave an element of what is added to, each time a dot runs
	sumCost   = 12   // to add or copy an element of a partial sum, which one lane does for all
	pieceCost = 1024 // to go on elsewhere in memory: a page and the lines the hardware did not foresee
	runCost   = 4096 // to run a tile op at all
	leaving   = 4    // times that elements of partial sums are copied, besides being added
)

// overhead is log₂ of how much longer it takes to multiply what has to be
// fetched and arranged first. Dots divide tiles for the caches themselves, so
// that few large programs, which arrange little, are best.
func (c candidate) overhead(parts float64) float64 {
	moved := leftCost*c.left +
		rightCost*c.right + passCost*c.passes
	if parts > 1 {
		moved += sumCost * c.sums *
			(parts + leaving) * float64(lanes())
	}
	return math.Log2(
		1 + (moved+pieceCost*c.pieces+runCost*c.runs*parts)/c.work,
	)
}

// longProgram is element operations beyond which one waits for a tile program of a
// run that was cancelled: a fifth of a second.
const longProgram = 1 << 33

// slackCost is log₂ of what it takes longer that there are half as many programs
// than four for each lane: something else runs now and then on one of them.
const slackCost = 0.01

// idling is log₂ of how much longer so many programs take on so many lanes than
// if they could be divided among them.
func idling(programs, lanes float64) float64 {
	if lanes < 2 {
		return 0
	}
	return math.Log2(math.Ceil(programs/lanes)*lanes/programs) +
		slackCost*max(0, math.Log2(4*lanes/programs))
}

// blind are the operations, besides the elementwise, that look at neither the
// indices nor the masks of their tiles.
var blind = map[hlo.Opcode]bool{
	hlo.OpParameter: true, hlo.OpConstant: true, hlo.OpReshape: true,
	hlo.OpSlice: true, hlo.OpDynamicSlice: true, hlo.OpCopy: true,
	hlo.OpOptimizationBarrier: true,
	// these two: at contracted dimensions only
	hlo.OpBroadcast: true, hlo.OpTranspose: true, hlo.OpReverse: true,
	hlo.OpGetTupleElement: true, hlo.OpReduce: true, hlo.OpDot: true,
}

// WalksDigits says whether this backend can run the tilings of a program in
// which tiles have digits: loads and stores walk them, and operations that are
// blind to them do not see them.
func WalksDigits(p *symtile.Program) bool {
	for _, op := range p.Ops {
		_, _, ok := op.Tile.Boxes()
		if !ok ||
			op.Tile.HasDigits() && !blind[op.Code] && !op.Code.Elementwise() {
			return false
		}
		for _, a := range op.Args {
			if p.Ops[a].Tile.HasDigits() &&
				!blind[op.Code] && !op.Code.Elementwise() {
				return false
			}
		}
	}
	return true
}

// walkable is the space of the tilings this backend can run.
func walkable(p *symtile.Program) *symtile.Space {
	if WalksDigits(p) {
		return p.Space
	}
	return p.Space.Boxed()
}

// sensible lists candidates in the order of the space; when none passes, every
// legal tiling looked at that can be lowered, or at last all, and that does not
// repeat too much work.
func (b *Backend) sensible(p *symtile.Program) ([]candidate, error) {
	m, err := newMeasure(p, b.spec())
	if err != nil {
		return nil, fmt.Errorf("the tiles of %s: %w", p.Fusion.Name, err)
	}
	var good, able, all []candidate
	for t := range m.tilings() {
		c := m.candidate(t)
		all = append(all, c)
		if !c.lowers {
			continue
		}
		able = append(able, c)
		if c.scratch <= float64(m.spec.Third/4) &&
			c.work >= c.runs*min(minOpWork, m.largest) {
			good = append(good, c)
		}
	}
	for _, list := range [][]candidate{good, able} {
		if len(list) > 0 {
			return frugal(list), nil
		}
	}
	return frugal(all), nil
}

// tilings are those that are looked at. Of large spaces few have joined loops, so
// that of each the one is looked at too whose loops walk the tiles of the first.
func (m *measure) tilings() iter.Seq[symtile.Tiling] {
	all := walkable(m.p).Sample(maxEnumerated)
	if m.online == nil {
		return all
	}
	return func(yield func(symtile.Tiling) bool) {
		met := map[string]bool{}
		for t := range all {
			alike := slices.Clone(t)
			for _, j := range m.online.joins {
				alike[j[0]] = alike[j[1]]
			}
			key := fmt.Sprint(alike)
			if !slices.Equal(t, alike) && !yield(t) {
				return
			}
			if !met[key] &&
				m.p.Check(alike) == nil &&
				!yield(alike) {
				return
			}
			met[key] = true
		}
	}
}

// frugal drops candidates with more work than the bound.
func frugal(all []candidate) []candidate {
	least := math.Inf(1)
	for _, c := range all {
		least = min(least, c.work)
	}
	return slices.DeleteFunc(all, func(c candidate) bool {
		return c.work > maxRelativeWork*least
	})
}

// thin keeps n of the candidates: the first half of them, and as many of the
// others, evenly spread.
func thin(all []candidate, n int) []candidate {
	if len(all) <= n {
		return all
	}
	kept := slices.Clone(all[:n/2])
	rest := all[n/2:]
	for k := range n - n/2 {
		kept = append(kept, rest[k*len(rest)/(n-n/2)])
	}
	return kept
}
