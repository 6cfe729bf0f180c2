package tuner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/search"
)

// Proposals say which plan of a fusion is verified and timed next: the default plan, then
// the cheapest ones, up to half of the candidates, and from there on what a search
// proposes that has learned from the times of the ones before. The price cannot keep
// a knob or a direction of tile sizes from being tried (search.Guided). Where nobody said
// how many there are, more of the cheapest come then, and the neighbourhood of the fastest.
type proposals struct {
	plans  []cost.Ranked  // the points of the space
	points map[string]int // by the text of their plans
	search *search.Guided
	size   int // candidates, with the default plan
	// What comes after these; nil where there are no more.
	beyond *neighbourhood
}

// mostCandidates bounds the plans that are tried of a fusion where nobody said how many.
const mostCandidates = 64

// priceShare is the share of the candidates that the price chooses.
const priceShare = 0.5

// cheapestTried is how many of the cheapest plans are tried of a fusion where nobody said how
// many and there is time. A search proposes by what it has measured, and noise makes
// two tunings try other plans; these are the same in both.
const cheapestTried = 24

// newProposals makes a space of ranked plans, for so many candidates. The default plan is
// one of its points even if the backend does not offer it.
func newProposals(
	candidates int, seed int64, standard cost.Ranked, ranked []cost.Ranked,
) (*proposals, error) {
	p := &proposals{points: map[string]int{}}
	for _, r := range append([]cost.Ranked{standard}, ranked...) {
		text := r.Plan.String()
		if _, twice := p.points[text]; !twice {
			p.points[text] = len(p.plans)
			p.plans = append(p.plans, r)
		}
	}
	p.size = min(candidates, len(p.plans))
	space, err := spaceOf(p.plans)
	if err != nil {
		return nil, err
	}
	settings := search.Settings{
		Seed:        uint64(seed),
		Evaluations: p.size,
	}
	settings.Doubt = doubtOf(p.plans)
	for k, r := range p.plans {
		settings.Prior = append(settings.Prior, r.Seconds)
		if k <= int(priceShare*float64(p.size)) {
			settings.First = append(settings.First, k) // the default, and the cheapest
		}
	}
	p.search = search.NewGuided(space, settings)
	return p, nil
}

// skip makes the search take directions that are known, by the names of dimensions and knobs,
// only where it expects a gain.
func (p *proposals) skip(probed map[string][2]bool, dims []string) {
	for i, parameter := range p.search.Parameters() {
		name := parameter.Name
		if i < len(dims) {
			name = dims[i]
		}
		p.search.Probed(i, probed[name])
	}
}

// doubted is how many of the cheapest plans have a doubt of their own. The others have
// the largest of these: to compute each takes the square of the samples.
const doubted = 1024

// doubtOf is how unsure the price of each plan is; nil where that is not known.
func doubtOf(plans []cost.Ranked) []float64 {
	out := make([]float64, len(plans))
	most := 0.0
	for k := range plans {
		if k < doubted {
			out[k] = plans[k].Doubt()
			most = max(most, out[k])
		} else {
			out[k] = most
		}
	}
	if most == 0 {
		return nil
	}
	return out
}

// next are, one at a time, what the search proposes, then the cheapest, and then the
// neighbourhood; false when there are enough.
func (p *proposals) next(tried int) (cost.Ranked, bool) {
	if tried < p.size {
		named := p.search.Next(1)
		if len(named) == 0 {
			return cost.Ranked{}, false
		}
		return p.plans[named[0]], true
	}
	if p.beyond == nil || tried >= mostCandidates {
		return cost.Ranked{}, false
	}
	if cheap, found := p.cheap(); found {
		return cheap, true
	}
	return p.beyond.next()
}

// cheap is the cheapest plan that was not tried, of cheapestTried.
func (p *proposals) cheap() (cost.Ranked, bool) {
	for _, r := range p.plans[:min(cheapestTried, len(p.plans))] {
		if p.beyond.tried[r.Plan.String()] == nil {
			return r, true
		}
	}
	return cost.Ranked{}, false
}

// observe tells the search what the first sample of a plan took. A plan that failed, and
// one that was never timed, has no time.
func (p *proposals) observe(t *cache.Trial) {
	if p.beyond != nil {
		p.beyond.observe(t)
	}
	k, legal := p.points[t.Plan]
	if !legal {
		return
	}
	seconds := math.Inf(1)
	if t.Failure == "" && len(t.Samples) > 0 {
		seconds = t.Median()
	}
	p.search.Observe(
		search.Trial{Point: k, Seconds: seconds},
	)
}

