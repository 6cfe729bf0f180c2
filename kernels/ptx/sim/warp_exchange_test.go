package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// runLanes runs body in one warp and returns the words that lanes leave in %r9.
// %r0 is the lane, %r1 a word of its own.
func runLanes(t testing.TB, body string, threads int) []uint32 {
	t.Helper()
	text := `.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
	.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f64 %d<20>;
	ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mad.lo.s32 %r1, %r0, 7, 3; mov.u32 %r9, 99;
	mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2;
` + body + `
	st.global.u32 [%rd1], %r9;
	ret;
}`
	b := newBench(t)
	out := b.alloc(int64(4 * threads))
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry: "k",
			Block: [3]int{threads, 1, 1},
			Args:  [][]byte{Value(out)},
		},
		everything,
	)
	if err := rep.Err(); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return b.words(out, threads)
}

func TestExchange(t *testing.T) {
	own := func(l int) uint32 { return uint32(7*l + 3) }
	for _, c := range []struct {
		body string
		want func(l int) uint32
	}{
		{"shfl.sync.up.b32 %r9, %r1, 3, 0, -1;", func(l int) uint32 {
			if l < 3 {
				return own(l)
			}
			return own(l - 3)
		}},
		{"shfl.sync.down.b32 %r9|%p1, %r1, 4, 31, -1; @!%p1 mov.u32 %r9, 0;", func(l int) uint32 {
			if l > 27 {
				return 0
			}
			return own(l + 4)
		}},
		{"shfl.sync.bfly.b32 %r9, %r1, 5, 31, -1;", func(l int) uint32 { return own(l ^ 5) }},
		{"shfl.sync.idx.b32 %r9, %r1, 2, 31, -1;", func(l int) uint32 { return own(2) }},
		// segments of 8 lanes: mask 0b11000 in bits 8 to 12
		{"shfl.sync.idx.b32 %r9, %r1, 2, 0x1807, -1;", func(l int) uint32 { return own(l&^7 | 2) }},
		{"shfl.sync.down.b32 %r9, %r1, 1, 0x1807, -1;", func(l int) uint32 {
			if l%8 == 7 {
				return own(l)
			}
			return own(l + 1)
		}},
		{"setp.lt.s32 %p1, %r0, 5; vote.sync.ballot.b32 %r9, %p1, -1;", func(int) uint32 { return 31 }},
		{"setp.lt.s32 %p1, %r0, 5; vote.sync.ballot.b32 %r9, !%p1, -1;", func(int) uint32 { return math.MaxUint32 - 31 }},
		{"setp.lt.s32 %p1, %r0, 5; vote.sync.any.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;", func(int) uint32 { return 1 }},
		{"setp.lt.s32 %p1, %r0, 5; vote.sync.all.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;", func(int) uint32 { return 0 }},
		{"setp.lt.s32 %p1, %r0, 50; vote.sync.uni.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;", func(int) uint32 { return 1 }},
		{"and.b32 %r2, %r0, 3; match.any.sync.b32 %r9, %r2, -1;", func(l int) uint32 { return 0x11111111 << (l % 4) }},
		{"mov.u32 %r2, 4; match.all.sync.b32 %r9|%p1, %r2, -1; @!%p1 mov.u32 %r9, 1;", func(int) uint32 { return math.MaxUint32 }},
		{"redux.sync.add.s32 %r9, %r0, -1;", func(int) uint32 { return 496 }},
		{"neg.s32 %r2, %r0; redux.sync.min.s32 %r9, %r2, -1;", func(int) uint32 { return uint32(math.MaxUint32 - 30) }},
		{"redux.sync.xor.b32 %r9, %r1, -1;", func(int) uint32 {
			v := uint32(0)
			for l := range 32 {
				v ^= own(l)
			}
			return v
		}},
		{"setp.ge.s32 %p1, %r0, 6; @%p1 activemask.b32 %r9;", func(l int) uint32 {
			if l < 6 {
				return 99
			}
			return math.MaxUint32 &^ 63
		}},
		{"elect.sync _|%p1, -1; selp.b32 %r9, 1, 0, %p1;", func(l int) uint32 { return uint32(boolBit(l == 0)) }},
		// lanes that diverge and meet again, in a loop of as many turns as the lane's number
		{`mov.u32 %r9, 0; setp.eq.s32 %p1, %r0, 0; @%p1 bra MEET;
LOOP: add.s32 %r9, %r9, 2; sub.s32 %r2, %r9, %r0; setp.lt.s32 %p1, %r2, %r0; @%p1 bra LOOP;
MEET: shfl.sync.bfly.b32 %r9, %r9, 1, 31, -1;`, func(l int) uint32 { return uint32(2 * (l ^ 1)) }},
		{"add.cc.u32 %r2, %r1, 0xfffffff0; addc.u32 %r9, 0, 0;", func(l int) uint32 { return uint32(boolBit(own(l) >= 16)) }},
		{"sub.cc.u32 %r2, %r1, 20; subc.u32 %r9, 5, 0;", func(l int) uint32 { return 5 - uint32(boolBit(own(l) < 20)) }},
		{"mad.lo.cc.u32 %r2, %r1, 0x20000000, 0; madc.hi.u32 %r9, %r1, 0x20000000, 0;", func(l int) uint32 { return own(l) >> 3 }},
		{"mov.u32 %r2, %lanemask_lt; popc.b32 %r9, %r2;", func(l int) uint32 { return uint32(l) }},
		{"mov.b64 %rd3, {%r0, %r1}; mov.b64 {%r3, %r9}, %rd3;", own},
	} {
		for l, v := range runLanes(t, c.body, 32) {
			if v != c.want(l) {
				t.Errorf("%s lane %d: %#x, want %#x", c.body, l, v, c.want(l))
				break
			}
		}
	}
}

