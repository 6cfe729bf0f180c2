package indexing

import "encoding/binary"

// pointKey writes a point as a map key.
func pointKey(point []int64) string {
	b := make([]byte, 0, 8*len(point))
	for _, x := range point {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return string(b)
}

// keyPoint is the point that pointKey wrote.
func keyPoint(key string) []int64 {
	out := make([]int64, 0, len(key)/8)
	for b := []byte(key); len(b) > 0; b = b[8:] {
		out = append(out, int64(binary.LittleEndian.Uint64(b)))
	}
	return out
}
