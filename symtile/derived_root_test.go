package symtile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// TestOutputsAreStoredOnce stores all outputs of random fusions, of which every
// one moves the elements of the same array, tile program by tile program: with
// every legal tiling each element of each output is stored exactly once, and
// holds the element of the parameter that the indexing map says.
func TestOutputsAreStoredOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 6))
	rounds := 300
	if testing.Short() {
		rounds = 80
	}
	var s stores
	for range rounds {
		text := randomOutputs(rng)
		s.try(t, text, rng)
		if t.Failed() {
			return
		}
	}
	t.Logf("%+v", s)
	if s.apart*10 > s.outputs {
		t.Errorf("%d of %d outputs are tiled apart from the first", s.apart, s.outputs)
	}
}

// stores counts what TestOutputsAreStoredOnce has seen.
type stores struct {
	programs, tilings, digits int
	// outputs are those besides the dominant ones; apart are those of them that
	// have no tiles made of those of others.
	outputs, apart int
}

// try analyses a fusion, and stores its outputs with up to 40 legal tilings.
func (s *stores) try(t *testing.T, text string, rng *rand.Rand) {
	m, err := hlo.Parse("f", []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	p, err := Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	s.programs++
	s.outputs += len(p.Roots) - 1
	s.apart += len(p.apart)
	for range 40 {
		tiling := make(Tiling, len(p.Space.Dims))
		for k, d := range p.Space.Dims {
			tiling[k] = 1 + rng.Int64N(max(1, d.Extent))
			if rng.IntN(3) == 0 {
				tiling[k] = max(1, d.Extent)
			}
		}
		legal := p.Check(tiling) == nil
		q, err := p.At(tiling)
		if legal != (err == nil) {
			t.Errorf("%s %v: Check says %v, At %v", text, tiling, legal, err)
			return
		}
		if err != nil {
			continue
		}
		s.tilings++
		if slices.ContainsFunc(q.Ops, func(op Op) bool { return op.Tile.HasDigits() }) {
			s.digits++
		}
		if wrong := storedWrong(t, q); wrong != "" {
			t.Errorf("%s %v: %s\n%s", text, tiling, wrong, q)
			return
		}
	}
}

// storedWrong stores the outputs of a concrete program of one parameter, and
// says what is not as it should be; "" where all is.
func storedWrong(t *testing.T, q *Program) string {
	outs := outputs(q.Fusion)
	maps := make([]index.Map, len(outs))
	times := make([][]int, len(outs))
	for k, o := range outs {
		all, err := indexing.ParamMaps(index.NewRing(), q.Fusion, k)
		if err != nil {
			t.Fatal(err)
		}
		maps[k] = all[0][0]
		times[k] = make([]int, o.Shape.Elements())
	}
	wrong := ""
	positions(q, func(env map[index.Expr]int64) {
		values := tileValues(q, env)
		for _, r := range q.Roots {
			if slices.ContainsFunc(r.Once, func(d int) bool { return env[q.Space.Dims[d].Tid] != 0 }) {
				continue
			}
			for n, e := range tileElements(q.Ops[r.Op].Tile, env) {
				if !e.there {
					continue
				}
				times[r.Output][linearIndex(e.index, outs[r.Output].Shape.Dims)]++
				want := linearIndex(maps[r.Output].Eval(e.index), q.Fusion.Params[0].Shape.Dims)
				if values[r.Op][n] != want {
					wrong = fmt.Sprintf("output %d at %v is element %d, not %d", r.Output, e.index, values[r.Op][n], want)
				}
			}
		}
	})
	for k := range outs {
		for at, n := range times[k] {
			if n != 1 {
				wrong = fmt.Sprintf("element %d of output %d is stored %d times", at, k, n)
			}
		}
	}
	return wrong
}

// tileValues is, for each op of a tile program, the linear index in the parameter
// of each element of its tile; −1 where it is masked.
func tileValues(q *Program, env map[index.Expr]int64) [][]int64 {
	values := make([][]int64, len(q.Ops))
	for n, op := range q.Ops {
		sizes := op.Tile.Sizes()
		switch op.Code {
		case hlo.OpParameter:
			for _, e := range tileElements(op.Tile, env) {
				at := int64(-1)
				if e.there {
					at = linearIndex(e.index, op.Instr.Shape.Dims)
				}
				values[n] = append(values[n], at)
			}
		case hlo.OpTranspose:
			values[n] = moved(values[op.Args[0]], sizes, q.Ops[op.Args[0]].Tile.Sizes(), func(at, from []int64) {
				for k, p := range op.Perm {
					from[p] = at[k]
				}
			})
		case hlo.OpReverse:
			values[n] = moved(values[op.Args[0]], sizes, sizes, func(at, from []int64) {
				copy(from, at)
				for _, d := range op.Instr.Attrs.Dimensions {
					from[d] = sizes[d] - 1 - at[d]
				}
			})
		default:
			values[n] = values[op.Args[0]]
		}
	}
	return values
}

// linearIndex is the position of an index in a row-major array.
func linearIndex(index, dims []int64) (n int64) {
	for k, x := range index {
		n = n*dims[k] + x
	}
	return n
}

// moved is a dense array of the sizes whose element at an index is that of
// another one, of sizes of its own, at the index that source sets.
func moved(v, sizes, fromSizes []int64, source func(at, from []int64)) []int64 {
	out := make([]int64, 0, len(v))
	from := make([]int64, len(fromSizes))
	at := make([]int64, len(sizes))
	for range hlo.Elements(sizes) {
		source(at, from)
		out = append(out, v[linearIndex(from, fromSizes)])
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < sizes[k] {
				break
			}
			at[k] = 0
		}
	}
	return out
}

