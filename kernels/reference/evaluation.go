package reference

import (
	"context"
	"errors"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// An evaluation is one call of Interpret and its like, whose loops look at a context:
// arrays of a gigabyte and sums of 2³⁰ terms take seconds, and people press Ctrl-C.
type evaluation struct {
	ctx  context.Context
	done <-chan struct{}
	// Elements that were visited one after the other, for tick.
	visited int64
}

// newEvaluation looks at ctx.
func newEvaluation(ctx context.Context) *evaluation {
	return &evaluation{ctx: ctx, done: ctx.Done()}
}

const (
	// Elements of work between two looks at the context, some milliseconds.
	elementsBetweenLooks = 1 << 20
	// Visits of elements, each of which may be the evaluation of a computation,
	// between two looks.
	ticksBetweenLooks = 1 << 10
)

// errEnded is the panic that leaves the loops when the context has ended. It does not
// leave the package: see ended.
var errEnded = errors.New("the context has ended")

// look leaves the evaluation when its context has ended.
func (e *evaluation) look() {
	select {
	case <-e.done:
		panic(errEnded)
	default:
	}
}

// tick counts a visit of an element, in loops that are not divided among cores.
func (e *evaluation) tick() {
	if e.visited++; e.visited%ticksBetweenLooks == 0 {
		e.look()
	}
}

// ended makes the error of the context of the panic of look. It is deferred where an
// evaluation begins.
func (e *evaluation) ended(err *error) {
	switch p := recover(); p {
	case nil:
	case errEnded:
		*err = context.Cause(e.ctx)
	default:
		panic(p)
	}
}

// parallel is Parallel that looks at the context.
func (e *evaluation) parallel(n, cost int64, do func(lo, hi int64)) {
	step := max(1, elementsBetweenLooks/max(1, cost))
	Parallel(n, cost, func(lo, hi int64) {
		for ; lo < hi; lo += step {
			e.look()
			do(lo, min(lo+step, hi))
		}
	})
}

// droppedFrom is the number of elements from which on a value is dropped when it is read
// for the last time, so that a chain over a large array holds two values of it, not all.
const droppedFrom = 1 << 16

// lastRead are the operands of instruction n of c that are large, and that neither a later
// instruction nor the caller reads.
func lastRead(c *hlo.Computation, n int) (all []*hlo.Instr) {
	for _, o := range c.Instrs[n].Operands {
		if o == c.Root || elementsOf(o) < droppedFrom {
			continue
		}
		if !slices.ContainsFunc(c.Instrs[n+1:], func(i *hlo.Instr) bool {
			return slices.Contains(i.Operands, o)
		}) {
			all = append(all, o)
		}
	}
	return all
}

// elementsOf is the number of elements of the result of an instruction.
func elementsOf(i *hlo.Instr) (n int64) {
	if i.Shape.DType != hlo.Tuple {
		return i.Shape.Elements()
	}
	for _, s := range i.Shape.Arrays() {
		n += s.Elements()
	}
	return n
}

// PeakElements is the number of elements that Interpret holds at the same time, of 8 bytes
// each (16 of complex numbers), at most: those of all parameters to begin with.
func PeakElements(c *hlo.Computation) (peak int64) {
	held := int64(0)
	for _, p := range c.Params {
		held += elementsOf(p)
	}
	dropped := map[*hlo.Instr]bool{}
	for n, i := range c.Instrs {
		within := int64(0)
		if i.Op == hlo.OpFusion || i.Op == hlo.OpCall {
			within = PeakElements(i.Attrs.Calls)
		}
		if i.Op != hlo.OpParameter {
			held += elementsOf(i)
		}
		peak = max(peak, held+within)
		for _, o := range lastRead(c, n) {
			if !dropped[o] {
				held -= elementsOf(o)
				dropped[o] = true
			}
		}
	}
	return peak
}
