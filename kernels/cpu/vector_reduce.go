package cpu

import (
	"math"
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Reductions of f32 by machine code: of a row into one number, with four times
// eight partial results joined in a fixed order, and of rows into a row.

// A vectorReduction is what a reduction does to vectors, and its identity.
type vectorReduction struct {
	identity    float32
	combine     func(c *amd64.Chain, x, y amd64.Value) amd64.Value
	op          amd64.Op // that is join, but for the signs of zeros and for NaN where signs is set
	signs       amd64.Op // makes the sign of the result of those of all elements
	initialSign uint32   // … begins with
}

// vectorReduction is what the fold does to vectors.
func (f *rowReduction) vectorReduction() vectorReduction {
	m := vectorReductions[f.monoid]
	if f.relaxed {
		m.signs = 0
	}
	return m
}

// registers is how many a fold of a row needs: four times eight partial results,
// and where there are signs one for those and one for what is NaN.
func (f vectorReduction) registers() int {
	if f.signs != 0 {
		return vectorsPerRound + 2
	}
	return vectorsPerRound
}

// emitInit sets the registers to the identity.
func (f vectorReduction) emitInit(a *amd64.Assembler, regs []amd64.Reg) {
	for _, r := range regs[:vectorsPerRound] {
		a.Emit(
			amd64.VMOVUPS, r,
			a.Splat32(math.Float32bits(f.identity)),
		)
	}
	if f.signs != 0 {
		a.Emit(
			amd64.VMOVUPS, regs[vectorsPerRound], a.Splat32(f.initialSign),
		)
		a.Emit(
			amd64.VXORPS, regs[vectorsPerRound+1],
			regs[vectorsPerRound+1], regs[vectorsPerRound+1],
		)
	}
}

// emitUpdate joins x to partial results, one for each copy of the chain.
func (f vectorReduction) emitUpdate(
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
			c.Pinned(regs[vectorsPerRound]), f.signs, x,
		)
		c.Update(
			c.Pinned(regs[vectorsPerRound+1]),
			amd64.VORPS,
			c.Do(amd64.VCMPPS, x, x, unordered),
		)
	}
}

