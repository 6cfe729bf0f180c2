package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

var long = flag.Bool("long", false, "damage every byte of the structure, not 200 of them")

// use does everything that can be done with a file that may be damaged, and
// fails when something takes long. It reports whether all records are there.
func use(t testing.TB, path string, records int) (whole bool, err error) {
	t.Helper()
	begin := time.Now()
	db := Open(path)
	var errs []error
	n, err := db.Verify()
	errs = append(errs, err)
	for _, err := range db.All() {
		errs = append(errs, err)
	}
	for k := range records {
		_, found, err := db.Get(record(k).Key)
		if err == nil && !found {
			n = -1
		}
		errs = append(errs, err)
	}
	_, err = db.Trials(record(0).Key)
	errs = append(errs, err)
	_, err = db.Export(&bytes.Buffer{})
	errs = append(errs, err)
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("it took %v", d)
	}
	return n == records, errors.Join(errs...)
}

func TestTruncated(t *testing.T) {
	db := filled(t, 12)
	data, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.db")
	for size := 1; size < len(data); size += 1 + size/9 {
		if err := os.WriteFile(path, data[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		whole, err := use(t, path, 12)
		if err == nil && !whole {
			t.Errorf("cut to %d of %d bytes, records are gone and nobody says so", size, len(data))
		}
		if _, putErr := Open(path).Put(record(99)); (putErr == nil) != (err == nil) {
			t.Errorf("cut to %d of %d bytes: reading %v, writing %v", size, len(data), err, putErr)
		}
	}
}

// TestFlipped damages every byte that matters and random ones: whatever a
// damaged file still gives is what was stored, and the rest is an error.
func TestFlipped(t *testing.T) {
	const records = 10
	db := filled(t, records)
	if err := db.PutTrials(record(3).Key, record(3).Trials); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "flipped.db")
	rng := rand.New(rand.NewPCG(1, 2))
	unseen := 0
	for _, at := range flips(data, rng) {
		bad := bytes.Clone(data)
		bad[at] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		whole, err := use(t, path, records)
		if err == nil && !whole {
			t.Errorf("byte %d flipped: records are gone and nobody says so", at)
		}
		if err == nil {
			unseen++
		}
		for k := range records {
			r, found, err := Open(path).Get(record(k).Key)
			if found && err == nil && r.Plan != record(k).Plan {
				t.Errorf("byte %d flipped: record %d has the plan %s", at, k, r.Plan)
			}
		}
		before := missing(path, records)
		if _, err := Open(path).Put(record(99)); err == nil &&
			missing(path, records) > before {
			t.Errorf("byte %d flipped: writing lost a record", at)
		}
	}
	t.Logf("%d flips are in bytes nobody reads", unseen)
}

// missing counts records that a file seems not to have; a damaged one is there.
func missing(path string, records int) int {
	n := 0
	for k := range records {
		if _, found, err := Open(path).Get(record(k).Key); err == nil && !found {
			n++
		}
	}
	return n
}

// flips are bytes worth damaging: the head of every page, where the structure
// is, and some anywhere.
func flips(data []byte, rng *rand.Rand) []int {
	var at []int
	for p := 0; p+4096 <= len(data); p += 4096 {
		for k := 0; k < 96; k += 1 + rng.IntN(4) {
			at = append(at, p+k)
		}
	}
	for range 300 {
		at = append(at, rng.IntN(len(data)))
	}
	rng.Shuffle(len(at), func(i, j int) {
		at[i], at[j] = at[j], at[i]
	})
	if *long {
		return at
	}
	return at[:200]
}

// TestCycle makes a branch page its own child, which bbolt would follow for ever.
func TestCycle(t *testing.T) {
	db := filled(t, 60)
	data, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	cycles := 0
	for p := 2 * 4096; p+4096 <= len(data); p += 4096 {
		if binary.NativeEndian.Uint16(data[p+8:]) == flagBranch {
			copy(data[p+pageHeader+8:], data[p:p+8])
			cycles++
		}
	}
	if cycles == 0 {
		t.Fatal("there is no branch page; the case needs more records")
	}
	if err := os.WriteFile(db.path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := use(t, db.path, 60); err == nil ||
		!strings.Contains(err.Error(), "damaged") {
		t.Errorf("a cycle is %v", err)
	}
	if _, err := Open(db.path).Put(record(99)); err == nil {
		t.Error("a file with a cycle is written to")
	}
}

// TestDamagedFirstKey: a flipped key that a page begins with, as in an attack, can be
// read round. Writing would lose the page, and is refused.
func TestDamagedFirstKey(t *testing.T) {
	const records = 60
	db := filled(t, records)
	data, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for p := 2 * 4096; p+4096 <= len(data); p += 4096 {
		if binary.NativeEndian.Uint16(data[p+8:]) != flagBranch {
			continue
		}
		at := p + pageHeader + 16 + int(binary.NativeEndian.Uint32(data[p+pageHeader+16:]))
		bad := bytes.Clone(data)
		bad[at+31] ^= 1 // the last byte of the fingerprint of the second child
		path := filepath.Join(t.TempDir(), "misfit.db")
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path).Verify(); err == nil {
			continue // nothing refers to the page
		}
		if _, err := Open(path).Put(record(99)); !errors.Is(err, ErrDamaged) {
			t.Errorf("page %d: Put: %v", p/4096, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, bad) {
			t.Errorf("page %d: the file is changed, %v", p/4096, err)
		}
		tried++
	}
	if tried == 0 {
		t.Fatal("there is no branch page; the case needs more records")
	}
}

// TestDamagedRecord: one bad record leaves the others in reach, and can go.
func TestDamagedRecord(t *testing.T) {
	db := filled(t, 5)
	bad := record(2).Key
	damage(t, db, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketWinners)
		value := bytes.Clone(b.Get(bad.bytes()))
		value[20] ^= 1
		return b.Put(bad.bytes(), value)
	})
	var damaged *DamagedError
	if _, _, err := db.Get(bad); !errors.As(err, &damaged) ||
		damaged.Key != bad {
		t.Errorf("Get: %v", err)
	}
	good := 0
	for r, err := range db.All() {
		if err == nil {
			good++
		} else if r.Key != bad {
			t.Errorf("All: %v beside %v", err, r.Key)
		}
	}
	if good != 4 {
		t.Errorf("All yields %d sound records", good)
	}
	if n, err := db.Verify(); n != 5 || err == nil {
		t.Errorf("Verify: %d, %v", n, err)
	}
	var lines bytes.Buffer
	if n, err := db.Export(&lines); n != 4 || err == nil ||
		bytes.Count(lines.Bytes(), []byte("\n")) != 4 {
		t.Errorf("Export: %d, %v", n, err)
	}
	var left *LeftOutError
	if n, err := db.Publish(filepath.Join(t.TempDir(), "s")); n != 4 || !errors.As(err, &left) {
		t.Errorf("Publish: %d, %v", n, err)
	}
	merged := Open(filepath.Join(t.TempDir(), "m.db"))
	if _, n, err := merged.Merge(db); n != 4 || !errors.As(err, &left) {
		t.Errorf("Merge: %d, %v", n, err)
	}
	if _, err := merged.Verify(); err != nil {
		t.Errorf("Merge takes damage over: %v", err)
	}
	if err := db.DeleteDamaged(damaged); err != nil {
		t.Errorf("DeleteDamaged: %v", err)
	}
	if n, err := db.Verify(); n != 4 || err != nil {
		t.Errorf("Verify at the end: %d, %v", n, err)
	}
}

