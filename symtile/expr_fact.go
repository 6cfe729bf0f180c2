package symtile

// facts are what a domain says beyond the ranges of its variables. A ring that
// has facts is private to one simplification: its forms are equal to what they
// stand for on the domain only.
type facts struct {
	sums     []fact
	congr    []congruence
	anyExact bool
	learnt   int // counts what changed
}

// A fact says that sum (no constant, first coefficient positive, content 1)
// lies in in.
type fact struct {
	sum lin
	in  Interval
}

// A congruence says sum ≡ r (mod m), sum without constant.
type congruence struct {
	sum  lin
	m, r int64
}

func (f *facts) reset() {
	f.sums, f.congr, f.anyExact = f.sums[:0], f.congr[:0], false
}

// residueOf returns n | m and res with x ≡ res (mod n), using the congruences
// of the domain.
func (r *Ring) residueOf(x lin, m int64) (n, res int64) {
	for i := range r.facts.congr {
		c := &r.facts.congr[i]
		k := x.coef(c.sum.t[0].a)
		if k == 0 || k%c.sum.t[0].k != 0 {
			continue
		}
		k /= c.sum.t[0].k
		if rest := r.addmul(x, -k, c.sum); len(rest.t) == 0 && r.mulAdd(0, k, c.m)%m == 0 {
			return m, floorMod(r.mulAdd(rest.c, k, c.r), m)
		}
	}
	n, res = r.congruence(x)
	n = gcd(n, m)
	return n, floorMod(res, n)
}
