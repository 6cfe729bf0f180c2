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
	Results      []string
	Where        []BoundSource
}

// A BoundSource says that Expr, as written, lies in In.
type BoundSource struct {
	Expr string
	In   Interval
}

// A Composition is maps to be applied one after the other. It composes and simplifies
// them in one pass, with a ring of its own that it empties before every run;
// after the first run it allocates nothing.
type Composition struct {
	stages      []stage
	vars        []Variable // dimensions of the first map, ranges of all maps
	start       []domainVar
	domain      *domain
	alternative *domain // the best one so far while others are tried
	vals        []lin   // of the tape that runs, its variables first
	next        []lin   // the same of the tape after it
	results     []lin
	best        []lin // results of spare
}

// A stage is one map of a chain.
type stage struct {
	dag
	schedule
	in      []Interval // of its dimensions
	ranges  int
	bounds  []scheduledBound
	where   []parsedBound
	results []int32 // operations
	outs    []int32 // values of the tape
	rerun   int32   // the first step that knowledge of the domain can change
}

// NewComposition parses the maps. Dimensions of the composition are named d0.. and
// its ranges s0.., the first map's first. The error says which map and why.
func NewComposition(maps ...MapSource) (*Composition, error) {
	if len(maps) == 0 {
		return nil, errors.New("a chain needs a map")
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
			return nil, fmt.Errorf("map %d has %d dimensions, the map before it %d results",
				i, len(d.Dims), len(c.stages[i-1].results))
		}
		c.stages = append(c.stages, l)
		n := max(len(c.vals), l.values(), len(l.outs))
		c.vals = make([]lin, n)
		c.next = make([]lin, n)
	}
	c.declare(maps)
	return c, nil
}

func (c *Composition) declare(maps []MapSource) {
	for i, d := range maps {
		if i == 0 {
			c.number("d", RoleDim, d.Dims)
		}
	}
	for _, d := range maps {
		c.number("s", RoleRange, d.Ranges)
	}
}

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
		c.start = append(c.start, domainVar{
			in: Interval{v.Lo, v.Hi},
			m:  1,
		})
	}
}

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

// A scheduledBound says that value val, which is there after so many steps, lies in in.
type scheduledBound struct {
	val, steps int32
	in         Interval
}

