package tuner

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
)

// A neighbourhood proposes what the search has left out: every plan next to the fastest
// one, whatever the price says of it and whether it is offered or not, and when all of them
// were tried those around another plan that has little in common with any.
type neighbourhood struct {
	offered []cost.Ranked
	// Of each tile size, and then of each knob, the values of offered plans, ascending.
	values [][]int64
	knobs  []string
	tiles  int
	tried  map[string][]int64 // coordinates, by the text of a plan
	// The plan that the fastest time since the last restart is of.
	from    kernels.Plan
	seconds float64
	// rank prices a plan; false says that it is not legal.
	rank func(kernels.Plan) (cost.Ranked, bool)
}

// newNeighbourhood has the values of plans, of which there is at least one.
func newNeighbourhood(offered []cost.Ranked, rank func(kernels.Plan) (cost.Ranked, bool)) *neighbourhood {
	n := &neighbourhood{
		offered: offered,
		knobs:   knobsOf(offered),
		tiles:   len(offered[0].Plan.Tiles),
		tried:   map[string][]int64{},
		seconds: math.Inf(1),
		rank:    rank,
	}
	n.values = columnsOf(offered, n.knobs)
	return n
}

// observe tells what was measured of a plan.
func (n *neighbourhood) observe(t *cache.Trial) {
	plan, err := kernels.ParsePlan(t.Plan)
	if err != nil || len(plan.Tiles) != n.tiles {
		return // it was stored by another version
	}
	n.tried[t.Plan] = coordinates(plan, n.knobs)
	if s := secondsOf(t); s < n.seconds {
		n.from, n.seconds = plan, s
	}
}

// next is a plan that was not tried; false where there is none.
func (n *neighbourhood) next() (cost.Ranked, bool) {
	if math.IsInf(n.seconds, 1) {
		return n.restart()
	}
	for _, ring := range [][]kernels.Plan{n.singles(), n.pairs(), n.groups()} {
		if found, ok := n.cheapest(ring); ok {
			return found, true
		}
	}
	return n.restart()
}

// ranked is a plan by its text; false where it is not legal.
func (n *neighbourhood) ranked(text string) (cost.Ranked, bool) {
	plan, err := kernels.ParsePlan(text)
	if err != nil || len(plan.Tiles) != n.tiles {
		return cost.Ranked{}, false
	}
	return n.rank(plan)
}

// cheapest is the first by price of some plans that are legal and were not tried.
func (n *neighbourhood) cheapest(ring []kernels.Plan) (best cost.Ranked, found bool) {
	for _, plan := range ring {
		if n.tried[plan.String()] != nil {
			continue
		}
		r, legal := n.rank(plan)
		if legal && (!found || r.Seconds < best.Seconds) {
			best, found = r, true
		}
	}
	return best, found
}

// singles differ in one knob, or in one tile size by one step.
func (n *neighbourhood) singles() (all []kernels.Plan) {
	at := coordinates(n.from, n.knobs)
	for k := range at {
		values := n.values[k]
		if k < n.tiles {
			values = n.steps(k, at[k])
		}
		for _, v := range values {
			if v != at[k] {
				all = append(all, n.with(at, map[int]int64{k: v}))
			}
		}
	}
	return all
}

// pairs differ in two tile sizes by one step each.
func (n *neighbourhood) pairs() (all []kernels.Plan) {
	at := coordinates(n.from, n.knobs)
	for k := range n.tiles {
		for l := range k {
			for _, v := range n.steps(k, at[k]) {
				for _, w := range n.steps(l, at[l]) {
					all = append(all, n.with(at, map[int]int64{k: v, l: w}))
				}
			}
		}
	}
	return all
}

// groups differ in all tile sizes by one step up, or down, and in all knobs at once.
func (n *neighbourhood) groups() (all []kernels.Plan) {
	at := coordinates(n.from, n.knobs)
	up, down, bare := map[int]int64{}, map[int]int64{}, map[int]int64{}
	for k := range at {
		if k >= n.tiles {
			bare[k] = n.values[k][0]
			continue
		}
		for _, v := range n.steps(k, at[k]) {
			if v > at[k] {
				up[k] = v
			} else {
				down[k] = v
			}
		}
	}
	for _, moves := range []map[int]int64{up, down, bare} {
		all = append(all, n.with(at, moves))
	}
	return all
}

// steps are the next smaller and the next larger of the offered values of a tile size.
func (n *neighbourhood) steps(k int, value int64) (out []int64) {
	at, found := slices.BinarySearch(n.values[k], value)
	if at > 0 {
		out = append(out, n.values[k][at-1])
	}
	if found {
		at++
	}
	if at < len(n.values[k]) {
		out = append(out, n.values[k][at])
	}
	return out
}

// with is the plan with some coordinates changed.
func (n *neighbourhood) with(at []int64, changed map[int]int64) kernels.Plan {
	x := slices.Clone(at)
	for k, v := range changed {
		x[k] = v
	}
	plan := kernels.Plan{Tiles: x[:n.tiles]}
	for k, name := range n.knobs {
		if v := x[n.tiles+k]; v != absent {
			plan = plan.With(name, v)
		}
	}
	return plan
}

// restart begins elsewhere: with the offered plan that differs from each that was tried in
// the most coordinates, the cheapest of several.
func (n *neighbourhood) restart() (best cost.Ranked, found bool) {
	n.seconds = math.Inf(1)
	most := 0
	for _, r := range n.offered {
		least := n.apart(coordinates(r.Plan, n.knobs))
		if least > most || least == most && found && r.Seconds < best.Seconds {
			best, most, found = r, least, least > 0
		}
	}
	return best, found
}

// apart is in how many coordinates a plan differs from the nearest that was tried.
func (n *neighbourhood) apart(x []int64) int {
	least := len(x)
	for _, y := range n.tried {
		least = min(least, differing(x, y))
	}
	return least
}

// differing are the coordinates in which two plans of as many differ.
func differing(x, y []int64) (out int) {
	for k := range x {
		if x[k] != y[k] {
			out++
		}
	}
	return out
}
