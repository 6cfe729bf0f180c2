package partition

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// split partitions a text, and tells the fusions by opcodes of what is work.
func split(t *testing.T, text string, o Options) (*Result, []string) {
	t.Helper()
	m, err := hlo.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Module(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range r.Module.Fusions() {
		var ops []string
		for _, i := range f.Instrs {
			switch i.Op {
			case hlo.OpParameter, hlo.OpConstant, hlo.OpBroadcast, hlo.OpReshape, hlo.OpTuple:
			default:
				ops = append(ops, string(i.Op))
			}
		}
		if _, err := symtile.Analyze(t.Context(), f); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		all = append(all, strings.Join(ops, " "))
	}
	return r, all
}

const sumAndMax = `
%sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
%max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b)
}
`

// attention is dot, scale, causal mask, softmax and dot, as JAX prints it, with the
// maximum of −∞ and the row's.
func attention(batch int) string {
	return strings.ReplaceAll(`HloModule attention`+sumAndMax+`
ENTRY %main {
  q = f32[BATCH,4,256,32] parameter(0)
  k = f32[BATCH,4,256,32] parameter(1)
  v = f32[BATCH,4,256,32] parameter(2)
  dot.1 = f32[BATCH,4,256,256] dot(q, k), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
  scale = f32[] constant(0.2)
  scales = f32[BATCH,4,256,256] broadcast(scale), dimensions={}
  scaled = f32[BATCH,4,256,256] multiply(dot.1, scales)
  row = s32[BATCH,4,256,256] iota(), iota_dimension=2
  column = s32[BATCH,4,256,256] iota(), iota_dimension=3
  mask = pred[BATCH,4,256,256] compare(row, column), direction=GE
  low = f32[] constant(-1e38)
  lows = f32[BATCH,4,256,256] broadcast(low), dimensions={}
  masked = f32[BATCH,4,256,256] select(mask, scaled, lows)
  inf = f32[] constant(-inf)
  most = f32[BATCH,4,256] reduce(masked, inf), dimensions={3}, to_apply=%max
  infs = f32[BATCH,4,256] broadcast(inf), dimensions={}
  max.1 = f32[BATCH,4,256] maximum(infs, most)
  column.1 = f32[BATCH,4,256,1] reshape(max.1)
  column.2 = f32[BATCH,4,256] reshape(column.1)
  wide = f32[BATCH,4,256,256] broadcast(column.2), dimensions={0,1,2}
  less = f32[BATCH,4,256,256] subtract(masked, wide)
  exp = f32[BATCH,4,256,256] exponential(less)
  zero = f32[] constant(0)
  total = f32[BATCH,4,256] reduce(exp, zero), dimensions={3}, to_apply=%sum
  totals = f32[BATCH,4,256,256] broadcast(total), dimensions={0,1,2}
  weights = f32[BATCH,4,256,256] divide(exp, totals)
  ROOT dot.2 = f32[BATCH,4,256,32] dot(weights, v), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}
}`, "BATCH", fmt.Sprint(batch))
}

// Attention is one fusion, whose loops become one, also where the batch is 1.
func TestAttentionIsOneFusion(t *testing.T) {
	for _, batch := range []int{1, 2} {
		r, got := split(t, attention(batch), Options{})
		if len(got) != 1 {
			t.Fatalf("batch %d: %q", batch, got)
		}
		f := r.Module.Fusions()[0]
		p, err := symtile.Analyze(t.Context(), f)
		if err != nil || p.Online() == p {
			t.Errorf("batch %d: no online loop, %v", batch, err)
		}
		if x := r.Fusions[f]; x.Price.Bytes*10 > x.Apart.Bytes || len(x.Reasons) == 0 {
			t.Errorf("batch %d: %+v", batch, x)
		}
	}
}

// Layers as JAX 0.10.2 prints them are divided as the first line of each says, with the
// bytes that the fusions move and those of the operations by themselves. Attention takes
// one loop over keys. With -rewrite the lines are written anew.
func TestLayers(t *testing.T) {
	const file = "testdata/layers.txt"
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(string(src), "\n// -----\n")
	for n, text := range texts {
		line, module, _ := strings.Cut(text, "\n")
		name, want, _ := strings.Cut(line, ": ")
		r, fusions := split(t, module, Options{})
		moved, apart, reasons := 0.0, 0.0, 0
		for _, f := range r.Module.Fusions() {
			x := r.Fusions[f]
			moved, apart = moved+x.Price.Bytes, apart+x.Apart.Bytes
			reasons += len(x.Reasons)
		}
		got := fmt.Sprintf("%d fusions, %.2f MB instead of %.2f", len(fusions), moved/1e6, apart/1e6)
		if got != want && !*rewrite {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if strings.Contains(name, "attention") {
			if reasons == 0 {
				t.Errorf("%s is one fusion for no reason", name)
			}
			p, err := symtile.Analyze(t.Context(), r.Module.Fusions()[0])
			if err != nil || p.Online() == p {
				t.Errorf("%s: no online loop, %v", name, err)
			}
		}
		texts[n] = name + ": " + got + "\n" + module
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.Join(texts, "\n// -----\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

// Reductions that share nothing stay apart: the norm of many gradients.
func TestIndependentReductionsStayApart(t *testing.T) {
	var b strings.Builder
	b.WriteString("HloModule norm" + sumAndMax + "ENTRY %main {\n  zero = f32[] constant(0)\n  s0 = f32[] constant(0)\n")
	for k := range 46 {
		fmt.Fprintf(&b, "  g%d = f32[4096] parameter(%[1]d)\n  q%[1]d = f32[4096] multiply(g%[1]d, g%[1]d)\n", k)
		fmt.Fprintf(&b, "  r%d = f32[] reduce(q%[1]d, zero), dimensions={0}, to_apply=%%sum\n  s%[2]d = f32[] add(s%[1]d, r%[1]d)\n", k, k+1)
	}
	b.WriteString("  ROOT norm = f32[] sqrt(s46)\n}\n")
	r, got := split(t, b.String(), Options{})
	distinct := map[[32]byte]bool{}
	for _, f := range r.Module.Fusions() {
		distinct[f.Fingerprint()] = true
	}
	if len(got) != 46 || len(distinct) > 2 {
		t.Errorf("%d fusions, %d distinct: %q", len(got), len(distinct), got)
	}
}

// What one table row in a thousand needs is computed of those rows only.
func TestConvertFollowsTheGather(t *testing.T) {
	_, got := split(t, `HloModule embedding
ENTRY %main {
  table = f32[32000,256] parameter(0)
  ids = s32[32,1] parameter(1)
  narrow = bf16[32000,256] convert(table)
  ROOT rows = bf16[32,256] gather(narrow, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,256}
}`, Options{})
	if len(got) != 1 || got[0] != "gather convert" {
		t.Errorf("%q", got)
	}
}

// An optimiser's step is one fusion a parameter, distinct by shape.
func TestAdamIsDistinctByShape(t *testing.T) {
	var b, results strings.Builder
	b.WriteString("HloModule adam\nENTRY %main {\n")
	shapes := []string{"f32[64,48]", "f32[48]"}
	for k := range 6 {
		step := `  p# = S parameter(P0)
  m# = S parameter(P1)
  v# = S parameter(P2)
  g# = S parameter(P3)
  c# = f32[] constant(0.9)
  d# = S broadcast(c#), dimensions={}
  a# = S multiply(m#, d#)
  n# = S add(a#, g#)
  h# = S multiply(g#, g#)
  e# = S multiply(v#, d#)
  w# = S add(e#, h#)
  r# = S sqrt(w#)
  u# = S divide(n#, r#)
  x# = S subtract(p#, u#)
`
		for j := range 4 {
			step = strings.ReplaceAll(step, fmt.Sprintf("P%d", j), fmt.Sprint(4*k+j))
		}
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(step, "#", fmt.Sprint(k)), "S", shapes[k%2]))
		fmt.Fprintf(&results, ", x%d, n%[1]d, w%[1]d", k)
	}
	shape := strings.TrimSuffix(strings.Repeat("f32[64,48], f32[64,48], f32[64,48], f32[48], f32[48], f32[48], ", 3), ", ")
	fmt.Fprintf(&b, "  ROOT out = (%s) tuple(%s)\n}\n", shape, results.String()[2:])
	r, got := split(t, b.String(), Options{})
	distinct := map[[32]byte]bool{}
	for _, f := range r.Module.Fusions() {
		distinct[f.Fingerprint()] = true
	}
	if len(got) != 6 || len(distinct) != 2 {
		t.Errorf("%d fusions, %d distinct: %q", len(got), len(distinct), got)
	}
}

// What no backend computes stays outside, and the dot before it is a fusion.
func TestOutsideSpoilsNoDot(t *testing.T) {
	r, got := split(t, `HloModule rp
ENTRY %main {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  d = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[64,64] reduce-precision(d), exponent_bits=8, mantissa_bits=7
  ROOT n = f32[64,64] negate(r)
}`, Options{Outside: func(i *hlo.Instr) string {
		if i.Op == hlo.OpReducePrecision {
			return "nothing computes it"
		}
		return ""
	}})
	if fmt.Sprint(got) != "[dot negate]" || r.Outside[0].Reason != "nothing computes it" {
		t.Errorf("%q %v", got, r.Outside)
	}
}

// A product is not computed again for every window or column that reads it.
func TestContractionsAreNotChained(t *testing.T) {
	_, got := split(t, `HloModule chain
ENTRY %main {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  z = f32[64,64] parameter(2)
  d = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,64] tanh(d)
  ROOT e = f32[64,64] dot(t, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}`, Options{})
	if fmt.Sprint(got) != "[dot tanh dot]" || len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// Joined clusters with several results are read and left at any of them: no fusion
// may come to need its own result, through others or through what stays outside.
func TestNoFusionNeedsItself(t *testing.T) {
	steps := []string{
		"f32[512,512] add(A, B)",
		"f32[512,512] multiply(A, B)",
		"f32[512,512] tanh(A)",
		"f32[512,512] custom-call(A), custom_call_target=\"opaque\"",
		"f32[512,512] dot(A, B), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
	}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var text strings.Builder
		text.WriteString("HloModule random\n%sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\nENTRY %main {\n" +
			"  v0 = f32[512,512] parameter(0)\n  zero = f32[] constant(0)\n")
		n := 1
		for range 40 {
			any := func() string { return fmt.Sprintf("v%d", max(0, n-1-rng.IntN(8))) }
			if rng.IntN(3) == 0 {
				fmt.Fprintf(&text, "  r%d = f32[512] reduce(%s, zero), dimensions={1}, to_apply=%%sum\n", n, any())
				fmt.Fprintf(&text, "  v%d = f32[512,512] broadcast(r%d), dimensions={0}\n", n, n)
			} else {
				step := strings.NewReplacer("A", any(), "B", any()).Replace(steps[rng.IntN(len(steps))])
				fmt.Fprintf(&text, "  v%d = %s\n", n, step)
			}
			n++
		}
		fmt.Fprintf(&text, "  ROOT t = (f32[512,512], f32[512,512], f32[512,512]) tuple(v%d, v%d, v%d)\n}\n", n-1, n-2, n-4)
		m, err := hlo.Parse("random", []byte(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Module(t.Context(), m, Options{}); err != nil || len(r.Module.Fusions()) == 0 {
			t.Errorf("seed %d: no fusion", seed)
		}
	}
}

// The bodies of loops count as often as they run.
func TestTripCounts(t *testing.T) {
	loop := func(first, limit, step int, direction string) string {
		return fmt.Sprintf(`HloModule loop
%%condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(%d)
  ROOT c = pred[] compare(i, limit), direction=%s
}
%%body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  step = s32[] constant(%d)
  next = s32[] add(i, step)
  y = f32[8] negate(x)
  ROOT out = (s32[], f32[8]) tuple(next, y)
}
ENTRY %%main {
  x = f32[8] parameter(0)
  first = s32[] constant(%d)
  s = (s32[], f32[8]) tuple(first, x)
  ROOT w = (s32[], f32[8]) while(s), condition=%%condition, body=%%body
}`, limit, direction, step, first)
	}
	for _, c := range []struct {
		first, limit, step int
		direction          string
		want               float64
		unknown            bool
	}{
		{0, 12, 1, "LT", 12, false},
		{0, 12, 5, "LT", 3, false},
		{0, 12, 5, "LE", 3, false},
		{0, 10, 5, "LE", 3, false},
		{9, 0, -2, "GT", 5, false},
		{8, 0, -2, "GE", 5, false},
		{0, 6, 2, "NE", 3, false},
		{0, 7, 2, "NE", 1, true},
		{5, 0, 1, "LT", 0, false},
		{0, 5, -1, "LT", 1, true},
	} {
		r, _ := split(t, loop(c.first, c.limit, c.step, c.direction), Options{})
		got := Executions(r.Module)[r.Module.Fusions()[0]]
		if got.Times != c.want || got.Unknown != c.unknown {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// XLA writes trip counts down.
func TestKnownTripCount(t *testing.T) {
	while := &hlo.Instr{Op: hlo.OpWhile}
	while.Attrs.Other = []hlo.Attr{{Name: "backend_config", Value: `{"known_trip_count":{"n":"32"}}`}}
	if n, known := TripCount(while); n != 32 || !known {
		t.Error(n, known)
	}
}

// Programs that other splitters take for ever with: the test itself would not end.
func TestLargeModules(t *testing.T) {
	chain := func(n int, step string) string {
		var b strings.Builder
		b.WriteString("HloModule long\nENTRY %main {\n  x0 = f32[16,16] parameter(0)\n")
		for k := range n {
			fmt.Fprintf(&b, strings.ReplaceAll(step, "#", "%[1]d")+"\n", k, k+1)
		}
		fmt.Fprintf(&b, "  ROOT r = f32[16,16] abs(x%d)\n}\n", n)
		return b.String()
	}
	for name, text := range map[string]string{
		"chain":      chain(2000, "  x%[2]d = f32[16,16] negate(x#)"),
		"transposes": chain(40, "  t# = f32[16,16] transpose(x#), dimensions={1,0}\n  x%[2]d = f32[16,16] add(x#, t#)"),
		"scan": chain(12, `  a# = f32[16,8] slice(x#), slice={[0:16],[0:16:2]}
  b# = f32[16,8] slice(x#), slice={[0:16],[1:16:2]}
  c# = f32[16,8] add(a#, b#)
  x%[2]d = f32[16,16] concatenate(c#, b#), dimensions={1}`),
		"pairs": chain(40, "  t# = f32[8,32] reshape(x#)\n  u# = f32[32,8] transpose(t#), dimensions={1,0}\n  x%[2]d = f32[16,16] reshape(u#)"),
	} {
		start := time.Now()
		r, _ := split(t, text, Options{})
		t.Logf("%s: %d fusions in %v", name, len(r.Fusions), time.Since(start))
	}
}

// associativeScan is the recurrence x[t] = a[t]·x[t−1] + b[t] over n rows as JAX's
// associative_scan prints it: pairs are combined, the half is scanned, and the rows
// between are made of it, interleaved by pads.
func associativeScan(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HloModule scan\nENTRY %%main {\n  zero = f32[] constant(0)\n  a0 = f32[%[1]d,64] parameter(0)\n  b0 = f32[%[1]d,64] parameter(1)\n", n)
	names := 0
	op := func(rows int, format string, args ...any) string {
		names++
		fmt.Fprintf(&b, "  v%d = f32[%d,64] %s\n", names, rows, fmt.Sprintf(format, args...))
		return fmt.Sprintf("v%d", names)
	}
	combine := func(n int, a1, b1, a2, b2 string) (string, string) {
		ab := op(n, "multiply(%s, %s)", a2, b1)
		return op(n, "multiply(%s, %s)", a1, a2), op(n, "add(%s, %s)", ab, b2)
	}
	slice := func(x string, first, end, step int) string {
		return op((end-first+step-1)/step, "slice(%s), slice={[%d:%d:%d],[0:64]}", x, first, end, step)
	}
	var scan func(n int, x, y string) (string, string)
	scan = func(n int, x, y string) (string, string) {
		if n < 2 {
			return x, y
		}
		h := n / 2
		c, d := combine(h, slice(x, 0, n-1, 2), slice(y, 0, n-1, 2), slice(x, 1, n, 2), slice(y, 1, n, 2))
		c, d = scan(h, c, d)
		out := [2]string{}
		e, f := "", ""
		if h > 1 {
			e, f = combine(h-1, slice(c, 0, h-1, 1), slice(d, 0, h-1, 1), slice(x, 2, n, 2), slice(y, 2, n, 2))
		}
		for k, z := range [][3]string{{x, e, c}, {y, f, d}} {
			even := slice(z[0], 0, 1, 1)
			if h > 1 {
				even = op(h, "concatenate(%s, %s), dimensions={0}", even, z[1])
			}
			low := op(n, "pad(%s, zero), padding=0_1_1x0_0", even)
			high := op(n, "pad(%s, zero), padding=1_0_1x0_0", z[2])
			out[k] = op(n, "add(%s, %s)", low, high)
		}
		return out[0], out[1]
	}
	x, y := scan(n, "a0", "b0")
	fmt.Fprintf(&b, "  ROOT r = f32[%d,64] add(%s, %s)\n}\n", n, x, y)
	return b.String()
}

// An associative scan, whose rows are read at twice as many tiles with each level,
// is divided into fusions of bounded tile programs, with a bounded number of prices.
func TestScanIsDivided(t *testing.T) {
	for _, n := range []int{8, 128, 1024} {
		m, err := hlo.Parse("scan", []byte(associativeScan(n)))
		if err != nil {
			t.Fatal(err)
		}
		p := newPartitioner(t.Context(), Options{})
		fused := p.module(m)
		all, most := 0, 0
		for _, f := range fused.Fusions() {
			prog, err := symtile.Analyze(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			all, most = all+len(prog.Ops), max(most, len(prog.Ops))
		}
		t.Logf("%d rows, %d instructions: %d fusions, %d operations of tile programs, %d prices",
			n, len(m.Entry.Instrs), len(fused.Fusions()), all, len(p.pricer.known))
		if limit := len(m.Entry.Instrs); most > maxOps || all > maxTiles*limit || len(p.pricer.known) > 8*limit {
			t.Errorf("%d rows: %d operations, %d in one program, %d prices of %d instructions", n, all, most, len(p.pricer.known), limit)
		}
	}
}

// The running sum of a mask is not taken of a mask that each window computes: between
// them is a reshape, which leaves such a fusion tiles of one element only (DLRM's
// fused.broadcast.136 took 10 s).
func TestWindowsReadWhatIsComputedOnce(t *testing.T) {
	_, got := split(t, "HloModule cumsum"+sumAndMax+`
ENTRY %main {
  i = s32[27,27] iota(), iota_dimension=0
  j = s32[27,27] iota(), iota_dimension=1
  below = pred[27,27] compare(i, j), direction=GT
  flat = pred[729] reshape(below)
  ones = f32[729] convert(flat)
  zero = f32[] constant(0)
  ROOT sums = f32[729] reduce-window(ones, zero), window={size=729 pad=728_0}, to_apply=%sum
}`, Options{})
	if want := []string{"iota iota compare convert", "reduce-window"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Of a module that was fused, what is work outside of the fusions becomes a fusion of its
// own, in loops, too; what is small, a view or cannot be tiled stays.
func TestLooseInstructions(t *testing.T) {
	const text = `HloModule fused
f { a = f32[64,128] parameter(0) ROOT n = f32[64,128] negate(a) }
body {
  p = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64,64] get-tuple-element(p), index=1
  t = f32[64,64] transpose(x), dimensions={1,0}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[64,64]) tuple(j, t)
}
cond {
  p = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[64,64] parameter(1)
  w = f32[64,128] parameter(0)
  d = f32[64,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="mine"}
  g = f32[64,128] fusion(d), kind=kLoop, calls=f
  z = f32[] constant(0)
  s = f32[64] reduce(g, z), dimensions={1}, to_apply=add
  small = f32[64] negate(s)
  v = f32[128,64] reshape(g)
  o = f32[64,64] sort(x), dimensions={1}, to_apply=less
  k = s32[] constant(0)
  l = (s32[], f32[64,64]) tuple(k, o)
  m = (s32[], f32[64,64]) while(l), condition=cond, body=body
  ROOT r = (f32[64], f32[128,64], (s32[], f32[64,64])) tuple(small, v, m)
}
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
`
	m, err := hlo.Parse("fused", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	before := m.String()
	r, err := Module(t.Context(), m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.String() != before {
		t.Errorf("the module was changed: %s", m)
	}
	var names, outside []string
	for _, c := range r.Module.Fusions() {
		names = append(names, c.Name)
	}
	for _, u := range r.Outside {
		outside = append(outside, u.Instr.Name)
	}
	if got := strings.Join(names, " "); got != "fused.d f fused.s fused.t" {
		t.Errorf("the fusions are %s", got)
	}
	if got := strings.Join(outside, " "); got != "small o c j" {
		t.Errorf("outside are %s", got)
	}
	again, err := hlo.Parse("again", []byte(r.Module.String()))
	if err != nil || again.Entry.Fingerprint() != r.Module.Entry.Fingerprint() {
		t.Errorf("the partition reads as another module: %v\n%s", err, r.Module)
	}
	if !strings.Contains(r.Module.String(), `calls=%fused.d, metadata={op_name="mine"}`) {
		t.Errorf("a name of the user's is lost: %s", r.Module)
	}
	if r, err = Module(t.Context(), r.Module, Options{}); err != nil || len(r.Fusions) != 0 {
		t.Errorf("partitioned again it has %d fusions more, %v", len(r.Fusions), err)
	}
}

// A text without a module is divided at its collectives, and else one fusion.
func TestBareCollective(t *testing.T) {
	const text = `
  x = f32[64,64] parameter(0)
  y = f32[64,64] tanh(x)
  z = f32[64,64] all-reduce(y), replica_groups={{0,1}}, to_apply=add
  ROOT n = f32[64,64] negate(z)`
	_, fusions := split(t, text, Options{})
	if got := strings.Join(fusions, ", "); got != "tanh, negate" {
		t.Errorf("the fusions are %s", got)
	}
	_, fusions = split(t, strings.Replace(text, "all-reduce(y), replica_groups={{0,1}}, to_apply=add", "exponential(y)", 1), Options{})
	if got := strings.Join(fusions, ", "); got != "tanh exponential negate" {
		t.Errorf("the fusions are %s", got)
	}
}

// A compiler's fusion is divided where it exchanges data or normalises batches, as text
// without a module is; others stay as they are.
func TestFusionIsDivided(t *testing.T) {
	const text = `HloModule m
fused {
  x = f32[64,64] parameter(0)
  y = f32[64,64] tanh(x)
  z = f32[64,64] all-reduce(y), replica_groups={{0,1}}, to_apply=add
  ROOT n = f32[64,64] negate(z)
}
other {
  x = f32[64,64] parameter(0)
  s = f32[64] parameter(1)
  n = f32[64,64] batch-norm-inference(x, s, s, s, s), epsilon=0.001, feature_index=1
  ROOT r = f32[64,64] exponential(n)
}
kept {
  x = f32[64,64] parameter(0)
  y = f32[64,64] exponential(x)
  ROOT r = f32[64,64] negate(y)
}
ENTRY main {
  x = f32[64,64] parameter(0)
  s = f32[64] parameter(1)
  a = f32[64,64] fusion(x), kind=kCustom, calls=fused, metadata={op_name="jit(f)/a"}
  b = f32[64,64] fusion(a, s), kind=kLoop, calls=other
  ROOT c = f32[64,64] fusion(b), kind=kLoop, calls=kept
}`
	r, fusions := split(t, text, Options{})
	const norm = "subtract add rsqrt multiply multiply add exponential"
	if got := strings.Join(fusions, ", "); got != "tanh, negate, "+norm+", exponential negate" {
		t.Errorf("the fusions are %s", got)
	}
	if len(r.Outside) != 1 || r.Outside[0].Instr.Name != "z" {
		t.Errorf("outside are %v", r.Outside)
	}
	again, err := hlo.Parse("again", []byte(r.Module.String()))
	if err != nil || again.Entry.Instrs[2].Op != hlo.OpCall {
		t.Errorf("%v\n%s", err, r.Module)
	}
	const bare = `
  x = f32[64,64] parameter(0)
  s = f32[64] parameter(1)
  n = f32[64,64] batch-norm-inference(x, s, s, s, s), epsilon=0.001, feature_index=1
  ROOT r = f32[64,64] exponential(n)`
	_, fusions = split(t, bare, Options{})
	if got := strings.Join(fusions, ", "); got != norm {
		t.Errorf("the fusions are %s", got)
	}
}

// Complex numbers are in fusions like others; what is not defined of them is outside, by
// that reason.
func TestComplex(t *testing.T) {
	const text = `HloModule m
ENTRY e {
  x = c64[64,64] parameter(0)
  y = c64[64,64] exponential(x)
  a = f32[64,64] abs(y)
  ROOT n = f32[64,64] negate(a)
}`
	r, fusions := split(t, text, Options{})
	if got := strings.Join(fusions, ", "); got != "exponential abs negate" || len(r.Outside) != 0 {
		t.Errorf("%v, outside %v", fusions, r.Outside)
	}
	r, fusions = split(t, strings.Replace(text, "exponential", "erf", 1), Options{})
	if got := strings.Join(fusions, ", "); got != "abs negate" || len(r.Outside) != 1 ||
		r.Outside[0].Reason != "it is not defined for complex numbers" {
		t.Errorf("%v, outside %v", fusions, r.Outside)
	}
}

// A slice that a loop writes into an array that it carries stays outside of fusions, where it
// costs the slice; what else reads the array, and a slice that is most of it, change that.
func TestSlicesWrittenInPlace(t *testing.T) {
	const text = `HloModule scan
condition {
  s = (s32[], f32[512,64], f32[512,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(512)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[512,64], f32[512,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[512,64] get-tuple-element(s), index=1
  y = f32[512,64] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  row = f32[1,64] dynamic-slice(x, i, zero), dynamic_slice_sizes={1,64}
  e = f32[1,64] exponential(row)
  z = f32[512,64] dynamic-update-slice(y, e, i, zero)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[512,64], f32[512,64]) tuple(j, x, z)
}
ENTRY e {
  s = (s32[], f32[512,64], f32[512,64]) parameter(0)
  ROOT w = (s32[], f32[512,64], f32[512,64]) while(s), condition=condition, body=body
}`
	const apart, joined, two = "dynamic-slice exponential", "dynamic-slice exponential dynamic-update-slice", "dynamic-slice exponential, dynamic-update-slice"
	for _, c := range []struct{ slice, result, want string }{
		{"1,64", "j, x, z", apart},
		{"500,64", "j, x, z", joined},
		{"1,64", "j, y, z", two},
		{"1,64", "j, z, x", two},
	} {
		changed := strings.NewReplacer("1,64", c.slice, "j, x, z", c.result).Replace(text)
		if r, got := split(t, changed, Options{}); strings.Join(got, ", ") != c.want {
			t.Errorf("%+v: %q, %v", c, got, r.Outside)
		}
	}
}

// A scatter joins what makes its updates and what follows it, but a loop's scatter into an
// array that it carries stays outside, as the slices that it writes do.
func TestScatterJoins(t *testing.T) {
	const text = `HloModule segments
add { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[512,64] parameter(0)
  i = s32[2048,1] parameter(1)
  j = s32[2048,1] parameter(2)
  g = f32[2048,64] gather(x, j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}
  h = f32[2048,64] exponential(g)
  z = f32[] constant(0)
  o = f32[512,64] broadcast(z), dimensions={}
  s = f32[512,64] scatter(o, i, h), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  ROOT r = f32[512,64] tanh(s)
}`
	if _, got := split(t, text, Options{}); strings.Join(got, ", ") != "gather exponential scatter tanh" {
		t.Errorf("%q", got)
	}
	const loop = `HloModule scan
last { a = f32[] parameter(0)
ROOT b = f32[] parameter(1) }
condition {
  s = (s32[], f32[512,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(512)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[512,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[512,64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  f = f32[] constant(2)
  e = f32[64] broadcast(f), dimensions={}
  k = s32[1] reshape(i)
  z = f32[512,64] scatter(x, k, e), update_window_dims={0}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=last
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[512,64]) tuple(j, z)
}
ENTRY e {
  s = (s32[], f32[512,64]) parameter(0)
  ROOT w = (s32[], f32[512,64]) while(s), condition=condition, body=body
}`
	r, _ := split(t, loop, Options{})
	if !slices.ContainsFunc(r.Outside, func(u Unfused) bool {
		return u.Instr.Op == hlo.OpScatter && strings.Contains(u.Reason, "its loop writes the slice in place")
	}) {
		t.Errorf("outside are %v", r.Outside)
	}
}
