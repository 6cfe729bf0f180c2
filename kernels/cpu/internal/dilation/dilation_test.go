package dilation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels/cpu/internal/dilation"
)

// TestEachTerm compares the terms of phases with those that a loop over all places of all
// windows finds on elements, for random windows of two dimensions and a few channels.
func TestEachTerm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		w, behind := randomWindows(rng)
		got := map[string][]string{}
		most := 0
		fromStride, toStride := w.Strides()
		w.Each(&behind, func(p *dilation.Phase) bool {
			most = max(most, p.Rows)
			for n := range int64(p.Rows) {
				row := fmt.Sprint(p.From+n*fromStride, p.To+n*toStride)
				if _, twice := got[row]; twice {
					t.Fatalf("row %s of %+v is visited twice", row, w)
				}
				got[row] = []string{}
				w.EachTerm(p, func(from, to int64) {
					got[row] = append(got[row], fmt.Sprint(from, to))
				})
			}
			return true
		})
		want := allTerms(w, behind)
		if len(got) != len(want) {
			t.Fatalf("%+v: %d rows, want %d", w, len(got), len(want))
		}
		for row, terms := range want {
			if !slices.Equal(got[row], terms) {
				t.Fatalf("%+v behind %v: row %s has terms %v, want %v", w, behind[:2], row, got[row], terms)
			}
		}
		if most != w.RowsAtOnce() {
			t.Fatalf("%+v: %d rows at once, want %d", w, w.RowsAtOnce(), most)
		}
	}
}

// TestEachStops checks that no phase is visited after one that stops.
func TestEachStops(t *testing.T) {
	w, behind := randomWindows(rand.New(rand.NewPCG(3, 4)))
	visited := 0
	w.Each(&behind, func(*dilation.Phase) bool {
		visited++
		return false
	})
	if visited != 1 {
		t.Errorf("%d phases are visited, want 1", visited)
	}
}

// randomWindows are rows of an image and places in a row of it, and terms of two such
// dimensions and of channels.
func randomWindows(rng *rand.Rand) (*dilation.Windows, dilation.Distance) {
	w := &dilation.Windows{
		By: []int64{1 + rng.Int64N(4), 1 + rng.Int64N(4)},
	}
	random := func(along int) dilation.Dim {
		return dilation.Dim{
			Size:  1 + rng.Int64N(6),
			Step:  1 + rng.Int64N(4),
			Along: along,
		}
	}
	w.Rows = []dilation.Dim{random(0), random(1)}
	w.Terms = []dilation.Dim{random(0), random(1), {Size: 4, Along: -1}}
	if rng.IntN(4) == 0 { // rows of channels, which move along nothing
		w.Rows = append(w.Rows, random(-1))
	}
	// Every row and term has places of its own.
	from, to := int64(1), int64(1)
	for _, dims := range [][]dilation.Dim{w.Rows, w.Terms} {
		for k := len(dims) - 1; k >= 0; k-- {
			dims[k].From, dims[k].To = from, to
			from *= dims[k].Size
			to *= dims[k].Size
		}
	}
	return w, dilation.Distance{rng.Int64N(5), rng.Int64N(5)}
}

// allTerms are the terms on elements of every row, by one loop over all indices.
func allTerms(w *dilation.Windows, behind dilation.Distance) map[string][]string {
	all := map[string][]string{}
	outer := w.Terms[:len(w.Terms)-1]
	for row := range indices(w.Rows) {
		from, to, at := moved(w.Rows, row, behind)
		terms := []string{}
		for term := range indices(outer) {
			f, o, place := moved(outer, term, at)
			if place[0]%w.By[0] == 0 && place[1]%w.By[1] == 0 {
				terms = append(terms, fmt.Sprint(f, o))
			}
		}
		all[fmt.Sprint(from, to)] = terms
	}
	return all
}

// indices are all indices of some dimensions, the last one fastest.
func indices(dims []dilation.Dim) func(yield func([]int64) bool) {
	total := int64(1)
	for _, d := range dims {
		total *= d.Size
	}
	return func(yield func([]int64) bool) {
		for n := range total {
			index := make([]int64, len(dims))
			for k := len(dims) - 1; k >= 0; k-- {
				index[k] = n % dims[k].Size
				n /= dims[k].Size
			}
			if !yield(index) {
				return
			}
		}
	}
}

// moved is where an index lies in both operands, and on the dilated array.
func moved(
	dims []dilation.Dim, index []int64, at dilation.Distance,
) (from, to int64, place dilation.Distance) {
	for k, d := range dims {
		from += index[k] * d.From
		to += index[k] * d.To
		if d.Along >= 0 {
			at[d.Along] += index[k] * d.Step
		}
	}
	return from, to, at
}
