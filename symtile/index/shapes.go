package index

import (
	"math"
	"slices"
)

// The shapes of sums that a fitting tries, in the order of shapes. All but the last are
// found from the values at the points of the first block, which are few; whether they
// are right is a matter of all points.

// affine finds c + Σ k·variable.
func (f *fitting) affine(x lin, cost int32) (lin, bool) {
	return f.linear(x, nil, cost)
}

// maxPool bounds the quotients that withQuotient tries.
const maxPool = 16

// withQuotient finds c + Σ k·variable + k·q for a quotient q that is in x: what else is
// in x is then linear, or cancels.
func (f *fitting) withQuotient(x lin, cost int32) (lin, bool) {
	if cost <= 2*opCost {
		return lin{}, false
	}
	f.pool = f.pool[:0]
	f.gatherPool(x)
	for _, q := range f.pool {
		if opCost+f.d.r.costOf(f.d.r.atoms[q].y) >= cost {
			continue
		}
		f.chosen[0] = q
		if y, ok := f.linear(x, f.chosen[:1], cost); ok {
			return y, true
		}
	}
	return lin{}, false
}

// residue finds (k·a + e) mod m for a variable.
func (f *fitting) residue(x lin, cost int32) (lin, bool) {
	if !f.outermost || cost <= opCost {
		return lin{}, false
	}
	most := int64(0)
	for _, v := range f.target[:f.n] {
		if v < 0 {
			return lin{}, false
		}
		most = max(most, v)
	}
	t := trial{x, cost}
	f.gatherDivisors(x)
	for _, v := range f.vars {
		slope, ok := f.slopeBy(v)
		for _, m := range f.divisors {
			if !ok || most >= m {
				continue
			}
			y, found := f.residueOf(t, v, slope, m)
			if found {
				return y, true
			}
		}
	}
	return lin{}, false
}

// slopeBy is how much more the target is at a point than at one where the variable is
// less by 1; ok is false where no two points of the block are so.
func (f *fitting) slopeBy(v int32) (k int64, ok bool) {
	values := f.column(v)[:f.n]
	for i, from := range values {
		j := slices.Index(values, from+1)
		if j >= 0 {
			return f.target[j] - f.target[i], true
		}
	}
	return 0, false
}

// residueOf is the residue of a variable by a slope, with the e that the first point gives.
func (f *fitting) residueOf(t trial, v int32, slope, m int64) (lin, bool) {
	k := floorMod(slope, m)
	if k > m/2 {
		k -= m
	}
	values := f.column(v)
	e := floorMod(f.target[0]-k*values[0], m)
	for i, want := range f.target[:f.n] {
		if floorMod(k*values[i]+e, m) != want {
			return lin{}, false
		}
	}
	r := f.d.r
	y := r.scale(r.atomForm(v), k)
	y = r.mod(r.shift(y, e), m)
	if f.steps < 0 || r.minCost(y) >= t.cost {
		return lin{}, false
	}
	ok := f.equal(t.x, y)
	f.sample()
	return y, ok
}

// maxPaired bounds the quotients of which withQuotients tries two, maxTripled those of
// which it tries three.
const (
	maxPaired  = 20
	maxTripled = 10
)

// maxPairedSteps bounds the atoms that one withQuotients evaluates.
const maxPairedSteps = 5000

// withQuotients finds a sum of variables and of one to three quotients: those in x, and
// the quotients of a sum that x divides by the divisors in x and their products. What x
// is a long way to write is often that, such as digits of a number put together again.
func (f *fitting) withQuotients(x lin, cost int32) (lin, bool) {
	// A dividend that is written so is shorter, but hides what divides it.
	if !f.outermost || cost <= 3*opCost {
		return lin{}, false
	}
	f.pool = f.pool[:0]
	f.gatherPool(x)
	f.gatherQuotients()
	steps := f.steps
	defer func() { f.steps = steps }() // those of other shapes and results
	f.steps = maxPairedSteps
	t := trial{x, cost}
	y, ok := f.choose(t, f.pool, 1)
	if !ok && cost > 4*opCost {
		y, ok = f.choose(t, f.pool[:min(len(f.pool), maxPaired)], 2)
	}
	if !ok && cost > 4*opCost {
		y, ok = f.choose(t, f.pool[:min(len(f.pool), maxTripled)], 3)
	}
	return y, ok
}

