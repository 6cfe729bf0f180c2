package cost

import (
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
	x, err := symtile.NewExtents(p)
	if err != nil {
		return 0, err
	}
	whole := make(symtile.Tiling, len(p.Space.Dims))
	for k, dim := range p.Space.Dims {
		whole[k] = max(1, dim.Extent)
	}
	x.Set(whole)
	seconds := 0.0
	if peak := max(d.FLOPS, d.Matrix); peak > 0 {
		seconds = dotFLOPs(p, x) / peak
	}
	if n := len(d.Levels); n > 0 && d.Levels[n-1].Bandwidth > 0 {
		seconds = max(seconds, compulsoryBytes(p, x)/d.Levels[n-1].Bandwidth)
	}
	return seconds, nil
}
