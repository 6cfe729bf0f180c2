package coalesce

import (
	"cmp"
	"slices"
)

// A Choice is the spread of a box that serves its arrays best: see choose.
type Choice struct {
	Layout    *ThreadLayout
	Counts    []Count // of what each array moves for four boxes, which begin at different places of a sector
	Coalesced []bool  // each, or it should come through shared memory
}

// CoalescedLike says whether c, of an array, is about as good as the best that there is
// for it: no more than half as many sectors again for the bytes that are needed.
func (c Count) CoalescedLike(best Count) bool {
	return 2*c.Sectors*best.Bytes <= 3*best.Sectors*c.Bytes
}

// ChooseElementwise chooses among the spreads of the box along one side: all orders of its
// dimensions, and vectors of all widths.
func (b Box) ChooseElementwise(reaches []ArrayAccess) Choice {
	lies, order := b.patterns(reaches)
	return choose(b.ElementwiseLayouts(order), lies, nil, zeroCount)
}

func zeroCount(*ThreadLayout) Count { return Count{} }

// ChooseReduction chooses among the spreads of a reduction.
func (b Box) ChooseReduction(f Reduction, reaches []ArrayAccess) Choice {
	lies, order := b.patterns(reaches)
	too, _ := b.patterns(f.InnerAccesses)
	alone := func(l *accessPattern) Count {
		return choose(b.ElementwiseLayouts(order), []*accessPattern{l}, nil, zeroCount).Counts[0]
	}
	return choose(b.ReductionLayouts(order, f), lies, alone, func(s *ThreadLayout) (sum Count) {
		if !f.ReducesInner(s) {
			return f.OuterCount
		}
		for _, l := range too {
			sum = sum.Plus(l.count(s))
		}
		return sum
	})
}

// Count is what going over the box by a spread moves of an array, as in a Choice.
func (b Box) Count(s *ThreadLayout, r ArrayAccess) Count {
	return r.pattern(b.Sizes).count(s)
}

// choose takes the spread that serves all arrays, of those that do the one with
// the fewest sectors, then requests; the first of equals. Where none serves all,
// arrays that it does not serve and that may come through shared memory count
// with the fewest sectors in which any spread moves them, or, if it is given,
// what alone says they may come in.
func choose(
	all []*ThreadLayout, lies []*accessPattern,
	alone func(*accessPattern) Count, beside func(*ThreadLayout) Count,
) (best Choice) {
	tried := countAll(all, lies)
	least := slices.Clone(tried[0].Counts) // for the bytes
	fewest := slices.Clone(tried[0].Counts)
	take := func(a int, n Count) {
		if n.Sectors*least[a].Bytes < least[a].Sectors*n.Bytes {
			least[a] = n
		}
		if n.Sectors < fewest[a].Sectors {
			fewest[a] = n
		}
	}
	for a, l := range lies {
		for _, c := range tried {
			take(a, c.Counts[a])
		}
		if alone != nil &&
			least[a].Sectors*nvidiaSector > least[a].Bytes {
			take(a, alone(l))
		}
	}
	var cost []int64
	for _, c := range tried {
		x := c.cost(lies, least, fewest, beside(c.Layout))
		if cost == nil || slices.Compare(x, cost) < 0 {
			best, cost = c, x
		}
	}
	return best
}

// countAll counts what spreads move, up to one that nothing can be better than.
func countAll(all []*ThreadLayout, lies []*accessPattern) (tried []Choice) {
	for k, s := range all {
		if k > 0 &&
			slices.Equal(s.Inner, all[k-1].Inner) &&
			slices.Equal(s.Outer, all[k-1].Outer) &&
			vectorsFit(lies, all[k-1]) {
			continue // a part of what the wider vectors before it move at once
		}
		c := Choice{Layout: s}
		for _, l := range lies {
			c.Counts = append(c.Counts, l.count(s))
		}
		tried = append(tried, c)
		if len(tried) == 1 && ideal(lies, c) {
			break
		}
	}
	return tried
}

// cost says which arrays are served, and what is to be least.
func (c *Choice) cost(
	lies []*accessPattern, least, fewest []Count, beside Count,
) []int64 {
	some := int64(0)
	through := int64(0)
	requests := beside.Requests
	sectors := beside.Sectors
	for a, n := range c.Counts {
		c.Coalesced = append(
			c.Coalesced, n.CoalescedLike(least[a]),
		)
		requests += n.Requests
		switch {
		case c.Coalesced[a]:
			sectors += n.Sectors
			continue
		case lies[a].shared:
			sectors += fewest[a].Sectors
			through++
		default:
			sectors += n.Sectors
		}
		some = 1
	}
	return []int64{some, sectors, through, requests}
}

// vectorsFit says whether one instruction moves a vector of every array, or the same
// element for all of it.
func vectorsFit(lies []*accessPattern, s *ThreadLayout) bool {
	d := FastestDim(s.Sizes, s.Inner)
	return !slices.ContainsFunc(lies, func(l *accessPattern) bool {
		return !l.unknown &&
			l.vectorWidth(s) < s.Vector &&
			(l.table != nil || l.strides[d] != 0)
	})
}

// ideal says whether no spread moves the arrays in fewer sectors or requests.
func ideal(lies []*accessPattern, c Choice) bool {
	for a, l := range lies {
		n := c.Counts[a]
		if l.revisits || n.Sectors > n.Ideal ||
			l.vectorWidth(c.Layout) < c.Layout.Vector {
			return false
		}
	}
	return true
}

// patterns are those of the arrays, and the order of the box's dimensions in the
// first of them.
func (b Box) patterns(reaches []ArrayAccess) (lies []*accessPattern, order []int) {
	order = make([]int, len(b.Sizes))
	for d := range order {
		order[d] = d
	}
	for k, r := range reaches {
		l := r.pattern(b.Sizes)
		lies = append(lies, l)
		if k == 0 {
			slices.SortStableFunc(order, func(x, y int) int {
				return cmp.Compare(
					abs(l.strides[y]),
					abs(l.strides[x]),
				)
			})
		}
	}
	return lies, order
}

func abs(x int64) int64 { return max(x, -x) }
