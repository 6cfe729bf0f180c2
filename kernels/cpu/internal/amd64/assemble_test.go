package amd64

import (
	"bytes"
	"testing"
)

// stores has stores of all encodings, jumps and padding between them.
func stores(store Op) *Assembler {
	a := &Assembler{}
	addStores(a, store)
	return a
}

func addStores(a *Assembler, store Op) {
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

// TestReset assembles code after other code in one assembler: it is that of a new one.
func TestReset(t *testing.T) {
	a := axpyLike()
	if _, err := a.Assemble(); err != nil {
		t.Fatal(err)
	}
	a.Emit(VMOVNTPS, Y0) // a mistake, which is forgotten, too
	a.Reset()
	want, err := stores(VMOVNTPS).Assemble()
	if err != nil {
		t.Fatal(err)
	}
	addStores(a, VMOVNTPS)
	got, err := a.Assemble()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("% x, want % x (%v)", got, want, err)
	}
	ordinary, _ := stores(VMOVUPS).Assemble()
	if cached := a.WithoutNonTemporal(got); !bytes.Equal(cached, ordinary) {
		t.Errorf("without streaming stores: % x, want % x", cached, ordinary)
	}
}

// axpyLike has a constant, a label, a reference and a chain.
func axpyLike() *Assembler {
	a := &Assembler{}
	a.Emit(VADDPS, Y0, Y1, a.Splat32(9))
	c := &Chain{}
	c.Store(VMOVUPS, Mem{Base: RSI}, 32, c.Exp32(c.Load(VMOVUPS, Mem{Base: RDI}, 32)))
	c.Emit(a, Placement{})
	a.Emit(VMOVNTPS, Mem{Base: RSI}, Y3)
	return a
}
