package aliased

import (
	"bytes"
	"errors"
	"testing"
)

// small is a pool of three blocks and an array of seven blocks and a bit, whose first
// block is the second of the pool.
func small(t *testing.T) (*Pool, *Array) {
	p, err := NewPool(3)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { p.Close() })
	a, err := p.Array(7*Block+100, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	for k := range p.Bytes {
		p.Bytes[k] = byte(1 + k/Block)
	}
	return p, a
}

// An array repeats its pool.
func TestArrayRepeats(t *testing.T) {
	p, a := small(t)
	if len(a.Data) != 7*Block+100 {
		t.Fatalf("%d bytes", len(a.Data))
	}
	for k := 0; k < len(a.Data); k += Block / 2 {
		if want := byte(1 + (k/Block+1)%3); a.Data[k] != want {
			t.Errorf("byte %d is %d, not %d", k, a.Data[k], want)
		}
	}
	p.Bytes[5] = 77
	if a.Data[2*Block+5] != 77 || a.Data[5*Block+5] != 77 {
		t.Error("what is written to the pool is not in the array")
	}
}

// What has pages of its own is not changed by what is written elsewhere, wherever it is
// and after it was elsewhere.
func TestOwnPages(t *testing.T) {
	_, a := small(t)
	for _, own := range [][2]int64{{0, 3}, {1, 3}, {2, 3}, {1, 9}, {0, 1}, {1, 2}} {
		if err := a.Own(own[0], own[1]); err != nil {
			t.Fatal(err)
		}
		before, after := a.Zones()
		for _, zone := range [][]byte{before, after} {
			copy(zone, bytes.Repeat([]byte{9}, Zone))
		}
		for k := range a.Data {
			if a.Data[k] = 100; a.Owns(int64(k)) {
				a.Data[k] = 200
			}
		}
		for k := range a.Data {
			if !a.Owns(int64(k)) {
				a.Data[k] = 101
			}
		}
		owned := 0
		for lo, hi := range a.Blocks() {
			if n := bytes.Count(a.Data[lo:hi], []byte{200}); n != int(hi-lo) {
				t.Errorf("%v: other writes are seen at [%d, %d)", own, lo, hi)
			}
			owned++
		}
		for _, zone := range [][]byte{before, after} {
			if bytes.Count(zone, []byte{9}) != Zone {
				t.Errorf("%v: writes to the array are seen in a zone", own)
			}
		}
		if want := int((7-own[0]+own[1]-1)/own[1]) + 1; owned != want {
			t.Errorf("%v: %d blocks with pages of their own, not %d", own, owned, want)
		}
	}
}

// What was written is there after the pages were taken from the addresses, in blocks of
// the pool and in those with pages of their own.
func TestRelease(t *testing.T) {
	p, a := small(t)
	if err := a.Own(1, 3); err != nil {
		t.Fatal(err)
	}
	for k := 0; k < len(a.Data); k += 64 {
		a.Data[k] = byte(k / Block * 7)
	}
	want := bytes.Clone(a.Data)
	for range 2 {
		if err := errors.Join(a.Release(), p.Release()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Data, want) {
			t.Fatal("the array has changed")
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Release(); err != nil {
		t.Error("of a closed array:", err)
	}
}
