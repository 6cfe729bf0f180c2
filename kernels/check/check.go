package check

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Tolerance bounds the difference of an output from the reference: |got − want| ≤
// Relative·max|want| over the output for floating-point types, and ≤ Units for
// integers.
type Tolerance struct {
	Relative float64
	Units    int64
}

// ToleranceOf is the difference from the reference that a correct kernel may have: a
// rounding error of a few units of the coarsest type that values are rounded to, for
// each operation on the longest path, and for sums of k terms 4·√k units of the type
// that sums are kept in (f32, or f64 for f64), which is 4 standard deviations of k
// independent roundings (Higham, Accuracy and Stability of Numerical Algorithms,
// §2.8). Results that are only moved must agree in every bit.
func ToleranceOf(c *hlo.Computation) Tolerance { return toleranceOf(c, 0) }

// toleranceOf is ToleranceOf where some values are rounded to a type with the given
// epsilon, whatever the types of c.
func toleranceOf(c *hlo.Computation, coarsest float64) Tolerance {
	var accumulator, terms float64
	// Depth is the number of rounding operations on the longest path to an
	// instruction.
	depth := make(
		map[*hlo.Instr]float64, len(c.Instrs),
	)
	var t Tolerance
	for _, i := range c.Instrs {
		for _, o := range i.Operands {
			depth[i] = max(depth[i], depth[o])
		}
		if i.Op == hlo.OpConvert &&
			!i.Shape.DType.IsFloat() &&
			i.Operands[0].Shape.DType.IsFloat() {
			// A float next to an integer may be rounded to its other neighbour.
			t.Units = 1
		}
		computed := !i.Op.Has(hlo.KeepsMagnitude) &&
			i.Op != hlo.OpParameter && i.Op != hlo.OpConstant
		if computed {
			depth[i]++
		}
		for _, s := range i.Shape.Arrays() {
			d := s.DType
			if d.IsFloat() &&
				(computed || i.Op == hlo.OpConvert) {
				coarsest = max(coarsest, reference.Epsilon(d))
				accumulator = max(accumulator, reference.Epsilon(reference.AccumulatorOf(d)))
			}
		}
		switch i.Op {
		case hlo.OpDot, hlo.OpScaledDot, hlo.OpConvolution,
			hlo.OpReduce, hlo.OpReduceWindow, hlo.OpSelectAndScatter, hlo.OpScatter:
			terms = max(terms, reference.Terms(i))
		}
	}
	// The first term bounds the roundings along a path, 2 more for the operands and
	// the result; the second the roundings in sums.
	t.Relative = coarsest*(2+depth[c.Root]) +
		4*accumulator*math.Sqrt(terms)
	return t
}

// A Mismatch is how an output differs from the reference.
type Mismatch struct {
	// The number and the shape of the output.
	Output int
	Shape  hlo.Shape
	// Index is the position of the worst element, with its values.
	Index     []int64
	Got, Want float64
	// Wrong is the number of elements out of tolerance.
	Wrong int64
	// Allowed is the difference that is tolerated.
	Allowed float64
}

// Error describes the worst element.
func (m *Mismatch) Error() string {
	return fmt.Sprintf(
		"output %d (%s) is wrong in %d of %d elements; at %v it is %v, the reference says %v (allowed difference %.3g)",
		m.Output, m.Shape, m.Wrong,
		m.Shape.Elements(), m.Index, m.Got,
		m.Want, m.Allowed,
	)
}

// Compare returns nil if got is want within t. NaN and infinities must be at the same
// positions.
func Compare(output int, got, want kernels.Buffer, t Tolerance) *Mismatch {
	return compare(output, got, want, t.allowed(want))
}

// allowed is the absolute difference from want that is tolerated.
func (t Tolerance) allowed(want kernels.Buffer) float64 {
	if want.Shape.DType.IsFloat() {
		return t.Relative * maxMagnitude(want)
	}
	return float64(t.Units)
}

