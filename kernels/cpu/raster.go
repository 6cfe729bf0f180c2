package cpu

// A raster is the order of tile programs. The last dimension runs fastest,
// but for groups: the rows of tiles along the dimension before it are taken a
// group at a time, and within a group the row runs faster than the column, so
// that the programs that run near each other read few rows and few columns
// (Triton's GROUP_SIZE_M). A group of one row is the plain order, one of all
// rows the columns' order.
type raster struct {
	grid   []int64 // tiles along each parallel dimension, which are the first of the space
	row    int     // grouped dimension; −1 for none
	column int
	group  int64 // rows
}

// newRaster groups the last two dimensions that have several tiles.
func newRaster(grid []int64, group int64) raster {
	r := raster{grid: grid, row: -1, group: group}
	if group <= 1 {
		return r
	}
	several := severalOf(grid)
	if len(several) < 2 {
		return r
	}
	r.row = several[len(several)-2]
	r.column = several[len(several)-1]
	r.group = min(group, grid[r.row])
	return r
}

// severalOf lists the dimensions of more than one tile.
func severalOf(grid []int64) (dims []int) {
	for k, n := range grid {
		if n > 1 {
			dims = append(dims, k)
		}
	}
	return dims
}

// locate sets the tile ids of program n of the order.
func (r *raster) locate(tids []int64, n int64) {
	for k := len(r.grid) - 1; k >= 0; k-- {
		tids[k] = n % r.grid[k]
		n /= r.grid[k]
	}
	if r.row < 0 {
		return
	}
	columns := r.grid[r.column]
	n = tids[r.row]*columns + tids[r.column]
	first := n / (r.group * columns) * r.group
	n -= first * columns
	rows := min(r.group, r.grid[r.row]-first)
	tids[r.row], tids[r.column] = first+n%rows, n/rows
}
