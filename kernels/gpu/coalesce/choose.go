package coalesce

import (
	"cmp"
	"slices"
)

// A Choice is the thread layout that moves the arrays of a box in the fewest
// sectors, as ChooseElementwise and ChooseReduction find it.
type Choice struct {
	Layout *ThreadLayout
	// Counts is what each array moves, summed over four boxes that begin at
	// different offsets within a sector.
	Counts []Count
	// Coalesced reports, for each array, that the layout accesses it about as
	// well as any does. Another array should be staged through shared memory.
	Coalesced []bool
}

// CoalescedLike reports whether c, of an array, is about as good as the best
// count there is for it: at most 1.5 times the sectors for each byte that is
// needed.
func (c Count) CoalescedLike(best Count) bool {
	return 2*c.Sectors*best.Bytes <= 3*best.Sectors*c.Bytes
}

// ChooseElementwise chooses among the layouts of the box along one side: all
// orders of its dimensions, and vectors of all widths.
func (b Box) ChooseElementwise(accesses []ArrayAccess) Choice {
	patterns, order := b.patterns(accesses)
	return choose(b.ElementwiseLayouts(order), patterns, nil, zeroCount)
}

// zeroCount is the additional count of a choice without any.
func zeroCount(*ThreadLayout) Count { return Count{} }

// ChooseReduction chooses among the layouts of a reduction. An array that the
// reduction reads badly may be staged instead by an elementwise layout of its own,
// so that it counts with the sectors of that.
func (b Box) ChooseReduction(f Reduction, accesses []ArrayAccess) Choice {
	patterns, order := b.patterns(accesses)
	innerPatterns, _ := b.patterns(f.InnerAccesses)
	staged := func(p *accessPattern) Count {
		one := []*accessPattern{p}
		return choose(b.ElementwiseLayouts(order), one, nil, zeroCount).Counts[0]
	}
	additional := func(s *ThreadLayout) (sum Count) {
		if !f.ReducesInner(s) {
			return f.OuterCount
		}
		for _, p := range innerPatterns {
			sum = sum.Plus(p.count(s))
		}
		return sum
	}
	return choose(b.ReductionLayouts(order, f), patterns, staged, additional)
}

// Count is what a layout moves of an array, as in a Choice.
func (b Box) Count(s *ThreadLayout, a ArrayAccess) Count {
	return a.pattern(b.Sizes).count(s)
}

// choose takes the layout that coalesces all arrays; of those that do, the one
// with the fewest sectors, then requests; the first of equals. Where none
// coalesces all, arrays that it does not coalesce and that may be staged through
// shared memory count with the fewest sectors in which any layout moves them, or
// in which staged says that they can be moved. additional is what else a layout
// moves.
func choose(
	layouts []*ThreadLayout, patterns []*accessPattern,
	staged func(*accessPattern) Count,
	additional func(*ThreadLayout) Count,
) (best Choice) {
	counted := countAll(layouts, patterns)
	limits := newBestCounts(counted[0].Counts)
	for a, p := range patterns {
		for _, c := range counted {
			limits.enter(a, c.Counts[a])
		}
		if staged != nil &&
			limits.perByte[a].Sectors*nvidiaSector > limits.perByte[a].Bytes {
			limits.enter(a, staged(p))
		}
	}
	var bestCost []int64
	for _, c := range counted {
		cost := c.cost(patterns, limits, additional(c.Layout))
		if bestCost == nil || slices.Compare(cost, bestCost) < 0 {
			best = c
			bestCost = cost
		}
	}
	return best
}

// bestCounts are the best counts of each array over all layouts.
type bestCounts struct {
	perByte []Count // of the fewest sectors for each byte
	fewest  []Count // of the fewest sectors
}

func newBestCounts(first []Count) bestCounts {
	return bestCounts{slices.Clone(first), slices.Clone(first)}
}

// enter takes a count of array a into account.
func (b bestCounts) enter(a int, n Count) {
	if n.Sectors*b.perByte[a].Bytes < b.perByte[a].Sectors*n.Bytes {
		b.perByte[a] = n
	}
	if n.Sectors < b.fewest[a].Sectors {
		b.fewest[a] = n
	}
}

// countAll counts what layouts move, up to one that none can be better than. A
// layout with narrower vectors than the one before it is skipped where all arrays
// are moved by whole vectors: it only splits the requests.
func countAll(
	layouts []*ThreadLayout, patterns []*accessPattern,
) (counted []Choice) {
	for k, s := range layouts {
		if k > 0 &&
			slices.Equal(s.Inner, layouts[k-1].Inner) &&
			slices.Equal(s.Outer, layouts[k-1].Outer) &&
			vectorsFit(patterns, layouts[k-1]) {
			continue
		}
		c := Choice{Layout: s}
		for _, p := range patterns {
			c.Counts = append(c.Counts, p.count(s))
		}
		counted = append(counted, c)
		if len(counted) == 1 && ideal(patterns, c) {
			break
		}
	}
	return counted
}

// cost fills in which arrays are coalesced, and returns what is minimized, the
// most important number first: whether an array is not coalesced, the sectors, the
// arrays staged through shared memory, the requests.
func (c *Choice) cost(
	patterns []*accessPattern, limits bestCounts, additional Count,
) []int64 {
	anyUncoalesced := int64(0)
	staged := int64(0)
	requests := additional.Requests
	sectors := additional.Sectors
	for a, n := range c.Counts {
		c.Coalesced = append(
			c.Coalesced, n.CoalescedLike(limits.perByte[a]),
		)
		requests += n.Requests
		switch {
		case c.Coalesced[a]:
			sectors += n.Sectors
			continue
		case patterns[a].shared:
			sectors += limits.fewest[a].Sectors
			staged++
		default:
			sectors += n.Sectors
		}
		anyUncoalesced = 1
	}
	return []int64{anyUncoalesced, sectors, staged, requests}
}

// vectorsFit reports whether one instruction moves a vector of every array, or the
// same element for all of the vector.
func vectorsFit(patterns []*accessPattern, s *ThreadLayout) bool {
	d := FastestDim(s.Sizes, s.Inner)
	return !slices.ContainsFunc(patterns, func(p *accessPattern) bool {
		return !p.unknown &&
			p.vectorWidth(s) < s.Vector &&
			(p.table != nil || p.strides[d] != 0)
	})
}

// ideal reports whether no layout moves the arrays in fewer sectors or requests.
func ideal(patterns []*accessPattern, c Choice) bool {
	for a, p := range patterns {
		n := c.Counts[a]
		if p.revisits || n.Sectors > n.Ideal ||
			p.vectorWidth(c.Layout) < c.Layout.Vector {
			return false
		}
	}
	return true
}

// patterns are those of the arrays, and the order of the box's dimensions in the
// first of them, the largest stride first.
func (b Box) patterns(accesses []ArrayAccess) (patterns []*accessPattern, order []int) {
	order = make([]int, len(b.Sizes))
	for d := range order {
		order[d] = d
	}
	for _, a := range accesses {
		patterns = append(patterns, a.pattern(b.Sizes))
	}
	if len(patterns) > 0 {
		strides := patterns[0].strides
		slices.SortStableFunc(order, func(x, y int) int {
			return cmp.Compare(abs(strides[y]), abs(strides[x]))
		})
	}
	return patterns, order
}

func abs(x int64) int64 { return max(x, -x) }
