package cpu

import (
	"testing"

	"github.com/tilewright/tilewright/kernels/kerneltest"
)

// A reshape of an empty array compiles, whatever the numbers of elements of its tiles.
func TestEmptyReshape(t *testing.T) {
	p := kerneltest.Program(t, `
x = f32[0,4] parameter(0)
ROOT r = f32[0] reshape(x)`)
	checkPlans(t, p, 4)
}
