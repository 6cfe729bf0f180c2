package report

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"slices"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
)

// A fusionSection is the section of one fusion.
type fusionSection struct {
	cache.Record
	ID        string // of the section in the page
	Print     string // the fingerprint of the fusion
	Clock     string // what is known of the device's clock, "" for nothing
	Beaten    bool   // the winner is not the default
	Tried     int
	Failed    []cache.Trial
	Plans     []planRow       // by measured time
	Why       []termBreakdown // of the winner, the default and the next best plan
	Strip     template.HTML
	Scatter   template.HTML
	Judgement cost.Judgement
	Headroom  float64 // the winner's time over its roofline, 0 where unknown
}

// A planRow is the row of a plan that ran.
type planRow struct {
	cache.Trial
	Median float64 // predicted, where nothing was timed
	Ratio  float64 // to the winner
	Role   string  // winner, default, tied, dropped
}

// A termBreakdown is the prediction of the cost model for one plan, by terms.
type termBreakdown struct {
	Plan, Role string
	Terms      []cost.Term
	Total      float64
}

func newSection(r cache.Record, d kernels.Device) fusionSection {
	f := fusionSection{
		Record: r,
		Print:  hex.EncodeToString(r.Fusion[:]),
		Clock:  kernels.SampleQualityText(r.Evidence),
		Beaten: r.Plan != r.Default,
		Tried:  len(r.Trials),
	}
	f.ID = f.Print[:12]
	for _, t := range r.Trials {
		f.add(t)
	}
	if !r.Untimed {
		f.Judgement = judge(f.Plans)
	}
	slices.SortStableFunc(f.Plans, func(a, b planRow) int { return cmp.Compare(a.Median, b.Median) })
	f.Why = termBreakdowns(f, d)
	if r.Untimed {
		return f
	}
	f.Strip = timingStrip(f.Plans, kernels.ParseSampleQuality(r.Evidence).Clock)
	f.Scatter = scatter(f.Plans)
	for _, w := range f.Why {
		if w.Role == "winner" && w.Total > 0 {
			f.Headroom = r.Seconds / w.Total
		}
	}
	return f
}

// add sorts a trial into the plans that ran and those that failed.
func (f *fusionSection) add(t cache.Trial) {
	seconds := t.Median()
	switch {
	case t.Failure != "":
		f.Failed = append(f.Failed, t)
		return
	case f.Untimed:
		seconds = t.Predicted
	case len(t.Samples) == 0:
		return
	}
	f.Plans = append(f.Plans, planRow{t, seconds, seconds / f.Seconds, role(f.Record, t)})
}

// judge compares the predictions of plans with their medians.
func judge(plans []planRow) cost.Judgement {
	var predicted, measured []float64
	for _, p := range plans {
		predicted = append(predicted, p.Predicted)
		measured = append(measured, p.Median)
	}
	return cost.Judge(predicted, measured)
}

// role is what became of a plan, "" where it is one of many.
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

// termBreakdowns splits the roofline's prediction into its terms, for the winner,
// the default and the next best plan.
func termBreakdowns(f fusionSection, d kernels.Device) []termBreakdown {
	model := cost.Roofline(d)
	var breakdowns []termBreakdown
	hasNext := false
	for _, p := range f.Plans {
		role := p.Role
		switch role {
		case "winner", "default":
		case "winner, default":
			role = "winner"
		default:
			if hasNext {
				continue
			}
			hasNext = true
			role = "next best"
		}
		var features cost.Features
		if json.Unmarshal(p.Features, &features) != nil {
			continue
		}
		total, terms := model.Predict(features)
		breakdowns = append(breakdowns, termBreakdown{p.Plan, role, terms, total})
	}
	return breakdowns
}
