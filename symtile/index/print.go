package index

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Text of expressions. An expression is copied to a reader, extraction chooses how
// to write it there, and a writer writes what was chosen, in an order that does
// not depend on the order in which the ring came to know its atoms.

// maxText bounds the length of one printed expression: a shared subexpression
// is written out wherever it occurs, which can be exponential. What is longer
// ends in "…" and does not parse.
const maxText = 1 << 16

// String prints e in XLA's spelling: "d0 * 8 + d1 floordiv 2", "(d0 mod 4) * 2",
// "-d0 + 9", "t0 * s0", "s0 ceildiv 4", "min(s0, d0 * -32 + 100)". It is the
// cheapest way found to write e; Parse reads it back to the same expression.
//
// Terms are written by falling coefficient, positive ones first, the constant
// last; of equal ones remainders first, then variables by role and number, then
// quotients. A lone dimension with offsets inside it is written first.
func (e Expr) String() string {
	if e.r == nil {
		return "<no expression>"
	}
	defer e.lock().Unlock()
	if kept, had := e.r.texts[e.id]; had {
		return kept
	}
	text := e.r.text(e.lin(), nil)
	if len(text) >= minKeptText {
		if e.r.texts == nil {
			e.r.texts = map[int32]string{}
		}
		e.r.texts[e.id] = text
	}
	return text
}

// minKeptText is the length from which on a text is kept: what is shorter is written
// again in microseconds.
const minKeptText = 256

// text prints x, with names for variables that do not go by their own.
func (r *Ring) text(x lin, names map[Variable]string) string {
	if v, ok := r.isVariable(x); ok {
		return nameOf(v, names)
	}
	if len(x.t) == 0 {
		return strconv.FormatInt(x.c, 10)
	}
	to := r.reader()
	y := to.form(r.copyInto(to, x))
	if !to.readsBack(y) {
		to.writeAsIs()
	}
	w := writer{r: to, names: names}
	w.form(y, precSum)
	if w.Len() > maxText {
		return w.String()[:maxText] + "…"
	}
	return w.String()
}

// nameOf is the name of v in names, or else its own.
func nameOf(v Variable, names map[Variable]string) string {
	if name, ok := names[v]; ok {
		return name
	}
	return v.Name
}

// Precedences: what needs no parentheses where.
const (
	precSum     = iota // anything
	precProduct        // a product or less: operands of a sum
	precAtom           // a name, a call, a number: operands of a product
)

// A writer writes chosen forms as text. It works in a ring that nobody builds in,
// because forms of operands are made on the way.
type writer struct {
	strings.Builder
	r                  *Ring
	names              map[Variable]string     // names other than the variables' own
	quotientsAsWritten bool                    // without ceildiv put back
	first              map[int32]firstVariable // by atom, once known
}

// A firstVariable is the first variable of an atom, if it has one.
type firstVariable struct {
	v  Variable
	ok bool
}

// form writes form y where prec is needed.
func (w *writer) form(y int32, prec int) {
	if w.Len() > maxText {
		return
	}
	x, _ := w.r.cheapest(y)
	if len(x.t) == 0 {
		w.number(x.c, prec)
		return
	}
	parens := w.isSum(x) && prec > precSum ||
		!w.isPlain(x) && prec > precProduct
	w.bracket(parens, func() { w.sum(x) })
}

// bracket writes what f writes, in parentheses if need be.
func (w *writer) bracket(yes bool, f func()) {
	if yes {
		w.WriteByte('(')
	}
	f()
	if yes {
		w.WriteByte(')')
	}
}

// isSum reports whether x is written with + or −.
func (w *writer) isSum(x lin) bool {
	return len(x.t) > 1 || x.c != 0 ||
		x.t[0].k == -1
}

// isPlain reports whether x is written as a name or a call.
func (w *writer) isPlain(x lin) bool {
	if len(x.t) != 1 || x.c != 0 ||
		x.t[0].k != 1 {
		return false
	}
	return w.isName(x.t[0].a)
}

// isName reports whether an atom is written without an operator.
func (w *writer) isName(id int32) bool {
	switch w.r.atoms[id].kind {
	case atomVar, atomMinZero, atomMin, atomMax:
		return true
	}
	return false
}

// number writes the constant c.
func (w *writer) number(c int64, prec int) {
	w.bracket(c < 0 && prec > precSum, func() {
		w.WriteString(strconv.FormatInt(c, 10))
	})
}

