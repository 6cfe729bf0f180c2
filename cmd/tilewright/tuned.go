package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/line"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/packtiming"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/symtile/hlo/origin"
	"github.com/tilewright/tilewright/symtile/layout"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// tunedJSON is the outcome of tuning one fusion: a winner, a refusal or an error.
type tunedJSON struct {
	// File that the fusion was read from.
	File string `json:"file"`
	// Name of the fusion.
	Fusion string `json:"fusion"`
	// Source is the operation and the line of the user's program that it comes
	// from, and OtherSources are those of other fusions that are alike, seven at most.
	Source       string   `json:"source,omitempty"`
	OtherSources []string `json:"otherSources,omitempty"`
	// Plan is the winner.
	Plan string `json:"plan,omitempty"`
	// Dims are the names of the dimensions of plans, in order.
	Dims kernels.PlanNames `json:"dims,omitempty"`
	// Seconds is its median.
	Seconds float64 `json:"seconds,omitempty"`
	// Default is the plan that the winner is compared with.
	Default string `json:"default,omitempty"`
	// Speedup is the winner's speed over the default's: median, lower and upper
	// end. An upper end of 0 is unknown.
	Speedup [3]float64 `json:"speedup"`
	// Regret is an upper bound on how much slower than the best of the tried
	// plans the winner is; −1 is unknown.
	Regret float64 `json:"regret"`
	// Ties counts the plans that are equal to the winner.
	Ties int `json:"ties"`
	// Tried counts the plans that were verified.
	Tried int `json:"tried"`
	// Legal counts the plans that the backend offers.
	Legal int64 `json:"legal"`
	// Tilings counts the legal tilings, each of which is a plan without knobs; with
	// MoreTilings there are at least so many, and 0 is unknown.
	Tilings     int64 `json:"tilings,omitempty"`
	MoreTilings bool  `json:"moreTilings,omitempty"`
	// LegalPlans counts the tilings that the device can run, with the settings of knobs that are
	// worth a try with each; with MorePlans there are at least so many, and 0 is unknown.
	// Proven counts those of the plans offered that are the cheapest of all by price.
	LegalPlans int64 `json:"legalPlans,omitempty"`
	MorePlans  bool  `json:"morePlans,omitempty"`
	Proven     int64 `json:"proven,omitempty"`
	// Structure is the name of the first fusion that differs from it in extents only, its
	// own if it is the first; Shape is that of the first result.
	Structure string `json:"structure,omitempty"`
	Shape     string `json:"shape,omitempty"`
	// Copies is how many fusions are alike, this one included.
	Copies int `json:"copies,omitempty"`
	// Uses is how often a run of the modules executes the fusion and those that are
	// alike.
	Uses float64 `json:"uses,omitempty"`
	// State is "waiting", "refused", "failed", "checked", "unfinished", "tuned" or "known".
	State string `json:"state,omitempty"`
	// Like is the fusion, different in extents only, whose winner was raced beside the
	// default here, and nothing else.
	Like string `json:"like,omitempty"`
	// Predicted is the default plan's time by the cost model.
	Predicted float64 `json:"predicted,omitempty"`
	// Provisional says that the race is not over, or that only the default plan was
	// timed.
	Provisional bool `json:"provisional,omitempty"`
	// Unkept is why what was measured is not stored.
	Unkept string `json:"unkept,omitempty"`
	// Hit says that the winner was stored already: nothing was measured.
	Hit bool `json:"hit"`
	// Untimed says that the device cannot time: Seconds and Speedup are
	// predictions of the cost model.
	Untimed bool `json:"untimed,omitempty"`
	// NotChecked is why a fusion that was begun is in the state waiting: no check of a plan
	// ended in time.
	NotChecked string `json:"notChecked,omitempty"`
	// DefaultError is how the default plan failed its check.
	DefaultError string `json:"defaultError,omitempty"`
	// Refused is why the fusion has no tiles.
	Refused string `json:"refused,omitempty"`
	// Error is why tuning failed.
	Error string `json:"error,omitempty"`

	// The run has several files.
	several bool
	// The default plan's time, in seconds.
	standard float64
}

// stateNames are the states of items in JSON.
var stateNames = map[tuner.State]string{
	tuner.StateWaiting: "waiting",
	tuner.StateRefused: "refused",
	tuner.StateFailed:  "failed",
	tuner.StateChecked: "checked",
	tuner.StateTuned:   "tuned",
	tuner.StateKnown:   "known",
}

