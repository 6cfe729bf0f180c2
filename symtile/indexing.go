package symtile

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Indexing maps of instructions, one row of a table an operation: which
// elements of its operands an element of the result is made from, and the
// other way round. Operations without a row have Undefined maps.

// OperandMaps returns, for each operand of in, the map from indices of the
// result to indices of the operand, not simplified. A reduce of several
// operands has the indices of one of its results.
func OperandMaps(r *Ring, in *hlo.Instr) []Map {
	x := &indexer{r: r, in: in, shape: arrayShape(in.Shape)}
	row, ok := operandMaps[in.Op]
	if !ok && in.Op.Elementwise() {
		row, ok = operandsElementwise, true
	}
	if !ok {
		return undefined(len(in.Operands))
	}
	x.dims = x.variables("d", RoleDim, x.shape.Dims)
	maps := row(x)
	for k := range maps {
		maps[k].Dims = x.dims
		if hasZero(x.shape.Dims) {
			maps[k].State = Empty
		}
	}
	return maps
}

// UserMaps returns, for each operand of in, the map from its indices to indices
// of the result, Undefined where there is none.
func UserMaps(r *Ring, in *hlo.Instr) []Map {
	maps := undefined(len(in.Operands))
	row, ok := userMaps[in.Op]
	if !ok && in.Op.Elementwise() {
		row, ok = usersElementwise, true
	}
	for k, o := range in.Operands {
		if !ok {
			break
		}
		x := &indexer{r: r, in: in, shape: arrayShape(in.Shape), operand: k}
		x.dims = x.variables("d", RoleDim, o.Shape.Dims)
		maps[k] = row(x)
		maps[k].Dims = x.dims
		if hasZero(o.Shape.Dims) {
			maps[k].State = Empty
		}
	}
	return maps
}

// arrayShape is the shape of the first array of a tuple.
func arrayShape(s hlo.Shape) hlo.Shape {
	for s.DType == hlo.Tuple && len(s.Tuple) > 0 {
		s = s.Tuple[0]
	}
	return s
}

func undefined(n int) []Map {
	maps := make([]Map, n)
	for k := range maps {
		maps[k].State = Undefined
	}
	return maps
}

// An indexer makes the maps of one instruction.
type indexer struct {
	r       *Ring
	in      *hlo.Instr
	shape   hlo.Shape // of the result
	operand int       // for users
	dims    []Expr
}

func (x *indexer) variables(name string, role Role, extents []int64) []Expr {
	vars := make([]Expr, len(extents))
	for k, n := range extents {
		vars[k] = x.r.Var(Variable{Name: fmt.Sprintf("%s%d", name, k), Lo: 0, Hi: max(0, n-1), Role: role})
	}
	return vars
}

func (x *indexer) ranges(extents []int64) []Expr { return x.variables("s", RoleRange, extents) }

func (x *indexer) from(k int) []int64 { return x.in.Operands[k].Shape.Dims }

var operandMaps = map[hlo.Opcode]func(*indexer) []Map{
	"parameter":            func(*indexer) []Map { return nil },
	"constant":             func(*indexer) []Map { return nil },
	"iota":                 func(*indexer) []Map { return nil },
	"get-tuple-element":    operandsElementwise,
	"optimization-barrier": operandsElementwise,
	"broadcast":            func(x *indexer) []Map { return x.one(pickDims(x.dims, x.in.Attrs.Dimensions)) },
	"transpose":            func(x *indexer) []Map { return x.one(spread(x.dims, x.in.Attrs.Dimensions)) },
	"reshape":              func(x *indexer) []Map { return x.one(x.reshaped(x.dims, x.shape.Dims, x.from(0))) },
	"bitcast":              operandsBitcast,
	"slice":                operandsSlice,
	"reverse":              func(x *indexer) []Map { return x.one(x.mirrored()) },
	"concatenate":          operandsConcatenate,
	"pad":                  operandsPad,
	"reduce":               operandsReduce,
	"dot":                  operandsDot,
	"map":                  operandsElementwise,
	"dynamic-slice":        operandsDynamicSlice,
	"dynamic-update-slice": operandsDynamicUpdateSlice,
}

