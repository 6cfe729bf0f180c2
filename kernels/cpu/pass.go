package cpu

import "github.com/tilewright/tilewright/symtile/hlo"

// A nestPlan says in which pass over a row a nest computes what.
type nestPlan struct {
	passes int
	level  map[*value]int  // of a wide value, the first pass that can compute it; of a narrow one, the pass after which it is known, −1: before all
	first  map[*value]int  // the first pass in which a wide value is computed
	saved  []*value        // wide ones that are kept for later passes
	slots  map[*value]int  // narrow ones that are kept, a vector of copies each
	kept   []*value        // those, in the order of their slots
	after  [][]*value      // narrow ones to compute, before the first pass and after each
	done   map[*value]bool // those
	room   *value          // scratch of the slots, and behind them of what registers do not hold, and of counters
}

// cheap is the cost up to which a value is computed again rather than kept.
const cheap = 3

// costs of operations, roughly in instructions; others are dear.
var costs = map[hlo.Opcode]int{hlo.OpAdd: 1, hlo.OpSubtract: 1, hlo.OpMultiply: 1, hlo.OpNegate: 1, hlo.OpAbs: 1, hlo.OpSelect: 2, hlo.OpCompare: 2, hlo.OpConvert: 1}

const dear = 16

// cost is what computing a value from leaves costs, about.
func (n *nest) cost(v *value) int {
	p := n.made[v]
	if p == nil || n.narrow[v] {
		return 0
	}
	c, ok := costs[p.op.Code]
	if d := p.op.Instr.Shape.DType; !ok || d != hlo.F32 && d != hlo.Pred {
		c = dear
	}
	for _, x := range p.args {
		if c > cheap {
			return c
		}
		c += n.cost(x)
	}
	return c
}

// pointers is how many streams a nest can have that move.
const pointers = 10

func (n *nest) makePlan() bool {
	p := &n.plan
	*p = nestPlan{level: map[*value]int{}, first: map[*value]int{}, slots: map[*value]int{}, done: map[*value]bool{}}
	n.levels()
	p.after = make([][]*value, p.passes+1)
	for q := range p.passes {
		met := map[*value]bool{}
		for _, v := range n.roots(q) {
			n.need(v, q, met)
		}
	}
	for _, f := range n.folds {
		if !f.columns && n.stores[f.out] != nil {
			n.known(f.out)
		}
	}
	for _, v := range n.order {
		if n.narrow[v] {
			n.known(v)
		}
	}
	return len(n.moving()) <= pointers
}

// levels finds the passes.
func (n *nest) levels() {
	p := &n.plan
	taken := map[int]int{} // registers of folds, by pass
	for _, i := range n.items {
		if i.fold != nil {
			level := p.level[i.fold.arg]
			regs := machineFolds[i.fold.monoid].registers()
			for taken[level] > 0 && taken[level]+regs > mostFold {
				level++
			}
			taken[level] += regs
			p.level[i.fold.out] = level
			p.passes = max(p.passes, 1+level)
		}
		for _, x := range i.group {
			if x.pure == nil {
				continue
			}
			level := -1
			if !n.narrow[x.pure.out] {
				level = 0
			}
			for _, v := range x.pure.args {
				switch {
				case n.alias[v] != nil && n.narrow[x.pure.out]:
					level = max(level, p.level[n.alias[v]])
				case n.alias[v] != nil:
					level = max(level, p.level[n.alias[v]]+1)
				case n.makes(v):
					level = max(level, p.level[v])
				}
			}
			p.level[x.pure.out] = level
		}
	}
	for _, v := range n.order {
		if !n.narrow[v] {
			p.passes = max(p.passes, 1+p.level[v])
		}
	}
}

// roots are the wide values that pass q is for.
func (n *nest) roots(q int) []*value {
	var roots []*value
	for _, f := range n.folds {
		if n.plan.level[f.out] == q {
			roots = append(roots, f.arg)
		}
	}
	for _, v := range n.order {
		if !n.narrow[v] && n.plan.level[v] == q {
			roots = append(roots, v)
		}
	}
	return roots
}

