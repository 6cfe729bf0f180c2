package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
	"github.com/tilewright/tilewright/symtile/layout/draw"
)

// A pick is the threads whose accesses are drawn: a block, one of its warps, or
// one lane of that.
type pick struct {
	Block []int64
	// Number of the warp in the block; −1 is all of them.
	Warp int64
	// Number of the lane in the warp; −1 is all of them.
	Lane int64
}

// drawAccess draws which bytes the picked threads touch, as an SVG page: the
// elements in the array, the lines and sectors of memory with the bytes that
// are wasted, and the requests. Each instruction of a thread touches vector
// elements.
func drawAccess(x *coalesce.Access, picked pick, vector int64) ([]byte, error) {
	size, err := layout.Sectors{}.WithDefaults()
	if err != nil {
		return nil, err
	}
	v := accessView{
		x:      x,
		pick:   picked,
		vector: vector,
		size:   size,
	}
	if err := v.gather(); err != nil {
		return nil, err
	}
	if len(v.points) == 0 {
		return nil, fmt.Errorf("%s touches no memory: masks leave nothing", v.who())
	}
	if len(v.points) > draw.MaxCells {
		return nil, fmt.Errorf(
			"%s touches %d elements, more than the %d that can be drawn: pick one warp or lane",
			v.who(), len(v.points), draw.MaxCells,
		)
	}
	p := &draw.Picture{
		Title: fmt.Sprintf("%s: %s", x.Layout, v.who()),
		Size:  size,
		Waste: true,
		Cells: v.cells(),
		Bars:  v.bars(),
	}
	p.BarHead = "Sectors touched beside the fewest that would do"
	p.Notes = v.notes()
	p.Legend = v.legend()
	p.Array, err = v.array()
	return p.SVG(), err
}

// An accessView is what is drawn of an access.
type accessView struct {
	x *coalesce.Access
	// The picked threads.
	pick pick
	// Elements an instruction touches.
	vector int64
	// Bytes of sectors and lines.
	size layout.Sectors
	// Elements that the picked threads touch, and the counts of their warps.
	points []pickedPoint
	counts []coalesce.WarpCount
}

// A pickedPoint is an element that a picked thread touches, with the warp of
// the thread.
type pickedPoint struct {
	coalesce.Point
	warp int64
}

// gather lists the elements that the picked threads touch and counts the
// requests of their warps.
func (v *accessView) gather() error {
	first := v.pick.Warp
	last := v.pick.Warp
	if v.pick.Warp < 0 {
		first = 0
		last = v.x.Warp.Range().Hi
	}
	in := v.x.Lane.Range()
	if v.pick.Lane >= 0 && !in.Contains(v.pick.Lane) {
		return fmt.Errorf("lane %d: a warp has lanes %s", v.pick.Lane, in)
	}
	for w := first; w <= last && len(v.points) <= draw.MaxCells; w++ {
		points, c, err := v.x.WarpOf(
			v.pick.Block, w, v.vector, v.size,
		)
		if err != nil {
			return err
		}
		if v.pick.Lane >= 0 {
			points = slices.DeleteFunc(points, func(p coalesce.Point) bool {
				return p.Lane != v.pick.Lane
			})
			c = v.x.CountPoints(
				v.pick.Block, w, points, v.vector, v.size,
			)
		}
		v.counts = append(v.counts, c)
		for _, p := range points {
			v.points = append(v.points, pickedPoint{p, w})
		}
	}
	return nil
}

// who names the picked threads.
func (v *accessView) who() string {
	s := "block (" + strings.Trim(layout.ListText(v.pick.Block), "[]") + ")"
	if v.pick.Warp >= 0 {
		s += fmt.Sprintf(", warp %d", v.pick.Warp)
	}
	if v.pick.Lane >= 0 {
		s += fmt.Sprintf(", lane %d", v.pick.Lane)
	}
	return s
}

// total sums the counts of the warps, with sectors counted for each request and
// once a warp.
func (v *accessView) total() (each, once coalesce.Count) {
	for _, c := range v.counts {
		each = each.Plus(c.PerRequest)
		once = once.Plus(c.PerWarp)
	}
	return each, once
}

// notes are the sentences below the picture.
func (v *accessView) notes() []string {
	a := v.x.Assignment
	each, once := v.total()
	return []string{
		fmt.Sprintf(
			"tile %s by %s threads with %s elements each, in warps of %d; an instruction touches %s of a thread",
			layout.ExtentsText(a.Tile),
			layout.ExtentsText(a.Threads),
			layout.ExtentsText(a.Elements), a.Warp,
			layout.CountText(v.vector, "element"),
		),
		fmt.Sprintf(
			"%s: %s asked for, %s moved where %d would do, %s wasted; %s in all",
			layout.CountText(each.Requests, "request"),
			layout.BytesText(each.Bytes),
			layout.CountText(each.Sectors, "sector"), each.Ideal,
			layout.BytesText(each.Sectors*v.size.Sector-each.Bytes),
			layout.CountText(once.Sectors, "different sector"),
		),
	}
}

// color is the number that colours an element: of its warp or lane, or of the
// instruction where one thread is drawn.
func (v *accessView) color(p pickedPoint) int64 {
	switch {
	case v.pick.Warp < 0:
		return p.warp
	case v.pick.Lane < 0:
		return p.Lane
	}
	return p.Loop*(v.x.Element.Range().Len()/v.vector) +
		p.Element/v.vector
}

