package cpu

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/packing"
	"github.com/tilewright/tilewright/symtile/index"
)

// Limits of the plans that are offered. None of them is about correctness: every legal
// tiling computes the same.
const (
	maxListed         = 1 << 13 // tilings of a space: each is priced
	maxSampled        = 1 << 11 // of larger spaces, a spread sample
	maxGrown          = 1 << 11 // around the best of these
	maxBounded        = 1 << 12 // and in the order of their lower bounds
	maxTilings        = 2048    // offered without knobs; more are thinned
	maxOffered        = 4096    // plans in all
	maxPlansPerTiling = 64
	minOpWork         = 64 // element operations of a tile op on average, unless the fusion is smaller
	maxRelativeWork   = 8  // times the least element operations of a tiling
)

// Plans yields legal plans, the first by price first. Their scratch fits a quarter of the
// last cache's share of a lane and their steps are worth their overhead; the best tilings
// come also with the values that their knobs offer. None repeats more work than the
// bound: its element operations, masked elements and everything computed again in other
// tile programs or iterations included, are at most maxRelativeWork times those of the
// offered plan with the fewest. Tilings that cannot be lowered, such as those of a pad
// of digits, are left out.
func (b *Backend) Plans(ctx context.Context, p *symtile.Program) iter.Seq[kernels.Plan] {
	return func(yield func(kernels.Plan) bool) {
		offer, err := b.Offer(ctx, p)
		if err != nil {
			return // Default says why there are none
		}
		for _, plan := range offer.Plans {
			if !yield(plan) {
				return
			}
		}
	}
}

// Offer has the plans that Plans yields. Its legal plans are the tilings that can be lowered,
// each with every combination of the values that its knobs offer, and of their absence.
func (b *Backend) Offer(ctx context.Context, p *symtile.Program) (kernels.Offer, error) {
	s, err := b.newSearch(ctx, p)
	if err != nil {
		return kernels.Offer{}, err
	}
	s.offered = map[kernels.Knob]bool{}
	all := s.offers(s.sensible())
	var out kernels.Offer
	for _, x := range all {
		if !s.runs(x.plan.Tiles) {
			continue
		}
		out.Plans = append(out.Plans, x.plan)
		if x.seconds < s.below {
			out.Proven++
		}
	}
	out.Legal, out.MoreLegal = s.countLegal()
	return out, nil
}

// maxLowered bounds the tilings that are lowered only to know whether they can be.
const maxLowered = 512

// countLegal counts the legal plans of the tilings that were priced: all, unless the space is
// large, or too many would have to be lowered for it; more says so. Of a large space each other
// tiling is one legal plan at least, if all tilings can be lowered. What its knobs offer it is
// not counted: another tiling's may offer more, or nothing. TestLegalPlansAreCounted compares
// the number with all plans that are lowered.
func (s *search) countLegal() (n int64, more bool) {
	lowered := 0
	seen := make(map[uint64]bool, len(s.priced))
	for k := range s.priced {
		x := &s.priced[k]
		hash := hashOf(x.tiling)
		if seen[hash] { // of two with one hash, which are as good as never, one is not counted
			continue
		}
		seen[hash] = true
		if !s.known(x) {
			lowered++
		}
		if lowered > maxLowered {
			more = true
			break
		}
		if s.runs(x.tiling) && (!x.large || s.fits(x.tiling)) {
			n = index.SatAdd(n, x.variants)
		}
	}
	others := s.program.Space.Count() - int64(len(seen))
	if others > 0 && !s.digits && !s.wholeIsLarge() && n > 0 {
		n = index.SatAdd(n, others)
	}
	return n, more || others > 0
}

// known reports whether it is known if a tiling can be lowered.
func (s *search) known(x *pricedTiling) bool {
	_, met := s.lowers[s.kind(x.tiling)]
	if met && x.large {
		_, met = s.roomy[keyOf(x.tiling)]
	}
	return met
}

// wholeIsLarge reports whether the tiles of all elements may take more than maxScratch. A tile's
// sizes never decrease with those of the tiling, so that no other tiling's tiles have more.
func (s *search) wholeIsLarge() bool {
	return s.tiling(wholeTiling(s.p.Space.Dims)).large
}

