package symtile

import (
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

// untileable gives the reason for operations that have no row in the table of
// propagators.
var untileable = map[hlo.Opcode]string{
	hlo.OpConvolution:        "it has no elements, or its window has none",
	hlo.OpReduceWindow:       "its window has no elements, or its operand is a scalar",
	hlo.OpSelectAndScatter:   "which element of a window it writes to is known at run time only",
	hlo.OpScatter:            "which elements it writes is known at run time only",
	hlo.OpSort:               "every result depends on every element",
	hlo.OpTopK:               "every result depends on every element",
	hlo.OpFft:                "every result depends on every element",
	hlo.OpCholesky:           "it is a library routine, not a tile program",
	hlo.OpTriangularSolve:    "it is a library routine, not a tile program",
	hlo.OpRng:                "its values depend on the order of evaluation",
	hlo.OpRngBitGenerator:    "its values depend on the order of evaluation",
	hlo.OpBatchNormTraining:  "it is several operations, which a partition takes apart",
	hlo.OpBatchNormInference: "it is several operations, which a partition takes apart",
	hlo.OpBatchNormGrad:      "it is several operations, which a partition takes apart",
	hlo.OpCustomCall:         "what it computes is not known here",
	hlo.OpWhile:              "control flow is not part of a tile program",
	hlo.OpConditional:        "control flow is not part of a tile program",
	hlo.OpMap:                "only a map of one operation is elementwise",
	hlo.OpTuple:              "a tuple is only tiled at the root",
	hlo.OpSetDimensionSize:   "it sets an extent at run time; tiles are of extents that are known, or of their bounds",
	hlo.OpGetDimensionSize:   "extents at run time are not known to a tile program",
	hlo.OpDynamicReshape:     "its extents are known at run time only",
	hlo.OpBitcastConvert:     "there is no unsigned integer of the width of its elements",
	hlo.OpStochasticConvert:  "it rounds to signed integers; what it does otherwise is not defined",
	hlo.OpBitcast:            "it changes the element type, or tiled layouts differ in size",
}

// inBackground are operations that move data, most of them between devices, while
// others run, and those that wait for it.
var inBackground = map[hlo.Opcode]bool{
	hlo.OpAsyncStart:  true,
	hlo.OpAsyncUpdate: true,
	hlo.OpAsyncDone:   true,
	hlo.OpSend:        true,
	hlo.OpSendDone:    true,
	hlo.OpRecv:        true,
	hlo.OpRecvDone:    true,
}

// refusalReason is the reason why an operation has no row in the table.
func refusalReason(op hlo.Opcode) string {
	if op == hlo.OpCall { // others are inlined
		return "what it calls is too large to be inlined"
	}
	if reason, ok := untileable[op]; ok {
		return reason
	}
	if op.Class() == hlo.ClassCollective || inBackground[op] {
		return "it exchanges data between devices; what stands before and behind it is tiled for one device"
	}
	return "it is not in the op table"
}
