package index

import "math"

// What needs no search. Nearly all results are sums of variables and of digits, one
// digit being ⌊y/lo⌋ mod (hi/lo) of a sum y that takes every integer of its range;
// where the digits have no variable in common, or are different digits of one sum,
// nothing shorter equals them.
//
// This is a guess and not a proof, made on 20,000 random chains: it decides how much is
// tried, and nothing of what is right. A digit of a sum with gaps may be one of a
// shorter sum; a constraint may leave so few points that a plane goes through them;
// digits of one sum that adjoin each other may be one digit. None of these is settled.

// maxDigits bounds the digits of a sum that is looked at.
const maxDigits = 8

// A digit is ⌊y/lo⌋ mod (hi/lo), or ⌊y/lo⌋ where hi is 0. The variable y is the digit
// with lo = 1 and hi = 0.
type digit struct {
	y      lin
	lo, hi int64
	k      int64 // its coefficient
}

// settled reports whether no sum of fewer operations that equals x on the domain is to
// be expected.
func (r *Ring) settled(x lin) bool {
	if !r.divides(x) {
		return true
	}
	if k, ok := r.remainderOf(x); ok {
		q := &r.atoms[x.t[len(x.t)-1].a]
		g := r.remainderDigit(q.y, q.d)
		g.k = k
		return !g.movable(0) && r.steady(&g)
	}
	if !r.plain(x) {
		c := r.choice(r.form(x))
		if c.settled {
			return true
		}
		x = c.lin
	}
	var digits [maxDigits]digit
	n := 0
	for _, t := range x.t {
		g, ok := r.digitOf(t.a)
		if !ok || n == maxDigits {
			return false
		}
		g.k = t.k
		if g.movable(x.c) || !r.steady(&g) {
			return false
		}
		digits[n] = g
		n++
	}
	return r.unrelated(digits[:n])
}

// chosen is the way to write x that takes the fewest operations.
func (r *Ring) chosen(x lin) lin {
	if r.plain(x) {
		return x
	}
	return r.choice(r.form(x)).lin
}

// digitOf is atom id as a digit.
func (r *Ring) digitOf(id int32) (g digit, ok bool) {
	a := &r.atoms[id]
	switch a.kind {
	case atomVar:
		return digit{y: r.atomForm(id), lo: 1}, true
	case atomDiv, atomFloorDiv:
		return digit{y: r.lin(a.y), lo: a.d}, true
	case atomMod:
		return r.remainderDigit(a.y, a.d), true
	}
	return g, false
}

// remainderDigit is y mod m as a digit: of the dividend of y, if y is a quotient.
func (r *Ring) remainderDigit(y int32, m int64) digit {
	x := r.chosen(r.lin(y))
	if len(x.t) == 1 && x.c == 0 && x.t[0].k == 1 {
		b := &r.atoms[x.t[0].a]
		hi, ok := mulInt(m, b.d)
		if ok && (b.kind == atomDiv || b.kind == atomFloorDiv) {
			return digit{y: r.lin(b.y), lo: b.d, hi: hi}
		}
	}
	return digit{y: r.lin(y), lo: 1, hi: m}
}

// movable reports whether the sign or the factor of g may be written inside of it, so
// that the constant c of the sum or one of its own goes away.
func (g *digit) movable(c int64) bool {
	switch {
	case g.lo == 1 && g.hi == 0: // a variable
		return false
	case g.hi == 0:
		return c != 0 && c%g.k == 0 && (g.k < 0 || g.y.c != 0)
	}
	scaled := len(g.y.t) == 1 && g.y.t[0].k != 1
	if g.k != 1 && g.k != -1 && (scaled || c != 0 && g.y.c != 0) {
		return true
	}
	return g.k < 0 && c == -g.k*(g.hi/g.lo-1)
}

// unrelated reports whether any two digits are of sums without common variables, or
// of the same sum and far enough from each other.
func (r *Ring) unrelated(digits []digit) bool {
	for i, g := range digits {
		of := 0
		for _, h := range digits[:i] {
			if g.y.equal(h.y) {
				of++
			}
			if of > 1 || !r.unrelatedPair(g, h) {
				return false
			}
		}
	}
	return true
}

