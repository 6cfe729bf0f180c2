package index

import "slices"

// Arithmetic on forms. Forms are immutable: every operation writes new terms, or
// shares those of an operand. Sums of terms are merges of sorted lists.
//
// Nearly all coefficients are small. The operations compute on machine integers
// and gather, by or, whether a number was large; only then do they compute again
// with every step checked.

// constForm is the form of the constant c.
func constForm(c int64) lin { return lin{c: c} }

// atomForm is the form 1·atom.
func (r *Ring) atomForm(id int32) lin {
	for int(id) >= len(r.units) {
		next := int32(len(r.units))
		r.units = append(r.units, term{1, next})
	}
	return lin{t: r.units[id : id+1 : id+1]}
}

// coefficient is the coefficient of atom id in x.
func (x lin) coefficient(id int32) int64 {
	for _, t := range x.t {
		if t.a == id {
			return t.k
		}
	}
	return 0
}

// size counts the terms of x, the constant being one.
func (x lin) size() int {
	if x.c != 0 {
		return len(x.t) + 1
	}
	return len(x.t)
}

// sharesAtom reports whether x and y have an atom in common.
func (x lin) sharesAtom(y lin) bool {
	s, t := x.t, y.t
	for len(s) > 0 && len(t) > 0 {
		switch {
		case s[0].a < t[0].a:
			s = s[1:]
		case s[0].a > t[0].a:
			t = t[1:]
		default:
			return true
		}
	}
	return false
}

// isSmall reports whether |x| < 2²⁸, as nearly everything is.
func isSmall(x int64) bool { return uint64(x+smallOffset)>>29 == 0 }

// smallOffset moves small numbers to [0, 2²⁹), so that one shift of an or of
// several numbers tells whether all are small.
const smallOffset = 1 << 28

// mulAdd is a + k·b; an overflow is recorded.
func (r *Ring) mulAdd(a, k, b int64) int64 {
	p := k * b
	if int64(int32(k)) == k && int64(int32(b)) == b {
		if s := a + p; (a^s)&(p^s) >= 0 {
			return s
		}
	}
	return r.mulAddChecked(a, k, b)
}

// mulAddChecked is mulAdd for any numbers.
func (r *Ring) mulAddChecked(a, k, b int64) int64 {
	p, ok1 := mulInt(k, b)
	s, ok2 := addInt(a, p)
	if !ok1 || !ok2 {
		r.fail("int64 overflow: %d + %d * %d", a, k, b)
		return 0
	}
	return s
}

// addmul is x + k·y, on which all sums rest.
func (r *Ring) addmul(x lin, k int64, y lin) lin {
	if k == 0 {
		return x
	}
	c := r.plus(x.c, k, y.c)
	if len(y.t) == 0 {
		return lin{x.t, c}
	}
	if len(x.t) == 0 && k == 1 {
		return lin{y.t, c}
	}
	out := r.alloc(len(x.t) + len(y.t))
	n := r.merge(out, x.t, k, y.t)
	return r.substituteExact(lin{r.keep(out, n), c})
}

// plus is a + k·b, as mulAdd, for the numbers that nearly all are.
func (r *Ring) plus(a, k, b int64) int64 {
	bits := uint64(a+smallOffset) | uint64(k+smallOffset)
	if (bits|uint64(b+smallOffset))>>29 != 0 {
		return r.mulAdd(a, k, b)
	}
	return a + k*b
}

// merge writes the terms of x + k·y to out and returns their number. out has
// room for those of x and of y. magnitudes is the or of all numbers, moved by
// smallOffset: one look at it, at the end, shows whether a number was so large
// that the sums have to be checked, and everything is done again.
func (r *Ring) merge(
	out, x []term, k int64, y []term,
) (n int) {
	magnitudes := uint64(k + smallOffset)
	i, j := 0, 0
	for i < len(x) && j < len(y) {
		p := x[i]
		q := y[j]
		switch {
		case p.a < q.a:
			i++
		case p.a > q.a:
			magnitudes |= uint64(q.k + smallOffset)
			p = term{k * q.k, q.a}
			j++
		default:
			magnitudes |= uint64(p.k + smallOffset)
			magnitudes |= uint64(q.k + smallOffset)
			p.k += k * q.k
			i++
			j++
		}
		if p.k != 0 {
			out[n] = p
			n++
		}
	}
	n += copy(out[n:], x[i:])
	for ; j < len(y); j++ {
		magnitudes |= uint64(y[j].k + smallOffset)
		out[n] = term{k * y[j].k, y[j].a}
		n++
	}
	if magnitudes>>29 != 0 {
		return r.mergeChecked(out, x, k, y)
	}
	return n
}

