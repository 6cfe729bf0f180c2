package cpu

import (
	"context"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/rowkernel"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/cpu/internal/workers"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A kernel has as many tile programs as the grid has tiles, times the parts of a
// split. They are numbered in the order of the raster and handed to workers in
// chunks, so that programs that run at the same time are near each other in the
// grid and share operands in the last-level cache. For a grid of 4 by 3 tiles, the
// orders of groups of one, two and four rows are
//
// 	 0  1  2      0  2  4      0  4  8
// 	 3  4  5      1  3  5      1  5  9
// 	 6  7  8      6  8 10      2  6 10
// 	 9 10 11      7  9 11      3  7 11

// A worker is the state with which one worker of a kernel runs tile programs.
// All of it is allocated when the plan is compiled, so that running allocates
// nothing; but for large scratch, which the kernel that ran before hands over.
type worker struct {
	workerScratch

	addresses []unsafe.Pointer // The address of each value, by its id.
	tids      []int64          // The tile ids, by dimension of the space, then the run-time variables.
	slots     []int64          // The offsets and bounds of tiles.

	tile     int64 // The number of the tile program.
	part     int64 // The part of it, where contractions are split.
	skipRest bool  // The rest of the tile program is left to another part.

	evalScratch     []int64           // The scratch of compiled expressions.
	scalarRegisters []portable.Scalar // The registers of scalar programs.

	in, out []kernels.Buffer // The arrays of the current run.
	ctx     context.Context  // The context of the current run.

	// The arguments of machine functions, of which one runs at a time.
	rowArgs       rowkernel.Args
	stripArgs     stripCallArgs
	reduceArgs    vector.ReduceArgs
	narrowArgs    vector.NarrowArgs
	windowArgs    vector.WindowArgs
	scale         float32 // What sums are multiplied by, for machine code.
	joined        float64 // A sum of neighbouring runs, of any type.
	extremumArgs  vector.ExtremumArgs
	scanArgs      vector.ScanArgs
	transposeArgs vector.TransposeArgs
	bandArgs      vector.BandArgs
	copyArgs      vector.CopyArgs
	countArgs     vector.CountArgs
	gatherArgs    vector.GatherArgs
	periodicArgs  vector.PeriodicArgs
	periodicRun   vector.PeriodicRun
	scatterArgs   vector.ScatterArgs

	// Copies of an element, from which runs are filled; nil until there is one to fill.
	fillPattern *[4096]byte
}

// stopped reports whether the run was cancelled.
func (w *worker) stopped() bool {
	select {
	case <-w.ctx.Done():
		return true
	default:
		return false
	}
}

// A programLoop runs the tile programs of a kernel on its workers, in the order
// of the raster. Where contractions are split, a tile has one program for each
// part.
type programLoop struct {
	workers []*worker
	body    []step
	order   raster
	split   *splitK
	region  *workers.Region

	in, out []kernels.Buffer // The arrays of the current run.
	ctx     context.Context  // The context of the current run.
}

// newProgramLoop makes the loop over the tile programs of a grid, on one worker
// for each state.
func newProgramLoop(
	states []*worker, body []step, order raster, split *splitK, pool *workers.Pool,
) *programLoop {
	p := &programLoop{
		workers: states,
		body:    body,
		order:   order,
		split:   split,
	}
	programs := hlo.Elements(order.grid) * split.count()
	p.region = pool.NewRegion(len(states), programs, p.runPrograms)
	return p
}

// run runs all tile programs once and returns how long that took.
func (p *programLoop) run(
	ctx context.Context, in, out []kernels.Buffer,
) (time.Duration, error) {
	if p.region.Closed() {
		return 0, workers.ErrClosed
	}
	p.in = in
	p.out = out
	p.ctx = ctx
	p.split.reset()
	elapsed, err := p.region.Run()
	if err != nil {
		return 0, err
	}
	return elapsed, ctx.Err()
}

// runPrograms runs tile programs begin … end−1 as one worker, or skips them once
// the run was stopped.
func (p *programLoop) runPrograms(number int, begin, end int64) {
	// The worker learns of the run with its first chunk: a run cannot end, nor another
	// begin, while a worker has a chunk of it.
	w := p.workers[number]
	w.in = p.in
	w.out = p.out
	w.ctx = p.ctx
	parts := p.split.count()
	for n := begin; n < end && !p.region.Stopped(); n++ {
		if w.stopped() {
			p.region.Stop()
			return
		}
		w.tile = n / parts
		w.part = n % parts
		w.skipRest = false
		p.order.locate(w.tids, w.tile)
		for k := 0; k < len(p.body) && !w.skipRest; k++ {
			p.body[k](w)
		}
	}
}

// A raster is the order of tile programs. The last dimension varies fastest,
// but for groups: the rows of tiles along the dimension before it are taken a
// group at a time, and within a group the row varies faster than the column, so
// that programs that run near each other read few rows and few columns
// (Triton's GROUP_SIZE_M). A group of one row is row-major order, a group of
// all rows is column-major order.
type raster struct {
	// The number of tiles along each parallel dimension. These are the first
	// dimensions of the space.
	grid   []int64
	row    int // The grouped dimension, or −1.
	column int
	group  int64 // The number of rows in a group.
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
	// Of one tile, and of the outermost dimension, nothing is to be divided: a division takes
	// as long as all else here.
	for k := len(r.grid) - 1; k >= 0; k-- {
		tiles := r.grid[k]
		switch {
		case tiles == 1:
			tids[k] = 0
		case n < tiles:
			tids[k], n = n, 0
		default:
			tids[k] = n % tiles
			n /= tiles
		}
	}
	if r.row < 0 {
		return
	}
	// The number of the program among those that differ in row and column only is
	// taken apart anew: whole groups first, then the columns of the group, each with
	// the rows of the group. The last group may have fewer rows.
	columns := r.grid[r.column]
	n = tids[r.row]*columns + tids[r.column]
	first := n / (r.group * columns) * r.group
	n -= first * columns
	rows := min(r.group, r.grid[r.row]-first)
	tids[r.row], tids[r.column] = first+n%rows, n/rows
}