var userMaps = map[hlo.Opcode]func(*indexer) Map{
	"get-tuple-element": usersElementwise,
	"broadcast":         usersBroadcast,
	"transpose":         func(x *indexer) Map { return Map{Results: pickDims(x.dims, x.in.Attrs.Dimensions)} },
	"reshape":           func(x *indexer) Map { return Map{Results: x.reshaped(x.dims, x.from(0), x.shape.Dims)} },
	"slice":             usersSlice,
	"reverse":           func(x *indexer) Map { return Map{Results: x.mirrored()} },
	"concatenate":       usersConcatenate,
	"pad":               usersPad,
	"reduce":            usersReduce,
	"dot":               usersDot,
	"map":               usersElementwise,
}

func (x *indexer) one(results []Expr) []Map { return []Map{{Results: results}} }

// pickDims is v at dims; spread puts v[k] at dims[k].
func pickDims(v []Expr, dims []int64) []Expr {
	out := make([]Expr, len(dims))
	for k, d := range dims {
		out[k] = v[d]
	}
	return out
}

func spread(v []Expr, dims []int64) []Expr {
	out := make([]Expr, len(dims))
	for k, d := range dims {
		out[d] = v[k]
	}
	return out
}

func operandsElementwise(x *indexer) []Map {
	maps := make([]Map, len(x.in.Operands))
	for k, o := range x.in.Operands {
		if arrayShape(o.Shape).Rank() > 0 {
			maps[k].Results = x.dims
		}
	}
	return maps
}

// reshaped rewrites an index of extents from as one of extents to, window by
// window: linearise, then take digits.
func (x *indexer) reshaped(index []Expr, from, to []int64) []Expr {
	out := make([]Expr, len(to))
	for k := range out {
		out[k] = x.r.Const(0)
	}
	if hasZero(from) {
		return out
	}
	for _, w := range windows(from, to) {
		linear := x.r.Const(0)
		for _, d := range w.from {
			linear = linear.Scale(from[d]).Add(index[d])
		}
		inner := int64(1)
		for k := len(w.to) - 1; k >= 0; k-- {
			d := w.to[k]
			if out[d] = linear.Div(inner); k > 0 {
				out[d] = out[d].Mod(to[d])
			}
			inner *= to[d]
		}
	}
	return out
}

// operandsBitcast: to physical order, reshape, to logical order.
func operandsBitcast(x *indexer) []Map {
	from, to := x.in.Operands[0].Shape, x.in.Shape
	if len(from.Layout.Tiles)+len(to.Layout.Tiles) > 0 || from.DType.Size() != to.DType.Size() {
		return undefined(1)
	}
	inOrder, outOrder := majorToMinor(from), majorToMinor(to)
	physical := x.reshaped(permute(x.dims, outOrder), permute(to.Dims, outOrder), permute(from.Dims, inOrder))
	out := make([]Expr, len(physical))
	for k, d := range inOrder {
		out[d] = physical[k]
	}
	return x.one(out)
}

func operandsSlice(x *indexer) []Map {
	out := make([]Expr, len(x.dims))
	for k, s := range x.in.Attrs.Slice {
		out[k] = x.dims[k].Scale(s.Stride).AddConst(s.Start)
	}
	return x.one(out)
}

// usersSlice: indices that were cut away or stepped over have no user.
func usersSlice(x *indexer) Map {
	var m Map
	for k, s := range x.in.Attrs.Slice {
		off := x.dims[k].AddConst(-s.Start)
		m.Results = append(m.Results, off.Div(s.Stride))
		m.Where = And(m.Where, Require(x.dims[k], s.Start, s.Limit-1), Require(off.Mod(s.Stride), 0, 0))
	}
	return m
}

func (x *indexer) mirrored() []Expr {
	out := slices.Clone(x.dims)
	for _, d := range x.in.Attrs.Dimensions {
		out[d] = x.dims[d].Neg().AddConst(x.shape.Dims[d] - 1)
	}
	return out
}

func operandsConcatenate(x *indexer) []Map {
	maps := make([]Map, len(x.in.Operands))
	along, prefix := x.in.Attrs.Dimensions[0], int64(0)
	for k := range maps {
		n := x.from(k)[along]
		out := slices.Clone(x.dims)
		out[along] = out[along].AddConst(-prefix)
		maps[k] = Map{Results: out, Where: Require(x.dims[along], prefix, prefix+n-1)}
		if n == 0 {
			maps[k].State = Empty
		}
		prefix += n
	}
	return maps
}

func usersConcatenate(x *indexer) Map {
	along := x.in.Attrs.Dimensions[0]
	out := slices.Clone(x.dims)
	for k := range x.operand {
		out[along] = out[along].AddConst(x.from(k)[along])
	}
	return Map{Results: out}
}

