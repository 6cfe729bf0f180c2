package layout

import (
	"bytes"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Move does the steps to data, the elements of a row-major array of size bytes each,
// and returns those of the result. Padding has the bytes of padding, an element; nil is
// zeros. data is not changed, and is the result where no step moves an element.
func (ss Steps) Move(data []byte, size int64, padding []byte) []byte {
	for _, s := range ss {
		from, to := hlo.RowMajor(s.From), hlo.RowMajor(s.To)
		if s.Kind == Reshape {
			continue
		}
		n := hlo.Elements(s.To)
		out := make([]byte, n*size)
		box := s.To
		switch s.Kind {
		case Transpose:
			strides := from
			from = nil
			for _, d := range s.Perm {
				from = append(from, strides[d])
			}
		case Pad:
			box = s.From
			if len(padding) > 0 {
				copy(out, bytes.Repeat(padding, int(n)))
			}
		}
		moveBox(out, data, box, to, from, size)
		data = out
	}
	return data
}

// moveBox copies the elements of a box: index i from the place Σ i·from of an array to
// the place Σ i·to of another, both in elements of size bytes.
func moveBox(out, in []byte, box, to, from []int64, size int64) {
	if len(box) == 0 {
		copy(out, in[:size])
		return
	}
	if len(box) > 1 {
		for k := range box[0] {
			moveBox(
				out[k*to[0]*size:], in[k*from[0]*size:],
				box[1:], to[1:], from[1:], size,
			)
		}
		return
	}
	if to[0] == 1 && from[0] == 1 {
		copy(out[:box[0]*size], in)
		return
	}
	for k := range box[0] {
		copy(out[k*to[0]*size:][:size], in[k*from[0]*size:])
	}
}
