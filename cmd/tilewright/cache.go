package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/filter"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/line"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// cacheCommand reads and maintains the database of winners.
var cacheCommand = command{
	name: "cache", args: "ls|show|verify|merge|export|import|publish|rm …", short: "list, check and exchange the stored winners",
	long: `Reads and maintains the database of -db:

  cache ls                  one line a winner
  cache show ID             everything about one; ID is a fusion name or the start of a fingerprint
  cache verify              checks every record; with -remeasure also what certificates claim
  cache merge OTHER.db      takes over what OTHER knows better; nothing is lost
  cache export [FILE]       JSON lines, the same records give the same bytes
  cache import [FILE]       reads an export
  cache publish FILE        writes an immutable snapshot for lookups in a hot path
  cache rm ID               forgets one

cache ls lists the winners that satisfy all of its filters:

  cache ls -on 'cpu:*' -older 30d     winners on CPUs that are more than 30 days old
  cache ls -snapshot FILE@REV         those of a snapshot (show reads one, too), of that revision only
  cache ls -regret 2%                 those for which a better plan may be known by more than 2%

A plan is printed with the names of its dimensions: m=64 n=256 k=32 threads=1. It is stored, and in
JSON, without: 64,256,32 threads=1; "dims" has the names. -plan of run and show reads both. A snapshot
does not have the names of fusions: ls prints their fingerprints, and show takes them.`,
	run: runCache,
}

// A cacheCall is the invocation of one subcommand of cache.
type cacheCall struct {
	*call
	// The database of -db, and its file.
	db   *cache.DB
	path string
	// The snapshot that is read instead (-snapshot).
	snapshot string
	// Replace a file of another kind, or a larger snapshot (-f).
	replace bool
	// What ls lists.
	filter *filter.Filter
	// The arguments behind the subcommand.
	args []string
}

// A cacheVerb is a subcommand with the smallest and the largest number of its
// arguments.
type cacheVerb struct {
	minArgs, maxArgs int
	// A database that is not there is an error, not an empty one.
	needsFile bool
	// Knows -snapshot.
	ofSnapshot bool
	run        func(*cacheCall) error
}

// cacheVerbs are the subcommands by name.
func cacheVerbs() map[string]cacheVerb {
	return map[string]cacheVerb{
		"ls":      {0, 0, false, true, (*cacheCall).ls},
		"show":    {1, 1, false, true, (*cacheCall).show},
		"verify":  {0, 0, true, false, (*cacheCall).verify},
		"merge":   {1, 1, false, false, (*cacheCall).merge},
		"export":  {0, 1, true, false, (*cacheCall).export},
		"import":  {0, 1, false, false, (*cacheCall).load},
		"publish": {1, 1, true, false, (*cacheCall).publish},
		"rm":      {1, 1, true, false, (*cacheCall).rm},
	}
}

// runCache finds the subcommand and runs it.
func runCache(c *call) error {
	c.jsonFlag()
	db, snapshot := c.dbFlag(), c.snapshotFlag()
	replace := c.replaceFlag()
	var only filter.Filter
	only.Define(c.FlagSet)
	remeasure := c.Bool("remeasure", false, "cache verify: measure the plans of every certificate of -device again, and hold its claim against that")
	device := c.deviceFlag()
	args, err := c.parse(1, -1)
	if err != nil {
		return err
	}
	if err := only.Check(); err != nil {
		return usagef("%v", err)
	}
	used := filter.Used(c.FlagSet)
	verb, ok := cacheVerbs()[args[0]]
	switch n := len(args) - 1; {
	case !ok:
		return usagef("there is no cache %s; there are ls, show, verify, merge, export, import, publish, rm", args[0])
	case n < verb.minArgs:
		return usagef("cache %s needs an argument", args[0])
	case n > verb.maxArgs:
		return usagef("unexpected argument %q", args[1+verb.maxArgs])
	case used != "" && args[0] != "ls":
		return usagef("-%s is a filter of cache ls", used)
	case *remeasure && args[0] != "verify":
		return usagef("-remeasure is for cache verify")
	case *snapshot != "" && !verb.ofSnapshot:
		return usagef("-snapshot is read by cache ls and show only")
	}
	if verb.needsFile {
		if _, err := os.Stat(*db); err != nil {
			return fmt.Errorf("cannot read the database: %w", err)
		}
	}
	x := &cacheCall{
		c, cache.Open(*db), *db, *snapshot, *replace, &only, args[1:],
	}
	if err := verb.run(x); err != nil || !*remeasure {
		return err
	}
	return x.remeasure(device)
}

