package gpu

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
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

// Plans are chosen by the estimate: all tilings, up to a limit, with the launch
// choices that knobs offer; the cheapest of them with other schedules; and, of
// candidates whose estimates tie, those that use the fewest resources first.

// maxEnumerated bounds the tilings of a space that are all estimated; larger spaces are
// searched (tilingSearch). Tests change it.
var maxEnumerated int64 = 512

// maxOffered bounds the plans that are offered, the cheapest by the estimate.
const maxOffered = 4096

// Plans yields the plans that fit the device by the estimate, the cheapest first.
func (b *Backend) Plans(ctx context.Context, p *symtile.Program) iter.Seq[kernels.Plan] {
	return func(yield func(kernels.Plan) bool) {
		// Default says why there are none
		offer, _ := b.Offer(ctx, p)
		for _, plan := range offer.Plans {
			if !yield(plan) {
				return
			}
		}
	}
}

// Offer has the plans that Plans yields. Its legal plans are those that fit the device, of all
// tilings with all knobs that are tried with each, and with the other schedules that the
// cheapest of them are offered with besides. Where not all tilings are looked at, or others
// have such schedules, too, there are more.
func (b *Backend) Offer(ctx context.Context, p *symtile.Program) (kernels.Offer, error) {
	x, err := b.listing(ctx, p, b.precisions(p))
	if err != nil {
		return kernels.Offer{}, err
	}
	out := kernels.Offer{Legal: x.legal, MoreLegal: x.more}
	for _, c := range x.all[:min(len(x.all), maxOffered)] {
		out.Plans = append(out.Plans, c.plan())
	}
	return out, nil
}

// Default is the plan with the smallest estimate that can be compiled.
func (b *Backend) Default(ctx context.Context, p *symtile.Program) (kernels.Plan, error) {
	x, err := b.listing(ctx, p, noTF32)
	if err != nil {
		return kernels.Plan{}, err
	}
	return firstCompiled(ctx, p, b.session.Spec(), x.all)
}

// A listing is the candidates of a program, the cheapest first, and how many plans are known to
// be legal; more says whether there may be others. That is so where not all tilings were looked
// at, and where other schedules of the cheapest candidates fit but those of others were not
// tried.
type listing struct {
	all   []candidate
	legal int64
	more  bool
}

// A lastListing is the listing that was asked for last: whoever wants the default of a program
// mostly wants its other plans, too.
type lastListing struct {
	program *symtile.Program
	tf32    []int
	listing listing
}

// listing lists the candidates of a program.
func (b *Backend) listing(ctx context.Context, p *symtile.Program, tf32 []int) (listing, error) {
	b.mu.Lock()
	last := b.last
	b.mu.Unlock()
	if last.program == p &&
		slices.Equal(last.tf32, tf32) {
		return last.listing, nil
	}
	x, err := listed(ctx, p, b.session.Spec(), tf32)
	if err == nil {
		b.mu.Lock()
		b.last = lastListing{p, tf32, x}
		b.mu.Unlock()
	}
	return x, err
}

// DefaultPlan is the default for a device that need not be present. It never rounds to
// tf32.
func DefaultPlan(ctx context.Context, p *symtile.Program, s device.Spec) (kernels.Plan, error) {
	return cheapest(ctx, p, s, noTF32)
}

// TF32Plan is DefaultPlan where products of f32 may round their operands to tf32.
func TF32Plan(ctx context.Context, p *symtile.Program, s device.Spec) (kernels.Plan, error) {
	return cheapest(ctx, p, s, roundings(p))
}

// maxCompiled bounds the cheapest candidates of which one has to compile, before as many
// of the others, evenly apart, are tried: what one plan is rejected for others often are.
const maxCompiled = 64

// attempts are the candidates that are compiled until one is accepted, in this order.
func attempts(all []candidate) []candidate {
	n := min(len(all), maxCompiled)
	tried, rest := slices.Clone(all[:n]), all[n:]
	for k := range min(len(rest), maxCompiled) {
		tried = append(tried, rest[k*len(rest)/min(len(rest), maxCompiled)])
	}
	return tried
}

// cheapest is the cheapest plan that can be compiled.
func cheapest(
	ctx context.Context, p *symtile.Program, s device.Spec, tf32 []int,
) (kernels.Plan, error) {
	x, err := listed(ctx, p, s, tf32)
	if err != nil {
		return kernels.Plan{}, err
	}
	return firstCompiled(ctx, p, s, x.all)
}

