package index

// The rules of division. Each takes the quotient of a dividend x that is not
// constant and a divisor that is positive, and returns the quotient in another
// form, or false. The identity that a rule applies is its row of ruleTable.

// divTwo divides k·a + c, where the atom a has two values: a line goes through the
// two quotients.
func divTwo(r *Ring, x lin, d int64) (lin, bool) {
	t := x.t[0]
	in := r.atoms[t.a].in
	if len(x.t) > 1 ||
		in.Hi-in.Lo != 1 {
		return lin{}, false
	}
	first := r.mulAdd(x.c, t.k, in.Lo)
	last := r.mulAdd(x.c, t.k, in.Hi)
	low := FloorDiv(first, d)
	k := FloorDiv(last, d) - low // the slope
	c := r.mulAdd(low, -k, in.Lo)
	return r.addAtom(constForm(c), k, t.a), true
}

// divSign makes the first coefficient positive: ⌊−x/d⌋ = −⌊(x + d − 1)/d⌋.
func divSign(r *Ring, x lin, d int64) (lin, bool) {
	if x.t[0].k > 0 {
		return lin{}, false
	}
	y := r.shift(r.scale(x, -1), d-1)
	return r.scale(r.redivide(y, d), -1), true
}

// divGCD cancels what the coefficients and the divisor have in common; the
// constant is rounded down.
func divGCD(r *Ring, x lin, d int64) (lin, bool) {
	g := GCD(x.content(), d)
	if g == 1 {
		return lin{}, false
	}
	y := r.each(x, func(k int64) int64 {
		return k / g
	})
	y.c = FloorDiv(x.c, g)
	return r.redivide(y, d/g), true
}

// divHalf makes a half that is rounded up one that is rounded down, unless the
// style of the ring keeps it.
func divHalf(r *Ring, x lin, d int64) (lin, bool) {
	if d != 2 || x.c != 1 || len(x.t) > 1 {
		return lin{}, false
	}
	r.unsettled = true
	if r.style.ceilings {
		return lin{}, false
	}
	y := lin{t: x.t}
	return r.addmul(y, -1, r.redivide(y, 2)), true
}

// divResidue moves the constant of x inside one period of g, where x without its
// constant is known modulo g from the congruences of the domain: all constants
// of that period give the same quotient, and the one that d divides, if there is
// one, leaves the fewest terms.
func divResidue(r *Ring, x lin, d int64) (lin, bool) {
	for i := range r.facts.congr {
		c := &r.facts.congr[i]
		k := x.coefficient(c.sum.t[0].a)
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
		n, ok := multipleInPeriod(base, g, res, d)
		if ok && n != x.c {
			return r.redivide(lin{x.t, n}, d), true
		}
	}
	return lin{}, false
}

// multipleInPeriod finds n with base ≤ n+res < base+g and n divisible by d: then no
// constant is left after division.
func multipleInPeriod(base, g, res, d int64) (n int64, ok bool) {
	n = d * FloorDiv(base+g-1-res, d)
	return n, n >= base-res
}

// maxPeriods bounds the periods that divSlack tries for one dividend.
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

// withPeriod inserts g into gs in descending order, unless it is there or gs is
// full.
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
		in := r.sharpRange(rest).AddConst(res)
		q, ok := uniqueQuotient(in, g)
		if !ok {
			continue
		}
		n := q * g
		if strided {
			if s, ok := multipleInPeriod(n, g, res, d); ok {
				n = s
			} else {
				n -= res
			}
		}
		// Joining may have put y − r for an exact quotient in the whole part.
		if y := r.shift(lin{t: whole.t}, r.mulAdd(n, 1, whole.c)); !y.equal(x) {
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
	i, j := 0, 0 // terms of w, of v
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
	whole = lin{w[:i:i], 0}
	rest = lin{r.keep(v, j), x.c}
	return whole, rest, res, strided
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
		one := r.atomForm(t.a)
		whole = r.addmul(whole, km, one)
		rest = r.addmul(rest, -km, one)
	}
	return whole, rest
}

// partner finds k·x in rest with a = ⌊x/m⌋; k is 0 when there is none. x is the
// dividend of a, or, for a = ⌊y/(n·m)⌋, the quotient ⌊y/n⌋.
func (r *Ring) partner(rest lin, a atom) (k, m int64) {
	y := r.lin(a.y)
	if len(y.t) == 0 {
		return 0, 0
	}
	c := rest.coefficient(y.t[0].a)
	if c != 0 && c%y.t[0].k == 0 {
		return c / y.t[0].k, a.d
	}
	for _, t := range rest.t {
		p := &r.atoms[t.a]
		if p.kind != atomDiv || p.y != a.y {
			continue
		}
		if p.d < a.d && a.d%p.d == 0 {
			k = t.k
			m = a.d / p.d
		}
	}
	return k, m
}

// divComplete makes k·X + n·⌊X/m⌋ with n ≡ −k·m (mod d) the remainder it is up
// to multiples of d, where that decides the quotient.
func divComplete(r *Ring, x lin, d int64) (lin, bool) {
	for _, t := range x.t {
		a := r.atoms[t.a]
		if a.kind != atomDiv {
			continue
		}
		k, m := r.partner(x, a)
		km, ok := mulInt(k, m)
		if k == 0 || !ok || km == -t.k ||
			(km+t.k)%d != 0 {
			continue
		}
		one := r.atomForm(t.a)
		in := r.sharpRange(r.addmul(x, -km-t.k, one))
		if q, ok := uniqueQuotient(in, d); ok {
			return r.addmul(
				constForm(q), (km+t.k)/d, one,
			), true
		}
	}
	return lin{}, false
}