// compare is Compare with an absolute difference. It counts first, and looks for the
// worst element only if there is a mismatch.
func compare(output int, got, want kernels.Buffer, allowed float64) *Mismatch {
	m := &Mismatch{
		Output:  output,
		Shape:   want.Shape,
		Allowed: allowed,
	}
	if m.Wrong = countOutside(got, want, allowed); m.Wrong == 0 {
		return nil
	}
	// The positions of both arrays are advanced together in logical order.
	worst := -1.0
	dims := want.Shape.Dims
	g := reference.NewWalk(dims, got.Shape.Strides())
	w := reference.NewWalk(dims, want.Shape.Strides())
	for n := range want.Shape.Elements() {
		x := got.Float(g.Next())
		y := want.Float(w.Next())
		d := distance(x, y)
		if !within(x, y, allowed) && d > worst {
			worst, m.Got, m.Want, m.Index = d,
				x, y, reference.Unravel(n, dims)
		}
	}
	return m
}

// within reports whether x is y within a difference, or both are NaN.
func within(x, y, allowed float64) bool {
	return x == y || x != x && y != y ||
		math.Abs(x-y) <= allowed
}

// countOutside counts the elements that are out of tolerance. Arrays with equal
// layouts are compared in the order of memory, in parallel.
func countOutside(got, want kernels.Buffer, allowed float64) int64 {
	if !slices.Equal(got.Shape.Strides(), want.Shape.Strides()) {
		n := int64(0)
		g := reference.NewWalk(
			want.Shape.Dims, got.Shape.Strides(),
		)
		w := reference.NewWalk(
			want.Shape.Dims, want.Shape.Strides(),
		)
		for range want.Shape.Elements() {
			if !within(
				got.Float(g.Next()),
				want.Float(w.Next()),
				allowed,
			) {
				n++
			}
		}
		return n
	}
	// With equal layouts the order of the elements does not matter.
	var wrong atomic.Int64
	// in memory's order
	forEachBlock(want.Shape.Elements(), func(
		at int64, x, y []float64,
	) {
		got.ReadFloats(x, at)
		want.ReadFloats(y, at)
		n := int64(0)
		for k, v := range x {
			if !within(v, y[k], allowed) {
				n++
			}
		}
		wrong.Add(n)
	})
	return wrong.Load()
}

// forEachBlock calls do for the numbers 0 … n−1 in blocks, in parallel: at is the
// first number of a block, and x and y have room for one number each of the block.
func forEachBlock(n int64, do func(at int64, x, y []float64)) {
	const run = 1024
	reference.Parallel(n, 1, func(lo, hi int64) {
		var x, y [run]float64
		for at := lo; at < hi; at += run {
			k := min(run, hi-at)
			do(at, x[:k], y[:k])
		}
	})
}

// distance is |x−y|, infinite where one of them is NaN.
func distance(x, y float64) float64 {
	if d := math.Abs(x - y); d == d {
		return d
	}
	return math.Inf(1)
}

// maxMagnitude is the largest finite magnitude of an array.
func maxMagnitude(b kernels.Buffer) float64 {
	var mu sync.Mutex
	all := 0.0
	forEachBlock(b.Shape.Elements(), func(
		at int64, x, _ []float64,
	) {
		b.ReadFloats(x, at)
		m := 0.0
		for _, v := range x {
			v = math.Abs(v)
			if v > m && v <= math.MaxFloat64 {
				m = v
			}
		}
		mu.Lock()
		all = max(all, m)
		mu.Unlock()
	})
	return all
}

// A Verifier checks kernels of one fusion against the reference. It evaluates the
// reference once, when it is made, and is used for all plans.
type Verifier struct {
	c     *hlo.Computation
	cases []verifyCase
}

