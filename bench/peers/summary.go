package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The table of docs/performance.md stands between these two lines.
const (
	summaryBegins = "<!-- made by `go run ./bench/peers -render` -->\n"
	summaryEnds   = "<!-- until here -->\n"
)

// summary is the table of goals of every processor.
func summary(all []processor) string {
	p := &page{}
	for k, x := range all {
		if k > 0 {
			p.line("")
		}
		p.line("On %s, %s, by medians of ratios within a round:\n", x.measured.machine, x.measured.revisions())
		p.WriteString(x.measured.goals())
	}
	return p.String()
}

// revisions names the revisions of the backend that were measured.
func (r *results) revisions() string {
	var all []string
	for _, c := range r.cases {
		if !slices.Contains(all, c.revision) {
			all = append(all, c.revision)
		}
	}
	slices.Sort(all)
	return "backend revision " + strings.Join(all, " and ")
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

// summarise replaces the table of goals in a file.
func summarise(file string, all []processor) error {
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
		[]byte(before+summaryBegins+summary(all)+summaryEnds+after),
		0o644,
	)
}
