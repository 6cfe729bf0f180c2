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

// A Tolerance bounds |got − want| by Relative·max|want| over the output, and
// whole-number outputs by Units.
type Tolerance struct {
	Relative float64
	Units    int64
}

// ToleranceOf is what a correct kernel may differ from Reference: a rounding
// error of a few units of the coarsest type a result is rounded to for each of
// the operations on the longest path, and √k units of the type sums are kept
// in (f32, or f64 for f64) for sums of k terms: the standard deviation of k
// independent roundings, times 4 (Higham, Accuracy and Stability of Numerical
// Algorithms, §2.8). What is only moved must be the same in every bit.
func ToleranceOf(c *hlo.Computation) Tolerance { return toleranceOf(c, 0) }

// toleranceOf is ToleranceOf where some values are rounded to a type that is
// so coarse, whatever the types of c.
func toleranceOf(c *hlo.Computation, coarsest float64) Tolerance {
	var accumulator, terms float64
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
			t.Units = 1 // a value next to a whole number may fall on its other side
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
	t.Relative = coarsest*(2+depth[c.Root]) +
		4*accumulator*math.Sqrt(terms)
	return t
}

// A Mismatch says how an output differs from what it should be.
type Mismatch struct {
	Output    int
	Shape     hlo.Shape
	Index     []int64 // of the worst element
	Got, Want float64
	Wrong     int64   // elements out of tolerance
	Allowed   float64 // difference
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf(
		"output %d (%s) is wrong in %d of %d elements; at %v it is %v, the reference says %v (allowed difference %.3g)",
		m.Output, m.Shape, m.Wrong,
		m.Shape.Elements(), m.Index, m.Got,
		m.Want, m.Allowed,
	)
}

// Compare returns nil when got is want within t. NaN and infinities must stand
// in the same places.
func Compare(output int, got, want kernels.Buffer, t Tolerance) *Mismatch {
	return compare(output, got, want, t.allowed(want))
}

// allowed is the difference from want that is tolerated.
func (t Tolerance) allowed(want kernels.Buffer) float64 {
	if want.Shape.DType.IsFloat() {
		return t.Relative * maxMagnitude(want)
	}
	return float64(t.Units)
}

func compare(output int, got, want kernels.Buffer, allowed float64) *Mismatch {
	m := &Mismatch{
		Output:  output,
		Shape:   want.Shape,
		Allowed: allowed,
	}
	if m.Wrong = countOutside(got, want, allowed); m.Wrong == 0 {
		return nil
	}
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

// within says whether x may stand for y.
func within(x, y, allowed float64) bool {
	return x == y || x != x && y != y ||
		math.Abs(x-y) <= allowed
}

// countOutside counts the elements that are not near enough.
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

// forEachBlock does the numbers 0 … n−1 in short runs on all cores: at is the first
// of a run, and there is room for two numbers of each.
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

// distance is |x−y|, infinite when one of them is NaN.
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

// A Verifier checks kernels of one fusion against Reference, whose results it
// keeps. It is made once and used for every plan.
type Verifier struct {
	c     *hlo.Computation
	cases []verifyCase
}

type verifyCase struct {
	name       string
	in         []kernels.Buffer
	want       []kernels.Buffer   // only their shapes count where there are samples
	samples    []elementSample    // of a computation too large to be evaluated whole
	allowed    []float64          // difference, of each output
	deviations func() [][]float64 // deviations of the outputs' elements, nil when not known
}

const integerInputs = "integer inputs"

// WrongResult is the failure of a kernel that computes something else.
type WrongResult struct {
	Case string // which inputs
	Err  error
}

func (e *WrongResult) Error() string {
	return "wrong result on " + e.Case + ": " + e.Err.Error()
}
func (e *WrongResult) Unwrap() error { return e.Err }

const (
	deviationFactor = 8       // times the root mean square of Deviations that a right kernel may be off by
	maxPerturbWork  = 1 << 30 // element operations up to which they are made
)

const maxSpikeWork = 1 << 30 // element operations up to which inputs are far apart, too

// NewVerifier runs Reference on random inputs and, where the arithmetic is
// exact, on integers, whose results must agree in every bit; where it is not,
// on numbers that are far apart. In one of the two cases an element of each
// input is NaN, which must not get further than it does in Reference, unless it
// gets nearly everywhere. Computations of
// more than 2³⁴ element operations are evaluated at 256 elements of each output
// only; that all others were written is still checked.
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

// Verify is the gate before timing: it runs k into poisoned outputs between
// red zones and compares. A *Wrong says how the kernel is wrong; other errors
// are the kernel's own.
func (v *Verifier) Verify(ctx context.Context, k kernels.Kernel) error {
	for _, c := range v.cases {
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

// compare is what is wrong with output n, nil if it may be a right kernel's.
func (c *verifyCase) compare(n int, got kernels.Buffer) *Mismatch {
	m := compare(n, got, c.want[n], c.allowed[n])
	if m == nil || c.deviations == nil {
		return m
	}
	if moved := c.deviations(); moved != nil {
		return m.beyondDeviations(got, c.want[n], moved[n])
	}
	return m
}

// Agree returns nil when got is what a right kernel may make of in, where
// Reference makes want: each output is within ToleranceOf, or each of its
// elements within what other roundings do to it. The second look costs a few
// evaluations, and is not taken at computations of more than 2³⁰ element
// operations.
func Agree(c *hlo.Computation, in, got, want []kernels.Buffer) *Mismatch {
	return ToleranceOf(c).Agree(c, in, got, want)
}

// Agree is Agree within t instead of ToleranceOf.
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

// deviationsOf is Deviations, or nil where they cost too much or are not known.
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

// beyondDeviations is m, the mismatch of got with want, or nil where every element that
// is off is off by no more than roundings may do.
func (m *Mismatch) beyondDeviations(got, want kernels.Buffer, deviation []float64) *Mismatch {
	left := *m
	left.Wrong = 0
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
		left.Wrong++
		if d := distance(x, y); d > worst {
			worst, left.Got, left.Want, left.Allowed, left.Index = d,
				x, y, allowed,
				reference.Unravel(n, want.Shape.Dims)
		}
	}
	if left.Wrong == 0 {
		return nil
	}
	return &left
}
