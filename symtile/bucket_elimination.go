package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// buckets hold which choices of proposed sizes can be completed to a legal
// tiling, and in how many ways, by bucket elimination (Dechter, Bucket
// elimination: a unifying framework for reasoning, 1999): from the last
// dimension to the first, the tables of the constraints that end with it are
// multiplied and summed over its sizes, which leaves a table over the
// dimensions before it. Chains of constraints stay small tables.
type buckets struct {
	// sizes are the proposals for each dimension.
	sizes [][]int64
	// factors are the tables, by the last dimension of their scope.
	factors [][]*factor
	// untabulated is, by last dimension, the clauses that are too large for a
	// table; nil without.
	untabulated []*index.Predicate
	// ways is the number of choices that are counted once this dimension is.
	ways []int64
	// uncounted are the dimensions that must be enumerated to be counted.
	uncounted []bool
	// empty reports that there is no tiling at all.
	empty bool
	// maxEntries bounds the entries of a factor.
	maxEntries int
}

// A factor counts, for choices of the sizes of a few dimensions, the last
// fastest, the ways to complete them. For an uncounted dimension only whether
// it is 0 has a meaning.
type factor struct {
	// dims are in ascending order.
	dims []int
	// radix is the number of proposals for each dimension.
	radix []int
	count []int64
}

// maxChoices bounds the entries of a factor, and the work for one.
const maxChoices = 1 << 16

// newBuckets tabulates the constraints and eliminates all dimensions.
func newBuckets(dims []Dim, l *compiledConstraints) *buckets {
	n := len(dims)
	b := &buckets{
		maxEntries:  l.maxEntries,
		factors:     make([][]*factor, n),
		untabulated: make([]*index.Predicate, n),
		ways:        make([]int64, n),
		uncounted:   make([]bool, n),
	}
	for _, d := range dims {
		b.sizes = append(b.sizes, d.proposals())
	}
	groups := scopes(l)
	sets := singletons(n)
	for _, g := range groups {
		b.tabulate(g, l)
		sets.join(g.dims)
	}
	untabulated := make(map[int]index.Constraint)
	for _, g := range groups {
		last := len(g.dims) - 1
		if last >= 0 && !b.fits(g.dims) {
			untabulated[g.dims[last]] = append(
				untabulated[g.dims[last]], g.clauses...,
			)
		}
	}
	for d, clauses := range untabulated {
		b.untabulated[d] = l.compiled(l.vars, clauses)
	}
	for d := n - 1; d >= 0; d-- {
		b.eliminate(d)
	}
	for d := range dims {
		b.uncounted[sets[d]] = b.uncounted[sets[d]] ||
			b.uncounted[d]
	}
	for d := range dims {
		b.uncounted[d] = b.uncounted[sets[d]]
	}
	return b
}

// A scope is the clauses over the same dimensions.
type scope struct {
	dims    []int
	clauses index.Constraint
}

// scopes groups the clauses of l by the dimensions in them.
func scopes(l *compiledConstraints) []scope {
	dim := make(map[index.Expr]int, len(l.vars))
	for k, v := range l.vars {
		dim[v] = k
	}
	var all []scope
	for _, clause := range l.where {
		var dims []int
		for _, v := range (index.Constraint{clause}).Vars() {
			dims = append(dims, dim[v])
		}
		slices.Sort(dims)
		k := slices.IndexFunc(all, func(s scope) bool {
			return slices.Equal(s.dims, dims)
		})
		if k < 0 {
			k = len(all)
			all = append(all, scope{dims: dims})
		}
		all[k].clauses = append(all[k].clauses, clause)
	}
	return all
}

// compiled compiles clauses of l, which compiled all of them before.
func (l *compiledConstraints) compiled(vars []index.Expr, c index.Constraint) *index.Predicate {
	check, err := index.CompileConstraint(vars, c)
	if err != nil {
		panic(err)
	}
	return check
}

// fits reports whether a table over the dimensions is small enough.
func (b *buckets) fits(dims []int) bool {
	n := 1
	for _, d := range dims {
		if n *= len(b.sizes[d]); n > b.maxEntries {
			return false
		}
	}
	return true
}