// factored writes x as (x/g) * g where that is what its cost stands for.
func (w *writer) factored(x lin) bool {
	_, g := sumCost(x)
	if g == 1 {
		return false
	}
	if !slices.ContainsFunc(x.t, func(t term) bool { return t.k > 0 }) &&
		x.c <= 0 {
		g = -g
	}
	y := w.r.each(x, func(k int64) int64 { return k / g })
	y.c = x.c / g
	w.bracket(true, func() { w.sum(y) })
	w.WriteString(" * ")
	w.number(g, precProduct)
	return true
}

// sum writes x, positive terms first, so that a sum begins with a sign only when
// all of its terms are negative.
func (w *writer) sum(x lin) {
	if w.quotientsAsWritten && w.factored(x) {
		return
	}
	ts := slices.Clone(x.t)
	slices.SortStableFunc(ts, w.order(x))
	for i, t := range ts {
		k := t.k
		switch {
		case i == 0 && k == -1:
			w.WriteByte('-')
			w.atom(t.a, precAtom)
			continue
		case i > 0 && k < 0 && k != minusInf:
			w.WriteString(" - ")
			k = -k
		case i > 0:
			w.WriteString(" + ")
		}
		w.scaled(t.a, k)
	}
	switch {
	case x.c > 0:
		w.WriteString(" + " + strconv.FormatInt(x.c, 10))
	case x.c < 0:
		w.WriteString(" - " + strconv.FormatInt(x.c, 10)[1:])
	}
}

// scaled writes k·atom.
func (w *writer) scaled(a int32, k int64) {
	if k == 1 {
		w.atom(a, precProduct)
		return
	}
	switch w.r.atoms[a].kind {
	case atomProduct, atomFormProduct:
		w.atom(a, precProduct)
	default:
		w.atom(a, precAtom)
	}
	w.WriteString(" * " + strconv.FormatInt(k, 10))
}

// order compares terms of x as they are written: positive coefficients before
// negative ones, a lone dimension first, then by falling magnitude of the
// coefficient, by class, by variable and, at last, by number of the atom.
func (w *writer) order(x lin) func(s, t term) int {
	lone := w.loneDim(x)
	return func(s, t term) int {
		return cmp.Or(
			boolOrder(s.k < 0, t.k < 0),
			boolOrder(s.a != lone, t.a != lone),
			cmp.Compare(absInt(t.k), absInt(s.k)),
			cmp.Compare(w.class(s.a), w.class(t.a)),
			w.compareVars(s.a, t.a),
			cmp.Compare(s.a, t.a),
		)
	}
}

// boolOrder compares conditions, those that hold last.
func boolOrder(s, t bool) int {
	switch {
	case s == t:
		return 0
	case t:
		return -1
	}
	return 1
}

// class orders atoms of equal coefficient.
func (w *writer) class(id int32) int {
	switch w.r.atoms[id].kind {
	case atomMod, atomModForm:
		return 0
	case atomVar:
		return 1
	case atomProduct, atomFormProduct:
		return 2
	}
	return 3
}

// loneDim is the only dimension of a sum of it and offsets that are run-time
// variables or ranges; −1 for other sums.
func (w *writer) loneDim(x lin) int32 {
	lone := int32(-1)
	for _, t := range x.t {
		v, ok := w.variable(t.a)
		switch {
		case !ok || t.k < 0:
			return -1
		case v.Role != RoleDim:
		case lone >= 0 || t.k != 1:
			return -1
		default:
			lone = t.a
		}
	}
	return lone
}

// variable is the variable that an atom is.
func (w *writer) variable(id int32) (Variable, bool) {
	if a := w.r.atoms[id]; a.kind == atomVar {
		return w.r.vars[a.y], true
	}
	return Variable{}, false
}

// compareVars orders atoms by their first variable.
func (w *writer) compareVars(a, b int32) int {
	v, ok1 := w.firstVar(a)
	u, ok2 := w.firstVar(b)
	if !ok1 || !ok2 {
		return 0
	}
	return w.compareVariables(v, u)
}

// compareVariables orders variables by role, then by name.
func (w *writer) compareVariables(v, u Variable) int {
	n := nameOf(v, w.names)
	m := nameOf(u, w.names)
	return cmp.Or(
		cmp.Compare(v.Role, u.Role),
		compareNames(n, m),
	)
}

// compareNames orders names by letters, then by number: d2 before d10.
func compareNames(n, m string) int {
	a := trimDigits(n)
	b := trimDigits(m)
	return cmp.Or(
		cmp.Compare(a, b),
		cmp.Compare(len(n), len(m)),
		cmp.Compare(n, m),
	)
}

