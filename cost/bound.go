package cost

import (
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Safety factors of LowerBound.
const (
	// Other code may be faster by this factor than the code that measures the
	// rate: with vector units, or several accumulators.
	peakSafety = 16
	// The same for bandwidths.
	bandwidthSafety = 4
	// The peak rate of matrix units is that of a data sheet.
	matrixSafety = 1.5
)

// LowerBound is the shortest time that is physically plausible for a program on
// a device whose rates are known, in seconds. A kernel that takes less is
// wrong, not fast.
//
// The multiplications of dots take the peak rate of all lanes or of the matrix
// units. The bytes that are read and written at all take the bandwidth of the
// innermost level that they fit into together, since they may be there from an
// earlier run. Both rates have a safety factor, because they are measured, on a
// machine that others may use too.
func LowerBound(p *symtile.Program, d kernels.Device) (float64, error) {
	x, err := wholeExtents(p)
	if err != nil {
		return 0, err
	}
	bound := 0.0
	if peak := max(d.FLOPS*peakSafety, d.Matrix*matrixSafety); peak > 0 {
		bound = dotFLOPs(p, x, nil) / peak
	}
	bytes := compulsoryBytes(p, x)
	if k := levelOf(d.Levels, d.Lanes, bytes); k >= 0 && d.Levels[k].Bandwidth > 0 {
		bound = max(bound, bytes/(d.Levels[k].Bandwidth*bandwidthSafety))
	}
	return bound, nil
}

// wholeExtents are the extents of a program whose arrays are one tile each.
func wholeExtents(p *symtile.Program) (*symtile.Extents, error) {
	x, err := symtile.NewExtents(p)
	if err != nil {
		return nil, err
	}
	whole := make(symtile.Tiling, len(p.Space.Dims))
	for k, dim := range p.Space.Dims {
		whole[k] = max(1, dim.Extent)
	}
	x.Set(whole)
	return x, nil
}

// levelOf is the innermost level of memory that has room for some bytes, of all lanes
// together, or else the last; −1 where a device has none.
func levelOf(levels []kernels.Level, lanes int, bytes float64) int {
	for k, l := range levels {
		capacity := float64(l.Bytes)
		if !l.Shared {
			capacity *= float64(max(1, lanes))
		}
		if l.Bytes == 0 || bytes <= capacity {
			return k
		}
	}
	return len(levels) - 1
}

// dotFLOPs counts the operations of the dots of a program in one tile: of those that are
// counted, or of all where that is nil.
func dotFLOPs(p *symtile.Program, x *symtile.Extents, counted func(*hlo.Instr) bool) float64 {
	sum := 0.0
	for n, op := range p.Ops {
		if op.Code != hlo.OpDot || x.Duplicate(n) ||
			counted != nil && !counted(op.Instr) {
			continue
		}
		flops := 2 * x.Elements(n)
		for _, d := range op.Instr.Attrs.LHSContract {
			flops *= float64(x.Sizes(op.Args[0])[d])
		}
		sum += flops
	}
	return sum
}

// compulsoryBytes counts the bytes of the parameters and outputs that are
// touched at all: of a parameter that only gathers read, not more than they
// pick.
func compulsoryBytes(p *symtile.Program, x *symtile.Extents) float64 {
	params := map[int]float64{}
	for n, op := range p.Ops {
		if op.Code != hlo.OpParameter {
			continue
		}
		elements := min(
			x.Elements(n),
			float64(op.Instr.Shape.Elements()),
		)
		if picked, only := gathered(p, x, n); only {
			elements = min(elements, picked)
		}
		bytes := elements * float64(op.Instr.Shape.DType.Size())
		params[op.Instr.Attrs.Param] = max(
			params[op.Instr.Attrs.Param], bytes,
		)
	}
	sum := 0.0
	for _, bytes := range params {
		sum += bytes
	}
	for _, shape := range kernels.OutputShapes(p.Fusion) {
		sum += float64(shape.Bytes())
	}
	return sum
}

// gathered is the number of elements that gathers pick from an operation, and
// whether nothing else reads it.
func gathered(
	p *symtile.Program, x *symtile.Extents, n int,
) (elements float64, only bool) {
	for user, op := range p.Ops {
		for k, arg := range op.Args {
			switch {
			case arg != n:
			case op.Code == hlo.OpGather && k == 0:
				elements += x.Elements(user)
				only = true
			default:
				return 0, false
			}
		}
	}
	return elements, only
}
