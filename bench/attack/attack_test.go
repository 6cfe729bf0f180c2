//go:build unix

package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tilewright/tilewright/cache"
)

// A mutant is determined by its number, and differs from those beside it.
func TestMutantIsDetermined(t *testing.T) {
	texts := [][]byte{[]byte("x = f32[4] parameter(0)\nROOT y = f32[4] negate(x)\n"), []byte("a b 1\nc d 2\n")}
	seen := map[string]bool{}
	for n := range 1_000 {
		text := mutant(texts, 1, n)
		if !bytes.Equal(text, mutant(texts, 1, n)) {
			t.Fatalf("number %d is not determined", n)
		}
		seen[string(text)] = true
	}
	if len(seen) < 500 {
		t.Errorf("only %d of 1,000 mutants differ", len(seen))
	}
	if string(texts[1]) != "a b 1\nc d 2\n" {
		t.Error("a text of the corpus has been changed")
	}
}

// The attack on databases notices a record that is lost, one that was never stored
// and one that is not readable.
func TestExamineNotices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	b, err := newBase(path)
	if err != nil {
		t.Fatal(err)
	}
	if harm := b.examine(path, &flipCounts{}); harm != "" {
		t.Errorf("a sound database: %s", harm)
	}
	db := cache.Open(path)
	wrong := record(3, 1)
	wrong.Plan = "1,1"
	if err := db.Replace(wrong); err != nil {
		t.Fatal(err)
	}
	if b.examine(path, &flipCounts{}) == "" {
		t.Error("another plan is not noticed")
	}
	if err := os.WriteFile(path, b.data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Delete(wrong.Key); err != nil {
		t.Fatal(err)
	}
	if b.examine(path, &flipCounts{}) == "" {
		t.Error("a lost record is not noticed")
	}
}

// The outcome of a command says when it did harm.
func TestOutcomeHarm(t *testing.T) {
	for _, c := range []struct {
		outcome
		harm bool
	}{
		{outcome{}, false},
		{outcome{code: 1, err: "no such file"}, false},
		{outcome{code: 3}, false},
		{outcome{code: 1}, true},
		{outcome{code: 2, err: "panic: x"}, true},
		{outcome{code: -1}, true},
		{outcome{timedOut: true}, true},
		{outcome{memory: 2 << 20}, true},
	} {
		if got := c.outcome.harm(); (got != "") != c.harm {
			t.Errorf("%+v: %q", c.outcome, got)
		}
	}
}

// A flip changes one to five bits and nothing else.
func TestFlip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	data := make([]byte, 3*pageSize)
	for range 200 {
		bad, bits := flip(rng, data)
		changed := 0
		for k := range bad {
			if bad[k] != data[k] {
				changed++
			}
		}
		if len(bad) != len(data) || changed > bits || bits < 1 || bits > 5 {
			t.Fatalf("%d bytes of %d changed by %d bits", changed, len(data), bits)
		}
	}
}
