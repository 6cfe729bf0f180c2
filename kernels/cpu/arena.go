package cpu

import (
	"cmp"
	"math"
	"slices"
)

const forever = math.MaxInt

// positions numbers the program and notes from where to where every value is
// needed. Values of a group that are not strips are needed while it runs;
// values from outside of a loop until it ends.
func (s *sequence) positions(at int) int {
	for _, i := range s.items {
		begin := at
		switch {
		case i.loop != nil:
			at = i.loop.body.positions(at + 1)
		case i.group != nil:
			for k, n := range i.group {
				if n.part == 0 || k == 0 || n.part != i.group[k-1].part { // a run is one step
					at++
				}
				n.touch(at, func(v *value) bool { return v.where == inStrip })
			}
		}
		at++
		for _, n := range append(i.group, i) {
			all := func(v *value) bool { return v.where != inStrip }
			n.touch(begin, all)
			n.touch(at, all)
		}
		at++
	}
	return at
}

func (i *instr) touch(at int, which func(*value) bool) {
	for _, list := range [][]*value{i.outs, i.same, i.full} {
		for _, v := range list {
			if which(v) {
				v.born, v.dies = min(v.born, at), max(v.dies, at)
			}
		}
	}
}

const cacheLine = 64

// layOut gives every value in scratch bytes that no value needed at the same
// time has, lowest address first, and returns how many bytes there are.
func layOut(values []*value) int64 {
	order := slices.DeleteFunc(slices.Clone(values), func(v *value) bool { return v.where == inMemory || v.dies < v.born })
	slices.SortStableFunc(order, func(x, y *value) int { return cmp.Or(cmp.Compare(x.born, y.born), cmp.Compare(x.id, y.id)) })
	var live []*value // by address
	total := int64(0)
	for _, v := range order {
		live = slices.DeleteFunc(live, func(u *value) bool { return u.dies < v.born })
		v.at = 0
		k := 0
		for ; k < len(live) && v.at+v.bytes() > live[k].at; k++ {
			v.at = (live[k].at + live[k].bytes() + cacheLine - 1) &^ (cacheLine - 1)
		}
		live = slices.Insert(live, k, v)
		total = max(total, v.at+v.bytes())
	}
	return total
}
