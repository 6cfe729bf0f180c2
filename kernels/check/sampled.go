package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

const (
	// The largest number of element operations that the reference evaluates as a
	// whole, in about a second.
	maxWholeWork = 1 << 30
	// The largest number of elements of all instructions together that the reference
	// keeps, 8 bytes each.
	maxWholeElements = 1 << 25
	// Of fewer elements of all outputs there is no sample; up to so many element
	// operations, in some ten seconds, they are evaluated as a whole then.
	fewOutputs       = 64
	maxReductionWork = 1 << 34
	// Number of elements of each output that are compared of larger
	// computations.
	samplesPerOutput = 1024
	// The operations on single elements, of about a microsecond each, that the samples
	// of an output may take; the samples that this must allow; and the share of it
	// after which further samples are left out.
	sampleBudget  = 1 << 25
	fewestSamples = 4
	samplesShare  = 1. / 16
	// Elements that the intervals of samples may need, in about a second; where those of all
	// samples need more there are those of this part of them.
	intervalBudget = 1 << 21
	fewerIntervals = 4
)

// tooLargeForAll reports whether only some elements of c are evaluated.
func tooLargeForAll(c *hlo.Computation) bool {
	work, outputs := elementOperations(c), int64(0)
	for _, s := range kernels.OutputShapes(c) {
		outputs += s.Elements()
	}
	if outputs < fewOutputs {
		return work > maxReductionWork ||
			inputBytes(c)+valueBytes*reference.PeakElements(c) > maxHeldBytes
	}
	return work > maxWholeWork || keptElements(c) > maxWholeElements
}

// keptElements is the number of elements of all instructions.
func keptElements(c *hlo.Computation) (kept float64) {
	for _, i := range c.Instrs {
		for _, s := range i.Shape.Arrays() {
			kept += float64(s.Elements())
		}
	}
	return kept
}

// productsPerOperation is the number of products of a contraction that take as long as
// another element operation, or less.
const productsPerOperation = 8

// elementOperations is roughly the number of element operations of a
// computation.
func elementOperations(c *hlo.Computation) float64 {
	total := 0.0
	for _, i := range c.Instrs {
		elements := 0.0
		for _, s := range i.Shape.Arrays() {
			elements += float64(s.Elements())
		}
		switch i.Op {
		case hlo.OpDot, hlo.OpScaledDot, hlo.OpConvolution:
			elements *= 1 + reference.Terms(i)/productsPerOperation
		case hlo.OpReduce, hlo.OpReduceWindow:
			elements *= reference.Terms(i)
		}
		total += elements
	}
	return total
}

// An elementSample is one element of an output with the value that is expected.
type elementSample struct {
	output int
	index  []int64
	want   float64
}

// samplesOf evaluates some elements of each output: the first, the last, and
// others at random, as many as the budget of operations allows; each of these two may take
// all of it. Their indices along each dimension are few, so that they share rows of
// operands, but the number of combinations is that of the samples.
func samplesOf(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer, place reference.Place,
	seed, budget int64,
) (all []elementSample, err error) {
	evaluator := reference.NewElementEvaluator(ctx, c, in, 0)
	evaluator.SetPlace(place)
	rng := rand.New(rand.NewPCG(uint64(seed), 0x73706f74))
	for k, shape := range kernels.OutputShapes(c) {
		s := outputSampler{
			evaluator: evaluator,
			output:    k,
			dims:      shape.Dims,
			elements:  shape.Elements(),
			budget:    budget,
			rng:       rng,
		}
		if err := s.sample(); err != nil {
			return nil, err
		}
		all = append(all, s.samples...)
	}
	return all, nil
}

// An outputSampler evaluates samples of an output.
type outputSampler struct {
	evaluator *reference.ElementEvaluator
	output    int
	dims      []int64
	elements  int64
	budget    int64 // of operations on single elements
	rng       *rand.Rand

	spent   int64 // of the budget, before the last SetBudget
	samples []elementSample
}

