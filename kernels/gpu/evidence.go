package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels"
)

// Evidence is how a sample was taken, and what the clock of the SMs was.
type Evidence struct {
	Sample   int     // its number in the session, from 1
	Hertz    float64 // of the SMs while it was timed, by their own counters against the device's timer; 0: unknown
	Taken    int     // times; what is kept is the last
	Launches int     // of its graph
	Sets     int     // of arrays that it went through in turn
	Anchor   Anchor  // that was timed next; zero where none was
}

// An Anchor is a timing of a kernel that is always the same.
type Anchor struct {
	Hertz   float64 // of the SM it ran on
	Seconds float64 // it took
	Drifted bool    // from the anchor before by more than 2 %: the sample was taken again
}

// EvidenceHeader names the columns of Evidence.Row.
const EvidenceHeader = "sample\tSM clock MHz\toff\ttaken\tlaunches\tsets in turn\tanchor clock MHz\tanchor seconds\tdrifted"

// Row is the evidence of a sample as a line of a table, against the clocks of the
// session; what is not known is empty.
func (e Evidence) Row(session kernels.Clocks) string {
	anchor := "\t\t"
	if e.Anchor.Seconds > 0 {
		anchor = fmt.Sprintf("%s\t%g\t%t", megahertz(e.Anchor.Hertz), e.Anchor.Seconds, e.Anchor.Drifted)
	}
	return fmt.Sprintf("%d\t%s\t%t\t%d\t%d\t%d\t%s", e.Sample, megahertz(e.Hertz), session.Off(e.Hertz), e.Taken, e.Launches, e.Sets, anchor)
}

func megahertz(hertz float64) string {
	if hertz == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", hertz/1e6)
}

const (
	mostKept   = 1 << 16 // pieces of evidence; then the older half is forgotten
	leastKnown = 3       // clocks that have a median to be off from
	recent     = 64      // samples that the median is of
	mostAgain  = 2       // times that a sample is taken again because of its clock
	againFirst = 16      // times altogether, and once more for
	againEvery = 8       // samples: a device that stays at another clock is believed
)

// Evidence lists how the session's samples were taken, in order.
func (s *Session) Evidence() []Evidence { return s.evidence }

func (s *Session) keep(e Evidence) {
	if len(s.evidence) == mostKept {
		s.evidence = slices.Delete(s.evidence, 0, mostKept/2)
	}
	s.evidence = append(s.evidence, e)
}

// steady takes a sample, and takes it again where the clock is not what it was
// in the samples before.
func (s *Session) steady(a allowance, w *Work, sets []kernels.Set, n int, e *Evidence) (kernels.Timing, error) {
	t, err := s.sample(a, w, sets, n, e)
	usual := kernels.ClocksOf(hertz(s.evidence[max(0, len(s.evidence)-recent):]))
	for k := 0; err == nil && k < mostAgain && usual.Known >= leastKnown && usual.Off(t.Hertz) && s.again < againFirst+s.samples/againEvery; k++ {
		s.again++
		t, err = s.sample(a, w, sets, n, e)
	}
	return t, err
}

func hertz(all []Evidence) []float64 {
	clocks := make([]float64, len(all))
	for k, e := range all {
		clocks[k] = e.Hertz
	}
	return clocks
}

// Saw sums the evidence up; without any it is zero.
func (s *Session) Saw() (e kernels.Evidence) {
	all := s.Evidence()
	e.Sampled(hertz(all))
	e.Again = s.again
	for _, x := range all {
		e.Runs, e.Sets = x.Launches, x.Sets
		if x.Anchor.Seconds > 0 {
			e.Anchored(x.Anchor.Hertz, x.Anchor.Seconds, x.Anchor.Drifted)
		}
	}
	return e
}
