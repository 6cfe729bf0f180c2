package rowkernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A maker makes a kernel of arrays of f32 with rows of a length, step by step.
type maker struct {
	*Kernel
	rows, cols int64
}

func newMaker(rows, cols int64) *maker {
	return &maker{
		rows: rows, cols: cols,
		Kernel: &Kernel{
			Extents: []int64{rows, cols},
			Loads:   map[*Value]*Access{}, Stores: map[*Value]*Access{},
			Scalars: map[*Value]bool{}, Broadcasts: map[*Value]*Value{},
		},
	}
}

// access adds an access of whole rows, or of strides.
func (m *maker) access(v *Value, to map[*Value]*Access, strides ...int64) *Value {
	if strides == nil {
		strides = []int64{m.cols, 1}
	}
	s := &Access{Value: v, Strides: strides, External: true}
	to[v] = s
	m.Accesses = append(m.Accesses, s)
	return v
}

// inHalves makes the elements of all accesses a type of two bytes.
func (m *maker) inHalves(d hlo.DType) {
	for _, s := range m.Accesses {
		s.Half = d
	}
}

func (m *maker) load() *Value { return m.access(&Value{}, m.Loads) }

func (m *maker) store(v *Value, strides ...int64) {
	m.access(v, m.Stores, strides...)
	m.Stores[v].NonTemporal = true
	m.StoreOrder = append(m.StoreOrder, v)
}

func (m *maker) constant(x float64) *Value {
	bits := math.Float32bits(float32(x))
	return &Value{Constant: &bits}
}

func (m *maker) do(op hlo.Opcode, args ...*Value) *Value {
	return m.instr(&hlo.Instr{Op: op, Shape: hlo.Shape{DType: hlo.F32}}, args...)
}

func (m *maker) instr(i *hlo.Instr, args ...*Value) *Value {
	out := &Value{}
	m.Items = append(m.Items, Item{Op: &Op{Instr: i, Out: out, Args: args}})
	return out
}

// reduce returns the reduction of rows, repeated in all elements of a row.
func (m *maker) reduce(monoid hlo.Opcode, x *Value, init float64) (scalar, wide *Value) {
	scalar, wide = &Value{}, &Value{}
	m.Items = append(m.Items, Item{Reduction: &Reduction{
		Monoid: monoid, Arg: x, Out: scalar, Init: m.constant(init), PerRow: true,
	}})
	m.Scalars[scalar] = true
	m.Broadcasts[wide] = scalar
	return scalar, wide
}

// nested needs a register for each of so many terms.
func (m *maker) nested(terms int) {
	x, sum := m.load(), m.constant(1)
	for n := range terms {
		sum = m.do(hlo.OpAdd, m.do(hlo.OpMultiply, x, m.constant(float64(n))), sum)
	}
	_, largest := m.reduce(hlo.OpMaximum, sum, 0)
	m.store(m.do(hlo.OpAdd, sum, largest))
}

