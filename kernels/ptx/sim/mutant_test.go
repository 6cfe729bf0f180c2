package sim

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// kernelCase runs a kernel and counts the wrong elements of its result.
type kernelCase func(t testing.TB, text string, opt Options) (wrong int, r *Report)

var kernelCases = map[string]kernelCase{
	"gemm": func(t testing.TB, text string, opt Options) (int, *Report) {
		return runGEMM(t, text, 256, 128, 192, opt)
	},
	"vadd":      runVectorAdd,
	"transpose": runTranspose,
	"reduce":    runReduce,
	"softmax":   runSoftmax,
	"handoff":   runHandoff,
	"warpsync":  runWarpSync,
	"pipeline":  runPipeline,
	"wgmma":     runWGMMA,
	"bulkstore": runBulkStore,
	"cluster":   runCluster,
	"copies":    runCopies,
}

func kernelText(t testing.TB, name string) string { return readText(t, name+".ptx") }

func runVectorAdd(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	const n = 1000
	x, y := eighths(random(1), n), eighths(random(2), n)
	ax := b.put(floatBytes(x))
	ay := b.put(floatBytes(y))
	az := b.alloc(4 * n)
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry: "vadd",
			Grid:  [3]int{8, 1, 1},
			Block: [3]int{128, 1, 1},
			Args: [][]byte{
				Value(ax), Value(ay), Value(az), Value(uint32(n)),
			},
			Outputs: []uint64{az},
		}, opt,
	)
	for i := range x {
		x[i] += y[i]
	}
	return wrong(b.floats(az, n), x), rep
}

func runTranspose(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	const rows, cols = 70, 100
	x := eighths(random(3), rows*cols)
	in, out := b.put(floatBytes(x)), b.alloc(4*rows*cols)
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry: "transpose",
			Grid:  [3]int{4, 3, 1},
			Block: [3]int{32, 8, 1},
			Args: [][]byte{
				Value(in), Value(out), Value(uint32(rows)), Value(uint32(cols)),
			},
			Outputs: []uint64{out},
		}, opt,
	)
	want := make([]float32, rows*cols)
	for i := range rows {
		for j := range cols {
			want[j*rows+i] = x[i*cols+j]
		}
	}
	return wrong(b.floats(out, rows*cols), want), rep
}

func runReduce(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	const n = 5000
	x := eighths(random(4), n)
	in, out := b.put(floatBytes(x)), b.put(make([]byte, 4))
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry: "reduce",
			Grid:  [3]int{5, 1, 1},
			Block: [3]int{256, 1, 1},
			Args:  [][]byte{Value(in), Value(out), Value(uint32(n))},
		}, opt,
	)
	var s float32
	for _, v := range x {
		s += v
	}
	return wrong(b.floats(out, 1), []float32{s}), rep
}

func runSoftmax(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	const rows, cols = 10, 64
	x := eighths(random(5), rows*cols)
	in, out := b.put(floatBytes(x)), b.alloc(4*rows*cols)
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry:   "softmax",
			Grid:    [3]int{3, 1, 1},
			Block:   [3]int{128, 1, 1},
			Args:    [][]byte{Value(in), Value(out), Value(uint32(rows))},
			Outputs: []uint64{out},
		}, opt,
	)
	got := b.floats(out, rows*cols)
	bad := 0
	for i := range rows {
		var sum float64
		for _, v := range x[i*cols : (i+1)*cols] {
			sum += math.Exp(float64(v))
		}
		for j, v := range x[i*cols : (i+1)*cols] {
			want := math.Exp(float64(v)) / sum
			if !(math.Abs(float64(got[i*cols+j])-want) < 1e-6) {
				bad++
			}
		}
	}
	return bad, rep
}

func runHandoff(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	data := b.alloc(128)
	flag := b.put(make([]byte, 4))
	out := b.alloc(128)
	opt.Budget = 1 << 22
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry:   "handoff",
			Grid:    [3]int{2, 1, 1},
			Block:   [3]int{32, 1, 1},
			Args:    [][]byte{Value(data), Value(flag), Value(out)},
			Outputs: []uint64{out},
		}, opt,
	)
	bad := 0
	for i, v := range b.words(out, 32) {
		if v != uint32(3*i+7) {
			bad++
		}
	}
	return bad, rep
}

func runWarpSync(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	out := b.alloc(128)
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry:   "warpsync",
			Block:   [3]int{32, 1, 1},
			Args:    [][]byte{Value(out)},
			Outputs: []uint64{out},
		},
		opt,
	)
	bad := 0
	for i, v := range b.words(out, 32) {
		if v != uint32(i^5) {
			bad++
		}
	}
	return bad, rep
}

