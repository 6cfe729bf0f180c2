package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// results are the measurements of a run. Their text form is what is kept, and
// tables are made from it alone: a line a fact, with fields separated by tabs,
// of which the first is the kind of the line. The lines after a case line
// belong to the case.
type results struct {
	// The processor, as the backend keys winners by it.
	machine string
	// Names and versions of the drivers; the version of a missing one is empty.
	drivers []namedText
	cases   []*caseResult
}

// A namedText is a line of the text form that consists of a name and a text.
type namedText struct{ name, text string }

// A caseResult is the measurement of one case with some number of threads.
type caseResult struct {
	testCase
	threads int
	// Bytes of the inputs and outputs.
	bytes int64
	// Revision of the backend that was measured.
	revision string
	// Load average of the machine when the case began; −1 is unknown.
	load float64
	// Rows of the runs whose data stay in the first cache; 0 when there are
	// none.
	smallRows int64
	// Number of plans that the backend offers.
	legal int64
	// Seconds to compile the tuned plan.
	compile float64
	// The tuned and the default plan.
	plans []namedText
	// Reasons why a competitor has no samples.
	notes []namedText
	// Samples of the competitors, in the order they were measured in.
	times []timings

	// The shortest time of each of many plans: of all that are offered ("all")
	// or of some ("sample").
	landscape timings
	// Seconds of tuning, without the reference results, where all plans were
	// searched.
	spent float64
}

// timings are the seconds a run of one competitor, one sample a round.
type timings struct {
	name    string
	seconds []float64
}

// samplesOf are the samples of a competitor, nil when it has none.
func (c *caseResult) samplesOf(name string) []float64 {
	for _, t := range c.times {
		if t.name == name {
			return t.seconds
		}
	}
	return nil
}

// find is the text of a name, "" when there is none.
func find(facts []namedText, name string) string {
	for _, f := range facts {
		if f.name == name {
			return f.text
		}
	}
	return ""
}

// rawHeader is the first line of the text form.
const rawHeader = "# bench-peers: seconds a run, a column a round; contenders of a case took turns"

// has reports whether a case was measured with some number of threads and the present
// revision of the backend.
func (r *results) has(c testCase, threads int) bool {
	return slices.ContainsFunc(r.cases, func(x *caseResult) bool {
		return x.same(c, threads) && x.revision == revision()
	})
}

// same reports whether a result is of a case with some number of threads.
func (c *caseResult) same(x testCase, threads int) bool {
	return c.String() == x.String() && c.threads == threads
}

// put adds the result of a case, in the place of an earlier one.
func (r *results) put(c *caseResult) {
	k := slices.IndexFunc(r.cases, func(x *caseResult) bool { return x.same(c.testCase, c.threads) })
	if k < 0 {
		r.cases = append(r.cases, c)
		return
	}
	r.cases[k] = c
}

// know notes the versions of drivers. One that is not there now keeps the version that
// earlier cases were measured with.
func (r *results) know(versions []namedText) {
	for _, v := range versions {
		k := slices.IndexFunc(r.drivers, func(d namedText) bool { return d.name == v.name })
		switch {
		case k < 0:
			r.drivers = append(r.drivers, v)
		case v.text != "":
			r.drivers[k] = v
		}
	}
}

// write writes the text form of all results.
func (r *results) write(w io.Writer) error {
	if err := r.head(w); err != nil {
		return err
	}
	for _, c := range r.cases {
		if err := c.write(w); err != nil {
			return err
		}
	}
	return nil
}

