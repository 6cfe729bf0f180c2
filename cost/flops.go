package cost

import "github.com/tilewright/tilewright/symtile/hlo"

// flopWeight is the cost of an element of an operation in flop. One for
// arithmetic; for functions, the length of their usual polynomial
// implementations (Cephes: exp 15, log 20, tanh and erf 25, sin 20, pow 40),
// divisions and roots by their throughput on current cores (about 8).
var flopWeight = map[hlo.Opcode]float64{
	"parameter": 0, "constant": 0, "broadcast": 0, "transpose": 0, "reshape": 0, "slice": 0, "copy": 0, "reverse": 0,
	"concatenate": 0, "pad": 0, "get-tuple-element": 0, "bitcast": 0, "tuple": 0, "optimization-barrier": 0,
	"divide": 8, "remainder": 20, "sqrt": 8, "rsqrt": 8, "cbrt": 25, "exponential": 15, "exponential-minus-one": 20, "log": 20,
	"log-plus-one": 22, "logistic": 24, "tanh": 25, "erf": 25, "sine": 20, "cosine": 20, "tan": 25, "power": 40, "atan2": 30,
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
		case "dot":
			for _, d := range i.Attrs.LHSContract {
				n *= float64(i.Operands[0].Shape.Dims[d])
			}
			sum += 2 * n
		case "reduce":
			sum += elements(i.Operands[0].Shape) * reducerWeight(i)
		case "fusion", "call":
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
