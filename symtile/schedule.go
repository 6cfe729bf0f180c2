package symtile

import "fmt"

// schedule orders the ops of every level into steps. Ops of a level and the
// loops directly inside it are items; a loop stands for everything in it and
// for its closers. Items come after what they use, otherwise in the order they
// were built.
func (b *builder) schedule() error {
	s := newScheduler(b)
	for k, op := range b.prog.Ops {
		for _, use := range op.Args {
			s.edge(k, use)
		}
		for _, use := range op.Needs {
			s.edge(k, use)
		}
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
	number map[*nest]int
	home   []int // the item that an op is in at its place: itself, or its loop
	levels [][]int
	needs  [][]int // of an item, in the order met
	state  []visited
}

type visited uint8

const (
	unseen visited = iota
	below          // what it needs is being visited
	placed
)

func newScheduler(b *builder) *scheduler {
	ops, nests := len(b.prog.Ops), len(b.nests)
	s := &scheduler{
		builder: b, home: make([]int, ops), levels: make([][]int, nests+1),
		needs: make([][]int, ops+nests), state: make([]visited, ops+nests),
	}
	if nests > 0 {
		s.number = make(map[*nest]int, nests)
	}
	loops := make(map[*Loop]int, nests)
	for n, x := range b.nests {
		s.number[x], loops[x.loop] = n, n
	}
	seen := make([]bool, nests)
	for k, op := range b.prog.Ops {
		s.home[k] = k
		if op.Loop != nil {
			n := loops[op.Loop]
			s.home[k] = ops + n
			if seen[n] {
				continue
			}
			seen[n] = true
		}
		at := s.level(b.place[k])
		s.levels[at] = append(s.levels[at], s.home[k])
	}
	return s
}

func (s *scheduler) level(n *nest) int {
	if n == nil {
		return 0
	}
	return s.number[n] + 1
}

// edge notes that op k uses another: on the level where both are, the items
// they are in.
func (s *scheduler) edge(k, use int) {
	item, used := s.home[k], s.home[use]
	x, y := s.place[k], s.place[use]
	for x != y {
		if x.level() >= y.level() {
			item, x = len(s.home)+s.number[x], x.parent
		} else {
			used, y = len(s.home)+s.number[y], y.parent
		}
	}
	if item != used {
		s.needs[item] = append(s.needs[item], used)
	}
}

// order lists the items after what they need.
func (s *scheduler) order(items []int) ([]Step, error) {
	body := make([]Step, 0, len(items))
	for _, it := range items {
		if err := s.visit(it, &body); err != nil {
			return nil, err
		}
	}
	return body, nil
}

func (s *scheduler) visit(it int, body *[]Step) error {
	switch s.state[it] {
	case below:
		return fmt.Errorf("symtile: loops of %s depend on each other; this is a bug", s.prog.Fusion.Name)
	case placed:
		return nil
	}
	s.state[it] = below
	for _, need := range s.needs[it] {
		if err := s.visit(need, body); err != nil {
			return err
		}
	}
	s.state[it] = placed
	if n := it - len(s.home); n >= 0 {
		*body = append(*body, Step{Loop: s.nests[n].loop})
	} else {
		*body = append(*body, Step{Op: it})
	}
	return nil
}
