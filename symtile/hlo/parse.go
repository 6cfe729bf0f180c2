package hlo

// Parse reads a module, or a bare computation, from HLO text. file is used in
// errors, which are *Error.
func Parse(file string, src []byte) (*Module, error) { panic("hlo room") }

// Error is a parse or validation error with its place and source line.
type Error struct {
	Pos  Pos
	Msg  string // what is wrong and what was expected
	Line string // the source line
}

// Error prints file:line:col: msg, the line, and a caret.
func (e *Error) Error() string { panic("hlo room") }