// mergeChecked is merge for any numbers.
func (r *Ring) mergeChecked(
	out, x []term, k int64, y []term,
) (n int) {
	for len(x) > 0 || len(y) > 0 {
		var p term
		switch {
		case len(y) == 0 ||
			len(x) > 0 && x[0].a < y[0].a:
			p = x[0]
			x = x[1:]
		case len(x) == 0 || x[0].a > y[0].a:
			p = term{
				r.mulAdd(0, k, y[0].k),
				y[0].a,
			}
			y = y[1:]
		default:
			p = term{
				r.mulAdd(x[0].k, k, y[0].k),
				x[0].a,
			}
			x = x[1:]
			y = y[1:]
		}
		if p.k != 0 {
			out[n] = p
			n++
		}
	}
	return n
}

// addAtom is x + k·atom.
func (r *Ring) addAtom(x lin, k int64, id int32) lin {
	return r.addmul(x, k, r.atomForm(id))
}

// withoutTerm is x − t for a term t of x.
func (r *Ring) withoutTerm(x lin, t term) lin {
	return r.addmul(x, -t.k, r.atomForm(t.a))
}

// scale is k·x.
func (r *Ring) scale(x lin, k int64) lin {
	switch k {
	case 0:
		return lin{}
	case 1:
		return x
	}
	return r.addmul(lin{}, k, x)
}

// shift is x + c.
func (r *Ring) shift(x lin, c int64) lin {
	return lin{x.t, r.mulAdd(x.c, 1, c)}
}

// substituteExact is div-exact: it puts y − r for d·⌊y/d⌋ where y ≡ r (mod d) is
// known, for as long as x has such a term.
func (r *Ring) substituteExact(x lin) lin {
	if !r.facts.anyExact {
		return x
	}
	return r.substituteExactTerms(x)
}

// substituteExactTerms is substituteExact in a ring that has exact quotients. The
// sums it builds are substituted in turn.
func (r *Ring) substituteExactTerms(x lin) lin {
	for _, t := range x.t {
		a := &r.atoms[t.a]
		if !a.exact || t.k%a.by != 0 {
			continue
		}
		r.fired[ruleDivExact]++
		y := r.shift(r.lin(a.of), -a.off)
		k := t.k / a.by
		rest := r.withoutTerm(x, t)
		return r.addmul(rest, k, y)
	}
	return x
}

// each is x with every coefficient mapped by f, the constant left alone; terms
// whose coefficient becomes 0 are dropped.
func (r *Ring) each(x lin, f func(k int64) int64) lin {
	out := r.alloc(len(x.t))
	n := 0
	for _, t := range x.t {
		if t.k = f(t.k); t.k != 0 {
			out[n] = t
			n++
		}
	}
	return lin{r.keep(out, n), x.c}
}

// shrink is x/g where g divides everything.
func (r *Ring) shrink(x lin, g int64) lin {
	y := r.each(x, func(k int64) int64 {
		return k / g
	})
	y.c = x.c / g
	return y
}

// content is the greatest common divisor of the coefficients of x, its constant
// left out.
func (x lin) content() (g int64) {
	for _, t := range x.t {
		if g = GCD(g, t.k); g == 1 {
			return 1
		}
	}
	return g
}

// Limits that keep normal forms of adversarial products small: what exceeds
// them is an error of the ring, not a long wait.
const (
	maxDegree = 24
	maxTerms  = 4096
)

// mul is x·y, distributed.
func (r *Ring) mul(x, y lin) lin {
	if len(x.t) == 0 {
		return r.scale(y, x.c)
	}
	if len(y.t) == 0 {
		return r.scale(x, y.c)
	}
	if (len(x.t)+1)*(len(y.t)+1) > maxTerms {
		const format = "product of %d by %d terms is too large"
		return r.fail(format, len(x.t), len(y.t))
	}
	out := r.scale(x, y.c)
	for _, t := range y.t {
		out = r.addmul(out, t.k, r.mulAtom(x, t.a))
		if r.err != nil {
			return lin{}
		}
	}
	return out
}

// mulAtom is x·atom.
func (r *Ring) mulAtom(x lin, a int32) lin {
	out := r.scale(r.atomForm(a), x.c)
	for _, t := range x.t {
		product := r.atomForm(r.product(t.a, a))
		out = r.addmul(out, t.k, product)
	}
	return out
}

