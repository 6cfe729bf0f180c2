package ptx

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// An Error says what is wrong with a module, and where in its text.
type Error struct {
	File      string
	Line, Col int    // from 1; columns are bytes
	Msg       string // what is wrong and what was expected
	Text      string // the source line, or the part of a very long one around the place
	Caret     int    // bytes of Text before the place
}

// Error prints file:line:col: msg, the line, and a caret.
func (e *Error) Error() string {
	file := e.File
	if file == "" {
		file = "ptx"
	}
	head := fmt.Sprintf(
		"%s:%d:%d: %s", file, e.Line, e.Col, e.Msg,
	)
	if strings.TrimSpace(e.Text) == "" {
		return head
	}
	blanks := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, e.Text[:e.Caret])
	return head + "\n  " + e.Text + "\n  " + blanks + "^"
}

const excerpt = 90 // bytes of a long line shown on each side of the place

// errorAt makes the error for offset at of src, in the line that starts at
// lineStart.
func errorAt(file, src string, line, lineStart, at int, msg string) *Error {
	at = min(at, len(src))
	from := max(lineStart, at-excerpt)
	to := min(len(src), at+excerpt)
	if n := strings.IndexByte(src[at:to], '\n'); n >= 0 {
		to = at + n
	}
	for from < at && !utf8.RuneStart(src[from]) {
		from++
	}
	text := strings.ToValidUTF8(
		strings.TrimRight(src[from:to], "\r"), "?",
	)
	caret := len(strings.ToValidUTF8(src[from:at], "?"))
	return &Error{
		File:  file,
		Line:  line,
		Col:   at - lineStart + 1,
		Msg:   msg,
		Text:  text,
		Caret: min(caret, len(text)),
	}
}
