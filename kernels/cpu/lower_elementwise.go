package cpu

import (
	"github.com/tilewright/tilewright/kernels/cpu/portable"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// lowerElementwise lowers an elementwise op to an instruction that computes strips.
func lowerElementwise[T portable.Number](b *block, n int, op symtile.Op) {
	e := b.l.elements(n)
	i := &instr{name: string(op.Code), n: e}
	for k := range op.Args {
		i.stripArgs = append(
			i.stripArgs, elementwiseOperand(b, op, k, e),
		)
	}
	v := b.l.result(n)
	i.outs = []*value{v}
	i.pointwise = &pointwiseOp{op.Instr, v, i.stripArgs}
	i.strip = elementwiseStrip[T](op.Instr, v, i.stripArgs)
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
	case portable.Float32:
		return operand[float32](b, op, k, n)
	case portable.Float64:
		return operand[float64](b, op, k, n)
	case portable.Int32:
		return operand[int32](b, op, k, n)
	}
	return operand[int64](b, op, k, n)
}

// elementwiseStrip makes what computes the strips of an op from its arguments; nil when
// the operation is not computed.
func elementwiseStrip[T portable.Number](i *hlo.Instr, v *value, args []*value) strip {
	d := i.Shape.DType
	from := i.Operands[0].Shape.DType
	switch i.Op {
	case hlo.OpSelect:
		return func(w *worker, lo, hi int64) {
			portable.Select(
				part[T](w, v, lo, hi),
				part[int32](w, args[0], lo, hi),
				part[T](w, args[1], lo, hi),
				part[T](w, args[2], lo, hi),
			)
		}
	case hlo.OpClamp:
		return func(w *worker, lo, hi int64) {
			portable.Clamp(
				d, part[T](w, v, lo, hi),
				part[T](w, args[0], lo, hi),
				part[T](w, args[1], lo, hi),
				part[T](w, args[2], lo, hi),
			)
		}
	case hlo.OpConvert, hlo.OpBitcastConvert, hlo.OpCompare, hlo.OpIsFinite:
		switch args[0].class {
		case portable.Float32:
			return mixedStrip[float32, T](i, v, args)
		case portable.Float64:
			return mixedStrip[float64, T](i, v, args)
		case portable.Int32:
			return mixedStrip[int32, T](i, v, args)
		}
		return mixedStrip[int64, T](i, v, args)
	}
	if portable.ClassOf(from) != v.class || from.IsComplex() {
		return nil
	}
	return uniformStrip[T](i.Op, d, v, args)
}

// mixedStrip makes the strips of operations whose result is of another class.
func mixedStrip[S, T portable.Number](
	i *hlo.Instr, v *value, args []*value,
) strip {
	d := i.Shape.DType
	from := i.Operands[0].Shape.DType
	switch i.Op {
	case hlo.OpConvert:
		return unaryStrip(
			v, args[0], portable.Conversion[S, T](d, from),
		)
	case hlo.OpBitcastConvert:
		if d.Bits() != from.Bits() {
			return nil
		}
		return unaryStrip(
			v, args[0], portable.Bitcast[S, T](d, from),
		)
	case hlo.OpIsFinite:
		return unaryStrip(v, args[0], portable.IsFinite[S])
	}
	return binaryStrip(
		v, args[0], args[1],
		portable.Comparison[S](i),
	)
}

// uniformStrip makes the strips of operations on one type.
func uniformStrip[T portable.Number](
	code hlo.Opcode, d hlo.DType,
	v *value, args []*value,
) strip {
	fit := portable.Narrowing[T](d)
	if f := portable.UnaryOf[T](code, d); f != nil && len(args) == 1 {
		return unaryStrip(v, args[0], f.Then(fit))
	}
	f := portable.BinaryOf[T](code, d)
	if f != nil && len(args) == 2 {
		if code.Has(hlo.Exact) {
			fit = nil
		}
		return binaryStrip(
			v, args[0], args[1],
			f.Then(fit),
		)
	}
	return nil
}

func unaryStrip[S, T portable.Number](v, x *value, f portable.Unary[S, T]) strip {
	return func(w *worker, lo, hi int64) {
		f(
			part[T](w, v, lo, hi),
			part[S](w, x, lo, hi),
		)
	}
}

func binaryStrip[S, T portable.Number](
	v, x, y *value, f portable.Binary[S, T],
) strip {
	return func(w *worker, lo, hi int64) {
		f(
			part[T](w, v, lo, hi),
			part[S](w, x, lo, hi),
			part[S](w, y, lo, hi),
		)
	}
}
