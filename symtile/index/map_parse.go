package index

import (
	"slices"
	"strings"
)

// ParseMap reads a map as Map.String prints it:
//
//	(d0, d1)[s0]{rt0} -> (d1, s0), domain: d0 in [0, 9], ..., d0 + s0 in [0, 5]
//
// with ", replica id: s0" after it when it has one, or KNOWN EMPTY, or "unknown indexing". The first bound of a bare variable is
// its range, which it must have; what follows are constraints, with || between
// alternatives. The error is a *SyntaxError or the ring's.
func (r *Ring) ParseMap(text string) (Map, error) {
	switch strings.TrimSpace(text) {
	case "KNOWN EMPTY":
		return Map{State: StateEmpty}, nil
	case "unknown indexing":
		return Map{State: StateUndefined}, nil
	}
	p := &mapParser{parser: parser{text: text}}
	if err := p.whole(p.parse); err != nil {
		return Map{}, err
	}
	m := p.build(r)
	return m, r.err
}

// ParseConstraint reads "a in [0, 0] && (b in [1, 2] || c in [3, 4])", "always
// satisfied" or "unsatisfiable" over vars.
func (r *Ring) ParseConstraint(text string, vars map[string]Expr) (Constraint, error) {
	p := &mapParser{parser: parser{text: text}}
	env := p.declareAll(r, vars)
	var c written
	if err := p.whole(func() { c = p.disjunction() }); err != nil {
		return nil, err
	}
	vals := make([]lin, len(p.ops))
	p.run(r, env, vals, 0, int32(len(vals)))
	return c.build(r, vals), r.err
}

// written is a constraint as it is written, its expressions values of a script.
type written [][]writtenBound

type writtenBound struct {
	x  int32
	in Interval
}

func (w written) or(v written) (out written) {
	for _, x := range w {
		for _, y := range v {
			out = append(out, slices.Concat(x, y))
		}
	}
	return out
}

func (w written) build(r *Ring, vals []lin) (c Constraint) {
	for _, x := range w {
		clause := Clause{}
		for _, b := range x {
			clause = append(clause, Bound{
				r.wrap(vals[b.x]), b.in,
			})
		}
		c = append(c, clause)
	}
	return c
}

// disjunction reads c || c ..., each a conjunction.
func (p *mapParser) disjunction() (c written) {
	p.nested(func() {
		c = p.conjunction()
		for p.accept("||") {
			if c = c.or(p.conjunction()); len(c) > maxTerms {
				p.fail("constraint of more than %d clauses", maxTerms)
			}
		}
	})
	return c
}

func (p *mapParser) conjunction() written {
	c := p.atom()
	for p.accept("&&") {
		c = append(c, p.atom()...)
	}
	return c
}

// atom reads a bound or a constraint in parentheses.
func (p *mapParser) atom() written {
	if p.accept("always satisfied") {
		return nil
	}
	if p.accept("unsatisfiable") {
		return written{{}}
	}
	if p.peek() == '(' && p.groupsConstraint() {
		p.expect("(")
		c := p.disjunction()
		p.expect(")")
		return c
	}
	x := p.sum()
	p.expect("in")
	return written{{{x, p.interval()}}}
}

// groupsConstraint reports whether the parenthesis ahead encloses bounds: an
// "in" stands inside it.
func (p *mapParser) groupsConstraint() bool {
	end := p.closing()
	inside := p.text[p.at:end]
	return strings.Contains(inside, " in ") ||
		strings.Contains(inside, "satis")
}

// closing is the offset of the parenthesis that closes the one ahead.
func (p *mapParser) closing() int {
	depth := 0
	for i := p.at; i < len(p.text); i++ {
		switch p.text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	p.fail("this parenthesis is not closed")
	return 0
}

// A mapParser reads a map as it is written.
type mapParser struct {
	parser
	names   []string // dims, ranges, runtime
	roles   []Role
	places  []int
	ranges  map[string]Interval
	results []int32
	where   written

	replica    int32
	replicated bool
}

func (p *mapParser) parse() {
	p.ranges = map[string]Interval{}
	p.list('(', ')', RoleDim)
	p.list('[', ']', RoleRange)
	p.list('{', '}', RoleRuntime)
	p.expect("->")
	p.resultList()
	p.accept(",")
	if p.accept("domain:") {
		p.domain()
	}
	if p.accept("replica id:") {
		p.replica = p.sum()
		p.replicated = true
	}
	for i, name := range p.names {
		if _, ok := p.ranges[name]; !ok {
			p.at = p.places[i]
			p.fail("variable %s has no range in the domain", name)
		}
	}
}

// list reads names between brackets; only the first list must be there.
func (p *mapParser) list(open, close byte, role Role) {
	if p.peek() != open {
		if role == RoleDim {
			p.fail("expected the dimensions in parentheses")
		}
		return
	}
	p.at++
	for p.peek() != close {
		p.places = append(p.places, p.at)
		name := p.word()
		if !p.declare(name) {
			p.at = p.places[len(p.places)-1]
			p.fail("variable %s is listed twice", name)
		}
		p.names = append(p.names, name)
		p.roles = append(p.roles, role)
		if !p.accept(",") && p.peek() != close {
			p.fail("expected %q or a comma", string(close))
		}
	}
	p.at++
}

func (p *mapParser) resultList() {
	p.expect("(")
	for p.peek() != ')' {
		p.results = append(p.results, p.sum())
		if !p.accept(",") && p.peek() != ')' {
			p.fail("expected ) or a comma")
		}
	}
	p.at++
}

// domain reads the ranges and constraints.
func (p *mapParser) domain() {
	for p.peek() != 0 && !p.ahead("replica id:") {
		if !p.rangeOf() {
			p.where = append(p.where, p.disjunction()...)
		}
		if !p.accept(",") {
			return
		}
	}
}

func (p *mapParser) ahead(s string) bool {
	p.peek()
	return strings.HasPrefix(p.text[p.at:], s)
}

// rangeOf reads "name in [lo, hi]" when it is the first bound of a variable.
func (p *mapParser) rangeOf() bool {
	from := p.at
	for _, name := range p.names {
		_, had := p.ranges[name]
		if !had && p.accept(name) && p.accept("in") {
			p.ranges[name] = p.interval()
			return true
		}
		p.at = from
	}
	return false
}

// build makes the map in r. A range without values makes it empty.
func (p *mapParser) build(r *Ring) (m Map) {
	env := make([]lin, len(p.names))
	for i, name := range p.names {
		in := p.ranges[name]
		if in.Empty() {
			m.State = StateEmpty
			in.Hi = in.Lo
		}
		env[i] = r.variable(Variable{
			Name: name,
			Lo:   in.Lo,
			Hi:   in.Hi,
			Role: p.roles[i],
		})
		e := r.wrap(env[i])
		switch p.roles[i] {
		case RoleDim:
			m.Dims = append(m.Dims, e)
		case RoleRange:
			m.Ranges = append(m.Ranges, e)
		default:
			m.Runtime = append(m.Runtime, e)
		}
	}
	vals := make([]lin, len(p.ops))
	p.run(r, env, vals, 0, int32(len(vals)))
	for _, x := range p.results {
		m.Results = append(m.Results, r.wrap(vals[x]))
	}
	m.Where = p.where.build(r, vals)
	if p.replicated {
		m.Replica = r.wrap(vals[p.replica])
	}
	return m
}
