package cpu

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
)

// TestRowsEndAtPage runs rows over arrays that end where a page begins that cannot
// be touched, so that a read or write past one ends the test, and 4 bytes before
// that, where rows that are streamed are not aligned.
func TestRowsEndAtPage(t *testing.T) {
	for _, shape := range [][2]int64{
		{1, 8}, {2, 33}, {3, 39},
		{7, 64}, {16, 100}, {61, 32},
		{130, 24},
	} {
		t.Run(fmt.Sprintf("%d×%d", shape[0], shape[1]), func(t *testing.T) {
			p, _ := landscape(
				t,
				strings.NewReplacer(
					"$0", fmt.Sprint(shape[0]), "$1", fmt.Sprint(shape[1]),
				).Replace(rowText),
			)
			whole := make(symtile.Tiling, len(p.Space.Dims))
			for k, d := range p.Space.Dims {
				whole[k] = max(1, d.Extent)
			}
			in, err := check.Inputs(p.Fusion, check.Normals, 1)
			if err != nil {
				t.Fatal(err)
			}
			plan := kernels.Plan{Tiles: whole}
			want := outputsOf(t, p, plan.With("rows", 0), in)
			for _, plan := range []kernels.Plan{
				plan,
				plan.With("stream", 1),
				plan.With("stream", 1).With("unroll", 1).With("prefetch", 5),
			} {
				for _, before := range []int{0, 4} {
					compareBits(t, fmt.Sprintf("%s, %d before the end", plan, before), atPageEnds(t, p, plan, in, before), want)
				}
			}
		})
	}
}

// atPageEnds are the outputs of a plan whose arrays all end so many bytes before a
// page does.
func atPageEnds(
	t *testing.T, p *symtile.Program,
	plan kernels.Plan, in []kernels.Buffer, before int,
) []kernels.Buffer {
	t.Helper()
	k, err := New().Compile(context.Background(), p, plan.With("threads", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	guarded := func(b kernels.Buffer) kernels.Buffer {
		data, free := guardedBytes(t, len(b.Data)+before)
		t.Cleanup(free)
		copy(data, b.Data)
		return kernels.Buffer{Shape: b.Shape, Data: data[:len(b.Data)]}
	}
	args := make([]kernels.Buffer, len(in))
	for n, b := range in {
		args[n] = guarded(b)
	}
	var out []kernels.Buffer
	for _, s := range kernels.OutputShapes(p.Fusion) {
		b, err := kernels.NewBuffer(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, guarded(b))
	}
	if _, err := k.Run(context.Background(), args, out); err != nil {
		t.Fatal(err)
	}
	return out
}
