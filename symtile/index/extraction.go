package index

// Extraction chooses how an expression is written: the form that takes the
// fewest operations. It is a step of its own, because the normal form suits
// comparison, not reading: it has no remainder and no maximum, and it distributes
// products.
//
// The choice is greedy and memoised by form: as long as some rewriting of the
// sum costs less, the cheapest is taken. Costs are + − · floordiv mod min max,
// one each; a coefficient of ±1 is free, a subtraction is one operation. Of
// equal costs the one with more remainders wins, because a remainder is a little
// cheaper.
//
// Extraction adds atoms of its own to the ring, so it works in rings that
// nobody builds in: a reader (print.go) or a Composition at its end.

// opCost is the cost of one operation, modCost that of a remainder.
const (
	opCost  = 64
	modCost = opCost - 1
)

// maxCost keeps sums of costs of shared subexpressions within int32.
const maxCost = 1 << 28

// cheapest returns the chosen way to write form y, and what it costs.
func (r *Ring) cheapest(y int32) (lin, int32) {
	c := r.choice(y)
	return c.lin, c.cost
}

// choice is the chosen way to write form y.
func (r *Ring) choice(y int32) choice {
	if int(y) < len(r.choiceOf) &&
		r.choiceOf[y] > 0 {
		return r.choices[r.choiceOf[y]-1]
	}
	c := r.choose(r.lin(y))
	for int(y) >= len(r.choiceOf) {
		r.choiceOf = append(r.choiceOf, 0)
	}
	r.choices = append(r.choices, c)
	r.choiceOf[y] = int32(len(r.choices))
	return c
}

// choose chooses how x is written.
func (r *Ring) choose(x lin) choice {
	if r.plain(x) || len(x.t) > maxPattern {
		return choice{lin: x, cost: r.cost(x)}
	}
	if r.style.free && r.selected < maxSelected {
		if y, ok := r.digitSum(x); ok {
			return choice{y, r.cost(y), true}
		}
	}
	cost := r.cost(x)
	if cost > 0 && r.selected < maxSelected {
		r.selected++
		x, cost = r.search(x, cost)
	}
	return choice{lin: x, cost: cost}
}

// search is the cheapest form found from x, which costs cost. In the free style
// it also starts from x with its dividends recentred.
func (r *Ring) search(x lin, cost int32) (lin, int32) {
	s := selector{r: r, x: x, cost: cost}
	s.run()
	if !r.style.free || s.cost < 2*opCost {
		return s.x, s.cost
	}
	if y, ok := r.recentred(x); ok {
		other := selector{r: r, x: y}
		other.cost = r.cost(y)
		if other.run(); other.cost < s.cost {
			return other.x, other.cost
		}
	}
	return s.x, s.cost
}

// recentred is x with the coefficients of every dividend by d in (−d/2, d/2]:
// ⌊(y + d·w)/d⌋ = ⌊y/d⌋ + w. ok is false when they are so already.
//
// Large residues in dividends often stand for small ones of the other sign, with
// the difference among the terms of the sum; which of both is shorter depends on
// what else the sum has.
func (r *Ring) recentred(x lin) (out lin, ok bool) {
	out = constForm(x.c)
	for _, t := range x.t {
		a := r.atoms[t.a]
		if a.kind != atomDiv {
			out = r.addAtom(out, t.k, t.a)
			continue
		}
		y := r.lin(a.y)
		nearest := func(k int64) int64 {
			return -FloorDiv(a.d/2-k, a.d)
		}
		w := r.each(lin{t: y.t}, nearest)
		if len(w.t) == 0 {
			out = r.addAtom(out, t.k, t.a)
			continue
		}
		ok = true
		out = r.addmul(out, t.k, w)
		if y = r.addmul(y, -a.d, w); len(y.t) == 0 {
			out.c = r.mulAdd(out.c, t.k, FloorDiv(y.c, a.d))
			continue
		}
		id, _ := r.atom(atomDiv, r.form(y), -1, a.d)
		out = r.addAtom(out, t.k, id)
	}
	return out, ok
}

