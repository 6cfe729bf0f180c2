package sim

import (
	"encoding/binary"
	"math"
	"testing"
)

const clockPTX = `.version 8.0
.target sm_80
.address_size 64
.visible .entry clocks(.param .u64 out)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd0, [out];
	mov.u32 %r0, %ctaid.x;
	mul.wide.u32 %rd1, %r0, 24;
	add.u64 %rd1, %rd0, %rd1;
	mov.u64 %rd2, %clock64;
	mov.u64 %rd3, %globaltimer;
	mov.u32 %r1, %smid;
	st.global.u64 [%rd1], %rd2;
	st.global.u64 [%rd1+8], %rd3;
	st.global.u32 [%rd1+16], %r1;
	mov.u32 %r2, %clock;
	st.global.u32 [%rd1+20], %r2;
	ret;
}
`

// TestClocks: the clocks of a machine go on from launch to launch at the rate it
// is given for each, every SM counting from a number of its own.
func TestClocks(t *testing.T) {
	const blocks = 3
	b := newBench(t)
	p, out := mustLoad(t, clockPTX), b.alloc(24*blocks)
	read := func(hertz float64) (all [blocks][3]uint64) {
		opt := everything
		opt.Hertz = hertz
		r := b.launch(
			p,
			Launch{
				Entry: "clocks",
				Grid:  [3]int{blocks},
				Args:  [][]byte{binary.LittleEndian.AppendUint64(nil, out)},
			},
			opt,
		)
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		raw := make([]byte, 24*blocks)
		if err := b.m.Read(out, raw); err != nil {
			t.Fatal(err)
		}
		for k := range all {
			at := raw[24*k:]
			all[k] = [3]uint64{
				binary.LittleEndian.Uint64(at),
				binary.LittleEndian.Uint64(at[8:]),
				uint64(binary.LittleEndian.Uint32(at[16:])),
			}
			if low := binary.LittleEndian.Uint32(
				at[20:],
			); low-uint32(all[k][0]) != 2*readingCycles {
				t.Errorf("%%clock is %d two readings after %%clock64 %#x", low, all[k][0])
			}
		}
		return all
	}
	for _, hertz := range []float64{0, 1.5e9, 7e8} {
		want := (Options{Hertz: hertz}).hertz()
		before, after := read(hertz), read(hertz)
		for k := range after {
			cycles := after[k][0] - before[k][0]
			nanoseconds := after[k][1] - before[k][1]
			got := float64(cycles) / float64(nanoseconds) * 1e9
			if math.Abs(got/want-1) > 0.1 || after[k][2] != uint64(k) {
				t.Errorf("SM %d counts at %.4g Hz, want %.4g", after[k][2], got, want)
			}
		}
		if before[0][0]/apart == before[1][0]/apart {
			t.Error("two SMs have the same clock")
		}
	}
}
