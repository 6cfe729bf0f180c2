package check

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Tolerance bounds the difference of an output from the reference: |got −
// want| is at most Relative times the largest |want| of the output, or Units in
// an output of whole numbers.
type Tolerance struct {
	Relative float64
	Units    int64

	// Relative error of operands of products of f32, which only bounds look at.
	operand float64
}

// ToleranceOf is the difference from the reference that a correct kernel may
// have. For each operation on the longest path it is a rounding error of a few
// units of the coarsest type that a result is rounded to. For sums of k terms
// it is √k units of the type that sums are kept in (f32, or f64 for f64), times
// 4: √k units are the standard deviation of k independent roundings (Higham,
// Accuracy and Stability of Numerical Algorithms, §2.8). Values that are only
// moved have to agree in every bit. It is at most a quarter, or one rounding of the
// coarsest type.
func ToleranceOf(c *hlo.Computation) Tolerance { return toleranceOf(c, 0) }

// toleranceOf is ToleranceOf for kernels that round some values to a type whose
// epsilon is coarsest, whatever the types of c.
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
			d := s.DType.Component()
			if d.IsFloat() &&
				(computed || i.Op == hlo.OpConvert) {
				coarsest = max(coarsest, reference.Epsilon(d))
				accumulator = max(accumulator, reference.Epsilon(reference.AccumulatorOf(d)))
			}
		}
		switch i.Op {
		case hlo.OpReducePrecision:
			_, mantissa := i.Precision()
			coarsest = max(coarsest, math.Ldexp(1, -mantissa))
		case hlo.OpDot, hlo.OpScaledDot, hlo.OpConvolution,
			hlo.OpReduce, hlo.OpReduceWindow, hlo.OpSelectAndScatter, hlo.OpScatter:
			terms = max(terms, reference.Terms(i))
		}
	}
	t.Relative = coarsest*(2+depth[c.Root]) +
		4*accumulator*math.Sqrt(terms)
	t.Relative = min(t.Relative, max(coarsest, maxRelative))
	return t
}

// maxRelative bounds a tolerance, unless one rounding of the coarsest type is more: what
// is off by more than a quarter of the largest element is right only if other roundings
// move it so (Agree). Types of 4 and 8 bits would allow anything else.
const maxRelative = 0.25

// A Mismatch describes how an output differs from the reference.
type Mismatch struct {
	// Number of the output, and its shape.
	Output int
	Shape  hlo.Shape
	// Index of the element with the largest difference.
	Index     []int64
	Got, Want float64
	// Number of elements out of tolerance.
	Wrong int64
	// The difference that was allowed.
	Allowed float64
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf(
		"output %d (%s) is wrong in %d of %d elements; at %v it is %v, the reference says %v (allowed difference %.3g)",
		m.Output, m.Shape, m.Wrong,
		m.Shape.Elements(), m.Index, m.Got,
		m.Want, m.Allowed,
	)
}

// Compare returns nil if got is within t of want. NaNs and infinities have to
// be in the same places. Of complex numbers the parts are compared.
func Compare(output int, got, want kernels.Buffer, t Tolerance) *Mismatch {
	got, want = got.Parts(), want.Parts()
	return compare(output, got, want, t.allowed(want))
}

// allowed is the difference from want that t tolerates in any of its elements.
func (t Tolerance) allowed(want kernels.Buffer) float64 {
	if want.Shape.DType.IsFloat() {
		return t.Relative * maxMagnitude(want)
	}
	return float64(t.Units)
}

// compare is Compare with the difference that is tolerated. Outputs that agree,
// the usual case, are read once in the order of memory; the worst element is
// searched in a second pass.
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
			worst = d
			m.Got = x
			m.Want = y
			m.Index = reference.Unravel(n, dims)
		}
	}
	return m
}

// within reports whether x may stand for y; two NaNs are equal.
func within(x, y, allowed float64) bool {
	return x == y || x != x && y != y ||
		math.Abs(x-y) <= allowed
}

// countOutside counts the elements that are out of tolerance, on all cores if
// both arrays have one layout.
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