// unfinished is the state, in JSON, of a checked item whose race has begun.
const unfinished = "unfinished"

// newTunedJSON is the outcome of an item.
func newTunedJSON(x *tuner.Item) tunedJSON {
	t := tunedJSON{
		File:      x.File,
		Fusion:    x.Fusion.Name,
		Shape:     query.FirstShape(x.Fusion),
		Copies:    x.Copies,
		Uses:      x.Uses,
		standard:  x.DefaultSeconds(),
		State:     stateNames[x.State],
		Predicted: x.Predicted,
		Regret:    -1,
	}
	t.Source, t.OtherSources = origin.First(x.Sources)
	if x.Result.Record.Plan != "" {
		t.fill(x.Result)
	}
	if x.Unfinished() {
		t.State = unfinished
	}
	if x.State == tuner.StateWaiting {
		t.NotChecked = notChecked(x.Err)
	}
	var unkept *tuner.UnkeptError
	var none *tuner.NoWinnerError
	switch {
	case x.Err == nil:
	case x.State == tuner.StateRefused:
		t.Refused = x.Err.Error()
	case x.State == tuner.StateFailed:
		t.Error = x.Err.Error()
	case x.State == tuner.StateWaiting && errors.As(x.Err, &none):
		t.DefaultError = none.DefaultFailure()
	case errors.As(x.Err, &unkept):
		t.Unkept = unkept.Error()
	}
	return t
}

// notChecked is why a fusion has no plan that passed its check, where time was too short:
// its check was stopped at the end of its own time, or at the end of that of the run. It is
// empty of a fusion that nothing was done about.
func notChecked(err error) string {
	var none *tuner.NoWinnerError
	switch {
	case errors.As(err, &none):
		return none.OutOfTime()
	case errors.Is(err, context.DeadlineExceeded):
		return "begun, and the time was over before the check ended"
	case errors.Is(err, tuner.ErrStuck):
		return tuner.ErrStuck.Error()
	}
	return ""
}

// fill takes over a result.
func (t *tunedJSON) fill(r tuner.Result) {
	t.Plan = r.Record.Plan
	t.Dims = recordNames(context.Background(), &r.Record)
	t.Seconds = r.Record.Seconds
	t.Default = r.Record.Default
	t.Speedup = r.Record.Speedup
	t.Regret = r.Record.Regret
	t.Ties = len(r.Record.Ties)
	t.Tried = len(r.Record.Trials)
	t.Legal = r.Record.Legal
	t.Tilings = r.Record.Tilings
	t.MoreTilings = t.Tilings == math.MaxInt64
	t.LegalPlans = r.Record.Plans
	t.MorePlans = r.Record.MorePlans || t.LegalPlans == math.MaxInt64
	t.Proven = r.Record.Proven
	t.Hit = r.Hit
	t.Untimed = r.Record.Untimed
	t.Provisional = r.Record.Provisional
	t.Like = r.Record.Like
	t.DefaultError = r.Record.DefaultFailure()
}

// maxNameWidth is how much of a line the name of a fusion takes.
const maxNameWidth = 36

// String is the outcome for people, in lines of a terminal's width: the name and the
// time, then the plan and what is known about it, and what the fusion comes from, with the
// file where there are several.
func (t tunedJSON) String() string {
	clauses := t.outcome()
	name := line.Shorten(t.Fusion, maxNameWidth)
	if t.Uses > 1 {
		name = fmt.Sprintf("%s (%s times)", name, timesText(t.Uses))
	}
	clauses[0] = name + ": " + clauses[0]
	if t.several && t.Fusion != "" {
		clauses = append(clauses, "in "+t.File)
	}
	clauses = append(clauses, t.from())
	text := line.Join(line.Width, clauses...)
	if _, excerpt, more := strings.Cut(t.Error+t.Refused, "\n"); more {
		text += "\n" + excerpt
	}
	return text
}

// from says what the fusion comes from; "" where that is not known.
func (t tunedJSON) from() string {
	switch n := len(t.OtherSources); {
	case t.Source == "":
		return ""
	case n > 0:
		return fmt.Sprintf("from %s and %s", t.Source, report.Counted(n, "other place"))
	}
	return "from " + t.Source
}

