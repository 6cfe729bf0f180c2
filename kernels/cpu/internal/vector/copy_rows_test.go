package vector

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// TestCopyShortRows copies rows of every length whose pieces differ, and beyond, to rows
// with something between them, which has to stay.
func TestCopyShortRows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const rows, between = 3, 5
	for n := range int64(maxShortBytes + 2*LineBytes) {
		if n == 0 {
			continue
		}
		from := make([]byte, rows*(n+1))
		for k := range from {
			from[k] = byte(r.Uint32())
		}
		got := bytes.Repeat([]byte{0xa5}, int(rows*(n+between)))
		want := bytes.Clone(got)
		for k := range int64(rows) {
			copy(want[k*(n+between):][:n], from[k*(n+1):])
		}
		var args CopyArgs
		args.CopyRows(CopyArgs{
			N: rows, Bytes: n,
			From: unsafe.Pointer(&from[0]), FromStep: n + 1,
			To: unsafe.Pointer(&got[0]), ToStep: n + between,
		}, false)
		if !bytes.Equal(got, want) {
			t.Fatalf("rows of %d bytes: copied\n%x, want\n%x", n, got, want)
		}
	}
}

// TestCopyInTurn copies rows a line of each of eight in turn past the caches, with what is left of
// rows and lines, and compares all bytes of the destination.
func TestCopyInTurn(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, n := range []int64{8, 9, 15, 16, 130} {
		for _, size := range []int64{minInTurnBytes, minInTurnBytes + 4, minInTurnBytes + LineBytes + 31} {
			fromStep, toStep := size+36, (size+2*LineBytes)&^(LineBytes-1)
			from, to := make([]byte, n*fromStep), aligned(n*toStep)
			for _, x := range [][]byte{from, to} {
				for k := range x {
					x[k] = byte(r.Uint32())
				}
			}
			want := bytes.Clone(to)
			for k := range n {
				copy(want[k*toStep:][:size], from[k*fromStep:])
			}
			rows := CopyArgs{
				N: n, Bytes: size, Places: copyPlaces, Ahead: 1024,
				From: unsafe.Pointer(&from[0]), FromStep: fromStep,
				To: unsafe.Pointer(&to[0]), ToStep: toStep,
			}
			if !rows.isInTurn() {
				t.Errorf("%d rows of %d bytes are not copied in turn", n, size)
			}
			new(CopyArgs).CopyRows(rows, true)
			StoreFence(&CopyArgs{})
			if !bytes.Equal(to, want) {
				t.Errorf("%d rows of %d bytes: wrong", n, size)
			}
		}
	}
}

// TestCopyRowsUpwards copies rows in the reversed order, past the caches and to them.
func TestCopyRowsUpwards(t *testing.T) {
	const rows = 9
	for _, n := range []int64{24, 100, 2304} {
		from := make([]byte, rows*n)
		for k := range from {
			from[k] = byte(k ^ k>>8)
		}
		var want []byte
		for k := range int64(rows) {
			want = append(want, from[(rows-1-k)*n:][:n]...)
		}
		for _, past := range []bool{false, true} {
			got := make([]byte, rows*n)
			new(CopyArgs).CopyRows(CopyArgs{
				N: rows, Bytes: n,
				From: unsafe.Pointer(&from[(rows-1)*n]), FromStep: -n,
				To: unsafe.Pointer(&got[0]), ToStep: n,
			}, past)
			StoreFence(&CopyArgs{})
			if !bytes.Equal(got, want) {
				t.Errorf("rows of %d bytes, past the caches %t: wrong", n, past)
			}
		}
	}
}

// aligned is n bytes from a line on.
func aligned(n int64) []byte {
	x := make([]byte, n+LineBytes)
	skip := -uintptr(unsafe.Pointer(&x[0])) % LineBytes
	return x[skip:][:n]
}

// TestBands transposes bands of every width by every routine, of rows of the destination that begin
// with a line and within one, and compares all bytes of the destination.
func TestBands(t *testing.T) {
	m := LoadedCopyRoutines()
	if !m.Ok {
		t.Skip("no machine code here")
	}
	for width, f := range m.Transposes {
		if f.bandCols == 0 {
			continue
		}
		blocks := transposes[width]
		if width == 1 {
			blocks = transposeBlocks{emitHalves, halvesCols, halvesRows}
		}
		narrow, ok := blocks.load(bandCode{width: width, store: amd64.VMOVNTPS, ahead: true, spread: width >= spreadWidth})
		if !ok {
			t.Fatal(width)
		}
		without := f // vectors of 64 bytes
		without.spreadAhead = func() bandRoutine { return bandRoutine{narrow, blocks.rows, blocks.cols, true} }
		without.ahead = without.spreadAhead
		for _, r := range []*TransposeRoutine{&f, &without} {
			for way := range 8 {
				for _, b := range []BandArgs{{Lines: 1, Piece: 2}, {Lines: 3, Piece: 4}, {Lines: 9, Piece: 1, Before: true}, {Lines: 5, Piece: 4, Before: true}} {
					b.Cached, b.Spread, b.Ahead = way == 7, way&1 > 0, []int64{0, 4, 2, 4}[way/2]
					checkBand(t, r, int64(width), b)
				}
			}
		}
	}
}

// checkBand transposes a band between arrays of random bytes.
func checkBand(t *testing.T, f *TransposeRoutine, width int64, b BandArgs) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, uint64(width)))
	line := LineBytes / width
	first := int64(0) // the column of the source that To is
	if b.Before {
		first = line
	}
	cols, rows := first+b.Piece*line, b.Lines*line
	b.FromStep, b.ToStep = b.Lines*LineBytes+24, (b.Piece+2)*LineBytes
	if b.Before {
		b.ToStep += 32
	}
	from, to := aligned(cols*b.FromStep), aligned(rows*b.ToStep+LineBytes)
	for _, x := range [][]byte{from, to} {
		for k := range x {
			x[k] = byte(r.Uint32())
		}
	}
	scratch := aligned(BandBytes(width))
	b.From, b.To, b.Scratch = unsafe.Pointer(&from[0]), unsafe.Pointer(&to[LineBytes]), unsafe.Pointer(&scratch[0])
	b.Fetch, b.FetchLines = uintptr(b.From), b.Lines
	want := bytes.Clone(to)
	for i := range rows {
		at := LineBytes + i*b.ToStep
		within := at % LineBytes
		for k := range b.Piece * line {
			col := first - within/width + k
			copy(want[at-within+k*width:][:width], from[col*b.FromStep+i*width:][:width])
		}
	}
	new(BandArgs).Transpose(f, width, b)
	StoreFence(&CopyArgs{})
	if !bytes.Equal(to, want) {
		t.Errorf("width %d, %+v: wrong", width, b)
	}
}
