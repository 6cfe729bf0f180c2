package index

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A MapSource is an indexing map as it is written: nothing of it is simplified. Its
// constraints are expressions with the interval they lie in.
type MapSource struct {
	Dims, Ranges []Variable // only names and bounds are used
	Results      []string   // over the names of Dims and Ranges
	Where        []BoundSource
}

// A BoundSource says that Expr, as written, lies in In.
type BoundSource struct {
	Expr string
	In   Interval
}

// A Composition is a sequence of maps to be applied one after the other. It
// composes and simplifies them in one pass, with a ring of its own that it empties
// before every run; after the first run it allocates nothing. It serves
// benchmarks of composition, and code generators that compose the same maps
// again and again.
//
// Every map is a stage: its schedule is run on the values that the stage before
// it computed, in the ring of the domain, where running it is simplifying.
type Composition struct {
	stages []stage
	vars   []Variable  // dimensions of the first map, ranges of all maps
	start  []domainVar // what is said about vars

	domain      *domain
	alternative *domain // the best one so far while other styles are tried
	vals        []lin   // by number: of vars, then of the steps of all stages
	written     []lin   // memory of literally
	results     []lin
	costs       []int32 // of the results, as they are written
	best        []lin   // results of alternative
	bestCosts   []int32 // of those
	typed       []int   // operations of the results as they are written
	spared      bool    // not all bounds of dimensions are checked at first
	thorough    bool    // they are now
	fitting     fitting
	mixing      mixing
}

// A stage is one map of a composition.
type stage struct {
	dag
	schedule
	in      []Interval       // of its dimensions
	checked []bool           // which of those say something; see findChecked
	ins     []int32          // values that they stand for
	ranges  int              // number of its ranges
	bounds  []scheduledBound // its constraints, in the order of the schedule
	where   []parsedBound    // the same, as written
	results []int32          // nodes
	outs    []int32          // values of the schedule
	rerun   int32            // the first step that knowledge of the domain can change
}

// NewComposition parses the maps. Dimensions of the composition are named d0.. and
// its ranges s0.., the first map's first. The error says which map and why.
func NewComposition(maps ...MapSource) (*Composition, error) {
	if len(maps) == 0 {
		return nil, errors.New("a composition needs a map")
	}
	c := &Composition{
		domain:      newDomain(NewRing()),
		alternative: newDomain(NewRing()),
	}
	for i, d := range maps {
		l, err := d.parse()
		if err != nil {
			return nil, fmt.Errorf("map %d: %w", i, err)
		}
		if i > 0 &&
			len(c.stages[i-1].results) != len(d.Dims) {
			const format = "map %d has %d dimensions, the map before it %d results"
			return nil, fmt.Errorf(
				format, i, len(d.Dims),
				len(c.stages[i-1].results),
			)
		}
		c.stages = append(c.stages, l)
	}
	c.declare(maps)
	c.link()
	c.findChecked()
	c.typed = c.typedCosts()
	return c, nil
}

// declare numbers the variables of the composition.
func (c *Composition) declare(maps []MapSource) {
	c.number("d", RoleDim, maps[0].Dims)
	for _, d := range maps {
		c.number("s", RoleRange, d.Ranges)
	}
}

// number appends variables of one role, named by stem and their place.
func (c *Composition) number(stem string, role Role, vs []Variable) {
	for _, v := range vs {
		n := len(c.vars)
		if role == RoleRange {
			n -= len(c.stages[0].in)
		}
		c.vars = append(c.vars, Variable{
			Name: stem + strconv.Itoa(n),
			Lo:   v.Lo,
			Hi:   v.Hi,
			Role: role,
		})
		in := Interval{v.Lo, v.Hi}
		c.start = append(
			c.start, domainVar{in: in, m: 1},
		)
	}
}