// outcome is what became of the fusion, in clauses.
func (t tunedJSON) outcome() []string {
	plan, seconds := "plan "+t.Dims.Stored(t.Plan), report.Seconds(t.Seconds)
	switch {
	case t.Error != "":
		return []string{"failed: " + firstLine(t.Error)}
	case t.Refused != "":
		return []string{"refused: " + firstLine(t.Refused)}
	case t.NotChecked != "":
		return []string{"not checked: " + t.NotChecked, t.expected()}
	case t.Plan == "" && t.DefaultError != "":
		return []string{"the default is not right, and the time was over before another plan was tried: " + firstLine(t.DefaultError)}
	case t.Plan == "":
		return []string{"not reached", t.expected()}
	case t.Hit && t.Untimed:
		return []string{"known: predicted " + seconds, plan, "nothing was timed"}
	case t.Untimed && t.Provisional:
		return []string{"predicted " + seconds + ", the default", plan, "nothing was timed, only the default checked"}
	case t.Untimed:
		return []string{"predicted " + seconds + ", " + t.predicted(), plan,
			fmt.Sprintf("nothing was timed, %d checked, %d offered%s%s", t.Tried, t.Legal, spaceText(t.LegalPlans, t.MorePlans, t.Tilings), tiesText(t.Ties))}
	case t.Provisional && t.Tried <= 1:
		return []string{seconds + ", the default", plan, "checked and timed, not raced"}
	case t.Provisional:
		return []string{seconds + ", " + t.speedup(), plan, fmt.Sprintf("provisional: the race of %d plans is not over", t.Tried)}
	case t.Hit:
		return []string{"known: " + seconds, plan, t.likeText()}
	case t.Like != "":
		return []string{seconds + ", " + t.speedup(), plan, t.likeText()}
	}
	return []string{seconds + ", " + t.speedup(), plan,
		fmt.Sprintf("regret %s of %d tried, %d offered%s%s", regretText(t.Regret), t.Tried, t.Legal, spaceText(t.LegalPlans, t.MorePlans, t.Tilings), tiesText(t.Ties))}
}

// expected is the default plan's time by the cost model; "" where that is not known.
func (t tunedJSON) expected() string {
	if t.Predicted == 0 {
		return ""
	}
	return "predicted " + report.Seconds(t.Predicted)
}

// likeText says that the winner of another fusion was raced beside the default, and nothing
// else; "" where that is not so. The record has it, so that a later run, which measures
// nothing, says it as well.
func (t tunedJSON) likeText() string {
	if t.Like == "" {
		return ""
	}
	return fmt.Sprintf("raced with the winner of %s, which differs in extents only", line.Shorten(t.Like, maxNameWidth))
}

// spaceText is how many legal plans and tilings there are, beside the plans that are offered
// of them, as far as that is known; with more there are at least so many plans.
func spaceText(plans int64, more bool, tilings int64) string {
	legal := countText(plans, "legal")
	if more && plans > 0 && plans < math.MaxInt64 {
		legal = fmt.Sprintf(", at least %d legal", plans)
	}
	return legal + countText(tilings, "tilings")
}

// countText is a part of a list: a count that is math.MaxInt64 where there are at least as
// many. It is empty for 0, which is unknown.
func countText(n int64, of string) string {
	switch n {
	case 0:
		return ""
	case math.MaxInt64:
		return ", more than 9e18 " + of
	}
	return fmt.Sprintf(", %d %s", n, of)
}

// timesText is how often something is executed; of loops in loops that is a number of
// which nobody reads all digits.
func timesText(n float64) string {
	if n < 1e9 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprintf("%.3g", n)
}

// predicted compares the winner with the default plan by the cost model.
func (t tunedJSON) predicted() string {
	switch {
	case t.DefaultError != "":
		return "the default is not right"
	case t.Plan == t.Default:
		return "the default, the best by the cost model"
	}
	return fmt.Sprintf("%.2f× the default's speed by the cost model", t.Speedup[0])
}

