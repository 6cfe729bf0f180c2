package symtile

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// outputs lists what the fusion returns: the elements of a root tuple, nested
// ones in place, the results of a variadic reduce, or the root.
func outputs(c *hlo.Computation) []*hlo.Instr {
	var all []*hlo.Instr
	var walk func(i *hlo.Instr)
	walk = func(i *hlo.Instr) {
		if i.Op == hlo.OpTuple {
			for _, o := range i.Operands {
				walk(o)
			}
			return
		}
		if i.Op == hlo.OpReduce &&
			i.Shape.DType == hlo.Tuple {
			all = append(all, reduceResults(i)...)
			return
		}
		all = append(all, i)
	}
	walk(c.Root)
	return all
}

// reduceResults are the results of a variadic reduce as get-tuple-element
// instructions.
func reduceResults(i *hlo.Instr) []*hlo.Instr {
	all := make([]*hlo.Instr, len(i.Shape.Tuple))
	for k, s := range i.Shape.Tuple {
		all[k] = &hlo.Instr{
			Name:     fmt.Sprintf("%s.%d", i.Name, k),
			Op:       hlo.OpGetTupleElement,
			Shape:    s,
			Operands: []*hlo.Instr{i},
			Attrs:    hlo.Attrs{Index: k},
			Pos:      i.Pos,
		}
	}
	return all
}

// dominantOutput picks the output whose dimensions become the parallel ones:
// that of the greatest rank, then of the most elements, then the first.
func dominantOutput(outs []*hlo.Instr) int {
	best := 0
	for k, o := range outs {
		a := o.Shape
		b := outs[best].Shape
		if a.Rank() > b.Rank() ||
			a.Rank() == b.Rank() && a.Elements() > b.Elements() {
			best = k
		}
	}
	return best
}

// roots builds every output. The dominant output brings the parallel
// dimensions. Another output is stored from the tile with which the dominant
// one reached it, where the tiles cover the output; else from a tile that moves
// and elementwise operations make of a tile that covers what they read; else
// from a tile along the dominant output's dimensions of equal extent, in order.
// A dimension without such a partner is stored whole.
func (b *builder) roots(outs []*hlo.Instr) error {
	dominant := dominantOutput(outs)
	if i := outs[dominant]; i.Shape.Elements() == 0 {
		for _, o := range outs {
			if o.Shape.Elements() > 0 {
				return refuse(i, "root", "it has no elements, so that no tile would compute %s", o.Name)
			}
		}
	}
	tile := make(Tile, outs[dominant].Shape.Rank())
	for k, extent := range outs[dominant].Shape.Dims {
		tile[k] = b.prog.Space.Dims[b.addDim(
			extent, Parallel, outs[dominant],
		)].tile()
	}
	b.parallel = len(b.prog.Space.Dims)
	b.prog.Roots = make([]Root, len(outs))
	at, err := b.op(outs[dominant], tile)
	if err != nil {
		return err
	}
	b.store(dominant, at, b.absentDims(tile))
	for _, k := range indicesWithout(len(outs), dominant) {
		if err := b.root(k, outs[k]); err != nil {
			return err
		}
	}
	return nil
}

// root builds output number k, which is not the dominant one.
func (b *builder) root(k int, i *hlo.Instr) error {
	if !b.prog.apart[k] {
		from, err := b.derivedCover(i)
		if err != nil {
			return &apartError{k, err}
		}
		if from != nil {
			b.store(k, from.op, from.once)
			return nil
		}
	}
	at := b.existingOp(i)
	if at < 0 {
		var err error
		if at, err = b.op(i, b.alignedTile(i)); err != nil {
			return err
		}
	}
	b.store(k, at, b.absentDims(b.prog.Ops[at].Tile))
	return nil
}

// store makes op n, which covers its instruction but for the dimensions in once,
// output number k.
func (b *builder) store(k, n int, once []int) {
	b.prog.Roots[k] = Root{Op: n, Output: k, Once: once}
	b.addCover(n, once)
}

// indicesWithout is 0 … n−1 without skip.
func indicesWithout(n, skip int) []int {
	var s []int
	for k := range n {
		if k != skip {
			s = append(s, k)
		}
	}
	return s
}

// existingOp finds an op of the instruction, outside of loops, whose tiles
// cover it; −1 where there is none.
func (b *builder) existingOp(i *hlo.Instr) int {
	for _, n := range b.opsOf[i] {
		op := b.prog.Ops[n]
		if op.Code == i.Op && b.nestOf[n] == nil &&
			i.Shape.DType != hlo.Tuple &&
			b.covers(op.Tile, i.Shape.Dims) {
			return n
		}
	}
	return -1
}

// covers reports whether the tile, over all tile ids, is the whole array: every
// dimension is whole, or a distinct parallel dimension tiled as the space is.
func (b *builder) covers(t Tile, dims []int64) bool {
	used := map[int]bool{}
	for k, d := range t {
		if d.Equal(whole(b.ring, dims[k])) {
			continue
		}
		p := slices.IndexFunc(b.prog.Space.Dims[:b.parallel], func(x Dim) bool {
			return d.Equal(x.tile()) && x.Extent == dims[k]
		})
		if p < 0 || used[p] {
			return false
		}
		used[p] = true
	}
	return true
}

// alignedTile is a tile of i whose dimensions are those parallel ones that have
// the same extent, in order, or whole.
func (b *builder) alignedTile(i *hlo.Instr) Tile {
	t := make(Tile, i.Shape.Rank())
	next := 0
	for k, extent := range i.Shape.Dims {
		t[k] = whole(b.ring, extent)
		for p := next; p < b.parallel; p++ {
			if b.prog.Space.Dims[p].Extent == extent {
				t[k], next = b.prog.Space.Dims[p].tile(), p+1
				break
			}
		}
	}
	return t
}

// absentDims lists the parallel dimensions whose tile id does not occur in t.
func (b *builder) absentDims(t Tile) []int {
	var dims []int
	for p := range b.parallel {
		tid := b.prog.Space.Dims[p].Tid
		if _, isSingle := tid.Value(); isSingle {
			continue
		}
		if !slices.ContainsFunc(t, func(d DimTile) bool {
			return slices.Contains(d.Offset.Vars(), tid)
		}) {
			dims = append(dims, p)
		}
	}
	return dims
}