// writeAsIs makes every form its own choice.
func (r *Ring) writeAsIs() {
	r.forgetChoices()
	r.selected = maxSelected
}

// maxSelected bounds how many forms are rewritten for one text: rewriting makes
// forms that are rewritten in turn. The rest is written as it is.
const maxSelected = 2000

// costOf is the cost of the cheapest way to write form y.
func (r *Ring) costOf(y int32) int32 {
	x := r.lin(y)
	if r.plain(x) {
		return r.cost(x)
	}
	_, c := r.cheapest(y)
	return c
}

// plain reports whether there is only one way to write x: it is a sum of
// variables and of quotients that have nothing in common with it.
func (r *Ring) plain(x lin) bool {
	for i, t := range x.t {
		a := &r.atoms[t.a]
		switch {
		case a.kind == atomVar:
		case a.kind != atomDiv, x.c != 0,
			len(x.t) > maxPattern,
			t.k < 0 && r.style.free:
			return false
		case !r.apart(x, i),
			r.style.loose && r.joinable(r.lin(a.y)):
			return false
		}
	}
	return true
}

// joinable reports whether the dividend x has a quotient that joinInner can merge with
// the one around it.
func (r *Ring) joinable(x lin) bool {
	if len(x.t) < 2 {
		return false
	}
	for _, t := range x.t {
		if t.k == 1 && r.atoms[t.a].kind == atomDiv {
			return true
		}
	}
	return false
}

// apart reports whether the dividend of x's term i has no atom of x, nor of the
// dividends before it.
func (r *Ring) apart(x lin, i int) bool {
	y := r.forms[r.atoms[x.t[i].a].y].lin
	if x.sharesAtom(y) {
		return false
	}
	for _, t := range x.t[:i] {
		a := &r.atoms[t.a]
		if a.kind == atomDiv &&
			y.sharesAtom(r.lin(a.y)) {
			return false
		}
	}
	return true
}

// cost counts the operations of x as it stands: those inside its atoms, one
// between any two summands, one for every coefficient other than ±1. A common
// factor g may be written once, as g·(x/g).
func (r *Ring) cost(x lin) int32 {
	if len(x.t) == 0 {
		return 0
	}
	inside := int32(0)
	for _, t := range x.t {
		inside += r.atomCost(t.a)
	}
	n, _ := sumCost(x)
	return min(inside+n*opCost, maxCost)
}

// sumCost counts the operations of x apart from those inside its atoms; g is the
// factor that is written once, 1 if none is.
func sumCost(x lin) (n int32, g int64) {
	sum := int32(len(x.t) - 1)
	if x.c != 0 {
		sum++
	}
	muls := int32(0)
	g = x.c
	negative := x.c <= 0 // every summand is negative
	signFree := x.c != 0 // some summand takes a sign without an operation
	for _, t := range x.t {
		if t.k != 1 && t.k != -1 {
			muls++
			signFree = signFree || t.k < 0
		}
		negative = negative && t.k < 0
		if g != 1 {
			g = GCD(g, t.k)
		}
	}
	plain := sum + muls
	if negative && !signFree {
		plain++ // a lone negation
	}
	if g > 1 && len(x.t) > 1 {
		if n := factoredCost(x, sum, g); n < plain {
			return n, g
		}
	}
	return plain, 1
}

// factoredCost counts g·(x/g) apart from what is inside its atoms.
func factoredCost(x lin, sum int32, g int64) int32 {
	n := sum + 1
	for _, t := range x.t {
		if t.k != g && t.k != -g {
			n++
		}
	}
	return n
}

// atomCost is the cost of one atom, its operands included.
func (r *Ring) atomCost(id int32) int32 {
	a := &r.atoms[id] // costOf may move the atoms
	y, z := a.y, a.z
	switch a.kind {
	case atomVar:
		return 0
	case atomProduct:
		n := (z - 1) * opCost
		for i := range z {
			n += r.atomCost(r.factorPool[y+i])
		}
		return n
	case atomMod:
		return modCost + r.costOf(y)
	case atomModForm:
		inside := r.costOf(y) + r.costOf(z)
		return min(modCost+inside, maxCost)
	case atomQuot, atomCeilDiv, atomMin, atomMax, atomFormProduct:
		inside := r.costOf(y) + r.costOf(z)
		return min(opCost+inside, maxCost)
	}
	return opCost + r.costOf(y)
}

