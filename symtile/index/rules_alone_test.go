package index

import (
	"fmt"
	"testing"
)

// A ruleTrial applies one rule by itself to random input and compares what it
// says with evaluation at every point of a small box. It reports whether the
// rule applied, and what is wrong, "" for nothing.
type ruleTrial func(id ruleID, g *generator) (applied bool, wrong string)

// ruleTrials has a row for every rule.
var ruleTrials = [numRules]ruleTrial{
	ruleDivOne:       trialDivOne,
	ruleDivConst:     trialDivConst,
	ruleDivRange:     trialDivRange,
	ruleDivWhole:     trialDivWhole,
	ruleDivRemainder: trialDivRemainder,
	ruleDivTwo:       trialDivTwo,
	ruleDivSign:      trialDivRule,
	ruleDivGCD:       trialDivRule,
	ruleDivHalf:      trialDivHalf,
	ruleDivComplete:  trialDivComplete,
	ruleDivSlack:     trialDivRule,
	ruleDivResidue:   trialDivResidue,
	ruleDivDiv:       trialDivRule,
	ruleDivExact:     trialDivExact,

	ruleQuotWhole:  trialQuotRule,
	ruleQuotRange:  trialQuotRule,
	ruleQuotCommon: trialQuotRule,
	ruleQuotDiv:    trialQuotRule,

	ruleMinRange: trialMinRule,
	ruleMinSign:  trialMinRule,
	ruleMinGCD:   trialMinRule,

	ruleRangeMod:  trialRangeRule,
	ruleRangeFact: trialRangeFact,
	ruleRangeMin:  trialRangeRule,

	ruleDomainRange:      trialDomainRule,
	ruleDomainDiv:        trialDomainRule,
	ruleDomainMin:        trialDomainRule,
	ruleDomainMod:        trialDomainRule,
	ruleDomainPeriod:     trialDomainRule,
	ruleDomainEnds:       trialDomainRule,
	ruleDomainOnly:       trialDomainOnly,
	ruleDomainRemainders: trialDomainRemainders,
	ruleDomainEquation:   trialDomainRule,
	ruleDomainSlack:      trialDomainRule,
	ruleDomainSum:        trialDomainRule,

	ruleClauseMerge:      trialClauseMerge,
	ruleClauseRemainders: trialClauseRule,
	ruleClauseResolve:    trialClauseRule,
	ruleClauseAbsorb:     trialClauseRule,
}

// TestRulesAlone tries every rule by itself. A rule that applies in less than a
// hundredth of its trials fails, as does one without a row.
func TestRulesAlone(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 500
	}
	for id, trial := range ruleTrials {
		t.Run(ruleTable[id].Name, func(t *testing.T) {
			if trial == nil {
				t.Fatal("no trial")
			}
			r, applied := NewRing(), 0
			for seed := range n {
				r.Reset()
				r.forgetFired()
				g := newGenerator(int64(seed), r, 3)
				ok, wrong := trial(ruleID(id), g)
				if wrong != "" && r.Err() == nil {
					t.Fatalf("seed %d, d0.. in %v..%v: %s", seed, g.lo, g.hi, wrong)
				}
				if ok {
					applied++
				}
			}
			if applied*100 < n {
				t.Fatalf("applied in %d of %d trials, which is too few to tell", applied, n)
			}
			t.Logf("applied in %d of %d trials", applied, n)
		})
	}
}

// at is the value of x at point v, by the meaning of its atoms alone.
func (r *Ring) at(x lin, v []int64) int64 {
	n := x.c
	for _, t := range x.t {
		n += t.k * r.atomAt(t.a, v)
	}
	return n
}

func (r *Ring) atomAt(id int32, v []int64) int64 {
	a := r.atoms[id]
	switch a.kind {
	case atomVar:
		return v[a.y]
	case atomDiv:
		return FloorDiv(r.at(r.lin(a.y), v), a.d)
	case atomQuot:
		return FloorDiv(
			r.at(r.lin(a.y), v),
			r.at(r.lin(a.z), v),
		)
	case atomMinZero:
		return min(r.at(r.lin(a.y), v), 0)
	case atomProduct:
		n := int64(1)
		for _, f := range r.factors(&a) {
			n *= r.atomAt(f, v)
		}
		return n
	}
	panic("no atom of a normal form")
}