// parse makes a stage of d.
func (d MapSource) parse() (stage, error) {
	l := stage{ranges: len(d.Ranges)}
	p := &parser{}
	for _, v := range slices.Concat(d.Dims, d.Ranges) {
		if !p.declare(v.Name) {
			return l, fmt.Errorf("variable %s is listed twice", v.Name)
		}
	}
	for _, v := range d.Dims {
		l.in = append(l.in, Interval{v.Lo, v.Hi})
	}
	for _, b := range d.Where {
		x, err := p.next(b.Expr)
		if err != nil {
			return l, err
		}
		l.where = append(l.where, parsedBound{x, b.In})
	}
	for _, text := range d.Results {
		x, err := p.next(text)
		if err != nil {
			return l, err
		}
		l.results = append(l.results, x)
	}
	l.dag = p.dag
	l.makeSchedule()
	return l, nil
}

// A scheduledBound says that value val, which the first so many steps compute,
// lies in in.
type scheduledBound struct {
	val, steps int32
	in         Interval
}

// makeSchedule schedules the stage: what constraints need comes first, so that
// results are computed knowing what the constraints say.
func (l *stage) makeSchedule() {
	g := newScheduler(l.dag, len(l.in)+l.ranges)
	for _, b := range l.where {
		g.scheduleTo(b.x + 1)
		val := g.value(b.x)
		steps := int32(len(g.steps))
		l.bounds = append(
			l.bounds, scheduledBound{val, steps, b.in},
		)
	}
	g.scheduleTo(int32(len(l.nodes)))
	for _, x := range l.results {
		l.outs = append(l.outs, g.value(x))
	}
	l.schedule = g.schedule
	for int(l.rerun) < len(l.steps) &&
		l.steps[l.rerun].at >= 0 {
		l.rerun++
	}
}

// link numbers the values of all stages together: the variables of the composition
// first, then the steps of stage after stage. The dimensions of a stage are values of
// the one before it.
func (c *Composition) link() {
	n := int32(len(c.vars))
	at := int32(len(c.stages[0].in))
	var ins []int32
	for i := range at {
		ins = append(ins, i)
	}
	for i := range c.stages {
		l := &c.stages[i]
		l.ins = ins
		numbers := slices.Clone(ins)
		for range l.ranges {
			numbers = append(numbers, at)
			at++
		}
		for j := range l.steps {
			numbers = append(numbers, n+int32(j))
		}
		l.renumber(numbers)
		n += int32(len(l.steps))
		ins = l.outs
	}
	c.vals = make([]lin, n)
}

// renumber gives value i of the stage the number numbers[i].
func (l *stage) renumber(numbers []int32) {
	if len(l.steps) > 0 {
		l.first = numbers[l.vars]
	}
	for i := range l.steps {
		s := &l.steps[i]
		if s.at < 0 {
			s.x = numbers[s.x]
		}
		if s.at < 0 && s.y >= 0 {
			s.y = numbers[s.y]
		}
	}
	for i := range l.terms {
		l.terms[i].val = numbers[l.terms[i].val]
	}
	for i := range l.bounds {
		l.bounds[i].val = numbers[l.bounds[i].val]
	}
	for i := range l.outs {
		l.outs[i] = numbers[l.outs[i]]
	}
}

// next parses one more text into the same DAG.
func (p *parser) next(text string) (x int32, err error) {
	p.text = text
	p.at, p.depth = 0, 0
	err = p.parseAll(func() { x = p.sum() })
	return x, err
}

// Solve simplifies the composition and chooses how its results are written; it
// returns the number of operations that takes. Results that stay long and could
// do with other residues are computed in other styles, and the shortest are
// kept.
func (c *Composition) Solve() (ops int) {
	c.thorough = false
	ops = c.solve(firstStyle)
	if c.settled() {
		return c.keepTyped(ops)
	}
	if c.spared && c.mayBind() {
		c.thorough = true
		ops = c.solve(firstStyle)
	}
	ops = c.solveInStyles(ops)
	if ops >= alwaysMixedResult ||
		ops >= mixedResult && c.domain.r.unsettled {
		ops = c.mix(ops)
	}
	if ops >= c.fittedResult() {
		ops = c.fit(ops)
	}
	return c.keepTyped(ops)
}

// settled reports whether nothing shorter is to be expected for any result.
func (c *Composition) settled() bool {
	for i, x := range c.results {
		if c.costs[i] > 0 && !c.domain.r.settled(x) {
			return false
		}
	}
	return true
}

