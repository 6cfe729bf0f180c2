package simulated

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/symtile/hlo"
)

const negate = `.version 7.0
.target sm_80
.address_size 64

.visible .entry negate(
	.param .u64 x
)
.reqntid 32
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<4>;
	.reg .f32 %f<3>;
	ld.param.u64 %rd1, [x];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.u64 %rd3, %rd1, %rd2;
	ld.global.f32 %f1, [%rd3];
	neg.f32 %f2, %f1;
	st.global.f32 [%rd3], %f2;
	ret;
}
`

func open(t *testing.T, name string) *Driver {
	s, err := device.ParseSpec(name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(s, sim.Options{Counters: true, Races: true, Uninitialised: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A kernel runs, what is wrong with it is its launch's error, and nothing is timed.
func TestDriver(t *testing.T) {
	d, ctx := open(t, "sm_80"), context.Background()
	m, err := d.Load(ctx, negate, device.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Function("negate")
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.Alloc(128)
	if err != nil {
		t.Fatal(err)
	}
	in, out := make([]byte, 128), make([]byte, 128)
	in[3], in[127] = 0x3f, 0x40
	l := device.Launch{
		Function: f,
		Block:    device.Dim3{X: 32},
		Args:     []device.Arg{device.AddressArg(a)},
	}
	if err := errors.Join(
		d.CopyIn(a, in), d.Launch(ctx, l),
		d.Sync(ctx), d.CopyOut(out, a),
	); err != nil {
		t.Fatal(err)
	}
	if out[3] != 0xbf || out[127] != 0xc0 ||
		out[7] != 0x80 || d.Last().Counters.GlobalLoad.Bytes != 128 {
		t.Errorf("% x, %v", out, d.Last().Counters)
	}
	l.Args = []device.Arg{device.AddressArg(a + 64)}
	if err := d.Launch(ctx, l); err == nil ||
		!strings.Contains(err.Error(), "out of bounds") ||
		!strings.Contains(err.Error(), "ld.global.f32") {
		t.Errorf("past the end: %v", err)
	}
	if _, err := d.Time(
		ctx, device.Burst{Launches: []device.Launch{l}}, 1,
	); !errors.Is(err, device.ErrUntimed) {
		t.Error(err)
	}
}

// What an assembler would refuse is refused with the line.
func TestDriverRefuses(t *testing.T) {
	d, ctx := open(t, "A100"), context.Background()
	for _, c := range []struct{ from, to, want string }{
		{"neg.f32", "ngo.f32", "ngo"},
		{"%f2, %f1", "%f7, %f1", "%f7"},
		{".reqntid 32", ".reqntid 2048", ".reqntid of more than 1024"},
	} {
		_, err := d.Load(
			ctx, strings.Replace(negate, c.from, c.to, 1), device.LoadOptions{},
		)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
	if _, err := d.EncodeTensorMap(device.TensorMapSpec{DType: hlo.BF16}); err == nil ||
		!strings.Contains(err.Error(), "sm_80 has no bulk tensor copies") {
		t.Error(err)
	}
	var e *device.Error
	if err := d.Free(12); !errors.As(err, &e) ||
		!strings.HasPrefix(e.Call, "sim: ") {
		t.Error(err)
	}
}
