package symtile

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// A DimSet is a set of dimensions of a Space: bit k stands for dimension k.
type DimSet uint64

// Has reports whether dimension k is in the set.
func (s DimSet) Has(k int) bool { return s&(1<<k) != 0 }

// Extents are the numbers that cost models need of a tiling: the sizes of all
// tiles, the trip counts of all loops, how often every op runs, and which ops
// compute a tile that another op has already computed. They describe the
// concrete program that Program.At would build, without building it.
//
// The expressions of a symbolic program are compiled once, in groups that depend
// on the same tile sizes. Set evaluates only the groups that depend on a size
// that changed, and allocates nothing. An Extents is for one goroutine at a time.
type Extents struct {
	prog     *Program
	parallel DimSet
	ops      []opExtents
	groups   []exprGroup
	slots    [][]sizeSlot // of each dimension: the sizes that depend on it

	tiling   Tiling
	several  DimSet    // dimensions with more than one tile
	trips    []float64 // tiles along each dimension
	programs float64
	vals     []int64  // arguments of the compiled code: tile sizes, tile ids, run-time variables
	results  []int64  // tile sizes, constants, then the results of the groups
	scratch  []int64  // of the compiled code
	sizes    []int64  // of every dimension of every tile
	over     []DimSet // of every dimension of every tile: whose tile ids occur in its offset
}

// opExtents are what is known of one op.
type opExtents struct {
	// These are the same for every tiling.
	limited     []sizeSlot // those of Limit
	first, rank int        // its sizes are Extents.sizes[first : first+rank]
	sizeDims    DimSet     // tile sizes that its own sizes depend on
	over        DimSet     // dimensions whose tile ids occur in its offsets
	around      []DimSet   // the dimensions of each loop around it, outermost first
	own         DimSet     // the dimensions of the loop whose accumulator it is
	loops       DimSet     // all dimensions of around and own
	same        []int      // earlier ops with the same instruction and opcode
	fields      []int      // indices into Extents.results of the tile's fields; nil without others in same
	compared    bool       // another op may compute the same tile: fields is planned
	fieldDims   DimSet     // tile sizes that the fields of the tile depend on
	sameDims    DimSet     // tile sizes that duplicate depends on: the loops and fields of this op and of those in same

	// These belong to the current tiling.
	elements  float64
	runs      float64
	active    DimSet
	duplicate bool
}

// An exprGroup is compiled expressions that depend on the same tile sizes.
type exprGroup struct {
	dims  DimSet
	exprs []index.Expr
	code  *index.Evaluator
	at    int // of its first result in Extents.results
}

// A sizeSlot says that Extents.sizes[to] is Extents.results[from], and at most a number.
type sizeSlot struct {
	to, from int
	most     int64
}

// tileIDStep is the distance between the values that stand for the tile ids of
// two dimensions when the offsets of tiles are compared. It is a prime beyond the
// offsets inside of a tile, so that different offsets have different values.
const tileIDStep = 1000003

// runtimeStep is the same for the values of run-time variables.
const runtimeStep = 7919

// maxPricedOps bounds the operations of a program whose plans are priced. Pricing
// looks for users of each operation, so that its preparation takes time quadratic
// in them: a second for these.
const maxPricedOps = 1 << 14

// NewExtents compiles the tiles of a symbolic program. The Extents have no tiling
// until Set gives them one. Programs of more than 64 dimensions or maxPricedOps
// operations are an *Untileable.
func NewExtents(p *Program) (*Extents, error) {
	n := len(p.Space.Dims)
	if n > 64 {
		return nil, refuse(p.Fusion.Root, "too-large", "the tile program of %s has %d dimensions; plans are priced for at most 64", p.Fusion.Name, n)
	}
	if len(p.Ops) > maxPricedOps {
		return nil, refuse(
			p.Fusion.Root, "too-large",
			"the tile program of %s has %d operations; plans are priced for at most %d",
			p.Fusion.Name, len(p.Ops), maxPricedOps,
		)
	}
	x := &Extents{
		prog:     p,
		ops:      make([]opExtents, len(p.Ops)),
		slots:    make([][]sizeSlot, n),
		tiling:   make(Tiling, n),
		programs: 1,
		trips:    make([]float64, n),
	}
	for k, d := range p.Space.Dims {
		if d.Kind == Parallel {
			x.parallel |= 1 << k
		}
	}
	x.nest(p.Body, nil)
	c := newExtentsCompiler(x)
	for k := range p.Ops {
		c.op(k)
	}
	if err := c.compile(); err != nil {
		return nil, fmt.Errorf("the tiles of %s: %w", p.Fusion.Name, err)
	}
	return x, nil
}

