package amd64

import (
	"bytes"
	"testing"
)

// stores has stores of all encodings, jumps and padding between them.
func stores(store Op) *Assembler {
	a := &Assembler{}
	end := a.NewLabel()
	a.Emit(store, Mem{Base: RSI}, Y1)
	a.Emit(JE, end)
	a.Emit(store, Mem{Base: R12, Index: R13, Scale: 4, Disp: 1024}, Y9)
	a.Emit(store, Mem{Base: R12, Index: R13, Scale: 4, Disp: 1024}, Z0+9)
	a.Emit(store, Mem{Base: RSI}, Z0)
	a.Align(32)
	m := a.Mark()
	a.Emit(store, Mem{Base: RDX}, Y2)
	a.Undo(m)
	for range 40 {
		a.Emit(store, Mem{Base: RDX, Index: RCX, Scale: 4, Disp: 8}, X3)
	}
	a.Bind(end)
	a.Emit(store, a.Splat32(7), Y15)
	return a
}

// TestCached holds what takes the place of streaming stores against stores that
// were ordinary from the start.
func TestCached(t *testing.T) {
	a := stores(VMOVNTPS)
	streaming, err := a.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	ordinary, err := stores(VMOVUPS).Assemble()
	if err != nil {
		t.Fatal(err)
	}
	if cached := a.WithoutNonTemporal(streaming); !bytes.Equal(cached, ordinary) {
		t.Errorf("% x, want % x", cached, ordinary)
	}
}
