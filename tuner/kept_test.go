package tuner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tilewright/tilewright/cache"
)

// samplesOf counts the samples of trials.
func samplesOf(ts []cache.Trial) (n int) {
	for _, x := range ts {
		n += len(x.Samples)
	}
	return n
}

// interrupted is a database with an interrupted race of all plans.
func interrupted(t *testing.T, l *lab) (db string, before []cache.Trial) {
	t.Helper()
	db = filepath.Join(t.TempDir(), "t.db")
	ctx, cancel := context.WithCancel(context.Background())
	l.stop, l.stopAt = cancel, 60
	tn := l.tuner(db, Options{})
	if _, err := tn.Tune(ctx, fusionOf(t)); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted tune returned %v", err)
	}
	before, err := tn.Cache.Evidence(Key(fusionOf(t), tn.identity()))
	if err != nil || len(before) < 4 {
		t.Fatalf("%d trials kept, %v", len(before), err)
	}
	return db, before
}

// A race that is resumed with fewer candidates, or measured anew, keeps every
// sample of the interrupted one.
func TestResumeDropsNothing(t *testing.T) {
	for name, o := range map[string]Options{
		"fewer plans":    {Candidates: 2},
		"smaller budget": {Budget: time.Microsecond},
		"force":          {Force: true, Candidates: 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(5, 0.02, 2e-3, 1.5e-3, 1.0e-3, 1.02e-3)
			db, before := interrupted(t, l)
			if _, err := l.tuner(db, o).Tune(context.Background(), fusionOf(t)); err != nil {
				t.Fatal(err)
			}
			stored, _, err := l.tuner(db, o).Lookup(fusionOf(t))
			if err != nil {
				t.Fatal(err)
			}
			after := stored.Record.Trials
			if len(after) < len(before) || samplesOf(after) <= samplesOf(before) {
				t.Errorf("%d plans and %d samples become %d and %d", len(before), samplesOf(before), len(after), samplesOf(after))
			}
		})
	}
}

