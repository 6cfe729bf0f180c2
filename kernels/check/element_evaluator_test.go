package check

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Single elements are those of Reference, to the bit.
func TestSpotsAreTheReferences(t *testing.T) {
	forCorpus(t, spots)
	for _, text := range []string{
		`x = f32[6,5,4] parameter(0)
y = f32[6,4,3] parameter(1)
d = f32[6,5,3] dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
r = f32[3,5,6]{0,1,2} transpose(d), dimensions={2,1,0}
z = f32[] constant(0.5)
p = f32[7,5,11] pad(r, z), padding=1_3x0_0x0_0_1
ROOT s = f32[3,5,4] slice(p), slice={[1:7:2], [0:5], [2:10:2]}`,
		`x = f32[2,9,7,6] parameter(0)
k = f32[3,2,3,8] parameter(1)
ROOT c = f32[2,5,8,8] convolution(x, k), window={size=3x2 stride=2x1 pad=1_1x1_1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f, feature_group_count=2`,
		`x = s32[2,24,24,32] parameter(0)
k = s32[3,3,16,18] parameter(1)
ROOT c = s32[2,24,24,18] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2`,
		`x = f32[5,9,6] parameter(0)
k = f32[3,6,4] parameter(1)
ROOT c = f32[5,15,4] convolution(x, k), window={size=3 lhs_dilate=2 rhs_dilate=2 pad=1_1}, dim_labels=b0f_0io->b0f`,
		`x = f32[8,9] parameter(0)
z = f32[] constant(-2)
ROOT r = f32[4,9] reduce-window(x, z), window={size=3x3 stride=2x1 pad=1_0x1_1}, to_apply=maximum`,
		`x = f32[20,6,5] parameter(0)
i = s32[3,2] parameter(1)
ROOT g = f32[3,2,4] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0,2}, index_vector_dim=1, slice_sizes={1,2,4}`,
		`x = f32[12,7] parameter(0)
i = s32[] parameter(1)
j = s32[] parameter(2)
u = f32[3,4] parameter(3)
w = f32[12,7] dynamic-update-slice(x, u, i, j)
s = f32[5,2] dynamic-slice(w, j, i), dynamic_slice_sizes={5,2}
ROOT t = (f32[12,7], f32[5,2]) tuple(w, s)`,
		`x = s8[4,8] parameter(0)
y = s8[8,4]{0,1} parameter(1)
i = s32[4,4] iota(), iota_dimension=1
d = s32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
r = s32[4,4] reverse(d), dimensions={0}
c = s32[8,4] concatenate(r, i), dimensions={0}
f = s32[32] reshape(c)
ROOT o = (s32[8,4], s32[32]) tuple(c, f)`,
		`x = f32[8,16] parameter(0)
y = f32[16,12] parameter(1)
b = f32[8,12] parameter(2)
d = f32[8,12] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
s = f32[8,12] add(d, b)
h = f32[8,12] tanh(s)
p = pred[8,12] compare(s, b), direction=GT
c = f32[8,12] select(p, h, s)
e = f32[8,8] dot(c, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}
g = f32[8,8] logistic(e)
l = bf16[8,8] convert(g)
ROOT t = (f32[8,12], bf16[8,8], f32[8,8]) tuple(c, l, e)`,
		// Random numbers as JAX makes them, and types of another width.
		`x = u32[9,7] parameter(0)
k = u32[] constant(9)
n = u32[9,7] broadcast(k), dimensions={}
s = u32[9,7] shift-right-logical(x, n)
o = u32[] constant(1065353216)
w = u32[9,7] broadcast(o), dimensions={}
m = u32[9,7] or(s, w)
f = f32[9,7] bitcast-convert(m)
u = f32[9,7] negate(f)
h = s16[9,7,2] bitcast-convert(f)
b = f32[9,7] bitcast-convert(h)
c = s8[9,7,2,2] bitcast-convert(h)
ROOT t = (f32[9,7], s16[9,7,2], f32[9,7], s8[9,7,2,2]) tuple(u, h, b, c)`,
		// Both products read x, one its rows and the other its columns.
		`x = f32[5,5] parameter(0)
y = f32[5,2] parameter(1)
d = f32[5,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
e = f32[5,2] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
ROOT t = (f32[5,2], f32[5,2]) tuple(d, e)`,
		`add { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[6,8] parameter(0)
m = pred[6,8] parameter(1)
i = f32[] constant(-inf)
w = f32[6,8] broadcast(i), dimensions={}
s = f32[6,8] select(m, x, w)
e = f32[6,8] exponential(s)
z = f32[] constant(0)
r = f32[6] reduce(e, z), dimensions={1}, to_apply=add
q = f32[6,8] broadcast(r), dimensions={0}
ROOT o = f32[6,8] divide(e, q) }`,
		`best { a = f32[] parameter(0)
j = s32[] parameter(1)
b = f32[] parameter(2)
k = s32[] parameter(3)
g = pred[] compare(a, b), direction=GE
v = f32[] select(g, a, b)
n = s32[] select(g, j, k)
ROOT c = (f32[], s32[]) tuple(v, n) }
ENTRY e { x = f32[6,9] parameter(0)
y = f32[6,9] exponential(x)
i = s32[6,9] iota(), iota_dimension=1
z = f32[] constant(0)
o = s32[] constant(0)
r = (f32[6], s32[6]) reduce(y, i, z, o), dimensions={1}, to_apply=best
v = f32[6] get-tuple-element(r), index=0
n = s32[6] get-tuple-element(r), index=1
l = f32[6] log(v)
ROOT t = (f32[6], s32[6], f32[6]) tuple(v, n, l) }`,
		`add { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] add(a, b) }
twice { p = f32[10,4] parameter(0)
a = f32[10,4] sine(p)
ROOT m = f32[10,4] multiply(a, a) }
ENTRY e { x = f32[10,4] parameter(0)
i = s32[3,1] parameter(1)
u = f32[3,4] parameter(2)
y = f32[10,4] cosine(x)
s = f32[10,4] scatter(y, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
f = f32[10,4] fusion(s), kind=kLoop, calls=twice
k = s32[10,4] convert(f)
g = f32[10,4] convert(k)
ROOT o = f32[10,4] add(f, g) }`,
	} {
		m, err := hlo.Parse("spot", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		spots(t, m.Entry)
	}
}

func spots(t *testing.T, c *hlo.Computation) {
	in, err := Inputs(c, Normals, 3)
	if err != nil {
		t.Fatal(err)
	}
	want, err := reference.Interpret(c, in)
	if err != nil {
		t.Fatal(err)
	}
	s, rng := reference.NewElementEvaluator(context.Background(), c, in, 1<<40), rand.New(rand.NewPCG(1, 2))
	for k, out := range want {
		for range 40 {
			at := rng.Int64N(out.Shape.Elements())
			v, err := s.Output(k, at)
			if err != nil {
				t.Fatal(err)
			}
			x, y := v, out.Float(out.At(reference.Unravel(at, out.Shape.Dims)))
			if math.Float64bits(x) != math.Float64bits(y) && (x == x || y == y) {
				t.Fatalf("output %d at %d: %v, reference %v", k, at, x, y)
			}
		}
	}
	movedSpots(t, c, in)
	boundedSpots(t, c, in)
}

// boundedSpots compares intervals of single elements with those of whole arrays.
func boundedSpots(t *testing.T, c *hlo.Computation, in []kernels.Buffer) {
	all, err := reference.Bounds(t.Context(), c, in, reference.Accuracy{})
	if err != nil {
		return
	}
	rng := rand.New(rand.NewPCG(5, 6))
	at := make([][]int64, len(all))
	for k, x := range all {
		for range min(20, len(x.Lo)) {
			at[k] = append(at[k], rng.Int64N(int64(len(x.Lo))))
		}
	}
	got, err := reference.BoundsAt(t.Context(), c, in, nil, reference.Accuracy{}, at, 1<<24)
	if err != nil {
		t.Logf("no intervals of single elements: %v", err)
		return
	}
	same := func(x, y float64) bool { return x == y || x != x && y != y }
	for k, x := range all {
		for n, p := range at[k] {
			if !same(got[k].Lo[n], x.Lo[p]) || !same(got[k].Hi[n], x.Hi[p]) {
				t.Fatalf("output %d at %d: %v to %v, in whole arrays %v to %v",
					k, p, got[k].Lo[n], got[k].Hi[n], x.Lo[p], x.Hi[p])
			}
		}
	}
}

// movedSpots compares deviations of single elements with those of whole arrays.
func movedSpots(t *testing.T, c *hlo.Computation, in []kernels.Buffer) {
	const evaluations = 3
	ctx := t.Context()
	moved, err := reference.Deviations(ctx, c, in, 5, evaluations)
	if err != nil {
		t.Fatal(err)
	}
	s := reference.NewElementDeviations(ctx, c, in, 5, evaluations, 1<<40)
	rng := rand.New(rand.NewPCG(3, 4))
	for k, all := range moved {
		for range min(20, len(all)) {
			at := rng.Int64N(int64(len(all)))
			x, err := s.Output(k, at)
			if err != nil {
				t.Fatal(err)
			}
			if x != all[at] {
				t.Fatalf("output %d at %d moves by %v, in whole arrays by %v", k, at, x, all[at])
			}
		}
	}
}

// normalizedText is a product of what a norm computes of each row.
const normalizedText = `add { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[96,256] parameter(0)
y = f32[256,80] parameter(1)
z = f32[] constant(0)
q = f32[96,256] multiply(x, x)
r = f32[96] reduce(q, z), dimensions={1}, to_apply=add
t = f32[96] rsqrt(r)
b = f32[96,256] broadcast(t), dimensions={0}
n = f32[96,256] multiply(x, b)
h = f32[96,256] tanh(n)
ROOT d = f32[96,80] dot(h, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }`

// Arrays that elements read again and again are evaluated as wholes, which costs less; the
// elements are the same to the bit.
func TestSharedArraysAreEvaluatedOnce(t *testing.T) {
	m, err := hlo.Parse("normalized", []byte(normalizedText))
	if err != nil {
		t.Fatal(err)
	}
	spots(t, m.Entry)
	in, err := Inputs(m.Entry, Normals, 3)
	if err != nil {
		t.Fatal(err)
	}
	s := reference.NewElementEvaluator(t.Context(), m.Entry, in, 1<<40)
	for at := range int64(96 * 80) {
		if _, err := s.Output(0, at); err != nil {
			t.Fatal(err)
		}
	}
	// Row by row it is 96·256·7 operations and more.
	if n := s.Spent(); n > 100_000 {
		t.Errorf("%d operations", n)
	}
}

// Elements of a scatter into a table that is too large to be evaluated as a whole need the
// updates that meet them only.
func TestElementsOfLargeScatters(t *testing.T) {
	m, err := hlo.Parse("scatter", []byte(`add { a = bf16[] parameter(0)
b = bf16[] parameter(1)
ROOT c = bf16[] add(a, b) }
ENTRY e { x = bf16[16384,4096] parameter(0)
i = s32[3,1] parameter(1)
u = bf16[3,4096] parameter(2)
n = bf16[16384,4096] negate(x)
s = bf16[16384,4096] scatter(n, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
ROOT o = bf16[16384,4096] abs(s) }`))
	if err != nil {
		t.Fatal(err)
	}
	var in []kernels.Buffer
	for _, p := range m.Entry.Params {
		in = append(in, kernels.Buffer{Shape: p.Shape, Data: make([]byte, p.Shape.Bytes())})
	}
	// Rows 7 and 16383 are met, 7 twice.
	for k, row := range []int64{7, 16383, 7} {
		in[1].SetInt(int64(k), row)
		in[2].SetFloat(int64(k*4096+5), float64(10*(k+1)))
	}
	in[0].SetFloat(7*4096+5, 1)
	s := reference.NewElementEvaluator(t.Context(), m.Entry, in, 1<<20)
	for at, want := range map[int64]float64{
		7*4096 + 5: 39, 7*4096 + 6: 0, 16383*4096 + 5: 20, 8*4096 + 5: 0,
	} {
		if x, err := s.Output(0, at); err != nil || x != want {
			t.Errorf("element %d: %v, %v, not %v", at, x, err, want)
		}
	}
}

// What would take too much memory as a whole is an error that says so.
func TestReferenceHoldsLittle(t *testing.T) {
	m, err := hlo.Parse("sort", []byte(`less { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[33554432] parameter(0)
ROOT s = f32[33554432] sort(x), dimensions={0}, to_apply=less }`))
	if err != nil {
		t.Fatal(err)
	}
	in := []kernels.Buffer{{Shape: m.Entry.Params[0].Shape, Data: make([]byte, 1<<27)}}
	_, err = reference.NewElementEvaluator(t.Context(), m.Entry, in, 1<<40).Output(0, 5)
	if err == nil || !strings.Contains(err.Error(), "s (f32[33554432] sort): the reference would hold more than 3.36e+07 numbers") {
		t.Error(err)
	}
}
