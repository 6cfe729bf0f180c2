package hlo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Each check is the shape rule of an operation: it reports how the declared shape
// of an instruction does not follow from its operands and attributes. Checks are
// entries of opTable. Where the shape is all that is wrong, the error is a
// shapeError, from which a shape that the text leaves out is inferred.

// expectShape reports that the shape of i is not the type and extents that
// follow from its operands; layouts are free.
func expectShape(i *Instr, dtype DType, dims []int64) error {
	want := Shape{DType: dtype, Dims: dims}
	if !i.Shape.Compatible(want) {
		return wrongShape(
			want, "%s of these operands is %s, not %s", i.Op, want, withoutLayout(i.Shape),
		)
	}
	return nil
}

// withoutLayout is s as errors show it: its layout has no part in shape rules.
func withoutLayout(s Shape) Shape { s.Layout = Layout{}; return s }

// operandShapes lists the shapes of the operands in order.
func operandShapes(i *Instr) []Shape {
	s := make([]Shape, len(i.Operands))
	for k, o := range i.Operands {
		s[k] = o.Shape
	}
	return s
}

// checkSameAsOperand is the shape rule of arithmetic: all operands have one
// shape and the result has it too.
func checkSameAsOperand(i *Instr) error {
	first := i.Operands[0].Shape
	for _, o := range i.Operands[1:] {
		if !o.Shape.Compatible(first) {
			return fmt.Errorf(
				"operands of %s are %s and %s; they must be equal",
				i.Op, withoutLayout(first), withoutLayout(o.Shape),
			)
		}
	}
	if !i.Shape.Compatible(first) {
		return wrongShape(
			first, "%s of %s cannot be %s", i.Op, withoutLayout(first), withoutLayout(i.Shape),
		)
	}
	return nil
}

// checkConvert is the shape rule of conversions: the extents of the operand
// and any element type.
func checkConvert(i *Instr) error {
	if i.Op == OpConvert && i.Operands[0].Shape.DType.IsComplex() && !i.Shape.DType.IsComplex() {
		return unreadError{fmt.Errorf("convert of complex numbers to %s is not read; `real` gives their real parts", i.Shape.DType)}
	}
	return expectShape(
		i, i.Shape.DType, i.Operands[0].Shape.Dims,
	)
}

// checkPart is the shape rule of the parts of numbers: those of a complex type, or the
// type of real numbers.
func checkPart(i *Instr) error {
	s := i.Operands[0].Shape
	return expectShape(i, s.DType.Component(), s.Dims)
}

// checkComplex: two parts of one shape, of f32 for c64 or of f64 for c128.
func checkComplex(i *Instr) error {
	x, y := i.Operands[0].Shape, i.Operands[1].Shape
	if !x.Compatible(y) {
		return fmt.Errorf(
			"operands of complex are %s and %s; they must be equal",
			withoutLayout(x), withoutLayout(y),
		)
	}
	want, err := complexShape(i)
	if err != nil {
		return err
	}
	return expectShape(i, want.DType, want.Dims)
}

// checkStochasticConvert: the random bits are unsigned integers of the operand's width
// and extents.
func checkStochasticConvert(i *Instr) error {
	x, random := i.Operands[0].Shape, i.Operands[1].Shape
	if !x.DType.IsFloat() || !random.DType.IsUnsigned() ||
		x.DType.Bits() != random.DType.Bits() || !x.SameDims(random) {
		return fmt.Errorf(
			"stochastic-convert takes floating-point numbers and unsigned integers of their width and extents, not %s and %s",
			withoutLayout(x), withoutLayout(random),
		)
	}
	return checkConvert(i)
}

// checkPredicate is the shape rule of tests: the extents of the operand, of
// pred.
func checkPredicate(i *Instr) error {
	return expectShape(i, Pred, i.Operands[0].Shape.Dims)
}

// checkIsFinite also refuses operands that are not floating-point numbers, as XLA
// does.
func checkIsFinite(i *Instr) error {
	if d := i.Operands[0].Shape.DType; !d.IsFloat() {
		return fmt.Errorf("is-finite takes floating-point numbers, not %s", d)
	}
	return checkPredicate(i)
}

