package index

// Simplification of a constraint by itself, clause by clause and then by rules that
// compare clauses. It works on expressions as they are and the ranges of their
// variables; solving a constraint for its variables is what a domain does, for
// Map.Simplify.

import "slices"

// Simplify returns an equivalent constraint that is no larger: bounds that
// ranges decide are gone, equal expressions are merged, congruences of one
// expression become one (Chinese remainders), clauses that others imply are
// dropped. The order of what stays is kept. It is idempotent.
func (c Constraint) Simplify() Constraint {
	for range len(c) + 2 {
		d := c.simplifyOnce()
		if d.False() {
			return Never()
		}
		if slices.EqualFunc(c, d, func(x, y Clause) bool {
			return slices.Equal(x, y)
		}) {
			break
		}
		c = d
	}
	return c
}

// A clauseRule rewrites a conjunction whose clauses are simplified. applied
// counts how often its law was used.
type clauseRule struct {
	id    ruleID
	apply func(c Constraint) (out Constraint, applied int)
}

// clauseRules are tried once each, in order: what intersects intervals and
// congruences comes before what compares clauses with each other.
var clauseRules = []clauseRule{
	{ruleClauseMerge, mergeUnits},
	{ruleClauseRemainders, mergeCongruences},
	{ruleClauseResolve, resolveUnits},
	{ruleClauseAbsorb, absorbImplied},
}

// simplifyOnce simplifies every clause by itself, then applies the rules.
func (c Constraint) simplifyOnce() Constraint {
	var out Constraint
	for _, x := range c {
		y, always := x.simplify()
		switch {
		case always:
		case len(y) == 0:
			return Never()
		default:
			out = append(out, y)
		}
	}
	for _, rule := range clauseRules {
		if out.True() || out.False() {
			break
		}
		r := out[0][0].Expr.r
		var applied int
		out, applied = rule.apply(out)
		r.fired[rule.id] += uint32(applied)
	}
	return out
}

// simplify normalises the bounds of x and drops those that ranges refute; always
// tells that x is true, because a range implies one of its bounds.
func (x Clause) simplify() (out Clause, always bool) {
	out = Clause{}
	for _, b := range x {
		b = b.normalize()
		in := b.Expr.Range()
		if b.In.Covers(in) {
			return nil, true
		}
		if !b.In.Meet(in).Empty() {
			out = out.or(b)
		}
	}
	return out, false
}

// normalize moves the constant of b's expression into its interval, but for what
// belongs to a remainder, and divides by the common factor, so that bounds of
// one expression are found to be so. The sign is that of the first remainder, or
// else of the first term.
func (b Bound) normalize() Bound {
	r := b.Expr.r
	x := b.Expr.lin()
	if len(x.t) == 0 {
		return b
	}
	home, sign := r.remainders(x)
	g := GCD(x.content(), home)
	if sign < 0 || sign == 0 && x.t[0].k < 0 {
		g = -g
	}
	if g == 1 && x.c == home {
		return b
	}
	in := b.In.AddConst(SatAdd(home, satNeg(x.c)))
	if g < 0 {
		in = in.Neg()
	}
	y := r.each(x, func(k int64) int64 {
		return k / g
	})
	y.c = home / g
	return Bound{r.wrap(y), in.unscale(max(g, -g))}
}

// remainders finds the k·(y mod m) in x: home is the sum of k times the constant
// of y, sign that of the first k, 0 without any.
func (r *Ring) remainders(x lin) (home, sign int64) {
	for _, t := range x.t {
		y, _, k := r.remainder(x, t)
		if k == 0 {
			continue
		}
		home = r.mulAdd(home, k, y.c)
		if sign == 0 {
			sign = k
		}
	}
	return home, sign
}

// or is x or b. It is clause-merge for alternatives: intervals of the same
// expression that touch become one.
func (x Clause) or(b Bound) Clause {
	for i, a := range x {
		if a.Expr == b.Expr && touch(a.In, b.In) {
			b.Expr.r.fired[ruleClauseMerge]++
			rest := slices.Delete(slices.Clone(x), i, i+1)
			return rest.or(Bound{b.Expr, a.In.Join(b.In)})
		}
	}
	return append(x, b)
}

