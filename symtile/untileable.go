package symtile

import (
	"cmp"
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Untileable is the error of a fusion that cannot be tiled: the instruction at
// which propagation stopped, the rule that refused it, and the reason in words.
type Untileable struct {
	Instr *hlo.Instr
	// Rule is the name of the propagation rule that refused, for example
	// "reshape-expand".
	Rule string
	// Reason is a clause that continues "it cannot be tiled because …".
	Reason string
}

// Error names the instruction, the reason and, in brackets, the rule.
func (e *Untileable) Error() string {
	return fmt.Sprintf(
		"%s (%s): %s [%s]",
		e.Instr.Name, e.Instr.Op,
		e.Reason, e.Rule,
	)
}

// refuse is an *Untileable with a formatted reason.
func refuse(i *hlo.Instr, rule, format string, args ...any) error {
	return &Untileable{
		Instr:  i,
		Rule:   rule,
		Reason: fmt.Sprintf(format, args...),
	}
}

// untileable gives the reasons of operations that are tiled in other cases. Those of
// operations that never are stand in the table of operations (hlo.Opcode.Not).
var untileable = map[hlo.Opcode]string{
	hlo.OpConvolution:       "it has no elements, or its window has none",
	hlo.OpReduceWindow:      "its window has no elements, or its operand is a scalar",
	hlo.OpMap:               "only a map of one operation is elementwise",
	hlo.OpTuple:             "a tuple is only tiled at the root",
	hlo.OpBitcastConvert:    "there is no unsigned integer of the width of its elements",
	hlo.OpStochasticConvert: "it rounds to signed integers; what it does otherwise is not defined",
	hlo.OpBitcast:           "it changes the element type, or tiled layouts differ in size",
	hlo.OpCall:              "what it calls is too large to be inlined", // others are inlined
}

// refusalReason is the reason why an operation has no row in the table of propagators.
func refusalReason(op hlo.Opcode) string {
	return cmp.Or(untileable[op], op.Not(hlo.CPU), "it is not in the op table")
}