// forEachBlock divides the numbers 0 … n−1 into runs of at most 1,024 and calls
// do for each of them, on all cores. at is the first number of a run; x and y
// have room for one value of each.
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

// distance is |x − y|; it is infinite if one of them is NaN.
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

// A Verifier checks kernels of one fusion against the reference interpreter.
// The reference results are computed once, by NewVerifier, and used for every
// plan.
type Verifier struct {
	c     *hlo.Computation
	cases []verifyCase
	large *guard // outputs that all runs use, where they are large; otherwise nil
	heap  func() // takes back the limit of the heap; nil where little is held
}

// A verifyCase is one set of inputs with the results that are expected.
type verifyCase struct {
	name string
	in   []kernels.Buffer
	// Expected outputs. Where there are samples only their shapes are used.
	want []kernels.Buffer
	// Makes the inputs again that a kernel has overwritten.
	restore func(context.Context) error
	// Expected elements of a computation that is too large to be evaluated as a
	// whole.
	samples []elementSample
	// Tolerated difference of each output.
	allowed []float64
	// Deviations of the elements of each output; nil if none are tolerated.
	deviations *deviations
	// The same of the samples.
	moved *sampledDeviations
	// Intervals of the elements of each output; nil if every bit has to agree.
	bounds *bounds
	// The same of the samples.
	intervals *sampledBounds
	// Nothing but bounds says what agrees.
	boundsOnly bool
	// Arrays that do not have as much memory; nil for most.
	aliases *aliases
}

const (
	// integerInputs names the case whose results have to agree in every bit.
	integerInputs = "integer inputs"
	// randomInputs names the case on whose inputs kernels are timed.
	randomInputs = "random inputs"
)

// A WrongResult is the error of a kernel that computes something else than the
// reference.
type WrongResult struct {
	// The inputs on which it does.
	Case string
	// A *Mismatch, or a write outside of the outputs.
	Err error
}

func (e *WrongResult) Error() string {
	return "wrong result on " + e.Case + ": " + e.Err.Error()
}
func (e *WrongResult) Unwrap() error { return e.Err }

const (
	// The root mean square of deviations is multiplied by this to bound what a
	// correct kernel may be off by.
	deviationFactor = 8
	// The largest number of element operations for which deviations are
	// computed.
	maxPerturbWork = 1 << 30
	// Evaluations with other roundings: many as long as they are of so many
	// element operations together, and a few in any case.
	manyPerturbWork   = 1 << 30
	manyPerturbations = 16
	fewPerturbations  = 4
)

// maxSpikeWork is the largest number of element operations for which inputs of
// very different magnitude are tried too.
const maxSpikeWork = 1 << 30 // element operations up to which inputs are far apart, too

// NewVerifier computes the reference results on random inputs and, where the
// arithmetic is exact, on integers, whose results have to agree in every bit;
// where it is not, on inputs of very different magnitude. In one of the two
// cases an element of each input is NaN: it must not reach more elements than
// it does in the reference. That is left out if it reaches nearly all of them
// there.
//
// For computations of more than 2³⁰ element operations, or 2²⁵ elements, only 1,024
// elements of each output are evaluated; that all others are written is checked
// nevertheless. Where two cases would take more than 1.5 GiB there are random inputs only. Large arrays
// of a computation with more than 768 MiB of them repeat less memory where the system can do that (see
// large_arrays.go): then Close gives it back.
//
// When ctx ends, its cause is the error. A computation of which the reference cannot
// evaluate an element within its budget is a *reference.BudgetError.
func NewVerifier(ctx context.Context, c *hlo.Computation, seed int64) (*Verifier, error) {
	return newVerifier(ctx, c, seed, (*Verifier).addAll)
}

// NewRandomVerifier is NewVerifier with the one case of random numbers, for a second look
// at a kernel on inputs that it has not seen.
func NewRandomVerifier(ctx context.Context, c *hlo.Computation, seed int64) (*Verifier, error) {
	return newVerifier(ctx, c, seed, (*Verifier).addRandom)
}

