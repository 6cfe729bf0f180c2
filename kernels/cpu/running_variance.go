package cpu

import (
	"math"

	"github.com/tilewright/tilewright/kernels/cpu/portable"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A runningVariance is what an iteration of an online loop (see symtile's Program.Online)
// keeps of rows whose mean and variance it finds together: sums of x less a base.
type runningVariance struct {
	loop    *reduceLoop
	x       *value // the tile
	shift   *value // near the mean of all tiles so far
	sum     *value // Σ(x − base)
	squares []*value
	count   int // place of the number of elements so far
}

// maxShiftShare is how much of Σ(x − base)² may come from the base not being the mean,
// before the base is moved: what is subtracted from it in the end.
const maxShiftShare = 0.25

// lowerRunningVariance lowers the body b of a loop that keeps a number near a mean.
func (b *block) lowerRunningVariance(source *symtile.Loop, in *instr) {
	o := source.Online
	if b.steps(source.Body[:o.Prefix]); b.l.err != nil {
		return
	}
	of := b.l.p.Ops[o.Statistic]
	g := &runningVariance{
		loop: newReduceLoop(
			b,
			b.l.p.Ops[of.Args[0]].Tile,
			of.Instr.Attrs.Dimensions, of.Tile,
		),
		x:     materialized(b, of, 0),
		count: b.l.slotCount,
	}
	b.l.slotCount++
	g.shift = b.l.value(
		"base", portable.ClassOf(of.Instr.Shape.DType),
		o.Statistic, of.Tile.Elements(),
	)
	begin := &instr{
		name:     "begin at a mean",
		outs:     []*value{g.shift},
		tileArgs: []*value{g.x},
	}
	b.add(begin)
	in.outs = append(in.outs, g.shift)
	b.l.results[o.Statistic] = []*value{g.shift}
	if b.steps(source.Body[o.Prefix:]); b.l.err != nil {
		return
	}
	of.Args = append(
		[]int{o.Deviation}, of.Args[1:]...,
	)
	g.sum = b.accumulateInLoopAs(o.Statistic, of, in).outs[0]
	for _, n := range source.Accumulators[1:] {
		if b.l.err == nil {
			b.accumulateInLoop(n, in)
		}
	}
	for _, n := range o.SquaredDeviations {
		g.squares = append(g.squares, b.l.results[n]...)
	}
	if b.l.err != nil {
		return
	}
	if g.shift.class == portable.Float64 {
		begin.run = shiftStep[float64](b.l, g, of, in.loop)
	} else {
		begin.run = shiftStep[float32](b.l, g, of, in.loop)
	}
}

// shiftStep makes what the first iteration begins with, and adds to the loop how
// that and its iterations end.
func shiftStep[T portable.Float](
	l *lowering, g *runningVariance, of symtile.Op, lp *loop,
) step {
	d := of.Instr.Shape.DType
	mean := jitReduceStep(
		g.loop, hlo.OpAdd, d, g.shift, g.x,
	)
	if mean == nil || !l.jit {
		mean = goReduceStep[T](g.loop, hlo.OpAdd, of, &accumulator{
			outs: []*value{g.shift},
			args: []*value{g.x},
		})
	}
	lp.prologue = append(lp.prologue, func(w *worker) {
		w.slots[g.count] = 0
	})
	lp.epilogue = append(lp.epilogue, func(w *worker) {
		removeShift[T](w, g)
	})
	lp.iterationEnds = append(lp.iterationEnds, func(w *worker) {
		w.slots[g.count] += g.loop.validElements(w)
		recenter[T](w, g)
	})
	return func(w *worker) {
		if w.slots[g.count] == 0 {
			base := whole[T](w, g.shift)
			clear(base)
			mean(w)
			n := float64(g.loop.validElements(w))
			for k, x := range base {
				base[k] = finiteOrZero(T(float64(x) / n))
			}
		}
	}
}

// finiteOrZero is x, or 0 where it is not a number or infinite: less that, everything is
// what it was.
func finiteOrZero[T portable.Float](x T) T {
	if d := x - x; d != d {
		return 0
	}
	return x
}

// recenter moves the bases of rows whose mean is elsewhere by now.
func recenter[T portable.Float](w *worker, g *runningVariance) {
	n := float64(w.slots[g.count])
	base := whole[T](w, g.shift)
	sum := whole[T](w, g.sum)
	squares := whole[T](w, g.squares[0])
	for k, d := range sum {
		by := float64(d) / n
		if !(n*by*by > maxShiftShare*float64(squares[k])) {
			continue
		}
		to := T(float64(base[k]) + by)
		by = float64(to) - float64(base[k])
		if math.IsInf(by, 0) {
			continue
		}
		base[k], sum[k] = to, T(float64(d)-n*by)
		for _, q := range g.squares {
			x := &whole[T](w, q)[k]
			*x = T(float64(*x) - 2*by*float64(d) + n*by*by)
		}
	}
}

// removeShift makes sums of x less a base those of x, and of squares those of x less
// the mean.
func removeShift[T portable.Float](w *worker, g *runningVariance) {
	n := float64(w.slots[g.count])
	base := whole[T](w, g.shift)
	sum := whole[T](w, g.sum)
	for k, d := range sum {
		for _, q := range g.squares {
			x := &whole[T](w, q)[k]
			*x = T(max(0, float64(*x)-
				float64(d)*float64(d)/n))
		}
		sum[k] = T(n*float64(base[k]) + float64(d))
	}
}

// validElements is how many elements of the tile at hand are there, of a row.
func (f *reduceLoop) validElements(w *worker) int64 {
	n := int64(1)
	for _, d := range f.dims {
		switch {
		case d.kept != 0:
		case d.mask < 0:
			n *= d.size
		default:
			lo, hi := f.masks[d.mask].valid(w)
			n *= hi - lo
		}
	}
	return n
}
