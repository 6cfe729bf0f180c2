package kernels

import (
	"encoding/json"
	"testing"
)

func TestEvidence(t *testing.T) {
	const anchors = "clock 1755 to 1980 MHz over 3 anchors, the slowest 2.5 % over the fastest; 1 samples taken again; 40 launches a sample over 4 sets of arrays"
	e := SampleQuality{Launches: 40, Sets: 4}
	e.AddReference(1.755e9, 2.05e-4, false)
	e.AddReference(1.98e9, 2e-4, true)
	e.AddReference(1.97e9, 2e-4, false)
	says(t, e, anchors)
	e.SetClocks([]float64{0, 0})
	says(t, e, "clock unknown in all 2 samples; "+anchors)
	e.Resampled = 5
	e.SetClocks([]float64{1.98e9, 1.96e9, 0, 1.5e9, 1.97e9})
	e.Winner = ClockStatsOf([]float64{1.96e9, 1.97e9})
	says(t, e, "clock 1500 to 1980 MHz, median 1965 over 5 samples, 1 of them over 2 % off it, 5 taken again for that, 1 unknown; the winner's 1960 to 1970 MHz, median 1965; "+anchors)
	for _, none := range []string{"", "{}", "[1]", `{"anchors":"many"}`} {
		if got := ParseSampleQuality(json.RawMessage(none)).String(); got != "" {
			t.Errorf("%q says %q", none, got)
		}
	}
}

// says checks what is read of a record with the evidence.
func says(t *testing.T, e SampleQuality, want string) {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if got := ParseSampleQuality(text).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestClocks: what is unknown does not count, and 2 % is where off begins.
func TestClocks(t *testing.T) {
	if c := ClockStatsOf([]float64{0, 0}); c != (ClockStats{}) || c.Outlier(1e9) {
		t.Errorf("of nothing: %+v", c)
	}
	c := ClockStatsOf([]float64{3e9, 0, 1e9, 2e9, 2e9})
	if c != (ClockStats{1e9, 2e9, 3e9, 4}) {
		t.Errorf("%+v", c)
	}
	for hertz, want := range map[float64]bool{
		0:       false,
		2e9:     false,
		1.961e9: false,
		2.039e9: false,
		1.959e9: true,
		2.041e9: true,
	} {
		if c.Outlier(hertz) != want {
			t.Errorf("%g Hz is off: %t", hertz, !want)
		}
	}
}
