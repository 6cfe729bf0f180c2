package index

import (
	"math"
	"slices"
)

// What the points of a small domain tell. Rules see how a sum is written, and the
// ranges of its parts; a domain of few points may leave less of it than rules can
// show. So a result that stays long is compared with shorter sums at every point of
// the domain, which proves them equal: c + Σ k·variable, and, for one variable x,
// c + b·x + k·⌊(x + a)/m⌋.
//
// Finding such a sum is cheap and may go wrong, as nothing rests on it: it is solved
// in floating point from a few points, or read off the slopes. Only the comparison
// at every point decides. Points that are far from each other come first, so that a
// sum that is not equal is found out after a few of them.
//
// A point is in the domain when the variables are in their ranges and satisfy their
// congruences, and when the constraints hold that have no variables but those of the
// box. Leaving others out makes the domain larger: what is equal there is equal on
// the domain. Variables that an equation of the domain has eliminated are in no form.
//
// Nothing of this is a rule of the normal form: it serves a Composition, whose
// results are written, not compared.

// maxFitPoints bounds the points of a box that are compared, maxFitVars its
// dimensions.
const (
	maxFitPoints = 1024
	maxFitVars   = 6
)

// maxFitSteps bounds the atoms evaluated for all results of one domain; a domain with
// constraints, of which more is to be hoped, has eight times as many.
const maxFitSteps = 2000

// A fitting compares sums at the points of a domain. It keeps its memory between
// results and between runs of a composition.
type fitting struct {
	// The domain, in whose ring the sums are.
	d *domain
	// The variables of the box.
	vars []int32
	// The point, by variable of the domain. Values of variables that are not in the
	// box mean nothing.
	at []int64
	// Atoms that may still be evaluated. Below 0 the values that were found are not
	// to be trusted, and neither is what was concluded from them.
	steps int
	// Numbers of the facts that are about variables of the box only: so many sums,
	// then congruences.
	conds []int32
	sums  int

	// Points of the only variable, in order.
	points []fitPoint
	// The slopes between them, perhaps the same. Three slopes are too many for a sum
	// with one quotient.
	slopes [2]int64
	// The equations that the points give for the coefficients: the constant's, then
	// those of the variables, then the value. As many as are independent.
	rows [maxFitVars + 1][maxFitVars + 2]float64
}

// A fitPoint is a value of the only variable with the value of the sum there, and how
// much it is more than at the point before.
type fitPoint struct{ at, value, slope int64 }

// valueAt is the value of x at f.at.
func (f *fitting) valueAt(x lin) int64 {
	v := x.c
	for _, t := range x.t {
		v += t.k * f.atomAt(t.a)
	}
	return v
}

// atomAt is the value of one atom at f.at.
func (f *fitting) atomAt(id int32) int64 {
	f.steps--
	if f.steps < 0 {
		return 0
	}
	a := &f.d.r.atoms[id]
	switch a.kind {
	case atomVar:
		return f.at[id]
	case atomDiv, atomFloorDiv:
		return FloorDiv(
			f.valueAt(f.d.r.lin(a.y)),
			a.d,
		)
	case atomMod:
		return floorMod(
			f.valueAt(f.d.r.lin(a.y)),
			a.d,
		)
	}
	f.steps = -1 // what the sums are not made of
	return 0
}

// maxFitDepth bounds the dividends inside dividends that are looked at.
const maxFitDepth = 3

// shorter is a sum that equals x on the domain, where one is found that is written
// with fewer operations: for x as a whole, for the parts of x that have no variable
// in common, or for dividends in it.
func (f *fitting) shorter(x lin, depth int) (lin, bool) {
	r := f.d.r
	if f.steps < 0 || !r.divides(x) ||
		r.minCost(x) < 2*opCost-1 {
		return x, false
	}
	if y, ok := f.whole(x); ok &&
		r.minCost(y) < r.minCost(x) {
		return y, true
	}
	out := constForm(x.c)
	for rest := x.t; len(rest) > 0; {
		part, others, ok := f.part(rest)
		if !ok {
			return x, false
		}
		rest = others
		y := part
		if len(part.t) < len(x.t) {
			if z, ok := f.whole(part); ok &&
				r.minCost(z) < r.minCost(part) {
				y = z
			}
		}
		if y.equal(part) && depth > 0 {
			y = f.inside(part, depth-1)
		}
		out = r.addmul(out, 1, y)
	}
	return out, r.minCost(out) < r.minCost(x)
}