// speedup compares the winner with the default plan, with the interval of the
// measurement.
func (t tunedJSON) speedup() string {
	switch {
	case t.DefaultError != "":
		return "the default is not right"
	case t.Plan == t.Default:
		return "the default, which nothing beat"
	}
	median, low, high := t.Speedup[0], t.Speedup[1], report.UpperEnd(t.Speedup[2])
	if low == 0 {
		return fmt.Sprintf("%.2f× the default's speed in too few runs for an interval", median)
	}
	return fmt.Sprintf("%.2f× the default's speed (%.2f–%s)", median, low, high)
}

// tiesText mentions the plans that are equal to a winner, if there are any.
func tiesText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", tied with %d", n)
}

// regretText formats an upper bound of the regret, which is negative where it is
// unknown.
func regretText(regret float64) string {
	if regret < 0 {
		return "unknown"
	}
	return fmt.Sprintf("≤ %.1f%%", 100*regret)
}

// A structure is the distinct fusions of a run that differ in extents only.
type structure struct {
	name string        // of the first
	size int           // number of fusions
	left int           // those about which something may still be done
	done tunedTogether // those that an entry of the structure is about
}

// A tunedTogether is fusions of one structure about which nothing is wrong, in the order in
// which they were known.
type tunedTogether []tunedJSON

// countStructures makes the structures of what was read.
func (s *session) countStructures() {
	s.structures = map[cache.Fingerprint]*structure{}
	for _, x := range s.schedule.Workload.Items {
		of := s.structures[x.Structure]
		if of == nil {
			of = &structure{name: x.Fusion.Name}
			s.structures[x.Structure] = of
			s.inOrder = append(s.inOrder, of)
		}
		of.size++
		of.left++
	}
}

// alone reports whether a fusion has lines of its own, whatever became of others of its
// structure: something about it is wrong, or it is refused.
func (t tunedJSON) alone() bool {
	return t.Error != "" || t.Refused != "" || t.DefaultError != "" || t.Unkept != "" || t.Plan == "" && !t.waits()
}

// waits reports whether the time was over before the fusion was timed.
func (t tunedJSON) waits() bool {
	return t.Plan == "" && t.State == stateNames[tuner.StateWaiting]
}

// printOutcome prints the outcome of a fusion, or that of all of its structure with that of
// the last one.
func (s *session) printOutcome(of *structure, t tunedJSON) {
	if of.left--; of.size == 1 || *s.f.each || t.alone() {
		s.status.print(t)
	} else {
		of.done = append(of.done, t)
	}
	if of.left == 0 {
		s.printTogether(of)
	}
}

// printTogether prints what was kept back of a structure.
func (s *session) printTogether(of *structure) {
	switch len(of.done) {
	case 0:
	case 1:
		s.status.print(of.done[0])
	default:
		s.status.print(of.done)
	}
	of.done = nil
}

// String is the outcome of the structure for people, in lines of a terminal's width.
func (g tunedTogether) String() string {
	first := g[0]
	for _, t := range g {
		if t.Like == "" && t.State != "checked" && !t.waits() {
			first = t // it was raced by itself
			break
		}
		if first.waits() {
			first = t
		}
	}
	copies, uses := 0, 0.0
	var shapes []string
	for _, t := range g {
		copies += t.Copies
		uses += t.Uses
		if !slices.Contains(shapes, t.Shape) {
			shapes = append(shapes, t.Shape)
		}
	}
	fusions := fmt.Sprintf("%d fusions, %d distinct", copies, len(g))
	if uses != float64(copies) {
		fusions += fmt.Sprintf(", executed %s times", timesText(uses))
	}
	clauses := []string{
		fmt.Sprintf("%s and %d of its structure: %s", line.Shorten(first.Fusion, maxNameWidth), len(g)-1, fusions),
		g.time(), "", g.states(),
	}
	if first.Plan != "" {
		clauses[2] = "plan " + first.Dims.Stored(first.Plan)
	}
	if first.several {
		clauses = append(clauses, "in "+first.File)
	}
	clauses = append(clauses, first.from())
	return line.Join(line.Width, append(clauses, "shapes "+firstShapes(shapes))...)
}

