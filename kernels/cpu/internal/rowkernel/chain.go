package rowkernel

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A sweepChain builds the chain of a sweep.
type sweepChain struct {
	*sweepEmitter
	c    *amd64.Chain
	disp int32                  // Where the vectors begin in the row.
	row  int64                  // The row of the batch.
	made map[*Value]amd64.Value // The wide values of the row.
}

// loadPair loads the vectors of a pair of accesses, and is the one of s.
func (b *sweepChain) loadPair(s *Access) amd64.Value {
	even, odd := s, s.Pair
	if s.Odd {
		even, odd = odd, even
	}
	at := b.memory(even, b.disp, b.row)
	x, y := vector.TakeApart(b.c, at)
	b.made[even.Value], b.made[odd.Value] = x, y
	return b.made[s.Value]
}

// put stores a vector, that of a pair with the other one.
func (b *sweepChain) put(s *Access, x amd64.Value) {
	if s.Odd {
		return
	}
	if s.Pair != nil {
		at := b.memory(s, b.disp, b.row)
		vector.PutTogether(b.c, at, x, b.get(s.Pair.Value), s.NonTemporal && b.nonTemporal)
		return
	}
	b.store(
		b.c, s, b.disp, b.row,
		x, s.NonTemporal && b.nonTemporal, b.inWide,
	)
}

// putRounded stores a vector of f32 that the store rounds to bf16, with zeros for denormal
// numbers. It reports false where there is no such instruction.
func (b *sweepChain) putRounded(v *Value) bool {
	s := b.kernel.Stores[v]
	if !s.Flushes || !b.rounds || !b.inWide {
		return false
	}
	// What is only converted is rounded once.
	if p := b.kernel.ops[v]; p.Instr.Op == hlo.OpConvert && p.Instr.Operands[0].Shape.DType == hlo.F32 {
		v = p.Args[0]
	}
	x := b.c.Do(amd64.VCVTNEPS2BF16, b.get(v))
	b.c.Store(amd64.VMOVUPS, b.memory(s, b.disp, b.row), int32(8*s.bytes()), x)
	return true
}

// get is a vector of a value: a constant, a row scalar, or a wide value.
func (b *sweepChain) get(v *Value) amd64.Value {
	n := b.kernel
	if v.Constant != nil {
		return b.c.Const32(*v.Constant)
	}
	if scalar := n.Broadcasts[v]; scalar != nil {
		return b.splatOf(scalar)
	}
	s := n.Loads[v]
	if s != nil && s.col() == 0 {
		return b.splatOf(v)
	}
	if x, ok := b.made[v]; ok {
		return x
	}
	b.made[v] = b.compute(v)
	return b.made[v]
}

// compute loads a wide value, or computes it from its operands. A saved value
// is stored by its first sweep and loaded by the others.
func (b *sweepChain) compute(v *Value) amd64.Value {
	n := b.kernel
	if s := n.Loads[v]; s != nil {
		if s.Pair != nil {
			return b.loadPair(s)
		}
		return b.load(b.c, s, b.disp, b.row)
	}
	saved := slices.Contains(n.schedule.saved, v)
	kept := amd64.Mem{
		Base:  amd64.RDI,
		Index: amd64.RCX,
		Scale: 4,
		Disp:  int32(v.Offset) + b.disp,
	}
	if n.schedule.firstSweep[v] < b.sweep {
		if s := n.Stores[v]; s != nil {
			return b.load(b.c, s, b.disp, b.row)
		}
		if saved {
			return b.c.Load(amd64.VMOVUPS, kept, 32)
		}
	}
	y := b.operation(n.ops[v])
	if saved && n.schedule.firstSweep[v] == b.sweep {
		b.c.Store(amd64.VMOVUPS, kept, 32, y)
	}
	return y
}