// everywhere says where f differs from what it should be, "" for nowhere: points
// of the box at which the facts of the ring hold.
func (g *generator) everywhere(
	what string, f func(v []int64) (got, want int64),
) (wrong string) {
	r := g.vars[0].r
	points(g.lo, g.hi, func(v []int64) bool {
		if !r.factsHold(v) {
			return true
		}
		if got, want := f(v); got != want {
			wrong = fmt.Sprintf("%s at %v: %d, want %d", what, v, got, want)
		}
		return wrong == ""
	})
	return wrong
}

func (r *Ring) factsHold(v []int64) bool {
	for _, f := range r.facts.sums {
		if !f.in.Contains(r.at(f.sum, v)) {
			return false
		}
	}
	for _, c := range r.facts.congr {
		if floorMod(r.at(c.sum, v)-c.r, c.m) != 0 {
			return false
		}
	}
	for i := range r.atoms {
		a := &r.atoms[i]
		if a.kind == atomVar && floorMod(v[a.y]-a.r, a.m) != 0 {
			return false
		}
	}
	return true
}

// point is a random point of the box.
func (g *generator) point() []int64 {
	v := make([]int64, len(g.lo))
	for i := range v {
		v[i] = g.lo[i] +
			g.rnd.Int63n(g.hi[i]-g.lo[i]+1)
	}
	return v
}

func (g *generator) divisor() int64 {
	return []int64{2, 3, 4, 6, 8, 12, 16}[g.rnd.Intn(7)]
}

// sum is a sum of variables as facts have it: no constant, the first coefficient
// positive, content 1.
func (g *generator) sum() lin {
	r := g.vars[0].r
	x := lin{}
	for _, e := range g.vars[:1+g.rnd.Intn(len(g.vars))] {
		k := []int64{
			1, 2, 3, 4, -1, -2, 6,
		}[g.rnd.Intn(7)]
		x = r.addmul(x, k, e.lin())
	}
	if len(x.t) == 0 {
		return lin{}
	}
	if x.t[0].k < 0 {
		x = r.scale(x, -1)
	}
	return r.shrink(lin{t: x.t}, x.content())
}

func text(r *Ring, x lin) string { return r.wrap(x).String() }

func trialDivOne(id ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	x := g.dividend().e.lin()
	q := r.div(x, 1)
	return r.fired[id] > 0,
		g.everywhere("div-one of "+text(r, x), func(v []int64) (int64, int64) {
			return r.at(q, v), r.at(x, v)
		})
}

func trialDivConst(id ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	c, d := g.rnd.Int63n(200)-100, g.divisor()
	q := r.div(constForm(c), d)
	return r.fired[id] > 0, g.everywhere("div-const", func(v []int64) (int64, int64) {
		return r.at(q, v), FloorDiv(c, d)
	})
}

// trialDivRange tries the quotient of a dividend within one period.
func trialDivRange(_ ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	x, d := g.dividend().e.lin(), g.divisor()*4
	q, ok := uniqueQuotient(r.looseRange(x), d)
	if !ok {
		return false, ""
	}
	what := fmt.Sprintf("(%s) floordiv %d", text(r, x), d)
	return true, g.everywhere(what, func(v []int64) (int64, int64) {
		return q, FloorDiv(r.at(x, v), d)
	})
}

// trialDivWhole tries division with remainder, coefficient by coefficient.
func trialDivWhole(_ ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	r.style.residue = residue(g.rnd.Intn(3))
	r.style.ceilings = g.rnd.Intn(2) == 0
	defer func() { r.style = style{} }()
	x, d := g.dividend().e.lin(), g.divisor()
	whole, rest := r.divide(x, d)
	what := fmt.Sprintf("(%s) floordiv %d", text(r, x), d)
	return whole.size() > 0, g.everywhere(what, func(v []int64) (int64, int64) {
		return r.at(whole, v) + FloorDiv(r.at(rest, v), d),
			FloorDiv(r.at(x, v), d)
	})
}

