package gemm

import (
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded is n elements that begin, or end, where no page can be read.
func guarded[T Element | byte](t *testing.T, n int, end bool) []T {
	page := os.Getpagesize()
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	room := (size + page - 1) / page * page
	pages, err := unix.Mmap(
		-1, 0, room+2*page,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE,
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(pages) })
	for _, guard := range [][]byte{pages[:page], pages[page+room:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	at := page
	if end {
		at += room - size
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&pages[at])), n)
}

// TestPageEnds multiplies matrices with no readable byte before or after them;
// a byte too many ends the process.
func TestPageEnds(t *testing.T) {
	t.Run("f32", func(t *testing.T) {
		pageEnds(t, Scratch[float32], Product[float32].Multiply)
	})
	t.Run("f64", func(t *testing.T) {
		pageEnds(t, Scratch[float64], Product[float64].Multiply)
	})
	t.Run("i32", func(t *testing.T) {
		pageEnds(t, Scratch[int32], Product[int32].Multiply)
	})
	t.Run("i16", func(t *testing.T) {
		pageEnds(t, func(m, n, k int) int { return ScratchInt16() }, MultiplyInt16)
	})
}

func pageEnds[T Element](
	t *testing.T, scratch func(m, n, k int) int,
	multiply func(x Product[T], scratch []T),
) {
	r := rand.New(rand.NewPCG(7, 8))
	for trial := range 150 {
		end := trial%2 == 0
		m := 1 + r.IntN(20)
		n := 1 + r.IntN(40)
		k := 1 + r.IntN(20)
		if trial%5 == 0 {
			m, k = 1, 2*k
		}
		a := random[T](layouts[trial%4], m, k, r)
		b := random[T](layouts[trial/4%4], k, n, r)
		c := random[T](layouts[0], m, n, r)
		move := func(x *Matrix[T]) {
			data := guarded[T](t, len(x.Data), end)
			copy(data, x.Data)
			x.Data = data
		}
		if x, ok := any(&a).(*Matrix[int32]); ok {
			narrow(x.Data)
			narrow(any(&b).(*Matrix[int32]).Data)
		}
		want := Dense(append([]T(nil), c.Data...), n)
		plainly(want, a, b, m, n, k)
		move(&a)
		move(&b)
		move(&c)
		multiply(
			Product[T]{C: c, A: a, B: b, M: m, N: n, K: k},
			guarded[T](t, scratch(m, n, k), end),
		)
		for at, x := range want.Data {
			if c.Data[at] != x {
				t.Fatalf("%d×%d×%d: element %d is %v, not %v", m, n, k, at, c.Data[at], x)
			}
		}
	}
}

func narrow(x []int32) {
	for at := range x {
		x[at] = int32(int8(x[at]))
	}
}
