package partition

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A compiler leaves some work of a module outside of its fusions: XLA:CPU most products,
// XLA:GPU copies and transposes. Each such instruction becomes a fusion of its own here,
// so that it is tuned, too; the compiler's fusions stay as they are, but for
// those that exchange data with other devices, which are divided there. Of
//
//	%d = f32[128,512] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
//	ROOT %f = f32[128,512] fusion(%d), kind=kLoop, calls=%silu
//
// there remains the last line, and the first is
//
//	%d = f32[128,512] fusion(%x, %w), kind=kLoop, calls=%fused.d

// minLoose is the number of bytes from which on an instruction is worth a fusion. Below,
// a launch takes longer than all else.
const minLoose = 16 << 10

// fuseLoose is a module that has fusions, with fusions for what else is work. It is m
// itself where there is none.
func (p *partitioner) fuseLoose(m *hlo.Module) *hlo.Module {
	for _, c := range m.Computations {
		p.usedNames[c.Name] = 0
	}
	out := *m
	out.Entry = p.withLoose(m.Entry)
	if len(p.fusions)+len(p.unfused) == 0 || p.pricer.ctx.Err() != nil {
		return m
	}
	out.Computations = reachable(out.Entry)
	p.rename(&out)
	return &out
}

// withLoose is a computation that is executed as it stands, and those of its control
// flow, with fusions for loose instructions.
func (p *partitioner) withLoose(c *hlo.Computation) *hlo.Computation {
	if done := p.partitioned[c]; done != nil {
		return done
	}
	out := &hlo.Computation{Name: c.Name}
	value := make(map[*hlo.Instr]*hlo.Instr, len(c.Instrs))
	for _, i := range c.Instrs {
		made := *i
		made.Operands = make([]*hlo.Instr, len(i.Operands))
		for k, o := range i.Operands {
			made.Operands[k] = value[o]
		}
		switch i.Op {
		case hlo.OpParameter:
			out.Params = append(out.Params, &made)
		case hlo.OpWhile, hlo.OpConditional:
			made.Attrs.Branches = slices.Clone(i.Attrs.Branches)
			for k, b := range made.Attrs.Branches {
				made.Attrs.Branches[k] = p.withLoose(b)
			}
		case hlo.OpCall:
			made.Attrs.Calls = p.withLoose(i.Attrs.Calls)
		case hlo.OpFusion:
			if slices.ContainsFunc(i.Attrs.Calls.Instrs, divides) {
				made.Op = hlo.OpCall
				made.Attrs = hlo.Attrs{Calls: p.computation(i.Attrs.Calls), Other: i.Attrs.Other}
			}
		default:
			p.fuseAlone(i, &made)
		}
		value[i] = &made
		out.Instrs = append(out.Instrs, &made)
	}
	slices.SortFunc(out.Params, func(a, b *hlo.Instr) int { return a.Attrs.Param - b.Attrs.Param })
	out.Root = value[c.Root]
	p.partitioned[c] = out
	return out
}

// fuseAlone makes a call of a fusion of i alone of its copy, or notes why it is in none.
func (p *partitioner) fuseAlone(i, made *hlo.Instr) {
	if i.Op.Has(hlo.View) || i.Op.Class() == hlo.ClassSource || i.Op.Class() == hlo.ClassStructure {
		return
	}
	if reason := p.notLoose(i); reason != "" {
		p.unfused = append(p.unfused, Unfused{made, reason})
		return
	}
	comp, operands := aloneIn("fused."+truncatedName(i.Name), made)
	if err := p.pricer.fusion(comp).err; err != nil {
		p.unfused = append(p.unfused, Unfused{made, err.Error()})
		return
	}
	comp.Name = hlo.UniqueName(p.usedNames, comp.Name)
	p.fusions[comp] = &Fusion{Apart: p.pricer.apart(comp), Price: p.pricer.fusion(comp).price}
	made.Op = hlo.OpFusion
	made.Operands = operands
	made.Literal = nil
	made.Attrs = hlo.Attrs{Calls: comp, Kind: "kLoop"}
	if metadata := i.Text("metadata"); metadata != "" {
		made.Attrs.Other = []hlo.Attr{{Name: "metadata", Value: metadata}}
	}
}

// notLoose is the reason why an instruction is no fusion of its own; "" where it may be.
func (p *partitioner) notLoose(i *hlo.Instr) string {
	if reason := p.outside(i); reason != "" {
		return reason
	}
	if !i.Shape.DType.IsArray() {
		return fmt.Sprintf("it is %s, which is not an array", i.Shape)
	}
	moved := i.Shape.Bytes()
	for _, o := range i.Operands {
		moved += o.Shape.Bytes()
	}
	if moved < minLoose {
		return "it is small: there is nothing to tile"
	}
	return ""
}

// aloneIn is a computation of one instruction, with the constants that it reads, and the
// operands that its parameters stand for.
func aloneIn(name string, i *hlo.Instr) (*hlo.Computation, []*hlo.Instr) {
	f := &fusionBuilder{
		comp:  &hlo.Computation{Name: name},
		inner: map[*hlo.Instr]*hlo.Instr{},
		names: map[string]int{},
	}
	for _, o := range i.Operands {
		if o.Op == hlo.OpConstant && o.Shape.Rank() == 0 && f.inner[o] == nil {
			f.copy(o)
		}
	}
	f.copy(i)
	f.comp.Root = f.inner[i]
	return f.comp, f.reads
}

// isFused reports whether a module has fusions.
func isFused(m *hlo.Module) bool {
	fusions := m.Fusions()
	return len(fusions) > 1 || fusions[0] != m.Entry
}
