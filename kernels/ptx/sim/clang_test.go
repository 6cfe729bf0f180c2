package sim

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"testing"
)

// clang.ptx is what clang 19 makes of clang.cu.txt (-O2 -ffp-contract=off
// --cuda-gpu-arch=sm_80 -nocudainc -nocudalib); the Go functions below repeat it.

func intBytes[T int32 | uint32](v []T) []byte {
	var out []byte
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, uint32(x))
	}
	return out
}

func TestClangSort(t *testing.T) {
	b := newBench(t)
	r := random(20)
	v := make([]int32, 4*64)
	for i := range v {
		v[i] = int32(r.Uint32()) >> 20
	}
	a := b.put(intBytes(v))
	rep := b.launch(
		mustLoad(t, readText(t, "clang.ptx")),
		Launch{
			Entry: "sort32",
			Grid:  [3]int{4, 1, 1},
			Block: [3]int{64, 1, 1},
			Args:  [][]byte{Value(a)},
		},
		everything,
	)
	if err := rep.Err(); err != nil {
		t.Error(err)
	}
	got := b.words(a, len(v))
	for i := 0; i < len(v); i += 64 {
		slices.Sort(v[i : i+64])
	}
	for i := range v {
		if int32(got[i]) != v[i] {
			t.Fatalf("element %d is %d, want %d", i, int32(got[i]), v[i])
		}
	}
}

func TestClangHistogram(t *testing.T) {
	b := newBench(t)
	r := random(21)
	x := make([]byte, 5000)
	want := make([]uint32, 256)
	for i := range x {
		x[i] = byte(r.IntN(256) & r.IntN(256))
		want[x[i]]++
	}
	in, out := b.put(x), b.put(make([]byte, 1024))
	rep := b.launch(
		mustLoad(t, readText(t, "clang.ptx")),
		Launch{
			Entry: "hist",
			Grid:  [3]int{3, 1, 1},
			Block: [3]int{96, 1, 1},
			Args:  [][]byte{Value(in), Value(int32(len(x))), Value(out)},
		},
		everything,
	)
	if err := rep.Err(); err != nil {
		t.Error(err)
	}
	if got := b.words(out, 256); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestClangMandelbrot(t *testing.T) {
	b := newBench(t)
	const w, h = 70, 40
	out := b.alloc(4 * w * h)
	rep := b.launch(
		mustLoad(t, readText(t, "clang.ptx")),
		Launch{
			Entry:   "mandel",
			Grid:    [3]int{3, h, 1},
			Block:   [3]int{32, 1, 1},
			Args:    [][]byte{Value(out), Value(int32(w)), Value(int32(h))},
			Outputs: []uint64{out},
		},
		everything,
	)
	if err := rep.Err(); err != nil {
		t.Error(err)
	}
	got := b.words(out, w*h)
	for y := range h {
		for x := range w {
			cx := -2 + float32(3*float32(x))/w
			cy := -1 + float32(2*float32(y))/h
			var a, b float32
			n := uint32(0)
			for ; float32(a*a)+float32(b*b) < 4 && n < 200; n++ {
				next := float32(float32(a*a)-float32(b*b)) + cx
				b = float32(float32(2*a)*b) + cy
				a = next
			}
			if got[y*w+x] != n {
				t.Fatalf("(%d,%d): %d, want %d", x, y, got[y*w+x], n)
			}
		}
	}
}

func TestClangMixed(t *testing.T) {
	b := newBench(t)
	r := random(22)
	x := make([]uint32, 500)
	for i := range x {
		x[i] = r.Uint32()
	}
	in, out := b.put(intBytes(x)), b.alloc(8*int64(len(x)))
	rep := b.launch(
		mustLoad(t, readText(t, "clang.ptx")),
		Launch{
			Entry:   "mixed",
			Grid:    [3]int{4, 1, 1},
			Block:   [3]int{128, 1, 1},
			Args:    [][]byte{Value(in), Value(out), Value(int32(len(x)))},
			Outputs: []uint64{out},
		},
		everything,
	)
	if err := rep.Err(); err != nil {
		t.Error(err)
	}
	got := b.words(out, 2*len(x))
	for i, v := range x {
		g, w := uint64(got[2*i+1])<<32|
			uint64(got[2*i]), mixed(v)
		if g != w {
			t.Fatalf("element %d (%#x): %#x, want %#x", i, v, g, w)
		}
	}
}

func mixed(x uint32) uint64 {
	acc := uint64(0x9e3779b97f4a7c15)
	for k := range 20 {
		x = bits.RotateLeft32(x, k+1)*0x85ebca6b ^ x>>13
		acc = acc*6364136223846793005 + uint64(x)
		acc ^= acc >> 29
		if x&1 != 0 {
			acc += uint64(int64(int32(x)) >> 3)
		} else {
			acc -= uint64(x / uint32(k+3))
		}
		if x&7 == 3 {
			acc ^= uint64(x%1000) << 20
		}
		acc += uint64(int64(float64(int32(x)) / (float64(k) + 1.5)))
		acc ^= uint64(bits.LeadingZeros32(x|1))<<8 ^ uint64(bits.OnesCount64(acc))
		switch x & 3 {
		case 0:
			acc += 5
		case 1:
			acc ^= 77
		case 2:
			acc *= 3
		}
		acc += uint64(int64(int32(int16(x)) * int32(int8(x>>5))))
	}
	return acc
}

func TestClangLocalArray(t *testing.T) {
	b := newBench(t)
	const threads, n = 80, 23
	out := b.alloc(4 * threads)
	rep := b.launch(
		mustLoad(t, readText(t, "clang.ptx")),
		Launch{
			Entry:   "localarr",
			Block:   [3]int{threads, 1, 1},
			Args:    [][]byte{Value(out), Value(int32(n))},
			Outputs: []uint64{out},
		},
		everything,
	)
	if err := rep.Err(); err != nil {
		t.Error(err)
	}
	for tid, got := range b.words(out, threads) {
		var a [16]int32
		for i := range a {
			a[i] = int32(i * tid)
		}
		for i := range n {
			p, q := (i*7+tid)&15, (i*5+3)&15
			a[p], a[q] = a[q]+1, a[p]
		}
		s := int32(0)
		for _, v := range a {
			s = s*31 + v
		}
		if int32(got) != s {
			t.Fatalf("thread %d: %d, want %d", tid, int32(got), s)
		}
	}
}
