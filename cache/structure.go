package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// A Structure is a fusion without its extents: fusions of one structure differ in the
// sizes of their arrays only.
type Structure struct {
	// Print is the SHA-256 of the canonical text without the numbers between square
	// brackets and in lists of slice sizes.
	Print Fingerprint
	// Extents are these numbers, in order.
	Extents []uint64
}

// sliceSizes begins the one list of extents that stands in braces, of gather and of
// dynamic-slice.
const sliceSizes = "slice_sizes={"

// StructureOf takes a canonical text apart.
func StructureOf(canonical string) Structure {
	var s Structure
	bare := make([]byte, 0, len(canonical))
	depth := 0
	for k := 0; k < len(canonical); k++ {
		c := canonical[k]
		switch {
		case c == '[' || c == '{' && hasSuffix(canonical[:k+1], sliceSizes):
			depth++
		case depth > 0 && (c == ']' || c == '}'):
			depth--
		case depth > 0 && isDigit(c):
			if k == 0 || !isDigit(canonical[k-1]) {
				s.Extents = append(s.Extents, 0)
				bare = append(bare, '#')
			}
			last := &s.Extents[len(s.Extents)-1]
			if *last < math.MaxUint64/16 {
				*last = *last*10 + uint64(c-'0')
			}
			continue
		}
		bare = append(bare, c)
	}
	s.Print = sha256.Sum256(bare)
	return s
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func hasSuffix(s, suffix string) bool {
	return len(s) >= len(suffix) && s[len(s)-len(suffix):] == suffix
}

// appendExtents encodes the extents as varints.
func (s *Structure) appendExtents(b []byte) []byte {
	for _, n := range s.Extents {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// volume is the sum of the logarithms of the extents, by which the records of one
// structure are sorted in a snapshot.
func (s *Structure) volume() float64 {
	v := 0.0
	for _, n := range s.Extents {
		v += log2(n)
	}
	return v
}

// distance is the mean difference of the logarithms of the extents, in octaves;
// encoded are those of another fusion of the structure. It is infinite where these
// are fewer or more.
func (s *Structure) distance(encoded []byte) float64 {
	sum := 0.0
	for _, n := range s.Extents {
		m, width := binary.Uvarint(encoded)
		if width <= 0 {
			return math.Inf(1)
		}
		encoded = encoded[width:]
		if m != n {
			sum += math.Abs(log2(m) - log2(n))
		}
	}
	if len(encoded) > 0 {
		return math.Inf(1)
	}
	return sum / float64(max(1, len(s.Extents)))
}

// log2 is the binary logarithm of an extent, 0 for an empty one.
func log2(n uint64) float64 { return math.Log2(float64(max(1, n))) }
