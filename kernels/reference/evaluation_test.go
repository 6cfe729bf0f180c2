package reference_test

import (
	"context"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Every loop of the reference looks at the context: with one that has ended, work
// that would take from seconds to hours ends at once.
func TestInterpretListens(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, text := range []string{
		"p = f32[8192,8192] parameter(0)\nROOT r = f32[8192,8192] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
		"p = f32[16384] parameter(0)\nb = f32[16384,65536] broadcast(p), dimensions={0}\nROOT r = f32[16384,65536] negate(b)",
		"p = f32[67108864] parameter(0)\nz = f32[] constant(0)\nROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add",
		"p = f32[65536] parameter(0)\nz = f32[] constant(0)\nROOT r = f32[65536] reduce-window(p, z), window={size=65535 stride=1 pad=32767_32767}, to_apply=add",
		"p = f32[1,65536,1] parameter(0)\nk = f32[65535,1,1] parameter(1)\nROOT r = f32[1,65536,1] convolution(p, k), window={size=65535 pad=32767_32767}, dim_labels=b0f_0io->b0f",
		"p = s32[64] parameter(0)\nz = s32[] constant(0)\nROOT r = s32[268435456] pad(p, z), padding=268435392_0",
		"p = f32[64] parameter(0)\ni = s32[67108864,1] iota(), iota_dimension=0\nROOT r = f32[67108864] gather(p, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
		"ROOT r = s32[16384,16384] iota(), iota_dimension=0",
	} {
		m, err := hlo.Parse("listens", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var in []kernels.Buffer
		for _, p := range m.Entry.Params {
			b, err := kernels.NewBuffer(p.Shape)
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, b)
		}
		if _, err := reference.InterpretContext(ctx, m.Entry, in); err != context.Canceled {
			t.Errorf("%v of\n%s", err, text)
		}
		if _, err := reference.Deviations(ctx, m.Entry, in, 1, 4); err != context.Canceled {
			t.Errorf("deviations: %v of\n%s", err, text)
		}
	}
}

// A chain over a large array holds what is still to be read.
func TestPeakElements(t *testing.T) {
	const n = 1 << 20
	for text, want := range map[string]int64{
		`p = f32[1048576] parameter(0)
a = f32[1048576] negate(p)
b = f32[1048576] negate(a)
c = f32[1048576] negate(b)
ROOT d = f32[1048576] negate(c)`: 2 * n,
		`p = f32[1048576] parameter(0)
a = f32[1048576] negate(p)
b = f32[1048576] add(a, p)
c = f32[1048576] add(b, a)
ROOT t = (f32[1048576], f32[1048576]) tuple(c, b)`: 4 * n, // a tuple counts as another copy
		`p = f32[1024] parameter(0)
a = f32[1024] negate(p)
ROOT b = f32[1024] negate(a)`: 3 * 1024,
	} {
		m, err := hlo.Parse("peak", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := reference.PeakElements(m.Entry); got != want {
			t.Errorf("%d elements, not %d:\n%s", got, want, text)
		}
	}
}
