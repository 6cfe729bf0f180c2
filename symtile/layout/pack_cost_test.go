package layout

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestPackCost: testdata/pack_cost.txt, one dot a case: m, n, k, type, block.
func TestPackCost(t *testing.T) {
	datadriven.RunTest(t, "testdata/pack_cost.txt", func(t *testing.T, c *datadriven.TestData) string {
		d := Dot{DType: hlo.F32}
		if _, err := fmt.Sscanf(
			c.Input, "%d,%d,%d block %d,%d,%d",
			&d.M, &d.N, &d.K,
			&d.BlockM, &d.BlockN, &d.BlockK,
		); err != nil {
			t.Fatal(err)
		}
		a, b := d.Operands()
		var out strings.Builder
		for _, o := range []Operand{a, b} {
			cost, err := o.PackCost(Memory{})
			if err != nil {
				return err.Error() + "\n"
			}
			fmt.Fprintf(&out, "%s: %s\n", cost.Operand.Name, cost.Why)
		}
		return out.String()
	})
}

// TestFootprint: lines, pages and evicted lines agree with a count byte by byte.
func TestFootprint(t *testing.T) {
	rnd := rand.New(rand.NewSource(3))
	for range 2000 {
		m := Memory{Line: 8, Page: 64, Cache: 256, Ways: 2, TLB: 4, Walk: 1}
		base := int64(rnd.Intn(100))
		rows := int64(1 + rnd.Intn(12))
		stride := int64(1 + rnd.Intn(80))
		rowBytes := int64(1 + rnd.Intn(int(stride)))
		lines, pages, inSet := map[int64]bool{}, map[int64]bool{}, map[int64]int64{}
		evicted := int64(0)
		for i := range rows {
			for b := range rowBytes {
				p := base + i*stride + b
				if line := p / m.Line; !lines[line] {
					lines[line] = true
					if inSet[line%m.sets()]++; inSet[line%m.sets()] > m.Ways {
						evicted++
					}
				}
				pages[p/m.Page] = true
			}
		}
		want := footprint{int64(len(lines)), int64(len(pages)), evicted}
		if got := (Operand{}).stridedFootprint(m, base, rows, rowBytes, stride); got != want {
			t.Fatalf("base %d, %d rows of %d, %d apart: %+v, want %+v", base, rows, rowBytes, stride, got, want)
		}
	}
}

// TestBreakEven: packing pays exactly from the visits that are stated.
func TestBreakEven(t *testing.T) {
	o := Operand{
		Name:         "B",
		Rows:         1024,
		Cols:         1024,
		BlockRows:    64,
		BlockCols:    12,
		ElementBytes: 4,
		Sweeps:       16,
	}
	j, err := o.PackCost(Memory{})
	if err != nil || j.BreakEven < 1 {
		t.Fatalf("%+v %v", j, err)
	}
	for _, visits := range []int64{j.BreakEven - 1, j.BreakEven} {
		if o.Visits = visits; visits == 0 {
			continue
		}
		at, err := o.PackCost(Memory{})
		if err != nil || at.Pays != (visits >= j.BreakEven) ||
			at.Pays != (at.Packing+at.PackedWaste.Total() < at.Waste.Total()) {
			t.Errorf("%d visits, break-even %d: %+v %v", visits, j.BreakEven, at, err)
		}
	}
}
