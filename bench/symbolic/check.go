package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/tilewright/tilewright/symtile/index"
)

// A tally is what checking many chains came to.
type tally struct {
	// Chains, and points at which they were evaluated.
	chains, points int
	// Chains that are wrong: a result at a point, a range that leaves a point out, or
	// an error of the simplifier.
	wrong int
	// Chains with more operations than substitution makes.
	longer int
}

// check makes s.chains chains and checks our answers to them, without other engines
// and without keeping any, on all processors. What is wrong or longer is printed with
// its chain.
func (s *session) check(out io.Writer) error {
	var sum tally
	var mu sync.Mutex
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		all.Go(func() {
			part := s.checkPart(w, workers, func(text string) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintln(out, text)
			})
			mu.Lock()
			defer mu.Unlock()
			sum.add(part)
		})
	}
	all.Wait()
	const format = "%d chains of seed %d in %d parts, %d points: %d wrong, %d longer than typed\n"
	fmt.Fprintf(out, format, sum.chains, s.seed, workers, sum.points, sum.wrong, sum.longer)
	if sum.wrong > 0 {
		return errors.New("answers of the simplifier are wrong")
	}
	return nil
}

// add adds up two tallies.
func (t *tally) add(u tally) {
	t.chains += u.chains
	t.points += u.points
	t.wrong += u.wrong
	t.longer += u.longer
}

// checkPart checks every workers-th chain, from number w on, of a source of its own.
func (s *session) checkPart(w, workers int, print func(string)) (t tally) {
	rnd := newRand(s.seed<<8 + int64(w))
	for n := w; n < s.chains; n += workers {
		// A chain depends on those before it in this part, not on other parts.
		c, what := makeChain(rnd, n, s.kind)
		points := what.points(s.points, rnd)
		t.chains++
		t.points += len(points)
		wrong, longer := checkChain(c, what, points)
		if wrong != "" {
			t.wrong++
			print("WRONG " + c.describe(wrong))
		}
		if longer {
			t.longer++
			print("longer than typed: " + c.describe(""))
		}
	}
	return t
}

// describe is the chain as a line of a workload, after a reason.
func (c *chain) describe(reason string) string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // it is numbers and strings
	}
	return c.ID + " " + reason + "\n" + string(text)
}

// checkChain solves one chain. wrong says what is wrong with the answer, "" if
// nothing is; longer, that it has more operations than the chain as composed.
// A panic is wrong, too.
func checkChain(c chain, what *composed, points []point) (wrong string, longer bool) {
	defer func() {
		if p := recover(); p != nil {
			wrong = fmt.Sprintf("panic: %v", p)
		}
	}()
	solver, err := index.NewComposition(c.sources()...)
	if err != nil {
		return err.Error(), false
	}
	solver.Solve()
	if err := solver.Err(); err != nil {
		return err.Error(), false
	}
	e := newEngine(ours, "")
	if err := e.answer(c.ID, solver.Texts(), numberOf(c.names())); err != nil {
		return err.Error(), false
	}
	answer := e.answers[c.ID]
	if diff := compare(answer, points); diff != "" {
		return diff, false
	}
	p := problem{c, what, solver}
	if at, found := p.outside(points); found {
		return fmt.Sprintf("the ranges leave %v out", at), false
	}
	n := 0
	for _, x := range answer {
		n += x.written()
	}
	return "", n > what.written()
}
