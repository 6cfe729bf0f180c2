package gpu

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// testdata/programs.txt has programs of random operations on arrays of random
// small extents, an empty line after each. Random plans of all give the
// reference's results.
func TestProgramsOnSimulator(t *testing.T) {
	src, err := os.ReadFile("testdata/programs.txt")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	var devices []*Backend
	for _, target := range targets {
		devices = append(devices, New(simulatedSession(t, target)))
	}
	ran := 0
	for text := range strings.SplitSeq(strings.TrimSpace(string(src)), "\n\n") {
		m, err := hlo.Parse("programs.txt", []byte(text+"\n"))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		p, err := symtile.Analyze(m.Entry)
		if err != nil {
			t.Fatal(err)
		}
		v, err := check.NewVerifier(m.Entry, 3)
		if err != nil {
			t.Fatal(err)
		}
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
			return
		}
	}
	if ran < 200 {
		t.Errorf("only %d plans ran", ran)
	}
}
