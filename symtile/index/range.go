package index

// Ranges and congruences of forms.
//
// The loose range of a sum adds the ranges of its terms, which is exact only
// where the terms are independent. Two kinds of dependence are common, and the
// sharp range looks for them: x − m·⌊x/m⌋ is a remainder, in [0, m−1], although x
// and ⌊x/m⌋ may be far apart; and z + k·min(y, 0) is the lesser of two sums. A
// domain adds what it knows of sums (facts). Every sharp range is sound: it holds
// all values; none is promised to be the narrowest.

// looseRange bounds x by the ranges of its atoms alone.
func (r *Ring) looseRange(x lin) Interval {
	lo, hi := x.c, x.c
	if len(x.t) > 64 || !isSmall(x.c) {
		return r.looseRangeSaturating(x)
	}
	for i := range x.t { // at most 64 products below 2⁵⁶: no overflow
		k := x.t[i].k
		in := &r.atoms[x.t[i].a].in
		bits := uint64(k + smallOffset)
		bits |= uint64(in.Lo + smallOffset)
		bits |= uint64(in.Hi + smallOffset)
		switch {
		case bits>>29 != 0:
			return r.looseRangeSaturating(x)
		case k > 0:
			lo += k * in.Lo
			hi += k * in.Hi
		default:
			lo += k * in.Hi
			hi += k * in.Lo
		}
	}
	return Interval{lo, hi}
}

// looseRangeSaturating is looseRange for any numbers and any number of terms.
func (r *Ring) looseRangeSaturating(x lin) Interval {
	in := Interval{x.c, x.c}
	for _, t := range x.t {
		in = in.Add(r.atoms[t.a].in.Scale(t.k))
	}
	return in
}

// rangeDepth limits how many patterns are taken out of one sum, maxPattern how
// long a sum may be for patterns to be looked for: the search is cubic.
const (
	rangeDepth = 4
	maxPattern = 32
)

// sharpRange bounds x by the range rules. What takes a search is kept with the
// form, until the domain learns something (invalidateQuotients).
func (r *Ring) sharpRange(x lin) Interval {
	return r.sharpRangeWithin(x, r.looseRange(x))
}

// sharpRangeWithin is sharpRange for a sum in the loose range in.
func (r *Ring) sharpRangeWithin(x lin, in Interval) Interval {
	have := r.evidenceFor(x)
	if have == 0 {
		return in
	}
	y := r.form(x)
	if f := &r.forms[y]; f.ranged {
		return f.in
	}
	in = r.rangeByRules(x, in, have, rangeDepth)
	r.forms[y].in, r.forms[y].ranged = in, true
	return in
}

// sharpRangeTo is sharpRange with at most depth patterns taken out of x one
// after the other; nothing is kept.
func (r *Ring) sharpRangeTo(x lin, depth int) Interval {
	in := r.looseRange(x)
	if depth <= 0 {
		return in
	}
	have := r.evidenceFor(x)
	if have == 0 {
		return in
	}
	return r.rangeByRules(x, in, have, depth)
}

// A rangeRule bounds x, which lies in in, or declines. Its own searches go to
// depth at most.
type rangeRule struct {
	id    ruleID
	of    evidence // what the rule looks at; without it, it is not tried
	apply func(r *Ring, x lin, in Interval, depth int) (Interval, bool)
}

// An evidence is a set of what there is to bound a sum by.
type evidence uint8

// The kinds of evidence.
const (
	factsOfSums    evidence = 1 << iota // the domain knows sums
	exactQuotients                      // the ring has quotients known to be exact
	quotientTerms                       // the sum has quotients, or products, among its atoms
	minimumTerms                        // the sum has minima among its atoms
	otherTerms                          // or atoms that no rule looks at
)

// rangeRules all contribute: the bound of x is the intersection of theirs.
var rangeRules []rangeRule

func init() { // the rules bound other sums, which a literal may not refer to
	rangeRules = []rangeRule{
		{ruleRangeFact, factsOfSums, rangeByFacts},
		{ruleDivExact, exactQuotients, rangeByExact},
		{ruleRangeMod, quotientTerms, rangeByRemainder},
		{ruleRangeMin, minimumTerms, rangeByMinima},
	}
}

