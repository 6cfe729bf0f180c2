package index

import "slices"

// A domain gathers what constraints say about variables: their ranges and
// congruences, equations that eliminate some, and facts about sums. It works in
// a private ring whose atom i is variable i.
//
// Learning something about a variable invalidates the forms built so far, so
// passes are repeated until nothing is learnt.
type domain struct {
	r       *Ring
	vars    []domainVar
	eqs     []equation
	terms   []term     // of the equations
	bounds  []Interval // of atoms, set aside
	known   int        // equations that values stand for in this pass
	said    []Interval // facts.sums as stated, before clipping to what is possible
	changed bool
	empty   bool
}

type domainVar struct {
	in   Interval
	m, r int64 // value ≡ r (mod m)
	free bool  // not a variable of the map: what is learnt must stay a constraint
}

// An equation is variable v = c + Σ terms.
type equation struct {
	v     int32
	c     int64
	terms []term
}

func newDomain(r *Ring) *domain { return &domain{r: r} }

// add enters a variable and returns its index.
func (d *domain) add(v Variable) int {
	d.vars = append(d.vars, domainVar{
		in: Interval{v.Lo, v.Hi},
		m:  1,
	})
	d.empty = d.empty || v.Lo > v.Hi
	return len(d.vars) - 1
}

// restart forgets everything; it starts with what is said about the variables.
func (d *domain) restart(vars []domainVar) {
	d.vars = append(d.vars[:0], vars...)
	d.eqs = d.eqs[:0]
	d.terms = d.terms[:0]
	d.empty = false
	for i := range vars {
		d.empty = d.empty || vars[i].in.Empty()
	}
}

// begin starts a pass: an empty ring with the variables as they are known now.
func (d *domain) begin() {
	d.r.Reset()
	d.changed = false
	d.said = d.said[:0]
	d.known = len(d.eqs)
	d.r.atoms = slices.Grow(
		d.r.atoms, len(d.vars),
	)[:len(d.vars)]
	for i := range d.vars {
		v := &d.vars[i]
		a := &d.r.atoms[i]
		*a = atom{}
		a.kind = atomVar
		a.rises = true
		a.y = int32(i)
		a.z = -1
		a.in = v.in
		a.m = v.m
		a.r = v.r
	}
	for i := range d.eqs { // the eliminated variable's own bounds, both ways
		v := d.eqs[i].v
		x := d.value(int(v))
		d.constrain(x, d.vars[v].in)
		d.narrow(v, d.r.ranged(x))
	}
}

// value is the form that stands for variable i: itself, a constant, or what an
// equation says.
func (d *domain) value(i int) lin {
	v := &d.vars[i].in
	if len(d.eqs) > 0 || v.Lo == v.Hi {
		return d.fixed(i)
	}
	return d.r.one(int32(i))
}

// fixed is value where that may not be the variable itself.
func (d *domain) fixed(i int) lin {
	for j := range d.eqs {
		if e := &d.eqs[j]; int(e.v) == i {
			return d.solved(e)
		}
	}
	if v := d.vars[i].in; v.Lo == v.Hi {
		return konst(v.Lo)
	}
	return d.r.one(int32(i))
}

func (d *domain) solved(e *equation) lin {
	x := konst(e.c)
	for _, t := range e.terms {
		x = d.r.addmul(x, t.k, d.value(int(t.a)))
	}
	return x
}

// owns reports whether atom id is a variable whose range may be narrowed.
func (d *domain) owns(id int32) bool {
	return d.r.atoms[id].kind == atomVar &&
		!d.vars[id].free
}

// narrow intersects the range of variable i with in.
func (d *domain) narrow(i int32, in Interval) {
	v := &d.vars[i]
	was := v.in
	v.in = v.in.Meet(in)
	v.snap()
	d.note(i, v.in != was)
}

// narrowBySum is narrow by what a sum leaves.
func (d *domain) narrowBySum(i int32, in Interval) {
	if !in.Covers(d.vars[i].in) {
		d.r.fired[ruleDomainSum]++
		d.narrow(i, in)
	}
}

