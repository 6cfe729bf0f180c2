package draw

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/symtile/layout"
)

// A Picture is a page that shows memory by lines and sectors, the array above
// it and bars below. The SVG has no references to other files, and colors for
// light and dark pages.
type Picture struct {
	// Title is the heading.
	Title string
	// Notes are lines of text under the title.
	Notes []string
	// Legend explains the looks of boxes.
	Legend []Key
	// Size is the size of lines and sectors; both fields have to be set.
	Size layout.Sectors
	// Cells are what is in memory.
	Cells []Cell
	// Array is part of the logical array; nil leaves it out.
	Array *Array
	// Bars compare sectors.
	Bars []Bar
	// BarHead is the heading of the bars.
	BarHead string
	// Waste hatches the bytes of a touched sector that no cell covers.
	Waste bool

	// b is the page as far as it is drawn, y the height that is used.
	b strings.Builder
	y float64
}

// A Cell is bytes of memory, or an element of an array, drawn as one box.
type Cell struct {
	// From and To are the bytes [From, To); they are not used in an Array.
	From, To int64
	// Color is a number that boxes of one color have in common; or Padding.
	Color int
	Label string
	// Tip is shown while the pointer is over the box.
	Tip string
}

// Padding is the Color of bytes that hold no element, which are dotted.
const Padding = -1

// A Key is an entry of the legend.
type Key struct {
	Swatch Swatch
	Text   string
}

// Swatch is the look of a box.
type Swatch uint8

// The looks that a legend can explain.
const (
	// SwatchCell is a Cell.
	SwatchCell Swatch = iota
	// SwatchWaste is bytes of a touched sector that no cell covers.
	SwatchWaste
	// SwatchTouched is a sector with cells.
	SwatchTouched
	// SwatchSector is a sector without cells.
	SwatchSector
	// SwatchPadding is padding.
	SwatchPadding
)

// look is the CSS class and the fill of the swatch's rectangle.
func (s Swatch) look() (class, fill string) {
	switch s {
	case SwatchWaste:
		return "waste", ""
	case SwatchTouched:
		return "touched", "none"
	case SwatchSector:
		return "sector", "none"
	case SwatchPadding:
		return "pad", ""
	}
	return "cell", ramp(0)
}

// An Array is part of the logical array: rows and columns of elements.
// Plane.Array makes one.
type Array struct {
	// caption is the line above the array.
	caption string
	// rows and cols are the size of the part that is shown.
	rows, cols int64
	// row0 and col0 are the index of the first element.
	row0, col0 int64
	// at is the cell at each index; there is none where no element was added.
	at map[[2]int64]Cell
	// tileRows and tileCols are the distances of lines that are drawn between
	// tiles; 0 draws none.
	tileRows int64
	tileCols int64
}

// A Bar compares the sectors that are touched with the fewest that would do.
type Bar struct {
	// Label is the text before the bar.
	Label          string
	Touched, Ideal int64
	// Text is the text behind the bar.
	Text string
}

// Lengths of the picture in pixels, and limits of what is drawn.
const (
	// pageWidth is the width of the page, with pageMargin on each side.
	pageWidth  = 1160.0
	pageMargin = 28.0
	// labelWidth is the space for the numbers of rows and lines, left of the
	// boxes.
	labelWidth = 104.0
	// sectorGap is the space between the sectors of a line.
	sectorGap = 8.0
	// rowHeight is the height of a line of memory, with rowGap below it.
	rowHeight = 22.0
	rowGap    = 6.0
	// maxLines bounds the lines of memory, and maxBars the bars that are drawn;
	// a note states how many are left out.
	maxLines = 40
	maxBars  = 12
	// maxArrayH is the most height of the logical array.
	maxArrayH = 420.0
)

// A palette is the colors of a page; those of arrays are the same on all pages.
type palette struct {
	// The ground, and what is written on it.
	page, ink, faint string
	// Edges of sectors and of the grid, bytes that are moved in vain, and padding.
	edge, waste, pad string
}

var (
	lightPalette = palette{
		page:  "#ffffff",
		ink:   "#1b1f24",
		faint: "#6a737d",
		edge:  "#b8c0c8",
		waste: "#c2410c",
		pad:   "#8b949e",
	}
	darkPalette = palette{
		page:  "#14181d",
		ink:   "#e6edf3",
		faint: "#9aa4ae",
		edge:  "#4a535d",
		waste: "#fb923c",
		pad:   "#768390",
	}
)

