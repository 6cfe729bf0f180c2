//go:build linux && amd64 && !noasm

package vector

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// byteArgs is the argument block of operations on bytes.
type byteArgs struct {
	n  int64
	at [4]unsafe.Pointer // The operands, and the result.
}

// byteFunction is an operation in lanes of one byte.
func byteFunction(t *testing.T, i *hlo.Instr, wide bool) amd64.Func {
	t.Helper()
	f, ok := LoadRoutine(func(a *amd64.Assembler) error {
		c := &amd64.Chain{}
		if wide {
			c = amd64.NewWideChain()
		}
		l := &amd64.Loop{Chain: c, Counter: amd64.RAX, Width: 1, Copies: 2, Wide: wide}
		a.Emit(amd64.MOV, amd64.RAX, amd64.Mem{Base: amd64.RDI})
		var x []amd64.Value
		regs := []amd64.Reg{amd64.RSI, amd64.RDX, amd64.R8, amd64.R9}
		for k := range len(i.Operands) + 1 {
			a.Emit(amd64.MOV, regs[k], amd64.Mem{Base: amd64.RDI, Disp: int32(8 + 8*k)})
			l.Pointers = append(l.Pointers, amd64.Pointer{Reg: regs[k], Bytes: 1})
			if k < len(i.Operands) {
				x = append(x, c.Load(amd64.VMOVUPS, amd64.Mem{Base: regs[k]}, 32))
			}
		}
		c.Store(amd64.VMOVUPS, amd64.Mem{Base: regs[len(x)]}, 32, EmitBytes(c, i, x))
		_, err := l.EmitRounds(a)
		return err
	})
	if !ok {
		t.Fatalf("%s: not assembled", i.Op)
	}
	return f
}

// byteTexts are all operations that may have code for bytes, on type d.
func byteTexts(d string) (texts []string) {
	for _, op := range []string{"not", "negate", "popcnt", "abs", "sign", "copy"} {
		texts = append(texts, fmt.Sprintf("ROOT r = %s[9] %s(x)", d, op))
	}
	for _, op := range []string{"add", "subtract", "multiply", "and", "or", "xor", "shift-left", "maximum", "minimum"} {
		texts = append(texts, fmt.Sprintf("ROOT r = %s[9] %s(x, y)", d, op))
	}
	for _, direction := range []string{"EQ", "NE", "LT", "LE", "GT", "GE"} {
		texts = append(texts, fmt.Sprintf("ROOT r = pred[9] compare(x, y), direction=%s", direction))
	}
	for _, to := range []string{"pred", "s8", "u8"} {
		texts = append(texts, fmt.Sprintf("ROOT r = %s[9] convert(x)", to))
	}
	return append(texts, fmt.Sprintf("ROOT r = %s[9] clamp(x, y, x)", d), fmt.Sprintf("ROOT r = %s[9] clamp(y, x, y)", d))
}

// plainBytes is an operation as the loops in Go compute it, of bytes as scratch holds them.
func plainBytes(i *hlo.Instr, x [][]int32) []int32 {
	d, from := i.Shape.DType, i.Operands[0].Shape.DType
	y := make([]int32, len(x[0]))
	switch fit := portable.Narrowing[int32](d); {
	case i.Op == hlo.OpCompare:
		portable.Comparison[int32](i)(y, x[0], x[1])
	case i.Op == hlo.OpConvert:
		portable.Conversion[int32, int32](d, from)(y, x[0])
	case i.Op == hlo.OpClamp:
		portable.Clamp(d, y, x[0], x[1], x[2])
	case len(x) == 1:
		portable.UnaryOf[int32](i.Op, d).Then(fit)(y, x[0])
	default:
		portable.BinaryOf[int32](i.Op, d).Then(fit)(y, x[0], x[1])
	}
	return y
}

// TestBytes compares operations in lanes of one byte, in vectors of 32 bytes and of 64, with
// the loops in Go, on all pairs of elements.
func TestBytes(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code runs here")
	}
	compared := 0
	for _, d := range []hlo.DType{hlo.Pred, hlo.S8, hlo.U8} {
		name := d.String()
		for _, text := range byteTexts(name) {
			parameters := fmt.Sprintf("x = %[1]s[9] parameter(0)\ny = %[1]s[9] parameter(1)\n", name)
			m, err := hlo.Parse("bytes", []byte("ENTRY e {\n"+parameters+text+"\n}"))
			if err != nil || !HasBytes(m.Entry.Root) {
				continue
			}
			compared++
			for _, wide := range []bool{false, true}[:1+btoi(amd64.RunsWide())] {
				compareBytes(t, text, m.Entry.Root, byteFunction(t, m.Entry.Root, wide))
			}
		}
	}
	if compared < 45 {
		t.Errorf("only %d operations were compared", compared)
	}
}

// btoi is 1 for true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareBytes compares a function with the loops in Go. Truth values are 0 and 1.
func compareBytes(t *testing.T, text string, i *hlo.Instr, f amd64.Func) {
	t.Helper()
	const n = 1 << 16
	kind := i.Operands[0].Shape.DType
	pairs, held := [2][]byte{make([]byte, n), make([]byte, n)}, [2][]int32{make([]int32, n), make([]int32, n)}
	for k := range n {
		for side := range pairs {
			x := byte(k >> (8 * side))
			if kind == hlo.Pred {
				x &= 1
			}
			pairs[side][k] = x
		}
	}
	for side := range held {
		portable.Read[int32](kind)(held[side], pairs[side], 0, 1)
	}
	got := make([]byte, n)
	args := byteArgs{n: n}
	var plain [][]int32
	for k, o := range i.Operands {
		side := 0
		if o.Name == "y" {
			side = 1
		}
		args.at[k] = unsafe.Pointer(&pairs[side][0])
		plain = append(plain, held[side])
	}
	args.at[len(i.Operands)] = unsafe.Pointer(&got[0])
	f.Call(unsafe.Pointer(&args))
	for k, want := range plainBytes(i, plain) {
		if got[k] != byte(want) {
			t.Fatalf("%s: %s of %#02x and %#02x is %#02x, not %#02x", kind, text, pairs[0][k], pairs[1][k], got[k], byte(want))
		}
	}
}

// TestByteSelect compares a select of bytes by truth values.
func TestByteSelect(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code runs here")
	}
	m, err := hlo.Parse("select", []byte("ENTRY e {\np = pred[9] parameter(0)\nx = u8[9] parameter(1)\ny = u8[9] parameter(2)\nROOT r = u8[9] select(p, x, y)\n}"))
	if err != nil {
		t.Fatal(err)
	}
	const n = 512
	var p, x, y, got [n]byte
	for k := range n {
		p[k], x[k], y[k] = byte(k*k/3&1), byte(k), byte(3*k+1)
	}
	for _, wide := range []bool{false, true}[:1+btoi(amd64.RunsWide())] {
		byteFunction(t, m.Entry.Root, wide).Call(unsafe.Pointer(&byteArgs{n, [4]unsafe.Pointer{
			unsafe.Pointer(&p), unsafe.Pointer(&x), unsafe.Pointer(&y), unsafe.Pointer(&got),
		}}))
		for k := range n {
			if want := [2]byte{y[k], x[k]}[p[k]]; got[k] != want {
				t.Fatalf("%d: %d, not %d", k, got[k], want)
			}
		}
	}
}