// A trial is a sum and what it costs.
type trial struct {
	x    lin
	cost int32
}

// choose tries n of the quotients.
func (f *fitting) choose(t trial, all []int32, n int) (lin, bool) {
	return f.chooseMore(t, t.cost, f.chosen[:0], all, n)
}

// chooseMore tries the quotients that are chosen with n more of the others, which may
// cost so much together.
func (f *fitting) chooseMore(
	t trial, left int32, chosen, others []int32, n int,
) (lin, bool) {
	if n == 0 {
		return f.linear(t.x, chosen, t.cost)
	}
	r := f.d.r
	for i, q := range others {
		rest := left - opCost - r.costOf(r.atoms[q].y)
		if rest <= 0 || f.steps < 0 {
			continue
		}
		next := append(chosen, q)
		y, ok := f.chooseMore(t, rest, next, others[i+1:], n-1)
		if ok {
			return y, true
		}
	}
	return lin{}, false
}

// gatherQuotients puts before the pool the quotients of sums of variables in it, and
// behind them those of the first such sum by all divisors of the pool, some multiples and
// parts of them, and products of two.
func (f *fitting) gatherQuotients() {
	r := f.d.r
	within := f.pool
	f.pool, f.spare = f.spare[:0], within
	for _, q := range within {
		if r.affine(r.lin(r.atoms[q].y)) {
			f.pool = append(f.pool, q)
		}
	}
	if len(f.pool) == 0 {
		f.pool = append(f.pool, within...)
		return
	}
	sum := r.lin(r.atoms[f.pool[0]].y)
	sum.c = 0
	for _, p := range within {
		f.gatherPool(r.div(sum, r.atoms[p].d))
	}
	for i, p := range within {
		d := r.atoms[p].d
		f.gatherNear(sum, d)
		for _, q := range within[i+1:] {
			m, ok := mulInt(d, r.atoms[q].d)
			if ok && m < 1<<20 {
				f.gatherPool(r.div(sum, m))
			}
		}
	}
	for _, q := range within {
		if !slices.Contains(f.pool, q) {
			f.pool = append(f.pool, q)
		}
	}
}

// gatherNear enters the quotients of a sum by small multiples and parts of a divisor.
func (f *fitting) gatherNear(sum lin, d int64) {
	for k := int64(2); k <= 4; k++ {
		f.gatherPool(f.d.r.div(sum, k*d))
		if d%k == 0 && d > k {
			f.gatherPool(f.d.r.div(sum, d/k))
		}
	}
}

// affine reports whether x is a sum of multiples of variables.
func (r *Ring) affine(x lin) bool {
	for _, t := range x.t {
		if r.atoms[t.a].kind != atomVar {
			return false
		}
	}
	return true
}

// gatherPool enters the quotients in x, inner ones after those around them.
func (f *fitting) gatherPool(x lin) {
	for _, t := range x.t {
		a := &f.d.r.atoms[t.a]
		switch a.kind {
		case atomDiv, atomFloorDiv, atomMod:
			if len(f.pool) >= maxPool {
				return
			}
			if !slices.Contains(f.pool, t.a) {
				f.pool = append(f.pool, t.a)
			}
			f.gatherPool(f.d.r.lin(a.y))
		}
	}
}

// linear finds c + Σ k·variable + Σ k·q that equals x, for the quotients q.
func (f *fitting) linear(x lin, qs []int32, cost int32) (lin, bool) {
	// A few points are enough to solve for the coefficients. The others of the block
	// contradict them, unless there is something in it.
	rank := 0
	for i := range f.n {
		more, ok := f.equation(i, qs, rank)
		if !ok || f.steps < 0 {
			return lin{}, false
		}
		if more {
			rank++
		}
	}
	y, ok := f.solution(rank, qs)
	if !ok || f.d.r.minCost(y) >= cost {
		return lin{}, false
	}
	ok = f.equal(x, y)
	f.sample()
	return y, ok
}