// A verifyCase is one list of inputs and the results of the reference.
type verifyCase struct {
	// Name describes the inputs in errors.
	name string
	in   []kernels.Buffer
	// Want are the expected outputs; where there are samples only their shapes count.
	want []kernels.Buffer
	// Samples are elements of the outputs of a computation that is too large to be
	// evaluated whole.
	samples []elementSample
	// Allowed is the tolerated difference of each output.
	allowed []float64
	// Deviations are the differences that rounding may cause in each element, computed
	// when they are first needed; nil where they are not known.
	deviations func() [][]float64
}

// integerInputs is the name of the case whose results must agree in every bit.
const integerInputs = "integer inputs"

// A WrongResult is the failure of a kernel that runs and computes something else.
type WrongResult struct {
	// Case names the inputs.
	Case string
	Err  error
}

// Error names the case and the difference.
func (e *WrongResult) Error() string {
	return "wrong result on " + e.Case + ": " + e.Err.Error()
}

// Unwrap is the difference, for instance a *Mismatch.
func (e *WrongResult) Unwrap() error { return e.Err }

const (
	// A right kernel may differ by deviationFactor times the root mean square of the
	// deviations (reference.Deviations).
	deviationFactor = 8
	// Deviations are computed up to this number of element operations.
	maxPerturbWork = 1 << 30
)

// maxSpikeWork bounds the element operations of computations that are checked on
// spikes, too.
const maxSpikeWork = 1 << 30 // element operations up to which inputs are far apart, too

// NewVerifier evaluates the reference on random inputs and on a second list: integers
// where the arithmetic on them is exact, so that results must agree in every bit, or
// else numbers that are far apart. In the second list an element of each input is NaN,
// and no more results may be NaN than in the reference, unless nearly all are.
// Computations of more than 2³⁴ element operations are evaluated at 256 elements of
// each output only; that the other elements are written is still checked.
func NewVerifier(c *hlo.Computation, seed int64) (*Verifier, error) {
	v := &Verifier{c: c}
	switch {
	case Exact(c):
		if err := v.add(c, integerInputs, Integers, seed, Tolerance{}); err != nil {
			return nil, err
		}
	case elementOperations(c) <= maxSpikeWork:
		err := v.add(
			c, "inputs far apart", Spikes, seed, ToleranceOf(c),
		)
		if err != nil {
			return nil, err
		}
	}
	return v, v.add(
		c, "random inputs", Normals, seed, ToleranceOf(c),
	)
}

// add evaluates the reference on inputs of the given content.
func (v *Verifier) add(
	c *hlo.Computation, name string, content Content, seed int64, t Tolerance,
) (err error) {
	vc := verifyCase{name: name}
	if vc.in, err = Inputs(c, content, seed); err != nil {
		return err
	}
	if elementOperations(c) > maxWholeWork {
		return v.addSampled(c, vc, seed, t)
	}
	if content != Normals {
		plantNaN(c, vc.in)
	}
	if vc.want, err = reference.Interpret(c, vc.in); err != nil {
		return err
	}
	// Where the NaN reaches nearly everything the case would check nothing, so it is
	// evaluated again without.
	if content != Normals && mostlyNaN(vc.want) {
		if vc.in, err = Inputs(c, content, seed); err != nil {
			return err
		}
		if vc.want, err = reference.Interpret(c, vc.in); err != nil {
			return err
		}
	}
	vc.allowed = t.allowedIn(vc)
	if content != Integers {
		vc.deviations = sync.OnceValue(func() [][]float64 {
			return deviationsOf(c, vc.in, seed)
		})
	}
	v.cases = append(v.cases, vc)
	return nil
}

// addSampled adds a case of which only some elements are known.
func (v *Verifier) addSampled(
	c *hlo.Computation, vc verifyCase, seed int64, t Tolerance,
) (err error) {
	for _, s := range kernels.OutputShapes(c) {
		b, err := kernels.NewBuffer(s)
		if err != nil {
			return err
		}
		vc.want = append(vc.want, b)
	}
	if vc.samples, err = samplesOf(c, vc.in, seed); err != nil {
		return err
	}
	vc.allowed = t.allowedAt(vc.want, vc.samples)
	v.cases = append(v.cases, vc)
	return nil
}

