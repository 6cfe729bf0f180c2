package tuner

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// both asks a database and its snapshot the same, and demands the same answer.
func both(t *testing.T, db *cache.DB, c *hlo.Computation, b kernels.Backend) Answer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot")
	if _, err := db.PublishOver(path); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fromSnapshot, err := s.Answer(t.Context(), c, b)
	if err != nil {
		t.Fatal(err)
	}
	fromDB, err := AnswerFrom(t.Context(), db, c, b)
	if err != nil {
		t.Fatal(err)
	}
	if fromDB.String() != fromSnapshot.String() || fromDB.Seconds != fromSnapshot.Seconds ||
		fromDB.Regret != fromSnapshot.Regret || !slices.Equal(fromDB.Ties, fromSnapshot.Ties) {
		t.Errorf("the database says %+v, the snapshot %+v", fromDB, fromSnapshot)
	}
	return fromDB
}

// TestAnswers: every fusion with tiles has an answer, which says what it rests on and
// is legal.
func TestAnswers(t *testing.T) {
	l := newLab(6, 0.02, 2e-3, 1e-3)
	tn := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{})
	if a := both(t, cache.Open(filepath.Join(t.TempDir(), "none.db")), fusionOf(t), l); a.Basis != Default && a.Basis != Predicted {
		t.Errorf("nothing is stored: %+v", a)
	}
	tuned, err := tn.Tune(context.Background(), fusionOf(t))
	if err != nil {
		t.Fatal(err)
	}
	a := both(t, tn.Cache, fusionOf(t), l)
	if a.Basis != Exact || a.Plan.String() != tuned.Record.Plan || a.Seconds != tuned.Record.Seconds || !a.Checked ||
		a.Default != tuned.Record.Default || a.Speedup != tuned.Record.Speedup || a.When.IsZero() {
		t.Errorf("%+v", a)
	}
	for name, change := range map[string]func(r *cache.Record){
		"revision":         func(r *cache.Record) { r.Codegen = "older" },
		"measured on lab-": func(r *cache.Record) { r.Device = "lab-2 2c" },
	} {
		other := tuned.Record
		change(&other)
		db := cache.Open(filepath.Join(t.TempDir(), "other.db"))
		if _, err := db.Put(other); err != nil {
			t.Fatal(err)
		}
		a := both(t, db, fusionOf(t), l)
		if a.Basis != Nearest || a.Plan.String() != tuned.Record.Plan || a.Seconds != tuned.Record.Seconds ||
			len(a.Differs) != 1 || !strings.Contains(a.Differs[0], name) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	small, err := hlo.Parse("small", []byte("x = f32[8] parameter(0); ROOT y = f32[8] negate(x)"))
	if err != nil {
		t.Fatal(err)
	}
	a = both(t, tn.Cache, small.Entry, l)
	if a.Plan.Tiles[0] != 8 || a.Basis != Nearest || a.Regret != -1 || !a.Untimed || a.Differs[0] != "measured for other extents" {
		t.Errorf("another shape: %+v", a)
	}
}

// A stored winner that is damaged is left out of an answer, which says so; a database or
// snapshot without damage says nothing.
func TestAnswerBesideDamage(t *testing.T) {
	l := newLab(6, 0.02, 2e-3, 1e-3)
	path := filepath.Join(t.TempDir(), "t.db")
	tn := l.tuner(path, Options{})
	tuned, err := tn.Tune(t.Context(), fusionOf(t))
	if err != nil {
		t.Fatal(err)
	}
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	if _, err := tn.Cache.PublishOver(snapshot); err != nil {
		t.Fatal(err)
	}
	spoil(t, path, `"plan":"`+tuned.Record.Plan)
	spoil(t, snapshot, tuned.Record.Plan)
	fromDB, err := AnswerFrom(t.Context(), cache.Open(path), fusionOf(t), l)
	if err != nil || fromDB.Damage == "" || fromDB.Basis == Exact {
		t.Errorf("the database says %+v, %v", fromDB, err)
	}
	s, err := OpenSnapshot(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fromSnapshot, err := s.Answer(t.Context(), fusionOf(t), l)
	if err != nil || fromSnapshot.Damage == "" || fromSnapshot.Basis == Exact {
		t.Errorf("the snapshot says %+v, %v", fromSnapshot, err)
	}
}

// A plan that failed its check is not answered: neither as the default nor as the nearest.
func TestAnswerAfterFailure(t *testing.T) {
	l := newLab(6, 0.02, 2e-3, 1e-3)
	db := cache.Open(filepath.Join(t.TempDir(), "t.db"))
	k := Key(fusionOf(t), kernels.IdentityOf(l))
	wrong := cache.Trial{Plan: l.plan(0).String(), Failure: cache.FailedWrong, Detail: "output 0"}
	if err := db.PutTrials(k, []cache.Trial{wrong}); err != nil {
		t.Fatal(err)
	}
	if a, err := AnswerFrom(t.Context(), db, fusionOf(t), l); !IsUnanswered(err) || !strings.Contains(err.Error(), "output 0") {
		t.Errorf("%+v, %v", a, err)
	}
	right := cache.Trial{Plan: l.plan(1).String(), Samples: []float64{1e-3}, Blocks: []int{0}}
	if err := db.PutTrials(k, []cache.Trial{right}); err != nil {
		t.Fatal(err)
	}
	demand := func() {
		t.Helper()
		a, err := AnswerFrom(t.Context(), db, fusionOf(t), l)
		if err != nil || a.Plan.String() != right.Plan || a.DefaultFailure == "" {
			t.Errorf("%+v, %v", a, err)
		}
	}
	demand()
	other := cache.Record{
		Key:       k,
		Plan:      wrong.Plan,
		Seconds:   1e-3,
		Canonical: fusionOf(t).Canonical(),
	}
	other.Device = "lab-2 2c"
	if _, err := db.Put(other); err != nil {
		t.Fatal(err)
	}
	demand()
}

// spoil flips a bit of every place in a file that has a text.
func spoil(t *testing.T, path, text string) {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(all, []byte(text)) {
		t.Fatalf("%s has no %q", path, text)
	}
	other := []byte(text)
	other[len(other)-1] ^= 1
	if err := os.WriteFile(path, bytes.ReplaceAll(all, []byte(text), other), 0o600); err != nil {
		t.Fatal(err)
	}
}
