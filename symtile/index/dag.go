package index

// Expressions as they are written, before any ring knows them. The parser makes
// a dag; a Composition turns it into a schedule, which it runs many times.

// A dag is expressions as operations on earlier values, equal operations once.
// Running it in a ring is what simplifies.
type dag struct {
	nodes   []node
	numbers map[node]int32 // by node
}

// A nodeKind is the operation of a node.
type nodeKind uint8

// The operations of text. Those without a comment combine the values x and y.
const (
	nodeConst nodeKind = iota // c
	nodeVar                   // variable number c
	nodeAdd
	nodeSub
	nodeMul
	nodeDiv
	nodeCeilDiv
	nodeMod
	nodeMin
	nodeMax
)

// A node is an operation on the values x and y of earlier nodes.
type node struct {
	kind nodeKind
	x, y int32
	c    int64
}

// add returns the number of the node op, which it appends unless it is there.
func (s *dag) add(op node) int32 {
	if id, ok := s.numbers[op]; ok {
		return id
	}
	if s.numbers == nil {
		s.numbers = map[node]int32{}
	}
	s.nodes = append(s.nodes, op)
	id := int32(len(s.nodes) - 1)
	s.numbers[op] = id
	return id
}

// constant is the number c.
func (s *dag) constant(c int64) int32 {
	return s.add(node{kind: nodeConst, c: c})
}

// negative is −x.
func (s *dag) negative(x int32) int32 {
	zero := s.constant(0)
	return s.add(node{
		kind: nodeSub,
		x:    zero,
		y:    x,
	})
}

// run computes the values of the nodes numbered from, …, to−1 in r. env holds the
// forms of the variables.
func (s *dag) run(r *Ring, env, vals []lin, from, to int32) {
	for i := from; i < to; i++ {
		vals[i] = s.nodes[i].value(r, env, vals)
	}
}

// value is the form of op over the values of earlier nodes.
func (op *node) value(r *Ring, env, vals []lin) lin {
	switch op.kind {
	case nodeConst:
		return constForm(op.c)
	case nodeVar:
		return env[op.c]
	}
	x := vals[op.x]
	y := vals[op.y]
	switch op.kind {
	case nodeAdd:
		return r.addmul(x, 1, y)
	case nodeSub:
		return r.addmul(x, -1, y)
	case nodeMul:
		return r.mul(x, y)
	case nodeDiv:
		return r.anyDiv(x, y)
	case nodeCeilDiv:
		return r.scale(r.anyDiv(r.scale(x, -1), y), -1)
	case nodeMod:
		return r.anyMod(x, y)
	case nodeMin:
		return r.min(x, y)
	}
	return r.max(x, y)
}

// A schedule is a dag with its linear parts gathered: one step for a whole sum,
// however it was written, and none for constants and variables. So a ring merges
// the terms of a sum once, and not once for every operation in it.
//
// Values are numbered, the variables first, then one a step. The text
// "(d0 * 8 + d1) mod 4 + d0 * 2 - d1" over d0 and d1 becomes
//
//	value 2 = 8·value 0 + value 1
//	value 3 = value 2 mod 4
//	value 4 = value 3 + 2·value 0 − value 1
type schedule struct {
	steps []scheduleStep
	terms []scheduleTerm // of all sums
	vars  int32
	first int32 // number of the first step's value
}

// A scheduleStep makes the next value: the sum c + Σ terms[at:end] when at ≥ 0,
// ⌊x/c⌋ or x mod c when y < 0, otherwise x op y.
type scheduleStep struct {
	kind    nodeKind
	x, y    int32
	at, end int32
	c       int64
}

// A scheduleTerm is k·value.
type scheduleTerm struct {
	k   int64
	val int32
}

// maxScheduledTerms bounds the terms that are gathered in one sum.
const maxScheduledTerms = 32

// A scheduler turns a dag into a schedule. Every node is a sum of scheduled
// values; the sum itself is scheduled only when an operation needs it as one
// value.
type scheduler struct {
	dag
	schedule
	sums []pendingSum           // by node
	divs map[scheduleTerm]int32 // quotients by divisor and dividend
}

