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
	stated  []Interval // facts.sums as stated, before clipping to what is possible
	changed bool
	empty   bool

	replacement boundedForm // of the constraint at hand, by a rule
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

// maxPasses bounds how often a domain is gone through; each pass learns
// something about a variable, and two are the rule.
const maxPasses = 16

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

// beginPass starts a pass: an empty ring with the variables as they are known now.
func (d *domain) beginPass() {
	d.r.Reset()
	d.changed = false
	d.stated = d.stated[:0]
	d.known = len(d.eqs)
	d.r.atoms = slices.Grow(
		d.r.atoms, len(d.vars),
	)[:len(d.vars)]
	for i := range d.vars {
		v := &d.vars[i]
		a := &d.r.atoms[i]
		*a = atom{}
		a.kind = atomVar
		a.nondecreasing = true
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
		d.narrowVar(v, d.r.sharpRange(x))
	}
}

// value is the form that stands for variable i: itself, a constant, or what an
// equation says.
func (d *domain) value(i int) lin {
	v := &d.vars[i].in
	if len(d.eqs) > 0 || v.Lo == v.Hi {
		return d.replacedValue(i)
	}
	return d.r.atomForm(int32(i))
}

// replacedValue is value where that may not be the variable itself.
func (d *domain) replacedValue(i int) lin {
	for j := range d.eqs {
		if e := &d.eqs[j]; int(e.v) == i {
			return d.solved(e)
		}
	}
	if v := d.vars[i].in; v.Lo == v.Hi {
		return constForm(v.Lo)
	}
	return d.r.atomForm(int32(i))
}

func (d *domain) solved(e *equation) lin {
	x := constForm(e.c)
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

// narrowVar intersects the range of variable i with in.
func (d *domain) narrowVar(i int32, in Interval) {
	v := &d.vars[i]
	was := v.in
	v.in = v.in.Meet(in)
	v.snap()
	d.updateVar(i, v.in != was)
}

// snap moves the ends of v to values it can take.
func (v *domainVar) snap() {
	if v.m > 1 {
		v.in.Lo += floorMod(v.r-v.in.Lo, v.m)
		v.in.Hi -= floorMod(v.in.Hi-v.r, v.m)
	}
}

func (d *domain) updateVar(i int32, news bool) {
	v := &d.vars[i]
	d.changed = d.changed || news
	d.empty = d.empty || v.in.Empty()
	a := &d.r.atoms[i]
	a.in = v.in
	a.m = v.m
	a.r = v.r
	if news {
		d.r.invalidateQuotients()
	}
}

// invalidateQuotients drops results that later knowledge may improve.
func (r *Ring) invalidateQuotients() {
	r.memos = r.memos[:0]
	r.memoTab.reset()
	for i := range r.forms {
		r.forms[i].ranged = false
	}
	r.facts.version++
}

// addFact adds a fact about a sum; said is how it is stated.
func (d *domain) addFact(x lin, in, said Interval) {
	fs := &d.r.facts
	for i := range fs.sums {
		if f := &fs.sums[i]; f.sum.equal(x) {
			f.in, d.stated[i] = f.in.Meet(in),
				d.stated[i].Meet(said)
			d.empty = d.empty || f.in.Empty()
			d.r.invalidateQuotients()
			return
		}
	}
	fs.sums = append(fs.sums, fact{x, in})
	d.stated = append(d.stated, said)
	d.r.invalidateQuotients()
}

// dropImplied removes facts that follow from the others and the ranges. The
// bounds of quotients were found with all facts; here they may not be used, or
// a fact would follow from itself.
func (d *domain) dropImplied() {
	fs := &d.r.facts
	if len(fs.sums) == 0 {
		return
	}
	d.resetBounds()
	for i := len(fs.sums) - 1; i >= 0; i-- {
		f := fs.sums[i]
		said := d.stated[i]
		last := len(fs.sums) - 1
		copy(fs.sums[i:], fs.sums[i+1:])
		copy(d.stated[i:], d.stated[i+1:])
		fs.sums = fs.sums[:last]
		d.stated = d.stated[:last]
		if f.in.Covers(d.r.sharpRangeTo(f.sum, rangeDepth)) {
			continue
		}
		fs.sums = fs.sums[:last+1]
		d.stated = d.stated[:last+1]
		copy(fs.sums[i+1:], fs.sums[i:])
		copy(d.stated[i+1:], d.stated[i:])
		fs.sums[i], d.stated[i] = f, said
	}
	for i, in := range d.bounds {
		d.r.atoms[i].in = in
	}
	d.r.invalidateQuotients()
}

// resetBounds bounds every atom by the ranges of variables alone, and keeps
// what was known in d.bounds.
func (d *domain) resetBounds() {
	r := d.r
	sums := d.r.facts.sums
	r.facts.sums = nil
	r.invalidateQuotients()
	d.bounds = d.bounds[:0]
	for i := range r.atoms {
		a := &r.atoms[i]
		d.bounds = append(d.bounds, a.in)
		in := a.in
		switch a.kind {
		case atomDiv:
			in = r.sharpRange(r.forms[a.y].lin).Div(a.d)
		case atomQuot:
			in = Unbounded()
			by := r.sharpRange(r.forms[a.z].lin)
			if by.Lo > 0 {
				in = r.sharpRange(r.forms[a.y].lin).DivBy(by)
			}
		case atomMinZero:
			in = r.sharpRange(r.forms[a.y].lin).Min(Interval{})
		case atomProduct:
			in = Interval{1, 1}
			for _, f := range r.factors(a) {
				in = in.Mul(r.atoms[f].in)
			}
		}
		r.atoms[i].in = in
	}
	r.facts.sums = sums
}
