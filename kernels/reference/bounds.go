package reference

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Bounds are the results that a correct kernel may have in each element, by interval
// arithmetic: beside the reference's value goes an interval of values, which is
// widened by what the arithmetic of a kernel may be off by, and rounded to the type of
// every instruction. An element that is rounded to 16 bits has one possible value
// unless it is next to the middle of two.
//
// Elementwise operations are evaluated at the corners of the box of their operands'
// intervals. The error of a sum is bounded by its terms' magnitudes, because its order
// is the backend's. What moves elements moves their intervals. Where values cancel, the
// interval of the difference is as wide as those of the operands together, which is
// what a tolerance relative to the result cannot know.
//
// An interval is at least as wide as what one correct kernel may do, not as narrow as
// what all of them do: a value that is used twice counts as two. Chains of hundreds of
// operations have wide intervals for that reason, and check's Tolerance holds beside
// them.

// An Interval has the smallest and the largest value of each element of a result, in
// logical order. An element that can be anything has a smallest value above the
// largest. One that has to be NaN has NaN as both.
type Interval struct{ Lo, Hi []float64 }

// Contains reports whether x may stand in element n.
func (i Interval) Contains(
	n int64, x float64,
) bool {
	lo := i.Lo[n]
	hi := i.Hi[n]
	switch {
	case lo > hi:
		return true
	case lo != lo:
		return x != x
	}
	return lo <= x && x <= hi
}

// Accuracy of kernels beyond that of the types they compute in.
type Accuracy struct {
	// Operand is the relative error of the operands of products of f32, for devices
	// that round them to a narrower type; 0 for none.
	Operand float64
}

// Units in the last place that an operation may be off by before its result is rounded
// to its type: of f32 for types up to 32 bits, and of f64 for f64, whose results the
// reference rounds itself.
const (
	sumUnits      = 1 // of add, subtract and multiply, which may be contracted
	quotientUnits = 2 // of divide and roots, by way of a reciprocal
	functionUnits = 6 // of others: the least accurate function of a backend is good to 4
	doubleUnits   = 2 // times these for functions of f64: what the reference is off by, too
	// The error of a sum of k terms in units of its type is at most this times √k,
	// relative to the sum of magnitudes: √k is the standard deviation of independent
	// roundings (Higham, Accuracy and Stability of Numerical Algorithms, §2.8).
	sumDeviations = 4
)

// unitsOf has the operations that are more accurate than functionUnits. Those that
// return one of their operands, or a whole number, are exact.
var unitsOf = map[hlo.Opcode]float64{
	hlo.OpAdd:              sumUnits,
	hlo.OpSubtract:         sumUnits,
	hlo.OpMultiply:         sumUnits,
	hlo.OpDivide:           quotientUnits,
	hlo.OpSqrt:             quotientUnits,
	hlo.OpRsqrt:            quotientUnits,
	hlo.OpAbs:              0,
	hlo.OpNegate:           0,
	hlo.OpCopy:             0,
	hlo.OpReal:             0,
	hlo.OpSign:             0,
	hlo.OpCeil:             0,
	hlo.OpFloor:            0,
	hlo.OpRoundNearestAfz:  0,
	hlo.OpRoundNearestEven: 0,
	hlo.OpMaximum:          0,
	hlo.OpMinimum:          0,
	hlo.OpClamp:            0,
	hlo.OpSelect:           0,
	hlo.OpConvert:          0,
	hlo.OpReducePrecision:  0,
	hlo.OpRemainder:        0,
}

// A span is an array of values with their intervals. Where all values are certain, lo
// and hi are the values themselves.
type span struct {
	value
	lo, hi value
	parts  []span // of a tuple, whose value is empty
}

// certain is a span of values that have no error.
func certain(v value) span {
	return span{value: v, lo: v, hi: v}
}

