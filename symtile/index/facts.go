package index

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
	f.sums = f.sums[:0]
	f.congr = f.congr[:0]
	f.anyExact = false
}

// residue is x mod d where the congruences of atoms, or of the domain, tell it.
func (r *Ring) residue(x lin, d int64) (res int64, known bool) {
	for i := range r.facts.congr {
		c := &r.facts.congr[i]
		k := x.coef(c.sum.t[0].a)
		if k == 0 || k%c.sum.t[0].k != 0 {
			continue
		}
		k /= c.sum.t[0].k
		rest := r.addmul(x, -k, c.sum)
		if len(rest.t) == 0 &&
			r.mulAdd(0, k, c.m)%d == 0 {
			return floorMod(r.mulAdd(rest.c, k, c.r), d), true
		}
	}
	for i := range x.t {
		k := x.t[i].k
		m := r.atoms[x.t[i].a].m
		if m == 1 && absInt(k) < uint64(d) {
			return 0, false
		}
		km, ok := mulInt(k, m)
		if !ok || km%d != 0 {
			return 0, false
		}
	}
	n, res := r.congruence(x)
	return floorMod(res, d), n%d == 0
}
