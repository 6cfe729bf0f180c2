package hlo

import (
	"bytes"
	"fmt"
)

// A scanner walks HLO text. It skips white space and comments and keeps the
// line it is on, so that positions cost nothing until they are needed.
type scanner struct {
	file      string
	src       []byte
	at        int              // offset of the next byte
	line      int              // line of at, from 1
	lineStart int              // offset of its first byte
	shapes    map[string]Shape // by their text; nil when they are not kept
}

func (s *scanner) pos() Pos {
	return Pos{s.file, s.line, s.at - s.lineStart + 1}
}

// position is a remembered position of a scanner.
type position struct{ at, line, lineStart int }

func (s *scanner) position() position {
	return position{s.at, s.line, s.lineStart}
}

// fail reports an error at p.
func (s *scanner) fail(p position, format string, args ...any) error {
	pos := Pos{s.file, p.line, p.at - p.lineStart + 1}
	return errorAt(
		s.src, pos, p.lineStart, p.at,
		fmt.Sprintf(format, args...),
	)
}

func (s *scanner) failNext(format string, args ...any) error {
	s.skip()
	return s.fail(s.position(), format, args...)
}

// skip moves over white space and comments.
func (s *scanner) skip() {
	for s.at < len(s.src) {
		switch c := s.src[s.at]; {
		case c == '\n':
			s.newline()
		case c == ' ' || c == '\t' || c == '\r':
			s.at++
		case c == '/' && s.has("/*"):
			s.skipTo("*/")
		case c == '/' && s.has("//"):
			s.skipLine()
		default:
			return
		}
	}
}

// skipBlanks is skip within the line.
func (s *scanner) skipBlanks() {
	for s.at < len(s.src) {
		switch c := s.src[s.at]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.at++
		case c == '/' && s.has("/*"):
			s.skipTo("*/")
		default:
			return
		}
	}
}

func (s *scanner) newline() {
	s.at++
	s.line++
	s.lineStart = s.at
}

func (s *scanner) has(text string) bool {
	end := s.at + len(text)
	return end <= len(s.src) &&
		string(s.src[s.at:end]) == text
}

func (s *scanner) skipLine() {
	for s.at < len(s.src) && s.src[s.at] != '\n' {
		s.at++
	}
}

func (s *scanner) skipTo(end string) {
	for s.at < len(s.src) && !s.has(end) {
		if s.src[s.at] == '\n' {
			s.newline()
		} else {
			s.at++
		}
	}
	s.at = min(s.at+len(end), len(s.src))
}

// peek returns the next byte after blanks, 0 at the end.
func (s *scanner) peek() byte {
	s.skip()
	if s.at < len(s.src) {
		return s.src[s.at]
	}
	return 0
}

// accept consumes text when it comes next.
func (s *scanner) accept(text string) bool {
	s.skip()
	if !s.has(text) {
		return false
	}
	s.at += len(text)
	return true
}

func (s *scanner) expect(text string) error {
	if s.accept(text) {
		return nil
	}
	return s.failNext("expected %q, found %s", text, s.found())
}

// found describes what comes next, for errors.
func (s *scanner) found() string {
	if s.peek() == 0 && s.at >= len(s.src) {
		return "the end of the file"
	}
	end := s.at
	for end < len(s.src) &&
		end < s.at+24 &&
		s.src[end] != '\n' &&
		s.src[end] != ' ' {
		end++
	}
	return fmt.Sprintf(
		"%q",
		s.src[s.at:max(end, s.at+1)],
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
	start := s.at
	for s.at < len(s.src) &&
		nameBytes[s.src[s.at]] &&
		!(s.src[s.at] == '-' && s.has("->")) {
		s.at++
	}
	if s.at == start {
		return nil, s.failNext("expected %s, found %s", what, s.found())
	}
	if s.at-start > MaxName {
		return nil, s.failNext("a name of %d bytes; at most %d are read", s.at-start, MaxName)
	}
	return s.src[start:s.at], nil
}

var closing = map[byte]byte{
	'(': ')',
	'[': ']',
	'{': '}',
}

// raw reads text up to a delimiter at depth 0 (a comma, a semicolon, a closing
// bracket or the end of the line), brackets balanced and strings respected.
func (s *scanner) raw() (string, error) {
	s.skipBlanks()
	start, open := s.at, s.position()
	var stack []byte
	for s.at < len(s.src) {
		c := s.src[s.at]
		switch {
		case c == '"':
			if err := s.skipString(); err != nil {
				return "", err
			}
			continue
		case closing[c] != 0:
			if stack = append(stack, closing[c]); len(stack) > maxDepth {
				return "", s.fail(s.position(), "brackets nested more than %d deep", maxDepth)
			}
		case c == ')' || c == ']' || c == '}':
			if len(stack) == 0 {
				return string(bytes.TrimSpace(s.src[start:s.at])), nil
			}
			if stack[len(stack)-1] != c {
				return "", s.fail(
					s.position(), "expected %q to close the bracket, found %q",
					stack[len(stack)-1], c,
				)
			}
			stack = stack[:len(stack)-1]
		case len(stack) == 0 &&
			(c == ',' || c == ';' || c == '\n'):
			return string(bytes.TrimSpace(s.src[start:s.at])), nil
		}
		if c == '\n' {
			s.newline()
		} else {
			s.at++
		}
	}
	if len(stack) > 0 {
		return "", s.fail(open, "the bracket opened here is never closed")
	}
	return string(bytes.TrimSpace(s.src[start:s.at])), nil
}

func (s *scanner) skipString() error {
	open := s.position()
	for s.at++; s.at < len(s.src); s.at++ {
		switch s.src[s.at] {
		case '\\':
			s.at++
		case '\n':
			return s.fail(open, "the string opened here does not end on its line")
		case '"':
			s.at++
			return nil
		}
	}
	return s.fail(open, "the string opened here never ends")
}

// MaxName is the length in bytes of the longest name that is read; real ones
// stay under 300.
const MaxName = 4096

const maxDepth = 200 // of brackets; real dumps stay under ten
