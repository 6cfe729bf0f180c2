package tilewright_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// TestCorridor walks a module from text to a looked-up winner, a snapshot and
// a page.
func TestCorridor(t *testing.T) {
	file := "testdata/hlo/mlp_block.hlo"
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := hlo.Parse(file, src)
	if err != nil {
		t.Fatal(err)
	}
	db := cache.Open(filepath.Join(t.TempDir(), "t.db"))
	var kinds []string
	tn := &tuner.Tuner{Backend: cpu.New(), Cache: db, Options: tuner.Options{
		Candidates: 4,
		Budget:     300 * time.Millisecond,
		Observe: func(e tuner.Event) {
			if _, phase := e.(tuner.Began); !phase {
				kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", e), "tuner."))
			}
		},
	}}
	page := report.Page{Device: tn.Backend.Device()}
	for _, c := range m.Fusions() {
		if _, found, err := tn.Lookup(c); found || err != nil {
			t.Fatalf("%s is known before it was tuned, %v", c.Name, err)
		}
		r, err := tn.Tune(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		again, found, err := tn.Lookup(c)
		if !found || err != nil || again.Record.Plan != r.Record.Plan || !again.Record.Checked {
			t.Errorf("%s: looked up %+v, %v", c.Name, again.Record.Plan, err)
		}
		page.Records = append(page.Records, again.Record)
	}
	checkSnapshot(t, db, page.Records)
	checkPage(t, page)
	if trace := strings.Join(kinds, " "); !strings.Contains(trace, "Ranked Started Timed") ||
		kinds[len(kinds)-1] != "Chosen" {
		t.Errorf("events: %s", trace)
	}
}

func checkSnapshot(t *testing.T, db *cache.DB, records []cache.Record) {
	path := filepath.Join(t.TempDir(), "snapshot")
	if n, err := db.Publish(path); n != len(records) || err != nil {
		t.Fatalf("%d records published, %v", n, err)
	}
	s, err := cache.OpenSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, r := range records {
		var hit cache.Hit
		if ok, err := s.Get(&r.Key, &hit); !ok || string(hit.Plan) != r.Plan {
			t.Errorf("%s: the snapshot says %q, %v, %v", r.Name, hit.Plan, ok, err)
		}
	}
}

// checkPage renders twice: the same bytes, and everything in them.
func checkPage(t *testing.T, p report.Page) {
	var a, b strings.Builder
	if err := report.HTML(&a, p); err != nil {
		t.Fatal(err)
	}
	if err := report.HTML(&b, p); err != nil || a.String() != b.String() {
		t.Errorf("the page is not the same twice, %v", err)
	}
	for _, r := range p.Records {
		plan := kernels.PlanNamesOfText(context.Background(), r.Canonical).Stored(r.Plan)
		if !strings.Contains(a.String(), plan) ||
			!strings.Contains(a.String(), r.Name) {
			t.Errorf("%s is not on the page", r.Name)
		}
	}
	for _, outside := range []string{"http://", "https://", "<script", "src="} {
		if strings.Contains(a.String(), outside) {
			t.Errorf("the page contains %s", outside)
		}
	}
}