// cacheRowJSON is one line of cache ls -json.
type cacheRowJSON struct {
	// Fingerprint of the canonical fusion, hexadecimal.
	Fingerprint string `json:"fingerprint"`
	// Name of the fusion, and the places of the user's program that it comes from.
	Name         string   `json:"name"`
	Source       string   `json:"source,omitempty"`
	OtherSources []string `json:"otherSources,omitempty"`
	// Device and revision of the code generator: the exact context.
	Device  string `json:"device"`
	Codegen string `json:"codegen"`
	// The winner, its median in seconds, and its speed over the default:
	// median, lower and upper end.
	Plan    string            `json:"plan"`
	Dims    kernels.PlanNames `json:"dims,omitempty"`
	Seconds float64           `json:"seconds"`
	Speedup [3]float64        `json:"speedup"`
	// Upper bound on how much slower it is than the best plan tried; −1 is unknown.
	Regret float64 `json:"regret"`
	// Time of measuring.
	When time.Time `json:"when"`
	// Untimed says that Seconds and Speedup are predictions of the cost model.
	Untimed bool `json:"untimed,omitempty"`
	// Provisional says that the race is not over, or that only the default was timed.
	Provisional bool `json:"provisional,omitempty"`
}

// ls lists the winners that the filter keeps, one a line. A damaged record is reported and does not
// hide the others.
func (c *cacheCall) ls() error {
	all, err := c.recordsOf(c.path, c.snapshot)
	if err != nil {
		return err
	}
	rows := []cacheRowJSON{}
	now := time.Now()
	names := map[cache.Fingerprint]kernels.PlanNames{} // of older records
	for _, r := range all {
		if !c.filter.Keeps(&r, now) {
			continue
		}
		dims := kernels.PlanNames(r.Dims)
		if dims == nil {
			if _, known := names[r.Fusion]; !known {
				names[r.Fusion] = recordNames(c.ctx, &r)
			}
			dims = names[r.Fusion]
		}
		rows = append(rows, cacheRowJSON{
			hex.EncodeToString(r.Fusion[:]), r.Name, r.Source, r.OtherSources,
			r.Device, r.Codegen, r.Plan, dims, r.Seconds,
			r.Speedup, r.Regret, r.When, r.Untimed, r.Provisional,
		})
	}
	if c.json {
		return c.printJSON(map[string]any{"records": rows})
	}
	t := c.table()
	fmt.Fprintln(t, "fingerprint\tfusion\tplan\ttime\tvs default\tregret\tdevice\twhen\tfrom")
	for _, r := range rows {
		fmt.Fprintf(
			t, "%s\t%s\t%s\t%s\t%.2f×\t%s\t%s\t%s\t%s\n",
			r.Fingerprint[:12], r.Name, r.Dims.Stored(r.Plan),
			secondsText(r.Seconds, r.Untimed),
			r.Speedup[0], r.regret(), r.Device, r.When.Format("2006-01-02 15:04"), r.Source,
		)
	}
	return t.Flush()
}

// regret is the bound of a winner for people.
func (r cacheRowJSON) regret() string {
	if r.Provisional {
		return "provisional"
	}
	return regretText(r.Regret)
}

// secondsText formats a time, and says so if it was predicted rather than
// measured.
func secondsText(seconds float64, untimed bool) string {
	if untimed {
		return "predicted " + report.Seconds(seconds)
	}
	return report.Seconds(seconds)
}