// writeFile replaces a file by the text form of all results.
func (r *results) writeFile(name string) error {
	var b bytes.Buffer
	if err := r.write(&b); err != nil {
		return err
	}
	if err := os.WriteFile(name+".part", b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

// head writes the lines in front of the cases.
func (r *results) head(w io.Writer) error {
	fmt.Fprintf(w, "%s\nmachine\t%s\n", rawHeader, r.machine)
	for _, d := range r.drivers {
		_, err := fmt.Fprintf(w, "driver\t%s\t%s\n", d.name, d.text)
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes the lines of one case.
func (c *caseResult) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(
		b, "case\t%s\t%s\t%d\t%d\t%.2f\t%s\n", c.family, c.shape(),
		c.threads, c.bytes, c.load, c.revision,
	)
	fmt.Fprintf(b, "tuning\t%d\t%.4g\t%d\n", c.legal, c.compile, c.smallRows)
	for _, p := range c.plans {
		fmt.Fprintf(b, "plan\t%s\t%s\n", p.name, p.text)
	}
	for _, n := range c.notes {
		fmt.Fprintf(
			b,
			"note\t%s\t%s\n",
			n.name,
			strings.Join(strings.Fields(n.text), " "),
		)
	}
	if c.spent > 0 {
		fmt.Fprintf(b, "spent\t%.3g\n", c.spent)
	}
	for _, t := range c.times {
		t.write(b, "times")
	}
	if len(c.landscape.seconds) > 0 {
		c.landscape.write(b, "landscape")
	}
	return b.Flush()
}

// write writes a line of samples of some kind.
func (t timings) write(w io.Writer, kind string) {
	fmt.Fprintf(w, "%s\t%s", kind, t.name)
	for _, s := range t.seconds {
		fmt.Fprintf(w, "\t%.5g", s)
	}
	fmt.Fprintln(w)
}

// readTimed reads the name and the samples of a line.
func readTimed(f []string) (timings, error) {
	t := timings{name: f[0]}
	for _, text := range f[1:] {
		s, err := strconv.ParseFloat(text, 64)
		if err != nil || s <= 0 {
			return t, fmt.Errorf("%q is not a time", text)
		}
		t.seconds = append(t.seconds, s)
	}
	return t, nil
}

// readResults reads the text form. Its errors name the line.
func readResults(in io.Reader) (*results, error) {
	r := &results{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line != "" && !strings.HasPrefix(line, "#") {
			if err := r.line(strings.Split(line, "\t")); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	return r, lines.Err()
}

// minFields is the number of fields that a line of each kind has at least.
var minFields = map[string]int{
	"machine":   2,
	"driver":    3,
	"case":      7,
	"tuning":    4,
	"plan":      3,
	"note":      3,
	"times":     3,
	"landscape": 3,
	"spent":     2,
}

// line reads one line into the results.
func (r *results) line(f []string) error {
	n, known := minFields[f[0]]
	if !known {
		return fmt.Errorf("%q is not a kind of line", f[0])
	}
	if len(f) < n {
		return fmt.Errorf("a %s line has %d fields, not %d", f[0], n, len(f))
	}
	switch f[0] {
	case "machine":
		r.machine = f[1]
		return nil
	case "driver":
		r.drivers = append(r.drivers, namedText{f[1], f[2]})
		return nil
	case "case":
		c, err := readCase(f[1:])
		r.cases = append(r.cases, c)
		return err
	}
	if len(r.cases) == 0 {
		return fmt.Errorf("a %s line before the first case", f[0])
	}
	return r.cases[len(r.cases)-1].line(f)
}

// readCase reads a case line.
func readCase(f []string) (*caseResult, error) {
	c := &caseResult{}
	var err error
	if c.testCase, err = namedCase(f[0], f[1]); err != nil {
		return c, err
	}
	if c.threads, err = strconv.Atoi(f[2]); err != nil {
		return c, err
	}
	if c.bytes, err = strconv.ParseInt(f[3], 10, 64); err != nil {
		return c, err
	}
	c.revision = f[5]
	c.load, err = strconv.ParseFloat(f[4], 64)
	return c, err
}

// namedCase is the case of a family and a shape.
func namedCase(family, shape string) (testCase, error) {
	c := testCase{family: family}
	f, ok := families[family]
	if !ok {
		return c, fmt.Errorf("there is no family %q", family)
	}
	if f.text == nil {
		c.name = shape
		return c, nil
	}
	for _, text := range strings.Split(shape, "×") {
		d, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return c, err
		}
		c.dims = append(c.dims, d)
	}
	return c, nil
}

// line reads a line that belongs to a case.
func (c *caseResult) line(f []string) (err error) {
	switch f[0] {
	case "plan":
		c.plans = append(c.plans, namedText{f[1], f[2]})
	case "note":
		c.notes = append(c.notes, namedText{f[1], f[2]})
	case "times":
		var t timings
		t, err = readTimed(f[1:])
		c.times = append(c.times, t)
	case "landscape":
		c.landscape, err = readTimed(f[1:])
	case "spent":
		c.spent, err = strconv.ParseFloat(f[1], 64)
	case "tuning":
		_, err = fmt.Sscan(
			strings.Join(f[1:], " "),
			&c.legal,
			&c.compile,
			&c.smallRows,
		)
	}
	return err
}
