package symtile

import (
	"fmt"
	"slices"
	"strings"
)

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

// reduced drops bounds that never hold; sure means one always does.
func (c Clause) reduced() (out Clause, sure bool) {
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

// and appends a clause unless it is there already.
func (c Constraint) and(clause Clause) Constraint {
	for _, have := range c {
		if slices.Equal(have, clause) {
			return c
		}
	}
	return append(c, clause)
}

func (b Bound) String() string { return fmt.Sprintf("%s in [%d, %d]", b.Expr, b.In.Lo, b.In.Hi) }

func (c Clause) String() string {
	if len(c) == 0 {
		return "false"
	}
	words := make([]string, len(c))
	for k, b := range c {
		words[k] = b.String()
	}
	return strings.Join(words, " || ")
}

func (c Constraint) String() string {
	if len(c) == 0 {
		return "always"
	}
	words := make([]string, len(c))
	for k, clause := range c {
		words[k] = clause.String()
		if len(clause) > 1 && len(c) > 1 {
			words[k] = "(" + words[k] + ")"
		}
	}
	return strings.Join(words, " && ")
}
