package index

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tilewright/tilewright/symtile/source"
)

// The grammar of expressions, constraints and maps, by recursive descent:
//
//	sum         = product { ("+" | "-") product }
//	product     = unary { ("*" | "floordiv" | "/" | "ceildiv" | "mod" | "%") unary }
//	unary       = { "-" } (number | primary)
//	primary     = "(" sum ")" | ("min" | "max") "(" sum "," sum ")" | name
//	bound       = sum "in" "[" number "," number "]"
//	conjunction = part { "&&" part }
//	part        = bound | "(" disjunction ")" | "always satisfied" | "unsatisfiable"
//	disjunction = conjunction { "||" conjunction }
//	map         = "(" names ")" [ "[" names "]" ] [ "{" names "}" ] "->" "(" sums ")"
//	              [ "," ] [ "domain:" bounds ] [ "replica id:" sum ]
//
// Parsing makes a DAG; the ring evaluates it when the whole text is read, so that
// a text that does not parse leaves no trace in the ring.

// A SyntaxError says where a text stops being an expression or a map; its column
// counts characters, not bytes.
type SyntaxError = source.Error

// Parse reads an expression over vars, by name, in the spelling String prints:
// + − * floordiv (or /) ceildiv mod (or %) min(,) max(,), with * and its like
// binding tighter than + and a sign tighter than both. Divisors may be
// expressions whose range is positive. The error is a *SyntaxError, or the
// ring's own when the expression cannot be built.
func (r *Ring) Parse(text string, vars map[string]Expr) (Expr, error) {
	p := &parser{text: text}
	env := p.declareAll(r, vars)
	var at int32
	if err := p.parseAll(func() { at = p.sum() }); err != nil {
		return Expr{}, err
	}
	vals := make([]lin, len(p.nodes))
	p.run(r, env, vals, 0, int32(len(vals)))
	return r.wrap(vals[at]), r.err
}

// declareAll makes the variables known to the parser, in the order of their
// names, and returns their forms.
func (p *parser) declareAll(r *Ring, vars map[string]Expr) []lin {
	var env []lin
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		p.declare(name)
		env = append(env, r.of(vars[name]))
	}
	return env
}

// maxNesting bounds the depth of parentheses, so that no text can exhaust the stack.
const maxNesting = 500

// A parser reads text into a DAG. Its methods panic with a *SyntaxError, which
// parseAll returns.
type parser struct {
	dag
	text  string
	at    int              // offset of what is read next
	depth int              // of parentheses
	vars  map[string]int32 // nodes by name
}

// declare gives the next variable a name, false when it is taken.
func (p *parser) declare(name string) bool {
	if p.vars == nil {
		p.vars = map[string]int32{}
	}
	if _, taken := p.vars[name]; taken {
		return false
	}
	p.vars[name] = p.add(node{
		kind: nodeVar,
		c:    int64(len(p.vars)),
	})
	return true
}

// parseAll runs one parsing function over all of the text.
func (p *parser) parseAll(f func()) (err error) {
	defer func() {
		if x := recover(); x != nil {
			syntax, ok := x.(*SyntaxError)
			if !ok {
				panic(x)
			}
			err = syntax
		}
	}()
	f()
	if p.peek() != 0 {
		p.fail("expected an operator or the end")
	}
	return nil
}

// fail panics with an error at the current place.
func (p *parser) fail(format string, args ...any) {
	at := source.Find(p.text, p.at)
	line, _, _ := strings.Cut(
		p.text[at.LineStart:], "\n",
	)
	before := p.text[at.LineStart:at.At]
	panic(&SyntaxError{
		Position: source.Position{
			Line: at.Line,
			Col:  utf8.RuneCountInString(before) + 1,
		},
		Msg:   fmt.Sprintf(format, args...),
		Text:  strings.ReplaceAll(line, "\t", " "),
		Caret: len(before),
	})
}