func operandsPad(x *indexer) []Map {
	operand, value := Map{}, Map{}
	for k, p := range x.in.Attrs.Padding {
		m := p.Interior + 1
		off := x.dims[k].AddConst(-p.Low)
		operand.Results = append(operand.Results, off.Div(m))
		operand.Where = And(operand.Where, Require(off, 0, (x.from(0)[k]-1)*m), Require(off.Mod(m), 0, 0))
	}
	return []Map{operand, value}
}

func usersPad(x *indexer) Map {
	if x.operand == 1 {
		return Map{Ranges: x.ranges(x.shape.Dims), Results: x.ranges(x.shape.Dims)}
	}
	var m Map
	for k, p := range x.in.Attrs.Padding {
		at := x.dims[k].Scale(p.Interior + 1).AddConst(p.Low)
		m.Results = append(m.Results, at)
		m.Where = And(m.Where, Require(at, 0, x.shape.Dims[k]-1))
	}
	return m
}

// usersBroadcast: dimensions the operand lacks run over all their values.
func usersBroadcast(x *indexer) Map {
	var extents []int64
	for d, n := range x.shape.Dims {
		if !slices.Contains(x.in.Attrs.Dimensions, int64(d)) {
			extents = append(extents, n)
		}
	}
	m := Map{Ranges: x.ranges(extents)}
	next := 0
	for d := range x.shape.Dims {
		if k := slices.Index(x.in.Attrs.Dimensions, int64(d)); k >= 0 {
			m.Results = append(m.Results, x.dims[k])
			continue
		}
		m.Results = append(m.Results, m.Ranges[next])
		next++
	}
	return m
}

func usersElementwise(x *indexer) Map {
	if len(x.dims) < x.shape.Rank() { // a scalar that applies to every element
		all := x.ranges(x.shape.Dims)
		return Map{Ranges: all, Results: all}
	}
	return Map{Results: x.dims}
}

func operandsReduce(x *indexer) []Map {
	n := len(x.in.Operands) / 2
	dims := reducedDims(x.in)
	var extents []int64
	for _, d := range dims {
		extents = append(extents, x.from(0)[d])
	}
	ranges := x.ranges(extents)
	var results []Expr
	next := 0
	for d := range x.from(0) {
		if k := slices.Index(dims, int64(d)); k >= 0 {
			results = append(results, ranges[k])
			continue
		}
		results = append(results, x.dims[next])
		next++
	}
	maps := make([]Map, 2*n) // initial values: ()
	for k := range n {
		maps[k] = Map{Ranges: ranges, Results: results}
		if hasZero(extents) {
			maps[k].State = Empty
		}
	}
	return maps
}

func usersReduce(x *indexer) Map {
	if x.operand >= len(x.in.Operands)/2 {
		all := x.ranges(x.shape.Dims)
		return Map{Ranges: all, Results: all}
	}
	var m Map
	for d, v := range x.dims {
		if !slices.Contains(x.in.Attrs.Dimensions, int64(d)) {
			m.Results = append(m.Results, v)
		}
	}
	return m
}

// operandsDot: batch dims first, then the free ones of each side; contracting
// dims are ranges, in the order of the attribute.
func operandsDot(x *indexer) []Map {
	a := &x.in.Attrs
	ranges := x.ranges(sequentialExtents(x.in))
	batch := len(a.LHSBatch)
	freeLeft := len(x.from(0)) - batch - len(ranges)
	left := dotIndex(len(x.from(0)), a.LHSBatch, a.LHSContract, x.dims[:batch], x.dims[batch:], ranges)
	right := dotIndex(len(x.from(1)), a.RHSBatch, a.RHSContract, x.dims[:batch], x.dims[batch+freeLeft:], ranges)
	return []Map{{Ranges: ranges, Results: left}, {Ranges: ranges, Results: right}}
}

func dotIndex(rank int, batch, contract []int64, b, free, c []Expr) []Expr {
	out := make([]Expr, rank)
	next := 0
	for d := range out {
		if k := slices.Index(batch, int64(d)); k >= 0 {
			out[d] = b[k]
		} else if k := slices.Index(contract, int64(d)); k >= 0 {
			out[d] = c[k]
		} else {
			out[d] = free[next]
			next++
		}
	}
	return out
}

