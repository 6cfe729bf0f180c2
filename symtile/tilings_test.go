package symtile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tilewright/tilewright/symtile/index"
)

// legalByHand lists the proposals that satisfy the constraints, one after the
// other, the last dimension fastest.
func legalByHand(s *Space) []Tiling {
	all := []Tiling{{}}
	for _, d := range s.Dims {
		var next []Tiling
		for _, t := range all {
			for _, size := range d.proposals() {
				next = append(next, append(slices.Clone(t), size))
			}
		}
		all = next
	}
	return slices.DeleteFunc(all, func(t Tiling) bool {
		env := map[index.Expr]int64{}
		for k, d := range s.Dims {
			env[d.Size] = t[k]
		}
		return !s.Where.Holds(env)
	})
}

func checkTilings(t *rapid.T, s *Space) {
	want, got := legalByHand(s), slices.Collect(s.Tilings())
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("%s: Tilings yields %v, by hand they are %v", s.Where, got, want)
	}
	if n := s.Count(); n != int64(len(want)) {
		t.Fatalf("%s: Count is %d, there are %d", s.Where, n, len(want))
	}
	if got = completed(s.Completions(), nil, len(s.Dims)); !slices.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("%s: size by size they are %v, by hand %v", s.Where, got, want)
	}
}

// completed are the tilings of n dimensions that begin as t does, each size from After.
func completed(c *Completions, t Tiling, n int) (all []Tiling) {
	if len(t) == n {
		return []Tiling{slices.Clone(t)}
	}
	for _, size := range c.After(t, len(t), nil) {
		all = append(all, completed(c, append(t, size), n)...)
	}
	return all
}

// drawSpace draws a space of a few small dimensions whose constraints are what
// propagation makes: divisibilities, products and runs, joined by or.
func drawSpace(t *rapid.T) *Space {
	r := index.NewRing()
	s := &Space{Ring: r}
	for k := range rapid.IntRange(1, 5).Draw(t, "dims") {
		d := newDim(r, k, rapid.Int64Range(0, 24).Draw(t, "extent"), 0, Parallel, nil)
		d.Halo = rapid.Int64Range(0, 4).Draw(t, "halo")
		s.Dims = append(s.Dims, d)
	}
	size := func() index.Expr {
		return s.Dims[rapid.IntRange(0, len(s.Dims)-1).Draw(t, "dim")].Size
	}
	bound := func() index.Bound {
		x, m := size(), size()
		n := rapid.Int64Range(1, 12).Draw(t, "n")
		switch rapid.IntRange(0, 4).Draw(t, "bound") {
		case 0:
			return index.Bound{Expr: x.ModExpr(m), In: index.Interval{}}
		case 1:
			return index.Bound{
				Expr: x.Mul(m),
				In:   index.Interval{Lo: math.MinInt64, Hi: n * n},
			}
		case 2:
			return index.Bound{
				Expr: x.Mod(n).Add(m.Mod(2)),
				In:   index.Interval{},
			}
		case 3:
			return index.Bound{
				Expr: x.Add(size().Min(m)),
				In:   index.Interval{Lo: n, Hi: math.MaxInt64},
			}
		}
		return index.Bound{Expr: x, In: index.Interval{Lo: 1, Hi: n}}
	}
	clauses := func(maxClauses int) (c index.Constraint) {
		for range rapid.IntRange(0, maxClauses).Draw(t, "clauses") {
			var clause index.Clause
			for range rapid.IntRange(1, 3).Draw(t, "bounds") {
				clause = append(clause, bound())
			}
			c = c.With(clause)
		}
		return c
	}
	s.Where, s.Boxes = clauses(5), clauses(2)
	return s
}

func TestTilingsAreTheLegalProposals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpace(t)
		checkTilings(t, s)
		checkTilings(t, s.Boxed())
	})
}