// coprimeStride is a number near n·(√5−1)/2 that has no factor in common with n.
func coprimeStride(n int64) int64 {
	s := max(n*5/8, 1)
	for GCD(s, n) != 1 {
		s++
	}
	return s
}

// unknowns is the number of coefficients to be solved for.
func (f *fitting) unknowns(qs []int32) int {
	return 1 + len(f.vars) + len(qs)
}

// equation adds c + Σ k·variable + Σ k·q = value at point i of the block to the
// independent equations, or checks it against them: ok is false when it contradicts
// them.
func (f *fitting) equation(i int, qs []int32, rank int) (more, ok bool) {
	n := f.unknowns(qs)
	var row [maxUnknowns + 1]float64
	row[0] = 1
	for j := range f.vars {
		row[j+1] = float64(f.cols[j][i])
	}
	for j, q := range qs {
		row[1+len(f.vars)+j] = float64(f.column(q)[i])
	}
	v := float64(f.target[i])
	row[n] = v
	for j := range rank {
		other := &f.rows[j]
		p := leading(other, n)
		factor := row[p] / other[p]
		for k := range n + 1 {
			row[k] -= factor * other[k]
		}
		row[p] = 0
	}
	p := leading(&row, n)
	if p == n {
		return false, math.Abs(row[n]) < 1e-6*(1+math.Abs(v))
	}
	f.rows[rank] = row
	return true, true
}

// leading is the first place of an unknown in a row of n unknowns, n without one.
func leading(row *[maxUnknowns + 1]float64, n int) int {
	for j := range n {
		if math.Abs(row[j]) > 1e-9 {
			return j
		}
	}
	return n
}

// solution solves the equations, unknowns that nothing determines being 0. It is
// rounded to integers, and right only if the points say so.
func (f *fitting) solution(rank int, qs []int32) (lin, bool) {
	n := f.unknowns(qs)
	var k [maxUnknowns]float64
	for i := rank - 1; i >= 0; i-- {
		row := &f.rows[i]
		p := leading(row, n)
		v := row[n]
		for j := p + 1; j < n; j++ {
			v -= row[j] * k[j]
		}
		k[p] = v / row[p]
	}
	// Rounding errors are far below a half for values of this size. Several quotients
	// can be nearly dependent at few points, and are then solved by huge multiples.
	limit := float64(1 << 40)
	if len(qs) > 1 {
		limit = 1 << 24
	}
	r := f.d.r
	y := lin{}
	for i, v := range k[:n] {
		whole := math.Round(v)
		if math.Abs(v) > limit || math.Abs(v-whole) > 1e-3 {
			return lin{}, false
		}
		c := int64(whole)
		switch {
		case i == 0:
			y.c = c
		case i <= len(f.vars):
			y = r.addAtom(y, c, f.vars[i-1])
		default:
			y = r.addAtom(y, c, qs[i-1-len(f.vars)])
		}
	}
	return y, true
}

// quotient finds c + g·⌊(e + Σ j·variable)/m⌋. With the multiple g and the divisor m
// given, j is the slope of the values by each variable, times m/g; and e has to be
// between bounds that every point gives, which proves the equality where an e is left.
func (f *fitting) quotient(x lin, cost int32) (lin, bool) {
	// A quotient of all variables has an addition for each but one, and a variable
	// that a congruence ties to others does not drop out.
	least := int32(opCost)
	if len(f.d.r.facts.congr) > 0 {
		least *= int32(len(f.vars))
	}
	if cost <= least || !f.moderate() {
		return lin{}, false
	}
	p := planar{f: f, c: f.target[0]}
	for _, v := range f.target[:f.n] {
		p.g = GCD(p.g, v-p.c)
	}
	if p.g == 0 {
		return lin{}, false
	}
	f.gatherDivisors(x)
	var won planar
	for {
		cost = p.cheapest(cost, &won)
		if p.g == 1 {
			break
		}
		p.g = 1
	}
	if won.m == 0 {
		return lin{}, false
	}
	ok := won.holds(x)
	f.sample()
	if !ok {
		return lin{}, false
	}
	y := won.sum() // the bounds of all points may have moved e
	return y, f.d.r.minCost(y) <= cost
}