// rules are the style rules of the colors. They are literal, since programs other than
// browsers do not know variables.
func (c palette) rules() string {
	return strings.NewReplacer(
		"PAGE", c.page,
		"INK", c.ink,
		"FAINT", c.faint,
		"EDGE", c.edge,
		"WASTE", c.waste,
		"PAD", c.pad,
	).Replace(`
  .page, .blank { fill: PAGE }
  text { fill: INK }
  .faint { fill: FAINT }
  .in { fill: #14181d }
  .sector { stroke: EDGE }
  .touched { stroke: INK }
  .cell { stroke: PAGE }
  .grid { stroke: EDGE }
  .tile { stroke: INK }
  .hatch { stroke: WASTE }
  .dots { fill: PAD }
`)
}

// style is the style sheet of the page, with the light colors for viewers that do not
// say what they prefer. Its classes are named after what they draw.
var style = `
  svg { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif }
  text { font-size: 13px }
  .title { font-size: 17px; font-weight: 600 }
  .mono { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 12px }
  .in { font-size: 11px; text-anchor: middle }
  .right { text-anchor: end }
  .mid { text-anchor: middle }
  .sector { fill: none; stroke-dasharray: 3 3 }
  .touched { fill: none; stroke-width: 1.2 }
  .waste { fill: url(#waste) }
  .pad { fill: url(#pad) }
  .cell { stroke-width: 1 }
  .grid { stroke-width: 0.5; fill: none }
  .tile { stroke-width: 1.6; fill: none }
  .hatch { stroke-width: 2 }` + lightPalette.rules() +
	"  @media (prefers-color-scheme: dark) {" + darkPalette.rules() + "  }\n"

// SVG draws the picture as a page of its own, from top to bottom: the heading,
// the legend, the array, the lines of memory, the bars. The parts append to the
// body and advance the height; the frame around them is written last, when the
// height is known. It is to be called once.
func (p *Picture) SVG() []byte {
	p.heading()
	p.legend()
	if p.Array != nil {
		p.drawArray()
	}
	p.drawMemory()
	p.drawBars()
	height := p.y + pageMargin
	var out strings.Builder
	fmt.Fprintf(
		&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img">`+"\n", pageWidth, height, pageWidth, height,
	)
	fmt.Fprintf(
		&out, "<title>%s</title>\n<style>%s</style>\n", html.EscapeString(p.Title), style,
	)
	out.WriteString(`<defs><pattern id="waste" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" d="M0 0V6"/></pattern>` +
		`<pattern id="pad" width="5" height="5" patternUnits="userSpaceOnUse"><circle class="dots" cx="2" cy="2" r="0.9"/></pattern></defs>` + "\n")
	out.WriteString(`<rect class="page" width="100%" height="100%"/>` + "\n")
	out.WriteString(p.b.String())
	out.WriteString("</svg>\n")
	return []byte(out.String())
}

// text draws a line of text.
func (p *Picture) text(x, y float64, class, text string) {
	fmt.Fprintf(
		&p.b, `<text x="%s" y="%s" class="%s">%s</text>`+"\n", px(x),
		px(y), class, html.EscapeString(text),
	)
}

// rect draws a rectangle.
func (p *Picture) rect(x, y, w, h float64, class, fill, tip string) {
	if fill != "" {
		fill = ` fill="` + fill + `"`
	}
	if tip == "" {
		fmt.Fprintf(
			&p.b, `<rect x="%s" y="%s" width="%s" height="%s" class="%s"%s/>`+"\n", px(x),
			px(y), px(w), px(h),
			class, fill,
		)
		return
	}
	fmt.Fprintf(
		&p.b, `<rect x="%s" y="%s" width="%s" height="%s" class="%s"%s><title>%s</title></rect>`+"\n", px(x),
		px(y), px(w), px(h),
		class, fill, html.EscapeString(tip),
	)
}

// px prints a length with at most two decimals, so that pages are the same on all
// machines.
func px(x float64) string {
	return strings.TrimSuffix(
		strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".",
	)
}

