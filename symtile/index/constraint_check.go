package index

// A Predicate is a constraint compiled to flat code, for deciding many points. It
// holds no reference to the ring and is safe for concurrent use.
type Predicate struct {
	code    *Evaluator
	clauses [][]checkBound
}

type checkBound struct {
	out int // index of the result
	in  Interval
}

// CompileConstraint compiles c as a predicate of vars (each a variable).
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
