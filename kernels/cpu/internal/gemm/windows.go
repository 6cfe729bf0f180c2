package gemm

import (
	"fmt"
	"slices"
)

// Windows are where the rows of A begin, and where their terms lie, if A is the windows of a
// convolution in the array that they are windows of: rows follow each other A.Row apart in
// groups of some rows, terms 1 apart in runs of some terms,
//
//	a[i][p] = Data[Groups[i/Rows] + i%Rows·Row + Runs[p/Terms] + p%Terms]
//
// so that windows that overlap are nowhere copied as a whole. Kernels read long runs in place,
// others are packed to slabs.
type Windows struct {
	Rows   int   // The rows of a group.
	Groups []int // Where groups begin, in elements.
	Terms  int   // The terms of a run, at least MinRun.
	Runs   []int // Where runs begin behind the row, in elements.
}

const (
	// MinRun is the terms of a run, at least: a slab has a limited number of runs.
	MinRun = 8
	// maxRuns is the runs of a slab, at most.
	maxRuns = 128
)

// Weights are where the rows of B lie, if they are in runs of some rows, as the weights of some
// channels are for each place of a window:
//
//	b[p][j] = Data[Runs[p/Terms] + p%Terms·Row + j·Col]
//
// They are packed from there to panels.
type Weights struct {
	Terms int   // The rows of a run.
	Runs  []int // Where runs begin, in elements.
}

// ReadsWindows reports whether Multiply reads windows, or weights, of so many rows.
func ReadsWindows[T Element](rows int) bool { return FillsPanels[T](rows) }

// checkWindows panics unless all elements of A are in its slice.
func (x Product[T]) checkWindows() {
	w := x.Windows
	n := len(x.A.Data)
	if s := x.Short[0]; s.Size != 0 {
		n = len(s.Data) / s.Size
	}
	terms := x.first + x.K
	groups := (x.M-1)/w.Rows + 1
	runs := (terms-1)/w.Terms + 1
	rows := x.A.Col == 1 && x.A.Row >= 0
	if !rows ||
		w.Terms < MinRun ||
		groups > len(w.Groups) ||
		runs > len(w.Runs) ||
		w.last(groups, runs, x.A.Row) >= n {
		panic(fmt.Sprintf(
			"gemm: windows of %d×%d in %d groups and %d runs are not in %d elements",
			x.M, x.K,
			len(w.Groups), len(w.Runs), n,
		))
	}
}

// last is the last element of the first groups and runs.
func (w *Windows) last(groups, runs, row int) int {
	group := slices.Max(w.Groups[:groups])
	run := slices.Max(w.Runs[:runs])
	rows := (w.Rows - 1) * row
	return group + rows + run + w.Terms - 1
}

// checkWeights panics unless all elements of B are in its slice.
func (x Product[T]) checkWeights() {
	w := x.Weights
	rows := x.begin + x.K
	last := (w.Terms-1)*x.B.Row + (x.N-1)*x.B.Col
	runs := 0
	if w.Terms > 0 {
		runs = (rows-1)/w.Terms + 1
	}
	if runs == 0 || runs > len(w.Runs) ||
		x.B.Row < 0 || x.B.Col < 0 ||
		x.Panels != 0 || !ReadsWindows[T](x.M) ||
		slices.Min(w.Runs[:runs]) < 0 ||
		slices.Max(w.Runs[:runs])+last >= len(x.B.Data) {
		panic(fmt.Sprintf(
			"gemm: weights of %d×%d in %d runs are not in %d elements",
			x.K, x.N,
			len(w.Runs), len(x.B.Data),
		))
	}
}
