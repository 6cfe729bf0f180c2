package index

import (
	"slices"
	"strings"
)

// A Constraint is a conjunction of clauses, that is, in conjunctive normal form;
// nil is true. "m divides x" is x mod m in [0, 0]. A Constraint is a plain slice:
// operations return new ones, and none of them simplifies but Simplify.
type Constraint []Clause

// A Clause is a disjunction of bounds. An empty clause is false.
type Clause []Bound

// A Bound says that Expr lies in In.
type Bound struct {
	Expr Expr
	In   Interval
}

// Never is the constraint that nothing satisfies.
func Never() Constraint { return Constraint{Clause{}} }

// Require is the constraint e in [lo, hi].
func Require(e Expr, lo, hi int64) Constraint {
	return Constraint{Clause{{e, Interval{lo, hi}}}}
}

// Below is the constraint 0 ≤ e < n; it is the true constraint, nil, where e's
// range shows it.
func Below(e Expr, n int64) Constraint {
	in := Interval{Lo: 0, Hi: n - 1}
	if in.Covers(e.Range()) {
		return nil
	}
	return Require(e, in.Lo, in.Hi)
}

// Divides is the constraint that m divides e: e mod m in [0, 0]. m's range must
// be positive.
func Divides(m, e Expr) Constraint {
	return Require(e.ModExpr(m), 0, 0)
}

// And is the constraint that all of cs hold.
func And(cs ...Constraint) Constraint {
	var out Constraint
	for _, c := range cs {
		out = append(out, c...)
	}
	return out
}

// Or is the constraint that c or d holds: (∧Cᵢ) ∨ (∧Dⱼ) = ∧ᵢⱼ(Cᵢ ∨ Dⱼ). It has as
// many clauses as the product of theirs.
func (c Constraint) Or(d Constraint) Constraint {
	if len(c) == 0 || len(d) == 0 {
		return nil
	}
	out := make(Constraint, 0, len(c)*len(d))
	for _, x := range c {
		for _, y := range d {
			out = append(out, slices.Concat(x, y))
		}
	}
	return out
}

// True reports whether c holds whatever its variables are, as it is written.
func (c Constraint) True() bool { return len(c) == 0 }

// False reports whether c is, as it is written, never satisfied: it has an
// empty clause. Simplify leaves nothing else of what ranges refute.
func (c Constraint) False() bool {
	return slices.ContainsFunc(c, func(x Clause) bool {
		return len(x) == 0
	})
}

// Holds evaluates c; env must hold every variable of c. For many points there is
// CompileConstraint.
func (c Constraint) Holds(env map[Expr]int64) bool {
	for _, x := range c {
		holds := func(b Bound) bool {
			return b.In.Contains(b.Expr.Eval(env))
		}
		if !slices.ContainsFunc(x, holds) {
			return false
		}
	}
	return true
}