// nest notes the loops around every op of a body.
func (x *Extents) nest(body []Step, around []DimSet) {
	for _, s := range body {
		if s.Loop == nil {
			x.ops[s.Op].enter(around, 0)
			continue
		}
		var dims DimSet
		for _, d := range s.Loop.Dims {
			dims |= 1 << d
		}
		x.nest(
			s.Loop.Body,
			append(around[:len(around):len(around)], dims),
		)
		for _, n := range s.Loop.Accumulators {
			x.ops[n].enter(around, dims)
		}
	}
}

func (op *opExtents) enter(around []DimSet, own DimSet) {
	op.around = around
	op.own = own
	op.loops = own
	for _, dims := range around {
		op.loops |= dims
	}
}

// An extentsCompiler collects the expressions of all tiles, each once.
type extentsCompiler struct {
	x         *Extents
	sizeOf    map[index.Expr]int  // dimension of a tile size
	idOf      map[index.Expr]int  // dimension of a tile id
	at        map[index.Expr]slot // where the value of an expression is
	groups    map[DimSet]int
	constants []int64
}

// A slot is the place of a value: an index into the constants, or into the
// results of a group, or a dimension whose tile size it is.
type slot struct {
	kind  slotKind
	group int
	index int
	dims  DimSet // tile sizes that it depends on
}

type slotKind uint8

const (
	sizeSlotKind slotKind = iota
	constantSlotKind
	groupSlotKind
)

func newExtentsCompiler(x *Extents) *extentsCompiler {
	c := &extentsCompiler{
		x:      x,
		sizeOf: map[index.Expr]int{},
		idOf:   map[index.Expr]int{},
		at:     map[index.Expr]slot{},
		groups: map[DimSet]int{},
	}
	for k, d := range x.prog.Space.Dims {
		if _, constant := d.Size.Value(); !constant {
			c.sizeOf[d.Size] = k
		}
		if _, constant := d.Tid.Value(); !constant {
			c.idOf[d.Tid] = k
		}
	}
	return c
}

// maxSame bounds the earlier ops of the same instruction with which an op is
// compared, nearest first: a concatenate of one array 50,000 times would
// otherwise take time quadratic in them.
const maxSame = 64

// op plans the evaluation of an op's tile: its sizes always, and all other fields
// where another op may compute the same tile.
func (c *extentsCompiler) op(n int) {
	p := c.x.prog
	op := &c.x.ops[n]
	tile := p.Ops[n].Tile
	op.rank = len(tile)
	for _, d := range tile {
		over := c.tileIDs(d.Offset)
		c.x.over = append(c.x.over, over)
		op.over |= over
		op.sizeDims |= c.place(d.Size).dims
	}
	for k := n - 1; k >= 0 && len(op.same) < maxSame; k-- {
		if p.Ops[k].Instr == p.Ops[n].Instr &&
			p.Ops[k].Code == p.Ops[n].Code {
			op.same = append(op.same, k)
		}
	}
	slices.Reverse(op.same)
	if len(op.same) == 0 {
		return
	}
	c.fields(n)
	op.sameDims = op.loops | op.fieldDims
	for _, k := range op.same {
		c.fields(k)
		op.sameDims |= c.x.ops[k].loops |
			c.x.ops[k].fieldDims
	}
}

// fields plans the evaluation of the fields of an op's tile.
func (c *extentsCompiler) fields(n int) {
	op := &c.x.ops[n]
	if op.compared {
		return
	}
	op.compared = true
	for _, d := range c.x.prog.Ops[n].Tile {
		for _, e := range [...]index.Expr{
			d.Offset, d.Size, d.Stride,
			d.Lower, d.Bound,
		} {
			op.fieldDims |= c.place(e).dims
		}
	}
}

// tileIDs are the dimensions whose tile ids occur in an expression.
func (c *extentsCompiler) tileIDs(e index.Expr) (dims DimSet) {
	if _, constant := e.Value(); constant {
		return 0
	}
	for _, v := range e.Vars() {
		if k, is := c.idOf[v]; is {
			dims |= 1 << k
		}
	}
	return dims
}

// place finds the place of an expression's value, and makes one if there is none.
func (c *extentsCompiler) place(e index.Expr) slot {
	s, known := c.at[e]
	if known {
		return s
	}
	if v, constant := e.Value(); constant {
		s = slot{kind: constantSlotKind, index: len(c.constants)}
		c.constants = append(c.constants, v)
	} else if k, is := c.sizeOf[e]; is {
		s = slot{kind: sizeSlotKind, index: k, dims: 1 << k}
	} else {
		s = c.grouped(e)
	}
	c.at[e] = s
	return s
}