// wideKernels are kernels by name. Those with one operation are as many as there are.
func wideKernels() map[string]func(m *maker) {
	all := map[string]func(m *maker){
		"norm": func(m *maker) {
			x := m.load()
			_, sum := m.reduce(hlo.OpAdd, x, 0)
			less := m.do(hlo.OpSubtract, x, m.do(hlo.OpMultiply, sum, m.constant(1.0/64)))
			_, squares := m.reduce(hlo.OpAdd, m.do(hlo.OpMultiply, less, less), 0)
			m.store(m.do(hlo.OpMultiply, less, m.do(hlo.OpRsqrt, m.do(hlo.OpAdd, squares, m.constant(1e-5)))))
		},
		"quotient": func(m *maker) {
			x := m.load()
			_, sum := m.reduce(hlo.OpAdd, m.do(hlo.OpAbs, x), 0)
			m.store(m.do(hlo.OpDivide, x, sum))
		},
		"gelu": func(m *maker) {
			x := m.load()
			cube := m.do(hlo.OpMultiply, x, m.do(hlo.OpMultiply, x, x))
			inner := m.do(hlo.OpMultiply, m.constant(0.8), m.do(hlo.OpAdd, x, m.do(hlo.OpMultiply, cube, m.constant(0.044))))
			m.store(m.do(hlo.OpMultiply, x, m.do(hlo.OpAdd, m.do(hlo.OpTanh, inner), m.constant(1))))
		},
		"select": func(m *maker) {
			x, y := m.load(), m.load()
			for _, direction := range []string{"EQ", "NE", "LT", "LE", "GT", "GE"} {
				f32 := &hlo.Instr{Op: hlo.OpParameter, Shape: hlo.Shape{DType: hlo.F32}}
				less := m.instr(&hlo.Instr{
					Op: hlo.OpCompare, Shape: hlo.Shape{DType: hlo.Pred},
					Operands: []*hlo.Instr{f32, f32}, Attrs: hlo.Attrs{Direction: direction},
				}, x, y)
				x = m.do(hlo.OpAdd, x, m.do(hlo.OpSelect, less, y, m.constant(3)))
			}
			m.store(x)
		},
		"spilled": func(m *maker) { m.nested(13) },
		"crowded": func(m *maker) { m.nested(20) }, // more than 16 registers hold
		"columns": func(m *maker) {
			out := &Value{}
			m.Items = append(m.Items, Item{Reduction: &Reduction{
				Monoid: hlo.OpAdd, Arg: m.do(hlo.OpLogistic, m.load()), Out: out, AcrossRows: true,
			}})
			m.access(out, m.Stores, 0, 1)
		},
	}
	for _, d := range []hlo.DType{hlo.BF16, hlo.F16} {
		all["halves "+d.String()] = func(m *maker) {
			x, row := m.load(), m.access(&Value{}, m.Loads, 0, 1)
			i := &hlo.Instr{Op: hlo.OpMultiply, Shape: hlo.Shape{DType: d}}
			y := m.instr(i, m.instr(i, x, row), x)
			if d == hlo.BF16 { // whose loads to all lanes are the only ones
				y = m.instr(i, y, m.access(&Value{}, m.Loads, 1, 0))
			}
			m.store(y)
			m.inHalves(d)
		}
	}
	for op := range vector.Reductions {
		all["rows "+string(op)] = func(m *maker) {
			scalar, _ := m.reduce(op, m.load(), float64(vector.Reductions[op].Identity))
			m.access(scalar, m.Stores, 1, 0)
		}
	}
	for _, op := range []hlo.Opcode{
		hlo.OpExponential, hlo.OpExponentialMinusOne, hlo.OpLog, hlo.OpLogPlusOne, hlo.OpTanh, hlo.OpLogistic,
		hlo.OpErf, hlo.OpErfInv, hlo.OpSqrt, hlo.OpRsqrt, hlo.OpNegate, hlo.OpAbs,
	} {
		all[string(op)] = func(m *maker) { m.store(m.do(op, m.load())) }
	}
	for _, op := range []hlo.Opcode{hlo.OpMaximum, hlo.OpMinimum, hlo.OpDivide, hlo.OpSubtract} {
		all[string(op)] = func(m *maker) { m.store(m.do(op, m.load(), m.load())) }
	}
	return all
}

// Code with vectors of 64 bytes, emulated and, on a processor that has them, run, computes
// what this processor computes with vectors of 32, to the bit: also of NaN, infinities, zeros and denormals, and in what is
// left of a row. So does that of 32 emulated, which tests the emulator.
func TestWide(t *testing.T) {
	if err := amd64.Supported(); err != nil {
		t.Skip(err)
	}
	kernels := wideKernels()
	for _, cols := range []int64{32, 64, 80, 149} {
		for name, make := range kernels {
			if strings.HasPrefix(name, "halves") && cols%vector.Lanes != 0 {
				continue // no instruction masks them
			}
			for _, unroll := range []int64{0, 1, 4} {
				m := newMaker(5, cols)
				make(m)
				testWide(t, fmt.Sprintf("%s of %d, unroll %d", name, cols, unroll), m.Kernel, unroll)
			}
		}
		testWide(t, fmt.Sprintf("softmax of %d", cols), softmax(5, cols), 0)
	}
}

func testWide(t *testing.T, name string, k *Kernel, unroll int64) {
	k.Plan()
	arena := layOut(k)
	arrays := randomArrays(k)
	options := Options{Prefetch: -1, Ahead: -1, Unroll: unroll, record: true}
	code, err := k.Compile(options)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	want := native(t, code, arrays, arena)
	for _, wide := range []bool{false, true} {
		options.Wide = wide
		used := usesWide(t, k, options)
		if used != wide {
			t.Errorf("%s, wide %t: vectors of 64 bytes are used: %t", name, wide, used)
		}
		options.Wide = used
		got, err := emulated(k, options, arrays, arena)
		if err != nil {
			t.Fatalf("%s, wide %t: %v", name, wide, err)
		}
		compareArrays(t, fmt.Sprintf("%s, wide %t, emulated", name, wide), want, got)
		if code, err := k.Compile(options); err != nil {
			t.Fatal(err)
		} else if wide && amd64.RunsWide() {
			compareArrays(t, name+", wide", want, native(t, code, arrays, arena))
		}
	}
}

