package symtile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// An element is one element of a tile at some tile ids.
type element struct {
	index []int64
	there bool
}

// tileElements lists a tile's elements in row-major order at the tile ids in env.
func tileElements(t Tile, env map[index.Expr]int64) (all []element) {
	t.Each(env, func(index []int64, there bool) {
		all = append(all, element{slices.Clone(index), there})
	})
	return all
}

// positions calls visit with every combination of tile ids of a program.
func positions(p *Program, visit func(env map[index.Expr]int64)) {
	env := map[index.Expr]int64{}
	var walk func(k int)
	walk = func(k int) {
		if k == len(p.Space.Dims) {
			visit(env)
			return
		}
		d := p.Space.Dims[k]
		for t := range mustValue(d.Tiles) {
			env[d.Tid] = t
			walk(k + 1)
		}
	}
	walk(0)
}

// A score counts what the validator saw.
type score struct {
	exact, more, wrong int // accepted tilings: the operand's tile is right, claims masked elements too, is wrong
	refused, missed    int // refused tilings; those of them in which every tile is a box
	digits             int // accepted tilings in which a tile has digits
}

// TestReshapeValidator compares what the tiles of reshapes claim with what they
// stand for: for random extents, slices of the result and tilings, element n of
// the operand's tile is element n of the result's. Nothing wrong may be
// accepted; what is refused although every tile is a box has a ceiling.
func TestReshapeValidator(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 14))
	var s score
	rounds := 1500
	if testing.Short() {
		rounds = 400
	}
	for range rounds {
		from, to := randomReshape(rng)
		text := fmt.Sprintf("x = s8[%s] parameter(0); ROOT r = s8[%s] reshape(x)", extents(from), extents(to))
		if rng.IntN(3) == 0 {
			text = slicedReshape(rng, from, to)
		}
		validate(t, text, rng, &s)
		if t.Failed() {
			return
		}
	}
	t.Logf("%+v", s)
	if s.wrong > 0 ||
		s.more*1000 > s.exact*ceilingMore ||
		s.missed*1000 > s.refused*ceilingMissed {
		t.Errorf("more than %d in 1000 claim masked elements, or more than %d in 1000 refused are boxes", ceilingMore, ceilingMissed)
	}
}

// Ceilings of the validator; they only go down.
const (
	ceilingMore   = 1
	ceilingMissed = 45
)

func extents(dims []int64) string {
	text := fmt.Sprint(dims)
	return strings.ReplaceAll(text[1:len(text)-1], " ", ",")
}

// randomReshape makes two lists of extents with one product.
func randomReshape(rng *rand.Rand) (from, to []int64) {
	primes := []int64{2, 2, 2, 3, 3, 5, 7}
	n := 1 + rng.IntN(4)
	var factors []int64
	for range n {
		factors = append(factors, primes[rng.IntN(len(primes))])
	}
	group := func() (dims []int64) {
		rest := factors
		if rng.IntN(2) == 0 {
			rest = slices.Clone(factors)
			rng.Shuffle(len(rest), func(a, b int) {
				rest[a], rest[b] = rest[b], rest[a]
			})
		}
		for len(rest) > 0 {
			k := 1 + rng.IntN(len(rest))
			dims, rest = append(dims, hlo.Elements(rest[:k])), rest[k:]
			if rng.IntN(6) == 0 {
				dims = append(dims, 1)
			}
		}
		return dims
	}
	return group(), group()
}

func slicedReshape(rng *rand.Rand, from, to []int64) string {
	dims, ranges := make([]int64, len(to)), ""
	for k, n := range to {
		start := rng.Int64N(n)
		stride := 1 + rng.Int64N(2)
		limit := start + 1 + rng.Int64N(n-start)
		dims[k] = (limit - start + stride - 1) / stride
		ranges += fmt.Sprintf("[%d:%d:%d],", start, limit, stride)
	}
	return fmt.Sprintf(
		"x = s8[%s] parameter(0); r = s8[%s] reshape(x); ROOT s = s8[%s] slice(r), slice={%s}",
		extents(from), extents(to), extents(dims),
		ranges[:len(ranges)-1],
	)
}

