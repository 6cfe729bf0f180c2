package vector

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
)

// Machine code copies the slices that the loops in Go copy, of every length up to some lines,
// and nothing beside them.
func TestGatherCode(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code")
	}
	rng := rand.New(rand.NewPCG(2, 7))
	for n := range int64(200) {
		g := portable.Gather{Bytes: n + 1, Next: int64(rng.IntN(5)), From: rng.Int64N(9), To: n + 1 + rng.Int64N(3)}
		for k := range rng.IntN(gatherStarts + 1) {
			g.Starts = append(
				g.Starts,
				portable.Start{At: int64(k), Last: rng.Int64N(20), Step: 1 + rng.Int64N(9)},
			)
		}
		testGather[int32](t, rng, &g)
		testGather[int64](t, rng, &g)
		g.Unsigned = true
		testGather[int64](t, rng, &g)
	}
}

// testGather compares both ways of some numbers of slices.
func testGather[I int32 | int64](
	t *testing.T, rng *rand.Rand,
	g *portable.Gather,
) {
	t.Helper()
	const most = 11
	from := make([]byte, 4000)
	for k := range from {
		from[k] = byte(rng.Uint32())
	}
	indices := make([]I, most*g.Next+gatherStarts)
	for k := range indices {
		if indices[k] = I(rng.IntN(30) - 5); rng.IntN(5) == 0 {
			indices[k] = I(rng.Uint64())
		}
	}
	f, ok := LoadRoutine(
		GatherCode{Gather: g, Index: int64(unsafe.Sizeof(indices[0]))}.Emit,
	)
	if !ok {
		t.Fatalf("no code for %+v", g)
	}
	for n := range int64(most) {
		got := bytes.Repeat(
			[]byte{0xa5},
			int(most*g.To+g.Bytes),
		)
		want := bytes.Clone(got)
		portable.GatherSlices(g, n, indices, want, from)
		args := GatherArgs{
			N: n, Bytes: g.Bytes,
			Indices: unsafe.Pointer(&indices[0]), From: unsafe.Pointer(&from[0]), To: unsafe.Pointer(&got[0]),
			Last: unsafe.Pointer(
				&indices[max(0, n-1)*g.Next],
			),
		}
		if f.Call(unsafe.Pointer(&args)); !bytes.Equal(got, want) {
			t.Fatalf("%d of %+v: copied\n%x, want\n%x", n, g, got, want)
		}
	}
}
