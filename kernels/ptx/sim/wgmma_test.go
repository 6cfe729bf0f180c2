package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// operandImage lays an mn × k matrix out in shared memory as CUTLASS' canonical
// layout says, and gives the descriptor's offsets and swizzle field.
func operandImage(
	v [][]int, bytes int64, sw Swizzle, mnMajor bool, encode func(int) uint32,
) (image []byte, descriptor uint64) {
	mn, k := int64(len(v)), int64(len(v[0]))
	T := 16 / bytes
	w := []int64{1, 2, 4, 8}[sw]
	image = make([]byte, 32<<10)
	groups := (mn + 7) / 8
	// Leading and stride offsets in elements, atoms one after the other.
	var lbo, sbo int64
	switch {
	case sw == SwizzleNone && !mnMajor: // core matrices of 128 bytes: along mn first
		sbo, lbo = 8*T, 8*T*groups
	case sw == SwizzleNone: // stride along mn, leading along k
		sbo, lbo = 8*T, 8*T*(mn/T)
	case mnMajor: // atoms of w·T × 8: along k first
		sbo, lbo = 8*w*T, 8*w*T*(k/8)
	default:
		sbo, lbo = 8*w*T, T
	}
	for x := range mn {
		for y := range k {
			var at int64
			switch {
			case mnMajor && sw == SwizzleNone:
				at = cute(x, []int64{T, 1 << 20}, []int64{1, sbo}) +
					cute(y, []int64{8, 1 << 20}, []int64{T, lbo})
			case mnMajor:
				at = cute(x, []int64{T, w, 1 <<
					20}, []int64{1, T, lbo}) +
					cute(y, []int64{8, 1 << 20}, []int64{w * T, sbo})
			default:
				step := T
				if sw == SwizzleNone {
					step = lbo
				}
				at = cute(x, []int64{8, 1 << 20}, []int64{w * T, sbo}) +
					cute(y, []int64{T, 1 << 20}, []int64{1, step})
			}
			store(
				image[sw.apply(at*bytes):],
				uint8(bytes),
				uint64(encode(v[x][y])),
			)
		}
	}
	field := []uint64{0, 3, 2, 1}[sw]
	return image, uint64(lbo*bytes>>4&0x3fff)<<16 |
		uint64(sbo*bytes>>4&0x3fff)<<32 | field<<62
}

type wgmmaCase struct {
	opcode         string
	n, k, bits     int
	swizzle        Swizzle
	transA, transB bool
	fromRegs       bool
	encode         func(int) uint32
}

