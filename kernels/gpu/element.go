package gpu

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Most operations of a tile program have no tile in memory: an element is computed
// where it is needed, from elements of the arguments, down to loads. The scopes of asm
// remember the values that were computed for a point, so that an element that several
// others need is computed once in a scope.

// elements computes op n at points, which are the elements of one vector of a thread.
func (e *emitter) elements(n int, points []point) []operand {
	return e.elementsOf(n, 0, points)
}

// elementsOf computes a result of op n; a variadic reduce has several. Values of the
// scope are used again. A value that is in the scope without conditions is valid for
// every point, too.
func (e *emitter) elementsOf(n, part int, points []point) []operand {
	// A value is used if it is in the scope for every point of the vector.
	all := make([]operand, len(points))
	missing := false
	// Conditions are part of the key: a masked value is valid where its conditions
	// hold only.
	for k, p := range points {
		r, ok := e.asm.value(e.keyOf(n, part, p))
		if !ok {
			// known everywhere
			r, ok = e.asm.value(
				e.keyOf(n, part, point{p.at, nil}),
			)
		}
		all[k], missing = r, missing || !ok
	}
	if !missing {
		return all
	}
	// A tile in shared memory is loaded from there; other values are computed.
	if b := e.buffers[bufferKey{n, part}]; b != nil {
		all = e.fetch(b, points)
	} else {
		all = e.compute(n, part, points)
	}
	for k, p := range points {
		e.asm.scope.values[e.keyOf(n, part, p)] = all[k]
	}
	return all
}

// compute emits the code of a result of op n at points, whatever is known of it.
func (e *emitter) compute(n, part int, points []point) []operand {
	op := e.p.Ops[n]
	if op.Code.Elementwise() {
		return e.computeElementwise(n, points)
	}
	switch op.Code {
	case hlo.OpParameter:
		return e.loadParameter(n, points)
	case hlo.OpConstant:
		return e.literal(op, points)
	case hlo.OpIota:
		return e.count(op, points)
	case hlo.OpReshape, hlo.OpSlice, hlo.OpDynamicSlice, hlo.OpOptimizationBarrier:
		return e.elements(
			op.Args[0], e.reshaped(op, points),
		)
	case hlo.OpBroadcast, hlo.OpTranspose, hlo.OpReverse, symtile.OpUnfold:
		return e.elements(
			op.Args[0], e.moved(op, points),
		)
	case hlo.OpConcatenate:
		return e.concatenated(op, points)
	case hlo.OpPad:
		return e.padded(op, points)
	case hlo.OpDynamicUpdateSlice:
		return e.updated(op, points)
	case hlo.OpGather:
		return e.gathered(op, points)
	case hlo.OpGetTupleElement:
		return e.elementsOf(
			op.Args[0],
			int(op.Instr.Attrs.Index), points,
		)
	case hlo.OpReduce, hlo.OpDot:
		return e.missing(n, part, points)
	}
	e.refuse(op.Instr, "%s is not computed on a GPU", op.Code)
	return nil
}

// computeElementwise applies an elementwise operation. An argument of rank 0, as
// select and clamp may have, has the same element for all points.
func (e *emitter) computeElementwise(n int, points []point) []operand {
	op := e.p.Ops[n]
	if v, ok := e.decided[n]; ok {
		return slices.Repeat([]operand{v}, len(points))
	}
	if all := e.weights(n, points); all != nil {
		e.comment(n)
		return all
	}
	args := make([][]operand, len(op.Args))
	for k, a := range op.Args {
		at := points
		// The argument is a scalar of select or clamp.
		if len(e.p.Ops[a].Tile) == 0 &&
			len(op.Tile) > 0 {
			at = make([]point, len(points))
			for i, p := range points {
				at[i] = point{nil, p.when}
			}
		}
		args[k] = e.elements(a, at)
	}
	// Arguments are computed before, so the comment precedes the code of the op
	// itself.
	e.comment(n)
	defer e.roughly(e.narrowed[n])()
	compute := e.pointwise
	if op.Code == hlo.OpDivide && e.divisorShared(n, args[1]) {
		compute = e.divideShared
		if sumOfWeights(op.Instr.Operands[1]) {
			compute = e.divideBySum
		}
	}
	all := make([]operand, len(points))
	for i := range points {
		x := make([]operand, len(args))
		for k := range args {
			x[k] = args[k][i]
		}
		all[i] = compute(op, x)
	}
	return all
}

