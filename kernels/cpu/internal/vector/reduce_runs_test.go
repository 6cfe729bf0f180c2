package vector

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// reduceRow reduces x into y by the routine of an operation.
func reduceRow[T portable.Number](t *testing.T, op hlo.Opcode, d hlo.DType, y T, x []T) T {
	t.Helper()
	code, ok := ReduceRoutinesOf(op, d)
	if !ok {
		t.Fatalf("%s of %s has no routine", op, d)
	}
	args := ReduceArgs{
		N: int64(len(x)), X: (*float32)(unsafe.Pointer(unsafe.SliceData(x))), Y: (*float32)(unsafe.Pointer(&y)),
	}
	code[0].Call(unsafe.Pointer(&args))
	return y
}

// compareRows compares routines of operations that give the same in any order with the loops
// in Go, on rows of all lengths around those of whole rounds of vectors.
func compareRows[T portable.Number](t *testing.T, d hlo.DType, element func(r *rand.Rand) T, ops ...hlo.Opcode) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	x := make([]T, 400)
	for _, op := range ops {
		for n := range x {
			for k := range x {
				x[k] = element(r)
			}
			y := element(r)
			want := portable.ReduceRow[T](op, d)(y, x[:n])
			if got := reduceRow(t, op, d, y, x[:n]); got != want {
				t.Fatalf("%s of %d %s: %v, not %v", op, n, d, got, want)
			}
		}
	}
}

// TestReduceAnyOrder is about integers, and maxima and minima of floats.
func TestReduceAnyOrder(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code runs here")
	}
	all := []hlo.Opcode{hlo.OpAdd, hlo.OpMultiply, hlo.OpMaximum, hlo.OpMinimum, hlo.OpAnd, hlo.OpOr, hlo.OpXor}
	compareRows(t, hlo.S32, func(r *rand.Rand) int32 { return int32(r.Uint32()) }, all...)
	compareRows(t, hlo.S64, func(r *rand.Rand) int64 { return int64(r.Uint64()) }, hlo.OpAdd, hlo.OpAnd, hlo.OpOr, hlo.OpXor)
	ends := []hlo.Opcode{hlo.OpMaximum, hlo.OpMinimum}
	compareRows(t, hlo.F32, func(r *rand.Rand) float32 { return float32(r.NormFloat64()) }, ends...)
	compareRows(t, hlo.F64, (*rand.Rand).NormFloat64, ends...)
}
