//go:build !noasm

package gemm

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestWidePanels goes through panels of the families for 512 bits, whose kernels
// TestEveryKernel emulates, with kernels in Go in their place.
func TestWidePanels(t *testing.T) {
	if f32 == nil {
		t.Skip("panels are packed with AVX")
	}
	widePanels[float32](t, f32Wide)
	widePanels[float64](t, f64Wide)
	widePanels[int32](t, i32Wide)
}

// widePanels compares products by a family with kernels in Go.
func widePanels[T Element](t *testing.T, f family) {
	t.Helper()
	for r := range 6 {
		f.full[r] = plainKernel[T](r+1, func(*byte) int { return f.width() })
		f.masked[r] = plainKernel[T](r+1, func(mask *byte) int {
			return bits.OnesCount32(*(*uint32)(unsafe.Pointer(mask)))
		})
		if f.pairs[r] != nil {
			f.pairs[r] = plainPairKernel[T](r+1, f.width())
		}
		if f.fills[r] != nil {
			f.fills[r] = plainFillKernel[T](r+1, f.width())
		}
	}
	r := rand.New(rand.NewPCG(2, 1))
	for range 200 {
		m := 2 + r.IntN(119) // one row may have partial sums
		n := 1 + r.IntN(200)
		k := 1 + r.IntN(300)
		a := random[T](layouts[r.IntN(4)], m, k, r)
		b := random[T](layouts[r.IntN(4)], k, n, r)
		c := random[T](layouts[0], m, n, r)
		want := Dense(append([]T(nil), c.Data...), n)
		x := Product[T]{
			C:     c,
			A:     a,
			B:     b,
			M:     m,
			N:     n,
			K:     k,
			Fresh: r.IntN(2) == 0,
		}
		if r.IntN(2) == 0 { // several slabs, terms and pairs of panels
			x.Caches = Caches{
				First: 4 << 10, Second: 64 << 10, Panel: 4 << 10,
				Pairs: r.IntN(2) == 0, Fetched: r.IntN(2) == 0,
			}
		}
		if x.Fresh {
			clear(want.Data)
		}
		plainlyFused(want, a, b, m, n, k)
		multiplyPanels(
			&f,
			x,
			make([]T, f.scratch(x.Caches, m, n, k)/f.bytes),
		)
		for at, x := range want.Data {
			if c.Data[at] != x {
				t.Fatalf("%d lanes, %d×%d×%d: element %d, %d is %v, not %v", f.lanes, m, n, k, at/n, at%n, c.Data[at], x)
			}
		}
	}
}

// plainKernel is a kernel in Go of so many rows and the columns that a mask says.
func plainKernel[T Element](rows int, columns func(mask *byte) int) kernel {
	return func(
		blocks, k int,
		a *byte,
		ars, acs int,
		b *byte,
		brs int,
		c *byte,
		crs int,
		mask *byte,
		_ uintptr,
		_, how int,
	) {
		var zero T
		size := int(unsafe.Sizeof(zero))
		block[T](
			blocks*rows, columns(mask), k,
			byteMatrix{unsafe.Pointer(a), ars, acs},
			byteMatrix{unsafe.Pointer(b), brs, size},
			byteMatrix{unsafe.Pointer(c), crs, size}, how,
		)
	}
}

// plainPairKernel is a kernel in Go of so many rows and two panels of some columns.
func plainPairKernel[T Element](rows, columns int) pairKernel {
	one := plainKernel[T](rows, func(*byte) int { return columns })
	return func(
		blocks, k int,
		a *byte,
		ars int,
		b *byte,
		brs, apart int,
		c *byte,
		crs int,
		_ uintptr,
		_, how int,
	) {
		size := int(unsafe.Sizeof(*new(T)))
		one(blocks, k, a, ars, size, b, brs, c, crs, nil, 0, 0, how)
		b = (*byte)(unsafe.Add(unsafe.Pointer(b), apart))
		c = (*byte)(unsafe.Add(unsafe.Pointer(c), columns*size))
		one(blocks, k, a, ars, size, b, brs, c, crs, nil, 0, 0, how)
	}
}