// Vars lists the variables of c, each once, in the order they are met.
func (c Constraint) Vars() []Expr {
	var out []Expr
	c.each(func(b Bound) {
		for _, v := range b.Expr.Vars() {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	})
	return out
}

// each calls f for every bound of c.
func (c Constraint) each(f func(Bound)) {
	for _, x := range c {
		for _, b := range x {
			f(b)
		}
	}
}

// Subst replaces variables simultaneously.
func (c Constraint) Subst(with map[Expr]Expr) Constraint {
	s := Substitution{With: with}
	return s.ApplyTo(c)
}

// ApplyTo returns c with the variables in With replaced.
func (s *Substitution) ApplyTo(c Constraint) Constraint {
	if c == nil {
		return nil
	}
	out := make(Constraint, len(c))
	for i, x := range c {
		out[i] = make(Clause, len(x))
		for j, b := range x {
			out[i][j] = Bound{s.Apply(b.Expr), b.In}
		}
	}
	return out
}

// text prints c as "6 mod s0 in [0, 0] && (s1 in [1, 1] || s1 mod 8 in
// [0, 0])"; "always satisfied" and "unsatisfiable" for nil and false.
func (c Constraint) text(name func(Expr) string) string {
	if c.True() {
		return "always satisfied"
	}
	if c.False() {
		return "unsatisfiable"
	}
	parts := make([]string, len(c))
	for i, x := range c {
		parts[i] = x.text(name)
		if len(x) > 1 && len(c) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	return strings.Join(parts, " && ")
}

// text prints x as "s1 in [1, 1] || s1 mod 8 in [0, 0]".
func (x Clause) text(name func(Expr) string) string {
	parts := make([]string, len(x))
	for i, b := range x {
		parts[i] = name(b.Expr) + " in " + b.In.String()
	}
	return strings.Join(parts, " || ")
}

// decide says by the range of Expr whether b always holds, never holds, or, with
// known false, that it depends on the point.
func (b Bound) decide() (holds, known bool) {
	switch r := b.Expr.Range(); {
	case b.In.Lo <= r.Lo && r.Hi <= b.In.Hi:
		return true, true
	case r.Hi < b.In.Lo || b.In.Hi < r.Lo:
		return false, true
	}
	return false, false
}

// Reduce drops bounds that never hold and repeated ones. sure means that a bound
// always holds, and so does c.
func (c Clause) Reduce() (out Clause, sure bool) {
	for _, b := range c {
		holds, known := b.decide()
		if known && holds {
			return nil, true
		}
		if !known && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out, false
}

// With appends a clause unless it is there already.
func (c Constraint) With(clause Clause) Constraint {
	for _, have := range c {
		if slices.Equal(have, clause) {
			return c
		}
	}
	return append(c, clause)
}

// String prints "6 mod s0 in [0, 0] && (s1 in [1, 1] || s1 mod 8 in [0, 0])".
func (c Constraint) String() string { return c.text(Expr.String) }

// String prints the bounds with || between.
func (c Clause) String() string { return c.text(Expr.String) }

// String prints "s0 in [1, 1]".
func (b Bound) String() string { return Clause{b}.String() }

// A Predicate is a constraint compiled to flat code, for deciding many points. It
// holds no reference to the ring and is safe for concurrent use. All expressions
// are evaluated at once, each only once, then the clauses are decided in order.
type Predicate struct {
	code    *Evaluator // one result for each distinct expression
	clauses [][]checkBound
}

// A checkBound says that a result of the code lies in in.
type checkBound struct {
	out int // index of the result
	in  Interval
}

// CompileConstraint compiles c as a predicate of vars, each a variable or, for a
// variable of one value, a constant. A variable of c that is not in vars is an
// error.
func CompileConstraint(vars []Expr, c Constraint) (*Predicate, error) {
	k := &Predicate{}
	var results []Expr
	at := map[Expr]int{}
	for _, x := range c {
		clause := []checkBound{}
		for _, b := range x {
			i, had := at[b.Expr]
			if !had {
				i = len(results)
				at[b.Expr] = i
				results = append(results, b.Expr)
			}
			clause = append(clause, checkBound{i, b.In})
		}
		k.clauses = append(k.clauses, clause)
	}
	code, err := Compile(vars, results)
	k.code = code
	return k, err
}

// ScratchLen is the least length of Holds' scratch.
func (k *Predicate) ScratchLen() int {
	return k.code.ScratchLen() + len(k.code.outs)
}

// Holds decides the point vals. It does not allocate. scratch must have at
// least ScratchLen elements and may be reused.
func (k *Predicate) Holds(vals, scratch []int64) bool {
	return k.FirstViolated(vals, scratch) < 0
}

// FirstViolated is the index of the first clause that the point vals violates,
// -1 for none. scratch is as for Holds.
func (k *Predicate) FirstViolated(vals, scratch []int64) int {
	n := len(k.code.outs)
	out := scratch[:n]
	k.code.Eval(vals, out, scratch[n:])
next:
	for at, x := range k.clauses {
		for _, b := range x {
			if b.in.Contains(out[b.out]) {
				continue next
			}
		}
		return at
	}
	return -1
}
