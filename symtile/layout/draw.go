package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/symtile"
)

// A Pick chooses the threads whose access is drawn: a block, of it one warp, of
// that one lane.
type Pick struct {
	Block []int64
	Warp  int64 // −1: all of the block
	Lane  int64 // −1: all of the warp
}

// maxDrawn bounds the elements that are drawn.
const maxDrawn = 1 << 14

// Draw draws which bytes the picked threads touch, as an SVG page: the elements
// in the array, the lines and sectors of memory with what they waste, and the
// requests. Each instruction of a thread touches vector elements.
func (x *Access) Draw(pick Pick, vector int64, size Sectors) ([]byte, error) {
	size, err := size.withDefaults()
	if err != nil {
		return nil, err
	}
	v := view{x: x, pick: pick, vector: vector, size: size}
	if err := v.gather(); err != nil {
		return nil, err
	}
	if len(v.points) == 0 {
		return nil, fmt.Errorf("%s touches no memory: masks leave nothing", v.who())
	}
	if len(v.points) > maxDrawn {
		return nil, fmt.Errorf("%s touches %d elements, more than the %d that can be drawn: pick one warp or lane", v.who(), len(v.points), maxDrawn)
	}
	p := &picture{title: fmt.Sprintf("%s: %s", x.Layout, v.who()), size: size, waste: true, cells: v.cells(), bars: v.bars()}
	p.barHead = "Sectors touched beside the fewest that would do"
	p.notes = v.notes()
	p.keys = v.keys()
	p.array, err = v.array()
	return p.svg(), err
}

// view is what is drawn of an access.
type view struct {
	x      *Access
	pick   Pick
	vector int64
	size   Sectors
	points []pickedPoint
	counts []WarpCount
}

type pickedPoint struct {
	Point
	warp int64
}

func (v *view) gather() error {
	first, last := v.pick.Warp, v.pick.Warp
	if v.pick.Warp < 0 {
		first, last = 0, v.x.Warp.Range().Hi
	}
	if in := v.x.Lane.Range(); v.pick.Lane >= 0 && !in.Contains(v.pick.Lane) {
		return fmt.Errorf("lane %d: a warp has lanes %s", v.pick.Lane, in)
	}
	for w := first; w <= last && len(v.points) <= maxDrawn; w++ {
		points, c, err := v.x.WarpOf(v.pick.Block, w, v.vector, v.size)
		if err != nil {
			return err
		}
		if v.pick.Lane >= 0 {
			points = slices.DeleteFunc(points, func(p Point) bool { return p.Lane != v.pick.Lane })
			c = v.x.count(v.pick.Block, w, points, v.vector, v.size)
		}
		v.counts = append(v.counts, c)
		for _, p := range points {
			v.points = append(v.points, pickedPoint{p, w})
		}
	}
	return nil
}

// who names what was picked.
func (v *view) who() string {
	s := "block (" + strings.Trim(listText(v.pick.Block), "[]") + ")"
	if v.pick.Warp >= 0 {
		s += fmt.Sprintf(", warp %d", v.pick.Warp)
	}
	if v.pick.Lane >= 0 {
		s += fmt.Sprintf(", lane %d", v.pick.Lane)
	}
	return s
}

func (v *view) total() (each, once Count) {
	for _, c := range v.counts {
		each, once = each.plus(c.Each, 1), once.plus(c.Once, 1)
	}
	return each, once
}

func (v *view) notes() []string {
	a := v.x.Assignment
	each, once := v.total()
	return []string{
		fmt.Sprintf("tile %s by %s threads with %s elements each, in warps of %d; an instruction touches %s of a thread",
			extentsText(a.Tile), extentsText(a.Threads), extentsText(a.Elements), a.Warp, count(v.vector, "element")),
		fmt.Sprintf("%s: %s asked for, %s moved where %d would do, %s wasted; %s in all",
			count(each.Requests, "request"), bytesText(each.Bytes), count(each.Sectors, "sector"), each.Ideal,
			bytesText(each.Sectors*v.size.Sector-each.Bytes), count(once.Sectors, "different sector")),
	}
}

// coloured is the number that colours a point: of its warp, lane or, in one
// thread, instruction.
func (v *view) coloured(p pickedPoint) int64 {
	switch {
	case v.pick.Warp < 0:
		return p.warp
	case v.pick.Lane < 0:
		return p.Lane
	}
	return p.Loop*(v.x.Assignment.elements()/v.vector) + p.Element/v.vector
}

func (v *view) colourName() string {
	switch {
	case v.pick.Warp < 0:
		return "number and colour: the warp"
	case v.pick.Lane < 0:
		return "number and colour: the lane"
	}
	return "number and colour: the instruction"
}

