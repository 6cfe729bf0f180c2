package ptx

import "github.com/tilewright/tilewright/symtile/source"

// An Error says what is wrong with a module, and where in its text.
type Error = source.Error