// trialDivRemainder divides sums with a remainder of which d is no divisor, in any
// style.
func trialDivRemainder(id ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	r.style.residue = residue(g.rnd.Intn(3))
	defer func() { r.style = style{} }()
	m, d := 5+g.rnd.Int63n(6), g.divisor()
	n := 1 + g.rnd.Int63n(2)
	y := g.vars[0].Scale(n)
	y = y.AddConst(g.rnd.Int63n(5))
	if g.rnd.Intn(2) == 0 {
		y = y.Div(2)
	}
	k := g.rnd.Int63n(5) - 2
	mod := y.Mod(m).lin()
	y1 := g.vars[1].lin()
	x := r.addmul(y1, k, mod)
	whole, rest := r.divide(x, d)
	what := fmt.Sprintf("(%s) floordiv %d", text(r, x), d)
	wrong := g.everywhere(what, func(v []int64) (int64, int64) {
		q := FloorDiv(r.at(rest, v), d)
		want := FloorDiv(r.at(x, v), d)
		return r.at(whole, v) + q, want
	})
	return r.fired[id] > 0, wrong
}

// trialDivTwo divides multiples of a quotient that has two values.
func trialDivTwo(id ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	n := g.hi[0] - g.lo[0]
	if n < 1 {
		return false, ""
	}
	y := g.vars[0].AddConst(-g.lo[0])
	y = y.Div(n/2 + 1)
	k := 1 + g.rnd.Int63n(9)
	c := g.rnd.Int63n(20) - 10
	x := y.Scale(k).AddConst(c)
	return r.tryDivRule(id, g, x.lin(), g.divisor())
}

func trialDivRule(id ruleID, g *generator) (bool, string) {
	return g.vars[0].r.tryDivRule(
		id, g, g.dividend().e.lin(), g.divisor(),
	)
}

// trialDivHalf divides one term, and one more, by two.
func trialDivHalf(id ruleID, g *generator) (bool, string) {
	x := g.vars[g.rnd.Intn(3)].AddConst(g.rnd.Int63n(3))
	return x.r.tryDivRule(id, g, x.lin(), 2)
}

// trialDivComplete divides k·y + n·⌊y/m⌋ where n is −k·m but for a multiple of
// the divisor.
func trialDivComplete(id ruleID, g *generator) (bool, string) {
	y, m, d := g.vars[0], 2+g.rnd.Int63n(3), g.divisor()
	k := 1 + g.rnd.Int63n(2)
	x := y.Scale(k).Add(y.Div(m).Scale(
		d*(1+g.rnd.Int63n(2)) - k*m,
	))
	return x.r.tryDivRule(id, g, x.lin(), d)
}

// trialDivResidue divides multiples of a sum that a congruence is known of.
func trialDivResidue(id ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	sum := g.sum()
	if len(sum.t) == 0 {
		return false, ""
	}
	m := g.divisor()
	r.facts.congr = append(r.facts.congr, congruence{sum, m, g.rnd.Int63n(m)})
	x := r.shift(
		r.scale(sum, 1+g.rnd.Int63n(3)),
		g.rnd.Int63n(20)-10,
	)
	return r.tryDivRule(id, g, x, g.divisor())
}

func (r *Ring) tryDivRule(id ruleID, g *generator, x lin, d int64) (bool, string) {
	if len(x.t) == 0 {
		return false, ""
	}
	for _, rule := range divRules {
		if rule.id != id {
			continue
		}
		q, ok := rule.apply(r, x, d)
		if !ok {
			return false, ""
		}
		what := fmt.Sprintf("(%s) floordiv %d = %s", text(r, x), d, text(r, q))
		return true, g.everywhere(what, func(v []int64) (int64, int64) {
			return r.at(q, v), FloorDiv(r.at(x, v), d)
		})
	}
	return false, "no row of divRules"
}

// trialDivExact puts what is known for multiples of exact quotients: d0 satisfies
// a congruence, so that sums of it and of multiples of d are divided exactly.
func trialDivExact(_ ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	d := g.divisor()
	first := g.vars[0].lin()
	if len(first.t) == 0 {
		return false, ""
	}
	a := &r.atoms[first.t[0].a]
	a.m, a.r = d, g.rnd.Int63n(d)
	y := r.addmul(first, d, g.vars[1].lin())
	if g.rnd.Intn(2) == 0 {
		y = r.shift(first, g.rnd.Int63n(9)-4)
	}
	r.div(y, d)
	for id := range r.atoms {
		a := r.atoms[id]
		if !a.exact {
			continue
		}
		x := lin{
			[]term{{a.by * (1 + g.rnd.Int63n(3)), int32(id)}},
			g.rnd.Int63n(9),
		}
		out := r.substituteExactTerms(x)
		what := fmt.Sprintf("div-exact of %s = %s", text(r, y), text(r, out))
		return !out.equal(x), g.everywhere(what, func(v []int64) (int64, int64) {
			return r.at(out, v), r.at(x, v)
		})
	}
	return false, ""
}

