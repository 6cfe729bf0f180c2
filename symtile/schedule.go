package symtile

import "fmt"

// schedule orders the ops of every level into steps. The items of a level are
// its ops and the loops directly inside of it; a loop stands for everything in
// it and for its accumulators. Items come after what they use, otherwise in the
// order in which they were built: a depth-first topological sort of each level,
// linear in the uses.
func (b *builder) schedule() error {
	s := newScheduler(b)
	if len(b.nests) > 0 {
		s.collectLoopNeeds()
	}
	for n, items := range s.levels {
		body, err := s.order(items)
		if err != nil {
			return err
		}
		if n == 0 {
			b.prog.Body = body
		} else {
			b.nests[n-1].loop.Body = body
		}
	}
	return nil
}

// A scheduler numbers items: op k is item k, loopNest n is item len(ops) + n.
// Level 0 is outside of all loops, level n + 1 is inside of loopNest n.
type scheduler struct {
	*builder
	// number is the index of each loopNest in builder.nests.
	number map[*loopNest]int
	// itemOf is the item that an op belongs to at its level: itself, or, for an
	// accumulator, its loop.
	itemOf []int
	// levels lists the items of every level in the order in which they were
	// built.
	levels [][]int
	// needs lists, for each loopNest, the items outside of it that ops inside
	// use.
	needs [][]int
	// state is where the sort is with each item.
	state []visited
}

// visited is the state of an item in the depth-first sort; 0: it is not visited
// yet.
type visited uint8

const (
	// visiting items are those whose needs are being visited: meeting one again
	// is a cycle.
	visiting visited = iota + 1
	placed
)

// newScheduler assigns the ops of b to levels.
func newScheduler(b *builder) *scheduler {
	ops := len(b.prog.Ops)
	nests := len(b.nests)
	s := &scheduler{
		builder: b,
		number:  map[*loopNest]int{},
		itemOf:  make([]int, ops),
		levels:  make([][]int, nests+1),
		needs:   make([][]int, nests),
		state:   make([]visited, ops+nests),
	}
	loops := map[*Loop]int{}
	for n, x := range b.nests {
		s.number[x], loops[x.loop] = n, n
	}
	seen := make([]bool, nests)
	for k, op := range b.prog.Ops {
		s.itemOf[k] = k
		if op.Loop != nil {
			n := loops[op.Loop]
			s.itemOf[k] = ops + n
			if seen[n] {
				continue
			}
			seen[n] = true
		}
		at := s.level(b.nestOf[k])
		s.levels[at] = append(s.levels[at], s.itemOf[k])
	}
	return s
}

// level is the number of the level inside of a loopNest.
func (s *scheduler) level(n *loopNest) int {
	if n == nil {
		return 0
	}
	return s.number[n] + 1
}

// collectLoopNeeds finds what ops inside of loops use that is outside.
func (s *scheduler) collectLoopNeeds() {
	for k, op := range s.prog.Ops {
		for _, uses := range [...][]int{op.Args, op.RuntimeArgs} {
			for _, use := range uses {
				item, need := s.commonLevel(k, use)
				n := item - len(s.itemOf)
				if n >= 0 && item != need {
					s.needs[n] = append(s.needs[n], need)
				}
			}
		}
	}
}

// commonLevel finds the innermost level that holds both op k and one that it
// uses, and the items of that level that they are in.
func (s *scheduler) commonLevel(k, use int) (item, need int) {
	item = s.itemOf[k]
	need = s.itemOf[use]
	x := s.nestOf[k]
	y := s.nestOf[use]
	for x != y {
		if x.level() >= y.level() {
			item = len(s.itemOf) + s.number[x]
			x = x.parent
		} else {
			need = len(s.itemOf) + s.number[y]
			y = y.parent
		}
	}
	return item, need
}

// order sorts the items of a level.
func (s *scheduler) order(items []int) ([]Step, error) {
	body := make([]Step, 0, len(items))
	err := s.visitAll(items, &body)
	return body, err
}

// visit appends the step of an item after those of what it needs. A cycle would
// be a bug of the grouping of loops, and is an error.
func (s *scheduler) visit(it int, body *[]Step) error {
	switch s.state[it] {
	case visiting:
		return fmt.Errorf("symtile: loops of %s depend on each other; this is a bug", s.prog.Fusion.Name)
	case placed:
		return nil
	}
	s.state[it] = visiting
	if n := it - len(s.itemOf); n >= 0 {
		if err := s.visitAll(s.needs[n], body); err != nil {
			return err
		}
		*body = append(*body, Step{Loop: s.nests[n].loop})
	} else {
		if err := s.visitUses(it, body); err != nil {
			return err
		}
		*body = append(*body, Step{Op: it})
	}
	s.state[it] = placed
	return nil
}

// visitAll visits items in order.
func (s *scheduler) visitAll(items []int, body *[]Step) error {
	for _, it := range items {
		if err := s.visit(it, body); err != nil {
			return err
		}
	}
	return nil
}

// visitUses visits what op k uses at its own level. What is farther out is
// needed by its loop, and visited before that.
func (s *scheduler) visitUses(k int, body *[]Step) error {
	op := &s.prog.Ops[k]
	for _, uses := range [...][]int{op.Args, op.RuntimeArgs} {
		for _, use := range uses {
			item, need := s.commonLevel(k, use)
			if item == k && need != k {
				if err := s.visit(need, body); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
