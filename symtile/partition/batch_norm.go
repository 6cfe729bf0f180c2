package partition

import (
	"slices"
	"strconv"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Batch normalisation is taken apart into operations that can be tiled, as XLA's
// BatchNormExpander does, when a computation is flattened. With n elements for each
// feature, sums over all dimensions but the feature's, and r = 1/√(variance + epsilon):
//
//	training   mean = Σx/n, variance = Σ(x−mean)²/n, y = (x−mean)·r·scale + offset
//	inference  y = (x−mean)·r·scale + offset
//	grad       offset' = Σg, scale' = Σ(g·(x−mean))·r,
//	           x' = scale·r/n·(n·g − Σg − (x−mean)·r²·Σ(g·(x−mean)))
//
// (Ioffe and Szegedy, 2015.) It is computed in the widest type of the operands, f32 or more,
// and rounded at the end; the mean of no elements is 0/0. XLA's variance is Σx²/n − mean², which cancels.

// An expander appends the operations that one instruction becomes.
type expander struct {
	*flattener
	// of is the instruction, whose operands are copied already.
	of *hlo.Instr
	// wide is the type of the computation.
	wide hlo.DType
	dims []int64 // of the array
	// feature is the dimension of the feature.
	feature int64
}

// isBatchNorm reports whether i is one of the three operations.
func isBatchNorm(i *hlo.Instr) bool {
	switch i.Op {
	case hlo.OpBatchNormTraining,
		hlo.OpBatchNormInference,
		hlo.OpBatchNormGrad:
		return true
	}
	return false
}

// expanded is what a ragged-dot becomes, or a batch-norm-*, one array or a tuple of three;
// nil for other operations. They are computed of arrays of the default layout.
func (f *flattener) expanded(i *hlo.Instr) *hlo.Instr {
	var result *hlo.Instr
	e := &expander{flattener: f, of: i}
	switch {
	case isBatchNorm(i):
		result = e.batchNorm(e.plainOperands())
	case i.Op == hlo.OpRaggedDot && divisible(i):
		result = e.raggedDot(e.plainOperands())
	default:
		return nil
	}
	if result.Op != hlo.OpTuple {
		return e.laidOut(result, i.Shape)
	}
	for k, x := range result.Operands {
		result.Operands[k] = e.laidOut(x, i.Shape.Tuple[k])
	}
	return e.put(result)
}

// plainOperands are the operands, in the default layout.
func (e *expander) plainOperands() []*hlo.Instr {
	in := make([]*hlo.Instr, len(e.of.Operands))
	for k, x := range e.of.Operands {
		in[k] = e.laidOut(x, plain(x.Shape))
	}
	return in
}

// plain is an array's shape in the default layout.
func plain(s hlo.Shape) hlo.Shape {
	s.Layout = hlo.Layout{}
	return s
}

// laidOut is x in the layout of a shape that is otherwise x's.
func (e *expander) laidOut(x *hlo.Instr, s hlo.Shape) *hlo.Instr {
	if x.Shape.Equal(s) {
		return x
	}
	return e.append(hlo.OpCopy, s, hlo.Attrs{}, x)
}

// batchNorm is one array or a tuple of three, which is not among the instructions yet.
func (e *expander) batchNorm(in []*hlo.Instr) *hlo.Instr {
	x := in[0].Shape
	feature, _ := strconv.ParseInt(e.of.Text("feature_index"), 10, 32) // the shape rule has read it
	e.dims, e.feature, e.wide = x.Dims, feature, widest(in)
	for k := range in {
		in[k] = e.convert(in[k], e.wide)
	}
	switch e.of.Op {
	case hlo.OpBatchNormTraining:
		return e.training(in[0], in[1], in[2])
	case hlo.OpBatchNormInference:
		mean := e.spread(in[3])
		r := e.deviation(in[4])
		y := e.normalised(in[0], mean, r, in[1], in[2])
		return e.convert(y, e.of.Shape.DType)
	}
	return e.gradients(in[0], in[1], in[2], in[3], in[4])
}

// widest is the type with the most bits of some arrays', f32 or more.
func widest(in []*hlo.Instr) hlo.DType {
	wide := hlo.F32
	for _, x := range in {
		if x.Shape.DType.Bits() > wide.Bits() {
			wide = x.Shape.DType
		}
	}
	return wide
}

// training is (y, mean, variance).
func (e *expander) training(x, scale, offset *hlo.Instr) *hlo.Instr {
	count := e.number(e.count())
	mean := e.op(hlo.OpDivide, e.sum(x), count)
	wideMean := e.spread(mean)
	from := e.op(hlo.OpSubtract, x, wideMean)
	squares := e.op(hlo.OpMultiply, from, from)
	variance := e.op(hlo.OpDivide, e.sum(squares), count)
	y := e.normalised(x, wideMean, e.deviation(variance), scale, offset)
	return e.results(y, mean, variance)
}

// normalised is (x − mean)·r·scale + offset; mean has the extents of x.
func (e *expander) normalised(x, mean, r, scale, offset *hlo.Instr) *hlo.Instr {
	y := e.op(hlo.OpSubtract, x, mean)
	y = e.op(hlo.OpMultiply, y, e.spread(r))
	y = e.op(hlo.OpMultiply, y, e.spread(scale))
	return e.op(hlo.OpAdd, y, e.spread(offset))
}

// gradients is (x', scale', offset') for the gradient g of the output.
func (e *expander) gradients(x, scale, mean, variance, g *hlo.Instr) *hlo.Instr {
	r := e.deviation(variance)
	from := e.op(hlo.OpSubtract, x, e.spread(mean))
	sum := e.sum(g)
	product := e.sum(e.op(hlo.OpMultiply, g, from))
	n := e.count()
	slope := e.op(hlo.OpMultiply, product, r)
	slope = e.op(hlo.OpMultiply, slope, r)
	inner := e.op(hlo.OpMultiply, g, e.spread(e.number(n)))
	inner = e.op(hlo.OpSubtract, inner, e.spread(sum))
	from = e.op(hlo.OpMultiply, from, e.spread(slope))
	inner = e.op(hlo.OpSubtract, inner, from)
	factor := e.op(hlo.OpMultiply, scale, r)
	factor = e.op(hlo.OpDivide, factor, e.number(n))
	return e.results(
		e.op(hlo.OpMultiply, inner, e.spread(factor)),
		e.op(hlo.OpMultiply, product, r), sum,
	)
}

// count is the number of elements of each feature.
func (e *expander) count() float64 {
	n := int64(1)
	for d, extent := range e.dims {
		if int64(d) != e.feature {
			n *= extent
		}
	}
	return float64(n)
}

// deviation is 1/√(variance + epsilon).
func (e *expander) deviation(variance *hlo.Instr) *hlo.Instr {
	epsilon, _ := strconv.ParseFloat(e.of.Text("epsilon"), 64) // the shape rule has read it
	return e.op(hlo.OpRsqrt, e.op(hlo.OpAdd, variance, e.number(epsilon)))
}

// results is a tuple of the results in the types that are declared.
func (e *expander) results(all ...*hlo.Instr) *hlo.Instr {
	for k := range all {
		all[k] = e.convert(all[k], e.of.Shape.Tuple[k].DType)
	}
	return e.instruction(hlo.OpTuple, e.of.Shape, hlo.Attrs{}, all...)
}

// op is an elementwise operation on arrays of one shape.
func (e *expander) op(code hlo.Opcode, x ...*hlo.Instr) *hlo.Instr {
	shape := hlo.Shape{DType: e.wide, Dims: x[0].Shape.Dims}
	return e.append(code, shape, hlo.Attrs{}, x...)
}

// constant is one number.
func (e *expander) constant(v float64) *hlo.Instr {
	one := e.instruction(hlo.OpConstant, hlo.Shape{DType: e.wide}, hlo.Attrs{})
	one.Literal = &hlo.Literal{
		Shape:  one.Shape,
		Floats: []float64{e.wide.RoundFloat(v)},
	}
	return e.put(one)
}

// number is a value for each feature.
func (e *expander) number(v float64) *hlo.Instr {
	return e.append(
		hlo.OpBroadcast, e.vector(),
		hlo.Attrs{Dimensions: []int64{}}, e.constant(v),
	)
}

// spread repeats a value for each feature along the other dimensions.
func (e *expander) spread(x *hlo.Instr) *hlo.Instr {
	return e.append(
		hlo.OpBroadcast, hlo.Shape{DType: e.wide, Dims: e.dims},
		hlo.Attrs{Dimensions: []int64{e.feature}}, x,
	)
}

// sum sums over all dimensions but the feature's.
func (e *expander) sum(x *hlo.Instr) *hlo.Instr {
	var dims []int64
	for d := range e.dims {
		if int64(d) != e.feature {
			dims = append(dims, int64(d))
		}
	}
	if dims == nil {
		return x
	}
	add := e.scalarSum(e.wide)
	return e.append(
		hlo.OpReduce, e.vector(),
		hlo.Attrs{Dimensions: dims, ToApply: add}, x, e.constant(0),
	)
}

// vector is the shape of a number for each feature.
func (e *expander) vector() hlo.Shape {
	return hlo.Shape{DType: e.wide, Dims: e.dims[e.feature:][:1]}
}

// convert is x as type d.
func (e *expander) convert(x *hlo.Instr, d hlo.DType) *hlo.Instr {
	if x.Shape.DType == d {
		return x
	}
	shape := hlo.Shape{DType: d, Dims: x.Shape.Dims}
	return e.append(hlo.OpConvert, shape, hlo.Attrs{}, x)
}

// append appends an instruction with the name and the source of the one that is
// taken apart.
func (e *expander) append(
	code hlo.Opcode, shape hlo.Shape, attrs hlo.Attrs, operands ...*hlo.Instr,
) *hlo.Instr {
	return e.put(e.instruction(code, shape, attrs, operands...))
}

// instruction is what append appends.
func (e *expander) instruction(
	code hlo.Opcode, shape hlo.Shape, attrs hlo.Attrs, operands ...*hlo.Instr,
) *hlo.Instr {
	for _, a := range e.of.Attrs.Other {
		if a.Name == "metadata" {
			attrs.Other = []hlo.Attr{a}
		}
	}
	return &hlo.Instr{
		Name: e.of.Name, Op: code, Shape: shape, Attrs: attrs,
		Operands: slices.Clone(operands), Pos: e.of.Pos,
	}
}

// scalarSum is the computation that adds two numbers of a type, one for the module.
func (p *partitioner) scalarSum(d hlo.DType) *hlo.Computation {
	if made := p.sums[d]; made != nil {
		return made
	}
	scalar := hlo.Shape{DType: d}
	x := &hlo.Instr{Name: "x", Op: hlo.OpParameter, Shape: scalar}
	y := &hlo.Instr{Name: "y", Op: hlo.OpParameter, Shape: scalar}
	y.Attrs.Param = 1
	sum := &hlo.Instr{Name: "sum", Op: hlo.OpAdd, Shape: scalar}
	sum.Operands = []*hlo.Instr{x, y}
	p.sums[d] = &hlo.Computation{
		Name:   hlo.UniqueName(p.usedNames, "sum."+d.String()),
		Instrs: []*hlo.Instr{x, y, sum},
		Params: sum.Operands,
		Root:   sum,
	}
	return p.sums[d]
}
