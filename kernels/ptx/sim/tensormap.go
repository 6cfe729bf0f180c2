package sim

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// Swizzle is the permutation of the 16-byte chunks of a row in shared memory, the
// same for tensor maps and wgmma descriptors.
type Swizzle uint8

// The swizzles; the names give the bytes of a row.
const (
	// SwizzleNone leaves addresses as they are.
	SwizzleNone Swizzle = iota
	// Swizzle32 permutes the two chunks of rows of 32 bytes.
	Swizzle32
	// Swizzle64 permutes the four chunks of rows of 64 bytes.
	Swizzle64
	// Swizzle128 permutes the eight chunks of rows of 128 bytes.
	Swizzle128
)

// Bytes is the width of the rows that the swizzle permutes, 0 for none.
func (s Swizzle) Bytes() int {
	return [...]int{0, 32, 64, 128}[s]
}

// apply permutes an address: address bits 4… are xored with bits 7… , as many
// as a row has chunks.
func (s Swizzle) apply(addr int64) int64 {
	chunks := int64(1)<<s - 1
	return addr ^ addr>>7&chunks<<4
}

// TensorMap describes a tensor in global memory and the box of it that one tensor
// copy moves, as cuTensorMapEncodeTiled takes them. Sizes are in elements,
// innermost dimension first; strides are in bytes, from dimension 1 on.
type TensorMap struct {
	// Type is the type of the elements. Its size is what matters, but elements of f32
	// are rounded to TF32 on their way to shared memory.
	Type ptx.Type
	// Address is the global address of element 0, a multiple of 16.
	Address uint64
	// Dims are the extents of the tensor, 1 to 5 of them.
	Dims []uint64
	// Strides are the distances of neighbours in dimensions 1 and up.
	Strides []uint64
	// Box is the extents of the box that one copy moves.
	Box []uint32
	// Steps are the element strides; nil is 1 in each dimension.
	Steps   []uint32
	Swizzle Swizzle
	// NaNFill makes elements out of bounds NaN instead of 0.
	NaNFill bool
}

const (
	// tensorMapBytes is the size of a tensor map, as in CUDA.
	tensorMapBytes = 128
	// tensorMapMagic marks a tensor map of the simulator: "tmap".
	tensorMapMagic = 0x746d6170
	// tensorMapAddress is the offset of the tensor's address.
	tensorMapAddress = 8
)

// Encode gives the 128 bytes that a kernel of the simulator takes as a tensor
// map (NVIDIA's own encoding is not public), under the rules of
// cuTensorMapEncodeTiled.
func (t *TensorMap) Encode() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("tensor map: %w", err)
	}
	b := make([]byte, tensorMapBytes)
	le := binary.LittleEndian
	// The layout is the simulator's own; the address comes at a fixed offset,
	// so that launch keys can find it.
	le.PutUint32(b, tensorMapMagic)
	b[4] = byte(len(t.Dims))
	b[5] = byte(t.Type)
	b[6] = byte(t.Swizzle)
	b[7] = byte(boolBit(t.NaNFill))
	le.PutUint64(b[tensorMapAddress:], t.Address)
	for i, d := range t.Dims {
		le.PutUint32(b[16+4*i:], uint32(d-1))
		le.PutUint16(b[76+2*i:], uint16(t.Box[i]))
		le.PutUint16(b[86+2*i:], uint16(t.step(i)))
	}
	for i, s := range t.Strides {
		le.PutUint64(b[36+8*i:], s)
	}
	return b, nil
}

// step is the element stride of a dimension.
func (t *TensorMap) step(i int) uint32 {
	if t.Steps == nil {
		return 1
	}
	return t.Steps[i]
}