// sample evaluates them.
func (s *outputSampler) sample() error {
	for k := range min(2, s.elements) {
		s.evaluator.SetBudget(s.budget)
		last := s.elements - 1
		if err := s.add(k * last); err != nil {
			return err
		}
		s.spent += s.evaluator.Spent()
	}
	left := max(0, s.budget-s.spent)
	s.evaluator.SetBudget(left)
	grid := newSampleGrid(s.dims, s.rng)
	err := s.more(grid.place)
	few := min(fewestSamples, s.elements)
	if err != nil || s.taken() >= few {
		return err
	}
	s.spent = 0
	s.evaluator.SetBudget(s.share())
	return s.more(s.beside)
}

// taken is the number of samples so far.
func (s *outputSampler) taken() int64 { return int64(len(s.samples)) }

// share is the part of the budget after which further samples are left out.
func (s *outputSampler) share() int64 {
	return int64(samplesShare * float64(s.budget))
}

// add evaluates the element at a place.
func (s *outputSampler) add(at int64) error {
	v, err := s.evaluator.Output(s.output, at)
	if err != nil {
		return err
	}
	index := reference.Unravel(at, s.dims)
	s.samples = append(
		s.samples, elementSample{s.output, index, v},
	)
	return nil
}

// more adds samples at places until they are as many as an output has, or over the budget.
func (s *outputSampler) more(place func(*rand.Rand) int64) error {
	var over *reference.BudgetError
	most := min(samplesPerOutput, s.elements)
	for s.taken() < most {
		spent := s.spent + s.evaluator.Spent()
		if s.taken() >= fewestSamples && spent > s.share() {
			break
		}
		err := s.add(place(s.rng))
		if errors.As(err, &over) {
			break
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// beside is a place in a row that a sample lies in: where samples are dear, as those of a
// norm of products of products, their neighbours have the same operands.
func (s *outputSampler) beside(rng *rand.Rand) int64 {
	n := rng.IntN(len(s.samples))
	index := slices.Clone(s.samples[n].index)
	if d := len(index) - 1; d >= 0 {
		index[d] = rng.Int64N(s.dims[d])
	}
	return placeOf(index, s.dims)
}

// allowedAt is the tolerated difference from the samples of each output.
func (t Tolerance) allowedAt(outputs []kernels.Buffer, samples []elementSample) []float64 {
	allowed := make([]float64, len(outputs))
	for k := range allowed {
		allowed[k] = float64(t.Units)
		if outputs[k].Shape.DType.IsFloat() {
			allowed[k] = 0
		}
	}
	for _, s := range samples {
		d := distance(s.want, 0)
		if outputs[s.output].Shape.DType.IsFloat() &&
			d*0 == 0 {
			allowed[s.output] = max(
				allowed[s.output], t.Relative*d,
			)
		}
	}
	return allowed
}

// compareSampled describes what is wrong with the outputs of a run; nil if a correct
// kernel may have computed them. Samples out of tolerance are compared with what other
// roundings do to them, and all with their intervals, as the elements of smaller
// computations are.
func (c *verifyCase) compareSampled(ctx context.Context, out []kernels.Buffer) (wrong, err error) {
	for k, b := range out {
		if at := c.aliases.firstUnwritten(k, b); at >= 0 {
			return fmt.Errorf("output %d (%s): the element at place %d was not written", k, b.Shape, at), nil
		}
	}
	outside := c.samplesOutside(out)
	for _, n := range outside {
		s := c.samples[n]
		m := s.mismatch(out[s.output])
		m.Wrong = int64(len(outside))
		m.Allowed, err = c.allowedOf(ctx, n, m.Got)
		if err != nil {
			return nil, err
		}
		if !within(m.Got, m.Want, m.Allowed) && !c.decidedByBounds(m) {
			return m, nil
		}
	}
	return c.outsideIntervals(ctx, out, outside)
}

// decidedByBounds reports whether tolerances do not tell what is wrong with m: a rounding
// makes a NaN or other bits of it (see compare).
func (c *verifyCase) decidedByBounds(m *Mismatch) bool {
	return c.intervals != nil && (!m.isFinite() || readsBits(c.intervals.c))
}

// outsideIntervals describes the samples that are outside of their intervals, which are not
// known of all. outside has the numbers of those that are out of tolerance.
func (c *verifyCase) outsideIntervals(
	ctx context.Context, out []kernels.Buffer, outside []int,
) (wrong, err error) {
	if c.intervals == nil || len(outside) == 0 && c.sampledAlike(out) {
		return nil, nil
	}
	all, err := c.intervals.all(ctx)
	if err != nil {
		return nil, err
	}
	var first *Mismatch
	for n, s := range c.samples {
		m := s.mismatch(out[s.output])
		if n >= len(all) {
			if slices.Contains(outside, n) && c.decidedByBounds(m) {
				return m, nil // nothing else says that it may be right
			}
			continue
		}
		owned := c.aliases.owns(s.output, out[s.output].At(s.index), m.Shape.DType.Size())
		if !owned || all[n].Contains(0, m.Got) {
			continue
		}
		m.Allowed = allowedBy(all[n], 0, m.Want)
		if first == nil {
			first = m
		}
		first.Wrong++
	}
	if first != nil {
		return first, nil
	}
	return nil, nil
}

// sampledAlike reports whether all samples are the reference's.
func (c *verifyCase) sampledAlike(out []kernels.Buffer) bool {
	for _, s := range c.samples {
		b := out[s.output]
		if x := b.Float(b.At(s.index)); x != s.want && (x == x || s.want == s.want) {
			return false
		}
	}
	return true
}

// sampledBounds are the intervals of samples (reference.BoundsAt). They are computed when
// they are first needed.
type sampledBounds struct {
	c        *hlo.Computation
	in       []kernels.Buffer
	place    reference.Place
	accuracy reference.Accuracy
	samples  []elementSample

	mu    sync.Mutex
	known bool
	of    []reference.Interval // of one element each
}

// with are the intervals of the same samples for kernels of another accuracy.
func (b *sampledBounds) with(a reference.Accuracy) *sampledBounds {
	return &sampledBounds{
		c:        b.c,
		in:       b.in,
		place:    b.place,
		accuracy: a,
		samples:  b.samples,
	}
}

// all are the intervals of the first samples, of as many as can be had; the error is that of
// ctx. The first and the last element of an output are among the first.
func (b *sampledBounds) all(ctx context.Context) ([]reference.Interval, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := len(b.samples); n > 0 && !b.known; n /= fewerIntervals {
		of, err := b.first(ctx, n)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b.known = !errors.Is(err, reference.ErrManyElements)
		b.of = of
	}
	b.known = true
	return b.of, nil
}

// first are the intervals of the first n samples.
func (b *sampledBounds) first(ctx context.Context, n int) ([]reference.Interval, error) {
	at := make([][]int64, len(kernels.OutputShapes(b.c)))
	for _, s := range b.samples[:n] {
		at[s.output] = append(at[s.output], s.place(b.c))
	}
	of, err := reference.BoundsAt(ctx, b.c, b.in, b.place, b.accuracy, at, intervalBudget)
	if err != nil {
		return nil, err
	}
	all := make([]reference.Interval, n)
	for k, s := range b.samples[:n] {
		x := of[s.output]
		all[k] = reference.Interval{Lo: x.Lo[:1], Hi: x.Hi[:1]}
		of[s.output] = reference.Interval{Lo: x.Lo[1:], Hi: x.Hi[1:]}
	}
	return all, nil
}

// samplesOutside are the numbers of the samples that are out of the tolerance that their
// outputs have. Of arrays that repeat a pool only what has memory of its own counts.
func (c *verifyCase) samplesOutside(out []kernels.Buffer) (outside []int) {
	for n, s := range c.samples {
		b := out[s.output]
		at := b.At(s.index)
		if !c.aliases.owns(s.output, at, b.Shape.DType.Size()) {
			continue
		}
		if !within(b.Float(at), s.want, c.allowed[s.output]) {
			outside = append(outside, n)
		}
	}
	return outside
}

// mismatch is that of a sample of an output.
func (s elementSample) mismatch(b kernels.Buffer) *Mismatch {
	return &Mismatch{
		Output: s.output,
		Shape:  b.Shape,
		Index:  s.index,
		Got:    b.Float(b.At(s.index)),
		Want:   s.want,
	}
}

// allowedOf is the difference that is tolerated in sample n, by a few evaluations with
// other roundings and, where got is outside of that, by many.
func (c *verifyCase) allowedOf(ctx context.Context, n int, got float64) (float64, error) {
	s := c.samples[n]
	allowed := c.allowed[s.output]
	if c.moved == nil {
		return allowed, nil
	}
	for _, evaluations := range []int{fewPerturbations, manyPerturbations} {
		d, err := c.moved.of(ctx, n, s, evaluations)
		if err != nil {
			return 0, err
		}
		allowed = max(allowed, deviationFactor*d)
		if within(got, s.want, allowed) || got-got != s.want-s.want {
			break
		}
	}
	return allowed, nil
}

// sampledDeviations are those of samples under other roundings
// (reference.ElementDeviations). They are computed when they are first needed.
type sampledDeviations struct {
	c     *hlo.Computation
	in    []kernels.Buffer
	place reference.Place
	seed  int64

	mu    sync.Mutex
	known map[sampledDeviation]float64
	// By the number of evaluations; they look at a context.
	evaluators map[int]*reference.ElementDeviations
	ctx        context.Context
}

// A sampledDeviation names that of a sample by some number of evaluations.
type sampledDeviation struct{ sample, evaluations int }

// of is the deviation of sample n; 0 where it would take more operations than the
// budget has left for all of them. The error is that of ctx.
func (d *sampledDeviations) of(
	ctx context.Context, n int, s elementSample, evaluations int,
) (float64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := sampledDeviation{n, evaluations}
	if x, met := d.known[key]; met {
		return x, nil
	}
	if d.known == nil {
		d.known = map[sampledDeviation]float64{}
	}
	x, err := d.evaluator(ctx, evaluations).Output(s.output, s.place(d.c))
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, nil // over the budget: what a sample may be off by is not known
	}
	d.known[key] = x
	return x, nil
}

// evaluator is that of some number of evaluations which looks at ctx.
func (d *sampledDeviations) evaluator(
	ctx context.Context, evaluations int,
) *reference.ElementDeviations {
	if d.ctx != ctx {
		d.ctx = ctx
		d.evaluators = map[int]*reference.ElementDeviations{}
	}
	e := d.evaluators[evaluations]
	if e == nil {
		e = reference.NewElementDeviations(
			ctx, d.c, d.in, d.seed, evaluations, sampleBudget,
		)
		e.SetPlace(d.place)
		d.evaluators[evaluations] = e
	}
	return e
}

// place is the row-major number of a sample.
func (s elementSample) place(c *hlo.Computation) int64 {
	return placeOf(s.index, kernels.OutputShapes(c)[s.output].Dims)
}

// placeOf is the row-major number of an index.
func placeOf(index, dims []int64) (at int64) {
	for d, n := range dims {
		at = at*n + index[d]
	}
	return at
}

// firstUnwritten is the position of a floating-point element that still has the
// poison, −1 if there is none. No operation has that NaN as its result.
func firstUnwritten(b kernels.Buffer) int64 {
	size := int(b.Shape.DType.Size())
	if !b.Shape.DType.IsFloat() || size < 2 {
		return -1
	}
	hole := bytes.Repeat([]byte{poison}, size)
	for from := 0; ; {
		k := bytes.Index(b.Data[from:], hole)
		if k < 0 {
			return -1
		}
		if k += from; k%size == 0 {
			return int64(k / size)
		}
		from = k + 1
	}
}

// A sampleGrid is indices along each dimension of an array, the first and the last
// among them.
type sampleGrid struct {
	dims    []int64
	indices [][]int64
}

// newSampleGrid chooses indices, as many along each dimension that is not trivial,
// which have samplesPerOutput combinations.
func newSampleGrid(dims []int64, rng *rand.Rand) sampleGrid {
	rank := 0
	for _, n := range dims {
		if n > 1 {
			rank++
		}
	}
	each := int(math.Ceil(math.Pow(samplesPerOutput, 1/float64(max(1, rank)))))
	g := sampleGrid{dims, make([][]int64, len(dims))}
	for d, n := range dims {
		g.indices[d] = []int64{0, n - 1}
		for n > 2 && len(g.indices[d]) < each {
			g.indices[d] = append(g.indices[d], rng.Int64N(n))
		}
	}
	return g
}

// place is the row-major number of an element with such indices.
func (g sampleGrid) place(rng *rand.Rand) (at int64) {
	for d, n := range g.dims {
		at = at*n + g.indices[d][rng.IntN(len(g.indices[d]))]
	}
	return at
}