// peek is the next byte after blanks, 0 at the end.
func (p *parser) peek() byte {
	for p.at < len(p.text) &&
		strings.IndexByte(" \t\n\r", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// accept skips s when it is next; a word must end where s does.
func (p *parser) accept(s string) bool {
	p.peek()
	rest := p.text[p.at:]
	if !strings.HasPrefix(rest, s) {
		return false
	}
	if isLetter(s[0]) &&
		len(rest) > len(s) &&
		isWord(rest[len(s)]) {
		return false
	}
	p.at += len(s)
	return true
}

// expect skips s, which has to be next.
func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.fail("expected %q", s)
	}
}

// isLetter reports whether c may begin a name.
func isLetter(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
}

// isDigit reports whether c is a decimal digit.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWord reports whether c may stand inside a name.
func isWord(c byte) bool {
	return isLetter(c) || isDigit(c) ||
		c == '.' || c == '\''
}

// nested runs f one level of parentheses deeper.
func (p *parser) nested(f func()) {
	if p.depth++; p.depth > maxNesting {
		p.fail("more than %d nested parentheses", maxNesting)
	}
	f()
	p.depth--
}

// addOps and mulOps are the operators by how tightly they bind, calls the names
// that are applied to two arguments.
var (
	addOps = []binaryOp{
		{"+", nodeAdd}, {"-", nodeSub},
	}
	mulOps = []binaryOp{
		{"*", nodeMul},
		{"floordiv", nodeDiv}, {"/", nodeDiv},
		{"ceildiv", nodeCeilDiv},
		{"mod", nodeMod}, {"%", nodeMod},
	}
	calls = []binaryOp{
		{"min", nodeMin}, {"max", nodeMax},
	}
)

// A binaryOp is an operator or a call as it is written.
type binaryOp struct {
	text string
	kind nodeKind
}

// leftAssociative reads operands separated by ops, grouping to the left.
func (p *parser) leftAssociative(ops []binaryOp, operand func() int32) int32 {
	x := operand()
next:
	for {
		for _, op := range ops {
			if p.accept(op.text) {
				x = p.add(node{
					kind: op.kind,
					x:    x,
					y:    operand(),
				})
				continue next
			}
		}
		return x
	}
}

// sum reads products between + and −.
func (p *parser) sum() (x int32) {
	p.nested(func() {
		x = p.leftAssociative(addOps, p.product)
	})
	return x
}

// product reads operands between *, floordiv and the like.
func (p *parser) product() int32 { return p.leftAssociative(mulOps, p.unary) }

// unary reads an operand after any number of signs. A sign belongs to the number
// that follows it, so that the least int64 can be written.
func (p *parser) unary() int32 {
	negative := false
	for p.accept("-") {
		negative = !negative
	}
	if isDigit(p.peek()) {
		return p.constant(p.integer(negative))
	}
	x := p.primary()
	if negative {
		x = p.negative(x)
	}
	return x
}

// primary reads parentheses, a call or a variable.
func (p *parser) primary() int32 {
	if p.accept("(") {
		x := p.sum()
		p.expect(")")
		return x
	}
	for _, op := range calls {
		if p.accept(op.text) {
			return p.call(op.kind)
		}
	}
	at := p.at
	name := p.word()
	x, ok := p.vars[name]
	if !ok {
		p.at = at
		p.fail("unknown variable %s", name)
	}
	return x
}

// call reads "(a, b)".
func (p *parser) call(kind nodeKind) int32 {
	p.expect("(")
	x := p.sum()
	p.expect(",")
	y := p.sum()
	p.expect(")")
	return p.add(node{kind: kind, x: x, y: y})
}

// word reads a name.
func (p *parser) word() string {
	if !isLetter(p.peek()) {
		p.fail("expected an expression")
	}
	from := p.at
	for p.at < len(p.text) &&
		isWord(p.text[p.at]) {
		p.at++
	}
	return p.text[from:p.at]
}

