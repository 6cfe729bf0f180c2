package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels/check"
)

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

func geomean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(x)))
}

// over is how many times as long a contender takes as the tuned plan, from the
// rounds both were in; false when one of them was not measured.
func (c *caseResult) over(name string) (check.PairedInterval, bool) {
	x := c.samplesOf(name)
	y := c.samplesOf("tuned")
	return check.Paired(x, y, confidence),
		len(x) > 0 &&
			len(y) > 0
}

// code is the seconds the tuned plan would take if memory cost nothing: the
// time of a row in the first cache, of as many rows, on all threads.
func (c *caseResult) code() (float64, bool) {
	small := c.samplesOf("small")
	double := c.samplesOf("double")
	if len(small) == 0 ||
		len(double) == 0 || c.smallRows == 0 {
		return 0, false
	}
	row := (median(double) - median(small)) /
		float64(c.smallRows)
	if row <= 0 { // the machine was busy: nothing takes no time
		return 0, false
	}
	return row *
		float64(c.dims[0]) /
		float64(c.threads), true
}

// best is the ratio of the best turns, which need not be of the same round.
func (c *caseResult) best(name string) (float64, bool) {
	x := c.samplesOf(name)
	y := c.samplesOf("tuned")
	if len(x) == 0 || len(y) == 0 {
		return 0, false
	}
	return slices.Min(x) / slices.Min(y), true
}

func (c *caseResult) bestText(name string) string {
	if b, ok := c.best(name); ok {
		return digits(b)
	}
	return c.missing(name)
}

// roof is the share of the roof the tuned plan reaches: the roof of a round is
// moving the bytes in it, or the code's own time where that is longer.
func (c *caseResult) roof() (check.PairedInterval, bool) {
	moved := c.samplesOf(c.roofName())
	ours := c.samplesOf("tuned")
	if len(moved) == 0 || len(ours) == 0 {
		return check.PairedInterval{}, false
	}
	code, _ := c.code()
	roof := slices.Clone(moved)
	for k := range roof {
		roof[k] = max(roof[k], code)
	}
	return check.Paired(roof, ours, confidence), true
}

// roofName is the contender that only moves the bytes; samples from before sums were
// measured against reading have copies.
func (c *caseResult) roofName() string {
	if families[c.family].reads &&
		len(c.samplesOf("read")) > 0 {
		return "read"
	}
	return "copy"
}

// brief is a case in one line.
func (c *caseResult) brief() string {
	if len(c.samplesOf("tuned")) == 0 {
		return "not measured"
	}
	text := fmt.Sprintf(
		"%.3g ms", 1e3*median(c.samplesOf("tuned")),
	)
	if p, ok := c.over(families[c.family].peer); ok {
		text += fmt.Sprintf(
			", %s × as fast as %s", ratio(p), families[c.family].peer,
		)
	}
	if p, ok := c.roof(); ok {
		text += fmt.Sprintf(", %s of the roof", ratio(p))
	}
	return text
}

// ratio is a median with its interval: 1.03 [1.01, 1.05].
func ratio(p check.PairedInterval) string {
	hi := digits(p.Hi)
	if math.IsInf(p.Hi, 1) {
		hi = "∞"
	}
	return fmt.Sprintf(
		"%s [%s, %s]", digits(p.Median), digits(p.Lo), hi,
	)
}

// digits is three significant digits, at most two after the point.
func digits(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	if x >= 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// against says whether ratios reach their goal, all of them; a goal of 0 is none.
func against(goal float64, ratios ...float64) string {
	switch {
	case goal == 0:
		return ""
	case slices.Min(ratios) >= goal:
		return fmt.Sprintf("≥ %v: met", goal)
	}
	return fmt.Sprintf("≥ %v: **missed**", goal)
}

// A page is Markdown being written.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", args...)
}

// row writes the cells of a table's line.
func (p *page) row(cells ...string) {
	p.line("| %s |", strings.Join(cells, " | "))
}

// columns writes a table's head.
func (p *page) columns(names ...string) {
	p.row(names...)
	p.line("|%s", strings.Repeat(" --- |", len(names)))
}

