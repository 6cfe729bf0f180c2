package cost

import "github.com/tilewright/tilewright/symtile/hlo"

// flopWeight is the cost of an element of an operation in flop. One for
// arithmetic; for functions, the length of their usual polynomial
// implementations (Cephes: exp 15, log 20, tanh and erf 25, sin 20, pow 40),
// divisions and roots by their throughput on current cores (about 8).
var flopWeight = map[hlo.Opcode]float64{
	hlo.OpParameter: 0, hlo.OpConstant: 0, hlo.OpBroadcast: 0,
	hlo.OpTranspose: 0, hlo.OpReshape: 0, hlo.OpSlice: 0,
	hlo.OpCopy: 0, hlo.OpReverse: 0,
	hlo.OpConcatenate: 0, hlo.OpPad: 0, hlo.OpGetTupleElement: 0,
	hlo.OpBitcast: 0, hlo.OpTuple: 0, hlo.OpOptimizationBarrier: 0,
	hlo.OpDivide: 8, hlo.OpRemainder: 20, hlo.OpSqrt: 8,
	hlo.OpRsqrt: 8, hlo.OpCbrt: 25, hlo.OpExponential: 15,
	hlo.OpExponentialMinusOne: 20, hlo.OpLog: 20,
	hlo.OpLogPlusOne: 22, hlo.OpLogistic: 24, hlo.OpTanh: 25,
	hlo.OpErf: 25, hlo.OpSine: 20, hlo.OpCosine: 20,
	hlo.OpTan: 25, hlo.OpPower: 40, hlo.OpAtan2: 30,
}

func weight(op hlo.Opcode) float64 {
	if w, ok := flopWeight[op]; ok {
		return w
	}
	return 1
}

// usefulFLOPs counts every element of every instruction once.
func usefulFLOPs(c *hlo.Computation) float64 {
	sum := 0.0
	for _, i := range c.Instrs {
		n := elements(i.Shape)
		switch i.Op {
		case hlo.OpDot:
			for _, d := range i.Attrs.LHSContract {
				n *= float64(i.Operands[0].Shape.Dims[d])
			}
			sum += 2 * n
		case hlo.OpReduce:
			sum += elements(i.Operands[0].Shape) * reducerWeight(i)
		case hlo.OpFusion, hlo.OpCall:
			sum += usefulFLOPs(i.Attrs.Calls)
		default:
			sum += n * weight(i.Op)
		}
	}
	return sum
}

// elements is the elements of an array, or of the first array of a tuple.
func elements(s hlo.Shape) float64 {
	if s.DType == hlo.Tuple {
		if len(s.Tuple) == 0 {
			return 0
		}
		return elements(s.Tuple[0])
	}
	return float64(s.Elements())
}

// reducerWeight is the flop of combining two elements.
func reducerWeight(i *hlo.Instr) float64 {
	sum := 0.0
	for _, x := range i.Attrs.ToApply.Instrs {
		sum += weight(x.Op)
	}
	return sum
}