// Precision is the format that a reduce-precision rounds to: the widths of its
// exponent and its mantissa in bits.
func (i *Instr) Precision() (exponent, mantissa int) {
	exponent, _ = strconv.Atoi(i.Text("exponent_bits")) // the shape rule has read them
	mantissa, _ = strconv.Atoi(i.Text("mantissa_bits"))
	return exponent, mantissa
}

// checkReducePrecision: floating-point numbers, rounded to a format that has an
// exponent.
func checkReducePrecision(i *Instr) error {
	if d := i.Operands[0].Shape.DType; !d.IsFloat() {
		return fmt.Errorf("reduce-precision takes floating-point numbers, not %s", d)
	}
	for name, least := range map[string]int{"exponent_bits": 1, "mantissa_bits": 0} {
		if n, err := strconv.Atoi(i.Text(name)); err != nil || n < least || n > 64 {
			return fmt.Errorf("reduce-precision needs %s of %d to 64, not %q", name, least, i.Text(name))
		}
	}
	return checkSameAsOperand(i)
}

var directions = []string{
	"EQ", "NE", "LT", "LE", "GT", "GE",
}

// checkCompare: two operands of one shape and a direction; the result is their
// extents of pred.
func checkCompare(i *Instr) error {
	a := i.Operands[0].Shape
	b := i.Operands[1].Shape
	if !a.Compatible(b) {
		return fmt.Errorf("compares %s with %s", withoutLayout(a), withoutLayout(b))
	}
	if !slices.Contains(directions, i.Attrs.Direction) {
		return fmt.Errorf("compare needs direction= one of %v, not %q", directions, i.Attrs.Direction)
	}
	return checkPredicate(i)
}

// checkSelect: select(p, a, b) has the shape that a and b share; p is pred
// with the same extents, or a scalar that chooses all.
func checkSelect(i *Instr) error {
	p := i.Operands[0].Shape
	a := i.Operands[1].Shape
	b := i.Operands[2].Shape
	if p.DType != Pred ||
		p.Rank() > 0 && !p.SameDims(a) {
		return fmt.Errorf("the condition of select is %s; it must be pred[] or pred with the extents of %s", withoutLayout(p), withoutLayout(a))
	}
	if !a.Compatible(b) {
		return fmt.Errorf("select between %s and %s", withoutLayout(a), withoutLayout(b))
	}
	return expectShape(i, a.DType, a.Dims)
}

// checkClamp: clamp(lo, x, hi) has the shape of x; lo and hi have it too, or
// are scalars of its type.
func checkClamp(i *Instr) error {
	lo := i.Operands[0].Shape
	x := i.Operands[1].Shape
	hi := i.Operands[2].Shape
	for _, bound := range []Shape{lo, hi} {
		if bound.DType != x.DType ||
			bound.Rank() > 0 && !bound.SameDims(x) {
			return fmt.Errorf("clamp of %s has a bound %s", withoutLayout(x), withoutLayout(bound))
		}
	}
	return expectShape(i, x.DType, x.Dims)
}

// checkBitcastConvert: equal extents between types of one width. Otherwise the
// narrower side has one more dimension, the last, of as many elements as make
// one of the wider type: f32[8] is s8[8,4].
func checkBitcastConvert(i *Instr) error {
	from := i.Operands[0].Shape
	if from.DType.IsComplex() != i.Shape.DType.IsComplex() {
		return fmt.Errorf("bitcast-convert of complex numbers gives complex numbers, not %s of %s", i.Shape.DType, from.DType)
	}
	if from.DType.Bits() == i.Shape.DType.Bits() {
		return checkConvert(i)
	}
	narrow, wide := from, i.Shape
	if narrow.DType.Bits() > wide.DType.Bits() {
		narrow, wide = wide, narrow
	}
	split := int64(wide.DType.Bits() / max(1, narrow.DType.Bits()))
	if narrow.DType == Pred && ofTruthValues(wide, narrow) {
		return unreadError{errors.New("bitcast-convert between pred and other types is not read")}
	}
	if narrow.DType == Pred ||
		!slices.Equal(narrow.Dims, append(slices.Clone(wide.Dims), split)) {
		return fmt.Errorf(
			"bitcast-convert of %s to %s: the narrower type has one more dimension, the last, of as many elements as make one of the wider",
			withoutLayout(from), withoutLayout(i.Shape),
		)
	}
	return nil
}

