package index

// divResidue moves the constant of x inside one period of g, where x without
// its constant is known modulo g from the congruences of the domain.
func divResidue(r *Ring, x lin, d int64) (lin, bool) {
	for i := range r.facts.congr {
		c := &r.facts.congr[i]
		k := x.coef(c.sum.t[0].a)
		if k == 0 || k%c.sum.t[0].k != 0 {
			continue
		}
		k /= c.sum.t[0].k
		rest := r.addmul(x, -k, c.sum)
		if len(rest.t) != 0 {
			continue
		}
		g := GCD(r.mulAdd(0, k, c.m), d)
		if g < 2 {
			continue
		}
		res := floorMod(r.mulAdd(rest.c-x.c, k, c.r), g)
		base := g * FloorDiv(res+x.c, g)
		n, ok := settle(base, g, res, d)
		if ok && n != x.c {
			return r.redivide(lin{x.t, n}, d), true
		}
	}
	return lin{}, false
}

// settle finds n with base ≤ n+res < base+g and n divisible by d: then no
// constant is left after division.
func settle(base, g, res, d int64) (n int64, ok bool) {
	n = d * FloorDiv(base+g-1-res, d)
	return n, n >= base-res
}

const maxPeriods = 16

// periods lists the g | d, descending, of which some term of x is a multiple
// up to a known residue, or of which k·(X mod m) and the term with ⌊X/m⌋ are.
func (r *Ring) periods(x lin, d int64, gs []int64) []int64 {
	for _, t := range x.t {
		a := &r.atoms[t.a]
		if t.k == 1 && a.m == 1 {
			continue
		}
		g := d
		if km, ok := mulInt(t.k, a.m); ok {
			g = GCD(km, d)
		}
		gs = withPeriod(gs, g)
		if a.kind != atomDiv || g == 1 {
			continue
		}
		if k, m := r.partner(x, *a); k != 0 {
			if km, ok := mulInt(k, m); ok {
				gs = withPeriod(gs, GCD(g, km))
			}
		}
	}
	return gs
}

// withPeriod inserts g in descending order.
func withPeriod(gs []int64, g int64) []int64 {
	if g < 2 || len(gs) == cap(gs) {
		return gs
	}
	i := len(gs)
	for i > 0 && gs[i-1] <= g {
		if gs[i-1] == g {
			return gs
		}
		i--
	}
	gs = append(gs, 0)
	copy(gs[i+1:], gs[i:])
	gs[i] = g
	return gs
}

// divSlack splits x into multiples of g (up to a residue) and a rest that
// cannot leave one period of g, which then does not matter.
func divSlack(r *Ring, x lin, d int64) (lin, bool) {
	var buf [maxPeriods]int64
	for _, g := range r.periods(x, d, buf[:0]) {
		whole, rest, res, strided := r.split(x, g)
		whole, rest = r.joinMods(whole, rest, g)
		res = floorMod(res, g)
		q, ok := single(r.ranged(rest).AddConst(res), g)
		if !ok {
			continue
		}
		n := q * g
		if strided {
			if s, ok := settle(n, g, res, d); ok {
				n = s
			} else {
				n -= res
			}
		}
		if y := (lin{whole.t, n}); !y.equal(x) {
			return r.redivide(y, d), true
		}
	}
	return lin{}, false
}

// split parts x into terms that are multiples of g, up to the residue res in
// sum, and the rest with the constant. strided tells that a residue was used.
func (r *Ring) split(x lin, g int64) (whole, rest lin, res int64, strided bool) {
	w := r.alloc(len(x.t))
	v := r.alloc(len(x.t))
	i, j := 0, 0
	for _, t := range x.t {
		a := &r.atoms[t.a]
		km, ok := mulInt(t.k, a.m)
		if ok && km%g == 0 {
			w[i] = t
			i++
			res = r.mulAdd(res, t.k, a.r)
			strided = strided || t.k%g != 0
		} else {
			v[j] = t
			j++
		}
	}
	return lin{w[:i:i], 0}, lin{
		r.keep(v, j), x.c,
	}, res, strided
}

// joinMods keeps k·(x mod m) together: where the rest holds k·x and the whole
// part a multiple of ⌊x/m⌋, −k·m·⌊x/m⌋ goes to the rest.
func (r *Ring) joinMods(whole, rest lin, g int64) (lin, lin) {
	for _, t := range whole.t {
		a := r.atoms[t.a]
		if a.kind != atomDiv || t.k%g != 0 {
			continue
		}
		k, m := r.partner(rest, a)
		km, ok := mulInt(k, m)
		if k == 0 || !ok || km%g != 0 {
			continue
		}
		one := r.one(t.a)
		whole = r.addmul(whole, km, one)
		rest = r.addmul(rest, -km, one)
	}
	return whole, rest
}

// partner finds k·x in rest with a = ⌊x/m⌋.
func (r *Ring) partner(rest lin, a atom) (k, m int64) {
	y := r.forms[a.y].lin
	c := rest.coef(y.t[0].a)
	if c != 0 && c%y.t[0].k == 0 {
		return c / y.t[0].k, a.d
	}
	for _, t := range rest.t {
		p := &r.atoms[t.a]
		if p.kind == atomDiv && p.y == a.y &&
			p.d < a.d &&
			a.d%p.d == 0 {
			k = t.k
			m = a.d / p.d
		}
	}
	return k, m
}
