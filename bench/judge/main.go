package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/tilewright/tilewright/cost/problem"
)

// options are the flags.
type options struct {
	// Folder of the timings.
	data string
	// Half of the shapes: "dev", "held" or "all".
	half string
	// Print predicted over measured times by plan.
	residuals bool
	// Fit the prices to samples; none where there are 0.
	learn learner
}

func main() {
	var o options
	standard := os.Getenv("TILEWRIGHT_JUDGE_DATA")
	flag.StringVar(&o.data, "data", standard, "`folder` of the timings")
	flag.StringVar(&o.half, "half", "all", "judge `dev`, held or all shapes")
	flag.BoolVar(&o.residuals, "residuals", false, "print predicted over measured by plan and type")
	flag.IntVar(&o.learn.samples, "samples", 0, "fit the prices to this many timings, and score them on other shapes; 0: as they are")
	flag.IntVar(&o.learn.each, "each", 8, "timings of a shape that are drawn for -samples")
	flag.IntVar(&o.learn.draws, "draws", 5, "draws of -samples")
	flag.Parse()
	if err := judge(o); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

// judge scores all sets that are there.
func judge(o options) error {
	folder := filepath.Join(o.data, "triton_a100")
	_, err := os.Stat(folder)
	if o.data == "" || errors.Is(err, os.ErrNotExist) {
		fmt.Println("judge: there are no timings; -data or TILEWRIGHT_JUDGE_DATA names their folder. Nothing is judged.")
		return nil
	}
	fmt.Printf("%-14s %-13s %5s", "set", "ranker", "n")
	for _, k := range firsts {
		fmt.Printf("  %5s", fmt.Sprintf("@%d", k))
	}
	fmt.Printf("  %4s  %5s  %5s  %s\n", "≤5%", "ρ", "τ", "time, wrong")
	for _, name := range []string{"a100_mm", "a100_mixed"} {
		shapes, err := triton(folder, name)
		if err != nil {
			return err
		}
		if o.learn.samples > 0 {
			err = judgeLearning(name, shapes, o)
		} else {
			judgeTable(name, shapes, o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wanted reports whether a shape is of the half that is judged.
func (o options) wanted(s *shape) bool {
	return o.half == "all" || s.held() == (o.half == "held")
}

// kinds are the sets that a shape belongs to, besides its table.
func (s *shape) kinds() []string {
	kind := s.a.dtype
	if s.tf32 {
		kind = "tf32"
	}
	all := []string{kind}
	if s.m*s.n <= 512*512 {
		all = append(all, "few tiles")
	}
	return all
}

// A rankings has the scores of rankers by set.
type rankings struct {
	// In the order in which shapes brought them.
	sets []string
	// By set, then by ranker.
	scores map[string]map[string]*score
}

// of is the score of a ranker on a set.
func (x *rankings) of(set, ranker string) *score {
	if x.scores[set] == nil {
		x.scores[set] = map[string]*score{}
		x.sets = append(x.sets, set)
	}
	if x.scores[set][ranker] == nil {
		x.scores[set][ranker] = &score{}
	}
	return x.scores[set][ranker]
}

// judgeTable scores a table and prints it.
func judgeTable(name string, shapes []*shape, o options) {
	x := &rankings{scores: map[string]map[string]*score{}}
	solver := problem.NewSolver()
	var all residuals
	for _, s := range shapes {
		if o.wanted(s) {
			sets := append([]string{name}, s.kinds()...)
			judgeShape(x, s, sets, solver, &all)
		}
	}
	for k, set := range x.sets {
		x.of(set, "ours").print(set, "ours")
		if k > 0 {
			continue
		}
		for _, r := range rivals {
			x.of(set, r.name).print(set, r.name)
		}
		x.of(set, "random").print(set, "random")
	}
	if o.residuals {
		all.print()
	}
}

// judgeShape adds a shape to the scores of all rankers.
func judgeShape(x *rankings, s *shape, sets []string, solver *problem.Solver, all *residuals) {
	o, err := observe(s, solver)
	if err != nil {
		fmt.Println(err)
		return
	}
	if len(o.measured) < 2 {
		return
	}
	for _, set := range sets {
		score := x.of(set, "ours")
		score.add(o.ours, o.measured)
		score.wrong += o.wrong
		score.plans += len(s.times)
		for _, ln := range o.logs() {
			score.ratios = append(score.ratios, math.Exp(ln))
		}
	}
	all.add(s, o)
	for _, r := range rivals {
		predicted := make([]float64, len(o.tiles))
		for k, t := range o.tiles {
			predicted[k] = r.score(s, t)
		}
		x.of(sets[0], r.name).add(predicted, o.measured)
	}
	x.of(sets[0], "random").addRandom(o.measured)
}

// An observation has the plans of a shape that run, with their price, +Inf where there
// is none, and their time.
type observation struct {
	tiles    []tile
	ours     []float64
	measured []float64
	// Wrong counts the plans that run and have no price, or the other way round.
	wrong int
}

// problem is the shape with its plans, on the device of the tables.
func (s *shape) problem() problem.Problem {
	p := problem.Problem{
		ID:     s.id,
		HLO:    s.hlo(),
		Device: json.RawMessage(`"` + a100.name + `"`),
	}
	for _, t := range s.times {
		p.Plans = append(p.Plans, s.plan(t.tile))
	}
	return p
}

// judgeLearning scores prices that were fitted to samples of a table.
func judgeLearning(name string, shapes []*shape, o options) error {
	solver := problem.NewSolver()
	var all []featured
	for _, s := range shapes {
		if !o.wanted(s) {
			continue
		}
		f, err := solver.Features(context.Background(), s.problem())
		if err != nil {
			return err
		}
		x := featured{id: s.id}
		for k, t := range s.times {
			if !math.IsInf(t.seconds, 1) && len(f[k].Terms) > 0 {
				x.features = append(x.features, f[k])
				x.measured = append(x.measured, t.seconds)
			}
		}
		if len(x.measured) > 1 {
			all = append(all, x)
		}
	}
	return o.learn.judge(name, all)
}

// observe prices the plans of a shape.
func observe(s *shape, solver *problem.Solver) (o observation, err error) {
	answer := solver.Answer(context.Background(), s.problem())
	if answer.Error != "" {
		return o, fmt.Errorf("%s: %s", s.id, answer.Error)
	}
	for k, t := range s.times {
		runs := !math.IsInf(t.seconds, 1)
		if answer.Valid[k] != runs {
			o.wrong++
		}
		if !runs {
			continue
		}
		price := math.Inf(1)
		if answer.Valid[k] {
			price = *answer.Seconds[k]
		}
		o.tiles = append(o.tiles, t.tile)
		o.measured = append(o.measured, t.seconds)
		o.ours = append(o.ours, price)
	}
	return o, nil
}

// logs are logarithms of price over time, of the plans that have a price.
func (o *observation) logs() (all []float64) {
	for k, price := range o.ours {
		if !math.IsInf(price, 1) {
			all = append(all, math.Log(price/o.measured[k]))
		}
	}
	return all
}

// residuals are logarithms of predicted over measured times, less the mean of their
// shape, by type and plan.
type residuals map[string][]float64

// add adds the plans of a shape.
func (r *residuals) add(s *shape, o observation) {
	if *r == nil {
		*r = residuals{}
	}
	mean := stat.Mean(o.logs(), nil)
	for k, t := range o.tiles {
		if math.IsInf(o.ours[k], 1) {
			continue
		}
		kind := s.kinds()[0] + " " + s.a.layout() + s.b.layout()
		key := kind + " " + s.plan(t)
		if t.m <= s.m && t.n <= s.n && t.k <= s.k {
			ln := math.Log(o.ours[k] / o.measured[k])
			(*r)[key] = append((*r)[key], ln-mean)
		}
	}
}

// print prints the mean of each plan with enough shapes.
func (r *residuals) print() {
	for _, key := range slices.Sorted(maps.Keys(*r)) {
		logs := (*r)[key]
		if len(logs) < 20 {
			continue
		}
		mean := stat.Mean(logs, nil)
		fmt.Printf("%-60s %5d %6.3f\n", key, len(logs), math.Exp(mean))
	}
}
