package coalesce

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// accessOf is an array with the strides, in elements of 4 bytes.
func accessOf(r *index.Ring, sizes []int64, strides []int64, base index.Expr) ArrayAccess {
	out := ArrayAccess{Offset: base, Bytes: 4, Shared: true}
	for d, n := range sizes {
		x := r.Var(index.Variable{
			Name: fmt.Sprint("x", d),
			Hi:   n - 1,
			Role: index.RoleElement,
		})
		out.Index, out.Offset = append(out.Index, x),
			out.Offset.Add(x.Scale(strides[d]))
	}
	return out
}

// TestThreadLayoutCounts: the count of a thread layout is the count of its requests
// from their expressions.
func TestThreadLayoutCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		r := index.NewRing()
		sizes := []int64{
			1 + rng.Int64N(12),
			1 + rng.Int64N(12),
			1 + rng.Int64N(40),
		}
		pitch := sizes[2] + rng.Int64N(5)
		x := accessOf(
			r, sizes,
			[]int64{pitch * sizes[1], pitch, 1},
			r.Const(0),
		)
		if rng.IntN(4) == 0 {
			x = accessOf(
				r, sizes,
				[]int64{-(sizes[1] + 3) * sizes[2], 1, sizes[1] + 3},
				r.Const(1<<12),
			)
		}
		b := Box{Sizes: sizes, Threads: 32 << rng.IntN(4), Vector: 1 << rng.IntN(3)}
		all := b.ElementwiseLayouts([]int{0, 1, 2})
		f := (Reduction{
			Reduced:    []int64{int64(rng.IntN(3))},
			Ordered:    rng.IntN(2) == 0,
			MaxResults: 64,
		})
		if rng.IntN(2) == 0 {
			all = b.ReductionLayouts([]int{0, 1, 2}, f)
		}
		s := all[rng.IntN(len(all))]
		got, want := x.pattern(sizes).count(s), countByRequests(t, r, x, s, b.Threads)
		if got.Sectors != maxSectorOffsets*want.Sectors ||
			got.Requests != maxSectorOffsets*want.Requests ||
			got.Bytes != maxSectorOffsets*want.Bytes {
			t.Fatalf("%+v of %v: %+v, not %d times %+v", *s, x.Offset, got, maxSectorOffsets, want)
		}
	}
}

// countByRequests counts the requests of a thread layout one by one.
func countByRequests(t *testing.T, r *index.Ring, x ArrayAccess, s *ThreadLayout, threads int64) (sum Count) {
	thread := r.Var(index.Variable{Name: "thread", Hi: threads - 1, Role: index.RoleThread})
	width := min(s.Vector, x.pattern(s.Sizes).vectorWidth(s))
	for o := range s.OuterRounds {
		for i := range s.InnerRounds {
			for j := int64(0); j < s.Vector; j += width {
				out := s.OuterIndex(thread, r.Const(o))
				in := s.InnerIndex(thread, r.Const(i)).AddConst(j)
				at := slices.Repeat([]index.Expr{r.Const(0)}, len(s.Sizes))
				s.SetIndices(at, s.Outer, out)
				s.SetIndices(at, s.Inner, in)
				with := map[index.Expr]index.Expr{}
				for d, v := range x.Index {
					with[v] = at[d]
				}
				q := Request{
					Offset:  x.Offset.Subst(with).Scale(x.Bytes),
					Bytes:   width * x.Bytes,
					Block:   threads,
					Blocks:  []index.Expr{r.Const(0)},
					Threads: []index.Expr{thread},
					Where: index.And(index.Require(
						out, 0, s.OuterElements-1,
					), index.Require(in, 0, s.InnerElements-1)),
				}
				c, err := q.Count(r, layout.Sectors{})
				if err != nil {
					t.Fatal(err)
				}
				sum = sum.Plus(c)
			}
		}
	}
	return sum
}

