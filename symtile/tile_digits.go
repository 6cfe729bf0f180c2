package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// Arithmetic on tiles of one dimension: what an affine change of the index does
// to a run or to every digit of a dimension.

// run is a tile of stride 1 of a dimension of the extent, masked to nothing but
// the extent.
func (b *builder) run(offset, size index.Expr, extent int64) DimTile {
	r := b.ring
	return DimTile{
		Offset: offset,
		Size:   size,
		Stride: r.Const(1),
		Lower:  r.Const(0),
		Bound:  r.Const(extent),
	}
}

// shift adds by to every index. Of digits the outermost is shifted, since
// indices are their sum.
func (d DimTile) shift(by index.Expr) DimTile {
	d.Offset = d.Offset.Add(by)
	d.Lower = d.Lower.Add(by)
	d.Bound = d.Bound.Add(by)
	if d.Digits != nil {
		d.Digits = slices.Clone(d.Digits)
		d.Digits[0] = d.Digits[0].shift(by)
	}
	return d.updateUnmerged(func(x DimTile) DimTile {
		return x.shift(by)
	})
}

// updateUnmerged applies to the digits from which a run was merged what has
// been applied to the run.
func (d DimTile) updateUnmerged(f func(DimTile) DimTile) DimTile {
	if d.unmerged != nil {
		x := f(*d.unmerged)
		d.unmerged = &x
	}
	return d
}

// masked is d with its range of unmasked indices cut to [lower, bound), too.
func (d DimTile) masked(lower, bound index.Expr) DimTile {
	d.Lower = d.Lower.Max(lower)
	d.Bound = d.Bound.Min(bound)
	return d.updateUnmerged(func(x DimTile) DimTile {
		return x.masked(lower, bound)
	})
}

// scale multiplies every index by k ≥ 1. The bound is exclusive: the last index
// that is unmasked, Bound − 1, is what is scaled.
func (d DimTile) scale(k int64) DimTile {
	d.Offset = d.Offset.Scale(k)
	d.Stride = d.Stride.Scale(k)
	d.Lower = d.Lower.Scale(k)
	d.Bound = d.Bound.AddConst(-1).Scale(k).AddConst(1)
	d.Digits = mapDigits(d.Digits, func(x DimTile) DimTile {
		return x.scale(k)
	})
	return d.updateUnmerged(func(x DimTile) DimTile {
		return x.scale(k)
	})
}

// negate is the tile of the indices −x, in ascending order: the last element
// becomes the first.
func (d DimTile) negate() DimTile {
	lower, bound := d.Lower, d.Bound
	d.Offset = d.last().Neg()
	d.Lower = bound.Neg().AddConst(1)
	d.Bound = lower.Neg().AddConst(1)
	d.Digits = mapDigits(d.Digits, DimTile.negate)
	return d.updateUnmerged(DimTile.negate)
}

// mapDigits applies f to every digit; nil stays nil.
func mapDigits(digits []DimTile, f func(DimTile) DimTile) []DimTile {
	if digits == nil {
		return nil
	}
	out := make([]DimTile, len(digits))
	for k, x := range digits {
		out[k] = f(x)
	}
	return out
}

// constantStride is the stride when it is a constant.
func (d DimTile) constantStride() (int64, bool) { return d.Stride.Value() }

// isSingle reports whether the dimension has one element, whatever the sizes.
func (d DimTile) isSingle() bool { return isValue(d.Size, 1) }

// isValue reports whether e is the constant v.
func isValue(e index.Expr, v int64) bool {
	x, ok := e.Value()
	return ok && x == v
}

// joinDigits makes the tile of a dimension from digits, outermost first. Digits
// that follow each other without a gap are merged; what they were merged from
// stays in unmerged, for a reshape that follows. Where sizes are unknown and
// several digits remain, Space.Boxes gets the conditions under which they are
// one run.
func (b *builder) joinDigits(digits []DimTile, extent int64) DimTile {
	var list []DimTile
	for _, d := range digits {
		list = b.pushDigit(list, d)
	}
	zero := b.ring.Const(0)
	end := b.ring.Const(extent)
	switch len(list) {
	case 0:
		return b.run(zero, b.ring.Const(1), extent)
	case 1:
		d := list[0].masked(zero, end)
		if d.unmerged = nil; len(digits) > 1 {
			unmerged := b.digitSum(digits, zero, end)
			d.unmerged = &unmerged
		}
		return d
	}
	b.addBoxConditions(list)
	return b.digitSum(list, zero, end)
}

// digitSum is the tile of a dimension whose index is the sum of digits.
func (b *builder) digitSum(digits []DimTile, lower, bound index.Expr) DimTile {
	s := DimTile{
		Offset: b.ring.Const(0),
		Size:   b.ring.Const(1),
		Stride: b.ring.Const(0),
		Lower:  lower,
		Bound:  bound,
		Digits: digits,
	}
	for _, d := range digits {
		s.Offset = s.Offset.Add(d.Offset)
		s.Size = s.Size.Mul(d.Size)
	}
	return s
}

// pushDigit appends a digit inside of those in the list, merged with the last
// of them where possible.
func (b *builder) pushDigit(list []DimTile, d DimTile) []DimTile {
	if n := len(list); n > 0 {
		if m, ok := b.mergeDigits(list[n-1], d); ok {
			list[n-1] = m
			return list
		}
	}
	return append(list, d)
}

