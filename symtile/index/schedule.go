package index

// A tape is a script with its linear parts gathered: one step for a whole sum,
// whatever it was written as, and none for constants and variables.
// Values are numbered, the variables first, then one a step.
type tape struct {
	steps []tapeStep
	terms []tapeTerm
	vars  int32
}

// A tapeStep makes the next value: the sum c + Σ terms[at:end] when at ≥ 0,
// ⌊x/c⌋ or x mod c when y < 0, otherwise x op y.
type tapeStep struct {
	code    scriptCode
	x, y    int32
	at, end int32
	c       int64
}

// A tapeTerm is k·value.
type tapeTerm struct {
	k   int64
	val int32
}

// maxGathered bounds the terms that are gathered in one sum.
const maxGathered = 32

// A gatherer turns a script into a tape.
type gatherer struct {
	script
	tape
	sums []tapeSum          // by operation
	divs map[tapeTerm]int32 // by divisor and dividend
}

// A tapeSum is a sum that is not on the tape yet.
type tapeSum struct {
	terms []tapeTerm // ascending by value
	c     int64
	val   int32 // on the tape, or −1
}

// gather starts the tape of a script over so many variables.
func gather(s script, vars int) *gatherer {
	return &gatherer{
		script: s,
		tape:   tape{vars: int32(vars)},
		divs:   map[tapeTerm]int32{},
	}
}

// upTo gathers the operations before number to.
func (g *gatherer) upTo(to int32) {
	for i := int32(len(g.sums)); i < to; i++ {
		g.sums = append(g.sums, g.operation(g.ops[i]))
	}
}

func (g *gatherer) operation(op scriptOp) tapeSum {
	switch op.code {
	case scriptConst:
		return tapeSum{c: op.c, val: -1}
	case scriptVar:
		return g.single(int32(op.c))
	case scriptAdd:
		return g.combine(op, 1)
	case scriptSub:
		return g.combine(op, -1)
	case scriptMul:
		if x := &g.sums[op.x]; len(x.terms) == 0 {
			return g.scaled(op, op.y, x.c)
		}
		if y := &g.sums[op.y]; len(y.terms) == 0 {
			return g.scaled(op, op.x, y.c)
		}
	case scriptDiv:
		if y := &g.sums[op.y]; len(y.terms) == 0 {
			return g.single(g.quotient(op.x, y.c))
		}
	case scriptMod:
		y := &g.sums[op.y]
		if len(y.terms) == 0 && y.c > 0 {
			return g.remainder(op.x, y.c)
		}
	}
	return g.general(op)
}

func (g *gatherer) single(val int32) tapeSum {
	return tapeSum{
		terms: []tapeTerm{{1, val}},
		val:   val,
	}
}

func (g *gatherer) step(s tapeStep) int32 {
	g.steps = append(g.steps, s)
	return g.vars + int32(len(g.steps)) - 1
}

// quotient is the value ⌊operation i/d⌋.
func (g *gatherer) quotient(i int32, d int64) int32 {
	x := g.value(i)
	if q, had := g.divs[tapeTerm{d, x}]; had {
		return q
	}
	q := g.step(tapeStep{
		code: scriptDiv,
		x:    x,
		y:    -1,
		at:   -1,
		c:    d,
	})
	g.divs[tapeTerm{d, x}] = q
	return q
}

// remainder is x mod m for x of operation i: x − m·⌊x/m⌋ where the quotient is
// there already.
func (g *gatherer) remainder(i int32, m int64) tapeSum {
	x := g.value(i)
	if q, had := g.divs[tapeTerm{m, x}]; had {
		return tapeSum{
			terms: []tapeTerm{{1, x}, {-m, q}},
			val:   -1,
		}
	}
	return g.single(g.step(tapeStep{
		code: scriptMod,
		x:    x,
		y:    -1,
		at:   -1,
		c:    m,
	}))
}

func (g *gatherer) general(op scriptOp) tapeSum {
	return g.single(g.step(tapeStep{
		code: op.code,
		x:    g.value(op.x),
		y:    g.value(op.y),
		at:   -1,
	}))
}

// value is the number of the value of operation i, which goes on the tape now
// at the latest.
func (g *gatherer) value(i int32) int32 {
	s := &g.sums[i]
	if s.val < 0 {
		at := int32(len(g.terms))
		g.terms = append(g.terms, s.terms...)
		s.val = g.step(tapeStep{
			code: scriptAdd,
			at:   at,
			end:  int32(len(g.terms)),
			c:    s.c,
		})
	}
	return s.val
}