func runPipeline(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	const n = 7
	x := eighths(random(6), 32*n)
	in, out := b.put(floatBytes(x)), b.alloc(128*n)
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry:   "pipeline",
			Block:   [3]int{64, 1, 1},
			Args:    [][]byte{Value(in), Value(out), Value(uint32(n))},
			Outputs: []uint64{out},
		},
		opt,
	)
	return wrong(b.floats(out, 32*n), x), rep
}

// tensorMap encodes a map of a rows × cols matrix with 128-byte swizzle.
func (b *bench) tensorMap(m TensorMap) []byte {
	b.t.Helper()
	e, err := m.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}

func runWGMMA(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	const k = 5 * 64
	x, y := eighths(random(7), 64*k), eighths(random(8), 64*k)
	ax := b.put(halfBytes(x))
	ay := b.put(halfBytes(y))
	az := b.alloc(4 * 64 * 64)
	tmap := func(addr uint64) []byte {
		return b.tensorMap(TensorMap{
			Type:    ptx.F16,
			Address: addr,
			Dims:    []uint64{k, 64},
			Strides: []uint64{2 * k},
			Box:     []uint32{64, 64},
			Swizzle: Swizzle128,
		})
	}
	rep := b.launch(
		mustLoad(t, text),
		Launch{Entry: "wgmma", Block: [3]int{160, 1, 1}, Shared: 32800,
			Args: [][]byte{
				tmap(ax), tmap(ay), Value(az), Value(uint32(k / 64)),
			}, Outputs: []uint64{az}},
		opt,
	)
	want := make([]float32, 64*64)
	for i := range 64 {
		for j := range 64 {
			for l := range k {
				want[i*64+j] += x[i*k+l] * y[j*k+l]
			}
		}
	}
	return wrong(b.floats(az, 64*64), want), rep
}

func runBulkStore(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	const rows, cols = 40, 60 // the last boxes hang over
	x := eighths(random(9), rows*cols)
	in, out := b.put(floatBytes(x)), b.alloc(4*rows*cols)
	tmap := func(addr uint64) []byte {
		return b.tensorMap(TensorMap{
			Type:    ptx.F32,
			Address: addr,
			Dims:    []uint64{cols, rows},
			Strides: []uint64{4 * cols},
			Box:     []uint32{32, 32},
			Swizzle: Swizzle128,
		})
	}
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry:   "bulkstore",
			Grid:    [3]int{2, 2, 1},
			Block:   [3]int{128, 1, 1},
			Args:    [][]byte{tmap(in), tmap(out)},
			Outputs: []uint64{out},
		}, opt,
	)
	for i := range x {
		x[i] *= 2
	}
	return wrong(b.floats(out, rows*cols), x), rep
}

func runCluster(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	x := make([]float32, 32)
	for i := range x {
		x[i] = math.Float32frombits(uint32(100 * i))
	}
	in, out := b.put(floatBytes(x)), b.alloc(4*128)
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry:   "cluster",
			Grid:    [3]int{4, 1, 1},
			Block:   [3]int{32, 1, 1},
			Args:    [][]byte{Value(in), Value(out)},
			Outputs: []uint64{out},
		}, opt,
	)
	bad := 0
	for i, v := range b.words(out, 128) {
		if v != uint32(200*(i%32)+3) {
			bad++
		}
	}
	return bad, rep
}

func runCopies(t testing.TB, text string, opt Options) (int, *Report) {
	b := newBench(t)
	data, start := make([]int32, 256), make([]int32, 256)
	for i := range data {
		data[i], start[i] = int32(3*i), int32(1000-i)
	}
	in := b.put(intBytes(data))
	out := b.alloc(1024)
	sum := b.put(intBytes(start))
	rep := b.launch(
		mustLoad(t, text),
		Launch{
			Entry:   "copies",
			Block:   [3]int{32, 1, 1},
			Args:    [][]byte{Value(in), Value(out), Value(sum)},
			Outputs: []uint64{out},
		},
		opt,
	)
	bad := 0
	for i, v := range b.words(out, 256) {
		want := uint32(data[i])
		if i < 128 {
			want += uint32(start[i])
		}
		if v != want {
			bad++
		}
	}
	return bad, rep
}

