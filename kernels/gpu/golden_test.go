package gpu

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/golden"
)

// Goldens are the kernels that are emitted, and an assembler has seen them, or
// the test says which it has not.
func TestGoldens(t *testing.T) {
	all, err := golden.Kernels()
	if err != nil || len(all) < 5 {
		t.Fatalf("%d goldens, %v", len(all), err)
	}
	seen, err := golden.AssemblerReports()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		sheet, err := device.ParseSpec(g.Target)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := PTX(g.Program, g.Plan, sheet); err != nil || text != g.PTX {
			t.Errorf("%s for %s: the kernel is not the one emitted (%v)", g.Name, g.Target, err)
		}
		if a, ok := seen[golden.Hash(g.PTX)]; !ok {
			t.Logf("%s for %s has not been assembled: tilewright doctor, where ptxas is, makes the row for testdata/ptxas.tsv", g.Name, g.Target)
		} else if a.Spilled > 0 || a.Target != g.Target {
			t.Errorf("%s for %s: %s", g.Name, g.Target, a.Row())
		}
	}
}

// texts is a simulator that keeps what it is given to load.
type texts struct {
	*simulator
	loaded []string
}

func (d *texts) Load(ctx context.Context, text string, o device.LoadOptions) (device.Module, error) {
	d.loaded = append(d.loaded, text)
	return d.simulator.Load(ctx, text, o)
}

// What runs of a golden is its own text, where the device can run that, and it
// gives the reference's results.
func TestGoldensRun(t *testing.T) {
	all, err := golden.Kernels()
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		dev := &texts{simulator: newSimulator(target)}
		s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
			return dev, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range all {
			runGolden(t, New(s), dev, g)
		}
	}
}

func runGolden(t *testing.T, b *Backend, device *texts, g golden.Kernel) {
	name := g.Name + " for " + g.Target + " on " + device.spec.Target
	k, err := b.CompileText(t.Context(), g.Program, g.Plan, g.Target, g.PTX)
	var no *kernels.Rejected
	if g.Target > device.spec.Target { // the last, which runs nowhere else, is the one that ends in a
		if !errors.As(err, &no) || no.Reason != "needs "+g.Target {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if text := device.loaded[len(device.loaded)-1]; text != g.PTX ||
		k.Source() != g.PTX {
		t.Errorf("%s: another text was loaded", name)
	}
	v, err := check.NewVerifier(context.Background(), g.Program.Fusion, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.For(g.Plan, true).Verify(t.Context(), k); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// Nothing says how a text is launched that is not what its plan becomes.
func TestGoldenOfAnotherText(t *testing.T) {
	all, err := golden.Kernels()
	if err != nil {
		t.Fatal(err)
	}
	b, g := New(simulatedSession(t, "H100")), all[0]
	g.PTX = strings.Replace(g.PTX, "ret;", "ret; // changed", 1)
	if _, err := b.CompileText(t.Context(), g.Program, g.Plan, g.Target, g.PTX); err == nil ||
		!strings.Contains(err.Error(), "another text") {
		t.Errorf("%v", err)
	}
}
