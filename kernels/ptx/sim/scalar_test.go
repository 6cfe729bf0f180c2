package sim

import (
	"bufio"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// scalarKernel is a kernel that does one instruction on its 64-bit parameters
// and stores the result.
func scalarKernel(opcode string, widths []string, immediate string) string {
	var b strings.Builder
	b.WriteString(".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out")
	for i := range widths[1:] {
		fmt.Fprintf(&b, ", .param .u64 x%d", i)
	}
	b.WriteString(")\n{\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b64 %o, %d;\nld.param.u64 %o, [out];\n")
	name := func(w string, i int) string {
		prefix := map[string]string{
			"p":  "%p",
			"!p": "%p",
			"16": "%h",
			"32": "%r",
			"64": "%rd",
		}[w]
		return prefix + strconv.Itoa(i)
	}
	operands := name(widths[0], 8)
	for i, w := range widths[1:] {
		fmt.Fprintf(&b, "ld.param.u64 %%rd%d, [x%d];\n", i, i)
		switch w {
		case "p", "!p":
			fmt.Fprintf(&b, "setp.ne.s64 %%p%d, %%rd%d, 0;\n", i, i)
		case "16", "32":
			fmt.Fprintf(&b, "cvt.u%s.u64 %s, %%rd%d;\n", w, name(w, i), i)
		}
		operands += ", "
		if w == "!p" {
			operands += "!"
		}
		operands += name(w, i)
	}
	fmt.Fprintf(&b, "%s %s%s;\n", opcode, operands, immediate)
	switch widths[0] {
	case "p":
		b.WriteString("selp.b64 %d, 1, 0, %p8;\n")
	case "64":
		b.WriteString("mov.b64 %d, %rd8;\n")
	default:
		fmt.Fprintf(&b, "cvt.u64.u%s %%d, %s;\n", widths[0], name(widths[0], 8))
	}
	b.WriteString("st.global.u64 [%o], %d;\nret;\n}\n")
	return b.String()
}

func TestScalar(t *testing.T) {
	cases := bufio.NewScanner(strings.NewReader(readText(t, "scalar.txt")))
	for n := 1; cases.Scan(); n++ {
		line := cases.Text()
		parts := strings.Split(line, " : ")
		if len(parts) != 3 || line[0] == '#' {
			continue
		}
		widths := strings.Fields(parts[1])
		immediate := ""
		if last := widths[len(widths)-1]; last[0] == '#' {
			immediate, widths = ", "+last[1:], widths[:len(widths)-1]
		}
		in, result, _ := strings.Cut(parts[2], " = ")
		want, err := strconv.ParseUint(result, 0, 64)
		if err != nil {
			t.Fatalf("scalar.txt:%d: %v", n, err)
		}
		var args []uint64
		for _, f := range strings.Fields(in) {
			v, err := strconv.ParseUint(f, 0, 64)
			if err != nil {
				t.Fatalf("scalar.txt:%d: %v", n, err)
			}
			args = append(args, v)
		}
		if got := runScalar(t, scalarKernel(parts[0], widths, immediate), args); got != want {
			t.Errorf("scalar.txt:%d: %s: got %#x", n, line, got)
		}
	}
}

func runScalar(t testing.TB, text string, args []uint64) uint64 {
	t.Helper()
	b := newBench(t)
	out := b.alloc(8)
	list := [][]byte{Value(out)}
	for _, a := range args {
		list = append(list, Value(a))
	}
	r := b.launch(
		mustLoad(t, text),
		Launch{Entry: "k", Args: list, Outputs: []uint64{out}},
		everything,
	)
	if err := r.Err(); err != nil {
		t.Fatal(err, text)
	}
	w := b.words(out, 2)
	return uint64(w[1])<<32 | uint64(w[0])
}

// TestRounding compares float32 arithmetic in every rounding mode with exact
// arithmetic on random and special numbers.
func TestRounding(t *testing.T) {
	r := random(10)
	pick := func() float32 {
		if r.IntN(4) == 0 {
			return []float32{
				0, 1, -1, 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffep127, 3, -1.5,
			}[r.IntN(9)]
		}
		return math.Float32frombits(r.Uint32()&0x807fffff | uint32(100+r.IntN(56))<<23)
	}
	modes := map[string]big.RoundingMode{
		"rn": big.ToNearestEven,
		"rz": big.ToZero,
		"rm": big.ToNegativeInf,
		"rp": big.ToPositiveInf,
	}
	for range 20000 {
		a, b, c := pick(), pick(), pick()
		for mod, mode := range modes {
			for op, want := range exactResults(a, b, c) {
				if want == nil {
					continue
				}
				code, err := ptx.ParseOpcode(op + "." + mod + ".f32")
				if err != nil {
					t.Fatal(err)
				}
				got := floating(&code)(
					uint64(math.Float32bits(a)),
					uint64(math.Float32bits(b)),
					uint64(math.Float32bits(c)),
				)
				if w := roundTo32(want, mode); math.Float32frombits(uint32(got)) != w {
					t.Fatalf("%v of %x %x %x: %x, want %x", code, a, b, c, math.Float32frombits(uint32(got)), w)
				}
			}
		}
	}
}

// exactResults are what the operations give before rounding, to 800 bits.
func exactResults(a, b, c float32) map[string]*big.Float {
	f := func(v float32) *big.Float {
		return new(big.Float).SetPrec(800).SetFloat64(float64(v))
	}
	m := map[string]*big.Float{
		"add": f(0).Add(f(a), f(b)),
		"sub": f(0).Sub(f(a), f(b)),
		"mul": f(0).Mul(f(a), f(b)),
	}
	m["fma"] = f(0).Add(m["mul"], f(c))
	if b != 0 {
		m["div"] = f(0).Quo(f(a), f(b))
	}
	if a != 0 {
		m["rcp"] = f(0).Quo(f(1), f(a))
	}
	if a >= 0 {
		m["sqrt"] = f(0).Sqrt(f(a))
	}
	return m
}

// roundTo32 rounds with the grid of float32, subnormals included.
func roundTo32(v *big.Float, mode big.RoundingMode) float32 {
	if v.Sign() == 0 {
		return 0
	}
	prec := 24
	if e := v.MantExp(nil); e < -125 {
		prec = 24 - (-125 - e)
	}
	if prec < 1 { // between zero and half the smallest subnormal, or just above
		half := new(big.Float).SetFloat64(0x1p-150)
		up := v.Sign() > 0 && mode == big.ToPositiveInf || v.Sign() < 0 && mode == big.ToNegativeInf ||
			mode == big.ToNearestEven && new(big.Float).Abs(v).Cmp(half) > 0
		if !up {
			return 0
		}
		return float32(v.Sign()) * 0x1p-149
	}
	x, _ :=
		new(big.Float).SetMode(mode).SetPrec(uint(prec)).Set(v).Float64()
	if math.Abs(x) > math.MaxFloat32 {
		towardZero := mode == big.ToZero || mode == big.ToNegativeInf && x > 0 || mode == big.ToPositiveInf && x < 0
		if towardZero {
			return float32(math.Copysign(math.MaxFloat32, x))
		}
		return float32(math.Inf(v.Sign()))
	}
	return float32(x)
}

// TestSmallFloats turns every value of the small formats into a float and back.
func TestSmallFloats(t *testing.T) {
	for name, f := range map[string]smallFormat{"f16": halfFormat, "bf16": bfloatFormat, "e4m3": e4m3Format, "e5m2": e5m2Format} {
		for bits := range 1 << f.bits {
			v := f.value(uint16(bits))
			back := f.round(v, nearest, false)
			if v != v {
				if back != f.nan {
					t.Fatalf("%s %#x: NaN becomes %#x", name, bits, back)
				}
				continue
			}
			if back != uint16(bits) {
				t.Fatalf("%s %#x is %v and becomes %#x", name, bits, v, back)
			}
		}
	}
	for i := range 1 << 20 {
		f := math.Float32frombits(uint32(i) * 4099)
		if got, want := floatToHalf(f), halfFormat.round(float64(f), nearest, false); got != want {
			t.Fatalf("%x as a half is %#x, want %#x", f, got, want)
		}
		if got, want := floatToBfloat(f), bfloatFormat.round(float64(f), nearest, false); got != want {
			t.Fatalf("%x as a bfloat16 is %#x, want %#x", f, got, want)
		}
	}
	for bits := range 1 << 16 {
		a, b := float64(halfToFloat(uint16(bits))), halfFormat.value(uint16(bits))
		if a != b && a == a {
			t.Fatalf("half %#x is %v, %v", bits, a, b)
		}
	}
}