// Where tables would be too large clauses prune late and are enumerated to be
// counted; the answers are the same.
func TestTilingsOfLargeScopes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpace(t)
		l, err := s.compileConstraints(s.Where)
		if err != nil {
			t.Fatal(err)
		}
		l.maxEntries = rapid.IntRange(1, 64).Draw(t, "choices")
		s.legal = l
		checkTilings(t, s)
	})
}

func TestProposals(t *testing.T) {
	for _, x := range []struct {
		extent, halo int64
		want         string
	}{
		{0, 0, "1"}, {1, 0, "1"},
		{7, 0, "1 2 4 7"}, {48, 0, "1 2 3 4 6 8 12 16 24 32 48"},
		{62, 2, "1 2 4 6 8 14 16 30 31 32 62"}, {9, 8, "1 2 3 4 8 9"}, {100, 99, "1 2 4 5 8 10 16 20 25 29 32 50 64 100"},
	} {
		got := strings.Trim(
			fmt.Sprint(Dim{Extent: x.extent, Halo: x.halo}.proposals()), "[]",
		)
		if got != x.want {
			t.Errorf("extent %d halo %d: %s, want %s", x.extent, x.halo, got, x.want)
		}
	}
}

// The windows of a convolution overlap; sizes that make the run of its input a
// power of two are among the tilings.
func TestHaloIsProposed(t *testing.T) {
	p := analyzed(t, entry(t, "x = f32[1,64,64,16] parameter(0); k = f32[3,5,16,32] parameter(1); ROOT c = f32[1,62,60,32] convolution(x, k), window={size=3x5}, dim_labels=b01f_01io->b01f"))
	for tiling := range p.Space.Tilings() {
		if tiling[1] == 14 && tiling[2] == 28 {
			return
		}
	}
	t.Errorf("no tiling with 14 rows of 28")
}

// Twenty reshaped groups have more tilings than can be enumerated; counting
// them is a product of small tables.
func TestCountDoesNotEnumerate(t *testing.T) {
	from, to := strings.Repeat("2,3,", 20), strings.Repeat("6,", 20)
	p := analyzed(
		t,
		entry(t, fmt.Sprintf("x = s8[%s] parameter(0); ROOT r = s8[%s] reshape(x)", strings.TrimSuffix(from, ","), strings.TrimSuffix(to, ","))),
	)
	if got := p.Space.Count(); got != 3486784401 { // 3^20
		t.Errorf("%d tilings", got)
	}
}

// Constraints are one group's, once for every group, and so is the time.
func TestConstraintsAreLinearInGroups(t *testing.T) {
	shapes := []string{"4,6", "6,4", "2,12", "3,8"}
	one := analyzed(t, entry(t, reshapesText(3, 1, shapes...))).Space
	for _, groups := range []int{2, 4, 8} {
		s := analyzed(t, entry(t, reshapesText(3, groups, shapes...))).Space
		if len(s.Where) != groups*len(one.Where) ||
			len(s.Boxes) != groups*len(one.Boxes) {
			t.Errorf(
				"%d groups have %d clauses and %d for boxes, one has %d and %d",
				groups, len(s.Where), len(s.Boxes),
				len(one.Where), len(one.Boxes),
			)
		}
		want := int64(1)
		for range groups {
			want *= one.Count()
		}
		if got := s.Count(); got != want {
			t.Errorf("%d groups have %d tilings, want %d", groups, got, want)
		}
	}
}

// A copy of a space may have more constraints: they count at once.
func TestConstraintsAreAdded(t *testing.T) {
	p := analyzed(t, entry(t, "x = f32[8,6] parameter(0); ROOT r = f32[48] reshape(x)"))
	narrow := *p.Space
	narrow.Where = index.And(
		p.Space.Where,
		index.Require(p.Space.Dims[0].Size, 2, 12),
	)
	if all, got := slices.Collect(p.Space.Tilings()),
		fmt.Sprint(slices.Collect(narrow.Tilings())); got != "[[2] [3] [6] [12]]" || narrow.Count() != 4 {
		t.Errorf("%s of %v", got, all)
	}
	narrow.Where, narrow.Boxes = p.Space.Where,
		index.Require(p.Space.Dims[0].Size, 1, 3)
	if got := fmt.Sprint(slices.Collect(narrow.Boxed().Tilings())); got != "[[1] [2] [3]]" {
		t.Errorf("%s in boxes", got)
	}
}