// heading draws the title and the notes.
func (p *Picture) heading() {
	p.y = pageMargin + 14
	p.text(
		pageMargin, p.y, "title", short(p.Title, 110),
	)
	for _, n := range p.Notes {
		p.y += 20
		p.text(pageMargin, p.y, "faint", short(n, 160))
	}
	p.y += 14
}

// short cuts text to n characters.
func short(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// legend draws the keys side by side, in as many rows as they need.
func (p *Picture) legend() {
	x := pageMargin
	p.y += 8
	for _, k := range p.Legend {
		width := 26 + 24 + 7.2*float64(len([]rune(k.Text)))
		if x+width > pageWidth-pageMargin {
			x = pageMargin
			p.y = p.y + 24
		}
		class, fill := k.Swatch.look()
		p.rect(x, p.y, 18, 14, class, fill, "")
		p.text(x+26, p.y+11.5, "", k.Text)
		x += width
	}
	p.y += 42
}

// drawArray draws the logical array. Elements are at most 26 by 20 pixels, less
// where the array has to fit; rows are numbered as densely as there is room for
// the numbers; labels are drawn where all of them fit.
func (p *Picture) drawArray() {
	a := p.Array
	w := min(
		26,
		(pageWidth-2*pageMargin-labelWidth)/float64(a.cols),
	)
	h := min(20, maxArrayH/float64(a.rows))
	labels := h >= 12 && a.labelsFit(w)
	caption := a.caption
	if !labels { // then a title has what the number would
		caption = strings.Replace(caption, "number: ", "under the pointer: ", 1)
	}
	p.text(pageMargin, p.y+4, "", caption)
	p.y += 16
	x0 := pageMargin + labelWidth
	labelEvery := int64(math.Ceil(16 / h))
	for i := range a.rows {
		y := p.y + float64(i)*h
		if i%labelEvery == 0 {
			p.text(
				x0-10,
				y+min(h, 14)/2+5, "mono faint right",
				fmt.Sprint(a.row0+i),
			)
		}
		for j, n := int64(0),
			int64(0); j < a.cols; j += n {
			n = a.run(i, j)
			c := p.arrayCell(
				a, i, j, x0+float64(j)*w,
				y, float64(n)*w, h,
			)
			if labels {
				p.text(
					x0+(float64(j)+float64(n)/2)*w,
					y+h/2+4, "in", c.Label,
				)
			}
		}
	}
	p.tileLines(a, x0, w, h)
	p.y += float64(a.rows)*h + 34
}

// run is the number of cells from (i, j) on that are drawn as one box: those of
// one color with the same label.
func (a *Array) run(i, j int64) int64 {
	c, picked := a.at[[2]int64{a.row0 + i, a.col0 + j}]
	n := int64(1)
	for ; picked && j+n < a.cols; n++ {
		d, also := a.at[[2]int64{a.row0 + i, a.col0 + j + n}]
		if !also || d.Color != c.Color ||
			d.Label != c.Label {
			break
		}
	}
	return n
}

// labelsFit reports whether every run has room for its label.
func (a *Array) labelsFit(w float64) bool {
	for i := range a.rows {
		for j, n := int64(0),
			int64(0); j < a.cols; j += n {
			n = a.run(i, j)
			c := a.at[[2]int64{a.row0 + i, a.col0 + j}]
			if textWidth(c.Label)+1 > float64(n)*w {
				return false
			}
		}
	}
	return true
}

// arrayCell draws one box of the array and returns its cell.
func (p *Picture) arrayCell(
	a *Array, i, j int64, x, y, w, h float64,
) Cell {
	c, picked := a.at[[2]int64{a.row0 + i, a.col0 + j}]
	if !picked {
		if w >= 6 && h >= 6 {
			p.rect(x, y, w, h, "grid", "none", "")
		}
		return c
	}
	p.rect(x, y, w, h, "cell", ramp(c.Color), c.Tip)
	return c
}

// tileLines draws the edges of tiles, or of the part shown.
func (p *Picture) tileLines(a *Array, x0, w, h float64) {
	for i := int64(0); a.tileRows > 0 &&
		i < a.rows; i += a.tileRows - (a.row0+i)%a.tileRows {
		for j := int64(0); a.tileCols > 0 &&
			j < a.cols; j += a.tileCols - (a.col0+j)%a.tileCols {
			rows := min(
				a.tileRows-(a.row0+i)%a.tileRows,
				a.rows-i,
			)
			cols := min(
				a.tileCols-(a.col0+j)%a.tileCols,
				a.cols-j,
			)
			p.rect(
				x0+float64(j)*w,
				p.y+float64(i)*h,
				float64(cols)*w, float64(rows)*h, "tile",
				"none", "",
			)
		}
	}
	if a.tileRows == 0 {
		p.rect(
			x0, p.y, float64(a.cols)*w,
			float64(a.rows)*h, "grid", "none", "",
		)
	}
}

// drawMemory draws the lines that cells touch, in order, and states the gaps
// between them.
func (p *Picture) drawMemory() {
	slices.SortStableFunc(p.Cells, func(a, b Cell) int {
		return cmp.Compare(a.From, b.From)
	})
	lines := p.linesTouched()
	if !p.Waste {
		p.labelAllOrNone()
	}
	p.text(
		pageMargin, p.y+4, "",
		fmt.Sprintf("Memory: a row is a line of %d bytes, a box a sector of %d", p.Size.Line, p.Size.Sector),
	)
	p.y += 18
	last := int64(-1)
	for i, line := range lines {
		if i == maxLines && len(lines) > maxLines+1 {
			p.y += 10
			p.text(
				pageMargin+labelWidth, p.y, "faint",
				fmt.Sprintf("… and %s more", layout.CountText(int64(len(lines)-i), "line")),
			)
			p.y += 10
			break
		}
		if gap := line - last - 1; gap > 0 && i > 0 {
			p.y += 9
			p.text(
				pageMargin+labelWidth+p.memoryWidth()/2, p.y,
				"faint mid", layout.CountText(gap, "line")+" not touched",
			)
			p.y += 9
		}
		p.drawLine(line)
		last = line
	}
	p.y += 22
}

// labelAllOrNone removes the labels of all cells where one has no room for its
// own: a picture with some labels would suggest that the others are different.
func (p *Picture) labelAllOrNone() {
	perByte := p.x(1) - p.x(0)
	crowded := slices.ContainsFunc(p.Cells, func(c Cell) bool {
		return textWidth(c.Label)+4 > perByte*float64(c.To-c.From)
	})
	for i := range p.Cells {
		if crowded {
			p.Cells[i].Label = ""
		}
	}
}

// memoryWidth is the width of a line of memory.
func (p *Picture) memoryWidth() float64 {
	return pageWidth - 2*pageMargin - labelWidth
}

// linesTouched are the numbers of the lines that cells touch, in order, each once.
// A cell may reach over several lines.
func (p *Picture) linesTouched() (lines []int64) {
	for _, c := range p.Cells {
		for line := c.From / p.Size.Line; line <= (c.To-1)/
			p.Size.Line; line++ {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// x is the position of a byte of a line on the page.
func (p *Picture) x(inLine int64) float64 {
	sectors := p.Size.Line / p.Size.Sector
	perByte := (p.memoryWidth() - sectorGap*float64(sectors-1)) /
		float64(p.Size.Line)
	return pageMargin + labelWidth + float64(inLine)*perByte +
		sectorGap*float64(min(inLine, p.Size.Line-1)/p.Size.Sector)
}

// drawLine draws one line: hatched where bytes of a touched sector are not
// asked for, the cells over that, then the outlines of the sectors.
func (p *Picture) drawLine(line int64) {
	start := line * p.Size.Line
	p.text(
		pageMargin+labelWidth-10, p.y+rowHeight/2+4,
		"mono faint right", fmt.Sprintf("byte %d", start),
	)
	var cells []Cell
	for _, c := range p.Cells {
		if c.From < start+p.Size.Line && c.To > start {
			cells = append(cells, c)
		}
	}
	for s := start; s < start+p.Size.Line; s += p.Size.Sector {
		x := p.x(s - start)
		w := p.x(s-start+p.Size.Sector-1) -
			x +
			(p.x(1) - p.x(0))
		touched := slices.ContainsFunc(cells, func(c Cell) bool {
			return c.Color != Padding &&
				c.From < s+p.Size.Sector &&
				c.To > s
		})
		class := "sector"
		if touched {
			class = "touched"
		}
		if touched && p.Waste {
			p.rect(
				x, p.y, w, rowHeight, "waste", "", "bytes of a touched sector that were not asked for",
			)
		}
		for _, c := range p.merged(cells) {
			p.drawCell(c, s)
		}
		if touched || p.Waste {
			p.rect(x, p.y, w, rowHeight, class, "", "")
		}
	}
	p.y += rowHeight + rowGap
}

// merged joins neighbouring cells of one color and label where they are too
// narrow to be told apart.
func (p *Picture) merged(cells []Cell) (out []Cell) {
	perByte := p.x(1) - p.x(0)
	for _, c := range cells {
		n := len(out) - 1
		if n >= 0 &&
			perByte*float64(c.To-c.From) < 12 &&
			out[n].To == c.From &&
			out[n].Color == c.Color &&
			out[n].Label == c.Label {
			out[n].To = c.To
			continue
		}
		out = append(out, c)
	}
	return out
}

// drawCell draws the part of c in the sector that starts at byte s.
func (p *Picture) drawCell(c Cell, s int64) {
	from := max(c.From, s)
	to := min(c.To, s+p.Size.Sector)
	if from >= to {
		return
	}
	x := p.x(from % p.Size.Line)
	w := p.x((to-1)%p.Size.Line) -
		x +
		(p.x(1) - p.x(0))
	if c.Color == Padding {
		p.rect(
			x, p.y, w, rowHeight, "cell blank", "", "",
		)
		p.rect(x, p.y, w, rowHeight, "pad", "", c.Tip)
		return
	}
	p.rect(
		x, p.y, w, rowHeight, "cell",
		ramp(c.Color), c.Tip,
	)
	if w >= textWidth(c.Label)+1 {
		p.text(x+w/2, p.y+rowHeight/2+4, "in", c.Label)
	}
}

// textWidth is about the width of a label of digits and commas.
func textWidth(label string) (w float64) {
	for _, c := range label {
		if w += 7; c == ',' {
			w -= 3.5
		}
	}
	return w
}

// drawBars draws the sectors that accesses touch over the fewest that would do.
func (p *Picture) drawBars() {
	if len(p.Bars) == 0 {
		return
	}
	p.text(pageMargin, p.y+4, "", p.BarHead)
	p.y += 16
	maxTouched := int64(1)
	for _, b := range p.Bars {
		maxTouched = max(maxTouched, b.Touched)
	}
	const labelSpace, textSpace = 190.0, 300.0
	scale := (pageWidth - 2*pageMargin - labelSpace - textSpace) / float64(maxTouched)
	for i, b := range p.Bars {
		if i == maxBars && len(p.Bars) > maxBars+1 {
			p.y += 6
			p.text(
				pageMargin+labelSpace, p.y+8, "faint",
				fmt.Sprintf("… and %d more", len(p.Bars)-i),
			)
			p.y += 16
			break
		}
		x := pageMargin + labelSpace
		p.text(x-10, p.y+12, "right", b.Label)
		p.rect(
			x, p.y,
			float64(b.Touched)*scale, 16, "waste",
			"", "",
		)
		p.rect(
			x, p.y,
			float64(min(b.Ideal, b.Touched))*scale,
			16, "cell", ramp(0), "",
		)
		p.rect(
			x, p.y,
			float64(b.Touched)*scale, 16, "touched",
			"", "",
		)
		p.text(
			x+float64(b.Touched)*scale+10,
			p.y+12, "faint", b.Text,
		)
		p.y += 22
	}
}

// ramp is color i, from green to violet. The hues of consecutive numbers are 55
// degrees apart, and three values of lightness alternate, so that neighbours
// differ. No color is the waste's, and all are light enough for dark text.
func ramp(i int) string {
	hue := 150 + math.Mod(60+float64(i)*55, 150)
	light := [...]float64{0.70, 0.80, 0.62}[i%3]
	return hex(hue, 0.55, light)
}

// hex is the color of a hue in degrees, and of saturation and lightness in [0,
// 1], in the notation #rrggbb. The formula is that of CSS hsl().
func hex(hue, saturation, light float64) string {
	a := saturation * min(light, 1-light)
	channel := func(n float64) int {
		k := math.Mod(n+hue/30, 12)
		return int(math.Round(255 * (light - a*max(
			-1, min(k-3, 9-k, 1),
		))))
	}
	return fmt.Sprintf(
		"#%02x%02x%02x", channel(0), channel(8), channel(4),
	)
}