// mayBind reports whether a bound that was not checked does not follow from the normal
// form of the dimension.
func (c *Composition) mayBind() bool {
	for i := 1; i < len(c.stages) && !c.domain.empty; i++ {
		l := &c.stages[i]
		for j, in := range l.in {
			x := c.vals[l.ins[j]]
			if !l.checked[j] && !in.Covers(c.domain.r.sharpRange(x)) {
				return true
			}
		}
	}
	return false
}

// fittedResult is the number of operations from which results are compared with
// shorter sums at the points of the domain: fewer where constraints cut the domain.
func (c *Composition) fittedResult() int {
	facts := &c.domain.r.facts
	if len(facts.sums)+len(facts.congr) > 0 {
		return 1
	}
	return 3
}

// fit puts shorter sums for results that equal them at every point of the domain; it
// returns the number of operations of all.
//
// It comes last, because it finds what the styles leave, and because comparing with
// points takes longer than a rule does: only results that still have quotients, and
// three operations, are worth it.
func (c *Composition) fit(ops int) int {
	if c.domain.empty {
		return ops
	}
	f := &c.fitting
	f.use(c.domain)
	f.steps = maxFitSteps
	if facts := &c.domain.r.facts; len(facts.sums)+len(facts.congr) > 0 {
		f.steps *= 8
	}
	fitted := false
	for i, x := range c.results {
		if c.costs[i] == 0 || c.domain.r.settled(x) {
			continue
		}
		if y, ok := f.shorter(x, maxFitDepth); ok {
			c.results[i] = y
			fitted = true
		}
	}
	if !fitted {
		return ops
	}
	return c.extract()
}

// solveInStyles is Solve but for the comparison with what was written. The first
// style suits most chains. The others differ in which multiple of a divisor is
// taken out of a coefficient, in how halves are rounded, in whether remainders are
// kept in one piece, and in whether a quotient of a sum is remembered; none of them
// is the best for all chains, and which one is shows only in the operations.
func (c *Composition) solveInStyles(ops int) int {
	others := [...]style{
		{residue: residuePositive, ceilings: true, free: true, loose: true},
		{residue: residueNearest, ceilings: true, free: true, loose: true},
		{residue: residuePositive, ceilings: true, spread: true, loose: true},
		{residue: residueNearest, ceilings: true, spread: true, loose: true},
	}
	for _, style := range others {
		if ops < longResult || !c.domain.r.unsettled {
			return ops
		}
		if ops < veryLongResult && !c.hasLargeResidues() {
			return ops
		}
		c.exchange()
		if n := c.solve(style); n < ops {
			ops = n
		} else {
			c.exchange()
		}
	}
	return ops
}

// firstStyle is tried first.
var firstStyle = style{residue: residueSigned, ceilings: true, free: true, loose: true}

// exchange makes the alternative the domain and the other way round.
func (c *Composition) exchange() {
	c.domain, c.alternative = c.alternative, c.domain
	c.results, c.best = c.best, c.results
	c.costs, c.bestCosts = c.bestCosts, c.costs
}

// longResult is the number of operations from which other styles are tried where
// that is likely to help, veryLongResult where it may.
const (
	longResult     = 9
	veryLongResult = 12
)

// solve simplifies in one style.
func (c *Composition) solve(s style) int {
	c.domain.r.style = s
	c.Simplify()
	return c.extract()
}

// mixedResult is the number of operations from which operations are tried as they are
// written, one by one, where another style would have made another residue, and
// alwaysMixedResult the number from which they are anyway.
const (
	mixedResult       = 3
	alwaysMixedResult = 6
)

// mix runs the maps once more on the variables as the domain knows them, and takes of
// every division and of every sum the cheapest of its normal form and of what is
// written over the cheapest operands; it returns the number of operations of all.
// The normal form takes quotients and remainders apart, and extraction does not put
// all of them together again: ⌊(3 − x)/8⌋ mod 8 is shorter than the 7 less a remainder
// that the sign rule makes of it, and a digit of a sum is shorter as a digit than as
// the difference of two quotients, one of which has been merged with a third.
//
// The values of both kinds are equal on the domain, so that any choice among them is
// right. As the domain has been worked out, the constraints of the maps are not looked
// at again.
func (c *Composition) mix(ops int) int {
	d := c.domain
	if d.empty || d.r.err != nil {
		return ops
	}
	m := &c.mixing
	m.r = d.r
	c.applyTo(m)
	mixed := false
	for i, x := range m.results {
		if d.r.minCost(x) < c.costs[i] {
			c.results[i] = x
			mixed = true
		}
	}
	if !mixed {
		return ops
	}
	return c.extract()
}