// factorsOf lists the factors of atom id: itself unless it is a product.
func (r *Ring) factorsOf(id int32, buf []int32) []int32 {
	a := &r.atoms[id]
	if a.kind == atomProduct {
		return append(buf, r.factors(a)...)
	}
	return append(buf, id)
}

// product is the atom that is the product of two. Products are flat: the factors
// of a product are no products.
func (r *Ring) product(a, b int32) int32 {
	var buf [2 * maxDegree]int32
	fs := r.factorsOf(b, r.factorsOf(a, buf[:0]))
	if len(fs) > maxDegree {
		r.fail("product of more than %d factors", maxDegree)
		return a
	}
	slices.Sort(fs)
	return r.productOf(fs)
}

// productOf interns the product of ascending factors. Its range is the product of
// theirs, its congruence that of congruenceMul.
func (r *Ring) productOf(fs []int32) int32 {
	if len(fs) == 1 {
		return fs[0]
	}
	in := Interval{1, 1}
	m := int64(0)
	res := int64(1)
	for _, f := range fs {
		a := &r.atoms[f]
		in = in.Mul(a.in)
		m, res = congruenceMul(m, res, a.m, a.r)
	}
	at := len(r.factorPool)
	r.factorPool = append(r.factorPool, fs...)
	id, had := r.intern(atom{
		kind: atomProduct,
		y:    int32(at),
		z:    int32(len(fs)),
		in:   in,
		m:    m,
		r:    res,
	})
	if had {
		r.factorPool = r.factorPool[:at]
	}
	return id
}

// divideFactors removes the factors of d from those of a; ok tells that they
// were all there. An empty rest is the product 1.
func (r *Ring) divideFactors(a, d int32) (rest []int32, ok bool) {
	var b1, b2 [2 * maxDegree]int32
	fs := r.factorsOf(a, b1[:0])
	ds := r.factorsOf(d, b2[:0])
	for _, f := range fs {
		if len(ds) > 0 && ds[0] == f {
			ds = ds[1:]
			continue
		}
		rest = append(rest, f)
	}
	return rest, len(ds) == 0
}

// A minRule rewrites min(x, 0), x in in, or declines.
type minRule struct {
	id    ruleID
	apply func(r *Ring, x lin, in Interval) (lin, bool)
}

// minRules are tried in order: minRange leaves dividends that take both signs,
// so that x has a term for minSign to look at.
var minRules []minRule

func init() { // the rules take minima again, which a literal may not refer to
	minRules = []minRule{
		{ruleMinRange, minRange},
		{ruleMinSign, minSign},
		{ruleMinGCD, minGCD},
	}
}

// min0 is min(x, 0), the only shape of minimum in the normal form: min(x, y) and
// max(x, y) are sums of it and of one argument.
func (r *Ring) min0(x lin) lin {
	in := r.sharpRange(x)
	for i := range minRules {
		if y, ok := minRules[i].apply(r, x, in); ok {
			r.fired[minRules[i].id]++
			return y
		}
	}
	id, had := r.atom(atomMinZero, r.form(x), -1, 0)
	if !had {
		r.atoms[id].in = in.Min(Interval{})
	}
	return r.atomForm(id)
}

// minRange decides the minimum by the range of x.
func minRange(_ *Ring, x lin, in Interval) (lin, bool) {
	switch {
	case in.Hi <= 0:
		return x, true
	case in.Lo >= 0:
		return lin{}, true
	}
	return lin{}, false
}

// minSign makes the leading sign positive: min(−x, 0) = min(x, 0) − x.
func minSign(r *Ring, x lin, _ Interval) (lin, bool) {
	if x.t[0].k > 0 {
		return lin{}, false
	}
	return r.addmul(x, 1, r.min0(r.scale(x, -1))), true
}

// minGCD takes the common factor out of x.
func minGCD(r *Ring, x lin, _ Interval) (lin, bool) {
	g := GCD(x.content(), x.c)
	if g == 1 {
		return lin{}, false
	}
	return r.scale(r.min0(r.shrink(x, g)), g), true
}

// min is min(x, y) = y + min(x − y, 0).
func (r *Ring) min(x, y lin) lin {
	return r.addmul(y, 1, r.min0(r.addmul(x, -1, y)))
}

// max is max(x, y) = x − min(x − y, 0).
func (r *Ring) max(x, y lin) lin {
	return r.addmul(
		x, -1, r.min0(r.addmul(x, -1, y)),
	)
}