// TestDamagedCases: in the files of testdata one byte of JSON is flipped, of a
// record and of an unfinished race. Both can be read round and removed, the race
// without the record beside it, and both are replaced by what is measured again.
func TestDamagedCases(t *testing.T) {
	for _, name := range []string{"one-damaged-record.db", "damaged-trials.db"} {
		for _, cure := range []string{"delete", "put"} {
			t.Run(name+" "+cure, func(t *testing.T) { damagedCase(t, name, cure) })
		}
	}
}

func damagedCase(t *testing.T, name, cure string) {
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	db := Open(filepath.Join(t.TempDir(), name))
	if err := os.WriteFile(db.path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := db.Damaged()
	if len(all) != 1 || err != nil {
		t.Fatalf("Damaged: %v, %v", all, err)
	}
	if _, err := db.Verify(); !errors.Is(err, ErrDamaged) {
		t.Errorf("Verify: %v", err)
	}
	if cure == "delete" {
		err = db.DeleteDamaged(all[0])
	} else {
		r := record(1)
		r.Key = all[0].Key
		_, err = db.Put(r)
		err = errors.Join(err, db.PutTrials(r.Key, r.Trials))
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := db.Verify(); err != nil {
		t.Errorf("Verify at the end: %v", err)
	}
}

// damage changes a file behind the package's back.
func damage(t *testing.T, db *DB, f func(*bbolt.Tx) error) {
	t.Helper()
	b, err := bbolt.Open(db.path, 0o644, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Update(f), b.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestSwappedTrials: the trials of a race are not taken for those of another fusion.
// Those that an earlier version stored had no key.
func TestSwappedTrials(t *testing.T) {
	db := filled(t, 2)
	one, other, old := record(1), record(2), record(3)
	if err := db.PutTrials(one.Key, one.Trials); err != nil {
		t.Fatal(err)
	}
	damage(t, db, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketTrials)
		err := b.Put(other.Key.bytes(), bytes.Clone(b.Get(one.Key.bytes())))
		return errors.Join(err, putJSON(tx, bucketTrials, old.Key.bytes(), old.Trials))
	})
	if _, err := db.Trials(other.Key); !errors.Is(err, ErrDamaged) {
		t.Errorf("the trials of another key: %v", err)
	}
	if ts, err := db.Trials(old.Key); len(ts) != len(old.Trials) || err != nil {
		t.Errorf("trials without a key: %d, %v", len(ts), err)
	}
}

func TestSwappedRecords(t *testing.T) {
	db := filled(t, 2)
	k := record(0).Key
	damage(t, db, func(tx *bbolt.Tx) error {
		other := record(1).Key
		b := tx.Bucket(bucketWinners)
		return b.Put(k.bytes(), bytes.Clone(b.Get(other.bytes())))
	})
	if _, _, err := db.Get(k); err == nil ||
		!strings.Contains(err.Error(), "another key") {
		t.Errorf("the record of another key: %v", err)
	}
}

// TestRefused lists what is no database; each says so at once and stays as it is.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, data []byte) string {
		if err := os.WriteFile(at(name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	newer, foreign, odd := at("newer.db"), at("foreign.db"), at("odd.db")
	for path, f := range map[string]func(*bbolt.Tx) error{
		newer: func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketMeta).Put(keySchema, []byte("2"))
		},
		odd: func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketMeta).Put(keySchema, []byte("two"))
		},
		foreign: func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("theirs"))
			return errors.Join(err, tx.DeleteBucket(bucketMeta))
		},
	} {
		db := Open(path)
		if _, err := db.Put(record(1)); err != nil {
			t.Fatal(err)
		}
		damage(t, db, f)
	}
	if err := os.Symlink(at("loop"), at("loop")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, says string }{
		{"directory", dir, "is a directory"},
		{"text", write("text.db", []byte(strings.Repeat("HloModule m\n", 1000))), "is not a tilewright database"},
		{"short", write("short.db", []byte("x")), "is not a tilewright database"},
		{"zeros", write("zeros.db", make([]byte, 1<<16)), "is not a tilewright database"},
		{"newer schema", newer, "schema version 2; this tilewright reads up to 1"},
		{"odd schema", odd, `schema version is "two"`},
		{"foreign", foreign, "not a tilewright database"},
		{"under a file", filepath.Join(newer, "x.db"), "not a directory"},
		{"device", os.DevNull, "not a regular file"},
		{"symbolic loop", at("loop"), "too many levels of symbolic links"},
	} {
		before, _ := os.ReadFile(c.path)
		db := Open(c.path)
		_, _, getErr := db.Get(record(1).Key)
		_, putErr := db.Put(record(2))
		trialsErr := db.PutTrials(record(2).Key, record(2).Trials)
		for op, err := range map[string]error{"Get": getErr, "Put": putErr, "PutTrials": trialsErr} {
			if err == nil || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), c.path) {
				t.Errorf("%s: %s: %v; it should say %q", c.name, op, err, c.says)
			}
		}
		if after, _ := os.ReadFile(c.path); !bytes.Equal(before, after) {
			t.Errorf("%s: the file was changed", c.name)
		}
	}
	_, err := Open(at("no/such/folder.db")).Put(record(1))
	if err == nil || !strings.Contains(err.Error(), "there is no folder") {
		t.Errorf("no folder: %v", err)
	}
}

