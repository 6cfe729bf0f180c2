package ptx

import (
	"math"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile/source"
)

// A scanner walks PTX text.
type scanner struct{ source.Scanner[string] }

// place is a remembered position of a scanner.
type place = source.Place

// expected is the error that the next token is not what is required.
func (s *scanner) expected(what string) error {
	s.skip()
	p := s.Here()
	return s.Fail(p, "expected %s, found %s", what, s.found())
}

// found describes the next token for errors.
func (s *scanner) found() string {
	if s.At >= len(s.Src) {
		return "the end of the text"
	}
	if s.Src[s.At] == '\n' {
		return "the end of the line"
	}
	end := s.At
	for end < len(s.Src) &&
		end < s.At+40 &&
		isWord(s.Src[end]) {
		end++
	}
	if end == s.At {
		end++
	}
	return strconv.Quote(strings.ToValidUTF8(s.Src[s.At:end], "?"))
}

// isLetter reports whether c is an ASCII letter.
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isDigit reports whether c is an ASCII digit.
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isName reports whether c may stand in a name.
func isName(c byte) bool {
	return isLetter(c) || isDigit(c) ||
		c == '_' || c == '$'
}

// isWord reports whether c may stand in a token as errors show it.
func isWord(c byte) bool {
	return isName(c) || c == '%' || c == '.' || c == ':'
}

// skip moves over white space and comments.
func (s *scanner) skip() {
	for s.skipBlanks() {
		s.SkipLine()
	}
}

// skipBlanks moves over white space and /* comments */; it reports whether a //
// comment follows.
func (s *scanner) skipBlanks() bool {
	for s.At < len(s.Src) {
		switch c := s.Src[s.At]; {
		case c == '\n':
			s.Newline()
		case c == ' ' || c == '\t' || c == '\r':
			s.At++
		case c == '/' && s.Has("//"):
			return true
		case c == '/' && s.Has("/*"):
			s.SkipTo("*/")
		default:
			return false
		}
	}
	return false
}

// restOfLine moves to the end of the line and returns the text before it.
func (s *scanner) restOfLine() string {
	from := s.At
	s.SkipLine()
	return s.Src[from:s.At]
}

// peek is the next byte behind white space and comments, 0 at the end.
func (s *scanner) peek() byte {
	s.skip()
	if s.At < len(s.Src) {
		return s.Src[s.At]
	}
	return 0
}

// take moves over c if it is next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.At >= len(s.Src) {
		return false
	}
	s.At++
	return true
}

// want moves over c, which must be next.
func (s *scanner) want(c byte) error {
	if !s.take(c) {
		return s.expected(strconv.Quote(string(c)))
	}
	return nil
}

// name is the identifier that comes next, "" if none does.
func (s *scanner) name() string {
	s.skip()
	from := s.At
	i := s.At
	if i < len(s.Src) &&
		(isName(s.Src[i]) && !isDigit(s.Src[i]) ||
			s.Src[i] == '%') {
		i++
		for i < len(s.Src) && isName(s.Src[i]) {
			i++
		}
	}
	if i == from+1 && s.Src[from] == '%' {
		return ""
	}
	s.At = i
	return s.Src[from:i]
}

// dotted is the directive or type that comes next, such as .entry, without its
// dot; "" where none does.
func (s *scanner) dotted() string {
	if s.peek() != '.' {
		return ""
	}
	i := s.At + 1
	for i < len(s.Src) &&
		(isName(s.Src[i]) || s.Src[i] == ':' &&
			strings.HasPrefix(s.Src[i:], "::")) {
		if s.Src[i] == ':' {
			i++
		}
		i++
	}
	name := s.Src[s.At+1 : i]
	if name != "" {
		s.At = i
	}
	return name
}

// opcodeEnd is the offset behind the opcode that started at from and goes on at
// the next byte.
func (s *scanner) opcodeEnd() int {
	i := s.At
	for i < len(s.Src) {
		c := s.Src[i]
		if !isName(c) && c != '.' {
			if c != ':' ||
				!strings.HasPrefix(s.Src[i:], "::") {
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
	start := s.Here()
	neg := s.take('-')
	s.skip()
	text := s.numberText()
	if text == "" {
		return Operand{}, s.expected("a number")
	}
	o, ok := parseNumber(text, neg)
	if !ok {
		return Operand{}, s.Fail(
			start, "%q is no number: expected an integer of up to 64 bits, or a float such as 0f3F800000 or 1.5",
			s.Src[start.At:s.At],
		)
	}
	return o, nil
}

// numberText moves over a number without its sign.
func (s *scanner) numberText() string {
	from := s.At
	if from >= len(s.Src) || !isDigit(s.Src[from]) {
		return ""
	}
	exact := len(s.Src) > from+1 &&
		strings.IndexByte("xXfFdDbB", s.Src[from+1]) >= 0
	for s.At < len(s.Src) {
		c := s.Src[s.At]
		sign := (c == '+' || c == '-') && !exact &&
			s.Src[s.At-1]|0x20 == 'e'
		if !isName(c) && c != '.' && !sign {
			break
		}
		s.At++
	}
	return s.Src[from:s.At]
}

// parseNumber reads a number without its sign.
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

// exactFloat reads the n hexadecimal digits of the bits of a float.
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

// count reads a non-negative number that is at most limit.
func (s *scanner) count(what string, limit int) (int, error) {
	s.skip()
	start := s.Here()
	text := s.numberText()
	if text == "" {
		return 0, s.expected(what)
	}
	o, ok := parseNumber(text, false)
	if !ok || o.Kind != KindInt ||
		o.Bits > math.MaxInt64 ||
		o.Int() > int64(limit) {
		return 0, s.Fail(start, "expected %s of at most %d, found %q", what, limit, text)
	}
	return int(o.Bits), nil
}
