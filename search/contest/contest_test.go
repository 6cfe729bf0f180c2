package contest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/tilewright/tilewright/search/table"
)

var rewriteTables = flag.Bool("rewrite-tables", false, "make testdata/*.jsonl again, from their formula")

// recorded is the table of testdata: tiles of a product on a device that does not
// exist. It is made by formula, with three samples of each point that do not agree, and
// failures where the tiles of both operands do not fit. A program with HLO, a device and
// plans has prices, which are wrong about everything but traffic.
func recorded() (table.Header, []table.Line) {
	h := table.Header{
		Name: "tiles by formula",
		Parameters: []table.Parameter{
			{Name: "m", Type: "integer"}, {Name: "n", Type: "integer"},
			{Name: "warps", Type: "integer"}, {Name: "staged", Type: "flag"},
		},
		Constraints: []string{"m * n >= 32 * warps"},
		HLO:         "a = f16[1024,1024] parameter(0)\nb = f16[1024,1024] parameter(1)\np = f16[1024,1024] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
		Device:      json.RawMessage(`"A100"`),
		Plan:        "{m},{n},32 warps={warps} stages={1+2*staged}",
	}
	var lines []table.Line
	for m := 16; m <= 128; m *= 2 {
		for n := 16; n <= 128; n *= 2 {
			for warps := 1; warps <= 8; warps *= 2 {
				for staged := range 2 {
					if m*n >= 32*warps {
						lines = append(lines, recordedLine(m, n, warps, staged))
					}
				}
			}
		}
	}
	return h, lines
}

// recordedLine is a point of the table: time by traffic, by how much work a thread has,
// and by whether the next tiles are loaded meanwhile.
func recordedLine(m, n, warps, staged int) table.Line {
	var x table.Line
	for _, v := range []int{m, n, warps, staged} {
		x.Values = append(
			x.Values,
			json.RawMessage(fmt.Sprint(v)),
		)
	}
	if (m+n)*(1+2*staged) > 640 {
		x.Failure = "run"
		return x
	}
	traffic := 1/float64(m) + 1/float64(n)
	each := float64(m*n) / float64(32*warps)
	balance := 1 + 0.15*math.Abs(math.Log2(each/48))
	waiting := []float64{1.4, 1}[staged]
	seconds := 1e-5 * (0.3 + 20*traffic) * balance * waiting
	for k := range 3 {
		noise := 1 + 0.02*math.Sin(
			float64(m+3*n+7*warps+11*staged+5*k),
		)
		x.Samples = append(
			x.Samples,
			math.Round(seconds*noise*1e9)/1e9,
		)
	}
	return x
}

// TestRecorded compares the table of testdata with its formula.
func TestRecorded(t *testing.T) {
	var b bytes.Buffer
	h, lines := recorded()
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(h); err != nil {
		t.Fatal(err)
	}
	for _, x := range lines {
		if err := e.Encode(x); err != nil {
			t.Fatal(err)
		}
	}
	const file = "testdata/tiles.jsonl"
	if *rewriteTables {
		if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(stored, b.Bytes()) {
		t.Errorf("%s is not what the formula gives (%v); -rewrite-tables makes it again", file, err)
	}
}

// open reads the table of testdata.
func open(t *testing.T) *table.Table {
	t.Helper()
	x, err := table.Open("testdata/tiles.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// testdata/contests.txt has contests on the table of testdata, as text.
func TestContests(t *testing.T) {
	x := open(t)
	datadriven.RunTest(t, "testdata/contests.txt", func(t *testing.T, d *datadriven.TestData) string {
		c := Contest{Unpriced: d.HasArg("unpriced")}
		d.ScanArgs(t, "seeds", &c.Seeds)
		d.ScanArgs(t, "evaluations", &c.Evaluations)
		if d.HasArg("methods") {
			var methods string
			d.ScanArgs(t, "methods", &methods)
			c.Methods = strings.Split(methods, "+")
		}
		tables := []*table.Table{x}
		if d.HasArg("twice") {
			tables = append(tables, x)
		}
		results, err := c.Run(context.Background(), tables)
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		if err := NewDocument(c, results).Text(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	})
}

// TestPage draws a page: it is whole, and the same results give the same bytes.
func TestPage(t *testing.T) {
	c := Contest{Seeds: 2, Evaluations: 12, Unpriced: true}
	var pages [2]strings.Builder
	for k := range pages {
		results, err := c.Run(
			context.Background(),
			[]*table.Table{open(t)},
		)
		if err != nil {
			t.Fatal(err)
		}
		if err := NewDocument(c, results).HTML(&pages[k]); err != nil {
			t.Fatal(err)
		}
	}
	page := pages[0].String()
	if page != pages[1].String() {
		t.Error("two pages of one contest")
	}
	for _, want := range []string{"</html>", "<polyline", "tiles by formula", "Kirkpatrick", "NaN"} {
		if strings.Contains(page, want) == (want == "NaN") {
			t.Errorf("the page and %q", want)
		}
	}
}

// TestEnded ends a contest before it has begun: it has no results, and says why.
func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Contest{}.Run(
		ctx,
		[]*table.Table{open(t)},
	)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