// known are the plans, beside the default one, that an interrupted race has tried and
// that are legal today, in its order: as many as there may be candidates, the fastest
// of them where those are fewer.
func (p *proposals) known(earlier []cache.Trial) []cost.Ranked {
	var tried []cache.Trial
	legal := map[string]cost.Ranked{}
	for _, t := range earlier {
		if r, ok := p.ranked(t.Plan); ok {
			tried = append(tried, t)
			legal[t.Plan] = r
		}
	}
	fastest := slices.Clone(tried)
	slices.SortStableFunc(fastest, func(a, b cache.Trial) int {
		return cmp.Compare(secondsOf(&a), secondsOf(&b))
	})
	most := p.size
	if p.beyond != nil {
		most = mostCandidates
	}
	fastest = fastest[:min(len(fastest), max(0, most-1))]
	var out []cost.Ranked
	for _, t := range tried {
		if slices.ContainsFunc(fastest, func(f cache.Trial) bool { return f.Plan == t.Plan }) {
			out = append(out, legal[t.Plan])
		}
	}
	return out
}

// ranked is a plan beside the default one by its text; false where it is not legal.
func (p *proposals) ranked(text string) (cost.Ranked, bool) {
	if k, offered := p.points[text]; offered {
		return p.plans[k], k > 0
	}
	if p.beyond == nil {
		return cost.Ranked{}, false
	}
	return p.beyond.ranked(text)
}

// secondsOf is the median of a trial, and no time of one that failed or was not timed.
func secondsOf(t *cache.Trial) float64 {
	if m := t.Median(); m > 0 && t.Failure == "" {
		return m
	}
	return math.Inf(1)
}

// spaceOf is the space of plans: a parameter for each tile size, and one for each knob,
// whose absence is a value before all others.
func spaceOf(plans []cost.Ranked) (*search.Space, error) {
	knobs := knobsOf(plans)
	tiles := len(plans[0].Plan.Tiles)
	for _, r := range plans {
		if len(r.Plan.Tiles) != tiles {
			return nil, fmt.Errorf(
				"plans of %d and of %d tile sizes",
				tiles,
				len(r.Plan.Tiles),
			)
		}
	}
	columns := columnsOf(plans, knobs)
	var parameters []search.Parameter
	for i := range columns {
		name := fmt.Sprintf("s%d", i)
		if i >= tiles {
			name = knobs[i-tiles]
		}
		parameters = append(parameters, parameterOf(name, columns[i]))
	}
	var points [][]int
	for _, r := range plans {
		x := make([]int, len(columns))
		for i, v := range coordinates(r.Plan, knobs) {
			x[i], _ = slices.BinarySearch(
				columns[i],
				v,
			)
		}
		points = append(points, x)
	}
	return search.NewSpace(parameters, points)
}

// knobsOf are the names of the knobs that plans have, in their order.
func knobsOf(plans []cost.Ranked) (names []string) {
	for _, r := range plans {
		for _, k := range r.Plan.Knobs {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// columnsOf are the values of each coordinate of plans with as many tile sizes, ascending.
func columnsOf(plans []cost.Ranked, knobs []string) [][]int64 {
	columns := make([][]int64, len(plans[0].Plan.Tiles)+len(knobs))
	for _, r := range plans {
		for i, v := range coordinates(r.Plan, knobs) {
			columns[i] = append(columns[i], v)
		}
	}
	for i := range columns {
		slices.Sort(columns[i])
		columns[i] = slices.Compact(columns[i])
	}
	return columns
}

// absent is the coordinate of a knob that a plan does not have.
const absent = math.MinInt64

// coordinates are the tile sizes of a plan and its knobs.
func coordinates(p kernels.Plan, knobs []string) []int64 {
	out := slices.Clone([]int64(p.Tiles))
	for _, name := range knobs {
		out = append(out, p.Knob(name, absent))
	}
	return out
}

// parameterOf is the parameter with some values, which are sorted. It has numbers where
// it is never absent.
func parameterOf(name string, values []int64) search.Parameter {
	p := search.Parameter{Name: name}
	for _, v := range values {
		p.Values = append(p.Values, fmt.Sprint(v))
		p.Numbers = append(p.Numbers, float64(v))
	}
	if len(values) > 0 && values[0] == absent {
		p.Numbers = nil
	}
	return p
}