// firstCompiled compiles the best candidates until one is accepted.
func firstCompiled(
	ctx context.Context, p *symtile.Program, s device.Spec, all []candidate,
) (kernels.Plan, error) {
	err := fmt.Errorf(
		"%s has no plan that fits %s", p.Fusion.Name, s.Target,
	)
	for _, c := range attempts(all) {
		if ctx.Err() != nil {
			return kernels.Plan{}, context.Cause(ctx)
		}
		if _, err = compile(p, c.plan(), s); err == nil {
			return c.plan(), nil
		}
		var no *kernels.Uncomputed
		if errors.As(err, &no) {
			break
		}
	}
	return kernels.Plan{}, err
}

// noTF32 is the values of the knob tf32 that need no permission.
var noTF32 = []int{0}

// precisions are the values of tf32 that are allowed and worth trying.
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
		return []int{0, 1, cutOff}
	}
	return noTF32
}

// takesTF32 reports whether an op is a product of f32.
func takesTF32(p *symtile.Program, op symtile.Op) bool {
	return op.Code == hlo.OpDot &&
		p.Ops[op.Args[0]].Instr.Shape.DType == hlo.F32 &&
		p.Ops[op.Args[1]].Instr.Shape.DType == hlo.F32
}

// feasibleCandidates lists the candidates that fit, the cheapest first.
func feasibleCandidates(
	ctx context.Context, p *symtile.Program, s device.Spec, tf32 []int,
) ([]candidate, error) {
	x, err := listed(ctx, p, s, tf32)
	return x.all, err
}

// listed is feasibleCandidates, with the number of legal plans.
func listed(
	ctx context.Context, p *symtile.Program, s device.Spec, tf32 []int,
) (listing, error) {
	m, err := newEstimate(p, s)
	if err != nil {
		return listing{}, err
	}
	l := &lister{
		m: m, launches: choices(p, s, tf32),
		limit: math.Inf(1),
		seen:  map[string]bool{},
	}
	some := p.Space.Count() > maxEnumerated
	if some {
		err = newTilingSearch(l).run(ctx)
	} else {
		err = l.enumerate(ctx)
	}
	if err != nil {
		return listing{}, err
	}
	found := cheapestOffered(l.all)
	all := m.scheduled(found)
	schedules := int64(len(all) - len(found))
	return listing{
		all:   m.ranked(cheapestOffered(all)),
		legal: l.fit + schedules,
		more:  some || schedules > 0 && l.fit > rescheduled,
	}, nil
}

// A lister collects the candidates of tilings.
type lister struct {
	m        *estimate
	launches []knobs
	all      []candidate
	// Limit is the estimate of the most expensive candidate that can still be offered.
	limit float64
	// Fit is the number of candidates that fit.
	fit int64
	// Seen are the tilings that were looked at, by keyOf.
	seen map[string]bool
}

