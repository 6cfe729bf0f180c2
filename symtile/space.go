package symtile

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Kind says how a dimension of a Space is walked.
type Kind uint8

const (
	Parallel   Kind = iota // one tile program per tile id
	Sequential             // a loop inside a tile program: reduction or contraction
)

func (k Kind) String() string {
	if k == Parallel {
		return "parallel"
	}
	return "sequential"
}

// A Dim is one tiled dimension. Tid ranges over the tiles, Size is the tile
// size: variables t<i> and s<i> in a symbolic Space, a narrower variable (or
// the constant 0) and a constant in a concrete one.
type Dim struct {
	Name      string // "t0"
	Tid, Size index.Expr
	Extent    int64
	Tiles     index.Expr // ⌈Extent/Size⌉; 1 for a sequential dimension of extent 0
	Kind      Kind
	From      *hlo.Instr // the root, reduce or dot that brought it
	Halo      int64      // by how much tiles of a window's operand overlap; 0 without a window
}

// A Space is the set of tilings of one fusion: parallel dimensions first, in
// root order, then sequential ones in the order they are met from the root.
type Space struct {
	Ring  *index.Ring
	Dims  []Dim
	Where index.Constraint // over the tile sizes: the legal tilings
	Boxes index.Constraint // over the tile sizes: those of them in which no tile has digits

	legal, boxed *compiledConstraints // Where, and with Boxes, compiled; nil in a concrete space
}

// A Tiling is one tile size per Dim of a Space, 1 ≤ size ≤ max(1, extent).
type Tiling []int64

// newDim makes dimension n of extent; size 0 means symbolic.
func newDim(
	r *index.Ring, n int, extent, size int64,
	kind Kind, from *hlo.Instr,
) Dim {
	d := Dim{
		Name:   fmt.Sprintf("t%d", n),
		Extent: extent,
		Kind:   kind,
		From:   from,
	}
	if size == 0 {
		d.Size = r.Var(index.Variable{
			Name: fmt.Sprintf("s%d", n),
			Lo:   1,
			Hi:   max(1, extent),
			Role: index.RoleTileSize,
		})
		d.Tid = r.Var(index.Variable{
			Name: d.Name,
			Lo:   0,
			Hi:   max(0, extent-1),
			Role: index.RoleTileID,
		})
		d.Tiles = r.Const(extent).CeilDivExpr(d.Size)
	} else {
		tiles := (extent + size - 1) / size
		d.Size = r.Const(size)
		d.Tid = r.Var(index.Variable{
			Name: d.Name,
			Lo:   0,
			Hi:   max(0, tiles-1),
			Role: index.RoleTileID,
		})
		d.Tiles = r.Const(tiles)
	}
	if kind == Sequential && extent == 0 {
		d.Tiles = r.Const(1) // one step, all of it masked
	}
	return d
}

// tile is the part of a tensor dimension that tile id Tid of d covers.
func (d Dim) tile() DimTile {
	r := d.Size.Ring()
	return DimTile{
		Offset: d.Tid.Mul(d.Size),
		Size:   d.Size,
		Stride: r.Const(1),
		Lower:  r.Const(0),
		Bound:  r.Const(d.Extent),
	}
}

// whole is all of a dimension of the extent.
func whole(r *index.Ring, extent int64) DimTile {
	return DimTile{
		Offset: r.Const(0),
		Size:   r.Const(max(1, extent)),
		Stride: r.Const(1),
		Lower:  r.Const(0),
		Bound:  r.Const(extent),
	}
}