// ends are the smallest and the largest value of element n, which is a float.
func (s span) ends(n int64) (lo, hi float64) {
	lo = s.lo.floats[n]
	hi = s.hi.floats[n]
	return lo, hi
}

// setEnds sets the smallest and the largest value of element n.
func (s span) setEnds(n int64, lo, hi float64) {
	s.lo.floats[n] = lo
	s.hi.floats[n] = hi
}

// free makes element n one that can be anything.
func (s span) free(n int64) {
	s.setEnds(n, math.Inf(1), math.Inf(-1))
}

// isCertain reports whether all values of s have no error.
func (s span) isCertain() bool {
	return s.lo.is(s.value) && s.hi.is(s.value)
}

// is reports whether v has the elements of w, not only equal ones.
func (v value) is(w value) bool {
	return sameStart(v.floats, w.floats) &&
		sameStart(v.ints, w.ints)
}

// sameStart reports whether two slices are the same memory.
func sameStart[T any](x, y []T) bool {
	if len(x) != len(y) {
		return false
	}
	return len(x) == 0 || &x[0] == &y[0]
}

// Bounds computes the interval of every element of each output. It takes a few times
// the work of Interpret. Operations whose error it cannot bound are an error.
func Bounds(
	ctx context.Context,
	c *hlo.Computation, in []kernels.Buffer, a Accuracy,
) (all []Interval, err error) {
	run := newEvaluation(ctx)
	defer run.ended(&err)
	args := make([]span, len(in))
	for k, b := range in {
		v, err := run.load(b)
		if err != nil {
			return nil, err
		}
		args[k] = certain(v)
	}
	e := bounding{a, run, weighsOnline(c), outputsOf(c)}
	s, err := e.evaluate(c, args)
	if err != nil {
		return nil, err
	}
	for _, leaf := range s.leaves() {
		all = append(all, Interval{
			Lo: leaf.lo.asFloats(),
			Hi: leaf.hi.asFloats(),
		})
	}
	return all, nil
}

// A bounding is the evaluation of the spans of a computation.
type bounding struct {
	Accuracy
	run *evaluation
	// Results of narrow types need not be rounded before they are used, but for those
	// that are outputs.
	keepsWide bool
	outputs   map[*hlo.Instr]bool
}

// weighsOnline reports whether a backend may compute a softmax of c in one loop, in which
// weights of narrow types are not rounded before they are summed.
//
// Such a loop (symtile.Program.Online) sums exp(x − m) for a running maximum m. It rescales
// what it has when the maximum rises, and divides by the sum of a row after the last tile.
// What is computed in between has other roundings than the program says, not more of them:
// numbers of the program that nobody sees may have been rounded or not.
func weighsOnline(
	c *hlo.Computation,
) bool {
	exponential, sum := false, false
	for _, i := range c.Instrs {
		switch i.Op {
		case hlo.OpExponential:
			exponential = true
		case hlo.OpReduce, hlo.OpDot:
			sum = true
		case hlo.OpFusion, hlo.OpCall:
			if weighsOnline(i.Attrs.Calls) {
				return true
			}
		}
	}
	return exponential && sum
}

// outputsOf has the instructions whose results c returns, perhaps moved. Those are rounded
// to their types wherever they are computed.
func outputsOf(c *hlo.Computation) map[*hlo.Instr]bool {
	outputs := map[*hlo.Instr]bool{}
	var follow func(i *hlo.Instr)
	follow = func(i *hlo.Instr) {
		outputs[i] = true
		if i.Op == hlo.OpTuple || i.Op.Class() == hlo.ClassMove {
			for _, o := range i.Operands {
				follow(o)
			}
		}
	}
	follow(c.Root)
	return outputs
}

// wide reports whether the result of i need not be rounded: a loop that sums weights
// and products of weights at the same time keeps them in f32, and rounds what it
// returns.
func (e bounding) wide(
	i *hlo.Instr,
) bool {
	d := i.Shape.DType
	return e.keepsWide && !e.outputs[i] &&
		d.IsFloat() && d.Bits() < 32
}

