package symtile

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
		if slices.EqualFunc(c, d, func(x, y Clause) bool { return slices.Equal(x, y) }) {
			break
		}
		c = d
	}
	return c
}

func (c Constraint) simplifyOnce() Constraint {
	var out Constraint
	for _, x := range c {
		if y, always := x.simplify(); !always {
			out = append(out, y)
		}
	}
	return out.mergeUnits().mergeCongruences().resolve().absorb()
}

// simplify normalises the bounds of x; always tells that x is true.
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

// normalize moves the constant of b's expression into its interval and divides
// by the common factor, the leading coefficient being positive after.
func (b Bound) normalize() Bound {
	r := b.Expr.r
	x := b.Expr.lin()
	if len(x.t) == 0 {
		return b
	}
	g := x.content()
	if r.leading(x).k < 0 {
		g = -g
	}
	if g == 1 && x.c == 0 {
		return b
	}
	in := b.In.AddConst(satNeg(x.c))
	if g < 0 {
		in = in.Neg()
	}
	y := r.each(lin{t: x.t}, func(k int64) int64 { return k / g })
	return Bound{r.wrap(y), in.dilate(max(g, -g))}
}

// leading is the term that decides the sign of x as a bound.
func (r *Ring) leading(x lin) term { return x.t[0] }

// or adds b to x, merging intervals of the same expression that touch.
func (x Clause) or(b Bound) Clause {
	for i, a := range x {
		if a.Expr == b.Expr && touch(a.In, b.In) {
			rest := slices.Delete(slices.Clone(x), i, i+1)
			return rest.or(Bound{b.Expr, a.In.Join(b.In)})
		}
	}
	return append(x, b)
}

func touch(v, w Interval) bool {
	return v.Lo <= satAdd(w.Hi, 1) && w.Lo <= satAdd(v.Hi, 1)
}

// mergeUnits intersects the clauses that are a single bound of one expression.
func (c Constraint) mergeUnits() Constraint {
	at := map[Expr]int{}
	var out Constraint
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
		in := out[i][0].In.Meet(x[0].In)
		if in.Empty() {
			return Never()
		}
		out[i] = Clause{{x[0].Expr, in}}
	}
	return out
}

// mergeCongruences joins x ≡ r (mod m) and x ≡ s (mod n), Chinese remainders;
// clauses that cannot both hold make the constraint false.
func (c Constraint) mergeCongruences() Constraint {
	at := map[Expr]int{}
	var out Constraint
	for _, x := range c {
		base, m, res, ok := x.congruence()
		if !ok {
			out = append(out, x)
			continue
		}
		i, had := at[base]
		if !had {
			at[base] = len(out)
			out = append(out, x)
			continue
		}
		_, n, s, _ := out[i].congruence()
		l, q, known := chineseRemainder(m, res, n, s)
		switch {
		case !known:
			out = append(out, x)
		case l == 0:
			return Never()
		default:
			out[i] = Clause{{base.Mod(l), Interval{q, q}}}
		}
	}
	return out
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
		if a.kind != atomDiv || t.k != -a.d || r.forms[a.y].c != 0 {
			continue
		}
		m, y := a.d, a.y
		if rest := r.addmul(x, m, r.one(t.a)); rest.equal(r.forms[y].lin) {
			return Expr{r, y}, m, true
		}
	}
	return Expr{}, 0, false
}

// chineseRemainder solves x ≡ r (mod m), x ≡ s (mod n): x ≡ q (mod l), l = 0
// when there is no such x. known is false when l is not an int64.
func chineseRemainder(m, r, n, s int64) (l, q int64, known bool) {
	g, u, _ := extendedGCD(m, n)
	if (s-r)%g != 0 {
		return 0, 0, true
	}
	l, ok := mulInt(m/g, n)
	if !ok {
		return 0, 0, false
	}
	// x = r + m·t with m·t ≡ s − r (mod n): t ≡ u·(s − r)/g (mod n/g)
	t, ok1 := mulInt(floorMod(u, n/g), floorMod((s-r)/g, n/g))
	mt, ok2 := mulInt(m, floorMod(t, n/g))
	return l, floorMod(r+mt, l), ok1 && ok2
}

// extendedGCD returns g = gcd(a, b) = a·u + b·v for a, b > 0.
func extendedGCD(a, b int64) (g, u, v int64) {
	u, v = 1, 0
	for s, t := int64(0), int64(1); b != 0; {
		q := a / b
		a, b = b, a-q*b
		u, s = s, u-q*s
		v, t = t, v-q*t
	}
	return a, u, v
}

// resolve drops from each or the bounds that a single-bound clause contradicts.
func (c Constraint) resolve() Constraint {
	units := map[Expr]Interval{}
	for _, x := range c {
		if len(x) == 1 {
			units[x[0].Expr] = x[0].In
		}
	}
	out := slices.Clone(c)
	for i, x := range c {
		if len(x) < 2 {
			continue
		}
		out[i] = slices.DeleteFunc(slices.Clone(x), func(b Bound) bool {
			in, ok := units[b.Expr]
			return ok && in.Meet(b.In).Empty()
		})
	}
	return out
}

// absorb drops clauses that another implies bound by bound.
func (c Constraint) absorb() Constraint {
	var out Constraint
	for i, x := range c {
		implied := false
		for j, y := range c {
			if i != j && y.subsumes(x) && (j < i || !x.subsumes(y)) {
				implied = true
				break
			}
		}
		if !implied {
			out = append(out, x)
		}
	}
	return out
}

// subsumes reports whether every bound of x implies one of y.
func (x Clause) subsumes(y Clause) bool {
	for _, b := range x {
		if !slices.ContainsFunc(y, func(d Bound) bool { return d.Expr == b.Expr && d.In.Covers(b.In) }) {
			return false
		}
	}
	return true
}