// index is the index in the tensor of element i of a dimension of a tile: offset +
// i·stride, or a sum of digits, each of which is such a dimension. The conditions that
// the element is inside the tensor are added to valid.
func (e *emitter) index(
	d symtile.DimTile, i index.Expr, valid conditions,
) (index.Expr, conditions) {
	if d.Digits == nil {
		x := d.Offset.Add(i.Mul(d.Stride))
		return x, valid.within(x, d.Lower, d.Bound)
	}
	sum := e.ring.Const(0)
	sizes := make([]int64, len(d.Digits))
	for k, digit := range d.Digits {
		sizes[k] = constantOf(digit.Size)
	}
	for k, part := range digitsOf(i, sizes) {
		var x index.Expr
		x, valid = e.index(d.Digits[k], part, valid)
		sum = sum.Add(x)
	}
	return sum, valid.within(sum, d.Lower, d.Bound)
}

// tensor is the index in the tensor of an element of a tile, with the conditions that
// the element is inside the tensor.
func (e *emitter) tensor(
	t symtile.Tile, at []index.Expr,
) (idx []index.Expr, valid conditions) {
	idx = make([]index.Expr, len(t))
	for k, d := range t {
		idx[k], valid = e.index(d, at[k], valid)
	}
	return idx, valid
}

// loadParameter loads elements of a parameter of the fusion.
func (e *emitter) loadParameter(n int, points []point) []operand {
	op := e.p.Ops[n]
	places := make([]place, len(points))
	strides := op.Instr.Shape.Strides()
	for k, p := range points {
		index, valid := e.tensor(op.Tile, p.at)
		places[k] = place{
			e.dotted(index, strides), p.when.all(valid),
		}
	}
	e.recheckCoalescing(n, places)
	e.comment(n)
	param := int(op.Instr.Attrs.Param)
	in := memory{
		e.passing(inputs, e.readOnce(param)),
		e.parameter(param),
		0,
	}
	return e.gatherPlaces(in, op.Instr.Shape.DType, places)
}

// literal is elements of a constant: immediates where all its elements are equal, or
// else loads from an array in the module.
func (e *emitter) literal(op symtile.Op, points []point) []operand {
	l := op.Instr.Literal
	if l == nil || l.Elided {
		e.reject("%s: its value was left out of the text ({...})", op.Instr.Name)
	}
	all := make([]operand, len(points))
	if v, ok := uniform(l); ok {
		for k := range all {
			all[k] = v
		}
		return all
	}
	shape := hlo.Shape{
		DType: op.Instr.Shape.DType,
		Dims:  op.Instr.Shape.Dims,
	}
	table := memory{
		global, e.constant(literalBytes(l)), 0,
	}
	places := make([]place, len(points))
	for k, p := range points {
		index, valid := e.tensor(op.Tile, p.at)
		places[k] = place{
			e.dotted(index, shape.Strides()),
			p.when.all(valid),
		}
	}
	return e.gatherPlaces(table, shape.DType, places)
}

// count is elements of an iota: their index along its dimension.
func (e *emitter) count(op symtile.Op, points []point) []operand {
	all := make([]operand, len(points))
	d := op.Instr.Shape.DType
	dim := int(op.Instr.Attrs.IotaDim)
	for k, p := range points {
		x, _ := e.index(op.Tile[dim], p.at[dim], nil)
		if v, ok := x.Value(); ok {
			all[k] = immediate(d, v, float64(v))
			continue
		}
		all[k] = e.convert(d, hlo.S32, e.num(x))
	}
	return all
}

// reshaped maps points of a result to points of the argument, which has the same
// elements in the same row-major order.
func (e *emitter) reshaped(op symtile.Op, points []point) []point {
	from := e.p.Ops[op.Args[0]].Tile.Sizes()
	to := op.Tile.Sizes()
	if slices.Equal(from, to) {
		return points
	}
	out := make([]point, len(points))
	for k, p := range points {
		out[k] = point{
			e.refold(p.at, to, from), p.when,
		}
	}
	return out
}

