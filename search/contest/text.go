package contest

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// A Document is what a contest prints as JSON.
type Document struct {
	// Results of each table and method, and the means over tables.
	Results []Result `json:"results"`
	Means   []Result `json:"means"`
	// Seeds and Evaluations of each search.
	Seeds       int `json:"seeds"`
	Evaluations int `json:"evaluations"`
}

// NewDocument is the document of a contest's results.
func NewDocument(c Contest, results []Result) Document {
	return Document{
		Results: results, Means: Means(results),
		Seeds: c.seeds(), Evaluations: c.evaluations(),
	}
}

// rows are the results, and the means where there are several tables.
func (d Document) rows() []Result {
	if len(d.Means) == len(d.Results) {
		return d.Results
	}
	return slices.Concat(d.Results, d.Means)
}

// printed are the evaluations of the columns for people, where a curve has them.
var printed = map[int]bool{1: true, 10: true, 25: true, 50: true, 100: true, 200: true, 500: true, 1000: true}

// Text writes a table for people: the fraction of the optimum after n evaluations.
func (d Document) Text(w io.Writer) error {
	fmt.Fprintf(w, "fraction of the optimum after n evaluations; means of %d seeds, ± half of the 95 %% interval\n\n", d.Seeds)
	tab := tabwriter.NewWriter(
		w,
		0,
		0,
		2,
		' ',
		0,
	)
	last := ""
	for _, r := range d.rows() {
		if r.Table != last {
			last = r.Table
			fmt.Fprintf(
				tab,
				"%s, %d points, %d failed",
				r.Table,
				r.Points,
				r.Failed,
			)
			for _, m := range r.Curve {
				if printed[m.Evaluations] || m.Evaluations == d.Evaluations {
					fmt.Fprintf(tab, "\tn=%d", m.Evaluations)
				}
			}
			fmt.Fprintf(tab, "\texploration\tselection\tworst\n")
		}
		// Methods that do not look at prices are the same with and without them.
		name := r.Method
		if r.Priced {
			name += " (priced)"
		}
		fmt.Fprintf(tab, "  %s", name)
		for _, m := range r.Curve {
			if printed[m.Evaluations] || m.Evaluations == d.Evaluations {
				fmt.Fprintf(
					tab,
					"\t%.3f ± %.3f",
					m.Fraction,
					(m.High-m.Low)/2,
				)
			}
		}
		fmt.Fprintf(
			tab,
			"\t%.3f\t%.3f\t%.3f\n",
			r.Exploration,
			r.Selection,
			r.Worst,
		)
	}
	return tab.Flush()
}