// over is a factor over the dimensions, without entries.
func (b *buckets) over(dims []int) *factor {
	f := &factor{dims: dims}
	for _, d := range dims {
		f.radix = append(f.radix, len(b.sizes[d]))
	}
	return f
}

// index is the position of the entry for the choices.
func (f *factor) index(choice []int) int {
	at := 0
	for k, d := range f.dims {
		at = at*f.radix[k] + choice[d]
	}
	return at
}

// each visits all choices of the dimensions, the last fastest.
func (b *buckets) each(dims, choice []int, visit func()) {
	if len(dims) == 0 {
		visit()
		return
	}
	for k := range b.sizes[dims[0]] {
		choice[dims[0]] = k
		b.each(dims[1:], choice, visit)
	}
}

// tabulate evaluates the clauses of a scope for all choices, if they fit.
func (b *buckets) tabulate(s scope, l *compiledConstraints) {
	if !b.fits(s.dims) {
		return
	}
	vars := make([]index.Expr, len(s.dims))
	vals := make([]int64, len(s.dims))
	for k, d := range s.dims {
		vars[k] = l.vars[d]
	}
	check := l.compiled(vars, s.clauses)
	scratch := make([]int64, check.ScratchLen())
	choice := make([]int, len(b.sizes))
	f := b.over(s.dims)
	b.each(s.dims, choice, func() {
		for k, d := range s.dims {
			vals[k] = b.sizes[d][choice[d]]
		}
		legal := int64(0)
		if check.Holds(vals, scratch) {
			legal = 1
		}
		f.count = append(f.count, legal)
	})
	b.add(f)
}

// add files a table under its last dimension; one without any is a number.
func (b *buckets) add(f *factor) {
	if n := len(f.dims); n > 0 {
		b.factors[f.dims[n-1]] = append(
			b.factors[f.dims[n-1]], f,
		)
	} else if f.count[0] == 0 {
		b.empty = true
	}
}

// eliminate sums the tables that end with dimension d. Where their product is
// too large, or a clause without a table ends with d too, each table is summed
// on its own, which finds choices that cannot be completed but does not count.
func (b *buckets) eliminate(d int) {
	all := b.factors[d]
	var dims []int
	for _, f := range all {
		dims = append(dims, f.dims...)
	}
	slices.Sort(dims)
	dims = slices.Compact(dims)
	b.ways[d] = 1
	switch {
	case b.untabulated[d] == nil && len(all) == 0:
		b.ways[d] = int64(len(b.sizes[d]))
	case b.untabulated[d] == nil && b.fits(dims):
		f := b.sum(d, dims[:len(dims)-1], all)
		b.add(f)
		if len(f.dims) == 0 {
			b.ways[d] = f.count[0]
		}
	default:
		b.uncounted[d] = true
		for _, f := range all {
			b.add(b.sum(
				d,
				f.dims[:len(f.dims)-1],
				[]*factor{f},
			))
		}
	}
}

// sum is the table over dims of the products of the tables, summed over d.
func (b *buckets) sum(d int, dims []int, factors []*factor) *factor {
	f := b.over(dims)
	choice := make([]int, len(b.sizes))
	b.each(dims, choice, func() {
		total := int64(0)
		for choice[d] = range b.sizes[d] {
			product := int64(1)
			for _, x := range factors {
				product = index.SatMul(
					product, x.count[x.index(choice)],
				)
				if product == 0 {
					break
				}
			}
			total = index.SatAdd(total, product)
		}
		f.count = append(f.count, total)
	})
	return f
}

// disjointSets are sets of dimensions; each is named by its smallest member.
type disjointSets []int

// singletons are n sets of one dimension.
func singletons(n int) disjointSets {
	s := make(disjointSets, n)
	for k := range s {
		s[k] = k
	}
	return s
}

// join merges the sets that the dimensions are in.
func (s disjointSets) join(dims []int) {
	for _, d := range dims {
		from := max(s[d], s[dims[0]])
		to := min(s[d], s[dims[0]])
		for k := range s {
			if s[k] == from {
				s[k] = to
			}
		}
	}
}
