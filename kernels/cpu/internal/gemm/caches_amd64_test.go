//go:build !noasm

package gemm

import (
	"maps"
	"testing"
)

// zen4 has the caches of a Zen 4, whose second one gives panels as fast as kernels multiply.
var zen4 = Caches{
	First: 32 << 10, Second: 1 << 20, Third: 16 << 20,
	Panel: 128 << 10, Single: 128 << 10, Pairs: true,
}

// Blocks of a product of 2048³ on cores of several caches. Those of the first
// are what was measured to be best on a core of 32 and 512 KiB and 16 MiB; panels of
// two lines a term never fill a first-level cache.
func TestBlocking(t *testing.T) {
	if f32 == nil {
		t.Skip("there are no panels")
	}
	for _, x := range []struct {
		caches Caches
		want   blocking
		family *family
	}{
		{Caches{}, blocking{96, 512, 2048}, &f32Narrow},
		{Caches{First: 32 << 10, Second: 512 << 10, Third: 16 << 20}, blocking{96, 512, 2048}, &f32Narrow},
		{Caches{First: 32 << 10, Second: 256 << 10, Third: 16 << 20}, blocking{48, 512, 2048}, &f32Narrow},
		{Caches{First: 16 << 10, Second: 512 << 10, Third: 16 << 20}, blocking{192, 256, 2048}, &f32Narrow},
		{Caches{First: 32 << 10, Second: 512 << 10, Third: 4 << 20}, blocking{96, 512, 512}, &f32Narrow},
		{Caches{First: 1, Second: 1, Third: 1}, blocking{6, 24, 16}, &f32Narrow},
		{Caches{First: 48 << 10, Second: 2 << 20, Third: 16 << 20}, blocking{516, 256, 2048}, &f32Wide},
		{Caches{First: 32 << 10, Second: 1 << 20, Third: 16 << 20}, blocking{516, 192, 2048}, &f32Wide},
		{Caches{First: 32 << 10, Second: 1 << 20, Third: 16 << 20, Panel: 128 << 10}, blocking{96, 1024, 1024}, &f32Wide},
		{Caches{First: 32 << 10, Second: 1 << 20, Third: 16 << 20, Panel: 128 << 10}, blocking{192, 512, 2048}, &f32Narrow},
		{Caches{First: 48 << 10, Second: 2 << 20, Third: 16 << 20, Panel: 96 << 10, Pairs: true}, blocking{138, 688, 1024}, &f32Wide},
		{Caches{First: 48 << 10, Second: 2 << 20, Third: 16 << 20, Panel: 96 << 10, Pairs: true}, blocking{516, 256, 2048}, &i32Wide},
		{zen4, blocking{48, 1024, 1024}, &f32Wide},
		{zen4, blocking{96, 1024, 1024}, &i32Wide},
	} {
		if got := x.family.blocking(x.caches, 2048, 2048, 2048); got != x.want {
			t.Errorf("%v: %v, not %v", x.caches, got, x.want)
		}
	}
}

// A narrow product reads a where it lies, in runs of whole cache lines, and keeps all panels
// of as many terms in a part of the second-level cache.
func TestNarrowBlocking(t *testing.T) {
	c := Caches{First: 48 << 10, Second: 1 << 20, Third: 32 << 20}
	for _, f := range []*family{&f32Narrow, &f32Wide} {
		if got, want := f.blocking(c, 4096, 64, 4096), (blocking{48, 1024, 64}); got != want {
			t.Errorf("%d lanes: %v, not %v", f.lanes, got, want)
		}
		want := blocking{48, 1024, 64}
		if f == &f32Wide { // pieces of two pages where panels are in the second-level cache
			want = blocking{12, 2048, 64}
		}
		if got := f.blocking(zen4, 4096, 64, 4096); got != want {
			t.Errorf("%d lanes: %v, not %v", f.lanes, got, want)
		}
		x := product{family: f, m: 4096, n: 64, slab: byteMatrix{row: 4096}}
		if rows := (byteMatrix{row: 16384, col: 4}); x.packsSlab(rows) {
			t.Errorf("%d lanes: rows are packed", f.lanes)
		}
		if x.n = 256; !x.packsSlab(byteMatrix{row: 16384, col: 4}) {
			t.Errorf("%d lanes: rows of a wide product are not packed", f.lanes)
		}
	}
}

// TestPairsOfFewRows: few rows are multiplied by one panel at once where kernels fetch operands,
// as all are by a family without kernels of pairs.
func TestPairsOfFewRows(t *testing.T) {
	hardware := zen4
	hardware.Fetched = true
	for _, x := range []struct {
		f    *family
		c    Caches
		m    int
		want bool
	}{
		{&f32Wide, zen4, minPairRows, true},
		{&f32Wide, zen4, minPairRows - 1, false},
		{&f32Wide, hardware, 6, true},
		{&i32Wide, zen4, 4096, false},
	} {
		if got := x.f.cachesOf(x.c, x.m).Pairs; got != x.want {
			t.Errorf("%d rows, fetched by the hardware %v: pairs %v", x.m, x.c.Fetched, got)
		}
	}
}

// What follows a part of a slab is fetched ahead, every line of it once: the next terms, and
// behind the last those of the next rows. Nothing follows the last part.
func TestNextPart(t *testing.T) {
	const m, k, rows, terms, size = 100, 300, 48, 128, 4
	for _, layout := range []byteMatrix{
		{row: 16384, col: size},
		{row: size, col: 16384},
	} {
		for _, x := range []struct{ i, p, toI, toP, rows, terms int }{
			{0, 0, 0, 128, 48, 128},
			{0, 128, 0, 256, 48, 44},
			{48, 256, 96, 0, 4, 128},
			{96, 256, 0, 0, 0, 0},
		} {
			next := nextPart(layout, x.i, x.p, rows, terms, m, k, size)
			lines := map[uintptr]int{}
			for next.columns > 0 {
				p, step, taken := next.take(7)
				for n := range taken {
					lines[p/64+uintptr(n*step/64)]++
				}
			}
			want := map[uintptr]int{}
			for i := range x.rows {
				for p := range x.terms {
					at := (x.toI+i)*layout.row + (x.toP+p)*layout.col
					want[uintptr(at/64)] = 1
				}
			}
			if !maps.Equal(lines, want) {
				t.Errorf("%v, part %v: %d lines, not %d", layout, x, len(lines), len(want))
			}
		}
	}
}
