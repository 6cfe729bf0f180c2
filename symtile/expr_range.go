package symtile

// naive bounds x by the bounds of its atoms alone.
func (r *Ring) naive(x lin) Interval {
	in := Interval{x.c, x.c}
	for _, t := range x.t {
		in = in.Add(r.atoms[t.a].in.Scale(t.k))
	}
	return in
}

// rangeDepth limits how many patterns are taken out of one sum.
const rangeDepth = 4

// ranged bounds x: naive, sharpened by mod patterns and by the facts.
func (r *Ring) ranged(x lin) Interval { return r.rangedTo(x, rangeDepth) }

func (r *Ring) rangedTo(x lin, depth int) Interval {
	in := r.naive(x)
	if depth == 0 || len(x.t) < 2 {
		return in
	}
	for i := range r.facts.sums {
		in = in.Meet(r.byFact(x, &r.facts.sums[i]))
	}
	best, inside, rest := satAdd(in.Hi, satNeg(in.Lo)), Interval{}, lin{}
	found := false
	for i := len(x.t) - 1; i >= 0; i-- {
		if r.atoms[x.t[i].a].kind != atomDiv {
			continue
		}
		var parts [maxParts]modPart
		for _, p := range r.modParts(x, x.t[i], parts[:0]) {
			y := r.withoutMod(x, x.t[i].a, p)
			mod := Interval{0, p.m - 1}.Scale(p.k)
			w := r.naive(y).Add(mod)
			if n := satAdd(w.Hi, satNeg(w.Lo)); n < best {
				best, inside, rest, found = n, mod, y, true
			}
		}
	}
	if found {
		r.fired[ruleRangeMod]++
		in = in.Meet(r.rangedTo(rest, depth-1).Add(inside))
	}
	return in
}

// byFact bounds x as k·l + (x − k·l) for the l of a known sum.
func (r *Ring) byFact(x lin, f *fact) Interval {
	k := x.coef(f.sum.t[0].a)
	if k == 0 || k%f.sum.t[0].k != 0 {
		return Everything()
	}
	k /= f.sum.t[0].k
	rest := r.addmul(x, -k, f.sum)
	if len(rest.t) > len(x.t) {
		return Everything()
	}
	r.fired[ruleRangeFact]++
	return r.naive(rest).Add(f.in.Scale(k))
}

// A modPart is a way of seeing k·(x mod m) inside a sum, with ⌊x/m⌋ the atom
// of one of its terms.
type modPart struct {
	x    lin
	m, k int64
}

const maxParts = 8

// modParts appends the ways of seeing k·(X mod m) in x through the term d: X −
// m·D with D = ⌊y/dd⌋ and X = ⌊y/e⌋, e·m = dd.
func (r *Ring) modParts(x lin, d term, out []modPart) []modPart {
	y, dd := r.forms[r.atoms[d.a].y].lin, r.atoms[d.a].d
	add := func(p modPart) {
		if len(out) < cap(out) {
			out = append(out, p)
		}
	}
	if d.k%dd == 0 {
		add(modPart{y, dd, -d.k / dd})
	}
	if c := x.coef(y.t[0].a); c != 0 && c%y.t[0].k == 0 && -d.k/dd != c/y.t[0].k {
		add(modPart{y, dd, c / y.t[0].k})
	}
	for _, t := range x.t {
		if t.a == d.a {
			continue
		}
		a := &r.atoms[t.a]
		if a.kind == atomDiv && a.y == r.atoms[d.a].y && a.d < dd && dd%a.d == 0 {
			add(modPart{r.one(t.a), dd / a.d, t.k})
			continue
		}
		if d.k%t.k != 0 {
			continue
		}
		if m := -d.k / t.k; m >= 2 && m < dd && dd%m == 0 {
			add(modPart{r.div(y, dd/m), m, t.k})
		}
	}
	return out
}

// withoutMod is x − k·(X mod m), the atom d being ⌊X/m⌋.
func (r *Ring) withoutMod(x lin, d int32, p modPart) lin {
	k, ok := mulInt(p.k, p.m)
	if !ok {
		return x
	}
	return r.addmul(r.addmul(x, -p.k, p.x), k, r.one(d))
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
		m, res = gcd(m, km), s
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
	g := gcd(gcd(mn, ms), nr)
	if g == 0 {
		return 0, rs
	}
	return g, floorMod(rs, g)
}
