package layout

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// A picture is a page that shows memory by lines and sectors, the array above
// it and bars below. It is drawn as SVG that needs nothing else and has colours
// for light and dark pages.
type picture struct {
	title   string
	notes   []string // lines under the title
	keys    []key
	size    Sectors
	cells   []cell // in memory
	array   *array // nil: none
	bars    []bar
	barHead string
	waste   bool // hatch what a touched sector moves beside its cells

	b strings.Builder
	y float64
}

// A cell is bytes that were asked for.
type cell struct {
	from, to int64 // bytes [from, to)
	colour   int   // of the ramp; padding when negative
	label    string
	tip      string
}

const padding = -1

// A key is a row of the legend: a swatch and what it means.
type key struct{ class, fill, text string }

// An array is part of the logical array: rows and columns of elements.
type array struct {
	caption    string
	rows, cols int64
	row0, col0 int64 // index of the first
	at         map[[2]int64]cell
	tileRows   int64 // lines are drawn between tiles; 0: none
	tileCols   int64
}

// A bar compares sectors touched with the least there could be.
type bar struct {
	label          string
	touched, ideal int64
	text           string
}

// Lengths of the picture, in pixels.
const (
	pageWidth  = 1160.0
	pageMargin = 28.0
	labelWidth = 104.0
	sectorGap  = 8.0
	rowHeight  = 22.0
	rowGap     = 6.0
	maxLines   = 40
	maxBars    = 12
	maxArrayH  = 420.0
)

const style = `
  svg { --page: #ffffff; --ink: #1b1f24; --faint: #6a737d; --edge: #b8c0c8; --waste: #c2410c; --pad: #8b949e; font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif }
  @media (prefers-color-scheme: dark) {
    svg { --page: #14181d; --ink: #e6edf3; --faint: #9aa4ae; --edge: #4a535d; --waste: #fb923c; --pad: #768390 }
  }
  .page { fill: var(--page) }
  text { fill: var(--ink); font-size: 13px }
  .title { font-size: 17px; font-weight: 600 }
  .faint { fill: var(--faint) }
  .mono { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 12px }
  .in { fill: #14181d; font-size: 11px; text-anchor: middle }
  .right { text-anchor: end }
  .mid { text-anchor: middle }
  .sector { fill: none; stroke: var(--edge); stroke-dasharray: 3 3 }
  .touched { fill: none; stroke: var(--ink); stroke-width: 1.2 }
  .waste { fill: url(#waste) }
  .pad { fill: url(#pad) }
  .cell { stroke: var(--page); stroke-width: 1 }
  .grid { stroke: var(--edge); stroke-width: 0.5; fill: none }
  .tile { stroke: var(--ink); stroke-width: 1.6; fill: none }
  .hatch { stroke: var(--waste); stroke-width: 2 }
  .dots { fill: var(--pad) }
`

// svg draws the picture.
func (p *picture) svg() []byte {
	p.heading()
	p.legend()
	if p.array != nil {
		p.drawArray()
	}
	p.drawMemory()
	p.drawBars()
	height := p.y + pageMargin
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img">`+"\n", pageWidth, height, pageWidth, height)
	fmt.Fprintf(&out, "<title>%s</title>\n<style>%s</style>\n", html.EscapeString(p.title), style)
	out.WriteString(`<defs><pattern id="waste" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" d="M0 0V6"/></pattern>` +
		`<pattern id="pad" width="5" height="5" patternUnits="userSpaceOnUse"><circle class="dots" cx="2" cy="2" r="0.9"/></pattern></defs>` + "\n")
	out.WriteString(`<rect class="page" width="100%" height="100%"/>` + "\n")
	out.WriteString(p.b.String())
	out.WriteString("</svg>\n")
	return []byte(out.String())
}

func (p *picture) text(x, y float64, class, text string) {
	fmt.Fprintf(&p.b, `<text x="%s" y="%s" class="%s">%s</text>`+"\n", px(x), px(y), class, html.EscapeString(text))
}

