package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// Dimensions of the figures, in the units of their view boxes (pixels at a scale
// of 1).
const (
	// The strip of timings: its width, the width of the plans' names on its left,
	// the height of a plan's row and that of the axis below the rows.
	stripWidth = 720.0
	labelWidth = 210.0
	rowHeight  = 20.0
	axisHeight = 28.0
	// The square of predicted and measured times.
	scatterSize = 300.0

	// The rectangle of the points in that square, which leaves room for the
	// labels of the axes.
	scatterLeft   = 64.0
	scatterBottom = scatterSize - 34
	scatterRight  = scatterSize - 10
	scatterTop    = 8.0
)

// A scale maps positive values to pixels, logarithmically: equal ratios have equal
// lengths.
type scale struct {
	// Logarithms of the smallest and the largest value.
	lo, hi float64
	// Pixels of the two.
	from, to float64
}

// newScale spans the values; it is never empty.
func newScale(values []float64, from, to float64) scale {
	lo, hi := slices.Min(values), slices.Max(values)
	if hi < lo*1.05 {
		lo, hi = lo/1.025, hi*1.025
	}
	return scale{math.Log(lo), math.Log(hi), from, to}
}

// at is the pixel of a value.
func (s scale) at(v float64) float64 {
	share := (math.Log(v) - s.lo) / (s.hi - s.lo)
	return s.from + share*(s.to-s.from)
}

// ticks are round values inside the scale: 1, 2 and 5 times powers of ten, or its
// ends when there are fewer than two of those.
func (s scale) ticks() []float64 {
	var ticks []float64
	lo, hi := math.Exp(s.lo), math.Exp(s.hi)
	for p := math.Pow(10, math.Floor(math.Log10(lo))); p <= hi; p *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := p * m; v >= lo*0.999 && v <= hi*1.001 {
				ticks = append(ticks, v)
			}
		}
	}
	if len(ticks) < 2 {
		ticks = []float64{lo, hi}
	}
	return ticks
}

// An svg collects the elements of a figure.
type svg struct{ strings.Builder }

