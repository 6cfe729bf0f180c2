package source

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Position is a place in a text as it is shown to people.
type Position struct {
	File      string // "" when the text has no name
	Line, Col int    // from 1; columns are bytes unless the reader says otherwise
}

// String is file:line:col, without the file when it has no name.
func (p Position) String() string {
	if p.File == "" {
		return fmt.Sprintf("%d:%d", p.Line, p.Col)
	}
	return fmt.Sprintf(
		"%s:%d:%d", p.File, p.Line, p.Col,
	)
}

// An Error says what is wrong with a text, and where.
type Error struct {
	Position
	Msg   string // what is wrong and what was expected
	Text  string // the source line, or the part of a very long one around the place
	Caret int    // bytes of Text before the place
}

// Error prints file:line:col: msg, then the line and a caret under the place unless the line is blank.
func (e *Error) Error() string {
	head := e.Position.String() + ": " + e.Msg
	if strings.TrimSpace(e.Text) == "" {
		return head
	}
	// Tabs stay tabs, so that the caret stands under its byte at any tab width.
	blanks := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, e.Text[:e.Caret])
	return head + "\n  " + e.Text + "\n  " + blanks + "^"
}

// excerpt is the number of bytes of a long line that an error shows on each side of the place.
const excerpt = 90

// ErrorAt is the error for a place of a text. A line longer than 180 bytes is cut to the part around the place, at the
// boundaries of UTF-8 sequences; invalid UTF-8 is shown as "?", a control character as its picture.
func ErrorAt[T Text](file string, text T, p Place, msg string) *Error {
	at := min(p.At, len(text))
	from := max(p.LineStart, at-excerpt)
	for from < at && !utf8.RuneStart(text[from]) {
		from++
	}
	before := string(text[from:at])
	after, _, _ := strings.Cut(
		string(text[at:min(len(text), at+excerpt)]), "\n",
	)
	after = strings.TrimRight(after, "\r")
	if after == "" {
		before = strings.TrimRight(before, "\r")
	}
	// Made visible apart, since one "?" stands for all bytes of an invalid run.
	before = visible(before)
	return &Error{
		Position: p.In(file),
		Msg:      msg,
		Text:     before + visible(after),
		Caret:    len(before),
	}
}

// visible replaces what a terminal would act on by one character each: a control character but for the tab by its
// picture (U+2400 and following), and invalid UTF-8 by "?".
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ' && r != '\t':
			return '␀' + r
		case r == 0x7f:
			return '␡'
		case unicode.IsControl(r) && r != '\t':
			return '␦'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
