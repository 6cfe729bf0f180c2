package tuner

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// A compiler on another machine finds a winner with a written-down identity, in
// the database and in a snapshot, without a backend.
func TestLookupByWrittenIdentity(t *testing.T) {
	l := newLab(6, 0.02, 2e-3, 1e-3)
	dir := t.TempDir()
	tn := l.tuner(filepath.Join(dir, "t.db"), Options{})
	tuned, err := tn.Tune(context.Background(), fusionOf(t))
	if err != nil {
		t.Fatal(err)
	}
	id, err := kernels.ParseIdentity([]byte(`{"device":"lab","backend":"lab","revision":"1","safe":{"driver":"8"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r, found, err := Lookup(cache.Open(filepath.Join(dir, "t.db")), fusionOf(t), id)
	if !found || err != nil || r.Record.Plan != tuned.Record.Plan || len(r.SafeGap) != 1 {
		t.Errorf("database: %v, %v, %+v", found, err, r)
	}
	path := filepath.Join(dir, "snapshot")
	if _, err := tn.Cache.Publish(path); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	w, found, err := s.Lookup(fusionOf(t), id)
	if err := errors.Join(err, s.Close()); err != nil || !found {
		t.Fatalf("snapshot: %v, %v", found, err)
	}
	if w.Plan.String() != tuned.Record.Plan || w.Seconds != tuned.Record.Seconds || len(w.SafeGap) != 1 {
		t.Errorf("snapshot: %+v", w)
	}
	id.Revision = "2"
	if _, found, err := Lookup(tn.Cache, fusionOf(t), id); found || err != nil {
		t.Errorf("another revision: %v, %v", found, err)
	}
}

func TestNothingRanIsTyped(t *testing.T) {
	l := newLab(3, 0.02, 1e-3, 1e-3)
	l.broken = map[int64]string{0: "wrong", 1: "rejected"}
	_, err := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{}).Tune(context.Background(), fusionOf(t))
	var none *NoWinnerError
	if !errors.Is(err, ErrNothingRan) || !errors.As(err, &none) || len(none.Trials) != 2 {
		t.Fatalf("got %v", err)
	}
	if none.Trials[0].Failure != cache.FailedWrong || none.Trials[1].Failure != cache.FailedRejected {
		t.Errorf("trials: %+v", none.Trials)
	}
	if want := "main: no plan could be compiled, verified and timed\nwrong result on "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%q, want %q", err, want)
	}
}

// A hot path that keeps its key allocates nothing.
func TestSnapshotGetDoesNotAllocate(t *testing.T) {
	l := newLab(6, 0.02, 2e-3, 1e-3)
	dir := t.TempDir()
	tn := l.tuner(filepath.Join(dir, "t.db"), Options{})
	if _, err := tn.Tune(context.Background(), fusionOf(t)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "snapshot")
	if _, err := tn.Cache.Publish(path); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := Key(fusionOf(t), tn.identity())
	var hit cache.Hit
	if n := testing.AllocsPerRun(100, func() {
		if ok, _ := s.Get(&key, &hit); !ok {
			t.Error("a miss")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