// hashOf is a hash of a tiling: FNV-1a of whole sizes, with its upper half folded into the lower
// one after each. Of 8,192 tilings two are alike with a probability of 2·10⁻¹².
func hashOf(t symtile.Tiling) uint64 {
	h := uint64(14695981039346656037)
	for _, size := range t {
		h = (h ^ uint64(size)) * 1099511628211
		h ^= h >> 32
	}
	return h
}

// keyOf is a tiling as the key of a map.
func keyOf(t symtile.Tiling) string { return fmt.Sprint(t) }

// Default is the first plan by price: of the plans that Plans yields, none is cheaper.
//
// Not all of them are priced for it. Of a space with few tilings each is priced, of
// others those that a descent by single dimensions meets, from the largest tiles and from
// tiles that divide one parallel dimension among the lanes. All knobs are then tried with
// the best of these tilings.
func (b *Backend) Default(ctx context.Context, p *symtile.Program) (kernels.Plan, error) {
	s, err := b.newSearch(ctx, p)
	if err != nil {
		return kernels.Plan{},
			fmt.Errorf("the tiles of %s: %w", p.Fusion.Name, err)
	}
	return s.first()
}

// A pricedTiling is a tiling with the price of its best plan.
type pricedTiling struct {
	tiling   symtile.Tiling
	seconds  float64 // with the knobs that decide how lanes share the work
	work     float64
	sensible bool
	variants int64 // as facts.variants has them; 0 where nobody asks
	// The elements of all tiles may take more than maxScratch.
	large bool
}

// fitness is 2 for a sensible tiling, 1 for another whose tiles have room in any case, 0
// for the rest.
func (x pricedTiling) fitness() int {
	switch {
	case x.sensible:
		return 2
	case !x.large:
		return 1
	}
	return 0
}

// compare orders tilings as plans without knobs are ordered.
func (x pricedTiling) compare(y pricedTiling) int {
	return pricedPlan{kernels.Plan{Tiles: x.tiling}, x.seconds}.compare(pricedPlan{
		kernels.Plan{Tiles: y.tiling}, y.seconds,
	})
}

// before reports whether a tiling comes before another one.
func (x pricedTiling) before(y pricedTiling) bool { return x.compare(y) < 0 }

// A pricedPlan is a plan with its price.
type pricedPlan struct {
	plan    kernels.Plan
	seconds float64
}

// compare orders plans as package cost does where no model is fitted.
func (x pricedPlan) compare(y pricedPlan) int {
	if c := cmp.Compare(x.seconds, y.seconds); c != 0 {
		return c
	}
	return x.plan.Compare(y.plan)
}

// A search prices the plans of a program. Once its context has ended it finds
// nothing more.
type search struct {
	*pricer
	ctx     context.Context
	program symtile.Program // with the space of the tilings that this backend can run
	facts   *facts
	cost    kernels.Price
	minWork float64 // element operations that a tile op has at least
	lowers  map[string]bool
	digits  bool                  // a tile of the program has some
	each    bool                  // whether a tiling can be lowered follows from no other one
	strict  bool                  // a tiling that cannot be lowered is not sensible
	refused error                 // why the first tiling that cannot be lowered cannot
	bounds  *bounds               // nil before the first use
	below   float64               // what plans that were not priced cost at least
	offered map[kernels.Knob]bool // values of knobs that are offered to some tiling; nil: nobody asks
	roomy   map[string]bool       // large tilings, by keyOf, that were looked at: whether they fit
	priced  []pricedTiling        // all tilings that were
}

// newSearch compiles what the search for plans of a program needs.
func (b *Backend) newSearch(ctx context.Context, p *symtile.Program) (*search, error) {
	x, err := b.pricer(p)
	if err != nil {
		return nil, err
	}
	s := &search{
		pricer:  x,
		ctx:     ctx,
		program: *p,
		facts:   x.facts(),
		lowers:  map[string]bool{},
		roomy:   map[string]bool{},
		below:   math.Inf(1),
	}
	s.cost.Seconds = make(
		[]float64, len(x.terms.Names),
	)
	s.digits = slices.ContainsFunc(p.Ops, func(op symtile.Op) bool {
		return op.Tile.HasDigits()
	})
	s.program.Space = walkable(p)
	s.each = s.program.Space == p.Space && !WalksDigits(p)
	full := make(symtile.Tiling, len(p.Space.Dims))
	for k, d := range p.Space.Dims {
		full[k] = max(1, d.Extent)
	}
	whole := x.plain.count(full)
	s.minWork = min(minOpWork, whole.work/whole.runs)
	return s, nil
}