func TestCheckSaysWhy(t *testing.T) {
	p := analyzed(t, entry(t, "x = f32[8,6] parameter(0); ROOT r = f32[48] reshape(x)"))
	var broken *Illegal
	if err := p.Check(Tiling{8}); !errors.As(err, &broken) ||
		!slices.Equal(broken.Tiling, Tiling{8}) {
		t.Errorf("8 of rows of 6: %v", err)
	} else if want := "tiling [8] breaks the constraint " + broken.Clause.String(); err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if err := p.Check(Tiling{12}); err != nil {
		t.Error(err)
	}
}

// Readers of one space do not disturb each other; go test -race watches.
func TestTilingsFromManyGoroutines(t *testing.T) {
	p := analyzed(t, entry(t, "x = f32[8,6,4] parameter(0); ROOT r = f32[48,4] reshape(x)"))
	var all sync.WaitGroup
	counts := make([]int64, 8)
	for k := range counts {
		all.Go(func() {
			for tiling := range p.Space.Tilings() {
				if p.Check(tiling) == nil {
					counts[k]++
				}
			}
		})
	}
	all.Wait()
	for _, n := range counts {
		if n != p.Space.Count() || n == 0 {
			t.Errorf("%v tilings, Count says %d", counts, p.Space.Count())
		}
	}
}

// Sample yields what Tilings does when it is asked for as many, and else as
// many different ones of them as it is asked for.
func TestSampleIsPartOfTheTilings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpace(t)
		all := slices.Collect(s.Tilings())
		n := rapid.IntRange(0, len(all)+1).Draw(t, "n")
		got := slices.Collect(s.Sample(n))
		if len(got) != min(n, len(all)) {
			t.Fatalf("%d of %d tilings asked for, %d yielded", n, len(all), len(got))
		}
		left := map[string]bool{}
		for _, tiling := range all {
			left[fmt.Sprint(tiling)] = true
		}
		for _, tiling := range got {
			if key := fmt.Sprint(tiling); !left[key] {
				t.Fatalf("%s is not a tiling, or yielded twice", key)
			} else {
				delete(left, key)
			}
		}
	})
}

// The first tilings of a large space differ in the last dimensions only; a
// sample has every size of every dimension, and the whole of most at once.
func TestSpreadCoversLargeSpaces(t *testing.T) {
	p := analyzed(t, entry(t, "x = f32[4096,512,8192,64] parameter(0); ROOT n = f32[4096,512,8192,64] negate(x)"))
	const n = 4096
	if p.Space.Count() <= n {
		t.Fatalf("%d tilings are not many", p.Space.Count())
	}
	seen, whole := map[string]int{}, 0
	for tiling := range p.Space.Sample(n) {
		wholes := 0
		for k, d := range p.Space.Dims {
			seen[fmt.Sprintf("%s=%d", d.Name, tiling[k])]++
			if tiling[k] == d.Extent {
				wholes++
			}
		}
		if wholes >= len(tiling)-1 {
			whole++
		}
	}
	for k, d := range p.Space.Dims {
		for _, size := range d.proposals() {
			if seen[fmt.Sprintf("%s=%d", d.Name, size)] < n/len(d.proposals())/2 {
				t.Errorf(
					"%s=%d is in %d of %d tilings",
					p.Space.Dims[k].Name, size,
					seen[fmt.Sprintf("%s=%d", d.Name, size)], n,
				)
			}
		}
	}
	if whole < n/256 {
		t.Errorf("%d of %d tilings are whole in all dimensions but one", whole, n)
	}
}