// integer reads digits, with the sign already seen.
func (p *parser) integer(negative bool) int64 {
	p.peek()
	from := p.at
	for p.at < len(p.text) &&
		isDigit(p.text[p.at]) {
		p.at++
	}
	digits := p.text[from:p.at]
	if negative {
		digits = "-" + digits
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		p.at = from
		p.fail("expected an integer that fits 64 bits")
	}
	return n
}

// signed reads an integer with an optional sign, or -inf or inf.
func (p *parser) signed() int64 {
	negative := p.accept("-")
	if p.accept("inf") {
		return infinity(!negative)
	}
	if !isDigit(p.peek()) {
		p.fail("expected an integer")
	}
	return p.integer(negative)
}

// interval reads "[lo, hi]".
func (p *parser) interval() Interval {
	p.expect("[")
	lo := p.signed()
	p.expect(",")
	hi := p.signed()
	p.expect("]")
	return Interval{lo, hi}
}

// ParseMap reads a map as Map.String prints it:
//
//	(d0, d1)[s0]{rt0} -> (d1, s0), domain: d0 in [0, 9], ..., d0 + s0 in [0, 5]
//
// with ", replica id: s0" after it when it has one, or KNOWN EMPTY, or "unknown
// indexing". The first bound of a bare variable is its range, which it must have;
// what follows are constraints, with || between alternatives. The error is a
// *SyntaxError or the ring's.
//
// XLA's and MLIR's own forms are read, too: #xla_gpu.indexing_map<"…">,
// affine_map<…>, a domain of a line each without commas, "is_simplified: true".
func (r *Ring) ParseMap(text string) (Map, error) { return r.ParseMapOver(text, nil) }

