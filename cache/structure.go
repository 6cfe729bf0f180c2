package cache

import (
	"crypto/sha256"
	"math"
	"strings"
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
	bare := s.take(canonical, make([]byte, 0, len(canonical)))
	s.Print = sha256.Sum256(bare)
	return s
}

// take appends the extents of a canonical text to those of s, and the text without them
// to bare.
func (s *Structure) take(canonical string, bare []byte) []byte {
	depth := 0
	for k := 0; k < len(canonical); k++ {
		if depth == 0 {
			n := toExtents(canonical[k:])
			bare = append(bare, canonical[k:k+n]...)
			k, depth = k+n-1, 1
			continue
		}
		c := canonical[k]
		if isDigit(c) {
			if !isDigit(canonical[k-1]) {
				s.Extents = append(s.Extents, 0)
				bare = append(bare, '#')
			}
			last := &s.Extents[len(s.Extents)-1]
			if *last < math.MaxUint64/16 {
				*last = *last*10 + uint64(c-'0')
			}
			continue
		}
		switch {
		case c == '[' || c == '{' && hasSuffix(canonical[:k+1], sliceSizes):
			depth++
		case c == ']' || c == '}':
			depth--
		}
		bare = append(bare, c)
	}
	return bare
}

// A structureReader takes texts apart one after the other, of which many have a structure
// that was met before and extents that were. A structure is valid until the next.
type structureReader struct {
	structure Structure
	bare      []byte
	prints    map[string]Fingerprint // of texts without extents
	logs      [1 << knownLogBits]knownLog
}

// A knownLog is the logarithm of an extent.
type knownLog struct {
	extent uint64
	log    uint32
}

const (
	knownLogBits = 8
	knownPrints  = 1 << 10
)

// read is StructureOf.
func (r *structureReader) read(canonical string) *Structure {
	s := &r.structure
	s.Extents = s.Extents[:0]
	r.bare = s.take(canonical, r.bare[:0])
	if print, known := r.prints[string(r.bare)]; known {
		s.Print = print
		return s
	}
	s.Print = sha256.Sum256(r.bare)
	if len(r.prints) >= knownPrints || r.prints == nil {
		r.prints = map[string]Fingerprint{}
	}
	r.prints[string(r.bare)] = s.Print
	return s
}

// appendLogs appends the logarithms of the extents of the last structure.
func (r *structureReader) appendLogs(logs []uint32) []uint32 {
	for _, n := range r.structure.Extents {
		known := &r.logs[n%(1<<knownLogBits)]
		if known.extent != n || n == 0 {
			*known = knownLog{n, logOf(n)}
		}
		logs = append(logs, known.log)
	}
	return logs
}

// toExtents is the length of a text up to and with the bracket that begins extents, or of
// all of it.
func toExtents(text string) int {
	n := strings.IndexByte(text, '[') + 1
	if n == 0 {
		n = len(text)
	}
	if at := strings.Index(text[:n], sliceSizes); at >= 0 {
		n = at + len(sliceSizes)
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func hasSuffix(s, suffix string) bool {
	return len(s) >= len(suffix) && s[len(s)-len(suffix):] == suffix
}

// Logarithms of extents are fixed-point numbers with 26 bits behind the point, so that
// distances are exact sums, and neighbours differ up to 2²⁶.
const octave = 1 << 26

// logOf is the binary logarithm of an extent, 0 for an empty one.
func logOf(n uint64) uint32 {
	log := math.Log2(float64(max(1, n)))
	return uint32(min(math.Round(log*octave), math.MaxUint32))
}

// appendLogs appends the logarithms of the extents.
func (s *Structure) appendLogs(logs []uint32) []uint32 {
	for _, n := range s.Extents {
		logs = append(logs, logOf(n))
	}
	return logs
}

// volume is the sum of the logarithms of the extents, by which the records of one
// structure are sorted in a snapshot.
func volume(logs []uint32) float32 {
	sum := uint64(0)
	for _, log := range logs {
		sum += uint64(log)
	}
	return float32(sum) / octave
}

// octaves is the mean of a sum of differences of n logarithms, in octaves.
func octaves(sum uint64, n int) float64 {
	return float64(sum) / octave / float64(max(1, n))
}

// difference is that of two logarithms, without its sign.
func difference(a, b uint32) uint64 {
	return uint64(max(a, b) - min(a, b))
}
