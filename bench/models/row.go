package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// header names the columns of the table, which are separated by tabs.
//
// The first five count instructions and fusions. Of the distinct fusions, those
// that are checked have been compiled, compared with the reference and timed by
// their default plan only, and those that are waiting have not been reached in
// the time; refused ones have no tiles, and failed ones are errors. Load is what
// show takes, tune what tuning from an empty database takes, with the peak of
// the resident memory. The speed-up is of the time that was tuned, over default
// plans; its share is next to it, and the share that is in fusions that can be tiled. The last three are the whole model.
var header = []string{
	"model", "instructions", "fusions", "distinct", "tileable", "outside", "tuned", "checked", "waiting", "refused", "failed",
	"load s", "load MB", "tune s", "tune MB", "speed-up", "share tuned", "share tileable", "ours s", "jax s", "ours/jax",
}

// A row is what was measured of one model.
type row struct {
	name string
	// Instructions of the module; its fusions, and those of them that are distinct
	// and can be tiled; instructions outside of fusions that are work.
	instructions, fusions, distinct, tileable, outside int
	// states counts the distinct fusions by what became of them.
	states map[string]int
	// What loading and tuning took.
	load, tune usage
	// Model-level speed-up over default plans, and the share of time that it is of.
	speedup, share float64
	// tiled is the share of the model's time in fusions that can be tiled.
	tiled float64
	// Seconds of the whole model by winners and by XLA; 0 where it was not run.
	ours, jax float64
	// notes are failures, refusals and comparisons of single fusions.
	notes []string
}

// usage is what a command took, from its start to its end: reading, ranking, inputs,
// the reference and the races are all in it.
type usage struct {
	Seconds float64
	// Peak is the resident memory in bytes.
	Peak int64
}

// String is a line of the table.
func (r row) String() string {
	ratio := "-"
	if r.ours > 0 && r.jax > 0 {
		ratio = fmt.Sprintf("%.2f", r.ours/r.jax)
	}
	cells := []string{r.name}
	for _, n := range r.counts() {
		cells = append(cells, fmt.Sprint(n))
	}
	for _, u := range []usage{r.load, r.tune} {
		cells = append(
			cells, fmt.Sprintf("%.1f", u.Seconds),
			fmt.Sprintf("%.0f", float64(u.Peak)/1e6),
		)
	}
	cells = append(
		cells, measured("%.2f", r.speedup), measured("%.2f", r.share), measured("%.4f", r.tiled),
		measured("%.4f", r.ours), measured("%.4f", r.jax), ratio,
	)
	return strings.Join(cells, "\t")
}

// counts are the whole numbers of a line, in the order of the header. A winner
// that was stored already counts as tuned.
func (r row) counts() []int {
	return []int{
		r.instructions, r.fusions, r.distinct, r.tileable, r.outside,
		r.states["tuned"] + r.states["known"],
		r.states["checked"] + r.states["unfinished"],
		r.states["waiting"],
		r.states["refused"],
		r.states["failed"],
	}
}

