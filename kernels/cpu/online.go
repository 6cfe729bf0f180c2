package cpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A growth is what an iteration of an online loop (see symtile's Program.Online)
// brings up to date when it has found the maximum of each row of its tile.
type growth struct {
	tile   *value // that maximum
	most   *value // of all tiles so far
	base   *value // what iterations subtract: at most slack less than that; 0 where it is −∞
	factor *value // exp(old base − new base), or 1 where nothing was met before
	sums   []*grown
}

// slack is by how much a maximum grows before sums are scaled to it: their terms
// are at most e^slack then, which every floating type has, and few rows are ever
// scaled (Ye et al., FlashInfer, and Dao, FlashAttention-4, do the same with 8·ln 2).
const slack = 1

// A grown is a sum that is proportional to exp(−most).
type grown struct {
	v     *value
	dims  []grownDim
	fresh func(w *worker) bool // nil: never
}

// A grownDim is a dimension of a sum: neighbours along it are so many elements
// apart, and so many of the factors, 0 where all have one.
type grownDim struct{ size, step, factor int64 }

// online lowers the body b of a loop that keeps a maximum, or a number near a mean.
// In every iteration the tile's own maximum is found first, then all that is kept
// grows to it.
func (b *block) online(source *symtile.Loop, in *instr) {
	o := source.Online
	if o.Less >= 0 {
		b.centered(source, in)
		return
	}
	if b.steps(source.Body[:o.Before]); b.l.err != nil {
		return
	}
	c := b.close(o.Of)
	if b.l.err != nil {
		return
	}
	for _, x := range source.Body[:o.Before] {
		b.fetchOnward(x, source)
	}
	tile := c.outs[0]
	like := func(name string) *value { return b.l.value(tile.name+name, tile.class, tile.tile, tile.n) }
	g := &growth{tile: tile, most: like(".most"), base: like(".base"), factor: like(".factor")}
	grow := &instr{name: "grow", outs: []*value{g.base, g.factor}, full: []*value{g.tile, g.most}}
	b.add(grow)
	in.outs, in.full = append(in.outs, g.most, g.base), append(in.full, c.starts[0])
	b.l.of[o.Of] = []*value{g.base}
	if b.steps(source.Body[o.Before:]); b.l.err != nil {
		return
	}
	for _, n := range source.Closers[1:] {
		b.sum(n, g, o, in)
	}
	for _, x := range g.sums {
		grow.full = append(grow.full, x.v)
	}
	b.l.of[o.Of] = []*value{g.most}
	if tile.class == classF64 {
		grow.run = growing[float64](g, c.starts[0], in.loop)
	} else {
		grow.run = growing[float32](g, c.starts[0], in.loop)
	}
}

// fetchOnward has what a step loads fetched for the next iteration while rows of
// this one are computed: finding their maximum before takes no time to hide that in.
func (b *block) fetchOnward(x symtile.Step, source *symtile.Loop) {
	if x.Loop != nil || b.l.p.Ops[x.Op].Code != hlo.OpParameter || len(b.l.of[x.Op]) == 0 {
		return
	}
	op, ring, step := b.l.p.Ops[x.Op], b.l.p.Space.Ring, int64(0)
	tid := b.l.p.Space.Dims[source.Dims[len(source.Dims)-1]].Tid
	for k, d := range op.Tile {
		one, known := d.Offset.Subst(map[symtile.Expr]symtile.Expr{tid: ring.Const(1)}).Sub(d.Offset.Subst(map[symtile.Expr]symtile.Expr{tid: ring.Const(0)})).Value()
		if !known {
			return
		}
		step += one * op.Instr.Shape.Strides()[k]
	}
	b.l.onward[b.l.of[x.Op][0]] = step
}

// sum lowers a closer of an online loop.
func (b *block) sum(n int, g *growth, o *symtile.Online, in *instr) {
	if b.l.err != nil {
		return
	}
	c := b.accumulateIn(n, in)
	k := slices.IndexFunc(o.Scaled, func(s symtile.Scaled) bool { return s.Op == n })
	if k < 0 || b.l.err != nil {
		return
	}
	x := &grown{v: c.outs[0], fresh: c.fresh}
	tile := b.l.p.Ops[n].Tile
	sizes, steps := tile.Sizes(), stridesOf(x.v, tile)
	rows := rowMajor(b.l.p.Ops[o.Of].Tile.Sizes())
	for d, size := range sizes {
		next := grownDim{size: size, step: steps[d]}
		if row := slices.Index(o.Scaled[k].Dims, d); row >= 0 {
			next.factor = rows[row]
		}
		x.push(next)
	}
	g.sums = append(g.sums, x)
}

// push adds a dimension inside of the others, joined with the last where the two are one.
func (x *grown) push(d grownDim) {
	if d.size == 1 {
		return
	}
	if n := len(x.dims); n > 0 && x.dims[n-1].step == d.size*d.step && x.dims[n-1].factor == d.size*d.factor {
		x.dims[n-1] = grownDim{d.size * x.dims[n-1].size, d.step, d.factor}
		return
	}
	x.dims = append(x.dims, d)
}

// each calls do for every run along the last dimension: its first element, the
// first of its factors, and the dimension.
func (x *grown) each(do func(at, from int64, d grownDim)) {
	if len(x.dims) == 0 {
		do(0, 0, grownDim{1, 1, 0})
		return
	}
	var index [maxRank]int64
	inner := len(x.dims) - 1
	at, from := int64(0), int64(0)
	for {
		do(at, from, x.dims[inner])
		k := inner - 1
		for ; k >= 0; k-- {
			d := x.dims[k]
			at, from = at+d.step, from+d.factor
			if index[k]++; index[k] < d.size {
				break
			}
			at, from, index[k] = at-d.size*d.step, from-d.size*d.factor, 0
		}
		if k < 0 {
			return
		}
	}
}

// growing makes the step that grows, and adds to the loop how that begins and ends:
// a row of nothing but −∞ has subtracted 0, where all of it is NaN.
func growing[T floating](g *growth, start *value, lp *loop) step {
	lp.before = append(lp.before, func(w *worker) {
		most, base := whole[T](w, g.most), whole[T](w, g.base)
		spread(most, first[T](w, start))
		spread(base, most[0])
	})
	lp.after = append(lp.after, func(w *worker) {
		base, factors, scales := whole[T](w, g.base), whole[T](w, g.factor), false
		for k, m := range whole[T](w, g.most) {
			if factors[k] = 1; m != base[k] {
				factors[k] = T(math.Exp(float64(base[k]) - float64(m)))
				scales = true
			}
			if m == T(math.Inf(-1)) {
				factors[k] = T(math.NaN())
			}
		}
		if scales {
			scale[T](w, g)
		}
	})
	return func(w *worker) {
		if grow(whole[T](w, g.tile), whole[T](w, g.most), whole[T](w, g.base), whole[T](w, g.factor)) {
			scale[T](w, g)
		}
	}
}

// grow brings rows up to date and says whether a factor is not 1.
func grow[T floating](tile, most, base, factor []T) (scales bool) {
	none := T(math.Inf(-1))
	for k, m := range tile {
		old := most[k]
		m = max(m, old)
		most[k], factor[k] = m, 1
		switch {
		case m == none:
			base[k] = 0
		case old == none:
			base[k] = m
		case !(m-base[k] <= slack): // or NaN
			factor[k] = T(math.Exp(float64(base[k]) - float64(m)))
			base[k], scales = m, true
		}
	}
	return scales
}

// scale multiplies all sums by the factors of their rows.
func scale[T floating](w *worker, g *growth) {
	factors := whole[T](w, g.factor)
	for _, x := range g.sums {
		if x.fresh != nil && x.fresh(w) {
			continue
		}
		sum := whole[T](w, x.v)
		x.each(func(at, from int64, d grownDim) {
			switch f := factors[from]; {
			case d.factor == 0 && f == 1:
			case d.factor == 0 && d.step == 1:
				for k := range sum[at : at+d.size] {
					sum[at+int64(k)] *= f
				}
			default:
				for range d.size {
					sum[at] *= factors[from]
					at, from = at+d.step, from+d.factor
				}
			}
		})
	}
}