// recordNames are the names of the dimensions of a record's plans. Records of older
// versions do not have them, and are analysed; those of a snapshot cannot be.
func recordNames(ctx context.Context, r *cache.Record) kernels.PlanNames {
	if r.Dims != nil {
		return r.Dims
	}
	return kernels.PlanNamesOfText(ctx, r.Canonical)
}

// begins reports whether an ID is the beginning of a fingerprint, of at least four
// digits.
func begins(fusion cache.Fingerprint, id string) bool {
	return len(id) >= 4 &&
		strings.HasPrefix(hex.EncodeToString(fusion[:]), strings.ToLower(id))
}

// find returns the records whose fingerprint begins with ID or whose fusion has
// that name.
func (c *cacheCall) find(id string) ([]cache.Record, error) {
	sound, err := c.recordsOf(c.path, c.snapshot)
	if err != nil {
		return nil, err
	}
	var all []cache.Record
	for _, r := range sound {
		if r.Name == id || begins(r.Fusion, id) {
			all = append(all, r)
		}
	}
	if all == nil {
		return nil, fmt.Errorf(
			"%s knows no fusion %q, by its name or the first digits (four or more) of its fingerprint; `tilewright cache ls` lists them", cmp.Or(c.snapshot, c.path), id,
		)
	}
	return all, nil
}

// show prints everything about the records that an argument names.
func (c *cacheCall) show() error {
	all, err := c.find(c.args[0])
	if err != nil {
		return err
	}
	if c.json {
		named := make([]namedRecordJSON, len(all))
		for k, r := range all {
			named[k] = namedRecordJSON{r, recordNames(c.ctx, &r)}
		}
		return c.printJSON(map[string]any{"records": named})
	}
	for _, r := range all {
		c.showRecord(r)
		c.defaultFails(r)
	}
	return nil
}

// namedRecordJSON is a record of cache show -json, with the names of the dimensions of
// its plans.
type namedRecordJSON struct {
	cache.Record
	Dims kernels.PlanNames `json:"dims,omitempty"`
}

// showRecord prints one record: the winner, the evidence for it and every
// trial.
func (c *cacheCall) showRecord(r cache.Record) {
	names := recordNames(c.ctx, &r)
	fmt.Fprintf(
		c.out, "%s  %x\non %s (%s, code generation %s), %s by %s\n",
		r.Name, r.Fusion, r.Device, r.Backend,
		r.Codegen, r.When.Format("2006-01-02 15:04 MST"), r.By,
	)
	if r.Source != "" {
		fmt.Fprintf(c.out, "from %s\n", r.Source)
	}
	for _, other := range r.OtherSources {
		fmt.Fprintf(c.out, "and  %s\n", other)
	}
	fmt.Fprintln(c.out)
	fmt.Fprintf(
		c.out, "winner   %s  %s\ndefault  %s  %s\n",
		names.Stored(r.Plan), secondsText(r.Seconds, r.Untimed),
		names.Stored(r.Default), secondsText(r.DefaultSeconds, r.Untimed),
	)
	if r.Untimed {
		fmt.Fprintf(c.out, "by the cost model: the device cannot time, %d plans were checked\n\n", len(r.Trials))
	} else {
		fmt.Fprintf(
			c.out, "speed-up %.3f (%.3f to %s at 95 %%), regret %s of the best tried, %d tied\n",
			r.Speedup[0], r.Speedup[1],
			report.UpperEnd(r.Speedup[2]),
			regretText(r.Regret), len(r.Ties),
		)
		fmt.Fprintf(c.out, "%s\n\n", line.Wrap(line.Width, report.PairedSpeed))
	}
	if r.Like != "" {
		fmt.Fprintf(c.out, "%s\n\n", line.Wrap(line.Width, "raced with the winner of "+r.Like+", which differs in extents only"))
	}
	if r.Provisional {
		fmt.Fprintf(c.out, "%s; `tilewright tune` goes on\n\n", report.Standing(&r))
	}
	if saw := kernels.ParseSampleQuality(r.Evidence).String(); saw != "" {
		fmt.Fprintf(c.out, "meanwhile: %s\n\n", saw)
	}
	// Of a snapshot there is nothing else to print: it has what a compiler asks
	// for, and the database has the evidence.
	if r.Canonical == "" {
		fmt.Fprintln(c.out, "A snapshot has neither samples nor the text of the fusion.")
		return
	}
	if !r.Provisional {
		c.showCertificate(r.Certificate)
	}
	t := c.table()
	fmt.Fprintln(t, "plan\tpredicted\tmedian\tsamples\twinner ÷ it\t")
	for _, x := range r.Trials {
		if x.Failure != "" {
			fmt.Fprintf(
				t, "%s\t%s\t-\t0\t-\t%s: %s\n",
				names.Stored(x.Plan), report.Seconds(x.Predicted),
				x.Failure, firstLine(x.Detail),
			)
			continue
		}
		fmt.Fprintf(
			t, "%s\t%s\t%s\t%d\t%s\t%s\n",
			names.Stored(x.Plan), report.Seconds(x.Predicted),
			report.Seconds(x.Median()),
			len(x.Samples), comparisonText(&r, x.Plan), trialNote(x),
		)
	}
	t.Flush()
	fmt.Fprintf(c.out, "\n%s\n", r.Canonical)
}

