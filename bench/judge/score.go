package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/cost"
)

// firsts are the k of regret@k.
var firsts = []int{1, 4, 8, 16}

// A score sums up a ranker's results over shapes.
type score struct {
	// Number of shapes, over which what follows is summed up.
	shapes   int
	regret   [4]float64 // Σ ln
	near     int        // shapes with a first plan within 5 %
	spearman float64
	kendall  float64
	ratios   []float64 // predicted over measured
	// Plans that run or not, and those of them that are said to do otherwise.
	plans int
	wrong int
}

// add adds a shape: predicted and measured times of its plans that run.
func (x *score) add(predicted, measured []float64) {
	x.shapes++
	for k, n := range firsts {
		x.regret[k] += math.Log(cost.Regret(predicted, measured, n))
	}
	if cost.Regret(predicted, measured, 1) <= 1.05 {
		x.near++
	}
	x.spearman += cost.Spearman(predicted, measured)
	x.kendall += cost.Kendall(predicted, measured)
}

// addRandom adds a shape's expectation over all orders of its plans.
func (x *score) addRandom(measured []float64) {
	x.shapes++
	sorted := slices.Sorted(slices.Values(measured))
	for k, n := range firsts {
		x.regret[k] += expectedBest(sorted, n) - math.Log(sorted[0])
	}
	within := 0
	for _, t := range sorted {
		if t <= 1.05*sorted[0] {
			within++
		}
	}
	if 2*within > len(sorted) {
		x.near++
	}
}

// expectedBest is the expected logarithm of the least of n numbers that are drawn from
// sorted ones.
func expectedBest(sorted []float64, n int) float64 {
	if n >= len(sorted) {
		return math.Log(sorted[0])
	}
	total, left := 0.0, 1.0
	for k, t := range sorted {
		// None of the k smaller ones is drawn, and this one is.
		p := float64(n) / float64(len(sorted)-k)
		total += left * min(1, p) * math.Log(t)
		left *= 1 - min(1, p)
	}
	return total
}

// print prints the score as a row.
func (x *score) print(set, ranker string) {
	if x.shapes == 0 {
		return
	}
	n := float64(x.shapes)
	fmt.Printf("%-14s %-13s %5d", set, ranker, x.shapes)
	for _, r := range x.regret {
		fmt.Printf("  %.3f", math.Exp(r/n))
	}
	near := 100 * float64(x.near) / n
	fmt.Printf(
		"  %3.0f%%  %5.3f  %5.3f",
		near, x.spearman/n, x.kendall/n,
	)
	if len(x.ratios) > 0 {
		slices.Sort(x.ratios)
		fmt.Printf("  %.2f", x.ratio(0.5))
		fmt.Printf(" [%.2f %.2f]", x.ratio(0.1), x.ratio(0.9))
		fmt.Printf("  %d of %d", x.wrong, x.plans)
	}
	fmt.Println()
}

// ratio is a quantile of predicted over measured.
func (x *score) ratio(share float64) float64 {
	last := float64(len(x.ratios) - 1)
	return x.ratios[int(share*last)]
}
