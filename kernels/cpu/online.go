package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/mask"
)

// Online loops compute in one pass over the tiles of a row what would otherwise take
// a pass for each reduction (Milakov and Gimelshein, Online normalizer calculation
// for softmax, 2018). Two kinds of state make this possible.
//
// A softmax keeps the maximum m of the tiles so far and sums of e^(x − m). When a
// tile raises the maximum to m', the sums are multiplied by e^(m − m'). Rescaling is
// avoided as long as the maximum grows little, by subtracting a base that is not
// larger than the maximum, and not much smaller.
//
// A mean and variance keep n, Σ(x − s) and Σ(x − s)² for a shift s near the mean, so
// that little cancels. The shift moves when the mean has drifted from it too far.

// A rescaling is what an iteration of an online loop (see Program.Online of
// package symtile) keeps of each row: the running maximum, and sums that are
// proportional to exp(−maximum).
type rescaling struct {
	tileMax *value // The maximum of the tile at hand.
	max     *value // The maximum of all tiles so far.
	// What iterations subtract: at most rescaleThreshold less than max, 0 where
	// that is −∞.
	base *value
	// exp(old base − new base), or 1 where nothing was accumulated before.
	factor *value
	sums   []*rescaledSum // The sums that are rescaled.
}

// rescaleThreshold is by how much a maximum grows before sums are rescaled.
// Their terms are at most e^rescaleThreshold then, which every floating type
// can represent, and few rows are ever rescaled (Ye et al., FlashInfer, and
// Dao, FlashAttention-4, do the same with 8·ln 2).
const rescaleThreshold = 1

// A rescaledSum is a sum that is proportional to exp(−max).
type rescaledSum struct {
	v    *value        // The sum.
	dims []rescaledDim // Its dimensions, outermost first.
	// empty reports whether nothing was accumulated yet; nil for never.
	empty func(w *worker) bool
}

// A rescaledDim is a dimension of a sum, with the distances of neighbours in
// the sum and in the factors. The latter is 0 where all have one factor.
type rescaledDim struct{ size, step, factor int64 }

// lowerOnline lowers the body b of a loop that keeps a maximum, or a shifted
// mean. In every iteration the maximum of the tile is found first, and all that
// is kept is rescaled to it.
func (b *block) lowerOnline(source *symtile.Loop, in *instr) {
	o := source.Online
	if o.Deviation >= 0 {
		b.lowerRunningVariance(source, in)
		return
	}
	if b.steps(source.Body[:o.Prefix]); b.l.err != nil {
		return
	}
	c := b.accumulateAtOnce(o.Statistic)
	if b.l.err != nil {
		return
	}
	if c.reduction != nil {
		c.reduction.relaxed = onlyShiftsWeights(b.l.p, o)
	}
	for _, x := range source.Body[:o.Prefix] {
		b.prefetchNextTile(x, source)
	}
	// The maximum of the tile is known: the instruction that rescales follows it, and
	// the rest of the body reads the base in place of the maximum.
	tile := c.outs[0]
	like := func(name string) *value {
		return b.l.value(
			tile.name+name, tile.class, tile.tile, tile.n,
		)
	}
	g := &rescaling{
		tileMax: tile,
		max:     like(".most"),
		base:    like(".base"),
		factor:  like(".factor"),
	}
	rescale := &instr{
		name:     "grow",
		outs:     []*value{g.base, g.factor},
		tileArgs: []*value{g.tileMax, g.max},
	}
	b.add(rescale)
	in.outs = append(in.outs, g.max, g.base)
	in.tileArgs = append(in.tileArgs, c.inits[0])
	b.l.results[o.Statistic] = []*value{g.base}
	b.l.boundExponents(o, source.Body[o.Prefix:])
	if b.steps(source.Body[o.Prefix:]); b.l.err != nil {
		return
	}
	for _, n := range source.Accumulators[1:] {
		b.lowerRescaledSum(n, g, o, in)
	}
	for _, x := range g.sums {
		rescale.tileArgs = append(rescale.tileArgs, x.v)
	}
	// After the loop, readers see the maximum itself.
	b.l.results[o.Statistic] = []*value{g.max}
	if tile.class == portable.Float64 {
		rescale.run = rescalingStep[float64](
			g, c.inits[0], in.loop,
		)
	} else {
		rescale.run = rescalingStep[float32](
			g, c.inits[0], in.loop,
		)
	}
	if m, ok := maskOf(b.l.p, source); ok && in.loop.split == nil {
		in.loop.hidden = b.hide(m, source, g)
	}
}