// A selector improves one sum until nothing costs less. Each rewriting offers a
// sum that is equal to x; the cheapest offer is the next x. The rewritings are
//
//	k·X − k·m·⌊X/m⌋        k·(X mod m)              introduceMod
//	k·y − k·f·⌊y/f⌋        k·(y mod f)              introduceSymbolicMod
//	k·m·⌊(X + m−1)/m⌋      k·X + k·(−X mod m)       introduceNegatedMod
//	k·(X mod m) + c        (k·X + c) mod (k·m)      widenMod
//	k·(X mod m)            k·(m−1) − k·((−X−1) mod m)  complementMod
//	k·⌊(⌊y/n⌋ + q)/d⌋      k·⌊(y + n·q)/(n·d)⌋     joinInner
//	k·⌊y/d⌋ + k·q          k·⌊(y + d·q)/d⌋          absorb, absorbQuotients
//	k·⌊y/d⌋                −k·⌊(−y + d−1)/d⌋        negateQuotient
//	k·⌊y/f⌋                −k·⌈−y/f⌉                introduceCeilDiv
//	k·min(y, 0) + k·z      k·min(y + z, z)          introduceMinMax
//	a·f + b·f              (a + b)·f                factor
type selector struct {
	r    *Ring
	x    lin
	cost int32 // of x

	best     lin // the cheapest offer, once it costs less than x
	bestCost int32
}

// run leaves the cheapest form found in x.
func (s *selector) run() {
	if s.isMod() {
		return
	}
	for s.cost > 0 {
		s.bestCost = s.cost
		for i := len(s.x.t) - 1; i >= 0 && !s.done(); i-- {
			s.rewriteTerm(s.x.t[i])
		}
		if s.done() {
			s.x = s.best
			s.cost = s.bestCost
			return
		}
		s.factor()
		if s.bestCost >= s.cost {
			s.absorbQuotients()
		}
		if s.bestCost >= s.cost {
			return
		}
		s.x = s.best
		s.cost = s.bestCost
	}
}

// isMod takes the commonest case first: x as a whole is k·(y mod m).
func (s *selector) isMod() bool {
	r := s.r
	k, ok := r.remainderOf(s.x)
	if !ok {
		return false
	}
	a := r.atoms[s.x.t[len(s.x.t)-1].a]
	id, _ := r.atom(atomMod, a.y, -1, a.d)
	s.x = r.scale(r.atomForm(id), k)
	s.cost = r.cost(s.x)
	return true
}

// remainderOf reports whether x is k·(y mod m) = k·y − k·m·⌊y/m⌋. The quotient is
// its last term, because atoms inside an atom have smaller ids.
func (r *Ring) remainderOf(x lin) (k int64, ok bool) {
	if len(x.t) == 0 { // recentring may leave a constant
		return 0, false
	}
	n := len(x.t) - 1
	t := x.t[n]
	a := &r.atoms[t.a]
	if n == 0 || a.kind != atomDiv {
		return 0, false
	}
	y := r.lin(a.y)
	if len(y.t) != n || t.k%a.d != 0 {
		return 0, false
	}
	k = -t.k / a.d
	if x.c != r.plus(0, k, y.c) {
		return 0, false
	}
	for i, u := range y.t {
		v := x.t[i]
		if v.a != u.a || v.k != r.plus(0, k, u.k) {
			return 0, false
		}
	}
	return k, true
}

// minCost is the cost of the cheapest way to write x, which need not be a form.
func (r *Ring) minCost(x lin) int32 {
	switch {
	case len(x.t) == 0,
		len(x.t) == 1 && x.t[0].k == 1 && x.c == 0 &&
			r.atoms[x.t[0].a].kind == atomVar:
		return 0
	case r.plain(x):
		return r.cost(x)
	}
	if k, ok := r.remainderOf(x); ok {
		last := x.t[len(x.t)-1]
		c := modCost + r.costOf(r.atoms[last.a].y)
		if k != 1 {
			c += opCost
		}
		return min(c, maxCost)
	}
	_, c := r.cheapest(r.form(x))
	return c
}

