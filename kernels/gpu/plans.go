package gpu

import (
	"cmp"
	"context"
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

// maxEnumerated bounds the tilings that are estimated; of more, as many are drawn from
// all of the space. Tests lower it.
var maxEnumerated = 1 << 16

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

// Offer has the plans that Plans yields. Its legal plans are those that fit the device, of
// all tilings with all knobs that are tried with each; other schedules, which the cheapest of
// them are offered with besides, are not counted, and where not all tilings are estimated
// none are.
func (b *Backend) Offer(ctx context.Context, p *symtile.Program) (kernels.Offer, error) {
	l, all, err := listed(ctx, p, b.session.Spec(), b.precisions(p))
	if err != nil {
		return kernels.Offer{}, err
	}
	var out kernels.Offer
	for _, c := range all[:min(len(all), maxOffered)] {
		out.Plans = append(out.Plans, c.plan())
	}
	if len(l.seen) < maxEnumerated {
		out.Legal = l.fit
	}
	return out, nil
}

// Default is the plan with the smallest estimate that can be compiled.
func (b *Backend) Default(ctx context.Context, p *symtile.Program) (kernels.Plan, error) {
	return DefaultPlan(ctx, p, b.session.Spec())
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

// cheapest compiles the best candidates until one is accepted.
func cheapest(
	ctx context.Context, p *symtile.Program, s device.Spec, tf32 []int,
) (kernels.Plan, error) {
	all, err := feasibleCandidates(ctx, p, s, tf32)
	if err != nil {
		return kernels.Plan{}, err
	}
	err = fmt.Errorf(
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
	_, all, err := listed(ctx, p, s, tf32)
	return all, err
}

// listed is feasibleCandidates, with what looked at them.
func listed(
	ctx context.Context, p *symtile.Program, s device.Spec, tf32 []int,
) (*lister, []candidate, error) {
	m, err := newEstimate(p, s)
	if err != nil {
		return nil, nil, err
	}
	l := &lister{
		m: m, launches: choices(p, s, tf32),
		limit: math.Inf(1),
		seen:  map[string]bool{},
	}
	for t := range p.Space.Sample(maxEnumerated) {
		if l.look(t); ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
	}
	if m.online != nil {
		m.online.tilings(l.lookOnce)
	}
	// What was drawn from a larger space is improved one size at a time.
	if len(l.seen) >= maxEnumerated {
		for range refinements {
			if l.refine(); ctx.Err() != nil {
				return nil, nil, context.Cause(ctx)
			}
		}
	}
	all := cheapestOffered(l.all)
	return l, m.ranked(cheapestOffered(m.scheduled(all))), nil
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
	// Seen are the tilings that were looked at.
	seen map[string]bool
}

// look adds the candidates of a tiling that fit.
func (l *lister) look(t symtile.Tiling) {
	l.seen[fmt.Sprint(t)] = true
	m := l.m
	programs := m.set(t)
	if programs > math.MaxInt32 || !m.inOrder() {
		return
	}
	shares := m.splitCounts(programs)
	for _, k := range l.launches {
		k.group = m.group(t)
		for _, k.splitk = range shares {
			l.add(m.candidate(t, programs, k))
			l.addPromoted(t, programs, k)
			if k.splitk > 1 && m.spec.DependentLaunches() {
				dependent := k
				dependent.pdl = 1
				l.add(m.candidate(t, programs, dependent))
			}
		}
		if k.splitk = 1; m.online != nil && m.online.applies() {
			k.online = 1
			l.add(m.candidate(t, programs, k))
			if m.online.grouped(k) {
				k.online, k.producer = byWarpgroups, device.WarpgroupThreads/device.WarpThreads
				l.add(m.candidate(t, programs, k))
			}
		}
	}
	// Candidates that cannot be offered any more are dropped as soon as there are
	// many.
	if len(l.all) > 4*maxOffered {
		l.all = cheapestOffered(l.all)
		l.limit = l.all[len(l.all)-1].seconds
	}
}

// addPromoted adds the candidate with a producer that gives registers away where sums are
// promoted whatever the knobs say: without, few tilings have registers for both.
func (l *lister) addPromoted(
	t symtile.Tiling, programs float64, k knobs,
) {
	for n, s := range l.m.scaled {
		if s != nil && s.varies &&
			l.m.byGroups(n, k) {
			l.all = l.m.withProducer(
				l.all, candidate{tiling: t, knobs: k}, programs,
			)
			return
		}
	}
}

// lookOnce looks at a tiling that was not looked at.
func (l *lister) lookOnce(t symtile.Tiling) {
	if !l.seen[fmt.Sprint(t)] {
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

// Refine is done so often, on as many of the best tilings.
const refinements, refined = 3, 24

// refine looks at the tilings that differ from the best ones in one size.
func (l *lister) refine() {
	p := l.m.p
	l.all = cheapestOffered(l.all)
	var best []symtile.Tiling
	for _, c := range l.all {
		known := func(t symtile.Tiling) bool {
			return slices.Equal(t, c.tiling)
		}
		if len(best) < refined && !slices.ContainsFunc(best, known) {
			best = append(best, c.tiling)
		}
	}
	for _, t := range best {
		for d := range t {
			for _, size := range p.Space.Sizes(d) {
				next := slices.Clone(t)
				next[d] = size
				if !l.seen[fmt.Sprint(next)] && p.Check(next) == nil {
					l.look(next)
				}
			}
		}
	}
}

// cheapestOffered sorts candidates and keeps as many as are offered.
func cheapestOffered(all []candidate) []candidate {
	slices.SortStableFunc(all, func(x, y candidate) int {
		return cmp.Compare(x.seconds, y.seconds)
	})
	return all[:min(len(all), maxOffered)]
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
			(onTensorCores(p, n, s, k) || groupable(p, n, s, k)) {
			return true
		}
	}
	return false
}
