package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tilewright/tilewright/symtile/index"
)

// Our own column of times, and the names of the engines.
const (
	ours      = "tilewright"
	islGist   = "isl gist"
	mlirRange = "mlir ranged"
)

// An engine answers chains: results by chain and name, and nanoseconds of a run by
// column and chain, one a round. Texts that it does not give are missing.
type engine struct {
	// How the report calls it.
	name string
	// Program of another engine; "" for our own.
	driver string
	// Results by chain.
	answers map[string][]*expression
	// Nanoseconds by column and chain, one number a round.
	times map[string]map[string][]float64
}

// A problem is a chain with what is right and our own solver of it.
type problem struct {
	chain
	// The maps put into each other, by which answers are judged.
	what *composed
	// Our own engine's view of the chain, parsed once.
	solver *index.Composition
}

// newEngine is an engine that has answered nothing.
func newEngine(name, driver string) *engine {
	return &engine{
		name:    name,
		driver:  driver,
		answers: map[string][]*expression{},
		times:   map[string]map[string][]float64{},
	}
}

// answer enters the texts of one chain.
func (e *engine) answer(id string, texts []string, names map[string]int64) error {
	var out []*expression
	for _, text := range texts {
		x, err := parse(text, names)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", e.name, id, err)
		}
		out = append(out, x)
	}
	e.answers[id] = out
	return nil
}

// time enters a time.
func (e *engine) time(column, id string, ns float64) {
	if e.times[column] == nil {
		e.times[column] = map[string][]float64{}
	}
	e.times[column][id] = append(
		e.times[column][id],
		ns,
	)
}

// solve answers with our own simplifier, and times it as the drivers do.
func (e *engine) solve(ps []*problem, budget time.Duration) error {
	for _, p := range ps {
		p.solver.Solve()
		if err := p.solver.Err(); err != nil {
			return fmt.Errorf("%s: %w", p.ID, err)
		}
		texts := p.solver.Texts()
		if err := e.answer(p.ID, texts, numberOf(p.names())); err != nil {
			return err
		}
		if budget > 0 {
			ns := measure(budget, func() { p.solver.Solve() })
			e.time(ours, p.ID, ns)
		}
	}
	return nil
}

// measure is the median nanoseconds of a run, of 11 batches.
func measure(budget time.Duration, f func()) float64 {
	const batches = 11
	f()
	start := time.Now()
	f()
	n := min(
		max(int(budget/batches/(time.Since(start)+1)), 1),
		100000,
	)
	var means []float64
	for range batches {
		start := time.Now()
		for range n {
			f()
		}
		means = append(
			means,
			float64(time.Since(start).Nanoseconds())/float64(n),
		)
	}
	return median(means)
}

// median is the upper median of numbers, which it sorts.
func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// run lets the driver answer and measure all chains in the folder dir.
func (e *engine) run(ps []*problem, dir string, budget time.Duration) error {
	input := filepath.Join(dir, "workload."+e.name)
	if err := writeFile(input, func(w io.Writer) error { return e.export(w, ps) }); err != nil {
		return err
	}
	times, answers := filepath.Join(dir, e.name+".tsv"), filepath.Join(dir, e.name+".answers.tsv")
	var errs bytes.Buffer
	ms := strconv.FormatFloat(
		budget.Seconds()*1e3,
		'f',
		-1,
		64,
	)
	cmd := exec.Command(
		e.driver,
		input,
		times,
		ms,
		answers,
	)
	cmd.Stderr = &errs // isl says where it gives up
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%.2000s", e.driver, err, errs.String())
	}
	if err := e.readTimes(times); err != nil {
		return err
	}
	return e.readAnswers(answers, ps)
}

// writeFile writes a file through a buffer.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	err = write(w)
	return errorsOf(err, w.Flush(), f.Close())
}

// errorsOf is the first error.
func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// export writes the chains as the driver reads them.
func (e *engine) export(w io.Writer, ps []*problem) error {
	out := bufio.NewWriter(w)
	for _, p := range ps {
		fmt.Fprintf(out, "P %s %d\n", p.ID, len(p.Maps))
		if e.name == "isl" {
			for _, m := range p.solver.ISL() {
				fmt.Fprintf(out, "M %s\n", m)
			}
			continue
		}
		for _, m := range p.solver.MLIR() {
			fmt.Fprintf(out, "M %s\nV", m.Map)
			for _, in := range m.Vars {
				fmt.Fprintf(out, " %d %d", in.Lo, in.Hi)
			}
			fmt.Fprintln(out)
		}
	}
	return out.Flush()
}

// readTimes reads the times of one round: names of columns, then a line a chain.
func (e *engine) readTimes(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := csv.NewReader(f)
	lines.Comma = '\t'
	rows, err := lines.ReadAll()
	if err != nil || len(rows) == 0 {
		return fmt.Errorf("%s: no times: %w", path, err)
	}
	for _, row := range rows[1:] {
		for i, text := range row[1:] {
			ns, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if ns > 0 {
				e.time(e.name+" "+rows[0][i+1], row[0], ns)
			}
		}
	}
	return nil
}

// readAnswers reads a line a chain: its id and the results, tabs between.
func (e *engine) readAnswers(path string, ps []*problem) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at := map[string]*problem{}
	for _, p := range ps {
		at[p.ID] = p
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		p := at[fields[0]]
		if p == nil {
			return fmt.Errorf("%s: no chain %s", path, fields[0])
		}
		if len(fields) == 1 {
			continue
		}
		if err := e.answer(p.ID, fields[1:], e.variableNames(p)); err != nil {
			return err
		}
	}
	return nil
}

// variableNames are the names that the engine gives to the variables of p.
func (e *engine) variableNames(p *problem) map[string]int64 {
	if e.name == "mlir" {
		return p.namesOfMLIR()
	}
	names := p.names()
	for i := range names {
		names[i] = fmt.Sprint("x", i)
	}
	return numberOf(names)
}

// readResults reads what another engine answered: lines {"engine", "id", "exprs"},
// over d0.. and s0.. as the simplifier numbers them.
func readResults(path string, ps []*problem) (*engine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at := map[string]*problem{}
	for _, p := range ps {
		at[p.ID] = p
	}
	out := newEngine(filepath.Base(path), "")
	for dec := json.NewDecoder(f); dec.More(); {
		var line struct {
			ID    string   `json:"id"`
			Exprs []string `json:"exprs"`
		}
		if err := dec.Decode(&line); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if p := at[line.ID]; p != nil {
			if err := out.answer(p.ID, line.Exprs, numberOf(p.names())); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
