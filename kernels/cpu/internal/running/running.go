// Package running recognises cumulative sums, products, maxima and their like in tile
// programs. They reach a backend as a reduce-window whose windows are as long as the
// array, which is padded so that window k has the elements up to k, or from k on
// (jax.lax.cumsum, torch.cumsum). As the reduction of an unfold they take n² operations.
package running

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Reduce is a reduction of windows of which each has all elements of the
// array before its last one, or all after its first one. The rest of a window is padding
// with the value that the reduction begins with, which changes nothing.
type Reduce struct {
	// The ops of the unfold, of the padded array and of the array.
	Unfold, Padded, Array int
	Axis                  int   // The dimension of the padded array.
	Size                  int64 // The elements of a window.
	Backward              bool  // Windows have all elements after their first one.
}

// MinSize is the elements of a window from which on it is not reduced on its own.
const MinSize = 8

// Of recognises op n of a program as a running reduction; it is nil for others.
func Of(p *symtile.Program, n int) *Reduce {
	op := p.Ops[n]
	if op.Code != hlo.OpReduce ||
		len(op.Args) != 2 {
		return nil
	}
	// The windows are of one dimension. They follow each other element by element, and
	// the reduction is of their elements alone.
	r := &Reduce{Unfold: op.Args[0]}
	unfold := p.Ops[r.Unfold]
	if unfold.Code != symtile.OpUnfold ||
		len(unfold.Instr.Attrs.Dimensions) != 1 ||
		!soleUser(p, r.Unfold) {
		return nil
	}
	r.Padded = unfold.Args[0]
	r.Axis = int(unfold.Instr.Attrs.Dimensions[0])
	window := unfold.Instr.Attrs.Window[0]
	r.Size = window.Size
	reduced := op.Instr.Attrs.Dimensions
	if r.Size < MinSize || window.Stride != 1 || window.Dilation != 1 ||
		len(reduced) != 1 || reduced[0] != int64(r.Axis)+1 {
		return nil
	}
	// The padding has the value that the reduction begins with, as often as it is met.
	padded := p.Ops[r.Padded]
	if padded.Code != hlo.OpPad ||
		padded.Args[1] != op.Args[1] ||
		!repeatable(
			op.Instr, p.Ops[op.Args[1]].Instr,
		) {
		return nil
	}
	// With n elements after low ones of padding and before high ones, the last of all
	// windows begins with the array, or before, if n + high elements fit one; the first of
	// them ends with the array, or behind, if low + n do.
	r.Array = padded.Args[0]
	pad := padded.Instr.Attrs.Padding[r.Axis]
	extent := p.Ops[r.Array].Instr.Shape.Dims[r.Axis]
	r.Backward = extent+pad.High > r.Size
	if pad.Interior != 0 || pad.Low < 0 || pad.High < 0 ||
		r.Backward && extent+pad.Low > r.Size {
		return nil
	}
	return r
}

// soleUser reports whether one op and no output reads op n.
func soleUser(p *symtile.Program, n int) bool {
	users := 0
	for _, op := range p.Ops {
		for _, a := range op.Args {
			if a == n {
				users++
			}
		}
	}
	for _, root := range p.Roots {
		if root.Op == n {
			users++
		}
	}
	return users == 1
}

// repeatable reports whether a reduction is the same however often it is given the value
// that it begins with.
func repeatable(reduce, init *hlo.Instr) bool {
	monoid, ok := reduce.Attrs.ToApply.Monoid()
	if !ok {
		return isNeutral(reduce.Attrs.ToApply, init)
	}
	// The first four are idempotent, so that any value serves them.
	switch monoid {
	case hlo.OpMaximum, hlo.OpMinimum, hlo.OpAnd, hlo.OpOr:
		return true
	case hlo.OpAdd, hlo.OpXor:
		return isConstant(init, 0)
	case hlo.OpMultiply:
		return isConstant(init, 1)
	}
	return false
}

// neutralTo are the numbers that a computation is tried with, of both signs and sizes that
// most types have.
var neutralTo = []int64{0, 1, -3, 100}

