package layout

import "fmt"

// Sectors is what a device moves at a time. The zero value is NVIDIA's: sectors
// of 32 bytes, four to a line.
type Sectors struct {
	Sector int64 // bytes; 0: 32
	Line   int64 // bytes, a multiple of Sector; 0: 4 sectors
}

// WithDefaults replaces zero fields by what they stand for. Lines that are not
// whole sectors, and sizes over 2^20 bytes, are errors.
func (s Sectors) WithDefaults() (Sectors, error) {
	if s.Sector == 0 {
		s.Sector = 32
	}
	if s.Line == 0 {
		s.Line = 4 * s.Sector
	}
	if s.Sector < 1 || s.Sector > 1<<20 ||
		s.Line > 1<<20 ||
		s.Line%s.Sector != 0 {
		return s, fmt.Errorf("sectors of %d bytes in lines of %d: a line is whole sectors, and up to 2^20 bytes", s.Sector, s.Line)
	}
	return s, nil
}
