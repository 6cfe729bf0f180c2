package source

import "fmt"

// Text is what a Scanner can walk.
type Text interface{ ~string | ~[]byte }

// A Place is a position of a Scanner. The zero Place is invalid; Start is the first.
type Place struct {
	At        int // offset of the next byte
	Line      int // line of At, from 1
	LineStart int // offset of the first byte of that line
}

// Start is the place of the first byte of a text.
func Start() Place { return Place{Line: 1} }

// Find is the place of an offset of a text. It costs a walk over the text up to the offset.
func Find[T Text](text T, at int) Place {
	p := Start()
	for p.At < min(at, len(text)) {
		p.advance(text[p.At])
	}
	return p
}

// In is the position of the place in a named file; its column counts bytes.
func (p Place) In(file string) Position {
	return Position{
		File: file,
		Line: p.Line,
		Col:  p.At - p.LineStart + 1,
	}
}

// advance moves the place behind a byte.
func (p *Place) advance(c byte) {
	p.At++
	if c == '\n' {
		p.Line++
		p.LineStart = p.At
	}
}

// A Scanner walks a text byte by byte. It keeps its place, so that positions cost nothing until they are needed; a reader
// embeds it and adds the tokens of its language.
type Scanner[T Text] struct {
	File string // named in errors
	Src  T
	Place
}

// NewScanner stands at the start of a text.
func NewScanner[T Text](file string, src T) Scanner[T] {
	return Scanner[T]{
		File:  file,
		Src:   src,
		Place: Start(),
	}
}

// Here is the place the scanner is at, to return to or to report.
func (s *Scanner[T]) Here() Place { return s.Place }

// Position is the place the scanner is at, for people.
func (s *Scanner[T]) Position() Position {
	return s.In(s.File)
}

// Fail is the error that something is wrong at a place.
func (s *Scanner[T]) Fail(p Place, format string, args ...any) error {
	return ErrorAt(
		s.File, s.Src, p,
		fmt.Sprintf(format, args...),
	)
}

// Has reports whether the given bytes come next.
func (s *Scanner[T]) Has(text string) bool {
	end := s.At + len(text)
	return end <= len(s.Src) &&
		string(s.Src[s.At:end]) == text
}

// Newline moves over the end of a line, which must come next.
func (s *Scanner[T]) Newline() { s.advance('\n') }

// SkipLine moves to the end of the line.
func (s *Scanner[T]) SkipLine() {
	for s.At < len(s.Src) && s.Src[s.At] != '\n' {
		s.At++
	}
}

// SkipTo moves behind the next occurrence of end, or to the end of the text.
func (s *Scanner[T]) SkipTo(end string) {
	for s.At < len(s.Src) && !s.Has(end) {
		s.advance(s.Src[s.At])
	}
	s.At = min(s.At+len(end), len(s.Src))
}
