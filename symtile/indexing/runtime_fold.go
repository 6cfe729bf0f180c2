package indexing

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// foldRuntime replaces run-time variables whose value is known: one that is
// read from constants and iotas, and what operations that keep integers exact
// make of them. HLO's clamp becomes min and max.
func foldRuntime(m index.Map) index.Map {
	for m.State == index.StateKnown {
		k := slices.IndexFunc(m.Runtime, func(e index.Expr) bool {
			return folded(e) != index.Expr{}
		})
		if k < 0 {
			break
		}
		e := m.Runtime[k]
		value := folded(e)
		m.Runtime = slices.Delete(
			slices.Clone(m.Runtime), k, k+1,
		)
		m = m.Subst(map[index.Expr]index.Expr{e: value})
		in := e.Range()
		m.Where = index.And(
			m.Where,
			index.Require(value, in.Lo, in.Hi),
		)
	}
	return m
}

// folded is the value of run-time variable e; the zero Expr where it is not
// known.
func folded(e index.Expr) index.Expr {
	v, ok := e.Variable()
	if !ok || v.Origin == nil ||
		sourceOf(v.Origin).Replica != NoReplica {
		return index.Expr{}
	}
	r := e.Ring()
	from := sourceOf(v.Origin)
	f := newFolder(r, from.Within)
	value, ok := f.value(from.Instr, v.Origin.At)
	if !ok {
		return index.Expr{}
	}
	if c := v.Origin.Clamp; c != (index.Interval{}) {
		value = value.Max(r.Const(c.Lo)).Min(
			r.Const(c.Hi),
		)
	}
	return value
}

// maxFoldSteps bounds the instructions visited for one value.
const maxFoldSteps = 200

// A folder finds the value of an element as an expression.
type folder struct {
	// r is the ring in which values are built.
	r *index.Ring
	// budget is the number of instructions that may still be visited, shared by
	// nested folders.
	budget *int
	// within are the callers of the computation that is visited, innermost
	// first.
	within []*hlo.Instr
}

// newFolder is a folder for instructions within nested calls.
func newFolder(r *index.Ring, within []*hlo.Instr) *folder {
	budget := maxFoldSteps
	return &folder{r, &budget, within}
}

// value is element at of in's output; ok where it is known and no integer
// arithmetic on the way can wrap.
func (f *folder) value(
	in *hlo.Instr, at []index.Expr,
) (index.Expr, bool) {
	if *f.budget--; *f.budget < 0 ||
		!in.Shape.DType.IsInteger() && in.Shape.DType != hlo.Pred {
		return index.Expr{}, false
	}
	e, ok := f.dataMovement(in, at)
	if !ok {
		e, ok = f.integerArithmetic(in, at)
	}
	return e, ok && f.fits(e.Range(), in.Shape.DType)
}

// fits reports whether all values in v are values of the type. An interval that
// ends at int64's limits has been saturated, and does not fit.
func (f *folder) fits(v index.Interval, d hlo.DType) bool {
	lo, hi := d.IntRange()
	return v.Bounded() &&
		index.Interval{Lo: lo, Hi: hi}.Covers(v)
}

// dataMovement is the value of an operation that makes numbers or moves them.
func (f *folder) dataMovement(
	in *hlo.Instr, at []index.Expr,
) (index.Expr, bool) {
	switch in.Op {
	case hlo.OpConstant:
		return f.literal(in.Literal, at)
	case hlo.OpIota:
		return at[in.Attrs.IotaDim], true
	case hlo.OpBroadcast:
		return f.value(
			in.Operands[0],
			gatherDims(at, in.Attrs.Dimensions),
		)
	case hlo.OpTranspose:
		return f.value(
			in.Operands[0],
			scatterDims(at, in.Attrs.Dimensions),
		)
	case hlo.OpReshape:
		return f.value(
			in.Operands[0],
			reshapedIndex(
				f.r, at, in.Shape.Dims,
				in.Operands[0].Shape.Dims,
			),
		)
	case hlo.OpSlice:
		return f.value(
			in.Operands[0], sliced(at, in.Attrs.Slice),
		)
	case hlo.OpReverse:
		return f.value(
			in.Operands[0],
			mirrored(at, in.Attrs.Dimensions, in.Shape.Dims),
		)
	case hlo.OpConcatenate:
		return f.concatenated(in, at)
	case hlo.OpCopy, hlo.OpConvert, hlo.OpOptimizationBarrier,
		hlo.OpBitcastConvert, hlo.OpBitcast:
		from := in.Operands[0].Shape
		if from.SameDims(in.Shape) && sameLayout(from, in.Shape) ||
			in.Op == hlo.OpConvert {
			return f.value(in.Operands[0], at)
		}
	case hlo.OpGetTupleElement:
		return f.element(
			in.Operands[0], in.Attrs.Index, at,
		)
	case hlo.OpParameter:
		if len(f.within) > 0 {
			outer := folder{f.r, f.budget, f.within[1:]}
			return outer.value(
				f.within[0].Operands[in.Attrs.Param], at,
			)
		}
	case hlo.OpFusion, hlo.OpCall:
		return f.inside(in).value(
			in.Attrs.Calls.Root, at,
		)
	}
	return index.Expr{}, false
}

