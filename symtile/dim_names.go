package symtile

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// productRoles are the roles of the dimensions of a product: those of its result, and
// those that it contracts, in the order of the left operand's contracted dimensions.
type productRoles struct{ result, contracted []string }

// reduceRoles name a reduced dimension after the operation that folds it.
var reduceRoles = map[hlo.Opcode]string{
	hlo.OpAdd:      "sum",
	hlo.OpMultiply: "prod",
	hlo.OpMaximum:  "max",
	hlo.OpMinimum:  "min",
	hlo.OpAnd:      "all",
	hlo.OpOr:       "any",
}

// spatialRoles are the names of the spatial dimensions of an image, by their number.
var spatialRoles = [...][]string{1: {"w"}, 2: {"h", "w"}, 3: {"d", "h", "w"}}

// DimNames are names for the dimensions of the space, for people: the roles that they
// have in the operations of the fusion.
//
//	product        b m n k: batch, rows, columns, contracted
//	convolution    n h w co, g groups, kh kw ci of the kernel (d and kd in space, w and kw of a line)
//	reduction      row and col, and the reduced sum, max, min, prod, all, any, or red
//	window         win
//	scatter        update
//	others         d0, d1, …, as the dimensions of the space
//
// A role that several dimensions have is numbered: k0, k1. Names are distinct, begin with
// a letter and have letters and digits only. They depend on the operations and their
// order, not on extents, so that the names of one fusion fit another of its structure.
func (p *Program) DimNames() []string {
	n := dimNaming{
		p:     p,
		roles: make([]string, len(p.Space.Dims)),
		tid:   map[index.Expr]int{},
	}
	for k, d := range p.Space.Dims {
		n.tid[d.Tid] = k
	}
	n.sequential()
	for _, op := range slices.Backward(p.Ops) {
		if op.Code == hlo.OpDot {
			n.product(op)
		}
	}
	for _, op := range p.Ops {
		if op.Code == hlo.OpReduce && !n.isWindow(op) {
			n.reduction(op)
		}
	}
	return n.names()
}

// A dimNaming is the work of DimNames.
type dimNaming struct {
	p *Program
	// The role of each dimension of the space; "" is not known.
	roles []string
	// The dimension of a tile id.
	tid map[index.Expr]int
}

// sequential gives loops the roles of what they contract or fold: the dimensions of the
// space that an operation brings are in the order of its own.
func (n *dimNaming) sequential() {
	seen := map[*hlo.Instr]int{}
	for k, d := range n.p.Space.Dims {
		if d.Kind != Sequential {
			continue
		}
		at := seen[d.From]
		seen[d.From]++
		n.roles[k] = n.folded(d.From, at)
	}
}

// folded is the role of dimension number at of those that an instruction folds.
func (n *dimNaming) folded(i *hlo.Instr, at int) string {
	switch roles := n.p.roles[i].contracted; {
	case at < len(roles):
		return roles[at]
	case i.Op == hlo.OpDot:
		return "k"
	case i.Op == hlo.OpScatter:
		return "update"
	}
	for _, op := range n.p.Ops {
		if op.Instr == i && n.isWindow(op) {
			return "win"
		}
	}
	if i.Attrs.ToApply == nil {
		return "red"
	}
	return cmp.Or(reduceRoles[i.Attrs.ToApply.Root.Op], "red")
}

// isWindow reports whether an op folds the elements of a window.
func (n *dimNaming) isWindow(op Op) bool {
	return op.Code == hlo.OpReduce && len(op.Args) > 0 &&
		n.p.Ops[op.Args[0]].Code == OpUnfold
}

// product gives the dimensions of a product's result their roles.
func (n *dimNaming) product(op Op) {
	roles := n.p.roles[op.Instr].result
	if roles == nil {
		batch := len(op.Instr.Attrs.LHSBatch)
		left := len(n.p.Ops[op.Args[0]].Tile) - len(op.Instr.Attrs.LHSContract)
		for k := range op.Tile {
			switch {
			case k < batch:
				roles = append(roles, "b")
			case k < left:
				roles = append(roles, "m")
			default:
				roles = append(roles, "n")
			}
		}
	}
	for k := range min(len(op.Tile), len(roles)) {
		n.name(op.Tile[k], roles[k])
	}
}

// reduction names what a reduction of the last dimensions keeps rows, and of the first
// ones columns, and the other parallel dimensions of its operand's array the opposite.
func (n *dimNaming) reduction(op Op) {
	dims := op.Instr.Attrs.Dimensions
	if len(dims) == 0 || len(op.Tile) == 0 {
		return
	}
	kept, other := "row", "col"
	switch reduced := int64(len(dims)); {
	case slices.Min(dims) == int64(len(op.Tile)):
	case slices.Max(dims) == reduced-1:
		kept, other = other, kept
	default:
		return
	}
	for _, t := range op.Tile {
		n.name(t, kept)
	}
	if n.p.Space.Dims[0].From.Shape.Rank() == len(op.Tile)+len(dims) {
		for k, d := range n.p.Space.Dims {
			if d.Kind == Parallel && n.roles[k] == "" {
				n.roles[k] = other
			}
		}
	}
}

// name gives a role to the dimension of the space along which a tile moves, if that is
// one dimension, parallel and without a role.
func (n *dimNaming) name(t DimTile, role string) {
	at := -1
	for _, v := range t.Offset.Vars() {
		k, is := n.tid[v]
		if is && at >= 0 {
			return
		}
		if is {
			at = k
		}
	}
	if at >= 0 && n.roles[at] == "" && n.p.Space.Dims[at].Kind == Parallel {
		n.roles[at] = role
	}
}

// names numbers roles that occur several times, and dimensions without a role.
func (n *dimNaming) names() []string {
	count := map[string]int{}
	for _, role := range n.roles {
		count[role]++
	}
	seen := map[string]int{}
	taken := map[string]bool{}
	out := make([]string, len(n.roles))
	for k, role := range n.roles {
		out[k] = role
		switch {
		case role == "":
			out[k] = "d" + strconv.Itoa(k)
		case count[role] > 1:
			out[k] += strconv.Itoa(seen[role])
		}
		seen[role]++
		taken[out[k]] = true
	}
	if len(taken) < len(out) { // d1 is both a depth and a dimension without a role
		for k, d := range n.p.Space.Dims {
			out[k] = d.Name
		}
	}
	return out
}

// convolutionRoles are the roles of the product that a convolution with spatial
// dimensions is rewritten as, whose dimensions have the names of dimNames.
func convolutionRoles(result, contracted []string, spatial int) productRoles {
	return productRoles{
		result:     convolutionNames(result, spatial),
		contracted: convolutionNames(contracted, spatial),
	}
}

// convolutionNames turns names of dimNames into roles.
func convolutionNames(names []string, spatial int) []string {
	roles := map[string]string{"batch": "n", "out": "co", "in": "ci", "group": "g"}
	for k := range spatial {
		name := "x"
		if spatial < len(spatialRoles) {
			name = spatialRoles[spatial][k]
		}
		roles[axisName("x", k)] = name
		roles[axisName("w", k)] = "k" + name
	}
	out := make([]string, len(names))
	for k, name := range names {
		out[k] = roles[name]
	}
	return out
}