// refold maps an index of an array of sizes from to the index with the same row-major
// number in an array of sizes to. Dimensions of size 1 are inserted and dropped, and
// groups of dimensions with equal products are mapped separately, so that a reshape
// that only splits or merges dimensions needs no division by the others.
func (e *emitter) refold(
	at []index.Expr, from, to []int64,
) []index.Expr {
	out := make([]index.Expr, len(to))
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		i0, j0 := i, j
		i, j = refoldGroup(from, to, i, j)
		copy(
			out[j0:j],
			digitsOf(e.rowMajor(
				at[i0:i], from[i0:i],
			), to[j0:j]),
		)
	}
	return out
}

// refoldGroup is where the group of refold that begins at i and j ends. It takes dimensions
// from both sides until their products agree.
func refoldGroup(
	from, to []int64, i, j int,
) (int, int) {
	m, n := int64(1), int64(1)
	for first := true; first || m != n; first = false {
		if m <= n && i < len(from) {
			m *= from[i]
			i++
		} else if j < len(to) {
			n *= to[j]
			j++
		} else if i == len(from) {
			break
		}
	}
	for i < len(from) && from[i] == 1 {
		i++
	}
	for j < len(to) && to[j] == 1 {
		j++
	}
	return i, j
}

// moved maps points of a broadcast, transpose, reverse or unfold to points of the
// argument.
func (e *emitter) moved(op symtile.Op, points []point) []point {
	out := make([]point, len(points))
	from := e.p.Ops[op.Args[0]].Tile
	for k, p := range points {
		at := make([]index.Expr, len(from))
		switch op.Code {
		case hlo.OpBroadcast:
			for i, d := range op.Instr.Attrs.Dimensions {
				at[i] = p.at[d]
			}
		case hlo.OpTranspose:
			for i, d := range op.Perm {
				at[d] = p.at[i]
			}
		case hlo.OpReverse:
			copy(at, p.at)
			for _, d := range op.Instr.Attrs.Dimensions {
				at[d] = op.Tile[d].Size.AddConst(-1).Sub(at[d])
			}
		case symtile.OpUnfold:
			e.folded(op, from, p.at, at)
		}
		out[k] = point{at, p.when}
	}
	return out
}

// folded maps a point of an unfold to a point of its argument: each windowed dimension
// of the argument is two of the result, the window's position and the place in the
// window.
func (e *emitter) folded(
	op symtile.Op, from symtile.Tile, at, out []index.Expr,
) {
	for n, d, k := 0,
		0,
		0; d < len(from); n, d = n+1, d+1 {
		if k == len(op.Instr.Attrs.Dimensions) ||
			int(op.Instr.Attrs.Dimensions[k]) != d {
			out[d] = at[n]
			continue
		}
		w, step := op.Instr.Attrs.Window[k],
			constantOf(from[d].Stride)
		position := at[n].Scale(
			constantOf(op.Tile[n].Stride) * w.Stride / step,
		)
		out[d] = position.Add(at[n+1].Scale(
			constantOf(op.Tile[n+1].Stride) * w.Dilation / step,
		))
		n, k = n+1, k+1
	}
}

// concatenated selects, for each point, the argument whose part of the result the
// point is in.
func (e *emitter) concatenated(op symtile.Op, points []point) []operand {
	d := op.Instr.Shape.DType
	var all []operand
	for k, a := range op.Args {
		parts, valid := e.reaching(a, points)
		vals := e.elements(a, parts)
		if k == 0 {
			all = slices.Clone(vals)
			continue
		}
		for i := range all {
			all[i] = e.choose(
				d, e.guard(valid[i]),
				vals[i], all[i],
			)
		}
	}
	return all
}

// reaching restricts points to the elements at which the tile of op n is inside its
// tensor, and returns the conditions of each.
func (e *emitter) reaching(n int, points []point) (parts []point, valid []conditions) {
	for _, p := range points {
		_, c := e.tensor(e.p.Ops[n].Tile, p.at)
		parts = append(parts, point{
			p.at, p.when.all(c),
		})
		valid = append(valid, c)
	}
	return parts, valid
}