// enumerate looks at all tilings.
func (l *lister) enumerate(ctx context.Context) error {
	for t := range l.m.p.Space.Tilings() {
		if l.look(t); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if l.m.online != nil {
		l.m.online.tilings(l.lookOnce)
	}
	return nil
}

// keyOf is a tiling as the key of a map.
func keyOf(t symtile.Tiling) string {
	key := make([]byte, 0, 4*len(t))
	for _, size := range t {
		key = binary.AppendVarint(key, size)
	}
	return string(key)
}

// look adds the candidates of a tiling that fit.
func (l *lister) look(t symtile.Tiling) {
	l.seen[keyOf(t)] = true
	l.try(t, l.launches, false, l.add)
	// Candidates that cannot be offered any more are dropped as soon as there are
	// many.
	if len(l.all) > 4*maxOffered {
		l.all = cheapestOffered(l.all)
		l.limit = l.all[len(l.all)-1].seconds
	}
}

// try estimates a tiling with each of some knobs, and with what these are tried with besides:
// loops shared among blocks, of which few are the fewest and the most, and joined ones.
func (l *lister) try(t symtile.Tiling, launches []knobs, few bool, add func(candidate)) {
	m := l.m
	programs := m.set(t)
	if programs > math.MaxInt32 || !m.inOrder() {
		return
	}
	shares := m.splitCounts(programs)
	if few && len(shares) > 2 {
		shares = []int{shares[0], shares[len(shares)-1]}
	}
	for _, k := range launches {
		k.group = m.group(t)
		for _, k.splitk = range shares {
			add(m.candidate(t, programs, k))
			l.addPromoted(t, programs, k, add)
			if k.splitk > 1 && !few &&
				m.spec.DependentLaunches() {
				dependent := k
				dependent.pdl = 1
				add(m.candidate(t, programs, dependent))
			}
		}
		if k.splitk = 1; m.online != nil && m.online.applies() {
			k.online = 1
			add(m.candidate(t, programs, k))
			if m.online.grouped(k) {
				k.online, k.producer = byWarpgroups, device.WarpgroupThreads/device.WarpThreads
				add(m.candidate(t, programs, k))
			}
		}
	}
}

// addPromoted adds the candidate with a producer that gives registers away where sums are
// promoted whatever the knobs say: without, few tilings have registers for both.
func (l *lister) addPromoted(
	t symtile.Tiling, programs float64, k knobs, add func(candidate),
) {
	for n, s := range l.m.scaled {
		if s == nil || !s.varies ||
			!l.m.byGroups(n, k) {
			continue
		}
		one := candidate{tiling: t, knobs: k}
		for _, x := range l.m.withProducer(nil, one, programs) {
			add(x)
		}
		return
	}
}

// lookOnce looks at a tiling that was not looked at.
func (l *lister) lookOnce(t symtile.Tiling) {
	if !l.seen[keyOf(t)] {
		l.look(t)
	}
}

// add adds a candidate that fits and can still be offered.
func (l *lister) add(c candidate) {
	if !l.m.fits(c) {
		return
	}
	if l.fit++; c.seconds < l.limit {
		l.all = append(l.all, c)
	}
}

// cheapestOffered are as many candidates as are offered, the cheapest first.
func cheapestOffered(all []candidate) []candidate {
	return firstSorted(all, maxOffered, func(x, y *candidate) int {
		return cmp.Compare(x.seconds, y.seconds)
	})
}

// firstSorted are the first n of candidates in an order; those that are equal stay in the one
// that they have. Candidates are large, so that their positions are sorted.
func firstSorted(all []candidate, n int, compare func(x, y *candidate) int) []candidate {
	at := make([]int32, len(all))
	for k := range at {
		at[k] = int32(k)
	}
	slices.SortFunc(at, func(a, b int32) int {
		return cmp.Or(compare(&all[a], &all[b]), cmp.Compare(a, b))
	})
	out := make([]candidate, 0, min(n, len(all)))
	for _, k := range at[:min(n, len(all))] {
		out = append(out, all[k])
	}
	return out
}

// tie is the share by which the estimates of plans that are equally good may differ.
// It is smaller for products, because stages and schedules gain little by the estimate
// and more in fact.
const tie, productTie = 0.01, 0.001

// ranked sorts candidates that tie with the cheapest of them by the resources that
// they use, the fewest first.
func (m *estimate) ranked(all []candidate) []candidate {
	near := 1 + tie
	if m.dots {
		near = 1 + productTie
	}
	for remaining := all; len(remaining) > 0; {
		n := 1
		for n < len(remaining) &&
			remaining[n].seconds <= remaining[0].seconds*near {
			n++
		}
		slices.SortStableFunc(remaining[:n], candidate.compareResources)
		remaining = remaining[n:]
	}
	return all
}

// compareResources compares the resources of candidates: bytes transferred; for products,
// bytes in flight, the most first, since latency under load is more than the estimate's; threads,
// counted as more where a thread has so many elements that it needs registers for
// them; sub-partitions of an SM without a warp; shared memory of a block; elements of
// a thread.
func (c candidate) compareResources(d candidate) int {
	return cmp.Or(
		cmp.Compare(roundedLog(c.transferred), roundedLog(d.transferred)),
		cmp.Compare(roundedLog(d.inFlight), roundedLog(c.inFlight)),
		cmp.Compare(c.effectiveThreads(), d.effectiveThreads()),
		cmp.Compare(c.idleQuarters(), d.idleQuarters()),
		cmp.Compare(c.shared, d.shared),
		cmp.Compare(c.slots, d.slots),
	)
}

// effectiveThreads is the threads of all blocks, weighted by the elements of each.
func (c candidate) effectiveThreads() float64 {
	return roundedLog(c.threads * max(1, c.slots/coveringElements))
}

// roundedLog is a logarithm in steps of about a tenth.
func roundedLog(x float64) float64 { return math.Round(7 * math.Log2(x)) }

// coveringElements is the elements of a thread that outweigh the computation of its
// addresses: two accesses of 16 bytes of f32.
const coveringElements = 8

// idleQuarters is the sub-partitions of an SM without a warp, for blocks with elements
// for more.
func (c candidate) idleQuarters() int {
	return max(0, device.SubPartitions-max(1, c.knobs.warps)) *
		min(1, int(max(c.slots, c.partials))/2)
}

// group is the rows of tiles of a product that are traversed together: as many as make
// the blocks that run at the same time roughly square.
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
	for g > 1 && (g > rows || g*g > rows*cols) {
		g /= 2
	}
	if !dots || cols < 2 {
		return 1
	}
	return int(g)
}