// operand is operation i as terms; a long sum is put on the tape first.
func (g *gatherer) operand(i int32) tapeSum {
	if len(g.sums[i].terms) > maxGathered/2 {
		return g.single(g.value(i))
	}
	return g.sums[i]
}

// combine gathers x + k·y. What int64 cannot hold is left to the ring.
func (g *gatherer) combine(op scriptOp, k int64) tapeSum {
	x := g.operand(op.x)
	y := g.operand(op.y)
	kc, ok1 := mulInt(k, y.c)
	c, ok := addInt(x.c, kc)
	out := tapeSum{c: c, val: -1}
	ok = ok && ok1
	for len(x.terms) > 0 || len(y.terms) > 0 {
		var t tapeTerm
		switch {
		case len(y.terms) == 0 ||
			len(x.terms) > 0 &&
				x.terms[0].val < y.terms[0].val:
			t = x.terms[0]
			x.terms = x.terms[1:]
		default:
			p, fits := mulInt(k, y.terms[0].k)
			t = tapeTerm{p, y.terms[0].val}
			ok = ok && fits
			if len(x.terms) > 0 && x.terms[0].val == t.val {
				t.k, fits = addInt(t.k, x.terms[0].k)
				x.terms = x.terms[1:]
				ok = ok && fits
			}
			y.terms = y.terms[1:]
		}
		if t.k != 0 {
			out.terms = append(out.terms, t)
		}
	}
	if !ok {
		return g.general(op)
	}
	return out
}

// scaled gathers k times operation i.
func (g *gatherer) scaled(op scriptOp, i int32, k int64) tapeSum {
	if k == 0 {
		return tapeSum{val: -1}
	}
	x := g.operand(i)
	c, ok := mulInt(k, x.c)
	out := tapeSum{c: c, val: -1}
	for _, t := range x.terms {
		p, fits := mulInt(k, t.k)
		out.terms = append(out.terms, tapeTerm{p, t.val})
		ok = ok && fits
	}
	if !ok {
		return g.general(op)
	}
	return out
}

// run makes the values of steps from up to to; vals starts with the variables.
func (t *tape) run(r *Ring, vals []lin, from, to int32) {
	for i := from; i < to; i++ {
		s := &t.steps[i]
		v := &vals[t.vars+i]
		switch {
		case s.at >= 0:
			*v = r.weighted(t.terms[s.at:s.end], s.c, vals)
		case s.y < 0 && s.code == scriptMod:
			*v = r.mod(vals[s.x], s.c)
		case s.y < 0:
			*v = r.div(vals[s.x], s.c)
		default:
			op := scriptOp{code: s.code, x: s.x, y: s.y}
			*v = op.value(r, nil, vals)
		}
	}
}

// weighted is start + Σ k·value.
func (r *Ring) weighted(ts []tapeTerm, start int64, vals []lin) lin {
	c := start
	n := 0
	for i := range ts {
		n += len(vals[ts[i].val].t)
	}
	switch {
	case len(ts) == 1 && ts[0].k == 1:
		v := &vals[ts[0].val]
		return r.exactly(lin{v.t, r.plus(c, 1, v.c)})
	case n > maxGathered:
		return r.weightedLong(ts, c, vals)
	}
	s := summation{out: r.alloc(n)}
	far := uint64(0)
	for i := range ts {
		k := ts[i].k
		v := &vals[ts[i].val]
		far |= uint64(k+farOff) | uint64(v.c+farOff)
		c += k * v.c
		for _, u := range v.t {
			far |= uint64(u.k + farOff)
			if s.n > 0 && s.out[s.n-1].a >= u.a {
				s.add(k*u.k, u.a)
				continue
			}
			s.out[s.n] = term{k * u.k, u.a}
			s.n++
		}
	}
	if (far|uint64(start+farOff))>>29 != 0 {
		return r.weightedLong(ts, start, vals)
	}
	return r.exactly(lin{r.keep(s.out, s.n), c})
}

func (r *Ring) weightedLong(ts []tapeTerm, c int64, vals []lin) lin {
	out := konst(c)
	for _, t := range ts {
		out = r.addmul(out, t.k, vals[t.val])
	}
	return out
}

// A summation inserts terms into a short sum of numbers that are near.
type summation struct {
	out []term
	n   int
}

func (s *summation) add(k int64, a int32) {
	i := s.n
	for i > 0 && s.out[i-1].a > a {
		i--
	}
	if i == 0 || s.out[i-1].a != a {
		copy(
			s.out[i+1:s.n+1],
			s.out[i:s.n],
		)
		s.out[i] = term{k, a}
		s.n++
		return
	}
	u := &s.out[i-1]
	if u.k += k; u.k == 0 {
		copy(s.out[i-1:], s.out[i:s.n])
		s.n--
	}
}
