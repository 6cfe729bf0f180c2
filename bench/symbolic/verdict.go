package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand"
	"slices"
)

// A verdict is what one chain came to, in operations.
type verdict struct {
	// The chain.
	problem *problem
	// Operations of the chain as substitution writes it.
	typed int
	// Operations of our answer, as it is printed.
	ours int
	// Sum over the results of the least of all engines.
	best int
	// Operations of the engines that were right, by name.
	by map[string]int
	// Engines that were wrong, and where.
	wrong []string
}

// judge evaluates and counts the answers to p.
func judge(p *problem, engines []*engine, most int) verdict {
	points := p.what.points(
		most,
		rand.New(rand.NewSource(1)),
	)
	v := verdict{problem: p, by: map[string]int{}}
	best := make(
		[]int,
		len(p.what.results),
	)
	for i, x := range p.what.results {
		best[i] = x.written()
		v.typed += best[i]
	}
	for _, e := range engines {
		answer, ok := e.answers[p.ID]
		if !ok {
			continue
		}
		if diff := p.what.compare(answer, points); diff != "" {
			v.wrong = append(v.wrong, e.name+": "+diff)
			continue
		}
		for i, x := range answer {
			n := x.least()
			if e.name == ours {
				n = x.written()
			}
			v.by[e.name] += n
			best[i] = min(best[i], n)
		}
	}
	for _, n := range best {
		v.best += n
	}
	v.ours = v.by[ours]
	return v
}

// compare evaluates an answer at points; diff says where it is wrong.
func (c *composed) compare(answer []*expression, points [][]int64) (diff string) {
	if len(answer) != len(c.results) {
		return fmt.Sprintf("%d results, not %d", len(answer), len(c.results))
	}
	for _, v := range points {
		for i, x := range c.results {
			if got, want := answer[i].at(v), x.at(v); got != want {
				return fmt.Sprintf("result %d at %v is %d, not %d", i, v, got, want)
			}
		}
	}
	return ""
}

// outside is a point that the ranges, which our simplifier narrowed, leave out.
func (p *problem) outside(points [][]int64) (v []int64, found bool) {
	ranges := p.solver.Ranges()
	for _, v := range points {
		for i, in := range ranges {
			if !in.Contains(v[i]) {
				return v, true
			}
		}
	}
	return nil, false
}

// A missed chain is a line of the list of what is not at the best form.
type missedChain struct {
	chain
	// Operations of the best form, under the name that test cases have for it.
	Best int `json:"ideal_op_count"`
	// Operations of our answer.
	Ours int `json:"ours"`
	// Operations as substitution writes the chain.
	Typed int `json:"typed"`
	// Results of every engine, over x0, x1, ….
	Answers map[string][]string `json:"answers"`
}

// writeMissed writes the chains that are longer than the best form.
func writeMissed(w io.Writer, vs []verdict, texts map[string]map[string][]string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, v := range vs {
		if v.ours <= v.best {
			continue
		}
		line := missedChain{v.problem.chain, v.best, v.ours, v.typed, texts[v.problem.ID]}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// geomean is the geometric mean of ratios.
func geomean(ratios []float64) float64 {
	total := 0.0
	for _, x := range ratios {
		total += math.Log(x)
	}
	return math.Exp(total / float64(len(ratios)))
}

// A slowness is a chain that another engine is faster on.
type slowness struct {
	id    string
	ratio float64 // its time over ours
}

// compareTimes are the ratios of a column to our times, and the chains where it is
// not slower, worst first.
func compareTimes(us, them *engine, column string) (ratios []float64, slower []slowness) {
	for id, ns := range them.times[column] {
		own := us.times[ours][id]
		if len(own) == 0 {
			continue
		}
		x := median(ns) / median(own)
		ratios = append(ratios, x)
		if x <= 1 {
			slower = append(slower, slowness{id, x})
		}
	}
	slices.SortFunc(slower, func(a, b slowness) int {
		if a.ratio < b.ratio {
			return -1
		}
		return 1
	})
	return ratios, slower
}