// A mutant breaks one rule of a kernel. old is a regular expression whose first
// (or, with all, every) match becomes new; want is what must tell, or
// "traffic" where only the counters do.
type mutant struct {
	kernel, name string
	old, new     string
	all          bool
	want         Kind
}

const (
	wrongResult Kind = "wrong result"
	traffic     Kind = "traffic"
)

var mutants = []mutant{
	{"gemm", "barrier dropped", `bar\.sync 0;`, ``, false, Race},
	{"gemm", "waits for one group too few", `wait_group 2`, `wait_group 3`, false, MissingWait},
	{"gemm", "no wait at all", `cp\.async\.wait_group 2;`, ``, false, MissingWait},
	{"gemm", "swizzle dropped on both sides", `xor\.b32 (%r\d+), (%r\d+), (%r\d+)`, `or.b32 $1, $2, $2`, true, traffic},
	{"gemm", "swizzle dropped on one side", `xor\.b32 (%r\d+), (%r\d+), (%r\d+)`, `or.b32 $1, $2, $2`, false, wrongResult},
	{"gemm", "guard of the loads dropped", `@%p\d+ cp\.async`, `cp.async`, true, OutOfBounds},
	{"gemm", "fragment registers swapped", `(f32 \{[^}]*\}, \{%r\d+), (%r\d+), (%r\d+),`, `$1, $3, $2,`, false, wrongResult},
	{"gemm", "scalar epilogue", `st\.global\.v2\.f32 \[(%rd\d+)\+(\d+)\], \{(%f\d+), (%f\d+)\};`, `st.global.f32 [$1+$2], $3; add.s64 $1, $1, 4; st.global.f32 [$1+$2], $4; add.s64 $1, $1, -4;`, true, traffic},
	{"gemm", "result shifted by 4 bytes", `st\.global\.v2\.f32 \[(%rd\d+)\+0\]`, `st.global.v2.f32 [$1+4]`, true, Misaligned},
	{"gemm", "accumulator not cleared", `mov\.f32 %f5, 0f00000000;`, ``, false, Uninitialised},
	{"gemm", "fragment from the wrong k", `(ldmatrix[^\[]*\[%r\d+)\+1024\]`, `$1+0]`, false, wrongResult},
	{"gemm", "bytes per copy halved", `(cp\.async)\.cg(.*), 16;`, `$1.ca$2, 8;`, true, Uninitialised},
	{"gemm", "commit dropped", `cp\.async\.commit_group;`, ``, true, MissingWait},
	{"vadd", "bounds guard dropped", `@%p1 bra DONE;`, ``, false, OutOfBounds},
	{"vadd", "guard off by one", `setp\.ge\.s32`, `setp.gt.s32`, false, OutOfBounds},
	{"vadd", "last element missed", `setp\.ge\.s32 %p1, %r1, %r2;`, `add.s32 %r2, %r2, -1; setp.ge.s32 %p1, %r1, %r2;`, false, Unwritten},
	{"vadd", "stride of 8 bytes", `mul\.wide\.s32 %rd5, %r1, 4`, `mul.wide.s32 %rd5, %r1, 8`, false, OutOfBounds},
	{"vadd", "add becomes sub", `add\.f32`, `sub.f32`, false, wrongResult},
	{"vadd", "all threads write one word", `st\.global\.f32 \[%rd10\]`, `st.global.f32 [%rd9]`, false, Race},
	{"transpose", "barrier dropped", `bar\.sync 0;`, ``, false, Race},
	{"transpose", "swizzle dropped on both sides", `xor\.b32 (%r\d+), (%r\d+), (%r\d+)`, `mov.b32 $1, $2`, true, traffic},
	{"transpose", "swizzle dropped where it is stored", `xor\.b32 %r15, %r3, %r12`, `mov.b32 %r15, %r3`, false, wrongResult},
	{"transpose", "one branch skips the barrier", `bar\.sync 0;`, `@%p1 bar.sync 0;`, false, DivergentBarrier},
	{"transpose", "guard of the store dropped", `@%p2 st\.global`, `st.global`, false, Race},
	{"transpose", "misaligned load", `ld\.global\.f32 %f1, \[%rd4\]`, `ld.global.f32 %f1, [%rd4+2]`, false, Misaligned},
	{"transpose", "tile one row short", `tile\[4096\]`, `tile[3968]`, false, OutOfBounds},
	{"reduce", "barrier dropped", `bar\.sync 0;`, ``, false, Race},
	{"reduce", "half the butterfly", `8, 31, -1`, `4, 31, -1`, false, wrongResult},
	{"reduce", "plain store for the atomic", `red\.global\.add\.f32`, `st.global.f32`, false, Race},
	{"reduce", "lane mask too small", `16, 31, -1`, `16, 31, 0xffff`, false, InvalidOperation},
	{"reduce", "a warp's sum not stored", `setp\.eq\.s32 %p3, %r8, 0`, `setp.eq.s32 %p3, %r2, 0`, false, Uninitialised},
	{"reduce", "endless loop", `add\.s32 %r6, %r6, %r5;\n\tsetp`, "setp", false, BudgetExceeded},
	{"softmax", "maximum of half a row", `16, 31, 0xffffffff`, `8, 31, 0xffffffff`, false, wrongResult},
	{"softmax", "sum of half a row", `(shfl\.sync\.bfly\.b32 %r9, %f9), 16`, `$1, 8`, false, wrongResult},
	{"handoff", "release weakened", `st\.release\.gpu\.global`, `st.relaxed.gpu.global`, false, Race},
	{"handoff", "acquire weakened", `ld\.acquire\.gpu`, `ld.relaxed.gpu`, false, Race},
	{"handoff", "flag never set", `st\.release\.gpu\.global\.u32 \[%rd2\], 1;`, ``, false, BudgetExceeded},
	{"handoff", "barrier before the release dropped", `bar\.sync 0;\n\t@%p2 ret`, `@%p2 ret`, false, Race},
	{"warpsync", "bar.warp.sync dropped", `bar\.warp\.sync 0xffffffff;`, ``, false, Race},
	{"pipeline", "arrival on full dropped", `bar\.arrive %r9, 64;`, ``, false, Deadlock},
	{"pipeline", "wait for empty dropped", `@%p2 bra FILL;\n\tbar\.sync %r10, 64;`, ``, false, Deadlock},
	{"pipeline", "wrong barrier", `bar\.arrive %r9, 64`, `bar.arrive %r10, 64`, false, Deadlock},
	{"wgmma", "wrong parity of full", `shr\.u32 %r9, %r6, 1;`, `shr.u32 %r9, %r6, 1; add.s32 %r9, %r9, 1;`, false, MissingWait},
	{"wgmma", "wrong parity of empty", `xor\.b32 %r21, %r21, 1;`, ``, false, Deadlock},
	{"wgmma", "expects too few bytes", `\[%r22\], 16384`, `[%r22], 8192`, false, MissingWait},
	{"wgmma", "expects too many bytes", `\[%r22\], 16384`, `[%r22], 16400`, false, Deadlock},
	{"wgmma", "one consumer too many", `\[%r5\], 128`, `[%r5], 129`, false, Deadlock},
	{"wgmma", "one consumer too few", `\[%r5\], 128`, `[%r5], 64`, false, Deadlock},
	{"wgmma", "wrong stride in the descriptor", `0x4000004000010000`, `0x4000002000010000`, false, wrongResult},
	{"wgmma", "wrong swizzle in the descriptor", `0x4000004000010000`, `0x8000004000010000`, false, wrongResult},
	{"wgmma", "k advances by 16 bytes", `%rd4, 2;`, `%rd4, 1;`, false, wrongResult},
	{"wgmma", "operands swapped", `%rd4, %rd5, %p5`, `%rd5, %rd4, %p5`, false, wrongResult},
	{"wgmma", "first sum not cleared", `setp\.ne\.s32 %p5, %r6, 0`, `setp.eq.s32 %p5, %r6, %r6`, false, Uninitialised},
	{"wgmma", "wait_group dropped", `wgmma\.wait_group\.sync\.aligned 0;`, ``, false, MissingWait},
	{"wgmma", "waits for one group too few", `wait_group\.sync\.aligned 0`, `wait_group.sync.aligned 1`, false, MissingWait},
	{"wgmma", "wgmma.fence dropped", `wgmma\.fence\.sync\.aligned;`, ``, false, MissingFence},
	{"wgmma", "wait for full dropped", `FULL:\s+mbarrier[^;]*;\s+@!%p3 bra FULL;`, ``, false, MissingWait},
	{"wgmma", "wait for empty dropped", `EMPTY:\s+mbarrier[^;]*;\s+@!%p7 bra EMPTY;`, ``, false, MissingWait},
	{"wgmma", "released before it is read", `wgmma\.wait_group\.sync\.aligned 0;\s+mbarrier\.arrive\.shared\.b64 _, \[%r11\];`, `mbarrier.arrive.shared.b64 _, [%r11]; wgmma.wait_group.sync.aligned 0;`, false, Race},
	{"wgmma", "barrier after the initialisation dropped", `bar\.sync 0;`, ``, false, Race},
	{"wgmma", "fence after the initialisation dropped", `fence\.proxy\.async;`, ``, false, MissingFence},
	{"wgmma", "mbarrier not initialised", `mbarrier\.init\.shared\.b64 \[%r4\+8\], 1;`, ``, false, InvalidOperation},
	{"wgmma", "B copied over A", `add\.s32 %r25, %r24, 8192`, `add.s32 %r25, %r24, 0`, false, MissingWait},
	{"wgmma", "stage not aligned to the swizzle", `mad\.lo\.s32 %r24, %r20, 16384, %r3;`, `mad.lo.s32 %r24, %r20, 16384, %r3; add.s32 %r24, %r24, 512;`, false, Misaligned},
	{"bulkstore", "proxy fence dropped", `fence\.proxy\.async;\n\tbar\.sync`, `bar.sync`, false, MissingFence},
	{"bulkstore", "barrier before the store dropped", `bar\.sync 0;\n\t@%p1 ret`, `@%p1 ret`, false, Race},
	{"bulkstore", "wait for the store dropped", `cp\.async\.bulk\.wait_group\.read 0;`, ``, false, MissingWait},
	{"bulkstore", "wait for the load dropped", `@!%p2 bra POLL;`, ``, false, MissingWait},
	{"bulkstore", "coordinates swapped", `\[%rd2, \{%r4, %r5\}\]`, `[%rd2, {%r5, %r4}]`, false, wrongResult},
	{"cluster", "multicast to one CTA", `mov\.b16 %h1, 3`, `mov.b16 %h1, 1`, false, Deadlock},
	{"cluster", "multicast out of the cluster", `mov\.b16 %h1, 3`, `mov.b16 %h1, 7`, false, InvalidOperation},
	{"cluster", "first cluster barrier dropped", `INITED:\s+barrier\.cluster\.arrive\.aligned;\s+barrier\.cluster\.wait\.aligned;`, `INITED:`, false, InvalidOperation},
	{"cluster", "second cluster barrier dropped", `st\.shared\.u32 \[%r5\], %r7;\s+barrier\.cluster\.arrive\.aligned;\s+barrier\.cluster\.wait\.aligned;`, `st.shared.u32 [%r5], %r7;`, false, Race},
	{"cluster", "last cluster barrier dropped", `(st\.global[^;]*;)\s+barrier\.cluster\.arrive\.aligned;\s+barrier\.cluster\.wait\.aligned;`, `$1`, false, MissingWait},
	{"cluster", "rank out of the cluster", `xor\.b32 %r8, %r2, 1`, `add.s32 %r8, %r2, 1`, false, InvalidOperation},
	{"copies", "arrival of the copies dropped", `cp\.async\.mbarrier\.arrive\.noinc\.shared\.b64 \[%r3\];`, ``, false, BudgetExceeded},
	{"copies", "arrives without waiting for the copies", `cp\.async\.mbarrier\.arrive\.noinc\.shared\.b64 \[%r3\];`, `mbarrier.arrive.shared.b64 _, [%r3];`, false, MissingWait},
	{"copies", "counts its arrivals itself", `arrive\.noinc`, `arrive`, false, BudgetExceeded},
	{"copies", "wait for the reduction only until read", `cp\.async\.bulk\.wait_group 0;\n\t// back`, "cp.async.bulk.wait_group 1;\n\t// back", false, MissingWait},
	{"copies", "copy of no multiple of 16 bytes", `(cp\.async\.bulk\.global\.shared::cta\.bulk_group \[%rd2\], \[%r2\]), 1024`, `mov.u32 %r6, 1000; $1, %r6`, false, InvalidOperation},
	{"copies", "copy beyond shared memory", `(cp\.async\.bulk\.global\.shared::cta\.bulk_group \[%rd2\], \[%r2\]), 1024`, `mov.u32 %r6, 2048; $1, %r6`, false, OutOfBounds},
	{"pipeline", "wrong count", `bar\.arrive %r9, 64`, `bar.arrive %r9, 32`, false, Deadlock},
}

