package kernels

import (
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Arrays that this machine cannot hold are refused in words.
func TestRoom(t *testing.T) {
	huge := hlo.Shape{DType: hlo.F32, Dims: []int64{1 << 16, 1 << 17}}
	if CheckFreeMemory(huge.Bytes()-1) == nil {
		t.Skip("this machine holds 32 GB")
	}
	_, asArray := NewBuffer(huge)
	if err := asArray; err == nil ||
		!strings.Contains(err.Error(), "f32[65536,131072]") ||
		!strings.Contains(err.Error(), "GB left") {
		t.Errorf("%v", err)
	}
	if err := CheckFreeMemory(uncheckedBytes); err != nil {
		t.Errorf("no room for 256 MiB: %v", err)
	}
}
