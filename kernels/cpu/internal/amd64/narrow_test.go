//go:build linux && amd64 && !noasm

package amd64

import (
	"bytes"
	"math"
	"testing"
	"unsafe"
)

// convert returns a kernel from [RSI] to [RDX], of elements of so many bytes.
func convert(t *testing.T, from, to int, emit func(c *Chain)) Func {
	t.Helper()
	a := &Assembler{}
	a.Emit(MOV, RAX, Mem{Base: RDI})
	a.Emit(MOV, RSI, Mem{Base: RDI, Disp: 8})
	a.Emit(MOV, RDX, Mem{Base: RDI, Disp: 16})
	c := &Chain{}
	emit(c)
	l := &Loop{
		Chain:    c,
		Counter:  RAX,
		Pointers: []Pointer{{RSI, from}, {RDX, to}},
		Width:    4,
		Copies:   4,
		Scratch:  RCX,
		Mask:     Y0,
	}
	if err := l.Emit(a); err != nil {
		t.Fatal(err)
	}
	a.Emit(RET)
	return load(t, a)
}

type convertArgs struct {
	n    int
	x, y unsafe.Pointer
}

func allHalves() []uint16 {
	v := make([]uint16, 1<<16)
	for k := range v {
		v[k] = uint16(k)
	}
	return v
}

// interesting returns f32 around every bf16 and f16 number, halfway between
// them and next to that.
func interesting() []float32 {
	var v []float32
	for k := range uint32(1 << 16) {
		for _, low := range []uint32{
			0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x0fff, 0x1000, 0x1001, 0x3000,
		} {
			v = append(v, math.Float32frombits(k<<16|low))
		}
	}
	return v[:len(v)&^31]
}

// nearest returns which of the numbers that widen gives, of the bits around
// guess, is nearest v, the even one of two.
func nearest(v float64, guess uint16, widen func(uint16) float64) uint16 {
	best := guess
	distance := math.Inf(1)
	for _, b := range []uint16{guess - 1, guess, guess + 1} {
		if d := math.Abs(widen(b) - v); d < distance || d == distance && b&1 == 0 {
			best, distance = b, d
		}
	}
	return best
}

func bf16(b uint16) float64 {
	if b&0x7fff == 0x7f80 { // the number that would follow: rounding overflows halfway to it
		return math.Copysign(0x1p128, float64(int16(b))+0.5)
	}
	return float64(math.Float32frombits(uint32(b) << 16))
}

func f16(b uint16) float64 {
	exponent, fraction := int(b>>10&31), float64(b&0x3ff)
	v := math.Ldexp(1024+fraction, exponent-25)
	if exponent == 0 {
		v = math.Ldexp(fraction, -24)
	}
	return math.Copysign(v, float64(int16(b))+0.5)
}

func TestNarrowTypes(t *testing.T) {
	for _, x := range []struct {
		name   string
		load   func(*Chain, Mem, int32) Value
		store  func(*Chain, Mem, int32, Value)
		widen  func(uint16) float64
		isNaN  func(uint16) bool
		isInf  func(uint16) bool
		inside float64 // what is not less becomes infinite
	}{
		{
			"bf16", (*Chain).LoadBF16, (*Chain).StoreBF16, bf16,
			func(b uint16) bool { return b&0x7fff > 0x7f80 },
			func(b uint16) bool { return b&0x7fff == 0x7f80 }, 0x1.ffp127,
		},
		{
			"f16", (*Chain).LoadF16, (*Chain).StoreF16, f16,
			func(b uint16) bool { return b&0x7fff > 0x7c00 },
			func(b uint16) bool { return b&0x7fff == 0x7c00 }, 65520,
		},
	} {
		widen := convert(t, 2, 4, func(c *Chain) {
			c.Store(
				VMOVUPS, Mem{Base: RDX}, 32,
				x.load(c, Mem{Base: RSI}, 16),
			)
		})
		halves, wide := allHalves(), make([]float32, 1<<16)
		widen.Call(unsafe.Pointer(&convertArgs{
			len(halves),
			unsafe.Pointer(&halves[0]),
			unsafe.Pointer(&wide[0]),
		}))
		for k, h := range halves {
			want := x.widen(h)
			if x.isInf(h) {
				want = math.Copysign(math.Inf(1), want)
			}
			if x.isNaN(h) != (wide[k] != wide[k]) ||
				!x.isNaN(h) && math.Float64bits(float64(wide[k])) != math.Float64bits(want) {
				t.Fatalf("%s %#x is %v, want %v", x.name, h, wide[k], want)
			}
		}
		narrow := convert(t, 4, 2, func(c *Chain) {
			x.store(
				c, Mem{Base: RDX}, 16,
				c.Load(VMOVUPS, Mem{Base: RSI}, 32),
			)
		})
		in := interesting()
		out := make([]uint16, len(in))
		narrow.Call(unsafe.Pointer(&convertArgs{
			len(in),
			unsafe.Pointer(&in[0]),
			unsafe.Pointer(&out[0]),
		}))
		for k, v := range in {
			got := out[k]
			switch {
			case v != v:
				if !x.isNaN(got) {
					t.Fatalf("%v is %s %#x", v, x.name, got)
				}
			case math.Abs(float64(v)) >= x.inside:
				if !x.isInf(got) || math.Signbit(float64(v)) != (got>>15 != 0) {
					t.Fatalf("%v is %s %#x", v, x.name, got)
				}
			case nearest(float64(v), got, x.widen) != got ||
				math.Signbit(float64(v)) != (got>>15 != 0):
				t.Fatalf("%v (%#x) is %s %#x = %v", v, math.Float32bits(v), x.name, got, x.widen(got))
			}
		}
	}
}