// need notes what pass q computes for v.
func (n *nest) need(v *value, q int, met map[*value]bool) {
	p := &n.plan
	if n.alias[v] != nil {
		n.known(n.alias[v])
		n.slot(n.alias[v])
		return
	}
	if n.made[v] == nil || met[v] {
		return
	}
	met[v] = true
	if s := n.divisor(n.made[v]); s != nil {
		r := n.inverseOf(s)
		n.known(r)
		n.slot(r)
	}
	if first, ok := p.first[v]; ok {
		if n.keeps(v, first, q) {
			return
		}
	} else {
		p.first[v] = q
	}
	for _, x := range n.made[v].args {
		n.need(x, q, met)
	}
}

// divisor is the narrow value by which an operation divides wide ones, if it does.
func (n *nest) divisor(p *pure) *value {
	if p.op.Code != hlo.OpDivide || p.op.Instr.Shape.DType != hlo.F32 || n.narrow[p.out] || n.columns() {
		return nil
	}
	s := p.args[1]
	switch {
	case n.alias[s] != nil:
		return n.alias[s]
	case n.leaves[s] != nil && n.leaves[s].col() == 0 && n.leaves[s].narrow() == 0 && s.bits == nil:
		return s
	}
	return nil
}

// inverseOf is the narrow value 1/s.
func (n *nest) inverseOf(s *value) *value {
	r := n.inverse[s]
	if r == nil {
		r = &value{name: "1/" + s.name, n: 1, where: inRegister}
		n.inverse[s], n.inverted[r] = r, s
		n.plan.level[r] = -1
		if n.makes(s) {
			n.plan.level[r] = n.plan.level[s]
		}
	}
	return r
}

// keeps says whether pass q finds v, computed in pass first, in memory.
func (n *nest) keeps(v *value, first, q int) bool {
	p := &n.plan
	switch s := n.stores[v]; {
	case s != nil:
		s.large = false
		return true
	case n.cost(v) <= cheap:
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

// known has a narrow value computed as soon as it can be.
func (n *nest) known(v *value) {
	p := &n.plan
	if p.done[v] {
		return
	}
	p.done[v] = true
	if s := n.inverted[v]; s != nil && n.makes(s) {
		n.known(s)
	}
	if made := n.made[v]; made != nil {
		for _, x := range made.args {
			if x = n.one(x); n.narrow[x] {
				n.known(x)
				if p.level[x] < p.level[v] {
					n.slot(x)
				}
			}
		}
	}
	p.after[p.level[v]+1] = append(p.after[p.level[v]+1], v)
}

// one is the narrow value that v is, or is copies of.
func (n *nest) one(v *value) *value {
	if s := n.alias[v]; s != nil {
		return s
	}
	return v
}

// slot keeps a narrow value.
func (n *nest) slot(v *value) {
	p := &n.plan
	if _, ok := p.slots[v]; !ok {
		p.slots[v] = len(p.kept)
		p.kept = append(p.kept, v)
	}
}

const spills = 12 // vectors that registers do not hold, at most

// settle gives what is kept scratch.
func (p *nestPlan) settle(n *nest) {
	for _, v := range p.saved {
		v.where, v.n, v.tile = inRow, n.cols(), splats
	}
	p.room = n.l.value("kept", classF32, splats, 8*int64(len(p.kept)+spills)+2*maxRank)
	p.room.where = inRow
}

// counters is where loops outside of rows count: eight bytes a dimension, behind
// what registers do not hold.
func (p *nestPlan) counters() int64 { return p.room.at + 32*int64(len(p.kept)+spills) }

func (p *nestPlan) scratch() []*value { return append(p.saved[:len(p.saved):len(p.saved)], p.room) }

// moving are the streams that need a register each: those that are not at one
// place of the scratch.
func (n *nest) moving() []*stream {
	var list []*stream
	seen := map[*stream]bool{}
	add := func(s *stream) {
		if s != nil && !seen[s] && !s.fixed() {
			seen[s] = true
			list = append(list, s)
		}
	}
	for _, i := range n.items { // in an order that does not depend on maps
		for _, x := range append(i.group, i) {
			for _, v := range x.outs {
				add(n.leaves[v])
				add(n.stores[v])
			}
			for _, v := range x.same {
				add(n.leaves[v])
				add(n.stores[v])
			}
		}
		if i.fold != nil {
			add(n.leaves[i.fold.arg])
			add(n.leaves[i.fold.start])
			add(n.stores[i.fold.out])
		}
	}
	return list
}

// fixed says whether a stream is one place of the scratch.
func (s *stream) fixed() bool {
	return s.view == nil && s.v.where != inMemory && s.still()
}
