package index

// Division by a constant, and by an expression (quot).
//
// The quotient ⌊x/d⌋ is found in three steps. First the multiples of d are taken
// out of the coefficients: ⌊(d·w + r)/d⌋ = w + ⌊r/d⌋ (div-whole), and a rest that
// stays within one period of d is constant (div-range). Then the rules are tried
// in order; each makes the dividend or the divisor smaller or removes a nested
// quotient, and divides again, so that division ends. What no rule rewrites
// becomes an atom.
//
// Quotients of equal dividends are found in a table, as remainders ask for them
// again and again.

// A divRule rewrites ⌊x/d⌋, d > 0 and x not constant, or declines.
type divRule struct {
	id    ruleID
	apply func(r *Ring, x lin, d int64) (lin, bool)
}

// divRules are tried in order on a dividend of which nothing can be taken out
// and that does not stay in one period (div-range): those that make it smaller
// come before those that remove nesting.
var divRules []divRule

func init() { // the rules divide again, which a literal may not refer to
	divRules = []divRule{
		{ruleDivTwo, divTwo},
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
		return constForm(FloorDiv(x.c, d))
	}
	if r.style.literal {
		return r.literally(atomFloorDiv, x, d)
	}
	return r.divWithin(x, r.looseRange(x), d)
}

// divWithin is div for a sum in the loose range in.
func (r *Ring) divWithin(x lin, in Interval, d int64) lin {
	whole, rest, in := r.divideOut(x, in, d)
	if rest.size() == 0 {
		return whole
	}
	return r.addmul(whole, 1, r.divRest(rest, in, d))
}

// divStep is div for the steps of a schedule, in the free style by origin. What
// divides on its way to something else does not look for one, or it would come
// back to the division that is being worked out.
func (r *Ring) divStep(x lin, d int64) lin {
	if !r.style.free || len(x.t) < 2 || d < 2 {
		return r.div(x, d)
	}
	return r.divStepWithin(x, r.looseRange(x), d)
}

// divStepWithin is divStep in the free style for a sum of several terms in the loose
// range in.
func (r *Ring) divStepWithin(x lin, in Interval, d int64) lin {
	if y, n, ok := r.quotientOrigin(x); ok {
		nd, fits := mulInt(n, d)
		if fits {
			x = y
			d = nd
			in = r.looseRange(x)
		}
	}
	q := r.divWithin(x, in, d)
	if len(q.t) > 1 {
		r.noteOrigin(q, x, d)
	}
	return q
}

// modStep is mod for the steps of a schedule: x − m·⌊x/m⌋, the quotient found by
// origin. So the digits ⌊x/m⌋ and x mod m of one x have the same quotient in them
// and cancel where they are put together again, whatever the quotient is written
// as.
func (r *Ring) modStep(x lin, m int64) lin {
	if !r.style.free || len(x.t) < 2 {
		return r.mod(x, m)
	}
	in := r.looseRange(x)
	if q, ok := uniqueQuotient(in, m); ok {
		c := r.mulAdd(0, -m, q)
		return r.shift(x, c)
	}
	q := r.divStepWithin(x, in, m)
	return r.addmul(x, -m, q)
}

// literally is x floordiv d or x mod d as it is written, unless the range of x
// decides the quotient.
func (r *Ring) literally(kind atomKind, x lin, d int64) lin {
	if kind == atomMod {
		x = r.reduced(x, d)
		if len(x.t) == 0 {
			return x
		}
	}
	in := r.sharpRange(x)
	q, decided := uniqueQuotient(in, d)
	switch {
	case decided && kind == atomMod:
		c := r.mulAdd(0, -d, q)
		return r.shift(x, c)
	case decided:
		return constForm(q)
	}
	y := r.form(x)
	id, _ := r.atom(kind, y, -1, d)
	a := &r.atoms[id]
	a.in = in.Div(d)
	if kind == atomMod {
		a.in = Interval{0, d - 1}
	}
	return r.atomForm(id)
}

// reduced is congruent to x modulo d: terms whose residue is known go to the constant,
// as do multiples of d, and coefficients are replaced by ±1 where that is congruent, or
// by what makes a remainder of a sum and its quotient.
func (r *Ring) reduced(x lin, d int64) lin {
	out := constForm(x.c)
	for _, t := range x.t {
		a := &r.atoms[t.a]
		km, ok := mulInt(t.k, a.m)
		if !ok {
			return x
		}
		if km%d == 0 {
			out.c = r.mulAdd(out.c, t.k, a.r)
			continue
		}
		k := r.reducedFactor(x, t, d)
		out = r.addAtom(out, k, t.a)
	}
	if c := floorMod(out.c, d); c == 0 || c == 1 || len(out.t) == 0 {
		out.c = c
	}
	return out
}

