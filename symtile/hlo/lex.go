package hlo

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/tilewright/tilewright/symtile/source"
)

// Error is a parse or validation error with its place, its source line and a
// caret.
type Error = source.Error

// A scanner walks HLO text. It skips white space and comments.
type scanner struct {
	source.Scanner[[]byte]

	// shapes holds the shapes read so far by their text; nil if they are not kept.
	shapes map[string]Shape
}

// newScanner scans src; file stands in errors.
func newScanner(file string, src []byte) scanner {
	return scanner{Scanner: source.NewScanner(cmp.Or(file, "input"), src)}
}

// position is a remembered position of a scanner.
type position = source.Place

// failNext reports an error at the next token.
func (s *scanner) failNext(format string, args ...any) error {
	s.skip()
	return s.Fail(s.Here(), format, args...)
}

// skip moves over white space and comments.
func (s *scanner) skip() {
	for s.At < len(s.Src) {
		switch c := s.Src[s.At]; {
		case c == '\n':
			s.Newline()
		case c == ' ' || c == '\t' || c == '\r':
			s.At++
		case c == '/' && s.Has("/*"):
			s.SkipTo("*/")
		case c == '/' && s.Has("//"):
			s.SkipLine()
		default:
			return
		}
	}
}

// skipBlanks is skip within the line.
func (s *scanner) skipBlanks() {
	for s.At < len(s.Src) {
		switch c := s.Src[s.At]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.At++
		case c == '/' && s.Has("/*"):
			s.SkipTo("*/")
		default:
			return
		}
	}
}

// peek returns the next byte after blanks, 0 at the end.
func (s *scanner) peek() byte {
	s.skip()
	if s.At < len(s.Src) {
		return s.Src[s.At]
	}
	return 0
}

// accept consumes text when it comes next.
func (s *scanner) accept(text string) bool {
	s.skip()
	if !s.Has(text) {
		return false
	}
	s.At += len(text)
	return true
}

// expect consumes text, or reports what stands in its place.
func (s *scanner) expect(text string) error {
	if s.accept(text) {
		return nil
	}
	return s.failNext("expected %q, found %s", text, s.found())
}

// found describes what comes next, for errors.
func (s *scanner) found() string {
	if s.peek() == 0 && s.At >= len(s.Src) {
		return "the end of the file"
	}
	end := s.At
	for end < len(s.Src) &&
		end < s.At+24 &&
		s.Src[end] != '\n' &&
		s.Src[end] != ' ' {
		end++
	}
	return fmt.Sprintf(
		"%q",
		s.Src[s.At:max(end, s.At+1)],
	)
}

// nameBytes are letters, digits, _, . and -.
var nameBytes = func() (is [256]bool) {
	for c := range is {
		is[c] = c >= 'a' && c <= 'z' ||
			c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			c == '_' || c == '.' || c == '-'
	}
	return is
}()

// isNameByte reports whether c may stand in a name.
func isNameByte(c byte) bool { return nameBytes[c] }

// name reads a name without its leading %.
func (s *scanner) name(what string) (string, error) {
	word, err := s.nameText(what)
	return string(word), err
}

// nameText is name without a copy: the bytes are the source's.
func (s *scanner) nameText(what string) ([]byte, error) {
	s.skip()
	s.accept("%")
	start := s.At
	for s.At < len(s.Src) &&
		nameBytes[s.Src[s.At]] &&
		!(s.Src[s.At] == '-' && s.Has("->")) {
		s.At++
	}
	if s.At == start {
		return nil, s.failNext("expected %s, found %s", what, s.found())
	}
	if s.At-start > MaxName {
		return nil, s.failNext("a name of %d bytes; at most %d are read", s.At-start, MaxName)
	}
	return s.Src[start:s.At], nil
}

// closing are the brackets of HLO with those that close them.
var closing = map[byte]byte{
	'(': ')',
	'[': ']',
	'{': '}',
}

