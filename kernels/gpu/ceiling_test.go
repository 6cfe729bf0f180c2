package gpu

import (
	"context"
	"testing"
)

// Matrix loops multiply as much as they are said to, and nothing is wrong with
// them; a simulator's rate is unknown.
func TestMatrixLoops(t *testing.T) {
	for name, want := range map[string][]string{"A100": {"mma.sync bf16"}, "H200": {"mma.sync bf16", "wgmma bf16"}} {
		device := newSimulator(name)
		device.sheet.SMs = 2
		s, err := NewSession(t.Context(), func(context.Context) (Driver, error) { return device, nil })
		if err != nil {
			t.Fatal(err)
		}
		for n, l := range matrixLoops(device.sheet) {
			const steps = 3
			w, out, err := l.work(device.sheet, steps)
			if err != nil {
				t.Fatalf("%s: %v", l.name, err)
			}
			if _, err := s.Run(t.Context(), w, nil, out); err != nil {
				t.Errorf("%s: %v", l.name, err)
			}
			if done := float64(device.last.MatrixFLOPs); done != 2*float64(l.blocks)*l.flops*steps {
				t.Errorf("%s: %v flops, said to be %v", l.name, done, 2*float64(l.blocks)*l.flops*steps)
			}
			if l.name != want[n] || out[0].Float(0) == 0 || out[0].Float(0) == out[0].Float(1) {
				t.Errorf("%s instead of %s, threads have %v and %v", l.name, want[n], out[0].Float(0), out[0].Float(1))
			}
		}
		all, err := s.MatrixCeilings(t.Context())
		if err != nil || len(all) != len(want) || all[0].FLOPS != 0 {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}
