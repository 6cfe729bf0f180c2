package sim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// readersText is a kernel whose blocks read half a word each, blocks 0 and 1 the one at 0
// and the others the one at split, and then block writer stores to what it has read.
const readersText = `.version 8.0
.target sm_80
.address_size 64
.visible .entry readers(.param .u64 x, .param .u32 writer, .param .u32 split) {
	.reg .b64 %rd<4>;
	.reg .b32 %r<6>;
	.reg .b16 %h<2>;
	.reg .pred %p<3>;
	ld.param.u64 %rd0, [x];
	ld.param.u32 %r0, [writer];
	ld.param.u32 %r1, [split];
	mov.u32 %r2, %ctaid.x;
	setp.ge.u32 %p0, %r2, 2;
	selp.b32 %r3, %r1, 0, %p0;
	cvt.u64.u32 %rd1, %r3;
	add.s64 %rd2, %rd0, %rd1;
	ld.global.u16 %h0, [%rd2];
	setp.ne.u32 %p1, %r2, %r0;
	@%p1 bra DONE;
	st.global.u16 [%rd2], %h0;
DONE:
	ret;
}
`

// A store to what other blocks read is a race whichever block stores, however many have
// read before, and also where they read other bytes of the word.
func TestWriteAfterManyReaders(t *testing.T) {
	p := mustLoad(t, readersText)
	for _, split := range []uint32{0, 2} {
		for writer := range uint32(6) {
			if split > 0 && writer == 5 {
				continue // of two readers that are kept, the other one has read the other half
			}
			x := newBench(t)
			l := Launch{
				Entry: "readers",
				Grid:  [3]int{6, 1, 1},
				Block: [3]int{1, 1, 1},
				Args:  [][]byte{Value(x.put(make([]byte, 4))), Value(writer), Value(split)},
			}
			r := x.launch(p, l, Options{Races: true, Workers: 1})
			if len(r.Findings) == 0 || r.Findings[0].Kind != Race {
				t.Errorf("block %d stores, others read at %d: %v", writer, split, r.Findings)
			}
		}
	}
}

// The roundings to nearest that have code of their own have the results of the general one.
func TestToNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	formats := map[ptx.Type]smallFormat{ptx.F16x2: halfFormat, ptx.BF16x2: bfloatFormat}
	for typ, quick := range toNearest {
		f := formats[typ]
		for i := range 1 << 20 {
			bits := r.Uint32()
			if i < 1<<16 { // ties, and what is next to them
				bits = uint32(i)<<16 | []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1000, 0xfff}[i%8]
			}
			v := math.Float32frombits(bits)
			if got, want := quick(v), f.round(float64(v), nearest, false); got != want {
				t.Fatalf("%v of %#08x: %#04x, want %#04x", typ, bits, got, want)
			}
		}
	}
}