// time is what the fusions that have a plan take together in a run of the models, beside
// their defaults, and in brackets the least and the most that one gains; where none has one,
// what is predicted of all.
func (g tunedTogether) time() string {
	seconds, standard, now := 0.0, 0.0, 0.0
	least, most, predicted := math.Inf(1), 0.0, 0.0
	for _, t := range g {
		predicted += t.Uses * t.Predicted
		if t.waits() {
			continue
		}
		ratio := cmp.Or(t.Speedup[0], 1)
		seconds += t.Uses * t.Seconds
		standard += t.Uses * t.standard
		now += t.Uses * t.standard / ratio
		least, most = min(least, ratio), max(most, ratio)
	}
	if seconds == 0 {
		return "predicted " + report.Seconds(predicted) + " together"
	}
	text := report.Seconds(seconds) + " together"
	if slices.ContainsFunc(g, func(t tunedJSON) bool { return t.Untimed }) {
		text = "predicted " + text
	}
	if least == 1 && most == 1 {
		return text + ", the defaults"
	}
	return fmt.Sprintf("%s, %.2f× the defaults' speed (each %.2f–%.2f)", text, standard/now, least, most)
}

// togetherNames say how many of a structure came to which end, in this order.
var togetherNames = []struct {
	text string
	is   func(tunedJSON) bool
}{
	{"known", func(t tunedJSON) bool { return t.State == "known" }},
	{"checked, not timed", func(t tunedJSON) bool { return t.State == "tuned" && t.Untimed }},
	{"provisional", func(t tunedJSON) bool { return t.State == unfinished }},
	{"checked, only the default", func(t tunedJSON) bool { return t.State == "checked" && t.Untimed }},
	{"checked and timed, not raced", func(t tunedJSON) bool { return t.State == "checked" && !t.Untimed }},
	{"raced", func(t tunedJSON) bool { return t.State == "tuned" && t.Like == "" && !t.Untimed }},
	{"raced with the winner of another", func(t tunedJSON) bool { return t.State == "tuned" && t.Like != "" && !t.Untimed }},
	{"begun, but not checked when the time was over", func(t tunedJSON) bool { return t.waits() && t.NotChecked != "" }},
	{"not reached", func(t tunedJSON) bool { return t.waits() && t.NotChecked == "" }},
}

// states counts the fusions by what became of them.
func (g tunedTogether) states() string {
	var words []string
	for _, name := range togetherNames {
		n := 0
		for _, t := range g {
			if name.is(t) {
				n++
			}
		}
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, name.text))
		}
	}
	return strings.Join(words, ", ")
}

// modelJSON is what became of the model's time.
type modelJSON struct {
	// Seconds is the model's time by default plans; 0 with the weights of a profile.
	Seconds float64 `json:"seconds,omitempty"`
	// Speedup is by the winners, provisional ones too, of the fusions that were timed.
	Speedup float64 `json:"speedup,omitempty"`
	// Parts by state, and what is outside of the fusions.
	Parts map[string]timePartJSON `json:"parts"`
	// Like is how many fusions were tuned by the winner of one that differs in extents only,
	// beside their default.
	Like int `json:"like,omitempty"`
	// Structures counts what is left of the distinct fusions when those that differ in
	// extents only are one, and TunedStructures the ones that are tuned to the last fusion.
	Structures      int `json:"structures"`
	TunedStructures int `json:"tunedStructures"`
	// Outside counts the instructions in no fusion, by operation.
	Outside map[string]int `json:"outside,omitempty"`

	// What the words for people depend on: the device cannot time, and how many fusions
	// were begun and have no check that ended.
	untimed bool
	begun   int
}

// timePartJSON is the fusions of one state.
type timePartJSON struct {
	// Distinct fusions, or instructions outside of them.
	Fusions int `json:"fusions"`
	// Executions in a run of the modules.
	Uses float64 `json:"uses,omitempty"`
	// Share of the model's time.
	Share float64 `json:"share"`
}

// newModelJSON sums up a run.
func newModelJSON(s *tuner.Schedule) modelJSON {
	sum := s.Summary()
	m := modelJSON{
		Seconds: sum.Seconds,
		Speedup: sum.Speedup,
		Like:    sum.Like,
		Parts:   map[string]timePartJSON{},
		Outside: map[string]int{},

		Structures:      sum.Structures,
		TunedStructures: sum.TunedStructures,

		untimed: s.Tuner.Backend.Identity().Untimed,
	}
	for _, x := range s.Workload.Items {
		if x.State == tuner.StateWaiting && notChecked(x.Err) != "" {
			m.begun++
		}
	}
	for state, p := range sum.Parts {
		m.Parts[stateNames[state]] = timePartJSON(p)
	}
	if sum.Unfinished.Fusions > 0 {
		m.Parts[unfinished] = timePartJSON(sum.Unfinished)
	}
	if sum.Outside.Fusions > 0 {
		m.Parts["outside"] = timePartJSON(sum.Outside)
	}
	for op, o := range s.Workload.Outside {
		m.Outside[string(op)] = o.Instrs
	}
	return m
}

