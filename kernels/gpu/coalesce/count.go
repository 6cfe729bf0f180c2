package coalesce

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// A Point is one element that a thread touches, at byte Offset.
type Point struct {
	Lane, Loop, Element int64
	// Offset is that of the element's first byte.
	Offset int64
}

// A Count is what accesses move.
type Count struct {
	// Requests is the number of instructions of a warp that touch memory.
	Requests int64
	// Bytes is the number of distinct bytes that each request asks for, added
	// up.
	Bytes int64
	// Sectors and Lines are how many of these each request touches, added up.
	Sectors int64
	Lines   int64
	// Ideal is the fewest sectors that could hold the bytes of each request,
	// added up.
	Ideal int64
}

// plus is c and d the given number of times.
func (c Count) plus(d Count, times int64) Count {
	return Count{
		c.Requests + d.Requests*times,
		c.Bytes + d.Bytes*times,
		c.Sectors + d.Sectors*times,
		c.Lines + d.Lines*times,
		c.Ideal + d.Ideal*times,
	}
}

// A WarpCount is the accesses of one warp.
type WarpCount struct {
	// Block is its block, along each dimension.
	Block []int64
	// Warp is its number in the block.
	Warp int64
	// PerRequest adds up the requests on their own; PerWarp counts a sector
	// once for all of the warp's requests, as if a cache kept it between them.
	PerRequest, PerWarp Count
}

// A Coalescing is how the accesses of a grid use the sectors that they touch.
type Coalescing struct {
	// Vector is the elements that a thread touches with one instruction.
	Vector int64
	// Size is the size of sectors and lines.
	Size layout.Sectors
	// Warps is the number of warps that touch memory.
	Warps int64
	// PerRequest and PerWarp add up all warps, see WarpCount.
	PerRequest, PerWarp Count
	// Worst is the warp that touches the most sectors over ideal ones.
	Worst WarpCount
}

// Wasted is the bytes of touched sectors that were not asked for.
func (c Coalescing) Wasted() int64 {
	return c.PerRequest.Sectors*c.Size.Sector - c.PerRequest.Bytes
}

// Mean is sectors over ideal ones, of all requests together; 1 is fully
// coalesced.
func (c Coalescing) Mean() float64 { return ratio(c.PerRequest) }

// ratio is sectors over ideal ones.
func ratio(c Count) float64 {
	return float64(c.Sectors) /
		float64(max(c.Ideal, 1))
}

// Bounds of the evaluation: maxPoints of the elements, maxGrid of the blocks.
const (
	maxPoints = 1 << 26
	maxGrid   = 1 << 22
)

// Coalescing evaluates the access of every warp and counts. Each instruction of
// a thread touches vector elements, which must divide the elements of a thread.
//
// Blocks that differ by whole lines, and in nothing that masks depend on, have
// equal counts and are evaluated once. A grid with more kinds of blocks than
// can be evaluated is an error.
func (x *Access) Coalescing(vector int64, size layout.Sectors) (Coalescing, error) {
	size, err := size.WithDefaults()
	if err != nil {
		return Coalescing{}, err
	}
	n := x.Assignment.elements()
	if vector < 1 || n%vector != 0 {
		return Coalescing{}, fmt.Errorf("vectors of %d elements do not divide the %d of a thread", vector, n)
	}
	c := Coalescing{Vector: vector, Size: size}
	e, err := x.evaluator(size.Line)
	if err != nil {
		return c, err
	}
	for _, b := range e.classes {
		for w := x.Warp.Range().Lo; w <= x.Warp.Range().Hi; w++ {
			c.add(
				x.CountPoints(
					b.block, w,
					e.points(b.block, w), vector,
					size,
				),
				b.blocks,
			)
		}
	}
	return c, nil
}

// add adds the count of a warp, for so many warps that are like it.
func (c *Coalescing) add(w WarpCount, times int64) {
	if w.PerRequest.Requests == 0 {
		return
	}
	c.Warps += times
	c.PerRequest = c.PerRequest.plus(w.PerRequest, times)
	c.PerWarp = c.PerWarp.plus(w.PerWarp, times)
	if c.Worst.PerRequest.Requests == 0 ||
		ratio(w.PerRequest) > ratio(c.Worst.PerRequest) {
		c.Worst = w
	}
}

