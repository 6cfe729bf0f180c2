package index

// An effect says what is left of a constraint after a rule.
type effect uint8

// The effects of rules on a constraint.
const (
	declined effect = iota // the rule does not apply
	learned                // the domain is narrower; the constraint still says more
	absorbed               // the domain says all that the constraint said
	replaced               // domain.replacement says the same
)

// A bounded form is the constraint x in in.
type boundedForm struct {
	x  lin
	in Interval
}

// A domainRule learns from the constraint x in in, or replaces it by one that is
// equivalent on the domain. x is primitive: it has no constant, its first
// coefficient is positive and its content is 1. in lies inside the range of x.
type domainRule struct {
	id    ruleID
	needs traits // of the constraints that the rule looks at
	apply func(d *domain, x lin, in Interval) effect
}

// Traits are a set of what a constraint x in in looks like. They spare calls of
// rules that would decline.
type traits uint8

// The traits of constraints.
const (
	oneVariable  traits = 1 << iota // x is a variable
	oneQuotient                     // x is a quotient by a constant
	oneMinimum                      // x is a minimum with 0
	equation                        // in is one number
	withQuotient                    // a term of x is a quotient by a constant
	withMultiple                    // a coefficient of x is neither 1 nor −1
)

// domainRules are tried in order until the constraint is absorbed or replaced.
// Single atoms come first, because what they say is exact; then the rules of
// equations, which eliminate variables; then what takes quotients and small
// remainders out of a sum. Interval propagation is last and always leaves the
// constraint as a fact of the domain.
var domainRules []domainRule

func init() { // the rules constrain again, which a literal may not refer to
	domainRules = []domainRule{
		{ruleDomainRange, oneVariable, boundVariable},
		{ruleDomainDiv, oneQuotient, boundQuotient},
		{ruleDomainMin, oneMinimum, boundMinimum},
		{ruleDomainEnds, withQuotient, narrowEnds},
		{ruleDomainMod, equation | withQuotient, remainderEquation},
		{ruleDomainPeriod, withQuotient, snapToPeriod},
		{ruleDomainEquation, equation, eliminateVariable},
		{ruleDomainOnly, equation | withMultiple, equationModCoefficients},
		{ruleDomainDiv, withQuotient, mergeQuotient},
		{ruleDomainSlack, withMultiple, dropSlack},
		{ruleDomainSum, 0, propagateSum},
	}
}

// constrain learns that x lies in in. A constraint that no rule absorbs becomes
// a fact about a sum, which bounds other sums (range-fact).
func (d *domain) constrain(x lin, in Interval) {
	if d.empty {
		return
	}
	if len(x.t) == 0 {
		d.empty = d.empty || !in.Contains(x.c)
		return
	}
	if in.Covers(d.r.looseRange(x)) {
		return
	}
	x, in = d.primitive(x, in)
	possible := d.r.sharpRange(x)
	if in.Covers(possible) {
		return
	}
	clipped := in.Meet(possible)
	if clipped.Empty() {
		d.empty = true
		return
	}
	have := d.traitsOf(x, clipped)
	for i := range domainRules {
		rule := &domainRules[i]
		if rule.needs&^have != 0 {
			continue
		}
		effect := rule.apply(d, x, clipped)
		if effect == declined {
			continue
		}
		d.r.fired[rule.id]++
		switch effect {
		case absorbed:
			return
		case replaced:
			d.constrain(d.replacement.x, d.replacement.in)
			if len(x.t) == 1 { // not before: what follows from x must not stand for it
				a := &d.r.atoms[x.t[0].a]
				a.in = a.in.Meet(clipped)
			}
			return
		}
	}
	d.addFact(x, clipped, in)
}

// traitsOf are the traits of the constraint x in in.
func (d *domain) traitsOf(x lin, in Interval) (have traits) {
	if in.Lo == in.Hi {
		have = equation
	}
	for _, t := range x.t {
		if d.r.atoms[t.a].kind == atomDiv {
			have |= withQuotient
		}
		if t.k != 1 && t.k != -1 {
			have |= withMultiple
		}
	}
	if len(x.t) > 1 {
		return have
	}
	switch d.r.atoms[x.t[0].a].kind {
	case atomVar:
		have |= oneVariable
	case atomDiv:
		have |= oneQuotient
	case atomMinZero:
		have |= oneMinimum
	}
	return have
}

// replace makes x in in the constraint that stands for the one a rule was given.
func (d *domain) replace(x lin, in Interval) effect {
	d.replacement = boundedForm{x, in}
	return replaced
}

