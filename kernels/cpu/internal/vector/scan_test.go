package vector

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// combines are the operations of scans in Go.
var combines = map[hlo.Opcode]func(x, y float32) float32{
	hlo.OpAdd:      func(x, y float32) float32 { return x + y },
	hlo.OpMultiply: func(x, y float32) float32 { return x * y },
	hlo.OpMaximum:  func(x, y float32) float32 { return max(x, y) },
	hlo.OpMinimum:  func(x, y float32) float32 { return min(x, y) },
}

// emulateScan is the scan of whole vectors in the order of the machine code: element
// k of a vector takes the one 1, 2 and 4 places before it, the last step the total of
// the lower half, and what came before the vector at the end.
func emulateScan(combine func(x, y float32) float32, row []float32, x float32) []float32 {
	out := make([]float32, len(row))
	for at := 0; at < len(row); at += Lanes {
		v := append([]float32(nil), row[at:at+Lanes]...)
		for _, by := range []int{1, 2} {
			for k := Lanes - 1; k >= 0; k-- {
				if k%4 >= by {
					v[k] = combine(v[k-by], v[k])
				}
			}
		}
		for k := 4; k < Lanes; k++ {
			v[k] = combine(v[3], v[k])
		}
		for k := range v {
			out[at+k] = combine(x, v[k])
		}
		x = combine(x, v[Lanes-1])
	}
	return out
}

// reversedRow is a row from its last element on.
func reversedRow(row []float32) []float32 {
	out := make([]float32, len(row))
	for k, x := range row {
		out[len(row)-1-k] = x
	}
	return out
}

// scanInputs are numbers of all magnitudes, with signed zeros, infinities and NaN in some.
func scanInputs(rng *rand.Rand, n int) []float32 {
	row := make([]float32, n)
	for k := range row {
		row[k] = float32(rng.NormFloat64() * math.Exp2(float64(rng.IntN(8)-4)))
	}
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()}
	for range rng.IntN(3) {
		row[rng.IntN(n)] = float32(special[rng.IntN(len(special))])
	}
	return row
}

// sameFloats compares bits; all NaN are one.
func sameFloats(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for k := range want {
		x, y := got[k], want[k]
		if math.Float32bits(x) != math.Float32bits(y) && !(x != x && y != y) {
			t.Fatalf("%s: element %d of %d is %v, want %v", what, k, len(want), x, y)
		}
	}
}

// The machine code of scans computes what Go computes in its order, to the bit, in both
// directions.
func TestScans(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code runs here")
	}
	rng := rand.New(rand.NewPCG(16, 1))
	for op, scan := range Scans() {
		for range 300 {
			n := Lanes * (1 + rng.IntN(9))
			row := scanInputs(rng, n)
			before := scanInputs(rng, 1)[0]
			dst := make([]float32, n)
			args := &ScanArgs{N: int64(n), X: &row[0], Y: &dst[0], Carry: before}
			scan.Forward.Call(unsafe.Pointer(args))
			want := emulateScan(combines[op], row, before)
			sameFloats(t, string(op)+" forward", append(dst, args.Carry), append(want, want[n-1]))

			last := n - Lanes
			*args = ScanArgs{N: int64(n), X: &row[last], Y: &dst[last], Carry: before}
			scan.Backward.Call(unsafe.Pointer(args))
			want = reversedRow(emulateScan(combines[op], reversedRow(row), before))
			sameFloats(t, string(op)+" backward", append(dst, args.Carry), append(want, want[0]))
		}
	}
}

// Rows are combined element by element, and nothing behind them is written.
func TestScanRows(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code runs here")
	}
	rng := rand.New(rand.NewPCG(16, 2))
	for op, scan := range Scans() {
		for n := 1; n < 80; n++ {
			row, before := scanInputs(rng, n), scanInputs(rng, n)
			dst := make([]float32, n+1)
			want := make([]float32, n+1)
			for k := range n {
				want[k] = combines[op](before[k], row[k])
			}
			dst[n], want[n] = 17, 17
			scan.Rows.Call(unsafe.Pointer(&ScanArgs{
				N: int64(n), X: &row[0], Y: &dst[0], Before: &before[0],
			}))
			sameFloats(t, string(op)+" of rows", dst, want)
		}
	}
}
