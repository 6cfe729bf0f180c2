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
	// The same for rates that a quiet machine was measured at by code as fast as any
	// (kernels.Device.Quiet), and for peak rates of data sheets: clocks differ.
	quietSafety = 1.5
)

// LowerBound is the shortest time that is physically plausible for a program on
// a device whose rates are known, in seconds. A kernel that takes less is
// wrong, not fast.
//
// The multiplications of dots and convolutions take the peak rate of all lanes or of
// the matrix units for their types; those with padding are none. The bytes that are read
// and written at all take the bandwidth of the innermost level that they fit into
// together, since they may be there from an earlier run, or, where runs are known to go
// through resident bytes of arrays in turn, of the innermost level that keeps half of
// these; 0 is not known. All rates have a safety factor, because they are measured, on a
// machine that others may use too: of a quiet one it is 1.5, so that a kernel that skips
// half of its work is found where one that does it all has three quarters of its roof.
func LowerBound(p *symtile.Program, d kernels.Device, resident int64) (float64, error) {
	x, err := wholeExtents(p)
	if err != nil {
		return 0, err
	}
	peaks, bandwidths := float64(peakSafety), float64(bandwidthSafety)
	if d.Quiet {
		peaks, bandwidths = quietSafety, quietSafety
	}
	safe := d
	safe.FLOPS *= peaks
	safe.Matrix *= quietSafety
	bound, _ := dotSeconds(p, x, safe)
	bytes := compulsoryBytes(p, x)
	k := levelOf(d.Levels, d.Lanes, bytes)
	if d.Quiet {
		k = max(k, levelOf(keptLevels(d), d.Lanes, float64(resident)/2))
	}
	if k >= 0 && d.Levels[k].Bandwidth > 0 {
		bound = max(bound, bytes/(d.Levels[k].Bandwidth*bandwidths))
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

// dotSeconds is the time that the dots of a program take at the peak rates of their types,
// and how many operations have one; convolutions are dots.
func dotSeconds(p *symtile.Program, x *symtile.Extents, d kernels.Device) (seconds, flops float64) {
	for n, op := range p.Ops {
		if op.Code != hlo.OpDot || x.Duplicate(n) {
			continue
		}
		peak := peakOf(op.Instr.Operands[0], d)
		if peak <= 0 {
			continue
		}
		work := 2 * x.Elements(n)
		for _, k := range op.Instr.Attrs.LHSContract {
			work *= float64(x.Sizes(op.Args[0])[k])
		}
		work *= paddingFree(p, op.Args[0]) * paddingFree(p, op.Args[1])
		flops += work
		seconds += work / peak
	}
	return seconds, flops
}

// peakOf is the peak rate of products of an operand's type, in flop/s; 0 where it is not
// known. Types of four and eight bytes are no faster than f32, and those of eight have half
// of the lanes of a vector; f32 takes the matrix units where TF32 is allowed. No type of
// less is faster than the fastest one, whose rate is Device.Matrix.
func peakOf(operand *hlo.Instr, d kernels.Device) float64 {
	size := operand.Shape.DType.Size()
	switch {
	case size < 4 && d.Matrix == 0:
		return 0
	case size < 4, size == 4 && d.TF32Allowed():
		return max(d.FLOPS, d.Matrix)
	case size == 8 && d.VectorBits > 0:
		return d.FLOPS / 2
	}
	return d.FLOPS
}

// paddingFree is the share of the elements of an operand of a dot that are not padding:
// less than 1 where it is the windows of an array that a convolution pads or dilates.
func paddingFree(p *symtile.Program, n int) float64 {
	windows := &p.Ops[n]
	if windows.Code != symtile.OpUnfold || p.Ops[windows.Args[0]].Code != hlo.OpPad {
		return 1
	}
	padded := p.Ops[windows.Args[0]].Instr
	share := 1.0
	for k, d := range windows.Instr.Attrs.Dimensions {
		pad := padded.Attrs.Padding[d]
		from := padded.Operands[0].Shape.Dims[d]
		w := windows.Instr.Attrs.Window[k]
		share *= windowShare(w, padded.Shape.Dims[d], pad, from)
	}
	return share
}

// windowShare is the share of the elements of all windows over one dimension, of extent
// padded, that are elements of the array of extent n and not of its padding.
func windowShare(w hlo.WindowDim, padded int64, pad hlo.PadDim, n int64) float64 {
	positions := w.Positions(padded)
	inside := 0
	for at := range positions {
		for k := range w.Size {
			x := at*w.Stride + k*w.Dilation - pad.Low
			if x >= 0 && x <= (n-1)*(pad.Interior+1) && x%(pad.Interior+1) == 0 {
				inside++
			}
		}
	}
	return float64(inside) / float64(max(1, positions*w.Size))
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