// padded selects the operand where it is present, and else the padding value. Element
// j of a dimension of the operand is index low + (interior + 1)·j of the result.
func (e *emitter) padded(op symtile.Op, points []point) []operand {
	d := op.Instr.Shape.DType
	parts := make([]point, len(points))
	valid := make([]conditions, len(points))
	fills := make([]point, len(points))
	for k, p := range points {
		parts[k], valid[k] = e.padding(op, p)
		// The padding value is a scalar.
		fills[k] = point{nil, p.when}
	}
	vals := e.elements(op.Args[0], parts)
	value := e.elements(op.Args[1], fills)
	for i := range vals {
		value[i] = e.choose(
			d, e.guard(valid[i]),
			vals[i], value[i],
		)
	}
	return value
}

// padding maps a point of a pad to a point of its operand, with the conditions that
// the operand is present there.
func (e *emitter) padding(op symtile.Op, p point) (point, conditions) {
	source := e.p.Ops[op.Args[0]].Tile
	at := make([]index.Expr, len(source))
	var c conditions
	for i, x := range op.Instr.Attrs.Padding {
		at[i], c = e.unpadded(
			op.Tile[i], source[i], x,
			p.at[i], c,
		)
		_, c = e.index(source[i], at[i], c)
	}
	return point{at, p.when.all(c)}, c
}

// unpadded maps index i of a dimension of a padded tile to an index of the operand's
// tile. With interior padding, only multiples of interior + 1 have an element of the
// operand.
func (e *emitter) unpadded(
	o, from symtile.DimTile, pad hlo.PadDim,
	i index.Expr, c conditions,
) (index.Expr, conditions) {
	if pad.Interior == 0 {
		return i, c
	}
	if o.Digits != nil || from.Digits != nil {
		e.reject("a pad with interior padding of a tile with digits")
	}
	// y is the position in the padded dimension, from the first element of the
	// operand.
	y := o.Offset.Add(i.Mul(o.Stride)).AddConst(-pad.Low)
	step := (pad.Interior + 1) * constantOf(from.Stride)
	z := y.Sub(from.Offset.Scale(pad.Interior + 1))
	j := z.Div(step)
	rest := z.Mod(step)
	// The position has to be a multiple of the step.
	c = c.and(rest.Neg())
	return j, c.and(j).and(
		from.Size.AddConst(-1).Sub(j),
	)
}

// updated is elements of a dynamic-update-slice: the update where the point is inside
// it, and else the operand.
func (e *emitter) updated(op symtile.Op, points []point) []operand {
	d := op.Instr.Shape.DType
	parts, valid := e.reaching(op.Args[1], points)
	over := e.elements(op.Args[1], parts)
	under := e.elements(op.Args[0], points)
	all := make([]operand, len(points))
	for i := range all {
		all[i] = e.choose(
			d, e.guard(valid[i]),
			over[i], under[i],
		)
	}
	return all
}

// gathered loads the index vectors of a gather and then the elements of the operand at
// the starts that they hold. Starts are run-time variables of the index expressions.
func (e *emitter) gathered(op symtile.Op, points []point) []operand {
	g := op.Instr.Attrs.Gather
	parts := make([]point, len(points))
	for k, p := range points {
		_, valid := e.tensor(op.Tile, p.at)
		p.when = p.when.all(valid)
		batch, _ := splitGather(g, p.at)
		starts := make([]index.Expr, len(g.StartIndexMap))
		for n := range starts {
			starts[n] = e.start(op, g, n, batch, p.when)
		}
		parts[k] = e.gatheredAt(op, p, starts)
	}
	return e.elements(op.Args[0], parts)
}

// gatheredAt maps a point of a gather to a point of its operand, whose slice begins at
// starts.
func (e *emitter) gatheredAt(op symtile.Op, p point, starts []index.Expr) point {
	source := e.p.Ops[op.Args[0]]
	g := op.Instr.Attrs.Gather
	batch, offset := splitGather(g, p.at)
	at := make([]index.Expr, len(source.Tile))
	for d := range at {
		switch {
		case slices.Contains(g.CollapsedSliceDims, int64(d)):
			at[d] = e.ring.Const(0)
		case slices.Contains(g.OperandBatching, int64(d)):
			at[d] = batch[e.batchOf(op, g, d)]
		default:
			at[d], offset = offset[0], offset[1:]
		}
	}
	// Indexed dimensions begin at a run-time start; those that are collapsed have one
	// element.
	for n, d := range g.StartIndexMap {
		if !slices.Contains(g.CollapsedSliceDims, d) {
			o := op.Tile[g.OffsetDims[offsetNumber(g, d)]]
			at[d] = o.Offset.Add(at[d].Mul(o.Stride))
		}
		at[d] = at[d].Add(starts[n])
	}
	return point{at, p.when}
}