// rangeByRules is the intersection of in, the loose range of x, and the bounds of the
// rules that have something to look at.
func (r *Ring) rangeByRules(x lin, in Interval, have evidence, depth int) Interval {
	for i := range rangeRules {
		rule := &rangeRules[i]
		if rule.of&have == 0 {
			continue
		}
		if by, ok := rule.apply(r, x, in, depth); ok {
			r.fired[rule.id]++
			in = in.Meet(by)
		}
	}
	return in
}

// evidenceFor is what there is to bound x by; 0 where the loose range is as sharp
// as the rules can make it.
//
// Without facts, that is so unless the terms of x can depend on each other in a
// way that a rule sees: x has a quotient or a minimum, another term, and terms
// that move in opposite directions. A sum that is monotone in every variable
// takes its least and greatest value at corners of the box, where the loose range
// is exact.
func (r *Ring) evidenceFor(x lin) (have evidence) {
	known := len(r.facts.sums) > 0
	if !known {
		if len(x.t) > maxPattern || len(x.t) == 1 && x.c == 0 {
			return 0
		}
	}
	rising, falling := true, true
	for i := range x.t {
		a := &r.atoms[x.t[i].a]
		switch a.kind {
		case atomVar:
		case atomDiv, atomQuot, atomProduct:
			have |= quotientTerms
		case atomMinZero:
			have |= minimumTerms
		default:
			have |= otherTerms
		}
		rising = rising && a.nondecreasing && x.t[i].k > 0
		falling = falling && a.nondecreasing && x.t[i].k < 0
	}
	if !known && (have == 0 || rising || falling) {
		return 0
	}
	if known {
		have |= factsOfSums
	}
	if r.facts.anyExact {
		have |= exactQuotients
	}
	return have
}

// nondecreasing reports whether x does not fall when a variable rises.
func (r *Ring) nondecreasing(x lin) bool {
	for i := range x.t {
		t := x.t[i]
		if t.k < 0 || !r.atoms[t.a].nondecreasing {
			return false
		}
	}
	return true
}

// width is the length of an interval less one, saturating.
func width(in Interval) int64 { return SatAdd(in.Hi, satNeg(in.Lo)) }

// A patternSearch looks for the remainder in x that leaves the narrowest bound:
// x = rest + something in inside.
type patternSearch struct {
	r        *Ring
	x        lin
	minWidth int64    // of the best bound so far, at first the one to improve on
	inside   Interval // of the remainder taken out
	rest     lin
	found    bool
}

// offer takes x = rest + inside when its bound is narrower than the best so far.
func (s *patternSearch) offer(rest lin, inside Interval) {
	n := width(s.r.looseRange(rest).Add(inside))
	if n < s.minWidth {
		s.minWidth = n
		s.inside = inside
		s.rest = rest
		s.found = true
	}
}

// mods offers the ways of seeing k·(X mod m) through t.
func (s *patternSearch) mods(t term) {
	for i := range len(s.x.t) + 2 {
		if p, ok := s.r.modPart(s.x, t, i); ok {
			rest := s.r.withoutMod(s.x, t.a, p)
			s.offer(rest, Interval{0, p.m - 1}.Scale(p.k))
		}
	}
}

// modBy offers k·(y mod f), f symbolic: y mod f is in [0, max f − 1], and at most
// y when y ≥ 0.
func (s *patternSearch) modBy(t term) {
	y, q, k := s.r.remainder(s.x, t)
	if k == 0 || s.r.atoms[q].kind != atomQuot {
		return
	}
	f := s.r.lin(s.r.atoms[q].z)
	inside := Interval{
		0, SatAdd(s.r.looseRange(f).Hi, -1),
	}
	if in := s.r.looseRange(y); in.Lo >= 0 {
		inside.Hi = min(inside.Hi, in.Hi)
	}
	rest := s.r.addmul(s.x, -k, y)
	multiple := s.r.mul(f, s.r.atomForm(q))
	rest = s.r.addmul(rest, k, multiple)
	s.offer(rest, inside.Scale(k))
}

