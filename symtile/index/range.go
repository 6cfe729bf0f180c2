package index

// naive bounds x by the bounds of its atoms alone.
func (r *Ring) naive(x lin) Interval {
	lo, hi := x.c, x.c
	if len(x.t) > 64 || !near(x.c) {
		return r.naiveFar(x)
	}
	for i := range x.t { // at most 64 products below 2⁵⁶: no overflow
		k := x.t[i].k
		in := &r.atoms[x.t[i].a].in
		switch {
		case (uint64(k+farOff)|
			uint64(in.Lo+farOff)|
			uint64(in.Hi+farOff))>>29 != 0:
			return r.naiveFar(x)
		case k > 0:
			lo = lo + k*in.Lo
			hi = hi + k*in.Hi
		default:
			lo = lo + k*in.Hi
			hi = hi + k*in.Lo
		}
	}
	return Interval{lo, hi}
}

// near reports whether |x| < 2²⁸, as nearly everything is.
func near(x int64) bool { return uint64(x+farOff)>>29 == 0 }

const farOff = 1 << 28

func (r *Ring) naiveFar(x lin) Interval {
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

// ranged bounds x: naive, sharpened by mod patterns and by the facts. What takes
// a search is kept.
func (r *Ring) ranged(x lin) Interval {
	if len(r.facts.sums) == 0 && !r.hasPattern(x) {
		return r.naive(x)
	}
	y := r.form(x)
	if f := &r.forms[y]; f.ranged {
		return f.in
	}
	in := r.rangedTo(x, rangeDepth)
	r.forms[y].in, r.forms[y].ranged = in, true
	return in
}

func (r *Ring) rangedTo(x lin, depth int) Interval {
	in := r.naive(x)
	if depth <= 0 ||
		len(r.facts.sums) == 0 && !r.hasPattern(x) {
		return in
	}
	for i := range r.facts.sums {
		in = in.Meet(r.byFact(x, &r.facts.sums[i]))
	}
	if r.facts.anyExact {
		in = in.Meet(r.byExact(x, depth))
	}
	s := patternSearch{r: r, x: x, least: width(in)}
	for i := len(x.t) - 1; i >= 0; i-- {
		switch r.atoms[x.t[i].a].kind {
		case atomDiv:
			s.mods(x.t[i])
		case atomQuot, atomMul:
			s.modBy(x.t[i])
		case atomMin:
			in = in.Meet(r.byMin(x, x.t[i], depth-2))
		}
	}
	if s.found {
		r.fired[ruleRangeMod]++
		in = in.Meet(
			r.rangedTo(s.rest, depth-1).Add(s.inside),
		)
	}
	return in
}

// hasPattern reports whether x can be more than its terms apart: it has a
// quotient or a min, something beside it, and terms that pull against each
// other. What only rises, or only falls, is least and greatest at corners.
func (r *Ring) hasPattern(x lin) bool {
	if len(x.t) > maxPattern ||
		len(x.t) == 1 && x.c == 0 {
		return false
	}
	inner := false
	rises := true
	falls := true
	for i := range x.t {
		a := &r.atoms[x.t[i].a]
		inner = inner || a.kind != atomVar
		rises = rises && a.rises && x.t[i].k > 0
		falls = falls && a.rises && x.t[i].k < 0
	}
	return inner && !rises && !falls
}

// rises reports whether x does not fall when a variable rises.
func (r *Ring) rises(x lin) bool {
	for i := range x.t {
		if x.t[i].k < 0 ||
			!r.atoms[x.t[i].a].rises {
			return false
		}
	}
	return true
}

func width(in Interval) int64 { return SatAdd(in.Hi, satNeg(in.Lo)) }

// A patternSearch looks for the remainder in x that leaves the narrowest rest:
// x = rest + something in inside.
type patternSearch struct {
	r      *Ring
	x      lin
	least  int64
	inside Interval
	rest   lin
	found  bool
}

func (s *patternSearch) offer(rest lin, inside Interval) {
	n := width(s.r.naive(rest).Add(inside))
	if n < s.least {
		s.least = n
		s.inside = inside
		s.rest = rest
		s.found = true
	}
}

// mods offers the ways of seeing k·(X mod m) through t.
func (s *patternSearch) mods(t term) {
	for i := range len(s.x.t) + 2 {
		if p, ok := s.r.modPart(s.x, t, i); ok {
			s.offer(
				s.r.withoutMod(s.x, t.a, p),
				Interval{0, p.m - 1}.Scale(p.k),
			)
		}
	}
}

// modBy offers k·(y mod f), f symbolic: it is in k·[0, max f − 1], and not over
// y when y ≥ 0.
func (s *patternSearch) modBy(t term) {
	y, q, k := s.r.remainder(s.x, t)
	if k == 0 || s.r.atoms[q].kind != atomQuot {
		return
	}
	f := s.r.forms[s.r.atoms[q].z].lin
	inside := Interval{0, SatAdd(s.r.naive(f).Hi, -1)}
	if in := s.r.naive(y); in.Lo >= 0 {
		inside.Hi = min(inside.Hi, in.Hi)
	}
	rest := s.r.addmul(s.x, -k, y)
	rest = s.r.addmul(
		rest,
		k,
		s.r.mul(f, s.r.one(q)),
	)
	s.offer(rest, inside.Scale(k))
}

// byMin bounds x = z + k·min(y, 0) as the least of z and z + k·y, or, k < 0, as
// the greatest.
func (r *Ring) byMin(x lin, t term, depth int) Interval {
	r.fired[ruleRangeMin]++
	z := r.addmul(x, -t.k, r.one(t.a))
	y := r.addmul(
		z,
		t.k,
		r.forms[r.atoms[t.a].y].lin,
	)
	a := r.rangedTo(z, depth)
	b := r.rangedTo(y, depth)
	if t.k > 0 {
		return a.Min(b)
	}
	return a.Max(b)
}

// byFact bounds x as k·l + (x − k·l) for the l of a known sum.
func (r *Ring) byFact(x lin, f *fact) Interval {
	k := x.coef(f.sum.t[0].a)
	if k == 0 || k%f.sum.t[0].k != 0 {
		return Unbounded()
	}
	k /= f.sum.t[0].k
	rest := r.addmul(x, -k, f.sum)
	if len(rest.t) > len(x.t) {
		return Unbounded()
	}
	r.fired[ruleRangeFact]++
	return r.naive(rest).Add(f.in.Scale(k))
}

// byExact bounds x as (m·x)/m, where an exact quotient by m goes away.
func (r *Ring) byExact(x lin, depth int) Interval {
	for _, t := range x.t {
		a := &r.atoms[t.a]
		if a.exact && t.k%a.by != 0 {
			by := a.by
			return r.rangedTo(r.addmul(lin{}, by, x), depth-1).dilate(by)
		}
	}
	return Unbounded()
}

// A modPart is a way of seeing k·(x mod m) inside a sum, with ⌊x/m⌋ the atom
// of one of its terms.
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
	y := r.forms[a.y].lin
	dd := a.d
	switch i {
	case 0:
		if !x.shares(y) {
			return p, false
		}
		k := -d.k / dd
		return modPart{y, dd, k}, k*dd == -d.k
	case 1:
		c := x.coef(y.t[0].a)
		if c == 0 {
			return p, false
		}
		k := c / y.t[0].k
		return modPart{y, dd, k}, c == k*y.t[0].k &&
			k != -d.k/dd
	}
	t := x.t[i-2]
	if t.a == d.a {
		return p, false
	}
	b := &r.atoms[t.a]
	if b.kind == atomDiv && b.y == a.y &&
		b.d < dd && dd%b.d == 0 {
		return modPart{r.one(t.a), dd / b.d, t.k}, true
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

// shares reports whether x and y have an atom in common.
func (x lin) shares(y lin) bool {
	s, t := x.t, y.t
	for len(s) > 0 && len(t) > 0 {
		switch {
		case s[0].a < t[0].a:
			s = s[1:]
		case s[0].a > t[0].a:
			t = t[1:]
		default:
			return true
		}
	}
	return false
}

// withoutMod is x − k·(X mod m), the atom d being ⌊X/m⌋.
func (r *Ring) withoutMod(x lin, d int32, p modPart) lin {
	k, ok := mulInt(p.k, p.m)
	if !ok {
		return x
	}
	return r.addmul(
		r.addmul(x, -p.k, p.x),
		k,
		r.one(d),
	)
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
