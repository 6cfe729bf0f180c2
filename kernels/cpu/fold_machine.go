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

// A machineFold is what a reduction does to vectors, and its identity.
type machineFold struct {
	identity float32
	join     func(c *amd64.Chain, x, y amd64.Value) amd64.Value
	op       amd64.Op // that is join, but for the signs of zeros and for NaN where signs is set
	signs    amd64.Op // makes the sign of the result of those of all elements
	sign     uint32   // … begins with
}

// machine is what the fold does to vectors.
func (f *reduction) machine() machineFold {
	m := machineFolds[f.monoid]
	if f.plain {
		m.signs = 0
	}
	return m
}

// registers is how many a fold of a row needs: four times eight partial results,
// and where there are signs one for those and one for what is NaN.
func (f machineFold) registers() int {
	if f.signs != 0 {
		return group + 2
	}
	return group
}

// clear sets the registers to the identity.
func (f machineFold) clear(a *amd64.Assembler, regs []amd64.Reg) {
	for _, r := range regs[:group] {
		a.Emit(amd64.VMOVUPS, r, a.Splat32(math.Float32bits(f.identity)))
	}
	if f.signs != 0 {
		a.Emit(amd64.VMOVUPS, regs[group], a.Splat32(f.sign))
		a.Emit(amd64.VXORPS, regs[group+1], regs[group+1], regs[group+1])
	}
}

// add joins x to partial results, one for each copy of the chain.
func (f machineFold) add(c *amd64.Chain, regs []amd64.Reg, part, copies int, x amd64.Value) {
	c.Update(c.Pinned(regs[part:part+copies]...), f.op, x)
	if f.signs != 0 {
		const unordered = amd64.Imm(3)
		c.Update(c.Pinned(regs[group]), f.signs, x)
		c.Update(c.Pinned(regs[group+1]), amd64.VORPS, c.Do(amd64.VCMPPS, x, x, unordered))
	}
}

// result joins the partial results; all lanes are the same then. A maximum is
// negative, or −0, if all elements have the sign; a minimum if one has.
func (f machineFold) result(c *amd64.Chain, regs []amd64.Reg) amd64.Value {
	fold := func(op amd64.Op, x amd64.Value) amd64.Value {
		return c.FoldLanes32(x, func(x, y amd64.Value) amd64.Value { return c.Do(op, x, y) })
	}
	x := c.Do(f.op, c.Do(f.op, c.Pinned(regs[0]), c.Pinned(regs[1])), c.Do(f.op, c.Pinned(regs[2]), c.Pinned(regs[3])))
	x = fold(f.op, x)
	if f.signs == 0 {
		return x
	}
	const sign = 1 << 31
	signs := c.Do(amd64.VANDPS, fold(f.signs, c.Pinned(regs[group])), c.Const32(sign))
	x = c.Do(amd64.VORPS, c.Do(amd64.VANDPS, x, c.Const32(sign-1)), signs)
	return c.Do(amd64.VORPS, x, fold(amd64.VORPS, c.Pinned(regs[group+1])))
}

var machineFolds = map[hlo.Opcode]machineFold{
	hlo.OpAdd:      {0, func(c *amd64.Chain, x, y amd64.Value) amd64.Value { return c.Do(amd64.VADDPS, x, y) }, amd64.VADDPS, 0, 0},
	hlo.OpMultiply: {1, func(c *amd64.Chain, x, y amd64.Value) amd64.Value { return c.Do(amd64.VMULPS, x, y) }, amd64.VMULPS, 0, 0},
	hlo.OpMaximum:  {float32(math.Inf(-1)), (*amd64.Chain).Max32, amd64.VMAXPS, amd64.VANDPS, 1<<32 - 1},
	hlo.OpMinimum:  {float32(math.Inf(1)), (*amd64.Chain).Min32, amd64.VMINPS, amd64.VORPS, 0},
}

// foldArgs: n elements of x; y is one number, or as many.
type foldArgs struct {
	n    int64
	x, y *float32
}

// folds are the functions by operation: over a row, and element by element.
// They are made once and stay for as long as the process.
var folds = sync.OnceValue(func() map[hlo.Opcode][2]amd64.Func {
	made := map[hlo.Opcode][2]amd64.Func{}
	if !machineCode() {
		return made
	}
	for op, f := range machineFolds {
		row, ok := loaded(f.row)
		each, ok2 := loaded(f.each)
		if ok && ok2 {
			made[op] = [2]amd64.Func{row, each}
		}
	}
	return made
})

