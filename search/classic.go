package search

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
)

// A walk is a search by one of the classic methods, which are written down as
// procedures: they call time, which hands the point out and waits for its observation.
// A point that was observed is not handed out again.
type walk struct {
	space *Space
	rng   *rand.Rand
	known map[int]float64
	give  func(int) bool // false: the search has ended
}

// maxIdle bounds how many known points a procedure may ask for in a row: a small space
// is exhausted without a procedure's notice.
const maxIdle = 10000

// ended unwinds a procedure whose search has ended.
type ended struct{}

// A procession is the Searcher of a procedure.
type procession struct {
	*walk
	next func() (int, bool)
	stop func()
}

// classic is the constructor of a procedure's Searcher. It does not look at prices.
func classic(procedure func(*walk)) func(*Space, Settings) Searcher {
	return func(s *Space, x Settings) Searcher {
		w := &walk{space: s, rng: generator(x.Seed), known: map[int]float64{}}
		next, stop := iter.Pull(func(yield func(int) bool) {
			defer func() {
				if r := recover(); r != nil && r != (ended{}) {
					panic(r)
				}
			}()
			w.give = yield
			procedure(w)
			w.random()
		})
		return &procession{w, next, stop}
	}
}

// Next is the next point of the procedure: it decides by one observation at a time.
func (p *procession) Next(n int) []int {
	if len(p.known) == len(p.space.Points) || n < 1 {
		return nil
	}
	k, more := p.next()
	if !more {
		return nil
	}
	return []int{k}
}

// Stop ends the procedure. The Searcher is not used again.
func (p *procession) Stop() { p.stop() }

// Observe keeps the time of a point.
func (p *procession) Observe(t Trial) { p.known[t.Point] = t.Seconds }

// time is the time of a point, which is evaluated if it is not known.
func (w *walk) time(k int) float64 {
	if _, known := w.known[k]; !known && !w.give(k) {
		panic(ended{})
	}
	return w.known[k]
}

// anywhere is a random point.
func (w *walk) anywhere() int { return w.rng.IntN(len(w.space.Points)) }

// random evaluates all points in random order.
func (w *walk) random() {
	for _, k := range w.rng.Perm(len(w.space.Points)) {
		w.time(k)
	}
}

// greedy descends from random points: the neighbours in random order, and on to the
// first that is better.
func (w *walk) greedy() {
	for idle := 0; idle < maxIdle; {
		before := len(w.known)
		at := w.anywhere()
		for next, better := w.improve(at); better; {
			at = next
			next, better = w.improve(at)
		}
		idle++
		if len(w.known) > before {
			idle = 0
		}
	}
}

// improve is the first better neighbour of a point, in random order.
func (w *walk) improve(at int) (int, bool) {
	now := w.time(at)
	around := w.space.neighbours(w.space.Points[at])
	w.rng.Shuffle(len(around), func(i, j int) {
		around[i], around[j] = around[j], around[i]
	})
	for _, k := range around {
		if w.time(k) < now {
			return k, true
		}
	}
	return at, false
}

// The temperatures of annealing are relative changes of the time.
const (
	firstTemperature = 0.5
	lastTemperature  = 0.002
	coolingRate      = 0.97
)

// annealing walks to random neighbours, to a worse one with the probability
// exp(−(relative loss)/temperature), and begins anew when it is cold.
func (w *walk) annealing() {
	for idle := 0; idle < maxIdle; {
		before := len(w.known)
		at := w.anywhere()
		for t := firstTemperature; t > lastTemperature; t *= coolingRate {
			at = w.anneal(at, t)
		}
		idle++
		if len(w.known) > before {
			idle = 0
		}
	}
}

// anneal is one step of annealing.
func (w *walk) anneal(at int, temperature float64) int {
	around := w.space.neighbours(w.space.Points[at])
	if len(around) == 0 {
		return w.anywhere()
	}
	next := around[w.rng.IntN(len(around))]
	loss := w.time(next)/w.time(at) - 1
	if loss < 0 || w.rng.Float64() < math.Exp(-loss/temperature) {
		return next
	}
	return at
}

// Sizes of the genetic algorithm.
const (
	populationSize = 20
	mutationRate   = 0.1 // of a parameter of a child
	eliteSize      = 2   // of a population, which live on
	illegalTries   = 20  // to make a legal child
)

// genetic keeps a population: parents are drawn by rank, a child has each value from
// one of two, and some values at random.
func (w *walk) genetic() {
	var population []int
	for range populationSize {
		population = append(population, w.anywhere())
	}
	for idle := 0; idle < maxIdle; {
		before := len(w.known)
		slices.SortStableFunc(population, w.compare)
		next := slices.Clone(population[:eliteSize])
		for len(next) < populationSize {
			next = append(next, w.child(population))
		}
		population = next
		idle++
		if len(w.known) > before {
			idle = 0
		}
	}
}

// compare orders points by their times.
func (w *walk) compare(a, b int) int {
	ta, tb := w.time(a), w.time(b)
	switch {
	case ta < tb:
		return -1
	case ta > tb:
		return 1
	}
	return 0
}

// child is a legal child of two parents of a sorted population, or a random point.
func (w *walk) child(population []int) int {
	for range illegalTries {
		a := w.space.Points[w.parent(population)]
		b := w.space.Points[w.parent(population)]
		x := slices.Clone(a)
		for i := range x {
			if w.rng.IntN(2) == 0 {
				x[i] = b[i]
			}
			if w.rng.Float64() < mutationRate {
				x[i] = w.rng.IntN(
					len(w.space.Parameters[i].Values),
				)
			}
		}
		if k, legal := w.space.Find(x); legal {
			return k
		}
	}
	return w.anywhere()
}

// parent draws from a sorted population, the best twice as often as the middle.
func (w *walk) parent(population []int) int {
	n := len(population)
	return population[min(w.rng.IntN(n), w.rng.IntN(n))]
}
