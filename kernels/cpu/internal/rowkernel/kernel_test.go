package rowkernel

import (
	"math"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// softmax is the kernel of e^(x − m)/Σ e^(x − m) over rows of a length, for the
// maximum m of the row.
func softmax(rows, cols int64) *Kernel {
	number := func(x float64) *uint32 {
		bits := math.Float32bits(float32(x))
		return &bits
	}
	f32 := hlo.Shape{DType: hlo.F32}
	values := make([]*Value, 10)
	for k := range values {
		values[k] = &Value{ID: k}
	}
	x, low, largest, wideMax, less := values[0], values[1], values[2], values[3], values[4]
	e, zero, sum, wideSum, quotient := values[5], values[6], values[7], values[8], values[9]
	low.Constant = number(math.Inf(-1))
	zero.Constant = number(0)
	wide := []int64{cols, 1}
	load := &Access{Value: x, Strides: wide, External: true}
	store := &Access{Value: quotient, Strides: wide, External: true}
	op := func(code hlo.Opcode, out *Value, args ...*Value) Item {
		instr := &hlo.Instr{Op: code, Shape: f32}
		return Item{Op: &Op{Instr: instr, Out: out, Args: args}}
	}
	reduce := func(monoid hlo.Opcode, arg, out, init *Value) Item {
		return Item{Reduction: &Reduction{
			Monoid: monoid, Arg: arg, Out: out, Init: init, PerRow: true,
		}}
	}
	return &Kernel{
		Extents: []int64{rows, cols},
		Items: []Item{
			reduce(hlo.OpMaximum, x, largest, low),
			op(hlo.OpSubtract, less, x, wideMax),
			op(hlo.OpExponential, e, less),
			reduce(hlo.OpAdd, e, sum, zero),
			op(hlo.OpDivide, quotient, e, wideSum),
		},
		Accesses:   []*Access{load, store},
		Loads:      map[*Value]*Access{x: load},
		Stores:     map[*Value]*Access{quotient: store},
		StoreOrder: []*Value{quotient},
		Scalars:    map[*Value]bool{largest: true, sum: true},
		Broadcasts: map[*Value]*Value{wideMax: largest, wideSum: sum},
	}
}

// A softmax takes three sweeps, of which the last finds the powers that the second
// saved. Its powers are scaled, since nothing else reads them.
func TestSoftmaxPlan(t *testing.T) {
	k := softmax(64, 1000)
	k.Plan()
	if k.Sweeps() != 3 {
		t.Errorf("%d sweeps", k.Sweeps())
	}
	if saved := k.Saved(); len(saved) != 1 || saved[0].ID != 5 {
		t.Errorf("saved values: %v", saved)
	}
	if len(k.scaledExps) != 1 || !k.reductions[0].Relaxed {
		t.Error("the softmax was not recognized")
	}
}

// A power that is stored as well is exact.
func TestSoftmaxWithStoredPowers(t *testing.T) {
	k := softmax(64, 1000)
	e := k.Items[2].Op.Out
	store := &Access{Value: e, Strides: []int64{1000, 1}, External: true}
	k.Accesses = append(k.Accesses, store)
	k.Stores[e] = store
	k.StoreOrder = append(k.StoreOrder, e)
	k.Plan()
	if len(k.scaledExps) != 0 || k.reductions[0].Relaxed {
		t.Error("stored powers are scaled")
	}
	if len(k.Saved()) != 0 {
		t.Error("stored powers are saved a second time")
	}
}

// Distances of prefetches are bytes: of softmax, whose rows are read several times, a row but
// at least 4 KiB, and 1 KiB where a row does not stay in the first cache; or a row and what suits
// the processor.
func TestDistancesAreBytes(t *testing.T) {
	for cols, want := range map[int64]int64{64: 4096, 512: 4096, 1024: 4096, 1536: 6144, 1 << 16: 1024} {
		for _, rows := range []int64{2, 4096} {
			k := softmax(rows, cols)
			k.Plan()
			if got := k.defaultAhead(Options{}); got != want {
				t.Errorf("%d rows of %d: %d bytes, not %d", rows, cols, got, want)
			}
			want := 4*cols + 8<<10
			if 4*cols > longRow {
				want = 8 << 10
			}
			if got := k.defaultAhead(Options{Fetch: 8 << 10}); got != want {
				t.Errorf("%d rows of %d, 8 KiB ahead: %d bytes, not %d", rows, cols, got, want)
			}
		}
	}
}

// Where what suits the processor is near, a row and that much are fetched as far as the first
// cache holds them beside what sweeps read again, by the last two of three sweeps.
func TestNearDistances(t *testing.T) {
	o := Options{Fetch: 2 << 10, First: 32 << 10}
	for cols, want := range map[int64]int64{64: 4096, 512: 4096, 1024: 6144, 2048: 10240, 4096: 16384, 1 << 16: 2048} {
		k := softmax(64, cols)
		k.Plan()
		if got := k.defaultAhead(o); got != want {
			t.Errorf("rows of %d: %d bytes, not %d", cols, got, want)
		}
		sweeps := []int{1}
		if 512 <= cols && cols <= 2048 {
			sweeps = []int{1, 2}
		}
		if got := k.fetchingSweeps(o); !slices.Equal(got, sweeps) {
			t.Errorf("rows of %d are fetched in the sweeps %v, not %v", cols, got, sweeps)
		}
	}
}

// A processor may be told another distance beyond a row than within one, and the sweep that
// fetches rows of a few KiB.
func TestToldDistances(t *testing.T) {
	o := Options{Fetch: 4 << 10, FetchPastRow: 2 << 10, FetchPass: 2, First: 48 << 10}
	for cols, want := range map[int64]int64{64: 4096, 1024: 6144, 2048: 10240, 1 << 16: 4096} {
		k := softmax(64, cols)
		k.Plan()
		if got := k.defaultAhead(o); got != want {
			t.Errorf("rows of %d: %d bytes, not %d", cols, got, want)
		}
		if got := k.fetchingSweeps(o); !slices.Equal(got, []int{1}) {
			t.Errorf("rows of %d are fetched in the sweeps %v, not the middle one", cols, got)
		}
	}
	k := softmax(64, 1024)
	k.Plan()
	o.FetchPass = 3
	if got := k.fetchingSweeps(o); !slices.Equal(got, []int{2}) {
		t.Errorf("rows are fetched in the sweeps %v, not the last one", got)
	}
}

// Rows of one array that are written are fetched to the second cache, too, beyond what is
// fetched to the first, where the processor says how far.
func TestSecondDistances(t *testing.T) {
	o := Options{Fetch: 2 << 10, FetchSecond: 8 << 10, First: 32 << 10}
	two := newMaker(64, 1024)
	two.store(two.do(hlo.OpTanh, two.do(hlo.OpAdd, two.load(), two.load())))
	sum := newMaker(64, 1024)
	wideKernels()["rows add"](sum)
	for name, c := range map[string]struct {
		kernel *Kernel
		want   int64
	}{
		"softmax":    {softmax(64, 1024), 14 << 10},
		"two arrays": {two.Kernel, 0},
		"sum":        {sum.Kernel, 0},
	} {
		c.kernel.Plan()
		if got := c.kernel.secondAhead(o, c.kernel.defaultAhead(o)); got != c.want {
			t.Errorf("%s: %d bytes ahead to the second cache, not %d", name, got, c.want)
		}
		if got := c.kernel.secondAhead(Options{}, 6<<10); got != 0 {
			t.Errorf("%s: %d bytes ahead where the processor does not say", name, got)
		}
	}
}

// The default plan prefetches to both caches, and one that says how far to the first only.
func TestSecondPrefetches(t *testing.T) {
	for ahead, want := range map[int64]int{-1: 1, 4096: 0} {
		k := softmax(64, 1024)
		k.Plan()
		a, err := k.emit(Options{Prefetch: -1, Ahead: ahead, Fetch: 8 << 10, FetchSecond: 8 << 10, record: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		got := map[amd64.Op]int{}
		instrs, _ := a.Recorded()
		for _, i := range instrs {
			got[i.Op]++
		}
		if got[amd64.PREFETCHT0] == 0 || got[amd64.PREFETCHT1] != want*got[amd64.PREFETCHT0] {
			t.Errorf("ahead=%d: %d prefetches to the first cache, %d to the second", ahead, got[amd64.PREFETCHT0], got[amd64.PREFETCHT1])
		}
	}
}

// Rows from memory that are only reduced are read at the places of the processor.
func TestSumPlaces(t *testing.T) {
	for _, fromMemory := range []bool{true, false} {
		m := newMaker(64, 1024)
		sum, _ := m.reduce(hlo.OpAdd, m.load(), 0)
		m.access(sum, m.Stores, 1, 0)
		m.Plan()
		if _, err := m.Compile(Options{Prefetch: -1, Ahead: -1, SumPlaces: 3, FromMemory: fromMemory}); err != nil {
			t.Fatal(err)
		}
		want := int64(1)
		if fromMemory {
			want = 3
		}
		if got := m.Blocking(); got.Rows != want || got.Concurrent != want {
			t.Errorf("from memory %t: %+v, not %d rows", fromMemory, got, want)
		}
	}
}

// Rows from memory that are only reduced, with little arithmetic, are read in vectors of 32 bytes
// where the processor does that best.
func TestSumBits(t *testing.T) {
	for _, c := range []struct {
		bits       int64
		fromMemory bool
		op         hlo.Opcode
		wide       bool
	}{
		{256, true, hlo.OpAbs, false}, {256, false, hlo.OpAbs, true},
		{0, true, hlo.OpAbs, true}, {256, true, hlo.OpTanh, true},
	} {
		m := newMaker(64, 1024)
		sum, _ := m.reduce(hlo.OpAdd, m.do(c.op, m.load()), 0)
		m.access(sum, m.Stores, 1, 0)
		m.Plan()
		code, err := m.Compile(Options{Prefetch: -1, Ahead: -1, SumBits: c.bits, FromMemory: c.fromMemory, Wide: true})
		if err != nil || code.Wide != c.wide {
			t.Errorf("%+v: vectors of 64 bytes are used: %t (%v)", c, !c.wide, err)
		}
	}
}

// Sums of columns are fetched ahead at each of their places where what suits the processor is
// near and they come from memory, and not at all where nobody has measured it.
func TestColumnDistances(t *testing.T) {
	m := newMaker(64, 1024)
	wideKernels()["columns"](m)
	m.Plan()
	for fetch, want := range map[int64]int64{0: 0, 2 << 10: columnFetch, 8 << 10: 0} {
		if got := m.defaultAhead(Options{Fetch: fetch, FromMemory: true}); got != want {
			t.Errorf("%d bytes suit the processor: %d bytes ahead, not %d", fetch, got, want)
		}
		if got := m.defaultAhead(Options{Fetch: fetch}); got != 0 {
			t.Errorf("%d bytes suit the processor: %d bytes ahead in the caches", fetch, got)
		}
		if got := m.defaultAhead(Options{Fetch: fetch, FromMemory: true, SumPlaces: 3}); got != 0 {
			t.Errorf("%d bytes suit the processor, which fetches sums itself: %d bytes ahead", fetch, got)
		}
	}
}

// Compiling works on every platform and is deterministic.
func TestCompileIsDeterministic(t *testing.T) {
	var first string
	for range 5 {
		k := softmax(64, 1000)
		k.Plan()
		code, err := k.Compile(Options{Prefetch: -1, Ahead: -1})
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(code.Text)
		}
		if string(code.Text) != first {
			t.Fatal("the same kernel has other code")
		}
	}
}
