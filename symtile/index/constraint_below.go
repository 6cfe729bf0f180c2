package index

// Below is the constraint 0 ≤ e < n; it is the true constraint, nil, where e's
// range shows it.
func Below(e Expr, n int64) Constraint {
	in := Interval{Lo: 0, Hi: n - 1}
	if in.Covers(e.Range()) {
		return nil
	}
	return Require(e, in.Lo, in.Hi)
}
