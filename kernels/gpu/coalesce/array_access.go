package coalesce

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// An ArrayAccess is an array that the elements of a box are loaded from or
// stored to.
type ArrayAccess struct {
	// Index is the variables of an element's index in the box; a constant for a
	// dimension of extent 1.
	Index []index.Expr
	// Offset is the position of the element at Index, in elements from the
	// start of the array.
	Offset index.Expr
	// Where are expressions none of which is negative where the element is
	// valid.
	Where []index.Expr
	// Bytes is the size of an element.
	Bytes int64
	// Shared reports that the array may be staged through shared memory
	// instead, and be moved in an order of its own.
	Shared bool
}

// NonNegative is the condition x ≥ 0 in a form in which conditions that always
// agree are equal. Where x ≡ r (mod m) with 0 ≤ r < m, x ≥ 0 exactly where x −
// r ≥ 0: neighbouring elements of a vector get the same condition.
func NonNegative(x index.Expr) index.Expr {
	if m, r := x.Congruence(); m > 1 {
		return x.AddConst(-(((r % m) + m) % m))
	}
	return x
}

// An accessPattern is the footprint of a box in an array: strides in bytes
// along each dimension where there are such, else a table of the byte offset of
// every element.
type accessPattern struct {
	// bytes is the size of an element.
	bytes int64
	// alignments are the offsets within a sector at which boxes begin: 1, 2 or
	// 4 of them.
	alignments []int64
	// strides are in bytes, one for each dimension of the box.
	strides []int64
	// table is the byte offset of every element, in row-major order of the box;
	// nil where strides describe it.
	table []int64
	// widths is, for each dimension, the elements along it that one instruction
	// can move.
	widths []int64
	// revisits reports that several elements of the box are at the same
	// address.
	revisits bool
	// shared is ArrayAccess.Shared.
	shared bool
	// unknown reports that the offsets have no strides and are too many for a
	// table.
	unknown bool
}

// maxTable bounds the elements of a box in a table.
const maxTable = 1 << 16

// pattern is the access pattern of a box of the sizes.
func (r ArrayAccess) pattern(sizes []int64) *accessPattern {
	l := &accessPattern{
		alignments: []int64{0},
		bytes:      r.Bytes,
		strides:    make([]int64, len(sizes)),
		widths:     slices.Repeat([]int64{1}, len(sizes)),
		shared:     r.Shared,
	}
	terms, _ := r.Offset.Terms()
	rest := r.Offset
	for _, t := range terms {
		if d := slices.Index(r.Index, t.Of); d >= 0 {
			l.strides[d] = t.Factor * r.Bytes
			rest = rest.Sub(t.Of.Scale(t.Factor))
			continue
		}
		if slices.ContainsFunc(t.Of.Vars(), func(v index.Expr) bool {
			return slices.Contains(r.Index, v)
		}) {
			l.unknown = !r.tabulate(l, sizes)
			return l
		}
	}
	for d, n := range sizes {
		l.revisits = l.revisits ||
			n > 1 && l.strides[d] == 0
		if n > 1 && l.strides[d] == r.Bytes {
			l.widths[d] = r.width(d, n)
		}
	}
	l.alignments = sectorOffsets(rest, r.Bytes)
	return l
}

// maxSectorOffsets bounds the offsets within a sector at which boxes are
// counted.
const maxSectorOffsets = 4

// sectorOffsets are offsets within a sector at which x elements of a size end,
// for all values of the variables, from the congruence of x. Three of them are
// cut to two, so that their number divides maxSectorOffsets.
func sectorOffsets(x index.Expr, size int64) (all []int64) {
	m, r := x.Congruence()
	step := m * size % nvidiaSector
	for at := r * size; len(all) < maxSectorOffsets; at += step {
		at = (at%nvidiaSector + nvidiaSector) % nvidiaSector
		if slices.Contains(all, at) {
			break
		}
		all = append(all, at)
	}
	if len(all) == maxSectorOffsets-1 {
		all = all[:2]
	}
	return all
}

