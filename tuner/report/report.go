// Package report makes the page that says what was chosen and why. It is one
// HTML file that needs nothing from outside, and the same records give the same
// bytes.
package report

import (
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/tuner"
)

// A Page is what a report is made of.
type Page struct {
	Device  kernels.Device
	Records []cache.Record
	Refused []Refusal
}

// A Refusal is a fusion that cannot be tuned.
type Refusal struct{ Fusion, File, Reason string }

//go:embed page.html
var files embed.FS

// HTML writes the page.
func HTML(w io.Writer, p Page) error {
	t, err := template.New("page.html").Funcs(template.FuncMap{
		"seconds": tuner.Seconds,
		"upper":   upper,
		"percent": percent,
		"join":    strings.Join,
	}).ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	return t.Execute(w, newView(p))
}

// A view is the page as the template sees it.
type view struct {
	Device  kernels.Device
	Summary []summaryCell
	Fusions []fusionSection
	Refused []Refusal
}

type summaryCell struct{ Value, Label string }

// A fusionSection is one section.
type fusionSection struct {
	cache.Record
	ID        string
	Print     string
	Saw       string // of the device's clock, "" where nothing is known
	Beaten    bool   // the winner is not the default
	Tried     int
	Failed    []cache.Trial
	Plans     []planRow // by measured time
	Why       []termBreakdown
	Strip     template.HTML
	Scatter   template.HTML
	Judgement cost.Judgement
	Headroom  float64 // winner's time over what the roofline allows
}

// A planRow is a row of the table.
type planRow struct {
	cache.Trial
	Median float64
	Ratio  float64 // over the winner's
	Role   string  // winner, default, tied, dropped
}

// termBreakdown compares the terms of the cost model.
type termBreakdown struct {
	Plan, Role string
	Terms      []cost.Term
	Total      float64
}

func newView(p Page) view {
	v := view{Device: p.Device, Refused: p.Refused}
	for _, r := range p.Records {
		v.Fusions = append(
			v.Fusions, newFusion(r, p.Device),
		)
	}
	v.Summary = summary(v)
	return v
}

func summary(v view) []summaryCell {
	faster := 0
	logs := 0.0
	samples := 0
	worst := 0.0
	for _, f := range v.Fusions {
		if f.Beaten {
			faster++
		}
		logs += math.Log(math.Max(f.Speedup[0], 1e-9))
		worst = max(worst, f.Regret)
		for _, t := range f.Trials {
			samples += len(t.Samples)
		}
	}
	tiles := []summaryCell{
		{fmt.Sprint(len(v.Fusions)), "fusions tuned"},
	}
	if n := len(v.Fusions); n > 0 && v.Device.Untimed {
		tiles = append(
			tiles,
			summaryCell{fmt.Sprintf("%d of %d", faster, n), "predicted to beat the default"},
			summaryCell{"none", "timings: this device cannot time"},
		)
	} else if n > 0 {
		tiles = append(tiles,
			summaryCell{fmt.Sprintf("%d of %d", faster, n), "beat the default"},
			summaryCell{fmt.Sprintf("%.2f×", math.Exp(logs/float64(n))), "geometric mean over the default"},
			summaryCell{percent(worst), "largest stated regret"},
			summaryCell{fmt.Sprint(samples), "timings kept"})
	}
	if n := len(v.Refused); n > 0 {
		tiles = append(tiles, summaryCell{fmt.Sprint(n), "refused, with a reason"})
	}
	return tiles
}

func newFusion(r cache.Record, d kernels.Device) fusionSection {
	f := fusionSection{
		Record: r,
		Print:  hex.EncodeToString(r.Fusion[:]),
		Saw:    kernels.SampleQualityText(r.Evidence),
		Beaten: r.Plan != r.Default,
		Tried:  len(r.Trials),
	}
	f.ID = f.Print[:12]
	var predicted, measured []float64
	for _, t := range r.Trials {
		switch {
		case t.Failure != "":
			f.Failed = append(f.Failed, t)
		case r.Untimed:
			f.Plans = append(f.Plans, planRow{
				t, t.Predicted, t.Predicted / r.Seconds,
				role(r, t),
			})
		case len(t.Samples) > 0:
			m := t.Median()
			f.Plans = append(f.Plans, planRow{
				t, m, m / r.Seconds, role(r, t),
			})
			predicted = append(predicted, t.Predicted)
			measured = append(measured, m)
		}
	}
	slices.SortStableFunc(f.Plans, func(a, b planRow) int {
		switch {
		case a.Median < b.Median:
			return -1
		case a.Median > b.Median:
			return 1
		}
		return 0
	})
	f.Why = termBreakdowns(f, d)
	if r.Untimed {
		return f
	}
	f.Judgement = cost.Judge(predicted, measured)
	f.Strip, f.Scatter = timingStrip(
		f.Plans, kernels.ParseSampleQuality(r.Evidence).Clock,
	), scatter(f.Plans)
	for _, w := range f.Why {
		if w.Role == "winner" && w.Total > 0 {
			f.Headroom = r.Seconds / w.Total
		}
	}
	return f
}

func role(r cache.Record, t cache.Trial) string {
	switch {
	case t.Plan == r.Plan && t.Plan == r.Default:
		return "winner, default"
	case t.Plan == r.Plan:
		return "winner"
	case t.Plan == r.Default:
		return "default"
	case slices.Contains(r.Ties, t.Plan):
		return "tied"
	case t.Dropped:
		return "dropped"
	}
	return ""
}

// termBreakdowns breaks the roofline's prediction down for the winner, the default
// and the next best.
func termBreakdowns(f fusionSection, d kernels.Device) []termBreakdown {
	model := cost.Roofline(d)
	var out []termBreakdown
	next := false
	for _, p := range f.Plans {
		role := p.Role
		if role == "winner, default" {
			role = "winner"
		}
		if role != "winner" && role != "default" {
			if next {
				continue
			}
			next, role = true, "next best"
		}
		var features cost.Features
		if json.Unmarshal(p.Features, &features) != nil {
			continue
		}
		total, terms := model.Predict(features)
		out = append(out, termBreakdown{
			p.Plan, role, terms, total,
		})
	}
	return out
}

func upper(x float64) string {
	if x == 0 {
		return "?"
	}
	return fmt.Sprintf("%.2f", x)
}

func percent(x float64) string {
	if x < 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}
