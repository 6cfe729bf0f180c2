package cpu

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/tilewright/tilewright/symtile/hlo"
	"pgregory.net/rapid"
)

// TestRaster draws the orders of testdata/raster.txt: for a grid and a group,
// the place of every tile program in the order, a row of tiles a line.
func TestRaster(t *testing.T) {
	datadriven.RunTest(t, "testdata/raster.txt", func(t *testing.T, d *datadriven.TestData) string {
		grid := listed(t, d, "grid")
		r := newRaster(grid, listed(t, d, "group")[0])
		place := map[string]int64{}
		tids := make([]int64, len(grid))
		for n := range hlo.Elements(grid) {
			r.locate(tids, n)
			place[fmt.Sprint(tids)] = n
		}
		var b strings.Builder
		plain := newRaster(grid, 1)
		for n := range hlo.Elements(grid) {
			plain.locate(tids, n)
			fmt.Fprintf(&b, "%3d", place[fmt.Sprint(tids)])
			if tids[len(grid)-1] == grid[len(grid)-1]-1 {
				b.WriteByte('\n')
			}
		}
		return b.String()
	})
}

func listed(t *testing.T, d *datadriven.TestData, name string) (list []int64) {
	t.Helper()
	for _, a := range d.CmdArgs {
		if a.Key != name {
			continue
		}
		for _, text := range a.Vals {
			v, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
		}
	}
	return list
}

// Every order visits every tile program once.
func TestRasterIsAPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := rapid.SliceOfN(rapid.Int64Range(1, 6), 0, 4).Draw(t, "grid")
		r := newRaster(grid, rapid.Int64Range(1, 9).Draw(t, "group"))
		seen := map[string]bool{}
		tids := make([]int64, len(grid))
		for n := range hlo.Elements(grid) {
			r.locate(tids, n)
			for k, id := range tids {
				if id < 0 || id >= grid[k] {
					t.Fatalf("program %d is at %v of %v", n, tids, grid)
				}
			}
			seen[fmt.Sprint(tids)] = true
		}
		if int64(len(seen)) != hlo.Elements(grid) {
			t.Fatalf("%d places of %d", len(seen), hlo.Elements(grid))
		}
	})
}