// ofTruthValues reports whether the truth values are the bits of an array, as in
// StableHLO, or its bytes, as in XLA.
func ofTruthValues(array, truth Shape) bool {
	n := array.Elements()
	return truth.Elements() == n*int64(array.DType.Bits()) ||
		truth.Elements() == n*array.DType.Size()
}

// checkMap: all operands have one shape; to_apply takes one scalar of each and
// gives the element type of the result.
func checkMap(i *Instr) error {
	if err := i.checkToApply(len(i.Operands)); err != nil {
		return err
	}
	if err := i.checkApplied(operandShapes(i)); err != nil {
		return err
	}
	return expectShape(
		i,
		i.Attrs.ToApply.Root.Shape.DType,
		i.Operands[0].Shape.Dims,
	)
}

// checkApplied checks that the scalars given are what the computation of the
// instruction takes; floating-point types may differ in precision.
func (i *Instr) checkApplied(given []Shape) error {
	for k, p := range i.Attrs.ToApply.Params {
		if !p.Shape.isScalarOf(given[k].DType) {
			return fmt.Errorf(
				"%s passes %s[] to parameter %s of %s, which is %s",
				i.Op, given[k].DType, p.Name,
				i.Attrs.ToApply.Name, withoutLayout(p.Shape),
			)
		}
	}
	return nil
}

// isScalarOf reports whether s is a scalar of type d, give or take precision.
func (s Shape) isScalarOf(d DType) bool {
	return s.DType.IsArray() &&
		s.Rank() == 0 &&
		(s.DType == d || s.DType.IsFloat() && d.IsFloat())
}

// checkToApply reports a computation that is missing or takes another number
// of parameters.
func (i *Instr) checkToApply(params int) error {
	c := i.Attrs.ToApply
	if c == nil {
		return fmt.Errorf("%s needs to_apply=", i.Op)
	}
	if len(c.Params) != params {
		return fmt.Errorf(
			"%s needs a computation of %d parameters; %s has %d",
			i.Op, params, c.Name, len(c.Params),
		)
	}
	return nil
}

// checkIota: iota_dimension is a dimension of the result.
//
// Along dimension 1 of s32[2,3] it is {{0,1,2},{0,1,2}}.
func checkIota(i *Instr) error {
	d := i.Attrs.IotaDim
	if d < 0 || d >= int64(i.Shape.Rank()) {
		return fmt.Errorf("iota_dimension=%d of %s", d, withoutLayout(i.Shape))
	}
	return nil
}

// checkDimensionList checks that dims are distinct dimensions of a rank.
func checkDimensionList(name string, dims []int64, rank int) error {
	for k, d := range dims {
		if d < 0 || d >= int64(rank) {
			return fmt.Errorf("%s has dimension %d of an array of rank %d", name, d, rank)
		}
		if slices.Contains(dims[:k], d) {
			return fmt.Errorf("%s lists dimension %d twice", name, d)
		}
	}
	return nil
}

// checkBroadcast: dimensions= has for each operand dimension the result
// dimension of the same extent that it becomes; the others repeat.
//
// f32[3] by {1} may be f32[2,3,4].
func checkBroadcast(i *Instr) error {
	from := i.Operands[0].Shape
	dims := i.Attrs.Dimensions
	if len(dims) != from.Rank() {
		return fmt.Errorf(
			"broadcast of %s needs %d dimensions, has %d",
			withoutLayout(from), from.Rank(), len(dims),
		)
	}
	if err := checkDimensionList("dimensions=", dims, i.Shape.Rank()); err != nil {
		return err
	}
	for k, d := range dims {
		if i.Shape.Dims[d] != from.Dims[k] {
			return fmt.Errorf(
				"dimension %d of %s has extent %d; the operand's dimension %d has %d",
				d, withoutLayout(i.Shape),
				i.Shape.Dims[d], k,
				from.Dims[k],
			)
		}
	}
	return expectShape(i, from.DType, i.Shape.Dims)
}

