package executable

import (
	"fmt"
	"slices"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Steps that follow one another and read nothing of each other are launched together where
// the backend can do that and each is small: an optimiser's updates of all biases and norms
// are one dispatch.

const (
	// groupedBytes is the size of the arrays of a kernel up to which it is launched with
	// others: a larger one takes a hundred times as long as a launch.
	groupedBytes = 4 << 20
	// groupBytes bounds the arrays of a group, whose results are all allocated before any
	// of its operands is released.
	groupBytes = 64 << 20
)

// A group is steps that are launched together.
type group struct {
	kernel kernels.Kernel
	steps  int
}

// group moves steps so that those that can be launched together follow one another, and
// makes their kernels.
func (c *compiler) group(p *program) {
	b, groups := c.backend.(kernels.GroupingBackend)
	if !groups {
		return
	}
	for n := 0; n < len(p.steps); n++ {
		if !p.steps[n].small() {
			continue
		}
		first, k := together(p.steps[n:])
		n += first
		if k < 2 {
			continue
		}
		var all []kernels.Kernel
		for _, s := range p.steps[n : n+k] {
			all = append(all, s.unit.kernel)
		}
		if x := b.Group(all); x != nil {
			p.steps[n].group = &group{x, k}
			c.groupKernels = append(c.groupKernels, x)
			n += k - 1
		}
	}
}

// together brings steps that can be launched together with the first one next to it, and
// returns the number of the first of them and how many they are. Steps between them that
// compute nothing lie behind them where they read of one, and else in front.
func together(steps []step) (first, n int) {
	var front, members, behind []step
	later := map[*hlo.Instr]bool{} // the group, and what reads of it
	bytes := int64(0)
	for _, s := range steps {
		reads := slices.ContainsFunc(s.instr.Operands, func(o *hlo.Instr) bool {
			return later[o]
		})
		switch {
		case s.moves() && !reads:
			front = append(front, s)
			continue
		case s.moves():
			behind = append(behind, s)
		case !reads && s.small() && bytes+s.bytes() <= groupBytes:
			members = append(members, s)
			bytes += s.bytes()
		default:
			copy(steps, slices.Concat(front, members, behind))
			return len(front), len(members)
		}
		later[s.instr] = true
	}
	copy(steps, slices.Concat(front, members, behind))
	return len(front), len(members)
}

// bytes are those of the arrays of the step's unit.
func (s step) bytes() int64 { return bytesOf(s.unit.Computation) }

// moves reports whether a step computes nothing.
func (s step) moves() bool {
	return s.unit == nil && s.bodies == nil && s.refused == nil
}

// small reports whether a step is a kernel that may be launched with others.
func (s step) small() bool { return s.unit != nil && s.unit.grouped && s.keeper == nil }

// groups reports whether the kernel of u may be launched with others.
func (c *compiler) groups(u *unit) bool {
	b, groups := c.backend.(kernels.GroupingBackend)
	if !groups || c.options.Apart || bytesOf(u.Computation) > groupedBytes {
		return false
	}
	alone := b.Group([]kernels.Kernel{u.kernel})
	return alone != nil && alone.Close() == nil
}

// group runs the steps of a group, whose first is number n.
func (r *run) group(p *program, n int, values []value) error {
	g := p.steps[n].group
	steps := p.steps[n : n+g.steps]
	var in, out []kernels.Buffer
	made := make([][]value, len(steps))
	for k, s := range steps {
		operands := make([]value, len(s.operands))
		for i, o := range s.operands {
			operands[i] = values[o]
		}
		x, y, results, err := r.arrays(s, operands)
		if err != nil {
			return err
		}
		in, out = append(in, x...), append(out, y...)
		made[k] = results
	}
	start := time.Now()
	if _, err := g.kernel.Run(r.ctx, in, out); err != nil {
		return fmt.Errorf("%s and %d more: %w", steps[0].instr.Name, len(steps)-1, err)
	}
	took := time.Since(start)
	r.launches++
	for k, s := range steps {
		s.unit.Runs++
		s.unit.Time += took / time.Duration(len(steps))
		v := assembled(s.instr.Shape, &made[k])
		var err error
		if values[n+k], err = r.laidOut(v, s.instr.Shape); err != nil {
			return err
		}
	}
	for _, s := range steps {
		for _, d := range s.dead {
			r.pool.release(values[d])
		}
	}
	return nil
}