// grouped adds an expression to the group of those that depend on the same sizes.
// A tile id depends on the size of its dimension: it is 0 where there is one tile.
func (c *extentsCompiler) grouped(e index.Expr) slot {
	dims := DimSet(0)
	for _, v := range e.Vars() {
		if k, is := c.sizeOf[v]; is {
			dims |= 1 << k
		}
		if k, is := c.idOf[v]; is {
			dims |= 1 << k
		}
	}
	g, known := c.groups[dims]
	if !known {
		g = len(c.x.groups)
		c.groups[dims] = g
		c.x.groups = append(
			c.x.groups, exprGroup{dims: dims},
		)
	}
	group := &c.x.groups[g]
	group.exprs = append(group.exprs, e)
	return slot{
		kind:  groupSlotKind,
		group: g,
		index: len(group.exprs) - 1,
		dims:  dims,
	}
}

// compile compiles the groups and lays out all results.
func (c *extentsCompiler) compile() error {
	x := c.x
	dims := c.x.prog.Space.Dims
	var vars []index.Expr
	for _, d := range dims {
		vars = append(vars, d.Size)
	}
	for _, d := range dims {
		vars = append(vars, d.Tid)
	}
	for _, r := range x.prog.Runtime {
		vars = append(vars, r.Var)
	}
	x.vals = make([]int64, len(vars))
	for k := range x.prog.Runtime {
		x.vals[2*len(dims)+k] = runtimeStep * int64(k+1)
	}
	x.results = append(
		make([]int64, len(dims)), c.constants...,
	)
	scratch := 0
	for k := range x.groups {
		g := &x.groups[k]
		code, err := index.Compile(vars, g.exprs)
		if err != nil {
			return err
		}
		g.code = code
		g.at = len(x.results)
		x.results = append(
			x.results,
			make([]int64, len(g.exprs))...,
		)
		scratch = max(scratch, code.ScratchLen())
		if g.dims == 0 { // of run-time variables only
			x.scratch = make([]int64, scratch)
			code.Eval(x.vals, x.results[g.at:], x.scratch)
		}
	}
	x.scratch = make([]int64, scratch)
	for n := range x.ops {
		c.layOut(n)
	}
	for n := range x.ops {
		op := &x.ops[n]
		if len(op.same) > 0 && op.sameDims == 0 {
			op.duplicate = x.repeats(op)
		}
	}
	return nil
}

// layOut gives the sizes of an op their places.
func (c *extentsCompiler) layOut(n int) {
	x := c.x
	op := &c.x.ops[n]
	op.first = len(x.sizes)
	op.elements = 1
	op.runs = 1
	for k, d := range x.prog.Ops[n].Tile {
		s := c.at[d.Size]
		from := c.index(s)
		x.sizes = append(x.sizes, x.results[from])
		if s.dims == 0 {
			op.elements *= float64(x.results[from])
		}
		for rest := s.dims; rest != 0; rest &= rest - 1 {
			dim := bits.TrailingZeros64(uint64(rest))
			x.slots[dim] = append(
				x.slots[dim], sizeSlot{op.first + k, from, math.MaxInt64},
			)
		}
		if !op.compared {
			continue
		}
		for _, e := range [...]index.Expr{
			d.Offset, d.Size, d.Stride,
			d.Lower, d.Bound,
		} {
			op.fields = append(op.fields, c.index(c.at[e]))
		}
	}
}

// index is where a value is among Extents.results.
func (c *extentsCompiler) index(s slot) int {
	switch s.kind {
	case sizeSlotKind:
		return s.index
	case constantSlotKind:
		return len(c.x.prog.Space.Dims) + s.index
	}
	return c.x.groups[s.group].at + s.index
}

// Set evaluates a tiling, which must have a size for every dimension. It costs what
// the sizes that changed since the last call cost.
func (x *Extents) Set(t Tiling) {
	changed := x.changed(t)
	if changed == 0 {
		return
	}
	for k := range x.groups {
		if g := &x.groups[k]; g.dims&changed != 0 {
			g.code.Eval(x.vals, x.results[g.at:], x.scratch)
		}
	}
	for rest := changed; rest != 0; rest &= rest - 1 {
		for _, s := range x.slots[bits.TrailingZeros64(uint64(rest))] {
			x.sizes[s.to] = min(x.results[s.from], s.most)
		}
	}
	for n := range x.ops {
		x.update(n, changed)
	}
}