// divides reports whether x has a quotient.
func (r *Ring) divides(x lin) bool {
	for _, t := range x.t {
		if r.atoms[t.a].kind == atomDiv {
			return true
		}
	}
	return false
}

// part is those of the terms that have variables in common with the first one,
// directly or through others.
func (f *fitting) part(ts []term) (part lin, others []term, ok bool) {
	f.vars = f.vars[:0]
	both := f.d.r.alloc(2 * len(ts))
	for n := -1; len(part.t) > n; {
		n = len(part.t)
		part.t, others = both[:0:len(ts)], both[len(ts):len(ts)]
		for i, t := range ts {
			one := lin{t: ts[i : i+1 : i+1]}
			if i > 0 && !f.meets(one) {
				others = append(others, t)
				continue
			}
			if !f.collect(one) {
				return part, others, false
			}
			part.t = append(part.t, t)
		}
	}
	return part, others, true
}

// meets reports whether x has a variable of the box.
func (f *fitting) meets(x lin) bool {
	for _, t := range x.t {
		a := &f.d.r.atoms[t.a]
		switch a.kind {
		case atomVar:
			if slices.Contains(f.vars, t.a) {
				return true
			}
		case atomDiv, atomFloorDiv, atomMod:
			if f.meets(f.d.r.lin(a.y)) {
				return true
			}
		}
	}
	return false
}

// inside is x with shorter dividends. A quotient of a shorter dividend is divided
// again, so that the rules see it.
func (f *fitting) inside(x lin, depth int) lin {
	r := f.d.r
	out := constForm(x.c)
	for _, t := range x.t {
		a := r.atoms[t.a]
		if a.kind != atomDiv {
			out = r.addAtom(out, t.k, t.a)
			continue
		}
		y, ok := f.shorter(
			r.lin(a.y),
			depth,
		)
		if !ok {
			out = r.addAtom(out, t.k, t.a)
			continue
		}
		out = r.addmul(
			out,
			t.k,
			r.div(y, a.d),
		)
	}
	return out
}

// quotients counts the quotients in x, those inside of others too, up to 2.
func (r *Ring) quotients(x lin) (n int) {
	for _, t := range x.t {
		if a := &r.atoms[t.a]; a.kind == atomDiv &&
			n < 2 {
			n += 1 + r.quotients(r.lin(a.y))
		}
	}
	return n
}

// whole is a sum that equals x at every point, if one of the shapes does.
func (f *fitting) whole(x lin) (lin, bool) {
	facts := &f.d.r.facts
	if len(facts.sums)+len(facts.congr) == 0 &&
		f.d.r.quotients(x) < 2 {
		return lin{}, false
	}
	f.vars = f.vars[:0]
	if !f.collect(x) || !f.box() {
		return lin{}, false
	}
	if y, ok := f.affine(x); ok ||
		f.steps < 0 {
		return y, ok && f.steps >= 0
	}
	if len(f.vars) > 1 ||
		!f.tabulate(x) {
		return lin{}, false
	}
	y, ok := f.stepped()
	return y, ok && f.steps >= 0
}

