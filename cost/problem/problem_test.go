package problem

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// testdata/problems.txt has problems, with their programs as text above the plans, and
// which plans are valid; the terms of each add up.
func TestProblems(t *testing.T) {
	s := NewSolver()
	datadriven.RunTest(t, "testdata/problems.txt", func(t *testing.T, d *datadriven.TestData) string {
		var on string
		d.ScanArgs(t, "on", &on)
		quoted, _ := json.Marshal(on)
		if strings.HasSuffix(on, ".json") {
			text, err := os.ReadFile("testdata/" + on)
			if err != nil {
				t.Fatal(err)
			}
			quoted = text
		}
		text, plans, _ := strings.Cut(d.Input, "plans\n")
		a := s.Answer(t.Context(), Problem{HLO: text, Device: quoted, Plans: strings.Split(strings.TrimSpace(plans), "\n")})
		if a.Error != "" {
			return a.Error + "\n"
		}
		var b strings.Builder
		for k, valid := range a.Valid {
			if !valid {
				fmt.Fprintln(&b, "no")
				continue
			}
			sum := 0.0
			for _, term := range a.Terms[k] {
				sum += term.Seconds
			}
			if math.Abs(sum/(*a.Seconds[k])-1) > 1e-9 {
				t.Errorf("terms of plan %d add up to %v, not %v", k, sum, *a.Seconds[k])
			}
			fmt.Fprintln(&b, "yes")
		}
		if a.Why != "" {
			fmt.Fprintln(&b, a.Why)
		}
		return b.String()
	})
}

// A line that is no problem is an error; the answers before it are written.
func TestBadLine(t *testing.T) {
	var out strings.Builder
	err := AnswerAll(t.Context(), strings.NewReader("\n{\"id\":\"x\",\"device\":7}\n{"), &out)
	if err == nil || !strings.Contains(err.Error(), "line 3") || !strings.Contains(out.String(), `"error"`) {
		t.Errorf("%v, %q", err, out.String())
	}
}