// boundExponents notes the exponentials in the body of an online loop that depend on its
// maximum. They are of x less the base, which is at most rescaleThreshold less than x, or of NaN.
// Where a maximum that is found without care for NaN is less, all sums of the row are NaN.
func (l *lowering) boundExponents(o *symtile.Online, body []symtile.Step) {
	depends := map[int]bool{o.Statistic: true}
	for _, s := range body {
		if s.Loop != nil {
			continue
		}
		op := l.p.Ops[s.Op]
		if slices.ContainsFunc(op.Args, func(a int) bool { return depends[a] }) {
			depends[s.Op] = true
			l.below[s.Op] = op.Code == hlo.OpExponential
		}
	}
}

// onlyShiftsWeights reports whether the maximum of an online loop is only subtracted from the
// elements that it is the maximum of, in exponents of terms of its sums. Then a row with NaN has
// sums of NaN whatever its maximum, and a maximum of 0 may have either sign, so that the maximum
// is found without care for either: the sweep that scales scores and finds their maximum takes 0.85
// of the time (Emerald Rapids).
func onlyShiftsWeights(p *symtile.Program, o *symtile.Online) bool {
	scores := p.Ops[o.Statistic].Args[0]
	sums := func(n int) bool {
		return slices.ContainsFunc(o.Rescaled, func(s symtile.Rescaled) bool {
			return s.Op == n
		})
	}
	return readOnlyAs(p, o.Statistic, func(n int) bool {
		op := p.Ops[n]
		return op.Code == hlo.OpSubtract && op.Args[0] == scores &&
			readOnlyAs(p, n, func(n int) bool {
				return p.Ops[n].Code == hlo.OpExponential &&
					readOnlyAs(p, n, sums)
			})
	})
}

// readOnlyAs reports whether no result is op n, and all that read it, or what repeats or
// converts it, are as is says.
func readOnlyAs(p *symtile.Program, n int, is func(n int) bool) bool {
	if slices.ContainsFunc(p.Roots, func(r symtile.Root) bool { return r.Op == n }) {
		return false
	}
	for k, op := range p.Ops {
		if !slices.Contains(op.Args, n) || is(k) {
			continue
		}
		same := op.Code == hlo.OpBroadcast || op.Code == hlo.OpConvert
		if !same || !readOnlyAs(p, k, is) {
			return false
		}
	}
	return true
}

// prefetchNextTile has what a step loads prefetched for the next iteration
// while the rows of this one are computed, if the next tile is a fixed distance
// away. Without it, finding the maximum first leaves no time in which to hide
// the loads.
func (b *block) prefetchNextTile(x symtile.Step, source *symtile.Loop) {
	if x.Loop != nil ||
		b.l.p.Ops[x.Op].Code != hlo.OpParameter ||
		len(b.l.results[x.Op]) == 0 {
		return
	}
	op := b.l.p.Ops[x.Op]
	ring := b.l.p.Space.Ring
	step := int64(0)
	// The distance is the difference of the places for tile ids 1 and 0.
	tid := b.l.p.Space.Dims[source.Dims[len(source.Dims)-1]].Tid
	for k, d := range op.Tile {
		one, known := d.Offset.Subst(map[index.Expr]index.Expr{
			tid: ring.Const(1),
		}).Sub(d.Offset.Subst(map[index.Expr]index.Expr{
			tid: ring.Const(0),
		})).Value()
		if !known {
			return
		}
		step += one * op.Instr.Shape.Strides()[k]
	}
	b.l.nextTile[b.l.results[x.Op][0]] = step
}

// lowerRescaledSum lowers an accumulator of an online loop.
func (b *block) lowerRescaledSum(
	n int, g *rescaling, o *symtile.Online, in *instr,
) {
	if b.l.err != nil {
		return
	}
	c := b.accumulateInLoop(n, in)
	k := slices.IndexFunc(o.Rescaled, func(s symtile.Rescaled) bool {
		return s.Op == n
	})
	if k < 0 || b.l.err != nil {
		return
	}
	x := &rescaledSum{v: c.outs[0], empty: c.empty}
	tile := b.l.p.Ops[n].Tile
	sizes := tile.Sizes()
	steps := stridesOf(x.v, tile)
	rows := hlo.RowMajor(b.l.p.Ops[o.Statistic].Tile.Sizes())
	for d, size := range sizes {
		next := rescaledDim{size: size, step: steps[d]}
		if row := slices.Index(o.Rescaled[k].Dims, d); row >= 0 {
			next.factor = rows[row]
		}
		x.push(next)
	}
	g.sums = append(g.sums, x)
}

