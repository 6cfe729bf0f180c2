package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// tuneTwice tunes the corpus twice, as the command does it, with the same seed and the same
// rates of the device, into two databases that are empty at first, and prints what differs.
// Databases that are there are gone on with.
func (o *oracle) tuneTwice(ctx context.Context) error {
	if err := os.MkdirAll(o.twice, 0o755); err != nil {
		return err
	}
	var tuners [2]*tuner.Tuner
	for k, name := range [...]string{"first.db", "second.db"} {
		tuners[k] = o.tuner(filepath.Join(o.twice, name))
	}
	if err := sameRates(ctx, tuners); err != nil {
		return err
	}
	// Pairs are in the order in which the first database has them.
	var pairs []*pair
	of := map[string]*pair{} // by canonical text: a schedule sorts its items
	for k, t := range tuners {
		w, err := o.workload()
		if err != nil {
			return err
		}
		s := tuner.Schedule{Tuner: t, Workload: w}
		if err := s.Run(ctx); err != nil {
			return err
		}
		for _, x := range w.Items {
			r := x.Result.Record
			if r.Plan == "" {
				fmt.Printf("%-30s has no winner: %v\n", x.Fusion.Name, x.Err)
				continue
			}
			if of[r.Canonical] == nil {
				of[r.Canonical] = &pair{name: strings.TrimSuffix(x.File, ".hlo")}
				pairs = append(pairs, of[r.Canonical])
			}
			of[r.Canonical].winners[k] = &r
		}
	}
	return o.compare(ctx, pairs)
}

// sameRates measures the rates of the device for the first database, and stores them in the
// second: rates are stored once, so that what differs is not due to them.
func sameRates(ctx context.Context, t [2]*tuner.Tuner) error {
	if err := tuner.UseRates(ctx, t[0].Cache, t[0].Backend); err != nil {
		return err
	}
	id := t[0].Backend.Identity()
	rates, found, err := t[0].Cache.Calibration(id.Name, id.Backend)
	if !found || err != nil {
		return fmt.Errorf("the rates of %s are not stored: %w", id.Name, err)
	}
	return t[1].Cache.PutCalibration(rates)
}

// workload is the fusions of the corpus that -only leaves.
func (o *oracle) workload() (*tuner.Workload, error) {
	files, err := corpus.Files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	w := &tuner.Workload{}
	for _, f := range files {
		if !strings.Contains(f.Name(), o.only) {
			continue
		}
		text, err := corpus.Files.ReadFile(f.Name())
		if err != nil {
			return nil, err
		}
		m, err := hlo.Parse(f.Name(), text)
		if err != nil {
			return nil, err
		}
		w.Add(f.Name(), m, m.Fusions())
	}
	return w, nil
}

// A pair is the winners of a fusion, by the name of its file.
type pair struct {
	name    string
	winners [2]*cache.Record
	// timed are ratios of each session: of the winners to the default, and of the first to
	// the second.
	timed [3][]float64
}

// other reports whether they differ, and whether a record declares them tied.
func (p *pair) other() (differ, declared bool) {
	a, b := p.winners[0], p.winners[1]
	declared = slices.Contains(a.Ties, b.Plan) ||
		slices.Contains(b.Ties, a.Plan)
	return a.Plan != b.Plan, declared
}

// slower is by how much of the default's time a winner may be longer.
const slower = 0.01

// sessions are how often the winners are timed, by kernels and arrays of their own and after
// those of all other fusions: what one state of the machine, or one place of the code, makes
// of a ratio is not taken for the truth.
const sessions = 3

// compare times the winners of both databases beside the default plan, and prints how they
// differ.
func (o *oracle) compare(ctx context.Context, pairs []*pair) error {
	half := func(p *pair) bool {
		return p.winners[0] == nil ||
			p.winners[1] == nil
	}
	pairs = slices.DeleteFunc(pairs, half)
	for range sessions {
		for _, p := range pairs {
			if err := o.retime(ctx, p); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	fmt.Printf("%-30s %-9s %8s %8s %8s  %-17s winners\n",
		"fusion", "", "1st/def", "2nd/def", "1st/2nd", "over def, from to")
	// A flip is another winner; undeclared are those that no record has as a tie.
	flips, undeclared, losers := 0, 0, 0
	for _, p := range pairs {
		word := "the same"
		if differ, declared := p.other(); differ {
			flips++
			if word = "tied"; !declared {
				word = "OTHER"
				undeclared++
			}
		}
		ratios := p.ratios()
		if max(ratios[0], ratios[1]) > 1+slower {
			losers++
		}
		p.print(word, ratios)
	}
	share := float64(undeclared) / float64(max(1, len(pairs)))
	fmt.Printf("%d fusions; %d have another winner, %d of them outside declared ties (%.1f %%); %d have a winner that takes over %.0f %% longer than the default\n",
		len(pairs), flips, undeclared,
		100*share, losers, 100*slower,
	)
	return nil
}

// print writes the line of a fusion, with the least and the largest ratio of a winner to the
// default in a session.
func (p *pair) print(word string, ratios [3]float64) {
	fmt.Printf("%-30s %-9s", p.name, word)
	for _, r := range ratios {
		fmt.Printf(" %8.3f", r)
	}
	over := slices.Concat(p.timed[0], p.timed[1])
	fmt.Printf("  %8.3f %8.3f  %s | %s\n",
		slices.Min(over), slices.Max(over),
		p.winners[0].Plan,
		p.winners[1].Plan,
	)
}

// ratios are the medians of those of the sessions.
func (p *pair) ratios() (out [3]float64) {
	for k, all := range p.timed {
		out[k] = median(slices.Clone(all))
	}
	return out
}

// retime adds the ratios of a session: of both winners to the default, and of the first to
// the second.
func (o *oracle) retime(ctx context.Context, p *pair) error {
	a, b := p.winners[0], p.winners[1]
	program, err := kernels.ProgramOfText(ctx, a.Canonical)
	if err != nil {
		return err
	}
	l, err := o.chosen(ctx, program, a.Default, a.Plan, b.Plan)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.measure(ctx, 2*o.blocks); err != nil {
		return err
	}
	// Plans that are the same are timed once.
	at := func(text string) int { return slices.Index(l.Plans, text) }
	standard, first, second := at(a.Default), at(a.Plan), at(b.Plan)
	for k, x := range [...][2]int{
		{first, standard},
		{second, standard},
		{first, second},
	} {
		even := l.ratio(x[0], x[1], 0)
		odd := l.ratio(x[0], x[1], 1)
		p.timed[k] = append(p.timed[k], (even+odd)/2)
	}
	return nil
}