// newVerifier makes a verifier of the cases that add adds, or of one case where arrays are
// so large that they share their memory.
func newVerifier(
	ctx context.Context, c *hlo.Computation, seed int64,
	add func(*Verifier, context.Context, *hlo.Computation, int64) error,
) (*Verifier, error) {
	v := &Verifier{c: c}
	if n := arrayBytes(c); n > maxOwnBytes && n <= maxAliasedBytes && tooLargeForAll(c) {
		if err := v.addAliased(ctx, c, largeRepetition, seed); !errors.Is(err, errors.ErrUnsupported) {
			return v, err
		}
	}
	if held := heldBytes(c, casesOf(c)); held > heapHeldFrom {
		v.heap = heap.hold(held)
	}
	err := v.guardLarge(c)
	if err == nil {
		err = add(v, ctx, c, seed)
	}
	if err != nil {
		_ = v.Close() // err says more
		return nil, err
	}
	return v, nil
}

// casesOf is the number of cases whose inputs are held at the same time, about.
func casesOf(c *hlo.Computation) int64 {
	if heldBytes(c, 2) > maxHeldBytes {
		return 1
	}
	return 2
}

// guardLarge makes the outputs of runs where these are large.
func (v *Verifier) guardLarge(c *hlo.Computation) error {
	if outputBytes(c) <= maxCopiedBytes {
		return nil
	}
	if err := checkArrays(c); err != nil {
		return err
	}
	var shapes []kernels.Buffer
	for _, s := range kernels.OutputShapes(c) {
		shapes = append(shapes, kernels.Buffer{Shape: s})
	}
	var err error
	v.large, err = guardOutputs(shapes)
	return err
}

// addAll adds all cases of a computation whose arrays have memory of their own.
func (v *Verifier) addAll(ctx context.Context, c *hlo.Computation, seed int64) error {
	switch {
	case casesOf(c) == 1:
		// one case
	case Exact(c):
		if err := v.add(ctx, c, integerInputs, Integers, seed, Tolerance{}); err != nil {
			return err
		}
	case elementOperations(c) <= maxSpikeWork:
		err := v.add(
			ctx, c, "inputs far apart", Spikes, seed, ToleranceOf(c),
		)
		if err != nil {
			return err
		}
	}
	rows, _ := scoreOperands(c)
	if rows != nil &&
		elementOperations(c) <= maxScoreWork {
		err := v.add(
			ctx, c, "scores far apart", Scores, seed, ToleranceOf(c),
		)
		if err != nil {
			return err
		}
	}
	if err := v.addExtremes(ctx, c, seed); err != nil {
		return err
	}
	return v.addRandom(ctx, c, seed)
}

// addRandom adds the case of random numbers.
func (v *Verifier) addRandom(ctx context.Context, c *hlo.Computation, seed int64) error {
	return v.add(
		ctx, c, randomInputs, Normals, seed, ToleranceOf(c),
	)
}

// add adds the case of inputs with some content.
func (v *Verifier) add(
	ctx context.Context, c *hlo.Computation,
	name string, content Content, seed int64, t Tolerance,
) (err error) {
	vc := verifyCase{name: name}
	if vc.in, err = InputsContext(ctx, c, content, seed); err != nil {
		return err
	}
	planted := content == Integers || content == Spikes
	planted = planted && !tooLargeForAll(c)
	if planted {
		plantNaN(c, vc.in)
	}
	if err := vc.expect(ctx, c, seed, t); err != nil {
		return err
	}
	if content != Normals && vc.samples == nil && mostlyNaN(vc.want) {
		if vc.in, err = InputsContext(ctx, c, content, seed); err != nil {
			return err
		}
		if err := vc.expect(ctx, c, seed, t); err != nil {
			return err
		}
		planted = false
	}
	in := vc.in
	vc.restore = func(ctx context.Context) error {
		return restoreInputs(ctx, c, in, content, seed, planted)
	}
	if content == Integers {
		vc.deviations, vc.moved, vc.bounds, vc.intervals = nil, nil, nil, nil
	}
	v.cases = append(v.cases, vc)
	return nil
}