// TestEmptyFile: a file that was cut to nothing is no database.
func TestEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	db := Open(path)
	_, getErr := db.Verify()
	_, putErr := db.Put(record(1))
	for op, err := range map[string]error{"Verify": getErr, "Put": putErr} {
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "empty") {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// TestReadOnly: a file that cannot be written can be read, and says why not.
func TestReadOnly(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("everything is writable for this user")
	}
	db := filled(t, 1)
	if err := os.Chmod(db.path, 0o444); err != nil {
		t.Fatal(err)
	}
	if _, found, err := db.Get(record(0).Key); !found || err != nil {
		t.Errorf("Get: %t, %v", found, err)
	}
	if _, err := db.Put(record(1)); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Put: %v", err)
	}
}

// TestPanicGivesTheLockBack: a panic below is an error, and the file goes on.
func TestPanicGivesTheLockBack(t *testing.T) {
	db := filled(t, 1)
	for _, o := range []bbolt.Options{
		{ReadOnly: true, Timeout: time.Second}, {Timeout: time.Second},
	} {
		err := db.with(o, func(b *bbolt.DB) error {
			return b.View(func(*bbolt.Tx) error { panic("page 7 already freed") })
		})
		if err == nil || !strings.Contains(err.Error(), "damaged: page 7") {
			t.Errorf("a panic is %v", err)
		}
		begin := time.Now()
		if _, err := db.Put(record(1)); err != nil || time.Since(begin) > time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	}
}

