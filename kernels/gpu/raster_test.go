package gpu

import (
	"testing"

	"github.com/tilewright/tilewright/symtile/index"
)

// Groups of rows, whole ones and the one that is left, have each tile once: in a group
// column by column, as Triton's matrix multiplication tutorial has it.
func TestGroupedTiles(t *testing.T) {
	for _, c := range [][3]int64{
		{8, 5, 4}, {7, 5, 4}, {5, 3, 2}, {9, 4, 4}, {3, 6, 16}, {1, 7, 8}, {63, 64, 16},
	} {
		rows, cols, g := c[0], c[1], c[2]
		r := index.NewRing()
		x := r.Var(index.Variable{Name: "block", Lo: 0, Hi: rows*cols - 1, Role: index.RoleBlock})
		row, col := groupedTile(x, rows, cols, g)
		for k := range rows * cols {
			first := k / (g * cols) * g
			size := min(rows-first, g)
			at := map[index.Expr]int64{x: k}
			in := k % (g * cols)
			if gotRow, gotCol := row.Eval(at), col.Eval(at); gotRow != first+in%size || gotCol != in/size {
				t.Fatalf("%dx%d tiles in groups of %d: tile %d is %d,%d, not %d,%d",
					rows, cols, g, k, gotRow, gotCol, first+in%size, in/size)
			}
		}
	}
}
