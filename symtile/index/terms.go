package index

// A Term is one summand of an expression: Factor times Of, which is an atom.
type Term struct {
	Factor int64
	Of     Expr
}

// Terms takes an expression apart: it is c plus the terms, in the order of the
// normal form. For backends that emit code; printing is String's.
func (e Expr) Terms() (terms []Term, c int64) {
	x := e.lin()
	for _, t := range x.t {
		terms = append(terms, Term{
			t.k,
			e.r.wrap(e.r.one(t.a)),
		})
	}
	return terms, x.c
}

// AtomKind is what an atom computes from its arguments.
type AtomKind uint8

const (
	VariableAtom AtomKind = iota // no arguments: Variable says which
	QuotientAtom                 // ⌊x/y⌋, y > 0
	MinAtom                      // min(x, 0)
	ProductAtom                  // of all arguments
)

// Atom says how the atom of a Term is computed. It panics on an expression
// that is no atom.
func (e Expr) Atom() (kind AtomKind, args []Expr) {
	x := e.lin()
	if len(x.t) != 1 || x.c != 0 ||
		x.t[0].k != 1 {
		panic("symtile: " + e.String() + " is no atom")
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
	case atomMin:
		return MinAtom, []Expr{{r, a.y}}
	}
	for _, f := range r.factors(&a) {
		args = append(args, r.wrap(r.one(f)))
	}
	return ProductAtom, args
}