// changed takes over the sizes of a tiling, with the trip counts and tile ids that
// follow from them, and tells which are new.
func (x *Extents) changed(t Tiling) (changed DimSet) {
	n := len(x.tiling)
	for k, size := range t[:n] {
		if size == x.tiling[k] {
			continue
		}
		changed |= 1 << k
		trips := (max(1, x.prog.Space.Dims[k].Extent) + size - 1) /
			size
		x.tiling[k], x.results[k], x.vals[k] = size,
			size, size
		x.trips[k] = float64(trips)
		if trips > 1 {
			x.several |= 1 << k
			x.vals[n+k] = tileIDStep * int64(k+1)
		} else {
			x.several &^= 1 << k
			x.vals[n+k] = 0
		}
	}
	if changed&x.parallel != 0 {
		x.programs = x.Product(x.parallel)
	}
	return changed
}

// update brings an op up to date after sizes changed.
func (x *Extents) update(n int, changed DimSet) {
	op := &x.ops[n]
	if op.sizeDims&changed != 0 {
		op.elements = 1
		for _, size := range x.sizes[op.first : op.first+op.rank] {
			op.elements *= float64(size)
		}
	}
	if op.loops&changed != 0 {
		op.active = op.activeLoops(x.several)
		op.runs = x.Product(op.active)
	}
	if op.sameDims&changed != 0 {
		op.duplicate = x.repeats(op)
	}
}

// activeLoops are the dimensions of the loops of several iterations that the op
// runs in. An op is taken out of the innermost loops whose tile ids do not occur in
// its tile, as Program.At does.
func (op *opExtents) activeLoops(several DimSet) DimSet {
	levels := op.around
	for len(levels) > 0 &&
		levels[len(levels)-1]&several&op.over == 0 {
		levels = levels[:len(levels)-1]
	}
	set := op.own
	for _, dims := range levels {
		set |= dims
	}
	return set & several
}

// repeats reports whether an earlier op of the same instruction computes the same
// tile in the same loops. Program.At has one op for both.
func (x *Extents) repeats(op *opExtents) bool {
next:
	for _, k := range op.same {
		other := &x.ops[k]
		if other.active != op.active {
			continue
		}
		for i, at := range op.fields {
			if x.results[at] != x.results[other.fields[i]] {
				continue next
			}
		}
		return true
	}
	return false
}

// Tiling is the tiling that was set. It is overwritten by the next Set.
func (x *Extents) Tiling() Tiling { return x.tiling }

// Programs is the number of tile programs.
func (x *Extents) Programs() float64 { return x.programs }

// Trips is the number of tiles along dimension k.
func (x *Extents) Trips(k int) float64 { return x.trips[k] }

// Several is the set of dimensions with more than one tile.
func (x *Extents) Several() DimSet { return x.several }

// Product is the product of the trip counts of some dimensions.
func (x *Extents) Product(dims DimSet) float64 {
	product := 1.0
	for dims &= x.several; dims != 0; dims &= dims - 1 {
		product *= x.trips[bits.TrailingZeros64(uint64(dims))]
	}
	return product
}

// Limit has the sizes of the tile of op n be those of its array at most, for a backend that does
// not compute the masked rest. It is called before Set.
func (x *Extents) Limit(n int) {
	op := &x.ops[n]
	dims := x.prog.Ops[n].Instr.Shape.Dims
	for k := range x.slots {
		for j := range x.slots[k] {
			s := &x.slots[k][j]
			if d := s.to - op.first; 0 <= d && d < min(op.rank, len(dims)) {
				s.most = max(1, dims[d])
				op.limited = append(op.limited, *s)
			}
		}
	}
}

// Cut reports whether a limit made the tile of op n smaller.
func (x *Extents) Cut(n int) bool {
	return slices.ContainsFunc(x.ops[n].limited, func(s sizeSlot) bool {
		return x.results[s.from] > s.most
	})
}

// Sizes are the sizes of the tile of op n. They are overwritten by the next Set.
func (x *Extents) Sizes(n int) []int64 {
	op := &x.ops[n]
	return x.sizes[op.first : op.first+op.rank]
}

// Elements is the number of elements of the tile of op n, masked ones included.
func (x *Extents) Elements(n int) float64 { return x.ops[n].elements }

// Runs is how often op n runs in a tile program.
func (x *Extents) Runs(n int) float64 { return x.ops[n].runs }

// Loops is the set of dimensions of several tiles that op n is in loops over.
func (x *Extents) Loops(n int) DimSet { return x.ops[n].active }

// Duplicate reports whether an earlier op computes the same tile of the same
// instruction at the same place: Program.At then has one op for both.
func (x *Extents) Duplicate(n int) bool { return x.ops[n].duplicate }

// Over is the set of dimensions whose tile ids occur in the offsets of op n's tile,
// for any tiling.
func (x *Extents) Over(n int) DimSet { return x.ops[n].over }

// OverDim is Over of one dimension of the tile.
func (x *Extents) OverDim(n, dim int) DimSet {
	return x.over[x.ops[n].first+dim]
}
