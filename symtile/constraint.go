package symtile

// A Constraint is an and of ors; nil is true. "m divides x" is x mod m in [0, 0].
type Constraint []Clause

// A Clause is an or of bounds. An empty clause is false.
type Clause []Bound

// A Bound says Expr lies in In.
type Bound struct {
	Expr Expr
	In   Interval
}