// applyTo runs all stages on m.
func (c *Composition) applyTo(m *mixing) {
	m.start(len(c.vals))
	for i := range c.vars {
		m.set(i, c.domain.value(i))
	}
	for i := range c.stages {
		l := &c.stages[i]
		for j := range l.steps {
			m.step(&l.schedule, j)
		}
	}
	m.results = m.results[:0]
	for _, x := range c.lastStage().outs {
		m.results = append(m.results, m.best[x])
	}
}

// A mixing computes the values of schedules twice: in normal form, and in the
// cheapest form found.
type mixing struct {
	// The ring of the domain.
	r *Ring
	// Values by number: in normal form, and in the cheapest form found. Both have the
	// same value at every point of the domain.
	vals, best []lin
	// The results of the last stage, in the cheapest form.
	results []lin
}

// start makes room for n values.
func (m *mixing) start(n int) {
	if len(m.vals) < n {
		m.vals = make([]lin, n)
		m.best = make([]lin, n)
	}
}

// set enters a value that has one form.
func (m *mixing) set(i int, x lin) {
	m.vals[i] = x
	m.best[i] = x
}

// step computes step j of a schedule: its normal form over normal forms; the same over
// the cheapest forms, when those are others; and a division as it is written, over
// both. Atoms that stand for what is written are opaque to the rules of division, but
// have a range.
func (m *mixing) step(t *schedule, j int) {
	r := m.r
	s := &t.steps[j]
	at := t.first + int32(j)
	t.run(
		r,
		m.vals,
		int32(j),
		int32(j)+1,
	)
	x := m.vals[at]
	cost := r.minCost(x)
	offer := func(y lin) {
		if n := r.minCost(y); n < cost {
			x, cost = y, n
		}
	}
	if cost >= opCost {
		if m.mixed(t, s) {
			t.run(
				r,
				m.best,
				int32(j),
				int32(j)+1,
			)
			offer(m.best[at])
		}
		if s.at < 0 && s.y < 0 {
			kind := atomFloorDiv
			if s.kind == nodeMod {
				kind = atomMod
			}
			offer(r.merged(kind, m.best[s.x], s.c))
			if !m.best[s.x].equal(m.vals[s.x]) {
				offer(r.merged(kind, m.vals[s.x], s.c))
			}
		}
	}
	m.best[at] = x
}

// merged is literally where two remainders, or two quotients, in a row are one:
// (x mod a·m) mod m = x mod m, and ⌊⌊x/n⌋/m⌋ = ⌊x/(n·m)⌋. The rules that know this
// see quotients in normal form only.
func (r *Ring) merged(kind atomKind, x lin, d int64) lin {
	if kind == atomMod {
		x = r.reduced(x, d)
	}
	if len(x.t) == 1 &&
		x.t[0].k == 1 && x.c == 0 {
		a := &r.atoms[x.t[0].a]
		dd, ok := mulInt(a.d, d)
		switch {
		case kind == atomMod &&
			a.kind == atomMod && a.d%d == 0:
			return r.literally(
				kind,
				r.lin(a.y),
				d,
			)
		case kind == atomFloorDiv && a.kind == atomFloorDiv && ok:
			return r.literally(
				kind,
				r.lin(a.y),
				dd,
			)
		}
	}
	return r.literally(kind, x, d)
}

// mixed reports whether an operand of the step has a cheaper form.
func (m *mixing) mixed(t *schedule, s *scheduleStep) bool {
	differs := func(i int32) bool { return !m.best[i].equal(m.vals[i]) }
	if s.at < 0 {
		return differs(s.x) ||
			s.y >= 0 && differs(s.y)
	}
	for _, u := range t.terms[s.at:s.end] {
		if differs(u.val) {
			return true
		}
	}
	return false
}

