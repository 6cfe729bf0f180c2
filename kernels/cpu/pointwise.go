package cpu

import (
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// pointwise lowers an elementwise op to an instruction that computes strips.
func pointwise[T number](b *block, n int, op symtile.Op) {
	e := b.l.elements(n)
	i := &instr{name: string(op.Code), n: e}
	for k := range op.Args {
		i.same = append(i.same, operandAny(b, op, k, e))
	}
	v := b.l.result(n)
	i.outs, i.pure = []*value{v}, &pure{op, v, i.same}
	if i.strip = stripOf[T](op, v, i.same); i.strip == nil {
		b.l.reject(op, "the CPU backend does not compute this operation on %s", op.Instr.Operands[0].Shape.DType)
		return
	}
	b.add(i)
}

func operandAny(b *block, op symtile.Op, k int, n int64) *value {
	switch b.l.arg(op, k).class {
	case classF32:
		return operand[float32](b, op, k, n)
	case classF64:
		return operand[float64](b, op, k, n)
	case classI32:
		return operand[int32](b, op, k, n)
	}
	return operand[int64](b, op, k, n)
}

// stripOf makes what computes the strips of an op from its arguments; nil when
// the operation is not computed.
func stripOf[T number](op symtile.Op, v *value, args []*value) strip {
	d, from := op.Instr.Shape.DType, op.Instr.Operands[0].Shape.DType
	switch op.Code {
	case hlo.OpSelect:
		return func(w *worker, lo, hi int64) {
			chosen(part[T](w, v, lo, hi), part[int32](w, args[0], lo, hi), part[T](w, args[1], lo, hi), part[T](w, args[2], lo, hi))
		}
	case hlo.OpClamp:
		return func(w *worker, lo, hi int64) {
			clamped(d, part[T](w, v, lo, hi), part[T](w, args[0], lo, hi), part[T](w, args[1], lo, hi), part[T](w, args[2], lo, hi))
		}
	case hlo.OpConvert, hlo.OpBitcastConvert, hlo.OpCompare, hlo.OpIsFinite:
		switch args[0].class {
		case classF32:
			return across[float32, T](op, v, args)
		case classF64:
			return across[float64, T](op, v, args)
		case classI32:
			return across[int32, T](op, v, args)
		}
		return across[int64, T](op, v, args)
	}
	if classOf(from) != v.class || from.IsComplex() {
		return nil
	}
	return within[T](op.Code, d, v, args)
}

// across makes the strips of operations whose result is of another class.
func across[S, T number](op symtile.Op, v *value, args []*value) strip {
	d, from := op.Instr.Shape.DType, op.Instr.Operands[0].Shape.DType
	switch op.Code {
	case hlo.OpConvert:
		return unaryStrip(v, args[0], conversion[S, T](d, from))
	case hlo.OpBitcastConvert:
		if d.Bits() != from.Bits() {
			return nil
		}
		return unaryStrip(v, args[0], recast[S, T](d, from))
	case hlo.OpIsFinite:
		return unaryStrip(v, args[0], finite[S])
	}
	return binaryStrip(v, args[0], args[1], comparison[S](op.Instr))
}

// within makes the strips of operations on one type.
func within[T number](code hlo.Opcode, d hlo.DType, v *value, args []*value) strip {
	fit := fitting[T](d)
	if f := unary[T](code, d); f != nil && len(args) == 1 {
		return unaryStrip(v, args[0], f.then(fit))
	}
	if f := binary[T](code, d); f != nil && len(args) == 2 {
		if exact[code] {
			fit = nil
		}
		return binaryStrip(v, args[0], args[1], f.then(fit))
	}
	return nil
}

// exact operations give an element of the type of their operands.
var exact = map[hlo.Opcode]bool{hlo.OpMaximum: true, hlo.OpMinimum: true, hlo.OpAnd: true, hlo.OpOr: true, hlo.OpXor: true}

func unaryStrip[S, T number](v, x *value, f unaryLoop[S, T]) strip {
	return func(w *worker, lo, hi int64) { f(part[T](w, v, lo, hi), part[S](w, x, lo, hi)) }
}

func binaryStrip[S, T number](v, x, y *value, f binaryLoop[S, T]) strip {
	return func(w *worker, lo, hi int64) {
		f(part[T](w, v, lo, hi), part[S](w, x, lo, hi), part[S](w, y, lo, hi))
	}
}