// checkReshape: as many elements of the same type.
//
// f32[4,8] may be f32[32], f32[2,16] or f32[8,4].
func checkReshape(i *Instr) error {
	from := i.Operands[0].Shape
	if from.Elements() != i.Shape.Elements() {
		return fmt.Errorf(
			"%s has %d elements, %s has %d",
			withoutLayout(from), from.Elements(),
			withoutLayout(i.Shape), i.Shape.Elements(),
		)
	}
	return expectShape(i, from.DType, i.Shape.Dims)
}

// An unreadError is why an instruction that XLA takes is not read here.
type unreadError struct{ error }

// checkBitcast: as many bytes; types and layouts may differ.
func checkBitcast(i *Instr) error {
	from := i.Operands[0].Shape
	if from.DType.IsArray() &&
		from.Bytes() != i.Shape.Bytes() {
		if from.Layout.Tiles != nil || i.Shape.Layout.Tiles != nil {
			return unreadError{errors.New("a bitcast between arrays of other sizes, which only their padding makes equal, is not read")}
		}
		return fmt.Errorf(
			"%s has %d bytes, %s has %d",
			from, from.Bytes(), i.Shape,
			i.Shape.Bytes(),
		)
	}
	return nil
}

// checkTranspose: dimensions= is a permutation p, and result dimension k is
// operand dimension p[k].
//
// f32[2,3,4] by {2,0,1} is f32[4,2,3].
func checkTranspose(i *Instr) error {
	from := i.Operands[0].Shape
	perm := i.Attrs.Dimensions
	if len(perm) != from.Rank() {
		return fmt.Errorf(
			"transpose of %s needs %d dimensions, has %d",
			withoutLayout(from), from.Rank(), len(perm),
		)
	}
	if err := checkDimensionList("dimensions=", perm, from.Rank()); err != nil {
		return err
	}
	dims := make([]int64, len(perm))
	for k, p := range perm {
		dims[k] = from.Dims[p]
	}
	return expectShape(i, from.DType, dims)
}

// checkConcatenate: operands agree in all dimensions but one, along which the
// result has the sum of their extents.
//
// f32[2,3] and f32[2,5] along {1} are f32[2,8].
func checkConcatenate(i *Instr) error {
	first := i.Operands[0].Shape
	if len(i.Attrs.Dimensions) != 1 {
		return fmt.Errorf("concatenate needs one dimension")
	}
	if err := checkDimensionList("dimensions=", i.Attrs.Dimensions, first.Rank()); err != nil {
		return err
	}
	along := i.Attrs.Dimensions[0]
	dims := slices.Clone(first.Dims)
	for _, o := range i.Operands[1:] {
		rest := slices.Clone(o.Shape.Dims)
		if o.Shape.Rank() == first.Rank() {
			rest[along] = first.Dims[along]
		}
		if o.Shape.DType != first.DType ||
			!slices.Equal(rest, first.Dims) {
			return fmt.Errorf(
				"concatenates %s with %s along dimension %d",
				withoutLayout(first), withoutLayout(o.Shape), along,
			)
		}
		dims[along] += o.Shape.Dims[along]
	}
	return expectShape(i, first.DType, dims)
}

// checkSlice: for each dimension a range [start:limit:stride] inside of it;
// the result has ⌈(limit − start)/stride⌉ elements along it.
//
// f32[8] of [1:7:2] is f32[3].
func checkSlice(i *Instr) error {
	from := i.Operands[0].Shape
	if len(i.Attrs.Slice) != from.Rank() {
		return fmt.Errorf(
			"slice of %s needs %d ranges, has %d",
			withoutLayout(from), from.Rank(),
			len(i.Attrs.Slice),
		)
	}
	dims := make([]int64, from.Rank())
	for k, r := range i.Attrs.Slice {
		if r.Start < 0 || r.Limit < r.Start ||
			r.Limit > from.Dims[k] || r.Stride < 1 {
			return fmt.Errorf(
				"slice range [%d:%d:%d] of dimension %d, which has extent %d",
				r.Start, r.Limit, r.Stride,
				k, from.Dims[k],
			)
		}
		dims[k] = (r.Limit - r.Start + r.Stride - 1) / r.Stride
	}
	return expectShape(i, from.DType, dims)
}

