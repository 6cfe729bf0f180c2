//go:build linux && amd64 && !noasm

package vector

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// narrowPairs are types of results and of elements that are held alike.
var narrowPairs = [][2]hlo.DType{
	{hlo.S8, hlo.S8}, {hlo.U8, hlo.U8}, {hlo.Pred, hlo.Pred}, {hlo.S16, hlo.S16}, {hlo.U16, hlo.U16},
	{hlo.S32, hlo.S8}, {hlo.S32, hlo.U8}, {hlo.S32, hlo.Pred}, {hlo.S32, hlo.S16}, {hlo.S16, hlo.S8},
}

var narrowOps = []hlo.Opcode{
	hlo.OpAdd, hlo.OpMultiply, hlo.OpMaximum, hlo.OpMinimum, hlo.OpAnd, hlo.OpOr, hlo.OpXor,
}

// TestNarrowReductions compares rows, and rows element by element, of all lengths around those of
// whole vectors, and columns with loops in Go on widened elements.
func TestNarrowReductions(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code runs here")
	}
	for _, pair := range narrowPairs {
		for _, op := range narrowOps {
			if pair[0] == hlo.Pred && op == hlo.OpMultiply {
				continue
			}
			t.Run(string(op)+"/"+pair[0].String()+"/"+pair[1].String(), func(t *testing.T) {
				compareNarrow(t, op, pair[0], pair[1])
			})
		}
	}
}

// narrowBytes is random elements, widened and as an array has them.
func narrowBytes(r *rand.Rand, from hlo.DType, n int) (wide []int32, data []byte) {
	data = make([]byte, n*int(from.Size()))
	for k := range data {
		data[k] = byte(r.Uint32())
		if from == hlo.Pred {
			data[k] &= 1
		}
	}
	wide = make([]int32, n)
	portable.Read[int32](from)(wide, data, 0, 1)
	return wide, data
}

// narrowed is what the end of a reduction makes of a result.
func narrowed(d hlo.DType, x []int32) []int32 {
	x = append([]int32(nil), x...)
	if fit := portable.Narrowing[int32](d); fit != nil {
		fit(x, x)
	}
	return x
}

func compareNarrow(t *testing.T, op hlo.Opcode, d, from hlo.DType) {
	for _, wide := range []bool{false, true}[:1+btoi(amd64.RunsWide())] {
		code, ok := narrowKey{op, d, from, wide}.reduction()
		if !ok {
			t.Fatal("no routines")
		}
		compareNarrowRoutines(t, code, op, d, from)
	}
}

func compareNarrowRoutines(t *testing.T, code NarrowReduction, op hlo.Opcode, d, from hlo.DType) {
	r := rand.New(rand.NewPCG(3, 4))
	row, each := portable.ReduceRow[int32](op, d), portable.BinaryOf[int32](op, d)
	for n := range 700 {
		wide, data := narrowBytes(r, from, n+1)
		start, _ := narrowBytes(r, d, n+1)
		got := []int32{start[0]}
		args := NarrowArgs{N: int64(n), X: unsafe.Pointer(&data[0]), Y: unsafe.Pointer(&got[0])}
		code.Row.Call(unsafe.Pointer(&args))
		want := []int32{row(start[0], wide[:n])}
		if narrowed(d, got)[0] != narrowed(d, want)[0] {
			t.Fatalf("row of %d: %d, not %d", n, got[0], want[0])
		}
		if n > 100 {
			continue
		}
		got = append([]int32(nil), start...)
		args = NarrowArgs{N: int64(n), X: unsafe.Pointer(&data[0]), Y: unsafe.Pointer(&got[0])}
		code.Each.Call(unsafe.Pointer(&args))
		want = append([]int32(nil), start...)
		each(want[:n], start[:n], wide[:n])
		got, want = narrowed(d, got), narrowed(d, want)
		for k := range got {
			if got[k] != want[k] {
				t.Fatalf("element %d of %d: %d, not %d", k, n, got[k], want[k])
			}
		}
	}
	if code.HasColumns {
		compareNarrowColumns(t, r, code, op, d)
	}
}

func compareNarrowColumns(t *testing.T, r *rand.Rand, code NarrowReduction, op hlo.Opcode, d hlo.DType) {
	each := portable.BinaryOf[int32](op, d)
	for columns := ColumnBytes; columns < 640; columns += ColumnBytes {
		const rows, step = 5, 701
		wide, data := narrowBytes(r, d, rows*step)
		got := make([]byte, columns+1)
		args := NarrowArgs{
			N: int64(columns), X: unsafe.Pointer(&data[0]), Y: unsafe.Pointer(&got[0]), Rows: rows, Step: step,
		}
		code.Columns.Call(unsafe.Pointer(&args))
		want := append([]int32(nil), wide[:columns]...)
		for k := 1; k < rows; k++ {
			each(want, want, wide[k*step:][:columns])
		}
		have := make([]int32, columns)
		portable.Read[int32](d)(have, got, 0, 1)
		want = narrowed(d, want)
		for k := range have {
			if have[k] != want[k] {
				t.Fatalf("column %d of %d: %d, not %d", k, columns, have[k], want[k])
			}
		}
		if got[columns] != 0 {
			t.Fatalf("%d columns: the byte behind them is written", columns)
		}
	}
}
