package table

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// testdata/tables.txt has tables in every format, good and bad, and what is read of
// them or why they are refused. Files of other programs are as those write them,
// shortened to what decides.
func TestTables(t *testing.T) {
	datadriven.RunTest(t, "testdata/tables.txt", func(t *testing.T, d *datadriven.TestData) string {
		x, err := Read("in", strings.NewReader(d.Input))
		if err != nil {
			return err.Error()
		}
		return describe(x)
	})
}

// describe prints a table as the tests read it: its parameters, and for each point what
// was read of it.
func describe(x *Table) string {
	var b strings.Builder
	fmt.Fprintln(&b, x.Header.Name)
	for _, p := range x.Space.Parameters {
		order := "ascending"
		if p.Unordered {
			order = "unordered"
		}
		fmt.Fprintf(&b, "%s: %s %s\n", p.Name, order, strings.Join(p.Values, " "))
	}
	plans, err := x.Plans()
	for k := range x.Space.Points {
		fmt.Fprintf(&b, "%s: %.6g s, %d samples", x.Text(k), x.Seconds[k], len(x.Samples[k]))
		if f := x.Failures[k]; f != "" {
			fmt.Fprintf(&b, ", failed: %s", f)
		}
		if err == nil && x.Header.Plan != "" {
			fmt.Fprintf(&b, ", plan %s", plans[k])
		}
		fmt.Fprintln(&b)
	}
	if err != nil {
		fmt.Fprintln(&b, err)
	}
	return strings.TrimSpace(b.String())
}

// TestGzip reads a compressed table, and refuses one that is cut off.
func TestGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, `{"parameters":[{"name":"a","type":"integer"}]}`+"\n"+`{"values":[1],"seconds":2}`)
	z.Close()
	x, err := Read("in.gz", &b)
	if err != nil || x.Best() != 2 {
		t.Fatal(x, err)
	}
	if _, err := Read("cut.gz", strings.NewReader("\x1f\x8b\x08")); err == nil {
		t.Error("a compressed file without an end is taken")
	}
}

// TestExpressions compares expressions with their values, and names those that have
// none: a parameter that is not there, a call, an operator that is not listed.
func TestExpressions(t *testing.T) {
	names := map[string]float64{"a": 6, "b": 4, "r": 1.5}
	for text, want := range map[string]float64{
		"a % b": 2, "a // b": 1, "a / b": 1, "r / b": 0.375, "-a + 2 * (b - 1)": 0,
		"a > b and not (b > a)": 1, "a == b or b != 4": 0, "a >= 6 && b <= 3": 0, "!r": 0, "a < b": 0,
	} {
		e, err := parseExpression(text)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := e.value(names); err != nil || v != want {
			t.Errorf("%s = %g, %v; want %g", text, v, err, want)
		}
	}
	for _, text := range []string{"a +", "c", "f(a)", "a << b", "-c", "a + c", "a[1]", "+a", `"x"`} {
		e, err := parseExpression(text)
		if err == nil {
			_, err = e.value(names)
		}
		if err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// FuzzRead feeds anything, beginning with the shortest table of each format: what is read is a table whose numbers make sense.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"parameters":[{"name":"a","type":"integer"}],"plan":"{a},1"}` + "\n" + `{"values":[1],"seconds":2}`,
		`{"tune_params_keys":["x"],"tune_params":{"x":[1]},"cache":{"1":{"x":1,"time":3,"times":[3]}`,
		`{"results":[{"configuration":{"x":1},"invalidity":"correct","measurements":[{"name":"time","value":1}]}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := Read("in", bytes.NewReader(text))
		if err != nil {
			return
		}
		if b := x.Best(); !(b > 0) || math.IsInf(b, 1) {
			t.Errorf("the best time is %g", b)
		}
		x.Plans()
	})
}
