// Package threads shows what the threads of a plan's kernel touch: the map of every load
// and store from thread to byte, and a picture of what one warp touches of each array.
package threads

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile/layout"
	"github.com/tilewright/tilewright/symtile/layout/draw"
)

// A Line is one load or store, in words and numbers. Counts are of the first warp of the
// block in the middle of the grid, over all rounds of its loops.
type Line struct {
	// Array and its direction: "load" or "store".
	Array string `json:"array"`
	Kind  string `json:"kind"`
	// Bytes of one thread, and the map from block, thread and loops to the first of them.
	Bytes int64  `json:"bytes"`
	Map   string `json:"map"`
	// Requests, and the sectors of 32 bytes that they touch, beside the fewest that hold
	// what is asked for.
	Requests int64 `json:"requests"`
	Sectors  int64 `json:"sectors"`
	Fewest   int64 `json:"fewest"`
}

// Lines are those of all loads and stores.
func Lines(all []gpu.Touch) ([]Line, error) {
	lines := []Line{}
	for _, t := range all {
		_, n, err := firstWarp(t)
		if err != nil {
			return nil, err
		}
		c := n.PerRequest
		lines = append(lines, Line{t.Array, kind(t), t.Bytes, t.Access.Offset.String(), c.Requests, c.Sectors, c.Ideal})
	}
	return lines, nil
}

// String is the line for people.
func (l Line) String() string {
	return fmt.Sprintf("%s %s, %s a thread: %s\n    warp 0 of the middle block: %s, %s, fewest %d",
		l.Kind, l.Array, layout.BytesText(l.Bytes), l.Map,
		layout.CountText(l.Requests, "request"), layout.CountText(l.Sectors, "sector"), l.Fewest)
}

// kind is what a touch does.
func kind(t gpu.Touch) string {
	if t.Store {
		return "store"
	}
	return "load"
}

// firstWarp is what the first warp of the middle block touches; those at the edges of an
// array are often special.
func firstWarp(t gpu.Touch) ([]coalesce.Point, coalesce.WarpCount, error) {
	return t.Access.WarpOf(middle(t), 0, 1, layout.Sectors{})
}

// middle is the block in the middle of the grid.
func middle(t gpu.Touch) []int64 {
	block := make([]int64, len(t.Access.Blocks))
	for k, b := range t.Access.Blocks {
		in := b.Range()
		block[k] = in.Lo + in.Len()/2
	}
	return block
}

// SVG draws, for each array that is loaded or stored, what the first warp of the middle
// block touches in the first round of its loops: the elements by lane, the sectors of
// memory, and the sectors of each instruction. The title says which plan.
func SVG(title string, all []gpu.Touch) ([]byte, error) {
	var pages [][]byte
	for len(all) > 0 {
		first := all[0]
		var same, others []gpu.Touch
		for _, t := range all {
			if t.Array == first.Array && t.Store == first.Store {
				same = append(same, t)
			} else {
				others = append(others, t)
			}
		}
		all = others
		page, err := picture(title, same)
		if err != nil {
			return nil, err
		}
		if page != nil {
			pages = append(pages, page)
		}
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("the kernel touches no memory in the first warp of its middle block")
	}
	return stacked(pages), nil
}

// A drawing is the picture of one array.
type drawing struct {
	draw.Picture
	size  layout.Sectors
	plane *draw.Plane
	total coalesce.Count
}