// push adds a dimension inside of the others, merged with the last where the
// two are one.
func (x *rescaledSum) push(d rescaledDim) {
	if d.size == 1 {
		return
	}
	n := len(x.dims)
	if n > 0 &&
		x.dims[n-1].step == d.size*d.step &&
		x.dims[n-1].factor == d.size*d.factor {
		x.dims[n-1] = rescaledDim{
			d.size * x.dims[n-1].size,
			d.step,
			d.factor,
		}
		return
	}
	x.dims = append(x.dims, d)
}

// each calls do with every run along the last dimension: its first element, the
// first of its factors, and the dimension.
func (x *rescaledSum) each(do func(at, from int64, d rescaledDim)) {
	if len(x.dims) == 0 {
		do(0, 0, rescaledDim{1, 1, 0})
		return
	}
	var index [maxRank]int64
	inner := len(x.dims) - 1
	at := int64(0)
	from := int64(0)
	for {
		do(at, from, x.dims[inner])
		k := inner - 1
		for ; k >= 0; k-- {
			d := x.dims[k]
			at = at + d.step
			from = from + d.factor
			if index[k]++; index[k] < d.size {
				break
			}
			at, from, index[k] = at-d.size*d.step,
				from-d.size*d.factor, 0
		}
		if k < 0 {
			return
		}
	}
}

// rescalingStep makes the step that rescales, and adds its initialization and
// its end to the loop. The end scales sums from the base to the maximum. A row
// of nothing but −∞ has subtracted 0, where the result is NaN.
func rescalingStep[T portable.Float](g *rescaling, start *value, lp *loop) step {
	lp.prologue = append(lp.prologue, func(w *worker) {
		maxima := whole[T](w, g.max)
		base := whole[T](w, g.base)
		portable.Fill(maxima, first[T](w, start))
		portable.Fill(base, maxima[0])
	})
	// Sums are relative to the base; in the end they are scaled to the maximum.
	lp.epilogue = append(lp.epilogue, func(w *worker) {
		base := whole[T](w, g.base)
		factors := whole[T](w, g.factor)
		scales := false
		for k, m := range whole[T](w, g.max) {
			if factors[k] = 1; m != base[k] {
				factors[k] = T(math.Exp(float64(base[k]) - float64(m)))
				scales = true
			}
			if m == T(math.Inf(-1)) {
				factors[k] = T(math.NaN())
			}
		}
		if scales {
			rescaleSums[T](w, g)
		}
	})
	return func(w *worker) {
		if updateMax(
			whole[T](w, g.tileMax),
			whole[T](w, g.max),
			whole[T](w, g.base),
			whole[T](w, g.factor),
		) {
			rescaleSums[T](w, g)
		}
	}
}

// updateMax brings rows up to date and reports whether a factor is not 1.
func updateMax[T portable.Float](tile, maxima, base, factor []T) (scales bool) {
	// A row that has met −∞ only keeps the base 0. The first number becomes the base
	// without rescaling, for all terms so far were e^−∞ = 0.
	none := T(math.Inf(-1))
	for k, m := range tile {
		old := maxima[k]
		m = max(m, old)
		maxima[k], factor[k] = m, 1
		switch {
		case m == none:
			base[k] = 0
		case old == none:
			base[k] = m
		case !(m-base[k] <= rescaleThreshold): // The comparison is false for NaN.
			factor[k] = T(math.Exp(float64(base[k]) - float64(m)))
			base[k], scales = m, true
		}
	}
	return scales
}

// rescaleSums multiplies all sums by the factors of their rows. A sum may have another class
// than the maximum, where its terms are converted.
func rescaleSums[T portable.Float](w *worker, g *rescaling) {
	factors := whole[T](w, g.factor)
	for _, x := range g.sums {
		switch {
		case x.empty != nil && x.empty(w):
		case x.v.class == portable.Float64:
			rescaleSum(w, x, whole[float64](w, x.v), factors, scaleRun[float64])
		default:
			rescaleSum(w, x, whole[float32](w, x.v), factors, scaleRun32)
		}
	}
}

