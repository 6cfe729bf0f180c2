package gemm

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// shorten makes A (bit 0), B (bit 1) or both the elements of a size as they lie in memory:
// the low bytes of integers, the high ones of f32.
func (x *Product[T]) shorten(which, size int) {
	for k, from := range []*Matrix[T]{&x.A, &x.B} {
		if which>>k&1 == 0 {
			continue
		}
		var data []byte
		for _, element := range from.Data {
			begin := 0
			if _, is := any(element).(float32); is {
				begin = 4 - size
			}
			whole := *(*[4]byte)(unsafe.Pointer(&element))
			data = append(data, whole[begin:begin+size]...)
		}
		x.Short[k] = Short{data, size}
		from.Data = nil
	}
}

// TestShort multiplies bytes and bf16 as they lie in memory on this machine, and beside
// their copies of 32 bits: the same bits.
func TestShort(t *testing.T) {
	t.Logf("bytes: %v, bf16: %v", ReadsBytes(), ReadsHalves(Pairs))
	r := rand.New(rand.NewPCG(35, 36))
	for trial := range 300 {
		m, n, k := 1+r.IntN(80), 1+r.IntN(100), 1+r.IntN(300)
		if trial%10 == 0 { // several blocks of terms
			m, n, k = 1+r.IntN(250), 1+r.IntN(70), 1+r.IntN(2300)
		}
		if trial%10 == 5 { // many rows that the second cache holds
			m, n, k = 200+r.IntN(300), 1+r.IntN(100), 1+r.IntN(300)
		}
		of, by := layouts[trial%4], layouts[trial/4%4]
		if ReadsBytes() {
			unsigned := [2]bool{trial%2 == 1, trial%3 == 1}
			multiply := func(x Product[int32]) {
				MultiplyInt8(x, make([]int32, ScratchInt8(x)), unsigned)
			}
			a, b := random[int32](of, m, k, r), random[int32](by, k, n, r)
			sameShort(t, multiply, a, b, m, n, k, 1)
		}
		for _, how := range []Halves{Pairs, Tiles} {
			if !ReadsHalves(how) {
				continue
			}
			multiply := func(x Product[float32]) {
				MultiplyHalves(x, make([]float32, ScratchHalves(x, how)), how)
			}
			a, b := randomBF16(of, m, k, r), randomBF16(by, k, n, r)
			sameShort(t, multiply, a, b, m, n, k, 2)
		}
	}
}

// sameShort compares a product with those of short operands, and of larger blocks.
func sameShort[T Element](
	t *testing.T, multiply func(x Product[T]),
	a, b Matrix[T], m, n, k, size int,
) {
	t.Helper()
	var want []T
	for which := range 8 {
		x := Product[T]{C: Dense(make([]T, m*n), n), A: a, B: b, M: m, N: n, K: k, Fresh: true}
		x.Caches.Panel = which >> 2 << 17
		x.shorten(which, size)
		multiply(x)
		if which == 0 {
			want = x.C.Data
		} else if !slices.Equal(want, x.C.Data) {
			t.Fatalf("%d×%d×%d, short %b: another result", m, n, k, which)
		}
	}
}

// Products that do not read short operands refuse them, and none reads past their ends.
func TestShortRefused(t *testing.T) {
	x := Product[int32]{
		C: Dense(make([]int32, 4), 2),
		A: Matrix[int32]{nil, 3, 1},
		B: Matrix[int32]{nil, 2, 1},
		M: 2, N: 2, K: 3,
		Short: [2]Short{{make([]byte, 6), 1}, {make([]byte, 5), 1}},
	}
	scratch := make([]int32, ScratchInt8(x))
	for name, multiply := range map[string]func(){
		"32 bits":    func() { x.Multiply(scratch) },
		"16 bits":    func() { MultiplyInt16(x, scratch) },
		"a byte few": func() { MultiplyInt8(x, scratch, [2]bool{}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it multiplies them")
				}
			}()
			multiply()
		})
	}
}
