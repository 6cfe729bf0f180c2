package symtile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

func entry(tb testing.TB, text string) *hlo.Computation {
	tb.Helper()
	m, err := hlo.Parse("f", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return m.Entry
}

func analyzed(tb testing.TB, c *hlo.Computation) *Program {
	tb.Helper()
	p, err := Analyze(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// fusionText is a fusion of about n instructions. Every round normalises rows:
// elementwise operations, and, accumulators times, a reduce of the rows that is
// broadcast back; a transpose there and back and a reshape there and back.
func fusionText(n, accumulators int) string {
	var b strings.Builder
	lines := 0
	add := func(format string, args ...any) {
		lines++
		fmt.Fprintf(&b, format+"\n", args...)
	}
	add("x = f32[256,512] parameter(0)")
	add("y = f32[256,512] parameter(1)")
	add("zero = f32[] constant(0)")
	last := "x"
	for k := 0; lines+13 <= n; k++ {
		add("a%d = f32[256,512] add(%s, y)", k, last)
		add("e%d = f32[256,512] exponential(a%d)", k, k)
		add("t%d = f32[512,256] transpose(e%d), dimensions={1,0}", k, k)
		add("n%d = f32[512,256] negate(t%d)", k, k)
		add("u%d = f32[256,512] transpose(n%d), dimensions={1,0}", k, k)
		add("s%d = f32[256,16,32] reshape(u%d)", k, k)
		add("h%d = f32[256,16,32] tanh(s%d)", k, k)
		add("v%d = f32[256,512] reshape(h%d)", k, k)
		last = fmt.Sprintf("v%d", k)
		if k < accumulators {
			add("r%d = f32[256] reduce(v%d, zero), dimensions={1}, to_apply=add", k, k)
			add("b%d = f32[256,512] broadcast(r%d), dimensions={0}", k, k)
			add("d%d = f32[256,512] divide(v%d, b%d)", k, k, k)
			last = fmt.Sprintf("d%d", k)
		}
	}
	for k := 0; lines < n; k++ {
		add("f%d = f32[256,512] multiply(%s, y)", k, last)
		last = fmt.Sprintf("f%d", k)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	at := strings.LastIndex(text, "\n") + 1
	return text[:at] + "ROOT " + text[at:]
}

// chainText is n elementwise instructions, each of the one before.
func chainText(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "v0 = f32[256,512] parameter(0)\n")
	for k := 1; k < n; k++ {
		root := ""
		if k == n-1 {
			root = "ROOT "
		}
		fmt.Fprintf(
			&b, "%sv%d = f32[256,512] %s(v%d)\n",
			root, k,
			[...]string{"tanh", "negate", "exponential"}[k%3],
			k-1,
		)
	}
	return b.String()
}

// reshapesText is a chain of reshapes that go through shapes of equal groups of
// dimensions, with an operation between them so that none is dropped.
func reshapesText(links, groups int, group ...string) string {
	shapes := make([]string, len(group))
	for k, g := range group {
		shapes[k] = strings.TrimSuffix(strings.Repeat(g+",", groups), ",")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "v0 = f32[%s] parameter(0)\n", shapes[0])
	for k := 1; k <= links; k++ {
		s, root := shapes[k%len(shapes)], ""
		if k == links {
			root = "ROOT "
		}
		fmt.Fprintf(&b, "r%d = f32[%s] reshape(v%d)\n%sv%d = f32[%s] negate(r%d)\n", k, s, k-1, root, k, s, k)
	}
	return b.String()
}

func benchmarkAnalyze(b *testing.B, text string) {
	c := entry(b, text)
	analyzed(b, c)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Analyze(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAnalyze500 analyses fusions of 500 instructions; at most 10 ms each.
func BenchmarkAnalyze500(b *testing.B) {
	b.Run("chain", func(b *testing.B) { benchmarkAnalyze(b, chainText(500)) })
	b.Run("mixed", func(b *testing.B) { benchmarkAnalyze(b, fusionText(500, 0)) })
	b.Run("1-accumulator", func(b *testing.B) { benchmarkAnalyze(b, fusionText(500, 1)) })
	b.Run("3-accumulators", func(b *testing.B) { benchmarkAnalyze(b, fusionText(500, 3)) })
	b.Run("30-accumulators", func(b *testing.B) { benchmarkAnalyze(b, fusionText(500, 30)) })
}

// BenchmarkReshapeRank12 analyses chains of reshapes of rank 12: one clause a
// boundary, never a product of cases. Nested ones split dimensions and join them
// again; overlapping ones have no boundary in common inside a pair, the worst there
// is for expressions.
func BenchmarkReshapeRank12(b *testing.B) {
	for _, links := range []int{1, 3, 6} {
		b.Run(fmt.Sprintf("nested-%d", links), func(b *testing.B) {
			benchmarkAnalyze(b, reshapesText(links, 6, "24", "4,6", "2,2,6", "4,2,3"))
		})
		b.Run(fmt.Sprintf("overlapping-%d", links), func(b *testing.B) {
			benchmarkAnalyze(b, reshapesText(links, 6, "4,6", "6,4", "2,12", "3,8"))
		})
	}
}

const softmaxText = `x = f32[512,1024] parameter(0)
low = f32[] constant(-inf)
zero = f32[] constant(0)
m = f32[512] reduce(x, low), dimensions={1}, to_apply=maximum
mb = f32[512,1024] broadcast(m), dimensions={0}
c = f32[512,1024] subtract(x, mb)
e = f32[512,1024] exponential(c)
s = f32[512] reduce(e, zero), dimensions={1}, to_apply=add
sb = f32[512,1024] broadcast(s), dimensions={0}
ROOT d = f32[512,1024] divide(e, sb)`

const gemmText = `x = f32[512,2,256] parameter(0)
w = f32[512,1024] parameter(1)
v = f32[1024] parameter(2)
f = f32[512,512] reshape(x)
d = f32[512,1024] dot(f, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
vb = f32[512,1024] broadcast(v), dimensions={1}
a = f32[512,1024] add(d, vb)
ROOT t = f32[512,1024] tanh(a)`

// BenchmarkAt builds concrete programs, as ranking does for every candidate.
func BenchmarkAt(b *testing.B) {
	for name, text := range map[string]string{"softmax": softmaxText, "gemm": gemmText, "500": fusionText(500, 0)} {
		b.Run(name, func(b *testing.B) {
			p := analyzed(b, entry(b, text))
			var all []Tiling
			for t := range p.Space.Tilings() {
				if all = append(all, t); len(all) == 64 {
					break
				}
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if _, err := p.At(all[n%len(all)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// tilingTexts have spaces joined by reshapes, and one with halos.
var tilingTexts = map[string]string{
	"reshape":  "x = f32[48,8,6,4,8,10] parameter(0); ROOT r = f32[384,24,80] reshape(x)",
	"gemm":     gemmText,
	"unfold":   "x = f32[1,64,64,16] parameter(0); k = f32[3,3,16,32] parameter(1); ROOT c = f32[1,62,62,32] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f",
	"reshapes": "x = f32[2,6,6,2,6,6] parameter(0); ROOT r = f32[12,36,12] reshape(x)",
}

// benchmarkTilings reports the tilings a second that visit counts.
func benchmarkTilings(b *testing.B, visit func(p *Program) int) {
	for name, text := range tilingTexts {
		b.Run(name, func(b *testing.B) {
			p := analyzed(b, entry(b, text))
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n += visit(p)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tilings/s")
		})
	}
}

// BenchmarkTilings enumerates spaces; at least 10⁶ legal tilings a second.
func BenchmarkTilings(b *testing.B) {
	benchmarkTilings(b, func(p *Program) (n int) {
		for range p.Space.Tilings() {
			n++
		}
		return n
	})
}

// BenchmarkTilingsFirst enumerates a space that was never enumerated before.
func BenchmarkTilingsFirst(b *testing.B) {
	benchmarkTilings(b, func(p *Program) (n int) {
		s := *p.Space
		if err := s.compile(); err != nil {
			b.Fatal(err)
		}
		for range s.Tilings() {
			n++
		}
		return n
	})
}

// BenchmarkTilingsChecked checks every tiling again, from its sizes alone.
func BenchmarkTilingsChecked(b *testing.B) {
	benchmarkTilings(b, func(p *Program) (n int) {
		for t := range p.Space.Tilings() {
			if p.Check(t) == nil {
				n++
			}
		}
		return n
	})
}

// BenchmarkCount counts 3²⁰ tilings of twenty reshaped groups for the first time.
func BenchmarkCount(b *testing.B) {
	from, to := strings.Repeat("2,3,", 20), strings.Repeat("6,", 20)
	p := analyzed(
		b,
		entry(b, fmt.Sprintf("x = s8[%s] parameter(0); ROOT r = s8[%s] reshape(x)", strings.TrimSuffix(from, ","), strings.TrimSuffix(to, ","))),
	)
	b.ReportAllocs()
	for b.Loop() {
		s := *p.Space
		if err := s.compile(); err != nil {
			b.Fatal(err)
		}
		s.Count()
	}
}
