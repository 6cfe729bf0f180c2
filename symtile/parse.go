package symtile

import (
	"fmt"
	"strconv"
	"strings"
)

// A SyntaxError says where a text stops being an expression or a map.
type SyntaxError struct {
	Text   string
	Offset int // in bytes
	Want   string
}

// Error prints the message, the line and a caret under the place.
func (e *SyntaxError) Error() string {
	line, col := e.Text[:min(e.Offset, len(e.Text))], 0
	start := strings.LastIndexByte(line, '\n') + 1
	col = len([]rune(line[start:]))
	end := strings.IndexByte(e.Text[start:], '\n')
	if end < 0 {
		end = len(e.Text) - start
	}
	row := strings.Count(line, "\n") + 1
	shown := strings.ReplaceAll(e.Text[start:start+end], "\t", " ")
	return fmt.Sprintf("%d:%d: %s\n  %s\n  %s^", row, col+1, e.Want, shown, strings.Repeat(" ", col))
}

// Parse reads an expression over vars, by name, in the spelling String prints:
// + − * floordiv (or /) ceildiv mod (or %) min(,) max(,), with * and its like
// binding tighter than + and a sign tighter than both. Divisors may be
// expressions whose range is positive. The error is a *SyntaxError, or the
// ring's own when the expression cannot be built.
func (r *Ring) Parse(text string, vars map[string]Expr) (Expr, error) {
	p := &parser{text: text, r: r, vars: vars}
	e, err := p.whole(p.sum)
	if err == nil {
		err = r.err
	}
	return e, err
}

// maxNesting bounds the depth of parentheses, so that no text can exhaust the stack.
const maxNesting = 500

type parser struct {
	text  string
	at    int
	depth int
	r     *Ring
	vars  map[string]Expr
}

// whole runs one parsing function over all of the text.
func (p *parser) whole(f func() Expr) (e Expr, err error) {
	defer func() {
		if x := recover(); x != nil {
			syntax, ok := x.(*SyntaxError)
			if !ok {
				panic(x)
			}
			e, err = Expr{}, syntax
		}
	}()
	e = f()
	if p.peek() != 0 {
		p.fail("expected an operator or the end")
	}
	return e, nil
}

func (p *parser) fail(format string, args ...any) {
	panic(&SyntaxError{p.text, p.at, fmt.Sprintf(format, args...)})
}

// peek is the next byte after blanks, 0 at the end.
func (p *parser) peek() byte {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.at]) >= 0 {
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
	if !strings.HasPrefix(rest, s) || isLetter(s[0]) && len(rest) > len(s) && isWord(rest[len(s)]) {
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

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) || c == '.' || c == '\'' }

func (p *parser) sum() Expr {
	if p.depth++; p.depth > maxNesting {
		p.fail("more than %d nested parentheses", maxNesting)
	}
	defer func() { p.depth-- }()
	e := p.product()
	for {
		switch {
		case p.accept("+"):
			e = e.Add(p.product())
		case p.accept("-"):
			e = e.Sub(p.product())
		default:
			return e
		}
	}
}

// mulOps are the operators of a product and what they build.
var mulOps = []struct {
	text  string
	build func(e, f Expr) Expr
}{
	{"*", Expr.Mul},
	{"floordiv", Expr.floorDiv},
	{"/", Expr.floorDiv},
	{"ceildiv", Expr.ceilDiv},
	{"mod", Expr.modulo},
	{"%", Expr.modulo},
}

// The three divisions take constants of either sign where a constant may have
// one, and positive expressions.
func (e Expr) floorDiv(f Expr) Expr {
	if c, ok := f.Value(); ok {
		return e.Div(c)
	}
	return e.DivExpr(f)
}

func (e Expr) ceilDiv(f Expr) Expr {
	if c, ok := f.Value(); ok {
		return e.CeilDiv(c)
	}
	return e.CeilDivExpr(f)
}

func (e Expr) modulo(f Expr) Expr {
	if c, ok := f.Value(); ok {
		return e.Mod(c)
	}
	return e.ModExpr(f)
}

func (p *parser) product() Expr {
	e := p.unary()
next:
	for {
		for _, op := range mulOps {
			if p.accept(op.text) {
				e = op.build(e, p.unary())
				continue next
			}
		}
		return e
	}
}

func (p *parser) unary() Expr {
	negative := false
	for p.accept("-") {
		negative = !negative
	}
	if isDigit(p.peek()) {
		return p.r.Const(p.integer(negative))
	}
	e := p.primary()
	if negative {
		e = e.Neg()
	}
	return e
}

func (p *parser) primary() Expr {
	switch {
	case p.accept("("):
		e := p.sum()
		p.expect(")")
		return e
	case p.accept("min"):
		return p.pair(Expr.Min)
	case p.accept("max"):
		return p.pair(Expr.Max)
	}
	at := p.at
	name := p.word()
	e, ok := p.vars[name]
	if !ok {
		p.at = at
		p.fail("unknown variable %s", name)
	}
	return e
}

// pair parses "(a, b)".
func (p *parser) pair(f func(a, b Expr) Expr) Expr {
	p.expect("(")
	a := p.sum()
	p.expect(",")
	b := p.sum()
	p.expect(")")
	return f(a, b)
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