// choices lists the knobs that are tried with every tiling: all combinations of the
// values that the table offers.
func choices(p *symtile.Program, s device.Spec, tf32 []int) []knobs {
	f := launchFacts{
		spec: s,
		dots: slices.ContainsFunc(p.Ops, func(op symtile.Op) bool {
			return op.Code == hlo.OpDot
		}),
	}
	var all []knobs
	for _, x := range tf32 {
		k := defaultKnobs
		k.tf32 = x
		f.tensor = hasTensor(p, s, k)
		for _, warps := range offerWarps(f) {
			for _, stages := range offerStages(f) {
				for _, epilogue := range offerEpilogues(f) {
					k.warps = int(warps)
					k.stages = int(stages)
					k.epilogue = int(epilogue)
					all = append(all, k)
				}
			}
		}
	}
	return all
}

// hasTensor reports whether tensor cores can compute a product of the program.
func hasTensor(p *symtile.Program, s device.Spec, k knobs) bool {
	for n, op := range p.Ops {
		if op.Code == hlo.OpDot &&
			(onTensorCores(p, n, s, k) ||
				groupable(p, n, s, k)) {
			return true
		}
	}
	return false
}

// A tilingSearch looks at a part of the tilings of a large space. Tilings are sketched, that
// is estimated with few of the knobs: some of all of the space, and then the neighbours of
// the best that are known. The cheapest sketches are looked at with all knobs. The search ends
// where the best plans have no neighbours that were not sketched. Nothing is proven;
// TestSearchFindsTheCheapest compares it with a list of all.
type tilingSearch struct {
	*lister
	few      []knobs // of the launches, for sketches
	others   []knobs // what sketches try where none of few fits
	sketched map[string]bool
	open     []sketch // tilings that were sketched and not looked at
	best     float64  // the cheapest sketch
	place    []int    // of a tiling, in the sizes of each dimension
}

// A sketch is a tiling with the estimate of its cheapest plan of a few. These few are plans that
// the tiling is looked at with, too, so that the ones that fit count as legal where it is not.
type sketch struct {
	tiling  symtile.Tiling
	seconds float64
	fit     int64 // plans that fit
}

// Parameters of a search.
const (
	sketchedTilings = 1024 // of all of the space
	firstLooks      = 96   // of the cheapest of these, and more until there are
	firstPlans      = 2048 // plans
	roundLooks      = 48   // at most in each round of neighbours
	maxRounds       = 24
	leaders         = 8 // tilings of the best plans whose neighbours are sketched
	sketchSlack     = 2 // times the cheapest sketch: neighbours that are dearer are not looked at
)

// newTilingSearch begins a search.
func newTilingSearch(l *lister) *tilingSearch {
	s := &tilingSearch{
		lister:   l,
		sketched: map[string]bool{},
		best:     math.Inf(1),
		place:    make([]int, len(l.m.p.Space.Dims)),
	}
	s.few, s.others = fewOf(l.launches)
	return s
}

// fewOf are the launches that sketches try: of the depths of rings the smallest and the second
// largest, one way of storing, and every other number of warps; and, where none of these fits,
// the other numbers of warps.
func fewOf(launches []knobs) (few, others []knobs) {
	var stages, warps []int
	epilogue := 0
	for _, k := range launches {
		if !slices.Contains(stages, k.stages) {
			stages = append(stages, k.stages)
		}
		if !slices.Contains(warps, k.warps) {
			warps = append(warps, k.warps)
		}
		epilogue = max(epilogue, k.epilogue)
	}
	deep := stages[max(0, len(stages)-2)]
	for _, k := range launches {
		odd := slices.Index(warps, k.warps)%2 == 1
		switch {
		case k.stages != deep && k.stages != stages[0]:
		case odd && k.epilogue == 0:
			others = append(others, k)
		case !odd && k.epilogue == epilogue:
			few = append(few, k)
		}
	}
	return few, others
}

