package symtile

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Kind is how a dimension of a Space is iterated.
type Kind uint8

const (
	// Parallel dimensions have one tile program for each tile.
	Parallel Kind = iota
	// Sequential dimensions are a loop inside of a tile program: a reduction or
	// contraction.
	Sequential
)

// String is "parallel" or "sequential".
func (k Kind) String() string {
	if k == Parallel {
		return "parallel"
	}
	return "sequential"
}

// A Dim is one tiled dimension of a Space.
//
// In a symbolic space Tid and Size are variables, named t<i> and s<i>. In a
// concrete one Size is a constant, and Tid a variable of a narrower range, or
// the constant 0 where there is one tile.
type Dim struct {
	// Name is t0, t1, …, in the order of Space.Dims.
	Name string
	// Tid is the number of the tile along the dimension, and Size the elements
	// of a tile.
	Tid, Size index.Expr
	// Extent is the number of elements along the dimension.
	Extent int64
	// Tiles is ⌈Extent/Size⌉; 1 for a sequential dimension of extent 0.
	Tiles index.Expr
	Kind  Kind
	// From is the root, reduce or dot that brought the dimension.
	From *hlo.Instr
	// Halo is the number of elements that the tiles of a window's operand share
	// with the next; 0 without a window.
	Halo int64
}

// A Space is the set of tilings of one fusion. Dims are parallel dimensions
// first, in the order of the root's dimensions, then sequential ones in the
// order in which they are met from the root.
type Space struct {
	Ring *index.Ring
	Dims []Dim
	// Where is the constraint on the tile sizes that the legal tilings satisfy.
	Where index.Constraint
	// Boxes is the constraint on the tile sizes of the legal tilings in which
	// no tile has digits: every tile is a box.
	Boxes index.Constraint

	// legal and boxed are Where, and Where with Boxes, compiled; nil in a
	// concrete space.
	legal, boxed *compiledConstraints
}

// A Tiling is one tile size for each Dim of a Space, with 1 ≤ size ≤ max(1,
// extent).
type Tiling []int64

// newDim makes dimension n of an extent; size 0 makes a symbolic one.
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

// tile is the part of a tensor dimension that tile Tid of d covers.
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

// whole is all of a dimension of the extent; of extent 0, one masked element.
func whole(r *index.Ring, extent int64) DimTile {
	return DimTile{
		Offset: r.Const(0),
		Size:   r.Const(max(1, extent)),
		Stride: r.Const(1),
		Lower:  r.Const(0),
		Bound:  r.Const(extent),
	}
}
