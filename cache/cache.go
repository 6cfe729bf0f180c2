package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// A DB is a database of records, named by its path. It holds no file open, and any
// number of goroutines may use it.
type DB struct {
	path     string
	verified atomic.Pointer[fileState] // the state that was last found to be whole
}

// Open names a database. The file is created by the first write.
func Open(path string) *DB { return &DB{path: path} }

// Path is the file's name.
func (db *DB) Path() string { return db.path }

// Buckets of the file, and the key of the schema's version in the first.
var (
	bucketMeta    = []byte("meta")
	bucketWinners = []byte("winners")
	bucketTrials  = []byte("trials")
	keySchema     = []byte("schema")
)

// schemaVersion is the version of the stored form. A file of a newer version is refused
// with ErrNewer.
const schemaVersion = 1

// Get finds the record of a key. In a file that does not exist nothing is found; a
// damaged record is a *DamagedError.
func (db *DB) Get(k Key) (r Record, found bool, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		value := tx.Bucket(bucketWinners).Get(k.bytes())
		if found = value != nil; found {
			r, err = readRecord(k.bytes(), value)
		}
		return err
	})
	if err != nil {
		return Record{}, false, err
	}
	return r, found, nil
}

// Put stores a record unless the record that is stored under its key has better
// evidence, and reports whether it is the one that was kept. The trials of both are
// kept, and those of PutTrials are cleared.
func (db *DB) Put(r Record) (kept bool, err error) {
	if err := r.plausible(); err != nil {
		return false, err
	}
	err = db.update(func(tx *bbolt.Tx) error {
		kept, err = put(tx, r)
		return err
	})
	return kept && err == nil, err
}

// put is Put in a transaction.
func put(tx *bbolt.Tx, r Record) (kept bool, err error) {
	k := r.Key.bytes()
	kept = true
	if value := tx.Bucket(bucketWinners).Get(k); value != nil {
		var old Record
		if err := readJSON(value, &old); err != nil {
			damaged := &DamagedError{Key: r.Key, Err: err}
			return false, fmt.Errorf("%w; remove it (`cache rm`) to store another", damaged)
		}
		if kept = r.supersedes(old); kept {
			r.Trials = union(r.Trials, old.Trials)
		} else {
			old.Trials = union(old.Trials, r.Trials)
			r = old
		}
	}
	if err := putJSON(tx, bucketWinners, k, r); err != nil {
		return false, err
	}
	return kept, tx.Bucket(bucketTrials).Delete(k)
}

// PutTrials keeps the trials of an unfinished race, so that it can be resumed. They
// are united with those that are stored, so that two tuners of one fusion lose
// nothing of each other's. Put clears them.
func (db *DB) PutTrials(k Key, ts []Trial) error {
	err := errors.Join(k.plausible(), plausible(ts))
	if err != nil {
		return err
	}
	return db.update(func(tx *bbolt.Tx) error {
		return putTrials(tx, k.bytes(), ts)
	})
}

// putTrials is PutTrials in a transaction.
func putTrials(tx *bbolt.Tx, k []byte, ts []Trial) error {
	if value := tx.Bucket(bucketTrials).Get(k); value != nil {
		old, err := readTrials(k, value)
		if err != nil {
			return fmt.Errorf("the stored trials of this key: %w; remove them (`cache rm`) to go on", err)
		}
		ts = union(ts, old)
	}
	return putJSON(tx, bucketTrials, k, ts)
}

// Trials returns the trials that PutTrials kept for a key.
func (db *DB) Trials(k Key) (ts []Trial, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		value := tx.Bucket(bucketTrials).Get(k.bytes())
		if value != nil {
			ts, err = readTrials(k.bytes(), value)
		}
		return err
	})
	return ts, err
}

// All yields all records in the order of their keys. It reads them before it yields
// the first: the file is not open while the caller works. A damaged record is
// yielded as a *DamagedError with a Record that has nothing but its key, and the
// others follow. Any other error is yielded last.
func (db *DB) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		all, errs, err := db.all()
		for k, r := range all {
			if !yield(r, errs[k]) {
				return
			}
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// all reads all records, each with an error or nil.
func (db *DB) all() (all []Record, errs []error, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketWinners).ForEach(func(k, value []byte) error {
			r, err := readRecord(k, value)
			all = append(all, r)
			errs = append(errs, err)
			return nil
		})
	})
	return all, errs, err
}

// intactRecords reads all records; a damaged record is an error.
func (db *DB) intactRecords() ([]Record, error) {
	all, errs, err := db.all()
	return all, errors.Join(errors.Join(errs...), err)
}

// readRecord decodes a record, checks it and compares its key with the one that it
// is stored under.
func readRecord(k, value []byte) (r Record, err error) {
	if r.Key, err = parseKey(k); err != nil {
		return r, &DamagedError{
			Err: fmt.Errorf("key %x: %w", k[:min(8, len(k))], err),
		}
	}
	stored := r.Key
	if err := readJSON(value, &r); err != nil {
		return Record{Key: stored}, &DamagedError{Key: stored, Err: err}
	}
	if r.Key != stored {
		misplaced := errors.New("it holds the record of another key")
		return Record{Key: stored}, &DamagedError{Key: stored, Err: misplaced}
	}
	if err := r.plausible(); err != nil {
		return Record{Key: stored}, &DamagedError{Key: stored, Err: err}
	}
	return r, nil
}

// Delete removes the record and the trials of a key, damaged or not, and reports
// whether there were any.
func (db *DB) Delete(k Key) (found bool, err error) {
	if _, err := os.Stat(db.path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err = db.update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketWinners, bucketTrials} {
			b := tx.Bucket(name)
			found = found || b.Get(k.bytes()) != nil
			if err := b.Delete(k.bytes()); err != nil {
				return err
			}
		}
		return nil
	})
	return found && err == nil, err
}