// A pendingSum is a sum that need not be scheduled yet.
type pendingSum struct {
	terms []scheduleTerm // ascending by value
	c     int64
	val   int32 // its value in the schedule, or −1
}

// newScheduler starts the schedule of a dag over so many variables.
func newScheduler(s dag, vars int) *scheduler {
	return &scheduler{
		dag:      s,
		schedule: schedule{vars: int32(vars), first: int32(vars)},
		divs:     map[scheduleTerm]int32{},
	}
}

// scheduleTo gathers the nodes before number to.
func (g *scheduler) scheduleTo(to int32) {
	for i := int32(len(g.sums)); i < to; i++ {
		g.sums = append(
			g.sums, g.operation(g.nodes[i]),
		)
	}
}

// operation gathers one node: sums and multiples by adding terms, divisions by
// constants as steps of their own, and the rest as general steps.
func (g *scheduler) operation(op node) pendingSum {
	switch op.kind {
	case nodeConst:
		return pendingSum{c: op.c, val: -1}
	case nodeVar:
		return g.single(int32(op.c))
	case nodeAdd:
		return g.combine(op, 1)
	case nodeSub:
		return g.combine(op, -1)
	case nodeMul:
		if x := &g.sums[op.x]; len(x.terms) == 0 {
			return g.scaled(op, op.y, x.c)
		}
		if y := &g.sums[op.y]; len(y.terms) == 0 {
			return g.scaled(op, op.x, y.c)
		}
	case nodeDiv:
		if y := &g.sums[op.y]; len(y.terms) == 0 {
			return g.single(g.quotient(op.x, y.c))
		}
	case nodeMod:
		y := &g.sums[op.y]
		if len(y.terms) == 0 && y.c > 0 {
			return g.remainder(op.x, y.c)
		}
	}
	return g.general(op)
}

// single is the sum that is one value.
func (g *scheduler) single(val int32) pendingSum {
	terms := []scheduleTerm{{1, val}}
	return pendingSum{terms: terms, val: val}
}

// step appends a step and returns the number of its value.
func (g *scheduler) step(s scheduleStep) int32 {
	g.steps = append(g.steps, s)
	return g.vars + int32(len(g.steps)) - 1
}

// quotient is the value ⌊x/d⌋ for x of node i, once for every dividend.
func (g *scheduler) quotient(i int32, d int64) int32 {
	x := g.value(i)
	if q, had := g.divs[scheduleTerm{d, x}]; had {
		return q
	}
	q := g.step(scheduleStep{
		kind: nodeDiv,
		x:    x,
		y:    -1,
		at:   -1,
		c:    d,
	})
	g.divs[scheduleTerm{d, x}] = q
	return q
}

// remainder is x mod m for x of node i: x − m·⌊x/m⌋ where the quotient is
// scheduled already.
func (g *scheduler) remainder(i int32, m int64) pendingSum {
	x := g.value(i)
	if q, had := g.divs[scheduleTerm{m, x}]; had {
		terms := []scheduleTerm{{1, x}, {-m, q}}
		return pendingSum{terms: terms, val: -1}
	}
	mod := scheduleStep{
		kind: nodeMod,
		x:    x,
		y:    -1,
		at:   -1,
		c:    m,
	}
	return g.single(g.step(mod))
}

// general schedules op as it is.
func (g *scheduler) general(op node) pendingSum {
	x := g.value(op.x)
	y := g.value(op.y)
	step := scheduleStep{
		kind: op.kind,
		x:    x,
		y:    y,
		at:   -1,
	}
	return g.single(g.step(step))
}

// value is the number of the value of node i, which is scheduled now if it was
// not before.
func (g *scheduler) value(i int32) int32 {
	s := &g.sums[i]
	if s.val < 0 {
		at := int32(len(g.terms))
		g.terms = append(g.terms, s.terms...)
		end := int32(len(g.terms))
		s.val = g.step(scheduleStep{
			kind: nodeAdd,
			at:   at,
			end:  end,
			c:    s.c,
		})
	}
	return s.val
}

// operand is node i as terms; a long sum is scheduled and becomes one term.
func (g *scheduler) operand(i int32) pendingSum {
	if len(g.sums[i].terms) > maxScheduledTerms/2 {
		return g.single(g.value(i))
	}
	return g.sums[i]
}