// unrelatedPair is unrelated for two digits.
func (r *Ring) unrelatedPair(g, h digit) bool {
	x := g.y
	if !x.equal(h.y) {
		return !x.sharesAtom(h.y)
	}
	if len(x.t) > 1 || x.c != 0 ||
		!g.beside(h) && !h.beside(g) {
		return false
	}
	// Of few periods something shorter may be left.
	in := r.atoms[x.t[0].a].in
	m := max(g.lo, g.hi, h.lo, h.hi)
	return width(in)/m >= 4 ||
		in.Lo == 0 && (in.Hi+1)/m >= 2
}

// beside reports whether g and h, digits of one sum, are written as short as two digits
// can be: extraction has compared what adjacent ones may be instead.
func (g digit) beside(h digit) bool {
	if g.lo == 1 && g.hi == 0 {
		return h.lo == 1 || h.hi == 0
	}
	return h.hi > 0 && h.hi <= g.lo && g.lo%h.hi == 0 && g.k%g.lo != 0 && g.k != 1
}

// digitSum writes x as a sum of digits, if it is one than which nothing shorter is to
// be expected: most sums are, and are not searched for how they are written.
func (r *Ring) digitSum(x lin) (out lin, ok bool) {
	var digits [maxDigits]digit
	n := 0
	positive := x.c > 0
	for len(x.t) > 0 {
		if n == maxDigits {
			return out, false
		}
		g := &digits[n]
		*g, x = r.lastDigit(x)
		positive = positive || g.k > 0
		n++
	}
	if !positive {
		return out, false // the sign may be free inside of a digit
	}
	for i := range digits[:n] {
		g := &digits[i]
		if g.movable(x.c) || g.reducible() || !r.steady(g) {
			return out, false
		}
		for _, h := range digits[:i] {
			if !r.unrelatedPair(*g, h) || g.adjoins(h) {
				return out, false
			}
		}
	}
	out = constForm(x.c)
	for i := range digits[:n] {
		out = r.addAtom(out, digits[i].k, r.digitAtom(&digits[i]))
	}
	return out, true
}

// reducible reports whether a coefficient of the sum of a remainder may be 0 or ±1.
func (g *digit) reducible() bool {
	if g.hi == 0 {
		return false
	}
	for _, t := range g.y.t {
		k := t.k % g.hi
		if t.k != 1 && (k <= 1 || k == g.hi-1) {
			return true
		}
	}
	return false
}

// lastDigit is the last term of x as a digit, with the other terms that are part of it,
// and the rest of x.
func (r *Ring) lastDigit(x lin) (g digit, rest lin) {
	last := len(x.t) - 1
	t := x.t[last]
	a := &r.atoms[t.a]
	rest = lin{x.t[:last:last], x.c}
	if a.kind != atomDiv {
		return digit{y: r.atomForm(t.a), lo: 1, k: t.k}, rest
	}
	y := r.lin(a.y)
	if k := -t.k / a.d; k*a.d == -t.k && rest.has(k, y) {
		return digit{y: y, lo: 1, hi: a.d, k: k}, r.addmul(rest, -k, y)
	}
	for _, u := range rest.t {
		b := &r.atoms[u.a]
		if b.kind != atomDiv || b.y != a.y {
			continue
		}
		g := digit{y: y, lo: b.d, hi: a.d, k: u.k}
		k := t.k
		if g.lo > g.hi {
			g.lo, g.hi = g.hi, g.lo
			g.k, k = k, g.k
		}
		if g.hi%g.lo == 0 && g.k*(g.hi/g.lo) == -k {
			return g, r.withoutTerm(rest, u)
		}
	}
	return digit{y: y, lo: a.d, k: t.k}, rest
}

// has reports whether the terms of k·y are terms of x.
func (x lin) has(k int64, y lin) bool {
	for _, u := range y.t {
		if c := x.coefficient(u.a); c == 0 || c != k*u.k {
			return false
		}
	}
	return true
}

