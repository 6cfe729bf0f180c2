package check

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

const (
	// The largest number of element operations that the reference evaluates as
	// a whole, in some ten seconds.
	maxWholeWork = 1 << 34
	// Number of elements of each output that are compared of larger
	// computations.
	samplesPerOutput = 256
)

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
		case hlo.OpDot, hlo.OpScaledDot, hlo.OpConvolution,
			hlo.OpReduce, hlo.OpReduceWindow:
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
// others at random.
func samplesOf(
	c *hlo.Computation, in []kernels.Buffer, seed int64,
) ([]elementSample, error) {
	s := reference.NewElementEvaluator(c, in)
	rng := rand.New(rand.NewPCG(uint64(seed), 0x73706f74))
	var all []elementSample
	for k, shape := range kernels.OutputShapes(c) {
		n := shape.Elements()
		for j := range min(samplesPerOutput, n) {
			at := rng.Int64N(n)
			switch j {
			case 0:
				at = 0
			case 1:
				at = n - 1
			}
			v, err := s.Output(k, at)
			if err != nil {
				return nil, err
			}
			all = append(all, elementSample{
				k, reference.Unravel(at, shape.Dims), v,
			})
		}
	}
	return all, nil
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

// compareSamples compares the samples, and searches for elements that were not
// written.
func compareSamples(got []kernels.Buffer, samples []elementSample, allowed []float64) error {
	for k, b := range got {
		if at := firstUnwritten(b); at >= 0 {
			return fmt.Errorf("output %d (%s): the element at place %d was not written", k, b.Shape, at)
		}
	}
	var m *Mismatch
	for _, s := range samples {
		b := got[s.output]
		x := b.Float(b.At(s.index))
		if within(x, s.want, allowed[s.output]) {
			continue
		}
		if m == nil {
			m = &Mismatch{
				Output:  s.output,
				Shape:   b.Shape,
				Index:   s.index,
				Got:     x,
				Want:    s.want,
				Allowed: allowed[s.output],
			}
		}
		m.Wrong++
	}
	if m == nil {
		return nil
	}
	return m
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