// leaves are the arrays of a span in the order of its tuples.
func (s span) leaves() []span {
	if s.parts == nil {
		return []span{s}
	}
	var all []span
	for _, p := range s.parts {
		all = append(all, p.leaves()...)
	}
	return all
}

// evaluate evaluates a computation on spans.
func (e bounding) evaluate(
	c *hlo.Computation, args []span,
) (span, error) {
	spans := make(map[*hlo.Instr]span, len(c.Instrs))
	for n, i := range c.Instrs {
		operands := make([]span, len(i.Operands))
		for k, o := range i.Operands {
			operands[k] = spans[o]
		}
		if i.Op == hlo.OpParameter {
			operands = args[i.Attrs.Param:][:1]
		}
		s, err := e.instruction(i, operands)
		if err != nil {
			return span{}, fmt.Errorf("%s (%s): %w", i.Name, i.Op, err)
		}
		spans[i] = s
		for _, o := range lastRead(c, n) {
			delete(spans, o)
		}
	}
	return spans[c.Root], nil
}

// instruction evaluates one instruction on spans.
func (e bounding) instruction(
	i *hlo.Instr, x []span,
) (span, error) {
	switch i.Op {
	case hlo.OpParameter:
		return x[0], nil
	case hlo.OpTuple:
		return span{parts: x}, nil
	case hlo.OpGetTupleElement:
		return x[0].parts[i.Attrs.Index], nil
	case hlo.OpOptimizationBarrier:
		return x[0], nil
	case hlo.OpFusion, hlo.OpCall:
		return e.evaluate(i.Attrs.Calls, x)
	case hlo.OpDot, hlo.OpScaledDot, hlo.OpConvolution:
		return e.contraction(i, x)
	case hlo.OpReduce, hlo.OpReduceWindow:
		return e.reduction(i, x)
	}
	if i.Op.Elementwise() {
		return e.elementwise(i, x)
	}
	return e.moved(i, x)
}

// moved moves intervals as the values are moved. Start indices are taken as they
// are in the reference.
func (e bounding) moved(
	i *hlo.Instr, x []span,
) (span, error) {
	v, err := e.plain(i, x)
	if err != nil {
		return span{}, err
	}
	data := x
	switch {
	case i.Op == hlo.OpDynamicSlice, i.Op == hlo.OpGather:
		data = x[:1]
	case i.Op == hlo.OpDynamicUpdateSlice:
		data = x[:2]
	case i.Op.Class() != hlo.ClassMove && i.Op.Class() != hlo.ClassSource:
		return span{}, errUnbounded
	}
	if allCertain(data) {
		return certain(v), nil
	}
	if i.Shape.DType != data[0].shape.DType {
		return span{}, errUnbounded // a bitcast of something uncertain
	}
	s := span{value: v}
	s.lo, s.hi, err = e.atEnds(i, x, data)
	return s, err
}

// plain evaluates an instruction on the reference's values.
func (e bounding) plain(i *hlo.Instr, x []span) (value, error) {
	return e.run.instruction(i, values(x))
}

// atEnds evaluates an instruction on the smallest and on the largest values of its
// first operands, as many as there are data, and on the reference's of the others.
func (e bounding) atEnds(
	i *hlo.Instr, x, data []span,
) (lo, hi value, err error) {
	least := values(x)
	most := values(x)
	for k, s := range data {
		least[k] = s.lo
		most[k] = s.hi
	}
	if lo, err = e.run.instruction(i, least); err != nil {
		return lo, hi, err
	}
	hi, err = e.run.instruction(i, most)
	return lo, hi, err
}

// errUnbounded is the error of operations whose error is not bounded.
var errUnbounded = fmt.Errorf("the error of this operation is not bounded")

