package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels/check"
)

// median is the median of samples, NaN when there are none.
func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// geomean is the geometric mean of ratios.
func geomean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(x)))
}

// over is the time of a competitor over that of the tuned plan, from the rounds
// that both were in. It is false when one of them was not measured.
func (c *caseResult) over(name string) (check.PairedInterval, bool) {
	x := c.samplesOf(name)
	y := c.samplesOf("tuned")
	return check.Paired(x, y, confidence), len(x) > 0 &&
		len(y) > 0
}

// code estimates the seconds that the tuned plan would take if memory cost
// nothing. Two runs on rows that stay in the first cache, one with twice the
// rows of the other, differ by the time of the code for those rows; it is
// scaled to the rows of the case and divided among the threads.
func (c *caseResult) code() (float64, bool) {
	small := c.samplesOf("small")
	double := c.samplesOf("double")
	if len(small) == 0 || len(double) == 0 || c.smallRows == 0 {
		return 0, false
	}
	row := (median(double) - median(small)) / float64(c.smallRows)
	if row <= 0 { // the machine was busy: nothing takes no time
		return 0, false
	}
	return row * float64(c.dims[0]) / float64(c.threads), true
}

// best is the ratio of the fastest samples of a competitor and of the tuned
// plan, which need not be of the same round.
func (c *caseResult) best(name string) (float64, bool) {
	x := c.samplesOf(name)
	y := c.samplesOf("tuned")
	if len(x) == 0 || len(y) == 0 {
		return 0, false
	}
	return slices.Min(x) / slices.Min(y), true
}

// bestText is best as the cell of a table.
func (c *caseResult) bestText(name string) string {
	if b, ok := c.best(name); ok {
		return digits(b)
	}
	return c.missing(name)
}

