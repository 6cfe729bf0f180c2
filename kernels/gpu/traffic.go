package gpu

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// The memory traffic of a kernel can be predicted from its address expressions: while
// code is emitted, every access of global memory is recorded with the loops around it,
// and package coalesce counts the sectors over the grid. Tests compare the prediction
// with the simulator's counters.

// An emittedAccess is an access of global memory in the generated code, with what
// package coalesce needs to count the sectors that it touches.
type emittedAccess struct {
	store bool
	// Offset is in bytes from the start of the array; bytes is the size of the access
	// of one thread.
	offset index.Expr
	bytes  int64
	when   conditions
	// Around are the loops around the access, and ids the tile ids by block and loops.
	around []coalesce.LoopRange
	ids    map[index.Expr]index.Expr
	// Array is the address of the array.
	array operand
}

// An accessLog records the accesses of a kernel while it is emitted.
type accessLog struct {
	logged []emittedAccess
	// The current loops, and the tile ids as expressions of the block and the loops.
	around []coalesce.LoopRange
	ids    map[index.Expr]index.Expr
	// Loads counts the load instructions.
	loads int
	// Unpredictable is why the log is not complete; "" where it is.
	unpredictable string
}

// logAccess records an access of n elements of an array.
func (e *emitter) logAccess(array operand, store bool, at index.Expr, size, n int64, when conditions) {
	e.logged = append(e.logged, emittedAccess{
		store, at.Scale(size), size * n, when,
		slices.Clone(e.around), e.ids, array,
	})
}

// setTileIDs records the values of tile ids from here on.
func (e *emitter) setTileIDs(ids map[index.Expr]index.Expr) {
	all := maps.Clone(e.ids)
	if all == nil {
		all = map[index.Expr]index.Expr{}
	}
	maps.Copy(all, ids)
	e.ids = all
}

// enterLoop records a loop whose variable has the values of a range.
func (e *emitter) enterLoop(step index.Expr, all coalesce.LoopRange) {
	if _, known := step.Value(); known {
		return
	}
	e.around = append(slices.Clone(e.around), coalesce.LoopRange{
		Var: step,
		Lo:  all.Lo,
		Hi:  all.Hi,
	})
	if e.ids[step] != (index.Expr{}) {
		e.ids = maps.Clone(e.ids)
		delete(e.ids, step)
	}
}

// leaveLoop restores what was known before a loop.
func (e *emitter) leaveLoop(
	around []coalesce.LoopRange, ids map[index.Expr]index.Expr,
) {
	e.around, e.ids = around, ids
}

// request is an access of all blocks of the grid.
func (e *emitter) request(t emittedAccess) coalesce.Request {
	q := coalesce.Request{
		Offset: t.offset,
		Bytes:  t.bytes,
		Block:  e.threads,
		Loops:  t.around,
	}
	var where index.Constraint
	for _, c := range t.when {
		where = index.And(
			where,
			index.Require(c, 0, max(0, c.Range().Hi)),
		)
	}
	s := index.Substitution{With: t.ids}
	q.Offset, q.Where = s.Apply(t.offset),
		where.Subst(t.ids)
	if _, single := e.block.Value(); !single {
		q.Blocks = []index.Expr{e.block}
	} else {
		q.Blocks = []index.Expr{e.ring.Const(0)}
	}
	for _, v := range append(q.Offset.Vars(), q.Where.Vars()...) {
		x, _ := v.Variable()
		if x.Role == index.RoleThread && x.Name == "thread" {
			q.Threads = append(q.Threads, v)
		}
	}
	return q
}

// Traffic is the sectors of global memory that a kernel's instructions touch, counted
// by package coalesce from the expressions of their addresses.
type Traffic struct{ Load, Store coalesce.Count }

// traffic predicts the counters of a simulator. It is an error for kernels whose
// addresses depend on data, or whose blocks share loops.
func (e *emitter) traffic() (all Traffic, err error) {
	if e.unpredictable != "" {
		return all, fmt.Errorf("%s: %s", e.name, e.unpredictable)
	}
	for _, t := range e.logged {
		c, err := e.request(t).Count(
			e.ring, layout.Sectors{},
		)
		if err != nil {
			return all, fmt.Errorf("%s: %w", e.name, err)
		}
		to := &all.Load
		if t.store {
			to = &all.Store
		}
		*to = to.Plus(c)
	}
	return all, nil
}

// A Touch is an instruction of a kernel that loads or stores elements of an array, with
// the map from the threads of the grid to the bytes that they touch.
type Touch struct {
	// Array is the name of a parameter, "output 0" and so on, or "scratch", whose Shape
	// is zero.
	Array string
	Shape hlo.Shape
	// Store says that it writes.
	Store bool
	// Bytes is the size of what a thread touches.
	Bytes int64
	// Access is the map.
	Access *coalesce.Access
}

// touches are what was recorded.
func (e *emitter) touches() (all []Touch, err error) {
	if e.unpredictable != "" {
		return nil, fmt.Errorf("%s: %s", e.name, e.unpredictable)
	}
	for _, t := range e.logged {
		if t.never() {
			continue
		}
		x, err := e.request(t).Access(e.ring)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		name, shape := e.arrayAt(t.array)
		all = append(all, Touch{name, shape, t.store, t.bytes, x})
	}
	return all, nil
}

// never reports whether a loop around the access has no rounds.
func (t emittedAccess) never() bool {
	return slices.ContainsFunc(t.around, func(l coalesce.LoopRange) bool { return l.Hi < l.Lo })
}

// arrayAt is the array at an address: its name and its shape.
func (e *emitter) arrayAt(base operand) (name string, shape hlo.Shape) {
	c := e.p.Physical
	if k := slices.Index(e.params, base); k >= 0 && k < len(c.Params) {
		return c.Params[k].Name, c.Params[k].Shape
	}
	if k := slices.Index(e.outputs, base); k >= 0 {
		return fmt.Sprintf("output %d", k), kernels.OutputShapes(c)[k]
	}
	return "scratch", hlo.Shape{}
}
