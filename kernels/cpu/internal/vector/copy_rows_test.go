package vector

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"
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