// tabulate evaluates the offset of every element, unless there are too many.
func (r ArrayAccess) tabulate(l *accessPattern, sizes []int64) bool {
	n, ok := index.Product(sizes)
	vars := r.Offset.Vars()
	code, err := index.Compile(
		vars, []index.Expr{r.Offset},
	)
	if !ok || n > maxTable || err != nil {
		return false
	}
	at := make([]int64, len(vars))
	from := make([]int, len(vars))
	for k, v := range vars {
		at[k] = v.Range().Lo
		from[k] = slices.Index(r.Index, v)
	}
	l.table = make([]int64, 0, n)
	l.revisits = true
	index := make([]int64, len(sizes))
	first := make([]int64, len(sizes))
	scratch := make([]int64, code.ScratchLen())
	var out [1]int64
	for more := true; more; more = next(index, first, sizes) {
		for k, d := range from {
			if d >= 0 {
				at[k] = index[d]
			}
		}
		code.Eval(at, out[:], scratch)
		l.table = append(l.table, out[0]*r.Bytes)
	}
	for d, n := range sizes {
		if n > 1 && n%2 == 0 {
			l.widths[d] = r.width(d, n)
		}
	}
	return true
}

// width is the number of elements along dimension d, of extent n, that one
// instruction can move: a power of two of elements that are contiguous, see
// Contiguous, and masked together.
func (r ArrayAccess) width(d int, n int64) int64 {
	w := int64(1)
	for 2*w*r.Bytes <= maxVector && n%(2*w) == 0 {
		w *= 2
	}
	z := r.Index[d].Ring().Var(index.Variable{
		Name: "vector",
		Hi:   n/w - 1,
		Role: index.RoleElement,
	})
	at := make([]index.Expr, w)
	masks := make([][]index.Expr, w)
	for j := range w {
		with := index.Substitution{
			With: map[index.Expr]index.Expr{
				r.Index[d]: z.Scale(w).AddConst(j),
			},
		}
		at[j] = with.Apply(r.Offset)
		for _, x := range r.Where {
			if x = NonNegative(with.Apply(x)); x.Range().Lo < 0 {
				masks[j] = append(masks[j], x)
			}
		}
	}
	for ; w > 1; w /= 2 {
		differs := func(m []index.Expr) bool {
			return !slices.Equal(m, masks[0])
		}
		if Contiguous(at[:w]) &&
			!slices.ContainsFunc(masks[:w], differs) {
			break
		}
	}
	return w
}

// vectorWidth is the number of elements, contiguous in a thread layout, that
// one instruction can move.
func (l *accessPattern) vectorWidth(s *ThreadLayout) int64 {
	d := FastestDim(s.Sizes, s.Inner)
	if d >= 0 && !l.unknown {
		return l.widths[d]
	}
	return 1
}

// offsets are those of the elements of one side of a layout, in their order:
// bytes, or row-major numbers of the box for a table.
func (l *accessPattern) offsets(s *ThreadLayout, side []int) []int64 {
	strides := l.strides
	if l.table != nil {
		strides = hlo.Shape{Dims: s.Sizes}.Strides()
	}
	all := []int64{0}
	for _, d := range side {
		long := make(
			[]int64,
			0,
			int64(len(all))*s.Sizes[d],
		)
		for _, at := range all {
			for k := range s.Sizes[d] {
				long = append(long, at+k*strides[d])
			}
		}
		all = long
	}
	return all
}

// maxCounted bounds the elements of a box whose requests are counted one by
// one; a larger box is extrapolated.
const maxCounted = 1 << 13

// count is what a thread layout moves of the array, masks ignored: the sum over
// the requests of all warps, repeated ones left out, and over maxSectorOffsets
// boxes.
func (l *accessPattern) count(s *ThreadLayout) Count {
	if l.unknown {
		return Count{}
	}
	c := counter{
		pattern:      l,
		layout:       s,
		outerOffsets: l.offsets(s, s.Outer),
		innerOffsets: l.offsets(s, s.Inner),
	}
	c.width = min(s.Vector, l.vectorWidth(s))
	warps := index.CeilDiv(s.InnerThreads*s.OuterThreads, warpThreads)
	c.seen = make([]map[[2]int64]bool, warps)
	for o := range s.OuterRounds {
		for i := range s.InnerRounds {
			for w := range warps {
				c.vectors(index.Int(w), index.Int(o), index.Int(i))
			}
			if c.elements >= maxCounted {
				return c.extrapolated()
			}
		}
	}
	return c.sum
}