// roof is the share of the roof that the tuned plan reaches. The roof of a
// round is the time to move the bytes in that round, in the fastest way that was
// measured, or the time of the code itself where that is longer.
func (c *caseResult) roof() (check.PairedInterval, bool) {
	moved := c.moves()
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

// moves are the seconds of moving the bytes of the case: reading them or copying them,
// in each round in the faster of two ways. Sample files from before sums were compared
// with reading have only copies past the caches, others only reading at four places.
func (c *caseResult) moves() []float64 {
	ways := []string{"copy", "copy_cached"}
	if families[c.family].reads && len(c.samplesOf("read")) > 0 {
		ways = []string{"read", "read_in_order"}
	}
	moved := slices.Clone(c.samplesOf(ways[0]))
	for k, s := range c.samplesOf(ways[1]) {
		if k < len(moved) {
			moved[k] = min(moved[k], s)
		}
	}
	return moved
}

// brief summarises a case in one line, for the progress of a run.
func (c *caseResult) brief() string {
	if len(c.samplesOf("tuned")) == 0 {
		return "not measured"
	}
	text := fmt.Sprintf("%.3g ms", 1e3*median(c.samplesOf("tuned")))
	for _, d := range drivers {
		if p, ok := c.over(d.name); ok {
			text += fmt.Sprintf(", %s %s", d.name, digits(p.Median))
		}
	}
	if p, ok := c.roof(); ok {
		text += fmt.Sprintf(", %s of the roof", ratio(p))
	}
	return text
}

// ratio formats a median with its interval: "1.03 [1.01, 1.05]".
func ratio(p check.PairedInterval) string {
	hi := digits(p.Hi)
	if math.IsInf(p.Hi, 1) {
		hi = "∞"
	}
	return fmt.Sprintf("%s [%s, %s]", digits(p.Median), digits(p.Lo), hi)
}

// digits formats three significant digits, with at most two after the point.
func digits(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	if x >= 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// A page is a document in Markdown that is being written.
type page struct{ strings.Builder }

// line writes a formatted line.
func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", args...)
}

// row writes a row of a table.
func (p *page) row(cells ...string) {
	p.line("| %s |", strings.Join(cells, " | "))
}

// columns writes the head of a table.
func (p *page) columns(names ...string) {
	p.row(names...)
	p.line("|%s", strings.Repeat(" --- |", len(names)))
}

// head writes what holds for all processors.
func (p *page) head() {
	p.line("# Tuned plans against their peers\n")
	p.line("Made by `make bench-peers`; the samples are in `results`, a file a processor.\n")
	p.line("Contenders of a case take turns in rounds, in shuffled order; a stopped process cannot disturb the others.")
	p.line("Times are medians. Ratios are medians of the ratios within a round, with a 95 %% interval; above 1 the tuned plan is faster.")
	p.line("best/best is the ratio of the best turns of the fastest peer and the tuned plan. A dash is a peer that has no such operation, or was not measured.")
	p.line("Before it was timed, every plan agreed with the reference interpreter, and the tuned one with each peer.")
}

// markdown is the part of the document about one processor: the machine, the goals,
// and a section for each kind of case.
func (r *results) markdown() string {
	p := &page{}
	p.line("\n## %s\n", r.machine)
	for _, d := range drivers {
		if v := find(r.drivers, d.name); v != "" {
			p.line("* %s: %s", d.title, v)
		} else {
			p.line("* %s: not measured, there is no driver (it is made of %s)", d.title, d.needs)
		}
	}
	p.line("\nMeasured with backend revision %s.", r.revisions())
	r.loadWarning(p)
	p.line("\n### Goals\n")
	p.WriteString(r.goals())
	for _, s := range sections {
		r.section(p, s)
	}
	r.notes(p)
	r.plans(p)
	return p.String()
}

// loadWarning warns when the machine had other work. A side that waits for all
// of its threads then waits for the scheduler. A run of one thread is a load of
// 1, so a load of one and a half times the threads counts as other work.
func (r *results) loadWarning(p *page) {
	lo := math.Inf(1)
	hi := math.Inf(-1)
	for _, c := range r.cases {
		lo = min(lo, c.load)
		hi = max(hi, c.load)
	}
	maxThreads := 0
	for _, c := range r.cases {
		maxThreads = max(maxThreads, c.threads)
	}
	if len(r.cases) == 0 || lo < 0 {
		return
	}
	p.line("\nThe load average of the machine was between %.1f and %.1f.", lo, hi)
	if hi > 1.5*float64(maxThreads) {
		p.line("\n**The machine was busy with other work.** Ratios of one thread hold roughly; with all threads, sides whose threads wait for each")
		p.line("other wait for the scheduler (in steps of 4 ms), and the columns of the best turns say more than the medians.")
	}
}

// casesWhere lists the results of the families that a predicate accepts.
func (r *results) casesWhere(want func(name string, f family) bool) []*caseResult {
	var list []*caseResult
	for _, c := range r.cases {
		if want(c.family, families[c.family]) {
			list = append(list, c)
		}
	}
	return list
}

// A section names a table of the page.
type section string

// The sections.
const (
	products     section = "Products of matrices"
	vectors      section = "Matrix by vector"
	attentions   section = "Attention"
	rowFusions   section = "Bound by memory"
	convolutions section = "Convolutions"
	models       section = "Fusions of models"
)

// sections are the tables in the order of the page, and what is said about each.
var sections = []struct {
	name  section
	about string
	// The table has rates of arithmetic, shares of the roof.
	rates, roofs bool
}{
	{products, "Of m×n×k. sgemm is of f32, bf16gemm of bfloat16 to f32, s8gemm of bytes to s32; where m is 1, a BLAS is asked for sgemv.", true, false},
	{vectors, `gemv is a matrix m×k by a vector (n is 1), gevm a vector by a matrix k×n (m is 1): of columns, or of rows, where the matrix is
the other way round in memory. A BLAS is asked for sgemv. The roof is the time to read as many bytes at four places in
turn or in order, whichever is faster in a round (in order was not measured before go26, when two lines were read at a place in turn); where that was not measured, to copy as many with streaming stores.`, false, true},
	{attentions, `Of heads×sequence×width: dot → softmax → dot as one fusion. OpenBLAS and MKL are sgemm, softmax (gcc's vectors, libmvec's exp) and
sgemm, head after head; torch is its scaled_dot_product_attention.`, true, false},
	{rowFusions, `The roof is the time to copy as many bytes by stores past the caches or by ordinary ones, whichever is faster in a round, for what writes
little that to read as many at four places in turn or in order, or the code's own time where that is longer: what the tuned plan takes for rows that
stay in the first cache. gelu is the one by tanh; swap is the transpose {0,2,1,3}; embedding is of a table's rows×width×tokens.`, false, true},
	{convolutions, `N×H×W×C×kernel×output channels×stride, with kernel/2 zeros at each side; images N×H×W×C, weights kernel×kernel×C×output channels,
which oneDNN may lay out anew before it is timed. conv is of f32, s8conv of bytes to s32.`, true, false},
	{models, "The fusions that move most or compute most in the programs of `bench/models`, with how often they occur; those of over 3·10⁹ operations are left out.", false, false},
}

// section writes the table of a section, with a column for each peer that has samples.
func (r *results) section(p *page, s struct {
	name         section
	about        string
	rates, roofs bool
}) {
	list := r.casesWhere(func(_ string, f family) bool { return f.section == s.name })
	if len(list) == 0 {
		return
	}
	p.line("\n### %s\n\n%s\n", s.name, s.about)
	peers := measuredPeers(list)
	head := []string{"case", "threads", "ms"}
	if s.rates {
		head = append(head, "G operations/s")
	}
	for _, n := range peers {
		head = append(head, titles([]string{n}))
	}
	head = append(head, "best/best")
	if s.roofs {
		head = append(head, "copy ms", "in caches", "read ms", "in order", "code ms", "of the roof")
	}
	p.columns(append(head, "over the default plan")...)
	for _, c := range list {
		p.row(c.cells(peers, s.rates, s.roofs)...)
	}
}

// measuredPeers are the drivers of libraries that have samples of some case.
func measuredPeers(list []*caseResult) (names []string) {
	for _, d := range drivers {
		if slices.ContainsFunc(list, func(c *caseResult) bool { return len(c.samplesOf(d.name)) > 0 }) {
			names = append(names, d.name)
		}
	}
	return names
}

// cells is the row of a case.
func (c *caseResult) cells(peers []string, rates, roofs bool) []string {
	row := []string{c.String(), fmt.Sprint(c.threads), c.time("tuned")}
	if rates {
		row = append(row, c.rate("tuned"))
	}
	for _, n := range peers {
		row = append(row, c.ratio(n))
	}
	row = append(row, c.bestText(c.fastest(peers)))
	if roofs {
		code, of := "–", "–"
		if s, ok := c.code(); ok {
			code = fmt.Sprintf("%.3g", 1e3*s)
		}
		if share, ok := c.roof(); ok {
			of = ratio(share)
		}
		row = append(row, c.time("copy"), c.time("copy_cached"), c.time("read"), c.time("read_in_order"), code, of)
	}
	return append(row, c.ratio("default"))
}

// rate is the rate of a competitor in 10⁹ operations a second.
func (c *caseResult) rate(name string) string {
	x := c.samplesOf(name)
	if len(x) == 0 {
		return c.missing(name)
	}
	return digits(float64(families[c.family].flops(c.dims)) /
		median(x) / 1e9)
}

// missing is the cell of a competitor that has no samples.
func (c *caseResult) missing(name string) string {
	if why := find(c.notes, name); why != "" && why != lacks {
		return "see below"
	}
	return "–"
}

// time is the median of a competitor in milliseconds.
func (c *caseResult) time(name string) string {
	x := c.samplesOf(name)
	if len(x) == 0 {
		return c.missing(name)
	}
	return fmt.Sprintf("%.3g", 1e3*median(x))
}

// ratio is the time of a competitor over that of the tuned plan, as the cell of
// a table. The default plan is often the tuned one.
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

// notes writes what was not measured, and why. Cases that a driver has no operation for
// share a line.
func (r *results) notes(p *page) {
	list := r.casesWhere(func(string, family) bool { return true })
	p.line("\n### Not measured\n")
	for _, d := range drivers {
		var without []string
		for _, c := range list {
			if find(c.notes, d.name) == lacks && !slices.Contains(without, c.family) {
				without = append(without, c.family)
			}
		}
		if len(without) > 0 {
			p.line("* %s has no %s", d.title, strings.Join(without, ", "))
		}
	}
	for _, c := range list {
		for _, n := range c.notes {
			if n.text != lacks {
				p.line("* %s, %d threads, %s: %s", c.testCase, c.threads, n.name, n.text)
			}
		}
	}
}

// plans writes the chosen plans, how many there were to choose from, and the
// distribution of their times.
func (r *results) plans(p *page) {
	var gains []float64
	p.line("\n### Plans\n")
	p.columns("case", "threads", "tuned plan", "of plans", "compiled in ms", "landscape, ms: best · median · worst")
	for _, c := range r.cases {
		if plan := find(c.plans, "tuned"); plan != "" {
			p.row(
				c.String(),
				fmt.Sprint(c.threads),
				"`"+plan+"`",
				fmt.Sprint(c.legal),
				digits(1e3*c.compile),
				c.spectrum(),
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
		p.line("\nTuned over default, geometric mean of %d cases: %s.", len(gains), digits(geomean(gains)))
	}
}

// spectrum is the fastest, the median and the slowest plan of the landscape, in
// milliseconds.
func (c *caseResult) spectrum() string {
	x := c.landscape.seconds
	if len(x) == 0 {
		return c.missing("landscape")
	}
	return fmt.Sprintf(
		"%.3g · %.3g · %.3g",
		1e3*slices.Min(x), 1e3*median(x),
		1e3*slices.Max(x),
	)
}

// searched is the section of exhaustive searches, with the regret of the tuned
// and of the default plan in every case; it is empty when there are no
// searches.
func (r *results) searched() string {
	if len(r.cases) == 0 {
		return ""
	}
	p := &page{}
	p.line("\n### Against exhaustive search\n")
	p.line("Made by `go run ./bench/peers -exhaustive`; the samples are in the file ending in `.exhaustive.tsv`. Machine: %s.\n", r.machine)
	p.line("Of every case all plans, or %d spread evenly over more, were checked and timed once (the landscape); then the best %d, the default plan", maxSearchedPlans, finalists)
	p.line("and what `tune` finds in its normal time took turns in rounds. The best is the plan with the least median ratio in these rounds,")
	p.line("which luck favours: the true distance from the best is somewhat less. Ratios are medians, with a 95 %% interval.\n")
	p.columns("case", "plans", "landscape, ms: best · median · worst", "best plan", "tuned plan", "tuned/best", "default plan", "default/best", "tuned in s")
	var regrets, defaults []float64
	for _, c := range r.cases {
		name, best := c.finalist()
		if name == "" {
			p.row(
				c.String(),
				fmt.Sprint(len(c.landscape.seconds)),
				c.spectrum(),
				"–",
				"–",
				"–",
				"–",
				"–",
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
			c.spectrum(),
			"`"+best+"`",
			"`"+find(c.plans, "tuned")+"`",
			ratio(tuned),
			"`"+find(c.plans, "default")+"`",
			ratio(def),
			digits(c.spent),
		)
	}
	if len(regrets) > 0 {
		p.line("\nGeometric means: tuned/best %s, default/best %s.", digits(geomean(regrets)), digits(geomean(defaults)))
	}
	return p.String()
}

// against is the time of a competitor over that of the finalist of some name. A
// default plan that is the tuned plan has no samples of its own and takes those
// of the tuned plan; a competitor that is the finalist itself has the ratio 1.
func (c *caseResult) against(name, competitor string) check.PairedInterval {
	x := c.samplesOf(competitor)
	if len(x) == 0 {
		x = c.samplesOf("tuned")
	}
	if name == competitor || competitor == "default" && name == "tuned" && len(c.samplesOf("default")) == 0 {
		return check.PairedInterval{Median: 1, Lo: 1, Hi: 1}
	}
	return check.Paired(x, c.samplesOf(name), confidence)
}