// colorText says what the colours mean.
func (v *accessView) colorText() string {
	switch {
	case v.pick.Warp < 0:
		return "number and colour: the warp"
	case v.pick.Lane < 0:
		return "number and colour: the lane"
	}
	return "number and colour: the instruction"
}

// legend is the key of the colours.
func (v *accessView) legend() []draw.Key {
	return []draw.Key{
		{Swatch: draw.SwatchCell, Text: v.colorText()},
		{Swatch: draw.SwatchWaste, Text: "moved with a sector, not asked for"},
		{Swatch: draw.SwatchTouched, Text: "sector touched"},
		{Swatch: draw.SwatchSector, Text: "sector not touched"},
	}
}

// cells merges neighbouring elements that one instruction of a thread touches.
func (v *accessView) cells() (out []draw.Cell) {
	width := (v.x.Layout.ElementBits() + 7) / 8
	slices.SortFunc(v.points, func(p, q pickedPoint) int {
		return slices.Compare(
			[]int64{p.Offset, p.warp, p.Lane, p.Loop, p.Element},
			[]int64{
				q.Offset, q.warp, q.Lane,
				q.Loop, q.Element,
			},
		)
	})
	for i, p := range v.points {
		if i > 0 &&
			out[len(out)-1].To == p.Offset &&
			v.together(v.points[i-1], p) {
			out[len(out)-1].To += width
			continue
		}
		out = append(out, draw.Cell{
			From:  p.Offset,
			To:    p.Offset + width,
			Color: int(v.color(p)),
			Label: fmt.Sprint(v.color(p)),
			Tip:   v.tip(p),
		})
	}
	return out
}

// together reports whether one instruction of a thread touches both elements.
func (v *accessView) together(p, q pickedPoint) bool {
	return p.warp == q.warp &&
		p.Lane == q.Lane && p.Loop == q.Loop &&
		p.Element/v.vector == q.Element/v.vector
}

// tip is the text that appears over an element.
func (v *accessView) tip(p pickedPoint) string {
	return fmt.Sprintf(
		"byte %d: warp %d, lane %d, round %d, element %d",
		p.Offset, p.warp, p.Lane,
		p.Loop, p.Element,
	)
}

// bars draws the requests of one warp, or the warps of a block, by their
// sectors.
func (v *accessView) bars() (out []draw.Bar) {
	text := func(c coalesce.Count) string {
		return fmt.Sprintf(
			"%s, fewest %d, %s wasted",
			layout.CountText(c.Sectors, "sector"),
			c.Ideal,
			layout.BytesText(c.Sectors*v.size.Sector-c.Bytes),
		)
	}
	if v.pick.Warp < 0 {
		for i, c := range v.counts {
			out = append(out, draw.Bar{
				Label:   fmt.Sprintf("warp %d", i),
				Touched: c.PerRequest.Sectors,
				Ideal:   c.PerRequest.Ideal,
				Text:    text(c.PerRequest),
			})
		}
		return out
	}
	for _, r := range v.requests() {
		c := v.x.CountPoints(
			v.pick.Block, v.pick.Warp,
			r, v.vector, v.size,
		).PerRequest
		label := fmt.Sprintf("element %d", r[0].Element)
		if v.vector > 1 {
			label = fmt.Sprintf(
				"elements %d–%d",
				r[0].Element/v.vector*v.vector,
				r[0].Element/v.vector*v.vector+v.vector-1,
			)
		}
		if v.x.Loop.Range().Hi > 0 {
			label = fmt.Sprintf("round %d, %s", r[0].Loop, label)
		}
		out = append(out, draw.Bar{
			Label:   label,
			Touched: c.Sectors,
			Ideal:   c.Ideal,
			Text:    text(c),
		})
	}
	return out
}

// requests groups the elements of a warp by instruction, each in the order of
// their positions.
func (v *accessView) requests() (out [][]coalesce.Point) {
	type id struct{ loop, vector int64 }
	groups := map[id][]coalesce.Point{}
	for _, p := range v.points { // cells has sorted them
		k := id{p.Loop, p.Element / v.vector}
		groups[k] = append(groups[k], p.Point)
	}
	for loop := range v.x.Loop.Range().Len() {
		for g := range v.x.Element.Range().Len() / v.vector {
			if r := groups[id{loop, g}]; r != nil {
				out = append(out, r)
			}
		}
	}
	return out
}

// array draws the elements in the last two dimensions of the array, if the
// picked ones lie in one such plane that is small enough.
func (v *accessView) array() (*draw.Array, error) {
	code, err := index.Compile(v.x.Vars(), v.x.Index.Results)
	if err != nil {
		return nil, err
	}
	s := draw.NewPlane(len(v.x.Blocks))
	index, scratch := make([]int64, len(v.x.Blocks)),
		make([]int64, code.ScratchLen())
	for _, p := range v.points {
		code.Eval(
			append(
				slices.Clone(v.pick.Block), p.warp,
				p.Lane, p.Loop, p.Element,
			),
			index, scratch,
		)
		c := draw.Cell{
			Color: int(v.color(p)),
			Label: fmt.Sprint(v.color(p)),
			Tip:   layout.ListText(index) + " " + v.tip(p),
		}
		s.Add(index, c)
	}
	return s.Array("Array: the elements, by index"), nil
}
