package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/tuner"
)

// A scale maps values to pixels, logarithmically: a ratio has the same length
// everywhere.
type scale struct{ lo, hi, from, to float64 }

func newScale(values []float64, from, to float64) scale {
	lo := slices.Min(values)
	hi := slices.Max(values)
	if hi < lo*1.05 {
		lo, hi = lo/1.025, hi*1.025
	}
	return scale{math.Log(lo), math.Log(hi), from, to}
}

func (s scale) at(v float64) float64 {
	return s.from + (math.Log(v)-s.lo)/
		(s.hi-s.lo)*
		(s.to-s.from)
}

// ticks are round values inside the scale: 1, 2 and 5 times powers of ten.
func (s scale) ticks() []float64 {
	var out []float64
	lo := math.Exp(s.lo)
	hi := math.Exp(s.hi)
	for p := math.Pow(10, math.Floor(math.Log10(lo))); p <= hi; p *= 10 {
		for _, m := range []float64{1, 2, 5} {
			v := p * m
			if v >= lo*0.999 && v <= hi*1.001 {
				out = append(out, v)
			}
		}
	}
	if len(out) < 2 {
		out = []float64{lo, hi}
	}
	return out
}

const (
	stripWidth  = 720.0
	labelWidth  = 210.0
	rowHeight   = 20.0
	scatterSize = 300.0
)

// timingStrip draws every sample of every plan on a line of its own, with the median.
func timingStrip(plans []planRow, session kernels.ClockStats) template.HTML {
	if len(plans) == 0 {
		return ""
	}
	var all []float64
	for _, p := range plans {
		all = append(all, p.Samples...)
	}
	x := newScale(all, labelWidth, stripWidth-16)
	height := rowHeight*float64(len(plans)) + 28
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="all timings, one line a plan">`, stripWidth, height)
	for _, v := range x.ticks() {
		fmt.Fprintf(
			&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="0" y2="%g"/><text class="tick" x="%.1f" y="%g" text-anchor="%s">%s</text>`,
			x.at(v), x.at(v),
			height-22, x.at(v), height-6,
			textAnchor(x.at(v), stripWidth),
			tuner.Seconds(v),
		)
	}
	for k, p := range plans {
		y := rowHeight*float64(k) + rowHeight/2 + 2
		class := figureClass(p.Role)
		fmt.Fprintf(
			&b, `<g class="%s"><text class="label" x="%g" y="%.1f" text-anchor="end">%s</text>`,
			class, labelWidth-12, y+4,
			html.EscapeString(truncate(p.Plan, 32)),
		)
		for n, s := range p.Samples {
			fmt.Fprintf(
				&b, `<circle cx="%.1f" cy="%.1f" r="2.4"%s`,
				x.at(s), y,
				sampleMark(p.Trial, n, session),
			)
		}
		fmt.Fprintf(
			&b, `<line class="median" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/></g>`,
			x.at(p.Median),
			x.at(p.Median), y-7,
			y+7,
		)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// sampleMark is how the mark of a sample ends: with its clock, where that is known,
// and hollow where it is off the session's.
func sampleMark(t cache.Trial, n int, session kernels.ClockStats) string {
	if n >= len(t.Clocks) || t.Clocks[n] == 0 {
		return "/>"
	}
	look, note := "", ""
	if session.Outlier(t.Clocks[n]) {
		look = ` class="off"`
		note = fmt.Sprintf(", off the session's median of %.0f", session.Median/1e6)
	}
	return fmt.Sprintf(
		"%s><title>%s at %.0f MHz%s</title></circle>",
		look, tuner.Seconds(t.Samples[n]),
		t.Clocks[n]/1e6, note,
	)
}

func truncate(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

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

// textAnchor keeps the text under a tick inside of a figure.
func textAnchor(at, width float64) string {
	if at > width-40 {
		return "end"
	}
	return "middle"
}

// scatter draws predicted against measured, with the line where they agree.
func scatter(plans []planRow) template.HTML {
	var all []float64
	for _, p := range plans {
		if p.Predicted > 0 {
			all = append(all, p.Predicted, p.Median)
		}
	}
	if len(all) == 0 {
		return ""
	}
	x := newScale(all, 44, scatterSize-10)
	y := newScale(all, scatterSize-34, 8)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="predicted against measured time">`, scatterSize, scatterSize)
	for _, v := range thinTicks(x.ticks(), 4) {
		fmt.Fprintf(
			&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="8" y2="%g"/><text class="tick" x="%.1f" y="%g" text-anchor="%s">%s</text>`,
			x.at(v), x.at(v),
			scatterSize-34, x.at(v), scatterSize-20,
			textAnchor(x.at(v), scatterSize),
			tuner.Seconds(v),
		)
		fmt.Fprintf(
			&b, `<line class="grid" x1="44" x2="%g" y1="%.1f" y2="%.1f"/><text class="tick" x="40" y="%.1f" text-anchor="end">%s</text>`,
			scatterSize-10, y.at(v),
			y.at(v),
			y.at(v)+3,
			tuner.Seconds(v),
		)
	}
	fmt.Fprintf(&b, `<line class="agree" x1="44" y1="%g" x2="%g" y2="8"/>`, scatterSize-34, scatterSize-10)
	for _, p := range plans {
		if p.Predicted > 0 {
			fmt.Fprintf(
				&b, `<g class="%s"><circle cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle></g>`,
				figureClass(p.Role),
				x.at(p.Predicted),
				y.at(p.Median),
				html.EscapeString(p.Plan),
			)
		}
	}
	fmt.Fprintf(
		&b, `<text class="axis" x="%g" y="%g" text-anchor="middle">predicted</text><text class="axis" x="12" y="%g" transform="rotate(-90 12 %g)" text-anchor="middle">measured</text></svg>`,
		scatterSize/2+17, scatterSize-4, scatterSize/2-13,
		scatterSize/2-13,
	)
	return template.HTML(b.String())
}

// thinTicks keeps at most n of the ticks, evenly.
func thinTicks(ticks []float64, n int) []float64 {
	step := (len(ticks) + n - 1) / n
	var out []float64
	for k := 0; k < len(ticks); k += step {
		out = append(out, ticks[k])
	}
	return out
}
