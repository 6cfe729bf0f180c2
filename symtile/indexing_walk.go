package symtile

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// An edge says how an array of an instruction's result comes from array element
// of an operand.
type edge struct {
	operand, element int
	maps             []Map
}

// A walker walks computations, the body of several calls once.
type walker struct {
	r      *Ring
	bodies map[place]map[place]*mapSet // backward from a root
	ahead  map[place]map[place]*mapSet // forward from a parameter
}

func newWalker(r *Ring) *walker {
	return &walker{r, map[place]map[place]*mapSet{}, map[place]map[place]*mapSet{}}
}

// edges are the edges of array output of in's result.
func (w *walker) edges(in *hlo.Instr, output int) []edge {
	if k, element, ok := passes(in, output); ok {
		return []edge{{k, element, []Map{identity(w.r, leaf(in.Shape, output).Dims)}}}
	}
	switch in.Op {
	case hlo.OpTuple, hlo.OpGetTupleElement, hlo.OpAfterAll:
		return nil
	case hlo.OpFusion, hlo.OpCall:
		return w.edgesThrough(in, output)
	}
	x := newIndexer(w.r, in, output)
	if why, ok := x.unfit(); !ok {
		return edgesTo(in, x.undefined("%s", why))
	}
	return edgesTo(in, x.operandMaps())
}

func edgesTo(in *hlo.Instr, maps []Map) []edge {
	var all []edge
	for k, m := range maps {
		for e := range leaves(in.Operands[k].Shape) {
			all = append(all, edge{k, e, []Map{m}})
		}
	}
	return all
}

// unfit says why in has no row in the tables: they are for arrays.
func (x *indexer) unfit() (why string, ok bool) {
	for _, o := range x.in.Operands {
		if o.Shape.DType == hlo.Tuple {
			return unknownBecause(x.in.Op), false
		}
	}
	return "", true
}

// passes finds the operand's array that is array output of the result of an
// operation that only hands arrays on.
func passes(in *hlo.Instr, output int) (operand, element int, ok bool) {
	operand, element, ok = passed(in, output)
	if !ok || operand >= len(in.Operands) {
		return 0, 0, false
	}
	from := leaves(in.Operands[operand].Shape)
	return operand, element, element < len(from) && from[element].SameDims(leaf(in.Shape, output))
}

func passed(in *hlo.Instr, output int) (operand, element int, ok bool) {
	switch in.Op {
	case hlo.OpTuple:
		for k, o := range in.Operands {
			n := len(leaves(o.Shape))
			if output < n {
				return k, output, true
			}
			output -= n
		}
	case hlo.OpGetTupleElement:
		from := in.Operands[0].Shape
		for k := range in.Attrs.Index {
			output += len(leaves(from.Tuple[k]))
		}
		return 0, output, true
	case hlo.OpOptimizationBarrier, hlo.OpDomain, hlo.OpCopy, hlo.OpAddDependency, hlo.OpAllReduceDone:
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
			return 0, len(leaves(in.Operands[0].Shape))/2 + output, true
		}
	}
	return 0, 0, false
}

// edgesThrough are the edges of a fusion or call: those of what it calls.
func (w *walker) edgesThrough(in *hlo.Instr, output int) []edge {
	c := in.Attrs.Calls
	reached := w.backward(c, output)
	var all []edge
	for k, p := range c.Params {
		for e := range leaves(p.Shape) {
			if maps := reached[place{p, e}].maps(); len(maps) > 0 {
				all = append(all, edge{k, e, leave(maps, c, in)})
			}
		}
	}
	return all
}