// A database that another process holds does not end a race: the winner is the
// result although it cannot be stored, and what was reported is in the journal.
func TestHeldDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the time limit of a writer")
	}
	l := newLab(5, 0.02, 2e-3, 1.5e-3, 1.0e-3, 1.02e-3)
	l.stopAt = 30
	db := filepath.Join(t.TempDir(), "t.db")
	if err := cache.Open(db).PutTrials(otherKey, nil); err != nil {
		t.Fatal(err)
	}
	var held *bbolt.DB
	l.stop = func() {
		var err error
		if held, err = bbolt.Open(db, 0o644, nil); err != nil {
			t.Error(err)
		}
	}
	var unkept *UnkeptError
	r, err := l.tuner(db, Options{}).Tune(context.Background(), fusionOf(t))
	if !errors.As(err, &unkept) || !errors.Is(err, cache.ErrBusy) || r.Record.Plan != "16 v=2" {
		t.Errorf("winner %q, %v", r.Record.Plan, err)
	}
	if want := ": the winner 16 v=2 is not stored; all samples are, and the next race goes on from them: "; !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := l.tuner(db, Options{}).Tune(context.Background(), fusionOf(t))
	if err != nil || samplesOf(again.Record.Trials) < samplesOf(r.Record.Trials) {
		t.Errorf("%d samples, then %d, %v", samplesOf(r.Record.Trials), samplesOf(again.Record.Trials), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(db), ".*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// A database that is held when the race begins, at the first lookup already, does
// not end it: the last write decides.
func TestHeldBeforeTheRace(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the time limit of a reader four times")
	}
	t.Parallel()
	l := newLab(5, 0.02, 2e-3, 1.5e-3, 1.0e-3, 1.02e-3)
	db := filepath.Join(t.TempDir(), "t.db")
	if err := cache.Open(db).PutTrials(otherKey, nil); err != nil {
		t.Fatal(err)
	}
	held, err := bbolt.Open(db, 0o644, nil)
	if err != nil {
		t.Fatal(err)
	}
	tn := l.tuner(db, Options{})
	busy := 0
	tn.Options.Observe = func(e Event) {
		switch e.(type) {
		case Busy:
			busy++
		case Started:
			err = held.Close()
		}
	}
	r, tuneErr := tn.Tune(context.Background(), fusionOf(t))
	if tuneErr != nil || err != nil || r.Record.Plan != "16 v=2" || busy != 2 {
		t.Errorf("winner %q, %v, %v, %d times busy", r.Record.Plan, tuneErr, err, busy)
	}
	if stored, found, err := tn.Lookup(fusionOf(t)); !found || stored.Record.Plan != r.Record.Plan {
		t.Errorf("stored is %q, %v", stored.Record.Plan, err)
	}
}

// otherKey is the key of nothing that the lab tunes.
var otherKey = cache.Key{Device: "lab", Backend: "lab"}

// What cannot be stored anywhere is said, with the interrupt and without.
func TestUnkeptTellsTheTruth(t *testing.T) {
	for name, interrupt := range map[string]bool{"interrupted": true, "done": false} {
		t.Run(name, func(t *testing.T) {
			l := newLab(5, 0.02, 2e-3, 1.5e-3, 1.0e-3, 1.02e-3)
			dir := filepath.Join(t.TempDir(), "d")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			l.stopAt = 30
			l.stop = func() {
				if interrupt {
					cancel()
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
			}
			var unkept *UnkeptError
			r, err := l.tuner(filepath.Join(dir, "t.db"), Options{}).Tune(ctx, fusionOf(t))
			if errors.Is(err, context.Canceled) != interrupt || !errors.As(err, &unkept) {
				t.Fatalf("got %v", err)
			}
			if want := ": the winner " + r.Record.Plan + " is not stored; samples that were not stored before are lost: "; !strings.Contains(unkept.Error(), want) {
				t.Errorf("got %v, want %q", unkept, want)
			}
		})
	}
}

// When a candidate is reported, its sample is stored.
func TestReportedMeansStored(t *testing.T) {
	l := newLab(5, 0.02, 2e-3, 1.5e-3, 1.0e-3, 1.02e-3)
	tn := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{})
	key := Key(fusionOf(t), tn.identity())
	reports := 0
	tn.Options.Observe = func(e Event) {
		want := 0
		switch e := e.(type) {
		case Timed:
			want = 1
		case BlockDone:
			want = e.Block
		default:
			return
		}
		reports++
		ts, err := tn.Cache.Trials(key)
		if err != nil || samplesOf(ts) < want {
			t.Errorf("%T is reported with %d samples stored, %v", e, samplesOf(ts), err)
		}
	}
	if _, err := tn.Tune(context.Background(), fusionOf(t)); err != nil {
		t.Fatal(err)
	}
	if reports < 5 {
		t.Errorf("%d reports", reports)
	}
}

// A forced race replaces a record, whatever date that has.
func TestForceReplaces(t *testing.T) {
	l := newLab(5, 0.02, 2e-3, 1.5e-3, 1.0e-3, 1.02e-3)
	tn := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{})
	first, err := tn.Tune(context.Background(), fusionOf(t))
	if err != nil {
		t.Fatal(err)
	}
	future := first.Record
	future.Plan = "16 v=1"
	future.Safe = map[string]string{"driver": "6"}
	future.When = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if kept, err := tn.Cache.Put(future); kept || err != nil {
		t.Errorf("a date in the future wins: %t, %v", kept, err)
	}
	if err := tn.Cache.Replace(future); err != nil {
		t.Fatal(err)
	}
	tn.Options.Force = true
	forced, err := tn.Tune(context.Background(), fusionOf(t))
	if err != nil {
		t.Fatal(err)
	}
	stored, _, err := tn.Lookup(fusionOf(t))
	if err != nil || stored.Record.Plan != forced.Record.Plan || forced.Record.Plan != "16 v=2" {
		t.Errorf("%s is printed, %s is stored, %v", forced.Record.Plan, stored.Record.Plan, err)
	}
}