// checkPad: extent n becomes low + high + n + (n−1)·interior, or 0 where
// negative padding leaves nothing; the second operand is the scalar that
// fills.
//
// f32[4] by 1_2_1 is f32[10]: 1 + 4 + 3 between them + 2.
func checkPad(i *Instr) error {
	from := i.Operands[0].Shape
	value := i.Operands[1].Shape
	if value.Rank() != 0 || value.DType != from.DType {
		return fmt.Errorf("the padding value is %s; it must be %s[]", withoutLayout(value), from.DType)
	}
	if len(i.Attrs.Padding) != from.Rank() {
		return fmt.Errorf(
			"pad of %s needs %d paddings, has %d",
			withoutLayout(from), from.Rank(),
			len(i.Attrs.Padding),
		)
	}
	dims := make([]int64, from.Rank())
	for k, p := range i.Attrs.Padding {
		if p.Interior < 0 {
			return fmt.Errorf("interior padding %d of dimension %d is negative", p.Interior, k)
		}
		dims[k] = max(
			0,
			p.Low+p.High+from.Dims[k]+max(
				0, from.Dims[k]-1,
			)*p.Interior,
		)
	}
	return expectShape(i, from.DType, dims)
}

// checkReverse: dimensions= lists the dimensions that are mirrored; the shape
// stays.
//
// {1,2,3} along {0} is {3,2,1}.
func checkReverse(i *Instr) error {
	err := checkDimensionList(
		"dimensions=", i.Attrs.Dimensions, i.Operands[0].Shape.Rank(),
	)
	if err != nil {
		return err
	}
	return checkSameAsOperand(i)
}

// checkReduce: the result has the dimensions of the operands that dimensions=
// does not list.
//
// f32[2,3,4] over {0,2} is f32[3].
func checkReduce(i *Instr) error {
	first := i.Operands[0].Shape
	if err := checkDimensionList("dimensions=", i.Attrs.Dimensions, first.Rank()); err != nil {
		return err
	}
	return checkReduction(i, extentsExcept(first, i.Attrs.Dimensions))
}

// checkReduction checks a reduce or reduce-window, variadic or not, whose results
// have the extents dims: operands, as many initial values, one computation.
func checkReduction(i *Instr, dims []int64) error {
	n := len(i.Operands) / 2
	if len(i.Operands)%2 != 0 {
		return fmt.Errorf("%s has as many initial values as operands; it has %d arguments", i.Op, len(i.Operands))
	}
	if err := i.checkToApply(2 * n); err != nil {
		return err
	}
	want := make([]Shape, n)
	for k := range n {
		x := i.Operands[k].Shape
		init := i.Operands[n+k].Shape
		if !x.SameDims(i.Operands[0].Shape) ||
			init.Rank() != 0 || init.DType != x.DType {
			return fmt.Errorf("reduces %s with initial value %s", withoutLayout(x), withoutLayout(init))
		}
		want[k] = Shape{DType: x.DType, Dims: dims}
	}
	if err := checkReducer(i, want); err != nil {
		return err
	}
	whole := want[0]
	if i.Shape.DType == Tuple || n > 1 {
		whole = Shape{DType: Tuple, Tuple: want}
	}
	if !i.Shape.Compatible(whole) {
		return wrongShape(
			whole, "%s of these operands is %s, not %s", i.Op, whole, withoutLayout(i.Shape),
		)
	}
	return nil
}

// checkReducer checks that the computation of a reduce takes and gives scalars
// of the types of its results.
func checkReducer(i *Instr, results []Shape) error {
	err := i.checkApplied(append(slices.Clone(results), results...))
	if err != nil {
		return err
	}
	c := i.Attrs.ToApply
	got := []Shape{c.Root.Shape}
	if c.Root.Shape.DType == Tuple {
		got = c.Root.Shape.Tuple
	}
	if len(got) != len(results) {
		return fmt.Errorf(
			"%s gives %s for %d operands", c.Name, withoutLayout(c.Root.Shape),
			len(results),
		)
	}
	for k, s := range got {
		if !s.isScalarOf(results[k].DType) {
			return fmt.Errorf(
				"%s gives %s for the result %s[]", c.Name, withoutLayout(s), results[k].DType,
			)
		}
	}
	return nil
}

