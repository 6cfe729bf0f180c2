package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels/cpu/sheet"
)

// The table of docs/performance.md stands between these two lines.
const (
	summaryBegins = "<!-- made by `go run ./bench/peers -render` -->\n"
	summaryEnds   = "<!-- until here -->\n"
)

// summary is how every processor stands to the goals, and why goals are missed.
func summary(all []processor) string {
	p := &page{}
	head := []string{"times as fast, or share of the roof", "goal"}
	for _, x := range all {
		head = append(head, x.measured.title())
	}
	p.columns(head...)
	for _, t := range targets {
		row := []string{t.what, t.goal()}
		for _, x := range all {
			row = append(row, t.standing(x.measured))
		}
		p.row(row...)
	}
	p.line("\nWhy goals are missed, as far as it is known:\n")
	for _, t := range targets {
		if t.isMissed(all) && t.cause != "" {
			p.line("* **%s**: %s.", t.what, t.cause)
		}
	}
	return p.String()
}

// standing says how the cases stand, a line for each number of threads.
func (t target) standing(r *results) string {
	var lines []string
	for _, n := range r.threads() {
		text, met := t.cell(r, n)
		if !met {
			text = "**" + text + "**"
		}
		lines = append(lines, text)
	}
	if strings.Trim(strings.Join(lines, ""), "–") == "" {
		return "–"
	}
	return strings.Join(lines, "<br>")
}

// isMissed reports whether some processor misses the goal with some number of threads.
func (t target) isMissed(all []processor) bool {
	return slices.ContainsFunc(all, func(x processor) bool {
		return slices.ContainsFunc(x.measured.threads(), func(n int) bool {
			_, met := t.cell(x.measured, n)
			return !met
		})
	})
}

// title names the processor as its sheet does, the revisions, and the numbers of threads, one
// below the other, of each cell.
func (r *results) title() string {
	var threads []string
	for _, n := range r.threads() {
		threads = append(threads, fmt.Sprintf("threads=%d", n))
	}
	return fmt.Sprintf("%s, %s: %s", r.processorName(), r.revisions(), strings.Join(threads, ", "))
}

// processorName is the name of the sheet of the processor, or what winners are keyed by.
func (r *results) processorName() string {
	var family, model, stepping int
	id, _, _ := strings.Cut(r.machine, " ")
	vendor, numbers, _ := strings.Cut(id, "-")
	fmt.Sscanf(numbers, "%d-%d-%d", &family, &model, &stepping)
	s, ok := sheet.Of(sheet.Processor{Vendor: vendor, Family: family, Model: model, Stepping: stepping})
	if !ok {
		return r.machine
	}
	return s.Name
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
	return strings.Join(all, " and ")
}

// threads lists the numbers of threads that there are cases with, the least first.
func (r *results) threads() (all []int) {
	for _, c := range r.cases {
		if !slices.Contains(all, c.threads) {
			all = append(all, c.threads)
		}
	}
	slices.Sort(all)
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