// values are the reference's values of spans.
func values(
	x []span,
) []value {
	all := make([]value, len(x))
	for k, s := range x {
		all[k] = s.value
		if s.parts != nil {
			all[k].shape.DType = hlo.Tuple
			all[k].tuple = values(s.parts)
		}
	}
	return all
}

// allCertain reports whether no operand has an error.
func allCertain(
	x []span,
) bool {
	for _, s := range x {
		if s.parts != nil || !s.isCertain() {
			return false
		}
	}
	return true
}

// exactly is an instruction whose results are not rounded to their floating-point type.
func exactly(i *hlo.Instr) *hlo.Instr {
	if !i.Shape.DType.IsFloat() {
		return i
	}
	wide := *i
	wide.Shape.DType = hlo.F64
	return &wide
}

// elementwise evaluates an elementwise instruction at all corners of the box of its
// operands' intervals, and widens the range of the results by the error of the
// operation. That is right for functions that are monotonic in each operand within the
// intervals, or nearly constant.
func (e bounding) elementwise(
	i *hlo.Instr, x []span,
) (span, error) {
	if i.Op == hlo.OpBitcastConvert {
		return e.bits(i, x)
	}
	if f := stripOf(i); f != nil {
		return e.strips(i, x, f)
	}
	v, err := e.run.elementwise(i, values(x))
	if err != nil {
		return span{}, err
	}
	units := e.units(i)
	isFloat := i.Shape.DType.IsFloat()
	rounds := units > 0 || e.wide(i)
	if allCertain(x) && !(isFloat && rounds) {
		return certain(v), nil
	}
	r, err := e.corners(i, x)
	if err != nil {
		return span{}, err
	}
	r.value = v
	if isFloat {
		by := e.errorOf(i, units)
		r.widen(
			i.Shape, e.wide(i),
			func(_ int64, m float64) float64 {
				return by.of(m)
			},
		)
	}
	return r, nil
}

// bits is the range of the bits of floats as integers of their width: those of numbers
// of one sign are in order. Where the sign is uncertain, and of a NaN that was computed,
// they can be any.
func (e bounding) bits(
	i *hlo.Instr, x []span,
) (span, error) {
	from := x[0]
	d := i.Shape.DType
	if from.floats == nil || !d.IsInteger() || d == hlo.U64 ||
		i.Operands[0].Op == hlo.OpParameter {
		return e.whole(i, x)
	}
	// Without an error the bits are the reference's.
	s := span{}
	var err error
	if s.value, err = e.plain(i, x); err != nil {
		return s, err
	}
	// Types of another width have more or fewer elements.
	if s.value.ints == nil || len(s.value.ints) != len(from.floats) {
		return e.whole(i, x)
	}
	least, most, err := e.atEnds(i, x, x)
	if err != nil {
		return s, err
	}
	s.lo, s.hi = s.value.clone(), s.value.clone()
	s.include(least)
	s.include(most)
	// Zeros of both signs are equal as numbers, and not as bits.
	first, last := d.IntRange()
	for n, v := range from.floats {
		lo, hi := from.ends(int64(n))
		if v != v || !(lo <= hi) || !from.isCertain() && lo <= 0 && hi >= 0 {
			s.lo.ints[n], s.hi.ints[n] = first, last
		}
	}
	return s, nil
}

// errorOf is the error of an elementwise instruction before its result, of magnitude m,
// is rounded.
func (e bounding) errorOf(
	i *hlo.Instr, units float64,
) slack {
	d := i.Shape.DType
	floor := floorOf(i)
	relative := 0.0
	// Narrow results of a loop that is joined with others need not be those of the program.
	switch {
	case e.wide(i) && i.Op == hlo.OpExponential:
		relative = Epsilon(d) // weights rounded relative to another maximum
	case e.wide(i) && i.Op == hlo.OpConvert &&
		fromExponential(i.Operands[0]):
		// Weights are rounded before they are divided by their sum, or after it.
		relative = Epsilon(d) / 2
	}
	return slack{d, units, relative, floor}
}

