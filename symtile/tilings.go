package symtile

import (
	"iter"
	"slices"
)

// Tilings yields every legal tiling made of the sizes the space proposes
// (powers of two, divisors, the extent), the last dimension fastest. A clause
// prunes the product as soon as all its sizes are chosen.
func (s *Space) Tilings() iter.Seq[Tiling] {
	return func(yield func(Tiling) bool) {
		w := s.enumeration()
		w.walk(0, func() bool { return yield(slices.Clone(w.at)) })
	}
}

// Boxed is the space of those tilings in which no tile has digits, for backends
// that cannot walk them.
func (s *Space) Boxed() *Space {
	boxed := *s
	for _, clause := range s.Boxes {
		boxed.Where = slices.Clip(boxed.Where).and(clause)
	}
	return &boxed
}

// Count is the number of tilings Tilings yields. Dimensions that no clause
// joins are counted apart and multiplied.
func (s *Space) Count() int64 {
	n := int64(1)
	for _, part := range s.parts() {
		if len(part.clauses) == 0 {
			n *= int64(len(s.Dims[part.dims[0]].proposals()))
			continue
		}
		w := s.enumeration()
		w.only(part)
		count := int64(0)
		w.walk(0, func() bool { count++; return true })
		n *= count
	}
	return n
}

// proposals lists candidate sizes of a dimension, ascending.
func (d Dim) proposals() []int64 {
	n := max(1, d.Extent)
	sizes := []int64{n}
	for p := int64(1); p < n; p *= 2 {
		sizes = append(sizes, p)
	}
	for k := int64(2); k*k <= n && k < 1<<20; k++ {
		if n%k == 0 {
			sizes = append(sizes, k, n/k)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// An enumeration walks the product of proposals.
type enumeration struct {
	sizes   [][]int64
	clauses [][]Clause // by the last dimension that occurs in them
	vars    []Expr
	at      Tiling
	env     map[Expr]int64
}

func (s *Space) enumeration() *enumeration {
	w := &enumeration{at: make(Tiling, len(s.Dims)), env: map[Expr]int64{}, clauses: make([][]Clause, len(s.Dims))}
	for _, d := range s.Dims {
		w.sizes = append(w.sizes, d.proposals())
		w.vars = append(w.vars, d.Size)
	}
	for _, clause := range s.Where {
		if dims := s.dimsOf(clause); len(dims) > 0 {
			last := slices.Max(dims)
			w.clauses[last] = append(w.clauses[last], clause)
		}
	}
	return w
}

// dimsOf lists the dimensions whose sizes occur in the clause.
func (s *Space) dimsOf(c Clause) []int {
	var dims []int
	for _, b := range c {
		for _, v := range b.Expr.Vars() {
			if k := slices.IndexFunc(s.Dims, func(d Dim) bool { return d.Size == v }); k >= 0 && !slices.Contains(dims, k) {
				dims = append(dims, k)
			}
		}
	}
	return dims
}

// walk visits legal sizes of dimensions k and up; false stops it.
func (w *enumeration) walk(k int, visit func() bool) bool {
	if k == len(w.sizes) {
		return visit()
	}
	for _, size := range w.sizes[k] {
		w.at[k], w.env[w.vars[k]] = size, size
		legal := !slices.ContainsFunc(w.clauses[k], func(c Clause) bool { return !c.holds(w.env) })
		if legal && !w.walk(k+1, visit) {
			return false
		}
	}
	return true
}

// only fixes every dimension outside the part to one size and drops the
// clauses that are not its own.
func (w *enumeration) only(p part) {
	for k := range w.sizes {
		if !slices.Contains(p.dims, k) {
			w.sizes[k], w.clauses[k] = w.sizes[k][:1], nil
		}
	}
}

// A part is a set of dimensions joined by clauses.
type part struct {
	dims    []int
	clauses []Clause
}

// parts splits the dimensions into sets that share no clause.
func (s *Space) parts() []part {
	of := make([]int, len(s.Dims))
	for k := range of {
		of[k] = k
	}
	for _, clause := range s.Where {
		dims := s.dimsOf(clause)
		for _, d := range dims {
			from, to := of[d], of[dims[0]]
			for k := range of {
				if of[k] == from {
					of[k] = to
				}
			}
		}
	}
	parts := map[int]*part{}
	var order []int
	for k, p := range of {
		if parts[p] == nil {
			parts[p] = &part{}
			order = append(order, p)
		}
		parts[p].dims = append(parts[p].dims, k)
	}
	for _, clause := range s.Where {
		if dims := s.dimsOf(clause); len(dims) > 0 {
			p := parts[of[dims[0]]]
			p.clauses = append(p.clauses, clause)
		}
	}
	all := make([]part, len(order))
	for k, p := range order {
		all[k] = *parts[p]
	}
	return all
}
