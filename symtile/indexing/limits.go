package indexing

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Limits on a computation. Fusions of compilers have tens of instructions,
// rarely thousands; beyond these limits a recursive walk from the root would
// take too much stack or time.
const (
	maxInstrs = 100_000
	// maxDepth bounds the instructions on a path from a parameter to the root.
	maxDepth = 10_000
)

// TooLarge is the error of a computation that is too large to be analyzed.
type TooLarge struct {
	// Instr is the root, or the first instruction that is too deep.
	Instr  *hlo.Instr
	Reason string
}

// Error names the instruction and the reason.
func (e *TooLarge) Error() string {
	return fmt.Sprintf(
		"%s (%s): %s [too-large]", e.Instr.Name, e.Instr.Op,
		e.Reason,
	)
}

// CheckSize returns a *TooLarge for a computation of too many instructions or
// too long paths, otherwise nil.
func CheckSize(c *hlo.Computation) error {
	if n := len(c.Instrs); n > maxInstrs {
		return &TooLarge{
			Instr:  c.Root,
			Reason: fmt.Sprintf("the computation has %d instructions; at most %d are one fusion", n, maxInstrs),
		}
	}
	depth := make(map[*hlo.Instr]int, len(c.Instrs))
	for _, i := range c.Instrs {
		for _, o := range i.Operands {
			depth[i] = max(depth[i], depth[o]+1)
		}
		if depth[i] > maxDepth {
			return &TooLarge{
				Instr:  i,
				Reason: fmt.Sprintf("it is more than %d instructions away from the parameters", maxDepth),
			}
		}
	}
	return nil
}