// touch reports whether the union of v and w is an interval.
func touch(v, w Interval) bool {
	return v.Lo <= SatAdd(w.Hi, 1) &&
		w.Lo <= SatAdd(v.Hi, 1)
}

// mergeUnits is clause-merge for conjunctions: it intersects the clauses that
// are a single bound of one expression.
func mergeUnits(c Constraint) (out Constraint, applied int) {
	at := map[Expr]int{} // clause of out by expression
	for _, x := range c {
		if len(x) != 1 {
			out = append(out, x)
			continue
		}
		i, ok := at[x[0].Expr]
		if !ok {
			at[x[0].Expr] = len(out)
			out = append(out, x)
			continue
		}
		applied++
		in := out[i][0].In.Meet(x[0].In)
		if in.Empty() {
			return Never(), applied
		}
		out[i] = Clause{{x[0].Expr, in}}
	}
	return out, applied
}

// mergeCongruences is clause-remainders: it joins x ≡ r (mod m) and
// x ≡ s (mod n) by Chinese remainders. Clauses that cannot both hold make the
// constraint false.
func mergeCongruences(c Constraint) (out Constraint, applied int) {
	type joined struct {
		at   int // clause of out, which need not have the form of a congruence
		m, r int64
	}
	known := map[Expr]joined{} // by dividend
	for _, x := range c {
		base, m, r, ok := x.congruence()
		if !ok {
			out = append(out, x)
			continue
		}
		have, had := known[base]
		if !had {
			known[base] = joined{len(out), m, r}
			out = append(out, x)
			continue
		}
		applied++
		l, q, fits := chineseRemainder(
			m, r, have.m, have.r,
		)
		switch {
		case !fits:
			out = append(out, x)
		case l == 0:
			return Never(), applied
		default:
			known[base] = joined{have.at, l, q}
			out[have.at] = Clause{
				{base.Mod(l), Interval{q, q}},
			}
		}
	}
	return out, applied
}

// congruence recognises x mod m in [r, r].
func (x Clause) congruence() (base Expr, m, res int64, ok bool) {
	if len(x) != 1 || x[0].In.Lo != x[0].In.Hi {
		return Expr{}, 0, 0, false
	}
	base, m, ok = x[0].Expr.asMod()
	return base, m, x[0].In.Lo, ok
}

// asMod recognises e = y mod m, with y free of a constant.
func (e Expr) asMod() (y Expr, m int64, ok bool) {
	r, x := e.r, e.lin()
	for _, t := range x.t {
		a := &r.atoms[t.a]
		if a.kind != atomDiv || t.k != -a.d ||
			r.forms[a.y].c != 0 {
			continue
		}
		m, y := a.d, a.y
		rest := r.addAtom(x, m, t.a)
		if rest.equal(r.lin(y)) {
			return Expr{r, y}, m, true
		}
	}
	return Expr{}, 0, false
}

// resolveUnits is clause-resolve: it drops from each or the bounds that a
// single-bound clause contradicts.
func resolveUnits(c Constraint) (out Constraint, applied int) {
	units := map[Expr]Interval{}
	for _, x := range c {
		if len(x) == 1 {
			units[x[0].Expr] = x[0].In
		}
	}
	out = slices.Clone(c)
	for i, x := range c {
		if len(x) < 2 {
			continue
		}
		out[i] = slices.DeleteFunc(slices.Clone(x), func(b Bound) bool {
			in, ok := units[b.Expr]
			excluded := ok && in.Meet(b.In).Empty()
			if excluded {
				applied++
			}
			return excluded
		})
	}
	return out, applied
}

// absorbImplied is clause-absorb: it drops clauses that another implies bound by
// bound; of two that imply each other the first stays.
func absorbImplied(c Constraint) (out Constraint, applied int) {
	for i, x := range c {
		implied := false
		for j, y := range c {
			if i == j || !y.subsumes(x) {
				continue
			}
			if j < i || !x.subsumes(y) {
				implied = true
				break
			}
		}
		if implied {
			applied++
			continue
		}
		out = append(out, x)
	}
	return out, applied
}

// subsumes reports whether every bound of x implies one of y.
func (x Clause) subsumes(y Clause) bool {
	for _, b := range x {
		if !slices.ContainsFunc(y, func(d Bound) bool {
			return d.Expr == b.Expr && d.In.Covers(b.In)
		}) {
			return false
		}
	}
	return true
}