// keepTyped puts the results as they are written, over the narrowed variables, for
// those that simplifying made longer; it returns the number of operations of all.
//
// A chain is never longer than it was written: the guarantee costs a comparison of
// counts for nearly all chains, as composing the texts makes them long.
func (c *Composition) keepTyped(ops int) int {
	r := c.domain.r
	if c.domain.empty || !c.longerThanTyped() {
		return ops
	}
	was := r.style
	r.style = style{literal: true}
	typed := c.literally()
	r.style = was
	for i, x := range typed {
		if r.minCost(x) < c.costs[i] {
			c.results[i] = x
		}
	}
	return c.extract()
}

// longerThanTyped reports whether a result takes more operations than were written.
func (c *Composition) longerThanTyped() bool {
	for i, cost := range c.costs {
		if operations(cost) > c.typed[i] {
			return true
		}
	}
	return false
}

// operations is the number of operations that a cost stands for.
func operations(cost int32) int {
	return int(cost+opCost-1) / opCost
}

// literally runs the maps in a ring whose style is literal: on the variables as the
// domain knows them, without the constraints, which have said all they can.
func (c *Composition) literally() []lin {
	d := c.domain
	for i := range c.vars {
		c.vals[i] = d.value(i)
	}
	for i := range c.stages {
		l := &c.stages[i]
		end := int32(len(l.steps))
		l.schedule.run(d.r, c.vals, 0, end)
	}
	c.written = c.gather(c.written)
	return c.written
}

// gather puts the values of the results in out.
func (c *Composition) gather(out []lin) []lin {
	out = out[:0]
	for _, x := range c.lastStage().outs {
		out = append(out, c.vals[x])
	}
	return out
}

// A typedCost is the number of operations of a value as it is written; c is the
// constant summand of a sum, which a sum around it merges with its own.
type typedCost struct {
	ops int
	c   int64
	sum bool // a sum, whose sign may be free
}

// findChecked finds the dimensions whose bounds say something: interval arithmetic does
// not show that the values of the stage before are in them. The others are constraints
// only where results do not get short without them: a bound that interval arithmetic
// shows may not follow from the normal form, and then it bounds other sums, too.
func (c *Composition) findChecked() {
	vals := make([]Interval, len(c.vals))
	for i, v := range c.vars {
		vals[i] = Interval{v.Lo, v.Hi}
	}
	for i := range c.stages {
		l := &c.stages[i]
		for j, in := range l.in {
			v := l.ins[j]
			says := !in.Covers(vals[v]) || in.Lo == in.Hi
			l.checked = append(l.checked, says)
			c.spared = c.spared || !says && int(v) >= len(c.vars)
			vals[v] = vals[v].Meet(in)
		}
		for j := range l.steps {
			vals[l.first+int32(j)] = l.stepRange(&l.steps[j], vals)
		}
	}
}

// stepRange bounds the value of one step by those before it.
func (t *schedule) stepRange(s *scheduleStep, vals []Interval) Interval {
	switch {
	case s.at >= 0:
		in := Interval{s.c, s.c}
		for _, u := range t.terms[s.at:s.end] {
			in = in.Add(vals[u.val].Scale(u.k))
		}
		return in
	case s.y >= 0 || s.c <= 0:
		return Unbounded()
	case s.kind == nodeMod:
		if in := vals[s.x]; in.Lo >= 0 && in.Hi < s.c {
			return in
		}
		return Interval{0, s.c - 1}
	}
	return vals[s.x].Div(s.c)
}

// typedCosts counts the operations of the results as they are written, each as a
// tree of its own, up to maxCost.
func (c *Composition) typedCosts() (out []int) {
	costs := make([]typedCost, len(c.vals))
	for i := range c.stages {
		l := &c.stages[i]
		for j := range l.steps {
			n := l.stepCost(&l.steps[j], costs)
			n.ops = min(n.ops, maxCost)
			costs[l.first+int32(j)] = n
		}
	}
	for _, x := range c.lastStage().outs {
		out = append(out, costs[x].ops)
	}
	return out
}

