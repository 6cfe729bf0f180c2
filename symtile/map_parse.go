package symtile

import (
	"strings"
)

// ParseMap reads a map as Map.String prints it:
//
//	(d0, d1)[s0]{rt0} -> (d1, s0), domain: d0 in [0, 9], ..., d0 + s0 in [0, 5]
//
// or KNOWN EMPTY, or "unknown indexing". The first bound of a bare variable is
// its range, which it must have; what follows are constraints, with || between
// alternatives. The error is a *SyntaxError or the ring's.
func (r *Ring) ParseMap(text string) (Map, error) {
	switch strings.TrimSpace(text) {
	case "KNOWN EMPTY":
		return Map{State: Empty}, nil
	case "unknown indexing":
		return Map{State: Undefined}, nil
	}
	p := &mapParser{parser: parser{text: text, r: r, vars: map[string]Expr{}}}
	_, err := p.whole(p.parse)
	if err == nil {
		err = r.err
	}
	if err != nil {
		return Map{}, err
	}
	return p.m, nil
}

// ParseConstraint reads "a in [0, 0] && (b in [1, 2] || c in [3, 4])", "always
// satisfied" or "unsatisfiable" over vars.
func (r *Ring) ParseConstraint(text string, vars map[string]Expr) (Constraint, error) {
	p := &mapParser{parser: parser{text: text, r: r, vars: vars}}
	var c Constraint
	_, err := p.whole(func() Expr {
		c = p.disjunction()
		return Expr{}
	})
	if err == nil {
		err = r.err
	}
	return c, err
}

// disjunction reads c || c ..., each a conjunction.
func (p *mapParser) disjunction() Constraint {
	if p.depth++; p.depth > maxNesting {
		p.fail("more than %d nested parentheses", maxNesting)
	}
	defer func() { p.depth-- }()
	c := p.conjunction()
	for p.accept("||") {
		c = c.Or(p.conjunction())
		if len(c) > maxTerms {
			p.fail("constraint of more than %d clauses", maxTerms)
		}
	}
	return c
}

func (p *mapParser) conjunction() Constraint {
	c := p.atom()
	for p.accept("&&") {
		c = And(c, p.atom())
	}
	return c
}

// atom reads a bound or a constraint in parentheses. What an opening
// parenthesis begins shows only at the end, so the bound is tried first.
func (p *mapParser) atom() Constraint {
	if p.accept("always satisfied") {
		return nil
	}
	if p.accept("unsatisfiable") {
		return Never()
	}
	if p.peek() == '(' && p.groupsConstraint() {
		p.expect("(")
		c := p.disjunction()
		p.expect(")")
		return c
	}
	e := p.sum()
	p.expect("in")
	return Constraint{Clause{{e, p.interval()}}}
}

// groupsConstraint reports whether the parenthesis ahead encloses bounds: an
// "in" stands inside it.
func (p *mapParser) groupsConstraint() bool {
	end := p.closing()
	inside := p.text[p.at:end]
	return strings.Contains(inside, " in ") || strings.Contains(inside, "satis")
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

// A mapParser reads the lists of variables first, then the domain, and last
// the results, which need the ranges that the domain gives.
type mapParser struct {
	parser
	m      Map
	names  []string // dims, ranges, runtime
	roles  []Role
	places []int
	ranges map[string]Interval
}

func (p *mapParser) parse() Expr {
	p.ranges = map[string]Interval{}
	p.list('(', ')', RoleDim)
	p.list('[', ']', RoleRange)
	p.list('{', '}', RoleRuntime)
	p.expect("->")
	if p.peek() != '(' {
		p.fail("expected the results in parentheses")
	}
	results := p.at
	p.at = p.closing() + 1
	p.accept(",")
	var bounds []int
	if p.accept("domain:") {
		bounds = p.domainRanges()
	}
	end := p.at
	p.declare()
	p.at = results
	p.results()
	p.constraints(bounds)
	p.at = end
	return Expr{}
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
		p.peek()
		p.places = append(p.places, p.at)
		p.names = append(p.names, p.word())
		p.roles = append(p.roles, role)
		if !p.accept(",") && p.peek() != close {
			p.fail("expected %q or a comma", string(close))
		}
	}
	p.at++
}

// domainRanges reads the ranges and returns where the constraints begin.
func (p *mapParser) domainRanges() (bounds []int) {
	for p.peek() != 0 {
		from := p.at
		if !p.rangeOf() {
			bounds = append(bounds, from)
			p.at = p.itemEnd(from)
		}
		if !p.accept(",") {
			break
		}
	}
	return bounds
}

// rangeOf reads "name in [lo, hi]" when it is the first bound of a variable.
func (p *mapParser) rangeOf() bool {
	for _, name := range p.names {
		from := p.at
		if _, had := p.ranges[name]; !had && p.accept(name) && p.accept("in") {
			p.ranges[name] = p.interval()
			return true
		}
		p.at = from
	}
	return false
}

// itemEnd is the end of the constraint that begins at from: the next comma
// outside brackets.
func (p *mapParser) itemEnd(from int) int {
	depth := 0
	for i := from; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case c == ',' && depth == 0:
			return i
		}
	}
	return len(p.text)
}

// declare makes the variables. A range without values makes the map empty.
func (p *mapParser) declare() {
	for i, name := range p.names {
		in, ok := p.ranges[name]
		if !ok {
			p.at = p.places[i]
			p.fail("variable %s has no range in the domain", name)
		}
		if _, twice := p.vars[name]; twice {
			p.at = p.places[i]
			p.fail("variable %s is listed twice", name)
		}
		if in.Empty() {
			p.m.State, in = Empty, Interval{in.Lo, in.Lo}
		}
		e := p.r.Var(Variable{Name: name, Lo: in.Lo, Hi: in.Hi, Role: p.roles[i]})
		p.vars[name] = e
		switch p.roles[i] {
		case RoleDim:
			p.m.Dims = append(p.m.Dims, e)
		case RoleRange:
			p.m.Ranges = append(p.m.Ranges, e)
		default:
			p.m.Runtime = append(p.m.Runtime, e)
		}
	}
}

func (p *mapParser) results() {
	p.expect("(")
	for p.peek() != ')' {
		p.m.Results = append(p.m.Results, p.sum())
		if !p.accept(",") && p.peek() != ')' {
			p.fail("expected ) or a comma")
		}
	}
}

func (p *mapParser) constraints(bounds []int) {
	for _, at := range bounds {
		p.at = at
		p.m.Where = And(p.m.Where, p.disjunction())
		if end := p.itemEnd(at); p.peek() != 0 && p.at != end {
			p.fail("expected a comma or the end")
		}
	}
}
