package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// exactUnary and exactBinary are operations whose results are those of the reference to the bit.
var (
	exactUnary = []string{
		"floor", "ceil", "round-nearest-even", "round-nearest-afz", "sign", "abs", "negate", "not", "popcnt",
		"count-leading-zeros",
	}
	exactBinary = []string{
		"maximum", "minimum", "remainder", "divide", "add", "subtract", "multiply", "and", "xor", "shift-left",
		"shift-right-logical", "shift-right-arithmetic",
	}
)

// exactTypes are types that operations are exact on, and what they are converted to.
var exactTypes = append(
	[]string{"f8e5m2", "f8e4m3", "f8e3m4", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2fnuz"}, types...,
)

// exactTexts are programs with one exact operation each on type d: of all that are valid, the
// comparisons and the selections by them, and the conversions.
func exactTexts(d string) (texts []string) {
	const n = 1003
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	for _, op := range exactUnary {
		add("x = %[1]s[%[2]d] parameter(0)\nROOT r = %[1]s[%[2]d] %[3]s(x)", d, n, op)
	}
	operands := fmt.Sprintf("x = %[1]s[%[2]d] parameter(0)\ny = %[1]s[%[2]d] parameter(1)\n", d, n)
	for _, op := range exactBinary {
		add("%sROOT r = %s[%d] %s(x, y)", operands, d, n, op)
	}
	for _, direction := range []string{"EQ", "NE", "LT", "LE", "GT", "GE"} {
		compare := fmt.Sprintf("%sp = pred[%d] compare(x, y), direction=%s\n", operands, n, direction)
		add("%sROOT r = pred[%d] copy(p)", compare, n)
		add("%sROOT r = %s[%d] select(p, x, y)", compare, d, n)
	}
	add("%sz = %[2]s[%[3]d] parameter(2)\nROOT r = %[2]s[%[3]d] clamp(x, y, z)", operands, d, n)
	add("x = %[1]s[%[2]d] parameter(0)\nROOT r = pred[%[2]d] is-finite(x)", d, n)
	for _, to := range exactTypes {
		add("x = %[1]s[%[2]d] parameter(0)\nROOT r = %[3]s[%[2]d] convert(x)", d, n, to)
	}
	return texts
}

// hardFloats are numbers at which roundings and conversions change: ties of bf16 and f16 and
// numbers next to them, ends of integer types, denormal numbers.
func hardFloats() (list []float64) {
	for _, x := range []float64{
		0, 0.5, 1, 1.5, 2.5, 1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11, 1 + 0x1p-24, 1 + 0x3p-24, 127, 128, 255,
		256, 32767, 65504, 65520, 65536, 1<<24 + 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 53, 1<<53 + 2, 1 << 62,
		1 << 63, 1 << 64, 0x1p-14, 0x1p-24, 0x1p-25, 0x3p-26, 0x1p-126, 0x1p-133, 0x1p-134, 0x1p-149, 0x1p-150, 0x1p-1022,
		0x1p-1074, 3.4e38, 3.3961775292304957e38, 0x1.ffffffp127, math.MaxFloat32, math.MaxFloat64, 4503599627370497.5,
	} {
		for _, v := range []float64{x, math.Nextafter(x, math.Inf(1)), math.Nextafter(x, math.Inf(-1)), x * (1 + 0x1p-40)} {
			list = append(list, v, -v)
		}
	}
	return append(list, math.NaN(), math.Inf(1), math.Inf(-1))
}

// hardIntegers are numbers whose conversions to floats are ties or next to them, and ends.
func hardIntegers() (list []int64) {
	for k := range 64 {
		for _, x := range []uint64{0, 1, ^uint64(0), 1 << 40, 1 << k >> 8, 1 << k >> 9, 3 << k >> 9, 1 << k >> 11, 1 << k >> 12, 1 << k >> 24} {
			list = append(list, int64(1<<k+x), int64(-(1<<k + x)))
		}
	}
	return list
}

// fillHard fills an array with hard numbers in an order of its own, and random ones.
func fillHard(b kernels.Buffer, random *rand.Rand, floats []float64, integers []int64) {
	d := b.Shape.DType
	for at := range b.Shape.Elements() {
		switch {
		case d.IsFloat() && random.IntN(8) > 0:
			b.SetFloat(at, kernels.RoundFloat(d, floats[random.IntN(len(floats))]))
		case d.IsFloat():
			b.SetFloat(at, kernels.RoundFloat(d, random.NormFloat64()*1000))
		case random.IntN(8) > 0:
			b.SetInt(at, kernels.WrapInt(d, integers[random.IntN(len(integers))]))
		default:
			b.SetInt(at, kernels.WrapInt(d, int64(random.Uint64())>>random.IntN(64)))
		}
	}
}

// Exact operations give the bits of the reference on hard numbers of every type.
func TestExactStrips(t *testing.T) {
	compared := 0
	floats, integers := hardFloats(), hardIntegers()
	for _, d := range exactTypes {
		for _, text := range exactTexts(d) {
			m, err := hlo.Parse("exact", []byte("ENTRY e {\n"+text+"\n}"))
			if err != nil || d == "pred" {
				continue
			}
			random := rand.New(rand.NewPCG(5, 6))
			var in []kernels.Buffer
			for _, p := range m.Entry.Params {
				b := arrayOf(t, p.Shape)
				fillHard(b, random, floats, integers)
				in = append(in, b)
			}
			want, err := reference.Interpret(m.Entry, in)
			if err != nil {
				continue
			}
			if compareExactly(t, text, in, want[0]) {
				compared++
			}
		}
	}
	if t.Logf("%d compared", compared); compared < 700 {
		t.Errorf("only %d programs were compared", compared)
	}
}

// compareExactly runs a program by its default plan and compares its result. It reports
// whether the program is not refused.
func compareExactly(t *testing.T, text string, in []kernels.Buffer, want kernels.Buffer) bool {
	t.Helper()
	p := kerneltest.Program(t, text)
	backend := New()
	plan, err := backend.Default(t.Context(), p)
	if err != nil {
		return false
	}
	k, err := backend.Compile(t.Context(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	got := arrayOf(t, want.Shape)
	if _, err := k.Run(context.Background(), in, []kernels.Buffer{got}); err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for at := range want.Shape.Elements() {
		if sameBits(got, want, at) {
			continue
		}
		of := ""
		for _, x := range in {
			of += " " + element(x, at)
		}
		if wrong++; wrong < 4 {
			t.Errorf("%s\nof%s: %s, want %s", text, of, element(got, at), element(want, at))
		}
	}
	return true
}

// sameBits reports whether an element is the same in two arrays; one NaN is as good as another.
func sameBits(x, y kernels.Buffer, at int64) bool {
	if !x.Shape.DType.IsFloat() {
		return x.Int(at) == y.Int(at)
	}
	a, b := x.Float(at), y.Float(at)
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

// element is an element for messages.
func element(x kernels.Buffer, at int64) string {
	if x.Shape.DType.IsFloat() {
		return fmt.Sprint(x.Float(at))
	}
	return fmt.Sprint(x.Int(at))
}
