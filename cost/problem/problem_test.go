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

// A large product takes no less than its operations and its bytes do at the rates of the
// sheet, and not many times as long; on a GPU with more units it takes less. The plans are
// as compilers choose them.
func TestSheetBounds(t *testing.T) {
	const n = 8192
	text := fmt.Sprintf("a = f16[%[1]d,%[1]d] parameter(0)\nb = f16[%[1]d,%[1]d] parameter(1)\n"+
		"p = f16[%[1]d,%[1]d] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", n)
	s := NewSolver()
	last := 1.0
	for _, c := range []struct {
		device string
		flops  float64 // of f16
	}{
		{"V100", 125e12},
		{"MI250X", 2 * 512 * 110 * 1.7e9},
		{"MI300X", 1307.4e12},
	} {
		a := s.Answer(t.Context(), Problem{
			HLO: text, Device: json.RawMessage(`"` + c.device + `"`),
			Plans: []string{"128,128,32 stages=1 warps=4", "256,128,32 stages=1 warps=8", "128,64,32 stages=1 warps=2"},
		})
		best := math.Inf(1)
		for _, seconds := range a.Seconds {
			if seconds != nil {
				best = min(best, *seconds)
			}
		}
		least := 2.0 * n * n * n / c.flops
		t.Logf("%s: %.3g s, at the peak %.3g: %s %s", c.device, best, least, a.Why, a.Error)
		if best < least || best > 5*least || best >= last {
			t.Errorf("%s: %g s; at its peak %g, and %g on the one before", c.device, best, least, last)
		}
		last = best
	}
}