// primitive makes x free of a constant, its first coefficient positive and its
// content 1.
func (d *domain) primitive(x lin, in Interval) (lin, Interval) {
	in = in.AddConst(satNeg(x.c))
	g := x.content()
	x = lin{t: x.t}
	sign := int64(1)
	if x.t[0].k < 0 {
		sign, in = -1, in.Neg()
	}
	if g*sign != 1 {
		x = d.r.each(x, func(k int64) int64 {
			return k / g * sign
		})
		in = in.unscale(g)
	}
	return x, in
}

// boundVariable is domain-range: a bound of a variable narrows its range.
func boundVariable(d *domain, x lin, in Interval) effect {
	if !d.owns(x.t[0].a) {
		return declined
	}
	d.narrowVar(x.t[0].a, in)
	return absorbed
}

// boundQuotient is domain-div for a quotient alone: ⌊y/m⌋ in [lo, hi] iff
// y in [m·lo, m·hi + m − 1].
func boundQuotient(d *domain, x lin, in Interval) effect {
	a := &d.r.atoms[x.t[0].a]
	y := d.r.lin(a.y)
	return d.replace(y, dividends(in, a.d))
}

// dividends is the interval of the y with ⌊y/m⌋ in in.
func dividends(in Interval, m int64) Interval {
	hi := SatAdd(SatMul(in.Hi, m), m-1)
	return Interval{SatMul(in.Lo, m), hi}
}

// boundMinimum is domain-min: min(y, 0) ≥ lo iff y ≥ lo, and for hi < 0
// min(y, 0) ≤ hi iff y ≤ hi.
func boundMinimum(d *domain, x lin, in Interval) effect {
	a := &d.r.atoms[x.t[0].a]
	if in.Hi >= 0 {
		in.Hi = plusInf
	}
	return d.replace(d.r.lin(a.y), in)
}

// remainderEquation is domain-mod: where x is ±(y mod m) but for a constant, an
// equation of x is a congruence of y.
func remainderEquation(d *domain, x lin, in Interval) effect {
	for i := len(x.t) - 1; i >= 0; i-- {
		if d.r.atoms[x.t[i].a].kind != atomDiv {
			continue
		}
		for way := range len(x.t) + 2 {
			p, ok := d.r.modPart(x, x.t[i], way)
			if !ok || p.k != 1 && p.k != -1 {
				continue
			}
			rest := d.r.withoutMod(x, x.t[i].a, p)
			if len(rest.t) != 0 {
				continue
			}
			residue := (in.Lo-rest.c)*p.k - p.x.c
			d.congruent(
				lin{t: p.x.t},
				p.m,
				floorMod(residue, p.m),
			)
			return absorbed
		}
	}
	return declined
}

// snapToPeriod is domain-period: where x = v mod m for a variable v, or but for a
// constant, the ends of v's range move inwards to values whose remainder is in in.
func snapToPeriod(d *domain, x lin, in Interval) effect {
	if len(x.t) != 2 || x.t[0].k != 1 {
		return declined
	}
	v := x.t[0].a
	a := &d.r.atoms[x.t[1].a]
	if !d.owns(v) || a.kind != atomDiv {
		return declined
	}
	y := d.r.lin(a.y)
	alone := lin{t: x.t[:1], c: y.c}
	if !y.equal(alone) ||
		x.t[1].k != -a.d {
		return declined
	}
	was := d.vars[v].in
	all := Interval{0, a.d - 1}
	in = in.AddConst(y.c).Meet(all)
	if in.Empty() || !was.Bounded() {
		return declined
	}
	first := firstInPeriod(
		was.Lo+y.c, in.Lo, in.Hi, a.d,
	) - y.c
	// From the far end downwards: −v upwards, whose remainders are a.d minus those of v.
	last := -firstInPeriod(
		-was.Hi-y.c, a.d-in.Hi, a.d-in.Lo, a.d,
	) - y.c
	if first == was.Lo && last == was.Hi {
		return declined
	}
	d.narrowVar(v, Interval{first, last})
	return learned
}

// maxEndSteps bounds the values that narrowEnds drops at each end.
const maxEndSteps = 256