// done reports whether the best form is a single term: nothing is shorter.
func (s *selector) done() bool {
	if s.bestCost >= s.cost {
		return false
	}
	return len(s.best.t) == 1 && s.best.c == 0
}

// offer takes y as the next form when it is the cheapest so far.
func (s *selector) offer(y lin) {
	if c := s.r.cost(y); c < s.bestCost {
		s.best, s.bestCost = y, c
	}
}

// rewriteTerm offers what can be made of x through its term t.
func (s *selector) rewriteTerm(t term) {
	a := &s.r.atoms[t.a]
	switch a.kind {
	case atomDiv:
		if len(s.x.t) > 1 || s.x.c != 0 {
			s.introduceMod(t)
			if s.done() {
				return
			}
			s.introduceNegatedMod(t)
			s.absorb(t, t.k)
			s.absorb(t, -t.k)
		}
		if s.r.style.loose {
			s.joinInner(t)
		}
		if t.k < 0 && s.r.style.free {
			s.negateQuotient(t)
		}
	case atomMod:
		s.widenMod(t)
		if s.r.style.loose {
			s.complementMod(t)
		}
	case atomQuot:
		s.introduceSymbolicMod(t, t.a)
		s.introduceCeilDiv(t)
	case atomProduct:
		for i := range a.z {
			f := s.r.factorPool[s.r.atoms[t.a].y+i]
			if s.r.atoms[f].kind == atomQuot {
				s.introduceSymbolicMod(t, f)
			}
		}
	case atomMinZero:
		s.introduceMinMax(t)
	}
}

// introduceMod writes k·X − k·m·⌊X/m⌋ as k·(X mod m).
func (s *selector) introduceMod(t term) {
	for i := range len(s.x.t) + 2 {
		p, ok := s.r.modPart(s.x, t, i)
		if !ok {
			continue
		}
		y := s.r.withoutMod(s.x, t.a, p)
		x := p.x
		if s.r.style.loose {
			x = s.r.reduced(x, p.m)
		}
		if len(x.t) == 0 {
			continue
		}
		id, _ := s.r.atom(
			atomMod, s.r.form(x), -1, p.m,
		)
		if s.offer(
			s.r.addAtom(y, p.k, id),
		); s.done() {
			return
		}
	}
}

// complementMod writes k·(X mod m) as k·(m − 1) − k·((−X − 1) mod m).
func (s *selector) complementMod(t term) {
	r := s.r
	a := r.atoms[t.a]
	last, ok := mulInt(t.k, a.d-1)
	x := r.lin(a.y)
	if !ok || s.x.c != -last && floorMod(x.c, a.d) != a.d-1 {
		return // no constant goes away
	}
	x = r.scale(x, -1)
	x = r.reduced(r.shift(x, -1), a.d)
	if len(x.t) == 0 {
		return
	}
	id, _ := r.atom(atomMod, r.form(x), -1, a.d)
	y := r.shift(r.withoutTerm(s.x, t), last)
	s.offer(r.addAtom(y, -t.k, id))
}

// widenMod writes k·(X mod m) + c, 0 ≤ c < k, as (k·X + c) mod (k·m).
func (s *selector) widenMod(t term) {
	r := s.r
	a := r.atoms[t.a]
	m, ok := mulInt(t.k, a.d)
	if t.k < 2 || s.x.c < 0 ||
		s.x.c >= t.k || !ok {
		return
	}
	y := r.addmul(
		constForm(s.x.c),
		t.k,
		r.lin(a.y),
	)
	rest := r.withoutTerm(s.x, t)
	rest.c = 0
	id, _ := r.atom(atomMod, r.form(y), -1, m)
	s.offer(r.addAtom(rest, 1, id))
}

