package cpu

import (
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// lowerElementwise lowers an elementwise op to an instruction that computes strips.
func lowerElementwise[T number](b *block, n int, op symtile.Op) {
	e := b.l.elements(n)
	i := &instr{name: string(op.Code), n: e}
	for k := range op.Args {
		i.stripArgs = append(
			i.stripArgs, elementwiseOperand(b, op, k, e),
		)
	}
	v := b.l.result(n)
	i.outs = []*value{v}
	i.pointwise = &pointwiseOp{op, v, i.stripArgs}
	i.strip = elementwiseStrip[T](op, v, i.stripArgs)
	if i.strip == nil {
		b.l.reject(
			op, "the CPU backend does not compute this operation on %s",
			op.Instr.Operands[0].Shape.DType,
		)
		return
	}
	b.add(i)
}

func elementwiseOperand(b *block, op symtile.Op, k int, n int64) *value {
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

// elementwiseStrip makes what computes the strips of an op from its arguments; nil when
// the operation is not computed.
func elementwiseStrip[T number](op symtile.Op, v *value, args []*value) strip {
	d := op.Instr.Shape.DType
	from := op.Instr.Operands[0].Shape.DType
	switch op.Code {
	case hlo.OpSelect:
		return func(w *worker, lo, hi int64) {
			selectInto(
				part[T](w, v, lo, hi),
				part[int32](w, args[0], lo, hi),
				part[T](w, args[1], lo, hi),
				part[T](w, args[2], lo, hi),
			)
		}
	case hlo.OpClamp:
		return func(w *worker, lo, hi int64) {
			clampInto(
				d, part[T](w, v, lo, hi),
				part[T](w, args[0], lo, hi),
				part[T](w, args[1], lo, hi),
				part[T](w, args[2], lo, hi),
			)
		}
	case hlo.OpConvert, hlo.OpBitcastConvert, hlo.OpCompare, hlo.OpIsFinite:
		switch args[0].class {
		case classF32:
			return mixedStrip[float32, T](op, v, args)
		case classF64:
			return mixedStrip[float64, T](op, v, args)
		case classI32:
			return mixedStrip[int32, T](op, v, args)
		}
		return mixedStrip[int64, T](op, v, args)
	}
	if classOf(from) != v.class || from.IsComplex() {
		return nil
	}
	return uniformStrip[T](op.Code, d, v, args)
}

// mixedStrip makes the strips of operations whose result is of another class.
func mixedStrip[S, T number](
	op symtile.Op, v *value, args []*value,
) strip {
	d := op.Instr.Shape.DType
	from := op.Instr.Operands[0].Shape.DType
	switch op.Code {
	case hlo.OpConvert:
		return unaryStrip(
			v, args[0], conversion[S, T](d, from),
		)
	case hlo.OpBitcastConvert:
		if d.Bits() != from.Bits() {
			return nil
		}
		return unaryStrip(
			v, args[0], bitcast[S, T](d, from),
		)
	case hlo.OpIsFinite:
		return unaryStrip(v, args[0], isFiniteInto[S])
	}
	return binaryStrip(
		v, args[0], args[1],
		comparison[S](op.Instr),
	)
}

// uniformStrip makes the strips of operations on one type.
func uniformStrip[T number](
	code hlo.Opcode, d hlo.DType,
	v *value, args []*value,
) strip {
	fit := narrowing[T](d)
	if f := unary[T](code, d); f != nil && len(args) == 1 {
		return unaryStrip(v, args[0], f.then(fit))
	}
	f := binary[T](code, d)
	if f != nil && len(args) == 2 {
		if code.Has(hlo.Exact) {
			fit = nil
		}
		return binaryStrip(
			v, args[0], args[1],
			f.then(fit),
		)
	}
	return nil
}

func unaryStrip[S, T number](v, x *value, f unaryLoop[S, T]) strip {
	return func(w *worker, lo, hi int64) {
		f(
			part[T](w, v, lo, hi),
			part[S](w, x, lo, hi),
		)
	}
}

func binaryStrip[S, T number](
	v, x, y *value, f binaryLoop[S, T],
) strip {
	return func(w *worker, lo, hi int64) {
		f(
			part[T](w, v, lo, hi),
			part[S](w, x, lo, hi),
			part[S](w, y, lo, hi),
		)
	}
}