func (v *view) keys() []key {
	return []key{
		{"cell", ramp(0), v.colourName()},
		{"waste", "", "moved with a sector, not asked for"},
		{"touched", "none", "sector touched"},
		{"sector", "none", "sector not touched"},
	}
}

// cells joins the neighbours that one instruction of a thread touches.
func (v *view) cells() (out []cell) {
	width := (v.x.Layout.bits + 7) / 8
	slices.SortFunc(v.points, func(p, q pickedPoint) int {
		return slices.Compare([]int64{p.Offset, p.warp, p.Lane, p.Loop, p.Element}, []int64{q.Offset, q.warp, q.Lane, q.Loop, q.Element})
	})
	for i, p := range v.points {
		if i > 0 && out[len(out)-1].to == p.Offset && v.together(v.points[i-1], p) {
			out[len(out)-1].to += width
			continue
		}
		out = append(out, cell{p.Offset, p.Offset + width, int(v.coloured(p)), fmt.Sprint(v.coloured(p)), v.tip(p)})
	}
	return out
}

// together says that one instruction of a thread touches p and q.
func (v *view) together(p, q pickedPoint) bool {
	return p.warp == q.warp && p.Lane == q.Lane && p.Loop == q.Loop && p.Element/v.vector == q.Element/v.vector
}

func (v *view) tip(p pickedPoint) string {
	return fmt.Sprintf("byte %d: warp %d, lane %d, round %d, element %d", p.Offset, p.warp, p.Lane, p.Loop, p.Element)
}

// bars shows the requests of one warp, or the warps of a block.
func (v *view) bars() (out []bar) {
	text := func(c Count) string {
		return fmt.Sprintf("%s, fewest %d, %s wasted", count(c.Sectors, "sector"), c.Ideal, bytesText(c.Sectors*v.size.Sector-c.Bytes))
	}
	if v.pick.Warp < 0 {
		for i, c := range v.counts {
			out = append(out, bar{fmt.Sprintf("warp %d", i), c.Each.Sectors, c.Each.Ideal, text(c.Each)})
		}
		return out
	}
	for _, r := range v.requests() {
		c := v.x.request(r, v.size)
		label := fmt.Sprintf("element %d", r[0].Element)
		if v.vector > 1 {
			label = fmt.Sprintf("elements %d–%d", r[0].Element/v.vector*v.vector, r[0].Element/v.vector*v.vector+v.vector-1)
		}
		if v.x.Loop.Range().Hi > 0 {
			label = fmt.Sprintf("round %d, %s", r[0].Loop, label)
		}
		out = append(out, bar{label, c.Sectors, c.Ideal, text(c)})
	}
	return out
}

// requests groups the points of a warp by instruction, each in order of offset.
func (v *view) requests() (out [][]Point) {
	type id struct{ loop, vector int64 }
	groups := map[id][]Point{}
	for _, p := range v.points { // cells has sorted them
		k := id{p.Loop, p.Element / v.vector}
		groups[k] = append(groups[k], p.Point)
	}
	for loop := range v.x.Loop.Range().Len() {
		for g := range v.x.Assignment.elements() / v.vector {
			if r := groups[id{loop, g}]; r != nil {
				out = append(out, r)
			}
		}
	}
	return out
}

// array shows the elements in the two last dimensions of the array, where the
// picked ones lie in one such plane that is small enough.
func (v *view) array() (*array, error) {
	code, err := symtile.Compile(v.x.vars(), v.x.Index.Results)
	if err != nil {
		return nil, err
	}
	s := newPlane(len(v.x.Blocks))
	index, scratch := make([]int64, len(v.x.Blocks)), make([]int64, code.ScratchLen())
	for _, p := range v.points {
		code.Eval(append(slices.Clone(v.pick.Block), p.warp, p.Lane, p.Loop, p.Element), index, scratch)
		c := cell{colour: int(v.coloured(p)), label: fmt.Sprint(v.coloured(p)), tip: listText(index) + " " + v.tip(p)}
		s.enter(index, c)
	}
	return s.array("Array: the elements, by index"), nil
}

// A plane gathers elements that share all but the last two indices.
type plane struct {
	rank   int
	outer  []int64
	at     map[[2]int64]cell
	lo, hi [2]int64
	mixed  bool
}

func newPlane(rank int) *plane { return &plane{rank: rank, at: map[[2]int64]cell{}} }

