package cpu

import (
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/rowkernel"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// The translation to a row kernel leaves everything behind that is about the
// lowering: instructions, classes, live ranges. What the kernel needs to know of a
// value is a constant's bits, and its place in scratch once that is laid out; of an
// access, its strides and what kind of memory it is in. The kernel answers with the
// scratch that it needs, and with code that takes addresses.

// translate makes the kernel of the group and plans it. It returns the values
// of the lowering that the kernel keeps in scratch: rows of values that a later
// sweep reads again, and the slab.
func (n *rowGroup) translate() []*value {
	// Each value of the group has one value of the kernel, which is made when it is
	// first mentioned.
	n.values = map[*value]*rowkernel.Value{}
	k := &rowkernel.Kernel{
		Extents:    n.extents,
		Loads:      map[*rowkernel.Value]*rowkernel.Access{},
		Stores:     map[*rowkernel.Value]*rowkernel.Access{},
		Scalars:    map[*rowkernel.Value]bool{},
		Broadcasts: map[*rowkernel.Value]*rowkernel.Value{},
	}
	n.kernel = k
	n.origin = map[*rowkernel.Access]*rowAccess{}
	n.translateItems()
	for v := range n.scalars {
		k.Scalars[n.value(v)] = true
	}
	for v, scalar := range n.broadcasts {
		k.Broadcasts[n.value(v)] = n.value(scalar)
	}
	for _, s := range n.list {
		access := n.access(s)
		n.origin[access] = s
		k.Accesses = append(k.Accesses, access)
		if n.stores[s.v] == s {
			k.Stores[access.Value] = access
		} else {
			k.Loads[access.Value] = access
		}
	}
	n.translatePairs()
	for _, v := range n.storeOrder {
		k.StoreOrder = append(k.StoreOrder, n.value(v))
	}
	k.Plan()
	return n.allocate()
}

// translatePairs joins the accesses of pairs.
func (n *rowGroup) translatePairs() {
	// Each access of the group has one of the kernel, whose first one of a pair has the address.
	of := map[*rowAccess]*rowkernel.Access{}
	for x, s := range n.origin {
		of[s] = x
	}
	for s, other := range n.pairs {
		x := of[s]
		y := of[other]
		x.Pair = y
		y.Pair = x
		y.Odd = true
	}
}

// translateItems translates the operations and reductions of the group, in the
// order of its items. Loads, stores and broadcasts are accesses and maps in the
// kernel, and no items.
func (n *rowGroup) translateItems() {
	// The group has its own copies of the reductions, in the order of the items.
	reductions := n.reductions
	for _, i := range n.items {
		if i.reduction != nil {
			f := reductions[0]
			reductions = reductions[1:]
			n.kernel.Items = append(n.kernel.Items, rowkernel.Item{
				Reduction: &rowkernel.Reduction{
					Monoid:     f.monoid,
					Arg:        n.value(f.arg),
					Out:        n.value(f.out),
					Init:       n.value(f.init),
					AcrossRows: f.acrossRows,
					PerRow:     f.perRow,
					Relaxed:    f.relaxed,
				},
			})
		}
		for _, x := range i.group {
			if p := x.pointwise; p != nil {
				op := &rowkernel.Op{
					Instr: p.instr,
					Out:   n.value(p.out),
					Below: p.below,
				}
				for _, v := range p.args {
					op.Args = append(op.Args, n.value(v))
				}
				n.kernel.Items = append(
					n.kernel.Items, rowkernel.Item{Op: op},
				)
			}
		}
	}
}

// readsMemory reports whether a parameter takes at least half of the last cache, as outputs do
// that are written past it.
func (l *lowering) readsMemory() bool {
	return slices.ContainsFunc(l.p.Physical.ParamShapes(), func(s hlo.Shape) bool {
		return 2*s.Bytes() >= l.spec.last
	})
}

// value is the translation of v, nil of nil.
func (n *rowGroup) value(v *value) *rowkernel.Value {
	if v == nil {
		return nil
	}
	x := n.values[v]
	if x == nil {
		x = &rowkernel.Value{ID: v.id, Constant: v.constant}
		n.values[v] = x
	}
	return x
}

// access is the translation of s. What kind of memory it is in is filled in by
// compile.
func (n *rowGroup) access(s *rowAccess) *rowkernel.Access {
	return &rowkernel.Access{
		Value:       n.value(s.v),
		Strides:     s.strides,
		Start:       s.start,
		Half:        s.halfType(),
		Flushes:     s.narrow,
		NonTemporal: s.nonTemporal,
		NextTile:    n.l.nextTile[s.v],
	}
}

// allocate gives what the kernel keeps scratch: the saved values a row each, and
// the rest a slab.
func (n *rowGroup) allocate() []*value {
	var scratch []*value
	for _, saved := range n.kernel.Saved() {
		v := n.l.values[saved.ID]
		v.where = inRow
		v.n = n.cols()
		v.tile = noTile
		scratch = append(scratch, v)
	}
	slab := n.l.value(
		"kept", portable.Float32, noTile, n.kernel.SlabLength(),
	)
	slab.where = inRow
	n.kernel.Slab().ID = slab.id
	return append(scratch, slab)
}

// compile makes the step that runs the kernel of the group, when scratch has
// been laid out. The step collects the addresses of the accesses and calls the
// code; everything else was decided before.
func (n *rowGroup) compile(l *lowering) (step, error) {
	// Everything has its place now: results of loops may have been bound to outputs
	// since the group was translated.
	for v, x := range n.values {
		x.Offset = v.at
	}
	for x, s := range n.origin {
		x.InScratch = s.view == nil &&
			s.v.where != inMemory
		x.External = s.v.where == inMemory ||
			s.view != nil && s.view.from == nil
	}
	n.kernel.Slab().Offset = l.values[n.kernel.Slab().ID].at
	code, err := n.kernel.Compile(rowkernel.Options{
		Unroll:       l.knob("unroll", 0),
		Prefetch:     l.knob("prefetch", -1),
		Ahead:        l.knob("ahead", -1),
		Fetch:        l.spec.fetch,
		FetchPastRow: l.spec.fetchPastRow,
		FetchSecond:  l.spec.fetchSecond,
		FetchPass:    l.spec.fetchPass,
		Places:       l.spec.places,
		SumPlaces:    l.spec.sumPlaces,
		SumBits:      l.spec.sumBits,
		Vanishes:     l.spec.vanishes,
		FromMemory:   l.readsMemory(),
		First:        int64(l.spec.First),
		Wide:         l.spec.wide && l.knob("width", 512) == 512,
		RoundsHalves: l.spec.rounds,
		Memory:       l.spec.memory,
	})
	if err != nil {
		return nil, err
	}
	code.Func = l.addText(code.Text)
	if code.CachedText != nil {
		code.CachedFunc = l.addText(code.CachedText)
	}
	// Reductions that accumulate in memory find their initial value there.
	var init []step
	for _, f := range n.reductions {
		if f.init != nil && !f.perRow {
			init = append(init, f.initSteps...)
		}
	}
	accesses := make([]*rowAccess, len(code.Accesses))
	for k, x := range code.Accesses {
		accesses[k] = n.origin[x]
	}
	return func(w *worker) {
		for _, f := range init {
			f(w)
		}
		var addresses rowkernel.Addresses
		for k, s := range accesses {
			addresses[k] = s.address(w)
		}
		scratch := unsafe.Pointer(unsafe.SliceData(w.arena))
		code.Run(&w.rowArgs, scratch, &addresses, w.stopped)
	}, nil
}

// address is where the array of the access begins.
func (x *rowAccess) address(w *worker) unsafe.Pointer {
	if x.view != nil {
		return x.view.base(w)
	}
	return w.addresses[x.v.id]
}