// randomOutputs makes a fusion of one parameter with two to four outputs, each
// made by moves and elementwise operations of the parameter or another one.
func randomOutputs(rng *rand.Rand) string {
	var b strings.Builder
	first, _ := randomReshape(rng)
	dims := [][]int64{first}
	fmt.Fprintf(&b, "v0 = s8[%s] parameter(0)\n", extents(first))
	for n := 1; n <= 2+rng.IntN(6); n++ {
		from := max(0, n-1-rng.IntN(3))
		next, op := randomMove(rng, dims[from])
		dims = append(dims, next)
		fmt.Fprintf(&b, "v%d = s8[%s] %s\n", n, extents(next), fmt.Sprintf(op, fmt.Sprint("v", from)))
	}
	var names, shapes []string
	for _, k := range rng.Perm(len(dims) - 1)[:min(len(dims)-1, 2+rng.IntN(3))] {
		names = append(names, fmt.Sprint("v", k+1))
		shapes = append(shapes, fmt.Sprintf("s8[%s]", extents(dims[k+1])))
	}
	fmt.Fprintf(&b, "ROOT t = (%s) tuple(%s)", strings.Join(shapes, ", "), strings.Join(names, ", "))
	return b.String()
}

// randomMove is an operation on an array %s, and the extents of its result.
func randomMove(rng *rand.Rand, dims []int64) (next []int64, op string) {
	switch rng.IntN(6) {
	case 0:
		return dims, "negate(%s)"
	case 1:
		return dims, "copy(%s)"
	case 2:
		return dims, fmt.Sprintf("reverse(%%s), dimensions={%d}", rng.IntN(len(dims)))
	case 3:
		perm := rng.Perm(len(dims))
		for _, p := range perm {
			next = append(next, dims[p])
		}
		return next, fmt.Sprintf("transpose(%%s), dimensions={%s}", strings.Trim(strings.ReplaceAll(fmt.Sprint(perm), " ", ","), "[]"))
	}
	return regrouped(rng, dims), "reshape(%s)"
}