func trialQuotRule(id ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	x, f := g.dividend().e.lin(), g.dividend().e.lin()
	if g.rnd.Intn(3) == 0 { // a dividend with something in common with the divisor
		x = r.mul(f, g.dividend().e.lin())
	}
	if id == ruleQuotDiv {
		x = r.addmul(
			r.div(x, g.divisor()),
			g.rnd.Int63n(3),
			g.vars[0].lin(),
		)
		f = r.shift(g.vars[1].lin(), 1-g.lo[1])
	}
	if len(f.t) == 0 || r.sharpRange(f).Lo <= 0 {
		return false, ""
	}
	for _, rule := range quotRules {
		if rule.id != id {
			continue
		}
		q, ok := rule.apply(r, x, f)
		if !ok {
			return false, ""
		}
		what := fmt.Sprintf("(%s) floordiv (%s) = %s", text(r, x), text(r, f), text(r, q))
		return true, g.everywhere(what, func(v []int64) (int64, int64) {
			return r.at(q, v), FloorDiv(r.at(x, v), r.at(f, v))
		})
	}
	return false, "no row of quotRules"
}

func trialMinRule(id ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	x := g.dividend().e.lin()
	if g.rnd.Intn(3) == 0 {
		x = r.scale(x, 2+g.rnd.Int63n(4))
	}
	in := r.sharpRange(x)
	signs := in.Lo < 0 && in.Hi > 0
	for _, rule := range minRules {
		if rule.id != id || id != ruleMinRange && !signs {
			continue
		}
		y, ok := rule.apply(r, x, in)
		if !ok {
			return false, ""
		}
		return true, g.everywhere(
			"min("+text(r, x)+", 0)",
			func(v []int64) (int64, int64) {
				return r.at(y, v), min(r.at(x, v), 0)
			},
		)
	}
	return false, ""
}

func trialRangeRule(id ruleID, g *generator) (bool, string) {
	return g.vars[0].r.tryRangeRule(id, g, g.dividend().e.lin())
}

// trialRangeFact bounds sums that contain a multiple of a known one.
func trialRangeFact(id ruleID, g *generator) (bool, string) {
	r := g.vars[0].r
	sum := g.sum()
	if len(sum.t) == 0 {
		return false, ""
	}
	lo := r.at(sum, g.point())
	r.facts.sums = append(r.facts.sums, fact{
		sum, Interval{lo, lo + g.rnd.Int63n(4)},
	})
	x := r.addmul(g.vars[0].lin(), g.rnd.Int63n(9)-4, sum)
	return r.tryRangeRule(id, g, x)
}

func (r *Ring) tryRangeRule(id ruleID, g *generator, x lin) (bool, string) {
	for _, rule := range rangeRules {
		if rule.id != id || rule.of&r.evidenceFor(x) == 0 {
			continue
		}
		in, ok := rule.apply(r, x, r.looseRange(x), rangeDepth)
		if !ok {
			return false, ""
		}
		what := fmt.Sprintf("%s in %s", text(r, x), in)
		return true, g.everywhere(what, func(v []int64) (int64, int64) {
			y := r.at(x, v)
			return y, min(max(y, in.Lo), in.Hi)
		})
	}
	return false, ""
}

// domainOf makes a domain of the generator's box, at the start of a pass, and
// moves the generator to its ring. Some variables have a congruence.
func (g *generator) domainOf() *domain {
	g.noSymbol = true
	d := newDomain(NewRing())
	var vars []Variable
	for i := range g.lo {
		v := Variable{
			Name: fmt.Sprintf("d%d", i),
			Lo:   g.lo[i],
			Hi:   g.hi[i],
		}
		vars = append(vars, v)
		d.add(v)
	}
	if w := &d.vars[2]; g.rnd.Intn(3) == 0 {
		w.m = 2
		w.r = floorMod(g.lo[2], 2)
		w.snap()
	}
	d.beginPass()
	d.r.vars = vars
	for i := range g.vars {
		g.vars[i] = d.r.wrap(d.r.atomForm(int32(i)))
	}
	return d
}

