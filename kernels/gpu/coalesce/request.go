package coalesce

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// A Request is an instruction of a kernel that loads or stores contiguous
// bytes, the same number for every thread, as the expressions describe from
// which it was generated. Its variables are those of Blocks and Loops and the
// thread's numbers.
type Request struct {
	// Offset is that of the first byte, from the start of the array.
	Offset index.Expr
	// Bytes is the bytes of a thread.
	Bytes int64
	// Where is the condition under which a thread takes part; nil is always.
	Where index.Constraint
	// Blocks are the variables of the grid.
	Blocks []index.Expr
	// Threads are variables that hold the number of the thread in its block,
	// each with a range of its own.
	Threads []index.Expr
	// Block is the number of threads of a block.
	Block int64
	// Warp is the threads that access memory together; 0 is 32.
	Warp int64
	// Loops are the loops around the instruction, the outermost first.
	Loops []LoopRange
}

// A LoopRange is the values that the variable of a loop takes, Lo to Hi.
type LoopRange struct {
	Var    index.Expr
	Lo, Hi int64
}

// maxAround bounds how often all loops around a request may run.
const maxAround = 1 << 20

// Access is the request as an access whose elements are all the bytes of a thread, in
// the ring of its expressions.
func (q Request) Access(r *index.Ring) (*Access, error) {
	warp := q.Warp
	if warp == 0 {
		warp = 32
	}
	if q.Bytes < 1 ||
		q.Bytes > 1<<20 || q.Block < 1 ||
		q.Block > maxThreads || warp < 1 || warp > maxThreads {
		return nil, fmt.Errorf(
			"a request of %d bytes by each of %d threads in warps of %d",
			q.Bytes, q.Block, warp,
		)
	}
	variable := func(
		name string, n int64, role index.Role,
	) index.Expr {
		return r.Var(index.Variable{
			Name: name,
			Hi:   n - 1,
			Role: role,
		})
	}
	trips := int64(1)
	for _, l := range q.Loops {
		n := l.Hi - l.Lo + 1
		if n < 1 || n > maxAround/trips {
			return nil, fmt.Errorf("a request in loops of more than %d rounds, or of none", int64(maxAround))
		}
		trips *= l.Hi - l.Lo + 1
	}
	x := &Access{
		bits: 8 * q.Bytes,
		Assignment: Assignment{
			Tile:     slices.Repeat([]int64{1}, len(q.Blocks)),
			Threads:  []int64{q.Block},
			Elements: []int64{1},
			Warp:     warp,
		},
		Blocks:  q.Blocks,
		Warp:    variable("warp", index.CeilDiv(q.Block, warp), index.RoleThread),
		Lane:    variable("lane", min(warp, q.Block), index.RoleThread),
		Loop:    variable("loop", trips, index.RoleLoop),
		Element: r.Const(0),
	}
	return x, x.setMaps(q)
}

// setMaps makes the maps of a request.
func (x *Access) setMaps(q Request) error {
	with := map[index.Expr]index.Expr{}
	thread := x.Warp.Scale(x.Assignment.Warp).Add(x.Lane)
	for _, t := range q.Threads {
		with[t] = thread
	}
	rest := x.Loop
	for _, l := range slices.Backward(q.Loops) {
		n := l.Hi - l.Lo + 1
		with[l.Var] = rest.Mod(n).AddConst(l.Lo)
		rest = rest.Div(n)
	}
	s := index.Substitution{With: with}
	x.Offset = index.Map{
		Dims:    variables(append(slices.Clone(x.Blocks), x.Warp, x.Lane)),
		Ranges:  variables([]index.Expr{x.Loop}),
		Results: []index.Expr{s.Apply(q.Offset)},
		Where: index.And(
			q.Where.Subst(with),
			index.Below(thread, q.Block),
		),
	}
	known := x.Offset.Vars()
	for _, v := range append(
		x.Offset.Results[0].Vars(),
		x.Offset.Where.Vars()...,
	) {
		if !slices.Contains(known, v) {
			return fmt.Errorf("a request depends on %s, which neither a block, nor the thread nor a loop decides", v)
		}
	}
	return nil
}

// Count is what the request moves over the whole grid.
func (q Request) Count(r *index.Ring, size layout.Sectors) (Count, error) {
	x, err := q.Access(r)
	if err != nil {
		return Count{}, err
	}
	c, err := x.Coalescing(1, size)
	return c.PerRequest, err
}

// Plus is c and d together.
func (c Count) Plus(d Count) Count { return c.plus(d, 1) }

// CountOffsets counts a single request: of bytes from each of the offsets on,
// in NVIDIA's sectors and lines.
func CountOffsets(offsets []int64, bytes int64) Count {
	size, _ := layout.Sectors{}.WithDefaults()
	points := make([]Point, len(offsets))
	for k, o := range slices.Sorted(slices.Values(offsets)) {
		points[k].Offset = o
	}
	return countRequest(points, 8*bytes, size)
}

// Contiguous reports whether one instruction can move the elements at the
// positions: each follows the one before, and the first is at a multiple of
// their number, for all values of the variables, as far as the normal form
// shows.
func Contiguous(positions []index.Expr) bool {
	first := positions[0]
	// m is 0 for constants
	m, r := first.Congruence()
	if m%int64(len(positions)) != 0 ||
		r%int64(len(positions)) != 0 {
		return false
	}
	for k, x := range positions {
		if x != first.AddConst(int64(k)) {
			return false
		}
	}
	return true
}
