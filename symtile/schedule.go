package symtile

import "fmt"

// schedule orders the ops of every level into steps. Ops of a level and the
// loops directly inside it are items; a loop stands for everything in it and
// for its closers. Items come after what they use, otherwise in the order they
// were built.
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

// A scheduler numbers items: op k is item k, nest n is item len(ops) + n. Level
// 0 is outermost, level n + 1 is inside nest n.
type scheduler struct {
	*builder
	number map[*loopNest]int
	itemOf []int // the item that an op is in at its place: itself, or its loop
	levels [][]int
	needs  [][]int // of a nest, in the order met
	state  []visited
}

type visited uint8

const (
	unseen   visited = iota
	visiting         // what it needs is being visited
	placed
)

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

func (s *scheduler) level(n *loopNest) int {
	if n == nil {
		return 0
	}
	return s.number[n] + 1
}

// collectLoopNeeds notes what ops inside loops need that is outside.
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

// commonLevel finds the level where both op k and one it uses are, and the items of
// that level they are in.
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

// order lists the items after what they need.
func (s *scheduler) order(items []int) ([]Step, error) {
	body := make([]Step, 0, len(items))
	err := s.visitAll(items, &body)
	return body, err
}

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

func (s *scheduler) visitAll(items []int, body *[]Step) error {
	for _, it := range items {
		if err := s.visit(it, body); err != nil {
			return err
		}
	}
	return nil
}

// visitUses visits what op k needs on its own level; what is outside, its loop needs.
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