// snap moves the ends of v to values it can take.
func (v *domainVar) snap() {
	if v.m > 1 {
		v.in.Lo += floorMod(v.r-v.in.Lo, v.m)
		v.in.Hi -= floorMod(v.in.Hi-v.r, v.m)
	}
}

// stride learns that variable i ≡ r (mod m).
func (d *domain) stride(i int32, m, r int64) {
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
	news := l != v.m
	if v.m > 1 && news {
		d.r.fired[ruleDomainRemainders]++
	}
	v.m, v.r = l, q
	v.snap()
	d.note(i, news)
}

func (d *domain) note(i int32, news bool) {
	v := &d.vars[i]
	d.changed = d.changed || news
	d.empty = d.empty || v.in.Empty()
	a := &d.r.atoms[i]
	a.in = v.in
	a.m = v.m
	a.r = v.r
	if news {
		d.r.forgetQuotients()
	}
}

// forgetQuotients drops results that later knowledge may improve.
func (r *Ring) forgetQuotients() {
	r.memos = r.memos[:0]
	r.memoTab.reset()
	for i := range r.forms {
		r.forms[i].ranged = false
	}
	r.facts.learnt++
}

// constrain learns that x lies in in.
func (d *domain) constrain(x lin, in Interval) {
	if d.empty {
		return
	}
	if len(x.t) == 0 {
		d.empty = d.empty || !in.Contains(x.c)
		return
	}
	if in.Covers(d.r.naive(x)) {
		return
	}
	x, in = d.primitive(x, in)
	have := d.r.ranged(x)
	if in.Covers(have) {
		return
	}
	clipped := in.Meet(have)
	if clipped.Empty() {
		d.empty = true
		return
	}
	if len(x.t) == 1 &&
		d.constrainAtom(x.t[0].a, clipped) {
		return
	}
	if clipped.Lo == clipped.Hi &&
		(d.constrainMod(x, clipped.Lo) || d.equate(x, clipped.Lo)) {
		return
	}
	if clipped.Lo == clipped.Hi {
		for _, t := range x.t { // x = c holds modulo every coefficient
			if g := max(t.k, -t.k); g > 1 {
				d.onlyValue(
					d.r.each(x, func(k int64) int64 { return k % g }),
					g,
					floorMod(clipped.Lo, g),
				)
			}
		}
	}
	if y, yin, ok := d.mergeDiv(x, clipped); ok {
		d.constrain(y, yin)
		return
	}
	if y, yin, ok := d.dropSlack(x, clipped); ok {
		d.constrain(y, yin)
		return
	}
	d.propagate(x, clipped)
	d.remember(x, clipped, in)
}

// primitive makes x constant free, its first coefficient positive, its content 1.
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
		in = in.dilate(g)
	}
	return x, in
}

// constrainAtom learns that one atom lies in in; false leaves it to the sums.
func (d *domain) constrainAtom(id int32, in Interval) bool {
	a := d.r.atoms[id]
	switch a.kind {
	case atomVar:
		if d.owns(id) {
			d.r.fired[ruleDomainRange]++
			d.narrow(id, in)
		}
		return d.owns(id)
	case atomDiv: // ⌊y/d⌋ in [lo, hi] is y in [lo·d, hi·d + d − 1]
		d.r.fired[ruleDomainDiv]++
		y := Interval{
			SatMul(in.Lo, a.d),
			SatAdd(SatMul(in.Hi, a.d), a.d-1),
		}
		d.constrain(d.r.forms[a.y].lin, y)
		return true
	case atomMin: // min(y, 0) ≥ lo is y ≥ lo; ≤ hi < 0 is y ≤ hi
		d.r.fired[ruleDomainMin]++
		if in.Hi >= 0 {
			in.Hi = plusInf
		}
		d.constrain(d.r.forms[a.y].lin, in)
		return true
	}
	return false
}