// bound is a random constraint on x that some point satisfies: an equation as
// often as not.
func (g *generator) bound(r *Ring, x lin) Interval {
	at := r.at(x, g.point())
	if g.rnd.Intn(2) == 0 {
		return Interval{at, at}
	}
	return Interval{at - g.rnd.Int63n(5), at + g.rnd.Int63n(5)}
}

func trialDomainRule(id ruleID, g *generator) (applied bool, wrong string) {
	for _, rule := range domainRules {
		if rule.id != id {
			continue
		}
		d := g.domainOf()
		x := g.constrained(id)
		if len(x.t) == 0 {
			continue
		}
		x, in := d.primitive(x, g.bound(d.r, x))
		if id == ruleDomainSlack { // whole periods
			k := x.t[0].k
			in = Interval{k * FloorDiv(in.Lo, k), k*FloorDiv(in.Hi, k) + k - 1}
		}
		have := d.r.sharpRange(x)
		clipped := in.Meet(have)
		if in.Covers(have) || clipped.Empty() {
			continue
		}
		if rule.needs&^d.traitsOf(x, clipped) != 0 {
			continue
		}
		before := g.holding(d)
		out := rule.apply(d, x, clipped)
		if out == declined {
			continue
		}
		applied = true
		what := fmt.Sprintf("%s in %v", text(d.r, x), clipped)
		if wrong := g.explain(d, what, before, x, clipped, out); wrong != "" {
			return true, wrong
		}
	}
	return applied, ""
}

// constrained is an expression that a rule of domains may like: sums as they
// come, and often an atom alone.
func (g *generator) constrained(id ruleID) lin {
	x, r := g.dividend().e, g.vars[0].r
	switch {
	case g.rnd.Intn(3) > 0:
	case id == ruleDomainDiv:
		x = x.Div(g.divisor())
	case id == ruleDomainMin:
		x = x.Min(r.Const(0))
	case id == ruleDomainPeriod:
		y := g.vars[0].AddConst(g.rnd.Int63n(3))
		x = y.Mod(g.divisor())
	case id == ruleDomainMod:
		x = x.Mod(g.divisor())
	case id == ruleDomainSlack:
		k := g.hi[1] - min(g.lo[1], 0) + 1
		return r.addmul(g.vars[1].lin(), k, g.vars[0].lin())
	default:
		return g.sum()
	}
	return x.lin()
}

// holding lists the points at which d holds.
func (g *generator) holding(d *domain) map[string]bool {
	at := map[string]bool{}
	points(g.lo, g.hi, func(v []int64) bool {
		if d.holds(v) {
			at[fmt.Sprint(v)] = true
		}
		return true
	})
	return at
}

// explain compares the points of the domain at which x in in holds with those
// that what the rule made of it admits.
func (g *generator) explain(
	d *domain, what string, before map[string]bool, x lin, in Interval, out effect,
) (wrong string) {
	replacement := d.replacement
	points(g.lo, g.hi, func(v []int64) bool {
		if !before[fmt.Sprint(v)] {
			return true
		}
		want := in.Contains(d.r.at(x, v))
		got := !d.empty && d.holds(v)
		switch out {
		case learned:
			got = got && want
		case replaced:
			got = got && replacement.in.Contains(d.r.at(replacement.x, v))
		}
		if got != want {
			wrong = fmt.Sprintf("%s at %v: %v, want %v", what, v, got, want)
		}
		return wrong == ""
	})
	return wrong
}

// trialDomainOnly learns congruences of sums with a single solution, too.
func trialDomainOnly(id ruleID, g *generator) (bool, string) {
	if g.rnd.Intn(2) == 0 {
		return trialDomainRule(id, g)
	}
	d := g.domainOf()
	sum, m := g.sum(), 4*g.divisor()
	if len(sum.t) == 0 {
		return false, ""
	}
	residue := floorMod(d.r.at(sum, g.point()), m)
	before := g.holding(d)
	ok := d.onlyValue(sum, m, residue)
	what := fmt.Sprintf("%s = %d mod %d", text(d.r, sum), residue, m)
	return ok, g.compareDomain(d, what, before, func(v []int64) bool {
		return !ok || floorMod(d.r.at(sum, v)-residue, m) == 0
	})
}

