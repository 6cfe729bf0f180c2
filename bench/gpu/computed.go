package main

import (
	"fmt"
	"strings"
)

// grouped is a product of groups of rows as JAX 0.10 takes jax.lax.ragged_dot apart, without
// the product itself: <G> groups of <M> rows in all, of <K> elements of type <T> each.
const grouped = `
ends = s32[<G>] parameter(0)
none = s32[1] constant({0})
before = s32[<H>] slice(ends), slice={[0:<H>]}
starts = s32[<G>] concatenate(none, before), dimensions={0}
x = <T>[<M>,<K>] parameter(1)
xg = <T>[<G>,<M>,<K>] broadcast(x), dimensions={1,2}
row = s32[<G>,<M>,<K>] iota(), iota_dimension=1
from = s32[<G>,<M>,<K>] broadcast(starts), dimensions={0}
to = s32[<G>,<M>,<K>] broadcast(ends), dimensions={0}
begun = pred[<G>,<M>,<K>] compare(from, row), direction=LE
open = pred[<G>,<M>,<K>] compare(row, to), direction=LT
own = pred[<G>,<M>,<K>] and(begun, open)
zero = <T>[] constant(0)
zeros = <T>[<G>,<M>,<K>] broadcast(zero), dimensions={}
a = <T>[<G>,<M>,<K>] select(own, xg, zeros)
`

// groupedProducts are what is computed of a, by how shapes.txt calls it: rows by the matrix of
// their group, the same transposed, and the gradient of the matrices.
var groupedProducts = map[byte]string{
	'g': `
b = <T>[<G>,<K>,<N>] parameter(2)
ROOT p = <S>[<M>,<N>] dot(a, b), lhs_contracting_dims={2,0}, rhs_contracting_dims={1,0}
`,
	'h': `
b = <T>[<G>,<K>,<N>] parameter(2)
ROOT p = <S>[<N>,<M>] dot(b, a), lhs_contracting_dims={1,0}, rhs_contracting_dims={2,0}
`,
	'w': `
y = <T>[<M>,<N>] parameter(2)
b = <T>[<G>,<M>,<N>] broadcast(y), dimensions={1,2}
ROOT p = <S>[<G>,<K>,<N>] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
`,
}

// dequantised is a product by a matrix of s8 with a scale a column, or transposed a row.
const dequantised = `
x = <T>[<M>,<K>] parameter(0)
q = s8[<A>,<B>] parameter(1)
scale = f32[<N>] parameter(2)
wide = f32[<A>,<B>] convert(q)
scales = f32[<A>,<B>] broadcast(scale), dimensions={<C>}
scaled = f32[<A>,<B>] multiply(wide, scales)
y = <T>[<A>,<B>] convert(scaled)
ROOT c = <S>[<M>,<N>] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={<R>}
`

// scaled is a product of 8-bit floats with scales: of 128 along k of each row of the first
// operand, and of 128 × 128 of the second.
const scaled = `
x = <T>[<M>,<K>] parameter(0)
s = f32[<M>,<J>] parameter(1)
y = <T>[<N>,<K>] parameter(2)
t = f32[<I>,<J>] parameter(3)
xw = f32[<M>,<K>] convert(x)
sb = f32[<M>,<J>,128] broadcast(s), dimensions={0,1}
sr = f32[<M>,<K>] reshape(sb)
xs = f32[<M>,<K>] multiply(xw, sr)
yw = f32[<N>,<K>] convert(y)
tb = f32[<I>,128,<J>,128] broadcast(t), dimensions={0,2}
tr = f32[<N>,<K>] reshape(tb)
ys = f32[<N>,<K>] multiply(yw, tr)
ROOT c = <S>[<M>,<N>] dot(xs, ys), lhs_contracting_dims={1}, rhs_contracting_dims={1}
`

// scaledSums is a dot of each 128 along k, whose results are multiplied by scales of their rows
// and columns and summed.
const scaledSums = `
x = <T>[<M>,<J>,128] parameter(0)
y = <T>[<N>,<J>,128] parameter(1)
s = f32[<M>,<J>] parameter(2)
t = f32[<N>,<J>] parameter(3)
d = f32[<J>,<M>,<N>] dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
st = f32[<J>,<M>] transpose(s), dimensions={1,0}
sw = f32[<J>,<M>,<N>] broadcast(st), dimensions={0,1}
ds = f32[<J>,<M>,<N>] multiply(d, sw)
tt = f32[<J>,<N>] transpose(t), dimensions={1,0}
tw = f32[<J>,<M>,<N>] broadcast(tt), dimensions={0,2}
all = f32[<J>,<M>,<N>] multiply(ds, tw)
zero = f32[] constant(0)
sum = f32[<M>,<N>] reduce(all, zero), dimensions={0}, to_apply=add
ROOT c = <S>[<M>,<N>] convert(sum)
`

// scaledText is one of the products with scales, for extents along n and k that 128 divides.
func scaledText(text, element, sum string, m, n, k int) string {
	return strings.NewReplacer(
		"<T>", element, "<S>", sum,
		"<M>", fmt.Sprint(m),
		"<N>", fmt.Sprint(n),
		"<K>", fmt.Sprint(k),
		"<I>", fmt.Sprint(n/128),
		"<J>", fmt.Sprint(k/128),
	).Replace(text)
}

// computedText is a product whose operands are computed: b8, of blocks with scales, d8, the same as a dot of each block, q8, of m rows of k elements by a
// matrix of k rows of s8, q8t, by one of n rows, and those of groups. It is empty for other kinds.
func computedText(element, sum, kind string, m, n, k int) string {
	matrix := map[string]string{"q8": "k", "q8t": "n"}[kind]
	switch {
	case groupedProducts[kind[0]] != "":
		return groupedText(element, sum, kind, m, n, k)
	case kind == "b8":
		return scaledText(scaled, element, sum, m, n, k)
	case kind == "d8":
		return scaledText(scaledSums, element, sum, m, n, k)
	case matrix == "":
		return ""
	}
	a, b, column, contracted := k, n, 1, 0
	if matrix == "n" {
		a, b, column, contracted = n, k, 0, 1
	}
	return strings.NewReplacer(
		"<T>", element, "<S>", sum,
		"<M>", fmt.Sprint(m),
		"<N>", fmt.Sprint(n),
		"<K>", fmt.Sprint(k),
		"<A>", fmt.Sprint(a),
		"<B>", fmt.Sprint(b),
		"<C>", fmt.Sprint(column),
		"<R>", fmt.Sprint(contracted),
	).Replace(dequantised)
}

// groupedText is a product of m rows of k elements in groups, to n columns.
func groupedText(element, sum, kind string, m, n, k int) string {
	groups := number(kind[1:])
	return strings.NewReplacer(
		"<T>", element, "<S>", sum,
		"<G>", fmt.Sprint(groups),
		"<H>", fmt.Sprint(groups-1),
		"<M>", fmt.Sprint(m),
		"<N>", fmt.Sprint(n),
		"<K>", fmt.Sprint(k),
	).Replace(grouped + groupedProducts[kind[0]])
}
