package gpu

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// A touch is an access of global memory as it was emitted: what the layout room
// needs to count the sectors it moves.
type touch struct {
	store  bool
	offset index.Expr // bytes from the start of the array
	bytes  int64      // of a thread
	when   conditions
	around []coalesce.LoopRange
	ids    map[index.Expr]index.Expr // tile ids by block and loops
}

// A watch is what is known of accesses while code is emitted.
type watch struct {
	touches    []touch
	around     []coalesce.LoopRange      // loops
	ids        map[index.Expr]index.Expr // tile ids that are known by block and loops
	loads      int                       // emitted
	unforeseen string                    // why touches do not say all
}

// touched notes an access of n elements of a size.
func (e *emitter) touched(store bool, at index.Expr, size, n int64, when conditions) {
	e.touches = append(e.touches, touch{
		store, at.Scale(size), size * n, when,
		slices.Clone(e.around), e.ids,
	})
}

// decided says what tile ids are from here on.
func (e *emitter) decided(ids map[index.Expr]index.Expr) {
	all := maps.Clone(e.ids)
	if all == nil {
		all = map[index.Expr]index.Expr{}
	}
	maps.Copy(all, ids)
	e.ids = all
}

// during says that step takes the values of trips from here on.
func (e *emitter) during(step index.Expr, all coalesce.LoopRange) {
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

// after ends what decided and during said since there were these.
func (e *emitter) after(
	around []coalesce.LoopRange, ids map[index.Expr]index.Expr,
) {
	e.around, e.ids = around, ids
}

// request is a touch over the grid.
func (e *emitter) request(t touch) coalesce.Request {
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

// A Traffic is the sectors of global memory that a kernel's instructions touch,
// as the layout room counts them from the expressions of its addresses.
type Traffic struct{ Load, Store coalesce.Count }

// traffic predicts what a simulator counts. Kernels whose addresses depend on
// data, or that share work in ways expressions do not say, are errors.
func (e *emitter) traffic() (all Traffic, err error) {
	if e.unforeseen != "" {
		return all, fmt.Errorf("%s: %s", e.name, e.unforeseen)
	}
	for _, t := range e.touches {
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