// markdown is the page of all results.
func (r *results) markdown() string {
	p := &page{}
	p.line("# Tuned plans against their peers\n")
	p.line("Made by `make bench-peers`; the samples are in the file of the same name ending in `.tsv`.\n")
	p.line("Machine: %s.\n", r.machine)
	for _, d := range drivers {
		if v := find(r.drivers, d.name); v != "" {
			p.line("* %s: %s", d.title, v)
		} else {
			p.line("* %s: not measured, the driver was not built (Debian: `%s`)", d.title, d.needs)
		}
	}
	p.line("\nContenders of a case take turns in rounds, in shuffled order; a stopped process cannot disturb the others.")
	p.line("Times are medians. Ratios are medians of the ratios within a round, with a 95 %% interval; above 1 the tuned plan is faster.")
	p.line("best/best is the ratio of the best turns of each. A goal is met when both reach it.")
	p.line("Before it was timed, every plan agreed with the reference interpreter, and the tuned one with its peer.")
	r.loadWarning(p)
	r.gemms(p)
	r.attention(p)
	r.vectors(p)
	r.memory(p)
	r.notes(p)
	r.plans(p)
	return p.String()
}

// loadWarning says when the machine had other work: what waits for all of its threads
// then waits for the scheduler. A run of one thread is a load of 1.
func (r *results) loadWarning(p *page) {
	lo := math.Inf(1)
	hi := math.Inf(-1)
	for _, c := range r.cases {
		lo = min(lo, c.load)
		hi = max(hi, c.load)
	}
	most := 0
	for _, c := range r.cases {
		most = max(most, c.threads)
	}
	if len(r.cases) == 0 || lo < 0 {
		return
	}
	p.line("The load average of the machine was between %.1f and %.1f.", lo, hi)
	if hi > 1.5*float64(most) {
		p.line("\n**The machine was busy with other work.** Ratios of one thread hold roughly; with all threads, sides whose threads wait for each")
		p.line("other wait for the scheduler (in steps of 4 ms), and the columns of the best turns say more than the medians.")
	}
}

// casesWhere are the results of the families that are wanted.
func (r *results) casesWhere(want func(name string, f family) bool) []*caseResult {
	var list []*caseResult
	for _, c := range r.cases {
		if want(c.family, families[c.family]) {
			list = append(list, c)
		}
	}
	return list
}

func (r *results) gemms(p *page) {
	list := r.casesWhere(func(name string, _ family) bool {
		return name == "sgemm"
	})
	if len(list) == 0 {
		return
	}
	p.line("\n## sgemm\n")
	p.columns(
		"m×n×k", "threads", "GFLOP/s", "OpenBLAS GFLOP/s", "times as fast", "goal", "best/best", "over the default plan",
	)
	all := map[int][]float64{}
	for _, c := range list {
		if o, ok := c.over("openblas"); ok {
			all[c.threads] = append(all[c.threads], o.Median)
		}
		p.row(
			c.shape(), fmt.Sprint(c.threads),
			c.rate("tuned"), c.rate("openblas"),
			c.ratio("openblas"), c.goal(),
			c.bestText("openblas"), c.ratio("default"),
		)
	}
	p.line("")
	goal := families["sgemm"].goal.minMeanRatio
	for _, n := range []int{list[0].threads, list[len(list)-1].threads} {
		if x := all[n]; len(x) > 0 {
			g := geomean(x)
			p.line(
				"Geometric mean with threads=%d, of %d: %s (%s).",
				n, len(x), digits(g),
				against(goal, g),
			)
			delete(all, n)
		}
	}
	p.line("\nWhere m is 1, OpenBLAS is asked for sgemv.")
}

// goal judges a family's peer by both ratios, of the rounds and of the best
// turns: luck of one kind is not enough.
func (c *caseResult) goal() string {
	f := families[c.family]
	o, ok := c.over(f.peer)
	if !ok {
		return ""
	}
	best, _ := c.best(f.peer)
	return against(f.goal.minRatio, o.Median, best)
}

// roofGoal judges the share of the roof, in the same way.
func (c *caseResult) roofGoal() string {
	share, ok := c.roof()
	if !ok {
		return ""
	}
	code, _ := c.code()
	return against(
		families[c.family].goal.minRoofShare,
		share.Median,
		max(slices.Min(c.samplesOf(c.roofName())), code)/
			slices.Min(c.samplesOf("tuned")),
	)
}

func (c *caseResult) rate(name string) string {
	x := c.samplesOf(name)
	if len(x) == 0 {
		return c.missing(name)
	}
	return digits(float64(families[c.family].flops(c.dims)) /
		median(x) / 1e9)
}

