package indexing

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// An edge is the maps from an array of an instruction's result to array element
// of an operand.
type edge struct {
	// operand is the number of the operand, and element that of its array.
	operand, element int
	// maps are the maps from the output's index to the operand array's.
	maps []index.Map
}

// A walker composes maps through computations. The body of a computation that
// is called several times is walked once.
type walker struct {
	r *index.Ring
	// backwardMaps are, for an output, the maps to every array of the
	// computation; forwardMaps, for a parameter, those from it.
	backwardMaps map[arrayRef]map[arrayRef]*mapSet
	forwardMaps  map[arrayRef]map[arrayRef]*mapSet // forward from a parameter
}

// newWalker is a walker that makes expressions in r. A walker answers one question:
// it keeps the maps of computations that it has visited.
func newWalker(r *index.Ring) *walker {
	return &walker{
		r,
		map[arrayRef]map[arrayRef]*mapSet{},
		map[arrayRef]map[arrayRef]*mapSet{},
	}
}

// edges are the edges from array output of in's result to its operands.
func (w *walker) edges(in *hlo.Instr, output int) []edge {
	if k, element, ok := passThrough(in, output); ok {
		return []edge{
			{k, element, []index.Map{
				identity(w.r, arrayOf(in.Shape, output).Dims),
			}},
		}
	}
	switch in.Op {
	case hlo.OpTuple, hlo.OpGetTupleElement, hlo.OpAfterAll:
		return nil
	case hlo.OpFusion, hlo.OpCall:
		return w.edgesThrough(in, output)
	}
	x := newIndexer(w.r, in, output)
	if why, ok := x.refusesTuples(); !ok {
		return edgesTo(in, x.undefined("%s", why))
	}
	return edgesTo(in, x.operandMaps())
}

// edgesTo makes an edge to every array of every operand.
func edgesTo(in *hlo.Instr, maps []index.Map) []edge {
	var all []edge
	for k, m := range maps {
		for e := range in.Operands[k].Shape.Arrays() {
			all = append(all, edge{k, e, []index.Map{m}})
		}
	}
	return all
}

// refusesTuples is the reason why in has no row in the tables, which are for
// operands that are arrays.
func (x *indexer) refusesTuples() (why string, ok bool) {
	for _, o := range x.in.Operands {
		if o.Shape.DType == hlo.Tuple {
			return unknownReason(x.in), false
		}
	}
	return "", true
}

// passThrough finds the operand's array that is array output of the result, of
// an operation that only passes arrays on, such as tuple or copy.
func passThrough(in *hlo.Instr, output int) (operand, element int, ok bool) {
	operand, element, ok = passThroughArray(in, output)
	if !ok || operand >= len(in.Operands) {
		return 0, 0, false
	}
	from := in.Operands[operand].Shape.Arrays()
	return operand, element, element < len(from) &&
		from[element].SameDims(arrayOf(in.Shape, output))
}

// passThroughArray is passThrough without a check of the shapes.
func passThroughArray(in *hlo.Instr, output int) (operand, element int, ok bool) {
	switch in.Op {
	case hlo.OpTuple:
		for k, o := range in.Operands {
			n := len(o.Shape.Arrays())
			if output < n {
				return k, output, true
			}
			output -= n
		}
	case hlo.OpGetTupleElement:
		from := in.Operands[0].Shape
		for k := range in.Attrs.Index {
			output += len(from.Tuple[k].Arrays())
		}
		return 0, output, true
	case hlo.OpOptimizationBarrier, hlo.OpDomain, hlo.OpCopy,
		hlo.OpAddDependency, hlo.OpAllReduceDone:
		return 0, output, true
	case hlo.OpCopyStart:
		return 0, 0, output < 2
	case hlo.OpCopyDone:
		return 0, 0, true
	case hlo.OpAllGatherStart, hlo.OpCollectivePermuteStart:
		return output, 0, output < len(in.Operands)
	case hlo.OpCollectivePermuteDone:
		return 0, 1, true
	case hlo.OpAllGatherDone:
		if len(in.Operands) > 0 {
			return 0, len(in.Operands[0].Shape.Arrays())/2 + output, true
		}
	}
	return 0, 0, false
}

// edgesThrough are the edges of a fusion or call, from the maps of what it
// calls.
func (w *walker) edgesThrough(in *hlo.Instr, output int) []edge {
	c := in.Attrs.Calls
	reached := w.backward(c, output)
	var all []edge
	for k, p := range c.Params {
		for e := range p.Shape.Arrays() {
			maps := reached[arrayRef{p, e}].maps()
			if len(maps) > 0 {
				all = append(all, edge{
					k, e, toCaller(maps, c, in),
				})
			}
		}
	}
	return all
}

// toCaller rewrites the origins of run-time variables for in, the caller of c:
// a parameter is the operand that is passed, any other instruction is within
// the call. The maps of a body are made once for all of its callers, so that
// each caller rewrites a copy.
func toCaller(
	maps []index.Map, c *hlo.Computation, in *hlo.Instr,
) []index.Map {
	if !slices.ContainsFunc(maps, func(m index.Map) bool {
		return len(m.Runtime) > 0
	}) {
		return maps
	}
	var out *mapSet
	for _, m := range maps {
		out = out.add(m.RewriteOrigins(func(o index.Origin) index.Origin {
			from := sourceOf(&o)
			k := slices.Index(c.Params, from.Instr)
			if k >= 0 && len(from.Within) == 0 {
				from.Instr = in.Operands[k]
			} else {
				from.Within = append(slices.Clone(from.Within), in)
			}
			o.Source = from
			return o
		}))
	}
	return out.maps()
}

