package device_test

import (
	"context"
	"testing"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/simulated"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// Matrix loops multiply as much as they are said to, and nothing is wrong with
// them; a simulator's rate is unknown.
func TestMatrixLoops(t *testing.T) {
	for name, want := range map[string][]string{"A100": {"mma.sync bf16"}, "H200": {"mma.sync bf16", "wgmma bf16"}} {
		sheet, err := device.ParseSpec(name)
		if err != nil {
			t.Fatal(err)
		}
		sheet.SMs = 2
		dev, err := simulated.Open(sheet, sim.Options{Counters: true, Races: true, Uninitialised: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
			return dev, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for n, l := range device.MatrixLoops(sheet) {
			const steps = 3
			w, out, err := l.Work(steps)
			if err != nil {
				t.Fatalf("%s: %v", l.Name, err)
			}
			if _, err := s.Run(t.Context(), w, nil, out); err != nil {
				t.Errorf("%s: %v", l.Name, err)
			}
			if done := float64(dev.Counters().MatrixFLOPs); done != 2*l.FLOPs*steps {
				t.Errorf("%s: %v flops, said to be %v", l.Name, done, 2*l.FLOPs*steps)
			}
			if l.Name != want[n] || out[0].Float(0) == 0 ||
				out[0].Float(0) == out[0].Float(1) {
				t.Errorf(
					"%s instead of %s, threads have %v and %v",
					l.Name, want[n],
					out[0].Float(0),
					out[0].Float(1),
				)
			}
		}
		all, err := s.MatrixCeilings(t.Context())
		if err != nil || len(all) != len(want) || all[0].FLOPS != 0 {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}
