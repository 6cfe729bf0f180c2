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

// Lines are those of all loads and stores, in the order of the code. It is an error if a
// warp touches more places than can be counted.
func Lines(all []gpu.Touch) ([]Line, error) {
	lines := []Line{}
	for _, t := range all {
		_, n, err := firstWarp(t)
		if err != nil {
			return nil, err
		}
		c := n.PerRequest
		lines = append(lines, Line{
			Array:    t.Array,
			Kind:     kind(t),
			Bytes:    t.Bytes,
			Map:      t.Access.Offset.String(),
			Requests: c.Requests,
			Sectors:  c.Sectors,
			Fewest:   c.Ideal,
		})
	}
	return lines, nil
}

// String is the line for people.
func (l Line) String() string {
	what := fmt.Sprintf("%s %s, %s a thread", l.Kind, l.Array, layout.BytesText(l.Bytes))
	requests := layout.CountText(l.Requests, "request")
	sectors := layout.CountText(l.Sectors, "sector")
	return fmt.Sprintf(
		"%s: %s\n    warp 0 of the middle block: %s, %s, fewest %d",
		what, l.Map, requests, sectors, l.Fewest,
	)
}

// kind is what a touch does with the array, in a word.
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

// middle is the block in the middle of the grid, along each of its dimensions.
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
	// Each array has a picture of its loads and one of its stores, in the order of the
	// code.
	for len(all) > 0 {
		first := all[0]
		var same, others []gpu.Touch
		for _, t := range all {
			to := &others
			if t.Array == first.Array && t.Store == first.Store {
				to = &same
			}
			*to = append(*to, t)
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

// A drawing is the picture of one array, for which instructions are added one after the
// other.
type drawing struct {
	draw.Picture
	// Bytes of sectors and lines.
	size layout.Sectors
	// Elements that are touched, by index.
	plane *draw.Plane
	// What the instructions move together.
	total coalesce.Count
}

// picture draws the loads or the stores of one array; nil where the warp touches nothing
// of it. Scratch has no shape, and so only memory is drawn.
func picture(title string, all []gpu.Touch) ([]byte, error) {
	size, err := layout.Sectors{}.WithDefaults()
	if err != nil {
		return nil, err
	}
	t := all[0]
	d := drawing{
		size:  size,
		plane: draw.NewPlane(t.Shape.Rank()),
	}
	for k, t := range all {
		if err := d.add(k, t); err != nil {
			return nil, err
		}
	}
	if len(d.Cells) == 0 {
		return nil, nil
	}
	// The heading names the array; the notes say of which plan, block and warp it is.
	d.Title = fmt.Sprintf("%s: %s", kind(t), t.Array)
	if t.Shape.DType.IsArray() {
		d.Title += " " + t.Shape.String()
	}
	requests := layout.CountText(d.total.Requests, "request")
	sectors := layout.CountText(d.total.Sectors, "sector")
	d.Notes = []string{title, fmt.Sprintf(
		"block %s, warp 0, first round of its loops: %s, %s moved where %d would do",
		layout.ListText(middle(t)), requests, sectors, d.total.Ideal,
	)}
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

// add draws what one instruction touches: a cell for what a lane touches in memory, its
// elements in the array, and a bar for the sectors.
func (d *drawing) add(number int, t gpu.Touch) error {
	points, _, err := firstWarp(t)
	if err != nil {
		return err
	}
	// Later rounds touch the same pattern elsewhere, and would hide it.
	points = slices.DeleteFunc(points, func(p coalesce.Point) bool {
		return p.Loop != 0
	})
	if len(points) == 0 {
		return nil
	}
	drawn := len(d.Cells) + len(points)
	if drawn > draw.MaxCells {
		return fmt.Errorf(
			"a warp touches more than the %d places of %s that can be drawn",
			draw.MaxCells, t.Array,
		)
	}
	// A lane has one place in memory for each instruction.
	for _, p := range points {
		c := draw.Cell{
			From:  p.Offset,
			To:    p.Offset + t.Bytes,
			Color: int(p.Lane),
			Label: fmt.Sprint(p.Lane),
			Tip: fmt.Sprintf(
				"byte %d: lane %d, instruction %d",
				p.Offset, p.Lane, number,
			),
		}
		d.Cells = append(d.Cells, c)
		d.elements(t, c)
	}
	n := t.Access.CountPoints(
		middle(t), 0, points, 1, d.size,
	).PerRequest
	d.total = d.total.Plus(n)
	d.Bars = append(d.Bars, draw.Bar{
		Label:   fmt.Sprintf("instruction %d", number),
		Touched: n.Sectors,
		Ideal:   n.Ideal,
		Text: fmt.Sprintf(
			"%s, fewest %d",
			layout.CountText(n.Sectors, "sector"),
			n.Ideal,
		),
	})
	return nil
}

// elements adds the elements of a cell of memory to the array. The array's layout is
// dense, as those of all arrays that kernels read and write: the position of an element
// has its index as digits.
func (d *drawing) elements(t gpu.Touch, c draw.Cell) {
	if t.Shape.Rank() == 0 || !t.Shape.DType.IsArray() {
		return
	}
	width := t.Shape.DType.Size()
	for at := c.From; at+width <= c.To; at += width {
		// The digits of the element's position, the fastest dimension first.
		rest := at / width
		index := make([]int64, t.Shape.Rank())
		for _, k := range t.Shape.MinorToMajor() {
			n := max(1, t.Shape.Dims[k])
			index[k] = rest % n
			rest /= n
		}
		e := c
		e.Tip = layout.ListText(index) + " " + c.Tip
		d.plane.Add(index, e)
	}
}

// pageSize finds the width and the height of a page, as package draw writes them.
var pageSize = regexp.MustCompile(`width="([0-9.]+)" height="([0-9.]+)" role="img"`)

// number is a number that package draw wrote, whose form the pattern has checked.
func number(text []byte) float64 {
	x, _ := strconv.ParseFloat(string(text), 64)
	return x
}

// stacked is a page with pages one below the other; each keeps its size, its style and
// its patterns, which are the same on all.
func stacked(pages [][]byte) []byte {
	if len(pages) == 1 {
		return pages[0]
	}
	var body strings.Builder
	// The height so far is where the next page begins.
	width, height := 0.0, 0.0
	for _, page := range pages {
		at := pageSize.FindSubmatch(page)
		w, h := number(at[1]), number(at[2])
		// A page is an SVG of its own within the outer one, moved down.
		moved := fmt.Sprintf(`<svg y="%g" `, height)
		body.WriteString(strings.Replace(string(page), "<svg ", moved, 1))
		width = max(width, w)
		height += h
	}
	const frame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img">`
	return fmt.Appendf(
		nil, frame+"\n%s</svg>\n",
		width, height, width, height,
		body.String(),
	)
}
