package cache

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// published writes a snapshot of records without a database.
func published(t testing.TB, records ...Record) string {
	path := filepath.Join(t.TempDir(), "winners.snap")
	if err := os.WriteFile(path, snapshotBytes(records), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPublish(t *testing.T) {
	db := filled(t, 30)
	path := filepath.Join(t.TempDir(), "winners.snap")
	if n, err := db.Publish(path); n != 30 || err != nil {
		t.Fatalf("Publish: %d, %v", n, err)
	}
	old, err := OpenSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	first, _ := os.ReadFile(path)
	if _, err := db.Put(record(30)); err != nil {
		t.Fatal(err)
	}
	if n, err := db.Publish(path); n != 31 || err != nil {
		t.Fatalf("Publish over a snapshot: %d, %v", n, err)
	}
	expect(t, old, 30, 1)
	now, err := OpenSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, now, 31, 0)
	if err := now.Close(); err != nil {
		t.Fatal(err)
	}
	if _, found := now.Get(&Key{}); found {
		t.Error("a closed snapshot finds something")
	}
	if _, err := db.Delete(record(30).Key); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Publish(path); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(path); !bytes.Equal(again, first) {
		t.Error("the same winners give other bytes")
	}
	if left, _ := filepath.Glob(filepath.Join(
		filepath.Dir(path), ".*",
	)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// expect finds n records and misses the next few.
func expect(t *testing.T, s *Snapshot, n, misses int) {
	t.Helper()
	if s.Len() != n {
		t.Errorf("%d records, not %d", s.Len(), n)
	}
	for k := range n {
		r := record(k)
		hit, found := s.Get(&r.Key)
		if !found || hit.Plan != r.Plan ||
			hit.Seconds != r.Seconds || hit.SafeDiff(r.Safe) != nil {
			t.Errorf("record %d: %t, %+v", k, found, hit)
		}
	}
	for k := n; k < n+misses+20; k++ {
		r := record(k)
		if hit, found := s.Get(&r.Key); found {
			t.Errorf("record %d is not there, and found: %+v", k, hit)
		}
		r = record(k % n)
		r.Codegen += "x"
		if _, found := s.Get(&r.Key); found {
			t.Errorf("another revision is found")
		}
	}
}

// TestPublishRefuses: nothing but a snapshot is replaced, a database least of all.
func TestPublishRefuses(t *testing.T) {
	db := filled(t, 2)
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte("notes"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		db.path:                          "is there and is no tilewright snapshot",
		text:                             "is there and is no tilewright snapshot",
		dir:                              "is a directory",
		os.DevNull:                       "not a regular file",
		filepath.Join(dir, "no", "snap"): "there is no folder",
	} {
		if _, err := db.Publish(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if n, err := db.Verify(); n != 2 || err != nil {
		t.Errorf("the database suffered: %d, %v", n, err)
	}
}

// TestPublishShrinks: a snapshot is not replaced by one of fewer than half of its
// records, unless that is asked for.
func TestPublishShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for _, c := range []struct{ records, want int }{{5, 5}, {3, 3}, {1, 0}, {2, 2}} {
		n, err := filled(t, c.records).Publish(path)
		if n != c.want || errors.Is(err, ErrShrinks) != (n == 0) {
			t.Errorf("%d records: %d, %v", c.records, n, err)
		}
	}
	if n, err := filled(t, 0).PublishOver(path); n != 0 || err != nil {
		t.Errorf("PublishOver: %d, %v", n, err)
	}
}

// TestSnapshotIsAMap: for any records, what is there is found and nothing else.
func TestSnapshotIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[Key]Record{}
		name := rapid.StringN(0, 3, 3)
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			r := Record{
				Plan:    name.Draw(t, "plan"),
				Seconds: 1,
				Safe:    map[string]string{name.Draw(t, "safe"): name.Draw(t, "is")},
			}
			r.Fusion[0] = rapid.ByteRange(0, 3).Draw(t, "fusion")
			r.Device, r.Backend, r.Codegen = name.Draw(t, "device"),
				name.Draw(t, "backend"), name.Draw(t, "codegen")
			want[r.Key] = r
		}
		var all []Record
		for _, r := range want {
			all = append(all, r)
		}
		s, err := newSnapshot(snapshotBytes(all))
		if err != nil {
			t.Fatal(err)
		}
		for k, r := range want {
			hit, found := s.Get(&k)
			if !found || hit.Plan != r.Plan || hit.SafeDiff(r.Safe) != nil {
				t.Fatalf("%v: %t, %+v", k, found, hit)
			}
			k.Backend += "x"
			if _, found := s.Get(&k); found != (want[k].Seconds > 0) {
				t.Fatalf("%v is found: %t", k, found)
			}
		}
	})
}