// narrowEnds is domain-ends: the ends of the range of v move inwards to values at
// which x, a sum of quotients of v alone, is in in.
//
// It leaves v mod m to domain-mod and domain-period, which need no search. A
// constraint that holds at both ends costs two evaluations; one that holds at neither
// is followed inwards for maxEndSteps values, and what is left is still sound.
func narrowEnds(d *domain, x lin, in Interval) effect {
	if len(x.t) == 2 &&
		d.r.atoms[x.t[0].a].kind == atomVar {
		y := d.r.lin(d.r.atoms[x.t[1].a].y)
		if len(y.t) == 1 &&
			y.t[0] == x.t[0] {
			return declined
		}
	}
	f := fitting{d: d, steps: maxFitSteps}
	f.vars = d.endVars[:0]
	only := f.collect(x) &&
		len(f.vars) == 1
	d.endVars = f.vars[:0]
	if !only ||
		!d.owns(f.vars[0]) {
		return declined
	}
	v := f.vars[0]
	f.at = append(d.endPoint[:0], make([]int64, len(d.vars))...)
	d.endPoint = f.at
	holds := func(n int64) bool {
		f.at[v] = n
		return in.Contains(f.valueAt(x)) ||
			f.steps < 0
	}
	to := d.vars[v].in
	step := d.vars[v].m
	for n := 0; n < maxEndSteps &&
		to.Lo <= to.Hi && !holds(to.Lo); n++ {
		to.Lo += step
	}
	for n := 0; n < maxEndSteps &&
		to.Lo <= to.Hi && !holds(to.Hi); n++ {
		to.Hi -= step
	}
	if to == d.vars[v].in {
		return declined
	}
	d.narrowVar(v, to)
	return learned
}

// firstInPeriod is the first number from n on whose remainder by m is in [lo, hi],
// where 0 ≤ lo ≤ hi ≤ m.
func firstInPeriod(n, lo, hi, m int64) int64 {
	r := floorMod(n-lo, m) // 0 at lo
	if r <= hi-lo {
		return n
	}
	return n + m - r
}

// eliminateVariable is domain-equation: it solves x = c for the last variable
// that has coefficient ±1. Only one variable is eliminated in a pass, so that
// the next equation is seen without it.
func eliminateVariable(d *domain, x lin, in Interval) effect {
	if len(d.eqs) > d.known {
		return declined
	}
	at := -1
	for i, t := range x.t {
		if d.r.atoms[t.a].kind != atomVar {
			return declined
		}
		unit := t.k == 1 || t.k == -1
		if unit && d.owns(t.a) && d.vars[t.a].m == 1 {
			at = i
		}
	}
	if at < 0 {
		return declined
	}
	k := x.t[at].k
	e := solvedVar{v: x.t[at].a, c: in.Lo * k}
	from := len(d.terms)
	for i, t := range x.t {
		if i != at {
			d.terms = append(d.terms, term{-t.k * k, t.a})
		}
	}
	e.terms = d.terms[from:len(d.terms):len(d.terms)]
	d.eqs = append(d.eqs, e)
	d.changed = true
	return absorbed
}

// equationModCoefficients is domain-only for equations: x = c holds modulo
// every coefficient of x, where the term of that coefficient vanishes.
func equationModCoefficients(d *domain, x lin, in Interval) effect {
	out := declined
	for _, t := range x.t {
		g := max(t.k, -t.k)
		if g < 2 {
			continue
		}
		rest := d.r.each(x, func(k int64) int64 {
			return k % g
		})
		if d.onlyValue(rest, g, floorMod(in.Lo, g)) {
			out = learned
		}
	}
	return out
}

// mergeQuotient is domain-div for a quotient in a sum of variables:
// lo ≤ w ± ⌊y/m⌋ ≤ hi bounds m·w ± y.
func mergeQuotient(d *domain, x lin, in Interval) effect {
	at := -1
	for i, t := range x.t {
		switch d.r.atoms[t.a].kind {
		case atomVar:
		case atomDiv:
			if at >= 0 || t.k != 1 && t.k != -1 {
				return declined
			}
			at = i
		default:
			return declined
		}
	}
	if at < 0 {
		return declined
	}
	t := x.t[at]
	a := d.r.atoms[t.a]
	w := d.r.withoutTerm(x, t)
	if t.k < 0 {
		in = in.Neg()
	}
	y := d.r.addmul(
		d.r.lin(a.y),
		d.r.mulAdd(0, t.k, a.d),
		w,
	)
	return d.replace(y, dividends(in, a.d))
}

// dropSlack is domain-slack: lo ≤ g·y + s ≤ hi bounds y alone where s stays
// within one period of g and the ends lie on its borders.
func dropSlack(d *domain, x lin, in Interval) effect {
	for _, t := range x.t {
		g := max(t.k, -t.k)
		if g < 2 {
			continue
		}
		whole, rest, _, _ := d.r.split(x, g)
		if len(rest.t) == 0 ||
			len(whole.t) == 0 || !divides(g, whole) {
			continue
		}
		q, ok := uniqueQuotient(d.r.sharpRange(rest), g)
		if !ok {
			continue
		}
		y := in.AddConst(-q * g)
		have := d.r.looseRange(whole)
		low := y.Lo <= have.Lo || floorMod(y.Lo, g) == 0
		high := y.Hi >= SatAdd(have.Hi, g-1) ||
			floorMod(y.Hi+1, g) == 0
		if low && high {
			quotient := d.r.each(whole, func(k int64) int64 {
				return k / g
			})
			return d.replace(quotient, y.Div(g))
		}
	}
	return declined
}

