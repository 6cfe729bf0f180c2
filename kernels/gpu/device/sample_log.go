package device

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels"
)

// SampleRecord is how a sample was taken, and what the clock of the SMs was.
type SampleRecord struct {
	Number    int             // its number in the session, from 1
	Hertz     float64         // of the SMs while it was timed, by their own counters against the device's timer; 0: unknown
	Attempts  int             // times; what is kept is the last
	Launches  int             // of its graph
	Sets      int             // of arrays that it went through in turn
	Reference ReferenceTiming // that was timed next; zero where none was
}

// An ReferenceTiming is a timing of a kernel that is always the same.
type ReferenceTiming struct {
	Hertz   float64 // of the SM it ran on
	Seconds float64 // it took
	Drifted bool    // from the anchor before by more than 2 %: the sample was taken again
}

// SampleHeader names the columns of Evidence.Row.
const SampleHeader = "sample\tSM clock MHz\toff\ttaken\tlaunches\tsets in turn\tanchor clock MHz\tanchor seconds\tdrifted"

// Row is the evidence of a sample as a line of a table, against the clocks of the
// session; what is not known is empty.
func (e SampleRecord) Row(session kernels.ClockStats) string {
	anchor := "\t\t"
	if e.Reference.Seconds > 0 {
		anchor = fmt.Sprintf(
			"%s\t%g\t%t", megahertz(e.Reference.Hertz),
			e.Reference.Seconds, e.Reference.Drifted,
		)
	}
	return fmt.Sprintf(
		"%d\t%s\t%t\t%d\t%d\t%d\t%s",
		e.Number, megahertz(e.Hertz),
		session.Outlier(e.Hertz), e.Attempts,
		e.Launches, e.Sets, anchor,
	)
}

func megahertz(hertz float64) string {
	if hertz == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", hertz/1e6)
}

const (
	maxRecords         = 1 << 16 // pieces of evidence; then the older half is forgotten
	minKnownClocks     = 3       // clocks that have a median to be off from
	medianWindow       = 64      // samples that the median is of
	maxResamples       = 2       // times that a sample is taken again because of its clock
	freeResamples      = 16      // times altogether, and once more for
	samplesPerResample = 8       // samples: a device that stays at another clock is believed
)

// Samples lists how the session's samples were taken, in order.
func (s *Session) Samples() []SampleRecord { return s.records }

func (s *Session) record(e SampleRecord) {
	if len(s.records) == maxRecords {
		s.records = slices.Delete(s.records, 0, maxRecords/2)
	}
	s.records = append(s.records, e)
}

// resample takes a sample, and takes it again where the clock is not what it was
// in the samples before.
func (s *Session) resample(
	a timeLimit, w *Executable,
	sets []kernels.Set, n int, e *SampleRecord,
) (kernels.Timing, error) {
	t, err := s.sample(a, w, sets, n, e)
	usual := kernels.ClockStatsOf(
		hertz(s.records[max(0, len(s.records)-medianWindow):]),
	)
	for k := 0; err == nil && k < maxResamples &&
		usual.Known >= minKnownClocks && usual.Outlier(t.Hertz) &&
		s.resampled < freeResamples+s.samples/samplesPerResample; k++ {
		s.resampled++
		t, err = s.sample(a, w, sets, n, e)
	}
	return t, err
}

func hertz(all []SampleRecord) []float64 {
	clocks := make([]float64, len(all))
	for k, e := range all {
		clocks[k] = e.Hertz
	}
	return clocks
}

// SampleQuality sums up all samples; it is zero before the first.
func (s *Session) SampleQuality() (e kernels.SampleQuality) {
	all := s.Samples()
	e.SetClocks(hertz(all))
	e.Resampled = s.resampled
	for _, x := range all {
		e.Launches = x.Launches
		e.Sets = x.Sets
		if x.Reference.Seconds > 0 {
			e.AddReference(
				x.Reference.Hertz, x.Reference.Seconds, x.Reference.Drifted,
			)
		}
	}
	return e
}
