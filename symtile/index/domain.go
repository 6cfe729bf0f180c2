package index

import "slices"

// A domain gathers what constraints say about variables: their ranges and
// congruences, equations that eliminate some, and facts about sums. It works in
// a private ring whose atom i is variable i.
//
// Learning something about a variable invalidates the forms built so far, because
// they are in normal form for the ranges that the variables had. So work is done
// in passes: a pass builds every form anew in an emptied ring, and passes are
// repeated until nothing is learnt. Ranges only shrink and moduli only grow, and
// maxPasses bounds the passes.
type domain struct {
	r       *Ring
	vars    []domainVar
	eqs     []solvedVar
	terms   []term     // of the equations
	bounds  []Interval // of atoms, set aside by resetBounds
	known   int        // equations that values stand for in this pass
	stated  []Interval // facts.sums as stated, before clipping to what is possible
	changed bool       // the pass learnt something about a variable
	empty   bool       // no point is left

	replacement boundedForm // of the constraint at hand, by a rule

	endVars  []int32 // memory of narrowEnds
	endPoint []int64
}

// A domainVar is what is known of one variable.
type domainVar struct {
	in   Interval
	m, r int64 // value ≡ r (mod m)
	free bool  // not a variable of the map: what is learnt must stay a constraint
}

// A solvedVar is the equation variable v = c + Σ terms, which replaces v in every form.
type solvedVar struct {
	v     int32
	c     int64
	terms []term
}

// newDomain returns a domain without variables that works in r.
func newDomain(r *Ring) *domain { return &domain{r: r} }

// maxPasses bounds how often a domain is gone through; each pass but the last
// learns something about a variable, and two passes are common. Past the limit
// what is known so far is kept: it is sound, if not the narrowest.
const maxPasses = 16

// add enters a variable and returns its index.
func (d *domain) add(v Variable) int {
	in := Interval{v.Lo, v.Hi}
	d.vars = append(
		d.vars, domainVar{in: in, m: 1},
	)
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
	n := len(d.vars)
	d.r.atoms = slices.Grow(d.r.atoms, n)[:n]
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

// value is the form that stands for variable i in this pass: itself, a constant
// when its range has one value, or what an equation says. Forms built from values
// mention eliminated variables nowhere.
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

// solved is the right-hand side of e, variables with equations of their own
// replaced.
func (d *domain) solved(e *solvedVar) lin {
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

// snap moves the ends of v inwards to values that its congruence allows.
func (v *domainVar) snap() {
	if v.m > 1 {
		v.in.Lo += floorMod(v.r-v.in.Lo, v.m)
		v.in.Hi -= floorMod(v.in.Hi-v.r, v.m)
	}
}

// updateVar hands what is known of variable i to the ring; sharper tells that it
// is more than before.
func (d *domain) updateVar(i int32, sharper bool) {
	v := &d.vars[i]
	d.changed = d.changed || sharper
	d.empty = d.empty || v.in.Empty()
	a := &d.r.atoms[i]
	a.in = v.in
	a.m = v.m
	a.r = v.r
	if sharper {
		d.r.invalidateQuotients()
	}
}

// invalidateQuotients drops quotients and ranges that later knowledge may improve.
// Forms stay as they are: they are still equal to what they stand for.
func (r *Ring) invalidateQuotients() {
	r.memos = r.memos[:0]
	r.memoTab.reset()
	for i := range r.forms {
		r.forms[i].ranged = false
	}
	r.facts.version++
}

// addFact adds a fact about a sum; stated is how the constraint gave it.
func (d *domain) addFact(x lin, in, stated Interval) {
	fs := &d.r.facts
	for i := range fs.sums {
		if f := &fs.sums[i]; f.sum.equal(x) {
			f.in = f.in.Meet(in)
			d.stated[i] = d.stated[i].Meet(stated)
			d.empty = d.empty || f.in.Empty()
			d.r.invalidateQuotients()
			return
		}
	}
	fs.sums = append(fs.sums, fact{x, in})
	d.stated = append(d.stated, stated)
	d.r.invalidateQuotients()
}

// dropImplied removes facts that follow from the others and the ranges, the last
// first. The bounds of quotients were found with all facts; here they may not be
// used, or a fact would follow from itself.
func (d *domain) dropImplied() {
	fs := &d.r.facts
	if len(fs.sums) == 0 {
		return
	}
	d.resetBounds()
	for i := len(fs.sums) - 1; i >= 0; i-- {
		f := fs.sums[i]
		stated := d.stated[i]
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
		fs.sums[i], d.stated[i] = f, stated
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
			in = r.sharpRange(r.lin(a.y)).Div(a.d)
		case atomQuot:
			in = Unbounded()
			by := r.sharpRange(r.lin(a.z))
			if by.Lo > 0 {
				in = r.sharpRange(r.lin(a.y)).divBy(by)
			}
		case atomMinZero:
			in = r.sharpRange(r.lin(a.y)).Min(Interval{})
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
