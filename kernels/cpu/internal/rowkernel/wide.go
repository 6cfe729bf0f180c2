package rowkernel

import (
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
)

// A round of four vectors of 32 bytes may be two of 64: the same elements in the same
// lanes, so that nothing changes but how many are computed at once. Accumulators 0 and
// 1 are the halves of one register then, 2 and 3 of another. What is left of a row, and
// what is between sweeps, has vectors of 32 bytes, whose instructions clear the other
// half of a register that they write; so the halves are joined before the rounds and
// parted after them.

// beginWide joins the accumulators, and repeats the pinned row scalars in both halves.
func (p *sweepEmitter) beginWide() {
	p.inWide = p.wide && !p.exactDivision
	if !p.inWide {
		return
	}
	join := func(low, high amd64.Reg) {
		p.a.Emit(amd64.VINSERTF64X4, low.Wide(), low.Wide(), high, amd64.Imm(1))
	}
	for _, regs := range p.regs {
		for n := 0; n < vector.RoundVectors; n += 2 {
			join(regs[n], regs[n+1])
		}
		for _, r := range regs[vector.RoundVectors:] {
			join(r, r)
		}
	}
	for _, v := range p.order {
		if r, ok := p.pinned[v]; ok {
			join(r, r)
		}
	}
}

// endWide parts the accumulators. Those of signs and of NaN are one for all vectors, of
// which the halves are combined.
func (p *sweepEmitter) endWide() {
	if !p.inWide {
		return
	}
	p.inWide = false
	for k, regs := range p.regs {
		for n := 0; n < vector.RoundVectors; n += 2 {
			p.a.Emit(amd64.VEXTRACTF64X4, regs[n+1], regs[n].Wide(), amd64.Imm(1))
		}
		f := p.reductions[k%len(p.reductions)].vectorReduction()
		for n, r := range regs[vector.RoundVectors:] {
			p.a.Emit(amd64.VEXTRACTF64X4, amd64.Y15, r.Wide(), amd64.Imm(1))
			p.a.Emit(f.Combiners()[n], r, r, amd64.Y15)
		}
	}
}

// accumulators are the registers of list k of p.regs, for the vectors of a chain.
func (p *sweepEmitter) accumulators(k int) []amd64.Reg {
	regs := p.regs[k]
	if !p.inWide {
		return regs
	}
	return append(
		[]amd64.Reg{regs[0], regs[2], 0, 0},
		regs[vector.RoundVectors:]...,
	)
}
