package cost

import "github.com/tilewright/tilewright/symtile/hlo"

// weight is the cost of an element of an operation in flop; operations of tile
// programs that HLO does not have, which address memory, count 1.
func weight(op hlo.Opcode) float64 {
	if !op.Known() {
		return 1
	}
	return op.FLOPs()
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