// usersDot: the other side's free dimensions run over all their values.
func usersDot(x *indexer) Map {
	a := &x.in.Attrs
	batch, contract := a.LHSBatch, a.LHSContract
	otherBatch, otherContract := a.RHSBatch, a.RHSContract
	if x.operand == 1 {
		batch, contract, otherBatch, otherContract = otherBatch, otherContract, batch, contract
	}
	var others []int64
	for d, n := range x.from(1 - x.operand) {
		if !slices.Contains(otherBatch, int64(d)) && !slices.Contains(otherContract, int64(d)) {
			others = append(others, n)
		}
	}
	m := Map{Ranges: x.ranges(others)}
	var mine []Expr
	for d, v := range x.dims {
		if !slices.Contains(batch, int64(d)) && !slices.Contains(contract, int64(d)) {
			mine = append(mine, v)
		}
	}
	m.Results = pickDims(x.dims, batch)
	if x.operand == 0 {
		m.Results = slices.Concat(m.Results, mine, m.Ranges)
	} else {
		m.Results = slices.Concat(m.Results, m.Ranges, mine)
	}
	return m
}

// starts makes the run-time variables of a dynamic-slice: where each window of
// size begins, clamped so that it stays inside.
func (x *indexer) starts(operands []*hlo.Instr, extents, sizes []int64) []Expr {
	vars := make([]Expr, len(operands))
	for k, o := range operands {
		vars[k] = x.r.Var(Variable{Name: fmt.Sprintf("rt%d", k), Lo: 0, Hi: max(0, extents[k]-sizes[k]), Role: RoleRuntime, Origin: x.r.Origin(o, nil)})
	}
	return vars
}

func operandsDynamicSlice(x *indexer) []Map {
	maps := make([]Map, len(x.in.Operands)) // starts: ()
	if len(maps) != 1+len(x.dims) {
		return undefined(len(maps))
	}
	rt := x.starts(x.in.Operands[1:], x.from(0), x.shape.Dims)
	maps[0].Runtime = rt
	for k, d := range x.dims {
		maps[0].Results = append(maps[0].Results, d.Add(rt[k]))
	}
	return maps
}

// operandsDynamicUpdateSlice: the update is read only where it is written.
func operandsDynamicUpdateSlice(x *indexer) []Map {
	maps := make([]Map, len(x.in.Operands))
	if len(maps) != 2+len(x.dims) {
		return undefined(len(maps))
	}
	maps[0].Results = x.dims
	rt := x.starts(x.in.Operands[2:], x.shape.Dims, x.from(1))
	maps[1].Runtime = rt
	for k, d := range x.dims {
		at := d.Sub(rt[k])
		maps[1].Results = append(maps[1].Results, at)
		maps[1].Where = And(maps[1].Where, Require(at, 0, x.from(1)[k]-1))
	}
	return maps
}

// ParamMaps returns, for each parameter of c, the distinct maps from the
// indices of output (counted as the tuple's elements are) to the parameter's,
// composed through the computation and simplified. Instructions are visited
// once, users before operands, each with the set of maps that reach it.
func ParamMaps(r *Ring, c *hlo.Computation, output int) ([][]Map, error) {
	flat, err := inline(c)
	if err != nil {
		return nil, err
	}
	outs := outputs(flat)
	if output < 0 || output >= len(outs) {
		return nil, fmt.Errorf("%s has %d outputs; there is no output %d", c.Name, len(outs), output)
	}
	root := outs[output]
	reached := map[*hlo.Instr][]Map{root: {identity(r, root.Shape.Dims)}}
	order := slices.Clone(flat.Instrs)
	if !slices.Contains(order, root) {
		order = append(order, root)
	}
	for _, in := range slices.Backward(order) {
		for k, m := range operandMapsFor(r, in, reached[in]) {
			for _, outer := range reached[in] {
				reached[in.Operands[k]] = insert(reached[in.Operands[k]], Compose(outer, m))
			}
		}
	}
	maps := make([][]Map, len(c.Params))
	for k, p := range c.Params {
		maps[k] = reached[p]
	}
	return maps, r.Err()
}

func operandMapsFor(r *Ring, in *hlo.Instr, reached []Map) []Map {
	if len(reached) == 0 {
		return nil
	}
	return OperandMaps(r, in)
}

func identity(r *Ring, extents []int64) Map {
	x := &indexer{r: r}
	dims := x.variables("d", RoleDim, extents)
	m := Map{Dims: dims, Results: dims}
	if hasZero(extents) {
		m.State = Empty
	}
	return m
}

// insert adds the simplified m to a set, unless it is there.
func insert(set []Map, m Map) []Map {
	m = m.Simplify()
	m, _ = m.DropUnusedRanges()
	text := m.String()
	for _, have := range set {
		if have.String() == text {
			return set
		}
	}
	return append(set, m)
}
