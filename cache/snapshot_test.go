package cache

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// snapshotBytes is the file of some records.
func snapshotBytes(all []Record) []byte {
	data, err := snapshotOfRecords(all)
	if err != nil {
		panic(err)
	}
	return data
}

func snapshotOfRecords(all []Record) ([]byte, error) {
	folder, err := os.MkdirTemp("", "snapshot")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file, err := os.Create(filepath.Join(folder, "snap"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	spool, err := os.Create(filepath.Join(folder, "spool"))
	if err != nil {
		return nil, err
	}
	defer spool.Close()
	w := newSnapshotWriter(file, spool)
	for k := range all {
		var x storedRecord
		x.encode(&all[k], &winnerReader{safeText: SafeText(all[k].Safe)})
		w.add(&x)
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	return os.ReadFile(file.Name())
}

// answer is Get for tests of answers.
func (s *Snapshot) answer(k *Key) (hit Hit, found bool) {
	found, _ = s.Get(k, &hit)
	return hit, found
}

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
	if _, found := now.answer(&Key{}); found {
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
		hit, found := s.answer(&r.Key)
		if !found || string(hit.Plan) != r.Plan ||
			hit.Seconds != r.Seconds || hit.SafeDiff(r.Safe) != nil {
			t.Errorf("record %d: %t, %+v", k, found, hit)
		}
	}
	for k := n; k < n+misses+20; k++ {
		r := record(k)
		if hit, found := s.answer(&r.Key); found {
			t.Errorf("record %d is not there, and found: %+v", k, hit)
		}
		r = record(k % n)
		r.Codegen += "x"
		if _, found := s.answer(&r.Key); found {
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
// records, unless that is asked for, and keeps its permissions.
func TestPublishShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for _, c := range []struct{ records, want int }{{5, 5}, {3, 3}, {1, 0}, {2, 2}} {
		n, err := filled(t, c.records).Publish(path)
		if n != c.want || errors.Is(err, ErrShrinks) != (n == 0) {
			t.Errorf("%d records: %d, %v", c.records, n, err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := filled(t, 0).PublishOver(path); n != 0 || err != nil {
		t.Errorf("PublishOver: %d, %v", n, err)
	}
	if after, err := os.Stat(path); err != nil || after.Mode() != before.Mode() {
		t.Errorf("permissions were %v, are %v, %v", before.Mode(), after.Mode(), err)
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
			hit, found := s.answer(&k)
			if !found || string(hit.Plan) != r.Plan || hit.SafeDiff(r.Safe) != nil {
				t.Fatalf("%v: %t, %+v", k, found, hit)
			}
			k.Backend += "x"
			if _, found := s.answer(&k); found != (want[k].Seconds > 0) {
				t.Fatalf("%v is found: %t", k, found)
			}
		}
	})
}

// is compares a hit with a key.
func (h *Hit) is(k *Key) bool {
	return h.Fusion == k.Fusion && string(h.Device) == k.Device &&
		string(h.Backend) == k.Backend && string(h.Codegen) == k.Codegen
}

// tells reports whether a hit is what a record says.
func (h *Hit) tells(r *Record) bool {
	return h.is(&r.Key) && string(h.Plan) == r.Plan && h.Seconds == r.Seconds && h.Speedup == r.Speedup &&
		string(h.Safe) == SafeText(r.Safe) && string(h.Default) == r.Default && h.Checked == r.Checked &&
		string(h.Dims) == strings.Join(r.Dims, ",")
}

// TestSnapshotDamaged: a flipped bit is an error at the door, or one of every lookup
// that reads it; never another answer, and never a miss.
func TestSnapshotDamaged(t *testing.T) {
	var all []Record
	for k := range 9 {
		all = append(all, record(k))
	}
	all[4].Plan = strings.Repeat("8,8 ", 50) // longer than a slot
	data := snapshotBytes(all)
	q := Question{Key: record(9).Key, Structure: StructureOf(record(9).Canonical)}
	for at := range data {
		for bit := range 8 {
			bad := bytes.Clone(data)
			bad[at] ^= 1 << bit
			s, err := newSnapshot(bad)
			if err != nil {
				continue
			}
			if at < lineBytes {
				t.Errorf("byte %d of the header flipped: it opens", at)
			}
			for k := range all {
				var hit Hit
				found, err := s.Get(&all[k].Key, &hit)
				if found != (err == nil) {
					t.Fatalf("byte %d flipped: record %d is missed without an error", at, k)
				}
				if found && !hit.tells(&all[k]) {
					t.Fatalf("byte %d flipped: record %d is %+v", at, k, hit)
				}
			}
			var hit Hit
			found, _, err := s.Nearest(&q, &hit)
			if found && !slices.ContainsFunc(all, func(r Record) bool { return hit.tells(&r) }) {
				t.Fatalf("byte %d flipped: the nearest record is %+v, %v", at, hit, err)
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

// TestSnapshotChangedInPlace: what happens to the file under a reader never ends the
// process, gives no other answer, and does not change what was handed out.
func TestSnapshotChangedInPlace(t *testing.T) {
	other := record(0)
	other.Plan = "no plan of these"
	pages := make([]Record, 200) // several pages: some are still there when it is cut
	for k := range pages {
		pages[k] = record(k)
	}
	for name, change := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 0) },
		"cut short": func(path string) error { return os.Truncate(path, 5000) },
		"removed":   os.Remove,
		"zeros":     func(path string) error { return os.WriteFile(path, make([]byte, 1<<13), 0o644) },
		"another":   func(path string) error { return os.WriteFile(path, snapshotBytes([]Record{other}), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			path := published(t, pages...)
			s, err := OpenSnapshot(path)
			if err != nil {
				t.Fatal(err)
			}
			k := record(0).Key
			before, _ := s.answer(&k)
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			errs := 0
			for k := range pages {
				r := record(k)
				var hit Hit
				found, err := s.Get(&r.Key, &hit)
				if found && string(hit.Plan) != r.Plan && string(hit.Plan) != other.Plan {
					t.Errorf("record %d: %q", k, hit.Plan)
				}
				if err != nil {
					errs++
				}
			}
			if (name == "removed") != (s.Verify() == nil) || name == "truncated" && errs != len(pages) {
				t.Errorf("%d errors, Verify says %v", errs, s.Verify())
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if string(before.Plan) != record(0).Plan || before.SafeDiff(record(0).Safe) != nil {
				t.Errorf("what was handed out has become %+v", before)
			}
		})
	}
}

// TestSnapshotRevision: equal records have equal revisions, and one that is pinned is
// the only one that opens.
func TestSnapshotRevision(t *testing.T) {
	path := published(t, record(0), record(1))
	s, err := OpenSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	revision := s.Revision()
	if err := errors.Join(ParseRevision(revision), s.Verify(), s.Close()); err != nil {
		t.Error(err)
	}
	if s, err = OpenSnapshotAt(path, revision); err != nil {
		t.Fatal(err)
	}
	s.Close()
	var pin *PinError
	_, err = OpenSnapshotAt(published(t, record(0)), revision)
	if !errors.As(err, &pin) || pin.Want != revision || pin.Found == revision {
		t.Errorf("another revision: %v", err)
	}
}

// TestSnapshotHit: everything that a hit says is what the record said.
func TestSnapshotHit(t *testing.T) {
	r := record(3)
	r.Default, r.DefaultSeconds, r.Speedup, r.Regret = "8,8", 2.5, [3]float64{1.5, 1.4, 1.6}, 0.02
	r.Ties, r.By, r.Untimed, r.Provisional, r.Checked = []string{"1,2", "3,4 threads=2"}, "tilewright 1", true, true, false
	s, err := OpenSnapshot(published(t, record(1), r, record(2)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h, found := s.answer(&r.Key)
	if !found || string(h.Default) != r.Default || h.DefaultSeconds != r.DefaultSeconds || h.Speedup != r.Speedup ||
		h.Regret != r.Regret || !slices.Equal(h.Ties(), r.Ties) || !slices.Equal(h.DimNames(), []string{"m", "n", "k"}) || string(h.By) != r.By || !h.When().Equal(r.When) ||
		!h.Untimed || !h.Provisional || h.Checked {
		t.Errorf("%+v", h)
	}
}

// Slots are written by large pages of the file, which end within slots.
func TestSnapshotOfSeveralPages(t *testing.T) {
	var all []Record
	for n := range 12_000 {
		all = append(all, record(n))
	}
	for _, plan := range []string{"", " producer=4"} { // slots of four lines, and of five
		for n := range all {
			all[n].Plan += strings.Repeat(plan, 6)
		}
		data := snapshotBytes(all)
		s, err := newSnapshot(data)
		if err != nil || len(data) < hugePage+hugePage/4 || s.Verify() != nil {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		for n := range all {
			hit, found := s.answer(&all[n].Key)
			if !found || string(hit.Plan) != all[n].Plan {
				t.Fatalf("record %d: %v, plan %q", n, found, hit.Plan)
			}
		}
	}
}

func TestGetAllocatesNothing(t *testing.T) {
	s, err := OpenSnapshot(published(t, record(0), record(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k, miss := record(1).Key, record(2).Key
	q := Question{Key: miss, Structure: StructureOf(record(2).Canonical)}
	q.DeviceDistance = func([]byte) float64 { return 1 }
	var hit Hit
	if n := testing.AllocsPerRun(100, func() {
		s.Get(&k, &hit)
		s.Get(&miss, &hit)
		s.Nearest(&q, &hit)
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
			var hit Hit
			for k := range all {
				s.Get(&all[k].Key, &hit)
				s.Nearest(&Question{Key: all[k].Key, Structure: StructureOf(all[k].Canonical)}, &hit)
			}
			s.Get(&Key{}, &hit)
			s.Verify()
		}
	})
}

// fixHeader makes the header's checksum and length right, so that fuzzing
// comes past them.
func fixHeader(data []byte) []byte {
	if len(data) < lineBytes {
		return data
	}
	little.PutUint64(data[16:], uint64(len(data)))
	copy(data, snapshotMagic)
	seal(data[:lineBytes], 0)
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

// BenchmarkSnapshotGet looks up records in random order.
func BenchmarkSnapshotGet(b *testing.B) {
	for _, records := range []int{1e3, 1e5, 1e6} {
		b.Run(fmt.Sprint(records), func(b *testing.B) {
			s, keys := snapshotOf(b, records)
			b.ReportAllocs()
			var hit Hit
			n := 0
			for b.Loop() {
				if found, err := s.Get(&keys[n], &hit); !found || err != nil {
					b.Fatal(found, err)
				}
				if n++; n == len(keys) {
					n = 0
				}
			}
		})
	}
}

// BenchmarkSnapshotHot looks up one record again and again.
func BenchmarkSnapshotHot(b *testing.B) {
	s, keys := snapshotOf(b, 1000)
	b.ReportAllocs()
	var hit Hit
	for b.Loop() {
		if found, _ := s.Get(&keys[0], &hit); !found {
			b.Fatal("a miss")
		}
	}
}

// BenchmarkSnapshotNearest asks for other shapes of a structure of which there are
// 1e5 records.
func BenchmarkSnapshotNearest(b *testing.B) {
	s, keys := snapshotOf(b, 100_000)
	q := Question{Key: keys[0], Structure: StructureOf(record(0).Canonical)}
	q.Fusion[0]++
	b.ReportAllocs()
	var hit Hit
	for b.Loop() {
		if found, _, err := s.Nearest(&q, &hit); !found || err != nil {
			b.Fatal(found, err)
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
		var hit Hit
		if found, _ := s.Get(&all[77].Key, &hit); !found {
			b.Fatal("a miss")
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
