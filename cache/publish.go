package cache

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"go.etcd.io/bbolt"
)

// Publish writes a snapshot of the database's winners to path, by renaming a
// complete file, and returns the number of records. Damaged records are left out,
// with a *LeftOutError. A file that is not a snapshot is not replaced, nor is one of
// more than twice as many records (ErrShrinks). It needs the memory of a hundred
// bytes a record.
func (db *DB) Publish(path string) (n int, err error) {
	if err := checkReplaceable(path); err != nil {
		return 0, err
	}
	return db.publish(path, checkShrinking)
}

// PublishOver is Publish that replaces any regular file.
func (db *DB) PublishOver(path string) (n int, err error) {
	if err := checkRegularFile(path); err != nil {
		return 0, err
	}
	return db.publish(path, func(string, int) error { return nil })
}

// publish writes the snapshot of the sound records beside path and renames it, if
// check allows that for their number.
func (db *DB) publish(path string, check func(path string, records int) error) (n int, err error) {
	if err := checkFolder(path); err != nil {
		return 0, err
	}
	tmp, err := tempBeside(path)
	if err != nil {
		return 0, err
	}
	defer os.Remove(tmp.Name()) // fails once it is renamed
	w := newSnapshotWriter(tmp)
	damaged, err := db.writeRecords(w)
	if err == nil {
		err = w.finish()
	}
	if err := finish(tmp, err); err != nil {
		return 0, err
	}
	if err := check(path, len(w.placed)); err != nil {
		return 0, err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return 0, err
	}
	syncFolder(path)
	sweep(path)
	return len(w.placed), leftOut(damaged)
}

// checkReplaceable refuses a path where there is anything but a snapshot, above
// all a database.
func checkReplaceable(path string) error {
	if err := checkRegularFile(path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(snapshotMagic))
	n, err := io.ReadFull(f, head)
	if n > 0 && string(head[:6]) != snapshotMagic[:6] {
		return kindf(ErrForeign, "%s is there and is no tilewright snapshot; it is not replaced", path)
	}
	if err != nil && n > 0 && err != io.ErrUnexpectedEOF {
		return err
	}
	return nil
}

// checkShrinking refuses to replace a snapshot by one of fewer than half of its
// records.
func checkShrinking(path string, records int) error {
	old, err := OpenSnapshot(path)
	if err != nil {
		return nil // there is none, or it is damaged
	}
	defer old.Close()
	if 2*records < old.Len() {
		return kindf(ErrShrinks, "%s has %d records and would have %d", path, old.Len(), records)
	}
	return nil
}

// publishedAtOnce is how many records are read by the goroutines together.
const publishedAtOnce = 1 << 12

// writeRecords writes the sound records of the database in the order of their keys
// and returns what is damaged.
func (db *DB) writeRecords(w *snapshotWriter) (damaged []*DamagedError, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		var some []storedRecord
		flush := func() error {
			damaged = append(damaged, readAll(some)...)
			for k := range some {
				if some[k].encoded != nil {
					w.add(&some[k])
				}
			}
			some = some[:0]
			return w.err
		}
		if err := tx.Bucket(bucketWinners).ForEach(func(k, value []byte) error {
			if some = append(some, storedRecord{stored: entry{k, value}}); len(some) < publishedAtOnce {
				return nil
			}
			return flush()
		}); err != nil {
			return err
		}
		return flush()
	})
	return damaged, err
}

// A storedRecord is a record of the database and its encoding in a snapshot.
type storedRecord struct {
	stored    entry // in the memory of the transaction
	structure Structure
	kin       uint64 // hash of structure and backend
	origin    originTexts
	encoded   []byte // nil for a damaged one
	damage    *DamagedError
}

// readAll encodes records, in as many goroutines as there are processors.
func readAll(some []storedRecord) (damaged []*DamagedError) {
	var workers sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for share := range n {
		workers.Go(func() {
			for k := share; k < len(some); k += n {
				some[k].read()
			}
		})
	}
	workers.Wait()
	for k := range some {
		if some[k].damage != nil {
			damaged = append(damaged, some[k].damage)
		}
	}
	return damaged
}

// A winnerOnly is a record of which samples and evidence are not read.
type winnerOnly struct {
	Record
	Trials   skipped `json:"trials"`
	Evidence skipped `json:"evidence"`
}

// A skipped value of JSON is checked for its form only.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }

// read encodes one record.
func (x *storedRecord) read() {
	r, err := readWinner(x.stored.key, x.stored.value)
	if err != nil {
		errors.As(err, &x.damage)
		return
	}
	x.encode(&r)
}

// encode makes the encoding of a record, and what it is found by.
func (x *storedRecord) encode(r *Record) {
	x.structure = StructureOf(r.Canonical)
	x.kin = structureHash(&x.structure.Print, r.Backend)
	x.origin = originOf(r)
	x.encoded = encodeRecord(r, x.kin)
}

// readWinner is readRecord without samples: those are as their checksum says, and
// nobody looks at them here.
func readWinner(k, value []byte) (Record, error) {
	stored, err := parseKey(k)
	var r winnerOnly
	if err == nil {
		err = readJSON(value, &r)
	}
	if err == nil && r.Key != stored {
		err = errors.New("it holds the record of another key")
	}
	if err == nil {
		err = r.plausible()
	}
	if err != nil {
		return Record{Key: stored}, newDamaged(k, stored, err)
	}
	return r.Record, nil
}