func (p *picture) rect(x, y, w, h float64, class, fill, tip string) {
	if fill != "" {
		fill = ` fill="` + fill + `"`
	}
	if tip == "" {
		fmt.Fprintf(&p.b, `<rect x="%s" y="%s" width="%s" height="%s" class="%s"%s/>`+"\n", px(x), px(y), px(w), px(h), class, fill)
		return
	}
	fmt.Fprintf(&p.b, `<rect x="%s" y="%s" width="%s" height="%s" class="%s"%s><title>%s</title></rect>`+"\n", px(x), px(y), px(w), px(h), class, fill, html.EscapeString(tip))
}

// px prints a length with at most two decimals.
func px(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}

func (p *picture) heading() {
	p.y = pageMargin + 14
	p.text(pageMargin, p.y, "title", short(p.title, 110))
	for _, n := range p.notes {
		p.y += 20
		p.text(pageMargin, p.y, "faint", short(n, 160))
	}
	p.y += 14
}

// short cuts text to n runes.
func short(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// legend sets the keys side by side, in as many rows as they need.
func (p *picture) legend() {
	x := pageMargin
	p.y += 8
	for _, k := range p.keys {
		width := 26 + 24 + 7.2*float64(len([]rune(k.text)))
		if x+width > pageWidth-pageMargin {
			x, p.y = pageMargin, p.y+24
		}
		p.rect(x, p.y, 18, 14, k.class, k.fill, "")
		p.text(x+26, p.y+11.5, "", k.text)
		x += width
	}
	p.y += 42
}

// drawArray draws the logical array, elements as squares where there is room.
func (p *picture) drawArray() {
	a := p.array
	w := min(26, (pageWidth-2*pageMargin-labelWidth)/float64(a.cols))
	h := min(20, maxArrayH/float64(a.rows))
	p.text(pageMargin, p.y+4, "", a.caption)
	p.y += 16
	x0 := pageMargin + labelWidth
	every := int64(math.Ceil(16 / h))
	labels := h >= 12 && a.labelsFit(w)
	for i := range a.rows {
		y := p.y + float64(i)*h
		if i%every == 0 {
			p.text(x0-10, y+min(h, 14)/2+5, "mono faint right", fmt.Sprint(a.row0+i))
		}
		for j, n := int64(0), int64(0); j < a.cols; j += n {
			n = a.run(i, j)
			c := p.arrayCell(a, i, j, x0+float64(j)*w, y, float64(n)*w, h)
			if labels {
				p.text(x0+(float64(j)+float64(n)/2)*w, y+h/2+4, "in", c.label)
			}
		}
	}
	p.tileLines(a, x0, w, h)
	p.y += float64(a.rows)*h + 34
}

// run is how many cells from (i, j) on are drawn as one: those of one colour
// with the same label.
func (a *array) run(i, j int64) int64 {
	c, picked := a.at[[2]int64{a.row0 + i, a.col0 + j}]
	n := int64(1)
	for ; picked && j+n < a.cols; n++ {
		d, also := a.at[[2]int64{a.row0 + i, a.col0 + j + n}]
		if !also || d.colour != c.colour || d.label != c.label {
			break
		}
	}
	return n
}

// labelsFit says whether every run has room for its label.
func (a *array) labelsFit(w float64) bool {
	for i := range a.rows {
		for j, n := int64(0), int64(0); j < a.cols; j += n {
			n = a.run(i, j)
			if c := a.at[[2]int64{a.row0 + i, a.col0 + j}]; textWidth(c.label)+1 > float64(n)*w {
				return false
			}
		}
	}
	return true
}

func (p *picture) arrayCell(a *array, i, j int64, x, y, w, h float64) cell {
	c, picked := a.at[[2]int64{a.row0 + i, a.col0 + j}]
	if !picked {
		if w >= 6 && h >= 6 {
			p.rect(x, y, w, h, "grid", "none", "")
		}
		return c
	}
	p.rect(x, y, w, h, "cell", ramp(c.colour), c.tip)
	return c
}

// tileLines draws the edges of tiles and of the part shown.
func (p *picture) tileLines(a *array, x0, w, h float64) {
	for i := int64(0); a.tileRows > 0 && i < a.rows; i += a.tileRows - (a.row0+i)%a.tileRows {
		for j := int64(0); a.tileCols > 0 && j < a.cols; j += a.tileCols - (a.col0+j)%a.tileCols {
			rows := min(a.tileRows-(a.row0+i)%a.tileRows, a.rows-i)
			cols := min(a.tileCols-(a.col0+j)%a.tileCols, a.cols-j)
			p.rect(x0+float64(j)*w, p.y+float64(i)*h, float64(cols)*w, float64(rows)*h, "tile", "none", "")
		}
	}
	if a.tileRows == 0 {
		p.rect(x0, p.y, float64(a.cols)*w, float64(a.rows)*h, "grid", "none", "")
	}
}

// drawMemory draws the lines that cells touch, in order, with the gaps named.
func (p *picture) drawMemory() {
	slices.SortStableFunc(p.cells, func(a, b cell) int { return cmp.Compare(a.from, b.from) })
	lines := p.linesTouched()
	if !p.waste {
		p.labelAllOrNone()
	}
	p.text(pageMargin, p.y+4, "", fmt.Sprintf("Memory: a row is a line of %d bytes, a box a sector of %d", p.size.Line, p.size.Sector))
	p.y += 18
	last := int64(-1)
	for i, line := range lines {
		if i == maxLines && len(lines) > maxLines+1 {
			p.y += 10
			p.text(pageMargin+labelWidth, p.y, "faint", fmt.Sprintf("… and %s more", count(int64(len(lines)-i), "line")))
			p.y += 10
			break
		}
		if gap := line - last - 1; gap > 0 && i > 0 {
			p.y += 9
			p.text(pageMargin+labelWidth+p.memoryWidth()/2, p.y, "faint mid", count(gap, "line")+" not touched")
			p.y += 9
		}
		p.drawLine(line)
		last = line
	}
	p.y += 22
}

// labelAllOrNone takes the labels from all cells when one has no room for its own.
func (p *picture) labelAllOrNone() {
	perByte := p.x(1) - p.x(0)
	crowded := slices.ContainsFunc(p.cells, func(c cell) bool { return textWidth(c.label)+4 > perByte*float64(c.to-c.from) })
	for i := range p.cells {
		if crowded {
			p.cells[i].label = ""
		}
	}
}

func (p *picture) memoryWidth() float64 { return pageWidth - 2*pageMargin - labelWidth }

func (p *picture) linesTouched() (lines []int64) {
	for _, c := range p.cells {
		for line := c.from / p.size.Line; line <= (c.to-1)/p.size.Line; line++ {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// x is where a byte of a line stands.
func (p *picture) x(inLine int64) float64 {
	sectors := p.size.Line / p.size.Sector
	perByte := (p.memoryWidth() - sectorGap*float64(sectors-1)) / float64(p.size.Line)
	return pageMargin + labelWidth + float64(inLine)*perByte + sectorGap*float64(min(inLine, p.size.Line-1)/p.size.Sector)
}

// drawLine draws one line: hatched where a touched sector is not asked for, the
// cells over that, then the boxes.
func (p *picture) drawLine(line int64) {
	start := line * p.size.Line
	p.text(pageMargin+labelWidth-10, p.y+rowHeight/2+4, "mono faint right", fmt.Sprintf("byte %d", start))
	var here []cell
	for _, c := range p.cells {
		if c.from < start+p.size.Line && c.to > start {
			here = append(here, c)
		}
	}
	for s := start; s < start+p.size.Line; s += p.size.Sector {
		x := p.x(s - start)
		w := p.x(s-start+p.size.Sector-1) - x + (p.x(1) - p.x(0))
		touched := slices.ContainsFunc(here, func(c cell) bool { return c.colour != padding && c.from < s+p.size.Sector && c.to > s })
		class := "sector"
		if touched {
			class = "touched"
		}
		if touched && p.waste {
			p.rect(x, p.y, w, rowHeight, "waste", "", "bytes of a touched sector that were not asked for")
		}
		for _, c := range p.merged(here) {
			p.drawCell(c, s)
		}
		if touched || p.waste {
			p.rect(x, p.y, w, rowHeight, class, "", "")
		}
	}
	p.y += rowHeight + rowGap
}

// merged joins neighbours of one colour and label where they are too narrow to be
// told apart.
func (p *picture) merged(cells []cell) (out []cell) {
	perByte := p.x(1) - p.x(0)
	for _, c := range cells {
		if n := len(out) - 1; n >= 0 && perByte*float64(c.to-c.from) < 12 && out[n].to == c.from && out[n].colour == c.colour && out[n].label == c.label {
			out[n].to = c.to
			continue
		}
		out = append(out, c)
	}
	return out
}

// drawCell draws the part of c in the sector that starts at s.
func (p *picture) drawCell(c cell, s int64) {
	from, to := max(c.from, s), min(c.to, s+p.size.Sector)
	if from >= to {
		return
	}
	x := p.x(from % p.size.Line)
	w := p.x((to-1)%p.size.Line) - x + (p.x(1) - p.x(0))
	if c.colour == padding {
		p.rect(x, p.y, w, rowHeight, "cell", "var(--page)", "")
		p.rect(x, p.y, w, rowHeight, "pad", "", c.tip)
		return
	}
	p.rect(x, p.y, w, rowHeight, "cell", ramp(c.colour), c.tip)
	if w >= textWidth(c.label)+1 {
		p.text(x+w/2, p.y+rowHeight/2+4, "in", c.label)
	}
}

// textWidth is about as wide as a label: digits and commas.
func textWidth(label string) (w float64) {
	for _, c := range label {
		if w += 7; c == ',' {
			w -= 3.5
		}
	}
	return w
}

// drawBars draws what the accesses touch beside what they need.
func (p *picture) drawBars() {
	if len(p.bars) == 0 {
		return
	}
	p.text(pageMargin, p.y+4, "", p.barHead)
	p.y += 16
	most := int64(1)
	for _, b := range p.bars {
		most = max(most, b.touched)
	}
	const left, right = 190.0, 300.0
	scale := (pageWidth - 2*pageMargin - left - right) / float64(most)
	for i, b := range p.bars {
		if i == maxBars && len(p.bars) > maxBars+1 {
			p.y += 6
			p.text(pageMargin+left, p.y+8, "faint", fmt.Sprintf("… and %d more", len(p.bars)-i))
			p.y += 16
			break
		}
		x := pageMargin + left
		p.text(x-10, p.y+12, "right", b.label)
		p.rect(x, p.y, float64(b.touched)*scale, 16, "waste", "", "")
		p.rect(x, p.y, float64(min(b.ideal, b.touched))*scale, 16, "cell", ramp(0), "")
		p.rect(x, p.y, float64(b.touched)*scale, 16, "touched", "", "")
		p.text(x+float64(b.touched)*scale+10, p.y+12, "faint", b.text)
		p.y += 22
	}
}

// ramp is colour i: from green to violet, so that none is the waste's, with
// hues that neighbours do not share, light enough for dark text on any page.
func ramp(i int) string {
	hue := 150 + math.Mod(60+float64(i)*55, 150)
	light := [...]float64{0.70, 0.80, 0.62}[i%3]
	return hex(hue, 0.55, light)
}

// hex is the colour of a hue in degrees, saturation and lightness.
func hex(hue, saturation, light float64) string {
	a := saturation * min(light, 1-light)
	channel := func(n float64) int {
		k := math.Mod(n+hue/30, 12)
		return int(math.Round(255 * (light - a*max(-1, min(k-3, 9-k, 1)))))
	}
	return fmt.Sprintf("#%02x%02x%02x", channel(0), channel(8), channel(4))
}