// introduceNegatedMod writes k·m·⌊(X + m−1)/m⌋ = k·m·⌈X/m⌉ as k·X + k·(−X mod m).
func (s *selector) introduceNegatedMod(t term) {
	r := s.r
	a := r.atoms[t.a]
	if t.k%a.d != 0 {
		return
	}
	if !s.x.sharesAtom(r.lin(a.y)) {
		return
	}
	k := t.k / a.d
	x := r.shift(r.lin(a.y), 1-a.d)
	minus := x // −x mod 2 = x mod 2
	if a.d != 2 {
		minus = r.scale(x, -1)
	}
	id, _ := r.atom(
		atomMod, r.form(minus), -1, a.d,
	)
	y := r.addmul(r.withoutTerm(s.x, t), k, x)
	s.offer(r.addAtom(y, k, id))
}

// absorb moves terms of the sum into the dividend of t, which has coefficient
// k after: k·⌊y/d⌋ + k·q = k·⌊(y + d·q)/d⌋. With the other sign the dividend is
// −y + d − 1.
func (s *selector) absorb(t term, k int64) {
	r := s.r
	a := r.atoms[t.a]
	y := r.lin(a.y)
	if !s.absorbs(y, k) {
		return
	}
	num := y
	rest := r.withoutTerm(s.x, t)
	if k != t.k {
		num = r.shift(r.scale(num, -1), a.d-1)
	}
	moved := false
	for _, u := range y.t {
		c := rest.coefficient(u.a)
		if c == 0 || c%k != 0 {
			continue
		}
		num = r.addAtom(
			num, r.mulAdd(0, c/k, a.d), u.a,
		)
		rest = r.addAtom(rest, -c, u.a)
		moved = true
	}
	if rest.c != 0 && num.c != 0 && rest.c%k == 0 {
		num.c = r.mulAdd(num.c, rest.c/k, a.d)
		rest.c, moved = 0, true
	}
	if moved {
		id, _ := r.atom(
			atomFloorDiv, r.form(num), -1, a.d,
		)
		s.offer(r.addAtom(rest, k, id))
	}
}

// joinInner writes k·⌊(⌊y/n⌋ + q)/d⌋ as k·⌊(y + n·q)/(n·d)⌋, where division has not
// done so because there is more than one quotient inside.
func (s *selector) joinInner(t term) {
	r := s.r
	a := r.atoms[t.a]
	x := r.lin(a.y)
	if len(x.t) < 2 {
		return
	}
	for _, u := range x.t {
		b := r.atoms[u.a]
		d, ok := mulInt(a.d, b.d)
		if b.kind != atomDiv || u.k != 1 || !ok ||
			!isSmall(d) || !r.scalable(x, b.d) {
			continue
		}
		num := r.scale(r.withoutTerm(x, u), b.d)
		num = r.addmul(num, 1, r.lin(b.y))
		id, _ := r.atom(
			atomFloorDiv, r.form(num), -1, d,
		)
		y := r.withoutTerm(s.x, t)
		s.offer(r.addAtom(y, t.k, id))
	}
}

// scalable reports whether k·x is far from overflow.
func (r *Ring) scalable(x lin, k int64) bool {
	in := r.looseRange(x)
	lo, ok := mulInt(in.Lo, k)
	hi, fits := mulInt(in.Hi, k)
	return ok && fits && isSmall(lo) && isSmall(hi)
}

// negateQuotient writes −k·⌊y/d⌋ as k·⌊(−y + d−1)/d⌋: the sign may be free there.
func (s *selector) negateQuotient(t term) {
	r := s.r
	a := r.atoms[t.a]
	if a.kind != atomDiv {
		return
	}
	num := r.scale(r.lin(a.y), -1)
	num = r.shift(num, a.d-1)
	id, _ := r.atom(
		atomFloorDiv, r.form(num), -1, a.d,
	)
	rest := r.withoutTerm(s.x, t)
	s.offer(r.addAtom(rest, -t.k, id))
}

// absorbQuotients moves a quotient into the dividend of another one with which
// it has something in common, so that a remainder may come of it. It is the
// last resort, for it often stands in the way of something shorter.
func (s *selector) absorbQuotients() {
	r := s.r
	for _, t := range s.x.t {
		if k := r.atoms[t.a].kind; k != atomDiv && k != atomFloorDiv {
			continue
		}
		for _, u := range s.x.t {
			if u.a == t.a || r.atoms[u.a].kind != atomDiv {
				continue
			}
			if u.k%t.k == 0 {
				s.absorbQuotient(t, u)
			}
		}
	}
}

