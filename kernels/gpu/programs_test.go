package gpu

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/kerneltest"
)

// testdata/programs.txt has programs of random operations on arrays of random
// small extents, an empty line after each, testdata/outputs.txt has such ones
// with several outputs, which share tiles. Random plans of all give the
// reference's results.
func TestProgramsOnSimulator(t *testing.T) {
	if ran := runPrograms(t, "testdata/programs.txt"); ran < 200 {
		t.Errorf("only %d plans ran", ran)
	}
	if ran := runPrograms(t, "testdata/outputs.txt"); ran < 150 {
		t.Errorf("only %d plans with several outputs ran", ran)
	}
}

// runPrograms verifies four plans of every program of a file, and returns the
// number of those that ran.
func runPrograms(t *testing.T, file string) (ran int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	var devices []*Backend
	for _, target := range targets {
		devices = append(devices, New(simulatedSession(t, target)))
	}
	for _, text := range kerneltest.Blocks(t, file) {
		p := kerneltest.Program(t, text)
		v := kerneltest.Verifier(t, p, 3)
		tilings := slices.Collect(p.Space.Tilings())
		for n := range 4 {
			plan := kernels.Plan{Tiles: tilings[rng.IntN(len(tilings))]}.With(
				"warps", 1<<rng.IntN(3),
			)
			if verify(t, devices[n%len(devices)], v, p, plan) {
				ran++
			}
		}
		if t.Failed() {
			t.Log(text)
			return ran
		}
	}
	return ran
}
