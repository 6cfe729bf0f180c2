package symtile

// A divRule rewrites ⌊x/d⌋, d > 0 and x not constant, or declines.
type divRule struct {
	id    ruleID
	apply func(r *Ring, x lin, d int64) (lin, bool)
}

// divRules are tried in order: cheap collapses, then what makes the dividend
// smaller, then what removes nesting.
var divRules []divRule

func init() { // the rules divide again, which a literal may not refer to
	divRules = []divRule{
		{ruleDivRange, divNaive},
		{ruleDivWhole, divWhole},
		{ruleDivRange, divRange},
		{ruleDivSign, divSign},
		{ruleDivGCD, divGCD},
		{ruleDivResidue, divResidue},
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
		return konst(floorDiv(x.c, d))
	}
	y := r.form(x)
	if q, ok := r.recall(y, -1, d); ok {
		return q
	}
	return r.remember(y, -1, d, r.divide(x, d))
}

func (r *Ring) divide(x lin, d int64) lin {
	for i := range divRules {
		if q, ok := divRules[i].apply(r, x, d); ok {
			r.fired[divRules[i].id]++
			return q
		}
	}
	return r.one(r.divAtom(x, d))
}

func (r *Ring) divAtom(x lin, d int64) int32 {
	id, had := r.atom(atom{kind: atomDiv, y: r.form(x), z: -1, d: d})
	if !had {
		a := &r.atoms[id]
		a.in = r.ranged(x).Div(d)
		if n, res := r.residueOf(x, d); n == d {
			a = &r.atoms[id]
			a.exact, a.r = true, res
			r.facts.anyExact = true
		}
	}
	return id
}

// single is the only quotient by d of a bounded interval.
func single(in Interval, d int64) (q int64, ok bool) {
	if !in.Bounded() || in.Empty() {
		return 0, false
	}
	q = floorDiv(in.Lo, d)
	return q, q == floorDiv(in.Hi, d)
}

func divNaive(r *Ring, x lin, d int64) (lin, bool) {
	q, ok := single(r.naive(x), d)
	return konst(q), ok
}

func divRange(r *Ring, x lin, d int64) (lin, bool) {
	q, ok := single(r.ranged(x), d)
	return konst(q), ok
}

// wholePart is the multiple of d taken out of coefficient k: truncating, so
// that the rest keeps k's sign, unless the other neighbour is four times closer.
func wholePart(k, d int64) int64 {
	q := k / d
	rest := k - q*d
	switch {
	case rest > 0 && d-rest <= rest/4:
		return q + 1
	case rest < 0 && d+rest <= -rest/4:
		return q - 1
	}
	return q
}

func divWhole(r *Ring, x lin, d int64) (lin, bool) {
	c := floorDiv(x.c, d)
	whole := r.each(x, func(k int64) int64 { return wholePart(k, d) })
	whole.c = c
	if len(whole.t) == 0 && c == 0 {
		return lin{}, false
	}
	rest := r.addmul(x, -d, whole)
	if len(r.facts.sums) > 0 {
		if q, ok := single(r.ranged(x), d); ok {
			return konst(q), true
		}
	}
	return r.addmul(whole, 1, r.div(rest, d)), true
}

func divSign(r *Ring, x lin, d int64) (lin, bool) {
	if x.t[0].k > 0 {
		return lin{}, false
	}
	return r.scale(r.div(r.shift(r.scale(x, -1), d-1), d), -1), true
}

func divGCD(r *Ring, x lin, d int64) (lin, bool) {
	g := gcd(x.content(), d)
	if g == 1 {
		return lin{}, false
	}
	y := r.each(x, func(k int64) int64 { return k / g })
	y.c = floorDiv(x.c, g)
	return r.div(y, d/g), true
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
	if n != 1 || x.t[at].k != 1 && x.t[at].k != -1 {
		return lin{}, false
	}
	t := x.t[at]
	a := r.atoms[t.a]
	dd, ok := mulInt(d, a.d)
	if !ok {
		return lin{}, false
	}
	num := r.addmul(lin{}, a.d, r.addmul(x, -t.k, r.one(t.a)))
	num = r.addmul(num, t.k, r.forms[a.y].lin)
	if t.k < 0 {
		num = r.shift(num, a.d-1)
	}
	return r.div(num, dd), true
}
