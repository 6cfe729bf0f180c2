package index

// A divRule rewrites ⌊x/d⌋, d > 0 and x not constant, or declines.
type divRule struct {
	id    ruleID
	apply func(r *Ring, x lin, d int64) (lin, bool)
}

// divRules are tried in order on a dividend of which nothing can be taken out
// and that does not stay in one period (ruleDivRange): what makes it smaller
// first, then what removes nesting.
var divRules []divRule

func init() { // the rules divide again, which a literal may not refer to
	divRules = []divRule{
		{ruleDivSign, divSign},
		{ruleDivGCD, divGCD},
		{ruleDivHalf, divHalf},
		{ruleDivResidue, divResidue},
		{ruleDivComplete, divComplete},
		{ruleDivSlack, divSlack},
		{ruleDivDiv, divDiv},
	}
}

// div is ⌊x/d⌋ for d ≠ 0.
func (r *Ring) div(x lin, d int64) lin {
	switch {
	case d == 1:
		r.fired[ruleDivOne]++
		return x
	case d == 0:
		return r.fail("division by zero")
	case d == minusInf:
		return r.fail("int64 overflow: division by %d", d)
	case d < 0:
		return r.div(r.scale(x, -1), -d)
	case len(x.t) == 0:
		r.fired[ruleDivConst]++
		return konst(FloorDiv(x.c, d))
	}
	whole, rest := r.takeOut(x, d)
	if rest.size() == 0 {
		return whole
	}
	return r.addmul(whole, 1, r.divRest(rest, d))
}

// takeOut takes the multiples of d out of x: ⌊x/d⌋ = whole + ⌊rest/d⌋. A rest
// that stays in one period is taken out, too.
func (r *Ring) takeOut(x lin, d int64) (whole, rest lin) {
	if q, ok := single(r.naive(x), d); ok {
		r.fired[ruleDivRange]++
		return konst(q), lin{}
	}
	whole, rest = r.divide(x, d)
	if whole.size() == 0 {
		return lin{}, x
	}
	r.fired[ruleDivWhole]++
	if len(r.facts.sums) > 0 {
		if q, ok := single(r.ranged(x), d); ok {
			return konst(q), lin{}
		}
	}
	if q, ok := single(r.naive(rest), d); ok {
		return lin{whole.t, r.plus(whole.c, 1, q)}, lin{}
	}
	return whole, rest
}

// divRest divides what has no multiple of d in it, once for every dividend.
func (r *Ring) divRest(x lin, d int64) lin {
	if r.indivisible(x) && len(r.facts.sums) == 0 {
		return r.one(r.divAtom(x, d, r.naive(x).Div(d)))
	}
	y := r.form(x)
	if q, ok := r.recall(y, -1, d); ok {
		return q
	}
	return r.remember(y, -1, d, r.divNew(x, d))
}

// redivide is ⌊x/d⌋, d > 0, for a rule that has made x or d smaller.
func (r *Ring) redivide(x lin, d int64) lin {
	switch {
	case d == 1:
		r.fired[ruleDivOne]++
		return x
	case len(x.t) == 0:
		r.fired[ruleDivConst]++
		return konst(FloorDiv(x.c, d))
	}
	whole, rest := r.takeOut(x, d)
	if rest.size() == 0 {
		return whole
	}
	return r.addmul(whole, 1, r.divNew(rest, d))
}

// divNew divides what has no multiple of d in it.
func (r *Ring) divNew(x lin, d int64) lin {
	in := r.ranged(x)
	if q, ok := single(in, d); ok {
		r.fired[ruleDivRange]++
		return konst(q)
	}
	if r.indivisible(x) {
		return r.one(r.divAtom(x, d, in.Div(d)))
	}
	for i := range divRules {
		if q, ok := divRules[i].apply(r, x, d); ok {
			r.fired[divRules[i].id]++
			if len(q.t) == 1 && q.t[0].k == 1 {
				r.noteExact(q.t[0].a, x, d, q.c)
			}
			return q
		}
	}
	return r.one(r.divAtom(x, d, in.Div(d)))
}

// indivisible reports whether x is one atom that no rule takes apart.
func (r *Ring) indivisible(x lin) bool {
	if len(x.t) > 1 ||
		x.c != 0 ||
		x.t[0].k != 1 ||
		len(r.facts.congr) > 0 {
		return false
	}
	a := &r.atoms[x.t[0].a]
	return a.kind != atomDiv && a.m == 1
}

// divAtom is the atom ⌊x/d⌋, which lies in in.
func (r *Ring) divAtom(x lin, d int64, in Interval) int32 {
	id, had := r.atom(atomDiv, r.form(x), -1, d)
	if a := &r.atoms[id]; !had {
		a.rises = r.rises(x)
		a.in = in
	}
	if !had || len(r.facts.congr) > 0 {
		r.noteExact(id, x, d, 0)
	}
	return id
}

// noteExact notes that atom + c is x/d, where that is known to be exact but for
// a constant: d·atom = x − (x mod d) − d·c.
func (r *Ring) noteExact(id int32, x lin, d, c int64) {
	a := &r.atoms[id]
	if a.kind != atomDiv || a.exact {
		return
	}
	if res, ok := r.residue(x, d); ok {
		r.setExact(id, x, d, r.mulAdd(res, d, c))
		return
	}
	for _, g := range r.facts.congr { // ⌊y/n⌋ ≡ r (mod m), so m·⌊y/(n·m)⌋ = ⌊y/n⌋ − r
		q := g.sum.t[0]
		b := &r.atoms[q.a]
		if len(g.sum.t) > 1 ||
			q.k != 1 || b.kind != atomDiv ||
			b.y != a.y ||
			a.d%b.d != 0 {
			continue
		}
		m := a.d / b.d
		if m > 1 && g.m%m == 0 {
			r.setExact(id, r.one(q.a), m, floorMod(g.r, m))
			return
		}
	}
}

