package hlo

import "github.com/tilewright/tilewright/symtile/source"

// Error is a parse or validation error with its place, its source line and a
// caret.
type Error = source.Error