// rangeByRemainder is range-mod: it takes the remainder out of x that leaves the
// narrowest rest, and bounds the rest in the same way.
func rangeByRemainder(r *Ring, x lin, in Interval, depth int) (Interval, bool) {
	s := patternSearch{r: r, x: x, minWidth: width(in)}
	for i := len(x.t) - 1; i >= 0; i-- {
		switch r.atoms[x.t[i].a].kind {
		case atomDiv:
			s.mods(x.t[i])
		case atomQuot, atomProduct:
			s.modBy(x.t[i])
		}
	}
	if !s.found {
		return Interval{}, false
	}
	return r.sharpRangeTo(s.rest, depth-1).Add(s.inside), true
}

// rangeByMinima is range-min for every minimum in x: x = z + k·min(y, 0) is the
// lesser of z and z + k·y, or, for k < 0, the greater.
func rangeByMinima(r *Ring, x lin, _ Interval, depth int) (Interval, bool) {
	out, ok := Unbounded(), false
	for i := len(x.t) - 1; i >= 0; i-- {
		t := x.t[i]
		if r.atoms[t.a].kind != atomMinZero {
			continue
		}
		z := r.withoutTerm(x, t)
		least := r.lin(r.atoms[t.a].y)
		y := r.addmul(z, t.k, least)
		a := r.sharpRangeTo(z, depth-2)
		b := r.sharpRangeTo(y, depth-2)
		if t.k > 0 {
			out = out.Meet(a.Min(b))
		} else {
			out = out.Meet(a.Max(b))
		}
		ok = true
	}
	return out, ok
}

// rangeByFacts is range-fact for every known sum l: x is bounded as
// k·l + (x − k·l), where k makes the first term of l vanish.
func rangeByFacts(r *Ring, x lin, _ Interval, _ int) (Interval, bool) {
	out, ok := Unbounded(), false
	for i := range r.facts.sums {
		f := &r.facts.sums[i]
		k := x.coefficient(f.sum.t[0].a)
		if k == 0 || k%f.sum.t[0].k != 0 {
			continue
		}
		k /= f.sum.t[0].k
		rest := r.addmul(x, -k, f.sum)
		if len(rest.t) > len(x.t) {
			continue
		}
		out = out.Meet(r.looseRange(rest).Add(f.in.Scale(k)))
		ok = true
	}
	return out, ok
}

// rangeByExact bounds x as (m·x)/m, where m·x has no exact quotient by m left
// (div-exact).
func rangeByExact(r *Ring, x lin, _ Interval, depth int) (Interval, bool) {
	for _, t := range x.t {
		a := &r.atoms[t.a]
		if !a.exact || t.k%a.by == 0 {
			continue
		}
		by := a.by
		multiple := r.addmul(lin{}, by, x)
		return r.sharpRangeTo(multiple, depth-1).unscale(by), true
	}
	return Interval{}, false
}

// A modPart is a way of seeing k·(x mod m) inside a sum, with ⌊x/m⌋ the atom of
// one of its terms. There are several, because x = ⌊y/e⌋ may be a quotient itself,
// and ⌊x/m⌋ is then ⌊y/(e·m)⌋ in normal form: d0 floordiv 4 − (d0 floordiv 12)·3
// is (d0 floordiv 4) mod 3.
type modPart struct {
	x    lin
	m, k int64
}

// modPart is the i-th way, 0 ≤ i < len(x.t)+2, of seeing k·(X mod m) in x
// through the term d: X − m·D with D = ⌊y/dd⌋ and X = ⌊y/e⌋, e·m = dd. The first
// two take X = y and k from d or from y's first term; the others start from one
// term of x.
func (r *Ring) modPart(x lin, d term, i int) (p modPart, ok bool) {
	a := &r.atoms[d.a]
	y := r.lin(a.y)
	dd := a.d
	switch i {
	case 0:
		if !x.sharesAtom(y) {
			return p, false
		}
		k := -d.k / dd
		return modPart{y, dd, k}, k*dd == -d.k
	case 1:
		if len(y.t) == 0 {
			return p, false // ⌊c/d⌋ of a constant, which is no part of a remainder
		}
		c := x.coefficient(y.t[0].a)
		if c == 0 {
			return p, false
		}
		k := c / y.t[0].k
		ok := c == k*y.t[0].k && k != -d.k/dd
		return modPart{y, dd, k}, ok
	}
	t := x.t[i-2]
	if t.a == d.a {
		return p, false
	}
	b := &r.atoms[t.a]
	nested := b.kind == atomDiv && b.y == a.y
	if nested && b.d < dd && dd%b.d == 0 {
		return modPart{
			r.atomForm(t.a), dd / b.d, t.k,
		}, true
	}
	if (d.k < 0) == (t.k < 0) {
		return p, false
	}
	m := -d.k / t.k
	if m < 2 || m >= dd || m*t.k != -d.k || dd%m != 0 {
		return p, false
	}
	return modPart{r.div(y, dd/m), m, t.k}, true
}

