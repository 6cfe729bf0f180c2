package amd64

import (
	"cmp"
	"slices"
)

// A Constant is a constant of a chain.
type Constant struct {
	Uses     int // The number of its uses in the chain.
	constant constant
}

// Constants returns the constants of the chain, those with most uses first.
func (c *Chain) Constants() []Constant {
	var list []Constant
	for k := range c.steps {
		for _, arg := range c.steps[k].args[:c.steps[k].n] {
			if arg.value == 0 ||
				c.steps[arg.value-1].kind != constantStep {
				continue
			}
			of := c.steps[arg.value-1].constant
			at := slices.IndexFunc(list, func(x Constant) bool {
				return x.constant == of
			})
			if at < 0 {
				at = len(list)
				list = append(list, Constant{constant: of})
			}
			list[at].Uses++
		}
	}
	slices.SortStableFunc(list, func(x, y Constant) int {
		return cmp.Compare(y.Uses, x.Uses)
	})
	return list
}

// PinConstant has the chain find a constant in r, where LoadConstant has put
// it.
func (c *Chain) PinConstant(k Constant, r Reg) {
	for n := range c.steps {
		s := &c.steps[n]
		if s.kind == constantStep && s.constant == k.constant {
			c.pins = append(c.pins, r)
			s.kind = pinnedStep
			s.pin = int32(len(c.pins) - 1)
			s.pinned = 1
		}
	}
}

// LoadConstant emits the load of a constant to r.
func (a *Assembler) LoadConstant(k Constant, r Reg) {
	a.Emit(VMOVAPS, r, a.constant(k.constant))
}

// Pressure estimates how many registers one copy of the chain needs besides
// those of pinned values: the largest number of values that are live at once,
// where a result may take the register of an operand that dies.
func (c *Chain) Pressure() int {
	last := make([]int, len(c.steps))
	for k := range c.steps {
		for _, arg := range c.steps[k].args[:c.steps[k].n] {
			if arg.value != 0 {
				last[arg.value-1] = k
			}
		}
	}
	live, most := 0, 0
	for k := range c.steps {
		s := &c.steps[k]
		if s.kind == constantStep || s.kind == pinnedStep {
			continue
		}
		dying := 0
		for j, arg := range s.args[:s.n] {
			if arg.value == 0 ||
				last[arg.value-1] != k ||
				slices.ContainsFunc(s.args[:j], func(x argument) bool {
					return x.value == arg.value
				}) {
				continue
			}
			kind := c.steps[arg.value-1].kind
			if kind != constantStep && kind != pinnedStep {
				dying++
			}
		}
		if s.kind.defines() {
			most = max(most, live+1-min(dying, 1))
			live++
		}
		live -= dying
	}
	return max(most, live)
}