// expect computes what is expected of the inputs of a case.
func (v *verifyCase) expect(
	ctx context.Context, c *hlo.Computation, seed int64, t Tolerance,
) (err error) {
	if tooLargeForAll(c) {
		return v.expectSamples(ctx, c, seed, t)
	}
	v.want, err = reference.InterpretContext(ctx, c, v.in)
	if err != nil {
		return err
	}
	v.allowed = t.allowedIn(*v)
	v.deviations = &deviations{c: c, in: v.in, seed: seed}
	v.bounds = &bounds{c: c, in: v.in, accuracy: reference.Accuracy{Operand: t.operand}}
	return nil
}

// expectSamples computes some elements of each output.
func (v *verifyCase) expectSamples(
	ctx context.Context, c *hlo.Computation, seed int64, t Tolerance,
) (err error) {
	for _, s := range kernels.OutputShapes(c) {
		v.want = append(v.want, kernels.Buffer{Shape: s})
	}
	if v.samples, err = samplesOf(ctx, c, v.in, v.aliases.place(v.in), seed, sampleBudget); err != nil {
		return err
	}
	v.allowed = t.allowedAt(v.want, v.samples)
	v.moved = &sampledDeviations{c: c, in: v.in, place: v.aliases.place(v.in), seed: seed}
	v.intervals = &sampledBounds{
		c: c, in: v.in, place: v.aliases.place(v.in),
		accuracy: reference.Accuracy{Operand: t.operand}, samples: v.samples,
	}
	return nil
}

// Verify runs a kernel on every case and compares the results. The outputs are
// filled with NaN before, and all buffers lie between red zones, so that
// elements that are not written, and writes outside of the outputs, are found.
// A *WrongResult describes how the kernel is wrong; another error is the
// kernel's own.
func (v *Verifier) Verify(ctx context.Context, k kernels.Kernel) error {
	_, err := v.Examine(ctx, k)
	return err
}

// Examine is Verify, and returns a witness of what a right kernel computed from the
// inputs that it is timed on.
func (v *Verifier) Examine(
	ctx context.Context, k kernels.Kernel,
) (w *Witness, err error) {
	for _, c := range v.cases {
		out, err := c.run(ctx, k, v.large)
		if err != nil {
			return nil, err
		}
		if c.name == randomInputs {
			w = newWitness(v, k, &c, out)
		}
	}
	return w, nil
}

// Close gives the memory of arrays back that do not have as much as they seem to, and ends
// the limit of the heap that large arrays have: no
// kernel may be running on them, and neither v nor its benches may be used any more.
func (v *Verifier) Close() error {
	if v.heap != nil {
		v.heap()
	}
	var errs []error
	for _, c := range v.cases {
		errs = append(errs, c.aliases.close())
	}
	return errors.Join(errs...)
}

// run runs a kernel on one case and compares the results. Outputs are those of large,
// unless it is nil.
func (c *verifyCase) run(
	ctx context.Context, k kernels.Kernel, large *guard,
) ([]kernels.Buffer, error) {
	if c.aliases != nil {
		return c.runAliased(ctx, k)
	}
	guard, err := newGuard(c.in, c.want, large)
	if err != nil {
		return nil, err
	}
	if _, err := k.Run(ctx, guard.in, guard.out); err != nil {
		return nil, err
	}
	if err := guard.intact(c.in); err != nil {
		if guard.digest != 0 {
			if err := c.restore(ctx); err != nil {
				return nil, err
			}
		}
		return nil, &WrongResult{c.name, err}
	}
	if wrong, err := c.agree(ctx, guard.out); err != nil || wrong != nil {
		return nil, wrongResult(c.name, wrong, err)
	}
	return guard.out, nil
}

// wrongResult is err, or that something is wrong with a result.
func wrongResult(name string, wrong, err error) error {
	if err != nil {
		return err
	}
	return &WrongResult{name, wrong}
}