func TestBarrierReduction(t *testing.T) {
	for body, want := range map[string]uint32{
		"setp.lt.u32 %p1, %r0, 70; bar.red.popc.u32 %r9, 0, %p1;":                                         70,
		"setp.lt.u32 %p1, %r0, 70; bar.red.popc.u32 %r9, 0, !%p1;":                                        26,
		"setp.lt.u32 %p1, %r0, 70; bar.red.and.pred %p2, 1, %p1; selp.b32 %r9, 1, 0, %p2;":                0,
		"setp.lt.u32 %p1, %r0, 70; barrier.red.or.aligned.pred %p2, 1, 96, %p1; selp.b32 %r9, 1, 0, %p2;": 1,
	} {
		for l, v := range runLanes(t, body, 96) {
			if v != want {
				t.Errorf("%s thread %d: %d, want %d", body, l, v, want)
				break
			}
		}
	}
}

// TestDoubleProduct multiplies matrices of doubles by the fragments of the ISA:
// A has row g (+8 for odd elements) and column t + 4(i/2), B row t + 4i.
func TestDoubleProduct(t *testing.T) {
	for _, c := range []struct {
		shape      string
		m, k, a, b int
	}{
		{"m8n8k4", 8, 4, 1, 1},
		{"m16n8k4", 16, 4, 2, 1},
		{"m16n8k8", 16, 8, 4, 2},
		{"m16n8k16", 16, 16, 8, 4},
	} {
		// A(r,c) = r+3c, B(r,c) = 2r+c, C = 0; the sum of D's registers is left.
		var body strings.Builder
		fill := func(reg int, first, second string) {
			fmt.Fprintf(&body, "%s %s add.s32 %%r4, %%r2, %%r3; cvt.rn.f64.s32 %%d%d, %%r4;\n", first, second, reg)
		}
		body.WriteString("shr.u32 %r5, %r0, 2; and.b32 %r6, %r0, 3;\n")
		for i := range c.a {
			fill(i, fmt.Sprintf("add.s32 %%r2, %%r5, %d;", i%2*8), fmt.Sprintf("add.s32 %%r3, %%r6, %d; mul.lo.s32 %%r3, %%r3, 3;", i/2*4))
		}
		for i := range c.b {
			fill(c.a+i, fmt.Sprintf("add.s32 %%r2, %%r6, %d; shl.b32 %%r2, %%r2, 1;", i*4), "mov.b32 %r3, %r5;")
		}
		nd := c.m / 4
		list := func(from, n int) string {
			s := make([]string, n)
			for i := range s {
				s[i] = fmt.Sprintf("%%d%d", from+i)
			}
			return "{" + strings.Join(s, ", ") + "}"
		}
		for i := range nd {
			fmt.Fprintf(&body, "mov.f64 %%d%d, 0d0000000000000000;\n", 12+i)
		}
		fmt.Fprintf(
			&body, "mma.sync.aligned.%s.row.col.f64.f64.f64.f64 %s, %s, %s, %s;\n",
			c.shape, list(12, nd), list(0, c.a),
			list(c.a, c.b), list(12, nd),
		)
		fmt.Fprintf(&body, "cvt.rni.s32.f64 %%r9, %%d%d;\n", 12+nd-1)
		for l, got := range runLanes(t, body.String(), 32) {
			row, col := l/4, l%4*2+1
			if c.m == 16 {
				row += 8
			}
			want := 0
			for k := range c.k {
				want += (row + 3*k) * (2*k + col)
			}
			if int(got) != want {
				t.Errorf("%s lane %d: %d, want %d", c.shape, l, got, want)
				break
			}
		}
	}
}

// TestWorkers runs kernels on four goroutines with the same result.
func TestWorkers(t *testing.T) {
	opt := everything
	opt.Workers = 4
	for _, name := range []string{"gemm", "reduce", "handoff", "cluster", "transpose"} {
		if bad, r := kernelCases[name](
			t, kernelText(t, name), opt,
		); bad > 0 || r.Err() != nil {
			t.Errorf("%s: %d wrong, %v", name, bad, r.Err())
		}
	}
}
