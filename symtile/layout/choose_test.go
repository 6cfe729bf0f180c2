package layout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/symtile"
)

// reachOf is an array with the strides, in elements of 4 bytes.
func reachOf(r *symtile.Ring, sizes []int64, strides []int64, base symtile.Expr) Reach {
	out := Reach{Offset: base, Bytes: 4, Shared: true}
	for d, n := range sizes {
		x := r.Var(symtile.Variable{Name: fmt.Sprint("x", d), Hi: n - 1, Role: symtile.RoleElement})
		out.Index, out.Offset = append(out.Index, x), out.Offset.Add(x.Scale(strides[d]))
	}
	return out
}

// What a spread is counted to move is what its requests are counted to move from
// their expressions.
func TestSpreadCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		r := symtile.NewRing()
		sizes := []int64{1 + rng.Int64N(12), 1 + rng.Int64N(12), 1 + rng.Int64N(40)}
		pitch := sizes[2] + rng.Int64N(5)
		x := reachOf(r, sizes, []int64{pitch * sizes[1], pitch, 1}, r.Const(0))
		if rng.IntN(4) == 0 {
			x = reachOf(r, sizes, []int64{-(sizes[1] + 3) * sizes[2], 1, sizes[1] + 3}, r.Const(1<<12))
		}
		b := Box{Sizes: sizes, Threads: 32 << rng.IntN(4), Vector: 1 << rng.IntN(3)}
		all := b.Flats([]int{0, 1, 2})
		if f := (Fold{Reduced: []int64{int64(rng.IntN(3))}, Ordered: rng.IntN(2) == 0, Results: 64}); rng.IntN(2) == 0 {
			all = b.Folds([]int{0, 1, 2}, f)
		}
		s := all[rng.IntN(len(all))]
		got, want := x.lie(sizes).count(s), exactly(t, r, x, s, b.Threads)
		if got.Sectors != maxBases*want.Sectors || got.Requests != maxBases*want.Requests || got.Bytes != maxBases*want.Bytes {
			t.Fatalf("%+v of %v: %+v, not %d times %+v", *s, x.Offset, got, maxBases, want)
		}
	}
}

// exactly counts the requests of a spread one by one.
func exactly(t *testing.T, r *symtile.Ring, x Reach, s *Spread, threads int64) (sum Count) {
	thread := r.Var(symtile.Variable{Name: "thread", Hi: threads - 1, Role: symtile.RoleThread})
	width := min(s.Vector, x.lie(s.Sizes).along(s))
	for o := range s.OutRounds {
		for i := range s.InRounds {
			for j := int64(0); j < s.Vector; j += width {
				out, in := s.Out(thread, r.Const(o)), s.In(thread, r.Const(i)).AddConst(j)
				at := slices.Repeat([]symtile.Expr{r.Const(0)}, len(s.Sizes))
				s.Place(at, s.Outer, out)
				s.Place(at, s.Inner, in)
				with := map[symtile.Expr]symtile.Expr{}
				for d, v := range x.Index {
					with[v] = at[d]
				}
				q := Request{Offset: x.Offset.Subst(with).Scale(x.Bytes), Bytes: width * x.Bytes, Block: threads,
					Blocks: []symtile.Expr{r.Const(0)}, Threads: []symtile.Expr{thread},
					Where: symtile.And(symtile.Require(out, 0, s.Outs-1), symtile.Require(in, 0, s.Ins-1))}
				c, err := q.Count(r, Sectors{})
				if err != nil {
					t.Fatal(err)
				}
				sum = sum.Plus(c)
			}
		}
	}
	return sum
}