// combine gathers x + k·y by merging the terms. What int64 cannot hold is left to
// the ring, which reports it.
func (g *scheduler) combine(op node, k int64) pendingSum {
	x := g.operand(op.x)
	y := g.operand(op.y)
	kc, ok1 := mulInt(k, y.c)
	c, ok := addInt(x.c, kc)
	out := pendingSum{c: c, val: -1}
	ok = ok && ok1
	for len(x.terms) > 0 || len(y.terms) > 0 {
		var t scheduleTerm
		switch {
		case len(y.terms) == 0,
			len(x.terms) > 0 &&
				x.terms[0].val < y.terms[0].val:
			t = x.terms[0]
			x.terms = x.terms[1:]
		default:
			p, fits := mulInt(k, y.terms[0].k)
			t = scheduleTerm{p, y.terms[0].val}
			ok = ok && fits
			if len(x.terms) > 0 &&
				x.terms[0].val == t.val {
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

// scaled gathers k times node i.
func (g *scheduler) scaled(op node, i int32, k int64) pendingSum {
	if k == 0 {
		return pendingSum{val: -1}
	}
	x := g.operand(i)
	c, ok := mulInt(k, x.c)
	out := pendingSum{c: c, val: -1}
	for _, t := range x.terms {
		p, fits := mulInt(k, t.k)
		out.terms = append(
			out.terms, scheduleTerm{p, t.val},
		)
		ok = ok && fits
	}
	if !ok {
		return g.general(op)
	}
	return out
}

// run computes the values of the steps numbered from, …, to−1 in r. vals holds
// the forms of the variables, then those of the steps.
func (t *schedule) run(r *Ring, vals []lin, from, to int32) {
	for i := from; i < to; i++ {
		s := &t.steps[i]
		v := &vals[t.first+i]
		switch {
		case s.at >= 0:
			*v = r.weightedSum(
				t.terms[s.at:s.end], s.c, vals,
			)
		case s.y < 0 && s.kind == nodeMod:
			*v = r.modStep(vals[s.x], s.c)
		case s.y < 0:
			*v = r.divStep(vals[s.x], s.c)
		default:
			op := node{kind: s.kind, x: s.x, y: s.y}
			*v = op.value(r, nil, vals)
		}
	}
}

// weightedSum is start + Σ k·value. Short sums of small numbers are gathered by
// insertion, term by term; others are added value by value.
func (r *Ring) weightedSum(ts []scheduleTerm, start int64, vals []lin) lin {
	c := start
	n := 0
	for i := range ts {
		n += len(vals[ts[i].val].t)
	}
	switch {
	case len(ts) == 1 && ts[0].k == 1:
		v := &vals[ts[0].val]
		return r.substituteExact(lin{
			v.t, r.plus(c, 1, v.c),
		})
	case n > maxScheduledTerms:
		return r.weightedSumLong(ts, c, vals)
	}
	s := summation{out: r.alloc(n)}
	magnitudes := uint64(0)
	for i := range ts {
		k := ts[i].k
		v := &vals[ts[i].val]
		magnitudes |= uint64(k+smallOffset) | uint64(v.c+smallOffset)
		c += k * v.c
		for _, u := range v.t {
			magnitudes |= uint64(u.k + smallOffset)
			if s.n > 0 && s.out[s.n-1].a >= u.a {
				s.add(k*u.k, u.a)
				continue
			}
			s.out[s.n] = term{k * u.k, u.a}
			s.n++
		}
	}
	if (magnitudes|uint64(start+smallOffset))>>29 != 0 {
		return r.weightedSumLong(ts, start, vals)
	}
	return r.substituteExact(lin{
		r.keep(s.out, s.n), c,
	})
}

// weightedSumLong is weightedSum for any numbers.
func (r *Ring) weightedSumLong(ts []scheduleTerm, c int64, vals []lin) lin {
	out := constForm(c)
	for _, t := range ts {
		out = r.addmul(out, t.k, vals[t.val])
	}
	return out
}

// A summation inserts terms into a short sum of small numbers.
type summation struct {
	out []term // ascending by atom
	n   int    // terms of out in use
}

// add adds k·atom to a sum that has terms of greater atoms, or of the same.
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