// Verify runs a kernel on all cases, into poisoned outputs between red zones, and
// compares. A *WrongResult describes what is wrong; other errors are the kernel's own.
func (v *Verifier) Verify(ctx context.Context, k kernels.Kernel) error {
	for _, c := range v.cases {
		// Every case has fresh copies, so that a kernel that writes to its inputs does
		// not spoil the next case.
		guard, err := newGuard(c.in, c.want)
		if err != nil {
			return err
		}
		if _, err := k.Run(ctx, guard.in, guard.out); err != nil {
			return err
		}
		if err := guard.intact(c.in); err != nil {
			return &WrongResult{c.name, err}
		}
		if c.samples != nil {
			if err := compareSamples(guard.out, c.samples, c.allowed); err != nil {
				return &WrongResult{c.name, err}
			}
			continue
		}
		for n := range c.want {
			if m := c.compare(n, guard.out[n]); m != nil {
				return &WrongResult{c.name, m}
			}
		}
	}
	return nil
}

// compare is what is wrong with output n; nil if a right kernel may compute it.
func (c *verifyCase) compare(n int, got kernels.Buffer) *Mismatch {
	m := compare(n, got, c.want[n], c.allowed[n])
	// The deviations are expensive, so they are computed for mismatches only.
	if m == nil || c.deviations == nil {
		return m
	}
	if moved := c.deviations(); moved != nil {
		return m.beyondDeviations(got, c.want[n], moved[n])
	}
	return m
}

// Agree returns nil if got is what a right kernel may compute from in, where the
// reference computes want: each output is within ToleranceOf, or each of its elements
// is within the deviations that other roundings cause. The deviations take a few
// evaluations of the reference, and are not computed for more than 2³⁰ element
// operations.
func Agree(c *hlo.Computation, in, got, want []kernels.Buffer) *Mismatch {
	return ToleranceOf(c).Agree(c, in, got, want)
}

// Agree is the function Agree with t instead of ToleranceOf.
func (t Tolerance) Agree(c *hlo.Computation, in, got, want []kernels.Buffer) *Mismatch {
	k := verifyCase{
		want: want,
		deviations: sync.OnceValue(func() [][]float64 {
			return deviationsOf(c, in, 1)
		}),
	}
	k.allowed = t.allowedIn(k)
	for n := range want {
		if m := k.compare(n, got[n]); m != nil {
			return m
		}
	}
	return nil
}

// deviationsOf are reference.Deviations; nil where they are too expensive or not
// known.
func deviationsOf(c *hlo.Computation, in []kernels.Buffer, seed int64) [][]float64 {
	if elementOperations(c) > maxPerturbWork {
		return nil
	}
	d, err := reference.Deviations(c, in, seed)
	if err != nil {
		return nil
	}
	return d
}

// beyondDeviations is m restricted to the elements that differ by more than roundings
// may cause; nil where there are none.
func (m *Mismatch) beyondDeviations(got, want kernels.Buffer, deviation []float64) *Mismatch {
	// Each element is compared with its own bound; the worst of those beyond it is
	// kept.
	remaining := *m
	remaining.Wrong = 0
	worst := -1.0
	g := reference.NewWalk(
		want.Shape.Dims, got.Shape.Strides(),
	)
	w := reference.NewWalk(
		want.Shape.Dims, want.Shape.Strides(),
	)
	for n := range want.Shape.Elements() {
		x := got.Float(g.Next())
		y := want.Float(w.Next())
		allowed := max(m.Allowed, deviationFactor*deviation[n])
		if within(x, y, allowed) {
			continue
		}
		remaining.Wrong++
		if d := distance(x, y); d > worst {
			worst, remaining.Got, remaining.Want, remaining.Allowed, remaining.Index = d,
				x, y, allowed,
				reference.Unravel(n, want.Shape.Dims)
		}
	}
	if remaining.Wrong == 0 {
		return nil
	}
	return &remaining
}
