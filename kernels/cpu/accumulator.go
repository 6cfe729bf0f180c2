package cpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// The prologue of an accumulator sets its results to the initial values, and the
// epilogue rounds them to their element type, once. In between they have the class of
// the scratch, so that a sum of bf16 accumulates in f32.

// An accumulator is a reduce or dot in three parts: a prologue before its loop,
// an accumulation at the end of every iteration, and an epilogue after the
// loop. Without a loop, the three follow each other.
type accumulator struct {
	name               string
	outs               []*value      // The values that it accumulates into.
	temporaries        []*value      // Its own values while it accumulates.
	args               []*value      // The values that it accumulates.
	inits              []*value      // The values it begins with.
	prologue, epilogue []step        // What runs before the loop, and after it.
	accumulate         step          // What runs at the end of an iteration.
	reduction          *rowReduction // The reduction, where row kernels can do it.
	overwrites         bool          // Accumulating begins with the initial values itself.
	// empty reports whether nothing was accumulated and outs hold arbitrary
	// elements. It is nil where outs hold the values to begin with.
	empty func(w *worker) bool
}

// lowerAccumulator lowers op n. Masks of what it accumulates are evaluated
// where b begins.
func (b *block) lowerAccumulator(n int) *accumulator {
	return b.lowerAccumulatorAs(n, b.l.p.Ops[n])
}

// lowerAccumulatorAs is lowerAccumulator of op n with other arguments.
func (b *block) lowerAccumulatorAs(n int, op symtile.Op) *accumulator {
	c := &accumulator{name: string(op.Code)}
	shapes := []hlo.Shape{op.Instr.Shape}
	if op.Instr.Shape.DType == hlo.Tuple {
		shapes = op.Instr.Shape.Tuple
	}
	for k, s := range shapes {
		name := fmt.Sprintf("%%%d", n)
		if len(shapes) > 1 {
			name = fmt.Sprintf("%%%d.%d", n, k)
		}
		c.outs = append(
			c.outs,
			b.l.value(
				name, portable.ClassOf(s.DType), n,
				op.Tile.Elements(),
			),
		)
	}
	b.l.results[n] = c.outs
	switch r := b.l.running[n]; {
	case op.Code == hlo.OpDot:
		b.dot(op, c)
	case r != nil:
		b.runningReduce(r, n, op, c)
	default:
		b.reduce(op, c)
	}
	for k, s := range shapes {
		c.addBounds(op, k, s.DType)
	}
	// The parts of a divided reduction are combined in its epilogue. Those of a dot
	// are in dot.go.
	s := b.l.split
	if s != nil && s.op == n && c.reduction != nil {
		c.splitReduction(s, c.outs[0], c.reduction.monoid)
	}
	return c
}

// addBounds adds the prologue and epilogue of result k: the initial value, and
// the narrowing to its element type.
func (c *accumulator) addBounds(op symtile.Op, k int, d hlo.DType) {
	// Dots have no initial value; they know that they are empty.
	var start *value
	if op.Code == hlo.OpReduce && !c.overwrites {
		start = c.inits[k]
	}
	switch c.outs[k].class {
	case portable.Float32:
		addBoundsAs[float32](c, c.outs[k], start, d)
	case portable.Float64:
		addBoundsAs[float64](c, c.outs[k], start, d)
	case portable.Int32:
		addBoundsAs[int32](c, c.outs[k], start, d)
	case portable.Int64:
		addBoundsAs[int64](c, c.outs[k], start, d)
	}
}

// addBoundsAs is addBounds for values of one class.
func addBoundsAs[T portable.Number](c *accumulator, v, start *value, d hlo.DType) {
	if start != nil {
		c.prologue = append(c.prologue, func(w *worker) {
			portable.Fill(whole[T](w, v), first[T](w, start))
		})
	}
	if fit := portable.Narrowing[T](d); fit != nil {
		c.epilogue = append(c.epilogue, func(w *worker) {
			x := whole[T](w, v)
			fit(x, x)
		})
	}
}

