package rowkernel

import (
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A sweepPlan says in which sweep over a row a kernel computes what.
type sweepPlan struct {
	sweeps int // The number of sweeps.
	// The sweep of a wide value is the first that can compute it. That of a row
	// scalar is the sweep after which it is known, −1 for one that is known
	// before all sweeps.
	sweepOf map[*Value]int
	// The first sweep in which a wide value is computed.
	firstSweep map[*Value]int
	// The wide values that are kept for later sweeps.
	saved []*Value
	// The row scalars that are kept in the slab, a vector of copies each, by
	// number.
	slots map[*Value]int
	kept  []*Value // The row scalars in slots, by number.
	// The row scalars to compute before the first sweep, in element 0, and
	// after each.
	after     [][]*Value
	scheduled map[*Value]bool // The row scalars that are in after.
	// The scratch of the slots, followed by spilled vectors, followed by loop
	// counters.
	slab Value
}

// maxRecomputeCost is the cost up to which a value is computed again in a later
// sweep rather than kept in scratch, and maxColumnRecomputeCost the same where rows are
// combined: the scratch has one row, so that with a value in it rows are done one by one.
const (
	maxRecomputeCost       = 3
	maxColumnRecomputeCost = expensiveOp - 1
)

// opCosts are the costs of cheap operations, roughly in instructions.
var opCosts = map[hlo.Opcode]int{
	hlo.OpAdd:      1,
	hlo.OpSubtract: 1,
	hlo.OpMultiply: 1,
	hlo.OpNegate:   1,
	hlo.OpAbs:      1,
	hlo.OpSelect:   2,
	hlo.OpCompare:  2,
	hlo.OpConvert:  1,
}

// expensiveOp is the cost of operations that are not in opCosts.
const expensiveOp = 16

// maxRecomputeCost is the cost up to which values are computed again in a later sweep.
func (n *Kernel) maxRecomputeCost() int {
	if n.ReducesColumns() {
		return maxColumnRecomputeCost
	}
	return maxRecomputeCost
}

// recomputeCost is about what it costs to compute a value from loads. The sum
// stops where it exceeds what is compared with.
func (n *Kernel) recomputeCost(v *Value) int {
	p := n.ops[v]
	if p == nil || n.Scalars[v] {
		return 0
	}
	c, ok := opCosts[p.Instr.Op]
	d := p.Instr.Shape.DType
	if !ok || d != hlo.F32 && d != hlo.Pred {
		c = expensiveOp
	}
	for _, x := range p.Args {
		if c > n.maxRecomputeCost() {
			return c
		}
		c += n.recomputeCost(x)
	}
	return c
}

// planSweeps assigns sweeps to values, then decides for each sweep what it
// computes, loads again and leaves to later sweeps.
func (n *Kernel) planSweeps() {
	p := &n.schedule
	*p = sweepPlan{
		sweepOf:    map[*Value]int{},
		firstSweep: map[*Value]int{},
		slots:      map[*Value]int{},
		scheduled:  map[*Value]bool{},
	}
	n.assignSweeps()
	p.after = make([][]*Value, p.sweeps+1)
	for q := range p.sweeps {
		met := map[*Value]bool{}
		for _, v := range n.sweepRoots(q) {
			n.require(v, q, met)
		}
	}
	for _, f := range n.reductions {
		if !f.AcrossRows && n.Stores[f.Out] != nil {
			n.scheduleScalar(f.Out)
		}
	}
	for _, v := range n.StoreOrder {
		if n.Scalars[v] {
			n.scheduleScalar(v)
		}
	}
}

// assignSweeps finds the sweep of every value. Reductions of a sweep share the
// registers that are left to their accumulators, so that some move to the next.
func (n *Kernel) assignSweeps() {
	p := &n.schedule
	taken := map[int]int{} // registers of accumulators, by sweep
	for _, i := range n.Items {
		if i.Op != nil {
			p.sweepOf[i.Op.Out] = n.firstSweepOf(i.Op)
			continue
		}
		sweep := p.sweepOf[i.Reduction.Arg]
		regs := vector.Reductions[i.Reduction.Monoid].Registers()
		for taken[sweep] > 0 && taken[sweep]+regs > maxReductionRegs {
			sweep++
		}
		taken[sweep] += regs
		p.sweepOf[i.Reduction.Out] = sweep
		p.sweeps = max(p.sweeps, 1+sweep)
	}
	for _, v := range n.StoreOrder {
		if !n.Scalars[v] {
			p.sweeps = max(p.sweeps, 1+p.sweepOf[v])
		}
	}
}

// firstSweepOf is the first sweep that can compute an operation: one after the
// reductions whose results it repeats, and not before the sweeps of its
// operands. A row scalar is computed between sweeps, after its operands are
// known.
func (n *Kernel) firstSweepOf(op *Op) int {
	p := &n.schedule
	sweep := -1
	if !n.Scalars[op.Out] {
		sweep = 0
	}
	for _, v := range op.Args {
		scalar := n.Broadcasts[v]
		switch {
		case scalar != nil && n.Scalars[op.Out]:
			sweep = max(sweep, p.sweepOf[scalar])
		case scalar != nil:
			sweep = max(sweep, p.sweepOf[scalar]+1)
		case n.defines(v):
			sweep = max(sweep, p.sweepOf[v])
		}
	}
	return sweep
}

// sweepRoots are the wide values for which a sweep exists: what it reduces and
// what it stores.
func (n *Kernel) sweepRoots(q int) []*Value {
	var roots []*Value
	for _, f := range n.reductions {
		if n.schedule.sweepOf[f.Out] == q {
			roots = append(roots, f.Arg)
		}
	}
	for _, v := range n.StoreOrder {
		if !n.Scalars[v] && n.schedule.sweepOf[v] == q {
			roots = append(roots, v)
		}
	}
	return roots
}

// require notes that sweep q needs v, and with it what v is computed from.
func (n *Kernel) require(v *Value, q int, met map[*Value]bool) {
	p := &n.schedule
	if n.Broadcasts[v] != nil {
		n.scheduleScalar(n.Broadcasts[v])
		n.allocateSlot(n.Broadcasts[v])
		return
	}
	if n.ops[v] == nil || met[v] {
		return
	}
	met[v] = true
	if s := n.rowDivisor(n.ops[v]); s != nil {
		r := n.reciprocal(s)
		n.scheduleScalar(r)
		n.allocateSlot(r)
	}
	if first, ok := p.firstSweep[v]; ok {
		if n.isSaved(v, first, q) {
			return
		}
	} else {
		p.firstSweep[v] = q
	}
	for _, x := range n.ops[v].Args {
		n.require(x, q, met)
	}
}

// rowDivisor is the row scalar by which an operation divides wide values, or
// nil. Such a division is done with the reciprocal, see quotient.
func (n *Kernel) rowDivisor(p *Op) *Value {
	if p.Instr.Op != hlo.OpDivide ||
		p.Instr.Shape.DType != hlo.F32 ||
		n.Scalars[p.Out] || n.ReducesColumns() {
		return nil
	}
	s := p.Args[1]
	switch {
	case n.Broadcasts[s] != nil:
		return n.Broadcasts[s]
	case n.Loads[s] != nil &&
		n.Loads[s].col() == 0 &&
		n.Loads[s].Half == 0 &&
		s.Constant == nil:
		return s
	}
	return nil
}

// reciprocal is the row scalar 1/s, which is known as soon as s is.
func (n *Kernel) reciprocal(s *Value) *Value {
	r := n.reciprocals[s]
	if r == nil {
		r = &Value{ID: -1}
		n.reciprocals[s], n.reciprocalOf[r] = r, s
		n.schedule.sweepOf[r] = -1
		if n.defines(s) {
			n.schedule.sweepOf[r] = n.schedule.sweepOf[s]
		}
	}
	return r
}

// isSaved reports whether sweep q finds v, which sweep first computed, in
// memory: because it is stored anyway, which must then leave it in the caches,
// or because it is expensive and kept for this.
func (n *Kernel) isSaved(v *Value, first, q int) bool {
	p := &n.schedule
	switch s := n.Stores[v]; {
	case s != nil:
		s.NonTemporal = false
		return true
	case n.recomputeCost(v) <= n.maxRecomputeCost():
		return false
	}
	for _, u := range p.saved {
		if u == v {
			return true
		}
	}
	p.saved = append(p.saved, v)
	return true
}

// scheduleScalar has a row scalar computed as soon as its operands are known.
// Operands of an earlier sweep come from slots.
func (n *Kernel) scheduleScalar(v *Value) {
	p := &n.schedule
	if p.scheduled[v] {
		return
	}
	p.scheduled[v] = true
	s := n.reciprocalOf[v]
	if s != nil && n.defines(s) {
		n.scheduleScalar(s)
	}
	if made := n.ops[v]; made != nil {
		for _, x := range made.Args {
			if x = n.scalarOf(x); n.Scalars[x] {
				n.scheduleScalar(x)
				if p.sweepOf[x] < p.sweepOf[v] {
					n.allocateSlot(x)
				}
			}
		}
	}
	p.after[p.sweepOf[v]+1] = append(
		p.after[p.sweepOf[v]+1], v,
	)
}

// scalarOf is the row scalar that v is, or repeats.
func (n *Kernel) scalarOf(v *Value) *Value {
	if s := n.Broadcasts[v]; s != nil {
		return s
	}
	return v
}

// allocateSlot gives a row scalar a slot.
func (n *Kernel) allocateSlot(v *Value) {
	p := &n.schedule
	if _, ok := p.slots[v]; !ok {
		p.slots[v] = len(p.kept)
		p.kept = append(p.kept, v)
	}
}

// maxSpills is the number of vectors that a sweep can spill.
const maxSpills = 12

// counterOffset is where the loops outside of rows count in the scratch, eight
// bytes for each dimension.
func (p *sweepPlan) counterOffset() int64 {
	return p.slab.Offset + 32*int64(len(p.kept)+maxSpills)
}