// emitResult joins the partial results; all lanes are the same then. A maximum is
// negative, or −0, if all elements have the sign; a minimum if one has.
func (f vectorReduction) emitResult(c *amd64.Chain, regs []amd64.Reg) amd64.Value {
	fold := func(op amd64.Op, x amd64.Value) amd64.Value {
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
	const sign = 1 << 31
	signs := c.Do(
		amd64.VANDPS,
		fold(f.signs, c.Pinned(regs[vectorsPerRound])),
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
		fold(amd64.VORPS, c.Pinned(regs[vectorsPerRound+1])),
	)
}

var vectorReductions = map[hlo.Opcode]vectorReduction{
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

// reduceArgs: n elements of x; y is one number, or as many.
type reduceArgs struct {
	n    int64
	x, y *float32
}

// reduceRoutines are the functions by operation: over a row, and element by element.
// They are made once and stay for as long as the process.
var reduceRoutines = sync.OnceValue(func() map[hlo.Opcode][2]amd64.Func {
	made := map[hlo.Opcode][2]amd64.Func{}
	if !jitSupported() {
		return made
	}
	for op, f := range vectorReductions {
		row, ok := loadRoutine(f.emitRow)
		each, ok2 := loadRoutine(f.emitElementwise)
		if ok && ok2 {
			made[op] = [2]amd64.Func{row, each}
		}
	}
	return made
})

func loadRoutine(emit func(a *amd64.Assembler) error) (amd64.Func, bool) {
	a := &amd64.Assembler{}
	if emit(a) != nil {
		return amd64.Func{}, false
	}
	a.Emit(amd64.RET)
	text, err := a.Assemble()
	if err != nil {
		return amd64.Func{}, false
	}
	code, err := amd64.Load(text)
	if err != nil {
		return amd64.Func{}, false
	}
	f, err := code.Func(0)
	return f, err == nil
}

func emitLoadArgs(a *amd64.Assembler) {
	a.Emit(
		amd64.MOV, amd64.RAX, amd64.Mem{Base: amd64.RDI},
	)
	a.Emit(amd64.MOV, amd64.RSI, amd64.Mem{
		Base: amd64.RDI,
		Disp: 8,
	})
	a.Emit(amd64.MOV, amd64.RDX, amd64.Mem{
		Base: amd64.RDI,
		Disp: 16,
	})
}

// accumulatorRegs of a row, two registers that hold them in the end among them.
var accumulatorRegs = []amd64.Reg{
	amd64.Y8, amd64.Y9, amd64.Y10, amd64.Y11,
}

// emitRow folds x into *y: lane k of accumulator j has elements 32i + 8j + k.
func (f vectorReduction) emitRow(a *amd64.Assembler) error {
	emitLoadArgs(a)
	for _, acc := range accumulatorRegs {
		a.Emit(
			amd64.VMOVUPS, acc,
			a.Splat32(math.Float32bits(f.identity)),
		)
	}
	c := &amd64.Chain{}
	sum := c.Pinned(accumulatorRegs...)
	c.Assign(
		sum,
		f.combine(c, sum, c.Load(
			amd64.VMOVUPS, amd64.Mem{Base: amd64.RSI}, 32,
		)),
	)
	loop := &amd64.Loop{
		Chain:    c,
		Counter:  amd64.RAX,
		Pointers: []amd64.Pointer{{Reg: amd64.RSI, Bytes: 4}},
		Width:    4,
		Copies:   len(accumulatorRegs),
		Scratch:  amd64.RCX,
		Mask:     amd64.Y15,
		Reserved: accumulatorRegs,
	}
	if err := loop.Emit(a); err != nil {
		return err
	}
	end := &amd64.Chain{}
	v := f.combine(
		end,
		f.combine(
			end,
			end.Pinned(accumulatorRegs[0]),
			end.Pinned(accumulatorRegs[1]),
		),
		f.combine(
			end,
			end.Pinned(accumulatorRegs[2]),
			end.Pinned(accumulatorRegs[3]),
		),
	)
	v = end.FoldLanes32(v, func(x, y amd64.Value) amd64.Value {
		return f.combine(end, x, y)
	})
	v = f.combine(
		end,
		end.Load(amd64.VBROADCASTSS, amd64.Mem{Base: amd64.RDX}, 0),
		v,
	)
	end.Assign(end.Pinned(accumulatorRegs[0]), v)
	if err := end.Emit(a, amd64.Placement{Reserved: accumulatorRegs}); err != nil {
		return err
	}
	a.Emit(
		amd64.VMOVSS,
		amd64.Mem{Base: amd64.RDX},
		accumulatorRegs[0].X(),
	)
	return nil
}

// emitElementwise folds x into y, element by element.
func (f vectorReduction) emitElementwise(a *amd64.Assembler) error {
	emitLoadArgs(a)
	c := &amd64.Chain{}
	y := c.Load(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RDX}, 32,
	)
	x := c.Load(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RSI}, 32,
	)
	c.Store(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RDX},
		32, f.combine(c, y, x),
	)
	loop := &amd64.Loop{
		Chain:   c,
		Counter: amd64.RAX,
		Pointers: []amd64.Pointer{
			{Reg: amd64.RSI, Bytes: 4},
			{Reg: amd64.RDX, Bytes: 4},
		},
		Width:   4,
		Copies:  4,
		Scratch: amd64.RCX,
		Mask:    amd64.Y15,
	}
	return loop.Emit(a)
}

// jitReduceStep is folded for f32; nil where there is no function for it.
func jitReduceStep(f *reduceLoop, monoid hlo.Opcode, d hlo.DType, out, arg *value) step {
	code, ok := reduceRoutines()[monoid]
	if !ok || d != hlo.F32 {
		return nil
	}
	return func(w *worker) {
		dst := whole[float32](w, out)
		src := whole[float32](w, arg)
		args := &w.reduceArgs
		f.each(w, func(from, to, n, step int64) {
			at := code[1]
			if step == 0 {
				at = code[0]
			}
			for n > 0 {
				part := min(n, maxCallLength)
				*args = reduceArgs{part, &src[from], &dst[to]}
				at.Call(unsafe.Pointer(args))
				from, n = from+part, n-part
				to += part * step
			}
		})
	}
}
