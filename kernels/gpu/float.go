package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/internal/functions"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Floating-point operations. Those of f32 that PTX does not have are computed
// in f32 to a few units in the last place, or in f64 (package functions) and rounded. Types
// under f32 are computed as f32.

var floatBinary = map[hlo.Opcode]string{
	hlo.OpAdd:      "add.rn.",
	hlo.OpSubtract: "sub.rn.",
	hlo.OpMultiply: "mul.rn.",
	hlo.OpDivide:   "div.rn.",
}
var floatUnary = map[hlo.Opcode]string{
	hlo.OpNegate:           "neg.",
	hlo.OpAbs:              "abs.",
	hlo.OpSqrt:             "sqrt.rn.",
	hlo.OpFloor:            "cvt.rmi.",
	hlo.OpCeil:             "cvt.rpi.",
	hlo.OpRoundNearestEven: "cvt.rni.",
}

// float computes an operation on floats of type d; "" where there is no such
// operation. Operations that PTX has are one instruction; others of f32 are
// approximations in f32 (functions.Single) or are computed in f64 and rounded, and others of f64
// are those of functions.Double.
func (e *emitter) float(code hlo.Opcode, d hlo.DType, x []operand) operand {
	k := kindFor(d)
	s := suffix(d)
	if name, ok := floatBinary[code]; ok {
		return e.asm.get(
			k,
			name+s,
			x[0],
			x[1],
		)
	}
	if name, ok := floatUnary[code]; ok {
		if name[:3] == "cvt" {
			s += "." + s
		}
		return e.asm.get(
			k, name+s, e.asm.in(k, x[0]),
		)
	}
	// The functions below use an operand several times, so immediates are moved to
	// registers.
	for i := range x {
		x[i] = e.asm.in(k, x[i])
	}
	switch code {
	case hlo.OpMaximum:
		return e.maximum(d, x[0], x[1])
	case hlo.OpMinimum:
		return e.minimum(d, x[0], x[1])
	case hlo.OpRemainder:
		return e.widen(k, kindF64, e.floats(kindF64).Remainder(
			e.widen(kindF64, k, x[0]), e.widen(kindF64, k, x[1]),
		))
	case hlo.OpSign:
		return e.floats(k).Sign(x[0])
	case hlo.OpRoundNearestAfz:
		return e.floats(k).RoundAway(x[0])
	}
	if k == kindF32 {
		if f, ok := functions.Single[code]; ok {
			defer e.roughly(e.rough || d.Size() < 4)()
			return f(e.floats(k), x[0])
		}
		return e.throughDouble(code, x)
	}
	if f, ok := functions.Double[code]; ok {
		return f(e.floats(k), x[0])
	}
	if code == hlo.OpPower {
		return e.floats(k).Power(x[0], x[1])
	}
	if code == hlo.OpAtan2 {
		return e.floats(k).Atan2(x[0], x[1])
	}
	return ""
}

// floats emits instructions on floats of a kind.
func (e *emitter) floats(k kind) functions.Floats {
	return functions.New(functionCode{e.asm, e}, k, e.rough)
}

// A functionCode has the functions of floats emitted into a kernel.
type functionCode struct {
	a *asm
	e *emitter
}

// Get implements functions.Code, as the methods below do.
func (c functionCode) Get(k kind, opcode string, args ...any) operand {
	return c.a.get(k, opcode, args...)
}

// Do emits an instruction.
func (c functionCode) Do(opcode string, args ...any) { c.a.do(opcode, args...) }

// In is an operand in a register.
func (c functionCode) In(k kind, o operand) operand { return c.a.in(k, o) }

// Fresh is a new register.
func (c functionCode) Fresh(k kind) operand { return c.a.fresh(k) }

// And is the conjunction of predicates.
func (c functionCode) And(p, q operand) operand { return c.a.and(p, q) }

// Or is the disjunction of predicates.
func (c functionCode) Or(p, q operand) operand { return c.a.or(p, q) }

// Not is the negation of a predicate.
func (c functionCode) Not(p operand) operand { return c.a.not(p) }

// Label is a new place to branch to.
func (c functionCode) Label(name string) operand { return c.a.label(name) }

// Place puts a label here.
func (c functionCode) Place(label operand) { c.a.place(label) }

// Branch goes to a label where p holds.
func (c functionCode) Branch(p, label operand) { c.a.branch(p, label) }

// Enter begins a scope.
func (c functionCode) Enter() { c.a.enter() }

// Leave ends a scope.
func (c functionCode) Leave() { c.a.leave() }

// Known is a value with a name.
func (c functionCode) Known(name string) (operand, bool) {
	return c.a.value(valueKey{op: -1, text: name})
}

// Keep gives a value a name.
func (c functionCode) Keep(name string, v operand) {
	c.a.scope.values[valueKey{op: -1, text: name}] = v
}

// Table is the address of constant data.
func (c functionCode) Table(data []byte) operand { return c.e.constant(data) }