// inside is a folder for the computation that in calls.
func (f *folder) inside(in *hlo.Instr) *folder {
	return &folder{
		f.r,
		f.budget,
		slices.Insert(slices.Clone(f.within), 0, in),
	}
}

// element is a value of one array of a tuple.
func (f *folder) element(
	in *hlo.Instr, output int, at []index.Expr,
) (index.Expr, bool) {
	switch in.Op {
	case hlo.OpTuple:
		return f.value(in.Operands[output], at)
	case hlo.OpFusion, hlo.OpCall:
		return f.inside(in).element(
			in.Attrs.Calls.Root, output, at,
		)
	case hlo.OpOptimizationBarrier:
		return f.element(in.Operands[0], output, at)
	}
	return index.Expr{}, false
}

// concatenated is the value of a concatenate, where the operand is known for
// the whole range of the index.
func (f *folder) concatenated(
	in *hlo.Instr, at []index.Expr,
) (index.Expr, bool) {
	dim := in.Attrs.Dimensions[0]
	prefix := int64(0)
	for _, o := range in.Operands {
		n := o.Shape.Dims[dim]
		if n > 0 &&
			(index.Interval{Lo: prefix, Hi: prefix + n - 1}).Covers(
				at[dim].Range(),
			) {
			inner := slices.Clone(at)
			inner[dim] = at[dim].AddConst(-prefix)
			return f.value(o, inner)
		}
		prefix += n
	}
	return index.Expr{}, false
}

// integerArithmetic is the value of an elementwise operation on integers.
func (f *folder) integerArithmetic(
	in *hlo.Instr, at []index.Expr,
) (index.Expr, bool) {
	if !in.Op.Elementwise() ||
		in.Op == hlo.OpSelect && len(in.Operands) == 3 {
		return f.selected(in, at)
	}
	args := make([]index.Expr, len(in.Operands))
	for k, o := range in.Operands {
		inner := at
		if o.Shape.Rank() == 0 {
			inner = nil
		}
		var ok bool
		if args[k], ok = f.value(o, inner); !ok {
			return index.Expr{}, false
		}
	}
	return f.arithmetic(in, args)
}

// selected is the operand of a select whose condition is known.
func (f *folder) selected(
	in *hlo.Instr, at []index.Expr,
) (index.Expr, bool) {
	if in.Op != hlo.OpSelect {
		return index.Expr{}, false
	}
	condition := at
	if in.Operands[0].Shape.Rank() == 0 {
		condition = nil
	}
	e, ok := f.value(in.Operands[0], condition)
	if !ok {
		return index.Expr{}, false
	}
	c, constant := e.Value()
	if !constant {
		return index.Expr{}, false
	}
	return f.value(in.Operands[2-c], at)
}

// arithmetic is the operation of in applied to args. A result that could leave
// the type is refused before it is built: expressions do not wrap, so the
// program must not either.
func (f *folder) arithmetic(
	in *hlo.Instr, a []index.Expr,
) (index.Expr, bool) {
	d := in.Shape.DType
	switch in.Op {
	case hlo.OpAdd:
		return guarded(
			f.fits(a[0].Range().Add(
				a[1].Range(),
			), d),
			func() index.Expr {
				return a[0].Add(a[1])
			},
		)
	case hlo.OpSubtract:
		return guarded(
			f.fits(a[0].Range().Add(
				a[1].Range().Neg(),
			), d),
			func() index.Expr {
				return a[0].Sub(a[1])
			},
		)
	case hlo.OpMultiply:
		return guarded(
			f.fits(a[0].Range().Mul(
				a[1].Range(),
			), d),
			func() index.Expr {
				return a[0].Mul(a[1])
			},
		)
	case hlo.OpNegate:
		return guarded(
			f.fits(a[0].Range().Neg(), d),
			a[0].Neg,
		)
	case hlo.OpMinimum:
		return a[0].Min(a[1]), true
	case hlo.OpMaximum:
		return a[0].Max(a[1]), true
	case hlo.OpClamp:
		return a[1].Max(a[0]).Min(a[2]), true
	case hlo.OpAbs:
		return a[0], a[0].Range().Lo >= 0
	case hlo.OpDivide, hlo.OpRemainder:
		return f.divided(in.Op, a)
	case hlo.OpCompare:
		return f.compared(
			in.Attrs.Direction,
			a[0].Sub(a[1]).Range(),
		)
	}
	return index.Expr{}, false
}

