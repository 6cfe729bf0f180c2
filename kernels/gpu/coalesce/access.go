package coalesce

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// An Assignment assigns the elements of an array to the threads of a grid. A
// block of threads processes a tile. Along dimension d it has Threads[d]
// threads with Elements[d] neighbouring elements each, and repeats that until
// the tile is done. Threads, and the elements of a thread, are numbered along
// Order.
type Assignment struct {
	// Tile is the extents of a block's part of the array.
	Tile []int64
	// Threads are the threads of a block along each dimension.
	Threads []int64
	// Elements are the elements of a thread along each dimension; nil is 1
	// each.
	Elements []int64
	// Order is the dimensions, fastest first; nil is the order in memory.
	Order []int
	// Warp is the threads that access memory together; 0 is 32.
	Warp int64
}

// An Access is an Assignment composed with a layout: the bytes that each thread
// touches.
//
// The variables are, by role: Blocks, one for each dimension of the array
// (RoleBlock); Warp, of a block, and Lane, of a warp (RoleThread); Loop, the
// round of a thread (RoleLoop); Element, of a thread in a round (RoleElement).
// A variable with a single value is that constant, and not among the variables
// of the maps.
type Access struct {
	// Layout is the layout of the array; nil for the access of a Request.
	Layout                    *layout.Layout
	Assignment                Assignment
	Blocks                    []index.Expr
	Warp, Lane, Loop, Element index.Expr
	// Index is the map to the logical index in the array.
	Index index.Map
	// Offset is the map to the byte offset in memory, simplified.
	Offset index.Map

	// bits is the size of an element in memory.
	bits int64
}

// name is what errors call the array.
func (x *Access) name() string {
	if x.Layout == nil {
		return "a request"
	}
	return x.Layout.String()
}

// threads is the number of threads in a block.
func (a Assignment) threads() int64 {
	n, _ := index.Product(a.Threads)
	return n
}

// elements is the number of elements of a thread in a round.
func (a Assignment) elements() int64 {
	n, _ := index.Product(a.Elements)
	return n
}

// rounds is the number of rounds along each dimension.
func (a Assignment) rounds() []int64 {
	out := make([]int64, len(a.Tile))
	for d := range out {
		out[d] = index.CeilDiv(
			a.Tile[d],
			a.Threads[d]*a.Elements[d],
		)
	}
	return out
}

// maxThreads bounds the threads of a block, and the elements of a thread.
const maxThreads = 1 << 16

// withDefaults replaces zero fields by what they stand for.
func (a Assignment) withDefaults(l *layout.Layout) Assignment {
	if a.Elements == nil {
		a.Elements = slices.Repeat([]int64{1}, len(a.Tile))
	}
	if a.Order == nil {
		a.Order = l.Shape.MinorToMajor()
	}
	if a.Warp == 0 {
		a.Warp = 32
	}
	return a
}

// check reports an assignment that does not fit the layout or the bounds.
func (a Assignment) check(l *layout.Layout) error {
	n := l.Shape.Rank()
	for _, x := range []struct {
		name string
		v    []int64
	}{{"tile sizes", a.Tile}, {"thread counts", a.Threads}, {"element counts", a.Elements}} {
		if len(x.v) != n {
			return fmt.Errorf(
				"%d %s for %s, which has rank %d", len(x.v), x.name, l, n,
			)
		}
		for _, v := range x.v {
			if v < 1 || v > 1<<31 {
				return fmt.Errorf("%s %v: each is between 1 and 2^31", x.name, x.v)
			}
		}
	}
	missing := func(d int) bool {
		return !slices.Contains(a.Order, d)
	}
	if len(a.Order) != n ||
		slices.ContainsFunc(l.Shape.MinorToMajor(), missing) {
		return fmt.Errorf("order %v is not a permutation of the %d dimensions", a.Order, n)
	}
	threads, ok1 := index.Product(a.Threads)
	elements, ok2 := index.Product(a.Elements)
	if !ok1 || !ok2 || threads > maxThreads || elements > maxThreads {
		return fmt.Errorf("%v threads with %v elements each: more than %d of either", a.Threads, a.Elements, maxThreads)
	}
	if a.Warp < 1 || a.Warp > 1024 {
		return fmt.Errorf("a warp of %d threads: it has between 1 and 1024", a.Warp)
	}
	if slices.Contains(l.Shape.Dims, 0) {
		return fmt.Errorf("%s has no elements", l)
	}
	if _, ok := index.Product(a.Tile); !ok {
		return fmt.Errorf("a tile of %v has more than 2^63 elements", a.Tile)
	}
	return nil
}

