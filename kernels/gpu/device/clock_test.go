package device

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
)

// TestClockBetween: only what one SM counted is compared, and what cannot be
// told is unknown.
func TestClockBetween(t *testing.T) {
	for name, c := range map[string]struct {
		before, after []stamp
		want          float64
	}{
		"one SM": {[]stamp{
			{5, 100, 3},
		}, []stamp{{150_005, 100_100, 3}}, 1.5e9},
		"in another order": {
			[]stamp{{5, 100, 0}, {1 << 50, 100, 1}},
			[]stamp{{1<<50 + 150_000, 100_100, 1}, {150_005, 100_100, 0}},
			1.5e9,
		},
		"another SM": {[]stamp{
			{5, 100, 3},
		}, []stamp{{150_005, 100_100, 4}}, 0},
		"one stood still": {
			[]stamp{{5, 100, 0}, {5, 100, 1}},
			[]stamp{{7, 100_100, 0}, {150_005, 100_100, 1}},
			1.5e9,
		},
		"no step seen before": {[]stamp{
			{5, 0, 3},
		}, []stamp{{150_005, 100_100, 3}}, 0},
		"no step seen after": {[]stamp{
			{5, 100, 3},
		}, []stamp{{150_005, 0, 3}}, 0},
		"too short": {[]stamp{
			{5, 100, 3},
		}, []stamp{{70_005, 50_000, 3}}, 0},
		"it began anew": {[]stamp{
			{150_005, 100, 3},
		}, []stamp{{5, 100_100, 3}}, 0},
		"nothing": {},
	} {
		if got := clockBetween(c.before, c.after); got != c.want {
			t.Errorf("%s: %g Hz, want %g", name, got, c.want)
		}
	}
}

// TestSampleClock: the clock of each sample is known. One that dips is taken
// again, one at a clock that stays is believed after a while.
func TestSampleClock(t *testing.T) {
	toy := newFakeDriver()
	toy.dips = map[int]float64{5: 1.3e9, 10: 1.3e9, 11: 1.3e9, 12: 1.3e9, 14: 1.48e9}
	s, err := NewSession(t.Context(), func(context.Context) (Driver, error) { return toy, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, out := arraysOf16()
	in[0].Data = append(in[0].Data, make([]byte, 1<<14)...) // so that there are few sets
	sets := []kernels.Set{{In: in, Out: out}}
	sample := func(n int) {
		for range n {
			if _, err := s.Sample(t.Context(), toyWork("double"), sets, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	sample(12)
	var seen []string
	for _, e := range s.Samples() {
		seen = append(seen, fmt.Sprintf("%d: %.2f GHz, %d", e.Number, e.Hertz/1e9, e.Attempts))
	}
	want := []string{"1: 1.50 GHz, 1", "2: 1.50 GHz, 1", "3: 1.50 GHz, 1", "4: 1.50 GHz, 1",
		"5: 1.50 GHz, 2", // bursts 5 and 6
		"6: 1.50 GHz, 1", "7: 1.50 GHz, 1", "8: 1.50 GHz, 1",
		"9: 1.30 GHz, 3", // bursts 10 to 12
		"10: 1.50 GHz, 1",
		"11: 1.48 GHz, 1", // burst 14: not 2 % off
		"12: 1.50 GHz, 1"}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q", seen)
	}
	saw := s.SampleQuality().Clock
	if row, want := s.Samples()[0].Row(saw), "1\t1500\tfalse\t1\t8\t8\t1500\t0.0002666666666666667\tfalse"; row != want {
		t.Errorf("a row %q, want %q", row, want)
	}
	if row, want := s.Samples()[8].Row(saw), "9\t1300\ttrue\t3\t8\t8\t\t\t"; row != want {
		t.Errorf("a row %q, want %q", row, want)
	}
	// Each graph is launched twice, behind a kernel that lasts longer than the host takes.
	if got, want := toy.held, slices.Repeat([]uint32{holdSteps(8)}, 2*toy.bursts); !slices.Equal(got, want) {
		t.Errorf("the stream was held up for %d steps, not %d", got, want)
	}
	e := s.SampleQuality()
	if e.Samples != 12 || e.Resampled != 3 || e.Outliers != 1 ||
		e.Clock.Known != 12 ||
		math.Abs(e.Clock.Lowest/1.3e9-1) > 1e-4 ||
		math.Abs(e.Clock.Median/1.5e9-1) > 1e-4 {
		t.Errorf("evidence %+v: %s", e, e)
	}
	toy.clock = 1.2e9 // and it stays there
	begun := toy.bursts
	sample(100)
	if more := toy.bursts - begun - 100; more < 4 || more > freeResamples+112/samplesPerResample {
		t.Errorf("%d samples more than 100 were taken at a clock that stays", more)
	}
	begun = toy.bursts
	sample(20)
	if toy.bursts-begun != 20 {
		t.Errorf("%d samples were taken for 20 at a clock that has long been the usual one", toy.bursts-begun)
	}
}

// TestTimerOfLongSteps: where the device's timer does not move while it is looked
// at, the clock is unknown, and nothing is taken again.
func TestTimerOfLongSteps(t *testing.T) {
	d := newFakeDriver()
	s, err := NewSession(t.Context(), func(context.Context) (Driver, error) {
		return blind{d}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, out := arraysOf16()
	in[0].Data = append(in[0].Data, make([]byte, 1<<14)...) // so that there are few sets
	for range 5 {
		got, err := s.Sample(
			t.Context(), toyWork("double"),
			[]kernels.Set{{In: in, Out: out}},
			1,
		)
		if err != nil || got.Hertz != 0 || got.Seconds == 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if e := s.SampleQuality(); e.Samples != 5 ||
		e.Clock.Known != 0 || e.Resampled != 0 || e.Outliers != 0 {
		t.Errorf("evidence %+v", e)
	}
}

// A blind device's stamps have no time.
type blind struct{ *fakeDriver }

func (d blind) CopyOut(b []byte, a Address) error {
	err := d.fakeDriver.CopyOut(b, a)
	for k := 0; len(b) == 2*4*stampBytes && k < len(b); k += stampBytes {
		binary.LittleEndian.PutUint64(b[k+8:], 0)
	}
	return err
}

// BenchmarkSample is what the host does for a sample of 100 launches, of which
// the device, a toy in a process of its own, takes no time.
func BenchmarkSample(b *testing.B) {
	s, err := NewSession(b.Context(), openers()["child"])
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	in, out := arraysOf16()
	in[0].Data = append(in[0].Data, make([]byte, 1<<14)...)
	sets := []kernels.Set{{In: in, Out: out}}
	for b.Loop() {
		if _, err := s.Sample(b.Context(), toyWork("double"), sets, 100); err != nil {
			b.Fatal(err)
		}
	}
}
