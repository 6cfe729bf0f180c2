package cost

import (
	"cmp"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// Roofline is the time that the rates of a device allow a program, in seconds: the
// larger of its dots at the peak rate and of the bytes of its parameters and
// outputs, each moved once, at the bandwidth of main memory (Williams, Waterman,
// Patterson, Roofline, 2009). Unlike LowerBound it has no safety factors: it says
// how much faster a kernel may become, not which time is impossible. It is 0 where
// no rate is known.
func Roofline(p *symtile.Program, d kernels.Device) (float64, error) {
	x, err := wholeExtents(p)
	if err != nil {
		return 0, err
	}
	seconds, _ := dotSeconds(p, x, d)
	if n := len(d.Levels); n > 0 && d.Levels[n-1].Bandwidth > 0 {
		seconds = max(seconds, compulsoryBytes(p, x)/d.Levels[n-1].Bandwidth)
	}
	return seconds, nil
}

// A Roof is the shortest time that the rates of a device allow a program, and the rate
// that it comes from.
type Roof struct {
	Seconds float64
	// Level is the index of the level of memory in Device.Levels, −1 where the products
	// of dots take longer than moving the arrays.
	Level int
	// Work is what the rate is of: bytes or operations.
	Work float64
}

// RoofOf is the roof of a program whose runs go through resident bytes of arrays in turn,
// so that they are moved at the bandwidth of the innermost level that has room for half
// of them: less comes from a level that has room for less. Products of types that are neither
// f32 nor f64 have the rate of the fastest type, where that is known: a roof that is too high,
// and never one that a kernel goes below. It is zero where no rate is known.
func RoofOf(p *symtile.Program, d kernels.Device, resident int64) (Roof, error) {
	x, err := wholeExtents(p)
	if err != nil {
		return Roof{}, err
	}
	roof := Roof{Level: -1}
	roof.Seconds, roof.Work = dotSeconds(p, x, d)
	k := levelOf(keptLevels(d), d.Lanes, float64(resident)/2)
	if k < 0 || d.Levels[k].Bandwidth <= 0 {
		return roof, nil
	}
	bytes := compulsoryBytes(p, x)
	seconds := bytes / d.Levels[k].Bandwidth
	if seconds > roof.Seconds {
		roof = Roof{seconds, k, bytes}
	}
	return roof, nil
}

// keptLevels are the levels of a device with the bytes that they keep.
func keptLevels(d kernels.Device) []kernels.Level {
	levels := slices.Clone(d.Levels)
	for k := range levels {
		l := &levels[k]
		l.Bytes = cmp.Or(l.Kept, l.Bytes)
	}
	return levels
}
