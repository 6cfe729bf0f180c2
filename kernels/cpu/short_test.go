package cpu

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/kerneltest"
)

// shortPrograms have dots of bytes whose operands are packed as they lie in memory, and
// what the listing of a plan of whole tiles has then.
var shortPrograms = map[string]struct{ text, listed string }{
	"product": {`
		x = s8[40,100] parameter(0)
		y = s8[100,50] parameter(1)
		r = s32[40,50] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
		"is part of x"},
	"columns": {`
		x = u8[100,40] parameter(0)
		y = s8[3,50,100] parameter(1)
		r = s32[40,3,50] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={2}`,
		"is part of y"},
	"convolution": {`
		x = s8[2,10,10,8] parameter(0)
		f = s8[3,3,8,16] parameter(1)
		r = s32[2,10,10,16] convolution(x, f), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f`,
		"pad from memory"},
	"one place": { // weights without the dimensions of the place
		`
		x = s8[2,9,9,24] parameter(0)
		f = s8[1,1,24,40] parameter(1)
		r = s32[2,9,9,40] convolution(x, f), window={size=1x1}, dim_labels=b01f_01io->b01f`,
		"is part of f"},
	"reshaped": {`
		x = u8[40,1,100] parameter(0)
		y = s8[100,50] parameter(1)
		x2 = u8[40,100] reshape(x)
		r = s32[40,50] dot(x2, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
		"is part of x"},
	"folded": { // dimensions that become one are widened
		`
		x = s8[40,10,10] parameter(0)
		y = s8[100,50] parameter(1)
		x2 = s8[40,100] reshape(x)
		r = s32[40,50] dot(x2, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
		"is part of y"},
	"stride": {`
		x = u8[1,21,21,3] parameter(0)
		f = u8[7,7,3,16] parameter(1)
		r = s32[1,8,8,16] convolution(x, f), window={size=7x7 stride=2x2}, dim_labels=b01f_01io->b01f`,
		"as it lies"},
	"padded": {`
		x = s8[1,9,9,5] parameter(0)
		f = s8[3,3,5,7] parameter(1)
		low = s8[] constant(-128)
		p = s8[1,12,11,5] pad(x, low), padding=0_0x2_1x1_1x0_0
		r = s32[1,10,9,7] convolution(p, f), window={size=3x3}, dim_labels=b01f_01io->b01f`,
		"pad from memory"},
	"both": { // an operand that something else reads, too, is widened
		`
		x = s8[40,40] parameter(0)
		y = s8[40,40] parameter(1)
		d = s32[40,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
		u = s32[40,40] convert(x)
		r = s32[40,40] add(d, u)`,
		"load x"},
}

// TestShortOperands runs plans of these beside the reference.
func TestShortOperands(t *testing.T) {
	for name, c := range shortPrograms {
		t.Run(name, func(t *testing.T) {
			p := bf16Program(t, c.text)
			v := kerneltest.Verifier(t, p, 1)
			b := New()
			few := fewTiles(p, 60)
			whole := kernels.Plan{Tiles: few[len(few)-1]}
			k, err := b.Compile(t.Context(), p, whole)
			if err != nil {
				t.Fatal(err)
			}
			if gemm.ReadsBytes() && !strings.Contains(k.Source(), c.listed) {
				t.Errorf("no %q in\n%s", c.listed, k.Source())
			}
			for n := range 40 {
				plan := kernels.Plan{Tiles: few[(len(few)-1)*n/39]}
				verify(t, b, v, p, plan)
				verify(t, b, v, p, plan.With("splitk", 2))
			}
		})
	}
}

// BenchmarkOnePlace: convolutions of bytes by 1×1 of ResNet-50, sides and features, by the
// default plan.
func BenchmarkOnePlace(b *testing.B) {
	for _, c := range [][3]int{{56, 64, 256}, {28, 512, 128}, {14, 1024, 256}, {7, 512, 2048}} {
		p := kerneltest.Program(b, fmt.Sprintf(`ENTRY e {
			x = s8[1,%[1]d,%[1]d,%[2]d] parameter(0)
			f = s8[1,1,%[2]d,%[3]d] parameter(1)
			ROOT r = s32[1,%[1]d,%[1]d,%[3]d] convolution(x, f), window={size=1x1}, dim_labels=b01f_01io->b01f
		}`, c[0], c[1], c[2]))
		plan, err := New().Default(b.Context(), p)
		if err != nil {
			b.Fatal(err)
		}
		for _, threads := range []int64{1, 2} {
			b.Run(fmt.Sprintf("%v/threads=%d", c, threads), func(b *testing.B) {
				k, bench := benched(b, p, plan.With("threads", threads))
				defer k.Close()
				best := time.Duration(math.MaxInt64)
				for b.Loop() {
					d, err := bench.Run(b.Context(), k)
					if err != nil {
						b.Fatal(err)
					}
					best = min(best, d)
				}
				b.ReportMetric(best.Seconds()*1e6, "µs-at-best")
			})
		}
	}
}