// A wide round has two vectors, for which constants stay in as many registers as for two that
// a plan asks for: without that a gelu takes twice the time on a Zen 5.
func TestWideRoundsKeepConstants(t *testing.T) {
	code := map[int64]string{}
	for _, unroll := range []int64{2, 4} {
		m := newMaker(5, 64)
		wideKernels()["gelu"](m)
		m.Plan()
		c, err := m.Compile(Options{Prefetch: -1, Ahead: -1, Unroll: unroll, Wide: true})
		if err != nil {
			t.Fatal(err)
		}
		code[unroll] = string(c.Text)
	}
	if code[2] != code[4] {
		t.Error("four vectors in turn are other code than two, which are all of a wide round")
	}
}

func usesWide(t *testing.T, k *Kernel, o Options) bool {
	code, err := k.Compile(o)
	if err != nil {
		t.Fatal(err)
	}
	return code.Wide
}

// layOut gives the values of a kernel that are in scratch their places. It returns the
// bytes of the scratch.
func layOut(k *Kernel) int64 {
	at := int64(0)
	for _, v := range k.Saved() {
		v.Offset = at
		at += (4*k.cols() + 63) &^ 63
	}
	k.Slab().Offset = at
	return at + 4*k.SlabLength()
}

// randomArrays are the contents of the arrays of the accesses.
func randomArrays(k *Kernel) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	special := []float32{
		0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)),
		1e-40, -1e-40, 1, -1, 100, -100, 3e38,
	}
	var arrays [][]byte
	for _, s := range k.Accesses {
		data := alignedBytes(int(4 * k.rows() * k.cols()))
		for n := range k.rows() * k.cols() {
			// One element of a row, in the upper half of a vector, is another.
			x, one := float32(4*r.NormFloat64()), n%k.cols() == 8
			switch row := n / k.cols(); {
			case row == 1 && r.IntN(8) == 0:
				x = special[r.IntN(len(special))]
			case row == 2 && one:
				x = float32(math.NaN())
			case row == 3 && one, row == 4 && !one:
				x = 0
			case row >= 3:
				x = special[1]
			}
			if s.Half != 0 { // any bits, most of them numbers near 1
				bits := math.Float32bits(x) >> 16
				if s.Half == hlo.F16 {
					bits = bits&0x83ff | uint32(12+r.IntN(5))<<10
				}
				if r.IntN(16) == 0 {
					bits = uint32(r.IntN(1 << 16))
				}
				binary.LittleEndian.PutUint16(data[2*n:], uint16(bits))
				continue
			}
			binary.LittleEndian.PutUint32(data[4*n:], math.Float32bits(x))
		}
		arrays = append(arrays, data)
	}
	return arrays
}

// alignedBytes are n bytes, aligned to 64.
func alignedBytes(n int) []byte {
	data := make([]byte, n+64)
	skip := -uintptr(unsafe.Pointer(&data[0])) & 63
	return data[skip:][:n:n]
}

// copied are copies of arrays.
func copied(arrays [][]byte) (list [][]byte) {
	for _, x := range arrays {
		y := alignedBytes(len(x))
		copy(y, x)
		list = append(list, y)
	}
	return list
}

// native runs the code on copies of arrays, which it returns.
func native(t *testing.T, code *Code, arrays [][]byte, arena int64) [][]byte {
	loaded, err := amd64.Load(code.Text)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	f, err := loaded.Func(0)
	if err != nil {
		t.Fatal(err)
	}
	code.Func, code.CachedFunc = &f, &f
	arrays = copied(arrays)
	var addresses Addresses
	for n, x := range arrays {
		addresses[n] = unsafe.Pointer(&x[0])
	}
	scratch := alignedBytes(int(arena))
	code.Run(new(Args), unsafe.Pointer(&scratch[0]), &addresses, func() bool { return false })
	return arrays
}

// emulated runs the instructions of a kernel on copies of arrays, which it returns.
func emulated(k *Kernel, o Options, arrays [][]byte, arena int64) ([][]byte, error) {
	a, err := k.emit(o, slices.ContainsFunc(k.moving(), k.storesAligned))
	if err != nil {
		return nil, err
	}
	code, constants := a.Recorded()
	m := &machine{}
	m.constants = m.place(constants)
	arrays = copied(arrays)
	words := []uint64{uint64(k.rows()), m.place(make([]byte, arena))}
	for _, x := range arrays {
		words = append(words, m.place(x))
	}
	var args []byte
	for _, w := range words {
		args = binary.LittleEndian.AppendUint64(args, w)
	}
	return arrays, m.run(code, m.place(args))
}

