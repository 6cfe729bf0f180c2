package index

import "slices"

// Decide says whether b always holds, never holds (known true) or neither.
func (b Bound) Decide() (holds, known bool) {
	switch r := b.Expr.Range(); {
	case b.In.Lo <= r.Lo && r.Hi <= b.In.Hi:
		return true, true
	case r.Hi < b.In.Lo || b.In.Hi < r.Lo:
		return false, true
	}
	return false, false
}

// Reduce drops bounds that never hold; sure means one always does.
func (c Clause) Reduce() (out Clause, sure bool) {
	for _, b := range c {
		holds, known := b.Decide()
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
