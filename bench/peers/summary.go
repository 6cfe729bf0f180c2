package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The short table of docs/performance.md stands between these two lines.
const (
	summaryBegins = "<!-- made by `go run ./bench/peers -render` -->\n"
	summaryEnds   = "<!-- until here -->\n"
)

// summary is the short table: every case with its speed over the peer's and its
// share of the roof, by the number of threads. Matrix products share one row
// with their geometric mean.
func (r *results) summary() string {
	p := &page{}
	p.line("On %s, by medians of ratios within a round:\n", r.machine)
	threads := r.threads()
	head := []string{"times as fast (share of the roof)", "peer"}
	for _, n := range threads {
		head = append(head, fmt.Sprintf("threads=%d", n))
	}
	p.columns(append(head, "goal")...)
	met := map[string]bool{}
	for _, c := range r.cases {
		name := c.String()
		if c.family == "sgemm" {
			name = c.family
		}
		if met[name] {
			continue
		}
		met[name] = true
		cells := []string{name, orDefault(families[c.family].peer, "–")}
		for _, n := range threads {
			cells = append(
				cells,
				summaryCell(r.casesWhere(func(family string, _ family) bool {
					return family == c.family
				}), name, n),
			)
		}
		p.row(append(cells, families[c.family].goal.String())...)
	}
	return p.String()
}

// threads lists the numbers of threads that there are cases with.
func (r *results) threads() (all []int) {
	for _, c := range r.cases {
		if !slices.Contains(all, c.threads) {
			all = append(all, c.threads)
		}
	}
	return all
}

// summaryCell is the cell of the cases that have a name and a number of
// threads.
func summaryCell(list []*caseResult, name string, threads int) string {
	var over []float64
	text := ""
	for _, c := range list {
		if c.threads != threads || c.String() != name && c.family != name {
			continue
		}
		if o, ok := c.over(families[c.family].peer); ok {
			over = append(over, o.Median)
			text = digits(o.Median)
		}
		if share, ok := c.roof(); ok {
			text = strings.TrimSpace(fmt.Sprintf("%s (%s)", text, digits(share.Median)))
		}
	}
	if len(over) > 1 {
		return fmt.Sprintf(
			"%s (of %d; %s to %s)",
			digits(geomean(over)), len(over),
			digits(slices.Min(over)),
			digits(slices.Max(over)),
		)
	}
	return orDefault(text, "–")
}

// String formats the goal in the form of the cells.
func (g goal) String() string {
	text := ""
	if g.minRatio > 0 {
		text = fmt.Sprint(g.minRatio)
	}
	if g.minMeanRatio > 0 {
		text = fmt.Sprintf("%v, none under %v", g.minMeanRatio, g.minRatio)
	}
	if g.minRoofShare > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s (%v)", text, g.minRoofShare))
	}
	return text
}

// summarise replaces the short table in a file.
func (r *results) summarise(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), summaryBegins)
	_, after, ends := strings.Cut(rest, summaryEnds)
	if !begins || !ends {
		return fmt.Errorf(
			"%s has no place for the table, between %s and %s", file, strings.TrimSpace(summaryBegins), strings.TrimSpace(summaryEnds),
		)
	}
	return os.WriteFile(
		file,
		[]byte(before+summaryBegins+r.summary()+summaryEnds+after),
		0o644,
	)
}
