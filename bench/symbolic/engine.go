package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tilewright/tilewright/symtile/index"
)

// The name of our own engine, and the columns of the drivers that are to simplify
// as well as they can.
const (
	ours       = "tilewright"
	islGist    = "isl gist"
	mlirRanged = "mlir ranged"
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
	times timing
}

// A problem is a chain with what is right and our own solver of it.
type problem struct {
	// The maps as they are written.
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
		times:   timing{},
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
			e.times.measureSolver(p, budget)
		}
	}
	return nil
}

// run lets the driver answer and measure all chains in the folder dir.
func (e *engine) run(ps []*problem, dir string, budget time.Duration) error {
	// A driver reads one file and writes two.
	input := filepath.Join(dir, "workload."+e.name)
	if err := writeFile(input, func(w io.Writer) error { return e.export(w, ps) }); err != nil {
		return err
	}
	times, answers := filepath.Join(dir, e.name+".tsv"), filepath.Join(dir, e.name+".answers.tsv")
	// Its messages are only of interest where it fails.
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
			// 0 says that the engine has given the chain up.
			if ns > 0 {
				e.times.add(e.name+" "+rows[0][i+1], row[0], ns)
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
		// No results: the engine has given up, or its answer has several pieces.
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