// validate compares every tiling of a chain of reshapes and slices.
func validate(t *testing.T, text string, rng *rand.Rand, s *score) {
	m, err := hlo.Parse("f", []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	p, err := Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for range 12 {
		tiling := make(Tiling, len(p.Space.Dims))
		for k, d := range p.Space.Dims {
			tiling[k] = 1 + rng.Int64N(d.Extent)
		}
		checked := p.Check(tiling) == nil
		q, err := p.At(tiling)
		if checked != (err == nil) {
			t.Errorf("%s %v: Check says %v, At %v", text, tiling, checked, err)
			return
		}
		if err != nil {
			s.refused++
			if boxes(t, m.Entry, p, tiling) {
				s.missed++
				if testing.Verbose() && s.missed < 20 {
					t.Logf("refused though boxes: %s %v: %v", text, tiling, err)
				}
			}
			continue
		}
		switch claim := claimed(t, q); {
		case claim == "":
			s.exact++
		case claim == "more":
			s.more++
		default:
			s.wrong++
			t.Errorf("%s %v: %s\n%s", text, tiling, claim, q)
		}
		for _, op := range q.Ops {
			if op.Tile.HasDigits() {
				s.digits++
				break
			}
		}
	}
}

// claimed compares the elements of the parameter's tile with those of the
// root's: "" is equal, "more" claims elements that are masked in the result.
func claimed(t *testing.T, q *Program) (verdict string) {
	r := index.NewRing()
	maps, err := indexing.ParamMaps(r, q.Fusion, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := maps[0][0]
	root, param := q.Ops[q.Roots[0].Op].Tile, Tile(nil)
	for _, op := range q.Ops {
		if op.Code == hlo.OpParameter {
			param = op.Tile
		}
	}
	positions(q, func(env map[index.Expr]int64) {
		out, in := tileElements(root, env), tileElements(param, env)
		if len(out) != len(in) {
			verdict = fmt.Sprintf("%d elements from %d", len(out), len(in))
			return
		}
		for n, e := range out {
			switch {
			case !e.there:
				if in[n].there {
					if verdict == "" {
						verdict = "more"
					}
					if !inside(in[n].index, q.Fusion.Params[0].Shape.Dims) {
						verdict = fmt.Sprintf("element %d is outside of the operand at %v", n, in[n].index)
					}
				}
			case !in[n].there:
				verdict = fmt.Sprintf("element %d is masked", n)
			case !slices.Equal(m.Eval(e.index), in[n].index):
				verdict = fmt.Sprintf("element %d, index %v, is read at %v and not at %v", n, e.index, in[n].index, m.Eval(e.index))
			}
		}
	})
	return verdict
}

func inside(index, dims []int64) bool {
	for k, x := range index {
		if x < 0 || x >= dims[k] {
			return false
		}
	}
	return true
}

// boxes reports whether at every position the elements the result's tile needs are
// a box of the operand, in order, whose strides are the same everywhere.
func boxes(t *testing.T, c *hlo.Computation, p *Program, tiling Tiling) bool {
	r := index.NewRing()
	maps, err := indexing.ParamMaps(r, c, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := maps[0][0]
	space := &Space{Ring: r}
	var root Tile
	for k, d := range p.Space.Dims {
		space.Dims = append(
			space.Dims,
			newDim(r, k, d.Extent, tiling[k], Parallel, d.From),
		)
		root = append(root, space.Dims[k].tile())
	}
	ok := true
	strides := make([]int64, c.Params[0].Shape.Rank())
	positions(&Program{Space: space}, func(env map[index.Expr]int64) {
		var got [][]int64
		for _, e := range tileElements(root, env) {
			if e.there {
				got = append(got, m.Eval(e.index))
			}
		}
		ok = ok && isBox(got, strides)
	})
	return ok
}

// isBox reports whether the indices are a product of progressions in row-major
// order; strides holds those seen, 0 for none.
func isBox(got [][]int64, strides []int64) bool {
	want := [][]int64{nil}
	for d := range strides {
		var values []int64
		for _, x := range got {
			if !slices.Contains(values, x[d]) {
				values = append(values, x[d])
			}
		}
		for k := 1; k < len(values); k++ {
			step := values[k] - values[k-1]
			if step <= 0 || strides[d] != 0 && strides[d] != step {
				return false
			}
			strides[d] = step
		}
		var next [][]int64
		for _, w := range want {
			for _, v := range values {
				next = append(next, append(slices.Clone(w), v))
			}
		}
		want = next
	}
	return slices.EqualFunc(got, want, slices.Equal)
}