// run searches. The error is that of ctx.
func (s *tilingSearch) run(ctx context.Context) error {
	for t := range s.m.p.Space.Sample(sketchedTilings) {
		if s.sketch(t); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if s.m.online != nil {
		s.m.online.tilings(s.sketch)
	}
	for s.lookAtCheapest(firstLooks, math.Inf(1)) &&
		len(s.all) < firstPlans {
	}
	for range maxRounds {
		fresh := s.neighbours()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !fresh {
			break
		}
		s.lookAtCheapest(roundLooks, sketchSlack*s.best)
	}
	for _, x := range s.open {
		s.fit += x.fit
	}
	s.inOrder()
	return nil
}

// inOrder sorts the candidates as a list of all tilings would have them, so that of plans that
// are alike in everything the same ones come first.
func (s *tilingSearch) inOrder() {
	s.all = firstSorted(s.all, len(s.all), func(a, b *candidate) int {
		return slices.Compare(a.tiling, b.tiling)
	})
}

// sketch estimates a tiling that was not sketched.
func (s *tilingSearch) sketch(t symtile.Tiling) {
	key := keyOf(t)
	if s.sketched[key] {
		return
	}
	s.sketched[key] = true
	x := sketch{tiling: t, seconds: math.Inf(1)}
	add := func(c candidate) {
		if s.m.fits(c) {
			x.fit++
			x.seconds = min(x.seconds, c.seconds)
		}
	}
	s.try(t, s.few, true, add)
	if x.fit == 0 {
		s.try(t, s.others, true, add)
	}
	if x.fit > 0 {
		s.open = append(s.open, x)
		s.best = min(s.best, x.seconds)
	}
}

// lookAtCheapest looks at the cheapest sketches that are open, at most n that cost no more
// than a limit. It reports whether there were any.
func (s *tilingSearch) lookAtCheapest(n int, limit float64) bool {
	slices.SortStableFunc(s.open, func(a, b sketch) int {
		return cmp.Compare(a.seconds, b.seconds)
	})
	k := 0
	for k < min(n, len(s.open)) &&
		s.open[k].seconds <= limit {
		s.look(s.open[k].tiling)
		k++
	}
	s.open = s.open[k:]
	return k > 0
}

// neighbours sketches the tilings next to the best ones, and reports whether there were any.
func (s *tilingSearch) neighbours() bool {
	before := len(s.sketched)
	for _, t := range s.leaders() {
		for d := range t {
			s.along(t, d)
		}
	}
	return len(s.sketched) > before
}

// along sketches the tilings with another size of one dimension, or with that and the next
// size of another one in the opposite direction.
func (s *tilingSearch) along(t symtile.Tiling, d int) {
	for _, step := range []int{-2, -1, 1, 2} {
		next := s.moved(t, d, step)
		if next == nil {
			continue
		}
		if s.m.p.Check(next) == nil {
			s.sketch(next)
		}
		for e := range t {
			if e == d || step != 1 {
				continue
			}
			if both := s.moved(next, e, -1); both != nil &&
				s.m.p.Check(both) == nil {
				s.sketch(both)
			}
		}
	}
}

// moved is a tiling with a size of one dimension that is some steps further; nil where there
// is none.
func (s *tilingSearch) moved(t symtile.Tiling, d, step int) symtile.Tiling {
	sizes := s.m.p.Space.Sizes(d)
	at := slices.Index(sizes, t[d])
	if at < 0 || at+step < 0 ||
		at+step >= len(sizes) {
		return nil
	}
	next := slices.Clone(t)
	next[d] = sizes[at+step]
	return next
}

// leaders are the tilings of the cheapest plans, and of those that come first among plans that
// tie with them.
func (s *tilingSearch) leaders() (all []symtile.Tiling) {
	s.all = cheapestOffered(s.all)
	add := func(from []candidate, n int) {
		for _, c := range from {
			if len(all) >= n {
				return
			}
			known := func(t symtile.Tiling) bool { return slices.Equal(t, c.tiling) }
			if !slices.ContainsFunc(all, known) {
				all = append(all, c.tiling)
			}
		}
	}
	add(s.all, leaders)
	near := 0
	for near < len(s.all) &&
		s.all[near].seconds <= s.all[0].seconds*(1+tie) {
		near++
	}
	first := s.m.ranked(slices.Clone(s.all[:near]))
	add(first, len(all)+leaders)
	return all
}