// A slack is the error of an operation before its result is rounded, which depends on the
// magnitude of that.
type slack struct {
	d                      hlo.DType
	units, relative, floor float64
}

// of is the error of a result of magnitude m.
func (s slack) of(m float64) float64 {
	return s.units*unit(s.d, m) + s.relative*m + s.floor
}

// fromExponential reports whether i is an exponential, or elementwise of one: a weight of a
// softmax. Rounding such a number before or after it is divided by the sum of its row moves
// it by as much of itself, but not to the same place.
//
// Tensor cores need weights of 16 bits, and a loop that computes them with a running
// maximum does not know the sum of a row yet. So weights are rounded before the division
// there, as in FlashAttention, and after it where each pass has a loop of its own. Neither
// is nearer to the exact result, and so the interval has both.
func fromExponential(i *hlo.Instr) bool {
	if i.Op == hlo.OpExponential {
		return true
	}
	return i.Op.Elementwise() &&
		slices.ContainsFunc(
			i.Operands,
			fromExponential,
		)
}

// units is what i may be off by before it is rounded. Sums and products of narrow types
// are exact in f32, and those of wider types are rounded unless they are contracted.
func (e bounding) units(
	i *hlo.Instr,
) float64 {
	units, known := unitsOf[i.Op]
	switch {
	case !known && i.Shape.DType == hlo.F64:
		return functionUnits * doubleUnits
	case !known:
		return functionUnits
	case units != sumUnits:
	case e.outputs[i], i.Shape.DType.Bits() < 32:
		return 0
	}
	return units
}

// unit is a unit in the last place of the type that results of type d are computed in,
// at magnitude m.
func unit(
	d hlo.DType, m float64,
) float64 {
	if d == hlo.F64 {
		return max(m*0x1p-52, 0x1p-1074)
	}
	return max(m*0x1p-23, 0x1p-149)
}

// floorOf is the part of an operation's error that is not relative to its result: 1/(1 +
// e⁻ˣ) is 0 where e⁻ˣ overflows, and the factors of erf are denormal where it is, in
// vector code of f32.
func floorOf(
	i *hlo.Instr,
) float64 {
	switch {
	case i.Shape.DType == hlo.F64:
	case i.Op == hlo.OpLogistic:
		return 0x1p-127
	case i.Op == hlo.OpErf:
		return 0x1p-142
	}
	return 0
}

// The intervals of a strip are computed as those of whole arrays are: by all corners.
//
// intervalStrip is the number of elements whose intervals are computed at the same time, so
// that what is between lies in the first level of cache.
const intervalStrip = 512

// strips is elementwise for an operation on floating-point numbers that has a strip.
//
// In a strip the operation is computed on the reference's values, and once for every
// corner, into one array of results that stays in the cache. Value and ends are rounded
// at the end. Where nothing is uncertain there are no ends: they are the value.
func (e bounding) strips(
	i *hlo.Instr, x []span, f strip,
) (s span, err error) {
	t := e.stripCorners(i, x, f)
	if s.value, err = newValue(i.Shape); err != nil {
		return s, err
	}
	s.lo, s.hi = s.value, s.value
	if t.uncertain() {
		s.lo, err = newValue(i.Shape)
		if err == nil {
			s.hi, err = newValue(i.Shape)
		}
		if err != nil {
			return s, err
		}
	}
	each := int64(1 + len(x))
	e.run.parallel(i.Shape.Elements(), each, func(lo, hi int64) {
		c := t.corner()
		for ; lo < hi; lo += intervalStrip {
			c.compute(s, lo, min(lo+intervalStrip, hi))
		}
	})
	return s, nil
}

// stripCorners are the corners of an operation that has a strip.
type stripCorners struct {
	i    *hlo.Instr
	x    []span
	f    strip
	free []int // operands with errors
	// The result need not be rounded, and what the operation is off by before it is.
	wide bool
	by   slack
}