// reducedFactor is what the coefficient of t, a term of x, is replaced by.
func (r *Ring) reducedFactor(x lin, t term, d int64) int64 {
	// k·X + n·⌊X/m⌋ with n ≡ −k·m is k·(X mod m) modulo d.
	a := r.atoms[t.a]
	if a.kind == atomDiv && len(x.t) > 1 {
		k, m := r.partner(x, a)
		km, ok := mulInt(k, m)
		if k != 0 && ok && (km+t.k)%d == 0 {
			return -km
		}
	}
	switch floorMod(t.k, d) {
	case 1:
		return 1
	case d - 1:
		return -1
	}
	return t.k
}

// quotientOrigin finds y and n with x = ⌊y/n⌋ among the quotients built so far
// (div-div). The quotient of a sum is often a sum of several quotients, in which
// nothing shows what it is a quotient of; but the digits of a reshape are made by
// dividing it again, and recombine only where ⌊⌊y/n⌋/m⌋ is known to be ⌊y/(n·m)⌋.
func (r *Ring) quotientOrigin(x lin) (y lin, n int64, ok bool) {
	if !r.anyOrigin {
		return lin{}, 0, false
	}
	id := r.form(x)
	f := &r.forms[id]
	if f.divisor == 0 {
		return lin{}, 0, false
	}
	r.fired[ruleDivDiv]++
	return r.lin(f.dividend), f.divisor, true
}

// noteOrigin remembers that q = ⌊x/d⌋.
func (r *Ring) noteOrigin(q, x lin, d int64) {
	id := r.form(q)
	if r.forms[id].divisor == 0 {
		y := r.form(x)
		f := &r.forms[id]
		r.anyOrigin = true
		f.dividend = y
		f.divisor = d
	}
}

// mod is x − m·⌊x/m⌋ for m > 0. It does not build what the subtraction would take
// away again: the multiples of m in x, and their quotient.
func (r *Ring) mod(x lin, m int64) lin {
	if m <= 0 {
		return r.fail("modulus %d is not positive", m)
	}
	if len(x.t) == 0 {
		return constForm(floorMod(x.c, m))
	}
	if q, ok := uniqueQuotient(r.looseRange(x), m); ok {
		r.fired[ruleDivRange]++
		return r.shift(x, r.mulAdd(0, -m, q))
	}
	if r.style.literal {
		return r.literally(atomMod, x, m)
	}
	whole, rest := r.divide(x, m)
	if whole.size() == 0 || len(r.facts.sums) > 0 {
		return r.addmul(x, -m, r.div(x, m))
	}
	r.fired[ruleDivWhole]++
	in := r.looseRange(rest)
	if q, ok := uniqueQuotient(in, m); ok {
		return r.shift(rest, r.mulAdd(0, -m, q))
	}
	return r.addmul(rest, -m, r.divRest(rest, in, m))
}

// divideOut takes the multiples of d out of x, which has the loose range in:
// ⌊x/d⌋ = whole + ⌊rest/d⌋. A rest that stays in one period is taken out, too;
// restIn is the loose range of what is left.
func (r *Ring) divideOut(x lin, in Interval, d int64) (whole, rest lin, restIn Interval) {
	if q, ok := uniqueQuotient(in, d); ok {
		r.fired[ruleDivRange]++
		return constForm(q), lin{}, Interval{}
	}
	whole, rest = r.divide(x, d)
	if whole.size() == 0 {
		return lin{}, x, in
	}
	r.fired[ruleDivWhole]++
	if len(r.facts.sums) > 0 {
		if q, ok := uniqueQuotient(r.sharpRange(x), d); ok {
			return constForm(q), lin{}, Interval{}
		}
	}
	in = r.looseRange(rest)
	if q, ok := uniqueQuotient(in, d); ok {
		return lin{whole.t, r.plus(whole.c, 1, q)}, lin{}, Interval{}
	}
	return whole, rest, in
}

// divRest divides what has no multiple of d in it, once for every dividend, which has
// the loose range in.
func (r *Ring) divRest(x lin, in Interval, d int64) lin {
	if r.indivisible(x) && len(r.facts.sums) == 0 {
		return r.atomForm(r.divAtom(x, d, in.Div(d)))
	}
	y := r.form(x)
	if q, ok := r.cachedQuotient(y, -1, d); ok {
		return q
	}
	return r.cacheQuotient(y, -1, d, r.divNew(x, in, d))
}

