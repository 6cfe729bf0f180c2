package symtile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/parts"
	"github.com/tilewright/tilewright/symtile/index"
)

// Analyze propagates tiles with symbolic sizes from the results of c to its
// parameters and returns the tile program of all its tilings at once.
//
// Nested fusions and calls are inlined, a few operations are rewritten as
// others (see rewrites), and reductions that can share a loop are grouped. Then
// the builder walks from the roots to the parameters. The cost is linear in the
// instructions for a fusion whose operations are read at one tile each; an
// instruction that is read at several tiles is built once for each of them.
//
// The error is an *Untileable when c is valid HLO that cannot be tiled, also where c has
// an instruction with a side effect, which no tile program would have; and the
// cause of ctx when that ends before. c is not changed, and the Program refers to
// its instructions.
func Analyze(ctx context.Context, c *hlo.Computation) (*Program, error) {
	if i := new(hlo.Effects).In(c); i != nil {
		return nil, refuse(i, "not-in-op-table", "%s", UntileableReason(i))
	}
	flat, err := inline(c)
	if err != nil {
		return nil, err
	}
	if k := slices.IndexFunc(flat.Instrs, isOpaque); k >= 0 {
		return nil, refuse(flat.Instrs[k], "opaque", opaqueElements)
	}
	inMemory, err := physical(c, flat)
	if err != nil {
		return nil, err
	}
	if inMemory != c {
		flat = inMemory
	}
	ofParts, err := parts.Of(flat)
	var undefined *parts.Undefined
	switch {
	case errors.As(err, &undefined):
		return nil, refuse(undefined.Instr, "complex", "%s", undefined.Reason)
	case err != nil:
		return nil, err
	case ofParts != flat:
		flat, inMemory = ofParts, ofParts
	}
	flat, roles := rewriteOps(flat)
	p, err := buildSymbolic(ctx, flat)
	if err != nil {
		return nil, err
	}
	p.Fusion, p.Physical, p.roles = c, inMemory, roles
	return p, nil
}

// At returns the program with the tile sizes t. It walks the fusion again with
// constant sizes, so that expressions fold as they are built: the result is
// concrete and has a ring of its own. A tiling of the wrong length, out of [1,
// extent] or against a constraint is an error that says which; the last is an
// *Illegal.
func (p *Program) At(t Tiling) (*Program, error) {
	if err := p.Check(t); err != nil {
		return nil, err
	}
	q, err := build(context.Background(), p.flat, slices.Clone(t), p.groups, p.apart)
	if err != nil {
		return nil, fmt.Errorf("tiling %v: %w", []int64(t), err)
	}
	q.Fusion, q.Physical, q.roles = p.Fusion, p.Physical, p.roles
	return q, nil
}

// maxApart bounds the outputs that are found one after the other to have no
// tiles made of those of the others; then all are tiled apart.
const maxApart = 8

// buildSymbolic makes the symbolic program of a flat fusion. Outputs whose tiles
// cannot be made of those of the others are tiled apart from them.
func buildSymbolic(ctx context.Context, flat *hlo.Computation) (*Program, error) {
	groups := loopGroups(flat)
	apart := map[int]bool{}
	for {
		p, err := build(ctx, flat, nil, groups, apart)
		var derived *apartError
		if !errors.As(err, &derived) {
			return p, err
		}
		apart[derived.Output] = true
		if len(apart) == maxApart {
			for k := range outputs(flat) {
				apart[k] = true
			}
		}
	}
}

// build makes the program of a flat fusion: a symbolic one where sizes is nil,
// else a concrete one. groups are the loops that reductions share, apart the
// outputs whose tiles are not made of those of other outputs.
func build(
	ctx context.Context, flat *hlo.Computation, sizes Tiling,
	groups map[*hlo.Instr]*loopGroup, apart map[int]bool,
) (*Program, error) {
	b := newBuilder(ctx, flat, sizes, groups)
	b.prog.apart = apart
	b.prog.Ops = make([]Op, 0, len(flat.Instrs))
	b.nestOf = make([]*loopNest, 0, len(flat.Instrs))
	outs := outputs(flat)
	if len(outs) == 0 {
		return nil, refuse(flat.Root, "root", "the fusion returns no array")
	}
	for _, o := range outs {
		if !o.Shape.DType.IsArray() {
			return nil, notAnArray(o)
		}
	}
	if err := b.roots(outs); err != nil {
		return nil, err
	}
	if err := b.ring.Err(); err != nil {
		return nil, refuse(flat.Root, "overflow", "%v", err)
	}
	b.prog.flat = flat
	b.prog.groups = groups
	if sizes == nil {
		if err := b.prog.Space.compile(); err != nil {
			return nil, err
		}
	}
	if err := b.fits(); err != nil {
		return nil, err
	}
	return b.prog, b.schedule()
}

// notAnArray is the refusal of an output that is no array: of an operation that no kernel
// computes by its reason.
func notAnArray(o *hlo.Instr) error {
	why, rule := cmp.Or(o.Unknown(), o.Op.Not(hlo.CPU)), "root"
	if why != "" && o.Shape.DType == hlo.Tuple {
		rule = "not-in-op-table"
	}
	return refuse(o, rule, "%s", cmp.Or(why, fmt.Sprintf("the fusion returns %s, which is not an array", o.Shape)))
}

// fits is an error if the indices of a tile are computed of numbers that int64 may not
// hold. Those of a symbolic program are those of its smallest tiles, since the bounds of
// sizes are not sharp.
func (b *builder) fits() error {
	if !b.ring.Overflows() {
		return nil
	}
	if b.sizes == nil {
		ones := slices.Repeat(Tiling{1}, len(b.prog.Space.Dims))
		if b.prog.Check(ones) != nil {
			return nil
		}
		_, err := build(b.ctx, b.prog.flat, ones, b.prog.groups, b.prog.apart)
		return err
	}
	// The last one is to blame: what it reads has the same numbers.
	for _, op := range slices.Backward(b.prog.Ops) {
		var exprs []index.Expr
		op.Tile.fields(func(e index.Expr) { exprs = append(exprs, e) })
		if len(exprs) > 0 && b.ring.Overflows(exprs...) {
			return refuse(op.Instr, "overflow", "the indices of its tile take numbers of more than 64 bits")
		}
	}
	return nil
}

// Check reports why t is not a legal tiling of the program; nil when it is. It
// evaluates the compiled constraints and builds nothing. A constraint that t
// breaks is an *Illegal.
func (p *Program) Check(t Tiling) error {
	dims := p.Space.Dims
	if len(t) != len(dims) {
		return fmt.Errorf(
			"tiling %v has %d sizes; the space has %d dimensions: %s",
			[]int64(t), len(t), len(dims), strings.Join(p.DimNames(), ", "),
		)
	}
	for k, size := range t {
		maxSize := max(1, dims[k].Extent)
		if size < 1 || size > maxSize {
			return fmt.Errorf(
				"tiling %v: size %d of %s is outside [1, %d]",
				[]int64(t), size,
				p.DimNames()[k], maxSize,
			)
		}
	}
	return p.Space.compiled().checkTiling(t)
}
