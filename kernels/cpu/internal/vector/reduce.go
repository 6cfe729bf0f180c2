package vector

import (
	"math"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// The maximum and minimum of HLO return NaN where an element is NaN and order −0
// before +0, which VMAXPS and VMINPS do not: they return their second operand in both
// cases. Chain.Max32 and Min32 pay five instructions for each element to get it
// right. A row can be reduced faster, by one instruction for each element and two
// more accumulators: one combines the sign bits of all elements, one collects where
// elements are NaN. A maximum is negative, or −0, exactly if all elements have the
// sign, and a minimum if one has; so the sign of the result is replaced at the end,
// and NaN is put in where there was one.

const (
	// Lanes is the number of f32 elements of a vector.
	Lanes = 8
	// RoundVectors is the number of vectors that are reduced at a time, each
	// into an accumulator of its own.
	RoundVectors = 4
)

// A Reduction is the code of a reduction of f32 by one operation: of a row into
// one number, with four times eight partial results that are combined in a
// fixed order, and of rows into a row.
type Reduction struct {
	Identity float32                                            // The value that changes nothing.
	Combine  func(c *amd64.Chain, x, y amd64.Value) amd64.Value // The exact operation on two vectors.
	// The instruction that is Combine but for the signs of zeros and for NaN,
	// for which signs is set.
	op amd64.Op
	// The instruction that combines signs: of a maximum, and of a minimum.
	signs       amd64.Op
	initialSign uint32 // The sign to begin with.
}

// Exists reports whether there is code for the reduction.
func (f Reduction) Exists() bool { return f.Combine != nil }

// WithoutSigns is the reduction without care for zeros and NaN: a maximum may
// then be any number where an element is NaN, and have either sign where it is
// 0.
func (f Reduction) WithoutSigns() Reduction {
	f.signs = 0
	return f
}

// Registers is the number of accumulators of a row: four vectors of partial
// results, and, where signs matter, one for these and one for NaN.
func (f Reduction) Registers() int {
	if f.signs != 0 {
		return RoundVectors + 2
	}
	return RoundVectors
}

// Combiners are the instructions that combine two accumulators of signs, and of NaN.
func (f Reduction) Combiners() [2]amd64.Op {
	return [2]amd64.Op{f.signs, amd64.VORPS}
}

// EmitInit sets the accumulators to the identity.
func (f Reduction) EmitInit(a *amd64.Assembler, regs []amd64.Reg) {
	for _, r := range regs[:RoundVectors] {
		a.Emit(
			amd64.VMOVUPS, r,
			a.Splat32(math.Float32bits(f.Identity)),
		)
	}
	if f.signs != 0 {
		a.Emit(
			amd64.VMOVUPS, regs[RoundVectors],
			a.Splat32(f.initialSign),
		)
		a.Emit(
			amd64.VXORPS, regs[RoundVectors+1],
			regs[RoundVectors+1], regs[RoundVectors+1],
		)
	}
}

// EmitUpdate combines x with the partial results, one for each copy of the
// chain.
func (f Reduction) EmitUpdate(
	c *amd64.Chain, regs []amd64.Reg,
	part, copies int, x amd64.Value,
) {
	c.Update(
		c.Pinned(regs[part:part+copies]...),
		f.op,
		x,
	)
	if f.signs != 0 {
		const unordered = amd64.Imm(3)
		c.Update(
			c.Pinned(regs[RoundVectors]), f.signs, x,
		)
		c.Update(
			c.Pinned(regs[RoundVectors+1]),
			amd64.VORPS,
			c.Do(amd64.VCMPPS, x, x, unordered),
		)
	}
}

// EmitResult combines the partial results, in all lanes. A maximum is negative,
// or −0, if all elements have the sign, a minimum if one has.
func (f Reduction) EmitResult(c *amd64.Chain, regs []amd64.Reg) amd64.Value {
	fold := func(
		op amd64.Op, x amd64.Value,
	) amd64.Value {
		return c.FoldLanes32(x, func(x, y amd64.Value) amd64.Value {
			return c.Do(op, x, y)
		})
	}
	x := c.Do(
		f.op,
		c.Do(
			f.op,
			c.Pinned(regs[0]),
			c.Pinned(regs[1]),
		),
		c.Do(
			f.op,
			c.Pinned(regs[2]),
			c.Pinned(regs[3]),
		),
	)
	x = fold(f.op, x)
	if f.signs == 0 {
		return x
	}
	// The magnitude of the result with the combined sign, and NaN over it: the mask
	// of unordered lanes is all ones, which is a NaN.
	const sign = 1 << 31
	signs := c.Do(
		amd64.VANDPS,
		fold(f.signs, c.Pinned(regs[RoundVectors])),
		c.Const32(sign),
	)
	x = c.Do(
		amd64.VORPS,
		c.Do(amd64.VANDPS, x, c.Const32(sign-1)),
		signs,
	)
	return c.Do(
		amd64.VORPS,
		x,
		fold(amd64.VORPS, c.Pinned(regs[RoundVectors+1])),
	)
}

// Reductions are the reductions with code.
var Reductions = map[hlo.Opcode]Reduction{
	hlo.OpAdd: {
		0,
		func(c *amd64.Chain, x, y amd64.Value) amd64.Value {
			return c.Do(amd64.VADDPS, x, y)
		}, amd64.VADDPS, 0, 0,
	},
	hlo.OpMultiply: {
		1,
		func(c *amd64.Chain, x, y amd64.Value) amd64.Value {
			return c.Do(amd64.VMULPS, x, y)
		}, amd64.VMULPS, 0, 0,
	},
	hlo.OpMaximum: {
		float32(math.Inf(-1)),
		(*amd64.Chain).Max32, amd64.VMAXPS, amd64.VANDPS,
		1<<32 - 1,
	},
	hlo.OpMinimum: {
		float32(math.Inf(1)),
		(*amd64.Chain).Min32, amd64.VMINPS, amd64.VORPS,
		0,
	},
}

// ReduceArgs is the argument block of reductions: N elements of X. Y is one
// number, or as many. Those of other classes than f32 are pointed to all the same.
type ReduceArgs struct {
	N    int64 // The number of elements of X.
	X, Y *float32
}
