// Package index is the algebra of integer index expressions that indexing maps
// and tiles are made of. It knows nothing of HLO.
//
// # Expressions
//
// An Expr is an integer expression over bounded variables: sums, products,
// quotients rounded down, remainders, minima and maxima. It is built by the
// methods of Expr in a Ring, which keeps every expression in one normal form:
// expressions that the rules prove equal are == in Go.
//
//	r := index.NewRing()
//	i := r.Var(index.Variable{Name: "i", Hi: 127})
//	e := i.Div(8).Scale(8).Add(i.Mod(8)) // e == i
//
// The normal form is a sum c + Σ k·a of a constant and multiples of atoms. An
// atom is a variable, a quotient ⌊x/d⌋ or ⌊x/y⌋, a minimum min(x, 0), or a product
// of atoms, where x and y are normal forms themselves. There is no remainder and
// no maximum: x mod m is x − m·⌊x/m⌋, and max(x, y) is x − min(x − y, 0). So each
// law is stated once, and laws about quotients are laws about remainders.
//
// Every atom knows an interval that holds its values and a congruence that they
// satisfy. The laws are rows of a table (Rules), each with its identity and the
// reason it holds; the ring counts which of them applied (Ring.Fired).
//
// Printing is a search of its own (extraction): it writes an expression with the
// fewest operations, remainders and maxima included, and Ring.Parse reads that
// text back to the same expression.
//
// A Composition first asks whether a result is a sum of digits, ⌊y/a⌋ mod b of sums y
// that take every integer of their range and have no variable in common. Nothing
// shorter is to be expected then, and it is written so at once. What is left is
// searched for, computed in other styles, and compared with shorter sums at the points
// of the domain, in this order, because each takes several times as long as the one
// before.
//
// # Constraints
//
// A Constraint is a conjunction of clauses, a Clause a disjunction of bounds, and
// a Bound says that an expression lies in an Interval. Constraint.Simplify works
// on the text of a constraint and the ranges of its variables;
// Constraint.Satisfiable and Constraint.Implies decide by elimination of
// variables (the Omega test), within a limit of work, and may answer Unknown.
//
// # Maps
//
// A Map is a relation between points: dimensions, ranges and run-time variables,
// results, and a constraint that says where it is defined. Compose applies one
// after another; Map.Simplify solves the constraints for the variables and
// rewrites the results for the points of the domain only. A Composition does
// both for a fixed sequence of maps, as often as needed, without allocation.
//
// # Rules
//
// A rule is a row of ruleTable, which names it, and an entry of the table of
// functions that tries it: divRules and quotRules for quotients, minRules,
// rangeRules for ranges, domainRules for the constraints of a map, clauseRules
// for a constraint by itself. Rules that every division begins with are code in
// line (Ring.div). To add one:
//
//  1. give it an id and a row in rule.go, with the identity and the reason;
//  2. write the function and enter it in its table, where order matters: what
//     makes expressions smaller comes before what removes nesting;
//  3. add a case with expect= to testdata, and a trial to TestRulesAlone, which
//     compares the rule by itself with evaluation at all points of a box.
//
// A rule of quotients has to leave a smaller dividend or divisor, so that division
// ends, and must depend on nothing but its operands and the facts of the ring, so
// that equal expressions stay equal.
//
// # Evaluation
//
// Compile turns expressions into an Evaluator, CompileConstraint a constraint
// into a Predicate. Both hold no reference to the ring, do not allocate and are
// safe for concurrent use; a Ring is not, while expressions are being built.
package index
