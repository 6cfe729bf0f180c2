package symtile

import (
	"fmt"
	"iter"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Untileable says why a fusion cannot be tiled.
type Untileable struct {
	Instr  *hlo.Instr
	Rule   string // the propagation rule that said no, e.g. "reshape-generic"
	Reason string
}

func (e *Untileable) Error() string {
	return fmt.Sprintf("%s (%s): %s [%s]", e.Instr.Name, e.Instr.Op, e.Reason, e.Rule)
}

// Analyze propagates tiles with symbolic sizes from the roots of c to its
// parameters. The error is an *Untileable when c is valid but can't be tiled.
func Analyze(c *hlo.Computation) (*Program, error) { panic("tile room") }

// At returns the program with sizes t. A tiling of the wrong length, out of
// [1, extent] or against a constraint is an error that says which.
func (p *Program) At(t Tiling) (*Program, error) { panic("tile room") }

// Check is the cheap half of At: nil when t is legal.
func (p *Program) Check(t Tiling) error { panic("tile room") }

// Tilings yields every legal tiling made of the sizes the space proposes
// (powers of two, divisors, the extent), pruned during the product.
func (s *Space) Tilings() iter.Seq[Tiling] { panic("tile room") }

// Count is the number of tilings Tilings yields.
func (s *Space) Count() int64 { panic("tile room") }
