package reference

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Intervals that are computed strip by strip are those that are computed array by array, to
// the bit, whatever the operands are.
func TestStripsAreCorners(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 2*intervalStrip + 37
	operands := map[hlo.Opcode]int{hlo.OpConvert: 1}
	for op := range floatUnary {
		operands[op] = 1
	}
	for op := range floatBinary {
		operands[op] = 2
	}
	types := []hlo.DType{
		hlo.F32, hlo.BF16, hlo.F8E4M3FN, hlo.F64,
	}
	for op, count := range operands {
		for _, d := range types {
			var x []span
			for range count {
				x = append(x, randomSpan(rng, d, n))
			}
			i := instructionOn(op, x)
			e := bounding{run: newEvaluation(t.Context())}
			compareStrips(t, e, i, x)
			e.keepsWide = true
			compareStrips(t, e, i, x)
		}
	}
}

// compareStrips compares the intervals of an instruction by strips with those by arrays,
// and the values: instructions that have a strip are computed by it in both ways, but
// for their corners.
func compareStrips(
	t *testing.T, e bounding, i *hlo.Instr, x []span,
) {
	t.Helper()
	got, err := e.strips(i, x, stripOf(i))
	if err != nil {
		t.Fatal(err)
	}
	want, err := e.corners(i, x)
	if err != nil {
		t.Fatal(err)
	}
	by := e.errorOf(i, e.units(i))
	want.widen(
		i.Shape, e.wide(i),
		func(_ int64, m float64) float64 {
			return by.of(m)
		},
	)
	want.value, err = e.run.elementwise(i, values(x))
	if err != nil {
		t.Fatal(err)
	}
	pairs := [][2]value{
		{got.value, want.value},
		{got.lo, want.lo},
		{got.hi, want.hi},
	}
	for _, p := range pairs {
		for k, v := range p[0].floats {
			if w := p[1].floats[k]; !same(v, w) {
				t.Fatalf(
					"%s: element %d is %v, by arrays %v",
					i.Op, k, v, w,
				)
			}
		}
	}
}

// same reports whether two numbers are equal, or both NaN.
func same(x, y float64) bool {
	return x == y || x != x && y != y
}

// instructionOn is an operation on parameters with the types of spans.
func instructionOn(
	op hlo.Opcode, x []span,
) *hlo.Instr {
	i := &hlo.Instr{Op: op, Shape: x[0].shape}
	for _, s := range x {
		o := &hlo.Instr{
			Op:    hlo.OpParameter,
			Shape: s.shape,
		}
		i.Operands = append(i.Operands, o)
	}
	return i
}

// randomSpan is numbers of all kinds, with small intervals, wide ones, none, and those of
// what can be anything or has to be NaN.
func randomSpan(rng *rand.Rand, d hlo.DType, n int64) span {
	shape := hlo.Shape{DType: d, Dims: []int64{n}}
	s := span{}
	for _, v := range []*value{&s.value, &s.lo, &s.hi} {
		*v = value{shape: shape, floats: make([]float64, n)}
	}
	kinds := []float64{
		0, math.Copysign(0, -1), 1,
		math.Inf(1), math.Inf(-1), math.NaN(),
	}
	for k := range s.floats {
		scale := rng.IntN(20) - 10
		v := math.Ldexp(rng.NormFloat64(), scale)
		if rng.IntN(8) == 0 {
			v = kinds[rng.IntN(len(kinds))]
		}
		s.floats[k] = v
		widths := []float64{
			0, 1e-6 * math.Abs(v), 3,
		}
		width := widths[rng.IntN(3)]
		s.setEnds(int64(k), v-width, v+width)
		if rng.IntN(16) == 0 {
			s.free(int64(k))
		}
	}
	roundStrip(d, s.floats)
	return s
}

// TestSumsWithInfinities: an infinite term decides a sum, unless the others may overflow to an
// infinity of the other sign on the way, as a product of the largest numbers does.
func TestSumsWithInfinities(t *testing.T) {
	m, err := hlo.Parse("sum", []byte(`f { x = f32[2] parameter(0)
w = f32[2] parameter(1)
ROOT d = f32[] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0} }`))
	if err != nil {
		t.Fatal(err)
	}
	c := m.Entry
	inf := math.Inf(1)
	for _, k := range []struct {
		x, w     [2]float64
		anything bool
	}{
		{[2]float64{inf, 3}, [2]float64{1, 2}, false},
		{[2]float64{inf, math.MaxFloat32}, [2]float64{1, -1}, false},
		{[2]float64{inf, math.MaxFloat32}, [2]float64{1, -2}, true},
		{[2]float64{3, math.MaxFloat32}, [2]float64{1, -2}, true},
	} {
		all, err := Bounds(t.Context(), c, []kernels.Buffer{vectorOf(t, k.x[:]), vectorOf(t, k.w[:])}, Accuracy{})
		if err != nil {
			t.Fatal(err)
		}
		if got := all[0].Contains(0, math.NaN()); got != k.anything || !all[0].Contains(0, inf) && k.x[0] == inf {
			t.Errorf("%v·%v: within %v, %v", k.x, k.w, all[0].Lo, all[0].Hi)
		}
	}
}

// vectorOf is an array of f32.
func vectorOf(t *testing.T, x []float64) kernels.Buffer {
	b, err := kernels.NewBuffer(hlo.Shape{DType: hlo.F32, Dims: []int64{int64(len(x))}})
	if err != nil {
		t.Fatal(err)
	}
	for n, v := range x {
		b.SetFloat(int64(n), v)
	}
	return b
}
