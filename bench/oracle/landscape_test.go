package main

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/tilewright/tilewright/cache"
)

// TestRatios has three plans, the second of which is twice as fast as the first one, and a
// third that looks best in the even blocks only.
func TestRatios(t *testing.T) {
	l := &table{
		Plans:   []string{"1", "2", "3"},
		Prices:  []float64{1, 2, 3},
		Default: 0, Tuned: 1,
		Seconds: [][]float64{
			{2, 2.2, 2, 2.2}, // odd blocks are a tenth slower
			{1, 1.1, 1, 1.1},
			{0.5, 4.4, 0.5, 4.4},
		},
	}
	got := l.ratios()
	want := [columns]float64{0.5, 0.25, 0.5, 1, 1, 1}
	for k, w := range want {
		if math.Abs(got[k]-w) > 1e-12 {
			t.Errorf("ratios %v, want %v", got, want)
		}
	}
	if rho, _ := l.order(); rho < -1 || rho > 1 {
		t.Errorf("ρ is %v", rho)
	}
}

// TestTakes counts the plans that are timed of spaces of several sizes.
func TestTakes(t *testing.T) {
	o := oracle{plans: 150, cheapest: 20}
	for n, want := range map[int]int{10: 10, 150: 150, 151: 150, 4096: 150} {
		taken := 0
		for k := range n {
			if o.takes(k, n) {
				taken++
			}
		}
		if taken < want || taken > want+1 {
			t.Errorf("%d of %d are taken, want %d", taken, n, want)
		}
	}
}

// TestTablesAreKept writes two tables to a file and reads them again; a line whose samples do
// not fit its plans is an error.
func TestTablesAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samples.jsonl")
	if all, err := readTables(file); len(all) > 0 || err != nil {
		t.Fatalf("no file has %v, %v", all, err)
	}
	x := table{
		Fusion: "f", Plans: []string{"1"}, Prices: []float64{1}, Tuned: -1,
		Seconds: [][]float64{{3, 4, 3, 4}}, Bound: 1.5,
	}
	for range 2 {
		if err := x.appendTo(file); err != nil {
			t.Fatal(err)
		}
	}
	all, err := readTables(file)
	if err != nil || len(all) != 2 || all[1].overBound() != 2 {
		t.Fatalf("read %v, %v", all, err)
	}
	x.Tuned = 1
	if err := x.appendTo(file); err != nil {
		t.Fatal(err)
	}
	if _, err := readTables(file); err == nil {
		t.Error("a tuned plan that is not there was read")
	}
}

// TestDeclaredTies: a flip is declared where either record has the other winner among its
// ties.
func TestDeclaredTies(t *testing.T) {
	record := func(plan string, ties ...string) *cache.Record { return &cache.Record{Plan: plan, Ties: ties} }
	for _, c := range []struct {
		a, b             *cache.Record
		differ, declared bool
	}{
		{record("1"), record("1"), false, false},
		{record("1"), record("2"), true, false},
		{record("1", "2"), record("2"), true, true},
		{record("1"), record("2", "3", "1"), true, true},
	} {
		p := pair{winners: [2]*cache.Record{c.a, c.b}}
		if differ, declared := p.other(); differ != c.differ || declared != c.declared {
			t.Errorf("%v and %v: %v, %v", c.a, c.b, differ, declared)
		}
	}
}
