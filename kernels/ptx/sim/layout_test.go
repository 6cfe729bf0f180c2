package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
)

// fragment gives row and column of element i of a lane's fragment, as the
// sections "Matrix fragments for mma.…" of the PTX ISA spell them, element by
// element.
type fragment func(lane, i int) (row, col int)

func pickRow(high bool, g int) int {
	if high {
		return g + 8
	}
	return g
}

var isaFragments = map[string]struct {
	elements [2]int // of A and B in a lane
	bits     int
	a, b     fragment
}{
	"m16n8k16 16": {[2]int{8, 4}, 16,
		func(l, i int) (int, int) {
			col := l%4*2 + i&1
			if i >= 4 {
				col += 8
			}
			return pickRow(!(i < 2 || 4 <= i && i < 6), l/4), col
		},
		func(l, i int) (int, int) {
			row := l%4*2 + i&1
			if i >= 2 {
				row += 8
			}
			return row, l / 4
		}},
	"m16n8k8 16": {[2]int{4, 2}, 16,
		func(l, i int) (int, int) {
			return pickRow(i >= 2, l/4), l%4*2 + i&1
		},
		func(l, i int) (int, int) { return l%4*2 + i, l / 4 }},
	"m16n8k8 32": {[2]int{4, 2}, 32,
		func(l, i int) (int, int) {
			col := l % 4
			if i >= 2 {
				col += 4
			}
			return pickRow(i == 1 || i == 3, l/4), col
		},
		func(l, i int) (int, int) { return l%4 + 4*i, l / 4 }},
	"m16n8k4 32": {[2]int{2, 1}, 32,
		func(l, i int) (int, int) { return pickRow(i == 1, l/4), l % 4 },
		func(l, i int) (int, int) { return l % 4, l / 4 }},
	"m16n8k16 8": {[2]int{8, 4}, 8,
		func(l, i int) (int, int) {
			return pickRow(i >= 4, l/4), l%4*4 + i&3
		},
		func(l, i int) (int, int) { return l%4*4 + i&3, l / 4 }},
	"m16n8k32 8": {[2]int{16, 8}, 8,
		func(l, i int) (int, int) {
			col := l%4*4 + i&3
			if i >= 8 {
				col += 16
			}
			return pickRow(!(i < 4 || 8 <= i && i < 12), l/4), col
		},
		func(l, i int) (int, int) {
			row := l%4*4 + i&3
			if i >= 4 {
				row += 16
			}
			return row, l / 4
		}},
}

func isaAccumulator(l, i int) (row, col int) {
	return pickRow(i >= 2, l/4), l%4*2 + i&1
}

// fragmentKernel loads na+nb+nc registers of every lane, does one instruction,
// and stores nd.
func fragmentKernel(opcode string, nd, na, nb, nc int, half bool) string {
	var b strings.Builder
	b.WriteString(".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %rd<9>;\n")
	b.WriteString("ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;\n")
	c := "%f"
	if half {
		c = "%r3"
	}
	list := func(prefix string, from, n int) string {
		var s []string
		for i := range n {
			s = append(s, fmt.Sprintf("%s%d", prefix, from+i))
		}
		return "{" + strings.Join(s, ", ") + "}"
	}
	for i := range na + nb {
		fmt.Fprintf(&b, "ld.global.b32 %%r%d, [%%rd1+%d];\n", 1+i, i*128)
	}
	for i := range nc {
		fmt.Fprintf(&b, "ld.global.b32 %s%d, [%%rd1+%d];\n", c, i, (na+nb+i)*128)
	}
	fmt.Fprintf(
		&b, "%s %s, %s, %s, %s;\n",
		opcode, list(c, 0, nd), list("%r", 1, na),
		list("%r", 1+na, nb), list(c, 0, nc),
	)
	for i := range nd {
		fmt.Fprintf(&b, "st.global.b32 [%%rd2+%d], %s%d;\n", i*128, c, i)
	}
	b.WriteString("ret;\n}\n")
	return b.String()
}