// raw reads text up to a delimiter at depth 0 (a comma, a semicolon, a closing
// bracket, the end of the line or the beginning of an instruction on it), brackets balanced and strings respected;
// comments are left out.
func (s *scanner) raw() (string, error) {
	s.skipBlanks()
	var r rawText
	r.open = s.Here()
	r.start = s.At
	for s.At < len(s.Src) {
		ended, err := r.step(s)
		if err != nil {
			return "", err
		}
		if ended {
			return r.text(s), nil
		}
	}
	if len(r.stack) > 0 {
		return "", s.Fail(r.open, "the bracket opened here is never closed")
	}
	return r.text(s), nil
}

// A rawText is text that is read verbatim, with the brackets that are open in it.
type rawText struct {
	open position
	// start is where the part begins that is not in before yet.
	start  int
	before []byte
	stack  []byte
}

// text is what was read, up to where s stands.
func (r *rawText) text(s *scanner) string {
	part := s.Src[r.start:s.At]
	if r.before != nil {
		part = append(r.before, part...)
	}
	return string(bytes.TrimSpace(part))
}

// step reads a string, a comment or a byte; ended reports that a delimiter comes
// next.
func (r *rawText) step(s *scanner) (ended bool, err error) {
	c := s.Src[s.At]
	switch {
	case c == '"':
		return false, s.skipString()
	case c == '/' && (s.Has("/*") || s.Has("//")):
		r.before = append(r.before, s.Src[r.start:s.At]...)
		if s.Has("/*") {
			s.SkipTo("*/")
		} else {
			s.SkipLine()
		}
		r.start = s.At
		return false, nil
	case closing[c] != 0:
		if r.stack = append(r.stack, closing[c]); len(r.stack) > maxDepth {
			return false, s.Fail(s.Here(), "brackets nested more than %d deep", maxDepth)
		}
	case c == ')' || c == ']' || c == '}':
		if len(r.stack) == 0 {
			return true, nil
		}
		if err := r.close(s, c); err != nil {
			return false, err
		}
	case len(r.stack) == 0 &&
		(c == ',' || c == ';' || c == '\n'):
		return true, nil
	case len(r.stack) == 0 && c == ' ' && s.instrNext():
		return true, nil
	}
	if c == '\n' {
		s.Newline()
	} else {
		s.At++
	}
	return false, nil
}

// instrNext reports whether the blank that comes next separates an instruction of the
// same line: "ROOT", or "name = ".
func (s *scanner) instrNext() bool {
	end := min(len(s.Src), s.At+MaxName)
	rest := bytes.TrimLeft(s.Src[s.At:end], " ")
	if bytes.HasPrefix(rest, []byte("ROOT ")) {
		return true
	}
	n := 0
	for n < len(rest) &&
		(isNameByte(rest[n]) || rest[n] == '%') {
		n++
	}
	return n > 0 &&
		bytes.HasPrefix(rest[n:], []byte(" = "))
}

// close takes the innermost bracket, which c has to close.
func (r *rawText) close(s *scanner, c byte) error {
	last := len(r.stack) - 1
	if r.stack[last] != c {
		return s.Fail(
			s.Here(), "expected %q to close the bracket, found %q", r.stack[last], c,
		)
	}
	r.stack = r.stack[:last]
	return nil
}

// skipString moves behind a string in double quotes; a backslash escapes the
// next byte. Strings go on over lines: the configurations of custom-calls do.
func (s *scanner) skipString() error {
	open := s.Here()
	for s.At++; s.At < len(s.Src); {
		switch s.Src[s.At] {
		case '\\':
			if s.At++; s.At >= len(s.Src) {
				return s.Fail(open, "the string opened here never ends")
			}
		case '"':
			s.At++
			return nil
		}
		if s.Src[s.At] == '\n' {
			s.Newline()
		} else {
			s.At++
		}
	}
	return s.Fail(open, "the string opened here never ends")
}

// MaxName is the length in bytes of the longest name that is read; real ones
// stay under 300.
const MaxName = 4096

// maxDepth bounds the nesting of brackets; real dumps stay under ten.
const maxDepth = 200