// agree says what is wrong with the outputs of a kernel, if a correct one cannot have
// computed them. err is that of ctx.
func (c *verifyCase) agree(
	ctx context.Context, out []kernels.Buffer,
) (wrong, err error) {
	if c.samples != nil {
		return c.compareSampled(ctx, out)
	}
	for n := range c.want {
		m, err := c.compare(ctx, n, out[n])
		if err != nil {
			return nil, err
		}
		if m != nil {
			return m, nil
		}
	}
	return nil, nil
}

// compare describes what is wrong with output n; nil if a correct kernel may
// have computed it. An output out of tolerance gets a second chance: its
// elements are compared with what other roundings do to them.
func (c *verifyCase) compare(
	ctx context.Context, n int, got kernels.Buffer,
) (*Mismatch, error) {
	if !c.boundsOnly {
		m, err := c.compareAsWhole(ctx, n, got)
		if err != nil || m != nil && (c.bounds == nil || !readsBits(c.bounds.c) && m.isFinite()) {
			return m, err
		}
		// One rounding, or another NaN, changes bits by more than any tolerance; and it
		// makes a NaN of the square root of a difference that is 0 or nearly, and an infinity
		// of the other sign of one times a cosine that is 0 or nearly.
		if m != nil {
			b, err := c.bounds.all(ctx)
			if b == nil || err != nil {
				return m, err
			}
		}
	}
	if c.bounds == nil || equalBits(got, c.want[n]) {
		return nil, nil
	}
	b, err := c.bounds.all(ctx)
	if b == nil {
		return nil, err
	}
	return compareBounds(n, got, c.want[n], b[n]), nil
}

// compareAsWhole is compare with one tolerance for all elements.
func (c *verifyCase) compareAsWhole(
	ctx context.Context, n int, got kernels.Buffer,
) (*Mismatch, error) {
	m := compare(n, got, c.want[n], c.allowed[n])
	if m == nil || c.deviations == nil {
		return m, nil
	}
	rest := m
	for _, evaluations := range c.deviations.evaluations() {
		moved, err := c.deviations.all(ctx, evaluations)
		if err != nil {
			return nil, err
		}
		if moved != nil {
			rest = m.beyondDeviations(got, c.want[n], moved[n])
		}
		if rest == nil || !rest.isFinite() {
			break // what is infinite is so in all
		}
	}
	return rest, nil
}

// Agree returns nil if a correct kernel may compute got from in, for which the
// reference computes want: each output is within ToleranceOf, or each of its
// elements within what other roundings do to it. The second comparison takes a
// few evaluations and is left out for computations of more than 2³⁰ element
// operations.
func Agree(c *hlo.Computation, in, got, want []kernels.Buffer) *Mismatch {
	// A context that does not end has no error.
	m, _ := ToleranceOf(c).Agree(context.Background(), c, in, got, want, nil)
	return m
}

// Agree is the function Agree with t in place of ToleranceOf. Where the reference does not
// evaluate c, which has control flow, moved does with other roundings: evaluation n gives the
// outputs. It may be nil. The error is that of ctx.
func (t Tolerance) Agree(
	ctx context.Context, c *hlo.Computation, in, got, want []kernels.Buffer,
	moved func(ctx context.Context, n int) ([]kernels.Buffer, error),
) (*Mismatch, error) {
	got, want = partsOf(got), partsOf(want)
	k := verifyCase{
		want: want,
		deviations: &deviations{
			c: c, in: in, seed: 1, want: want, moved: moved,
		},
	}
	k.allowed = t.allowedIn(k)
	for n := range want {
		if m, err := k.compare(ctx, n, got[n]); m != nil || err != nil {
			return m, err
		}
	}
	return nil, nil
}

// partsOf are arrays with complex numbers as their parts.
func partsOf(all []kernels.Buffer) []kernels.Buffer {
	parts := make([]kernels.Buffer, len(all))
	for k, b := range all {
		parts[k] = b.Parts()
	}
	return parts
}