// TestFragments multiplies integer matrices laid out by the formulas of the
// ISA, in every shape and type.
func TestFragments(t *testing.T) {
	for _, c := range []struct {
		layout, opcode string
		encode         func(v int) uint32
	}{
		{"m16n8k16 16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", func(v int) uint32 { return uint32(floatToHalf(float32(v))) }},
		{"m16n8k16 16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", func(v int) uint32 { return uint32(floatToBfloat(float32(v))) }},
		{"m16n8k16 16", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", func(v int) uint32 { return uint32(floatToHalf(float32(v))) }},
		{"m16n8k8 16", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", func(v int) uint32 { return uint32(floatToHalf(float32(v))) }},
		{"m16n8k8 16", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", func(v int) uint32 { return uint32(floatToBfloat(float32(v))) }},
		{"m16n8k8 32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", func(v int) uint32 { return math.Float32bits(float32(v)) }},
		{"m16n8k4 32", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", func(v int) uint32 { return math.Float32bits(float32(v)) }},
		{"m16n8k32 8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", func(v int) uint32 { return uint32(uint8(v)) }},
		{"m16n8k16 8", "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", func(v int) uint32 { return uint32(uint8(v)) }},
		{"m16n8k32 8", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", func(v int) uint32 {
			return uint32(e4m3Format.round(float64(v), nearest, true))
		}},
		{"m16n8k32 8", "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", func(v int) uint32 {
			return uint32(e5m2Format.round(float64(v), nearest, true))
		}},
	} {
		t.Run(c.opcode, func(t *testing.T) {
			testFragments(t, c.layout, c.opcode, c.encode)
		})
	}
}

func testFragments(t *testing.T, layout, opcode string, encode func(int) uint32) {
	f := isaFragments[layout]
	half, integer := strings.Contains(opcode, "col.f16"), strings.Contains(opcode, "s32")
	r := random(11)
	var a [16][32]int
	var b [32][8]int
	na, nb := f.elements[0]*f.bits/32, f.elements[1]*f.bits/32
	nc := 4
	if half {
		nc = 2
	}
	regs := make([]uint32, (na+nb+nc)*32)
	for l := range 32 {
		for i := range f.elements[0] {
			row, col := f.a(l, i)
			a[row][col] = r.IntN(5) - 2
			regs[i*f.bits/32*32+l] |= encode(a[row][col]) <<
				(i * f.bits % 32)
		}
		for i := range f.elements[1] {
			row, col := f.b(l, i)
			b[row][col] = r.IntN(5) - 2
			regs[(na+i*f.bits/32)*32+l] |= encode(
				b[row][col],
			) << (i * f.bits % 32)
		}
		for i := range 4 {
			at := (na + nb) * 32
			switch {
			case integer:
				regs[at+i*32+l] = uint32(100 + i)
			case half:
				regs[at+i/2*32+l] |= uint32(floatToHalf(float32(100+i))) << (i %
					2 * 16)
			default:
				regs[at+i*32+l] = math.Float32bits(float32(100 + i))
			}
		}
	}
	x := newBench(t)
	raw := []byte{}
	for _, v := range regs {
		raw = binary.LittleEndian.AppendUint32(raw, v)
	}
	in, out := x.put(raw), x.alloc(int64(nc)*128)
	rep := x.launch(
		mustLoad(t, fragmentKernel(opcode, nc, na, nb, nc, half || integer)),
		Launch{
			Entry: "k",
			Block: [3]int{32, 1, 1},
			Args:  [][]byte{Value(in), Value(out)},
		},
		everything,
	)
	if err := rep.Err(); err != nil {
		t.Fatal(err)
	}
	got := x.words(out, nc*32)
	for l := range 32 {
		for i := range 4 {
			row, col := isaAccumulator(l, i)
			want := 100 + i
			for k := range 32 {
				want += a[row][k] * b[k][col]
			}
			var v float32
			switch {
			case integer:
				v = float32(int32(got[i*32+l]))
			case half:
				v = halfToFloat(uint16(got[i/2*32+l] >> (i % 2 * 16)))
			default:
				v = math.Float32frombits(got[i*32+l])
			}
			if v != float32(want) {
				t.Fatalf("lane %d element %d: %v, want %d", l, i, v, want)
			}
		}
	}
}

// TestMatrixMoves loads matrices with ldmatrix, compares lane by lane with the
// ISA's figure, and stores them back elsewhere with stmatrix.
func TestMatrixMoves(t *testing.T) {
	for _, trans := range []string{"", ".trans"} {
		for _, n := range []int{1, 2, 4} {
			regs := strings.Join([]string{"%r1", "%r2", "%r3", "%r4"}[:n], ", ")
			text := fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 back)
{
	.reg .pred %%p; .reg .b16 %%h<3>; .reg .b32 %%r<20>; .reg .b64 %%rd<9>;
	.shared .align 16 .b8 m[512]; .shared .align 16 .b8 m2[512];
	ld.param.u64 %%rd1, [out]; ld.param.u64 %%rd2, [back];
	mov.u32 %%r10, %%tid.x; mov.u32 %%r11, m; mov.u32 %%r12, m2;
	mad.lo.s32 %%r13, %%r10, 16, %%r11; mad.lo.s32 %%r14, %%r10, 16, %%r12;
	mov.u32 %%r15, 0;
FILL: // lane l writes elements 8l to 8l+7 of the matrices: element e has value e
	mad.lo.s32 %%r16, %%r10, 8, %%r15; cvt.u16.u32 %%h1, %%r16;
	mad.lo.s32 %%r17, %%r15, 2, %%r13;
	st.shared.u16 [%%r17], %%h1;
	add.s32 %%r15, %%r15, 1; setp.lt.s32 %%p, %%r15, 8; @%%p bra FILL;
	bar.warp.sync -1;
	ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 {%s}, [%%r13];
	stmatrix.sync.aligned.m8n8.x%d%s.shared.b16 [%%r14], {%s};
	bar.warp.sync -1;
	mul.wide.u32 %%rd3, %%r10, 4; add.s64 %%rd4, %%rd1, %%rd3;
`, n, trans, regs, n, trans, regs)
			for i := range n {
				text += fmt.Sprintf("st.global.b32 [%%rd4+%d], %%r%d;\n", i*128, i+1)
			}
			text += fmt.Sprintf("mul.wide.u32 %%rd5, %%r10, 16; add.s64 %%rd6, %%rd2, %%rd5; setp.ge.s32 %%p, %%r10, %d; @%%p ret;\n", 8*n)
			text += "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r14]; st.global.v4.b32 [%rd6], {%r1, %r2, %r3, %r4}; ret;\n}\n"
			x := newBench(t)
			out, back := x.alloc(512), x.alloc(512)
			rep := x.launch(
				mustLoad(t, text),
				Launch{
					Entry: "k",
					Block: [3]int{32, 1, 1},
					Args:  [][]byte{Value(out), Value(back)},
				},
				everything,
			)
			if err := rep.Err(); err != nil {
				t.Fatal(err)
			}
			got := x.words(out, 32*n)
			for i := range n {
				for l := range 32 {
					// thread l holds row l/4, elements 2(l%4), 2(l%4)+1; transposed: of column l/4
					lo := i*64 + l/4*8 + l%4*2
					hi := i*64 + l/4*8 + l%4*2 + 1
					if trans != "" {
						lo = i*64 + l%4*2*8 + l/4
						hi = i*64 + (l%4*2+1)*8 + l/4
					}
					if want := uint32(hi<<16 | lo); got[i*32+l] != want {
						t.Fatalf("x%d%s: matrix %d lane %d: %#x, want %#x", n, trans, i, l, got[i*32+l], want)
					}
				}
			}
			for i, v := range x.words(back, 32*n) {
				if want := uint32((2*i+1)<<16 | 2*i); v != want {
					t.Fatalf("x%d%s: word %d stored back is %#x, want %#x", n, trans, i, v, want)
				}
			}
		}
	}
}

// cute evaluates a CuTe layout: coordinate i of a mode with nested shape and
// stride, innermost first.
func cute(i int64, shape, stride []int64) int64 {
	at := int64(0)
	for m := range shape {
		at += i % shape[m] * stride[m]
		i /= shape[m]
	}
	return at
}

// TestDescriptorLayouts compares operand addresses with the canonical layouts
// that CUTLASS documents (cute/arch/mma_sm90_desc.hpp), in units of 16-byte
// words T and elements.
func TestDescriptorLayouts(t *testing.T) {
	const leading = 0x3000
	const stride = 0x1800
	const big = 1 << 20
	for _, bytes := range []int64{1, 2, 4} {
		T := 16 / bytes
		lbo, sbo := leading/bytes, stride/bytes
		for sw, w := range map[Swizzle]int64{SwizzleNone: 1, Swizzle32: 2, Swizzle64: 4, Swizzle128: 8} {
			k := operand{start: 0x8000, leading: leading, stride: stride, swizzle: sw, bytes: bytes}
			mn := k
			mn.mnMajor = true
			for x := range int64(64) {
				for y := range 32 / bytes {
					// K-major: ((8,m),(T,2)) : ((w·T,SBO),(1,T)), unswizzled ((1T,SBO),(1,LBO))
					step := T
					if sw == SwizzleNone {
						step = lbo
					}
					at := cute(x, []int64{8, big}, []int64{w * T, sbo}) +
						cute(y, []int64{T, big}, []int64{1, step})
					if got, want := k.address(x, y),
						sw.apply(0x8000+at*bytes); got != want && y < w*T {
						t.Fatalf("K-major %d-byte elements, swizzle %d, (%d,%d): %#x, want %#x", bytes, sw, x, y, got, want)
					}
					if bytes != 2 {
						continue
					}
					// MN-major: ((T,w,m),(8,k)) : ((1,T,LBO),(wT,SBO)), unswizzled ((1,T,SBO),(1T,LBO))
					outer, group := lbo, sbo
					if sw == SwizzleNone {
						outer, group = sbo, lbo
					}
					at = cute(x, []int64{T, w, big}, []int64{1, T, outer}) +
						cute(y, []int64{8, big}, []int64{w * T, group})
					if got, want := mn.address(x, y), sw.apply(0x8000+at*bytes); got != want {
						t.Fatalf("MN-major swizzle %d, (%d,%d): %#x, want %#x", sw, x, y, got, want)
					}
				}
			}
		}
	}
}