// WarpOf lists the elements that one warp of a block touches, by offset, and
// counts them.
func (x *Access) WarpOf(
	block []int64, warp, vector int64, size layout.Sectors,
) ([]Point, WarpCount, error) {
	size, err := size.WithDefaults()
	if err != nil {
		return nil, WarpCount{}, err
	}
	if len(block) != len(x.Blocks) {
		return nil, WarpCount{}, fmt.Errorf(
			"block %v: %s has %d dimensions",
			block, x.name(), len(x.Blocks),
		)
	}
	for d, b := range block {
		if in := x.Blocks[d].Range(); !in.Contains(b) {
			return nil, WarpCount{}, fmt.Errorf("block %v: dimension %d has blocks %s", block, d, in)
		}
	}
	if in := x.Warp.Range(); !in.Contains(warp) {
		return nil, WarpCount{}, fmt.Errorf("warp %d: a block has warps %s", warp, in)
	}
	if n := x.warpPoints(); n > maxPoints {
		return nil, WarpCount{}, fmt.Errorf("a warp touches %d elements, more than the %d that are looked at", n, maxPoints)
	}
	e, err := x.compile()
	if err != nil {
		return nil, WarpCount{}, err
	}
	points := e.points(block, warp)
	return points, x.CountPoints(
		block, warp, points, vector, size,
	), nil
}

// warpPoints bounds the elements of a warp.
func (x *Access) warpPoints() int64 {
	n, ok := index.Product([]int64{
		x.Lane.Range().Len(),
		x.Loop.Range().Len(),
		x.Element.Range().Len(),
	})
	if !ok {
		return maxPoints + 1
	}
	return n
}

// CountPoints counts the requests of a warp for some of the elements that
// WarpOf lists: points of one round and one vector are one request. It sorts
// points by offset. Both fields of size have to be set.
func (x *Access) CountPoints(
	block []int64, warp int64, points []Point,
	vector int64, size layout.Sectors,
) WarpCount {
	w := WarpCount{Block: block, Warp: warp}
	request := func(p Point) [2]int64 {
		return [2]int64{p.Loop, p.Element / vector}
	}
	slices.SortFunc(points, func(p, q Point) int {
		a := request(p)
		b := request(q)
		return cmp.Or(
			slices.Compare(a[:], b[:]),
			cmp.Compare(p.Offset, q.Offset),
		)
	})
	for from, to := 0, 0; from < len(points); from = to {
		for to = from; to < len(points) &&
			request(points[to]) == request(points[from]); to++ {
		}
		w.PerRequest = w.PerRequest.plus(
			countRequest(points[from:to], x.bits, size), 1,
		)
	}
	slices.SortFunc(points, func(p, q Point) int {
		return cmp.Or(
			cmp.Compare(p.Offset, q.Offset),
			cmp.Compare(p.Lane, q.Lane),
			cmp.Compare(p.Element, q.Element),
		)
	})
	if len(points) > 0 {
		w.PerWarp = countRequest(points, x.bits, size)
	}
	return w
}

// countRequest counts distinct bytes, sectors and lines of points in order of
// offset, of elements of so many bits.
func countRequest(points []Point, bits int64, size layout.Sectors) Count {
	c := Count{Requests: 1}
	width := (bits + 7) / 8
	// the last that were counted
	end := int64(-1)
	sector := int64(-1)
	line := int64(-1)
	for _, p := range points {
		last := p.Offset + width - 1
		c.Bytes += max(0, last-max(p.Offset-1, end))
		c.Sectors += max(
			0,
			last/size.Sector-max(p.Offset/size.Sector-1, sector),
		)
		c.Lines += max(
			0,
			last/size.Line-max(p.Offset/size.Line-1, line),
		)
		end = max(end, last)
		sector = max(sector, last/size.Sector)
		line = max(line, last/size.Line)
	}
	c.Ideal = index.CeilDiv(c.Bytes, size.Sector)
	return c
}