// regrouped is other extents with the same product.
func regrouped(rng *rand.Rand, dims []int64) (next []int64) {
	rest := hlo.Elements(dims)
	for rest > 1 && rng.IntN(4) > 0 {
		var divisors []int64
		for d := int64(1); d <= rest; d++ {
			if rest%d == 0 {
				divisors = append(divisors, d)
			}
		}
		d := divisors[rng.IntN(len(divisors))]
		next, rest = append(next, d), rest/d
	}
	return append(next, rest)
}

// TestOutputsShareTiles counts the elements of all tiles of fusions of two
// outputs, of which one moves what the other computes: no more than where one
// works on the other element by element.
func TestOutputsShareTiles(t *testing.T) {
	const a = "x = f32[64,96] parameter(0); a = f32[64,96] exponential(x); "
	negated := leastElements(t, a+"r = f32[64,96] negate(a); ROOT t = (f32[64,96], f32[64,96]) tuple(a, r)")
	for _, text := range []string{
		a + "r = f32[64,8,12] reshape(a); ROOT t = (f32[64,96], f32[64,8,12]) tuple(a, r)",
		a + "r = f32[128,48] reshape(a); ROOT t = (f32[64,96], f32[128,48]) tuple(a, r)",
		a + "r = f32[48,128] reshape(a); ROOT t = (f32[64,96], f32[48,128]) tuple(a, r)",
		a + "r = f32[6144] reshape(a); ROOT t = (f32[64,96], f32[6144]) tuple(a, r)",
		a + "r = f32[96,64] transpose(a), dimensions={1,0}; ROOT t = (f32[64,96], f32[96,64]) tuple(a, r)",
		a + "r = f32[64,96] reverse(a), dimensions={1}; ROOT t = (f32[64,96], f32[64,96]) tuple(a, r)",
		a + "r = f32[64,96]{0,1} bitcast(a); ROOT t = (f32[64,96], f32[64,96]{0,1}) tuple(a, r)",
		a + "r = f32[32,192] bitcast(a); ROOT t = (f32[32,192], f32[64,96]) tuple(r, a)",
	} {
		if n := leastElements(t, text); n != negated {
			t.Errorf("%s: %d elements, not %d", text, n, negated)
		}
	}
}

// leastElements is the number of elements in all tiles of a fusion, by the
// tiling with the fewest of at least 8 tile programs. A move inside of a tile is
// not counted, other operations are.
func leastElements(t *testing.T, text string) int64 {
	t.Helper()
	m, err := hlo.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Fatal(err)
	}
	least := int64(math.MaxInt64)
	for tiling := range p.Space.Tilings() {
		q, err := p.At(tiling)
		if err != nil {
			t.Fatal(err)
		}
		if q.Programs() < 8 {
			continue
		}
		n := int64(0)
		for _, op := range q.Ops {
			if op.Code == hlo.OpParameter || op.Code == hlo.OpExponential {
				n += q.Programs() * op.Tile.Elements()
			}
		}
		least = min(least, n)
	}
	return least
}

// TestOutputsApart analyses outputs of which one has no tiles made of those of
// the other: both are stored once.
func TestOutputsApart(t *testing.T) {
	derive := resultPropagators[hlo.OpReshape]
	defer func() { resultPropagators[hlo.OpReshape] = derive }()
	resultPropagators[hlo.OpReshape] = func(_ *builder, i *hlo.Instr, _ int, _ Tile) (Tile, error) {
		return nil, refuse(i, "test", "no tile is made of another")
	}
	var s stores
	s.try(
		t, "x = s8[6,8] parameter(0); a = s8[6,8] negate(x); r = s8[4,12] reshape(a); ROOT t = (s8[6,8], s8[4,12]) tuple(a, r)",
		rand.New(rand.NewPCG(1, 1)),
	)
	if s.apart != 1 || s.tilings < 30 {
		t.Errorf("%+v", s)
	}
}
