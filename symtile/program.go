package symtile

import (
	"fmt"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A Program is a fusion as a grid of tile programs. It is symbolic as Analyze
// returns it and concrete as At returns it; the type is the same.
//
// There is one tile program for each combination of the tile ids of the
// parallel dimensions. It evaluates Body in order. Every Op computes one tile
// from the tiles of its Args. A Loop runs its Body once for each combination of
// its sequential tile ids and accumulates its Accumulators (reduce, dot), whose
// results are complete after the loop. A loop of which every dimension has one
// tile is left out, and its accumulators are ordinary ops.
//
// A Program is not changed after it is made, and is safe for concurrent use
// where its ring is not used to build expressions.
type Program struct {
	// Fusion is the computation that was analyzed.
	Fusion *hlo.Computation
	// Physical is Fusion with its arrays as they lie in memory, which is what
	// kernels take and give: an array in a tiled layout has its physical extents
	// there, in row-major order. It is Fusion itself where no layout is tiled.
	Physical *hlo.Computation
	Space    *Space
	// Ops are the operations, each after its arguments.
	Ops  []Op
	Body []Step
	// Roots are the results, one for each output, in tuple order.
	Roots []Root

	// Runtime are the variables of tiles whose values are known only when a
	// tile program runs.
	Runtime []Runtime

	// flat is Fusion without nested computations, with its operations
	// rewritten.
	flat *hlo.Computation
	// roles of products that were convolutions, for DimNames.
	roles  map[*hlo.Instr]productRoles
	groups map[*hlo.Instr]*loopGroup
	// apart are the outputs whose tiles are not made of those of the others.
	apart map[int]bool
}

// An Op computes one tile.
//
// Code is the tile-level operation. It is Instr.Op except that a bitcast
// becomes transpose and reshape ops, a copy becomes "copy", and nested fusions,
// calls and tuples are gone. Values by Code, with o the op's own tile and a the
// tile of an argument (all buffers dense, row-major over the tile's sizes):
//
//	parameter   load Instr.Attrs.Param at Tile; masked elements do not touch memory
//	constant    Instr.Literal at Tile
//	iota        index of dimension Instr.Attrs.IotaDim at Tile
//	elementwise pointwise; a rank-0 argument of select/clamp applies to all
//	broadcast   o[i] = a[i[Dimensions]]
//	transpose   o[i] = a[..] with o's dimension k being a's dimension Perm[k]
//	reshape     the same elements in the same row-major order
//	slice       the same elements
//	reverse     a flipped along Instr.Attrs.Dimensions
//	concatenate the argument whose tile is not masked at the element
//	pad         args (operand, value): the operand where its tile reaches, else the value
//	reduce      folds along Instr.Attrs.Dimensions, skipping elements masked in the argument's tile
//	dot         contracts, skipping masked elements; dims: batch, lhs free, rhs free
//	unfold      o[…, x, w, …] = a[…, (x·o.Stride_x·Stride + w·o.Stride_w·Dilation) / a.Stride, …]
//	            for dimension Instr.Attrs.Dimensions[k] of a and Instr.Attrs.Window[k]
//	dynamic-slice  the same elements; args (operand, starts…)
//	dynamic-update-slice  args (operand, update, starts…): the update where its tile is not masked, else the operand
//	gather      args (operand, indices): o[batch, offset] = a[start(batch) + offset], where a's tile is whole
//	            along the dimensions that have starts, which are clamped to keep the slice inside
//	scatter     args (operand, indices, updates): folds the updates of the sequential tile into the operand's
//	            tile, in row-major order, where the whole window is inside of the operand
//	get-tuple-element  result Instr.Attrs.Index of a variadic reduce
type Op struct {
	Instr *hlo.Instr
	Code  hlo.Opcode
	Tile  Tile
	// Args are indices into Program.Ops.
	Args []int
	// Perm is the permutation of a transpose; nil for other ops.
	Perm []int
	// Loop is the loop of an accumulator (reduce, dot) that has one; nil for
	// others.
	Loop *Loop
	// RuntimeArgs are the ops of the run-time variables that occur in Tile.
	RuntimeArgs []int
}

// A Step is an op, where Loop is nil, or a loop.
type Step struct {
	Op   int
	Loop *Loop
}

// A Loop iterates over the tile ids of Dims, the last fastest, from 0.
// Accumulators are combined with their arguments at the end of each iteration
// and are complete after the loop.
type Loop struct {
	// Dims are indices into Space.Dims.
	Dims []int
	Body []Step
	// Accumulators are indices into Program.Ops.
	Accumulators []int
	// Online describes a loop that reads an accumulator before it is complete;
	// nil unless Program.Online made the loop.
	Online *Online
}

// A Root stores the tile of Op to output number Output. Where dimensions in
// Once do not occur in the output, the tile programs along them hold the same
// values, and only those with tile id 0 in all of Once store.
type Root struct {
	Op     int
	Output int
	// Once are indices into Space.Dims.
	Once []int
}

// Online describes a loop whose iterations read its first accumulator, the
// running statistic, before it is complete: the first Prefix steps of its Body
// compute the operand x of the statistic, then the statistic is updated, then
// the rest of the body runs.
//
// A running maximum m is the maximum of what the iterations have met so far.
// When a tile raises it, every accumulator in Rescaled, which is proportional
// to exp(−m), is multiplied by exp(m_old − m_new).
//
// With a running sum, iterations read a number b near the mean of what they
// have met, which may change from one iteration to the next. They accumulate D
// = Σ(x−b), whose terms are the op Deviation, and Q = Σ(x−b)² in each of
// SquaredDeviations. When n elements have been met and b becomes b+δ, D becomes
// D − nδ and Q becomes Q − 2δD + nδ². At the end the sum is nb + D, and each of
// SquaredDeviations is Q − D²/n = Σ(x − mean)².
type Online struct {
	// Statistic is the op of the running maximum or sum, the first of the
	// loop's accumulators.
	Statistic int
	// Prefix is the number of steps of the loop's Body that come before the
	// statistic.
	Prefix int
	// Rescaled are the accumulators that are proportional to exp(−m); none with
	// a sum.
	Rescaled []Rescaled
	// Deviation is the op x − b; −1 with a maximum.
	Deviation int
	// SquaredDeviations are the accumulators of (x−b)²; none with a maximum.
	SquaredDeviations []int
	// FusedDims are the dimensions of the loops that were fused, those of the
	// first loop first.
	FusedDims [][]int
}

// A Rescaled accumulator is proportional to exp(−m). Dims are the dimensions of
// its tile that are those of m, in order.
type Rescaled struct {
	Op   int
	Dims []int
}

// A Runtime is a variable of tiles whose value is known when a tile program
// runs: the element of the rank-0 op Op, clamped to the variable's range.
type Runtime struct {
	Var index.Expr
	Op  int
}

// Tiling is the tile sizes of a concrete program.
func (p *Program) Tiling() Tiling {
	t := make(Tiling, len(p.Space.Dims))
	for k, d := range p.Space.Dims {
		t[k] = mustValue(d.Size)
	}
	return t
}

// Grid is the number of tiles along each parallel dimension of a concrete
// program. Tile programs are numbered with the last dimension fastest.
func (p *Program) Grid() []int64 {
	var grid []int64
	for _, d := range p.Space.Dims {
		if d.Kind == Parallel {
			grid = append(grid, mustValue(d.Tiles))
		}
	}
	return grid
}

// Programs is the number of tile programs of a concrete program.
func (p *Program) Programs() int64 {
	n := int64(1)
	for _, g := range p.Grid() {
		n *= g
	}
	return n
}

// String lists the space, then every step with its tile, loops indented.
func (p *Program) String() string {
	var b strings.Builder
	for _, d := range p.Space.Dims {
		fmt.Fprintf(
			&b, "%s: %s, extent %d, size %s",
			d.Name, d.Kind, d.Extent, d.Size,
		)
		if tiles, ok := d.Tiles.Value(); ok {
			fmt.Fprintf(&b, ", tiles %d", tiles)
		}
		fmt.Fprintf(&b, ", from %s\n", d.From.Name)
	}
	if len(p.Space.Where) > 0 {
		fmt.Fprintf(&b, "where %s\n", p.Space.Where)
	}
	if len(p.Space.Boxes) > 0 {
		fmt.Fprintf(&b, "boxes where %s\n", p.Space.Boxes)
	}
	for _, r := range p.Runtime {
		in := r.Var.Range()
		fmt.Fprintf(
			&b, "%s: %%%d at run time, clamped to [%d, %d]\n",
			r.Var, r.Op, in.Lo, in.Hi,
		)
	}
	p.writeSteps(&b, p.Body, "")
	for _, r := range p.Roots {
		fmt.Fprintf(&b, "store output %d from %%%d", r.Output, r.Op)
		for k, d := range r.Once {
			fmt.Fprintf(
				&b, "%s%s = 0",
				[2]string{" when ", " and "}[min(k, 1)],
				p.Space.Dims[d].Name,
			)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// writeSteps lists steps, each on a line, with the bodies of loops.
func (p *Program) writeSteps(b *strings.Builder, steps []Step, indent string) {
	for _, s := range steps {
		if s.Loop == nil {
			p.writeOp(b, s.Op, indent)
			continue
		}
		names := make([]string, len(s.Loop.Dims))
		for k, d := range s.Loop.Dims {
			names[k] = p.Space.Dims[d].Name
		}
		fmt.Fprintf(
			b, "%sfor %s {\n", indent, strings.Join(names, ", "),
		)
		p.writeBody(b, s.Loop, indent+"  ")
		fmt.Fprintf(b, "%s}\n", indent)
	}
}

// writeBody lists a loop's body and accumulators. The statistic of an online
// loop stands where iterations read it.
func (p *Program) writeBody(b *strings.Builder, l *Loop, indent string) {
	body, accumulators := l.Body, l.Accumulators
	if o := l.Online; o != nil {
		p.writeSteps(b, body[:o.Prefix], indent)
		p.writeOp(b, o.Statistic, indent)
		body = body[o.Prefix:]
		accumulators = accumulators[1:]
		for _, s := range o.Rescaled {
			fmt.Fprintf(
				b, "%s%%%d scaled by exp(-%%%d) along dimensions %v\n",
				indent, s.Op, o.Statistic, s.Dims,
			)
		}
		if o.Deviation >= 0 {
			fmt.Fprintf(
				b, "%s%%%d near its mean, %%%d less that, %%%v of squares\n",
				indent, o.Statistic, o.Deviation, o.SquaredDeviations,
			)
		}
	}
	p.writeSteps(b, body, indent)
	for _, c := range accumulators {
		p.writeOp(b, c, indent)
	}
}

// writeOp writes the line of one op.
func (p *Program) writeOp(b *strings.Builder, n int, indent string) {
	op := p.Ops[n]
	args := make([]string, len(op.Args))
	for k, a := range op.Args {
		args[k] = fmt.Sprintf("%%%d", a)
	}
	fmt.Fprintf(
		b, "%s%%%d = %s %s(%s) %s\n",
		indent, n, op.Instr.Name, op.Code,
		strings.Join(args, ", "), op.Tile,
	)
}
