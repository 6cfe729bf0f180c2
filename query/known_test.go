package query

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels/cpu"
)

const knownDevice = "cpu:test"

// openKnown is a store of a database with one winner, and what writes to its file.
func openKnown(t *testing.T) (s *Store, writer *cache.DB, r cache.Record) {
	t.Helper()
	path := stored(t, false, knownDevice)
	s, err := Open(path, DeviceOf(renamed{cpu.New(), knownDevice}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	writer = cache.Open(path)
	for r, err = range writer.All() {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s, writer, r
}

// ask is the answer to the text of the tests.
func ask(t *testing.T, s *Store) Winner {
	t.Helper()
	l, err := s.Lookup(t.Context(), text(t), "", false)
	if err != nil || len(l.Fusions) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	return l.Fusions[0]
}

// TestKnownFollowsTheFile: whatever happens to the file, what is remembered answers as a
// store that has just been opened.
func TestKnownFollowsTheFile(t *testing.T) {
	s, writer, r := openKnown(t)
	other, far := r, r
	other.Fusion[0]++
	far.Device = "cpu:far"
	replaced := stored(t, false, "cpu:third")
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"as it was", func() error { return nil }, "exact"},
		{"another record", func() error { return writer.Replace(other) }, "exact"},
		{"slower", func() error { r.Seconds++; return writer.Replace(r) }, "exact"},
		{"deleted", func() error { _, err := writer.Delete(r.Key); return err }, "nearest"},
		{"stored again", func() error { return writer.Replace(r) }, "exact"},
		{"removed", func() error { return os.Remove(writer.Path()) }, "predicted"},
		{"of another device", func() error { return writer.Replace(far) }, "nearest"},
		{"made again", func() error { return writer.Replace(r) }, "exact"},
		{"replaced", func() error { return os.Rename(replaced, writer.Path()) }, "nearest"},
		{"written in place", func() error { return writer.Replace(r) }, "exact"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(step.name, err)
		}
		fresh, err := Open(writer.Path(), s.device)
		if err != nil {
			t.Fatal(step.name, err)
		}
		want := ask(t, fresh)
		for range 2 { // the second is remembered
			if w := ask(t, s); w.Answer != step.want || !reflect.DeepEqual(w, want) {
				t.Errorf("%s: %+v, not %+v", step.name, w, want)
			}
		}
	}
	if err := os.WriteFile(writer.Path(), make([]byte, 8192), 0o644); err != nil {
		t.Fatal(err)
	}
	if w, err := s.Get(r.Fusion); err == nil {
		t.Errorf("zeros in the place of the file: %+v", w)
	}
}

// TestKnownTakesNoLock: what is remembered is answered while another process holds the
// file.
func TestKnownTakesNoLock(t *testing.T) {
	s, writer, r := openKnown(t)
	missed := r.Fusion
	missed[0]++
	want := []Winner{ask(t, s), {}}
	want[1], _ = s.Get(missed)
	held, err := bbolt.Open(writer.Path(), 0o666, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	again, err := s.Get(missed)
	if got := []Winner{ask(t, s), again}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// writtenBy is the environment variable by which a test runs itself as a writer.
const writtenBy = "TILEWRIGHT_QUERY_WRITES"

// TestKnownBesideAWriter: another process stores slower and slower winners; none of them
// is answered after a later one, and the last one is answered in the end.
func TestKnownBesideAWriter(t *testing.T) {
	const writes = 60
	if path := os.Getenv(writtenBy); path != "" {
		db := cache.Open(path)
		for r, err := range db.All() {
			for n := 0; n < writes && err == nil; n++ {
				r.Seconds++
				err = db.Replace(r)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	s, writer, r := openKnown(t)
	child := exec.Command(os.Args[0], "-test.run=TestKnownBesideAWriter$")
	child.Env = append(os.Environ(), writtenBy+"="+writer.Path())
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- child.Wait() }()
	last, changes := 0.0, 0
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
		w, err := s.Get(r.Fusion)
		if err != nil || w.Seconds < last {
			t.Fatalf("%v after %v, %v", w.Seconds, last, err)
		}
		if w.Seconds > last {
			last = w.Seconds
			changes++
		}
	}
	if last != r.Seconds+writes {
		t.Errorf("in the end it is %v, not %v", last, r.Seconds+writes)
	}
	t.Logf("%d of %d winners were seen", changes, writes+1)
}

// BenchmarkKnown asks a database for one winner again and again.
func BenchmarkKnown(b *testing.B) {
	db := cache.Open(filepath.Join(b.TempDir(), "t.db"))
	r := cache.Record{Key: cache.Key{Device: "cpu:test", Backend: "cpu"}, Canonical: "text", Plan: "8", Seconds: 1}
	if _, err := db.Put(r); err != nil {
		b.Fatal(err)
	}
	d := Device{}
	d.Identity.Device, d.Identity.Backend = r.Device, r.Backend
	s, err := Open(db.Path(), d)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if w, err := s.Get(r.Fusion); err != nil || w.Answer != "exact" {
			b.Fatal(w, err)
		}
	}
}
