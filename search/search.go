package search

import (
	"math"
	"math/rand/v2"
)

// A Trial is a point and what its evaluation gave.
type Trial struct {
	Point int
	// Seconds are the time of the point; +Inf says that it failed.
	Seconds float64
}

// Failed reports whether the point could not be timed.
func (t Trial) Failed() bool { return math.IsInf(t.Seconds, 1) }

// A Searcher says what is evaluated next. Next and Observe are called in turns.
type Searcher interface {
	// Next are at most n points that were not observed; none when the space is
	// exhausted.
	Next(n int) []int
	// Observe tells what the evaluation of a point gave.
	Observe(Trial)
}

// A Method is a named way to search.
type Method struct {
	Name   string
	Source string // where it is described
	Priced bool   // it looks at prices
	// New begins a search of a space. The same settings and observations give the same
	// points.
	New func(*Space, Settings) Searcher
}

// Methods are ours first, and then those that it is compared with.
var Methods = []Method{
	{"guided", "docs/design.md, D17", true, func(s *Space, x Settings) Searcher { return NewGuided(s, x) }},
	{"random", "uniform, without replacement", false, classic((*walk).random)},
	{"greedy", "first-improvement descent with restarts: B. van Werkhoven, Kernel Tuner, Future Generation Computer Systems 90, 2019", false, classic((*walk).greedy)},
	{"annealing", "S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Optimization by Simulated Annealing, Science 220, 1983", false, classic((*walk).annealing)},
	{"genetic", "J. Holland, Adaptation in Natural and Artificial Systems, 1975; uniform crossover: G. Syswerda, ICGA 1989", false, classic((*walk).genetic)},
}

// Run evaluates at most n points, and returns the trials in their order. The search ends
// when evaluate says that there is no more; that evaluation counts.
func Run(
	from Searcher, n int, evaluate func(point int) (seconds float64, more bool),
) []Trial {
	if s, stops := from.(interface{ Stop() }); stops {
		defer s.Stop()
	}
	var trials []Trial
	for more := true; more && len(trials) < n; {
		next := from.Next(1)
		if len(next) == 0 {
			break
		}
		t := Trial{Point: next[0]}
		t.Seconds, more = evaluate(next[0])
		trials = append(trials, t)
		from.Observe(t)
	}
	return trials
}

// generator is the source of random numbers of a search.
func generator(seed uint64) *rand.Rand {
	const stream = 0x736561726368 // "search" in ASCII
	return rand.New(rand.NewPCG(seed, stream))
}