// absorbQuotient moves the quotient of u into the dividend of t.
func (s *selector) absorbQuotient(t, u term) {
	r := s.r
	a := r.atoms[t.a]
	b := r.atoms[u.a]
	y := r.lin(a.y)
	if !y.sharesAtom(r.lin(b.y)) {
		return
	}
	num := r.addAtom(
		y,
		r.mulAdd(0, u.k/t.k, a.d),
		u.a,
	)
	rest := r.withoutTerm(r.withoutTerm(s.x, t), u)
	id, _ := r.atom(
		atomFloorDiv, r.form(num), -1, a.d,
	)
	s.offer(r.addAtom(rest, t.k, id))
}

// absorbs reports whether absorb has something to move.
func (s *selector) absorbs(y lin, k int64) bool {
	for _, u := range y.t {
		c := s.x.coefficient(u.a)
		if c != 0 && c%k == 0 {
			return true
		}
	}
	return s.x.c != 0 && s.x.c%k == 0
}

// introduceSymbolicMod writes k·y − k·f·⌊y/f⌋ as k·(y mod f), seen from the term t
// that has the quotient q as a factor.
func (s *selector) introduceSymbolicMod(t term, q int32) {
	r := s.r
	a := r.atoms[q]
	f := r.lin(a.z)
	lead := term{f.c, q}
	if len(f.t) > 0 {
		lead = term{
			f.t[0].k,
			r.product(f.t[0].a, q),
		}
	}
	if lead.a != t.a || t.k%lead.k != 0 {
		return
	}
	k := -t.k / lead.k
	y := r.addmul(s.x, k, r.mul(f, r.atomForm(q)))
	y = r.addmul(y, -k, r.lin(a.y))
	id, _ := r.atom(atomModForm, a.y, a.z, 0)
	s.offer(r.addAtom(y, k, id))
}

// introduceCeilDiv writes k·⌊y/f⌋ as −k·⌈−y/f⌉.
func (s *selector) introduceCeilDiv(t term) {
	r := s.r
	a := r.atoms[t.a]
	y := r.scale(r.lin(a.y), -1)
	id, _ := r.atom(atomCeilDiv, r.form(y), a.z, 0)
	s.offer(r.addAtom(
		r.withoutTerm(s.x, t), -t.k, id,
	))
}

// introduceMinMax writes k·min(y, 0) + k·z as k·min(y + z, z), and
// −k·min(y, 0) + k·z as k·max(z − y, z), for the parts z of the sum that make it
// cheaper.
func (s *selector) introduceMinMax(t term) {
	r := s.r
	y := r.lin(r.atoms[t.a].y)
	kind, k := atomMin, t.k
	if k < 0 {
		kind, k, y = atomMax, -k, r.scale(y, -1)
	}
	rest := r.withoutTerm(s.x, t)
	parts := [...]lin{
		{},
		s.cancelling(rest, y, k),
		s.multiples(rest, k),
	}
	for _, z := range parts {
		sum := r.form(r.addmul(y, 1, z))
		id, _ := r.atom(kind, sum, r.form(z), 0)
		s.offer(r.addAtom(r.addmul(rest, -k, z), k, id))
	}
}

// cancelling is the part of rest/k that cancels in y.
func (s *selector) cancelling(rest, y lin, k int64) lin {
	z := lin{}
	for _, t := range rest.t {
		if t.k%k == 0 && y.coefficient(t.a) == -t.k/k {
			z = s.r.addAtom(z, t.k/k, t.a)
		}
	}
	if rest.c%k == 0 && y.c == -rest.c/k {
		z.c = rest.c / k
	}
	return z
}

// multiples is the part of rest that is divisible by k, over k.
func (s *selector) multiples(rest lin, k int64) lin {
	z := s.r.each(rest, func(c int64) int64 {
		if c%k == 0 {
			return c / k
		}
		return 0
	})
	z.c = 0
	if rest.c%k == 0 {
		z.c = rest.c / k
	}
	return z
}