// comparisonText is the paired ratio of the winner's time to a plan's, with its ends.
func comparisonText(r *cache.Record, plan string) string {
	if r.Certificate != nil {
		for _, x := range r.Certificate.Comparisons {
			if x.Plan == plan && x.Blocks > 0 {
				return fmt.Sprintf("%.3f, at least %s, at most %s", x.Ratio, report.UpperEnd(x.AtLeast), report.UpperEnd(x.AtMost))
			}
		}
	}
	return "-"
}

// showCertificate prints what the regret of a record rests on.
func (c *cacheCall) showCertificate(x *cache.Certificate) {
	if x == nil {
		return
	}
	fmt.Fprintf(c.out, "certificate: %.0f %% for %d comparisons together; the race ended by %s\n",
		100*x.Confidence, len(x.Comparisons), x.Ended)
	for _, v := range x.Visits {
		fmt.Fprintf(c.out, "  %s, %d left out because something else ran", report.Counted(v.Blocks, "block"), v.LeftOut)
		if v.Quiet[0] > 0 {
			fmt.Fprintf(c.out, "; %.0f %% of the device was there before, %.0f %% after", 100*v.Quiet[0], 100*v.Quiet[1])
		}
		fmt.Fprintln(c.out)
	}
	if x.Untried > 0 {
		fmt.Fprintf(c.out, "  no claim: the search's model expects %.1f %% from %s\n", 100*x.Gain, x.Next())
	}
	fmt.Fprintln(c.out)
}

// trialNote says how a trial that was timed ended, and at what clock.
func trialNote(x cache.Trial) string {
	var all []string
	if x.Dropped {
		all = append(all, "dropped")
	}
	if clock := kernels.ClockStatsOf(x.Clocks); clock.Known > 0 {
		all = append(all, "at "+clock.String())
	}
	return strings.Join(all, ", ")
}

// verify checks the structure of the database and every record, and reports all
// errors rather than the first.
func (c *cacheCall) verify() error {
	n, err := c.db.Verify()
	if err = errors.Join(err, c.illegal()); err != nil {
		return fmt.Errorf("%d records; what is wrong:\n%w", n, err)
	}
	if c.json {
		return c.printJSON(map[string]any{"records": n, "ok": true})
	}
	fmt.Fprintf(c.out, "%d records, all sound\n", n)
	return nil
}

