package kernels

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// An Uncomputed is the error of a program that a backend has no code for, whatever the
// plan: Default returns it, and a search for plans is of no use. It comes from the
// tables of operations and types of the backend's code.
type Uncomputed struct {
	Instr *hlo.Instr
	// Reason is a whole clause, which names the backend.
	Reason string
}

// Error names the instruction and the reason.
func (e *Uncomputed) Error() string {
	return fmt.Sprintf("%s (%s): %s", e.Instr.Name, e.Instr.Op, e.Reason)
}
