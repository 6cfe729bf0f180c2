package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check/internal/aliased"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// largeText is a computation whose input is too large to be copied.
const largeText = `p = f32[4096,4200] parameter(0)
ROOT s = f32[4096,1] slice(p), slice={[0:4096], [7:8]}`

// A slicer is the kernel of largeText; a vandal overwrites an element of its input.
type slicer struct{ vandal bool }

func (slicer) Source() string { return "" }
func (slicer) Close() error   { return nil }
func (k slicer) Run(_ context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	for n := range int64(4096) {
		out[0].SetFloat(n, in[0].Float(n*4200+7))
	}
	if k.vandal {
		in[0].SetFloat(5*4200+7, 1e9)
	}
	return time.Microsecond, nil
}

// Large inputs are neither copied for a run nor made again for a race; a kernel that
// writes to them is found, and leaves no trace.
func TestLargeInputsAreShared(t *testing.T) {
	m, err := hlo.Parse("large", []byte(largeText))
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(t.Context(), m.Entry, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []slicer{{}, {vandal: true}, {}} {
		err := v.Verify(t.Context(), k)
		if got := fmt.Sprint(err); k.vandal && !strings.Contains(got, "wrote to an input") || !k.vandal && err != nil {
			t.Errorf("vandal %v: %v", k.vandal, err)
		}
	}
	b, err := v.NewBench(t.Context(), 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	last := v.cases[len(v.cases)-1]
	if len(b.sets) != 1 || &b.sets[0].In[0].Data[0] != &last.in[0].Data[0] {
		t.Errorf("%d sets with inputs of their own", len(b.sets))
	}
}

// A large input is the same for the same seed, and its pool does not repeat along any
// dimension of the usual kind.
func TestPooledInputs(t *testing.T) {
	m, err := hlo.Parse("large", []byte("p = bf16[8192,1024] parameter(0)\nROOT n = bf16[8192,1024] negate(p)"))
	if err != nil {
		t.Fatal(err)
	}
	var inputs [3]kernels.Buffer
	for k, seed := range []int64{1, 1, 2} {
		in, err := Inputs(m.Entry, Normals, seed)
		if err != nil {
			t.Fatal(err)
		}
		inputs[k] = in[0]
	}
	if !slices.Equal(inputs[0].Data, inputs[1].Data) || slices.Equal(inputs[0].Data, inputs[2].Data) {
		t.Error("the content does not depend on the seed alone")
	}
	sum, squares, same := 0.0, 0.0, 0
	const n = 8192 * 1024
	for k := range int64(n) {
		v := inputs[0].Float(k)
		sum += v
		squares += v * v
		if k+1<<20 < n && v == inputs[0].Float(k+1<<20) {
			same++
		}
	}
	if mean := sum / n; mean*mean > 1e-4 || squares/n < 0.99 || squares/n > 1.01 {
		t.Errorf("mean %v, variance %v", sum/n, squares/n)
	}
	if same > n/50 {
		t.Errorf("%d of %d elements are those of 1,024 rows below", same, n)
	}
}

// Samples lie on a grid, with the first and the last element, and as many combinations
// as there are samples.
func TestSampleGrid(t *testing.T) {
	m, err := hlo.Parse("g", []byte("p = f32[9000,5000] parameter(0)\nROOT n = f32[9000,5000] negate(p)"))
	if err != nil {
		t.Fatal(err)
	}
	in, err := Inputs(m.Entry, Normals, 1)
	if err != nil {
		t.Fatal(err)
	}
	all, err := samplesOf(t.Context(), m.Entry, in, nil, 1, sampleBudget)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[int64]bool{}
	for _, s := range all {
		rows[s.index[0]] = true
	}
	if len(all) != samplesPerOutput || len(rows) > 32 || !rows[0] || !rows[8999] {
		t.Errorf("%d samples in %d rows", len(all), len(rows))
	}
	if last := all[1].index; last[0] != 8999 || last[1] != 4999 {
		t.Errorf("the second is %v", last)
	}
}

// updateText is an update of a table.
const updateText = `p = bf16[700,4096] parameter(0)
g = bf16[700,4096] parameter(1)
ROOT s = bf16[700,4096] subtract(p, g)`

// An updater is a kernel of updateText, wrong in one way.
type updater struct {
	skip   int  // element that is not written, counted from 1
	vandal bool // writes to an input
	beyond bool // writes behind the output
	twice  bool // reads the second operand for the first, too
}

func (updater) Source() string { return "" }
func (updater) Close() error   { return nil }
func (k updater) Run(_ context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	p, g, s := kernels.Elements[uint16](in[0]), kernels.Elements[uint16](in[1]), kernels.Elements[uint16](out[0])
	if k.twice {
		p = g
	}
	for at := range s {
		if at+1 != k.skip {
			s[at] = kernels.Float32ToBF16(kernels.BF16ToFloat32(p[at]) - kernels.BF16ToFloat32(g[at]))
		}
	}
	if k.vandal {
		p[len(p)/2] = 12345
	}
	if k.beyond {
		*(*byte)(unsafe.Add(unsafe.Pointer(&s[len(s)-1]), 2)) = 1
	}
	return time.Millisecond, nil
}

// Arrays that repeat a pool find what arrays of their own find: a wrong value, an element
// anywhere that is not written, and writes to inputs and behind outputs. All the while the
// pages are taken from their addresses, as from a process that is too large.
func TestAliasedArrays(t *testing.T) {
	m, err := hlo.Parse("update", []byte(updateText))
	if err != nil {
		t.Fatal(err)
	}
	v := &Verifier{c: m.Entry}
	small := repetition{from: 1 << 20, owned: 3 << 19, blocks: 3, rotation: 1, long: time.Hour}
	if err := v.addAliased(t.Context(), m.Entry, small, 1); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	b, err := v.NewBench(t.Context(), 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		k    updater
		want string
	}{
		{updater{}, ""},
		{updater{skip: 1}, "was not written"},
		{updater{skip: 1_500_000}, "was not written"},
		{updater{skip: 700 * 4096}, "was not written"},
		{updater{vandal: true}, "wrote to an input"},
		{updater{}, ""},
		{updater{beyond: true}, "red zone after output 0"},
		{updater{twice: true}, "is wrong in"},
		{updater{}, ""},
	} {
		w, err := v.Examine(t.Context(), test.k)
		if err == nil {
			err = b.Rerun(t.Context(), test.k, w)
		}
		if got := fmt.Sprint(err); test.want == "" && err != nil || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %v, not %q", test.k, err, test.want)
		}
	}
	if parts := v.cases[0].aliases.parts; parts != 4 {
		t.Errorf("%d parts of 5.7 MB", parts)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// Single elements of inputs that repeat a pool are read there, and are those of the array.
func TestPlacesInPools(t *testing.T) {
	m, err := hlo.Parse("update", []byte(updateText))
	if err != nil {
		t.Fatal(err)
	}
	small := repetition{from: 1 << 20, owned: 3 << 19, blocks: 3, rotation: 1, long: time.Hour}
	a, in, err := newAliases(t.Context(), m.Entry, small, 1)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	place := a.place(in)
	for k, b := range in {
		for at := int64(0); at < b.Shape.Elements(); at += 4093 {
			pool, in := place(k, at)
			if x, y := pool.Float(in), b.Float(at); x != y || len(pool.Data) != 3*aliased.Block {
				t.Fatalf("element %d of input %d: %v in the pool, %v in the array", at, k, x, y)
			}
		}
	}
}

// A look at the resident set releases pages if it is over the limit and has grown; who looks
// at the context of a run looks at it, through contexts that are made of it.
func TestReleaser(t *testing.T) {
	released, resident := 0, int64(0)
	r := &releaser{
		limit: 1000, growth: 200,
		release:  func() error { released++; resident -= 300; return nil },
		resident: func() int64 { return resident },
		began:    time.Now().Add(-time.Hour),
	}
	during, cancel := context.WithTimeout(r.during(t.Context()), time.Hour)
	defer cancel()
	for n, step := range []struct{ grows, released int64 }{
		{1000, 0}, {1, 1}, {299, 1}, {1, 2}, {900, 3}, {150, 3}, {100, 4},
	} {
		resident += step.grows
		r.looked.Store(0)
		stillReleasing(during).Done()
		if int64(released) != step.released {
			t.Errorf("step %d: %d releases, not %d, of %d bytes", n, released, step.released, resident)
		}
	}
	if ctx := stillReleasing(t.Context()); ctx != t.Context() {
		t.Error("a context without a releaser is another one")
	}
}

// What a check holds at the same time is bounded: inputs of as many cases as there are, the
// outputs and the reference's values. What would be more has one case, or repeats its pages
// and is sampled.
func TestHeldBytes(t *testing.T) {
	for text, want := range map[string]struct {
		cases int64
		large bool
	}{
		"p = f32[1024] parameter(0)\nROOT n = f32[1024] negate(p)":                                                             {2, false},
		"p = f32[16384,4096] parameter(0)\nROOT n = f32[16384,4096] negate(p)":                                                 {2, true},
		"p = bf16[16384,12288] parameter(0)\nROOT n = bf16[16384,12288] negate(p)":                                             {2, true},
		"p = s8[16384,45000] parameter(0)\nROOT n = s8[16384,1] slice(p), slice={[0:16384], [7:8]}":                            {1, true},
		"p = f32[16384,4096] parameter(0)\nz = f32[] constant(0)\nROOT r = f32[] reduce(p, z), dimensions={0,1}, to_apply=add": {2, false},
		"p = f32[32768,8192] parameter(0)\nz = f32[] constant(0)\nROOT r = f32[] reduce(p, z), dimensions={0,1}, to_apply=add": {0, true},
	} {
		m, err := hlo.Parse("held", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		c := m.Entry
		cases := int64(2)
		for cases > 0 && (heldBytes(c, cases) > maxHeldBytes || arrayBytes(c) > maxOwnBytes) {
			cases--
		}
		if cases != want.cases || tooLargeForAll(c) != want.large {
			t.Errorf("%d cases, sampled %v, held %d:\n%s", cases, tooLargeForAll(c), heldBytes(c, cases), text)
		}
	}
}