// mergeDiv turns lo ≤ w ± ⌊y/m⌋ ≤ hi, w of variables, into a bound of m·w ± y.
func (d *domain) mergeDiv(x lin, in Interval) (lin, Interval, bool) {
	at := -1
	for i, t := range x.t {
		switch d.r.atoms[t.a].kind {
		case atomVar:
		case atomDiv:
			if at >= 0 || t.k != 1 && t.k != -1 {
				return lin{}, in, false
			}
			at = i
		default:
			return lin{}, in, false
		}
	}
	if at < 0 {
		return lin{}, in, false
	}
	t := x.t[at]
	a := d.r.atoms[t.a]
	w := d.r.addmul(x, -t.k, d.r.one(t.a))
	if t.k < 0 {
		in = in.Neg()
	}
	d.r.fired[ruleDomainDiv]++
	y := d.r.addmul(
		d.r.forms[a.y].lin,
		d.r.mulAdd(0, t.k, a.d),
		w,
	)
	return y, Interval{
		SatMul(in.Lo, a.d),
		SatAdd(SatMul(in.Hi, a.d), a.d-1),
	}, true
}

// constrainMod learns x = c where x is ±(y mod n) but for a constant: y is
// congruent to something.
func (d *domain) constrainMod(x lin, c int64) bool {
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
			d.r.fired[ruleDomainMod]++
			res := (c-rest.c)*p.k - p.x.c
			d.congruent(
				lin{t: p.x.t},
				p.m,
				floorMod(res, p.m),
			)
			return true
		}
	}
	return false
}

// congruent learns that sum ≡ r (mod m). What variables cannot hold is kept as
// a congruence of the domain.
func (d *domain) congruent(sum lin, m, r int64) {
	if g := GCD(sum.content(), m); g > 1 {
		d.empty = d.empty || r%g != 0
		sum = d.r.each(sum, func(k int64) int64 {
			return k / g
		})
		m = m / g
		r = r / g
	}
	if d.empty || m == 1 {
		return
	}
	if t := sum.t[0]; len(sum.t) == 1 &&
		d.owns(t.a) {
		_, _, inverse := extendedGCD(m, floorMod(t.k, m)) // ≡ 1/k
		if k, ok := mulInt(floorMod(inverse, m), r); ok {
			d.stride(t.a, m, floorMod(k, m))
			return
		}
	}
	if d.onlyValue(sum, m, r) || d.empty {
		return
	}
	for _, t := range sum.t {
		if g := GCD(t.k, m); g > 1 {
			d.onlyValue(
				d.r.each(sum, func(k int64) int64 { return k % g }),
				g,
				floorMod(r, g),
			)
		}
	}
	d.rememberCongruence(sum, m, r)
}

