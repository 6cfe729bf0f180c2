package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tilewright/tilewright/symtile/index"
)

// A session is one run of the judge.
type session struct {
	// Number of chains to make, of rounds to measure, and of points of a chain at
	// which answers are compared.
	chains, rounds, points int
	// What the chains are made from.
	seed int64
	// Kind of the chains, "" for both; folder of all files.
	kind, dir string
	// File of chains to be judged instead of random ones.
	workload string
	// Drivers, and files of the results of more engines.
	isl, mlir, others string
	// Files for our answers and our times; "" for none.
	answers, times string
	// Many chains are checked without other engines.
	alone bool
	// Time of one measurement; 0 times nothing.
	budget time.Duration

	// The chains with what is right.
	problems []*problem
	// Our own engine, then those with drivers, then those of files.
	engines []*engine
}

func main() {
	s := &session{}
	s.flags(flag.CommandLine)
	flag.Parse()
	if err := s.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "symbolic:", err)
		os.Exit(1)
	}
}

// flags declares the flags.
func (s *session) flags(f *flag.FlagSet) {
	// What is judged.
	now := time.Now().UnixNano() % 1e9
	f.IntVar(&s.chains, "chains", 2000, "number of `chains`")
	f.Int64Var(&s.seed, "seed", now, "`seed` of the chains")
	f.StringVar(&s.kind, "kind", "", "only chains of one `kind`: tensor or nested")
	f.StringVar(&s.workload, "workload", "", "judge the chains of a `file` instead, one JSON object a line")

	// How: by which other engines, at how many points, for how long.
	f.BoolVar(&s.alone, "check", false, "evaluate our answers to -chains chains, and nothing else; for millions of them")
	f.IntVar(&s.points, "points", 2000, "at most so many `points` of a chain are evaluated")
	f.StringVar(&s.isl, "isl", "", "`driver` of isl")
	f.StringVar(&s.mlir, "mlir", "", "`driver` of MLIR")
	f.StringVar(&s.others, "results", "", "results of other engines: `files` of JSON lines, commas between")
	f.DurationVar(&s.budget, "budget", 2*time.Millisecond, "`time` to spend on one measurement; 0s times nothing")
	f.IntVar(&s.rounds, "rounds", 3, "how often everything is measured, the engines in turn")

	// What is written.
	f.StringVar(&s.dir, "out", "out/judge", "`folder` for the workload, the answers and the chains that are not at the best form")
	f.StringVar(&s.answers, "answers", "", "`file` for our answers, a JSON object a line, as -results reads them")
	f.StringVar(&s.times, "times", "", "`file` for our times, a line a chain: nanoseconds, allocations of a run, tabs between")
}

// run makes the chains, lets all engines answer, and reports.
func (s *session) run(out io.Writer) error {
	if s.alone {
		return s.check(out)
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return err
	}
	s.engines = []*engine{newEngine(ours, "")}
	for _, e := range []*engine{newEngine("isl", s.isl), newEngine("mlir", s.mlir)} {
		if e.driver != "" {
			s.engines = append(s.engines, e)
		}
	}
	if err := s.answer(); err != nil {
		return err
	}
	if err := s.report(out); err != nil {
		return err
	}
	return errorsOf(
		writeIf(s.answers, s.writeAnswers),
		writeIf(s.times, s.writeTimes),
	)
}

// writeIf writes a file if it has a name.
func writeIf(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	return writeFile(path, write)
}

// load makes the chains or reads them, and writes them where drivers of more
// engines find them.
func (s *session) load() error {
	if s.workload != "" {
		if err := s.read(); err != nil {
			return err
		}
	}
	rnd := newRand(s.seed)
	for n := 0; s.workload == "" && n < s.chains; n++ {
		c, what := makeChain(rnd, n, s.kind)
		if err := s.add(c, what); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(s.dir, "workload.jsonl"), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, p := range s.problems {
			if err := enc.Encode(p.chain); err != nil {
				return err
			}
		}
		return nil
	})
}