// offsetNumber is the number of operand dimension d among the offset dimensions.
func offsetNumber(g *hlo.GatherDims, d int64) int {
	n := 0
	for k := range d {
		if !slices.Contains(g.CollapsedSliceDims, k) &&
			!slices.Contains(g.OperandBatching, k) {
			n++
		}
	}
	return n
}

// splitGather splits an index of the result of a gather into its batch part and its
// offset part.
func splitGather(
	g *hlo.GatherDims, at []index.Expr,
) (batch, offset []index.Expr) {
	for d, x := range at {
		if slices.Contains(g.OffsetDims, int64(d)) {
			offset = append(offset, x)
		} else {
			batch = append(batch, x)
		}
	}
	return batch, offset
}

// batchOf is the number of the batch index that operand dimension d follows.
func (e *emitter) batchOf(op symtile.Op, g *hlo.GatherDims, d int) int {
	k := int(g.IndicesBatching[slices.Index(g.OperandBatching, int64(d))])
	if g.IndexVectorDim < int64(k) {
		k--
	}
	return k
}

// start is component n of the index vector of a batch index, clamped so that the slice
// is inside the operand.
func (e *emitter) start(
	op symtile.Op, g *hlo.GatherDims, n int,
	batch []index.Expr, when conditions,
) index.Expr {
	indices := e.p.Ops[op.Args[1]]
	at := slices.Clone(batch)
	if int(g.IndexVectorDim) < len(indices.Tile) {
		at = slices.Insert(
			at,
			int(g.IndexVectorDim),
			e.ring.Const(int64(n)),
		)
	}
	v := e.elements(op.Args[1], []point{{at, when}})[0]
	d := g.StartIndexMap[n]
	return e.runtime(
		v,
		indices.Instr.Shape.DType,
		op.Instr.Operands[0].Shape.Dims[d]-g.SliceSizes[d],
	)
}

// runtime is a new variable whose value is an integer that the program has computed,
// clamped to [0, hi].
func (e *emitter) runtime(v operand, d hlo.DType, hi int64) index.Expr {
	a := e.asm
	switch {
	case kindFor(d) == kindB64 && d.IsSigned():
		v = a.get(
			kindB32, "cvt.u32.u64",
			a.get(kindB64, "max.s64", a.get(
				kindB64, "min.s64", a.in(kindB64, v), hi,
			), 0),
		)
	case kindFor(d) == kindB64:
		v = a.get(
			kindB32, "cvt.u32.u64",
			a.get(kindB64, "min.u64", a.in(kindB64, v), hi),
		)
	case d == hlo.U32:
		v = a.get(
			kindB32, "min.u32", a.in(kindB32, v), hi,
		)
	default:
		v = a.get(
			kindB32, "max.s32",
			a.get(kindB32, "min.s32", a.in(kindB32, v), hi),
			0,
		)
	}
	x := e.ring.Var(index.Variable{
		Name: "at" + string(v)[1:],
		Lo:   0,
		Hi:   hi,
		Role: index.RoleRuntime,
	})
	e.bind(x, v)
	return x
}

// missing handles a result of an accumulator that this thread does not hold: the
// result is put in shared memory at the next emission, and the code of this one, which
// is discarded, gets zeros.
func (e *emitter) missing(n, part int, points []point) []operand {
	e.hints.shareResult(bufferKey{n, part})
	if e.root >= 0 {
		e.hints.separateStores[e.root] = true
	}
	all := make([]operand, len(points))
	k := kindFor(e.typeOf(n, part))
	for i := range all {
		all[i] = e.asm.in(k, zero(k))
	}
	return all
}
