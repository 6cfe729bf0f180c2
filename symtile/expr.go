package symtile

// A Ring owns interned expressions. It is not safe for concurrent use while
// expressions are being built; reading (String, Range, Eval, Code) is.
type Ring struct{}

// NewRing returns an empty ring.
func NewRing() *Ring { panic("expr room") }

// Err reports the first int64 overflow met while building expressions in r.
func (r *Ring) Err() error { panic("expr room") }

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
}

// Interval is the closed range [Lo, Hi]; empty when Lo > Hi.
type Interval struct{ Lo, Hi int64 }

func (r *Ring) Const(c int64) Expr  { panic("expr room") }
func (r *Ring) Var(v Variable) Expr { panic("expr room") } // a constant when Lo == Hi

func (e Expr) Ring() *Ring             { return e.r }
func (e Expr) Add(f Expr) Expr         { panic("expr room") }
func (e Expr) AddConst(c int64) Expr   { panic("expr room") }
func (e Expr) Sub(f Expr) Expr         { panic("expr room") }
func (e Expr) Neg() Expr               { panic("expr room") }
func (e Expr) Mul(f Expr) Expr         { panic("expr room") }
func (e Expr) Scale(k int64) Expr      { panic("expr room") }
func (e Expr) Div(m int64) Expr        { panic("expr room") } // ⌊e/m⌋, m ≠ 0
func (e Expr) Mod(m int64) Expr        { panic("expr room") } // e − m·⌊e/m⌋, m > 0
func (e Expr) CeilDiv(m int64) Expr    { panic("expr room") } // ⌈e/m⌉
func (e Expr) DivExpr(f Expr) Expr     { panic("expr room") } // ⌊e/f⌋, f's range > 0
func (e Expr) ModExpr(f Expr) Expr     { panic("expr room") }
func (e Expr) CeilDivExpr(f Expr) Expr { panic("expr room") }
func (e Expr) Min(f Expr) Expr         { panic("expr room") }
func (e Expr) Max(f Expr) Expr         { panic("expr room") }

// Value returns the value of a constant.
func (e Expr) Value() (c int64, ok bool) { panic("expr room") }

// Variable returns the variable e is, when it is just one.
func (e Expr) Variable() (Variable, bool) { panic("expr room") }

// Range bounds e over the ranges of its variables; it may be wider than the truth.
func (e Expr) Range() Interval { panic("expr room") }

// Congruence returns m ≥ 0 and r with e ≡ r (mod m) always; m 0 means e is r.
func (e Expr) Congruence() (m, r int64) { panic("expr room") }

// Vars lists the variables of e in a fixed order, each as an Expr.
func (e Expr) Vars() []Expr { panic("expr room") }

// Subst replaces variables simultaneously. Keys are variables of e's ring.
func (e Expr) Subst(with map[Expr]Expr) Expr { panic("expr room") }

// Eval evaluates e; env must hold every variable of e.
func (e Expr) Eval(env map[Expr]int64) int64 { panic("expr room") }

// String prints e in XLA's spelling: "d0 * 8 + d1 floordiv 2", "(d0 mod 4) * 2".
func (e Expr) String() string { panic("expr room") }

// A Code is a list of expressions compiled to flat code, for evaluation many
// times. It holds no reference to the ring and is safe for concurrent use.
type Code struct{}

// Compile compiles results as functions of vars (each a variable).
func Compile(vars, results []Expr) (*Code, error) { panic("expr room") }

// Eval writes the results for vals to out. It does not allocate. scratch must
// have at least ScratchLen elements and may be reused.
func (c *Code) Eval(vals, out, scratch []int64) { panic("expr room") }

func (c *Code) ScratchLen() int { panic("expr room") }
