package cpu

import (
	"github.com/tilewright/tilewright/kernels/cpu/portable"
	"github.com/tilewright/tilewright/kernels/cpu/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A sweepPlan says in which pass over a row a nest computes what.
type sweepPlan struct {
	sweeps     int
	sweepOf    map[*value]int  // of a wide value, the first pass that can compute it; of a narrow one, the pass after which it is known, −1: before all
	firstSweep map[*value]int  // the first pass in which a wide value is computed
	saved      []*value        // wide ones that are kept for later passes
	slots      map[*value]int  // narrow ones that are kept, a vector of copies each
	kept       []*value        // those, in the order of their slots
	after      [][]*value      // narrow ones to compute, before the first pass and after each
	scheduled  map[*value]bool // those
	slab       *value          // scratch of the slots, and behind them of what registers do not hold, and of counters
}

// maxRecomputeCost is the cost up to which a value is computed again rather than kept.
const maxRecomputeCost = 3

// opCosts of operations, roughly in instructions; others are dear.
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

const expensiveOp = 16

// recomputeCost is what computing a value from leaves costs, about.
func (n *rowKernel) recomputeCost(v *value) int {
	p := n.ops[v]
	if p == nil || n.scalars[v] {
		return 0
	}
	c, ok := opCosts[p.instr.Op]
	d := p.instr.Shape.DType
	if !ok || d != hlo.F32 && d != hlo.Pred {
		c = expensiveOp
	}
	for _, x := range p.args {
		if c > maxRecomputeCost {
			return c
		}
		c += n.recomputeCost(x)
	}
	return c
}

// maxAccesses is how many streams a nest can have that move.
const maxAccesses = 10

func (n *rowKernel) planSweeps() bool {
	p := &n.schedule
	*p = sweepPlan{
		sweepOf:    map[*value]int{},
		firstSweep: map[*value]int{},
		slots:      map[*value]int{},
		scheduled:  map[*value]bool{},
	}
	n.assignSweeps()
	p.after = make([][]*value, p.sweeps+1)
	for q := range p.sweeps {
		met := map[*value]bool{}
		for _, v := range n.sweepRoots(q) {
			n.require(v, q, met)
		}
	}
	for _, f := range n.reductions {
		if !f.acrossRows && n.stores[f.out] != nil {
			n.scheduleScalar(f.out)
		}
	}
	for _, v := range n.storeOrder {
		if n.scalars[v] {
			n.scheduleScalar(v)
		}
	}
	return len(n.movingAccesses()) <= maxAccesses
}

// assignSweeps finds the passes.
func (n *rowKernel) assignSweeps() {
	p := &n.schedule
	taken := map[int]int{} // registers of folds, by pass
	for _, i := range n.items {
		if i.reduction != nil {
			level := p.sweepOf[i.reduction.arg]
			regs := vector.Reductions[i.reduction.monoid].Registers()
			for taken[level] > 0 && taken[level]+regs > maxReductionRegs {
				level++
			}
			taken[level] += regs
			p.sweepOf[i.reduction.out] = level
			p.sweeps = max(p.sweeps, 1+level)
		}
		for _, x := range i.group {
			if x.pointwise == nil {
				continue
			}
			level := -1
			if !n.scalars[x.pointwise.out] {
				level = 0
			}
			for _, v := range x.pointwise.args {
				switch {
				case n.broadcasts[v] != nil &&
					n.scalars[x.pointwise.out]:
					level = max(level, p.sweepOf[n.broadcasts[v]])
				case n.broadcasts[v] != nil:
					level = max(level, p.sweepOf[n.broadcasts[v]]+1)
				case n.defines(v):
					level = max(level, p.sweepOf[v])
				}
			}
			p.sweepOf[x.pointwise.out] = level
		}
	}
	for _, v := range n.storeOrder {
		if !n.scalars[v] {
			p.sweeps = max(p.sweeps, 1+p.sweepOf[v])
		}
	}
}

// sweepRoots are the wide values that pass q is for.
func (n *rowKernel) sweepRoots(q int) []*value {
	var roots []*value
	for _, f := range n.reductions {
		if n.schedule.sweepOf[f.out] == q {
			roots = append(roots, f.arg)
		}
	}
	for _, v := range n.storeOrder {
		if !n.scalars[v] && n.schedule.sweepOf[v] == q {
			roots = append(roots, v)
		}
	}
	return roots
}

// require notes what pass q computes for v.
func (n *rowKernel) require(v *value, q int, met map[*value]bool) {
	p := &n.schedule
	if n.broadcasts[v] != nil {
		n.scheduleScalar(n.broadcasts[v])
		n.allocateSlot(n.broadcasts[v])
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
	for _, x := range n.ops[v].args {
		n.require(x, q, met)
	}
}

// rowDivisor is the narrow value by which an operation divides wide ones, if it does.
func (n *rowKernel) rowDivisor(p *pointwiseOp) *value {
	if p.instr.Op != hlo.OpDivide ||
		p.instr.Shape.DType != hlo.F32 ||
		n.scalars[p.out] || n.reducesColumns() {
		return nil
	}
	s := p.args[1]
	switch {
	case n.broadcasts[s] != nil:
		return n.broadcasts[s]
	case n.loads[s] != nil &&
		n.loads[s].col() == 0 &&
		n.loads[s].halfType() == 0 &&
		s.constant == nil:
		return s
	}
	return nil
}

// reciprocal is the narrow value 1/s.
func (n *rowKernel) reciprocal(s *value) *value {
	r := n.reciprocals[s]
	if r == nil {
		r = &value{
			name:  "1/" + s.name,
			n:     1,
			where: inRegister,
		}
		n.reciprocals[s], n.reciprocalOf[r] = r, s
		n.schedule.sweepOf[r] = -1
		if n.defines(s) {
			n.schedule.sweepOf[r] = n.schedule.sweepOf[s]
		}
	}
	return r
}

// isSaved says whether pass q finds v, computed in pass first, in memory.
func (n *rowKernel) isSaved(v *value, first, q int) bool {
	p := &n.schedule
	switch s := n.stores[v]; {
	case s != nil:
		s.nonTemporal = false
		return true
	case n.recomputeCost(v) <= maxRecomputeCost:
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

// scheduleScalar has a narrow value computed as soon as it can be.
func (n *rowKernel) scheduleScalar(v *value) {
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
		for _, x := range made.args {
			if x = n.scalarOf(x); n.scalars[x] {
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

// scalarOf is the narrow value that v is, or is copies of.
func (n *rowKernel) scalarOf(v *value) *value {
	if s := n.broadcasts[v]; s != nil {
		return s
	}
	return v
}

// allocateSlot keeps a narrow value.
func (n *rowKernel) allocateSlot(v *value) {
	p := &n.schedule
	if _, ok := p.slots[v]; !ok {
		p.slots[v] = len(p.kept)
		p.kept = append(p.kept, v)
	}
}

const maxSpills = 12 // vectors that registers do not hold, at most

// allocate gives what is kept scratch.
func (p *sweepPlan) allocate(n *rowKernel) {
	for _, v := range p.saved {
		v.where, v.n, v.tile = inRow, n.cols(), noTile
	}
	p.slab = n.l.value(
		"kept", portable.Float32, noTile,
		8*int64(len(p.kept)+maxSpills)+2*maxRank,
	)
	p.slab.where = inRow
}

// counterOffset is where loops outside of rows count: eight bytes a dimension, behind
// what registers do not hold.
func (p *sweepPlan) counterOffset() int64 {
	return p.slab.at + 32*int64(len(p.kept)+maxSpills)
}

func (p *sweepPlan) scratchValues() []*value {
	return append(
		p.saved[:len(p.saved):len(p.saved)],
		p.slab,
	)
}

// movingAccesses are the streams that need a register each: those that are not at one
// place of the scratch.
func (n *rowKernel) movingAccesses() []*rowAccess {
	var list []*rowAccess
	seen := map[*rowAccess]bool{}
	add := func(s *rowAccess) {
		if s != nil && !seen[s] && !s.inScratch() {
			seen[s] = true
			list = append(list, s)
		}
	}
	for _, i := range n.items { // in an order that does not depend on maps
		for _, x := range append(i.group, i) {
			for _, v := range x.outs {
				add(n.loads[v])
				add(n.stores[v])
			}
			for _, v := range x.stripArgs {
				add(n.loads[v])
				add(n.stores[v])
			}
		}
		if i.reduction != nil {
			add(n.loads[i.reduction.arg])
			add(n.loads[i.reduction.init])
			add(n.stores[i.reduction.out])
		}
	}
	return list
}

// inScratch says whether a stream is one place of the scratch.
func (s *rowAccess) inScratch() bool {
	return s.view == nil &&
		s.v.where != inMemory && s.isFixed()
}
