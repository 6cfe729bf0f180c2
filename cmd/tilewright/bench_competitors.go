package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A competitor is the driver of another engine. It reads the workload in the
// syntax of the engine and writes OUT.tsv, a line of times a chain.
type competitor struct {
	// Name of the engine, the driver program, and the file of its workload.
	name, driver, input string
	// Nanoseconds of each round, by column and chain.
	rounds []map[string]map[string]float64
}

// competitors share a folder for their inputs and outputs.
type competitors struct {
	// Folder of the inputs and outputs.
	dir  string
	list []*competitor
}

// startCompetitors exports the workload for the drivers that the flags name.
func (b *symbolicBench) startCompetitors(isl, mlir string) (competitors, error) {
	var out competitors
	if isl == "" && mlir == "" {
		return out, nil
	}
	dir, err := os.MkdirTemp("", "tilewright-bench")
	if err != nil {
		return out, err
	}
	out.dir = dir
	for _, r := range []struct {
		competitor
		write func(io.Writer) error
	}{
		{competitor{name: "isl", driver: isl}, b.writeISL},
		{competitor{name: "mlir", driver: mlir}, b.writeMLIR},
	} {
		if r.driver == "" {
			continue
		}
		r.input = filepath.Join(dir, "workload."+r.name)
		if err := writeLines(r.input, r.write); err != nil {
			return out, err
		}
		out.list = append(out.list, &r.competitor)
	}
	return out, nil
}

// remove deletes the folder.
func (r competitors) remove() {
	if r.dir != "" {
		os.RemoveAll(r.dir)
	}
}

// writeISL writes the workload as isl relations.
func (b *symbolicBench) writeISL(w io.Writer) error {
	for i, c := range b.chains {
		maps := c.ISL()
		fmt.Fprintf(w, "P %s %d\n", b.ids[i], len(maps))
		for _, m := range maps {
			if _, err := fmt.Fprintf(w, "M %s\n", m); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeMLIR writes the workload as MLIR affine maps.
func (b *symbolicBench) writeMLIR(w io.Writer) error {
	for i, c := range b.chains {
		maps := c.MLIR()
		fmt.Fprintf(w, "P %s %d\n", b.ids[i], len(maps))
		for _, m := range maps {
			fmt.Fprintf(w, "M %s\nV", m.Map)
			for _, in := range m.Vars {
				fmt.Fprintf(w, " %d %d", in.Lo, in.Hi)
			}
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// run lets every driver measure the workload once.
func (r competitors) run(budget time.Duration) error {
	for _, v := range r.list {
		out := filepath.Join(r.dir, v.name+".tsv")
		var errs bytes.Buffer
		cmd := exec.Command(
			v.driver, v.input, out,
			strconv.FormatFloat(budget.Seconds()*1e3, 'f', -1, 64),
		)
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w\n%s", v.driver, err, errs.String())
		}
		if err := v.read(out); err != nil {
			return err
		}
	}
	return nil
}

// read reads the times of one round: a header with the names of the columns,
// then a line a chain.
func (v *competitor) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := csv.NewReader(f)
	lines.Comma = '\t'
	rows, err := lines.ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s: no header", path)
	}
	round := map[string]map[string]float64{}
	for _, row := range rows[1:] {
		for i, text := range row[1:] {
			ns, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			column := v.name + " " + rows[0][i+1]
			if round[column] == nil {
				round[column] = map[string]float64{}
			}
			round[column][row[0]] = ns
		}
	}
	v.rounds = append(v.rounds, round)
	return nil
}

// medians are the medians over the rounds, by column and chain.
func (v *competitor) medians() map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for column, ids := range v.rounds[0] {
		out[column] = map[string]float64{}
		for id := range ids {
			var ns []float64
			for _, round := range v.rounds {
				ns = append(ns, round[column][id])
			}
			out[column][id] = median(ns)
		}
	}
	return out
}

// benchSummary is the result of bench-symbolic -json.
type benchSummary struct {
	// Number of chains in the workload.
	Chains int `json:"chains"`
	// One a measured time, ours first.
	Columns []benchStats `json:"columns"`
}

// benchStats are the times of one column over all chains, in nanoseconds, and
// their ratios to the column extract.
type benchStats struct {
	Column string `json:"column"`
	// Median, geometric mean and maximum over the chains.
	Median  float64 `json:"median"`
	Geomean float64 `json:"geomean"`
	Most    float64 `json:"most"`
	// Geometric mean of the ratios.
	Ratio float64 `json:"ratio"`
	// Smallest of the ratios.
	Least float64 `json:"least"`
	// Number of chains whose ratio is not above 1.
	Slower int `json:"slower"`
	// The chain with the smallest ratio.
	Worst string `json:"worst"`
}

// report prints the summary of our columns and the competitors'.
func (b *symbolicBench) report(c *call, r competitors) error {
	s := benchSummary{Chains: len(b.chains)}
	if len(b.times) > 0 && b.times[0].extract > 0 {
		s.Columns = append(
			s.Columns,
			b.stats("simplify", b.column(func(t chainTimes) float64 { return t.simplify })),
			b.stats("extract", b.column(func(t chainTimes) float64 { return t.extract })),
		)
		for _, v := range r.list {
			columns := v.medians()
			for _, name := range slices.Sorted(maps.Keys(columns)) {
				s.Columns = append(s.Columns, b.stats(name, columns[name]))
			}
		}
	}
	if c.json {
		return c.printJSON(s)
	}
	s.print(c)
	return nil
}

// column selects one of our times, by chain.
func (b *symbolicBench) column(of func(chainTimes) float64) map[string]float64 {
	out := map[string]float64{}
	for _, t := range b.times {
		out[t.id] = of(t)
	}
	return out
}

// stats summarises a column.
func (b *symbolicBench) stats(name string, ns map[string]float64) benchStats {
	s := benchStats{Column: name, Least: math.Inf(1)}
	var all []float64
	var logs, ratios float64
	for _, t := range b.times {
		v, ok := ns[t.id]
		if !ok || v <= 0 {
			continue
		}
		all = append(all, v)
		ratio := v / t.extract
		logs = logs + math.Log(v)
		ratios = ratios + math.Log(ratio)
		if ratio < s.Least {
			s.Least = ratio
			s.Worst = t.id
		}
		if ratio <= 1 {
			s.Slower++
		}
	}
	if n := float64(len(all)); n > 0 {
		s.Median, s.Most, s.Geomean, s.Ratio = median(all),
			slices.Max(all), math.Exp(logs/n),
			math.Exp(ratios/n)
	}
	return s
}

// print prints the summary as a table.
func (s benchSummary) print(c *call) {
	fmt.Fprintf(c.out, "%d chains\n", s.Chains)
	if len(s.Columns) == 0 {
		return
	}
	t := c.table()
	fmt.Fprintln(t, "\tmedian ns\tgeomean ns\tmost ns\ttimes ours\tleast\tnot slower than us")
	for _, v := range s.Columns {
		other := strings.Contains(v.Column, " ")
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t", v.Column, v.Median, v.Geomean, v.Most)
		if other {
			fmt.Fprintf(t, "%.1f\t%.2f (%s)\t%d", v.Ratio, v.Least, v.Worst, v.Slower)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}