// Threads run along the dimension in which elements follow each other, take as
// many at once as are aligned, and what no order serves is said.
func TestFlat(t *testing.T) {
	r := symtile.NewRing()
	tile := r.Var(symtile.Variable{Name: "t", Hi: 9, Role: symtile.RoleBlock})
	sizes := []int64{32, 64}
	rows, columns := []int64{640, 1}, []int64{1, 640}
	for _, c := range []struct {
		name    string
		strides [][]int64
		base    symtile.Expr
		inner   []int
		vector  int64
		served  []bool
	}{
		{"rows", [][]int64{rows}, tile.Scale(64), []int{0, 1}, 4, []bool{true}},
		{"columns", [][]int64{columns}, tile.Scale(32), []int{1, 0}, 4, []bool{true}},
		{"most arrays are in columns", [][]int64{rows, columns, columns}, r.Const(0), []int{0, 1}, 4, []bool{true, false, false}},
		{"a stored transpose of what is too large to share", [][]int64{rows, columns}, r.Const(0), []int{0, 1}, 4, []bool{true, false}},
		{"rows from an odd element on", [][]int64{rows}, tile.Scale(63), []int{0, 1}, 1, []bool{true}},
		{"rows of an odd length", [][]int64{{641, 1}}, r.Const(0), []int{0, 1}, 1, []bool{true}},
		{"a row for all", [][]int64{rows, {0, 1}}, tile.Scale(64), []int{0, 1}, 4, []bool{true, true}},
		{"backwards", [][]int64{{640, -1}}, r.Const(1 << 16), []int{0, 1}, 1, []bool{true}},
	} {
		var all []Reach
		for k, s := range c.strides {
			x := reachOf(r, sizes, s, c.base)
			x.Shared = k > 0
			all = append(all, x)
		}
		got := Box{Sizes: sizes, Threads: 128, Vector: 4}.Flat(all)
		if !slices.Equal(got.Spread.Inner, c.inner) || got.Spread.Vector != c.vector || !slices.Equal(got.Served, c.served) {
			t.Errorf("%s: %+v, served %v, %+v", c.name, *got.Spread, got.Served, got.Counts)
		}
	}
}

// Arrays that a spread is not linear in are looked at one by one, those that are
// too large are left out; boxes may have no dimension.
func TestFlatLimits(t *testing.T) {
	r := symtile.NewRing()
	folded := func(sizes []int64) Reach {
		x := reachOf(r, sizes, []int64{0, 0}, r.Const(0))
		n := x.Index[0].Scale(sizes[1]).Add(x.Index[1])
		x.Offset = n.Mod(sizes[0]).Scale(sizes[1]).Add(n.Div(sizes[0])) // a transpose after a reshape
		return x
	}
	for _, sizes := range [][]int64{{6, 10}, {1 << 9, 1 << 10}} {
		got := Box{Sizes: sizes, Threads: 64, Vector: 4}.Flat([]Reach{folded(sizes)})
		if known := got.Counts[0].Sectors > 0; known != (sizes[0] == 6) || !got.Served[0] {
			t.Errorf("%v: %+v", sizes, got)
		}
	}
	x := Reach{Offset: r.Const(3), Bytes: 4}
	if got := (Box{Threads: 32, Vector: 4}).Flat([]Reach{x}); got.Spread.Ins != 1 || got.Counts[0].Requests != maxBases {
		t.Errorf("%+v", got)
	}
	if got := (Box{Threads: 32, Vector: 4}).Fold(Fold{Results: 1}, []Reach{x}); !(Fold{}).Inside(got.Spread) {
		t.Errorf("%+v", got)
	}
}

// A reduction runs along the rows of memory whichever side they are, unless a
// thread would keep too many results, and what is stored beside it counts.
func TestFold(t *testing.T) {
	r := symtile.NewRing()
	sizes := []int64{32, 64}
	x := reachOf(r, sizes, []int64{64, 1}, r.Const(0))
	turned := reachOf(r, sizes, []int64{1, 32}, r.Const(0))
	b := Box{Sizes: sizes, Threads: 64, Vector: 4}
	for _, c := range []struct {
		name   string
		f      Fold
		x      Reach
		inside bool
		served bool
	}{
		{"rows", Fold{Reduced: []int64{1}, Results: 64}, x, true, true},
		{"columns", Fold{Reduced: []int64{0}, Results: 64}, x, false, true},
		{"rows of columns", Fold{Reduced: []int64{1}, Results: 64}, turned, false, true},
		{"few results", Fold{Reduced: []int64{1}, Results: 4}, x, false, false},
		{"in order", Fold{Reduced: []int64{1}, Ordered: true, Results: 64}, x, true, true},
		{"pieces of a sector", Fold{Reduced: []int64{0, 1}, Ordered: true, Results: 64}, x, true, false},
		{"stored as it is read", Fold{Reduced: []int64{1}, Results: 64, Too: []Reach{x}, Else: Count{Sectors: 1 << 20}}, x, true, true},
		{"stored otherwise", Fold{Reduced: []int64{1}, Results: 64, Too: []Reach{turned, turned}, Else: Count{}}, x, true, true},
	} {
		got := b.Fold(c.f, []Reach{c.x})
		if c.f.Inside(got.Spread) != c.inside || got.Served[0] != c.served {
			t.Errorf("%s: %+v, served %v, %+v", c.name, *got.Spread, got.Served, got.Counts)
		}
	}
}
