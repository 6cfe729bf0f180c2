package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/tilewright/tilewright/cmd/tilewright/internal/line"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// A status shows the progress of tuning: on a terminal one live line that is redrawn
// several times a second, elsewhere a line now and then; and a plain line for every
// fusion when it is done. Any goroutine may use it.
type status struct {
	mu sync.Mutex
	// Receives the line of a fusion that is done.
	out io.Writer
	// Receives messages and, where there is no terminal, lines of progress.
	err io.Writer
	// Receives the live line; nil when there is no terminal.
	live io.Writer
	// Width of the terminal in characters.
	width int
	// The live line is not empty.
	shown bool
	// The live line is dimmed; NO_COLOR turns that off.
	colour bool
	// Ends the redrawing; the second call does nothing.
	stop func()

	// What is done, if it is not about a fusion.
	text string
	// The fusion whose turn it is.
	turn tuner.Turn
	// Its phase, and when that or text began.
	phase tuner.Phase
	since time.Time
	// Candidates so far, and all of them.
	tried      int
	candidates int
	// A candidate has run, of any fusion.
	ran bool
	// The best candidate so far, as text.
	best string
	// End of the race; zero is unknown.
	raceEnd time.Time
}

// redrawn is the time between two pictures of the live line.
const redrawn = 250 * time.Millisecond

// newStatus finds out whether progress can be shown live: the standard error has to
// be a terminal; otherwise a line is printed at the interval, unless that is 0. With
// -json the lines of the fusions go to the standard error, too, so that the output is
// one document.
func newStatus(c *call, interval time.Duration) *status {
	s := &status{out: c.out, err: c.err, width: 80, since: time.Now()}
	if c.json {
		s.out = c.err
	}
	p, ok := c.err.(*printer)
	if !ok {
		p = &printer{}
	}
	if f, ok := p.to.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.live = f
		s.colour = os.Getenv("NO_COLOR") == ""
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			s.width = w
		}
		interval = redrawn
	}
	done := make(chan struct{})
	s.stop = sync.OnceFunc(func() {
		close(done)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.clear()
		s.live = nil
	})
	if interval > 0 {
		go s.redraw(interval, done)
	}
	return s
}

// redraw shows the progress at an interval until it is done.
func (s *status) redraw(interval time.Duration, done <-chan struct{}) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			s.mu.Lock()
			select {
			case <-done: // meanwhile
			default:
				s.show(now)
			}
			s.mu.Unlock()
		}
	}
}

// say shows what is done when no fusion has its turn.
func (s *status) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = fmt.Sprintf(format, args...)
	s.since = time.Now()
}

// observe takes an event over. It is a value for tuner.Options.Observe.
func (s *status) observe(e tuner.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case tuner.Turn:
		s.turn, s.text, s.phase = e, "", ""
		s.since = time.Now()
		s.best, s.tried, s.candidates = "", 0, 0
		s.raceEnd = time.Time{}
	case tuner.Began:
		if e.Phase != s.phase {
			s.phase, s.since = e.Phase, time.Now()
		}
	case tuner.Started:
		s.candidates = e.Candidates
		s.raceEnd = time.Now().Add(e.Remaining)
	case tuner.Timed:
		s.tried, s.ran = e.Tried, true
	case tuner.Verified:
		s.tried, s.ran = e.Tried, true
	case tuner.Failed:
		s.tried++
		s.ran = true
	case tuner.BlockDone:
		s.best = fmt.Sprintf("%s, %.2f× the default", report.Seconds(e.Seconds), e.Ratio)
	}
}

// measured is whether a candidate has run, or was found not to, in this process.
func (s *status) measured() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran
}

// progress is the line: the time that is left of the run, which fusion of how many,
// its name and in brackets that of the user's program, and what is done with it. A phase
// that takes longer than a second says how long it has taken.
func (s *status) progress(now time.Time) string {
	if s.text != "" {
		return line.Shorten(s.progressOf(now, ""), s.width-1)
	}
	room := s.width - 1 - utf8.RuneCountInString(s.progressOf(now, ""))
	return line.Shorten(s.progressOf(now, s.subject(room)), s.width-1)
}

// What a line of progress leaves of the name of a fusion at least, and of that of the
// user's program if it has it.
const (
	minNameWidth   = 12
	minSourceWidth = 12
)

// subject is the name of the fusion whose turn it is and, where there is room, the end of
// that of the user's program: jit(step)/layers_0/attention/dot_general says most in its last
// words, and a place, model.py:6, stands in where there is no operation. room is what the
// rest of the line leaves, in characters.
func (s *status) subject(room int) string {
	from := cmp.Or(s.turn.Source.Op, s.turn.Source.String())
	beside := room - len("( )")
	whole := utf8.RuneCountInString(from)
	if from == "" || beside < min(minNameWidth, utf8.RuneCountInString(s.turn.Fusion))+min(minSourceWidth, whole) {
		return line.Shorten(s.turn.Fusion, max(minNameWidth, room))
	}
	// Each may have what the other leaves, and half in any case.
	text := line.Shorten(s.turn.Fusion, max(beside/2, beside-whole))
	return fmt.Sprintf("%s (%s)", text, line.Tail(from, beside-utf8.RuneCountInString(text)))
}

// plans is how many plans were tried, of how many; the neighbourhood of the fastest, at
// the end, is beyond those.
func (s *status) plans() string {
	if s.tried > s.candidates {
		return report.Counted(s.tried, "plan")
	}
	return fmt.Sprintf("%d/%d plans", s.tried, s.candidates)
}

// progressOf is the line with a name for the fusion.
func (s *status) progressOf(now time.Time, fusion string) string {
	line := s.text
	if line == "" {
		line = fmt.Sprintf("%d/%d %s %s", s.turn.Number, s.turn.Of, s.turn.Purpose, fusion)
	}
	if end := s.turn.End; !end.IsZero() {
		left := max(0, end.Sub(now)).Round(time.Second)
		line = fmt.Sprintf("%d:%02d left, %s", int(left.Minutes()), int(left.Seconds())%60, line)
	}
	switch {
	case s.text != "":
	case s.best != "":
		line += ": " + s.best
	case s.candidates > 1:
		line += fmt.Sprintf(": %s, %s", s.plans(), s.phase)
	case s.phase != "":
		line += ": " + string(s.phase)
	}
	if left := s.raceEnd.Sub(now); left >= time.Second {
		line += fmt.Sprintf(", %.0f s left", left.Seconds())
	} else if took := now.Sub(s.since); took >= time.Second {
		line += fmt.Sprintf(", %.0f s", took.Seconds())
	}
	return line
}

// show replaces the live line or, where there is no terminal, prints one.
func (s *status) show(now time.Time) {
	text := report.Printable(s.progress(now))
	if s.live == nil {
		fmt.Fprintln(s.err, text)
		return
	}
	if s.colour {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	fmt.Fprint(s.live, "\r\x1b[K", text)
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
func (s *status) print(t fmt.Stringer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintln(s.out, t)
}

// printError prints a message on the standard error.
func (s *status) printError(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintln(s.err, wrapped(format, args...))
}