// digitAtom is the atom that g is but for its coefficient.
func (r *Ring) digitAtom(g *digit) (id int32) {
	if g.lo == 1 && g.hi == 0 {
		return g.y.t[0].a
	}
	y := r.form(g.y)
	if g.lo > 1 {
		id, _ = r.atom(atomDiv, y, -1, g.lo)
		y = r.form(r.atomForm(id))
	}
	if g.hi > 0 {
		id, _ = r.atom(atomMod, y, -1, g.hi/g.lo)
	}
	return id
}

// adjoins reports whether g and h are digits of one sum that make one digit together:
// there are more ways to write those.
func (g *digit) adjoins(h digit) bool {
	return g.y.equal(h.y) &&
		(g.hi == h.lo || h.hi == g.lo || g.hi == h.hi || g.lo == h.lo)
}

// maxSteadyTerms bounds the terms of a sum of which digits are taken.
const maxSteadyTerms = 6

// steady reports whether g is of a variable, or of a sum of variables that takes every
// integer of its range, which is several periods of g long, step by step.
func (r *Ring) steady(g *digit) bool {
	x := g.y
	if len(x.t) > maxSteadyTerms || !r.uncut(x, g) {
		return false
	}
	for _, t := range x.t {
		if t.k < 0 || r.atoms[t.a].kind != atomVar || r.atoms[t.a].m > 1 {
			return false
		}
	}
	if len(x.t) == 1 && x.c == 0 && x.t[0].k == 1 {
		return true
	}
	in := r.sharpRange(x)
	m := max(g.lo, g.hi)
	periods := width(in) / m
	switch {
	case periods < 2:
		return false
	case len(x.t) == 1 && x.t[0].k != 1:
		return GCD(x.t[0].k, m) == 1 && periods > 2*m
	}
	return r.dense(x)
}

// dense reports whether the sum x of positive multiples of variables takes all values of
// its range.
func (r *Ring) dense(x lin) bool {
	// The terms with coefficients up to last have all values in [0, reach].
	reach, last := int64(0), int64(0)
	for {
		k := int64(math.MaxInt64)
		for _, t := range x.t {
			if t.k > last {
				k = min(k, t.k)
			}
		}
		switch {
		case k == math.MaxInt64:
			return true
		case k > reach+1:
			return false
		}
		for _, t := range x.t {
			if t.k == k {
				in := r.atoms[t.a].in
				reach = SatAdd(reach, SatMul(k, width(in)))
			}
		}
		last = k
	}
}

// uncut reports whether no constraint is about the variables of x, but for bounds of x
// itself, or of a sum with the same remainders, g being a remainder.
func (r *Ring) uncut(x lin, g *digit) bool {
	fs := &r.facts
	for i := range fs.congr {
		if !r.apartFrom(fs.congr[i].sum, x) {
			return false
		}
	}
	for i := range fs.sums {
		sum := fs.sums[i].sum
		if !(x.c == 0 && g.like(x, sum)) && !r.apartFrom(sum, x) {
			return false
		}
	}
	return true
}

// like reports whether g is the same digit of x and of y, constants left out.
func (g *digit) like(x, y lin) bool {
	if len(x.t) != len(y.t) {
		return false
	}
	for i, t := range x.t {
		u := y.t[i]
		if t.a != u.a || t.k != u.k && (g.hi == 0 || (t.k-u.k)%g.hi != 0) {
			return false
		}
	}
	return true
}

// apartFrom reports whether y has none of the variables of x, a sum of variables.
func (r *Ring) apartFrom(y, x lin) bool {
	for _, t := range y.t {
		a := &r.atoms[t.a]
		switch a.kind {
		case atomVar:
			if x.coefficient(t.a) != 0 {
				return false
			}
		case atomDiv, atomFloorDiv, atomMod:
			if !r.apartFrom(r.lin(a.y), x) {
				return false
			}
		default:
			return false
		}
	}
	return true
}