// cheapest tries all divisors. The cheapest sum becomes won, if it costs less than cost;
// what it costs is returned.
func (p *planar) cheapest(cost int32, won *planar) int32 {
	if !p.slopes() {
		return cost
	}
	for _, m := range p.f.divisors {
		p.m = m
		if !p.round() || p.leastCost() >= cost || !p.possible() {
			continue
		}
		if n := p.f.d.r.minCost(p.sum()); n < cost {
			cost = n
			*won = *p
		}
	}
	return cost
}

// maxDivisor is the last of the divisors that are tried whatever the sum looks like.
const maxDivisor = 32

// gatherDivisors enters the divisors that occur in x, their divisors and their
// products, and all small numbers.
//
// Domains that congruences cut have quotients by divisors that are in no part of x.
func (f *fitting) gatherDivisors(x lin) {
	f.divisors = f.divisors[:0]
	f.pool = f.pool[:0]
	f.gatherPool(x)
	for m := int64(2); m <= maxDivisor; m++ {
		f.divisors = append(f.divisors, m)
	}
	// Divisors that are not below maxDivisor come from the sum itself.
	//
	// A quotient inside another one is divided by the product of both.
	for i, q := range f.pool {
		d := f.d.r.atoms[q].d
		f.enterDivisors(d)
		for _, p := range f.pool[i+1:] {
			if n, ok := mulInt(d, f.d.r.atoms[p].d); ok && n < 1<<20 {
				f.enterDivisor(n)
			}
		}
	}
}

// enterDivisors enters d/1, d/2, d/3, … that are whole.
func (f *fitting) enterDivisors(d int64) {
	for i := int64(1); i <= 16 && d/i > maxDivisor; i++ {
		if d%i == 0 {
			f.enterDivisor(d / i)
		}
	}
}

// enterDivisor enters one divisor, if it is large and not there.
func (f *fitting) enterDivisor(m int64) {
	if m > maxDivisor && len(f.divisors) < 100 &&
		!slices.Contains(f.divisors, m) {
		f.divisors = append(f.divisors, m)
	}
}

// Products of slopes and values of variables, and of values and divisors, are far from
// overflow below these.
const (
	maxSlope = 1 << 30
	maxValue = 1 << 31
)

// moderate reports whether the values at the block are small enough for a planar.
func (f *fitting) moderate() bool {
	for i, v := range f.target[:f.n] {
		if absInt(v) > maxValue {
			return false
		}
		for j := range f.vars {
			if absInt(f.cols[j][i]) > maxValue {
				return false
			}
		}
	}
	return true
}

// A planar is c + g·⌊(e + Σ j·variable)/m⌋.
type planar struct {
	// The points and the values there.
	f *fitting
	// The value at the first point, the greatest divisor of all differences, or 1, and
	// the divisor.
	c, g, m int64
	// Slopes by variable of (value − c)/g.
	slope [maxFitVars]float64
	// Coefficients by variable: the slopes times m, rounded.
	j [maxFitVars]int64
	// Bounds of e.
	lo, hi int64
}

// slopes finds the plane nearest to the values, and reports whether all values are
// so near to it as those of a quotient are.
//
// A quotient is at most one below the plane that it rounds, so the plane that is
// nearest on the average is near to all of its values.
func (p *planar) slopes() bool {
	f := p.f
	n := 1 + len(f.vars)
	var rows [maxFitVars + 1][maxFitVars + 2]float64 // of the normal equations
	var at [maxFitVars + 2]float64
	point := func(i int) {
		at[0] = 1
		for j := range f.vars {
			at[j+1] = float64(f.cols[j][i])
		}
		at[n] = float64((f.target[i] - p.c) / p.g)
	}
	for i := range f.n {
		point(i)
		for j := range n {
			for k := range n + 1 {
				rows[j][k] += at[j] * at[k]
			}
		}
	}
	var k [maxFitVars + 1]float64
	solveEquations(&rows, n, &k)
	for i := range f.n {
		point(i)
		v := at[n]
		for j := range n {
			v -= k[j] * at[j]
		}
		if math.Abs(v) > 1 {
			return false
		}
	}
	copy(p.slope[:], k[1:n])
	return true
}

