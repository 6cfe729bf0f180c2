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
// (Ioffe and Szegedy, 2015.) Types of 16 bits are computed in f32 and rounded at the
// end. XLA's variance is Σx²/n − mean², which cancels.

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
// nil for other operations.
func (f *flattener) expanded(i *hlo.Instr) *hlo.Instr {
	if i.Op == hlo.OpRaggedDot {
		return f.raggedDot(i)
	}
	if !isBatchNorm(i) {
		return nil
	}
	x := i.Operands[0].Shape
	if x.Elements() == 0 || !plainLayouts(i) {
		return nil
	}
	feature, _ := strconv.ParseInt(i.Text("feature_index"), 10, 32) // the shape rule has read it
	e := &expander{
		flattener: f, of: i,
		wide: x.DType, dims: x.Dims, feature: feature,
	}
	if x.DType.Bits() < 32 {
		e.wide = hlo.F32
	}
	in := make([]*hlo.Instr, len(i.Operands))
	for k, o := range i.Operands {
		in[k] = e.convert(o, e.wide)
	}
	switch i.Op {
	case hlo.OpBatchNormTraining:
		return e.training(in[0], in[1], in[2])
	case hlo.OpBatchNormInference:
		mean := e.spread(in[3])
		r := e.deviation(in[4])
		y := e.normalised(in[0], mean, r, in[1], in[2])
		return e.convert(y, x.DType)
	}
	return e.gradients(in[0], in[1], in[2], in[3], in[4])
}

// plainLayouts reports whether all operands and results have the default layout.
func plainLayouts(i *hlo.Instr) bool {
	for _, s := range append(i.Shape.Arrays(), operandShapes(i)...) {
		if !s.Equal(hlo.Shape{DType: s.DType, Dims: s.Dims}) {
			return false
		}
	}
	return true
}

// operandShapes are the shapes of the operands.
func operandShapes(i *hlo.Instr) (all []hlo.Shape) {
	for _, o := range i.Operands {
		all = append(all, o.Shape)
	}
	return all
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
	return float64(hlo.Elements(e.dims) / e.dims[e.feature])
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
	return e.append(hlo.OpTuple, e.of.Shape, hlo.Attrs{}, all...)
}

// op is an elementwise operation on arrays of one shape.
func (e *expander) op(code hlo.Opcode, x ...*hlo.Instr) *hlo.Instr {
	shape := hlo.Shape{DType: e.wide, Dims: x[0].Shape.Dims}
	return e.append(code, shape, hlo.Attrs{}, x...)
}

// constant is one number.
func (e *expander) constant(v float64) *hlo.Instr {
	one := e.append(hlo.OpConstant, hlo.Shape{DType: e.wide}, hlo.Attrs{})
	one.Literal = &hlo.Literal{
		Shape:  one.Shape,
		Floats: []float64{e.wide.RoundFloat(v)},
	}
	return one
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
	for _, a := range e.of.Attrs.Other {
		if a.Name == "metadata" {
			attrs.Other = []hlo.Attr{a}
		}
	}
	return e.put(&hlo.Instr{
		Name: e.of.Name, Op: code, Shape: shape, Attrs: attrs,
		Operands: slices.Clone(operands), Pos: e.of.Pos,
	})
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
