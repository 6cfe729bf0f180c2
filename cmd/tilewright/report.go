package main

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/packtiming"
	"github.com/tilewright/tilewright/tuner/report"
)

// reportCommand makes a page of the winners.
var reportCommand = command{
	name: "report", short: "self-contained HTML page from the cache",
	long: "Writes one HTML page about every winner in -db on one device: what was chosen and why, against what,\nhow sure that is, and what failed. The page needs nothing from outside. The exit status is 1 when a default\nplan fails its check.",
	run:  runReport,
}

// runReport writes the page of all winners on one device.
func runReport(c *call) error {
	c.jsonFlag()
	db, snapshot := c.dbFlag(), c.snapshotFlag()
	device := c.pricedDeviceFlag()
	out := c.String("o", "report.html", "write to `file`")
	replace := c.replaceFlag()
	if _, err := c.parse(0, 0); err != nil {
		return err
	}
	page := c.output("o", *out, output.Page, *replace)
	if err := page.Check(); err != nil {
		return err
	}
	b, err := backend(device)
	if err != nil {
		return err
	}
	spareGarbage()
	p := report.Page{Device: b.Identity()}
	all, err := c.recordsOf(*db, *snapshot)
	if err != nil {
		return err
	}
	p.Damaged = c.damaged
	for _, r := range all {
		if r.Device == p.Device.Name &&
			r.Backend == p.Device.Backend {
			p.Records = append(p.Records, r)
		}
	}
	if len(p.Records) == 0 {
		return fmt.Errorf("%s has no winners for %s; `tilewright tune` makes some", cmp.Or(*snapshot, *db), p.Device.Name)
	}
	slices.SortStableFunc(p.Records, func(a, b cache.Record) int {
		return strings.Compare(a.Name, b.Name)
	})
	if *snapshot == "" {
		p.Packings = c.measuredPackings(cache.Open(*db), p)
	}
	if err := page.Write(func(w *bufio.Writer) error {
		return report.HTML(w, p)
	}); err != nil {
		return err
	}
	return c.reported(*out, p.Records)
}

// measuredPackings are what was measured of packing operands of the winners of a page, in
// the order of the database. Where that cannot be read the page does without.
func (c *call) measuredPackings(db *cache.DB, p report.Page) (all []report.Packing) {
	kept, err := db.PackingsOn(p.Device.Backend, p.Device.Name)
	if err != nil {
		c.note("tilewright report: warning: %v", err)
		return nil
	}
	// A winner of another revision of the code generator has not been compared with the
	// packed operand.
	type key struct{ fusion, code string }
	records := map[key]*cache.Record{}
	for k := range p.Records {
		r := &p.Records[k]
		records[key{hex.EncodeToString(r.Fusion[:]), r.Codegen}] = r
	}
	for _, x := range kept {
		of := records[key{x.Fusion, x.Code}]
		if of == nil {
			continue
		}
		// How often a model executes it is not in the database.
		row := report.Packing{Fusion: of.Name, Parameter: fmt.Sprintf("parameter %d", x.Parameter), Packing: x}
		if s, err := packtiming.SubjectOf(of.Canonical, x); err == nil {
			row.Race = s.Packed().Fingerprint()
			race := records[key{hex.EncodeToString(row.Race[:]), x.Code}]
			if race != nil { // the canonical text has no names
				_, name, _ := strings.Cut(race.Name, ".packed.")
				row.Parameter = cmp.Or(name, row.Parameter)
			}
		}
		all = append(all, row)
	}
	return all
}

// reported says what a page was made of; default plans that fail their check are an
// error.
func (c *call) reported(page string, all []cache.Record) error {
	bad := 0
	for _, r := range all {
		if c.defaultFails(r) {
			bad++
		}
	}
	if c.json {
		if err := c.printJSON(map[string]any{
			"report":        page,
			"fusions":       len(all),
			"defaultErrors": bad,
		}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.out, "%s: %d fusions\n", page, len(all))
	}
	if bad > 0 {
		return errReported
	}
	return nil
}