// solveEquations solves n equations in n unknowns; those that are not determined are 0.
func solveEquations(rows *[maxFitVars + 1][maxFitVars + 2]float64, n int, k *[maxFitVars + 1]float64) {
	var solved [maxFitVars + 1]bool
	for i := range n {
		pivot := rows[i][i]
		if math.Abs(pivot) < 1e-6 {
			continue
		}
		solved[i] = true
		for j := range n {
			if j == i {
				continue
			}
			factor := rows[j][i] / pivot
			for l := i; l <= n; l++ {
				rows[j][l] -= factor * rows[i][l]
			}
		}
	}
	for i := range n {
		if solved[i] {
			k[i] = rows[i][n] / rows[i][i]
		}
	}
}

// leastCost is what the sum costs at least: the division, the additions, and a factor
// that does not come out of the quotient.
func (p *planar) leastCost() int32 {
	n, factors, common := int32(0), int32(0), p.m
	for _, j := range p.j[:len(p.f.vars)] {
		if j == 0 {
			continue
		}
		n++
		switch j %= p.m; j {
		case 0:
		case 1, -1, p.m - 1, 1 - p.m:
			common = 1
		default:
			factors++
			common = GCD(common, j)
		}
	}
	if common > 1 {
		factors = min(factors, 1)
	}
	return (n + factors) * (opCost - 1)
}

// round finds the coefficients for the divisor from the slopes; ok is false where they
// are too large.
func (p *planar) round() (ok bool) {
	for i, s := range p.slope[:len(p.f.vars)] {
		if math.Abs(s)*float64(p.m) > maxSlope {
			return false
		}
		p.j[i] = int64(math.Round(s * float64(p.m)))
	}
	return true
}

// possible reports whether there is an e for the points of the block.
func (p *planar) possible() bool {
	// No bound yet: every point moves one of the ends.
	p.lo, p.hi = minusInf, plusInf
	return p.bound(&p.f.target)
}

// bound narrows e to what the points of the block say, whose values are given:
// m·v ≤ e + Σ j·variable < m·(v + 1).
func (p *planar) bound(values *column) bool {
	f := p.f
	// e ≥ m·v − Σ j·variable, and e < that + m.
	for i, v := range values[:f.n] {
		v -= p.c
		if v%p.g != 0 || absInt(v) > 2*maxValue {
			return false
		}
		at := p.m * (v / p.g)
		for j := range f.vars {
			at -= p.j[j] * f.cols[j][i]
		}
		p.lo = max(p.lo, at)
		p.hi = min(p.hi, at+p.m-1)
		if p.lo > p.hi {
			return false
		}
	}
	return true
}

// holds reports whether there is an e for all points of the box.
func (p *planar) holds(x lin) bool {
	f := p.f
	for f.start(); f.block(1); {
		f.evaluate(x, &f.other)
		if f.steps < 0 || !p.bound(&f.other) {
			return false
		}
	}
	return f.steps >= 0
}

// sum is the sum, with the e that is nearest to 0.
//
// It is divided by the rules, so that whole multiples come out, and extraction has the
// choice of putting them back.
func (p *planar) sum() lin {
	r := p.f.d.r
	x := constForm(min(max(p.lo, 0), p.hi))
	for i, v := range p.f.vars {
		x = r.addAtom(x, p.j[i], v)
	}
	y := r.scale(r.div(x, p.m), p.g)
	return r.shift(y, p.c)
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

// maxTabulated bounds the points of which stepped looks at all.
const maxTabulated = 1024

// stepped finds c + b·x + k·⌊(x + a)/m⌋ for the only variable x. The slopes show it:
// they are b but for b + k once a period.
func (f *fitting) stepped(x lin, cost int32) (lin, bool) {
	if len(f.vars) > 1 || f.count() > maxTabulated ||
		!f.tabulate(x) {
		return lin{}, false
	}
	// Either slope may be the one of the steps.
	for i, b := range f.slopes {
		y, ok := f.steppedBy(b, f.slopes[1-i])
		if ok && f.d.r.minCost(y) < cost {
			return y, true
		}
	}
	return lin{}, false
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
