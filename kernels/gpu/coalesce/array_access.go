package coalesce

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A ArrayAccess is an array that the elements of a box are loaded from or stored to.
type ArrayAccess struct {
	Index  []index.Expr // the variables of an element's index in the box; constants where there is one
	Offset index.Expr   // of the element at Index, in elements from the start of the array
	Where  []index.Expr // none is negative where the element is there
	Bytes  int64        // of an element
	Shared bool         // the array may come through shared memory instead, in an order of its own
}

// NonNegative is the condition x ≥ 0 in a form in which those that always agree
// are equal. Where x ≡ r (mod m), x ≥ 0 says that x − r is not negative, for
// 0 ≤ r < m: neighbouring elements of a vector get the same condition.
func NonNegative(x index.Expr) index.Expr {
	if m, r := x.Congruence(); m > 1 {
		return x.AddConst(-(((r % m) + m) % m))
	}
	return x
}

// A accessPattern is how a box lies in an array: in bytes along each dimension where that
// is one number, else by the row-major number of an element.
type accessPattern struct {
	bytes      int64
	alignments []int64 // where in a sector boxes begin: 1, 2 or 4
	strides    []int64
	table      []int64
	widths     []int64 // elements along each dimension that one instruction moves
	revisits   bool    // elements lie at the same place
	shared     bool
	unknown    bool
}

// maxTable bounds the elements of a box that are looked at one by one.
const maxTable = 1 << 16

// pattern is how a box of the sizes lies in the array. Of a box too large to look at
// one by one it may be unknown.
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

// maxSectorOffsets is how many places of a sector are looked at that a box may begin at.
const maxSectorOffsets = 4

// sectorOffsets are places of a sector at which x elements of a size end, whatever the
// variables are.
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
		at[k], from[k] = v.Range().Lo,
			slices.Index(r.Index, v)
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

// width is how many elements along dimension d, which has n, one instruction can
// move: those that follow each other, see Follow, and are masked together.
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
		apart := func(m []index.Expr) bool {
			return !slices.Equal(m, masks[0])
		}
		if Contiguous(at[:w]) &&
			!slices.ContainsFunc(masks[:w], apart) {
			break
		}
	}
	return w
}

// vectorWidth is how many elements that follow each other by a spread one instruction
// can move.
func (l *accessPattern) vectorWidth(s *ThreadLayout) int64 {
	d := FastestDim(s.Sizes, s.Inner)
	if d >= 0 && !l.unknown {
		return l.widths[d]
	}
	return 1
}

// offsets are those of the elements of a side of a spread in their order: bytes,
// or row-major numbers for a table.
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

// maxCounted bounds the elements of a box whose requests are counted one by one.
const maxCounted = 1 << 13

// count is what going over the box by a spread moves of the array, whatever is
// masked: the sum over the requests of all warps, those for the same places
// again left out, and over maxSectorOffsets boxes.
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

// A counter adds up requests.
type counter struct {
	pattern                    *accessPattern
	layout                     *ThreadLayout
	outerOffsets, innerOffsets []int64
	width                      int64 // elements of an instruction
	seen                       []map[[2]int64]bool
	elements                   int64
	sum                        Count
}

// extrapolated is the count of all of the box by the part that was counted.
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

// vectors counts the requests of a warp for the vectors of a round.
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

// request counts one for width elements from each of the places on.
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

// nvidiaSector is the bytes of a sector that is not said otherwise: see Sectors.
const nvidiaSector = 32

// touchedUnits is how many units of memory hold bytes from each of the places after base
// on.
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