// Word is 64 bits of a table.
func (c functionCode) Word(base operand, at int64) operand {
	return c.a.get(kindB64, "ld.global.nc.b64", address{base, at})
}

// throughDouble computes an operation on f32 in f64, and rounds the result.
func (e *emitter) throughDouble(code hlo.Opcode, x []operand) operand {
	wide := make([]operand, len(x))
	for i := range x {
		wide[i] = e.widen(
			kindF64, kindF32, x[i],
		)
	}
	if code == hlo.OpPower {
		return e.widen(
			kindF32,
			kindF64,
			e.floats(kindF64).Power32(wide[0], wide[1]),
		)
	}
	if r := e.float(code, hlo.F64, wide); r != "" {
		return e.widen(kindF32, kindF64, r)
	}
	return ""
}

// A weightBase is the maximum of a row, for exponentials of its elements less it: 4^(x·times
// + less).
type weightBase struct{ times, less operand }

// weights are elements of op n where they are rough exponentials of a score less the
// running maximum of its row: 4^(x·c − m·c) with c = log₂√e (see logOfRoot), one multiply-add and two
// instructions more. The multiple of the maximum is rounded once for all elements of a
// row, so that their ratios are off by the rounding of the multiply-add only. It is nil for
// others.
func (e *emitter) weights(n int, points []point) []operand {
	op := e.p.Ops[n]
	defer e.roughly(e.narrowed[n])()
	if op.Code != hlo.OpExponential ||
		len(e.bases) == 0 || !e.rough {
		return nil
	}
	arg := op.Args[0]
	less := e.p.Ops[arg]
	if less.Code != hlo.OpSubtract ||
		e.hints.staged[arg] ||
		op.Instr.Shape.DType != hlo.F32 ||
		less.Instr.Shape.DType != hlo.F32 {
		return nil
	}
	x := e.elements(less.Args[0], points)
	base := e.elements(less.Args[1], points)
	m := e.floats(kindF32)
	var all []operand
	for i := range points {
		w, ok := e.bases[base[i]]
		if !ok {
			return nil
		}
		all = append(all, m.Squared(m.FMA(
			e.asm.in(kindF32, x[i]), w.times, w.less,
		)))
	}
	return all
}

// divideBySum is a quotient by a sum of weights, whose reciprocal is a normal number.
func (e *emitter) divideBySum(op symtile.Op, x []operand) operand {
	m := e.floats(kindF32)
	q := m.Mul(x[0], m.Op("rcp.approx.ftz", x[1]))
	return e.fit(op.Instr.Shape.DType, q)
}

// sumOfWeights reports whether an instruction is the sum, over rows or columns, of e^(x − m)
// with m the maximum of x along the same dimensions: between 1, for the largest x, and the
// number of elements, or NaN.
func sumOfWeights(i *hlo.Instr) bool {
	i, _ = unbroadcast(i)
	sum := monoidReduce{hlo.OpAdd, 0}
	if !sum.is(i) ||
		i.Operands[0].Op != hlo.OpExponential {
		return false
	}
	less := i.Operands[0].Operands[0]
	if less.Op != hlo.OpSubtract {
		return false
	}
	most, at := unbroadcast(less.Operands[1])
	top := monoidReduce{hlo.OpMaximum, math.Inf(-1)}
	if !top.is(most) ||
		most.Operands[0] != less.Operands[0] {
		return false
	}
	// Each x has the maximum of its own row.
	dims := i.Attrs.Dimensions
	var kept []int64
	for d := range less.Shape.Rank() {
		if !slices.Contains(dims, int64(d)) {
			kept = append(kept, int64(d))
		}
	}
	return slices.Equal(kept, at) &&
		sameSet(dims, most.Attrs.Dimensions)
}

// unbroadcast is what an instruction broadcasts, along which dimensions of its result; the
// instruction itself where it is no broadcast.
func unbroadcast(i *hlo.Instr) (of *hlo.Instr, dims []int64) {
	if i.Op == hlo.OpBroadcast {
		return i.Operands[0], i.Attrs.Dimensions
	}
	return i, nil
}

// A monoidReduce is a reduce of one array of f32 by an operation, from a number on.
type monoidReduce struct {
	code hlo.Opcode
	init float64
}

// is reports whether an instruction is such a reduction.
func (r monoidReduce) is(i *hlo.Instr) bool {
	if i.Op != hlo.OpReduce ||
		len(i.Operands) != 2 ||
		i.Shape.DType != hlo.F32 {
		return false
	}
	code, ok := i.Attrs.ToApply.Monoid()
	l := i.Operands[1].Literal
	return ok && code == r.code && l != nil &&
		!l.Elided && len(l.Floats) == 1 &&
		l.Floats[0] == r.init
}

// sameSet reports whether two lists of different dimensions have the same.
func sameSet(x, y []int64) bool {
	return len(x) == len(y) &&
		!slices.ContainsFunc(x, func(d int64) bool { return !slices.Contains(y, d) })
}