// rescaleSum multiplies a sum by the factors of its rows.
func rescaleSum[S, T portable.Float](
	w *worker, x *rescaledSum, sum []S, factors []T,
	scale func(w *worker, run []S, factor S),
) {
	x.each(func(at, from int64, d rescaledDim) {
		// Either the run has one factor, which is mostly 1, or each element has one.
		switch f := S(factors[from]); {
		case d.factor == 0 && f == 1:
		case d.factor == 0 && d.step == 1:
			scale(w, sum[at:at+d.size], f)
		default:
			for range d.size {
				sum[at] *= S(factors[from])
				at = at + d.step
				from = from + d.factor
			}
		}
	})
}

// scaleRun multiplies a run by a factor.
func scaleRun[S portable.Float](_ *worker, run []S, factor S) {
	for k := range run {
		run[k] *= factor
	}
}

// scaleRun32 is scaleRun by machine code where there is some: each row of a tile is scaled at its
// end, if not before.
func scaleRun32(w *worker, run []float32, factor float32) {
	code, ok := vector.ScaleRoutine()
	if !ok {
		scaleRun(w, run, factor)
		return
	}
	for len(run) > 0 {
		part := min(len(run), vector.MaxCallLength)
		w.scale = factor
		w.reduceArgs = vector.ReduceArgs{N: int64(part), X: &run[0], Y: &w.scale}
		code.Call(unsafe.Pointer(&w.reduceArgs))
		run = run[part:]
	}
}

// Masks hide whole tiles of keys from a tile of queries: all that are after it where the
// mask is causal, and those before a window. Iterations of such tiles are left out.
//
// That changes nothing where what is hidden is −∞: its weights are 0, and a row of nothing
// else is NaN, as in plain evaluation. (An infinite or NaN value has weight 0 there, too,
// and a bias of −∞ hides infinite scores.) Where it is finite, weights are 0 only if the
// row has a score that is much larger. The maxima are looked at when the visible tiles are
// done, and the hidden ones are computed, too, if it is not so for all rows.

// hiddenTiles are the iterations of an online loop that a mask hides wholly.
type hiddenTiles struct {
	bounds []tileBound
	max    *value  // The maxima of the rows.
	value  float64 // What is hidden.
	// By how much maxima have to be larger for weights of 0.
	underflows float64
}

// A tileBound says that tile t is hidden where factor·t and the number in a slot are
// together negative.
type tileBound struct {
	factor int64
	slot   int
}

// By how much a number has to be smaller than the maximum of its row for a weight of 0:
// exp(−104) is less than half of the smallest f32, exp(−746) of the smallest f64.
const (
	underflows32 = 104
	underflows64 = 746
)

// maskOf is the mask of the scores of an online loop, which reports whether all that the
// loop adds up is proportional to weights, with a product among it.
func maskOf(p *symtile.Program, l *symtile.Loop) (m mask.Mask, ok bool) {
	o := l.Online
	if o.Deviation >= 0 {
		return m, false
	}
	products := 0
	for _, n := range l.Accumulators {
		if !slices.ContainsFunc(o.Rescaled, func(s symtile.Rescaled) bool {
			return s.Op == n
		}) && n != o.Statistic {
			return m, false
		}
		if isDot(p.Ops[n]) {
			products++
		}
	}
	m, err := mask.Of(p, p.Ops[o.Statistic].Args[0])
	return m, err == nil && products > 0
}

// hide finds which iterations of the loop whose body b is a mask hides, nil for none.
// Bounds that fall with the tile's number end the tiles. Those that rise begin them: where
// what is hidden counts, all tiles before have to be computed.
func (b *block) hide(m mask.Mask, source *symtile.Loop, g *rescaling) *hiddenTiles {
	h := &hiddenTiles{max: g.max, value: m.Value, underflows: underflows32}
	if g.max.class == portable.Float64 {
		h.underflows = underflows64
	}
	if len(b.ids) != 1 {
		return nil
	}
	tile := b.l.p.Ops[b.l.p.Ops[source.Online.Statistic].Args[0]].Tile
	for _, x := range m.Bounds {
		most, ok := x.Most(tile)
		if !ok || len(b.l.runtimeVars(most)) > 0 {
			continue
		}
		ring := b.l.p.Space.Ring
		at := func(n int64) index.Expr {
			return most.Subst(map[index.Expr]index.Expr{b.ids[0]: ring.Const(n)})
		}
		factor, known := at(1).Sub(at(0)).Value()
		linear := most.Sub(b.ids[0].Scale(factor)) == at(0)
		if known && linear && (factor < 0 || factor > 0 && math.IsInf(m.Value, -1)) {
			h.bounds = append(h.bounds, tileBound{factor, b.slot(at(0))})
		}
	}
	if len(h.bounds) == 0 {
		return nil
	}
	return h
}

