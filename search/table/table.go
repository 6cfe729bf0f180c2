// Package table reads recorded spaces: every point of a space with its time or its
// failure. A search that is replayed on one costs nothing and needs no device.
//
// A table is JSON lines, a header and a line for each point (docs/formats.md). Cache
// files of Kernel Tuner and results in the T4 format are read as tables. Any of them may
// be compressed by gzip.
package table

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"syscall"

	"github.com/tilewright/tilewright/search"
)

// A Header is the first line of a table.
type Header struct {
	// Name of the table, for people.
	Name string `json:"name"`
	// Parameters in the order of the values of a line.
	Parameters []Parameter `json:"parameters"`
	// Constraints are expressions over the parameters that hold for every line.
	Constraints []string `json:"constraints,omitempty"`
	// HLO of the computation, Device that was measured (a sheet, or the name of a
	// built-in one) and Plan, the plan of a point as text, with expressions over the
	// parameters in braces: "{MWG},{NWG},32 warps={MDIMC*NDIMC/32}". With all three
	// the points have prices.
	HLO    string          `json:"hlo,omitempty"`
	Device json.RawMessage `json:"device,omitempty"`
	Plan   string          `json:"plan,omitempty"`
}

// A Parameter is one choice of a point.
type Parameter struct {
	Name string `json:"name"`
	// Type is "integer", "real", "flag" (0 and 1, or false and true) or "text".
	Type string `json:"type"`
	// Order is "ascending", or "none" for values that are only different; absent it is
	// "none" for texts, otherwise "ascending".
	Order string `json:"order,omitempty"`
	// Values that it has; they may be absent, and are then those of the lines.
	Values []json.RawMessage `json:"values,omitempty"`
}

// A Line is a point and what its evaluation gave.
type Line struct {
	Values []json.RawMessage `json:"values"`
	// Seconds of the point; absent where it failed. Where samples are there it is
	// their median.
	Seconds float64 `json:"seconds,omitempty"`
	// Samples are single measurements, in seconds.
	Samples []float64 `json:"samples,omitempty"`
	// Failure is why the point has no time: "compile", "run", "timeout", "wrong", or any
	// other word.
	Failure string `json:"failure,omitempty"`
}

// A Table is a recorded space.
type Table struct {
	Header Header
	Space  *search.Space
	// Seconds of each point; +Inf for one that failed.
	Seconds []float64
	// Samples of each point, in seconds and in the order in which they were taken; nil where only its time is known.
	Samples [][]float64
	// Failures of each point; "" for one that has a time.
	Failures []string
}

// maxBytes bounds a table, and a line of one: the largest that are published have some
// hundred MiB.
const maxBytes = 1 << 30

// Open reads the table of a file. A FIFO that nobody writes to is empty.
func Open(name string) (*Table, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(name, f)
}

// Read reads a table, whichever of the formats it has; name is for messages.
func Read(name string, r io.Reader) (*Table, error) {
	text, err := contents(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if t.Header.Name == "" {
		t.Header.Name = name
	}
	return t, nil
}

// contents are all bytes of a reader, decompressed. What is compressed cannot grow without
// bound, either.
func contents(r io.Reader) ([]byte, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = bufio.NewReader(z)
	}
	// What is no table is not read to its end, which a device does not have.
	head, _ := in.Peek(512)
	if head = bytes.TrimSpace(head); len(head) > 0 && head[0] != '{' {
		return nil, errNoTable
	}
	text, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	if err == nil && len(text) > maxBytes {
		err = fmt.Errorf("it is larger than %d MiB", maxBytes>>20)
	}
	return text, err
}

// parse tells the formats apart: a table is the only one whose first line is a whole JSON
// object.
func parse(text []byte) (*Table, error) {
	first, rest, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	var h Header
	if json.Unmarshal(first, &h) == nil && len(h.Parameters) > 0 {
		return readLines(h, rest)
	}
	// The formats of other programs are one JSON object, and have no header.
	var kinds struct {
		Cache   json.RawMessage `json:"cache"`
		Results json.RawMessage `json:"results"`
	}
	text = closed(text)
	if !bytes.HasPrefix(text, []byte("{")) {
		return nil, errNoTable
	}
	if err := json.Unmarshal(text, &kinds); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoTable, err)
	}
	switch {
	case kinds.Cache != nil:
		return readKernelTuner(text)
	case kinds.Results != nil:
		return readT4(text)
	}
	return nil, errNoTable
}

// errNoTable is the reason why a file is not read.
var errNoTable = errors.New(`neither a table (its first line has "parameters"), nor a cache file of Kernel Tuner ("cache"), nor T4 results ("results")`)

