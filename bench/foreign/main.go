package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "foreign:", err)
		os.Exit(1)
	}
}

// run judges the cases and modules of folders, and prints tables and what is wrong.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("foreign", flag.ContinueOnError)
	cases := flags.String("cases", "out/foreign/cases", "`folder` of cases, zip files")
	modules := flags.String("modules", "", "`folder` of modules that are only parsed")
	only := flags.String("only", "", "judge only cases whose names contain `text`")
	mutants := flags.Int("mutants", 0, "judge so many mutants, too")
	seed := flags.Uint64("seed", 1, "`number` by which mutants are drawn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	known, err := excuses(knownText)
	if err != nil {
		return err
	}
	// Cases come in the order of their names.
	paths, err := filepath.Glob(filepath.Join(*cases, "*"+*only+"*.zip"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("no cases in %s: `make judge-foreign` makes them", *cases)
	}
	j := &judge{known: known, out: out, rows: map[string]*row{}}
	for _, path := range paths {
		if err := j.judge(path); err != nil {
			return err
		}
	}
	if *modules != "" {
		if err := j.parseAll(*modules); err != nil {
			return err
		}
	}
	j.print()
	if *mutants > 0 {
		judgeMutants(j.good, known, *mutants, *seed, out)
	}
	// Mutants that are not found do not fail the command: many of them change nothing.
	if j.bad > 0 {
		return fmt.Errorf("%d cases are not right", j.bad)
	}
	return nil
}

// A judge counts cases by where they come from.
type judge struct {
	known []excuse
	out   io.Writer
	rows  map[string]*row
	// Good are the cases that are right, and bad counts the others.
	good []*foreignCase
	bad  int
}

// A row counts the cases of one compiler for one architecture.
type row struct {
	// Cases counts those that were parsed, ran, had NumPy's results, and no findings
	// beyond those that are excused.
	cases, parsed, right, silent, excused int
	executed                              int64
}

// origin is the compiler and the architecture of a case's name.
var origin = regexp.MustCompile(`^([a-z]+)_.*_(sm\w+)$`)

// row is that of a case.
func (j *judge) row(name string) *row {
	if m := origin.FindStringSubmatch(name); m != nil {
		name = m[1] + " " + m[2]
	}
	if j.rows[name] == nil {
		j.rows[name] = &row{}
	}
	return j.rows[name]
}

// judge runs a case, and prints what is wrong.
func (j *judge) judge(path string) error {
	c, err := readCase(path)
	if err != nil {
		return err
	}
	r := j.row(c.Name)
	r.cases++
	wrong := func(format string, args ...any) error {
		fmt.Fprintf(j.out, "%s: %s\n", c.Name, fmt.Sprintf(format, args...))
		j.bad++
		return nil
	}
	m, err := ptx.Parse(c.Name, c.PTX)
	if err == nil {
		err = m.Check()
	}
	if err != nil && refused(j.known, c.Name, err.Error()) {
		return nil
	}
	if err != nil {
		return wrong("%s", firstLine(err))
	}
	r.parsed++
	// What is known not to be modelled counts as parsed; the table shows that it has no
	// results.
	p, err := sim.Load(m)
	if err != nil && refused(j.known, c.Name, err.Error()) {
		return nil
	}
	if err != nil {
		return wrong("%s", firstLine(err))
	}
	o, err := c.run(p)
	if err != nil {
		return wrong("%s", firstLine(err))
	}
	// Excused findings are counted, so that a change of their number shows.
	left := unexplained(j.known, c.Name, o.Findings)
	r.excused += len(o.Findings) - len(left)
	r.executed += o.Executed
	if o.Wrong == 0 {
		r.right++
	}
	if len(left) == 0 {
		r.silent++
	}
	switch {
	case len(left) > 0:
		return wrong("%v", left[0])
	case o.Wrong > 0:
		return wrong("%d elements wrong: %s", o.Wrong, o.First)
	}
	// Only kernels without errors of their own have mutants.
	j.good = append(j.good, c)
	return nil
}

// parseAll parses and checks the modules of a folder.
func (j *judge) parseAll(folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.ptx"))
	if err != nil {
		return err
	}
	// A module that is refused is no error here: the share is what counts.
	taken := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		m, err := ptx.Parse(filepath.Base(path), text)
		if err == nil {
			err = m.Check()
		}
		if err != nil {
			fmt.Fprintf(j.out, "not parsed: %s\n", firstLine(err))
			continue
		}
		taken++
	}
	fmt.Fprintf(j.out, "%d of %d further modules parsed\n", taken, len(paths))
	return nil
}

// print prints the table of all cases.
func (j *judge) print() {
	w := tabwriter.NewWriter(j.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "compiler\tcases\tparsed\tas NumPy\tno finding\texcused findings\twarp instructions")
	var all row
	line := func(name string, r *row) {
		fmt.Fprintf(
			w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n",
			name, r.cases, r.parsed, r.right, r.silent, r.excused, r.executed,
		)
	}
	// Rows are sorted by compiler and architecture.
	var names []string
	for name := range j.rows {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r := j.rows[name]
		all.cases += r.cases
		all.parsed += r.parsed
		all.right += r.right
		all.silent += r.silent
		all.excused += r.excused
		all.executed += r.executed
		line(name, r)
	}
	line("all", &all)
	w.Flush()
}

// firstLine is the first line of an error.
func firstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}