func loaded(emit func(a *amd64.Assembler) error) (amd64.Func, bool) {
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

func loadArgs(a *amd64.Assembler) {
	a.Emit(amd64.MOV, amd64.RAX, amd64.Mem{Base: amd64.RDI})
	a.Emit(amd64.MOV, amd64.RSI, amd64.Mem{Base: amd64.RDI, Disp: 8})
	a.Emit(amd64.MOV, amd64.RDX, amd64.Mem{Base: amd64.RDI, Disp: 16})
}

// accumulators of a row, two registers that hold them in the end among them.
var accumulators = []amd64.Reg{amd64.Y8, amd64.Y9, amd64.Y10, amd64.Y11}

// row folds x into *y: lane k of accumulator j has elements 32i + 8j + k.
func (f machineFold) row(a *amd64.Assembler) error {
	loadArgs(a)
	for _, acc := range accumulators {
		a.Emit(amd64.VMOVUPS, acc, a.Splat32(math.Float32bits(f.identity)))
	}
	c := &amd64.Chain{}
	sum := c.Pinned(accumulators...)
	c.Assign(sum, f.join(c, sum, c.Load(amd64.VMOVUPS, amd64.Mem{Base: amd64.RSI}, 32)))
	loop := &amd64.Loop{
		Chain: c, Counter: amd64.RAX, Pointers: []amd64.Pointer{{Reg: amd64.RSI, Bytes: 4}}, Width: 4, Copies: len(accumulators),
		Scratch: amd64.RCX, Mask: amd64.Y15, Reserved: accumulators,
	}
	if err := loop.Emit(a); err != nil {
		return err
	}
	end := &amd64.Chain{}
	v := f.join(end, f.join(end, end.Pinned(accumulators[0]), end.Pinned(accumulators[1])), f.join(end, end.Pinned(accumulators[2]), end.Pinned(accumulators[3])))
	v = end.FoldLanes32(v, func(x, y amd64.Value) amd64.Value { return f.join(end, x, y) })
	v = f.join(end, end.Load(amd64.VBROADCASTSS, amd64.Mem{Base: amd64.RDX}, 0), v)
	end.Assign(end.Pinned(accumulators[0]), v)
	if err := end.Emit(a, amd64.Placement{Reserved: accumulators}); err != nil {
		return err
	}
	a.Emit(amd64.VMOVSS, amd64.Mem{Base: amd64.RDX}, accumulators[0].X())
	return nil
}

// each folds x into y, element by element.
func (f machineFold) each(a *amd64.Assembler) error {
	loadArgs(a)
	c := &amd64.Chain{}
	y := c.Load(amd64.VMOVUPS, amd64.Mem{Base: amd64.RDX}, 32)
	x := c.Load(amd64.VMOVUPS, amd64.Mem{Base: amd64.RSI}, 32)
	c.Store(amd64.VMOVUPS, amd64.Mem{Base: amd64.RDX}, 32, f.join(c, y, x))
	loop := &amd64.Loop{
		Chain: c, Counter: amd64.RAX, Pointers: []amd64.Pointer{{Reg: amd64.RSI, Bytes: 4}, {Reg: amd64.RDX, Bytes: 4}}, Width: 4, Copies: 4,
		Scratch: amd64.RCX, Mask: amd64.Y15,
	}
	return loop.Emit(a)
}

// foldedByMachine is folded for f32; nil where there is no function for it.
func foldedByMachine(f *folding, monoid hlo.Opcode, d hlo.DType, out, arg *value) step {
	code, ok := folds()[monoid]
	if !ok || d != hlo.F32 {
		return nil
	}
	return func(w *worker) {
		dst, src := whole[float32](w, out), whole[float32](w, arg)
		args := &w.fold
		f.each(w, func(from, to, n, step int64) {
			at := code[1]
			if step == 0 {
				at = code[0]
			}
			for n > 0 {
				part := min(n, machineLength)
				*args = foldArgs{part, &src[from], &dst[to]}
				at.Call(unsafe.Pointer(args))
				from, n = from+part, n-part
				to += part * step
			}
		})
	}
}