// mutate applies a mutant, which must change the text.
func (m *mutant) mutate(t testing.TB, text string) string {
	re := regexp.MustCompile(m.old)
	if !m.all {
		at := re.FindStringIndex(text)
		if at == nil {
			t.Fatalf("%s: %s: no %s", m.kernel, m.name, m.old)
		}
		return text[:at[0]] +
			re.ReplaceAllString(text[at[0]:at[1]], m.new) +
			text[at[1]:]
	}
	out := re.ReplaceAllString(text, m.new)
	if out == text {
		t.Fatalf("%s: %s: no %s", m.kernel, m.name, m.old)
	}
	return out
}

// TestKernels runs the kernels as they are: right, and nothing to find.
func TestKernels(t *testing.T) {
	for name, run := range kernelCases {
		t.Run(name, func(t *testing.T) {
			bad, r := run(t, kernelText(t, name), everything)
			if err := r.Err(); err != nil || bad > 0 {
				t.Errorf("%d elements wrong, %v", bad, err)
			}
		})
	}
}

// TestMutants breaks the kernels in one way at a time: each must be found.
func TestMutants(t *testing.T) {
	var table strings.Builder
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "kernel\tmutant\twrong\tfound")
	base := map[string]Counters{}
	for i := range mutants {
		m := &mutants[i]
		text := kernelText(t, m.kernel)
		if _, ok := base[m.kernel]; !ok {
			_, r := kernelCases[m.kernel](t, text, everything)
			base[m.kernel] = r.Counters
		}
		bad, r := kernelCases[m.kernel](t, m.mutate(t, text), everything)
		found := m.found(bad, r, base[m.kernel])
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\n", m.kernel, m.name, bad, found)
		if !strings.Contains(found, string(m.want)) {
			t.Errorf("%s: %s: found %q, want %q", m.kernel, m.name, found, m.want)
		}
	}
	tw.Flush()
	t.Logf("%d mutants\n%s", len(mutants), table.String())
}