// tiling prices a tiling, with one thread and with parts of contractions where these are
// offered.
func (s *search) tiling(t symtile.Tiling) pricedTiling {
	plan := kernels.Plan{Tiles: t}
	c := s.count(plan)
	out := pricedTiling{
		tiling:  t,
		seconds: s.seconds(plan, c),
		work:    c.counts.work,
	}
	out.large = 8*c.counts.elements > maxScratch
	out.sensible = c.counts.scratch <= s.spec.mostScratch() &&
		c.counts.work >= c.counts.runs*s.minWork
	if s.strict && out.large {
		out.sensible = out.sensible && s.fits(t)
	}
	single := s.singleSeconds()
	s.facts.set(t, c)
	if s.offered != nil {
		out.variants = s.facts.note(s.offered)
	}
	plan.Knobs = s.facts.variant[:]
	for _, v := range offerSplits(s.facts) {
		s.facts.variant[0] = kernels.Knob{Name: "splitk", Value: v}
		out.seconds = min(out.seconds, s.seconds(plan, c))
	}
	if single > 2*out.seconds {
		return out
	}
	for _, v := range offerThreads(s.facts) {
		s.facts.variant[0] = kernels.Knob{Name: "threads", Value: v}
		out.seconds = min(out.seconds, s.seconds(plan, c))
	}
	return out
}

// singleSeconds is about what the plan that was priced last, which has no threads=, takes on
// one lane.
func (s *search) singleSeconds() float64 {
	overheads := s.cost.Seconds[s.terms.Overlapping:]
	busy := s.cost.Total(&s.terms) - overheads[termIdle] - overheads[termLaunch]
	return busy * float64(max(1, s.device.Lanes))
}

// seconds is the price of a plan whose tiling was counted.
func (s *search) seconds(plan kernels.Plan, c *counter) float64 {
	s.price(plan, c, &s.cost)
	return s.cost.Total(&s.terms)
}

// plans prices the variants of a tiling, at most n of them.
func (s *search) plans(t symtile.Tiling, n int) []pricedPlan {
	c := s.count(kernels.Plan{Tiles: t})
	s.facts.set(t, c)
	variants := s.facts.variants()
	var out []pricedPlan
	for _, plan := range variants[:min(n, len(variants))] {
		out = append(out, pricedPlan{
			plan, s.seconds(plan, c),
		})
	}
	return out
}

// sensible lists priced tilings, the best first; when none is sensible, all that were
// looked at and do not repeat too much work.
func (s *search) sensible() []pricedTiling {
	all := s.found() // a sample of the space may lack the first
	for t := range s.tilings() {
		if s.ended() {
			return nil
		}
		all = append(all, s.tiling(t))
	}
	if s.program.Space.Count() > maxListed {
		all = newGrowth(s, all).grow(maxGrown)
		all = s.bounded(all)
	}
	s.priced = all
	return s.worthwhile(all)
}

// worthwhile are the sensible of some tilings that can be lowered, the best first; when none
// is sensible, all that do not repeat too much work.
func (s *search) worthwhile(all []pricedTiling) []pricedTiling {
	list := slices.Clone(all)
	list = slices.DeleteFunc(list, func(x pricedTiling) bool {
		return !x.sensible
	})
	if len(list) == 0 {
		list = s.fitting(all)
	}
	list = frugal(list)
	slices.SortFunc(list, pricedTiling.compare)
	list = slices.CompactFunc(list, func(x, y pricedTiling) bool {
		return slices.Equal(x.tiling, y.tiling)
	})
	if slices.ContainsFunc(list, func(x pricedTiling) bool {
		return x.large
	}) || len(list) > 0 && !s.runs(list[0].tiling) {
		list = s.onlyLowered(list)
	}
	return list
}

// bounded adds the tilings that a search by lower bounds meets until it knows of no other
// that may be offered, or has spent its share.
func (s *search) bounded(all []pricedTiling) []pricedTiling {
	b := newBounded(s)
	var found []pricedTiling
	found, s.below = b.look(s.dearest(all), maxBounded)
	return append(all, found...)
}

// dearest is the price of the last tiling that would be offered.
func (s *search) dearest(all []pricedTiling) float64 {
	var seconds []float64
	for _, x := range all {
		if x.sensible {
			seconds = append(seconds, x.seconds)
		}
	}
	if len(seconds) < maxTilings {
		return math.Inf(1)
	}
	slices.Sort(seconds)
	return seconds[maxTilings-1]
}

