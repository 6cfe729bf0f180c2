package index

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tilewright/tilewright/symtile/source"
)

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
	if err := p.whole(func() { at = p.sum() }); err != nil {
		return Expr{}, err
	}
	vals := make([]lin, len(p.ops))
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

// A parser reads text into a script.
type parser struct {
	script
	text  string
	at    int
	depth int
	vars  map[string]int32 // values
}

// declare gives the next variable a name, false when it is taken.
func (p *parser) declare(name string) bool {
	if p.vars == nil {
		p.vars = map[string]int32{}
	}
	if _, taken := p.vars[name]; taken {
		return false
	}
	p.vars[name] = p.add(scriptOp{
		code: scriptVar,
		c:    int64(len(p.vars)),
	})
	return true
}

// whole runs one parsing function over all of the text.
func (p *parser) whole(f func()) (err error) {
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

func (p *parser) fail(format string, args ...any) {
	at := source.Find(p.text, p.at)
	line, _, _ := strings.Cut(p.text[at.LineStart:], "\n")
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
	if !strings.HasPrefix(rest, s) ||
		isLetter(s[0]) &&
			len(rest) > len(s) &&
			isWord(rest[len(s)]) {
		return false
	}
	p.at += len(s)
	return true
}

func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.fail("expected %q", s)
	}
}

func isLetter(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
}
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isWord(c byte) bool {
	return isLetter(c) || isDigit(c) ||
		c == '.' || c == '\''
}

// nested counts parentheses around f.
func (p *parser) nested(f func()) {
	if p.depth++; p.depth > maxNesting {
		p.fail("more than %d nested parentheses", maxNesting)
	}
	f()
	p.depth--
}

// addOps and mulOps are the operators by how tightly they bind.
var (
	addOps = []binaryOp{{"+", scriptAdd}, {"-", scriptSub}}
	mulOps = []binaryOp{
		{"*", scriptMul},
		{"floordiv", scriptDiv}, {"/", scriptDiv},
		{"ceildiv", scriptCeilDiv},
		{"mod", scriptMod}, {"%", scriptMod},
	}
	calls = []binaryOp{{"min", scriptMin}, {"max", scriptMax}}
)

type binaryOp struct {
	text string
	code scriptCode
}

// chain reads operands separated by ops, grouping to the left.
func (p *parser) chain(ops []binaryOp, operand func() int32) int32 {
	x := operand()
next:
	for {
		for _, op := range ops {
			if p.accept(op.text) {
				x = p.add(scriptOp{
					code: op.code,
					x:    x,
					y:    operand(),
				})
				continue next
			}
		}
		return x
	}
}

func (p *parser) sum() (x int32) {
	p.nested(func() { x = p.chain(addOps, p.product) })
	return x
}

func (p *parser) product() int32 { return p.chain(mulOps, p.unary) }

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

func (p *parser) primary() int32 {
	if p.accept("(") {
		x := p.sum()
		p.expect(")")
		return x
	}
	for _, op := range calls {
		if p.accept(op.text) {
			return p.call(op.code)
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
func (p *parser) call(code scriptCode) int32 {
	p.expect("(")
	x := p.sum()
	p.expect(",")
	y := p.sum()
	p.expect(")")
	return p.add(scriptOp{code: code, x: x, y: y})
}

func (p *parser) word() string {
	if !isLetter(p.peek()) {
		p.fail("expected an expression")
	}
	from := p.at
	for p.at < len(p.text) && isWord(p.text[p.at]) {
		p.at++
	}
	return p.text[from:p.at]
}

// integer reads digits, with the sign already seen.
func (p *parser) integer(negative bool) int64 {
	p.peek()
	from := p.at
	for p.at < len(p.text) && isDigit(p.text[p.at]) {
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