// divDiv merges the only inner floor into the outer one, when its coefficient is
// ±1. For −1 the floor becomes a ceiling, which adds n − 1 to the dividend.
func divDiv(r *Ring, x lin, d int64) (lin, bool) {
	at, n := -1, 0
	for i, t := range x.t {
		if r.atoms[t.a].kind == atomDiv {
			n++
			at = i
		}
	}
	if n != 1 {
		return lin{}, false
	}
	t := x.t[at]
	a := r.atoms[t.a]
	if t.k != 1 && t.k != -1 {
		return r.divExactTerm(x, t, d)
	}
	dd, ok := mulInt(d, a.d)
	if !ok {
		return lin{}, false
	}
	if len(x.t) == 1 && t.k == 1 {
		c := r.mulAdd(0, a.d, x.c)
		num := r.shift(r.lin(a.y), c)
		return r.redivide(num, dd), true
	}
	rest := r.withoutTerm(x, t)
	num := r.scale(rest, a.d)
	num = r.addmul(num, t.k, r.lin(a.y))
	if t.k < 0 {
		num = r.shift(num, a.d-1)
	}
	return r.redivide(num, dd), true
}

// divExactTerm merges an inner floor t of any coefficient k that is known to be
// exact, n·⌊y/n⌋ = y − r: ⌊(k·⌊y/n⌋ + x)/d⌋ = ⌊(k·(y − r) + n·x)/(n·d)⌋.
func (r *Ring) divExactTerm(x lin, t term, d int64) (lin, bool) {
	a := r.atoms[t.a]
	if !a.exact || !r.style.free {
		return lin{}, false
	}
	nd, ok := mulInt(a.by, d)
	if !ok || !isSmall(nd) {
		return lin{}, false
	}
	y := r.shift(r.lin(a.of), -a.off)
	rest := r.withoutTerm(x, t)
	num := r.scale(rest, a.by)
	num = r.addmul(num, t.k, y)
	return r.redivide(num, nd), true
}

// quotRange decides the quotients 0 and −1, and any that the two ranges agree on.
func quotRange(r *Ring, x, f lin) (lin, bool) {
	xs := r.sharpRange(x)
	if q := xs.divBy(r.sharpRange(f)); q.Lo == q.Hi {
		return constForm(q.Lo), true
	}
	if xs.Lo >= 0 &&
		r.sharpRange(r.addmul(f, -1, x)).Lo > 0 {
		return constForm(0), true // 0 ≤ x < f
	}
	if xs.Hi < 0 &&
		r.sharpRange(r.addmul(f, 1, x)).Lo >= 0 {
		return constForm(-1), true // −f ≤ x < 0
	}
	return lin{}, false
}

// quotWhole divides with remainder by the leading term of f, as long as that
// leaves fewer terms.
func quotWhole(r *Ring, x, f lin) (lin, bool) {
	lead := f.t[0]
	for _, t := range x.t {
		rest, ok := r.divideFactors(t.a, lead.a)
		if !ok || t.k%lead.k != 0 {
			continue
		}
		q := constForm(t.k / lead.k)
		if len(rest) > 0 {
			q = r.scale(r.atomForm(r.productOf(rest)), q.c)
		}
		y := r.addmul(x, -1, r.mul(q, f))
		if y.size() < x.size() {
			return r.addmul(q, 1, r.quot(y, f)), true
		}
	}
	return lin{}, false
}

// quotCommon cancels a common factor: a constant, or an atom that is positive.
func quotCommon(r *Ring, x, f lin) (lin, bool) {
	g := GCD(x.content(), x.c)
	g = GCD(g, GCD(f.content(), f.c))
	if g > 1 {
		return r.quot(r.shrink(x, g), r.shrink(f, g)), true
	}
	if x.c != 0 || f.c != 0 || len(x.t) == 0 {
		return lin{}, false
	}
	var buf [2 * maxDegree]int32
	for _, a := range r.factorsOf(f.t[0].a, buf[:0]) {
		if r.atoms[a].in.Lo <= 0 {
			continue
		}
		xs, ok1 := r.over(x, a)
		fs, ok2 := r.over(f, a)
		if ok1 && ok2 {
			return r.quot(xs, fs), true
		}
	}
	return lin{}, false
}

// quotDiv merges the only inner floor, when its coefficient is 1.
func quotDiv(r *Ring, x, f lin) (lin, bool) {
	at := -1
	for i, t := range x.t {
		k := r.atoms[t.a].kind
		if k != atomDiv && k != atomQuot {
			continue
		}
		if at >= 0 {
			return lin{}, false
		}
		at = i
	}
	if at < 0 || x.t[at].k != 1 {
		return lin{}, false
	}
	a := r.atoms[x.t[at].a]
	n := constForm(a.d)
	if a.kind == atomQuot {
		n = r.lin(a.z)
	}
	rest := r.addAtom(x, -1, x.t[at].a)
	num := r.addmul(
		r.lin(a.y), 1, r.mul(rest, n),
	)
	return r.quot(num, r.mul(n, f)), true
}

// over is x/a for an atom that is a factor of every term; ok is false when it is
// not.
func (r *Ring) over(x lin, a int32) (quotient lin, ok bool) {
	out := lin{}
	for _, t := range x.t {
		rest, ok := r.divideFactors(t.a, a)
		if !ok {
			return lin{}, false
		}
		if len(rest) == 0 {
			out = r.shift(out, t.k)
			continue
		}
		product := r.atomForm(r.productOf(rest))
		out = r.addmul(out, t.k, product)
	}
	return out, true
}