// read reads the chains of a file.
func (s *session) read() error {
	f, err := os.Open(s.workload)
	if err != nil {
		return err
	}
	defer f.Close()
	for dec := json.NewDecoder(f); dec.More(); {
		var c chain
		if err := dec.Decode(&c); err != nil {
			return fmt.Errorf("%s: %w", s.workload, err)
		}
		what, err := c.compose()
		if err == nil {
			err = s.add(c, what)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", s.workload, c.ID, err)
		}
	}
	if len(s.problems) == 0 {
		return fmt.Errorf("%s has no chains", s.workload)
	}
	return nil
}

// add makes a problem of a chain.
func (s *session) add(c chain, what *composed) error {
	solver, err := index.NewComposition(c.sources()...)
	if err != nil {
		return fmt.Errorf("%s: %w", c.ID, err)
	}
	s.problems = append(s.problems, &problem{c, what, solver})
	return nil
}

// answer runs the engines in turn, round after round.
func (s *session) answer() error {
	for range max(s.rounds, 1) {
		for _, e := range s.engines {
			var err error
			if e.driver == "" {
				err = e.solve(s.problems, s.budget)
			} else {
				err = e.run(
					s.problems,
					s.dir,
					s.budget,
				)
			}
			if err != nil {
				return err
			}
		}
		if s.budget == 0 {
			break
		}
	}
	for path := range strings.SplitSeq(s.others, ",") {
		if path == "" {
			continue
		}
		e, err := readResults(path, s.problems)
		if err != nil {
			return err
		}
		s.engines = append(s.engines, e)
	}
	return nil
}

// report judges every chain and prints what it came to.
func (s *session) report(out io.Writer) error {
	var vs []verdict
	// Chains where we are wrong, and where our ranges leave a point out. Other engines
	// may be wrong, which only takes their answer from the comparison.
	wrong, outside := 0, 0
	for _, p := range s.problems {
		v := judge(p, s.engines, s.points)
		vs = append(vs, v)
		for _, w := range v.wrong {
			fmt.Fprintf(out, "WRONG %s: %s\n", p.ID, w)
			if strings.HasPrefix(w, ours+":") {
				wrong++
			}
		}
		if at, found := p.outside(p.what.points(s.points, newRand(1))); found {
			fmt.Fprintf(out, "WRONG %s: the ranges leave %v out\n", p.ID, at)
			outside++
		}
	}
	s.printForms(out, vs)
	s.printTimes(out)
	missed := filepath.Join(s.dir, "missed.jsonl")
	if err := writeFile(missed, func(w io.Writer) error { return writeMissed(w, vs, s.texts()) }); err != nil {
		return err
	}
	if wrong+outside > 0 {
		return errors.New("answers of the simplifier are wrong")
	}
	return nil
}

// texts are the results of all engines as they wrote them, by chain and engine.
func (s *session) texts() map[string]map[string][]string {
	out := map[string]map[string][]string{}
	for _, p := range s.problems {
		out[p.ID] = map[string][]string{}
		for _, e := range s.engines {
			for _, x := range e.answers[p.ID] {
				out[p.ID][e.name] = append(
					out[p.ID][e.name],
					x.String(),
				)
			}
		}
	}
	return out
}

// printForms prints the shares of chains at the best form.
func (s *session) printForms(out io.Writer, vs []verdict) {
	fmt.Fprintf(out, "%d chains of seed %d, at most %d points each\n", len(vs), s.seed, s.points)
	// Chains at the best form, and operations of all chains, by engine.
	atBest := map[string]int{}
	total := map[string]int{}
	longer, best := 0, 0
	for _, v := range vs {
		best += v.best
		if v.ours > v.typed {
			longer++
			fmt.Fprintf(out, "longer than typed: %s, %d operations of %d\n", v.problem.ID, v.ours, v.typed)
		}
		for name, n := range v.by {
			total[name] += n
			if n <= v.best {
				atBest[name]++
			}
		}
	}
	fmt.Fprintf(out, "%-16s %8s %14s %12s %12s\n", "", "answers", "at best form", "share", "operations")
	for _, e := range s.engines {
		share := 100 * float64(atBest[e.name]) / float64(len(vs))
		fmt.Fprintf(out, "%-16s %8d %14d %11.2f%% %12d\n", e.name, len(e.answers), atBest[e.name], share, total[e.name])
	}
	fmt.Fprintf(out, "%-16s %46s %12d\nlonger than typed: %d\n", "best of all", "", best, longer)
}
