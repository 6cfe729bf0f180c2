package kernels

import (
	"encoding/json"
	"testing"
)

func TestEvidence(t *testing.T) {
	e := Evidence{Anchors: 3, Hertz: [2]float64{1.755e9, 1.98e9}, Seconds: [2]float64{2e-4, 2.05e-4}, Drifts: 1, Runs: 40, Sets: 4}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	const want = "clock 1755 to 1980 MHz over 3 anchors, the slowest 2.5 % over the fastest; 1 samples taken again; 40 launches a sample over 4 sets of arrays"
	if got := EvidenceText(text); got != want {
		t.Error(got)
	}
	for _, none := range []string{"", "{}", "[1]", `{"anchors":"many"}`} {
		if got := EvidenceText(json.RawMessage(none)); got != "" {
			t.Errorf("%q says %q", none, got)
		}
	}
}
