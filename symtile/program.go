package symtile

import "github.com/tilewright/tilewright/symtile/hlo"

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