// text is a kernel that copies 64 KiB into shared memory, does one product of
// A at 0 and B at 32 KiB, and stores the accumulators.
func (c *wgmmaCase) text(descA, descB uint64) string {
	nd := c.n / 2
	if strings.Contains(c.opcode, "k16.f16") || strings.Contains(c.opcode, "k32.f16") {
		nd = c.n / 4
	}
	bank, class := "%f", "f32"
	if nd == c.n/4 || strings.Contains(c.opcode, "s32") {
		bank, class = "%a", "b32"
	}
	acc := make([]string, nd)
	for i := range acc {
		acc[i] = fmt.Sprintf("%s%d", bank, i)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 image, .param .u64 out, .param .u64 regs)
{
	.reg .pred %%p<3>; .reg .b32 %%r<20>; .reg .b64 %%rd<20>; .reg .%s %s<%d>;
	ld.param.u64 %%rd1, [image]; ld.param.u64 %%rd2, [out]; ld.param.u64 %%rd9, [regs];
	mov.u32 %%r1, %%tid.x; mov.u32 %%r2, smem; mov.u32 %%r3, 0;
	mul.wide.u32 %%rd3, %%r1, 16; add.s64 %%rd1, %%rd1, %%rd3; mad.lo.s32 %%r4, %%r1, 16, %%r2;
COPY:
	ld.global.v4.b32 {%%r5, %%r6, %%r7, %%r8}, [%%rd1];
	st.shared.v4.b32 [%%r4], {%%r5, %%r6, %%r7, %%r8};
	add.s64 %%rd1, %%rd1, 2048; add.s32 %%r4, %%r4, 2048; add.s32 %%r3, %%r3, 1;
	setp.lt.s32 %%p1, %%r3, 32; @%%p1 bra COPY;
	fence.proxy.async;
	bar.sync 0;
	mul.wide.u32 %%rd4, %%r1, 4; add.s64 %%rd2, %%rd2, %%rd4; add.s64 %%rd9, %%rd9, %%rd4;
	shr.u32 %%r9, %%r2, 4; cvt.u64.u32 %%rd5, %%r9;
	or.b64 %%rd6, %%rd5, %#x; add.s64 %%rd7, %%rd5, 2048; or.b64 %%rd7, %%rd7, %#x;
`, class, bank, nd, descA, descB)
	a, flags := "%rd6", ""
	if c.bits == 16 {
		flags = fmt.Sprintf(", %d, %d", boolBit(c.transA), boolBit(c.transB))
	}
	if c.fromRegs {
		for i := range 4 {
			fmt.Fprintf(&b, "\tld.global.b32 %%r%d, [%%rd9+%d];\n", 10+i, 512*i)
		}
		a = "{%r10, %r11, %r12, %r13}"
		if c.bits == 16 {
			flags = fmt.Sprintf(", %d", boolBit(c.transB))
		}
	}
	if !strings.Contains(c.opcode, "s32") {
		flags = ", 1, 1" + flags
	}
	fmt.Fprintf(&b, "\twgmma.fence.sync.aligned;\n\tsetp.ne.s32 %%p2, %%r1, %%r1;\n\t%s {%s}, %s, %%rd7, %%p2%s;\n\twgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n", c.opcode, strings.Join(acc, ", "), a, flags)
	for i := range acc {
		fmt.Fprintf(&b, "\tst.global.b32 [%%rd2+%d], %s;\n", 512*i, acc[i])
	}
	b.WriteString("\tret;\n}\n")
	return b.String()
}

func (c *wgmmaCase) run(t *testing.T) {
	r := random(30)
	matrix := func(rows int) [][]int {
		m := make([][]int, rows)
		for i := range m {
			m[i] = make([]int, c.k)
			for j := range m[i] {
				m[i][j] = r.IntN(5) - 2
				if strings.Contains(c.opcode, "u8") {
					m[i][j] += 2
				}
			}
		}
		return m
	}
	a, b := matrix(64), matrix(c.n)
	imageA, descA := operandImage(a, int64(c.bits/8), c.swizzle, c.transA, c.encode)
	imageB, descB := operandImage(b, int64(c.bits/8), c.swizzle, c.transB, c.encode)
	regs := make([]byte, 4*512)
	per := 32 / c.bits
	for thread := range 128 {
		for i := range 4 { // the layout of mma's A, 16 rows a warp
			row := thread/32*16 + thread%32/4 + 8*(i&1)
			v := uint32(0)
			for e := range per {
				v |= c.encode(
					a[row][thread%4*per+4*per*(i/2)+e],
				) << (e * c.bits)
			}
			binary.LittleEndian.PutUint32(regs[i*512+thread*4:], v)
		}
	}
	x := newBench(t)
	image := x.put(append(imageA, imageB...))
	out := x.alloc(512 * int64(c.n) / 2)
	reg := x.put(regs)
	rep := x.launch(
		mustLoad(t, c.text(descA, descB)),
		Launch{
			Entry:  "k",
			Block:  [3]int{128, 1, 1},
			Shared: 64 << 10,
			Args:   [][]byte{Value(image), Value(out), Value(reg)},
		},
		everything,
	)
	if err := rep.Err(); err != nil {
		t.Fatal(err)
	}
	got := x.words(out, 128*c.n/2)
	for thread := range 128 {
		for i := range c.n / 2 {
			row := thread/32*16 + thread%32/4 + 8*(i/2&1)
			col := thread%4*2 + i&1 + 8*(i/4)
			want := 0
			for k := range c.k {
				want += a[row][k] * b[col][k]
			}
			v := got[i*128+thread]
			f := math.Float32frombits(v)
			switch {
			case strings.Contains(c.opcode, "s32"):
				f = float32(int32(v))
			case !strings.Contains(c.opcode, "f32."):
				f = halfToFloat(uint16(got[i/2*128+thread] >> (i & 1 * 16)))
			}
			if f != float32(want) {
				t.Fatalf("row %d column %d is %v, want %d", row, col, f, want)
			}
		}
	}
}

func TestWarpgroupProducts(t *testing.T) {
	half := func(v int) uint32 { return uint32(floatToHalf(float32(v))) }
	bfloat := func(v int) uint32 { return uint32(floatToBfloat(float32(v))) }
	single := func(v int) uint32 { return math.Float32bits(float32(v)) }
	byteOf := func(v int) uint32 { return uint32(uint8(v)) }
	e4m3 := func(v int) uint32 { return uint32(e4m3Format.round(float64(v), nearest, true)) }
	e5m2 := func(v int) uint32 { return uint32(e5m2Format.round(float64(v), nearest, true)) }
	var cases []wgmmaCase
	for _, sw := range []Swizzle{SwizzleNone, Swizzle32, Swizzle64, Swizzle128} {
		for trans := range 4 {
			cases = append(cases, wgmmaCase{
				"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", 128, 16, 16, sw,
				trans&1 == 1, trans&2 == 2, false, half,
			})
		}
		cases = append(cases,
			wgmmaCase{"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", 64, 16, 16, sw, false, false, true, bfloat},
			wgmmaCase{"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16", 8, 16, 16, sw, false, false, false, half},
			wgmmaCase{"wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32", 32, 8, 32, sw, false, false, false, single},
			wgmmaCase{"wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8", 64, 32, 8, sw, false, false, false, byteOf},
			wgmmaCase{"wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.u8", 64, 32, 8, sw, false, false, true, byteOf},
			wgmmaCase{"wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3", 256, 32, 8, sw, false, false, false, e4m3},
			wgmmaCase{"wgmma.mma_async.sync.aligned.m64n16k32.f16.e5m2.e5m2", 16, 32, 8, sw, false, false, true, e5m2},
		)
	}
	for _, c := range cases {
		if c.transB && c.n < 8*8*int(c.swizzle.Bytes()/16+1)/8 {
			continue
		}
		t.Run(
			fmt.Sprintf(
				"%s/swizzle%d/%v%v%v", c.opcode, c.swizzle.Bytes(), c.transA, c.transB, c.fromRegs,
			),
			c.run,
		)
	}
}

// TestTensorBoxes copies boxes that hang over a 3-dimensional tensor into
// shared memory and compares every element, with every swizzle.
func TestTensorBoxes(t *testing.T) {
	const text = `.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .align 64 .b8 m[128], .param .u64 out, .param .s32 x, .param .s32 y, .param .s32 z, .param .u32 bytes)
{
	.reg .pred %p<3>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
	.shared .align 8 .b64 bar;
	ld.param.u64 %rd2, [out]; ld.param.s32 %r1, [x]; ld.param.s32 %r2, [y]; ld.param.s32 %r3, [z]; ld.param.u32 %r4, [bytes];
	mov.u32 %r5, smem; mov.u32 %r6, bar; mov.b64 %rd1, m;
	mov.u32 %r7, %tid.x; setp.ne.u32 %p1, %r7, 0; @%p1 bra WAIT;
	mbarrier.init.shared.b64 [%r6], 1;
	fence.mbarrier_init.release.cluster;
	mbarrier.arrive.expect_tx.shared.b64 _, [%r6], %r4;
	cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1, {%r1, %r2, %r3}], [%r6];
WAIT:
	bar.sync 0;
POLL:
	mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 0;
	@!%p2 bra POLL;
	shl.b32 %r8, %r7, 2;
LOOP:
	setp.ge.u32 %p1, %r8, %r4; @%p1 ret;
	add.s32 %r9, %r5, %r8; ld.shared.b32 %r10, [%r9];
	cvt.u64.u32 %rd3, %r8; add.s64 %rd4, %rd2, %rd3; st.global.b32 [%rd4], %r10;
	add.s32 %r8, %r8, 128; bra LOOP;
}
`
	dims := [3]int{24, 7, 5}
	x := newBench(t)
	var data []byte
	for i := range dims[0] * dims[1] * dims[2] {
		data = binary.LittleEndian.AppendUint32(data, uint32(1000+i))
	}
	in := x.put(data)
	for _, nan := range []bool{false, true} {
		for _, sw := range []Swizzle{SwizzleNone, Swizzle32, Swizzle64, Swizzle128} {
			for _, at := range [][3]int{{0, 0, 0}, {
				20, 5, 4,
			}, {-3, -2, -1}, {30, 0, 0}} {
				box := [3]int{8, 4, 3}
				if sw == Swizzle64 || sw == Swizzle128 {
					box[0] = sw.Bytes() / 4
				}
				m := TensorMap{
					Type:    ptx.F32,
					Address: in,
					Dims:    []uint64{24, 7, 5},
					Strides: []uint64{96, 96 * 7},
					Box:     []uint32{uint32(box[0]), 4, 3},
					Swizzle: sw,
					NaNFill: nan,
				}
				n := box[0] * box[1] * box[2]
				out := x.alloc(int64(4 * n))
				rep := x.launch(
					mustLoad(t, text),
					Launch{Entry: "k", Block: [3]int{32, 1, 1}, Shared: 16 << 10,
						Args: [][]byte{
							x.tensorMap(m), Value(out),
							Value(int32(at[0])),
							Value(int32(at[1])),
							Value(int32(at[2])), Value(uint32(4 * n)),
						}, Outputs: []uint64{out}},
					everything,
				)
				if err := rep.Err(); err != nil {
					t.Fatal(err)
				}
				got := x.words(out, n)
				for i := range n {
					c := [3]int{
						at[0] + i%box[0],
						at[1] + i/box[0]%box[1],
						at[2] + i/box[0]/box[1],
					}
					want := uint32(0)
					if nan {
						want = 0xffffffff
					}
					if c[0] >= 0 && c[0] < dims[0] &&
						c[1] >= 0 && c[1] < dims[1] &&
						c[2] >= 0 && c[2] < dims[2] {
						want = uint32(1000 + c[0] + dims[0]*(c[1]+
							dims[1]*c[2]))
					}
					if v := got[sw.apply(int64(4*i))/4]; v != want {
						t.Fatalf("swizzle %d box at %v: element %v is %d, want %d", sw.Bytes(), at, c, v, want)
					}
				}
			}
		}
	}
}
