package coalesce

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// TestAccess: testdata/access.txt; the arguments are the assignment, the input
// the layout.
func TestAccess(t *testing.T) {
	datadriven.RunTest(t, "testdata/access.txt", func(t *testing.T, d *datadriven.TestData) string {
		l, err := layout.Parse(d.Input)
		if err != nil {
			t.Fatal(err)
		}
		var a Assignment
		for _, arg := range d.CmdArgs {
			var xs []int64
			for _, v := range arg.Vals {
				var x int64
				fmt.Sscan(v, &x)
				xs = append(xs, x)
			}
			switch arg.Key {
			case "tile":
				a.Tile = xs
			case "threads":
				a.Threads = xs
			case "elements":
				a.Elements = xs
			case "order":
				a.Order = []int{}
				for _, x := range xs {
					a.Order = append(a.Order, int(x))
				}
			case "warp":
				a.Warp = xs[0]
			}
		}
		x, err := a.Of(index.NewRing(), l)
		if err != nil {
			return err.Error() + "\n"
		}
		return describe(x)
	})
}

func describe(x *Access) string {
	var b strings.Builder
	v := x.VectorWidth()
	fmt.Fprintf(&b, "%s\nvectors of %d, %s: no more because %s\n", x.Offset.Simplify(), v.Width, v.Proof, v.Why)
	for _, width := range slices.Compact([]int64{1, v.Width}) {
		c, err := x.Coalescing(width, layout.Sectors{})
		if err != nil {
			return err.Error() + "\n"
		}
		fmt.Fprintf(
			&b, "by %d: %d warps, %+v, once %+v, %d wasted, mean %.3g, worst %v warp %d %+v\n",
			width, c.Warps, c.PerRequest, c.PerWarp, c.Wasted(),
			c.Mean(), c.Worst.Block, c.Worst.Warp,
			c.Worst.PerRequest,
		)
	}
	for _, p := range x.Parts(index.RoleBlock) {
		fmt.Fprintf(&b, "part, vectors of %d: %s\n", p.VectorWidth().Width, p.Offset)
	}
	return b.String()
}

func randomAssignment(rnd *rand.Rand, l *layout.Layout) (a Assignment) {
	power := func(n int) int64 { return 1 << rnd.Intn(n) }
	for range l.Shape.Rank() {
		a.Threads, a.Elements = append(a.Threads, power(4)),
			append(a.Elements, power(3))
		a.Tile = append(a.Tile, int64(1+rnd.Intn(12)))
	}
	if rnd.Intn(2) == 0 {
		a.Order = rnd.Perm(l.Shape.Rank())
	}
	a.Warp = int64(1 + rnd.Intn(8))
	return a
}

