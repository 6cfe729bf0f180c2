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
// A tile program evaluates Body in order. Every Op computes one tile from the
// tiles of its Args. A Loop runs its Body once per combination of its
// sequential tile ids, accumulating its Closers (reduce, dot), whose results are
// there after the loop. When all tile ids of a loop have one value the loop is
// gone and its closers are ordinary ops.
type Program struct {
	Fusion *hlo.Computation
	Space  *Space
	Ops    []Op // args before users
	Body   []Step
	Roots  []Root // one per output, in tuple order

	// Runtime are the variables of tiles that are known when a tile program runs.
	Runtime []Runtime

	flat   *hlo.Computation // Fusion without nested computations
	groups map[*hlo.Instr]*loopGroup
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
//	get-tuple-element  result Instr.Attrs.Index of a variadic reduce
type Op struct {
	Instr       *hlo.Instr
	Code        hlo.Opcode
	Tile        Tile
	Args        []int // indices into Program.Ops
	Perm        []int // transpose only
	Loop        *Loop // for a closer (reduce, dot) with a loop: that loop; else nil
	RuntimeArgs []int // the ops of the run-time variables in Tile
}

// A Step is an op (Loop nil) or a loop.
type Step struct {
	Op   int
	Loop *Loop
}

// A Loop walks the tile ids of Dims (indices into Space.Dims), the last
// fastest, from 0. Closers are op indices; they accumulate at the end of each
// iteration and are complete after the loop.
type Loop struct {
	Dims         []int
	Body         []Step
	Accumulators []int
	Online       *Online // nil unless Program.Online made it
}

// A Root stores the tile of Op to output number Output. The store happens only
// in tile programs in which every dimension in Once has tile id 0: those do not
// occur in the output, so the other programs hold the same values.
type Root struct {
	Op     int
	Output int
	Once   []int // indices into Space.Dims
}

// Online says how a loop runs whose iterations read one of its closers, Of,
// before that is complete; steps before number Before make its operand x.
//
// A maximum m is that of what the iterations so far have met: it grows to that of
// the tile at hand, and what was summed with the old one is multiplied by
// exp(m_old − m_new).
//
// Of a sum iterations read a number b near the mean of what they have met, the
// same for all of them or not. They sum D = Σ(x−b), whose terms are the op Less,
// and Q = Σ(x−b)² in each of Squares. Where n elements were met and b becomes
// b+δ, D becomes D − nδ and Q becomes Q − 2δD + nδ². At the end the sum is
// nb + D, and each of Squares is Q − D²/n = Σ(x − mean)².
type Online struct {
	Statistic         int // the first of the loop's closers
	Prefix            int // steps of the loop's Body
	Rescaled          []Rescaled
	Deviation         int // −1 with a maximum
	SquaredDeviations []int
	FusedDims         [][]int // the dimensions of the loops that were joined, the first loop's first
}

// A Rescaled closer is proportional to exp(−m); Dims are the dimensions of its
// tile that are those of m, in order.
type Rescaled struct {
	Op   int
	Dims []int
}

// A Runtime is a variable of tiles whose value is known when a tile program
// runs: the element of rank-0 op Op, clamped to the variable's range.
type Runtime struct {
	Var index.Expr
	Op  int
}

// Concrete says whether the sizes are known.
func (p *Program) Concrete() bool {
	for _, d := range p.Space.Dims {
		if _, ok := d.Size.Value(); !ok {
			return false
		}
	}
	return true
}

// Tiling is the sizes of a concrete program.
func (p *Program) Tiling() Tiling {
	t := make(Tiling, len(p.Space.Dims))
	for k, d := range p.Space.Dims {
		t[k] = mustValue(d.Size)
	}
	return t
}

// Grid is the number of tiles along each parallel dimension of a concrete
// program; tile programs are numbered with the last fastest.
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

// Trips is the number of iterations of a loop of a concrete program.
func (p *Program) Trips(l *Loop) int64 {
	n := int64(1)
	for _, d := range l.Dims {
		n *= mustValue(p.Space.Dims[d].Tiles)
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

// writeBody lists a loop's body and closers; of an online loop the closer that
// iterations read where they do.
func (p *Program) writeBody(b *strings.Builder, l *Loop, indent string) {
	body, closers := l.Body, l.Accumulators
	if o := l.Online; o != nil {
		p.writeSteps(b, body[:o.Prefix], indent)
		p.writeOp(b, o.Statistic, indent)
		body = body[o.Prefix:]
		closers = closers[1:]
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
	for _, c := range closers {
		p.writeOp(b, c, indent)
	}
}

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