// picture draws one array; nil where the warp touches nothing of it.
func picture(title string, all []gpu.Touch) ([]byte, error) {
	size, err := layout.Sectors{}.WithDefaults()
	if err != nil {
		return nil, err
	}
	t := all[0]
	d := drawing{size: size, plane: draw.NewPlane(t.Shape.Rank())}
	for k, t := range all {
		if err := d.add(k, t); err != nil {
			return nil, err
		}
	}
	if len(d.Cells) == 0 {
		return nil, nil
	}
	d.Title = fmt.Sprintf("%s: %s", kind(t), t.Array)
	if t.Shape.DType.IsArray() {
		d.Title += " " + t.Shape.String()
	}
	d.Notes = []string{title, fmt.Sprintf("block %s, warp 0, first round of its loops: %s, %s moved where %d would do",
		layout.ListText(middle(t)), layout.CountText(d.total.Requests, "request"), layout.CountText(d.total.Sectors, "sector"), d.total.Ideal)}
	d.Size, d.Waste = size, true
	d.BarHead = "Sectors touched by each instruction beside the fewest that would do"
	d.Legend = []draw.Key{
		{Swatch: draw.SwatchCell, Text: "number and colour: the lane"},
		{Swatch: draw.SwatchWaste, Text: "moved with a sector, not asked for"},
		{Swatch: draw.SwatchTouched, Text: "sector touched"},
		{Swatch: draw.SwatchSector, Text: "sector not touched"},
	}
	if t.Shape.Rank() > 0 && t.Shape.DType.IsArray() {
		d.Array = d.plane.Array("Array: the elements, by index")
	}
	return d.SVG(), nil
}

// add draws what one instruction touches.
func (d *drawing) add(number int, t gpu.Touch) error {
	points, _, err := firstWarp(t)
	if err != nil {
		return err
	}
	points = slices.DeleteFunc(points, func(p coalesce.Point) bool { return p.Loop != 0 })
	if len(points) == 0 {
		return nil
	}
	if len(d.Cells)+len(points) > draw.MaxCells {
		return fmt.Errorf("a warp touches more than the %d places of %s that can be drawn", draw.MaxCells, t.Array)
	}
	for _, p := range points {
		c := draw.Cell{
			From:  p.Offset,
			To:    p.Offset + t.Bytes,
			Color: int(p.Lane),
			Label: fmt.Sprint(p.Lane),
			Tip:   fmt.Sprintf("byte %d: lane %d, instruction %d", p.Offset, p.Lane, number),
		}
		d.Cells = append(d.Cells, c)
		d.elements(t, c)
	}
	n := t.Access.CountPoints(middle(t), 0, points, 1, d.size).PerRequest
	d.total = d.total.Plus(n)
	d.Bars = append(d.Bars, draw.Bar{
		Label:   fmt.Sprintf("instruction %d", number),
		Touched: n.Sectors,
		Ideal:   n.Ideal,
		Text:    fmt.Sprintf("%s, fewest %d", layout.CountText(n.Sectors, "sector"), n.Ideal),
	})
	return nil
}

// elements adds the elements of a cell of memory to the array, whose layout is dense.
func (d *drawing) elements(t gpu.Touch, c draw.Cell) {
	if t.Shape.Rank() == 0 || !t.Shape.DType.IsArray() {
		return
	}
	width := t.Shape.DType.Size()
	for at := c.From; at+width <= c.To; at += width {
		rest := at / width
		index := make([]int64, t.Shape.Rank())
		for _, k := range t.Shape.MinorToMajor() {
			index[k] = rest % max(1, t.Shape.Dims[k])
			rest /= max(1, t.Shape.Dims[k])
		}
		e := c
		e.Tip = layout.ListText(index) + " " + c.Tip
		d.plane.Add(index, e)
	}
}

// size of a page, as draw writes it.
var pageSize = regexp.MustCompile(`width="([0-9.]+)" height="([0-9.]+)" role="img"`)

// stacked is a page with pages one below the other.
func stacked(pages [][]byte) []byte {
	if len(pages) == 1 {
		return pages[0]
	}
	var body strings.Builder
	width, height := 0.0, 0.0
	for _, page := range pages {
		at := pageSize.FindSubmatch(page)
		w, _ := strconv.ParseFloat(string(at[1]), 64)
		h, _ := strconv.ParseFloat(string(at[2]), 64)
		body.WriteString(strings.Replace(string(page), "<svg ", fmt.Sprintf(`<svg y="%g" `, height), 1))
		width = max(width, w)
		height += h
	}
	return fmt.Appendf(nil, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\">\n%s</svg>\n",
		width, height, width, height, body.String())
}