// factor writes Σ kᵢ·f·mᵢ + k·f as (Σ kᵢ·mᵢ + k)·f for an atom f.
func (s *selector) factor() {
	r := s.r
	for _, t := range s.x.t {
		if r.atoms[t.a].kind != atomProduct {
			continue
		}
		var buf [2 * maxDegree]int32
		for _, f := range r.factorsOf(t.a, buf[:0]) {
			s.factorOut(f)
		}
	}
}

// factorOut offers x with the factor f, an atom, taken out of the terms that have
// it, when there are several.
func (s *selector) factorOut(f int32) {
	r := s.r
	with := lin{}
	without := constForm(s.x.c)
	n := 0
	for _, t := range s.x.t {
		rest, ok := r.divideFactors(t.a, f)
		switch {
		case !ok:
			without = r.addAtom(without, t.k, t.a)
			continue
		case len(rest) == 0:
			with = r.shift(with, t.k)
		default:
			with = r.addAtom(with, t.k, r.productOf(rest))
		}
		n++
	}
	if n > 1 {
		factor := r.form(r.atomForm(f))
		id, _ := r.atom(
			atomFormProduct, r.form(with), factor, 0,
		)
		s.offer(r.addAtom(without, 1, id))
	}
}

// readsBack reports whether the chosen way to write form y, built again, is y. A
// text must mean the expression it was made from, in the same normal form; where
// the chosen form reads as another one, which the normal form being incomplete
// allows, the normal form itself is written.
func (r *Ring) readsBack(y int32) bool {
	v := rebuilder{r: r, done: map[int32]lin{}}
	x, ok := v.form(y)
	return ok && x.equal(r.lin(y))
}

// maxRebuiltForms bounds the forms built again for one text.
const maxRebuiltForms = 500

// A rebuilder builds chosen forms with the constructors of the ring, as parsing
// their text would.
type rebuilder struct {
	r    *Ring
	done map[int32]lin // by form
}

// form builds the chosen form of y again.
func (v *rebuilder) form(y int32) (lin, bool) {
	if x, had := v.done[y]; had {
		return x, true
	}
	if len(v.done) > maxRebuiltForms {
		return lin{}, false
	}
	chosen, _ := v.r.cheapest(y)
	out, ok := constForm(chosen.c), true
	for _, t := range chosen.t {
		x, built := v.atom(t.a)
		out = v.r.addmul(out, t.k, x)
		ok = ok && built
	}
	v.done[y] = out
	return out, ok
}

// atom builds one atom of a chosen form again; ok is false past the limit.
func (v *rebuilder) atom(id int32) (lin, bool) {
	r := v.r
	a := v.r.atoms[id]
	switch a.kind {
	case atomVar:
		return r.atomForm(id), true
	case atomProduct:
		return v.product(a)
	}
	x, ok := v.form(a.y)
	z, built := lin{}, true
	switch a.kind {
	case atomQuot, atomModForm, atomMin, atomMax, atomFormProduct, atomCeilDiv:
		z, built = v.form(a.z)
	}
	return v.build(a, x, z), ok && built
}

// build applies what atom a computes to its operands.
func (v *rebuilder) build(a atom, x, z lin) lin {
	r := v.r
	switch a.kind {
	case atomDiv, atomFloorDiv:
		return r.div(x, a.d)
	case atomMod:
		return r.mod(x, a.d)
	case atomQuot:
		return r.anyDiv(x, z)
	case atomCeilDiv:
		return r.scale(r.anyDiv(r.scale(x, -1), z), -1)
	case atomModForm:
		return r.anyMod(x, z)
	case atomMinZero:
		return r.min0(x)
	case atomMin:
		return r.min(x, z)
	case atomMax:
		return r.max(x, z)
	}
	return r.mul(x, z)
}

// product builds a product of atoms again.
func (v *rebuilder) product(a atom) (lin, bool) {
	out, ok := constForm(1), true
	for i := range a.z {
		x, built := v.atom(v.r.factorPool[a.y+i])
		out = v.r.mul(out, x)
		ok = ok && built
	}
	return out, ok
}
