package indexing

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Fusions of compilers have tens of instructions, rarely thousands. Beyond
// these a walk from the root would take more stack or time than anybody wants.
const (
	maxInstrs = 100_000
	maxDepth  = 10_000 // instructions on a path from a parameter to the root
)

// TooLarge says why a computation is not analyzed.
type TooLarge struct {
	Instr  *hlo.Instr // the root, or the first instruction that is too deep
	Reason string
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf(
		"%s (%s): %s [too-large]", e.Instr.Name, e.Instr.Op, e.Reason,
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