// operation computes an operation. Quotients by row scalars, the exponentials
// of softmaxes and tanh x + 1 have code of their own.
func (b *sweepChain) operation(p *Op) amd64.Value {
	s := b.kernel.rowDivisor(p)
	if s != nil && !b.exactDivision {
		if !slices.Contains(b.divisors, s) {
			b.sweepEmitter.divisors = append(b.sweepEmitter.divisors, s)
		}
		x := b.get(p.Args[0])
		e := b.kernel.ops[p.Args[0]]
		if e != nil && b.kernel.isSmallExp(e) {
			return smallQuotient(
				b.c, x, b.splatOf(s),
				b.splatOf(b.kernel.reciprocals[s]),
			)
		}
		return quotient(
			b.c, x, b.splatOf(s),
			b.splatOf(b.kernel.reciprocals[s]),
		)
	}
	v := b.kernel.tanhPlusOne(p)
	if v != nil && b.kernel.Stores[p.Args[0]] == nil {
		return b.c.Tanh1p32(b.get(v))
	}
	x := make([]amd64.Value, len(p.Args))
	for k, arg := range p.Args {
		x[k] = b.get(arg)
	}
	switch {
	case b.kernel.scaledExps[p.Out]:
		return b.c.ExcessExp32(x[0], b.kernel.vanishes)
	case b.kernel.isSmallExp(p), p.isBelow():
		return b.c.ExpBelow32(x[0], b.kernel.vanishes)
	}
	return vector.EmitFloat32(b.c, p.Instr, x)
}

// tanhPlusOne is x where an operation is tanh x + 1, else nil.
func (n *Kernel) tanhPlusOne(p *Op) *Value {
	if p.Instr.Op != hlo.OpAdd {
		return nil
	}
	t := n.ops[p.Args[0]]
	if t == nil || !vector.IsTanhPlusOne(p.Instr, t.Instr, p.Args[1].Constant) {
		return nil
	}
	return t.Args[0]
}

// quotient is x/y for positive normal numbers y and its reciprocal r: x·r, less
// the excess of its product with y times r, which makes the rounding right
// (Markstein, Computation of elementary functions on the IBM RISC System/6000,
// 1990) but for 1 ulp of results below 2^-119. Where x·r is infinite, the
// excess is infinite or NaN, and any finite number serves instead.
func quotient(c *amd64.Chain, x, y, r amd64.Value) amd64.Value {
	q := c.Do(amd64.VMULPS, x, r)
	excess := c.Do(
		amd64.VMINPS,
		c.MulSub32(q, y, x),
		c.Float32(math.MaxFloat32),
	)
	excess = c.Do(
		amd64.VMAXPS, excess, c.Float32(-math.MaxFloat32),
	)
	return c.NegMulAdd32(excess, r, q)
}

// smallQuotient is quotient for x of at most 2^32, where x·r is finite for sums
// of such x.
func smallQuotient(c *amd64.Chain, x, y, r amd64.Value) amd64.Value {
	q := c.Do(amd64.VMULPS, x, r)
	return c.NegMulAdd32(c.MulSub32(q, y, x), r, q)
}

// splatOf is a vector of copies of a row scalar: its pinned register, its slot,
// or a load.
func (b *sweepChain) splatOf(v *Value) amd64.Value {
	if x, ok := b.splats[v]; ok && b.batch == 1 {
		return x
	}
	r, ok := b.pinned[v]
	if ok && b.row == 0 {
		b.splats[v] = b.c.Pinned(r)
		return b.splats[v]
	}
	if !slices.Contains(b.order, v) {
		b.sweepEmitter.order = append(b.sweepEmitter.order, v)
	}
	if _, kept := b.kernel.schedule.slots[v]; kept {
		op := amd64.VMOVUPS
		if b.inWide {
			op = amd64.VBROADCASTSS
		}
		b.splats[v] = b.c.Load(op, b.slotMemory(v), 0)
	} else {
		b.splats[v] = b.rowEmitter.splat(
			b.c, b.kernel.Loads[v], b.row,
		)
	}
	return b.splats[v]
}
