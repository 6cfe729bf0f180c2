package main

import (
	"encoding/json"
	"fmt"
	"io"
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
	// Results of which another engine has a shorter form.
	longer []int
	// Engines that were wrong, and where.
	wrong []string
}

// judge evaluates and counts the answers to p.
func judge(p *problem, engines []*engine, most int) verdict {
	points := p.what.points(most, newRand(1))
	v := verdict{problem: p, by: map[string]int{}}
	best := make([]int, len(p.what.results))
	for i, x := range p.what.results {
		best[i] = x.written()
		v.typed += best[i]
	}
	// An engine without an answer, or with a wrong one, has no part in the best.
	for _, e := range engines {
		answer, ok := e.answers[p.ID]
		if !ok {
			continue
		}
		if diff := compare(answer, points); diff != "" {
			v.wrong = append(v.wrong, e.name+": "+diff)
			continue
		}
		for i, x := range answer {
			// Others are not charged for what they could not have written.
			n := x.least()
			if e.name == ours {
				n = x.written()
			}
			v.by[e.name] += n
			best[i] = min(best[i], n)
		}
	}
	for i, n := range best {
		v.best += n
		own := engines[0].answers[p.ID]
		if i < len(own) && own[i].written() > n {
			v.longer = append(v.longer, i)
		}
	}
	v.ours = v.by[ours]
	return v
}

// compare evaluates an answer at points; diff says where it is wrong.
func compare(answer []*expression, points []point) (diff string) {
	for _, p := range points {
		if len(answer) != len(p.want) {
			return fmt.Sprintf("%d results, not %d", len(answer), len(p.want))
		}
		for i, want := range p.want {
			if got := answer[i].at(p.at); got != want {
				return fmt.Sprintf("result %d at %v is %d, not %d", i, p.at, got, want)
			}
		}
	}
	return ""
}

// outside is a point that the ranges, which our simplifier narrowed, leave out.
func (p *problem) outside(points []point) (v []int64, found bool) {
	ranges := p.solver.Ranges()
	for _, x := range points {
		for i, in := range ranges {
			if !in.Contains(x.at[i]) {
				return x.at, true
			}
		}
	}
	return nil, false
}

// A missedChain is a line of the list of what is not at the best form.
type missedChain struct {
	// The chain, so that the line can be judged again as a workload.
	chain
	// Operations of the best form, under the name that test cases have for it.
	Best int `json:"ideal_op_count"`
	// Operations of our answer.
	Ours int `json:"ours"`
	// Operations as substitution writes the chain.
	Typed int `json:"typed"`
	// Results that are longer than they need be.
	Longer []int `json:"longer"`
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
		line := missedChain{v.problem.chain, v.best, v.ours, v.typed, v.longer, texts[v.problem.ID]}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