func (d *domain) rememberCongruence(sum lin, m, r int64) {
	fs := &d.r.facts
	defer d.r.forgetQuotients()
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

// onlyValue learns sum = v where v is the only number in the range of sum that
// is ≡ r (mod m).
func (d *domain) onlyValue(sum lin, m, r int64) bool {
	in := d.r.naive(sum)
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
	d.r.fired[ruleDomainOnly]++
	d.constrain(sum, Interval{v, v})
	return true
}

// equate eliminates the last variable of x = c that has coefficient ±1; one
// variable a pass, so that the next equation is seen without it.
func (d *domain) equate(x lin, c int64) bool {
	if len(d.eqs) > d.known {
		return false
	}
	at := -1
	for i, t := range x.t {
		if d.r.atoms[t.a].kind != atomVar {
			return false
		}
		if (t.k == 1 || t.k == -1) &&
			d.owns(t.a) &&
			d.vars[t.a].m == 1 {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	k := x.t[at].k
	e := equation{v: x.t[at].a, c: c * k}
	from := len(d.terms)
	for i, t := range x.t {
		if i != at {
			d.terms = append(d.terms, term{-t.k * k, t.a})
		}
	}
	e.terms = d.terms[from:len(d.terms):len(d.terms)]
	d.eqs = append(d.eqs, e)
	d.r.fired[ruleDomainEquation]++
	d.changed = true
	return true
}

// dropSlack turns lo ≤ g·y + s ≤ hi into a bound of y, where s stays within one
// period of g and the ends are at its borders: the small rest cannot matter.
func (d *domain) dropSlack(x lin, in Interval) (lin, Interval, bool) {
	for _, t := range x.t {
		g := max(t.k, -t.k)
		if g < 2 {
			continue
		}
		whole, rest, _, _ := d.r.split(x, g)
		if len(rest.t) == 0 ||
			len(whole.t) == 0 ||
			d.strided(whole, g) {
			continue
		}
		q, ok := single(d.r.ranged(rest), g)
		if !ok {
			continue
		}
		y := in.AddConst(-q * g)
		have := d.r.naive(whole)
		low := y.Lo <= have.Lo || floorMod(y.Lo, g) == 0
		high := y.Hi >= SatAdd(have.Hi, g-1) ||
			floorMod(y.Hi+1, g) == 0
		if low && high {
			d.r.fired[ruleDomainSlack]++
			return d.r.each(whole, func(k int64) int64 {
				return k / g
			}), y.Div(g), true
		}
	}
	return lin{}, Interval{}, false
}

// strided reports whether whole is a multiple of g thanks to congruences only.
func (d *domain) strided(whole lin, g int64) bool {
	for _, t := range whole.t {
		if t.k%g != 0 {
			return true
		}
	}
	return false
}

// propagate narrows each variable of x by what is left for it.
func (d *domain) propagate(x lin, in Interval) {
	for _, t := range x.t {
		if !d.owns(t.a) {
			continue
		}
		rest := d.r.naive(d.r.addmul(
			x, -t.k, d.r.one(t.a),
		))
		left := in.Add(rest.Neg())
		if t.k < 0 {
			left = left.Neg()
		}
		d.narrowBySum(t.a, left.dilate(max(t.k, -t.k)))
	}
}

// remember adds a fact about a sum; said is how it is stated.
func (d *domain) remember(x lin, in, said Interval) {
	fs := &d.r.facts
	for i := range fs.sums {
		if f := &fs.sums[i]; f.sum.equal(x) {
			f.in, d.said[i] = f.in.Meet(in),
				d.said[i].Meet(said)
			d.empty = d.empty || f.in.Empty()
			d.r.forgetQuotients()
			return
		}
	}
	fs.sums = append(fs.sums, fact{x, in})
	d.said = append(d.said, said)
	d.r.forgetQuotients()
}

// dropImplied removes facts that follow from the others and the ranges. The
// bounds of quotients were found with all facts; here they may not be used, or
// a fact would follow from itself.
func (d *domain) dropImplied() {
	fs := &d.r.facts
	if len(fs.sums) == 0 {
		return
	}
	d.withdrawBounds()
	for i := len(fs.sums) - 1; i >= 0; i-- {
		f := fs.sums[i]
		said := d.said[i]
		last := len(fs.sums) - 1
		copy(fs.sums[i:], fs.sums[i+1:])
		copy(d.said[i:], d.said[i+1:])
		fs.sums = fs.sums[:last]
		d.said = d.said[:last]
		if f.in.Covers(d.r.rangedTo(f.sum, rangeDepth)) {
			continue
		}
		fs.sums = fs.sums[:last+1]
		d.said = d.said[:last+1]
		copy(fs.sums[i+1:], fs.sums[i:])
		copy(d.said[i+1:], d.said[i:])
		fs.sums[i], d.said[i] = f, said
	}
	for i, in := range d.bounds {
		d.r.atoms[i].in = in
	}
	d.r.forgetQuotients()
}

// withdrawBounds bounds every atom by the ranges of variables alone, and keeps
// what was known in d.bounds.
func (d *domain) withdrawBounds() {
	r := d.r
	sums := d.r.facts.sums
	r.facts.sums = nil
	r.forgetQuotients()
	d.bounds = d.bounds[:0]
	for i := range r.atoms {
		a := &r.atoms[i]
		d.bounds = append(d.bounds, a.in)
		in := a.in
		switch a.kind {
		case atomDiv:
			in = r.ranged(r.forms[a.y].lin).Div(a.d)
		case atomQuot:
			in = Unbounded()
			by := r.ranged(r.forms[a.z].lin)
			if by.Lo > 0 {
				in = r.ranged(r.forms[a.y].lin).DivBy(by)
			}
		case atomMin:
			in = r.ranged(r.forms[a.y].lin).Min(Interval{})
		case atomMul:
			in = Interval{1, 1}
			for _, f := range r.factors(a) {
				in = in.Mul(r.atoms[f].in)
			}
		}
		r.atoms[i].in = in
	}
	r.facts.sums = sums
}
