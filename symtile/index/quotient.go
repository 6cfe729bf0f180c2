package index

// quot is ⌊x/f⌋ for f > 0 everywhere; that f may be zero or less is an error
// of the ring.
func (r *Ring) quot(x, f lin) lin {
	if len(f.t) == 0 {
		if f.c <= 0 {
			return r.fail("division by %d", f.c)
		}
		return r.div(x, f.c)
	}
	if in := r.ranged(f); in.Lo <= 0 {
		return r.fail("division by an expression in %s, which may not be positive", in)
	}
	y := r.form(x)
	z := r.form(f)
	if q, ok := r.recall(y, z, 0); ok {
		return q
	}
	return r.remember(y, z, 0, r.divideBy(x, f))
}

// A quotRule rewrites ⌊x/f⌋, f > 0 not constant, or declines.
type quotRule struct {
	id    ruleID
	apply func(r *Ring, x, f lin) (lin, bool)
}

var quotRules []quotRule

func init() { // as for divRules
	quotRules = []quotRule{
		{ruleQuotRange, quotRange},
		{ruleQuotWhole, quotWhole},
		{ruleQuotCommon, quotCommon},
		{ruleQuotDiv, quotDiv},
	}
}

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
		in := r.ranged(x).DivBy(r.ranged(f))
		r.atoms[id].in = in
	}
	return r.one(id)
}

// quotRange decides the quotients 0 and −1, and any that the two ranges agree on.
func quotRange(r *Ring, x, f lin) (lin, bool) {
	xs := r.ranged(x)
	if q := xs.DivBy(r.ranged(f)); q.Lo == q.Hi {
		return konst(q.Lo), true
	}
	if xs.Lo >= 0 &&
		r.ranged(r.addmul(f, -1, x)).Lo > 0 {
		return konst(0), true
	}
	if xs.Hi < 0 &&
		r.ranged(r.addmul(f, 1, x)).Lo >= 0 {
		return konst(-1), true
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
		q := konst(t.k / lead.k)
		if len(rest) > 0 {
			q = r.scale(r.one(r.productOf(rest)), q.c)
		}
		y := r.addmul(x, -1, r.mul(q, f))
		if y.size() < x.size() {
			return r.addmul(q, 1, r.quot(y, f)), true
		}
	}
	return lin{}, false
}

// size counts the terms of x, the constant being one.
func (x lin) size() int {
	if x.c != 0 {
		return len(x.t) + 1
	}
	return len(x.t)
}

// quotCommon cancels a common factor: a constant, or an atom that is positive.
func quotCommon(r *Ring, x, f lin) (lin, bool) {
	g := GCD(
		GCD(x.content(), x.c),
		GCD(f.content(), f.c),
	)
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

// shrink is x/g where g divides everything.
func (r *Ring) shrink(x lin, g int64) lin {
	y := r.each(x, func(k int64) int64 {
		return k / g
	})
	y.c = x.c / g
	return y
}

// over is x/a for an atom that is a factor of every term.
func (r *Ring) over(x lin, a int32) (lin, bool) {
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
		out = r.addmul(out, t.k, r.one(r.productOf(rest)))
	}
	return out, true
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
	n := konst(a.d)
	if a.kind == atomQuot {
		n = r.forms[a.z].lin
	}
	rest := r.addmul(x, -1, r.one(x.t[at].a))
	num := r.addmul(
		r.forms[a.y].lin,
		1,
		r.mul(rest, n),
	)
	return r.quot(num, r.mul(n, f)), true
}
