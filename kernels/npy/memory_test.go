package npy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestReadTooLarge reads a file whose header promises more elements than any
// machine has memory for: an error, not the end of the process.
func TestReadTooLarge(t *testing.T) {
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (68719476736000,), }"
	file := append([]byte(magic), 1, 0, byte(len(header)), 0)
	file = append(file, header...)
	shape := hlo.Shape{DType: hlo.F32, Dims: []int64{68719476736000}}
	_, err := Read(bytes.NewReader(file), shape)
	if err == nil || !strings.Contains(err.Error(), "of memory are needed") {
		t.Errorf("%v", err)
	}
}