// newSVG begins a figure of some size. The label is read to people who do not see it.
func newSVG(width, height float64, label string) *svg {
	f := &svg{}
	f.add(`<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, html.EscapeString(label))
	return f
}

// add appends formatted elements; texts in args are escaped by the caller.
func (f *svg) add(format string, args ...any) { fmt.Fprintf(f, format, args...) }

// html ends the figure.
func (f *svg) html() template.HTML { return template.HTML(f.String() + "</svg>") }

// timingStrip draws every sample of every plan, one plan a line, with the median.
func timingStrip(name string, plans []planRow, session kernels.ClockStats) template.HTML {
	if len(plans) == 0 {
		return ""
	}
	var all []float64
	for _, p := range plans {
		all = append(all, p.Samples...)
	}
	x := newScale(all, labelWidth, stripWidth-16)
	height := rowHeight*float64(len(plans)) + axisHeight
	f := newSVG(stripWidth, height, "all timings of "+name+", one line a plan")
	f.Grow(markBytes*len(all) + lineBytes*len(plans))
	for _, v := range x.ticks() {
		at := x.at(v)
		f.add(`<line class="grid" x1="%.1f" x2="%.1f" y1="0" y2="%g"/>`, at, at, height-22)
		f.add(`<text class="tick" x="%.1f" y="%g" text-anchor="%s">%s</text>`,
			at, height-6, textAnchor(at, stripWidth), Seconds(v))
	}
	for k, p := range plans {
		f.addTimings(p, x, rowHeight*float64(k)+rowHeight/2+2, session)
	}
	return f.html()
}

// addTimings draws the line of one plan at height y.
func (f *svg) addTimings(p planRow, x scale, y float64, session kernels.ClockStats) {
	f.add(`<g class="%s">`, figureClass(p.Role))
	f.add(`<text class="label" x="%g" y="%.1f" text-anchor="end">%s</text>`,
		labelWidth-12, y+4, html.EscapeString(truncate(p.Plan, 28)))
	// A page has thousands of samples: fmt would take a tenth of its time for them.
	mark := make([]byte, 0, markBytes)
	rest := append(strconv.AppendFloat([]byte(`" cy="`), y, 'f', 1, 64), `" r="2.4"`...)
	for n, s := range p.Samples {
		mark = append(mark[:0], `<circle cx="`...)
		mark = appendTenths(mark, x.at(s))
		f.Write(append(mark, rest...))
		f.WriteString(clockMark(p.Trial, n, session))
	}
	median := x.at(p.Median)
	f.add(`<line class="median" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/></g>`,
		median, median, y-7, y+7)
}

// Bytes of the mark of a sample, and of all else in the line of a plan, about.
const (
	markBytes = 48
	lineBytes = 256
)

// appendTenths appends a number of pixels, which is not negative, rounded to tenths: "12.0".
func appendTenths(b []byte, pixels float64) []byte {
	tenths := int64(math.Round(10 * pixels))
	b = strconv.AppendInt(b, tenths/10, 10)
	return append(b, '.', byte('0'+tenths%10))
}

// clockMark is the end of the mark of a sample. Where the clock of the sample is
// known the mark has a title, and it is hollow if the clock is off the session's.
func clockMark(t cache.Trial, n int, session kernels.ClockStats) string {
	if n >= len(t.Clocks) || t.Clocks[n] == 0 {
		return "/>"
	}
	class, note := "", ""
	if session.Outlier(t.Clocks[n]) {
		class = ` class="off"`
		note = fmt.Sprintf(", off the session's median of %.0f", session.Median/1e6)
	}
	time, clock := Seconds(t.Samples[n]), t.Clocks[n]/1e6
	return fmt.Sprintf("%s><title>%s at %.0f MHz%s</title></circle>", class, time, clock, note)
}

// truncate shortens a text to n characters.
func truncate(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// figureClass is the style of a plan's marks.
func figureClass(role string) string {
	switch role {
	case "winner", "winner, default":
		return "win"
	case "default":
		return "def"
	case "tied":
		return "tie"
	}
	return "rest"
}

// textAnchor keeps the text under a tick inside of a figure of some width.
func textAnchor(at, width float64) string {
	if at > width-40 {
		return "end"
	}
	return "middle"
}

// scatter draws measured against predicted times, with the line where they are
// equal.
func scatter(name string, plans []planRow) template.HTML {
	var all []float64
	for _, p := range plans {
		if p.Predicted > 0 {
			// Points stay off the frame.
			all = append(all, p.Predicted/1.06, p.Predicted*1.06, p.Median/1.06, p.Median*1.06)
		}
	}
	if len(all) == 0 {
		return ""
	}
	x := newScale(all, scatterLeft, scatterRight)
	y := newScale(all, scatterBottom, scatterTop)
	f := newSVG(scatterSize, scatterSize, "predicted against measured time of "+name)
	f.addGrid(x, y)
	f.add(`<line class="agree" x1="%g" y1="%g" x2="%g" y2="8"/>`, scatterLeft, scatterBottom, scatterRight)
	for _, p := range plans {
		if p.Predicted > 0 {
			f.add(`<g class="%s"><circle cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle></g>`,
				figureClass(p.Role), x.at(p.Predicted), y.at(p.Median), html.EscapeString(p.Plan))
		}
	}
	middle := scatterSize/2 - 13
	f.add(`<text class="axis" x="%g" y="%g" text-anchor="middle">predicted</text>`,
		scatterSize/2+17, scatterSize-4)
	f.add(`<text class="axis" x="12" y="%g" transform="rotate(-90 12 %g)" text-anchor="middle">measured</text>`,
		middle, middle)
	return f.html()
}

// addGrid draws the lines and labels of the ticks of both axes.
func (f *svg) addGrid(x, y scale) {
	for _, v := range thinTicks(x.ticks(), 4) {
		at := x.at(v)
		f.add(`<line class="grid" x1="%.1f" x2="%.1f" y1="8" y2="%g"/>`, at, at, scatterBottom)
		f.add(`<text class="tick" x="%.1f" y="%g" text-anchor="%s">%s</text>`,
			at, scatterSize-20, textAnchor(at, scatterSize), Seconds(v))
		at = y.at(v)
		f.add(`<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, scatterLeft, scatterRight, at, at)
		f.add(`<text class="tick" x="%g" y="%.1f" text-anchor="end">%s</text>`, scatterLeft-4, at+3, Seconds(v))
	}
}

// thinTicks keeps at most n of the ticks, evenly spaced.
func thinTicks(ticks []float64, n int) []float64 {
	step := (len(ticks) + n - 1) / n
	var out []float64
	for k := 0; k < len(ticks); k += step {
		out = append(out, ticks[k])
	}
	return out
}
