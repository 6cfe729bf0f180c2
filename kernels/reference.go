package kernels

import "github.com/tilewright/tilewright/symtile/hlo"

// Reference interprets c directly from the HLO semantics with plain loops. It
// is the oracle: one output per root, in tuple order.
func Reference(c *hlo.Computation, in []Buffer) ([]Buffer, error) { panic("kernels room") }