// withoutMod is x − k·(X mod m), the atom d being ⌊X/m⌋; x where k·m is not an
// int64.
func (r *Ring) withoutMod(x lin, d int32, p modPart) lin {
	k, ok := mulInt(p.k, p.m)
	if !ok {
		return x
	}
	rest := r.addmul(x, -p.k, p.x)
	return r.addAtom(rest, k, d)
}

// remainder finds k·(y mod m) in x through its term t, which has −k·m·⌊y/m⌋ or
// the first part of −k·f·⌊y/f⌋; q is the quotient, k 0 without any.
func (r *Ring) remainder(x lin, t term) (y lin, q int32, k int64) {
	var buf [2 * maxDegree]int32
	for _, q = range r.factorsOf(t.a, buf[:0]) {
		a := &r.atoms[q]
		unit := term{a.d, q}
		switch {
		case a.kind == atomQuot && len(r.forms[a.z].t) > 0:
			f := r.forms[a.z].t[0]
			unit = term{f.k, r.product(f.a, q)}
		case a.kind != atomDiv:
			continue
		}
		y = r.lin(r.atoms[q].y)
		k = -t.k / unit.k
		if unit.a != t.a || t.k%unit.k != 0 {
			continue
		}
		if len(y.t) > 0 &&
			x.coefficient(y.t[0].a) != k*y.t[0].k {
			continue
		}
		return y, q, k
	}
	return lin{}, 0, 0
}

// residue is x mod d where the congruences of the domain, or else those of the
// atoms of x, tell it.
func (r *Ring) residue(x lin, d int64) (res int64, known bool) {
	for i := range r.facts.congr {
		c := &r.facts.congr[i]
		k := x.coefficient(c.sum.t[0].a)
		if k == 0 || k%c.sum.t[0].k != 0 {
			continue
		}
		k /= c.sum.t[0].k
		rest := r.addmul(x, -k, c.sum)
		if len(rest.t) == 0 &&
			r.mulAdd(0, k, c.m)%d == 0 {
			return floorMod(r.mulAdd(rest.c, k, c.r), d), true
		}
	}
	for i := range x.t {
		k := x.t[i].k
		m := r.atoms[x.t[i].a].m
		if m == 1 && absInt(k) < uint64(d) {
			return 0, false
		}
		km, ok := mulInt(k, m)
		if !ok || km%d != 0 {
			return 0, false
		}
	}
	n, res := r.congruence(x)
	return floorMod(res, d), n%d == 0
}

// congruence returns m ≥ 0 and 0 ≤ res < m with x ≡ res (mod m); m = 0 means
// that x is res.
func (r *Ring) congruence(x lin) (m, res int64) {
	res = x.c
	for _, t := range x.t {
		a := &r.atoms[t.a]
		km, ok1 := mulInt(t.k, a.m)
		kr, ok2 := mulInt(t.k, a.r)
		s, ok3 := addInt(res, kr)
		if !ok1 || !ok2 || !ok3 {
			return 1, 0
		}
		m, res = GCD(m, km), s
	}
	if m == 0 {
		return m, res
	}
	return m, floorMod(res, m)
}

// congruenceMul multiplies x ≡ r (mod m) by y ≡ s (mod n): with x = r + m·i and
// y = s + n·j, x·y ≡ r·s modulo gcd(m·n, m·s, n·r).
func congruenceMul(m, r, n, s int64) (int64, int64) {
	mn, ok1 := mulInt(m, n)
	ms, ok2 := mulInt(m, s)
	nr, ok3 := mulInt(n, r)
	rs, ok4 := mulInt(r, s)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return 1, 0
	}
	g := GCD(GCD(mn, ms), nr)
	if g == 0 {
		return 0, rs
	}
	return g, floorMod(rs, g)
}