// An evaluator runs the compiled maps of an access.
type evaluator struct {
	x       *Access
	code    *index.Evaluator
	check   *index.Predicate
	scratch []int64
	// classes are the blocks that have to be evaluated.
	classes []blockClass
}

// A blockClass is a block, for all the blocks that have equal counts.
type blockClass struct {
	block []int64
	// blocks is the number of blocks in the class.
	blocks int64
}

// Vars lists every variable, those with a single value too: the blocks, then
// warp, lane, loop and element.
func (x *Access) Vars() []index.Expr {
	return append(
		slices.Clone(x.Blocks), x.Warp,
		x.Lane, x.Loop, x.Element,
	)
}

// compile compiles the maps.
func (x *Access) compile() (*evaluator, error) {
	code, err := index.Compile(
		x.Vars(), x.Offset.Results,
	)
	if err != nil {
		return nil, err
	}
	check, err := index.CompileConstraint(
		x.Vars(), x.Offset.Where,
	)
	if err != nil {
		return nil, err
	}
	return &evaluator{
		x:       x,
		code:    code,
		check:   check,
		scratch: make([]int64, max(code.ScratchLen(), check.ScratchLen())),
	}, nil
}

// evaluator compiles the maps and sorts the blocks into classes that have the
// same offsets modulo period.
func (x *Access) evaluator(period int64) (*evaluator, error) {
	e, err := x.compile()
	if err != nil {
		return nil, err
	}
	if e.classes, err = x.blockClasses(period); err != nil {
		return nil, err
	}
	n, ok := index.Product([]int64{
		int64(len(e.classes)),
		x.Warp.Range().Len(),
		x.warpPoints(),
	})
	if !ok || n > maxPoints {
		return nil, fmt.Errorf(
			"%s: %d kinds of blocks with %d warps of %d elements are more than the %d that are looked at",
			x.name(), len(e.classes),
			x.Warp.Range().Len(),
			x.warpPoints(), maxPoints,
		)
	}
	return e, nil
}

// points evaluates one warp.
func (e *evaluator) points(block []int64, warp int64) (out []Point) {
	n := len(block)
	vals := append(slices.Clone(block), warp, 0, 0, 0)
	loop := e.x.Loop.Range()
	lane := e.x.Lane.Range()
	element := e.x.Element.Range()
	var offset [1]int64
	for l := loop.Lo; l <= loop.Hi; l++ {
		for t := lane.Lo; t <= lane.Hi; t++ {
			for x := element.Lo; x <= element.Hi; x++ {
				vals[n+1], vals[n+2], vals[n+3] = t, l, x
				if e.check.Holds(vals, e.scratch) {
					e.code.Eval(vals, offset[:], e.scratch)
					out = append(out, Point{t, l, x, offset[0]})
				}
			}
		}
	}
	return out
}

// blockClasses sorts blocks into classes by their signature.
func (x *Access) blockClasses(period int64) ([]blockClass, error) {
	first := make([]int64, len(x.Blocks))
	grid := make([]int64, len(x.Blocks))
	for d, b := range x.Blocks {
		first[d] = b.Range().Lo
		grid[d] = b.Range().Len()
	}
	n, ok := index.Product(grid)
	if !ok || n > maxGrid {
		return nil, fmt.Errorf(
			"%s has a grid of %s blocks, more than the %d that are looked at: take a larger tile",
			x.name(), layout.ExtentsText(grid), maxGrid,
		)
	}
	s, err := x.signature(period)
	if err != nil {
		return nil, err
	}
	var out []blockClass
	classOf := map[string]int{}
	block := slices.Clone(first)
	for more := true; more; more = next(block, first, grid) {
		key := string(s.of(block))
		i, found := classOf[key]
		if !found {
			i = len(out)
			classOf[key] = i
			out = append(out, blockClass{block: slices.Clone(block)})
		}
		out[i].blocks++
	}
	return out, nil
}

// next advances an index in a box, the last dimension fastest; false at the
// end.
func next(index, first, extents []int64) bool {
	for i := len(index) - 1; i >= 0; i-- {
		if index[i]++; index[i] < first[i]+extents[i] {
			return true
		}
		index[i] = first[i]
	}
	return false
}
