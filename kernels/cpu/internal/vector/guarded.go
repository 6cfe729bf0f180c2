package vector

import (
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Some operations have vector code that is right for almost all operands: sines of f64 for
// angles below 2³⁰, remainders for quotients below 2⁵¹. A routine first looks at all operands
// of a strip, which takes a fraction of the time, and computes only where all are such. Else
// the caller has its loop in Go compute the strip. The two passes are apart since a result may
// lie where an operand does.

// guardedCode is the code of an operation on f64, and the mask of the operands that it is not
// right for.
type guardedCode struct {
	compute, beyond func(c *amd64.Chain, x []amd64.Value) amd64.Value
}

// angle is the code of a function of an angle of f64. NaN and infinities count as beyond the
// largest angle, so that the loop in Go makes NaN of them.
func angle(f func(c *amd64.Chain, x amd64.Value) amd64.Value) guardedCode {
	return guardedCode{
		func(c *amd64.Chain, x []amd64.Value) amd64.Value { return f(c, x[0]) },
		func(c *amd64.Chain, x []amd64.Value) amd64.Value {
			one := c.Const64(one64)
			return c.Beyond64(x[0], one, amd64.LargestAngle64)
		},
	}
}

// remainder is the code of a remainder. A quotient by 0 or of an infinity counts as beyond the
// largest one; that by an infinity is 0, and leaves the dividend.
var remainder = guardedCode{
	func(c *amd64.Chain, x []amd64.Value) amd64.Value {
		return c.Remainder64(x[0], x[1])
	},
	func(c *amd64.Chain, x []amd64.Value) amd64.Value {
		return c.Beyond64(x[0], x[1], amd64.LargeQuotient)
	},
}

// guardedCodes are the operations by the class of their operands. Remainders of floats held as
// f32 are those of f64, which are elements of the type.
var guardedCodes = map[portable.Class]map[hlo.Opcode]guardedCode{
	portable.Float32: {hlo.OpRemainder: remainder},
	portable.Float64: {
		hlo.OpRemainder: remainder,
		hlo.OpSine:      angle((*amd64.Chain).Sin64),
		hlo.OpCosine:    angle((*amd64.Chain).Cos64),
		hlo.OpTan:       angle((*amd64.Chain).Tan64),
	},
}

// guardedArgs is the argument block of both passes. The first sets outside to a number that
// is not 0 where it finds operands that the second is not right for.
type guardedArgs struct {
	n       int64
	x       [2]unsafe.Pointer // The operands.
	out     unsafe.Pointer
	outside int64
}

// A Guarded is an operation that is computed by a routine where all operands allow it.
type Guarded struct{ look, compute amd64.Func }

// A guardedKey names the routines of an operation, which are the same for all types of a
// class.
type guardedKey struct {
	op    hlo.Opcode
	class portable.Class
}

// guardedRoutines are those that were asked for.
var guardedRoutines sync.Map // guardedKey → func() *Guarded

// HasGuarded reports whether an operation has routines where machine code runs.
func HasGuarded(i *hlo.Instr) bool {
	d := i.Shape.DType
	if !d.IsFloat() {
		return false
	}
	_, known := guardedCodes[portable.ClassOf(d)][i.Op]
	return known
}

// GuardedOf are the routines of an operation, which are assembled at their first use; nil
// where there are none.
func GuardedOf(i *hlo.Instr) *Guarded {
	if !HasGuarded(i) || !Supported() {
		return nil
	}
	key := guardedKey{i.Op, portable.ClassOf(i.Shape.DType)}
	made, _ := guardedRoutines.LoadOrStore(key, sync.OnceValue(func() *Guarded {
		return newGuarded(key, len(i.Operands))
	}))
	return made.(func() *Guarded)()
}

// newGuarded assembles the routines of an operation; nil where that is not possible, as where
// pages for code are refused. Then the loop in Go serves.
func newGuarded(key guardedKey, operands int) *Guarded {
	code := guardedCodes[key.class][key.op]
	look, first := LoadRoutine(func(a *amd64.Assembler) error {
		return key.emitLook(a, code, operands)
	})
	compute, second := LoadRoutine(func(a *amd64.Assembler) error {
		return key.emitCompute(a, code, operands)
	})
	if !first || !second {
		return nil
	}
	return &Guarded{look, compute}
}

// loop is a loop over the operands, which are loaded as f64.
func (k guardedKey) loop(a *amd64.Assembler, operands int) (*amd64.Loop, []amd64.Value) {
	c := &amd64.Chain{}
	l := &amd64.Loop{
		Chain:   c,
		Counter: amd64.RAX,
		Width:   8,
		Copies:  2,
		Scratch: amd64.RCX,
		Mask:    amd64.Y15,
	}
	// RDI stays the argument block, for what a pass writes at its end.
	bytes := k.class.Bytes()
	a.Emit(amd64.MOV, amd64.RAX, amd64.Mem{Base: amd64.RDI})
	var x []amd64.Value
	for n, r := range []amd64.Reg{amd64.RSI, amd64.RDX}[:operands] {
		a.Emit(amd64.MOV, r, amd64.Mem{Base: amd64.RDI, Disp: int32(8 + 8*n)})
		l.Pointers = append(l.Pointers, amd64.Pointer{Reg: r, Bytes: int(bytes)})
		v := LoadElements(c, amd64.Mem{Base: r}, bytes, 8, false)
		if k.class == portable.Float32 {
			v = c.Float64FromLow(v)
		}
		x = append(x, v)
	}
	return l, x
}

// outsideMask is the register in which the first pass collects masks.
const outsideMask = amd64.Y14

// emitLook emits the first pass: masks of all vectors are collected in one register, of which
// the signs of lanes are what the caller reads. Lanes beyond the last element are not
// collected, whatever they hold.
func (k guardedKey) emitLook(a *amd64.Assembler, code guardedCode, operands int) error {
	a.Emit(amd64.VPXOR, outsideMask, outsideMask, outsideMask)
	l, x := k.loop(a, operands)
	outside := l.Chain.Pinned(outsideMask)
	l.Chain.Update(outside, amd64.VORPS, code.beyond(l.Chain, x))
	if err := l.Emit(a); err != nil {
		return err
	}
	a.Emit(amd64.VMOVMSKPD, amd64.EAX, outsideMask)
	a.Emit(amd64.MOV, amd64.Mem{
		Base: amd64.RDI,
		Disp: int32(unsafe.Offsetof(guardedArgs{}.outside)),
	}, amd64.RAX)
	return nil
}

// emitCompute emits the second pass, in lanes of eight bytes, to which elements of four are
// converted and from which they are converted back.
func (k guardedKey) emitCompute(a *amd64.Assembler, code guardedCode, operands int) error {
	l, x := k.loop(a, operands)
	bytes := k.class.Bytes()
	a.Emit(amd64.MOV, amd64.R8, amd64.Mem{
		Base: amd64.RDI,
		Disp: int32(unsafe.Offsetof(guardedArgs{}.out)),
	})
	l.Pointers = append(l.Pointers, amd64.Pointer{Reg: amd64.R8, Bytes: int(bytes)})
	// A remainder of floats held as f32 is such a float, so that nothing is rounded.
	y := code.compute(l.Chain, x)
	if k.class == portable.Float32 {
		y = l.Chain.LowFromFloat64(y)
	}
	StoreElements(l.Chain, amd64.Mem{Base: amd64.R8}, bytes, 8, y)
	return l.Emit(a)
}

// Run computes n elements, at most MaxCallLength, of operands at x, one or two. It reports
// false, and writes nothing, where an operand is not one that the routine is right for.
func (g *Guarded) Run(n int64, x [2]unsafe.Pointer, out unsafe.Pointer) bool {
	args := guardedArgs{n: n, x: x, out: out}
	if g.look.Call(unsafe.Pointer(&args)); args.outside != 0 {
		return false
	}
	g.compute.Call(unsafe.Pointer(&args))
	return true
}
