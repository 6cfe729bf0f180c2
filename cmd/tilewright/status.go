package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// A status shows the progress of tuning: one live line on a terminal, and a plain
// line for every fusion when it is done.
type status struct {
	// Receives the line of a fusion that is done.
	out io.Writer
	// Receives the live line; nil when there is no terminal.
	live io.Writer
	// Width of the terminal in characters.
	width int
	// The live line is not empty.
	shown bool
	// The live line is dimmed; NO_COLOR turns that off.
	colour bool

	// The fusion that is being tuned.
	fusion string
	// Candidates so far, and all of them.
	tried      int
	candidates int
	// The best candidate so far, as text.
	best string
}

// newStatus finds out whether progress can be shown: the standard error has to
// be a terminal. With -json the lines of the fusions go there too, so that the
// output is one document.
func newStatus(c *call) *status {
	s := &status{out: c.out, width: 80}
	if c.json {
		s.out = c.err
	}
	p, ok := c.err.(*printer)
	if !ok {
		return s
	}
	f, ok := p.to.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.live = f
	s.colour = os.Getenv("NO_COLOR") == ""
	w, _, err := term.GetSize(int(f.Fd()))
	if err == nil && w > 20 {
		s.width = w
	}
	return s
}

// observe updates the live line. It is a value for tuner.Options.Observe;
// without a terminal it does nothing.
func (s *status) observe(e tuner.Event) {
	if s.live == nil {
		return
	}
	var remaining time.Duration
	switch e := e.(type) {
	case tuner.Started:
		s.fusion, s.best = e.Fusion, ""
		s.tried, s.candidates = 0, e.Candidates
		remaining = e.Remaining
	case tuner.Timed:
		s.tried, remaining = e.Tried, e.Remaining
	case tuner.Verified:
		s.tried, remaining = e.Tried, e.Remaining
	case tuner.Failed:
		s.tried++
	case tuner.BlockDone:
		seconds := report.Seconds(e.Seconds)
		s.best = fmt.Sprintf("best %s, %.2f× the default, %d in the race", seconds, e.Ratio, e.Candidates)
		remaining = e.Remaining
	default:
		return
	}
	s.show(s.progress(remaining))
}

// progress is the text of the live line.
func (s *status) progress(remaining time.Duration) string {
	line := fmt.Sprintf("%s: %d/%d candidates", s.fusion, s.tried, s.candidates)
	if s.best != "" {
		line += ", " + s.best
	}
	if remaining > 0 {
		line += fmt.Sprintf(", %.0f s left", remaining.Seconds())
	}
	return line
}

// show replaces the live line.
func (s *status) show(line string) {
	line = printable(line)
	if runes := []rune(line); len(runes) >= s.width {
		line = string(runes[:s.width-1])
	}
	if s.colour {
		line = "\x1b[2m" + line + "\x1b[0m"
	}
	fmt.Fprint(s.live, "\r\x1b[K", line)
	s.shown = true
}

// clear removes the live line.
func (s *status) clear() {
	if s.shown {
		fmt.Fprint(s.live, "\r\x1b[K")
		s.shown = false
	}
}

// print prints the outcome of one fusion.
func (s *status) print(t tunedJSON) {
	s.clear()
	fmt.Fprintln(s.out, t)
}