// divides reports whether g divides every coefficient of x. The terms of
// Ring.split may be multiples of g by their congruences only.
func divides(g int64, x lin) bool {
	for _, t := range x.t {
		if t.k%g != 0 {
			return false
		}
	}
	return true
}

// propagateSum is domain-sum: each variable of x is narrowed to what the ranges
// of the other terms leave for it.
func propagateSum(d *domain, x lin, in Interval) effect {
	out := declined
	for _, t := range x.t {
		if !d.owns(t.a) {
			continue
		}
		rest := d.r.withoutTerm(x, t)
		remaining := in.Add(d.r.looseRange(rest).Neg())
		if t.k < 0 {
			remaining = remaining.Neg()
		}
		remaining = remaining.unscale(max(t.k, -t.k))
		if !remaining.Covers(d.vars[t.a].in) {
			d.narrowVar(t.a, remaining)
			out = learned
		}
	}
	return out
}

// congruent learns that sum ≡ r (mod m). A congruence of several terms is kept
// as a fact of the domain, which divisions use (div-residue).
func (d *domain) congruent(sum lin, m, r int64) {
	if g := GCD(sum.content(), m); g > 1 {
		d.empty = d.empty || r%g != 0
		sum = d.r.each(sum, func(k int64) int64 {
			return k / g
		})
		m, r = m/g, r/g
	}
	if d.empty || m == 1 {
		return
	}
	if t := sum.t[0]; len(sum.t) == 1 &&
		d.owns(t.a) {
		_, _, inverse := extendedGCD(m, floorMod(t.k, m)) // inverse·t.k ≡ 1
		if k, ok := mulInt(floorMod(inverse, m), r); ok {
			d.learnCongruence(t.a, m, floorMod(k, m))
			return
		}
	}
	if d.onlyValueRule(sum, m, r) || d.empty {
		return
	}
	for _, t := range sum.t {
		if g := GCD(t.k, m); g > 1 {
			rest := d.r.each(sum, func(k int64) int64 {
				return k % g
			})
			d.onlyValueRule(rest, g, floorMod(r, g))
		}
	}
	d.addCongruence(sum, m, r)
}

// onlyValueRule is onlyValue, counted as an application of domain-only.
func (d *domain) onlyValueRule(sum lin, m, r int64) bool {
	applied := d.onlyValue(sum, m, r)
	if applied {
		d.r.fired[ruleDomainOnly]++
	}
	return applied
}

// onlyValue is domain-only: it learns sum = v where v is the only number in the
// range of sum that is ≡ r (mod m), or that there is none.
func (d *domain) onlyValue(sum lin, m, r int64) bool {
	in := d.r.looseRange(sum)
	if !in.Bounded() {
		return false
	}
	v := SatAdd(
		in.Lo,
		floorMod(r-floorMod(in.Lo, m), m),
	)
	if v <= in.Hi && in.Hi-v >= m {
		return false
	}
	d.constrain(sum, Interval{v, v})
	return true
}

// learnCongruence learns that variable i ≡ r (mod m), together with what is
// known of it already (domain-remainders).
func (d *domain) learnCongruence(i int32, m, r int64) {
	v := &d.vars[i]
	l, q, known := chineseRemainder(v.m, v.r, m, r)
	switch {
	case !known:
		return
	case l == 0:
		d.r.fired[ruleDomainRemainders]++
		d.empty = true
		return
	}
	sharper := l != v.m
	if v.m > 1 && sharper {
		d.r.fired[ruleDomainRemainders]++
	}
	v.m, v.r = l, q
	v.snap()
	d.updateVar(i, sharper)
}

// addCongruence keeps a congruence of a sum, merged with one of the same sum
// (domain-remainders).
func (d *domain) addCongruence(sum lin, m, r int64) {
	fs := &d.r.facts
	defer d.r.invalidateQuotients()
	for i := range fs.congr {
		c := &fs.congr[i]
		if !c.sum.equal(sum) {
			continue
		}
		l, q, known := chineseRemainder(c.m, c.r, m, r)
		if !known {
			break
		}
		d.r.fired[ruleDomainRemainders]++
		d.empty = d.empty || l == 0
		c.m = max(l, 1)
		c.r = q
		return
	}
	fs.congr = append(fs.congr, congruence{sum, m, r})
}