// checkDot: the result has the batch dimensions, then the free dimensions of
// the left side, then those of the right; paired dimensions have equal
// extents. The element type is free: integers may be accumulated in wider
// ones.
//
// f32[5,2,3] by f32[5,3,4], batch {0} and contracting {2} with {1}, is
// f32[5,2,4].
func checkDot(i *Instr) error {
	l := i.Operands[0].Shape
	r := i.Operands[1].Shape
	a := &i.Attrs
	if len(a.LHSBatch) != len(a.RHSBatch) ||
		len(a.LHSContract) != len(a.RHSContract) {
		return fmt.Errorf(
			"dot lists %d and %d batch, %d and %d contracting dimensions; they come in pairs",
			len(a.LHSBatch), len(a.RHSBatch),
			len(a.LHSContract), len(a.RHSContract),
		)
	}
	left := slices.Concat(a.LHSBatch, a.LHSContract)
	right := slices.Concat(a.RHSBatch, a.RHSContract)
	if err := checkDimensionList("the left side", left, l.Rank()); err != nil {
		return err
	}
	if err := checkDimensionList("the right side", right, r.Rank()); err != nil {
		return err
	}
	for k := range left {
		if l.Dims[left[k]] != r.Dims[right[k]] {
			return fmt.Errorf(
				"dimension %d of %s and dimension %d of %s have different extents",
				left[k], withoutLayout(l),
				right[k], withoutLayout(r),
			)
		}
	}
	var dims []int64
	for _, d := range a.LHSBatch {
		dims = append(dims, l.Dims[d])
	}
	dims = append(
		append(dims, extentsExcept(l, left)...),
		extentsExcept(r, right)...,
	)
	return expectShape(i, i.Shape.DType, dims)
}

// extentsExcept lists the extents of the dimensions not taken.
func extentsExcept(s Shape, taken []int64) []int64 {
	var dims []int64
	for d, extent := range s.Dims {
		if !slices.Contains(taken, int64(d)) {
			dims = append(dims, extent)
		}
	}
	return dims
}

// checkTuple: a tuple of the shapes of the operands.
//
// Operands f32[2] and s32[] give (f32[2], s32[]).
func checkTuple(i *Instr) error {
	want := (Shape{DType: Tuple, Tuple: operandShapes(i)})
	if !i.Shape.Compatible(want) {
		return wrongShape(want, "a tuple of these operands is %s, not %s", want, i.Shape)
	}
	return nil
}

// checkGetTupleElement: the element index= of the operand's tuple.
func checkGetTupleElement(i *Instr) error {
	from := i.Operands[0].Shape
	if from.DType != Tuple || i.Attrs.Index < 0 ||
		i.Attrs.Index >= len(from.Tuple) {
		return fmt.Errorf("index=%d of %s", i.Attrs.Index, from)
	}
	if want := from.Tuple[i.Attrs.Index]; !i.Shape.Compatible(want) {
		return wrongShape(
			want, "element %d of the tuple is %s, not %s", i.Attrs.Index, want, i.Shape,
		)
	}
	return nil
}

// checkFusion is the shape rule of calls: operands have the shapes of the
// parameters, and the result that of the root.
func checkFusion(i *Instr) error {
	c := i.Attrs.Calls
	if c == nil {
		return fmt.Errorf("%s needs calls= or to_apply=", i.Op)
	}
	if len(c.Params) != len(i.Operands) {
		return fmt.Errorf(
			"%s passes %d operands to %s, which has %d parameters",
			i.Op, len(i.Operands),
			c.Name, len(c.Params),
		)
	}
	for k, o := range i.Operands {
		if !o.Shape.Compatible(c.Params[k].Shape) {
			return fmt.Errorf(
				"operand %d is %s; parameter %s of %s is %s",
				k, o.Shape, c.Params[k].Name,
				c.Name, c.Params[k].Shape,
			)
		}
	}
	if !i.Shape.Compatible(c.Root.Shape) {
		return wrongShape(
			c.Root.Shape, "%s returns %s, not %s", c.Name, c.Root.Shape, i.Shape,
		)
	}
	return nil
}
