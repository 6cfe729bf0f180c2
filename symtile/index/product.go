package index

import "slices"

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
		return r.fail(
			"product of %d by %d terms is too large", len(x.t), len(y.t),
		)
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
	out := r.scale(r.one(a), x.c)
	for _, t := range x.t {
		out = r.addmul(
			out,
			t.k,
			r.one(r.product(t.a, a)),
		)
	}
	return out
}

// factorsOf lists the factors of atom id: itself unless it is a product.
func (r *Ring) factorsOf(id int32, buf []int32) []int32 {
	if a := &r.atoms[id]; a.kind == atomMul {
		return append(buf, r.factors(a)...)
	}
	return append(buf, id)
}

// product is the atom that is the product of two.
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

// productOf interns the product of ascending factors.
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
	at := len(r.facs)
	r.facs = append(r.facs, fs...)
	id, had := r.intern(atom{
		kind: atomMul,
		y:    int32(at),
		z:    int32(len(fs)),
		in:   in,
		m:    m,
		r:    res,
	})
	if had {
		r.facs = r.facs[:at]
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