// onlyLowered drops tilings that cannot be lowered or need too much scratch.
func (s *search) onlyLowered(all []pricedTiling) []pricedTiling {
	return slices.DeleteFunc(s.fitting(all), func(x pricedTiling) bool {
		return !s.runs(x.tiling)
	})
}

// fitting are the tilings that do not need too much scratch.
func (s *search) fitting(all []pricedTiling) []pricedTiling {
	return slices.DeleteFunc(slices.Clone(all), func(x pricedTiling) bool {
		return x.large && !s.fits(x.tiling)
	})
}

// frugal drops tilings with more work than the bound.
func frugal(all []pricedTiling) []pricedTiling {
	least := math.Inf(1)
	for _, x := range all {
		least = min(least, x.work)
	}
	return slices.DeleteFunc(all, func(x pricedTiling) bool {
		return x.work > maxRelativeWork*least
	})
}

// offers are the plans of tilings, the first by price first.
func (s *search) offers(all []pricedTiling) []pricedPlan {
	var out []pricedPlan
	kept := thin(all, maxTilings)
	for _, x := range kept {
		out = append(out, s.plans(x.tiling, 1)...)
	}
	whole := 0 // tilings, the first ones, all of whose plans are offered
	for n, x := range all {
		if len(out) >= maxOffered || s.ended() {
			break
		}
		variants := s.plans(x.tiling, math.MaxInt)[1:]
		rest := maxOffered - len(out)
		rest = min(rest, maxPlansPerTiling-1)
		offered := n < maxTilings/2 || len(kept) == len(all)
		if rest < len(variants) {
			variants = variants[:rest]
		} else if offered && whole == n {
			whole++
		}
		out = append(out, variants...)
	}
	slices.SortFunc(out, pricedPlan.compare)
	s.leftOut(out, all[whole:])
	return out
}

// worthProving is how many plans have to be proven to be the cheapest before it is enough to
// know a bound of the others.
const worthProving = 64

// leftOut notes what plans of tilings cost at least that are not all offered. Their price
// says it, unless it leaves out knobs that may make a plan cheaper.
func (s *search) leftOut(offered []pricedPlan, some []pricedTiling) {
	better := false
	for k := range s.offered {
		switch k.Name {
		case "group", "stream", "bf16", "f16":
			better = true
		}
	}
	wished := math.Inf(1)
	if len(offered) > worthProving {
		wished = offered[worthProving].seconds
	}
	for _, x := range some {
		below := x.seconds
		if better {
			below = s.lowerBound(x.tiling, 0)
			if below < wished {
				below = s.cheapest(x.tiling)
			}
		}
		s.below = min(s.below, below)
	}
}

// cheapest is the price of the cheapest plan of a tiling.
func (s *search) cheapest(t symtile.Tiling) float64 {
	least := math.Inf(1)
	for _, y := range s.plans(t, math.MaxInt) {
		least = min(least, y.seconds)
	}
	return least
}