// Check computes what the reference expects of inputs, as NewVerifier does, and
// compares got with it. The first result says what is wrong with got, if a correct
// kernel cannot have computed it; the error is that of the reference or of ctx.
func (t Tolerance) Check(
	ctx context.Context, c *hlo.Computation, in, got []kernels.Buffer,
) (wrong, err error) {
	k := verifyCase{in: in}
	if err := k.expect(ctx, c, 1, t); err != nil {
		return nil, err
	}
	return k.agree(ctx, got)
}

// deviations are those of the elements of each output under other roundings
// (reference.Deviations). They are computed when they are first needed.
type deviations struct {
	c    *hlo.Computation
	in   []kernels.Buffer
	seed int64
	// What evaluates c with control flow, and its outputs without other roundings.
	moved func(ctx context.Context, n int) ([]kernels.Buffer, error)
	want  []kernels.Buffer

	mu sync.Mutex
	of map[int][][]float64 // By the number of evaluations; nil where they cannot be had.
}

// all is nil where they take too long or are not known; the error is that of ctx.
func (d *deviations) all(ctx context.Context, evaluations int) ([][]float64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of, known := d.of[evaluations]; known || tooLargeToPerturb(d.c) {
		return of, nil
	}
	of, err := reference.Deviations(ctx, d.c, d.in, d.seed, evaluations)
	if err != nil && d.moved != nil && ctx.Err() == nil {
		of, err = d.ofMoved(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		of = nil
	}
	if d.of == nil {
		d.of = map[int][][]float64{}
	}
	d.of[evaluations] = of
	return of, nil
}

// tooLargeToPerturb reports whether other roundings of c as a whole take too long.
func tooLargeToPerturb(c *hlo.Computation) bool {
	return elementOperations(c) > maxPerturbWork || keptElements(c) > maxWholeElements
}

// ofMoved are the deviations of what moved evaluates: a few times, since loops may take
// long.
func (d *deviations) ofMoved(ctx context.Context) ([][]float64, error) {
	of := make([][]float64, len(d.want))
	for k, w := range d.want {
		of[k] = make([]float64, w.Shape.Elements())
	}
	for n := range fewPerturbations {
		out, err := d.moved(ctx, n)
		if err != nil {
			return nil, err
		}
		for k, w := range d.want {
			forEachDifference(out[k].Parts(), w, func(at int64, x float64) {
				of[k][at] = math.Hypot(of[k][at], x/math.Sqrt(fewPerturbations))
			})
		}
	}
	return of, nil
}

// forEachDifference calls do with each element's difference of two arrays of one shape,
// in logical order; 0 where that is not finite.
func forEachDifference(x, y kernels.Buffer, do func(at int64, d float64)) {
	a := reference.NewWalk(x.Shape.Dims, x.Shape.Strides())
	b := reference.NewWalk(y.Shape.Dims, y.Shape.Strides())
	for n := range y.Shape.Elements() {
		d := x.Float(a.Next()) - y.Float(b.Next())
		if d-d != 0 {
			d = 0
		}
		do(n, d)
	}
}

// evaluations are the numbers of evaluations that deviations are estimated from: a few, which
// show that most right kernels are, and many for what is beyond those. Of an element that
// two roundings move they may cancel in all of a few.
func (d *deviations) evaluations() []int {
	n := manyPerturbWork / elementOperations(d.c)
	if n <= fewPerturbations {
		return []int{fewPerturbations}
	}
	return []int{fewPerturbations, int(min(n, manyPerturbations))}
}

// isFinite reports whether both results are numbers.
func (m *Mismatch) isFinite() bool {
	d := m.Got - m.Want
	return d-d == 0
}

// beyondDeviations is the mismatch that remains of m if every element may also
// differ by deviationFactor times its deviation; nil if none remains.
func (m *Mismatch) beyondDeviations(got, want kernels.Buffer, deviation []float64) *Mismatch {
	rest := *m
	rest.Wrong = 0
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
		rest.Wrong++
		if d := distance(x, y); d > worst {
			worst = d
			rest.Got = x
			rest.Want = y
			rest.Allowed = allowed
			rest.Index = reference.Unravel(n, want.Shape.Dims)
		}
	}
	if rest.Wrong == 0 {
		return nil
	}
	return &rest
}
