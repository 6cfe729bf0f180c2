package index

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	maps    []link
	vars    []Variable // dimensions of the first map, ranges of all maps
	start   []domainVar
	domain  *domain
	spare   *domain // the best one so far while others are tried
	vals    []lin   // of the tape that runs, its variables first
	next    []lin   // the same of the tape after it
	results []lin
	best    []lin // results of spare
}

// A link is one map of a chain.
type link struct {
	script
	tape
	in      []Interval // of its dimensions
	ranges  int
	bounds  []tapeBound
	where   []writtenBound
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
		domain: newDomain(NewRing()),
		spare:  newDomain(NewRing()),
	}
	for i, d := range maps {
		l, err := d.parse()
		if err != nil {
			return nil, fmt.Errorf("map %d: %w", i, err)
		}
		if i > 0 &&
			len(c.maps[i-1].results) != len(d.Dims) {
			return nil, fmt.Errorf("map %d has %d dimensions, the map before it %d results",
				i, len(d.Dims), len(c.maps[i-1].results))
		}
		c.maps = append(c.maps, l)
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
			n -= len(c.maps[0].in)
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

func (d MapSource) parse() (link, error) {
	l := link{ranges: len(d.Ranges)}
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
		l.where = append(l.where, writtenBound{x, b.In})
	}
	for _, text := range d.Results {
		x, err := p.next(text)
		if err != nil {
			return l, err
		}
		l.results = append(l.results, x)
	}
	l.script = p.script
	l.gather()
	return l, nil
}

// A tapeBound says that value val, which is there after so many steps, lies in in.
type tapeBound struct {
	val, steps int32
	in         Interval
}

// gather makes the tape: what constraints need first.
func (l *link) gather() {
	g := gather(l.script, len(l.in)+l.ranges)
	for _, b := range l.where {
		g.upTo(b.x + 1)
		val := g.value(b.x)
		l.bounds = append(l.bounds, tapeBound{
			val, int32(len(g.steps)), b.in,
		})
	}
	g.upTo(int32(len(l.ops)))
	for _, x := range l.results {
		l.outs = append(l.outs, g.value(x))
	}
	l.tape = g.tape
	for int(l.rerun) < len(l.steps) &&
		l.steps[l.rerun].at >= 0 {
		l.rerun++
	}
}

// values is the number of values of the link's tape.
func (l *link) values() int {
	return int(l.vars) + len(l.steps)
}

// next parses one more text into the same script.
func (p *parser) next(text string) (x int32, err error) {
	p.text = text
	p.at = 0
	p.depth = 0
	err = p.whole(func() { x = p.sum() })
	return x, err
}

// Solve simplifies the chain and chooses how its results are written; it
// returns the number of operations that takes. Results that stay long and could
// do with other residues are tried in other styles, and the shortest are kept.
func (c *Composition) Solve() (ops int) {
	ops = c.solve(style{residueSigned, true})
	for _, style := range [...]style{{residuePositive, true}, {residueNearest, true}, {}} {
		if ops < longResult || !c.domain.r.unsettled ||
			ops < veryLong && !c.skewed() {
			return ops
		}
		c.domain, c.spare = c.spare, c.domain
		c.results, c.best = c.best, c.results
		if n := c.solve(style); n < ops {
			ops = n
		} else {
			c.domain, c.spare = c.spare, c.domain
			c.results, c.best = c.best, c.results
		}
	}
	return ops
}

// longResult is the number of operations from which other styles are tried where
// that is likely to help, veryLong where it may.
const (
	longResult = 9
	veryLong   = 12
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
				c.maps[len(c.maps)-1].outs,
			))...,
		)
	}
	d.dropImplied()
}

// pass applies the maps to the variables as they are known.
func (c *Composition) pass() {
	d := c.domain
	d.begin()
	vals, next := c.vals, c.next
	at := len(c.maps[0].in)
	for i := range at {
		vals[i] = d.value(i)
	}
	for i := range c.maps {
		l := &c.maps[i]
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
		vals[:len(c.maps[len(c.maps)-1].outs)]...,
	)
}

// apply runs one map, its constraints first; when they tell something, what it
// may change is run again.
func (c *Composition) apply(l *link, vals []lin) {
	d := c.domain
	done := int32(0)
	known := d.r.facts.learnt
	for _, b := range l.bounds {
		l.tape.run(d.r, vals, done, b.steps)
		done = max(done, b.steps)
		d.constrain(vals[b.val], b.in)
	}
	if d.r.facts.learnt != known {
		done = min(done, l.rerun)
	}
	l.tape.run(d.r, vals, done, int32(len(l.steps)))
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
		ops += int(r.leastCost(x)+opCost-1) / opCost
	}
	return ops
}

// skewed reports whether a dividend of the results, as they are written, has a
// coefficient that could be nearer to zero.
func (c *Composition) skewed() bool {
	r, left := c.domain.r, maxSkewed
	for _, x := range c.results {
		if r.skewed(r.form(x), &left) {
			return true
		}
	}
	return false
}

// maxSkewed bounds the dividends that are looked at.
const maxSkewed = 50

func (r *Ring) skewed(y int32, left *int) bool {
	x, _ := r.cheapest(y)
	for _, t := range x.t {
		a := r.atoms[t.a]
		if a.kind != atomDiv &&
			a.kind != atomRaw && a.kind != atomMod {
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
		if r.skewed(a.y, left) {
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
		w := writer{r: r, plain: true}
		w.form(r.form(x), precSum)
		out[i] = w.String()
	}
	return out
}