// A counter adds up the requests of a thread layout for an array.
type counter struct {
	pattern *accessPattern
	layout  *ThreadLayout
	// outerOffsets and innerOffsets are the offsets of the rows, and of the
	// elements within a row.
	outerOffsets, innerOffsets []int64
	// width is the elements of an instruction.
	width int64
	// seen is, for each warp, a hash of the requests that it has made, where
	// elements are revisited.
	seen []map[[2]int64]bool
	// elements is the number of elements counted so far.
	elements int64
	sum      Count
}

// extrapolated is the count of the whole box, in proportion to the part that
// has been counted.
func (c *counter) extrapolated() Count {
	all := c.layout.OuterElements * c.layout.InnerElements
	of := func(n int64) int64 {
		return (n*all + c.elements - 1) / c.elements
	}
	return Count{
		of(c.sum.Requests),
		of(c.sum.Bytes),
		of(c.sum.Sectors),
		of(c.sum.Lines),
		of(c.sum.Ideal),
	}
}

// vectors counts the requests of a warp for the vectors of one round.
func (c *counter) vectors(warp, out, in index.Int) {
	for j := int64(0); j < c.layout.Vector; j += c.width {
		var at [warpThreads]int64
		n := 0
		for lane := range min(index.Int(warpThreads), index.Int(
			c.layout.InnerThreads*c.layout.OuterThreads,
		)) {
			thread := warp*warpThreads + lane
			o := int64(outerIndex(c.layout, thread, out))
			i := int64(innerIndex(c.layout, thread, in))
			if o >= c.layout.OuterElements || i >= c.layout.InnerElements {
				continue
			}
			x := c.outerOffsets[o] + c.innerOffsets[i+j]
			if c.pattern.table != nil {
				x = c.pattern.table[x]
			}
			at[n] = x
			n++
		}
		if c.elements += int64(n) * c.width; n > 0 {
			c.request(int64(warp), at[:n])
		}
	}
}

// request counts an instruction that moves width elements from each of the
// offsets on.
func (c *counter) request(warp int64, at []int64) {
	bytes := c.width * c.pattern.bytes
	if c.pattern.revisits {
		key := [2]int64{at[0], int64(len(at))}
		for k, x := range at {
			key[1] = key[1]*31 +
				(x-at[0])*int64(k+1)
		}
		if c.seen[warp] == nil {
			c.seen[warp] = map[[2]int64]bool{}
		}
		if c.seen[warp][key] {
			return
		}
		c.seen[warp][key] = true
		slices.Sort(at)
		at = slices.Compact(at)
	}
	n := int64(len(at)) * bytes
	for _, base := range c.pattern.alignments {
		c.sum = c.sum.plus(
			Count{
				1, n, touchedUnits(at, base, bytes, nvidiaSector),
				touchedUnits(at, base, bytes, 4*nvidiaSector),
				index.CeilDiv(n, nvidiaSector),
			},
			maxSectorOffsets/int64(len(c.pattern.alignments)),
		)
	}
}

// nvidiaSector is the bytes of a sector where nothing else is stated: see
// layout.Sectors.
const nvidiaSector = 32

// touchedUnits is the number of units of memory, sectors or lines, that hold
// bytes from each of the offsets after base on.
func touchedUnits(at []int64, base, bytes, unit int64) int64 {
	var seen [2 * warpThreads]int64
	n := int64(0)
	lo := int64(0)
	hi := int64(-1)
	for _, x := range at {
		first := index.FloorDiv(x+base, unit)
		last := index.FloorDiv(x+base+bytes-1, unit)
		for u := first; u <= last; u++ {
			if n > 0 && lo <= u && u <= hi &&
				slices.Contains(seen[:n], u) {
				continue
			}
			if n == 0 {
				lo, hi = u, u
			}
			lo = min(lo, u)
			hi = max(hi, u)
			seen[n] = u
			n++
		}
	}
	return n
}