// visible is the range of the iterations that are not hidden, at least one of all.
func (h *hiddenTiles) visible(w *worker, all int64) (begin, end int64) {
	end = all
	for _, x := range h.bounds {
		rest := w.slots[x.slot]
		if x.factor < 0 {
			end = min(end, index.FloorDiv(rest, -x.factor)+1)
		} else {
			begin = max(begin, -index.FloorDiv(rest, x.factor))
		}
	}
	begin = min(begin, all-1)
	return begin, max(end, begin+1)
}

// counts reports whether what is hidden may have a weight, after all else was computed.
func (h *hiddenTiles) counts(w *worker) bool {
	switch {
	case math.IsInf(h.value, -1):
		return false
	case h.max.class == portable.Float64:
		return !smallBeside(h, whole[float64](w, h.max))
	}
	return !smallBeside(h, whole[float32](w, h.max))
}

// smallBeside reports whether what is hidden weighs nothing beside all maxima. Beside NaN
// everything counts.
func smallBeside[T portable.Float](h *hiddenTiles, maxima []T) bool {
	for _, m := range maxima {
		if !(float64(m)-h.value >= h.underflows) {
			return false
		}
	}
	return true
}

// A runningVariance is what an iteration of an online loop keeps of rows whose
// mean and variance are computed together: sums of x less a shift, as in Chan,
// Golub and LeVeque, Algorithms for computing the sample variance, 1983.
type runningVariance struct {
	loop *reduceLoop // The loop over the elements of the tile.
	x    *value      // The tile.
	// A number near the mean of all tiles so far, which is subtracted from x.
	shift   *value
	sum     *value   // Σ(x − shift)
	squares []*value // Σ(x − shift)² and its like.
	count   int      // The slot of the number of elements so far.
}

// maxShiftShare is the share of Σ(x − shift)² that may come from the shift not
// being the mean before the shift is moved. This part is subtracted in the end.
const maxShiftShare = 0.25

// lowerRunningVariance lowers the body b of a loop that keeps a shifted mean.
func (b *block) lowerRunningVariance(source *symtile.Loop, in *instr) {
	o := source.Online
	if b.steps(source.Body[:o.Prefix]); b.l.err != nil {
		return
	}
	of := b.l.p.Ops[o.Statistic]
	from := b.l.p.Ops[of.Args[0]].Tile
	g := &runningVariance{
		loop: newReduceLoop(
			b, from, hlo.RowMajor(from.Sizes()),
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
	// The mean accumulates the deviations x − shift in place of x.
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

// shiftStep makes what the first iteration begins with, the mean of its tile,
// and adds the ends of iterations and of the loop to it.
func shiftStep[T portable.Float](
	l *lowering, g *runningVariance, of symtile.Op, lp *loop,
) step {
	d := of.Instr.Shape.DType
	mean := jitReduceStep[T](
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
	// The first iteration takes the mean of its tile as the shift. The sum of a row
	// is computed into the shift itself.
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

// finiteOrZero is x, or 0 where it is NaN or infinite, since subtracting 0
// leaves everything as it was.
func finiteOrZero[T portable.Float](x T) T {
	if d := x - x; d != d {
		return 0
	}
	return x
}

// recenter moves the shifts of rows whose mean has drifted from them. With d =
// Σ(x − shift), n elements and a move by δ, the sum becomes d − nδ and the
// squares q − 2δd + nδ².
func recenter[T portable.Float](w *worker, g *runningVariance) {
	n := float64(w.slots[g.count])
	base := whole[T](w, g.shift)
	sum := whole[T](w, g.sum)
	squares := whole[T](w, g.squares[0])
	for k, d := range sum {
		// The mean is by away from the shift, which contributes n·by² to the squares.
		by := float64(d) / n
		if !(n*by*by > maxShiftShare*float64(squares[k])) {
			continue
		}
		// The move is what the class of the shift can represent of it.
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

// removeShift turns sums of x less a shift into those of x, and squares of x −
// shift into those of x − mean: q − d²/n.
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

// validElements is the number of valid elements of a row of the tile at hand.
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