// stripCorners says what the corners of an instruction are.
func (e bounding) stripCorners(
	i *hlo.Instr, x []span, f strip,
) stripCorners {
	t := stripCorners{
		i:    i,
		x:    x,
		f:    f,
		wide: e.wide(i),
		by:   e.errorOf(i, e.units(i)),
	}
	for k, s := range x {
		if !s.isCertain() {
			t.free = append(t.free, k)
		}
	}
	return t
}

// uncertain reports whether there are other results than the reference's: since an operand
// has an error, the operation is not exact, or the result need not be rounded.
func (t stripCorners) uncertain() bool {
	inexact := t.by.units > 0
	return len(t.free) > 0 || inexact || t.wide
}

// A corner computes intervals, strip by strip.
type corner struct {
	stripCorners
	// What the operation is computed from, and its results there.
	operands []numbers
	results  [intervalStrip]float64
}

// corner is a corner for one goroutine.
func (t stripCorners) corner() *corner {
	return &corner{
		stripCorners: t,
		operands:     make([]numbers, len(t.x)),
	}
}

// compute computes elements from … to−1 of s.
func (c *corner) compute(s span, from, to int64) {
	v := s.floats[from:to]
	for k, x := range c.x {
		c.operands[k] = x.floats[from:to]
	}
	c.f(v, c.operands)
	d := c.i.Shape.DType
	if s.isCertain() {
		roundStrip(d, v)
		return
	}
	lo := s.lo.floats[from:to]
	hi := s.hi.floats[from:to]
	copy(lo, v)
	copy(hi, v)
	roundStrip(d, v)
	c.extend(lo, hi, from, to)
	for n, l := range lo {
		if h := hi[n]; l <= h || l != l {
			lo[n] -= c.by.of(magnitude(l))
			hi[n] += c.by.of(magnitude(h))
		}
	}
	roundEnds(d, c.wide, lo, hi)
}

// extend extends the ranges of results by those at all corners.
func (c *corner) extend(lo, hi []float64, from, to int64) {
	y := c.results[:to-from]
	for corner := range 1 << len(c.free) {
		if len(c.free) == 0 {
			return
		}
		for n, k := range c.free {
			end := c.x[k].lo
			if corner>>n&1 == 1 {
				end = c.x[k].hi
			}
			c.operands[k] = end.floats[from:to]
		}
		c.f(y, c.operands)
		includeStrip(lo, hi, y)
	}
	if len(c.x) == 1 && !rises[c.i.Op] { // |x| and cos x turn at 0
		x := c.x[0]
		var turn [intervalStrip]float64
		for n := from; n < to; n++ {
			l, h := x.ends(n)
			turn[n-from] = min(max(0, l), h)
		}
		c.operands[0] = turn[:to-from]
		c.f(y, c.operands)
		includeStrip(lo, hi, y)
	}
	ends := span{
		lo: value{floats: lo},
		hi: value{floats: hi},
	}
	for _, k := range c.free {
		ends.freeWhere(
			c.x[k].slice(from, to),
			jumps(c.i.Op, k),
		)
	}
	switch c.i.Op {
	case hlo.OpSine, hlo.OpCosine:
		ends.bend(c.x[0].slice(from, to))
	case hlo.OpPower:
		ends.freeRoots(
			c.x[0].slice(from, to),
			c.x[1].slice(from, to),
		)
	}
}

// slice is elements from … to−1 of a span of floating-point numbers, as a vector.
func (s span) slice(from, to int64) span {
	part := func(v value) value {
		return value{
			shape:  withDims(v.shape, []int64{to - from}),
			floats: v.floats[from:to],
		}
	}
	return span{
		value: part(s.value),
		lo:    part(s.lo),
		hi:    part(s.hi),
	}
}