// lines are the summary for people; none where a single fusion speaks for itself.
func (m modelJSON) lines() (lines []string) {
	distinct, uses, tuned := 0, 0.0, 0.0
	for state, p := range m.Parts {
		if state != "outside" {
			distinct += p.Fusions
			uses += p.Uses
		}
		if state == "tuned" || state == "known" {
			tuned += p.Share
		}
	}
	if distinct < 2 && len(m.Outside) == 0 {
		return nil
	}
	of := []string{fmt.Sprintf("%d distinct fusions, executed %s times: %s of the time is tuned", distinct, timesText(uses), shareText(tuned))}
	if m.Structures > 0 && m.Structures < distinct {
		of = append(of, fmt.Sprintf("structures tuned: %d of %d", m.TunedStructures, m.Structures))
	}
	if m.Like > 0 {
		of = append(of, fmt.Sprintf("%d of them by the winner of one that differs in extents only", m.Like))
	}
	if raced := tuned > 0 || m.Parts[unfinished].Fusions > 0; raced && m.Speedup > 0 {
		of = append(of, fmt.Sprintf("what was timed%s takes %.3g of the default plans' time, %.2f× their speed", m.provisional(), 1/m.Speedup, m.Speedup))
	}
	lines = append(lines, line.Join(line.Width, of...))
	var rest []string
	for _, state := range []string{unfinished, "checked", "waiting", "refused", "failed"} {
		if p := m.Parts[state]; p.Fusions > 0 {
			rest = append(rest, fmt.Sprintf("%d %s (%s)", p.Fusions, m.leftName(state), shareText(p.Share)))
		}
	}
	if len(rest) > 0 {
		lines = append(lines, line.Wrap(line.Width, "not tuned: "+strings.Join(rest, ", ")))
	}
	if o := m.Parts["outside"]; o.Fusions > 0 {
		lines = append(lines, line.Wrap(line.Width, fmt.Sprintf("%s outside of the fusions, about %s of the time (%s): `tilewright show` says why",
			stayText(o.Fusions), shareText(o.Share), m.outsideText())))
	}
	return lines
}

// stayText says how many instructions stay.
func stayText(n int) string {
	if n == 1 {
		return "1 instruction stays"
	}
	return fmt.Sprintf("%d instructions stay", n)
}

// provisional says that a number counts the winners of races that are not over, if it does.
func (m modelJSON) provisional() string {
	if m.Parts[unfinished].Fusions == 0 {
		return ""
	}
	return " (provisional winners included)"
}

// open reports whether fusions are left that were not reached or not raced to an end.
func (m modelJSON) open() bool {
	return m.Parts["waiting"].Fusions+m.Parts["checked"].Fusions+m.Parts[unfinished].Fusions > 0
}

// leftName says what became of fusions that were not tuned. A device that cannot time has
// timed no default, and what was begun without a check that ended is not what was never
// reached.
func (m modelJSON) leftName(state string) string {
	switch {
	case state == "checked" && m.untimed:
		return "of which the default was checked, and nothing else"
	case state == "waiting" && m.begun > 0:
		return "not reached or not checked in time"
	}
	return leftNames[state]
}

// leftNames say what became of fusions that were not tuned.
var leftNames = map[string]string{
	unfinished: "provisional, race not over",
	"checked":  "checked and timed by default, not raced",
	"waiting":  "not reached",
	"refused":  "refused",
	"failed":   "failed",
}

// mostOutside is how many operations outside of fusions the summary names.
const mostOutside = 5

// outsideText names the most frequent operations outside of the fusions.
func (m modelJSON) outsideText() string {
	ops := slices.SortedFunc(maps.Keys(m.Outside), func(a, b string) int {
		return cmp.Or(cmp.Compare(m.Outside[b], m.Outside[a]), cmp.Compare(a, b))
	})
	var words []string
	for k, op := range ops {
		if k == mostOutside {
			words = append(words, "…")
			break
		}
		words = append(words, fmt.Sprintf("%d %s", m.Outside[op], op))
	}
	return strings.Join(words, ", ")
}