// mergeDigits makes one digit of an outer and an inner one, if together they
// are a run:
//
//   - an outer digit of one element only shifts the inner one; if it can be
//     masked, the inner one is masked with it, which a limit can say where the
//     inner one stays within one stride of the outer;
//   - an inner digit of one element only shifts the outer one;
//   - else size·stride of the inner digit has to be the stride of the outer.
func (b *builder) mergeDigits(outer, inner DimTile) (DimTile, bool) {
	stride, _ := outer.constantStride()
	switch {
	case outer.isSingle() && !outer.Masked():
		return inner.shift(outer.Offset), true
	case outer.isSingle() &&
		sumFits(inner.unmaskedRange(), nil, stride):
		// An inner element is valid where its row is.
		return inner.shift(outer.Offset).masked(
			b.alignToLattice(outer, outer.Lower),
			b.alignToLattice(outer, outer.Bound),
		), true
	case inner.Masked():
		return outer, false
	case inner.isSingle():
		return outer.shift(inner.Offset), true
	case inner.Size.Mul(inner.Stride) != outer.Stride:
		return outer, false
	}
	m := DimTile{
		Offset: outer.Offset.Add(inner.Offset),
		Size:   outer.Size.Mul(inner.Size),
		Stride: inner.Stride,
	}
	m.Lower = b.alignToLattice(outer, outer.Lower).Add(inner.Offset)
	m.Bound = b.alignToLattice(outer, outer.Bound).Add(inner.Offset)
	return m, true
}

// alignToLattice is the first index offset + k·stride of d that is not below
// limit: a limit of the outer digit, moved to where a row of inner ones begins.
func (b *builder) alignToLattice(d DimTile, limit index.Expr) index.Expr {
	stride, ok := d.constantStride()
	if !ok || stride == 1 {
		return limit
	}
	return limit.Sub(d.Offset).CeilDiv(stride).Scale(stride).Add(d.Offset)
}

// addBoxConditions adds to Space.Boxes the conditions under which digits are
// one run. Of any two digits one has size 1, or the inner one is full and no
// digit between them has more than one element. Concrete programs need no
// conditions.
func (b *builder) addBoxConditions(list []DimTile) {
	if b.sizes != nil {
		return
	}
	for k, outer := range list {
		for n := k + 1; n < len(list); n++ {
			clause := index.Clause{
				{Expr: outer.Size, In: index.Interval{Lo: 1, Hi: 1}},
			}
			if !list[n].maskedWhenSingle() {
				clause = append(clause, index.Bound{
					Expr: list[n].Size,
					In:   index.Interval{Lo: 1, Hi: 1},
				})
			}
			if n > k+1 {
				for _, middle := range list[k+1 : n] {
					clause = append(clause, index.Bound{
						Expr: middle.Size,
						In:   index.Interval{Lo: 2, Hi: middle.Size.Range().Hi},
					})
				}
			} else if full, ok := b.fullSize(outer, list[n]); ok {
				clause = append(clause, index.Bound{
					Expr: list[n].Size,
					In:   index.Interval{Lo: full, Hi: full},
				})
			}
			if reduced, isTrue := clause.Reduce(); !isTrue {
				b.prog.Space.Boxes = b.prog.Space.Boxes.With(reduced)
			}
		}
	}
}

// maskedWhenSingle reports whether the element of d can be masked when the size
// of d is 1.
func (d DimTile) maskedWhenSingle() bool {
	one := d.Offset.Ring().Const(1)
	with := map[index.Expr]index.Expr{}
	if _, isVariable := d.Size.Variable(); isVariable {
		with[d.Size] = one
	}
	return DimTile{
		Offset: d.Offset.Subst(with),
		Size:   one,
		Stride: d.Stride,
		Lower:  d.Lower,
		Bound:  d.Bound,
	}.Masked()
}

// fullSize is the size at which inner reaches from one index of outer to the
// next and covers the whole of its range, so that the two are a run; false
// where there is no such size.
func (b *builder) fullSize(outer, inner DimTile) (int64, bool) {
	o, ok := outer.constantStride()
	i, ok2 := inner.constantStride()
	if !ok || !ok2 || i == 0 ||
		o%i != 0 || !b.canBeFull(inner, o) {
		return 0, false
	}
	return o / i, true
}

// canBeFull reports whether d is its whole range at the size that spans extent:
// its offset is then 0, because it is made of the ids of dimensions that have
// one tile only, and nothing but the extent masks it.
func (b *builder) canBeFull(d DimTile, extent int64) bool {
	step, ok := d.constantStride()
	bound, isConstant := d.Bound.Value()
	if !ok || !isConstant || bound > extent ||
		bound <= extent-step ||
		d.Lower != b.ring.Const(0) {
		return false
	}
	zero := map[index.Expr]index.Expr{}
	for _, v := range d.Offset.Vars() {
		k := slices.IndexFunc(b.prog.Space.Dims, func(x Dim) bool {
			return x.Tid == v
		})
		if k >= 0 &&
			b.prog.Space.Dims[k].Extent*step <= extent {
			zero[v] = b.ring.Const(0)
		}
	}
	return d.Offset.Subst(zero) == b.ring.Const(0)
}
