package symtile

import "github.com/tilewright/tilewright/symtile/hlo"

// Kind says how a dimension of a Space is walked.
type Kind uint8

const (
	Parallel   Kind = iota // one tile program per tile id
	Sequential             // a loop inside a tile program: reduction or contraction
)

// A Dim is one tiled dimension. Tid ranges over the tiles, Size is the tile
// size: variables t<i> and s<i> in a symbolic Space, a narrower variable (or
// the constant 0) and a constant in a concrete one.
type Dim struct {
	Name      string // "t0"
	Tid, Size Expr
	Extent    int64
	Tiles     Expr // ⌈Extent/Size⌉
	Kind      Kind
	From      *hlo.Instr // the root, reduce or dot that brought it
}

// A Space is the set of tilings of one fusion: parallel dimensions first, in
// root order, then sequential ones in the order they are met from the root.
type Space struct {
	Ring  *Ring
	Dims  []Dim
	Where Constraint // over the tile sizes
}

// A Tiling is one tile size per Dim of a Space, 1 ≤ size ≤ extent.
type Tiling []int64