// TestEquivalents changes kernels into others that are as right, in which
// nothing may be found.
func TestEquivalents(t *testing.T) {
	for _, m := range []mutant{
		{kernel: "handoff", name: "fence and relaxed store", old: `st\.release\.gpu\.global`, new: `fence.acq_rel.gpu; st.relaxed.gpu.global`},
		{kernel: "handoff", name: "fence before the barrier", old: `bar\.sync 0;\n\t@%p2 ret;\n\tst\.release`, new: "membar.gl; bar.sync 0; @%p2 ret; st.relaxed"},
		{kernel: "handoff", name: "relaxed load and fence", old: `ld\.acquire\.gpu([^;]*);([^;]*;[^;]*;)`, new: `ld.relaxed.gpu$1;$2 fence.acq_rel.gpu;`},
		{kernel: "handoff", name: "atomic for the flag", old: `st\.release\.gpu\.global\.u32 \[%rd2\], 1`, new: `atom.release.gpu.global.add.u32 %r7, [%rd2], 1`},
		{kernel: "reduce", name: "atomic for the reduction", old: `red\.global\.add\.f32 \[%rd2\]`, new: `atom.global.add.f32 %f19, [%rd2]`},
		{kernel: "wgmma", name: "test_wait", old: `try_wait`, new: `test_wait`, all: true},
		{kernel: "wgmma", name: "fence for the initialisation", old: `fence\.proxy\.async;`, new: `fence.mbarrier_init.release.cluster;`},
		{kernel: "gemm", name: "wait_all", old: `cp\.async\.wait_group 2;`, new: `cp.async.wait_all;`},
		{kernel: "cluster", name: "generic addresses", old: `mapa\.shared::cluster\.u32 %r9, %r5, %r8;\s+ld\.shared::cluster\.u32 %r10, \[%r9\];`,
			new: `cvt.u64.u32 %rd5, %r5; cvta.shared.u64 %rd5, %rd5; mapa.u64 %rd6, %rd5, %r8; ld.u32 %r10, [%rd6];`},
	} {
		bad, r := kernelCases[m.kernel](
			t, m.mutate(t, kernelText(t, m.kernel)), everything,
		)
		if err := r.Err(); err != nil || bad > 0 {
			t.Errorf("%s: %s: %d wrong, %v", m.kernel, m.name, bad, err)
		}
	}
}

// found lists what tells the mutant from the kernel.
func (m *mutant) found(bad int, r *Report, base Counters) string {
	var list []string
	for _, f := range r.Findings {
		if s := string(f.Kind); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	if bad > 0 {
		list = append(list, string(wrongResult))
	}
	if units(&r.Counters) > units(&base) {
		list = append(list, string(traffic))
	}
	return strings.Join(list, ", ")
}

func units(c *Counters) int64 {
	return c.GlobalLoad.Units + c.GlobalStore.Units + c.SharedLoad.Units + c.SharedStore.Units
}
