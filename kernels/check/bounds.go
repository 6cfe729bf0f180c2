package check

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

const (
	// The largest work of a computation whose elements have bounds, some ten seconds.
	maxBoundsWork = 1 << 27
	// Products of a contraction that take as long as an element of other operations.
	productsPerElement = 256
)

// boundsWork is the number of elements that bounds are computed of.
func boundsWork(c *hlo.Computation) float64 {
	total := 0.0
	for _, i := range c.Instrs {
		elements := 0.0
		for _, s := range i.Shape.Arrays() {
			elements += float64(s.Elements())
		}
		switch i.Op {
		case hlo.OpDot, hlo.OpScaledDot, hlo.OpConvolution:
			elements *= 1 + reference.Terms(i)/productsPerElement
		case hlo.OpReduce, hlo.OpReduceWindow:
			elements *= reference.Terms(i)
		}
		total += elements
	}
	return total
}

// bounds are the intervals of the elements of each output (reference.Bounds). They are
// computed when they are first needed.
type bounds struct {
	c        *hlo.Computation
	in       []kernels.Buffer
	accuracy reference.Accuracy

	mu    sync.Mutex
	known bool
	of    []reference.Interval
}

// all is nil where they take too long, or an operation has none; the error is that of
// ctx.
func (b *bounds) all(ctx context.Context) ([]reference.Interval, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known || boundsWork(b.c) > maxBoundsWork || keptElements(b.c) > maxWholeElements {
		return b.of, nil
	}
	of, err := reference.Bounds(ctx, b.c, b.in, b.accuracy)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil {
		b.of = of
	}
	b.known = true
	return b.of, nil
}

// equalBits reports whether two arrays of one layout have the same bytes.
func equalBits(x, y kernels.Buffer) bool {
	return slices.Equal(x.Shape.Strides(), y.Shape.Strides()) && bytes.Equal(x.Data, y.Data)
}

// readsBits reports whether c uses the bits of floats that it has computed.
func readsBits(c *hlo.Computation) bool {
	return slices.ContainsFunc(c.Instrs, func(i *hlo.Instr) bool {
		switch i.Op {
		case hlo.OpFusion, hlo.OpCall:
			return readsBits(i.Attrs.Calls)
		case hlo.OpBitcastConvert:
			x := i.Operands[0]
			return x.Op != hlo.OpParameter && x.Shape.DType.IsFloat()
		}
		return false
	})
}

// compareBounds describes the elements of an output that are outside of their
// intervals; it is nil if there are none.
func compareBounds(
	output int, got, want kernels.Buffer, in reference.Interval,
) *Mismatch {
	m := &Mismatch{Output: output, Shape: want.Shape}
	dims := want.Shape.Dims
	g := reference.NewWalk(dims, got.Shape.Strides())
	w := reference.NewWalk(dims, want.Shape.Strides())
	worst := -1.0
	for n := range want.Shape.Elements() {
		x := got.Float(g.Next())
		y := want.Float(w.Next())
		if in.Contains(n, x) {
			continue
		}
		m.Wrong++
		allowed := allowedBy(in, n, y)
		if d := distance(x, y) / max(allowed, math.SmallestNonzeroFloat64); d > worst {
			worst = d
			m.Got, m.Want, m.Allowed = x, y, allowed
			m.Index = reference.Unravel(n, dims)
		}
	}
	if m.Wrong == 0 {
		return nil
	}
	return m
}

// allowedBy is the difference from y that the interval of element n allows.
func allowedBy(in reference.Interval, n int64, y float64) float64 {
	if y-y != 0 {
		return 0
	}
	return max(distance(in.Hi[n], y), distance(in.Lo[n], y))
}