// leave gives run-time variables the origins they have for the caller in of c:
// a parameter is what it passes, the rest is inside it.
func leave(maps []Map, c *hlo.Computation, in *hlo.Instr) []Map {
	if !slices.ContainsFunc(maps, func(m Map) bool { return len(m.Runtime) > 0 }) {
		return maps
	}
	var out *mapSet
	for _, m := range maps {
		out = out.add(m.RewriteOrigins(func(o Origin) Origin {
			from := sourceOf(&o)
			if k := slices.Index(c.Params, from.Instr); k >= 0 && len(from.Within) == 0 {
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

// A place is an array of an instruction's result.
type place struct {
	in      *hlo.Instr
	element int
}

// backward gathers, for every place in c, the distinct maps from the indices of
// output. Instructions are visited once, users before operands, each with the
// set of maps that reach it.
func (w *walker) backward(c *hlo.Computation, output int) map[place]*mapSet {
	root := place{c.Root, output}
	if reached, ok := w.bodies[root]; ok {
		return reached
	}
	reached := map[place]*mapSet{root: setOf(identity(w.r, leaf(c.Root.Shape, output).Dims))}
	w.bodies[root] = reached
	for _, in := range slices.Backward(c.Instrs) {
		for output := range leaves(in.Shape) {
			outers := reached[place{in, output}].maps()
			if len(outers) == 0 {
				continue
			}
			for _, l := range w.edges(in, output) {
				to := place{in.Operands[l.operand], l.element}
				reached[to] = reached[to].compose(outers, l.maps)
			}
		}
	}
	return reached
}

// ParamMaps returns, for each parameter of c, the distinct maps from the
// indices of output to the parameter's, composed through the computation, folded
// and simplified. Outputs are the arrays of the result in order, those of tuples
// in place; a parameter that is a tuple has the maps of its arrays one after the
// other. Parameters that the output does not reach have none.
func ParamMaps(r *Ring, c *hlo.Computation, output int) ([][]Map, error) {
	outs := leaves(c.Root.Shape)
	if output < 0 || output >= len(outs) {
		return nil, fmt.Errorf("%s has %d outputs; there is no output %d", c.Name, len(outs), output)
	}
	if err := CheckSize(c); err != nil {
		return nil, err
	}
	reached := newWalker(r).backward(c, output)
	maps := make([][]Map, len(c.Params))
	for k, p := range c.Params {
		for e := range leaves(p.Shape) {
			maps[k] = append(maps[k], reached[place{p, e}].maps()...)
		}
	}
	return maps, r.Err()
}

// OutputMaps returns, for each output of c as ParamMaps counts them, the
// distinct maps from the indices of parameter param to the output's: the way
// forward through the computation. The parameter is an array.
func OutputMaps(r *Ring, c *hlo.Computation, param int) ([][]Map, error) {
	if param < 0 || param >= len(c.Params) {
		return nil, fmt.Errorf("%s has %d parameters; there is no parameter %d", c.Name, len(c.Params), param)
	}
	p := c.Params[param]
	if p.Shape.DType == hlo.Tuple {
		return nil, fmt.Errorf("parameter %s of %s is a tuple; indices are those of an array", p.Name, c.Name)
	}
	if err := CheckSize(c); err != nil {
		return nil, err
	}
	reached := newWalker(r).forward(c, place{p, 0})
	outs := leaves(c.Root.Shape)
	maps := make([][]Map, len(outs))
	for k := range outs {
		maps[k] = reached[place{c.Root, k}].maps()
	}
	return maps, r.Err()
}

// forward is backward the other way: from one place to what is made from it.
func (w *walker) forward(c *hlo.Computation, from place) map[place]*mapSet {
	if reached, ok := w.ahead[from]; ok {
		return reached
	}
	reached := map[place]*mapSet{from: setOf(identity(w.r, leaf(from.in.Shape, from.element).Dims))}
	w.ahead[from] = reached
	for _, in := range c.Instrs {
		for k, o := range in.Operands {
			for e := range leaves(o.Shape) {
				firsts := reached[place{o, e}].maps()
				if len(firsts) == 0 {
					continue
				}
				for output := range leaves(in.Shape) {
					to := place{in, output}
					reached[to] = reached[to].compose(firsts, w.uses(in, k, e, output))
				}
			}
		}
	}
	return reached
}

// uses are the maps from array element of an operand to array output of in.
func (w *walker) uses(in *hlo.Instr, operand, element, output int) []Map {
	if k, e, ok := passes(in, output); ok {
		if k == operand && e == element {
			return []Map{identity(w.r, leaf(in.Shape, output).Dims)}
		}
		return nil
	}
	switch in.Op {
	case hlo.OpTuple, hlo.OpGetTupleElement, hlo.OpAfterAll:
		return nil
	case hlo.OpFusion, hlo.OpCall:
		c := in.Attrs.Calls
		return leave(w.forward(c, place{c.Params[operand], element})[place{c.Root, output}].maps(), c, in)
	}
	x := newIndexer(w.r, in, output)
	if why, ok := x.unfit(); !ok {
		return []Map{x.unknown("%s", why)}
	}
	return []Map{x.userMap(operand)}
}

func identity(r *Ring, extents []int64) Map {
	x := &indexer{r: r}
	dims := x.variables("d", RoleDim, extents)
	return x.over(dims)
}

func (x *indexer) over(dims []Expr) Map {
	x.dims = dims
	return x.complete(Map{Results: dims})
}
