package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/search/contest"
	"github.com/tilewright/tilewright/search/table"
)

// replayCommand compares searches on recorded spaces.
var replayCommand = command{
	name: "replay", args: "TABLE…", short: "search recorded spaces: how near to the best after n evaluations",
	long: `Searches spaces whose every point was measured before, by the search of tune and by those that it is compared with,
and prints how near to the best time of the table each comes after n evaluations: F(n) is the best time over
the best that was found, the mean over seeds. Nothing is measured.

TABLE is JSON lines (docs/formats.md), a cache file of Kernel Tuner or results in the T4 format, or any of
them compressed by gzip. A table that has the HLO, a device and the plans of its points is searched with the
prices of the cost model; -unpriced leaves them out.

"exploration" is the least time of what a search evaluated over the best one of the table, "selection" the
time of what it kept over that, where a table has single samples, and "worst" what the worst seed kept over
the best.`,
	run: runReplay,
}

// runReplay holds a contest.
func runReplay(c *call) error {
	c.jsonFlag()
	var contestants contest.Contest
	c.IntVar(&contestants.Seeds, "seeds", 20, "searches of each strategy, with the `seeds` 0, 1, …")
	c.IntVar(&contestants.Evaluations, "evaluations", 100, "evaluations of a `search`; a failure is one")
	c.BoolVar(&contestants.Unpriced, "unpriced", false, "do not use prices")
	strategies := c.String("strategies", "", "the `names` of strategies, with commas: "+contest.Names()+" (default all)")
	out := c.String("o", "", "write a page with the curves to this `file`")
	replace := c.replaceFlag()
	files, err := c.parse(1, -1)
	if err != nil {
		return err
	}
	if contestants.Seeds < 1 || contestants.Evaluations < 1 {
		return usagef("-seeds and -evaluations are at least 1")
	}
	if *strategies != "" {
		contestants.Methods = strings.Split(*strategies, ",")
	}
	page := c.output("o", *out, output.Page, *replace)
	if err := page.Check(); err != nil {
		return err
	}
	var tables []*table.Table
	for _, name := range files {
		t, err := table.Open(name)
		if err != nil {
			return err
		}
		tables = append(tables, t)
	}
	results, err := contestants.Run(c.ctx, tables)
	if err != nil {
		return err
	}
	return c.replayed(page, contest.NewDocument(contestants, results))
}

// replayed prints what came out, and writes the page.
func (c *call) replayed(page output.File, d contest.Document) error {
	if page.Name != "" {
		if err := page.Write(func(w *bufio.Writer) error { return d.HTML(w) }); err != nil {
			return err
		}
	}
	if c.json {
		return c.printJSON(d)
	}
	if err := d.Text(c.out); err != nil || page.Name == "" {
		return err
	}
	_, err := fmt.Fprintf(c.out, "\n%s: the curves\n", page.Name)
	return err
}