// ParseMapOver is ParseMap of a map that leaves out ranges of its variables, as
// affine_map<…> does; they are given by name.
func (r *Ring) ParseMapOver(text string, ranges map[string]Interval) (Map, error) {
	switch strings.TrimSpace(text) {
	case "KNOWN EMPTY":
		return Map{State: StateEmpty}, nil
	case "unknown indexing":
		return Map{State: StateUndefined}, nil
	}
	p := &mapParser{
		parser: parser{text: text},
		ranges: map[string]Interval{},
	}
	maps.Copy(p.ranges, ranges)
	if err := p.parseAll(p.parse); err != nil {
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
	var c parsedConstraint
	if err := p.parseAll(func() { c = p.disjunction() }); err != nil {
		return nil, err
	}
	vals := make([]lin, len(p.nodes))
	p.run(r, env, vals, 0, int32(len(vals)))
	return c.build(r, vals), r.err
}

// A parsedConstraint is a constraint as it is written, its expressions nodes of a
// DAG.
type parsedConstraint [][]parsedBound

// A parsedBound says that node x lies in in.
type parsedBound struct {
	x  int32
	in Interval
}

// or is the disjunction of w and v, as Constraint.Or.
func (w parsedConstraint) or(v parsedConstraint) (out parsedConstraint) {
	for _, x := range w {
		for _, y := range v {
			out = append(out, slices.Concat(x, y))
		}
	}
	return out
}

// build makes the constraint in r, vals being the values of the nodes.
func (w parsedConstraint) build(r *Ring, vals []lin) (c Constraint) {
	for _, x := range w {
		clause := Clause{}
		for _, b := range x {
			e := r.wrap(vals[b.x])
			clause = append(clause, Bound{e, b.in})
		}
		c = append(c, clause)
	}
	return c
}

// disjunction reads c || c ..., each a conjunction.
func (p *mapParser) disjunction() (c parsedConstraint) {
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

// conjunction reads c && c ..., each a bound or a disjunction in parentheses.
func (p *mapParser) conjunction() parsedConstraint {
	c := p.atom()
	for p.accept("&&") {
		c = append(c, p.atom()...)
	}
	return c
}

// atom reads a bound or a constraint in parentheses.
func (p *mapParser) atom() parsedConstraint {
	if p.accept("always satisfied") {
		return nil
	}
	if p.accept("unsatisfiable") {
		return parsedConstraint{{}}
	}
	if p.peek() == '(' && p.groupsConstraint() {
		p.expect("(")
		c := p.disjunction()
		p.expect(")")
		return c
	}
	x := p.sum()
	p.expect("in")
	return parsedConstraint{{{x, p.interval()}}}
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
	names   []string            // of dimensions, ranges, run-time variables
	roles   []Role              // of names
	places  []int               // of names, in the text
	ranges  map[string]Interval // by name, once known
	results []int32             // nodes
	where   parsedConstraint

	replica    int32 // a node, where replicated
	replicated bool
}

// mapAttributes are the names of attributes of MLIR that hold a map in <…>.
var mapAttributes = []string{"#xla_gpu.indexing_map", "#xla.indexing_map", "affine_map"}

// parse reads a map, or the attribute that holds one.
func (p *mapParser) parse() {
	for _, name := range mapAttributes {
		if !p.accept(name) {
			continue
		}
		p.expect("<")
		if p.joinStrings(); p.accept(`"`) {
			p.body()
			p.expect(`"`)
		} else {
			p.body()
		}
		p.expect(">")
		return
	}
	p.body()
}

// stringSeams are the quotes between adjacent strings of MLIR, which are one string.
var stringSeams = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"\s*"`) })

// joinStrings makes one string of adjacent ones, with blanks in place of the quotes
// between them: errors point at the same places.
func (p *mapParser) joinStrings() {
	p.text = p.text[:p.at] + stringSeams().ReplaceAllStringFunc(p.text[p.at:], func(seam string) string {
		return " " + seam[1:len(seam)-1] + " "
	})
}

// body reads a map without an attribute around it.
func (p *mapParser) body() {
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
	for name := range p.ranges {
		if !slices.Contains(p.names, name) {
			p.fail("a range is given for %s, which the map does not have", name)
		}
	}
	for i, name := range p.names {
		if _, ok := p.ranges[name]; !ok {
			p.at = p.places[i]
			p.fail("variable %s has no range in the domain", name)
		}
	}
}

// list reads names between brackets, which declares them; only the list of
// dimensions must be there.
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

// resultList reads the results.
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
	for p.peek() != 0 && p.peek() != '"' &&
		p.peek() != '>' && !p.ahead("replica id:") {
		switch {
		case p.accept("is_simplified:"):
			p.word() // true or false: what is read is simplified all the same
		case p.accept("hlo:"):
			p.origin()
		case !p.rangeOf():
			p.where = append(p.where, p.disjunction()...)
		}
		if !p.accept(",") && !p.startsLine() {
			return
		}
	}
}

// origin passes over where the value of a run-time variable comes from, as XLA prints it
// below the range: an instruction on a line, and the map of its elements on the next.
func (p *mapParser) origin() {
	p.endLine()
	if p.peek() == '(' && strings.Contains(p.restOfLine(), "->") {
		p.endLine()
	}
}

// endLine goes to the end of the line, or of the string around the map.
func (p *mapParser) endLine() { p.at += len(p.restOfLine()) }

// restOfLine is what follows on the line, in the string around the map.
func (p *mapParser) restOfLine() string {
	rest := p.text[p.at:]
	if end := strings.IndexAny(rest, "\n\""); end >= 0 {
		return rest[:end]
	}
	return rest
}

// startsLine reports whether what comes next is the first of its line.
func (p *mapParser) startsLine() bool {
	p.peek()
	before := p.text[:p.at]
	blanks := before[len(strings.TrimRight(before, " \t\r\n")):]
	return strings.Contains(blanks, "\n")
}

// ahead reports whether s is next, after blanks.
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
	m.names = p.names
	vals := make([]lin, len(p.nodes))
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