// TestNarrowTails moves elements of one and two bytes through registers, every
// remainder, at the end of a page: nothing is read or written past them, and
// nothing is written before them.
func TestNarrowTails(t *testing.T) {
	from, to := Mem{Base: RSI}, Mem{Base: RDX}
	for _, x := range []struct {
		width int
		emit  func(c *Chain)
	}{
		{2, func(c *Chain) { c.StoreBF16(to, 16, c.LoadBF16(from, 16)) }},
		{2, func(c *Chain) { c.StoreF16(to, 16, c.LoadF16(from, 16)) }},
		{2, func(c *Chain) {
			c.storeWords(to, 16, c.Load(VPMOVZXWD, from, 16))
		}},
		{1, func(c *Chain) {
			c.StoreBytes(to, 8, c.Load(VPMOVZXBD, from, 8))
		}},
		{1, func(c *Chain) {
			c.StoreBytes(to, 8, c.Load(VPMOVSXBD, from, 8))
		}},
	} {
		f := convert(t, x.width, x.width, x.emit)
		for n := range 68 {
			in, out := guardedBytes(t, n*x.width), guardedBytes(t, n*x.width)
			for k := range in {
				in[k] = byte(k*5+1+k/64) &^ 0x40 // no NaN
			}
			f.Call(unsafe.Pointer(&convertArgs{
				n, unsafe.Pointer(unsafe.SliceData(in)), unsafe.Pointer(unsafe.SliceData(out)),
			}))
			if !bytes.Equal(in, out) {
				t.Fatalf("width %d, n %d:\n% x, want\n% x", x.width, n, out, in)
			}
		}
	}
}

func TestToInt32(t *testing.T) {
	f := convert(t, 4, 4, func(c *Chain) {
		c.Store(
			VMOVDQU, Mem{Base: RDX}, 32,
			c.ToInt32(c.Load(VMOVDQU, Mem{Base: RSI}, 32)),
		)
	})
	inf := float32(math.Inf(1))
	x := []float32{
		0, 1.9, -1.9, 0x1.fffffep30, 0x1p31, -0x1p31, -0x1.000002p31, inf, -inf,
		float32(math.NaN()), 3e9, -3e9, 16777217, 0.5, -0.5,
	}
	want := []int32{
		0, 1, -1, 2147483520, math.MaxInt32, math.MinInt32, math.MinInt32,
		math.MaxInt32, math.MinInt32, 0, math.MaxInt32, math.MinInt32, 16777216, 0,
		0,
	}
	y := make([]int32, len(x)+1)
	f.Call(unsafe.Pointer(&convertArgs{
		len(x),
		unsafe.Pointer(&x[0]),
		unsafe.Pointer(&y[0]),
	}))
	if y[len(x)] != 0 {
		t.Error("stored past the end")
	}
	for k := range x {
		if y[k] != want[k] {
			t.Errorf("%v: %d, want %d", x[k], y[k], want[k])
		}
	}
}