func (s *plane) enter(index []int64, c cell) {
	n := max(0, s.rank-2)
	var k [2]int64
	for i := range min(2, s.rank) {
		k[1-i] = index[s.rank-1-i]
	}
	if len(s.at) == 0 {
		s.outer, s.lo, s.hi = slices.Clone(index[:n]), k, k
	}
	s.mixed = s.mixed || !slices.Equal(s.outer, index[:n])
	for i := range k {
		s.lo[i], s.hi[i] = min(s.lo[i], k[i]), max(s.hi[i], k[i])
	}
	s.at[k] = c
}

// array is nil where elements are of several planes or too far apart.
func (s *plane) array(caption string) *array {
	rows, cols := s.hi[0]-s.lo[0]+1, s.hi[1]-s.lo[1]+1
	if s.mixed || rows > 128 || cols > 512 || rows*cols > maxDrawn {
		return nil
	}
	if len(s.outer) > 0 {
		caption += fmt.Sprintf(", in plane %s of the last two dimensions", listText(s.outer))
	}
	return &array{caption: fmt.Sprintf("%s; rows from %d, columns from %d", caption, s.lo[0], s.lo[1]),
		rows: rows, cols: cols, row0: s.lo[0], col0: s.lo[1], at: s.at}
}

// Draw draws the layout itself as an SVG page: the array with the position of
// each element, and memory with the index of each, padding dotted.
func (l *Layout) Draw(size Sectors) ([]byte, error) {
	size, err := size.withDefaults()
	if err != nil {
		return nil, err
	}
	if l.bits%8 != 0 {
		return nil, fmt.Errorf("%s: elements of %d bits are no whole bytes and cannot be drawn", l, l.bits)
	}
	if l.elements == 0 {
		return nil, fmt.Errorf("%s has no elements", l)
	}
	shown := min(l.elements, maxLines*size.Line*8/l.bits)
	p := &picture{title: l.String(), size: size}
	s := newPlane(l.Shape.Rank())
	for position := range shown {
		index, ok := l.Index(position)
		p.cells = append(p.cells, l.memoryCell(position, index, ok))
		if ok && inFirstPlane(index) {
			s.enter(index, cell{colour: l.colour(position), label: fmt.Sprint(position), tip: fmt.Sprintf("%s at position %d", listText(index), position)})
		}
	}
	p.array = s.array("Array: number: the position in memory")
	if p.array != nil {
		p.array.tileRows, p.array.tileCols = l.drawnTile()
	}
	p.notes = []string{
		fmt.Sprintf("%d positions of %s, %d of them padding; in memory %s", l.elements, bytesText(l.bits/8), l.Padding(), extentsText(l.Physical)),
		l.Steps().String(),
	}
	if shown < l.elements {
		p.notes[0] += fmt.Sprintf("; the first %d are drawn", shown)
	}
	p.keys = []key{{"cell", ramp(0), "an element, coloured by its tile"}, {"pad", "", "padding"}}
	return p.svg(), nil
}

// inFirstPlane says whether all but the last two indices are 0.
func inFirstPlane(index []int64) bool {
	for _, i := range index[:max(0, len(index)-2)] {
		if i != 0 {
			return false
		}
	}
	return true
}

// inner is the number of positions of a tile: of the sizes of the first tile.
func (l *Layout) inner() int64 {
	if len(l.tilings) == 0 {
		return max(1, l.Physical[len(l.Physical)-1])
	}
	n, _ := product(l.tilings[0].sizes)
	return n
}

// colour is the number of the tile, or row, of a position.
func (l *Layout) colour(position int64) int {
	if len(l.Physical) == 0 {
		return 0
	}
	return int(position / l.inner())
}

func (l *Layout) memoryCell(position int64, index []int64, ok bool) cell {
	width := l.bits / 8
	c := cell{from: position * width, to: (position + 1) * width, colour: padding, tip: fmt.Sprintf("position %d: padding", position)}
	if ok {
		c.colour = l.colour(position)
		for i, x := range index {
			if i > 0 {
				c.label += ","
			}
			c.label += fmt.Sprint(x)
		}
		c.tip = fmt.Sprintf("position %d: %s", position, listText(index))
	}
	return c
}

// drawnTile is the first tile's sizes in the last two logical dimensions, 0
// where that is no plain tile of them.
func (l *Layout) drawnTile() (rows, cols int64) {
	n := l.Shape.Rank()
	if len(l.tilings) == 0 || n < 2 || len(l.tilings[0].in) != len(l.tilings[0].joined) || len(l.tilings[0].sizes) != 2 {
		return 0, 0
	}
	t := l.tilings[0].sizes
	switch {
	case l.order[n-1] == n-1 && l.order[n-2] == n-2:
		return t[0], t[1]
	case l.order[n-1] == n-2 && l.order[n-2] == n-1:
		return t[1], t[0]
	}
	return 0, 0
}