func compareArrays(t *testing.T, name string, want, got [][]byte) {
	t.Helper()
	for n := range want {
		if at := differ(want[n], got[n]); at >= 0 {
			t.Fatalf("%s: element %d of array %d is %#x, not %#x", name, at, n,
				binary.LittleEndian.Uint32(got[n][4*at:]), binary.LittleEndian.Uint32(want[n][4*at:]))
		}
	}
}

// differ is the first element in which arrays differ, or −1.
func differ(x, y []byte) int {
	for n := 0; n < len(x); n += 4 {
		if binary.LittleEndian.Uint32(x[n:]) != binary.LittleEndian.Uint32(y[n:]) {
			return n / 4
		}
	}
	return -1
}

// Rows of two arrays that are read at two places in turn have the bits of rows in order, for
// even and odd numbers of rows, several calls and what is left of a row; what computes a
// function, or reads one array, stays in order.
func TestReadPlaces(t *testing.T) {
	if err := amd64.Supported(); err != nil {
		t.Skip(err)
	}
	kernels := wideKernels()
	for _, size := range [][2]int64{{4, 64}, {5, 80}, {7, 149}, {16, 1 << 13}, {21, 1 << 13}} {
		for name, places := range map[string]int64{"subtract": 2, "maximum": 2, "divide": 1, "abs": 1} {
			if size[1]%(2*vector.Lanes) != 0 {
				places = 1 // the rows cannot be stored past the caches
			}
			m := newMaker(size[0], size[1])
			kernels[name](m)
			testReadPlaces(t, fmt.Sprintf("%s of %v", name, size), m.Kernel, places)
		}
	}
}

func testReadPlaces(t *testing.T, name string, k *Kernel, places int64) {
	k.Plan()
	arena := layOut(k)
	arrays := randomArrays(k)
	options := Options{Prefetch: -1, Ahead: 0, Places: 2, record: true}
	var want [][]byte
	for _, ahead := range []int64{0, -1} {
		options.Ahead = ahead
		code, err := k.Compile(options)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := native(t, code, arrays, arena)
		if ahead == 0 {
			want = got
			continue
		}
		compareArrays(t, name, want, got)
		if b := k.Blocking(); b.Rows != places {
			t.Errorf("%s: %d rows at a time, not %d", name, b.Rows, places)
		}
		got, err = emulated(k, options, arrays, arena)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		compareArrays(t, name+", emulated", want, got)
	}
}

// Rows that a store rounds to bf16 by an instruction, emulated and, on a processor that has it,
// run, are those of the operations, but for zeros in place of denormal numbers.
func TestRoundedStores(t *testing.T) {
	if err := amd64.Supported(); err != nil {
		t.Skip(err)
	}
	f32 := &hlo.Instr{Op: hlo.OpParameter, Shape: hlo.Shape{DType: hlo.F32}}
	for _, op := range []hlo.Opcode{hlo.OpConvert, hlo.OpAbs} {
		m := newMaker(5, 80)
		x := m.load()
		y := m.instr(&hlo.Instr{Op: op, Shape: hlo.Shape{DType: hlo.BF16}, Operands: []*hlo.Instr{f32}}, x)
		m.store(y)
		m.Stores[y].Half, m.Stores[y].Flushes, m.Stores[y].NonTemporal = hlo.BF16, true, false
		testRounded(t, string(op), m.Kernel, op == hlo.OpAbs)
	}
}

// testRounded is TestRoundedStores of a kernel whose operand is bf16, or not.
func testRounded(t *testing.T, name string, k *Kernel, short bool) {
	k.Plan()
	arena := layOut(k)
	arrays := randomArrays(k)
	if short {
		for n := 0; n < len(arrays[0]); n += 4 {
			clear(arrays[0][n : n+2])
		}
	}
	options := Options{Prefetch: -1, Ahead: -1, record: true}
	code, err := k.Compile(options)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	want := native(t, code, arrays, arena)
	flushBF16(want[1])
	options.Wide, options.RoundsHalves = true, true
	got, err := emulated(k, options, arrays, arena)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	flushBF16(got[1]) // what is left of a row
	compareArrays(t, name+", emulated", want, got)
	if code, err = k.Compile(options); err != nil {
		t.Fatal(err)
	}
	if amd64.RoundsHalves() {
		got = native(t, code, arrays, arena)
		flushBF16(got[1])
		compareArrays(t, name, want, got)
	}
}

// flushBF16 makes zeros of denormal bf16.
func flushBF16(data []byte) {
	for n := 0; n < len(data); n += 2 {
		x := binary.LittleEndian.Uint16(data[n:])
		if x&0x7f80 == 0 {
			binary.LittleEndian.PutUint16(data[n:], x&0x8000)
		}
	}
}
