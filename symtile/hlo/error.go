package hlo

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is a parse or validation error with its place and source line.
type Error struct {
	Pos   Pos
	Msg   string // what is wrong and what was expected
	Line  string // the source line, or the part of a very long one around the place
	Caret int    // bytes of Line before the place
}

// Error prints file:line:col: msg, the line, and a caret.
func (e *Error) Error() string {
	where := e.Pos.File
	if where == "" {
		where = "input"
	}
	head := fmt.Sprintf(
		"%s:%d:%d: %s", where, e.Pos.Line, e.Pos.Col,
		e.Msg,
	)
	if strings.TrimSpace(e.Line) == "" {
		return head
	}
	blanks := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, e.Line[:e.Caret])
	return head + "\n  " + e.Line + "\n  " + blanks + "^"
}

const excerptBytes = 90 // bytes of a long line shown on each side of the place

// errorAt makes the error for offset at, whose line starts at lineStart.
func errorAt(src []byte, pos Pos, lineStart, at int, msg string) *Error {
	at = min(at, len(src))
	from := max(lineStart, at-excerptBytes)
	to := min(len(src), at+excerptBytes)
	if n := bytes.IndexByte(src[at:to], '\n'); n >= 0 {
		to = at + n
	}
	for from < at && !utf8.RuneStart(src[from]) {
		from++
	}
	line := strings.ToValidUTF8(
		strings.TrimRight(string(src[from:to]), "\r"), "?",
	)
	return &Error{
		Pos:   pos,
		Msg:   msg,
		Line:  line,
		Caret: min(at-from, len(line)),
	}
}
