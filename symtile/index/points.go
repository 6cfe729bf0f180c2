package index

import "math"

// What the points of a small domain tell. Rules see how a sum is written, and the
// ranges of its parts; a domain of few points may leave less of it than rules can
// show. So a result that stays long is compared with shorter sums at every point of
// the domain, which proves them equal: c + Σ k·variable, and, for one variable x,
// c + b·x + k·⌊(x + a)/m⌋.

// maxFitPoints bounds the points of a box that are compared, maxFitVars its
// dimensions, maxFitPeriods the points of a variable whose steps are looked at.
const (
	maxFitPoints  = 1024
	maxFitVars    = 6
	maxFitPeriods = 128
)

// maxFitSteps bounds the atoms evaluated for all results of one domain.
const maxFitSteps = 40000

// A fitting compares sums at the points of a domain. It keeps its memory between
// results and between runs of a composition.
type fitting struct {
	d     *domain
	vars  []int32 // the variables of the box
	at    []int64 // the point, by variable of the domain
	steps int     // atoms that may still be evaluated
	conds []int32 // facts.sums of the box; after them, facts.congr
	sums  int     // of conds

	points []fitPoint
	rows   [maxFitVars + 1][maxFitVars + 2]float64 // independent equations
}

// A fitPoint is a point of the domain with the value of the sum there.
type fitPoint struct {
	at    [maxFitVars]int64
	value int64
}

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
		return FloorDiv(f.valueAt(f.d.r.lin(a.y)), a.d)
	case atomMod:
		return floorMod(f.valueAt(f.d.r.lin(a.y)), a.d)
	}
	f.steps = -1 // what the sums are not made of
	return 0
}

// shorter is a sum that equals x on the domain, where one is found that may be
// written with fewer operations.
func (f *fitting) shorter(x lin) (lin, bool) {
	f.vars = f.vars[:0]
	if !f.collect(x) || !f.box() {
		return lin{}, false
	}
	if y, ok := f.affine(x); ok || f.steps < 0 {
		return y, ok && f.steps >= 0
	}
	if len(f.vars) > 1 || !f.tabulate(x) {
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

// enter enters one variable.
func (f *fitting) enter(v int32) bool {
	for _, u := range f.vars {
		if u == v {
			return true
		}
	}
	if len(f.vars) == maxFitVars || !f.d.vars[v].in.Bounded() {
		return false
	}
	f.vars = append(f.vars, v)
	return true
}

// box adds the variables of the constraints on variables of the box, as far as its
// points stay few, and selects the constraints that are about its variables only.
func (f *fitting) box() bool {
	if len(f.vars) == 0 || f.count() > maxFitPoints {
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

// widen adds the variables of a constraint that has some of the box, unless the box
// would have too many points.
func (f *fitting) widen(sum lin) {
	n := len(f.vars)
	if !f.collect(sum) || len(f.vars) == n || f.count() > maxFitPoints {
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
		if n *= f.values(v); n <= 0 || n > maxFitPoints {
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
	for i, at := int64(0), int64(0); i < n; i, at = i+1, (at+stride)%n {
		if !f.moveTo(at) {
			continue
		}
		seen = true
		if more, ok := f.equation(float64(f.valueAt(x)), rank); !ok || f.steps < 0 {
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
	for i := range n {
		if f.moveTo(i) && f.valueAt(y) != f.valueAt(x) {
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
		if math.Abs(x) > 1<<40 || math.Abs(x-math.Round(x)) > 1e-3 {
			return lin{}, false
		}
		whole[i] = int64(math.Round(x))
	}
	y := constForm(whole[0])
	for i, v := range f.vars {
		y = f.d.r.addmul(y, whole[i+1], f.d.r.atomForm(v))
	}
	return y, true
}

// tabulate evaluates x at all points of the only variable.
func (f *fitting) tabulate(x lin) bool {
	f.points = f.points[:0]
	n := f.count()
	if n > maxFitPeriods {
		return false
	}
	for i := range n {
		if f.moveTo(i) {
			p := fitPoint{value: f.valueAt(x)}
			p.at[0] = f.at[f.vars[0]]
			f.points = append(f.points, p)
		}
	}
	return len(f.points) > 1
}

// stepped finds c + b·x + k·⌊(x + a)/m⌋ with the values of the points of the only
// variable. Where the variable takes every value, its differences show it: they are
// b but for b + k once a period.
func (f *fitting) stepped() (lin, bool) {
	p := f.points
	for i := range p[1:] {
		if p[i+1].at[0] != p[i].at[0]+1 {
			return lin{}, false
		}
	}
	first := p[1].value - p[0].value
	other := first
	for i := range p[1:] {
		if d := p[i+1].value - p[i].value; d != first {
			other = d
			break
		}
	}
	if y, ok := f.steppedBy(first, other); ok {
		return y, true
	}
	return f.steppedBy(other, first)
}

// steppedBy is stepped for the slope b and the slope at steps.
func (f *fitting) steppedBy(b, atStep int64) (lin, bool) {
	p := f.points
	step, m := int64(-1), int64(0) // the first x after a step, and the distance to the next
	last := step
	for i := range p[1:] {
		switch d := p[i+1].value - p[i].value; {
		case d == b:
			continue
		case d != atStep:
			return lin{}, false
		}
		x := p[i+1].at[0] - p[0].at[0]
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
	length := p[len(p)-1].at[0] - p[0].at[0] + 1
	if step < 0 || m > 0 && (step > m || length-last > m) {
		return lin{}, false
	}
	return f.steppedAt(b, atStep-b, step+p[0].at[0], m, max(step, length-step))
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
	y = r.addmul(y, k, r.div(r.shift(x, a), m))
	f.at[f.vars[0]] = f.points[0].at[0]
	y = r.shift(y, f.points[0].value-f.valueAt(y))
	for _, p := range f.points {
		f.at[f.vars[0]] = p.at[0]
		if f.valueAt(y) != p.value {
			return lin{}, false
		}
	}
	return y, true
}