// stepCost is the number of operations of one step and its operands.
//
// A sum takes an operation between any two of its terms, and one for each
// coefficient other than ±1; a factor common to all terms is not looked for, so
// that the count may be too high, and what was written is then tried for nothing.
func (t *schedule) stepCost(s *scheduleStep, costs []typedCost) (n typedCost) {
	switch {
	case s.at >= 0:
		return t.sumStepCost(s, costs)
	case s.y < 0:
		n.ops = costs[s.x].ops + 1
		return n
	}
	n.ops = costs[s.x].ops + costs[s.y].ops + 1
	return n
}

// sumStepCost is stepCost of a sum.
func (t *schedule) sumStepCost(s *scheduleStep, costs []typedCost) (n typedCost) {
	n.c, n.sum = s.c, true
	for _, u := range t.terms[s.at:s.end] {
		x := costs[u.val]
		n.ops += x.ops + 1
		switch {
		case u.k != 1 && u.k != -1:
			n.ops++
		case x.c != 0: // goes to the constant of the sum
			n.ops--
			n.c += u.k * x.c
		}
	}
	if n.c == 0 {
		n.ops--
	}
	signed := func(u scheduleTerm) bool { return u.k != -1 || costs[u.val].sum }
	if n.c <= 0 && !slices.ContainsFunc(t.terms[s.at:s.end], signed) {
		n.ops++ // a lone negation
	}
	n.ops = max(n.ops, 0)
	return n
}

// Simplify composes the maps and simplifies the result over its domain.
func (c *Composition) Simplify() {
	d := c.domain
	d.restart(c.start)
	for range maxPasses + 1 {
		c.pass()
		if d.empty || !d.changed {
			break
		}
	}
	if d.empty { // without points every result is 0
		n := len(c.lastStage().outs)
		c.results = append(
			c.results[:0], make([]lin, n)...,
		)
	}
	d.dropImplied()
}

// lastStage is the stage whose results are those of the composition.
func (c *Composition) lastStage() *stage {
	return &c.stages[len(c.stages)-1]
}

// pass applies the maps to the variables as they are known.
func (c *Composition) pass() {
	d := c.domain
	d.beginPass()
	at := len(c.stages[0].in)
	for i := range at {
		c.vals[i] = d.value(i)
	}
	for i := range c.stages {
		l := &c.stages[i]
		if i > 0 {
			c.bound(l)
		}
		for range l.ranges {
			c.vals[at] = d.value(at)
			at++
		}
		if c.apply(l); d.empty {
			return
		}
	}
	c.results = c.gather(c.results)
}

// bound constrains the dimensions of a stage that is not the first.
func (c *Composition) bound(l *stage) {
	for j, in := range l.in {
		if !l.checked[j] && !c.thorough {
			continue
		}
		v := &c.vals[l.ins[j]]
		c.domain.constrain(*v, in)
		if in.Lo == in.Hi { // whatever it is written as
			*v = constForm(in.Lo)
		}
	}
}

// apply runs one stage, its constraints first; when they tell something, the
// steps that it may change are run again.
func (c *Composition) apply(l *stage) {
	d, vals := c.domain, c.vals
	done := int32(0)
	known := d.r.facts.version
	for _, b := range l.bounds {
		l.schedule.run(d.r, vals, done, b.steps)
		done = max(done, b.steps)
		d.constrain(vals[b.val], b.in)
	}
	if d.r.facts.version != known {
		done = min(done, l.rerun)
	}
	l.schedule.run(
		d.r, vals, done, int32(len(l.steps)),
	)
}

// empty reports whether the domain was proved empty.
func (c *Composition) empty() bool { return c.domain.empty }

// Err is the error of the composition's ring: an overflow, a bad divisor.
func (c *Composition) Err() error { return c.domain.r.err }

// Ranges lists what the dimensions and ranges of the composition are narrowed to.
func (c *Composition) Ranges() []Interval {
	out := make([]Interval, len(c.vars))
	for i, v := range c.domain.vars {
		out[i] = v.in
	}
	return out
}