// compareDomain says at which point of before d is not what it should be.
func (g *generator) compareDomain(
	d *domain, what string, before map[string]bool, want func(v []int64) bool,
) (wrong string) {
	points(g.lo, g.hi, func(v []int64) bool {
		got := !d.empty && d.holds(v)
		if before[fmt.Sprint(v)] && got != want(v) {
			wrong = fmt.Sprintf("%s at %v: %v, want %v", what, v, got, want(v))
		}
		return wrong == ""
	})
	return wrong
}

// trialDomainRemainders learns two congruences of one variable, or of one sum.
func trialDomainRemainders(id ruleID, g *generator) (bool, string) {
	d := g.domainOf()
	before := g.holding(d)
	sum := g.vars[0].lin()
	learn := func(m, r int64) { d.learnCongruence(0, m, r) }
	if g.rnd.Intn(2) == 0 {
		if sum = g.sum(); len(sum.t) == 0 {
			return false, ""
		}
		learn = func(m, r int64) { d.addCongruence(sum, m, r) }
	}
	m, n := 1+g.rnd.Int63n(6), 1+g.rnd.Int63n(6)
	r, s := g.rnd.Int63n(m), g.rnd.Int63n(n)
	learn(m, r)
	learn(n, s)
	what := fmt.Sprintf("%s = %d mod %d, %d mod %d", text(d.r, sum), r, m, s, n)
	return d.r.fired[id] > 0,
		g.compareDomain(d, what, before, func(v []int64) bool {
			x := d.r.at(sum, v)
			return floorMod(x-r, m) == 0 && floorMod(x-s, n) == 0
		})
}

// clauses is a conjunction over two expressions, so that clauses meet.
func (g *generator) clauses() (c Constraint) {
	pool := []Expr{g.dividend().e, g.vars[1]}
	for range 2 + g.rnd.Intn(3) {
		x := Clause{}
		for range 1 + g.rnd.Intn(2) {
			e := pool[g.rnd.Intn(2)]
			lo := e.Range().Lo + g.rnd.Int63n(8) - 2
			b := Bound{e, Interval{lo, lo + g.rnd.Int63n(6)}}
			if m := 2 + g.rnd.Int63n(5); g.rnd.Intn(3) == 0 {
				r := g.rnd.Int63n(m)
				b = Bound{g.vars[1].Mod(m), Interval{r, r}}
			}
			x = append(x, b)
		}
		y, always := x.simplify()
		if !always && len(y) > 0 {
			c = append(c, y)
		}
	}
	return c
}

func trialClauseRule(id ruleID, g *generator) (bool, string) {
	c := g.clauses()
	if c.True() {
		return false, ""
	}
	for _, rule := range clauseRules {
		if rule.id != id {
			continue
		}
		out, applied := rule.apply(c)
		return applied > 0, g.compareConstraints(c, out)
	}
	return false, "no row of clauseRules"
}

// trialClauseMerge joins alternatives, too.
func trialClauseMerge(id ruleID, g *generator) (bool, string) {
	if g.rnd.Intn(2) == 0 {
		return trialClauseRule(id, g)
	}
	r := g.vars[0].r
	var before, after Clause
	for range 3 {
		lo := g.lo[0] + g.rnd.Int63n(8)
		b := Bound{g.vars[0], Interval{lo, lo + g.rnd.Int63n(3)}}
		before = append(before, b)
		after = after.or(b)
	}
	return r.fired[id] > 0, g.compareConstraints(Constraint{before}, Constraint{after})
}

func (g *generator) compareConstraints(c, d Constraint) (wrong string) {
	before, err1 := CompileConstraint(g.vars, c)
	after, err2 := CompileConstraint(g.vars, d)
	if err1 != nil || err2 != nil {
		return fmt.Sprint(err1, err2)
	}
	scratch := make([]int64, max(before.ScratchLen(), after.ScratchLen()))
	points(g.lo, g.hi, func(v []int64) bool {
		if before.Holds(v, scratch) != after.Holds(v, scratch) {
			wrong = fmt.Sprintf("%s becomes %s, which differs at %v", c, d, v)
		}
		return wrong == ""
	})
	return wrong
}
