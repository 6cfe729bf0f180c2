package symtile

import (
	"fmt"
	"slices"
)

// schedule orders the ops of every level into steps. Ops of a level and the
// loops directly inside it are items; a loop stands for everything in it and
// for its closers. Items come after what they use, otherwise in the order they
// were built.
func (b *builder) schedule() error {
	for n, op := range b.prog.Ops {
		if op.Loop == nil && b.place[n] != nil {
			b.place[n].ops = append(b.place[n].ops, n)
		}
	}
	for _, n := range b.nests {
		body, err := b.level(n)
		if err != nil {
			return err
		}
		n.loop.Body = body
	}
	body, err := b.level(nil)
	b.prog.Body = body
	return err
}

// item names an op or a loop of one level.
type item struct {
	op   int
	nest *nest
}

func (b *builder) level(n *nest) ([]Step, error) {
	items := b.items(n)
	known := make(map[item]bool, len(items))
	for _, it := range items {
		known[it] = true
	}
	var body []Step
	state := map[item]int{}
	var visit func(it item) error
	visit = func(it item) error {
		switch state[it] {
		case 1:
			return fmt.Errorf("symtile: loops of %s depend on each other; this is a bug", b.prog.Fusion.Name)
		case 2:
			return nil
		}
		state[it] = 1
		for _, dep := range b.needs(it, n) {
			if dep != it && known[dep] {
				if err := visit(dep); err != nil {
					return err
				}
			}
		}
		state[it] = 2
		if it.nest != nil {
			body = append(body, Step{Loop: it.nest.loop})
		} else {
			body = append(body, Step{Op: it.op})
		}
		return nil
	}
	for _, it := range items {
		if err := visit(it); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// items lists the ops and loops directly at a level, in the order built.
func (b *builder) items(n *nest) []item {
	var items []item
	seen := map[*nest]bool{}
	for k, op := range b.prog.Ops {
		switch {
		case op.Loop != nil && b.place[k] == n:
			inner := b.nestOf(op.Loop)
			if !seen[inner] {
				seen[inner] = true
				items = append(items, item{nest: inner})
			}
		case op.Loop == nil && b.place[k] == n:
			items = append(items, item{op: k})
		}
	}
	return items
}

func (b *builder) nestOf(l *Loop) *nest {
	return b.nests[slices.IndexFunc(b.nests, func(n *nest) bool { return n.loop == l })]
}

// needs lists what an item of level n uses, as items of that level.
func (b *builder) needs(it item, n *nest) []item {
	if it.nest == nil {
		return b.lift(b.prog.Ops[it.op].uses(), n)
	}
	var all []item
	for k, op := range b.prog.Ops {
		if b.inside(k, it.nest) || op.Loop == it.nest.loop {
			all = append(all, b.lift(op.uses(), n)...)
		}
	}
	return all
}

// inside says whether op k is computed in loop n or in a loop inside it.
func (b *builder) inside(k int, n *nest) bool {
	for p := b.place[k]; p != nil; p = p.parent {
		if p == n {
			return true
		}
	}
	return false
}

// lift turns ops into the items of level n that hold them; ops outside n are
// left out.
func (b *builder) lift(ops []int, n *nest) []item {
	var items []item
	for _, k := range ops {
		p := b.place[k]
		if op := b.prog.Ops[k]; op.Loop != nil {
			if p == n {
				items = append(items, item{nest: b.nestOf(op.Loop)})
				continue
			}
		} else if p == n {
			items = append(items, item{op: k})
			continue
		}
		for ; p != nil && p.parent != n; p = p.parent {
		}
		if p != nil {
			items = append(items, item{nest: p})
		}
	}
	return items
}

// uses are the ops whose values op needs.
func (op Op) uses() []int { return slices.Concat(op.Args, op.Needs) }