// check applies the rules of cuTensorMapEncodeTiled.
func (t *TensorMap) check() error {
	rank := len(t.Dims)
	size := uint64(t.Type.Bytes())
	switch {
	case rank < 1 || rank > 5:
		return fmt.Errorf("rank %d, 1 to 5 are possible", rank)
	case len(t.Strides) != rank-1 ||
		len(t.Box) != rank ||
		t.Steps != nil && len(t.Steps) != rank:
		return errors.New("needs a box for each dimension and a stride for each but the first")
	case size == 0:
		return fmt.Errorf("elements of type %v", t.Type)
	case t.Address%16 != 0:
		return fmt.Errorf("address %#x is not aligned to 16 bytes", t.Address)
	}
	for i, d := range t.Dims {
		switch {
		case d < 1 || d > 1<<32:
			return fmt.Errorf("dimension %d has %d elements", i, d)
		case t.Box[i] < 1 || t.Box[i] > 256:
			return fmt.Errorf("the box has %d elements in dimension %d, 1 to 256 are possible", t.Box[i], i)
		case t.step(i) < 1 || t.step(i) > 8:
			return fmt.Errorf("element stride %d in dimension %d, 1 to 8 are possible", t.step(i), i)
		case i > 0 &&
			(t.Strides[i-1]%16 != 0 ||
				t.Strides[i-1] >= 1<<40):
			return fmt.Errorf("stride %d of dimension %d is no multiple of 16 below 2^40", t.Strides[i-1], i)
		}
	}
	inner := uint64(t.Box[0]) * size
	switch w := uint64(t.Swizzle.Bytes()); {
	case inner%16 != 0:
		return fmt.Errorf("a row of the box is %d bytes, which is no multiple of 16", inner)
	case w > 0 && inner > w:
		return fmt.Errorf("a row of the box is %d bytes, more than the %d of the swizzle", inner, w)
	}
	return nil
}

// decodeTensorMap reads the bytes that Encode wrote.
func decodeTensorMap(b []byte) (*TensorMap, bool) {
	le := binary.LittleEndian
	if le.Uint32(b) != tensorMapMagic {
		return nil, false
	}
	t := &TensorMap{
		Type:    ptx.Type(b[5]),
		Swizzle: Swizzle(b[6]),
		NaNFill: b[7] != 0,
		Address: le.Uint64(b[tensorMapAddress:]),
	}
	for i := range int(b[4]) {
		t.Dims = append(
			t.Dims,
			uint64(le.Uint32(b[16+4*i:]))+1,
		)
		t.Box = append(
			t.Box,
			uint32(le.Uint16(b[76+2*i:])),
		)
		t.Steps = append(
			t.Steps,
			uint32(le.Uint16(b[86+2*i:])),
		)
		if i > 0 {
			t.Strides = append(
				t.Strides,
				le.Uint64(b[36+8*(i-1):]),
			)
		}
	}
	return t, true
}

// boxBytes is the number of bytes that a copy of a whole box moves, out of bounds
// or not.
func (t *TensorMap) boxBytes() int64 {
	n := int64(t.Type.Bytes())
	for i, b := range t.Box {
		n *= (int64(b) + int64(t.Steps[i]) - 1) /
			int64(t.Steps[i])
	}
	return n
}

// rows calls f with every row of the box at coordinates at: the offset of its
// first byte in the box, and its global address; inside is false where the row
// lies out of bounds in an outer dimension.
func (t *TensorMap) rows(
	at []int32, f func(offset int64, addr uint64, inside bool),
) {
	row := (int64(t.Box[0]) + int64(t.Steps[0]) - 1) /
		int64(t.Steps[0]) *
		int64(t.Type.Bytes())
	index := make([]uint32, len(t.Box))
	for offset := int64(0); ; offset += row {
		addr, inside := t.Address, true
		// The next row: an odometer over the outer dimensions.
		for i := 1; i < len(t.Box); i++ {
			c := int64(at[i]) + int64(index[i])
			inside = inside && c >= 0 && c < int64(t.Dims[i])
			addr += uint64(c) * t.Strides[i-1]
		}
		f(offset, addr, inside)
		i := 1
		for ; i < len(t.Box); i++ {
			index[i] += t.Steps[i]
			if index[i] < t.Box[i] {
				break
			}
			index[i] = 0
		}
		if i == len(t.Box) {
			return
		}
	}
}

// fillByte is the value of the bytes of elements out of bounds: all ones is a NaN
// in every floating-point type.
func (t *TensorMap) fillByte() byte {
	if t.NaNFill {
		return 0xff
	}
	return 0
}