// plainFillKernel is a kernel in Go of so many rows that fills a panel of some columns.
func plainFillKernel[T Element](rows, columns int) kernel {
	one := plainKernel[T](rows, func(*byte) int { return columns })
	return func(
		blocks, k int,
		a *byte,
		ars, acs int,
		b *byte,
		brs int,
		c *byte,
		crs int,
		panel *byte,
		_ uintptr,
		_, how int,
	) {
		one(blocks, k, a, ars, acs, b, brs, c, crs, nil, 0, 0, how)
		row := columns * int(unsafe.Sizeof(*new(T)))
		for p := range k {
			copyBytes(unsafe.Add(unsafe.Pointer(panel), p*row), unsafe.Add(unsafe.Pointer(b), p*brs), row)
		}
	}
}

// TestWidePairs is the same for pairs of 16 bits.
func TestWidePairs(t *testing.T) {
	if i16 == nil {
		t.Skip("pairs are arranged with AVX")
	}
	f, saved := i16Wide, i16
	i16 = &f
	defer func() { i16 = saved }()
	view := func(p *byte, row, col, m, n int) Matrix[int32] {
		return Matrix[int32]{
			unsafe.Slice(
				(*int32)(unsafe.Pointer(p)),
				((m-1)*row+(n-1)*col)/4+1,
			),
			row / 4,
			col / 4,
		}
	}
	for r := range 6 {
		f.full[r] = func(
			blocks, k int,
			a *byte,
			ars, acs int,
			b *byte,
			brs int,
			c *byte,
			crs int,
			_ *byte,
			_ uintptr,
			_, _ int,
		) {
			m := blocks * (r + 1)
			plainlyPaired(
				view(c, crs, 4, m, 32),
				view(a, ars, acs, m, k),
				view(b, brs, 4, k, 32), m, 32, k,
			)
		}
		f.masked[r] = func(
			blocks, k int,
			a *byte,
			ars, acs int,
			b *byte,
			brs int,
			c *byte,
			crs int,
			mask *byte,
			_ uintptr,
			_, _ int,
		) {
			m, n := blocks*(r+1), bits.OnesCount32(*(*uint32)(unsafe.Pointer(mask)))
			plainlyPaired(
				view(c, crs, 4, m, n),
				view(a, ars, acs, m, k),
				view(b, brs, 4, k, n), m, n, k,
			)
		}
	}
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		m := 1 + r.IntN(120)
		n := 1 + r.IntN(100)
		k := 1 + r.IntN(600)
		a := random[int32](layouts[r.IntN(4)], m, k, r)
		b := random[int32](layouts[r.IntN(4)], k, n, r)
		c := random[int32](layouts[0], m, n, r)
		for _, x := range [][]int32{a.Data, b.Data} {
			for at := range x {
				x[at] = int32(int16(x[at]))
			}
		}
		want := Dense(append([]int32(nil), c.Data...), n)
		plainlyFused(want, a, b, m, n, k)
		MultiplyInt16(
			Product[int32]{C: c, A: a, B: b, M: m, N: n, K: k},
			make([]int32, ScratchInt16()),
		)
		if !slices.Equal(want.Data, c.Data) {
			t.Fatalf("%d×%d×%d: a wrong result", m, n, k)
		}
	}
}

func block[T Element](m, n, k int, a, b, c byteMatrix, how int) {
	for i := range m {
		for j := range n {
			z := (*T)(c.at(i, j).p)
			if how&freshFlag != 0 {
				*z = 0
			}
			for p := range k {
				*z = add(
					*z, *(*T)(a.at(i, p).p),
					*(*T)(b.at(p, j).p), true,
				)
			}
		}
	}
}