// accumulateAtOnce lowers an accumulator without a loop.
func (b *block) accumulateAtOnce(n int) *accumulator {
	c := b.lowerAccumulator(n)
	all := append(
		append(c.prologue, c.accumulate), c.epilogue...,
	)
	// A row kernel that takes the reduction over begins with the initial value itself.
	if c.reduction != nil {
		c.reduction.init = c.inits[0]
		c.reduction.initSteps = c.prologue
	}
	b.add(&instr{
		name:      c.name,
		reduction: c.reduction,
		outs:      append(c.temporaries, c.outs...),
		tileArgs:  append(c.args, c.inits...),
		run: func(w *worker) {
			for _, f := range all {
				f(w)
			}
		},
	})
	return c
}

// accumulateInLoop lowers an accumulator of a loop, whose body is b.
func (b *block) accumulateInLoop(n int, in *instr) *accumulator {
	return b.accumulateInLoopAs(n, b.l.p.Ops[n], in)
}

// accumulateInLoopAs is accumulateInLoop of op n with other arguments.
func (b *block) accumulateInLoopAs(n int, op symtile.Op, in *instr) *accumulator {
	c := b.lowerAccumulatorAs(n, op)
	if b.l.err != nil {
		return c
	}
	// The loop makes the results, which live through all iterations, and an
	// instruction at the end of its body accumulates into them.
	in.outs = append(in.outs, c.outs...)
	in.tileArgs = append(in.tileArgs, c.inits...)
	in.loop.prologue = append(
		in.loop.prologue, c.prologue...,
	)
	in.loop.epilogue = append(
		in.loop.epilogue, c.epilogue...,
	)
	b.add(&instr{
		name:      "accumulate " + c.name,
		outs:      c.temporaries,
		tileArgs:  append(c.args, c.outs...),
		reduction: c.reduction,
		run:       c.accumulate,
	})
	return c
}

// turnedProducts is a program in which a dot that only a transpose of its rows and columns
// reads makes the transposed matrix itself, of the transposed operands: (A·B)ᵀ = Bᵀ·Aᵀ. The
// transpose is another name of it then. Sums have the same terms in the same order.
func turnedProducts(p *symtile.Program) *symtile.Program {
	q := p
	for n, op := range p.Ops {
		if op.Code != hlo.OpTranspose ||
			!turnsProduct(p, op) {
			continue
		}
		if q == p {
			clone := *p
			clone.Ops = slices.Clone(p.Ops)
			q = &clone
		}
		at := op.Args[0]
		q.Ops[at] = turnedProduct(p.Ops[at], op)
		q.Ops[n].Code = hlo.OpCopy
		q.Ops[n].Perm = nil
	}
	return q
}

// turnsProduct reports whether a transpose exchanges the rows and columns of a dot that
// nothing else reads.
func turnsProduct(p *symtile.Program, op symtile.Op) bool {
	n := op.Args[0]
	dot := p.Ops[n]
	if !isDot(dot) || len(readersOf(p, dot.Instr)) != 1 {
		return false
	}
	for _, r := range p.Roots {
		if r.Op == n {
			return false
		}
	}
	a := dot.Instr.Attrs
	batch := len(a.LHSBatch)
	left := p.Ops[dot.Args[0]].Tile
	columns := len(left) - len(a.LHSContract) // where they begin
	var order []int
	for k := range op.Perm {
		order = append(order, k)
	}
	// batch, rows, columns to batch, columns, rows
	return slices.Equal(op.Perm, slices.Concat(
		order[:batch],
		order[columns:],
		order[batch:columns],
	))
}

// readersOf are the ops that read an instruction, as often as they do.
func readersOf(p *symtile.Program, i *hlo.Instr) (list []int) {
	for n, user := range p.Ops {
		for _, arg := range user.Args {
			if p.Ops[arg].Instr == i {
				list = append(list, n)
			}
		}
	}
	return list
}

// turnedProduct is a dot with its operands exchanged, which makes the tile of a transpose.
func turnedProduct(dot, transpose symtile.Op) symtile.Op {
	i := *dot.Instr
	a := dot.Instr.Attrs
	i.Shape = transpose.Instr.Shape
	i.Operands = exchanged(i.Operands)
	i.Attrs.LHSBatch = a.RHSBatch
	i.Attrs.RHSBatch = a.LHSBatch
	i.Attrs.LHSContract = a.RHSContract
	i.Attrs.RHSContract = a.LHSContract
	dot.Instr = &i
	dot.Tile = transpose.Tile
	dot.Args = exchanged(dot.Args)
	return dot
}

// exchanged is two elements in the other order.
func exchanged[T any](x []T) []T {
	return []T{x[1], x[0]}
}
