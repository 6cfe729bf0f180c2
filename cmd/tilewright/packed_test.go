package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/packtiming"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/layout"
	"github.com/tilewright/tilewright/tuner"
)

// decode is a product of few rows with a weight, the step of a network that decodes.
const decode = `func.func @main(%x: tensor<4x512xf32>, %w: tensor<512x1024xf32>) -> tensor<4x1024xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x512xf32>, tensor<512x1024xf32>) -> tensor<4x1024xf32>
  return %y : tensor<4x1024xf32>
}
`

// TestPackedWeightRuns: run packs a weight once where the database says that it pays, with
// the results of the reference; not where it does not, where nobody calls it a weight, or
// where a winner was found since that is as fast without. lookup answers for the fusion as
// it is all the same.
func TestPackedWeightRuns(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "decode.mlir")
	if err := os.WriteFile(file, []byte(decode), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		ratio [3]float64
		won   float64 // seconds of a winner by another plan; 0 is none
		flags []string
		want  string
	}{
		{"pays", [3]float64{0.5, 0.4, 0.6}, 0, []string{"-weights-of", "^w"}, "w"},
		{"slower winner", [3]float64{0.5, 0.4, 0.6}, 1.5e-4, []string{"-weights-of", "^w"}, "w"},
		{"does not pay", [3]float64{0.9, 0.7, 1.1}, 0, []string{"-weights-of", "^w"}, ""},
		{"no weight", [3]float64{0.5, 0.4, 0.6}, 0, nil, ""},
		{"winner found since", [3]float64{0.5, 0.4, 0.6}, 9e-5, []string{"-weights-of", "^w"}, ""},
	} {
		db := filepath.Join(t.TempDir(), "t.db")
		storePacking(t, db, c.ratio, c.won)
		if c.flags == nil {
			out := outputOf(t, runCommand, "-db", db, "-repeat", "1", file)
			if strings.Contains(out, "packed") || !strings.Contains(out, "agrees with the reference") {
				t.Errorf("%s: %s", c.name, out)
			}
			continue
		}
		var r moduleJSON
		args := append([]string{"-json", "-db", db, "-repeat", "2"}, c.flags...)
		if err := json.Unmarshal([]byte(outputOf(t, runCommand, append(args, file)...)), &r); err != nil {
			t.Fatal(err)
		}
		if unit := r.Units[0]; unit.Packed != c.want || !r.Checked {
			t.Errorf("%s: packed %q, want %q; checked %v", c.name, unit.Packed, c.want, r.Checked)
		}
		if plan := outputOf(t, lookupCommand, "-db", db, file); strings.Contains(plan, "packed") {
			t.Errorf("%s: lookup answers %s", c.name, plan)
		}
	}
}

// storePacking keeps what packing the weight of decode gains, and a winner of decode.
func storePacking(t *testing.T, db string, ratio [3]float64, won float64) {
	t.Helper()
	m, err := hlo.Parse("decode.mlir", []byte(decode))
	if err != nil {
		t.Fatal(err)
	}
	b := cpu.New()
	f := m.Fusions()[0]
	pack, ok := b.Pack(f, 1)
	if !ok {
		t.Fatal("the backend would not have the weight packed")
	}
	s := packtiming.Subject{Fusion: f, Parameter: 1, Pack: layout.Pack(pack)}
	r, err := packtiming.Measure(t.Context(), b, s, packtiming.Plans{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := r.Of(s, kernels.IdentityOf(b))
	p.InPlace, p.Packed, p.Packing, p.Ratio = 2e-4, 1e-4, 1e-4, ratio
	if err := cache.Open(db).PutPacking(p); err != nil {
		t.Fatal(err)
	}
	if won == 0 {
		return
	}
	record := cache.Record{
		Key: tuner.Key(f, kernels.IdentityOf(b)), Name: f.Name, Canonical: f.Canonical(), Plan: "4,256,512 pack=0",
		Default: p.InPlacePlan, Seconds: won, Checked: true, Speedup: [3]float64{1, 1, 1},
	}
	if _, err := cache.Open(db).Put(record); err != nil {
		t.Fatal(err)
	}
}

// outputOf is what a command prints.
func outputOf(t *testing.T, cmd command, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	c := cmd.call(args, strings.NewReader(""), &out, &errs)
	if status := c.conclude(c.work()); status != 0 {
		t.Fatalf("%s %q: status %d: %s", cmd.name, args, status, errs.String())
	}
	return out.String()
}

// TestPackBudget: a short run has time to measure one weight, a long one keeps no more than
// its weights take.
func TestPackBudget(t *testing.T) {
	for _, c := range []struct {
		run  time.Duration
		n    int
		want time.Duration
	}{
		{0, 3, 0},
		{8 * time.Second, 1, 2 * time.Second},
		{20 * time.Second, 1, maxPackTime},
		{20 * time.Second, 5, maxPackTime},
		{10 * time.Minute, 100, time.Minute},
		{10 * time.Minute, 2, 2 * maxPackTime},
	} {
		if got := packBudget(c.run, c.n); got != c.want {
			t.Errorf("%v, %d weights: %v, want %v", c.run, c.n, got, c.want)
		}
	}
}
