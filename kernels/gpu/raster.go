package gpu

import "github.com/tilewright/tilewright/symtile"

// raster is the order in which blocks take tiles: the parallel dimensions with
// more than one tile, and their tile ids as functions of the block's number. The
// last is the fastest, but that groups of tiles of the last but one are gone
// through together, so that blocks that run at the same time share operands in
// the L2 cache (Triton, matrix multiplication tutorial, "L2 Cache Optimizations").
func (e *emitter) raster(block symtile.Expr) (dims []int, ids []symtile.Expr) {
	var tiles []int64
	for k, d := range e.p.Space.Dims {
		if n := constantOf(d.Tiles); d.Kind == symtile.Parallel && n > 1 {
			dims, tiles = append(dims, k), append(tiles, n)
		}
	}
	g := int64(e.knobs.group)
	k := len(dims)
	if g <= 1 || k < 2 {
		return dims, digitsOf(block, tiles)
	}
	rows, cols := tiles[k-2], tiles[k-1]
	if rows%g != 0 {
		e.refuse("group=%d does not divide the %d tiles of dimension %s", g, rows, e.p.Space.Dims[dims[k-2]].Name)
	}
	inner := digitsOf(block, append(append([]int64{}, tiles[:k-2]...), rows/g, cols, g))
	n := len(inner)
	row := inner[n-3].Scale(g).Add(inner[n-1])
	return dims, append(inner[:n-3:n-3], row, inner[n-2])
}
