package device

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels"
)

// A SampleRecord is how one sample was taken.
type SampleRecord struct {
	// Number counts the samples of the session from 1.
	Number int
	// Hertz is the clock of the SMs during the sample, by their own cycle counters
	// against the device's timer; 0 where it is not known.
	Hertz float64
	// Attempts is how often the sample was taken; the last attempt counts.
	Attempts int
	// Launches is the number of launches of its graph, over Sets sets of arrays in
	// turn.
	Launches int
	Sets     int // of arrays that it went through in turn
	// Reference is the timing of the reference kernel after this sample; zero where it
	// was not timed.
	Reference ReferenceTiming
}

// A ReferenceTiming is one timing of the reference kernel.
type ReferenceTiming struct {
	// Hertz is the clock of the SM that it ran on.
	Hertz float64
	// Seconds is its time.
	Seconds float64
	// Drifted is set where the time differs by more than 2 % from the time before, so
	// that the sample was repeated.
	Drifted bool
}

// SampleHeader names the columns of SampleRecord.Row.
const SampleHeader = "sample\tSM clock MHz\toff\ttaken\tlaunches\tsets in turn\tanchor clock MHz\tanchor seconds\tdrifted"

// Row is the record as a line of a table, given the clocks of the session. Values that
// are not known are empty.
func (e SampleRecord) Row(session kernels.ClockStats) string {
	reference := "\t\t"
	if e.Reference.Seconds > 0 {
		reference = fmt.Sprintf(
			"%s\t%g\t%t", megahertz(e.Reference.Hertz),
			e.Reference.Seconds, e.Reference.Drifted,
		)
	}
	return fmt.Sprintf(
		"%d\t%s\t%t\t%d\t%d\t%d\t%s",
		e.Number, megahertz(e.Hertz),
		session.Outlier(e.Hertz), e.Attempts,
		e.Launches, e.Sets, reference,
	)
}

// megahertz is a clock in MHz; "" where it is not known.
func megahertz(hertz float64) string {
	if hertz == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", hertz/1e6)
}

const (
	// MaxRecords bounds the records that are kept; the older half is dropped beyond.
	maxRecords = 1 << 16
	// MinKnownClocks is the number of known clocks from which on their median is used.
	minKnownClocks = 3
	// MedianWindow is the number of samples that the median is taken over.
	medianWindow = 64
	// MaxResamples bounds the repetitions of one sample because of its clock.
	maxResamples = 2
	// FreeResamples bounds the repetitions of a session, with one more for every
	// samplesPerResample samples, so that a device that stays at another clock is
	// accepted.
	freeResamples      = 16
	samplesPerResample = 8 // samples: a device that stays at another clock is believed
)

// Samples lists how the session's samples were taken, in order.
func (s *Session) Samples() []SampleRecord { return s.records }

// record appends a record.
func (s *Session) record(e SampleRecord) {
	if len(s.records) == maxRecords {
		s.records = slices.Delete(s.records, 0, maxRecords/2)
	}
	s.records = append(s.records, e)
}

// resample takes a sample, and repeats it while its clock is an outlier among the
// samples before.
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

// hertz has the clocks of samples.
func hertz(all []SampleRecord) []float64 {
	clocks := make([]float64, len(all))
	for k, e := range all {
		clocks[k] = e.Hertz
	}
	return clocks
}

// SampleQuality sums up all samples; it is the zero value before the first.
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