// redivide is ⌊x/d⌋, d > 0, for a rule that has made x or d smaller. It differs
// from div in not looking the quotient up.
func (r *Ring) redivide(x lin, d int64) lin {
	switch {
	case d == 1:
		r.fired[ruleDivOne]++
		return x
	case len(x.t) == 0:
		r.fired[ruleDivConst]++
		return constForm(FloorDiv(x.c, d))
	}
	whole, rest, in := r.divideOut(x, r.looseRange(x), d)
	if rest.size() == 0 {
		return whole
	}
	return r.addmul(whole, 1, r.divNew(rest, in, d))
}

// divNew divides what has no multiple of d in it, and has the loose range in: by range,
// by rule, or as an atom.
func (r *Ring) divNew(x lin, in Interval, d int64) lin {
	in = r.sharpRangeWithin(x, in)
	if q, ok := uniqueQuotient(in, d); ok {
		r.fired[ruleDivRange]++
		return constForm(q)
	}
	if r.indivisible(x) {
		return r.atomForm(r.divAtom(x, d, in.Div(d)))
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
	return r.atomForm(r.divAtom(x, d, in.Div(d)))
}

// indivisible reports whether x is one atom that no rule takes apart.
func (r *Ring) indivisible(x lin) bool {
	if len(x.t) > 1 || x.c != 0 ||
		x.t[0].k != 1 {
		return false
	}
	if len(r.facts.congr) > 0 {
		return false
	}
	a := &r.atoms[x.t[0].a]
	return a.kind != atomDiv && a.m == 1 &&
		a.in.Hi-a.in.Lo != 1
}

// divAtom is the atom ⌊x/d⌋, which lies in in.
func (r *Ring) divAtom(x lin, d int64, in Interval) int32 {
	id, had := r.atom(atomDiv, r.form(x), -1, d)
	if a := &r.atoms[id]; !had {
		a.nondecreasing = r.nondecreasing(x)
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
			q.k != 1 || b.kind != atomDiv {
			continue
		}
		if b.y != a.y || a.d%b.d != 0 {
			continue
		}
		m := a.d / b.d
		if m > 1 && g.m%m == 0 {
			inner := r.atomForm(q.a)
			r.setExact(id, inner, m, floorMod(g.r, m))
			return
		}
	}
}

// setExact notes that by·atom = x − off, unless x has the atom itself: x is put for the
// atom as long as there is one, which would not end.
func (r *Ring) setExact(id int32, x lin, by, off int64) {
	if x.coefficient(id) != 0 {
		return
	}
	of := r.form(x)
	a := &r.atoms[id]
	a.exact = true
	a.by = by
	a.of = of
	a.off = off
	r.facts.anyExact = true
}

// uniqueQuotient is the quotient by d > 0 that all of a bounded interval have in
// common; ok is false when there are several.
func uniqueQuotient(in Interval, d int64) (q int64, ok bool) {
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
	if i == len(x.t) {
		return whole, rest
	}
	if !r.style.spread {
		p, q, ok := r.keptRemainder(x, d)
		if ok {
			return r.divideAround(x, d, p, q)
		}
	}
	whole.t, rest.t = r.divideFrom(x.t, i, d)
	return r.substituteExact(whole), rest
}

// keptRemainder finds a remainder k·(X mod m) in x = … + k·X − k·m·q that division
// by d, coefficient by coefficient, would tear apart: d does not divide k·m, but
// would be taken out of it. The greatest quotient q = ⌊X/m⌋ comes first, because
// remainders inside its dividend have smaller ones.
func (r *Ring) keptRemainder(x lin, d int64) (p modPart, q int32, ok bool) {
	for i := len(x.t) - 1; i > 0; i-- {
		t := x.t[i]
		a := &r.atoms[t.a]
		if a.kind != atomDiv || t.k%d == 0 {
			continue
		}
		n := r.style.residue.wholePart(t.k, d)
		if n == 0 {
			continue
		}
		if p, ok := r.wholeRemainder(x, t); ok {
			return p, t.a, true
		}
	}
	return p, 0, false
}

// wholeRemainder is the k·(X mod m) through the quotient t of x all of which is
// in x: every term of k·X, or of a greater multiple with the same sign.
func (r *Ring) wholeRemainder(x lin, t term) (p modPart, ok bool) {
	a := &r.atoms[t.a]
	y := r.lin(a.y)
	k := -t.k / a.d
	if k*a.d == -t.k && x.covers(k, y) {
		return modPart{y, a.d, k}, true
	}
	for _, u := range x.t {
		b := &r.atoms[u.a]
		if b.kind != atomDiv || b.y != a.y {
			continue
		}
		m := a.d / b.d // ⌊y/e⌋ mod m, if e·m is the divisor
		if m*b.d != a.d {
			continue
		}
		if m > 1 && u.k*m == -t.k {
			one := r.atomForm(u.a)
			return modPart{one, m, u.k}, true
		}
	}
	return p, false
}

// covers reports whether x has every term of k·y, with the same sign and a
// coefficient that is no smaller.
func (x lin) covers(k int64, y lin) bool {
	for _, u := range y.t {
		want, ok := mulInt(k, u.k)
		have := x.coefficient(u.a)
		if !ok || have == 0 {
			return false
		}
		if (have < 0) != (want < 0) ||
			absInt(have) < absInt(want) {
			return false
		}
	}
	return true
}

// divideAround divides x = k·(X mod m) + z, where q = ⌊X/m⌋, by dividing k and z:
// the remainder is in [0, m) and stays in one piece (div-remainder).
func (r *Ring) divideAround(x lin, d int64, p modPart, q int32) (whole, rest lin) {
	r.fired[ruleDivRemainder]++
	r.unsettled = true
	z := r.withoutMod(x, q, p)
	whole, rest = r.divide(z, d)
	n := r.style.residue.wholePart(p.k, d)
	left := p.k - n*d
	mod := r.addAtom(p.x, -p.m, q)
	whole = r.addmul(whole, n, mod)
	rest = r.addmul(rest, left, mod)
	return whole, rest
}

// divideFrom divides terms, of which those before i have coefficients that leave
// no multiple of d. The quotients and the rests share one allocation. A rest that
// another style would leave smaller marks the ring as unsettled.
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

// wholePart is the multiple of d taken out of coefficient k. Which one is a
// matter of style: all leave k − d·wholePart congruent to k.
func (s residue) wholePart(k, d int64) int64 {
	switch {
	case 0 <= k && k <= d>>1:
		return 0
	case s == residuePositive:
		return FloorDiv(k, d)
	}
	q := k / d
	rest := k - q*d
	bias := int64(4)
	if s == residueNearest {
		bias = 1
	}
	switch {
	case rest > 0 && d-rest <= rest/bias && d != 2*rest:
		return q + 1
	case rest < 0 && d+rest <= -rest/bias:
		return q - 1
	}
	return q
}

// quot is ⌊x/f⌋ for f > 0 everywhere; that f may be zero or less is an error
// of the ring.
func (r *Ring) quot(x, f lin) lin {
	if len(f.t) == 0 {
		if f.c <= 0 {
			return r.fail("division by %d", f.c)
		}
		return r.div(x, f.c)
	}
	if in := r.sharpRange(f); in.Lo <= 0 {
		return r.fail("division by an expression in %s, which may not be positive", in)
	}
	y := r.form(x)
	z := r.form(f)
	if q, ok := r.cachedQuotient(y, z, 0); ok {
		return q
	}
	return r.cacheQuotient(y, z, 0, r.divideBy(x, f))
}

// anyDiv is ⌊x/y⌋, y a constant of either sign or positive.
func (r *Ring) anyDiv(x, y lin) lin {
	if len(y.t) == 0 {
		return r.div(x, y.c)
	}
	return r.quot(x, y)
}

// anyMod is x − y·⌊x/y⌋, y positive.
func (r *Ring) anyMod(x, y lin) lin {
	if len(y.t) == 0 {
		return r.mod(x, y.c)
	}
	return r.addmul(x, -1, r.mul(y, r.quot(x, y)))
}

// A quotRule rewrites ⌊x/f⌋, f > 0 not constant, or declines.
type quotRule struct {
	id    ruleID
	apply func(r *Ring, x, f lin) (lin, bool)
}

// quotRules are tried in order on a dividend and a divisor that are both in normal
// form.
var quotRules []quotRule

func init() { // as for divRules
	quotRules = []quotRule{
		{ruleQuotRange, quotRange},
		{ruleQuotWhole, quotWhole},
		{ruleQuotCommon, quotCommon},
		{ruleQuotDiv, quotDiv},
	}
}

// divideBy is ⌊x/f⌋ by rule or as an atom.
func (r *Ring) divideBy(x, f lin) lin {
	for i := range quotRules {
		if q, ok := quotRules[i].apply(r, x, f); ok {
			r.fired[quotRules[i].id]++
			return q
		}
	}
	id, had := r.atom(
		atomQuot, r.form(x), r.form(f), 0,
	)
	if !had {
		in := r.sharpRange(x).divBy(r.sharpRange(f))
		r.atoms[id].in = in
	}
	return r.atomForm(id)
}