// collect enters the variables under x; ok is false when there are too many.
func (f *fitting) collect(x lin) (ok bool) {
	for _, t := range x.t {
		a := &f.d.r.atoms[t.a]
		switch a.kind {
		case atomVar:
			if !f.enter(t.a) {
				return false
			}
		case atomDiv, atomFloorDiv, atomMod:
			if !f.collect(f.d.r.lin(a.y)) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// enter enters one variable; ok is false when there are too many, or when its range
// has no end.
func (f *fitting) enter(v int32) (ok bool) {
	if slices.Contains(f.vars, v) {
		return true
	}
	if len(f.vars) == maxFitVars ||
		!f.d.vars[v].in.Bounded() {
		return false
	}
	f.vars = append(f.vars, v)
	return true
}

// box adds the variables of the constraints on variables of the box, as far as its
// points stay few, and selects the constraints that are about its variables only.
func (f *fitting) box() bool {
	if len(f.vars) == 0 ||
		f.count() > maxFitPoints {
		return false
	}
	facts := &f.d.r.facts
	for _, g := range facts.sums {
		f.widen(g.sum)
	}
	for _, g := range facts.congr {
		f.widen(g.sum)
	}
	f.conds = f.conds[:0]
	for i, g := range facts.sums {
		if f.within(g.sum) {
			f.conds = append(f.conds, int32(i))
		}
	}
	f.sums = len(f.conds)
	for i, g := range facts.congr {
		if f.within(g.sum) {
			f.conds = append(f.conds, int32(i))
		}
	}
	return true
}

// widen adds the variables of a constraint, unless the box would have too many points.
// The constraint may then say which of the points are in the domain.
func (f *fitting) widen(sum lin) {
	n := len(f.vars)
	if !f.collect(sum) || len(f.vars) == n ||
		f.count() > maxFitPoints {
		f.vars = f.vars[:n]
	}
}

// within reports whether all variables of sum are in the box.
func (f *fitting) within(sum lin) bool {
	n := len(f.vars)
	ok := f.collect(sum)
	ok = ok && len(f.vars) == n
	f.vars = f.vars[:n]
	return ok
}

// values is the number of values of variable v.
func (f *fitting) values(v int32) int64 {
	x := &f.d.vars[v]
	return (x.in.Hi-x.in.Lo)/x.m + 1
}

// count is the number of points of the box, or more than maxFitPoints.
func (f *fitting) count() int64 {
	n := int64(1)
	for _, v := range f.vars {
		if n *= f.values(v); n <= 0 ||
			n > maxFitPoints {
			return maxFitPoints + 1
		}
	}
	return n
}

// moveTo moves to point i of the box; ok tells that it is in the domain.
func (f *fitting) moveTo(i int64) (ok bool) {
	for len(f.at) < len(f.d.vars) {
		f.at = append(f.at, 0)
	}
	for _, v := range f.vars {
		x := &f.d.vars[v]
		n := f.values(v)
		f.at[v] = x.in.Lo + i%n*x.m
		i /= n
	}
	facts := &f.d.r.facts
	for _, c := range f.conds[:f.sums] {
		if !f.d.stated[c].Contains(f.valueAt(facts.sums[c].sum)) {
			return false
		}
	}
	for _, c := range f.conds[f.sums:] {
		g := &facts.congr[c]
		if floorMod(f.valueAt(g.sum)-g.r, g.m) != 0 {
			return false
		}
	}
	return true
}

// affine finds c + Σ k·variable that equals x at every point. Points are visited far
// from each other, so that the first few of them refute nearly all that fail.
func (f *fitting) affine(x lin) (lin, bool) {
	n := f.count()
	stride := coprimeStride(n)
	rank := 0
	seen := false
	left := 3*len(f.vars) + 4
	at := int64(0)
	for i := int64(0); i < n &&
		left > 0; i, at = i+1, (at+stride)%n {
		if !f.moveTo(at) {
			continue
		}
		seen = true
		left--
		if more, ok := f.equation(float64(f.valueAt(x)), rank); !ok ||
			f.steps < 0 {
			return lin{}, false
		} else if more {
			rank++
		}
	}
	if !seen {
		return lin{}, false
	}
	y, ok := f.solution(rank)
	if !ok {
		return lin{}, false
	}
	for range n {
		at = (at + stride) % n
		if f.moveTo(at) &&
			f.valueAt(y) != f.valueAt(x) {
			return lin{}, false
		}
	}
	return y, f.steps >= 0
}

// coprimeStride is a number near n·(√5−1)/2 that has no factor in common with n.
func coprimeStride(n int64) int64 {
	s := max(n*5/8, 1)
	for GCD(s, n) != 1 {
		s++
	}
	return s
}

// equation adds c + Σ k·variable = v at the point to the independent equations, or
// checks it against them: ok is false when it contradicts them.
func (f *fitting) equation(v float64, rank int) (more, ok bool) {
	n := len(f.vars)
	var row [maxFitVars + 2]float64
	row[0] = 1
	for i, x := range f.vars {
		row[i+1] = float64(f.at[x])
	}
	row[n+1] = v
	for i := range rank {
		p := leading(&f.rows[i], n)
		factor := row[p] / f.rows[i][p]
		for j := range n + 2 {
			row[j] -= factor * f.rows[i][j]
		}
		row[p] = 0
	}
	p := leading(&row, n)
	if p > n {
		return false, math.Abs(row[n+1]) < 1e-6*(1+math.Abs(v))
	}
	f.rows[rank] = row
	return true, true
}

// leading is the first place of an unknown in a row, n + 1 without one.
func leading(row *[maxFitVars + 2]float64, n int) int {
	for j := range n + 1 {
		if math.Abs(row[j]) > 1e-9 {
			return j
		}
	}
	return n + 1
}

// solution solves the equations, unknowns that nothing determines being 0. It is
// rounded to integers, and right only if the points say so.
func (f *fitting) solution(rank int) (lin, bool) {
	n := len(f.vars)
	var k [maxFitVars + 1]float64
	for i := rank - 1; i >= 0; i-- {
		row := &f.rows[i]
		p := leading(row, n)
		v := row[n+1]
		for j := p + 1; j <= n; j++ {
			v -= row[j] * k[j]
		}
		k[p] = v / row[p]
	}
	var whole [maxFitVars + 1]int64
	for i, x := range k[:n+1] {
		if math.Abs(x) > 1<<40 ||
			math.Abs(x-math.Round(x)) > 1e-3 {
			return lin{}, false
		}
		whole[i] = int64(math.Round(x))
	}
	y := constForm(whole[0])
	for i, v := range f.vars {
		y = f.d.r.addmul(
			y,
			whole[i+1],
			f.d.r.atomForm(v),
		)
	}
	return y, true
}

// tabulate evaluates x at all points of the only variable, which has every value
// between the first and the last. It gives up at the third slope.
func (f *fitting) tabulate(x lin) bool {
	f.points = f.points[:0]
	n := f.count()
	for i := range n {
		if !f.moveTo(i) {
			continue
		}
		p := fitPoint{f.at[f.vars[0]], f.valueAt(x), 0}
		if last := len(f.points) - 1; last >= 0 {
			if f.points[last].at+1 != p.at {
				return false
			}
			p.slope = p.value - f.points[last].value
		}
		f.points = append(f.points, p)
		if len(f.points) == 2 {
			f.slopes = [2]int64{p.slope, p.slope}
		}
		if len(f.points) > 2 &&
			p.slope != f.slopes[0] && p.slope != f.slopes[1] {
			if f.slopes[0] != f.slopes[1] {
				return false
			}
			f.slopes[1] = p.slope
		}
	}
	return len(f.points) > 2
}

// stepped finds c + b·x + k·⌊(x + a)/m⌋ with the values of the points of the only
// variable. The slopes show it: they are b but for b + k once a period.
func (f *fitting) stepped() (lin, bool) {
	if y, ok := f.steppedBy(f.slopes[0], f.slopes[1]); ok {
		return y, true
	}
	return f.steppedBy(
		f.slopes[1],
		f.slopes[0],
	)
}

// steppedBy is stepped for the slope b and the slope at steps. With one step the
// period may be any that has no second step among the points; with several, their
// distance is the period, and before the first and after the last there must be no
// room for another.
func (f *fitting) steppedBy(b, atStep int64) (lin, bool) {
	p := f.points
	step, m := int64(-1), int64(0) // the first x after a step, and the distance to the next
	last := step
	for i := range p[1:] {
		if p[i+1].slope != atStep {
			continue
		}
		x := p[i+1].at - p[0].at
		switch {
		case step < 0:
			step = x
		case m == 0:
			m = x - last
		case x-last != m:
			return lin{}, false
		}
		last = x
	}
	length := p[len(p)-1].at - p[0].at + 1
	if step < 0 || m > 0 &&
		(step > m || length-last > m) {
		return lin{}, false
	}
	return f.steppedAt(
		b,
		atStep-b,
		step+p[0].at,
		m,
		max(step, length-step),
	)
}

// steppedAt is c + b·x + k·⌊(x + a)/m⌋ with a step at x = at; m is the period, or 0
// for any from least on. A period with a = 0 is taken if there is one.
func (f *fitting) steppedAt(b, k, at, m, least int64) (lin, bool) {
	r := f.d.r
	x := r.atomForm(f.vars[0])
	a := int64(0)
	switch {
	case m == 0 && at == 0:
		m = least
	case m == 0 && at >= least:
		m = at
	case m == 0 && -at >= least:
		m = -at
	case m == 0:
		m = least
		a = floorMod(-at, m)
	default:
		a = floorMod(-at, m)
	}
	if m < 2 {
		return lin{}, false
	}
	y := r.scale(x, b)
	y = r.addmul(
		y,
		k,
		r.div(r.shift(x, a), m),
	)
	f.at[f.vars[0]] = f.points[0].at
	y = r.shift(
		y,
		f.points[0].value-f.valueAt(y),
	)
	for _, p := range f.points {
		f.at[f.vars[0]] = p.at
		if f.valueAt(y) != p.value {
			return lin{}, false
		}
	}
	return y, true
}
