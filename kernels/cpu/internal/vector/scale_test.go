package vector

import (
	"math"
	"testing"
	"unsafe"
)

// TestScale multiplies slices of all lengths, and nothing behind them, to the bit.
func TestScale(t *testing.T) {
	scale, ok := ScaleRoutine()
	if !ok {
		t.Skip("no machine code here")
	}
	for n := range 80 {
		x := make([]float32, n+9)
		for k := range x {
			x[k] = float32(k) - 3.7
		}
		want := append([]float32(nil), x...)
		factor := float32(math.Exp(-0.3))
		for k := range n {
			want[k] *= factor
		}
		args := &ReduceArgs{N: int64(n), X: &x[0], Y: &factor}
		scale.Call(unsafe.Pointer(args))
		for k := range x {
			if x[k] != want[k] {
				t.Fatalf("%d elements: element %d is %v, want %v", n, k, x[k], want[k])
			}
		}
	}
}
