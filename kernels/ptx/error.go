package ptx

import "github.com/tilewright/tilewright/symtile/source"

// An Error describes what is wrong with a module: the position in its text, the
// line, and a caret.
type Error = source.Error
