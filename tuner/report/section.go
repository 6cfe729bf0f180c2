package report

import (
	"cmp"
	"context"
	"encoding/hex"
	"html"
	"html/template"
	"slices"
	"strconv"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// A fusionSection is the section of one fusion.
type fusionSection struct {
	cache.Record
	// ID of the section in the page, the first digits of Print.
	ID string
	// Print is the fingerprint of the fusion.
	Print string
	// Shape of its first result; "" of a record without its text.
	Shape string
	// PackedOf is the ID of the fusion of which this is one with a weight packed, and Packed
	// are the weights of this one that were packed.
	PackedOf string
	Packed   []packingRow
	// Clock is what is known of the device's clock, "" for nothing.
	Clock string
	// Standing says that the winner is provisional, "" where it is not. The evidence of one
	// is not shown as that of a race that ended.
	Standing string
	// Beaten says that the winner is not the default.
	Beaten bool
	// DefaultError is how the default failed its check, "" where it did not.
	DefaultError string
	// Tried counts the plans that were verified; Failed are those of them that
	// are wrong or did not run, and Plans the others in the order of their times.
	Tried  int
	Failed []cache.Trial
	Plans  []planRow
	// Why has the predicted terms of the winner, the default and the next best
	// plan.
	Why []termBreakdown
	// Strip and Scatter are drawings; see timingStrip and scatter.
	Strip   template.HTML
	Scatter template.HTML
}

// A planRow is the row of a plan that ran.
type planRow struct {
	cache.Trial
	// Median of the samples, or the prediction where nothing was timed.
	Median float64
	// Ratio of its time to the winner's: the median of paired ratios where the record
	// has that, otherwise of the two medians.
	Ratio float64
	// AtMost is the most by which the winner may be slower, as a ratio, by the
	// certificate; 0 is unknown.
	AtMost float64
	// AtLeast is the lower end of the same interval; 0 where it is unknown.
	AtLeast float64
	// Role is what became of the plan: winner, default, tied, dropped or "".
	Role string
}

// A termBreakdown is the prediction of the cost model for one plan, by terms.
type termBreakdown struct {
	Plan, Role string
	Terms      []cache.Term
	Total      float64
}

// named is a record with the names of the dimensions in its plans.
func named(r cache.Record) cache.Record {
	names := kernels.PlanNames(r.Dims)
	if names == nil { // of an older version
		names = kernels.PlanNamesOfText(context.Background(), r.Canonical)
	}
	r.Plan, r.Default = names.Stored(r.Plan), names.Stored(r.Default)
	r.Ties, r.Trials = slices.Clone(r.Ties), slices.Clone(r.Trials)
	if r.Certificate != nil {
		c := *r.Certificate
		c.Comparisons = slices.Clone(c.Comparisons)
		for k := range c.Comparisons {
			c.Comparisons[k].Plan = names.Stored(c.Comparisons[k].Plan)
		}
		r.Certificate = &c
	}
	for k, tie := range r.Ties {
		r.Ties[k] = names.Stored(tie)
	}
	for k := range r.Trials {
		r.Trials[k].Plan = names.Stored(r.Trials[k].Plan)
	}
	if r.Prices != nil {
		p := *r.Prices
		p.Explained = slices.Clone(p.Explained)
		for k := range p.Explained {
			p.Explained[k].Plan = names.Stored(p.Explained[k].Plan)
		}
		r.Prices = &p
	}
	return r
}

// newSection describes one record. Without timings it has no drawings.
func newSection(r cache.Record) fusionSection {
	r = named(r)
	if r.Provisional {
		r.Certificate = nil
	}
	f := fusionSection{
		Record: r,
		Print:  hex.EncodeToString(r.Fusion[:]),
		Clock:  kernels.ParseSampleQuality(r.Evidence).String(),
		Beaten: r.Plan != r.Default,
		Tried:  len(r.Trials),

		Standing:     Standing(&r),
		DefaultError: r.DefaultFailure(),
	}
	f.ID, f.Shape = f.Print[:12], firstShape(r.Canonical)
	for _, t := range r.Trials {
		f.add(t)
	}
	slices.SortStableFunc(f.Plans, func(a, b planRow) int { return cmp.Compare(a.Median, b.Median) })
	f.Why = termBreakdowns(f)
	if r.Untimed {
		return f
	}
	f.Strip = timingStrip(f.Name, f.Plans, kernels.ParseSampleQuality(r.Evidence).Clock)
	f.Scatter = scatter(f.Name, f.Plans)
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
	row := planRow{Trial: t, Median: seconds, Ratio: seconds / f.Seconds, Role: role(f.Record, t)}
	if f.Certificate != nil {
		for _, x := range f.Certificate.Comparisons {
			if x.Plan == t.Plan && x.Ratio > 0 {
				row.Ratio, row.AtMost = 1/x.Ratio, x.AtMost
				row.AtLeast = x.AtLeast
			}
		}
	}
	f.Plans = append(f.Plans, row)
}

// Rows are the rows of the table of plans that ran: text, role, median where it was timed, its
// ratio to the winner, the interval of that where the record has one, the prediction and the
// number of samples. A page has hundreds: the template would take a fifth of the time of the
// command for them.
func (f *fusionSection) Rows() template.HTML {
	var b []byte
	number := func(text string) {
		b = append(b, `<td class="n">`...)
		b = append(b, text...)
		b = append(b, "</td>"...)
	}
	for k := range f.Plans {
		p := &f.Plans[k]
		b = append(b, `<tr><td class="plan">`...)
		b = append(b, html.EscapeString(p.Plan)...)
		b = append(b, "</td><td>"...)
		b = append(b, p.Role...)
		b = append(b, "</td>"...)
		if len(p.Samples) > 0 {
			number(Seconds(p.Median))
		}
		number(strconv.FormatFloat(p.Ratio, 'f', 2, 64))
		if f.Certificate != nil {
			number(UpperEnd(p.AtLeast))
			number(UpperEnd(p.AtMost))
		}
		number(Seconds(p.Predicted))
		number(strconv.Itoa(len(p.Samples)))
		b = append(b, "</tr>"...)
	}
	return template.HTML(b)
}

// Stated is the regret that the record states; −1 where it states none: a race that is not
// over has bounded nothing yet.
func (f *fusionSection) Stated() float64 {
	if f.Provisional {
		return -1
	}
	return f.Regret
}

// Ended says in words why a race ended.
func (f *fusionSection) Ended() string {
	return map[string]string{
		cache.EndedSettled: "one plan was left",
		cache.EndedBlocks:  "what was left counts as tied; a larger budget buys nothing, -regret does",
		cache.EndedBudget:  "its budget was spent: a larger one narrows the intervals",
		cache.EndedRegret:  "the regret was as low as was asked for",
	}[f.Certificate.Ended]
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

// termBreakdowns are the terms of the predictions as the record has them: of the winner, the
// default and the next best plan, without the terms that are 0 for all of them.
func termBreakdowns(f fusionSection) []termBreakdown {
	if f.Prices == nil {
		return nil
	}
	var breakdowns []termBreakdown
	for _, x := range f.Prices.Explained {
		b := termBreakdown{Plan: x.Plan, Role: "next best", Terms: x.Terms}
		switch x.Plan {
		case f.Record.Plan:
			b.Role = "winner"
		case f.Record.Default:
			b.Role = "default"
		}
		for _, t := range x.Terms {
			b.Total += t.Seconds
		}
		breakdowns = append(breakdowns, b)
	}
	counts := map[string]bool{}
	for _, b := range breakdowns {
		for _, t := range b.Terms {
			counts[t.Name] = counts[t.Name] || t.Seconds != 0
		}
	}
	for k, b := range breakdowns {
		breakdowns[k].Terms = slices.DeleteFunc(slices.Clone(b.Terms), func(t cache.Term) bool { return !counts[t.Name] })
	}
	return breakdowns
}