// setExact notes that by·atom = x − off.
func (r *Ring) setExact(id int32, x lin, by, off int64) {
	of := r.form(x)
	a := &r.atoms[id]
	a.exact = true
	a.by = by
	a.of = of
	a.off = off
	r.facts.anyExact = true
}

// single is the only quotient by d of a bounded interval.
func single(in Interval, d int64) (q int64, ok bool) {
	switch {
	case uint64(in.Lo) < uint64(d):
		return 0, in.Lo <= in.Hi && in.Hi < d
	case uint64(in.Hi)-uint64(in.Lo) >= uint64(d) ||
		!in.Bounded() || in.Empty():
		return 0, false
	}
	q = FloorDiv(in.Lo, d)
	return q, uint64(in.Hi)-uint64(q)*uint64(d) < uint64(d)
}

// A style is what divisions may do one way or the other. A ring keeps to one,
// or equal expressions would differ; a chain, whose forms are not compared,
// tries several for what is cheapest to write.
type style struct {
	residue residue
	// ceilings leaves ⌊(y + 1)/2⌋ as it is; otherwise it is y − ⌊y/2⌋.
	ceilings bool
}

// A residue says which multiple of d is taken out of a coefficient.
type residue uint8

const (
	// residueSigned truncates, so that the rest keeps the sign of k, unless the
	// other neighbour is four times closer.
	residueSigned residue = iota
	// residueNearest leaves the rest of least magnitude.
	residueNearest
	// residuePositive leaves a rest in [0, d).
	residuePositive
)

// wholePart is the multiple of d taken out of coefficient k.
func (s residue) wholePart(k, d int64) int64 {
	switch {
	case 0 <= k && k <= d>>1:
		return 0
	case s == residuePositive:
		return FloorDiv(k, d)
	}
	q := k / d
	rest := k - q*d
	near := int64(4)
	if s == residueNearest {
		near = 1
	}
	switch {
	case rest > 0 &&
		d-rest <= rest/near &&
		d != 2*rest:
		return q + 1
	case rest < 0 && d+rest <= -rest/near:
		return q - 1
	}
	return q
}

// divide takes the multiples of d out of x: x = d·whole + rest, the constant of
// rest in [0, d).
func (r *Ring) divide(x lin, d int64) (whole, rest lin) {
	if uint64(x.c) >= uint64(d) {
		whole.c = FloorDiv(x.c, d)
	}
	rest = lin{x.t, x.c - d*whole.c}
	i := 0
	for ; i < len(x.t); i++ {
		if k := x.t[i].k; uint64(k) > uint64(d)>>1 {
			break
		}
	}
	if i < len(x.t) {
		whole.t, rest.t = r.divideFrom(x.t, i, d)
		whole = r.exactly(whole)
	}
	return whole, rest
}

// divideFrom divides terms, of which those before i have small coefficients.
func (r *Ring) divideFrom(
	x []term, i int, d int64,
) (whole, rest []term) {
	w := r.alloc(2 * len(x))
	v := w[len(x):]
	n := 0
	m := copy(v, x[:i])
	for _, t := range x[i:] {
		q := r.style.residue.wholePart(t.k, d)
		if q != 0 {
			w[n] = term{q, t.a}
			n++
		}
		if k := t.k - q*d; k != 0 {
			v[m] = term{k, t.a}
			m++
			r.unsettled = r.unsettled || k < 0 || k > d-k
		}
	}
	if n == 0 {
		return nil, x
	}
	return w[:n:n], v[:m:m]
}

func divSign(r *Ring, x lin, d int64) (lin, bool) {
	if x.t[0].k > 0 {
		return lin{}, false
	}
	return r.scale(
		r.redivide(r.shift(r.scale(x, -1), d-1), d),
		-1,
	), true
}

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

// divHalf makes a half that is rounded up one that is rounded down.
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
		one := r.one(t.a)
		if q, ok := single(r.ranged(r.addmul(
			x, -km-t.k, one,
		)), d); ok {
			return r.addmul(konst(q), (km+t.k)/d, one), true
		}
	}
	return lin{}, false
}

// divDiv merges the only inner floor, when its coefficient is ±1.
func divDiv(r *Ring, x lin, d int64) (lin, bool) {
	at, n := -1, 0
	for i, t := range x.t {
		if r.atoms[t.a].kind == atomDiv {
			n++
			at = i
		}
	}
	if n != 1 ||
		x.t[at].k != 1 && x.t[at].k != -1 {
		return lin{}, false
	}
	t := x.t[at]
	a := r.atoms[t.a]
	dd, ok := mulInt(d, a.d)
	if !ok {
		return lin{}, false
	}
	if len(x.t) == 1 && t.k == 1 {
		return r.redivide(
			r.shift(
				r.forms[a.y].lin,
				r.mulAdd(0, a.d, x.c),
			),
			dd,
		), true
	}
	num := r.addmul(
		lin{},
		a.d,
		r.addmul(x, -t.k, r.one(t.a)),
	)
	num = r.addmul(num, t.k, r.forms[a.y].lin)
	if t.k < 0 {
		num = r.shift(num, a.d-1)
	}
	return r.redivide(num, dd), true
}