// guarded builds an expression if ok.
func guarded(ok bool, build func() index.Expr) (index.Expr, bool) {
	if !ok {
		return index.Expr{}, false
	}
	return build(), true
}

// divided: HLO rounds towards zero and expressions round down, so that the
// dividend must not be negative.
func (f *folder) divided(
	op hlo.Opcode, a []index.Expr,
) (index.Expr, bool) {
	by, constant := a[1].Value()
	if !constant || by <= 0 || a[0].Range().Lo < 0 {
		return index.Expr{}, false
	}
	if op == hlo.OpDivide {
		return a[0].Div(by), true
	}
	return a[0].Mod(by), true
}

// compared is 0 or 1 where the range d of a difference decides its comparison
// with 0.
func (f *folder) compared(direction string, d index.Interval) (index.Expr, bool) {
	intervals := map[string]index.Interval{
		"EQ": {},
		"LT": {Lo: math.MinInt64, Hi: -1},
		"LE": {Lo: math.MinInt64, Hi: 0},
		"GT": {Lo: 1, Hi: math.MaxInt64},
		"GE": {Lo: 0, Hi: math.MaxInt64},
	}
	in, ok := intervals[direction]
	if direction == "NE" {
		switch {
		case !d.Contains(0):
			return f.r.Const(1), true
		case d == index.Interval{}:
			return f.r.Const(0), true
		}
		return index.Expr{}, false
	}
	switch {
	case !ok:
		return index.Expr{}, false
	case in.Covers(d):
		return f.r.Const(1), true
	case in.Meet(d).Empty():
		return f.r.Const(0), true
	}
	return index.Expr{}, false
}

// maxLiteral bounds the constants in which a pattern is searched.
const maxLiteral = 1 << 16

// literal is an element of a constant at a known index, or of one whose
// elements are an affine function of the index.
func (f *folder) literal(
	l *hlo.Literal, at []index.Expr,
) (index.Expr, bool) {
	if l == nil || len(l.Ints) == 0 ||
		len(at) != l.Shape.Rank() {
		return index.Expr{}, false
	}
	strides := hlo.RowMajor(l.Shape.Dims)
	linear := int64(0)
	known := true
	for k, e := range at {
		v, constant := e.Value()
		if known = known && constant && 0 <= v &&
			v < l.Shape.Dims[k]; known {
			linear += v * strides[k]
		}
	}
	if known {
		return f.r.Const(l.Ints[linear]), true
	}
	return f.affine(l, strides, at)
}

// affine is first + Σ step·at where that holds for every element of l. The
// steps are the differences of the elements next to the first along each
// dimension; then all elements are compared with the formula, up to maxLiteral
// of them.
func (f *folder) affine(
	l *hlo.Literal, strides []int64, at []index.Expr,
) (index.Expr, bool) {
	if len(l.Ints) > maxLiteral {
		return index.Expr{}, false
	}
	steps := make([]int64, len(strides))
	in := index.Interval{
		Lo: l.Ints[0],
		Hi: l.Ints[0],
	}
	for k, s := range strides {
		if l.Shape.Dims[k] > 1 {
			steps[k] = l.Ints[s] - l.Ints[0]
		}
		in = in.Add(at[k].Range().Scale(steps[k]))
	}
	if !f.fits(in, l.Shape.DType) {
		return index.Expr{}, false
	}
	for n, v := range l.Ints {
		for k, s := range strides {
			v -= int64(n) / s % l.Shape.Dims[k] * steps[k]
		}
		if v != l.Ints[0] {
			return index.Expr{}, false
		}
	}
	e := f.r.Const(l.Ints[0])
	for k, s := range steps {
		e = e.Add(at[k].Scale(s))
	}
	return e, true
}