// rises are operations on one number that do not turn between the ends of an interval:
// the values between are between those at the ends, so that the number nearest to zero,
// where even functions turn, is not looked at.
var rises = map[hlo.Opcode]bool{
	hlo.OpConvert:             true,
	hlo.OpCopy:                true,
	hlo.OpNegate:              true,
	hlo.OpExponential:         true,
	hlo.OpExponentialMinusOne: true,
	hlo.OpLog:                 true,
	hlo.OpLogPlusOne:          true,
	hlo.OpSqrt:                true,
	hlo.OpTanh:                true,
	hlo.OpErf:                 true,
	hlo.OpLogistic:            true,
}

// corners is the range of the results, which are not rounded, where each operand is the
// smallest, the largest or the reference's value. What is NaN at some corners only can
// be anything.
func (e bounding) corners(
	i *hlo.Instr, x []span,
) (r span, err error) {
	wide := exactly(i)
	operands := values(x)
	if r.value, err = e.run.elementwise(wide, operands); err != nil {
		return r, err
	}
	r.lo = r.value.clone()
	r.hi = r.value.clone()
	var free []int
	for k, s := range x {
		if !s.isCertain() {
			free = append(free, k)
		}
	}
	for corner := range 1 << len(free) {
		if len(free) == 0 {
			break
		}
		for n, k := range free {
			operands[k] = x[k].lo
			if corner>>n&1 == 1 {
				operands[k] = x[k].hi
			}
		}
		at, err := e.run.elementwise(wide, operands)
		if err != nil {
			return r, err
		}
		r.include(at)
	}
	if len(x) == 1 && len(free) == 1 { // |x| and cos x turn at 0
		turn := []value{x[0].nearestZero()}
		at, err := e.run.elementwise(wide, turn)
		if err != nil {
			return r, err
		}
		r.include(at)
	}
	for _, k := range free {
		r.freeWhere(x[k], jumps(i.Op, k))
	}
	switch {
	case len(free) == 0:
	case i.Op == hlo.OpSine || i.Op == hlo.OpCosine:
		r.bend(x[0])
	case i.Op == hlo.OpPower && r.lo.floats != nil:
		r.freeRoots(x[0], x[1])
	}
	return r, nil
}

// freeRoots makes powers free whose bases may be negative and whose exponents are not
// certain: of both signs where these are integers, and NaN between.
func (s *span) freeRoots(base, exponent span) {
	bases, exponents := scalarStep(base.value), scalarStep(exponent.value)
	for n := range int64(len(s.lo.floats)) {
		least, _ := base.ends(n * bases)
		if lo, hi := exponent.ends(n * exponents); least < 0 && lo < hi {
			s.free(n)
		}
	}
}

// jumps reports whether intervals of operand k of an operation are where it jumps or
// turns within them.
func jumps(
	op hlo.Opcode, k int,
) func(lo, hi float64) bool {
	switch op {
	case hlo.OpSine, hlo.OpCosine:
		return func(lo, hi float64) bool {
			return hi-lo > 1
		}
	case hlo.OpTan: // decreases from one side of a pole to the other
		return func(lo, hi float64) bool {
			return hi-lo > 1 || tangent(lo) > tangent(hi)
		}
	case hlo.OpRemainder:
		return func(lo, hi float64) bool {
			return lo < hi
		}
	case hlo.OpDivide, hlo.OpPower, hlo.OpAtan2:
		if k == 0 && op == hlo.OpDivide {
			break
		}
		return func(lo, hi float64) bool {
			return lo < hi && lo <= 0 && hi >= 0
		}
	}
	return func(lo, hi float64) bool { return false }
}

// bend extends the range of a sine or cosine between angles of certain intervals: one of
// width w that has an extremum inside exceeds its values at the ends by w²/8 at most.
func (s *span) bend(x span) {
	for n := range int64(len(s.lo.floats)) {
		from, to := x.ends(n)
		lo, hi := s.ends(n)
		if slack := (to - from) * (to - from) / 8; lo <= hi && slack > 0 {
			s.setEnds(n, max(lo-slack, -1), min(hi+slack, 1))
		}
	}
}

