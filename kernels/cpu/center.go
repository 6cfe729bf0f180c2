package cpu

import (
	"math"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A center is what an iteration of an online loop (see symtile's Program.Online)
// keeps of rows whose mean and variance it finds together: sums of x less a base.
type center struct {
	f       *folding
	x       *value // the tile
	base    *value // near the mean of all tiles so far
	sum     *value // Σ(x − base)
	squares []*value
	count   int // place of the number of elements so far
}

// drift is how much of Σ(x − base)² may come from the base not being the mean,
// before the base is moved: what is subtracted from it in the end.
const drift = 0.25

// centered lowers the body b of a loop that keeps a number near a mean.
func (b *block) centered(source *symtile.Loop, in *instr) {
	o := source.Online
	if b.steps(source.Body[:o.Before]); b.l.err != nil {
		return
	}
	of := b.l.p.Ops[o.Of]
	g := &center{f: newFolding(b, b.l.p.Ops[of.Args[0]].Tile, of.Instr.Attrs.Dimensions, of.Tile), x: everywhere(b, of, 0), count: b.l.places}
	b.l.places++
	g.base = b.l.value("base", classOf(of.Instr.Shape.DType), o.Of, of.Tile.Elements())
	begin := &instr{name: "begin at a mean", outs: []*value{g.base}, full: []*value{g.x}}
	b.add(begin)
	in.outs = append(in.outs, g.base)
	b.l.of[o.Of] = []*value{g.base}
	if b.steps(source.Body[o.Before:]); b.l.err != nil {
		return
	}
	of.Args = append([]int{o.Less}, of.Args[1:]...)
	g.sum = b.accumulateAs(o.Of, of, in).outs[0]
	for _, n := range source.Closers[1:] {
		if b.l.err == nil {
			b.accumulateIn(n, in)
		}
	}
	for _, n := range o.Squares {
		g.squares = append(g.squares, b.l.of[n]...)
	}
	if b.l.err != nil {
		return
	}
	if g.base.class == classF64 {
		begin.run = centering[float64](b.l, g, of, in.loop)
	} else {
		begin.run = centering[float32](b.l, g, of, in.loop)
	}
}

// centering makes what the first iteration begins with, and adds to the loop how
// that and its iterations end.
func centering[T floating](l *lowering, g *center, of symtile.Op, lp *loop) step {
	d := of.Instr.Shape.DType
	mean := foldedByMachine(g.f, hlo.OpAdd, d, g.base, g.x)
	if mean == nil || !l.machine {
		mean = folded[T](g.f, hlo.OpAdd, of, &closer{outs: []*value{g.base}, full: []*value{g.x}})
	}
	lp.before = append(lp.before, func(w *worker) { w.places[g.count] = 0 })
	lp.after = append(lp.after, func(w *worker) { complete[T](w, g) })
	lp.ends = append(lp.ends, func(w *worker) {
		w.places[g.count] += g.f.count(w)
		moved[T](w, g)
	})
	return func(w *worker) {
		if w.places[g.count] == 0 {
			base := whole[T](w, g.base)
			clear(base)
			mean(w)
			n := float64(g.f.count(w))
			for k, x := range base {
				base[k] = orZero(T(float64(x) / n))
			}
		}
	}
}

// orZero is x, or 0 where it is not a number or infinite: less that, everything is
// what it was.
func orZero[T floating](x T) T {
	if d := x - x; d != d {
		return 0
	}
	return x
}

// moved moves the bases of rows whose mean is elsewhere by now.
func moved[T floating](w *worker, g *center) {
	n := float64(w.places[g.count])
	base, sum, squares := whole[T](w, g.base), whole[T](w, g.sum), whole[T](w, g.squares[0])
	for k, d := range sum {
		by := float64(d) / n
		if !(n*by*by > drift*float64(squares[k])) {
			continue
		}
		to := T(float64(base[k]) + by)
		if by = float64(to) - float64(base[k]); math.IsInf(by, 0) {
			continue
		}
		base[k], sum[k] = to, T(float64(d)-n*by)
		for _, q := range g.squares {
			x := &whole[T](w, q)[k]
			*x = T(float64(*x) - 2*by*float64(d) + n*by*by)
		}
	}
}

// complete makes sums of x less a base those of x, and of squares those of x less
// the mean.
func complete[T floating](w *worker, g *center) {
	n := float64(w.places[g.count])
	base, sum := whole[T](w, g.base), whole[T](w, g.sum)
	for k, d := range sum {
		for _, q := range g.squares {
			x := &whole[T](w, q)[k]
			*x = T(max(0, float64(*x)-float64(d)*float64(d)/n))
		}
		sum[k] = T(n*float64(base[k]) + float64(d))
	}
}

// count is how many elements of the tile at hand are there, of a row.
func (f *folding) count(w *worker) int64 {
	n := int64(1)
	for _, d := range f.dims {
		switch {
		case d.kept != 0:
		case d.limit < 0:
			n *= d.size
		default:
			lo, hi := f.limits[d.limit].span(w)
			n *= hi - lo
		}
	}
	return n
}
