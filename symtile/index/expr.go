package index

import "fmt"

// An Expr is an integer expression in normal form. Two expressions of one ring
// with the same normal form are ==. The zero Expr is no expression.
type Expr struct {
	r  *Ring
	id int32
}

// Role says what a variable stands for; printing and backends use it.
type Role uint8

const (
	RoleDim      Role = iota // d0
	RoleRange                // s0 of an indexing map
	RoleRuntime              // rt0
	RoleTileID               // t0
	RoleTileSize             // s0 of a tile space
	RoleThread
	RoleBlock
	RoleElement
	RoleLoop
)

// A Variable is an integer in [Lo, Hi]. Variables with equal fields are the
// same variable.
type Variable struct {
	Name   string
	Lo, Hi int64
	Role   Role
	Origin *Origin // where a run-time variable is read; nil for others
}

// Const returns the expression c.
func (r *Ring) Const(c int64) Expr {
	return r.wrap(konst(c))
}

// Var returns the expression that is v; a constant when Lo == Hi. A variable
// without values (Lo > Hi) is an error of the ring.
func (r *Ring) Var(v Variable) Expr {
	return r.wrap(r.variable(v))
}

func (r *Ring) variable(v Variable) lin {
	if v.Lo == v.Hi {
		return konst(v.Lo)
	}
	if v.Lo > v.Hi {
		return r.fail(
			"variable %s has no values: [%d, %d]", v.Name, v.Lo, v.Hi,
		)
	}
	id, had := r.atom(atomVar, r.varID(v), -1, 0)
	if a := &r.atoms[id]; !had {
		a.rises = true
		a.in = Interval{v.Lo, v.Hi}
	}
	return r.one(id)
}

func (r *Ring) wrap(x lin) Expr {
	return Expr{r, r.form(x)}
}

// of is the form of e. An expression of another ring is a bug of the caller.
func (r *Ring) of(e Expr) lin {
	if e.r != r {
		panic(fmt.Sprintf("symtile: expression of another ring (%p, want %p)", e.r, r))
	}
	return r.forms[e.id].lin
}

// ID is a number that no other expression of e's ring has.
func (e Expr) ID() int32 { return e.id }

func (e Expr) lin() lin {
	return e.r.forms[e.id].lin
}

// Ring returns the ring e was built in.
func (e Expr) Ring() *Ring { return e.r }

// Add is e + f.
func (e Expr) Add(f Expr) Expr {
	return e.r.wrap(e.r.addmul(
		e.lin(), 1, e.r.of(f),
	))
}

// AddConst is e + c.
func (e Expr) AddConst(c int64) Expr {
	return e.r.wrap(e.r.shift(e.lin(), c))
}

// Sub is e − f.
func (e Expr) Sub(f Expr) Expr {
	return e.r.wrap(e.r.addmul(
		e.lin(), -1, e.r.of(f),
	))
}

// Neg is −e.
func (e Expr) Neg() Expr { return e.Scale(-1) }

// Mul is e·f.
func (e Expr) Mul(f Expr) Expr {
	return e.r.wrap(e.r.mul(
		e.lin(), e.r.of(f),
	))
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

func (r *Ring) mod(x lin, m int64) lin {
	if m <= 0 {
		return r.fail("modulus %d is not positive", m)
	}
	if len(x.t) == 0 {
		return konst(floorMod(x.c, m))
	}
	if q, ok := single(r.naive(x), m); ok {
		r.fired[ruleDivRange]++
		return r.shift(x, r.mulAdd(0, -m, q))
	}
	whole, rest := r.divide(x, m)
	if whole.size() == 0 || len(r.facts.sums) > 0 {
		return r.addmul(x, -m, r.div(x, m))
	}
	r.fired[ruleDivWhole]++
	if q, ok := single(r.naive(rest), m); ok {
		return r.shift(rest, r.mulAdd(0, -m, q))
	}
	return r.addmul(rest, -m, r.divRest(rest, m))
}

// CeilDiv is ⌈e/m⌉ = −⌊−e/m⌋, m ≠ 0.
func (e Expr) CeilDiv(m int64) Expr {
	r := e.r
	return r.wrap(r.scale(r.div(
		r.scale(e.lin(), -1), m,
	), -1))
}

// DivExpr is ⌊e/f⌋. That f may not be positive is an error of the ring.
func (e Expr) DivExpr(f Expr) Expr {
	return e.r.wrap(e.r.quot(
		e.lin(), e.r.of(f),
	))
}

// ModExpr is e − f·⌊e/f⌋, f's range > 0.
func (e Expr) ModExpr(f Expr) Expr {
	r, y := e.r, e.r.of(f)
	return r.wrap(r.addmul(
		e.lin(),
		-1,
		r.mul(y, r.quot(e.lin(), y)),
	))
}

// CeilDivExpr is ⌈e/f⌉ = −⌊−e/f⌋, f's range > 0.
func (e Expr) CeilDivExpr(f Expr) Expr {
	return e.Neg().DivExpr(f).Neg()
}

// Min is the lesser of e and f.
func (e Expr) Min(f Expr) Expr {
	return e.r.wrap(e.r.min(
		e.lin(), e.r.of(f),
	))
}

// Max is the greater of e and f.
func (e Expr) Max(f Expr) Expr {
	return e.r.wrap(e.r.max(
		e.lin(), e.r.of(f),
	))
}

// Value returns the value of a constant.
func (e Expr) Value() (c int64, ok bool) {
	defer e.lock().Unlock()
	x := e.lin()
	return x.c, len(x.t) == 0
}

// Variable returns the variable e is, when it is just one.
func (e Expr) Variable() (Variable, bool) {
	defer e.lock().Unlock()
	return e.r.isVariable(e.lin())
}

func (r *Ring) isVariable(x lin) (Variable, bool) {
	if len(x.t) != 1 || x.c != 0 ||
		x.t[0].k != 1 ||
		r.atoms[x.t[0].a].kind != atomVar {
		return Variable{}, false
	}
	return r.vars[r.atoms[x.t[0].a].y], true
}

// Range bounds e over the ranges of its variables; it may be wider than the
// truth. Ends that int64 cannot hold are its least and greatest value.
func (e Expr) Range() Interval {
	defer e.lock().Unlock()
	if f := &e.r.forms[e.id]; f.ranged {
		return f.in
	}
	return e.r.viewRange(e.id)
}

// Congruence returns m ≥ 0 and r with e ≡ r (mod m) always; m 0 means e is r.
func (e Expr) Congruence() (m, r int64) {
	defer e.lock().Unlock()
	return e.r.congruence(e.lin())
}

// lock takes the readers' lock of e's ring.
func (e Expr) lock() interface{ Unlock() } {
	e.r.mu.Lock()
	return &e.r.mu
}