// FuzzFile feeds files to every reader and then to a writer.
func FuzzFile(f *testing.F) {
	db := filled(f, 3)
	data, err := os.ReadFile(db.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(4096), []byte{1, 2, 3})
	f.Add(uint32(3*4096+16), []byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		bad := bytes.Clone(data)
		copy(bad[int(at)%len(bad):], patch)
		path := filepath.Join(t.TempDir(), "f.db")
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if whole, err := use(t, path, 3); err == nil && !whole {
			t.Error("records are gone and nobody says so")
		}
		if _, err := Open(path).Put(record(99)); err == nil {
			if _, err := Open(path).Verify(); err != nil {
				t.Errorf("a write makes the damage: %v", err)
			}
		}
	})
}

// smallRecord is the text of a record with little in it. The seeds of fuzzing are
// small because go test shortens whatever reaches new code byte by byte, for up to a
// minute each, in which it tries nothing else.
const smallRecord = `{"fusion":"%064d","device":"d","backend":"b","plan":"1","seconds":1%s}`

// FuzzRecord decodes what a value of the file may hold, with a checksum that is
// right: other values are not decoded.
func FuzzRecord(f *testing.F) {
	k := Key{Device: "d", Backend: "b"}
	trials := `[{"plan":"1","samples":[1,2],"blocks":[0,1]}]`
	for _, text := range []string{
		fmt.Sprintf(smallRecord, 0, ""),
		fmt.Sprintf(smallRecord, 0, `,"trials":`+trials),
		trials, fmt.Sprintf(`{"key":{"fusion":"%064d","device":"d","backend":"b"},"trials":%s}`, 0, trials),
	} {
		f.Add(k.bytes(), []byte(text))
	}
	f.Fuzz(func(t *testing.T, k, text []byte) {
		sum := crc32.Checksum(text, castagnoli())
		value := append(binary.LittleEndian.AppendUint32(nil, sum), text...)
		r, err := readRecord(k, value)
		if err == nil && (r.Plan == "" || !(r.Seconds > 0)) {
			t.Errorf("a record that cannot be true: %v", r)
		}
		ts, err := readTrials(k, value)
		for _, x := range ts {
			if err == nil && x.Plan == "" {
				t.Errorf("a trial of nothing: %v", x)
			}
		}
	})
}

// FuzzImport: what is imported can be exported and imported again.
func FuzzImport(f *testing.F) {
	for _, rest := range []string{
		"",
		`,"safe":{"go":"1"},"default":"2","regret":-1,"when":"2026-01-02T03:04:05Z"`,
		`,"trials":[{"plan":"1","samples":[1,2],"clocks":[0,9],"blocks":[0,1]}]`,
	} {
		f.Add([]byte(fmt.Sprintf(smallRecord, 0, rest)))
	}
	f.Add([]byte(fmt.Sprintf(smallRecord+"\n\n"+smallRecord, 0, "", 1, "")))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := readLines(bytes.NewReader(text), nil)
		if err != nil {
			return
		}
		once := textOf(all)
		again, err := readLines(bytes.NewReader(once), nil)
		if err != nil || len(again) != len(all) || !bytes.Equal(textOf(again), once) {
			t.Fatalf("%d lines become %d: %v\n%s", len(all), len(again), err, once)
		}
		for k, e := range all {
			r, err := readRecord(e.key, e.value)
			if err != nil || !bytes.Equal(again[k].key, e.key) {
				t.Fatalf("the key of %v becomes %q: %v", r, again[k].key, err)
			}
		}
	})
}

// textOf are the lines of entries: each has its checksum in front.
func textOf(all []entry) []byte {
	var out bytes.Buffer
	for _, e := range all {
		out.Write(e.value[4:])
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// TestDamagedCount: a page that has lost elements, because their number is damaged,
// is not taken for a smaller one.
func TestDamagedCount(t *testing.T) {
	const records = 10
	db := filled(t, records)
	data, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "count.db")
	for p := 2 * 4096; p+4096 <= len(data); p += 4096 {
		bad := bytes.Clone(data)
		count := binary.NativeEndian.Uint16(bad[p+10:])
		if count < 2 || binary.NativeEndian.Uint16(bad[p+8:]) != flagLeaf {
			continue
		}
		binary.NativeEndian.PutUint16(bad[p+10:], count-1)
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if whole, err := use(t, path, records); err == nil && !whole {
			t.Errorf("page %d: records are gone and nobody says so", p/4096)
		}
	}
}
