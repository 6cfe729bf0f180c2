package coalesce

import (
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// TestRequest: a request counts what an assignment with the same accesses counts.
func TestRequest(t *testing.T) {
	r := index.NewRing()
	l, err := layout.Parse("f32[64,100]")
	if err != nil {
		t.Fatal(err)
	}
	x, err := (Assignment{
		Tile:     []int64{4, 100},
		Threads:  []int64{1, 32},
		Elements: []int64{1, 4},
	}).Of(r, l)
	if err != nil {
		t.Fatal(err)
	}
	want, err := x.Coalescing(4, layout.Sectors{})
	if err != nil {
		t.Fatal(err)
	}
	block := r.Var(index.Variable{Name: "block", Hi: 15, Role: index.RoleBlock})
	thread := r.Var(index.Variable{Name: "thread", Hi: 31, Role: index.RoleThread})
	row := r.Var(index.Variable{Name: "row", Hi: 3, Role: index.RoleLoop})
	col := thread.Scale(4)
	q := Request{
		Offset:  block.Scale(4).Add(row).Scale(100).Add(col).Scale(4),
		Bytes:   16,
		Where:   index.Require(col, 0, 99),
		Blocks:  []index.Expr{block},
		Threads: []index.Expr{thread},
		Block:   32,
		Loops:   []LoopRange{{Var: row, Lo: 0, Hi: 3}},
	}
	got, err := q.Count(r, layout.Sectors{})
	if err != nil || got != want.PerRequest {
		t.Errorf("%+v, not %+v, %v", got, want.PerRequest, err)
	}
	q.Loops[0].Hi = 1 // half of the rounds
	if half, err := q.Count(r, layout.Sectors{}); err != nil ||
		2*half.Requests != got.Requests {
		t.Errorf("%+v, %v", half, err)
	}
	q.Loops = nil
	if _, err := q.Count(r, layout.Sectors{}); err == nil ||
		!strings.Contains(err.Error(), "depends on row") {
		t.Errorf("a variable that nothing decides: %v", err)
	}
	for _, bad := range []Request{
		{Offset: r.Const(0), Block: 32},
		{Offset: r.Const(0), Bytes: 4},
		{Offset: r.Const(0), Bytes: 4, Block: 1, Loops: []LoopRange{
			{Var: row, Lo: 0, Hi: 1 << 40},
		}},
	} {
		if _, err := bad.Count(r, layout.Sectors{}); err == nil {
			t.Errorf("%+v is counted", bad)
		}
	}
}

// TestCountOffsets: an offset counts once, however many threads ask for it.
func TestCountOffsets(t *testing.T) {
	for _, c := range []struct {
		offsets []int64
		bytes   int64
		want    Count
	}{
		{nil, 4, Count{Requests: 1}},
		{[]int64{0, 4, 8, 4}, 4, Count{1, 12, 1, 1, 1}},
		{[]int64{256, 0, 128}, 4, Count{1, 12, 3, 3, 1}},
		{[]int64{24}, 16, Count{1, 16, 2, 1, 1}},
	} {
		if got := CountOffsets(c.offsets, c.bytes); got != c.want {
			t.Errorf("%d bytes at %d: %+v, not %+v", c.bytes, c.offsets, got, c.want)
		}
	}
}

// TestContiguous: positions are contiguous where the normal form shows it.
func TestContiguous(t *testing.T) {
	r := index.NewRing()
	x := r.Var(index.Variable{Name: "x", Hi: 7})
	at := func(scale, n int64) (all []index.Expr) {
		for k := range n {
			all = append(all, x.Scale(scale).AddConst(k))
		}
		return all
	}
	for _, c := range []struct {
		scale, n int64
		want     bool
	}{
		{4, 4, true}, {8, 4, true},
		{6, 2, true}, {6, 4, false},
		{1, 2, false}, {1, 1, true},
	} {
		if got := Contiguous(at(c.scale, c.n)); got != c.want {
			t.Errorf("%d positions from %d·x on: %v", c.n, c.scale, got)
		}
	}
	if Contiguous([]index.Expr{x.Scale(4), x.Scale(4).AddConst(2)}) {
		t.Error("positions with a gap follow each other")
	}
}