// shareText formats a share.
func shareText(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }

// weightJSON is an operand of a fusion that is the same in every run, and what was
// measured of packing it.
type weightJSON struct {
	// Names of the fusion and of its parameter.
	Fusion    string `json:"fusion"`
	Parameter string `json:"parameter"`
	// Pack is the attributes of tensor.pack.
	Pack string `json:"pack,omitempty"`
	// Plan is that of the fusion that reads the operand packed.
	Plan string `json:"plan,omitempty"`
	*measuredJSON
	// Error is why it was not measured.
	Error string `json:"error,omitempty"`
}

// String is what was measured for people, in lines of a terminal's width.
func (w weightJSON) String() string {
	name := fmt.Sprintf("%s of %s", w.Parameter, line.Shorten(w.Fusion, maxNameWidth))
	if w.Error != "" {
		return line.Join(line.Width, name+": not measured packed: "+firstLine(w.Error))
	}
	pays := "packing it does not pay, or no gain can be told from noise"
	if w.Pays > 0 {
		pays = fmt.Sprintf("packing it once takes %s and pays from %s on", report.Seconds(w.Packing), layout.CountText(w.Pays, "run"))
	}
	return line.Join(
		line.Width, fmt.Sprintf("%s: packed %.3g× the time (%.3g–%.3g)", name, w.Ratio[0], w.Ratio[1], w.Ratio[2]),
		pays, w.Pack,
	)
}

// A packedWeight is a subject of packtiming and its item.
type packedWeight struct {
	packtiming.Subject
	item *tuner.Item
}

// packedWeights are the weights that the device's kernels would have packed.
func (s *session) packedWeights() (all []packedWeight) {
	// A simulator could run packed operands, but not say what they gain.
	b, can := s.tuner.Backend.(kernels.PackingBackend)
	if !can || b.Identity().Untimed {
		return nil
	}
	for _, x := range s.schedule.Workload.Items {
		for _, k := range s.weights.Of(x.Fusion) {
			if p, ok := b.Pack(x.Fusion, k); ok {
				all = append(all, packedWeight{packtiming.Subject{
					Fusion: x.Fusion, Parameter: k, Pack: layout.Pack(p),
				}, x})
			}
		}
	}
	return all
}

// maxPackTime is the time in which a fusion with a packed operand is raced, and its winner
// measured beside that of the fusion as it is, at most. Racing takes maxPackTime/packRaces.
const (
	maxPackTime = 4 * time.Second
	packRaces   = 2
)

// packBudget is what of the time of a run is kept for n weights: as much as all of them take,
// but no more than a tenth, or than one of them takes where a tenth is not enough for that. A
// quarter is the most: what fusions take as they are is found first.
func packBudget(run time.Duration, n int) time.Duration {
	const usual, most = 10, 4 // parts
	all := time.Duration(n) * maxPackTime
	return min(all, max(run/usual, min(maxPackTime, run/most)))
}

// packWeights races the fusions that take their weights packed, measures what their
// winners gain over those of the fusions as they are, and prints and keeps it. What is kept
// already for the same plan is taken from there, unless -force. It ends when the time of the
// run does.
func (s *session) packWeights(ctx context.Context, all []packedWeight) error {
	// The longest in a run of the models come first: what is not reached in the time of
	// the run would have saved least.
	slices.SortStableFunc(all, func(x, y packedWeight) int {
		return cmp.Compare(y.item.Uses*y.item.Result.Record.Seconds, x.item.Uses*x.item.Result.Record.Seconds)
	})
	for n, x := range all {
		plan, err := kernels.ParsePlan(x.item.Result.Record.Plan)
		if err != nil || s.schedule.Hung() != nil {
			continue // no winner
		}
		left := s.packTime(len(all) - n)
		if left <= 0 {
			s.c.note("%d weights were not measured packed: -run-budget is over", len(all)-n)
			return nil
		}
		s.status.say("%s of %s packed", x.Fusion.Params[x.Parameter].Name, x.Fusion.Name)
		p, err := s.packed(ctx, x.Subject, plan, left)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.noteWeight(x, p, err)
		if hung := new(tuner.HungError); errors.As(err, &hung) {
			break // a thread is lost: what would be timed now is worthless
		}
	}
	saved, pay := 0.0, int64(0)
	for _, p := range s.packings {
		if p.Saved() > 0 {
			pay++
		}
		saved += p.Saved()
	}
	if saved > 0 {
		s.c.note("%s packed once: saves %s a run of the models", layout.CountText(pay, "weight"), report.Seconds(saved))
	}
	return nil
}