// An arrayRef is an array of an instruction's result.
type arrayRef struct {
	// in is the instruction.
	in *hlo.Instr
	// element is the number of the array in its result, as arraysOf counts.
	element int
}

// backward gathers, for every array in c, the distinct maps from the indices of
// output. Instructions are visited once, users before operands, each with the
// set of maps that reach it. The cost is the number of edges times the sizes of
// the sets, which are 1 for most arrays and bounded by maxMaps.
func (w *walker) backward(c *hlo.Computation, output int) map[arrayRef]*mapSet {
	root := arrayRef{c.Root, output}
	if reached, ok := w.backwardMaps[root]; ok {
		return reached
	}
	reached := map[arrayRef]*mapSet{
		root: setOf(identity(w.r, arrayOf(c.Root.Shape, output).Dims)),
	}
	w.backwardMaps[root] = reached
	for _, in := range slices.Backward(c.Instrs) {
		for output := range in.Shape.Arrays() {
			outers := reached[arrayRef{in, output}].maps()
			if len(outers) == 0 {
				continue
			}
			for _, l := range w.edges(in, output) {
				to := arrayRef{in.Operands[l.operand], l.element}
				reached[to] = reached[to].compose(outers, l.maps)
			}
		}
	}
	return reached
}

// ParamMaps returns, for each parameter of c, the distinct maps from the
// indices of output to the parameter's, composed through the computation,
// folded and simplified: what a compiler asks to know what a fusion reads.
// Outputs are the arrays of the result in order, those of tuples in place. A
// parameter that is a tuple has the maps of its arrays one after the other. A
// parameter that the output does not depend on has none.
func ParamMaps(
	r *index.Ring, c *hlo.Computation, output int,
) ([][]index.Map, error) {
	outs := c.Root.Shape.Arrays()
	if output < 0 || output >= len(outs) {
		return nil, fmt.Errorf(
			"%s has %d outputs; there is no output %d", c.Name, len(outs), output,
		)
	}
	if err := CheckSize(c); err != nil {
		return nil, err
	}
	reached := newWalker(r).backward(c, output)
	maps := make([][]index.Map, len(c.Params))
	for k, p := range c.Params {
		for e := range p.Shape.Arrays() {
			maps[k] = append(
				maps[k],
				reached[arrayRef{p, e}].maps()...,
			)
		}
	}
	return maps, r.Err()
}

// OutputMaps returns, for each output of c as ParamMaps numbers them, the
// distinct maps from the indices of parameter param to the output's, composed
// through the computation: what a compiler asks to know what a change of the
// parameter affects, for example before it writes in place. The parameter has
// to be an array.
func OutputMaps(
	r *index.Ring, c *hlo.Computation, param int,
) ([][]index.Map, error) {
	if param < 0 || param >= len(c.Params) {
		return nil, fmt.Errorf(
			"%s has %d parameters; there is no parameter %d",
			c.Name, len(c.Params), param,
		)
	}
	p := c.Params[param]
	if p.Shape.DType == hlo.Tuple {
		return nil, fmt.Errorf("parameter %s of %s is a tuple; indices are those of an array", p.Name, c.Name)
	}
	if err := CheckSize(c); err != nil {
		return nil, err
	}
	reached := newWalker(r).forward(
		c, arrayRef{p, 0},
	)
	outs := c.Root.Shape.Arrays()
	maps := make([][]index.Map, len(outs))
	for k := range outs {
		maps[k] = reached[arrayRef{c.Root, k}].maps()
	}
	return maps, r.Err()
}

// forward is backward in the other direction: from one array to everything made
// from it. Instructions are visited once, operands before users.
func (w *walker) forward(c *hlo.Computation, from arrayRef) map[arrayRef]*mapSet {
	if reached, ok := w.forwardMaps[from]; ok {
		return reached
	}
	reached := map[arrayRef]*mapSet{
		from: setOf(identity(
			w.r,
			arrayOf(from.in.Shape, from.element).Dims,
		)),
	}
	w.forwardMaps[from] = reached
	for _, in := range c.Instrs {
		for k, o := range in.Operands {
			for e := range o.Shape.Arrays() {
				firsts := reached[arrayRef{o, e}].maps()
				if len(firsts) == 0 {
					continue
				}
				for output := range in.Shape.Arrays() {
					to := arrayRef{in, output}
					reached[to] = reached[to].compose(
						firsts, w.userEdges(in, k, e, output),
					)
				}
			}
		}
	}
	return reached
}

// userEdges are the maps from array element of an operand to array output of
// in.
func (w *walker) userEdges(
	in *hlo.Instr, operand, element, output int,
) []index.Map {
	if k, e, ok := passThrough(in, output); ok {
		if k == operand && e == element {
			return []index.Map{
				identity(w.r, arrayOf(in.Shape, output).Dims),
			}
		}
		return nil
	}
	switch in.Op {
	case hlo.OpTuple, hlo.OpGetTupleElement, hlo.OpAfterAll:
		return nil
	case hlo.OpFusion, hlo.OpCall:
		c := in.Attrs.Calls
		return toCaller(
			w.forward(c, arrayRef{
				c.Params[operand], element,
			})[arrayRef{c.Root, output}].maps(),
			c, in,
		)
	}
	x := newIndexer(w.r, in, output)
	if why, ok := x.refusesTuples(); !ok {
		return []index.Map{x.unknown("%s", why)}
	}
	return []index.Map{x.userMap(operand)}
}

// identity is the identity map on an array.
func identity(r *index.Ring, extents []int64) index.Map {
	x := &indexer{r: r}
	dims := x.variables("d", index.RoleDim, extents)
	return x.over(dims)
}

func (x *indexer) over(dims []index.Expr) index.Map {
	x.dims = dims
	return x.complete(index.Map{Results: dims})
}