// Constraints counts the constraints that are left beside the ranges.
func (c *Composition) Constraints() int {
	facts := &c.domain.r.facts
	n := len(c.domain.eqs) +
		len(facts.sums) + len(facts.congr)
	for _, v := range c.domain.vars {
		if v.m > 1 {
			n++
		}
	}
	return n
}

// extract chooses how the results are written and returns the number of
// operations that takes.
func (c *Composition) extract() (ops int) {
	r := c.domain.r
	c.costs = c.costs[:0]
	for _, x := range c.results {
		cost := r.minCost(x)
		c.costs = append(c.costs, cost)
		ops += operations(cost)
	}
	return ops
}

// Compile compiles the results for evaluation at values of the dimensions, then
// the ranges, of the composition. The Evaluator does not change with the next run
// of the composition.
func (c *Composition) Compile() *Evaluator {
	k := &compiler{
		r:    c.domain.r,
		code: &Evaluator{vars: len(c.vars), slots: len(c.vars)},
		slot: map[int32]int32{},
	}
	for i := range c.vars {
		k.slot[int32(i)] = int32(i)
	}
	for _, x := range c.results {
		if err := k.atoms(x); err != nil {
			panic(err) // every variable has a slot
		}
		k.code.outs = append(k.code.outs, k.sum(x))
	}
	return k.code
}

// hasLargeResidues reports whether a dividend of the results, as they are written,
// has a coefficient that could be nearer to zero.
func (c *Composition) hasLargeResidues() bool {
	r, budget := c.domain.r, maxInspectedDividends
	for _, x := range c.results {
		if r.hasLargeResidues(r.form(x), &budget) {
			return true
		}
	}
	return false
}

// maxInspectedDividends bounds the dividends that are inspected; past it the
// answer is yes.
const maxInspectedDividends = 50

// hasLargeResidues inspects the dividends in form y, at any depth.
func (r *Ring) hasLargeResidues(y int32, budget *int) bool {
	x, _ := r.cheapest(y)
	for _, t := range x.t {
		a := r.atoms[t.a]
		switch a.kind {
		case atomDiv, atomFloorDiv, atomMod:
		default:
			continue
		}
		if *budget--; *budget < 0 {
			return true
		}
		z, _ := r.cheapest(a.y)
		for _, u := range z.t {
			if u.k < 0 || u.k > a.d-u.k {
				return true
			}
		}
		if r.hasLargeResidues(a.y, budget) {
			return true
		}
	}
	return false
}

// Texts writes the results, in the form that Extract chose.
func (c *Composition) Texts() []string {
	r := c.domain.r
	r.vars = append(r.vars[:0], c.vars...)
	out := make([]string, len(c.results))
	for i, x := range c.results {
		w := writer{r: r, quotientsAsWritten: true}
		w.form(r.form(x), precSum)
		out[i] = w.String()
	}
	return out
}

// ISL writes the maps as isl_pw_multi_aff texts, one a map, so that isl can be
// asked the same question. Ranges of later maps are passed through the earlier
// ones as p0, p1, …, because isl composes functions of one tuple.
func (c *Composition) ISL() []string {
	pending := 0
	for _, l := range c.stages {
		pending += l.ranges
	}
	var out []string
	at := len(c.stages[0].in) // in c.vars: the map's own ranges, then those pending
	for i := range c.stages {
		l := &c.stages[i]
		pending -= l.ranges
		own := c.vars[at : at+l.ranges]
		later := c.vars[at+l.ranges:]
		at += l.ranges
		pass := numbered("p", pending)
		where := l.box(own)
		for j, v := range later {
			if i == 0 {
				where = append(
					where, between(v.Lo, pass[j], v.Hi),
				)
			}
		}
		text := l.texts(islSyntax)
		for _, b := range l.where {
			bound := between(b.in.Lo, text[b.x], b.in.Hi)
			where = append(where, bound)
		}
		var results []string
		for _, x := range l.results {
			results = append(results, text[x])
		}
		from := strings.Join(
			append(l.names(), pass...), ",",
		)
		to := strings.Join(append(results, pass...), ",")
		condition := strings.Join(where, " and ")
		out = append(
			out, fmt.Sprintf("{ [%s] -> [%s] : %s }", from, to, condition),
		)
	}
	return out
}

