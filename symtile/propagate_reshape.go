package symtile

import (
	"maps"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

func propagateReshape(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	in, err := b.reshape(
		i, i.Operands[0].Shape.Dims,
		i.Shape.Dims, out,
	)
	return []Tile{in}, err
}

// reshape derives the operand's tile of a reshape between extents from and to.
// The tiles of the result's dimensions are written as digits of the linear
// index, which are divided where the operand's dimensions begin. That is done
// for each minimal group of dimensions with the same number of elements on both
// sides.
func (b *builder) reshape(
	i *hlo.Instr, from, to []int64, out Tile,
) (Tile, error) {
	in := make(Tile, len(from))
	for d, extent := range from {
		in[d] = whole(b.ring, extent)
	}
	if slices.Contains(from, 0) {
		return in, nil
	}
	groups, err := b.attachUnitDims(
		i, from, to, out, indexing.ReshapeGroups(from, to),
	)
	if err != nil {
		return nil, err
	}
	for _, w := range groups {
		if len(w.From) == 1 && len(w.To) == 1 {
			in[w.From[0]] = out[w.To[0]]
			continue
		}
		digits, err := b.linearize(
			i, gatherAt(to, w.To), gatherAt(out, w.To),
		)
		if err != nil {
			return nil, err
		}
		dims, err := b.delinearize(
			i, gatherAt(from, w.From), digits,
		)
		if err != nil {
			return nil, err
		}
		for k, d := range w.From {
			in[d] = dims[k]
		}
	}
	return in, nil
}

// attachUnitDims adds the result's dimensions of extent 1 to the groups where
// their tile can have more than one element, as it does when it is the masked
// tile of a larger array: to the group of the next dimension, or the last. Between
// arrays of one element each there is no group yet; the operand's first
// dimension makes one. A scalar operand has none, and the size must be 1.
func (b *builder) attachUnitDims(
	i *hlo.Instr, from, to []int64,
	out Tile, groups []indexing.DimGroup,
) ([]indexing.DimGroup, error) {
	for d, extent := range to {
		if extent != 1 || out[d].isSingle() {
			continue
		}
		if len(groups) == 0 && len(from) > 0 {
			groups = []indexing.DimGroup{{From: []int{0}}}
		}
		if len(groups) == 0 {
			err := b.require(i, "reshape-unit", index.Clause{
				{
					Expr: out[d].Size,
					In:   index.Interval{Lo: 1, Hi: 1},
				},
			})
			if err != nil {
				return nil, err
			}
			continue
		}
		k := 0
		for k < len(groups)-1 &&
			groups[k].To[len(groups[k].To)-1] < d {
			k++
		}
		groups[k].To = insertSorted(groups[k].To, d)
	}
	return groups, nil
}

// insertSorted inserts d into an ascending list.
func insertSorted(list []int, d int) []int {
	var out []int
	for k, x := range list {
		if x > d {
			return append(append(out, d), list[k:]...)
		}
		out = append(out, x)
	}
	return append(out, d)
}

// gatherAt is the elements of from at the positions.
func gatherAt[T any](from []T, at []int) []T {
	out := make([]T, len(at))
	for k, d := range at {
		out[k] = from[d]
	}
	return out
}

// linearize turns the tiles of dimensions into digits of their linear index.
// Digits that were merged into a run are taken apart again, where the run's own
// mask allows it.
func (b *builder) linearize(
	i *hlo.Instr, extents []int64, tiles []DimTile,
) ([]DimTile, error) {
	var digits []DimTile
	inner := hlo.Elements(extents)
	for k, d := range tiles {
		inner /= extents[k]
		if d.unmerged != nil && !d.unmerged.sumMasked() {
			d = *d.unmerged
		}
		if d.Digits != nil && d.sumMasked() {
			var err error
			if d, err = b.requireRun(i, d); err != nil {
				return nil, err
			}
		}
		d = d.scale(inner)
		if d.Digits == nil {
			digits = append(digits, d)
		}
		digits = append(digits, d.Digits...)
	}
	for _, d := range digits {
		if _, ok := d.constantStride(); !ok {
			return nil, refuse(i, "reshape-stride", "a dimension is read with the stride %s, which is not a constant", d.Stride)
		}
	}
	return digits, nil
}

// delinearize makes the tiles of dimensions from digits of their linear index,
// the innermost dimension first.
func (b *builder) delinearize(
	i *hlo.Instr, extents []int64, digits []DimTile,
) (Tile, error) {
	tile := make(Tile, len(extents))
	for k := len(extents) - 1; k > 0; k-- {
		high, low, err := b.split(i, digits, extents[k])
		if err != nil {
			return nil, err
		}
		tile[k], digits = b.joinDigits(low, extents[k]), high
	}
	tile[0] = b.joinDigits(digits, extents[0])
	return tile, nil
}

// split divides the sum x of digits by f: x floordiv f is the sum of high, and
// x mod f of low. That holds where the digits inside of a row of f elements
// cannot carry into the next row.
//
// Digits whose stride is a multiple of f are whole rows; once a digit and those
// inside of it stay within a row, all of them are in low. A digit that crosses
// rows is divided itself, by splitAcrossRows.
func (b *builder) split(
	i *hlo.Instr, digits []DimTile, f int64,
) (high, low []DimTile, err error) {
	rest := b.ring.Const(0) // of the digits outside, added to the next one
	for n, d := range digits {
		d = d.shift(rest)
		inner := digits[n+1:]
		stride, _ := d.constantStride()
		if stride%f == 0 { // whole rows
			rest = d.Offset.Mod(f)
			high = append(high, d.divided(rest, f))
			continue
		}
		if sumFits(d.unmaskedRange(), inner, f) {
			return high, append(append(low, d), inner...), nil
		}
		rows, places, err := b.splitAcrossRows(i, d, inner, f)
		return append(high, rows), append(low, places...), err
	}
	if rest != b.ring.Const(0) {
		low = append(low, b.run(rest, b.ring.Const(1), f))
	}
	return high, low, nil
}

// splitAcrossRows divides digit d, which crosses rows of f elements, and the
// digits inside of it. Where its stride does not divide f, or the digits inside
// can carry, these digits have to be one run first.
func (b *builder) splitAcrossRows(
	i *hlo.Instr, d DimTile, inner []DimTile, f int64,
) (
	rows DimTile, places []DimTile, err error,
) {
	stride, _ := d.constantStride()
	rest := d.Offset.Mod(stride)
	crossingDigits := []DimTile{d}
	if f%stride != 0 ||
		!sumFits(rest.Range(), inner, stride) {
		crossingDigits = append(crossingDigits, inner...)
		if d, err = b.requireOneRun(i, crossingDigits); err != nil {
			return d, nil, err
		}
		if stride, _ = d.constantStride(); f%stride != 0 {
			err = b.require(i, "reshape-stride", index.Clause{
				{Expr: d.Size, In: index.Interval{Lo: 1, Hi: 1}},
			})
			if err != nil {
				return d, nil, err
			}
			stride = 1
		}
		rest = d.Offset.Mod(stride)
		inner = nil
	}
	if err = b.requireAligned(i, crossingDigits, stride, f/stride); err != nil {
		return d, nil, err
	}
	rows, at := b.splitRows(
		d.divided(rest, stride), f/stride,
	)
	places = append(
		[]DimTile{at.scale(stride)}, inner...,
	)
	if len(inner) > 0 {
		places[1] = inner[0].shift(rest)
	} else if rest != b.ring.Const(0) {
		places = append(
			places,
			b.run(rest, b.ring.Const(1), f),
		)
	}
	return rows, places, nil
}

// requireOneRun requires that digits are one run and returns it.
func (b *builder) requireOneRun(i *hlo.Instr, digits []DimTile) (DimTile, error) {
	if len(digits) == 1 {
		return digits[0], nil
	}
	sum := b.digitSum(
		digits, b.ring.Const(0), b.ring.Const(0),
	)
	sum.Bound = sum.last().AddConst(1)
	return b.requireRun(i, sum)
}

// divided is the tile of (x − rest)/f, where rest is x mod f for every index x.
func (d DimTile) divided(rest index.Expr, f int64) DimTile {
	stride, _ := d.constantStride()
	return DimTile{
		Offset: d.Offset.Sub(rest).Div(f),
		Size:   d.Size,
		Stride: d.Offset.Ring().Const(max(1, stride/f)), // of one element when f is more
		Lower:  d.Lower.Sub(rest).CeilDiv(f),
		Bound:  d.Bound.Sub(rest).CeilDiv(f),
	}
}

// sumFits reports whether an index in r and the indices of the digits inside of
// it sum to [0, f).
func sumFits(r index.Interval, inner []DimTile, f int64) bool {
	for _, x := range inner {
		s := x.unmaskedRange()
		r = r.Add(s)
	}
	return r.Lo >= 0 && r.Hi < f
}

// requireAligned requires that a run respects rows of e of its steps: it stays
// within one row, or it is whole rows, or its size divides both e and its
// offset. The run is made of digits; of the first that has more than one
// element all of those inside of it are full, so that its size and the offsets
// of those outside decide.
//
// A condition such as "e divides the size and every coefficient of the offset"
// is one bound: remainders are not negative, so that their sum is 0 exactly
// when each of them is.
func (b *builder) requireAligned(
	i *hlo.Instr, digits []DimTile, step, e int64,
) error {
	offset := b.ring.Const(0)
	var first index.Clause // a digit farther out has more than one element
	for _, d := range digits {
		stride, _ := d.constantStride()
		offset = offset.Add(d.Offset)
		at := offset.Sub(offset.Mod(step)).Div(step)
		size := d.Size.Scale(max(1, stride/step))
		if at.Mod(e).Range().Hi+size.Range().Hi > e {
			clause := append(append(index.Clause{}, first...), index.Bound{
				Expr: d.Size,
				In:   index.Interval{Lo: 1, Hi: 1},
			})
			err := b.require(
				i, "reshape-expand",
				append(clause, b.rowsOf(at, size, e)...),
			)
			if err != nil {
				return err
			}
		}
		first = append(first, index.Bound{
			Expr: d.Size,
			In: index.Interval{Lo: 2, Hi: max(
				2, d.Size.Range().Hi,
			)},
		})
	}
	return nil
}

// rowsOf is the conditions that a run of so many elements, from an offset, is
// whole rows of e elements, or within a row.
func (b *builder) rowsOf(offset, size index.Expr, e int64) index.Clause {
	zero := index.Interval{Lo: 0, Hi: 0}
	parts, linear := b.linearParts(offset)
	if !linear {
		if offset.Mod(e).Range() == zero {
			return index.Clause{{Expr: size.Mod(e), In: zero}}
		}
		return nil
	}
	positive := size.Range().Lo > 0
	wholeRows := []index.Expr{size.Mod(e)}
	withinRow := []index.Expr{}
	if positive {
		withinRow = append(
			withinRow, b.ring.Const(e).ModExpr(size),
		)
	}
	for _, c := range parts {
		wholeRows = addRemainder(wholeRows, c.Mod(e))
		if positive {
			withinRow = addRemainder(withinRow, c.ModExpr(size))
		}
	}
	if !positive {
		return index.Clause{{Expr: sumOf(wholeRows), In: zero}}
	}
	return index.Clause{
		{Expr: sumOf(wholeRows), In: zero},
		{Expr: sumOf(withinRow), In: zero},
	}
}

// addRemainder adds a remainder to a set of them.
func addRemainder(set []index.Expr, x index.Expr) []index.Expr {
	if slices.Contains(set, x) {
		return set
	}
	return append(set, x)
}

// sumOf is the sum of terms.
func sumOf(terms []index.Expr) index.Expr {
	sum := terms[0]
	for _, x := range terms[1:] {
		sum = sum.Add(x)
	}
	return sum
}

// linearParts splits an offset that is linear in the tile ids into its constant
// part and its coefficients. Offsets of rows that splitRows made are linear
// too, though their normal form does not show it; rowParts remembers them.
func (b *builder) linearParts(offset index.Expr) (parts []index.Expr, linear bool) {
	if parts, linear = b.rowParts[offset]; linear {
		return parts, true
	}
	zeroed := map[index.Expr]index.Expr{}
	for _, v := range offset.Vars() {
		if x, _ := v.Variable(); x.Role != index.RoleTileSize {
			zeroed[v] = b.ring.Const(0)
		}
	}
	rest := offset.Subst(zeroed)
	sum := rest
	parts = []index.Expr{rest}
	for _, v := range offset.Vars() {
		if _, isTile := zeroed[v]; !isTile {
			continue
		}
		one := maps.Clone(zeroed)
		one[v] = b.ring.Const(1)
		c := offset.Subst(one).Sub(rest)
		parts, sum = append(parts, c), sum.Add(c.Mul(v))
	}
	return parts, sum == offset
}

// splitRows divides a run of stride 1 that is aligned to rows of q elements
// into the rows and the elements within a row.
func (b *builder) splitRows(run DimTile, q int64) (rows, places DimTile) {
	r := b.ring
	zero := r.Const(0)
	end := r.Const(q)
	rows = DimTile{
		Offset: run.Offset.Div(q),
		Size:   run.Size.CeilDiv(q),
		Stride: r.Const(1),
		Lower:  run.Lower.Div(q),
		Bound:  run.Bound.CeilDiv(q),
	}
	if parts, linear := b.linearParts(run.Offset); linear { // whole rows divide in parts; else there is one row
		for k, c := range parts {
			parts[k] = c.Div(q)
		}
		b.rowParts[rows.Offset] = parts
	}
	places = DimTile{
		Offset: run.Offset.Mod(q),
		Size:   run.Size.Min(end),
		Stride: r.Const(1),
		Lower:  zero,
		Bound:  end,
	}
	start := rows.Offset.Scale(q)
	if run.Bound.Mod(q) != zero {
		places.Bound = run.Bound.Sub(start).Min(end)
	}
	oneRow := rows.isSingle() ||
		run.Offset.Mod(q).Range().Hi+
			run.Size.Range().Hi <= q
	if oneRow && run.Lower.Mod(q) != zero {
		places.Lower = run.Lower.Sub(start).Max(zero)
	}
	return rows, places
}

// requireRun makes a run of a dimension of digits: it requires that for any two
// neighbouring digits the outer has size 1 or the inner is full.
func (b *builder) requireRun(i *hlo.Instr, d DimTile) (DimTile, error) {
	if d.Digits == nil {
		return d, nil
	}
	r := b.ring
	run := DimTile{
		Offset: d.Offset,
		Size:   d.Size,
		Stride: d.Digits[len(d.Digits)-1].Stride,
		Lower:  r.Const(0),
		Bound:  r.Const(1),
	}
	for k, x := range d.Digits {
		run.Lower = run.Lower.Add(
			x.Offset.Max(x.Lower),
		)
		run.Bound = run.Bound.Add(x.last().Min(x.Bound.AddConst(-1)))
		if k == 0 {
			continue
		}
		clause := index.Clause{
			{
				Expr: d.Digits[k-1].Size,
				In:   index.Interval{Lo: 1, Hi: 1},
			},
		}
		if full, ok := b.fullSize(d.Digits[k-1], x); ok {
			clause = append(clause, index.Bound{
				Expr: x.Size,
				In:   index.Interval{Lo: full, Hi: full},
			})
		}
		if err := b.require(i, "digits", clause); err != nil {
			return DimTile{}, err
		}
	}
	if run.Lower == run.Offset {
		run.Lower = r.Const(0)
	}
	run.Lower = run.Lower.Max(d.Lower)
	run.Bound = run.Bound.Min(d.Bound)
	return run, nil
}