// measured is a number, or a dash for none.
func measured(format string, x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

// notef adds a note.
func (r *row) notef(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// showDocument is what of show -json is used: the fusions, by name and fingerprint,
// why some cannot be tiled, and what is in none. encoding/json finds the fields
// whatever the case of their first letter.
type showDocument struct {
	Fusions []struct {
		Name, Fingerprint string
		Untileable        *struct{ Instr, Rule, Reason string }
	}
	Outside []struct{ Instr, Op, Reason string }
}

// tuneDocument is what of tune -json is used: what became of each distinct fusion,
// and of the model's time. A share is of the time by default plans, in which what
// is outside of fusions is estimated by the bytes that it moves.
type tuneDocument struct {
	Fusions []struct {
		Fusion, State, Refused, Error string
	}
	Model struct {
		Speedup float64
		Parts   map[string]struct{ Share float64 }
	}
}

// measure loads and tunes a model by the command. Whatever fails is a note: the
// row has what was measured before.
func (o options) measure(ctx context.Context, m model) row {
	r := row{name: m.Name, states: map[string]int{}}
	file, err := o.unpacked(m)
	if err != nil {
		r.notef("%v", err)
		return r
	}
	if parsed, err := hlo.Parse(m.Name, m.Text); err == nil {
		for _, c := range parsed.Computations {
			r.instructions += len(c.Instrs)
		}
	}
	var shown showDocument
	if r.load, err = o.command(ctx, &shown, "show", "-json", file); err != nil {
		r.notef("show: %v", err)
		return r
	}
	r.describe(shown)
	if o.budget > 0 {
		o.tune(ctx, &r, file)
	}
	return r
}

// tune tunes the model of a file with an empty database, and counts its fusions by
// what became of them. Those that were refused or failed are notes, with the first
// line of the reason.
func (o options) tune(ctx context.Context, r *row, file string) {
	db := o.database(r.name)
	os.Remove(db)
	var tuned tuneDocument
	var err error
	r.tune, err = o.command(
		ctx, &tuned, "tune", "-json", "-progress", "0", "-db", db,
		"-run-budget", o.budget.String(), "-try", fmt.Sprint(o.try), file,
	)
	if err != nil {
		r.notef("tune: %v", err)
	}
	for _, f := range tuned.Fusions {
		r.states[f.State]++
		if why := f.Refused + f.Error; why != "" {
			r.notef("%s %s: %s", f.Fusion, f.State, firstLine(why))
		}
	}
	if parts := tuned.Model.Parts; len(parts) > 0 {
		r.tiled = 1 - parts["outside"].Share - parts["refused"].Share
	}
	r.speedup = tuned.Model.Speedup
	r.share = tuned.Model.Parts["tuned"].Share + tuned.Model.Parts["known"].Share
}

// database is the file of a model's winners.
func (o options) database(name string) string {
	return filepath.Join(o.scratch, name+".db")
}

// describe counts fusions, and notes why some cannot be tiled and what is outside.
func (r *row) describe(shown showDocument) {
	seen := map[string]bool{}
	r.fusions = len(shown.Fusions)
	for _, f := range shown.Fusions {
		if seen[f.Fingerprint] {
			continue
		}
		seen[f.Fingerprint] = true
		if f.Untileable == nil {
			r.tileable++
		} else {
			r.notef("%s: %s: %s", f.Name, f.Untileable.Instr, f.Untileable.Reason)
		}
	}
	r.distinct = len(seen)
	r.outside = len(shown.Outside)
	count := map[string]int{}
	for _, i := range shown.Outside {
		count[i.Op]++
	}
	var ops []string
	for op, n := range count {
		ops = append(ops, fmt.Sprintf("%d %s", n, op))
	}
	slices.Sort(ops)
	if len(ops) > 0 {
		r.notef("outside: %s", strings.Join(ops, ", "))
	}
}

// command runs a command of tilewright and reads its document. What it printed is
// read even where it failed: a fusion that fails makes the exit status 1, and the
// document says which. Without a document the first line of the error is the error,
// or the limit, which is long enough that only a hang reaches it.
func (o options) command(ctx context.Context, into any, args ...string) (usage, error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	c := exec.CommandContext(ctx, o.tilewright, args...)
	var out, problem bytes.Buffer
	c.Stdout, c.Stderr = &out, &problem
	c.WaitDelay = time.Second
	start := time.Now()
	if err := c.Start(); err != nil {
		return usage{}, err
	}
	peak := watchPeak(c.Process.Pid)
	err := c.Wait()
	u := usage{Seconds: time.Since(start).Seconds(), Peak: <-peak}
	if unreadable := json.Unmarshal(out.Bytes(), into); unreadable == nil {
		return u, nil // failures of fusions are in the document
	}
	switch {
	case ctx.Err() != nil:
		return u, fmt.Errorf("no end after %v", o.limit)
	case problem.Len() > 0:
		return u, fmt.Errorf("%s", firstLine(problem.String()))
	}
	return u, err
}

// watchPeak sends the largest resident memory of a process, in bytes, when it has ended;
// it looks every 20 ms. What wait(2) says would be no less than what this program had when
// it started the process.
func watchPeak(pid int) <-chan int64 {
	peak := make(chan int64, 1)
	go func() {
		var most int64
		for {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, high, found := strings.Cut(string(status), "VmHWM:")
			if err != nil || !found {
				peak <- most << 10 // Linux counts KiB
				return
			}
			fmt.Sscan(high, &most)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return peak
}

// firstLine is what a long message begins with.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line[:min(len(line), 200)]
}

// totals are what the table says of all models together; nothing of less than one.
type totals struct {
	models int
	// Distinct fusions that can be tiled, and those of them that are tuned, or only
	// checked and timed by their default plan.
	tileable, tuned, checked int
	// least is the smallest share of a model's time in fusions that can be tiled.
	least float64
	// What a model took at most.
	longest float64
	peak    int64
	// The sum of the logarithms of our times over XLA's, and the models in it.
	logs   float64
	beside int
}

// totalsOf sums up rows.
func totalsOf(all []row) totals {
	t := totals{models: len(all), least: 1}
	for _, r := range all {
		t.tileable += r.tileable
		// A winner that was stored already is one, and a race that is not over has at
		// least checked the default.
		t.tuned += r.states["tuned"] + r.states["known"]
		t.checked += r.states["checked"] + r.states["unfinished"]
		t.least = min(t.least, r.tiled)
		t.longest = max(
			t.longest,
			r.tune.Seconds,
		)
		t.peak = max(
			t.peak,
			r.load.Peak,
			r.tune.Peak,
		)
		// A model that was not executed has no times.
		if r.ours > 0 && r.jax > 0 {
			t.logs += math.Log(r.ours / r.jax)
			t.beside++
		}
	}
	return t
}

// String is the last line of the table; empty without models.
func (t totals) String() string {
	if t.models == 0 {
		return ""
	}
	// In percent of the fusions that can be tiled.
	share := func(n int) float64 {
		return 100 * float64(n) / float64(max(1, t.tileable))
	}
	text := fmt.Sprintf(
		"# all %d: of %d fusions that can be tiled %.1f %% are tuned, %.1f %% at least checked and timed by their default",
		t.models, t.tileable,
		share(t.tuned),
		share(t.tuned+t.checked),
	)
	text += fmt.Sprintf(
		"; at least %.2f %% of a model's time is in them; at most %.1f s and %.0f MB a model",
		100*t.least, t.longest, float64(t.peak)/1e6,
	)
	if t.beside > 0 {
		text += fmt.Sprintf(
			"; %.2f times XLA's time, by geometric mean of %d",
			math.Exp(t.logs/float64(t.beside)), t.beside,
		)
	}
	return text + "\n"
}
