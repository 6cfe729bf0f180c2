package index

// konst is the form c.
func konst(c int64) lin { return lin{c: c} }

// one is the form 1·atom.
func (r *Ring) one(id int32) lin {
	for int(id) >= len(r.units) {
		r.units = append(r.units, term{
			1, int32(len(r.units)),
		})
	}
	return lin{t: r.units[id : id+1 : id+1]}
}

// coef is the coefficient of atom id in x.
func (x lin) coef(id int32) int64 {
	for _, t := range x.t {
		if t.a == id {
			return t.k
		}
	}
	return 0
}

// mulAdd is a + k·b; an overflow is recorded.
func (r *Ring) mulAdd(a, k, b int64) int64 {
	p := k * b
	if int64(int32(k)) == k && int64(int32(b)) == b {
		if s := a + p; (a^s)&(p^s) >= 0 {
			return s
		}
	}
	return r.mulAddFar(a, k, b)
}

func (r *Ring) mulAddFar(a, k, b int64) int64 {
	p, ok1 := mulInt(k, b)
	s, ok2 := addInt(a, p)
	if !ok1 || !ok2 {
		r.fail("int64 overflow: %d + %d * %d", a, k, b)
		return 0
	}
	return s
}

// addmul is x + k·y.
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
	return r.exactly(lin{r.keep(out, n), c})
}

// plus is a + k·b, as mulAdd, for the numbers that nearly all are.
func (r *Ring) plus(a, k, b int64) int64 {
	if (uint64(a+farOff)|
		uint64(k+farOff)|
		uint64(b+farOff))>>29 != 0 {
		return r.mulAdd(a, k, b)
	}
	return a + k*b
}

// merge writes the terms of x + k·y to out. It looks once, at the end, whether a
// number was so large that the sums have to be checked.
func (r *Ring) merge(
	out, x []term, k int64, y []term,
) (n int) {
	far := uint64(k + farOff)
	i, j := 0, 0
	for i < len(x) && j < len(y) {
		p := x[i]
		q := y[j]
		switch {
		case p.a < q.a:
			i++
		case p.a > q.a:
			far |= uint64(q.k + farOff)
			p = term{k * q.k, q.a}
			j++
		default:
			far |= uint64(p.k+farOff) | uint64(q.k+farOff)
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
		far |= uint64(y[j].k + farOff)
		out[n] = term{k * y[j].k, y[j].a}
		n++
	}
	if far>>29 != 0 {
		return r.mergeFar(out, x, k, y)
	}
	return n
}

// mergeFar is merge for any numbers.
func (r *Ring) mergeFar(
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

// exactly puts y − r for d·⌊y/d⌋ where the division is known to be exact.
func (r *Ring) exactly(x lin) lin {
	if !r.facts.anyExact {
		return x
	}
	return r.withoutExact(x)
}

func (r *Ring) withoutExact(x lin) lin {
	for _, t := range x.t {
		a := &r.atoms[t.a]
		if !a.exact || t.k%a.by != 0 {
			continue
		}
		r.fired[ruleDivExact]++
		y := r.shift(r.forms[a.of].lin, -a.off)
		k := t.k / a.by
		rest := r.addmul(x, -t.k, r.one(t.a))
		return r.addmul(rest, k, y)
	}
	return x
}

// each is x with every coefficient mapped by f; zeros are dropped.
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

// content is the gcd of the coefficients of x, its constant left out.
func (x lin) content() (g int64) {
	for _, t := range x.t {
		if g = GCD(g, t.k); g == 1 {
			return 1
		}
	}
	return g
}
