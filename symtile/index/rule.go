package index

// A Rule is one law of the normal form. The constructors try the rules of a
// table in order; the first that applies builds the result.
type Rule struct {
	Name     string
	Identity string // what equals what, and when
	Reason   string // why it holds, in at most two lines
}

// A ruleID indexes ruleTable and Ring.fired.
type ruleID uint8

// The rules, in the order of Rules. The letters of a name before the dash say what
// it rewrites: quotients by constants (div) and by expressions (quot), minima,
// ranges, the domain of a map, clauses of a constraint.
const (
	ruleDivOne ruleID = iota
	ruleDivConst
	ruleDivRange
	ruleDivWhole
	ruleDivRemainder
	ruleDivTwo
	ruleDivSign
	ruleDivGCD
	ruleDivHalf
	ruleDivComplete
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
	ruleRangeMin
	ruleDomainRange
	ruleDomainDiv
	ruleDomainMin
	ruleDomainMod
	ruleDomainPeriod
	ruleDomainEnds
	ruleDomainOnly
	ruleDomainRemainders
	ruleDomainEquation
	ruleDomainSlack
	ruleDomainSum
	ruleClauseMerge
	ruleClauseRemainders
	ruleClauseResolve
	ruleClauseAbsorb
	numRules
)

// ruleTable has the rules by id. Letters stand for: c a constant; d, g, k, m, n
// integers, m and n positive where they divide; q an integer; f, x, y, z
// expressions; l a sum of variables; r and s residues.
var ruleTable = [numRules]Rule{
	// Quotients by a constant.
	ruleDivOne:       {"div-one", "⌊x/1⌋ = x", "Definition."},
	ruleDivConst:     {"div-const", "⌊c/m⌋ is a constant", "Definition."},
	ruleDivRange:     {"div-range", "⌊x/m⌋ = q when q·m ≤ x < (q+1)·m", "Both ends of x's range have the quotient q,\nand ⌊·/m⌋ is monotone."},
	ruleDivWhole:     {"div-whole", "⌊(q·m·y + r)/m⌋ = q·y + ⌊r/m⌋", "An integer inside ⌊·⌋ can be taken out."},
	ruleDivRemainder: {"div-remainder", "⌊(k·(y mod n) + x)/m⌋ = q·(y mod n) + ⌊((k − q·m)·(y mod n) + x)/m⌋", "As div-whole, y mod n being one term although it is y − n·⌊y/n⌋."},
	ruleDivTwo:       {"div-two", "⌊(k·y + c)/m⌋ = q + (q' − q)·(y − l) for y in [l, l+1]", "q and q' are the quotients at l and l+1,\nand a line goes through two points."},
	ruleDivSign:      {"div-sign", "⌊−x/m⌋ = −⌊(x + m−1)/m⌋", "⌊−x/m⌋ = −⌈x/m⌉, and ⌈x/m⌉ = ⌊(x + m−1)/m⌋.\nSo a leading sign is always positive."},
	ruleDivGCD:       {"div-gcd", "⌊(g·y + c)/(g·n)⌋ = ⌊(y + ⌊c/g⌋)/n⌋", "⌊x/(g·n)⌋ = ⌊⌊x/g⌋/n⌋, and ⌊(g·y + c)/g⌋ = y + ⌊c/g⌋."},
	ruleDivHalf:      {"div-half", "⌊(y + 1)/2⌋ = y − ⌊y/2⌋ for a single term y", "⌊y/2⌋ + ⌈y/2⌉ = y. So −y mod 2 and y mod 2 are the same."},
	ruleDivComplete:  {"div-complete", "⌊(x − n·q)/m⌋ = ⌊(x − (n + m·k)·q)/m⌋ + k·q", "With k such that a remainder appears, when that decides the quotient."},
	ruleDivSlack:     {"div-slack", "⌊(g·y + s)/(g·n)⌋ = ⌊(g·y + g·q)/(g·n)⌋ when q·g ≤ s < (q+1)·g", "As div-gcd: ⌊x/(g·n)⌋ = ⌊⌊x/g⌋/n⌋, and s cannot\nleave one period of g."},
	ruleDivResidue:   {"div-residue", "⌊(y + c)/m⌋ = ⌊(y + c')/m⌋ when y ≡ r (mod g) and r+c, r+c' lie in one period of g", "y + c takes one residue modulo g, so moving c inside\nthe period changes no quotient."},
	ruleDivDiv:       {"div-div", "⌊(⌊y/n⌋ + x)/m⌋ = ⌊(y + n·x)/(n·m)⌋", "⌊y/n⌋ + x = ⌊(y + n·x)/n⌋ for integer x, and two\nfloors in a row are one."},
	ruleDivExact:     {"div-exact", "m·⌊y/m⌋ = y − r when y ≡ r (mod m), 0 ≤ r < m", "The remainder is known, so the quotient is linear in y."},

	// Quotients by an expression that is positive everywhere.
	ruleQuotWhole:  {"quot-whole", "⌊(q·f + r)/f⌋ = q + ⌊r/f⌋", "An integer inside ⌊·⌋ can be taken out."},
	ruleQuotRange:  {"quot-range", "⌊x/f⌋ = q when q·f ≤ x < (q+1)·f", "Decided by the ranges of x − q·f and (q+1)·f − 1 − x."},
	ruleQuotCommon: {"quot-common", "⌊g·x/(g·f)⌋ = ⌊x/f⌋ for g > 0", "The quotient of rationals is the same."},
	ruleQuotDiv:    {"quot-div", "⌊(⌊y/n⌋ + x)/f⌋ = ⌊(y + n·x)/(n·f)⌋", "As div-div, with a symbolic divisor."},

	// Minima with 0; max(x, y) is x − min(x − y, 0).
	ruleMinRange: {"min-range", "min(x, 0) = x when x ≤ 0, 0 when x ≥ 0", "Definition."},
	ruleMinSign:  {"min-sign", "min(−x, 0) = min(x, 0) − x", "Add x to both arguments: min(0, x).\nSo min and max of one pair share an atom."},
	ruleMinGCD:   {"min-gcd", "min(g·x, 0) = g·min(x, 0) for g > 0", "Scaling by a positive number keeps the order."},

	// Ranges of sums whose terms depend on each other.
	ruleRangeMod:  {"range-mod", "k·x − k·m·⌊x/m⌋ is in k·[0, m−1]", "It is k·(x mod m), although x and ⌊x/m⌋ may be far apart. m may be symbolic."},
	ruleRangeFact: {"range-fact", "x is in k·[lo, hi] + range(x − k·l) when l is in [lo, hi]", "Interval arithmetic around a known sum."},
	ruleRangeMin:  {"range-min", "z + k·min(y, 0) lies between z and z + k·y, at the least of them (k > 0) or the greatest", "It is min(z, z + k·y), or max."},

	// What a constraint says about the variables of its map.
	ruleDomainRange:      {"domain-range", "k·x + c in [lo, hi] narrows the variable x to [⌈(lo−c)/k⌉, ⌊(hi−c)/k⌋]", "x is an integer."},
	ruleDomainDiv:        {"domain-div", "w + ⌊y/m⌋ in [lo, hi] iff m·w + y in [m·lo, m·hi + m−1]", "w + ⌊y/m⌋ = ⌊(m·w + y)/m⌋; definition of ⌊·⌋, m > 0."},
	ruleDomainMin:        {"domain-min", "min(y, 0) in [lo, hi] iff y in [lo, hi], for hi ≥ 0: y ≥ lo", "Definition; above 0 the min says nothing."},
	ruleDomainMod:        {"domain-mod", "y mod m = r iff y ≡ r (mod m)", "Kept as a congruence, which divisions use (div-residue)."},
	ruleDomainPeriod:     {"domain-period", "y mod m in [lo, hi] narrows the variable y to the first and the last value with such a remainder", "No value outside of them has one."},
	ruleDomainEnds:       {"domain-ends", "x in [lo, hi] narrows the only variable of x to the first and the last value at which it holds", "By evaluation; no value outside of them is a point."},
	ruleDomainOnly:       {"domain-only", "y ≡ r (mod m) iff y = v when v is the only such number in the range of y", "And k·y + z ≡ r (mod m) gives z ≡ r modulo gcd(k, m)."},
	ruleDomainRemainders: {"domain-remainders", "y ≡ r (mod m) and y ≡ s (mod n) iff y ≡ q (mod lcm(m, n)), or never", "Chinese remainders: there is a q iff r ≡ s (mod gcd(m, n))."},
	ruleDomainEquation:   {"domain-equation", "±x + y = c eliminates the variable x", "Its own range becomes a bound of c − y."},
	ruleDomainSlack:      {"domain-slack", "lo ≤ g·y + s ≤ hi iff lo/g ≤ y ≤ ⌊hi/g⌋ when 0 ≤ s < g, g | lo, g | hi+1", "A step of y jumps over the borders; s cannot."},
	ruleDomainSum:        {"domain-sum", "k·x + y in [lo, hi] narrows x by the range of y", "k·x lies in [lo − max y, hi − min y]."},

	// Constraints by themselves.
	ruleClauseMerge:      {"clause-merge", "x in A and x in B iff x in A∩B; x in A or x in B iff x in A∪B when they touch", "Definition."},
	ruleClauseRemainders: {"clause-remainders", "as domain-remainders, for the expressions of a constraint", "As domain-remainders."},
	ruleClauseResolve:    {"clause-resolve", "(a or b) and not a iff b and not a", "An alternative that another clause excludes never holds."},
	ruleClauseAbsorb:     {"clause-absorb", "(a or b) and a iff a", "A clause that another implies says nothing."},
}

// Rules lists every rule, in a fixed order.
func Rules() []Rule {
	return append([]Rule(nil), ruleTable[:]...)
}