// missing says shortly why a contender has no time.
func (c *caseResult) missing(name string) string {
	if find(c.notes, name) != "" {
		return "see below"
	}
	return "–"
}

func (c *caseResult) time(name string) string {
	x := c.samplesOf(name)
	if len(x) == 0 {
		return c.missing(name)
	}
	return fmt.Sprintf("%.3g", 1e3*median(x))
}

// ratio is a contender's time over the tuned plan's; the default plan is often
// the tuned one.
func (c *caseResult) ratio(name string) string {
	if o, ok := c.over(name); ok {
		return ratio(o)
	}
	if name == "default" &&
		len(c.samplesOf("tuned")) > 0 &&
		find(c.plans, "tuned") == find(c.plans, "default") {
		return "the same"
	}
	return c.missing(name)
}

func (r *results) attention(p *page) {
	list := r.casesWhere(func(name string, _ family) bool {
		return name == "attention"
	})
	if len(list) == 0 {
		return
	}
	p.line("\n## Attention\n")
	p.line("dot → softmax → dot as one fusion, against sgemm, softmax (gcc's vectors, libmvec's exp) and sgemm with OpenBLAS, head after head.\n")
	p.columns(
		"heads×sequence×width",
		"threads", "ms", "OpenBLAS ms", "times as fast", "goal", "best/best", "over the default plan",
	)
	for _, c := range list {
		p.row(
			c.shape(), fmt.Sprint(c.threads),
			c.time("tuned"), c.time("openblas"),
			c.ratio("openblas"), c.goal(),
			c.bestText("openblas"), c.ratio("default"),
		)
	}
}

// vectors are products of a matrix and a vector, which go by the memory's rate.
func (r *results) vectors(p *page) {
	list := r.casesWhere(func(_ string, f family) bool {
		return f.memory && f.peer == "openblas"
	})
	if len(list) == 0 {
		return
	}
	p.line("\n## Matrix by vector\n")
	p.line("gemv is a matrix m×k by a vector (n is 1), gevm a vector by a matrix k×n (m is 1): of columns, or of rows, where the matrix is")
	p.line("the other way round in memory. OpenBLAS is asked for sgemv. The roof is the time to copy as many bytes with streaming stores.\n")
	p.columns(
		"case", "threads", "ms", "OpenBLAS ms", "times as fast", "goal",
		"best/best", "copy ms", "of the roof", "goal", "over the default plan",
	)
	for _, c := range list {
		of := "–"
		if share, ok := c.roof(); ok {
			of = ratio(share)
		}
		p.row(
			c.String(), fmt.Sprint(c.threads),
			c.time("tuned"), c.time("openblas"),
			c.ratio("openblas"), c.goal(),
			c.bestText("openblas"),
			c.time("copy"), of, c.roofGoal(),
			c.ratio("default"),
		)
	}
}

func (r *results) memory(p *page) {
	list := r.casesWhere(func(_ string, f family) bool {
		return f.memory && f.peer != "openblas"
	})
	if len(list) == 0 {
		return
	}
	p.line("\n## Bound by memory\n")
	p.line("The roof is the time to copy as many bytes with streaming stores, for sums that to read as many at four places in turn, or the")
	p.line("code's own time where that is longer: what the tuned plan takes for rows that stay in the first cache. gelu is the one by tanh; swap is the transpose {0,2,1,3}.\n")
	p.columns(
		"case", "threads", "ms", "oneDNN ms", "times as fast", "goal", "best/best",
		"copy or read ms", "code ms", "of the roof", "goal", "over the default plan",
	)
	for _, c := range list {
		share, roofed := c.roof()
		code, of := "–", "–"
		if s, ok := c.code(); ok {
			code = fmt.Sprintf("%.3g", 1e3*s)
		}
		if roofed {
			of = ratio(share)
		}
		p.row(
			c.String(), fmt.Sprint(c.threads),
			c.time("tuned"), c.time("onednn"),
			c.ratio("onednn"), c.goal(),
			c.bestText("onednn"),
			c.time(c.roofName()), code, of,
			c.roofGoal(), c.ratio("default"),
		)
	}
}

// notes lists what was not measured, and why.
func (r *results) notes(p *page) {
	first := true
	for _, c := range r.cases {
		for _, n := range c.notes {
			if first {
				p.line("\n## Not measured\n")
				first = false
			}
			p.line(
				"* %s, %d threads, %s: %s", c.testCase, c.threads, n.name, n.text,
			)
		}
	}
}