// readLines reads the lines after a header. A field that is not documented is a mistake in
// its spelling more often than news.
func readLines(h Header, text []byte) (*Table, error) {
	var lines []Line
	number := 1
	for line := range bytes.Lines(text) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var x Line
		in := json.NewDecoder(bytes.NewReader(line))
		in.DisallowUnknownFields()
		if err := in.Decode(&x); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if len(x.Values) != len(h.Parameters) {
			return nil, fmt.Errorf("line %d: %d values, of %d parameters", number, len(x.Values), len(h.Parameters))
		}
		lines = append(lines, x)
	}
	return New(h, lines)
}

// New makes a table of a header and lines. It refuses two lines for one point, values
// that a parameter does not have, times that are not positive, and points that a
// constraint forbids.
func New(h Header, lines []Line) (*Table, error) {
	t := &Table{Header: h}
	parameters := make([]search.Parameter, len(h.Parameters))
	index := make([]map[string]int, len(h.Parameters))
	for i, p := range h.Parameters {
		values := p.Values
		if values == nil {
			values = column(lines, i)
		}
		var err error
		if parameters[i], err = p.searched(values); err != nil {
			return nil, err
		}
		index[i] = map[string]int{}
		for k, v := range parameters[i].Values {
			index[i][v] = k
		}
	}
	// Points hold indices of values: two spellings of a number are one value.
	var points [][]int
	for n, x := range lines {
		point := make([]int, len(x.Values))
		for i, v := range x.Values {
			k, known := index[i][plain(v)]
			if !known {
				return nil, fmt.Errorf("point %d: %s is no value of %s", n+1, v, h.Parameters[i].Name)
			}
			point[i] = k
		}
		points = append(points, point)
		if err := t.add(x); err != nil {
			return nil, fmt.Errorf("point %d: %w", n+1, err)
		}
	}
	var err error
	if t.Space, err = search.NewSpace(parameters, points); err != nil {
		return nil, err
	}
	return t, t.check()
}

// add adds what the evaluation of a point gave.
func (t *Table) add(x Line) error {
	seconds := x.Seconds
	if len(x.Samples) > 0 {
		sorted := slices.Sorted(slices.Values(x.Samples))
		if sorted[0] <= 0 {
			return fmt.Errorf("a sample of %g s", sorted[0])
		}
		n := len(sorted)
		seconds = (sorted[(n-1)/2] + sorted[n/2]) / 2
	}
	switch {
	case x.Failure != "" && seconds != 0:
		return fmt.Errorf("it has both a time and the failure %q", x.Failure)
	case x.Failure != "":
		seconds = math.Inf(1)
	case !(seconds > 0):
		return fmt.Errorf("it has neither a time above 0 nor a failure")
	}
	t.Seconds = append(t.Seconds, seconds)
	t.Samples = append(t.Samples, x.Samples)
	t.Failures = append(t.Failures, x.Failure)
	return nil
}

// Best is the least time of the table.
func (t *Table) Best() float64 { return slices.Min(t.Seconds) }

// check refuses a table in which nothing has a time, and points that its constraints
// forbid.
func (t *Table) check() error {
	if math.IsInf(t.Best(), 1) {
		return fmt.Errorf("no point has a time")
	}
	if _, err := t.Plans(); err != nil {
		return err
	}
	for _, text := range t.Header.Constraints {
		e, err := parseExpression(text)
		if err != nil {
			return fmt.Errorf("constraint %q: %w", text, err)
		}
		for k := range t.Space.Points {
			v, err := e.value(t.numbers(k))
			if err != nil {
				return fmt.Errorf("constraint %q: %w", text, err)
			}
			if v == 0 {
				return fmt.Errorf("point %d does not satisfy the constraint %q", k+1, text)
			}
		}
	}
	return nil
}

// numbers are the values of a point by the names of their parameters; texts have none.
func (t *Table) numbers(k int) map[string]float64 {
	out := map[string]float64{}
	for i, v := range t.Space.Points[k] {
		p := t.Space.Parameters[i]
		if p.Numbers != nil {
			out[p.Name] = p.Numbers[v]
		}
	}
	return out
}

// Text is a point as people read it, with all parameters in the order of the header:
// "MWG=64 NWG=128".
func (t *Table) Text(k int) string {
	var b bytes.Buffer
	for i, v := range t.Space.Points[k] {
		if i > 0 {
			b.WriteByte(' ')
		}
		p := t.Space.Parameters[i]
		b.WriteString(p.Name + "=" + p.Values[v])
	}
	return b.String()
}
