package index

import "fmt"

// An Expr is an integer expression in normal form: a form of its ring, by
// number. Two expressions of one ring with the same normal form are ==, so an
// Expr is a key of a map. The zero Expr is no expression.
//
// Operands of a method belong to the same ring; Ring.Import carries an
// expression over. An operation that int64 cannot hold, or that is not defined,
// sets Ring.Err and returns an expression of no meaning.
type Expr struct {
	r  *Ring
	id int32
}

// Const returns the expression c.
func (r *Ring) Const(c int64) Expr {
	return r.wrap(constForm(c))
}

// wrap interns x and returns it as an expression.
func (r *Ring) wrap(x lin) Expr {
	return Expr{r, r.form(x)}
}

// of is the form of e. An expression of another ring is a bug of the caller.
func (r *Ring) of(e Expr) lin {
	if e.r != r {
		panic(fmt.Sprintf("index: expression of another ring (%p, want %p)", e.r, r))
	}
	return r.lin(e.id)
}

// operands are the ring and the forms of two expressions of it.
func (e Expr) operands(f Expr) (r *Ring, x, y lin) {
	return e.r, e.lin(), e.r.of(f)
}

// ID is a number that no other expression of e's ring has.
func (e Expr) ID() int32 { return e.id }

// lin is the form of e.
func (e Expr) lin() lin {
	return e.r.lin(e.id)
}

// Ring returns the ring e was built in.
func (e Expr) Ring() *Ring { return e.r }

// Add is e + f.
func (e Expr) Add(f Expr) Expr {
	r, x, y := e.operands(f)
	return r.wrap(r.addmul(x, 1, y))
}

// AddConst is e + c.
func (e Expr) AddConst(c int64) Expr {
	return e.r.wrap(e.r.shift(e.lin(), c))
}

// Sub is e − f.
func (e Expr) Sub(f Expr) Expr {
	r, x, y := e.operands(f)
	return r.wrap(r.addmul(x, -1, y))
}

// Neg is −e.
func (e Expr) Neg() Expr { return e.Scale(-1) }

// Mul is e·f, distributed over the terms of both.
func (e Expr) Mul(f Expr) Expr {
	r, x, y := e.operands(f)
	return r.wrap(r.mul(x, y))
}

// Scale is k·e.
func (e Expr) Scale(k int64) Expr {
	return e.r.wrap(e.r.scale(e.lin(), k))
}

// Div is ⌊e/m⌋, m ≠ 0.
func (e Expr) Div(m int64) Expr {
	return e.r.wrap(e.r.div(e.lin(), m))
}

// Mod is e − m·⌊e/m⌋, m > 0: in [0, m).
func (e Expr) Mod(m int64) Expr {
	return e.r.wrap(e.r.mod(e.lin(), m))
}

// CeilDiv is ⌈e/m⌉ = −⌊−e/m⌋, m ≠ 0.
func (e Expr) CeilDiv(m int64) Expr {
	r := e.r
	q := r.div(r.scale(e.lin(), -1), m)
	return r.wrap(r.scale(q, -1))
}

// DivExpr is ⌊e/f⌋. That f may not be positive is an error of the ring.
func (e Expr) DivExpr(f Expr) Expr {
	r, x, y := e.operands(f)
	return r.wrap(r.quot(x, y))
}

// ModExpr is e − f·⌊e/f⌋, f's range > 0.
func (e Expr) ModExpr(f Expr) Expr {
	r, x, y := e.operands(f)
	return r.wrap(r.addmul(
		x, -1, r.mul(y, r.quot(x, y)),
	))
}

// CeilDivExpr is ⌈e/f⌉ = −⌊−e/f⌋, f's range > 0.
func (e Expr) CeilDivExpr(f Expr) Expr {
	return e.Neg().DivExpr(f).Neg()
}

// Min is the lesser of e and f.
func (e Expr) Min(f Expr) Expr {
	r, x, y := e.operands(f)
	return r.wrap(r.min(x, y))
}

// Max is the greater of e and f.
func (e Expr) Max(f Expr) Expr {
	r, x, y := e.operands(f)
	return r.wrap(r.max(x, y))
}

// Value returns the value of a constant; ok is false for other expressions.
func (e Expr) Value() (c int64, ok bool) {
	defer e.lock().Unlock()
	x := e.lin()
	return x.c, len(x.t) == 0
}

// lock takes the readers' lock of e's ring. Builders do not take it, because a
// ring has one builder by contract and no reader while it builds.
func (e Expr) lock() interface{ Unlock() } {
	e.r.mu.Lock()
	return &e.r.mu
}

// A Term is one summand of an expression: Factor times Of, which is an atom
// (see Expr.Atom).
type Term struct {
	Factor int64
	Of     Expr
}

// Terms takes an expression apart: it is c plus the terms, in the order of the
// normal form. Backends that emit code walk an expression by Terms and Atom;
// for text there is String.
func (e Expr) Terms() (terms []Term, c int64) {
	x := e.lin()
	for _, t := range x.t {
		atom := e.r.wrap(e.r.atomForm(t.a))
		terms = append(terms, Term{t.k, atom})
	}
	return terms, x.c
}

// AtomKind is what an atom computes from its arguments.
type AtomKind uint8

// The kinds of atoms.
const (
	VariableAtom AtomKind = iota // no arguments: Variable says which
	QuotientAtom                 // ⌊x/y⌋, y > 0
	MinAtom                      // min(x, 0)
	ProductAtom                  // of all arguments
)

// Atom says how the atom of a Term is computed and from what. It panics on an
// expression that is no atom, that is, of another form than 1·atom.
func (e Expr) Atom() (kind AtomKind, args []Expr) {
	x := e.lin()
	if len(x.t) != 1 || x.c != 0 ||
		x.t[0].k != 1 {
		const format = "index: an expression of %d terms and constant %d is no atom"
		panic(fmt.Sprintf(format, len(x.t), x.c))
	}
	r := e.r
	a := e.r.atoms[x.t[0].a]
	switch a.kind {
	case atomVar:
		return VariableAtom, nil
	case atomDiv:
		return QuotientAtom, []Expr{{r, a.y}, r.Const(a.d)}
	case atomQuot:
		return QuotientAtom, []Expr{{r, a.y}, {r, a.z}}
	case atomMinZero:
		return MinAtom, []Expr{{r, a.y}}
	}
	for _, f := range r.factors(&a) {
		args = append(args, r.wrap(r.atomForm(f)))
	}
	return ProductAtom, args
}
