package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A scanner walks PTX text. It keeps the line it is on.
type scanner struct {
	file      string
	src       string
	at        int // offset of the next byte
	line      int // line of at, from 1
	lineStart int // offset of its first byte
}

// place is a remembered position of a scanner.
type place struct{ at, line, lineStart int }

func (s *scanner) here() place {
	return place{s.at, s.line, s.lineStart}
}

// fail is the error at p.
func (s *scanner) fail(p place, format string, args ...any) error {
	return errorAt(
		s.file, s.src, p.line, p.lineStart,
		p.at, fmt.Sprintf(format, args...),
	)
}

// expected is the error that something else stands at the next token.
func (s *scanner) expected(what string) error {
	s.skip()
	p := s.here()
	return s.fail(p, "expected %s, found %s", what, s.found())
}

// found is the next token as an error shows it.
func (s *scanner) found() string {
	if s.at >= len(s.src) {
		return "the end of the text"
	}
	if s.src[s.at] == '\n' {
		return "the end of the line"
	}
	end := s.at
	for end < len(s.src) &&
		end < s.at+40 &&
		isWord(s.src[end]) {
		end++
	}
	if end == s.at {
		end++
	}
	return strconv.Quote(strings.ToValidUTF8(s.src[s.at:end], "?"))
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isName(c byte) bool {
	return isLetter(c) || isDigit(c) ||
		c == '_' || c == '$'
}
func isWord(c byte) bool {
	return isName(c) || c == '%' || c == '.' || c == ':'
}

// skip moves over white space and comments.
func (s *scanner) skip() {
	for s.skipBlanks() {
		s.skipLine()
	}
}

// skipBlanks moves over white space and /* comments */; it reports whether a //
// comment follows.
func (s *scanner) skipBlanks() bool {
	for s.at < len(s.src) {
		switch c := s.src[s.at]; {
		case c == '\n':
			s.at++
			s.line++
			s.lineStart = s.at
		case c == ' ' || c == '\t' || c == '\r':
			s.at++
		case c == '/' && s.has("//"):
			return true
		case c == '/' && s.has("/*"):
			s.skipTo("*/")
		default:
			return false
		}
	}
	return false
}

func (s *scanner) has(text string) bool {
	return strings.HasPrefix(s.src[s.at:], text)
}

// skipLine moves to the end of the line and is what stood there.
func (s *scanner) skipLine() string {
	from := s.at
	if n := strings.IndexByte(s.src[s.at:], '\n'); n >= 0 {
		s.at += n
	} else {
		s.at = len(s.src)
	}
	return s.src[from:s.at]
}

// skipTo moves behind the next end, or to the end of the text.
func (s *scanner) skipTo(end string) {
	n := strings.Index(s.src[s.at:], end)
	if n < 0 {
		n = len(s.src) - s.at
	} else {
		n += len(end)
	}
	for _, c := range []byte(s.src[s.at : s.at+n]) {
		s.at++
		if c == '\n' {
			s.line++
			s.lineStart = s.at
		}
	}
}

// peek is the next byte behind white space and comments, 0 at the end.
func (s *scanner) peek() byte {
	s.skip()
	if s.at < len(s.src) {
		return s.src[s.at]
	}
	return 0
}

// take moves over c where it is next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.at >= len(s.src) {
		return false
	}
	s.at++
	return true
}

func (s *scanner) want(c byte) error {
	if !s.take(c) {
		return s.expected(strconv.Quote(string(c)))
	}
	return nil
}

// name is the identifier that comes next, "" where none does.
func (s *scanner) name() string {
	s.skip()
	from := s.at
	i := s.at
	if i < len(s.src) &&
		(isName(s.src[i]) && !isDigit(s.src[i]) ||
			s.src[i] == '%') {
		i++
		for i < len(s.src) && isName(s.src[i]) {
			i++
		}
	}
	if i == from+1 && s.src[from] == '%' {
		return ""
	}
	s.at = i
	return s.src[from:i]
}