// retestJSON is one line of cache verify -remeasure.
type retestJSON struct {
	Fusion string `json:"fusion"`
	Plan   string `json:"plan"`
	// Claimed regret, and the median one that was measured.
	Claimed  float64 `json:"claimed"`
	Measured float64 `json:"measured"`
	// Refuted are plans that the winner is slower than by more than is claimed.
	Refuted []string `json:"refuted,omitempty"`
	// Visit is the state of the device meanwhile.
	Visit cache.Visit `json:"visit"`
	// Error is why the claim could not be measured.
	Error string `json:"error,omitempty"`
}

// remeasure holds the claims of all certificates of a device against new measurements. A
// claim that is refuted, and one that cannot be measured, is an error.
func (c *cacheCall) remeasure(device deviceFlags) error {
	b, err := backend(device)
	if err != nil {
		return err
	}
	if err := tuner.UseRates(c.ctx, c.db, b); err != nil {
		return err
	}
	all, err := c.soundRecords(c.db)
	if err != nil {
		return err
	}
	id := kernels.IdentityOf(b)
	t := &tuner.Tuner{Backend: b, Cache: c.db}
	bad := false
	for _, r := range all {
		if r.Device != id.Device || r.Backend != id.Backend || r.Codegen != id.Revision {
			continue
		}
		j := retest(c.ctx, t, &r)
		bad = bad || j.Error != "" || len(j.Refuted) > 0
		if c.json {
			err = c.printJSON(j)
		} else {
			_, err = fmt.Fprintln(c.out, j)
		}
		if err = errors.Join(err, c.ctx.Err()); err != nil {
			return err
		}
	}
	if bad {
		return errReported
	}
	return nil
}

// retest measures one claim; a record without one has no line of its own to defend.
func retest(ctx context.Context, t *tuner.Tuner, r *cache.Record) retestJSON {
	j := retestJSON{Fusion: r.Name, Plan: r.Plan, Claimed: r.Regret}
	got, err := t.Retest(ctx, r)
	var none *tuner.NoClaimError
	switch {
	case errors.As(err, &none):
		j.Claimed = -1
	case err != nil:
		j.Error = err.Error()
	}
	j.Measured, j.Refuted, j.Visit = got.Regret, got.Refuted, got.Visit
	return j
}

// String is the line for people.
func (j retestJSON) String() string {
	switch {
	case j.Error != "":
		return j.Fusion + ": " + j.Error
	case j.Claimed < 0:
		return j.Fusion + ": no claim"
	case len(j.Refuted) > 0:
		return fmt.Sprintf("%s: refuted: regret ≤ %.1f %% is claimed, and it is slower than %s by more", j.Fusion, 100*j.Claimed, strings.Join(j.Refuted, " and "))
	}
	return fmt.Sprintf("%s: holds: regret ≤ %.1f %% is claimed, %.1f %% measured", j.Fusion, 100*j.Claimed, 100*j.Measured)
}

// illegal are the errors of records that nobody has checked here and whose plans are
// not legal for their fusions.
func (c *cacheCall) illegal() error {
	var errs []error
	rule := legality()
	for r, err := range c.db.All() {
		if err != nil || r.Checked {
			continue // Verify has reported it
		}
		if err := rule.Check(c.ctx, &r); err != nil {
			errs = append(errs, fmt.Errorf("the record of fusion %x on %.60q: %w", r.Fusion[:4], r.Device, err))
		}
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
	}
	return errors.Join(errs...)
}

// merge adds the records and the unfinished trials of another database. Of two
// records of one key the one with better evidence is kept, with the samples of
// both.
func (c *cacheCall) merge() error {
	from, err := os.Stat(c.args[0])
	if err != nil {
		return err
	}
	if into, err := os.Stat(c.db.Path()); err == nil && os.SameFile(from, into) {
		return fmt.Errorf("%s cannot be merged into itself", c.args[0])
	}
	kept, total, err := c.db.Merge(cache.Open(c.args[0]))
	return c.reportMerged(kept, total, err)
}