// packTime is the time for the next of n weights.
func (s *session) packTime(n int) time.Duration {
	if *s.f.runBudget == 0 {
		// Short budgets are those of tests and first looks.
		return min(maxPackTime, cmp.Or(*s.f.budget, maxPackTime))
	}
	left := *s.f.runBudget - time.Since(s.schedule.Begin)
	return min(maxPackTime, left/time.Duration(n))
}

// packed is what is kept of a subject with the plan, or what is measured and kept now.
func (s *session) packed(
	ctx context.Context, x packtiming.Subject, plan kernels.Plan, span time.Duration,
) (cache.Packing, error) {
	// The key has the revision of the code generator: what older kernels gained is not
	// taken for what these do. A damaged record is measured again and replaced.
	id := kernels.IdentityOf(s.tuner.Backend)
	key := packtiming.Result{}.Of(x, id)
	kept, err := s.tuner.Cache.Packings(key)
	for _, p := range kept {
		if p.Pack == key.Pack && p.InPlacePlan == plan.String() && !*s.f.force && err == nil {
			return p, nil
		}
	}
	plans := packtiming.Plans{InPlace: &plan}
	if plans.Packed, err = s.racePacked(ctx, x, span/packRaces); err != nil {
		return key, err
	}
	r, err := packtiming.Measure(ctx, s.tuner.Backend, x, plans, span-span/packRaces)
	if err != nil {
		return key, err
	}
	p := r.Of(x, id)
	p.When, p.By = time.Now().UTC().Truncate(time.Second), tuner.Version()
	if err := s.tuner.Cache.PutPacking(p); err != nil {
		s.c.note("tilewright tune: warning: what packing gains is not kept: %v", err)
	}
	return p, nil
}

// racePacked is the winner of the fusion that takes a weight packed, a fusion like any
// other: its record is stored, and a compiler that emits the pack finds it. nil says that
// the time of the run was over before there was one.
func (s *session) racePacked(
	ctx context.Context, x packtiming.Subject, span time.Duration,
) (*kernels.Plan, error) {
	// What it tries is what any race of the fusion would: the default of the packed one,
	// the cheapest plans and what the search proposes. The plan of the fusion as it is
	// may not be legal here, where a tile is whole panels or a part of one.
	t := *s.tuner
	t.Options.Budget = span
	if *s.f.runBudget > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, s.schedule.Begin.Add(*s.f.runBudget))
		defer stop()
	}
	won, err := t.Tune(ctx, x.Packed())
	// An error may come with a winner, a provisional one or one that is not stored: what
	// packing gains can be measured with it all the same.
	plan, bad := kernels.ParsePlan(won.Record.Plan)
	if bad != nil || won.Record.Plan == "" {
		if ctx.Err() != nil {
			err = nil
		}
		return nil, err
	}
	return &plan, nil
}

// noteWeight prints what was measured of a weight, and adds it to the summary and the
// report.
func (s *session) noteWeight(x packedWeight, p cache.Packing, err error) {
	w := weightJSON{
		Fusion:    x.Fusion.Name,
		Parameter: x.Fusion.Params[x.Parameter].Name,
		Pack:      p.Pack,
	}
	if err != nil {
		w.Error = err.Error()
	} else {
		w.Plan, w.measuredJSON = p.PackedPlan, newMeasuredJSON(p)
		race := x.Packed()
		s.packings = append(s.packings, report.Packing{
			Fusion: w.Fusion, Parameter: w.Parameter, Uses: x.item.Uses, Race: race.Fingerprint(), Packing: p,
		})
		// Its race is in the report, too. One that is not stored is left out of that.
		if r, found, _ := s.tuner.Lookup(race); found {
			r.Record.Name = race.Name
			s.records = append(s.records, r.Record)
		}
	}
	s.summary.Weights = append(s.summary.Weights, w)
	s.status.print(w)
}
