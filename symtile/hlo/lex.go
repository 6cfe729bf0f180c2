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
// bracket or the end of the line), brackets balanced and strings respected.
func (s *scanner) raw() (string, error) {
	s.skipBlanks()
	start, open := s.At, s.Here()
	var stack []byte
	for s.At < len(s.Src) {
		c := s.Src[s.At]
		switch {
		case c == '"':
			if err := s.skipString(); err != nil {
				return "", err
			}
			continue
		case closing[c] != 0:
			if stack = append(stack, closing[c]); len(stack) > maxDepth {
				return "", s.Fail(s.Here(), "brackets nested more than %d deep", maxDepth)
			}
		case c == ')' || c == ']' || c == '}':
			if len(stack) == 0 {
				return string(bytes.TrimSpace(s.Src[start:s.At])), nil
			}
			if stack[len(stack)-1] != c {
				return "", s.Fail(
					s.Here(), "expected %q to close the bracket, found %q",
					stack[len(stack)-1], c,
				)
			}
			stack = stack[:len(stack)-1]
		case len(stack) == 0 &&
			(c == ',' || c == ';' || c == '\n'):
			return string(bytes.TrimSpace(s.Src[start:s.At])), nil
		}
		if c == '\n' {
			s.Newline()
		} else {
			s.At++
		}
	}
	if len(stack) > 0 {
		return "", s.Fail(open, "the bracket opened here is never closed")
	}
	return string(bytes.TrimSpace(s.Src[start:s.At])), nil
}

// skipString moves behind a string in double quotes, which ends on its line; a
// backslash escapes the next byte.
func (s *scanner) skipString() error {
	open := s.Here()
	for s.At++; s.At < len(s.Src); s.At++ {
		switch s.Src[s.At] {
		case '\\':
			s.At++
		case '\n':
			return s.Fail(open, "the string opened here does not end on its line")
		case '"':
			s.At++
			return nil
		}
	}
	return s.Fail(open, "the string opened here never ends")
}

// MaxName is the length in bytes of the longest name that is read; real ones
// stay under 300.
const MaxName = 4096

// maxDepth bounds the nesting of brackets; real dumps stay under ten.
const maxDepth = 200