// randomAccess is a small layout with an assignment.
func randomAccess(t *testing.T, rnd *rand.Rand) *Access {
	for {
		l, err := layout.Of(tiledShape(rnd))
		if err != nil {
			t.Fatal(err)
		}
		if l.Elements() > 2000 {
			continue
		}
		x, err := randomAssignment(rnd, l).Of(index.NewRing(), l)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// tiledShape is a small array with up to three tiles; −1 stands for *, which
// combines a dimension with the next.
func tiledShape(rnd *rand.Rand) hlo.Shape {
	s := hlo.Shape{DType: hlo.F32}
	for range rnd.Intn(5) {
		s.Dims = append(s.Dims, int64(1+rnd.Intn(6)))
	}
	s.Layout.MinorToMajor = rnd.Perm(len(s.Dims))
	rank := max(1, len(s.Dims))
	for range rnd.Intn(4) {
		tile := make([]int64, 1+rnd.Intn(rank))
		for i := range tile {
			tile[i] = int64(1 + rnd.Intn(4))
			if i < len(tile)-1 && rnd.Intn(4) == 0 {
				tile[i] = -1
			}
		}
		s.Layout.Tiles = append(s.Layout.Tiles, tile)
		rank++
	}
	return s
}

// forEach visits the indices of an array in row-major order.
func forEach(extents []int64, visit func(index []int64)) {
	if slices.Contains(extents, 0) {
		return
	}
	first, index := make([]int64, len(extents)), make([]int64, len(extents))
	for more := true; more; more = next(index, first, extents) {
		visit(index)
	}
}

// element is what the oracle knows of one access.
type element struct {
	block, thread, loop, element int64
	offset                       int64
}

// accessLoops is the oracle: which thread touches which element, by loops over the grid, the
// threads of a block, the rounds and the elements.
func accessLoops(x *Access) (out []element) {
	a, dims := x.Assignment, x.Layout.Shape.Dims
	inOrder := func(extents []int64) []int64 { // slowest first
		var e []int64
		for _, d := range a.Order {
			e = append([]int64{extents[d]}, e...)
		}
		return e
	}
	digit := func(index []int64, d int) int64 {
		return index[len(index)-1-slices.Index(a.Order, d)]
	}
	grid := make([]int64, len(dims))
	for d := range dims {
		grid[d] = (dims[d] + a.Tile[d] - 1) / a.Tile[d]
	}
	block := int64(0)
	forEach(grid, func(b []int64) {
		thread := int64(0)
		forEach(inOrder(a.Threads), func(th []int64) {
			loop := int64(0)
			forEach(inOrder(a.rounds()), func(lo []int64) {
				el := int64(0)
				forEach(inOrder(a.Elements), func(e []int64) {
					index, inside := make([]int64, len(dims)), true
					for d := range dims {
						in := (digit(lo, d)*a.Threads[d]+
							digit(th, d))*a.Elements[d] +
							digit(e, d)
						index[d] = b[d]*a.Tile[d] + in
						inside = inside && in < a.Tile[d] && index[d] < dims[d]
					}
					if inside {
						out = append(out, element{block, thread, loop, el, x.Layout.Linear(index) * 4})
					}
					el++
				})
				loop++
			})
			thread++
		})
		block++
	})
	return out
}

// TestAccessAgrees: the map agrees with the loops; sectors, lines and bytes
// are what sets of them count; classes of blocks lose nothing; the vector width
// is the largest that evaluation allows.
func TestAccessAgrees(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 60
	}
	rnd := rand.New(rand.NewSource(4))
	proofs := map[string]int{}
	for range n {
		x := randomAccess(t, rnd)
		want := accessLoops(x)
		checkElements(t, x, want)
		v := x.VectorWidth()
		proofs[fmt.Sprint(v.Proof, v.Width)]++
		if best := widestByLoops(x, want); best != v.Width {
			t.Fatalf("%s %+v: %s: vectors of %+v, want %d", x.Layout, x.Assignment, x.Offset, v, best)
		}
		for _, width := range slices.Compact([]int64{1, v.Width}) {
			checkCounts(t, x, want, width)
		}
		checkParts(t, x)
	}
	t.Log(proofs)
}

// checkParts: parts of the grid count together what the whole grid does, and
// none has narrower vectors.
func checkParts(t *testing.T, x *Access) {
	t.Helper()
	whole, err := x.Coalescing(1, layout.Sectors{})
	if err != nil {
		t.Fatal(err)
	}
	width, sum := x.VectorWidth().Width, Count{}
	for _, p := range x.Parts(index.RoleBlock) {
		c, err := p.Coalescing(1, layout.Sectors{})
		if err != nil {
			t.Fatal(err)
		}
		sum = sum.plus(c.PerRequest, 1)
		if v := p.VectorWidth(); v.Width < width {
			t.Fatalf("%s %+v: %s has vectors of %+v, the whole of %d", x.Layout, x.Assignment, p.Offset, v, width)
		}
	}
	if sum != whole.PerRequest {
		t.Fatalf("%s %+v: parts count %+v, the whole %+v", x.Layout, x.Assignment, sum, whole.PerRequest)
	}
}

func checkElements(t *testing.T, x *Access, want []element) {
	t.Helper()
	e, err := x.compile()
	if err != nil {
		t.Fatal(err)
	}
	var got []element
	grid := make([]int64, len(x.Blocks))
	for d := range grid {
		grid[d] = x.Blocks[d].Range().Len()
	}
	n := int64(0)
	forEach(grid, func(b []int64) {
		for w := range x.Warp.Range().Len() {
			for _, p := range e.points(slices.Clone(b), w) {
				got = append(got, element{
					n, w*x.Assignment.Warp + p.Lane,
					p.Loop, p.Element, p.Offset,
				})
			}
		}
		n++
	})
	sortElements(got)
	sortElements(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%s %+v: %s\n got %v\nwant %v", x.Layout, x.Assignment, x.Offset, got, want)
	}
}

func sortElements(es []element) {
	slices.SortFunc(es, func(a, b element) int {
		return slices.Compare(
			[]int64{a.block, a.thread, a.loop, a.element},
			[]int64{b.block, b.thread, b.loop, b.element},
		)
	})
}

// checkCounts counts with sets, warp by warp and request by request.
func checkCounts(t *testing.T, x *Access, es []element, v int64) {
	t.Helper()
	size := layout.Sectors{Sector: 32, Line: 128}
	type request struct{ block, warp, loop, vector int64 }
	type set struct{ bytes, sectors, lines map[int64]bool }
	requests, warps := map[request]*set{}, map[request]*set{}
	enter := func(m map[request]*set, k request, offset int64) {
		if m[k] == nil {
			m[k] = &set{
				map[int64]bool{}, map[int64]bool{}, map[int64]bool{},
			}
		}
		for b := offset; b < offset+4; b++ {
			m[k].bytes[b], m[k].sectors[b/32], m[k].lines[b/128] =
				true,
				true, true
		}
	}
	for _, e := range es {
		w := e.thread / x.Assignment.Warp
		enter(requests, request{e.block, w, e.loop, e.element / v}, e.offset)
		enter(warps, request{e.block, w, 0, 0}, e.offset)
	}
	sum := func(m map[request]*set) (c Count) {
		for _, s := range m {
			n := int64(len(s.bytes))
			c = c.plus(
				Count{
					1, n, int64(len(s.sectors)),
					int64(len(s.lines)), (n + 31) / 32,
				},
				1,
			)
		}
		return c
	}
	c, err := x.Coalescing(v, size)
	if err != nil {
		t.Fatal(err)
	}
	if c.PerRequest != sum(requests) ||
		c.PerWarp != sum(warps) ||
		c.Warps != int64(len(warps)) {
		t.Fatalf("%s %+v by %d: %+v\nwant %+v\nonce %+v", x.Layout, x.Assignment, v, c, sum(requests), sum(warps))
	}
}

// widestByLoops tries each power of two on every access.
func widestByLoops(x *Access, es []element) int64 {
	type thread struct{ block, thread, loop, element int64 }
	at := map[thread]int64{}
	for _, e := range es {
		at[thread{e.block, e.thread, e.loop, e.element}] = e.offset
	}
	fits := func(v int64) bool {
		for k := range at {
			first := thread{k.block, k.thread, k.loop, k.element / v * v}
			base, ok := at[first]
			if !ok || base%(4*v) != 0 {
				return false
			}
			for j := range v {
				first.element = k.element/v*v + j
				if o, ok := at[first]; !ok || o != base+4*j {
					return false
				}
			}
		}
		return true
	}
	best := int64(1)
	for v := int64(2); v <= 4 &&
		x.Assignment.elements()%v == 0 && fits(v); v *= 2 {
		best = v
	}
	return best
}

// TestPeel: the parts have the points of the domain, each once, with the same
// results; whatever part has no constraint needs none.
func TestPeel(t *testing.T) {
	n := 150
	if testing.Short() {
		n = 40
	}
	rnd := rand.New(rand.NewSource(5))
	whole, masked, points, free := 0, 0, int64(0), int64(0)
	for range n {
		x := randomAccess(t, rnd)
		m := x.Offset
		var along []index.Role
		if rnd.Intn(2) == 0 {
			along = []index.Role{index.RoleBlock}
		}
		parts := layout.Peel(m, along...)
		var extents []int64
		for _, v := range m.Vars() {
			extents = append(extents, v.Range().Len())
		}
		if p, _ := index.Product(extents); p > 20000 {
			continue
		}
		forEach(extents, func(vals []int64) { checkPoint(t, m, parts, vals, &points, &free) })
		for _, p := range parts {
			if p.Where.True() {
				whole++
			} else {
				masked++
			}
		}
	}
	t.Logf("%d parts without a mask, %d with one; %d of %d points without", whole, masked, free, points)
}

func checkPoint(
	t *testing.T, m index.Map,
	parts []index.Map, vals []int64, points, free *int64,
) {
	t.Helper()
	in := 0
	for _, p := range parts {
		if !p.Has(vals) {
			continue
		}
		in++
		if p.Where.True() {
			*free++
		}
		if got, want := p.Eval(vals), m.Eval(vals); !slices.Equal(got, want) {
			t.Fatalf("%s\npart %s\nat %v: %v, want %v", m, p, vals, got, want)
		}
	}
	if m.Has(vals) {
		*points++
	}
	if (in == 1) != m.Has(vals) || in > 1 {
		t.Fatalf("%s\nhas %v %v, parts that do %d of %v", m, vals, m.Has(vals), in, parts)
	}
}

// TestBlockClasses: counting one block for all that are like it is counting
// them all, on arrays with many blocks, tiles of layouts that are not theirs
// and ragged edges.
func TestBlockClasses(t *testing.T) {
	rnd := rand.New(rand.NewSource(6))
	blocks, classes := int64(0), 0
	for range 60 {
		s := hlo.Shape{
			DType: hlo.F32,
			Dims: []int64{
				int64(20 + rnd.Intn(60)), int64(100 + rnd.Intn(200)),
			},
		}
		s.Layout.MinorToMajor = rnd.Perm(2)
		for range rnd.Intn(3) {
			s.Layout.Tiles = append(s.Layout.Tiles, []int64{
				int64(1 + rnd.Intn(8)), int64(1 + rnd.Intn(32)),
			})
		}
		l, err := layout.Of(s)
		if err != nil {
			t.Fatal(err)
		}
		a := Assignment{
			Tile: []int64{
				int64(1 + rnd.Intn(9)), int64(4 + rnd.Intn(40)),
			},
			Threads:  []int64{2, 8},
			Elements: []int64{1, 2},
			Warp:     8,
		}
		x, err := a.Of(index.NewRing(), l)
		if err != nil {
			t.Fatal(err)
		}
		got, err := x.Coalescing(1, layout.Sectors{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := x.evaluator(128)
		if err != nil {
			t.Fatal(err)
		}
		grid := []int64{
			x.Blocks[0].Range().Len(),
			x.Blocks[1].Range().Len(),
		}
		blocks, classes = blocks+grid[0]*grid[1], classes+len(e.classes)
		want := Coalescing{Vector: 1, Size: got.Size}
		forEach(grid, func(b []int64) {
			for w := range x.Warp.Range().Len() {
				_, c, err := x.WarpOf(slices.Clone(b), w, 1, layout.Sectors{})
				if err != nil {
					t.Fatal(err)
				}
				want.add(c, 1)
			}
		})
		if got.PerRequest != want.PerRequest || got.PerWarp != want.PerWarp ||
			got.Warps != want.Warps ||
			ratio(got.Worst.PerRequest) != ratio(want.Worst.PerRequest) {
			t.Fatalf("%s %+v: %s\n got %+v\nwant %+v", l, a, x.Offset, got, want)
		}
	}
	t.Logf("%d blocks in %d classes", blocks, classes)
}
