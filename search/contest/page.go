package contest

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/search"
)

//go:embed page.html
var files embed.FS

// A view is the page as the template sees it.
type view struct {
	Document
	Sections []section
	Methods  []search.Method
}

// A section is the part of a page about one table.
type section struct {
	Table          string
	Points, Failed int
	Results        []Result
	Figure         template.HTML
}

// HTML writes a page with the curves. It needs nothing from outside, and the same
// document gives the same bytes.
func (d Document) HTML(w io.Writer) error {
	t, err := template.ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	v := view{Document: d, Methods: search.Methods}
	// Results of one table follow each other.
	for _, r := range d.rows() {
		n := len(v.Sections)
		if n == 0 || v.Sections[n-1].Table != r.Table {
			v.Sections = append(
				v.Sections,
				section{Table: r.Table, Points: r.Points, Failed: r.Failed},
			)
			n++
		}
		s := &v.Sections[n-1]
		s.Results = append(s.Results, r)
	}
	for k := range v.Sections {
		v.Sections[k].Figure = figure(v.Sections[k].Results)
	}
	return t.Execute(w, v)
}

// The figure's view box, in pixels at a scale of 1, and the room for its labels.
const (
	figureWidth  = 720.0
	figureHeight = 260.0
	figureLeft   = 40.0
	figureRight  = figureWidth - 90
	figureTop    = 10.0
	figureBottom = figureHeight - 24
)

// axes map evaluations, logarithmically, and fractions to pixels.
type axes struct{ last, low float64 }

// x is the pixel of a number of evaluations; the logarithm of 1 is on the left.
func (a axes) x(n int) float64 {
	return figureLeft + (figureRight-figureLeft)*math.Log(float64(n))/math.Log(max(2, a.last))
}

// y is the pixel of a fraction; 1 is at the top.
func (a axes) y(f float64) float64 {
	return figureBottom - (figureBottom-figureTop)*(f-a.low)/(1-a.low)
}

// figure draws the curves of one table.
func figure(results []Result) template.HTML {
	a := axes{low: 1}
	for _, r := range results {
		for _, m := range r.Curve {
			a.last = max(a.last, float64(m.Evaluations))
			a.low = min(a.low, m.Low)
		}
	}
	a.low = max(
		0,
		math.Floor(a.low*10-0.01)/10,
	)
	var f strings.Builder
	fmt.Fprintf(&f, `<svg viewBox="0 0 %g %g" role="img" aria-label="fraction of the optimum after n evaluations">`, figureWidth, figureHeight)
	a.grid(&f, results[0].Curve)
	for _, r := range results {
		a.curve(&f, r)
	}
	a.legend(&f, results)
	f.WriteString("</svg>")
	return template.HTML(f.String())
}

// grid draws the lines and labels of the axes: tenths of the optimum, and the evaluations
// that the text has, too.
func (a axes) grid(f *strings.Builder, curve []Mark) {
	for k := math.Ceil(a.low*10 - 0.01); k <= 10; k++ {
		y := a.y(k / 10)
		fmt.Fprintf(f, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, figureLeft, figureRight, y, y)
		fmt.Fprintf(
			f,
			`<text x="%g" y="%.1f" text-anchor="end">%.1f</text>`,
			figureLeft-6,
			y+4,
			k/10,
		)
	}
	for _, m := range curve {
		if !printed[m.Evaluations] {
			continue
		}
		x := a.x(m.Evaluations)
		fmt.Fprintf(f, `<line class="grid" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/>`, x, x, figureTop, figureBottom)
		fmt.Fprintf(
			f,
			`<text x="%.1f" y="%g" text-anchor="middle">%d</text>`,
			x,
			figureHeight-6,
			m.Evaluations,
		)
	}
}

// class is the colour of a method.
func class(method string) string {
	k := slices.IndexFunc(
		search.Methods,
		func(m search.Method) bool { return m.Name == method },
	)
	return fmt.Sprintf("m%d", k)
}

// curve draws the mean and the interval of one method, the interval as a band behind its
// line.
func (a axes) curve(f *strings.Builder, r Result) {
	var line, band, back []string
	for _, m := range r.Curve {
		x := a.x(m.Evaluations)
		line = append(
			line,
			fmt.Sprintf("%.1f,%.1f", x, a.y(m.Fraction)),
		)
		band = append(
			band,
			fmt.Sprintf("%.1f,%.1f", x, a.y(max(a.low, m.Low))),
		)
		back = append(
			back,
			fmt.Sprintf("%.1f,%.1f", x, a.y(min(1, m.High))),
		)
	}
	// The band goes along the lower ends and back along the upper ones.
	slices.Reverse(back)
	fmt.Fprintf(
		f,
		`<polygon class="%s" points="%s"/>`,
		class(r.Method),
		strings.Join(append(band, back...), " "),
	)
	fmt.Fprintf(
		f,
		`<polyline class="%s" points="%s"/>`,
		class(r.Method),
		strings.Join(line, " "),
	)
}

// legend writes the names of the methods beside the ends of their curves, one under the
// other.
func (a axes) legend(f *strings.Builder, results []Result) {
	sorted := slices.Clone(results)
	end := func(r Result) float64 { return r.Curve[len(r.Curve)-1].Fraction }
	slices.SortStableFunc(sorted, func(x, y Result) int {
		switch {
		case end(x) > end(y):
			return -1
		case end(x) < end(y):
			return 1
		}
		return 0
	})
	// A name that would cover the one above moves down.
	y := 0.0
	for _, r := range sorted {
		y = max(
			y+14,
			a.y(end(r))+4,
		)
		fmt.Fprintf(
			f,
			`<text class="%s" x="%g" y="%.1f">%s</text>`,
			class(r.Method),
			figureRight+8,
			y,
			r.Method,
		)
	}
}