// TestSnapshotDamaged: a flipped bit is an error at the door or a miss, and
// never another answer.
func TestSnapshotDamaged(t *testing.T) {
	var all []Record
	for k := range 6 {
		all = append(all, record(k))
	}
	data := snapshotBytes(all)
	for at := range data {
		for bit := range 8 {
			bad := bytes.Clone(data)
			bad[at] ^= 1 << bit
			s, err := newSnapshot(bad)
			if err != nil {
				continue
			}
			if at < snapshotHeaderSize {
				t.Errorf("byte %d of the header flipped: it opens", at)
			}
			for k := range all {
				hit, found := s.Get(&all[k].Key)
				if found &&
					(hit.Plan != all[k].Plan ||
						hit.Seconds != all[k].Seconds ||
						hit.Safe != SafeText(all[k].Safe)) {
					t.Fatalf("byte %d flipped: record %d is %+v", at, k, hit)
				}
			}
		}
	}
	for size := range data {
		if _, err := newSnapshot(data[:size]); err == nil {
			t.Errorf("cut to %d bytes, it opens", size)
		}
	}
	for name, bytes := range map[string][]byte{
		"empty":   nil,
		"text":    []byte(strings.Repeat("text", 100)),
		"version": append([]byte("TWSNAP99"), data[8:]...),
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, bytes, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenSnapshot(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenSnapshot(t.TempDir()); err == nil {
		t.Error("a directory opens")
	}
	if _, err := OpenSnapshot(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestSnapshotChangedInPlace: what happens to the file under a reader changes
// neither its answers nor the strings that it has handed out.
func TestSnapshotChangedInPlace(t *testing.T) {
	other := record(0)
	other.Plan = "no plan of these"
	for name, change := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 0) },
		"cut short": func(path string) error { return os.Truncate(path, 40) },
		"removed":   os.Remove,
		"zeros":     func(path string) error { return os.WriteFile(path, make([]byte, 1<<13), 0o644) },
		"another":   func(path string) error { return os.WriteFile(path, snapshotBytes([]Record{other}), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			path := published(t, record(0), record(1))
			s, err := OpenSnapshot(path)
			if err != nil {
				t.Fatal(err)
			}
			k := record(0).Key
			before, _ := s.Get(&k)
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			expect(t, s, 2, 1)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if before.Plan != record(0).Plan || before.SafeDiff(record(0).Safe) != nil {
				t.Errorf("what was handed out has become %+v", before)
			}
		})
	}
}

func TestGetAllocatesNothing(t *testing.T) {
	s, err := OpenSnapshot(published(t, record(0), record(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k, miss := record(1).Key, record(2).Key
	if n := testing.AllocsPerRun(100, func() {
		s.Get(&k)
		s.Get(&miss)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzSnapshot opens what looks like a snapshot and asks for what may be in it.
func FuzzSnapshot(f *testing.F) {
	all := []Record{record(0), record(1), record(2)}
	f.Add(snapshotBytes(all))
	f.Add(snapshotBytes(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, fixed := range [][]byte{bytes.Clone(data), fixHeader(bytes.Clone(data))} {
			s, err := newSnapshot(fixed)
			if err != nil {
				continue
			}
			for k := range all {
				s.Get(&all[k].Key)
			}
			s.Get(&Key{})
		}
	})
}

// fixHeader makes the header's checksum and length right, so that fuzzing
// comes past them.
func fixHeader(data []byte) []byte {
	if len(data) < snapshotHeaderSize {
		return data
	}
	putHeader(data, int(data[8]), int(data[12]), uint64(len(data)))
	return data
}

func snapshotOf(b *testing.B, n int) (*Snapshot, []Key) {
	all := make([]Record, n)
	keys := make([]Key, n)
	for k := range all {
		all[k] = record(k)
		all[k].Trials = nil
		keys[k] = all[k].Key
	}
	s, err := OpenSnapshot(published(b, all...))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) {
		keys[i], keys[j] = keys[j], keys[i]
	})
	return s, keys
}

// BenchmarkSnapshotGet looks up 1e5 records in random order.
func BenchmarkSnapshotGet(b *testing.B) {
	s, keys := snapshotOf(b, 100_000)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, found := s.Get(&keys[n]); !found {
			b.Fatal("a miss")
		}
		if n++; n == len(keys) {
			n = 0
		}
	}
}

// BenchmarkSnapshotHot looks up one record again and again.
func BenchmarkSnapshotHot(b *testing.B) {
	s, keys := snapshotOf(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, found := s.Get(&keys[0]); !found {
			b.Fatal("a miss")
		}
	}
}

// BenchmarkSnapshotOpen opens 1e5 records, finds one and closes.
func BenchmarkSnapshotOpen(b *testing.B) {
	all := make([]Record, 100_000)
	for k := range all {
		all[k] = record(k)
		all[k].Trials = nil
	}
	path := published(b, all...)
	for b.Loop() {
		s, err := OpenSnapshot(path)
		if err != nil {
			b.Fatal(err)
		}
		if _, found := s.Get(&all[77].Key); !found {
			b.Fatal("a miss")
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