// isNeutral reports whether a computation of two numbers, as log-add-exp is one, gives each of
// some back that it is given beside a constant, in either order, and the constant itself. HLO
// demands of the value that a reduction begins with that it changes nothing.
func isNeutral(c *hlo.Computation, init *hlo.Instr) bool {
	prog, err := portable.CompileScalar(c)
	if err != nil || prog.Params != 2 || len(prog.Results) != 1 ||
		init.Op != hlo.OpConstant || init.Literal == nil ||
		init.Shape.Rank() > 0 || init.Shape.DType.IsComplex() {
		return false
	}
	var neutral portable.Scalar
	switch l := init.Literal; {
	case len(l.Floats) == 1:
		neutral.F = l.Floats[0]
	case len(l.Ints) == 1:
		neutral.I = l.Ints[0]
	default:
		return false
	}
	numbers := []portable.Scalar{neutral}
	// A type of few bits has other integers, which serve as well.
	for _, x := range neutralTo {
		numbers = append(numbers, portable.Scalar{
			F: float64(x),
			I: kernels.WrapInt(init.Shape.DType, x),
		})
	}
	// Equal floats serve: which zero a sum with a zero is, the reduction leaves open.
	r := make([]portable.Scalar, prog.Registers)
	gives := func(x, y, z portable.Scalar) bool {
		r[0], r[1] = x, y
		prog.Run(r)
		result := r[prog.Results[0]]
		if init.Shape.DType.IsFloat() {
			return result.F == z.F
		}
		return result.I == z.I
	}
	for _, x := range numbers {
		if !gives(neutral, x, x) || !gives(x, neutral, x) {
			return false
		}
	}
	return true
}

// isConstant reports whether an instruction is a scalar constant, and x; −0 is not 0.
func isConstant(i *hlo.Instr, x int64) bool {
	if i.Op != hlo.OpConstant || i.Literal == nil {
		return false
	}
	switch l := i.Literal; {
	case len(l.Floats) == 1:
		return l.Floats[0] == float64(x) &&
			!math.Signbit(l.Floats[0])
	case len(l.Ints) == 1:
		return l.Ints[0] == x
	}
	return false
}

// Fits reports whether the tiles of a program have whole windows, and elements that
// follow each other.
func (r *Reduce) Fits(
	p *symtile.Program, n int,
) bool {
	unfold := p.Ops[r.Unfold].Tile
	padded := p.Ops[r.Padded].Tile
	array := p.Ops[r.Array].Tile
	if p.Ops[n].Loop != nil ||
		unfold.HasDigits() || padded.HasDigits() || array.HasDigits() ||
		p.Ops[n].Tile.HasDigits() {
		return false
	}
	positions := size(unfold[r.Axis])
	if size(unfold[r.Axis+1]) != r.Size ||
		positions != size(p.Ops[n].Tile[r.Axis]) {
		return false
	}
	for _, d := range []symtile.DimTile{
		padded[r.Axis], array[r.Axis],
	} {
		if stride(d) != 1 ||
			size(d) != positions+r.Size-1 {
			return false
		}
	}
	return stride(unfold[r.Axis]) == 1 &&
		stride(unfold[r.Axis+1]) == 1
}

// OfParameter reports whether the array is a parameter whose elements are those of
// scratch, in row-major order, and which nothing else has padded, so that it need not be.
func (r *Reduce) OfParameter(p *symtile.Program) bool {
	op := p.Ops[r.Array]
	return op.Code == hlo.OpParameter &&
		soleUser(p, r.Padded) &&
		portable.IsNative(op.Instr.Shape.DType) &&
		slices.Equal(
			op.Instr.Shape.Strides(), hlo.RowMajor(op.Instr.Shape.Dims),
		)
}

// size is the size of a dimension of a tile of a program with sizes.
func size(d symtile.DimTile) int64 {
	v, _ := d.Size.Value()
	return v
}

// stride is its stride.
func stride(d symtile.DimTile) int64 {
	v, _ := d.Stride.Value()
	return v
}
