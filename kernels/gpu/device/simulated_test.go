package device_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/simulated"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

func session(t *testing.T, sheet device.Spec) *device.Session {
	t.Helper()
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return simulated.Open(sheet, sim.Options{Races: true, Uninitialised: true})
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSpin: the reference kernel assembles and runs on every target, adds up what it
// should, and reads both clocks.
func TestSpin(t *testing.T) {
	for _, sheet := range device.Specs() {
		w, err := device.ReferenceKernel(sheet)
		if err != nil {
			t.Fatal(err)
		}
		s := session(t, sheet)
		out := []kernels.Buffer{{Data: make([]byte, 24)}}
		if _, err := s.Run(t.Context(), w, nil, out); err != nil {
			t.Fatalf("%s: %v", sheet.Name, err)
		}
		if x := math.Float32frombits(binary.LittleEndian.Uint32(out[0].Data[16:])); x != 2 {
			t.Errorf("%s: the sum is %v, want 2", sheet.Name, x)
		}
		if binary.LittleEndian.Uint64(out[0].Data) == 0 {
			t.Errorf("%s: no cycles went by", sheet.Name)
		}
		if _, err := s.Sample(
			t.Context(), w, []kernels.Set{{Out: out}}, 1,
		); err != device.ErrUntimed {
			t.Errorf("%s is timed: %v", sheet.Name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDeadline: a kernel that runs past its deadline ends, as the simulator is
// asked to.
func TestDeadline(t *testing.T) {
	sheet, _ := device.ParseSpec("A100")
	s := session(t, sheet)
	defer s.Close()
	w := &device.Executable{PTX: `.version 8.0
.target sm_80
.address_size 64
.visible .entry forever()
{
again:
	bra.uni again;
}
`, Steps: []device.Step{{Entry: "forever", Block: device.Dim3{X: 32}}}}
	limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := s.Run(limited, w, nil, nil); err == nil ||
		time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// TestStamps: the kernel that reads the clocks assembles and runs on every
// target and stamps each SM; a clock that changes between launches is seen.
func TestStamps(t *testing.T) {
	for _, sheet := range device.Specs() {
		w, err := device.Stamps(sheet)
		if err != nil {
			t.Fatal(err)
		}
		d, err := simulated.Open(sheet, sim.Options{Races: true, Uninitialised: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
			return d, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		read := func() []device.Stamp {
			out := []kernels.Buffer{{Data: make([]byte, sheet.SMs*device.StampBytes)}}
			if _, err := s.Run(t.Context(), w, nil, out); err != nil {
				t.Fatalf("%s: %v", sheet.Name, err)
			}
			return device.ReadStamps(out[0].Data)
		}
		stamped := read()
		// The stream is held up once only: a simulator takes its time.
		w.Steps[0].Args[1] = device.Value(device.U32Arg(1))
		for k, x := range stamped {
			if ns, sm := x.Where(); ns == 0 || sm != uint64(k) {
				t.Errorf("%s: block %d stamps %+v", sheet.Name, k, x)
			}
		}
		for _, hertz := range []float64{1.98e9, 1.2e9} {
			d.SetClock(hertz)
			before := read()
			for range 20 {
				read()
			}
			if got := device.ClockBetween(before, read()); math.Abs(got/hertz-1) > 0.01 {
				t.Errorf("%s: the clock is %.4g Hz, want %.4g", sheet.Name, got, hertz)
			}
		}
	}
}
