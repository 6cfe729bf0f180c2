package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/tilewright/tilewright/tuner"
)

// A status shows how tuning goes: one live line on a terminal, and a plain
// line for every fusion when it is done.
type status struct {
	out    io.Writer // lines for finished fusions
	live   io.Writer // the live line; nil when there is no terminal
	width  int
	shown  bool
	colour bool

	fusionName string
	tried, of  int
	best       string
}

func newStatus(c *call) *status {
	s := &status{out: c.out, width: 80}
	if c.json {
		s.out = c.err
	}
	f, ok := c.err.(*os.File)
	if ok && term.IsTerminal(int(f.Fd())) {
		s.live = f
		s.colour = os.Getenv("NO_COLOR") == ""
		w, _, err := term.GetSize(int(f.Fd()))
		if err == nil && w > 20 {
			s.width = w
		}
	}
	return s
}

// observe reads the event stream.
func (s *status) observe(e tuner.Event) {
	if s.live == nil {
		return
	}
	switch e.Kind {
	case "start":
		s.fusionName = e.Fusion
		s.tried = 0
		s.of = e.Of
		s.best = ""
	case "tried", "checked":
		s.tried = e.Tried
	case "failed":
		s.tried++
	case "block":
		s.best = fmt.Sprintf(
			"best %s, %.2f× the default, %d in the race",
			tuner.Seconds(e.Seconds), e.Ratio, e.Live,
		)
	default:
		return
	}
	line := fmt.Sprintf(
		"%s: %d/%d candidates", s.fusionName, s.tried, s.of,
	)
	if s.best != "" {
		line += ", " + s.best
	}
	if e.Left > 0 {
		line += fmt.Sprintf(", %.0f s left", e.Left)
	}
	s.show(line)
}

func (s *status) show(line string) {
	if runes := []rune(line); len(runes) >= s.width {
		line = string(runes[:s.width-1])
	}
	if s.colour {
		line = "\x1b[2m" + line + "\x1b[0m"
	}
	fmt.Fprint(s.live, "\r\x1b[K", line)
	s.shown = true
}

// done clears the live line.
func (s *status) done() {
	if s.shown {
		fmt.Fprint(s.live, "\r\x1b[K")
		s.shown = false
	}
}

// fusion prints what became of one.
func (s *status) fusion(t tunedJSON) {
	s.done()
	switch {
	case t.Error != "":
		fmt.Fprintf(s.out, "%s: failed: %s\n", t.Fusion, t.Error)
	case t.Refused != "":
		fmt.Fprintf(s.out, "%s: refused: %s\n", t.Fusion, t.Refused)
	case t.Hit && t.Untimed:
		fmt.Fprintf(
			s.out, "%s: known: %s, predicted %s: nothing was timed\n",
			t.Fusion, t.Plan, tuner.Seconds(t.Seconds),
		)
	case t.Untimed:
		fmt.Fprintf(
			s.out, "%s: plan %s, predicted %s, %s by the cost model: nothing was timed; %d checked, %d offered%s\n",
			t.Fusion, t.Plan,
			tuner.Seconds(t.Seconds), predictedText(t),
			t.Tried, t.Legal, tiesText(t.Ties),
		)
	case t.Hit:
		fmt.Fprintf(
			s.out, "%s: known: %s, %s\n",
			t.Fusion, t.Plan, tuner.Seconds(t.Seconds),
		)
	default:
		fmt.Fprintf(
			s.out, "%s: %s, plan %s, %s; regret %s of %d tried, %d offered%s\n",
			t.Fusion, tuner.Seconds(t.Seconds),
			t.Plan, speedupText(t), regretText(t.Regret),
			t.Tried, t.Legal, tiesText(t.Ties),
		)
	}
}

// predictedText compares with the default by the model.
func predictedText(t tunedJSON) string {
	if t.Plan == t.Default {
		return "the default, the best"
	}
	return fmt.Sprintf("%.2f× the default's speed", t.Speedup[0])
}

// speedupText compares with the default, no further than the evidence goes.
func speedupText(t tunedJSON) string {
	if t.Plan == t.Default {
		return "the default, which nothing beat"
	}
	return fmt.Sprintf(
		"%.2f× the default's speed (%.2f–%s)",
		t.Speedup[0], t.Speedup[1],
		strings.TrimSuffix(upperText(t.Speedup[2]), "×"),
	)
}

func upperText(x float64) string {
	if x == 0 {
		return "?"
	}
	return fmt.Sprintf("%.2f", x)
}

func tiesText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", tied with %d", n)
}

// regretText prints an upper bound.
func regretText(x float64) string {
	if x < 0 {
		return "unknown"
	}
	return fmt.Sprintf("≤ %.1f%%", 100*x)
}
