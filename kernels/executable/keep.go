package executable

import (
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/inplace"
)

// What a loop hands on unchanged from round to round, such as weights, is the same in all
// rounds of one execution. Kernels that read it can keep what they make of it, such as the
// packed operand of a product: the backend compiles them once more for that
// (kernels.KeepingBackend). The first round runs the kernel that keeps nothing, so that a
// loop of one round does not pack what nobody reads again.

// maxKept bounds what an executable keeps, in bytes.
const maxKept = 512 << 20

// A keeper is the kernel of one step of a loop's body that keeps something. Others of the
// same computation have weights of their own.
type keeper struct {
	kernel kernels.KeepingKernel
	// again says that this is a round after the first one.
	again bool
}

// loopBodies are the bodies of the loops of a module.
func loopBodies(m *hlo.Module) map[*hlo.Computation]bool {
	bodies := map[*hlo.Computation]bool{}
	for _, c := range m.Computations {
		for _, i := range c.Instrs {
			if i.Op == hlo.OpWhile {
				bodies[i.Callees()[1]] = true
			}
		}
	}
	return bodies
}

// keep compiles the kernels of a loop's body that keep what they make of steady values.
func (c *compiler) keep(p *program) {
	b, keeps := c.backend.(kernels.KeepingBackend)
	if !keeps || c.options.KeepNothing {
		return
	}
	for n := range p.steps {
		s := &p.steps[n]
		if s.unit == nil || s.unit.kernel == nil || s.unit.packed != nil {
			continue
		}
		steady := steadyOperands(p.computation, s.instr)
		if len(steady) == 0 {
			continue
		}
		if s.keeper = c.keeper(b, s.unit, steady); s.keeper != nil {
			p.keepers = append(p.keepers, s.keeper)
		}
	}
}

// keeper compiles the kernel of a unit for steady parameters; nil where it keeps nothing, or
// too much.
func (c *compiler) keeper(b kernels.KeepingBackend, u *unit, steady []int) *keeper {
	plan, err := kernels.ParsePlan(u.Plan)
	if err != nil {
		return nil
	}
	p, err := symtile.Analyze(c.ctx, u.Computation)
	if err != nil {
		return nil
	}
	k := b.CompileKeeping(c.ctx, p, plan, steady)
	if k == nil {
		return nil
	}
	if c.keptBytes+k.Kept() > maxKept {
		k.Close()
		return nil
	}
	c.keptBytes += k.Kept()
	x := &keeper{kernel: k}
	c.keepers = append(c.keepers, x)
	return x
}

// steadyOperands are the numbers of the operands of an instruction in a loop's body that
// are the same in all rounds: constants, parts of the state that the body hands on, and
// these under other shapes.
func steadyOperands(body *hlo.Computation, i *hlo.Instr) (steady []int) {
	for k, o := range i.Operands {
		for inplace.IsView(o) {
			o = o.Operands[0]
		}
		if o.Op == hlo.OpConstant || isHandedOn(body, o) {
			steady = append(steady, k)
		}
	}
	return steady
}

// isHandedOn reports whether a value is a part of the state of a loop that its body hands
// on as it is.
func isHandedOn(body *hlo.Computation, i *hlo.Instr) bool {
	part := func(i *hlo.Instr) bool {
		return i.Op == hlo.OpGetTupleElement && slices.Contains(body.Params, i.Operands[0])
	}
	root := body.Root
	if !part(i) || root.Op != hlo.OpTuple {
		return false
	}
	next := root.Operands[i.Attrs.Index]
	return part(next) && next.Attrs.Index == i.Attrs.Index
}

// round says which round of a loop the program is about to be.
func (p *program) round(n int) {
	for _, k := range p.keepers {
		if n == 1 {
			k.kernel.Forget()
		}
		k.again = n > 0
	}
}