// dotted is the directive or type that comes next, such as .entry, without its
// dot; "" where none does.
func (s *scanner) dotted() string {
	if s.peek() != '.' {
		return ""
	}
	i := s.at + 1
	for i < len(s.src) &&
		(isName(s.src[i]) || s.src[i] == ':' &&
			strings.HasPrefix(s.src[i:], "::")) {
		if s.src[i] == ':' {
			i++
		}
		i++
	}
	name := s.src[s.at+1 : i]
	if name != "" {
		s.at = i
	}
	return name
}

// opcodeEnd is the offset behind the opcode that started at from and goes on at
// the next byte.
func (s *scanner) opcodeEnd() int {
	i := s.at
	for i < len(s.src) {
		c := s.src[i]
		if !isName(c) && c != '.' {
			if c != ':' ||
				!strings.HasPrefix(s.src[i:], "::") {
				break
			}
			i++
		}
		i++
	}
	return i
}

// number is the number that comes next: an integer of up to 64 bits in base 10,
// 16, 8 or 2, or a float, exact (0f3F800000, 0d…) or decimal.
func (s *scanner) number() (Operand, error) {
	s.skip()
	start := s.here()
	neg := s.take('-')
	s.skip()
	text := s.numberText()
	if text == "" {
		return Operand{}, s.expected("a number")
	}
	o, ok := parseNumber(text, neg)
	if !ok {
		return Operand{}, s.fail(
			start, "%q is no number: expected an integer of up to 64 bits, or a float such as 0f3F800000 or 1.5",
			s.src[start.at:s.at],
		)
	}
	return o, nil
}

// numberText moves over a number without its sign.
func (s *scanner) numberText() string {
	from := s.at
	if from >= len(s.src) || !isDigit(s.src[from]) {
		return ""
	}
	exact := len(s.src) > from+1 &&
		strings.IndexByte("xXfFdDbB", s.src[from+1]) >= 0
	for s.at < len(s.src) {
		c := s.src[s.at]
		sign := (c == '+' || c == '-') && !exact &&
			s.src[s.at-1]|0x20 == 'e'
		if !isName(c) && c != '.' && !sign {
			break
		}
		s.at++
	}
	return s.src[from:s.at]
}

func parseNumber(text string, neg bool) (Operand, bool) {
	kind := byte(0)
	if len(text) > 1 && text[0] == '0' {
		kind = text[1] | 0x20
	}
	switch {
	case kind == 'f':
		return exactFloat(text[2:], 8, KindF32, neg)
	case kind == 'd':
		return exactFloat(text[2:], 16, KindF64, neg)
	case kind != 'x' && kind != 'b' &&
		strings.ContainsAny(text, ".eE"):
		f, err := strconv.ParseFloat(text, 64)
		if neg {
			f = -f
		}
		return F64Imm(f), err == nil &&
			!strings.Contains(text, "_")
	}
	text = strings.TrimSuffix(text, "U")
	v, err := strconv.ParseUint(text, 0, 64)
	if neg {
		v = -v
	}
	return Operand{Kind: KindInt, Bits: v}, err == nil &&
		!strings.ContainsAny(text, "_oO")
}

func exactFloat(digits string, n int, k Kind, neg bool) (Operand, bool) {
	v, err := strconv.ParseUint(digits, 16, 64)
	if neg && k == KindF32 {
		v ^= 1 << 31
	} else if neg {
		v ^= 1 << 63
	}
	return Operand{Kind: k, Bits: v}, err == nil &&
		len(digits) == n
}

// count is the non-negative number that comes next, up to most.
func (s *scanner) count(what string, most int) (int, error) {
	s.skip()
	start := s.here()
	text := s.numberText()
	if text == "" {
		return 0, s.expected(what)
	}
	o, ok := parseNumber(text, false)
	if !ok || o.Kind != KindInt ||
		o.Bits > math.MaxInt64 ||
		o.Int() > int64(most) {
		return 0, s.fail(start, "expected %s of at most %d, found %q", what, most, text)
	}
	return int(o.Bits), nil
}