func (r *results) plans(p *page) {
	var gains []float64
	p.line("\n## Plans\n")
	p.columns("case", "threads", "tuned plan", "of plans", "compiled in ms", "landscape, ms: best · median · worst")
	for _, c := range r.cases {
		if plan := find(c.plans, "tuned"); plan != "" {
			p.row(
				c.String(), fmt.Sprint(c.threads),
				"`"+plan+"`", fmt.Sprint(c.legal),
				digits(1e3*c.compile), c.spectrum(),
			)
		}
		if o, ok := c.over("default"); ok {
			gains = append(gains, o.Median)
		} else if len(c.samplesOf("tuned")) > 0 {
			gains = append(gains, 1)
		}
	}
	if slices.ContainsFunc(r.cases, func(c *caseResult) bool {
		return len(c.landscape.seconds) > 0
	}) {
		p.line("\nA landscape is of plans spread evenly over all that were offered, each the least time of a few runs; a run %d times as long", maxPlanSlowdown)
		p.line("as the tuned plan's is stopped and counts as that.")
	}
	if len(gains) > 0 {
		p.line(
			"\nTuned over default, geometric mean of %d cases: %s.", len(gains), digits(geomean(gains)),
		)
	}
}

// spectrum is the landscape in milliseconds: best, median and worst.
func (c *caseResult) spectrum() string {
	x := c.landscape.seconds
	if len(x) == 0 {
		return c.missing("landscape")
	}
	return fmt.Sprintf(
		"%.3g · %.3g · %.3g",
		1e3*slices.Min(x),
		1e3*median(x), 1e3*slices.Max(x),
	)
}

// searched is the section of exhaustive searches; empty when there are none.
func (r *results) searched() string {
	if len(r.cases) == 0 {
		return ""
	}
	p := &page{}
	p.line("\n## Against exhaustive search\n")
	p.line("Made by `go run ./bench/peers -exhaustive`; the samples are in the file ending in `.exhaustive.tsv`. Machine: %s.\n", r.machine)
	p.line("Of every case all plans, or %d spread evenly over more, were checked and timed once (the landscape); then the best %d, the default plan", maxSearchedPlans, finalists)
	p.line("and what `tune` finds in its normal time took turns in rounds. The best is the plan with the least median ratio in these rounds,")
	p.line("which luck favours: the true distance from the best is somewhat less. Ratios are medians, with a 95 %% interval.\n")
	p.columns(
		"case", "plans", "landscape, ms: best · median · worst", "best plan", "tuned plan", "tuned/best", "default plan", "default/best", "tuned in s",
	)
	var regrets, defaults []float64
	for _, c := range r.cases {
		name, best := c.finalist()
		if name == "" {
			p.row(
				c.String(),
				fmt.Sprint(len(c.landscape.seconds)),
				c.spectrum(), "–", "–", "–", "–", "–",
				digits(c.spent),
			)
			continue
		}
		tuned := c.against(name, "tuned")
		def := c.against(name, "default")
		regrets = append(regrets, tuned.Median)
		defaults = append(defaults, def.Median)
		p.row(
			c.String(),
			fmt.Sprintf("%d of %d", len(c.landscape.seconds), c.legal),
			c.spectrum(), "`"+best+"`",
			"`"+find(c.plans, "tuned")+"`",
			ratio(tuned),
			"`"+find(c.plans, "default")+"`",
			ratio(def), digits(c.spent),
		)
	}
	if len(regrets) > 0 {
		p.line(
			"\nGeometric means: tuned/best %s, default/best %s.",
			digits(geomean(regrets)), digits(geomean(defaults)),
		)
	}
	return p.String()
}

// against is how many times as long a contender takes as the finalist called
// name; a default that is the tuned plan has its times.
func (c *caseResult) against(name, contender string) check.PairedInterval {
	x := c.samplesOf(contender)
	if len(x) == 0 {
		x = c.samplesOf("tuned")
	}
	if name == contender ||
		contender == "default" && name == "tuned" && len(c.samplesOf("default")) == 0 {
		return check.PairedInterval{Median: 1, Lo: 1, Hi: 1}
	}
	return check.Paired(x, c.samplesOf(name), confidence)
}