// nearestZero is the value of each interval with the smallest magnitude.
func (s span) nearestZero() value {
	v := s.value.clone()
	for n := range v.floats {
		lo, hi := s.ends(int64(n))
		v.floats[n] = min(max(0, lo), hi)
	}
	return v
}

// include extends intervals so that they contain the values of v.
func (s *span) include(v value) {
	Parallel(v.shape.Elements(), 1, func(from, to int64) {
		if v.floats != nil {
			includeStrip(
				s.lo.floats[from:to],
				s.hi.floats[from:to],
				v.floats[from:to],
			)
			return
		}
		for n := from; n < to; n++ {
			lo := &s.lo.ints[n]
			hi := &s.hi.ints[n]
			*lo = min(*lo, v.ints[n])
			*hi = max(*hi, v.ints[n])
		}
	})
}

// includeStrip extends intervals so that each contains a number.
func includeStrip(lo, hi, y []float64) {
	hi = hi[:len(lo)]
	y = y[:len(lo)]
	for n, v := range y {
		l, h := lo[n], hi[n]
		switch {
		case l <= v && v <= h:
		case v < l && l <= h:
			lo[n] = v
		case v > h && l <= h:
			hi[n] = v
		default:
			lo[n], hi[n] = including(l, h, v)
		}
	}
}

// including is the interval from lo to hi extended so that it contains y. What is a
// number in some cases and NaN in others can be anything.
func including(lo, hi, y float64) (float64, float64) {
	number := lo == lo
	switch {
	case lo > hi, !number && y != y:
		return lo, hi
	case !number, y != y:
		return math.Inf(1), math.Inf(-1)
	}
	return min(lo, y), max(hi, y)
}

// freeWhere makes floats free where an operand, which is a scalar or has as many
// elements, is, or where the operation jumps.
func (s *span) freeWhere(
	x span, jumps func(lo, hi float64) bool,
) {
	if x.floats == nil {
		return
	}
	step := scalarStep(x.value)
	for n := range int64(len(s.lo.floats)) {
		lo, hi := x.ends(n * step)
		if lo > hi || jumps(lo, hi) {
			s.free(n)
		}
	}
}

// widen moves the ends of intervals apart by what an operation may be off by, and
// rounds them to the type of a shape; wide intervals keep what is not rounded, too. by
// is the error of element n for results of magnitude m.
func (s *span) widen(
	shape hlo.Shape, wide bool,
	by func(n int64, m float64) float64,
) {
	s.lo = s.lo.withShape(shape)
	s.hi = s.hi.withShape(shape)
	all := shape.Elements()
	Parallel(all, 1, func(from, to int64) {
		lo := s.lo.floats[from:to]
		hi := s.hi.floats[from:to]
		for n, l := range lo {
			h := hi[n]
			if l > h {
				continue
			}
			at := from + int64(n)
			lo[n] -= by(at, magnitude(l))
			hi[n] += by(at, magnitude(h))
		}
		roundEnds(shape.DType, wide, lo, hi)
	})
}

// roundEnds rounds the ends of intervals to a type; wide ones keep what is not rounded, too.
func roundEnds(d hlo.DType, wide bool, lo, hi []float64) {
	if !wide && d.Bits() >= 16 {
		roundStrip(d, lo) // the infinities of what can be anything stay
		roundStrip(d, hi)
		return
	}
	for n, l := range lo {
		h := hi[n]
		if l > h {
			continue
		}
		lo[n] = kernels.RoundFloat(d, l)
		hi[n] = kernels.RoundFloat(d, h)
		if wide && l == l {
			lo[n] = min(lo[n], l)
			hi[n] = max(hi[n], h)
		}
	}
}

// magnitude is |x|, and 0 of infinities, which have no error.
func magnitude(
	x float64,
) float64 {
	if math.IsInf(x, 0) {
		return 0
	}
	return math.Abs(x)
}