// TestChooseElementwise: threads run along the dimension in which elements are
// contiguous, with vectors as wide as the alignment allows; arrays that no order
// coalesces are reported.
func TestChooseElementwise(t *testing.T) {
	r := index.NewRing()
	tile := r.Var(index.Variable{Name: "t", Hi: 9, Role: index.RoleBlock})
	sizes := []int64{32, 64}
	rows, columns := []int64{640, 1}, []int64{1, 640}
	for _, c := range []struct {
		name    string
		strides [][]int64
		base    index.Expr
		inner   []int
		vector  int64
		served  []bool
	}{
		{
			"rows", [][]int64{rows}, tile.Scale(64),
			[]int{0, 1}, 4, []bool{true},
		},
		{
			"columns", [][]int64{columns}, tile.Scale(32),
			[]int{1, 0}, 4, []bool{true},
		},
		{
			"most arrays are in columns", [][]int64{rows, columns, columns}, r.Const(0),
			[]int{0, 1}, 4, []bool{true, false, false},
		},
		{
			"a stored transpose of what is too large to share", [][]int64{rows, columns}, r.Const(0),
			[]int{0, 1}, 4, []bool{true, false},
		},
		{
			"rows from an odd element on", [][]int64{rows}, tile.Scale(63),
			[]int{0, 1}, 1, []bool{true},
		},
		{
			"rows of an odd length", [][]int64{{641, 1}}, r.Const(0),
			[]int{0, 1}, 1, []bool{true},
		},
		{
			"a row for all", [][]int64{rows, {0, 1}},
			tile.Scale(64), []int{0, 1}, 4,
			[]bool{true, true},
		},
		{
			"backwards", [][]int64{{640, -1}},
			r.Const(1 << 16), []int{0, 1}, 1,
			[]bool{true},
		},
	} {
		var all []ArrayAccess
		for k, s := range c.strides {
			x := accessOf(r, sizes, s, c.base)
			x.Shared = k > 0
			all = append(all, x)
		}
		got := Box{Sizes: sizes, Threads: 128, Vector: 4}.ChooseElementwise(all)
		if !slices.Equal(got.Layout.Inner, c.inner) ||
			got.Layout.Vector != c.vector ||
			!slices.Equal(got.Coalesced, c.served) {
			t.Errorf("%s: %+v, served %v, %+v", c.name, *got.Layout, got.Coalesced, got.Counts)
		}
	}
}

// TestChooseElementwiseLimits: offsets that are not linear are tabulated, those of
// boxes that are too large do not count; boxes may have no dimension.
func TestChooseElementwiseLimits(t *testing.T) {
	r := index.NewRing()
	folded := func(sizes []int64) ArrayAccess {
		x := accessOf(r, sizes, []int64{0, 0}, r.Const(0))
		n := x.Index[0].Scale(sizes[1]).Add(x.Index[1])
		// a transpose after a reshape
		x.Offset = n.Mod(sizes[0]).Scale(sizes[1]).Add(
			n.Div(sizes[0]),
		)
		return x
	}
	for _, sizes := range [][]int64{{6, 10}, {1 << 9, 1 << 10}} {
		got := Box{Sizes: sizes, Threads: 64, Vector: 4}.ChooseElementwise([]ArrayAccess{folded(sizes)})
		if known := got.Counts[0].Sectors > 0; known != (sizes[0] == 6) ||
			!got.Coalesced[0] {
			t.Errorf("%v: %+v", sizes, got)
		}
	}
	x := ArrayAccess{Offset: r.Const(3), Bytes: 4}
	if got := (Box{Threads: 32, Vector: 4}).ChooseElementwise(
		[]ArrayAccess{x},
	); got.Layout.InnerElements != 1 ||
		got.Counts[0].Requests != maxSectorOffsets {
		t.Errorf("%+v", got)
	}
	got := (Box{Threads: 32, Vector: 4}).ChooseReduction(
		Reduction{MaxResults: 1}, []ArrayAccess{x},
	)
	if !(Reduction{}).ReducesInner(got.Layout) {
		t.Errorf("%+v", got)
	}
}

// TestChooseReduction: threads run along the rows of memory, whichever side that
// is, unless a thread would hold too many results; arrays that are stored with the
// same layout count too.
func TestChooseReduction(t *testing.T) {
	r := index.NewRing()
	sizes := []int64{32, 64}
	x := accessOf(r, sizes, []int64{64, 1}, r.Const(0))
	transposed := accessOf(r, sizes, []int64{1, 32}, r.Const(0))
	b := Box{Sizes: sizes, Threads: 64, Vector: 4}
	for _, c := range []struct {
		name   string
		f      Reduction
		x      ArrayAccess
		inside bool
		served bool
	}{
		{"rows", Reduction{Reduced: []int64{1}, MaxResults: 64}, x, true, true},
		{"columns", Reduction{Reduced: []int64{0}, MaxResults: 64}, x, false, true},
		{"rows of columns", Reduction{Reduced: []int64{1}, MaxResults: 64}, transposed, false, true},
		{"few results", Reduction{Reduced: []int64{1}, MaxResults: 4}, x, false, false},
		{"in order", Reduction{Reduced: []int64{1}, Ordered: true, MaxResults: 64}, x, true, true},
		{
			"pieces of a sector",
			Reduction{Reduced: []int64{0, 1}, Ordered: true, MaxResults: 64},
			x, true, false,
		},
		{"stored as it is read", Reduction{
			Reduced:       []int64{1},
			MaxResults:    64,
			InnerAccesses: []ArrayAccess{x},
			OuterCount:    Count{Sectors: 1 << 20},
		}, x, true, true},
		{"stored otherwise", Reduction{
			Reduced:       []int64{1},
			MaxResults:    64,
			InnerAccesses: []ArrayAccess{transposed, transposed},
			OuterCount:    Count{},
		}, x, true, true},
	} {
		got := b.ChooseReduction(c.f, []ArrayAccess{c.x})
		if c.f.ReducesInner(got.Layout) != c.inside || got.Coalesced[0] != c.served {
			t.Errorf("%s: %+v, served %v, %+v", c.name, *got.Layout, got.Coalesced, got.Counts)
		}
	}
}