// thin keeps n of the tilings: the first half of them, and as many of the others, evenly
// spread.
func thin(all []pricedTiling, n int) []pricedTiling {
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

// tilings are those that are looked at. Of large spaces few have joined loops, so that of
// each the one is looked at too whose loops walk the tiles of the first.
func (s *search) tilings() iter.Seq[symtile.Tiling] {
	n := maxSampled
	if s.program.Space.Count() <= maxListed {
		n = maxListed
	}
	all := s.program.Space.Sample(n)
	if s.joined == nil {
		return all
	}
	return func(yield func(symtile.Tiling) bool) {
		met := map[string]bool{}
		var text []byte
		for t := range all {
			alike := slices.Clone(t)
			for _, j := range s.joined.joins {
				alike[j[0]] = alike[j[1]]
			}
			text = text[:0]
			for _, size := range alike {
				text = binary.AppendVarint(text, size)
			}
			key := string(text)
			if !slices.Equal(t, alike) && !yield(t) {
				return
			}
			if !met[key] &&
				s.program.Check(alike) == nil &&
				!yield(alike) {
				return
			}
			met[key] = true
		}
	}
}

// digitBlind are the operations, besides the elementwise, that look at neither the
// indices nor the masks of their tiles.
var digitBlind = map[hlo.Opcode]bool{
	hlo.OpParameter: true, hlo.OpConstant: true, hlo.OpReshape: true, hlo.OpSlice: true, hlo.OpDynamicSlice: true,
	hlo.OpCopy: true, hlo.OpOptimizationBarrier: true,
	// these two: at contracted dimensions only
	hlo.OpBroadcast: true, hlo.OpTranspose: true, hlo.OpReverse: true,
	hlo.OpGetTupleElement: true, hlo.OpReduce: true, hlo.OpDot: true,
}

// WalksDigits reports whether this backend can run the tilings of a program in which
// tiles have digits: loads and stores walk them, and operations that are blind to them do
// not see them.
func WalksDigits(p *symtile.Program) bool {
	for _, op := range p.Ops {
		_, _, ok := op.Tile.Boxes()
		if !ok || !walksDigits(p, op) {
			return false
		}
	}
	return true
}

// walksDigits reports whether neither the result nor the operands of an op have digits that
// it would have to look at.
func walksDigits(p *symtile.Program, op symtile.Op) bool {
	switch {
	case digitBlind[op.Code] || op.Code.Elementwise():
		return true
	case op.Code == hlo.OpGather:
		return gatherWalksDigits(p, op)
	}
	return !op.Tile.HasDigits() && !slices.ContainsFunc(op.Args, func(a int) bool {
		return p.Ops[a].Tile.HasDigits()
	})
}

// walkable is the space of the tilings this backend can run. Where no tiling is free of
// digits, which parameters may be read at, it is all of them, of which each is looked at
// by itself (search.runs).
func walkable(p *symtile.Program) *symtile.Space {
	if WalksDigits(p) {
		return p.Space
	}
	if boxed := p.Space.Boxed(); boxed.Count() > 0 {
		return boxed
	}
	return p.Space
}

// Pack is the panels of a parameter that dots alone read, as their right operand, as it
// is or transposed: of floating-point numbers, with one contracted dimension and one of
// columns, a multiple of their width. The columns of a panel are innermost, then come the
// terms, the panels and the batch.
func (b *Backend) Pack(f *hlo.Computation, parameter int) (p packing.Pack, ok bool) {
	x := f.Params[parameter]
	rowMajor := hlo.Shape{
		DType: x.Shape.DType,
		Dims:  x.Shape.Dims,
	}
	if panelWidth(x.Shape.DType) == 0 ||
		!x.Shape.Equal(rowMajor) {
		return p, false
	}
	all := f.Users()
	dims := make([]int64, x.Shape.Rank())
	for d := range dims {
		dims[d] = int64(d)
	}
	read := x
	for len(all[read]) == 1 && read != f.Root {
		user := all[read][0]
		if user.Op != hlo.OpTranspose {
			break
		}
		read = user
		dims = selected(dims, user.Attrs.Dimensions)
	}
	for n, i := range all[read] {
		next, is := panelsFor(i, read, x.Shape, dims)
		same := n == 0 ||
			slices.Equal(next.OuterDimsPerm, p.OuterDimsPerm)
		if !is || !same {
			return p, false
		}
		p = next
	}
	return p, len(all[read]) > 0 && read != f.Root
}

// panelsFor is the pack of an array for a dot whose right operand, read, has its
// dimensions dims; false where i is another operation or reads it otherwise.
func panelsFor(i, read *hlo.Instr, array hlo.Shape, dims []int64) (p packing.Pack, ok bool) {
	a := i.Attrs
	rest := remainingDims(len(dims), a.RHSBatch, a.RHSContract)
	if i.Op != hlo.OpDot ||
		i.Operands[0] == read ||
		len(a.RHSContract) != 1 ||
		len(rest) != 1 {
		return p, false
	}
	width := panelWidth(array.DType)
	columns := dims[rest[0]]
	p = packing.Pack{
		Source:       array.Dims,
		InnerDimsPos: []int{int(columns)},
		InnerTiles:   []int64{width},
	}
	outer := slices.Concat(
		a.RHSBatch, rest, a.RHSContract,
	)
	for _, d := range selected(dims, outer) {
		p.OuterDimsPerm = append(p.OuterDimsPerm, int(d))
	}
	return p, array.Dims[columns]%width == 0
}

// selected is the elements of xs at some indices.
func selected(xs, at []int64) []int64 {
	out := make([]int64, len(at))
	for k, n := range at {
		out[k] = xs[n]
	}
	return out
}
