package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
)

// longStrips are operations on rows of parts of arrays, in lanes of one, four and eight bytes,
// that are exact.
var longStrips = []string{
	"x = s8[3,$1] parameter(0)\ny = s8[3,$1] parameter(1)\nROOT r = s8[3,$1] multiply(x, y)",
	"x = u8[3,400] parameter(0)\ny = u8[3,$1] parameter(1)\nz = u8[3,$1] slice(x), slice={[0:3], [5:$2]}\nROOT r = pred[3,$1] compare(z, y), direction=GT",
	"x = u8[3,$1] parameter(0)\nc = u8[] constant(77)\nb = u8[3,$1] broadcast(c), dimensions={}\nm = u8[3,$1] maximum(x, b)\nROOT r = s8[3,$1] convert(m)",
	"x = s8[3,$1] parameter(0)\ny = s8[3,$1] parameter(1)\np = pred[3,$1] compare(x, y), direction=LT\nROOT r = s8[3,$1] select(p, x, y)",
	"x = s8[3,400] parameter(0)\nz = s8[3,$1] slice(x), slice={[0:3], [5:$2]}\nROOT r = f32[3,$1] convert(z)",
	"x = s64[3,$1] parameter(0)\nROOT r = bf16[3,$1] convert(x)",
	"x = f64[3,400] parameter(0)\nz = f64[3,$1] slice(x), slice={[0:3], [5:$2]}\nROOT r = f16[3,$1] convert(z)",
	"x = u32[3,$1] parameter(0)\ny = u32[3,$1] parameter(1)\nm = u32[3,$1] maximum(x, y)\nROOT r = f32[3,$1] convert(m)",
	"x = f32[3,$1] parameter(0)\nROOT r = f8e4m3fn[3,$1] convert(x)",
	"x = s16[3,$1] parameter(0)\ny = s16[3,$1] parameter(1)\nROOT r = s16[3,$1] multiply(x, y)",
}

// TestLongStripsEndAtPage runs rows of lengths around those of whole vectors over arrays that
// end where a page begins that cannot be touched, and compares them with the reference bit by
// bit.
func TestLongStripsEndAtPage(t *testing.T) {
	floats, integers := hardFloats(), hardIntegers()
	for k, text := range longStrips {
		for _, n := range []int{1, 7, 8, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 200, 257} {
			p := kerneltest.Program(t, withNumbers(text, n, n+5))
			random := rand.New(rand.NewPCG(uint64(k), uint64(n)))
			var in []kernels.Buffer
			for _, x := range p.Fusion.Params {
				b := arrayOf(t, x.Shape)
				fillHard(b, random, floats, integers)
				in = append(in, b)
			}
			want, err := reference.Interpret(p.Fusion, in)
			if err != nil {
				t.Fatal(err)
			}
			whole := make(symtile.Tiling, len(p.Space.Dims))
			for k, d := range p.Space.Dims {
				whole[k] = max(1, d.Extent)
			}
			got := atPageEnds(t, p, kernels.Plan{Tiles: whole}, in, 0)
			for at := range want[0].Shape.Elements() {
				if !sameElement(got[0], want[0], at) {
					t.Fatalf("%d: rows of %d: element %d differs", k, n, at)
				}
			}
		}
	}
}

// withNumbers puts numbers in place of $1 and $2.
func withNumbers(text string, first, second int) string {
	return strings.NewReplacer("$1", fmt.Sprint(first), "$2", fmt.Sprint(second)).Replace(text)
}

// sameElement reports whether an element of two arrays has the same bits, or is NaN in both.
func sameElement(got, want kernels.Buffer, at int64) bool {
	if d := want.Shape.DType; d.IsFloat() {
		x, y := got.Float(at), want.Float(at)
		if x != x && y != y {
			return true
		}
	}
	size := want.Shape.DType.Size()
	return slices.Equal(got.Data[at*size:(at+1)*size], want.Data[at*size:(at+1)*size])
}