// reportMerged prints how many records were read and how many were kept.
func (c *cacheCall) reportMerged(kept, total int, err error) error {
	if err := c.warnOfLeftOut(err); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"records": total, "kept": kept})
	}
	fmt.Fprintf(c.out, "%d records read, %d of them are now the ones kept\n", total, kept)
	return nil
}

// export writes the sound records as JSON lines, to a file or to the output. An
// export without the damaged ones is written, and is not a success.
func (c *cacheCall) export() error {
	if len(c.args) == 0 {
		_, err := c.db.Export(c.out)
		return err
	}
	n := 0
	var incomplete *cache.LeftOutError
	out := c.output("", c.args[0], output.Export, c.replace)
	err := out.Write(func(w *bufio.Writer) (err error) {
		n, err = c.db.Export(w)
		if errors.As(err, &incomplete) {
			return nil
		}
		return err
	})
	if err == nil {
		fmt.Fprintf(c.err, "%d records written to %s\n", n, c.args[0])
	}
	if err == nil && incomplete != nil {
		return incomplete
	}
	return err
}

// load reads the records of an export by the rule of merge. A line that is not
// a record refuses the whole import.
func (c *cacheCall) load() error {
	in := c.in
	if len(c.args) > 0 {
		f, err := openInput(c.args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	kept, total, err := c.db.Import(in, legality().Imported(c.ctx))
	return c.reportMerged(kept, total, err)
}

// publish writes a snapshot, never over the database itself.
func (c *cacheCall) publish() error {
	out := c.output("", c.args[0], output.Kind{}, true)
	if out.Stdout != nil {
		return usagef("a snapshot is a file, which lookups map; - is none")
	}
	if err := out.CheckOthers(); err != nil {
		return err
	}
	write := c.db.Publish
	if c.replace {
		write = c.db.PublishOver
	}
	n, err := write(c.args[0])
	if errors.Is(err, cache.ErrShrinks) || !c.replace && errors.Is(err, cache.ErrForeign) {
		return fmt.Errorf("%w; -f replaces it", err)
	}
	if err := c.warnOfLeftOut(err); err != nil {
		return err
	}
	s, err := cache.OpenSnapshot(c.args[0])
	if err != nil {
		return err
	}
	defer s.Close()
	if c.json {
		return c.printJSON(map[string]any{
			"records":  n,
			"snapshot": c.args[0],
			"revision": s.Revision(),
		})
	}
	fmt.Fprintf(c.out, "%d records in %s, revision %s\n", n, c.args[0], s.Revision())
	return nil
}

// rm removes a record with its unfinished trials, by fingerprint or name. Where
// something that the fingerprint names is damaged, that is removed and what is
// sound stays.
func (c *cacheCall) rm() error {
	if removed, err := c.rmDamaged(c.args[0]); removed || err != nil {
		return err
	}
	all, err := c.find(c.args[0])
	if err != nil {
		return err
	}
	if len(all) > 1 {
		return fmt.Errorf(
			"%q names %d records; give more of the fingerprint", c.args[0], len(all),
		)
	}
	if _, err := c.db.Delete(all[0].Key); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{
			"removed": hex.EncodeToString(all[0].Fusion[:]),
		})
	}
	fmt.Fprintf(c.out, "removed %s\n", all[0].Name)
	return nil
}

// rmDamaged removes the damaged records and races whose fingerprint begins with an
// ID, and reports whether there were any.
func (c *cacheCall) rmDamaged(id string) (removed bool, err error) {
	all, err := c.db.Damaged()
	if err != nil {
		return false, err
	}
	for _, d := range all {
		if !begins(d.Key.Fusion, id) {
			continue
		}
		if err := c.db.DeleteDamaged(d); err != nil {
			return removed, err
		}
		removed = true
		if !c.json {
			fmt.Fprintf(c.out, "removed: %v\n", d)
		}
	}
	if removed && c.json {
		return true, c.printJSON(map[string]any{"removed": id})
	}
	return removed, nil
}
