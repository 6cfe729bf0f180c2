// Package report makes the page that explains what tuning chose and why: every
// winner with its evidence, what it was compared with, how sure that is and what
// failed. The page is one HTML file that needs nothing from outside, and the same
// records give the same bytes.
//
// report.go is the page and its summary, group.go the fusions by structure, packing.go the
// weights that are packed, section.go the section of a fusion, figure.go its drawings. The template is page.html.
package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// A Page is the content of a report.
type Page struct {
	// Device is the device that the records were measured on.
	Device kernels.Device
	// Records are the winners, in the order of the page.
	Records []cache.Record
	// Refused are the fusions that cannot be tuned.
	Refused []Refusal
	// Packings are the operands that are the same in every run of a model of which it was
	// measured what packing them once gains.
	Packings []Packing
	// Damaged counts the records, of any device, that cannot be read and are not on the
	// page.
	Damaged int
}

// A Refusal is a fusion that cannot be tuned.
type Refusal struct {
	Fusion string // name
	File   string // that it was read from
	Reason string // for people
}

//go:embed page.html
var files embed.FS

// sectionBytes is about what the section of a fusion takes.
const sectionBytes = 96 << 10

// HTML writes the page. Names, notes and other texts of records are Printable on it.
func HTML(w io.Writer, p Page) error {
	t, err := template.New("page.html").Funcs(template.FuncMap{
		"seconds": Seconds,
		"upper":   UpperEnd,
		"percent": percent,
		"share":   share,
		"counted": Counted,
		"paired":  func() string { return PairedSpeed },
		"join":    strings.Join,
	}).ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	var page strings.Builder
	page.Grow((1 + len(p.Records)) * sectionBytes)
	if err := t.Execute(&page, newView(p)); err != nil {
		return err
	}
	_, err = io.WriteString(w, Printable(page.String()))
	return err
}

// A view is the page as the template sees it.
type view struct {
	Device  kernels.Device
	Summary []summaryCell
	Fusions []*fusionSection
	// Groups are the fusions by structure.
	Groups  []*group
	Refused []Refusal
	// Packings are operands beside the same ones packed.
	Packings []packingRow
}

// A summaryCell is one number at the top of the page, with what it counts.
type summaryCell struct{ Value, Label string }

// newView prepares a page for the template, which computes nothing.
func newView(p Page) view {
	v := view{Device: p.Device, Refused: p.Refused}
	for _, r := range p.Records {
		f := newSection(r)
		v.Fusions = append(v.Fusions, &f)
	}
	v.link(p.Packings)
	v.Groups = grouped(v.Fusions)
	v.Summary = summary(v)
	if p.Damaged > 0 {
		v.Summary = append(v.Summary, summaryCell{fmt.Sprint(p.Damaged), "damaged, and not on this page"})
	}
	return v
}

// summary counts over all fusions of a view, without those that read a weight packed: they
// stand for fusions that count already.
func summary(v view) []summaryCell {
	bad, provisional, packed := 0, 0, 0
	for _, f := range v.Fusions {
		if f.PackedOf != "" {
			packed++
			continue
		}
		if f.Provisional {
			provisional++
		}
		if f.DefaultError != "" {
			bad++
		}
	}
	cells := []summaryCell{{fmt.Sprint(len(v.Fusions) - provisional - packed), "fusions tuned"}}
	if provisional > 0 {
		cells = append(cells, summaryCell{fmt.Sprint(provisional), "provisional: not raced, or the race is not over"})
	}
	if len(v.Fusions) > packed {
		cells = append(cells, outcomes(v)...)
	}
	if bad > 0 {
		cells = append(cells, summaryCell{fmt.Sprint(bad), "default plans fail their check"})
	}
	if n := len(v.Refused); n > 0 {
		cells = append(cells, summaryCell{fmt.Sprint(n), "refused, with a reason"})
	}
	return append(cells, v.packed()...)
}

// outcomes summarises the winners of a view, of which there is at least one.
func outcomes(v view) []summaryCell {
	faster, samples, unknown, n := 0, 0, 0, 0
	logSum, maxRegret := 0.0, -1.0 // no regret is stated
	for _, f := range v.Fusions {
		if f.PackedOf != "" {
			continue
		}
		n++
		if f.Beaten {
			faster++
		}
		logSum += math.Log(math.Max(f.Speedup[0], 1e-9))
		maxRegret = max(maxRegret, f.Stated())
		if f.Stated() < 0 {
			unknown++
		}
		for _, t := range f.Trials {
			samples += len(t.Samples)
		}
	}
	share := fmt.Sprintf("%d of %d", faster, n)
	if v.Device.Untimed {
		return []summaryCell{
			{share, "predicted to beat the default"},
			{"none", "timings: this device cannot time"},
		}
	}
	mean := math.Exp(logSum / float64(n))
	return []summaryCell{
		{share, "beat the default"},
		{fmt.Sprintf("%.2f×", mean), "geometric mean over the default"},
		largestRegret(maxRegret, n-unknown, unknown),
		{fmt.Sprint(samples), "timings kept"},
	}
}

// largestRegret is the cell of the largest regret that is stated: of how many fusions one is,
// and of how many it is unknown.
func largestRegret(most float64, stated, unknown int) summaryCell {
	switch {
	case stated == 0:
		return summaryCell{"unknown", "regret: too few timings of each fusion"}
	case unknown == 0:
		return summaryCell{"≤ " + percent(most), "regret of every fusion"}
	}
	return summaryCell{"≤ " + percent(most), fmt.Sprintf("regret of %d; of %d it is unknown", stated, unknown)}
}