// makeSchedule makes the tape: what constraints need first.
func (l *stage) makeSchedule() {
	g := newScheduler(l.dag, len(l.in)+l.ranges)
	for _, b := range l.where {
		g.scheduleTo(b.x + 1)
		val := g.value(b.x)
		l.bounds = append(l.bounds, scheduledBound{
			val, int32(len(g.steps)), b.in,
		})
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

// values is the number of values of the link's tape.
func (l *stage) values() int {
	return int(l.vars) + len(l.steps)
}

// next parses one more text into the same script.
func (p *parser) next(text string) (x int32, err error) {
	p.text = text
	p.at = 0
	p.depth = 0
	err = p.parseAll(func() { x = p.sum() })
	return x, err
}

// Solve simplifies the chain and chooses how its results are written; it
// returns the number of operations that takes. Results that stay long and could
// do with other residues are tried in other styles, and the shortest are kept.
func (c *Composition) Solve() (ops int) {
	ops = c.solve(style{residueSigned, true})
	for _, style := range [...]style{{residuePositive, true}, {residueNearest, true}, {}} {
		if ops < longResult || !c.domain.r.unsettled ||
			ops < veryLongResult && !c.hasLargeResidues() {
			return ops
		}
		c.domain, c.alternative = c.alternative, c.domain
		c.results, c.best = c.best, c.results
		if n := c.solve(style); n < ops {
			ops = n
		} else {
			c.domain, c.alternative = c.alternative, c.domain
			c.results, c.best = c.best, c.results
		}
	}
	return ops
}

// longResult is the number of operations from which other styles are tried where
// that is likely to help, veryLongResult where it may.
const (
	longResult     = 9
	veryLongResult = 12
)

func (c *Composition) solve(s style) int {
	c.domain.r.style = s
	c.Simplify()
	return c.Extract()
}

// Simplify composes the chain and simplifies it over its domain.
func (c *Composition) Simplify() {
	d := c.domain
	d.restart(c.start)
	for left := maxPasses; ; left-- {
		c.pass()
		if d.empty || !d.changed || left == 0 {
			break
		}
	}
	if d.empty { // where there is nothing, everything is 0
		c.results = append(
			c.results[:0],
			make([]lin, len(
				c.stages[len(c.stages)-1].outs,
			))...,
		)
	}
	d.dropImplied()
}

// pass applies the maps to the variables as they are known.
func (c *Composition) pass() {
	d := c.domain
	d.beginPass()
	vals, next := c.vals, c.next
	at := len(c.stages[0].in)
	for i := range at {
		vals[i] = d.value(i)
	}
	for i := range c.stages {
		l := &c.stages[i]
		if i > 0 {
			for j, in := range l.in {
				d.constrain(vals[j], in)
			}
		}
		for j := range l.ranges {
			vals[len(l.in)+j] = d.value(at)
			at++
		}
		if c.apply(l, vals); d.empty {
			return
		}
		for j, x := range l.outs {
			next[j] = vals[x]
		}
		vals, next = next, vals
	}
	c.results = append(
		c.results[:0],
		vals[:len(c.stages[len(c.stages)-1].outs)]...,
	)
}

// apply runs one map, its constraints first; when they tell something, what it
// may change is run again.
func (c *Composition) apply(l *stage, vals []lin) {
	d := c.domain
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

// Empty reports whether the domain was proved empty.
func (c *Composition) Empty() bool { return c.domain.empty }

// Err is the error of the chain's ring: an overflow, a bad divisor.
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
	n := len(c.domain.eqs) +
		len(c.domain.r.facts.sums) +
		len(c.domain.r.facts.congr)
	for _, v := range c.domain.vars {
		if v.m > 1 {
			n++
		}
	}
	return n
}

// Extract chooses how the results are written and returns the number of
// operations that takes.
func (c *Composition) Extract() (ops int) {
	r := c.domain.r
	for _, x := range c.results {
		if len(x.t) == 1 &&
			x.t[0].k == 1 &&
			x.c == 0 &&
			r.atoms[x.t[0].a].kind == atomVar {
			continue
		}
		ops += int(r.minCost(x)+opCost-1) / opCost
	}
	return ops
}

// Compile compiles the results for evaluation at values of the dimensions, then
// the ranges, of the composition.
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

// hasLargeResidues reports whether a dividend of the results, as they are written, has a
// coefficient that could be nearer to zero.
func (c *Composition) hasLargeResidues() bool {
	r, left := c.domain.r, maxInspectedDividends
	for _, x := range c.results {
		if r.hasLargeResidues(r.form(x), &left) {
			return true
		}
	}
	return false
}

// maxInspectedDividends bounds the dividends that are looked at.
const maxInspectedDividends = 50

func (r *Ring) hasLargeResidues(y int32, left *int) bool {
	x, _ := r.cheapest(y)
	for _, t := range x.t {
		a := r.atoms[t.a]
		if a.kind != atomDiv &&
			a.kind != atomFloorDiv && a.kind != atomMod {
			continue
		}
		if *left--; *left < 0 {
			return true
		}
		z, _ := r.cheapest(a.y)
		for _, u := range z.t {
			if u.k < 0 || u.k > a.d-u.k {
				return true
			}
		}
		if r.hasLargeResidues(a.y, left) {
			return true
		}
	}
	return false
}

// Texts writes the results.
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
// ones as p0, p1, …, for isl's composition has nothing else for them.
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
				where = append(where, between(v.Lo, pass[j], v.Hi))
			}
		}
		text := l.texts(islSyntax)
		for _, b := range l.where {
			where = append(
				where,
				between(b.in.Lo, text[b.x], b.in.Hi),
			)
		}
		var results []string
		for _, x := range l.results {
			results = append(results, text[x])
		}
		out = append(
			out,
			fmt.Sprintf("{ [%s] -> [%s] : %s }", strings.Join(append(l.names(), pass...), ","),
				strings.Join(append(results, pass...), ","), strings.Join(where, " and ")),
		)
	}
	return out
}

// An MLIRMap is a map of a chain as MLIR's affine_map texts.
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

func numbered(stem string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", stem, i)
	}
	return names
}

func between(lo int64, x string, hi int64) string {
	return fmt.Sprintf("%d <= %s <= %d", lo, x, hi)
}

// names are those of the link's dimensions and ranges, d0.. and s0...
func (l *stage) names() []string {
	return append(
		numbered("d", len(l.in)),
		numbered("s", l.ranges)...,
	)
}

// box states the bounds of the link's variables.
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

// A syntax is how another program writes the operations of a script: %[1]s and
// %[2]s are the operands.
type syntax map[nodeKind]string

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

// texts writes every value of the link's script.
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