// An MLIRMap is a map of a composition as MLIR's affine_map texts.
type MLIRMap struct {
	Map    string     // its results
	Vars   []Interval // of its dimensions, then its symbols
	Where  string     // the constrained expressions as results
	Bounds []Interval // of those
}

// MLIR writes the maps as affine_map texts, ranges being symbols.
func (c *Composition) MLIR() []MLIRMap {
	var out []MLIRMap
	at := len(c.stages[0].in)
	for i := range c.stages {
		l := &c.stages[i]
		m := MLIRMap{
			Vars: append([]Interval(nil), l.in...),
		}
		for _, v := range c.vars[at : at+l.ranges] {
			m.Vars = append(m.Vars, Interval{v.Lo, v.Hi})
		}
		at += l.ranges
		text := l.texts(mlirSyntax)
		var results, where []string
		for _, x := range l.results {
			results = append(results, text[x])
		}
		for _, b := range l.where {
			where = append(where, text[b.x])
			m.Bounds = append(m.Bounds, b.in)
		}
		head := fmt.Sprintf(
			"affine_map<(%s)[%s] -> ",
			strings.Join(numbered("d", len(l.in)), ", "),
			strings.Join(numbered("s", l.ranges), ", "),
		)
		m.Map = head + "(" + strings.Join(results, ", ") + ")>"
		m.Where = head + "(" + strings.Join(where, ", ") + ")>"
		out = append(out, m)
	}
	return out
}

// numbered are n names, stem and a number from 0 on.
func numbered(stem string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", stem, i)
	}
	return names
}

// between writes a bound of x.
func between(lo int64, x string, hi int64) string {
	return fmt.Sprintf("%d <= %s <= %d", lo, x, hi)
}

// names are those of the stage's dimensions and ranges, d0.. and s0...
func (l *stage) names() []string {
	dims := numbered("d", len(l.in))
	return append(dims, numbered("s", l.ranges)...)
}

// box states the bounds of the stage's variables.
func (l *stage) box(ranges []Variable) (out []string) {
	for i, name := range l.names() {
		if i < len(l.in) {
			out = append(
				out,
				between(l.in[i].Lo, name, l.in[i].Hi),
			)
		} else {
			v := ranges[i-len(l.in)]
			out = append(out, between(v.Lo, name, v.Hi))
		}
	}
	return out
}

// A syntax is how another program writes the operations of a DAG: %[1]s and
// %[2]s are the operands.
type syntax map[nodeKind]string

// The syntaxes of isl and of MLIR.
var (
	islSyntax = syntax{
		nodeAdd: "(%[1]s + %[2]s)", nodeSub: "(%[1]s - %[2]s)", nodeMul: "(%[1]s * %[2]s)",
		nodeDiv: "floor((%[1]s)/%[2]s)", nodeCeilDiv: "ceil((%[1]s)/%[2]s)", nodeMod: "((%[1]s) mod %[2]s)",
		nodeMin: "min(%[1]s, %[2]s)", nodeMax: "max(%[1]s, %[2]s)",
	}
	mlirSyntax = syntax{
		nodeAdd: "(%[1]s + %[2]s)", nodeSub: "(%[1]s - %[2]s)", nodeMul: "(%[1]s * %[2]s)",
		nodeDiv: "(%[1]s floordiv %[2]s)", nodeCeilDiv: "(%[1]s ceildiv %[2]s)", nodeMod: "(%[1]s mod %[2]s)",
		nodeMin: "min(%[1]s, %[2]s)", nodeMax: "max(%[1]s, %[2]s)",
	}
)

// texts writes every node of the stage.
func (l *stage) texts(s syntax) []string {
	names := l.names()
	out := make([]string, len(l.nodes))
	for i, op := range l.nodes {
		switch op.kind {
		case nodeConst:
			out[i] = fmt.Sprint(op.c)
		case nodeVar:
			out[i] = names[op.c]
		default:
			out[i] = fmt.Sprintf(
				s[op.kind],
				out[op.x],
				out[op.y],
			)
		}
	}
	return out
}