// Of composes the assignment with a layout, in r.
//
// Along dimension d the index is block·tile + (round·threads + thread)·elements
// + element, where thread, round and element are digits of the thread's number,
// of Loop and of Element.
func (a Assignment) Of(
	r *index.Ring, l *layout.Layout,
) (*Access, error) {
	a = a.withDefaults(l)
	if err := a.check(l); err != nil {
		return nil, err
	}
	x := &Access{
		Layout:     l,
		Assignment: a,
		bits:       l.ElementBits(),
	}
	rounds, _ := index.Product(a.rounds())
	for d, e := range l.Shape.Dims {
		x.Blocks = append(
			x.Blocks,
			r.Var(index.Variable{
				Name: fmt.Sprint("block", d),
				Hi:   index.CeilDiv(e, a.Tile[d]) - 1,
				Role: index.RoleBlock,
			}),
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
	x.Warp = variable(
		"warp",
		index.CeilDiv(a.threads(), a.Warp),
		index.RoleThread,
	)
	x.Lane = variable(
		"lane", min(a.Warp, a.threads()), index.RoleThread,
	)
	x.Loop = variable("loop", rounds, index.RoleLoop)
	x.Element = variable("element", a.elements(), index.RoleElement)
	x.index()
	x.offset(r)
	return x, r.Err()
}

// index builds the map to the logical index.
func (x *Access) index() {
	a := x.Assignment
	thread := x.Warp.Scale(a.Warp).Add(x.Lane)
	x.Index = index.Map{
		Dims:   variables(append(slices.Clone(x.Blocks), x.Warp, x.Lane)),
		Ranges: variables([]index.Expr{x.Loop, x.Element}),
		Where:  index.Below(thread, a.threads()),
	}
	threads := a.along(thread, a.Threads)
	rounds := a.along(x.Loop, a.rounds())
	elements := a.along(x.Element, a.Elements)
	for d := range a.Tile {
		inTile := rounds[d].Scale(a.Threads[d]).Add(threads[d]).Scale(
			a.Elements[d],
		).Add(elements[d])
		x.Index.Where = append(
			x.Index.Where,
			index.Below(inTile, a.Tile[d])...,
		)
		x.Index.Results = append(
			x.Index.Results,
			x.Blocks[d].Scale(a.Tile[d]).Add(inTile),
		)
	}
}

// along delinearizes n in an array of extents, dimensions in Order.
func (a Assignment) along(n index.Expr, extents []int64) []index.Expr {
	out := make([]index.Expr, len(extents))
	for _, d := range a.Order {
		out[d], n = n.Mod(extents[d]), n.Div(extents[d])
	}
	return out
}

// variables are those of es that are not constants.
func variables(es []index.Expr) []index.Expr {
	return slices.DeleteFunc(es, func(e index.Expr) bool {
		_, constant := e.Value()
		return constant
	})
}

// offset composes the index with the layout.
func (x *Access) offset(r *index.Ring) {
	at := x.Layout.Map(r)
	for i, e := range at.Results {
		at.Results[i] = e.Scale(x.bits).Div(8)
	}
	x.Offset = index.Compose(x.Index, at)
	x.Offset.Where = x.Offset.Where.Simplify()
}

// Parts divides the access into parts with and without masks: see layout.Peel.
// Each part is an access with narrower variables, so that the interior of an
// array can have wider vectors than its edge.
func (x *Access) Parts(roles ...index.Role) (out []*Access) {
	for _, m := range layout.Peel(x.Offset, roles...) {
		with := map[index.Expr]index.Expr{}
		for i, v := range m.Vars() {
			with[x.Offset.Vars()[i]] = v
		}
		s := index.Substitution{With: with}
		p := &Access{
			Layout:     x.Layout,
			bits:       x.bits,
			Assignment: x.Assignment,
			Blocks:     s.ApplyAll(x.Blocks),
			Warp:       s.Apply(x.Warp),
			Lane:       s.Apply(x.Lane),
			Loop:       s.Apply(x.Loop),
			Element:    s.Apply(x.Element),
			Index:      x.Index.Subst(with),
			Offset:     m,
		}
		p.Index.Dims = m.Dims
		p.Index.Ranges = m.Ranges
		out = append(out, p)
	}
	return out
}