// trimDigits is name without the digits at its end.
func trimDigits(name string) string {
	return strings.TrimRight(name, "0123456789")
}

// firstVar is the first variable, by compareVariables, of those that an atom is
// made of.
func (w *writer) firstVar(id int32) (Variable, bool) {
	if f, had := w.first[id]; had {
		return f.v, f.ok
	}
	var first firstVariable
	for _, a := range w.r.atomsOf(id, nil) {
		v, is := w.variable(a)
		if !is ||
			first.ok && w.compareVariables(v, first.v) >= 0 {
			continue
		}
		first = firstVariable{v, true}
	}
	if w.first == nil {
		w.first = map[int32]firstVariable{}
	}
	w.first[id] = first
	return first.v, first.ok
}

// atom writes an atom where prec is needed.
func (w *writer) atom(id int32, prec int) {
	a := w.r.atoms[id]
	switch a.kind {
	case atomVar:
		w.WriteString(nameOf(w.r.vars[a.y], w.names))
	case atomMinZero:
		w.call("min", a.y, w.r.form(lin{}))
	case atomMin:
		w.call("min", a.y, a.z)
	case atomMax:
		w.call("max", a.y, a.z)
	default:
		w.bracket(prec > precProduct, func() {
			w.operation(a)
		})
	}
}

// call writes min or max, the simpler argument first, a constant last.
func (w *writer) call(name string, y, z int32) {
	if w.formLess(z, y) {
		y, z = z, y
	}
	w.WriteString(name + "(")
	w.form(y, precSum)
	w.WriteString(", ")
	w.form(z, precSum)
	w.WriteByte(')')
}

// formLess compares forms by what they cost, then by their first variable;
// constants come last.
func (w *writer) formLess(y, z int32) bool {
	v, ok := w.firstOf(y)
	u, is := w.firstOf(z)
	if !ok || !is {
		return ok
	}
	c := w.r.costOf(y)
	d := w.r.costOf(z)
	if c != d {
		return c < d
	}
	return w.compareVariables(v, u) < 0
}

// firstOf is the first variable of form y.
func (w *writer) firstOf(y int32) (first Variable, ok bool) {
	for _, t := range w.r.forms[y].t {
		v, is := w.firstVar(t.a)
		if is &&
			(!ok || w.compareVariables(v, first) < 0) {
			first, ok = v, true
		}
	}
	return first, ok
}

// operation writes an atom that is an operator between operands.
func (w *writer) operation(a atom) {
	switch a.kind {
	case atomDiv, atomFloorDiv:
		w.quotient(a.y, w.r.form(constForm(a.d)))
	case atomQuot:
		w.quotient(a.y, a.z)
	case atomMod:
		w.binary(
			a.y, " mod ", w.r.form(constForm(a.d)),
		)
	case atomModForm:
		w.binary(a.y, " mod ", a.z)
	case atomCeilDiv:
		w.binary(a.y, " ceildiv ", a.z)
	case atomFormProduct:
		w.binary(a.y, " * ", a.z)
	case atomProduct:
		w.product(a)
	}
}

// binary writes an operator between forms.
func (w *writer) binary(y int32, op string, z int32) {
	w.form(y, precAtom)
	w.WriteString(op)
	w.form(z, precAtom)
}

// quotient writes ⌊y/z⌋; (y + z − 1) floordiv z is written y ceildiv z where that
// is shorter.
func (w *writer) quotient(y, z int32) {
	if w.quotientsAsWritten {
		w.binary(y, " floordiv ", z)
		return
	}
	up := w.r.addmul(
		w.r.lin(y),
		-1,
		w.r.lin(z),
	)
	up.c++
	id := w.r.form(up)
	if up.size() > 0 &&
		w.r.costOf(id) < w.r.costOf(y) {
		w.binary(id, " ceildiv ", z)
		return
	}
	w.binary(y, " floordiv ", z)
}

// product writes factors by role and number.
func (w *writer) product(a atom) {
	fs := slices.Clone(w.r.factors(&a))
	slices.SortStableFunc(fs, func(s, t int32) int {
		return cmp.Or(
			cmp.Compare(w.class(s), w.class(t)),
			w.compareVars(s, t),
		)
	})
	for i, f := range fs {
		if i > 0 {
			w.WriteString(" * ")
		}
		w.atom(f, precAtom)
	}
}
