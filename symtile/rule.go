package symtile

// A Rule is one law of the normal form. The constructors try the rules of a
// table in order; the first that applies builds the result.
type Rule struct {
	Name     string
	Identity string // what equals what, and when
	Reason   string // why it holds, in at most two lines
}

// A ruleID indexes Rules and Ring.fired.
type ruleID uint8

const (
	ruleDivOne ruleID = iota
	ruleDivConst
	ruleDivRange
	ruleDivWhole
	ruleDivSign
	ruleDivGCD
	ruleDivSlack
	ruleDivResidue
	ruleDivDiv
	ruleDivExact
	ruleQuotWhole
	ruleQuotRange
	ruleQuotCommon
	ruleQuotDiv
	ruleMinRange
	ruleMinSign
	ruleMinGCD
	ruleRangeMod
	ruleRangeFact
	numRules
)

var ruleTable = [numRules]Rule{
	ruleDivOne:     {"div-one", "⌊x/1⌋ = x", "Definition."},
	ruleDivConst:   {"div-const", "⌊c/m⌋ is a constant", "Definition."},
	ruleDivRange:   {"div-range", "⌊x/m⌋ = q when q·m ≤ x < (q+1)·m", "Both ends of x's range have the quotient q,\nand ⌊·/m⌋ is monotone."},
	ruleDivWhole:   {"div-whole", "⌊(q·m·y + r)/m⌋ = q·y + ⌊r/m⌋", "An integer inside ⌊·⌋ can be taken out."},
	ruleDivSign:    {"div-sign", "⌊−x/m⌋ = −⌊(x + m−1)/m⌋", "⌊−x/m⌋ = −⌈x/m⌉, and ⌈x/m⌉ = ⌊(x + m−1)/m⌋.\nSo a leading sign is always positive."},
	ruleDivGCD:     {"div-gcd", "⌊(g·y + c)/(g·n)⌋ = ⌊(y + ⌊c/g⌋)/n⌋", "⌊x/(g·n)⌋ = ⌊⌊x/g⌋/n⌋, and ⌊(g·y + c)/g⌋ = y + ⌊c/g⌋."},
	ruleDivSlack:   {"div-slack", "⌊(g·y + s)/(g·n)⌋ = ⌊(g·y + g·q)/(g·n)⌋ when q·g ≤ s < (q+1)·g", "As div-gcd: ⌊x/(g·n)⌋ = ⌊⌊x/g⌋/n⌋, and s cannot\nleave one period of g."},
	ruleDivResidue: {"div-residue", "⌊(y + c)/m⌋ = ⌊(y + c')/m⌋ when y ≡ r (mod g) and r+c, r+c' lie in one period of g", "y + c takes one residue modulo g, so moving c inside\nthe period changes no quotient."},
	ruleDivDiv:     {"div-div", "⌊(⌊y/n⌋ + x)/m⌋ = ⌊(y + n·x)/(n·m)⌋", "⌊y/n⌋ + x = ⌊(y + n·x)/n⌋ for integer x, and two\nfloors in a row are one."},
	ruleDivExact:   {"div-exact", "m·⌊y/m⌋ = y − r when y ≡ r (mod m), 0 ≤ r < m", "The remainder is known, so the quotient is linear in y."},
	ruleQuotWhole:  {"quot-whole", "⌊(q·f + r)/f⌋ = q + ⌊r/f⌋", "An integer inside ⌊·⌋ can be taken out."},
	ruleQuotRange:  {"quot-range", "⌊x/f⌋ = q when q·f ≤ x < (q+1)·f", "Decided by the ranges of x − q·f and (q+1)·f − 1 − x."},
	ruleQuotCommon: {"quot-common", "⌊g·x/(g·f)⌋ = ⌊x/f⌋ for g > 0", "The quotient of rationals is the same."},
	ruleQuotDiv:    {"quot-div", "⌊(⌊y/n⌋ + x)/f⌋ = ⌊(y + n·x)/(n·f)⌋", "As div-div, with a symbolic divisor."},
	ruleMinRange:   {"min-range", "min(x, 0) = x when x ≤ 0, 0 when x ≥ 0", "Definition."},
	ruleMinSign:    {"min-sign", "min(−x, 0) = min(x, 0) − x", "Add x to both arguments: min(0, x).\nSo min and max of one pair share an atom."},
	ruleMinGCD:     {"min-gcd", "min(g·x, 0) = g·min(x, 0) for g > 0", "Scaling by a positive number keeps the order."},
	ruleRangeMod:   {"range-mod", "k·x − k·m·⌊x/m⌋ is in k·[0, m−1]", "It is k·(x mod m), although x and ⌊x/m⌋ alone are unbounded."},
	ruleRangeFact:  {"range-fact", "x is in k·[lo, hi] + range(x − k·l) when l is in [lo, hi]", "Interval arithmetic around a known sum."},
}

// Rules lists every rule, in a fixed order.
func Rules() []Rule { return append([]Rule(nil), ruleTable[:]...) }

// Fired lists the names of the rules that applied while building expressions
// in r, in the order of Rules.
func (r *Ring) Fired() []string {
	var names []string
	for id, n := range r.fired {
		if n > 0 {
			names = append(names, ruleTable[id].Name)
		}
	}
	return names
}

// ForgetFired empties the list that Fired returns.
func (r *Ring) ForgetFired() { r.fired = [numRules]uint32{} }
