package cache

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// A DB is a database of records, named by its path. It holds no file open, and any
// number of goroutines may use it.
type DB struct {
	path     string
	session  uint32                    // a random number, in the names of journals
	verified atomic.Pointer[fileState] // the state that was last found to be whole

	structures atomic.Pointer[structures] // of the last state of which Nearest was asked
}

// structures are the keys of the sound records of one state of a file, in their order, by
// structure and backend.
type structures struct {
	state *fileState
	rows  map[structureOn][]structureRow
}

// A structureOn is a structure on a backend.
type structureOn struct {
	print   Fingerprint
	backend string
}

// A structureRow is the key of a record with the logarithms of its extents.
type structureRow struct {
	key  Key
	logs []uint32
}

// Open names a database. The file is created by the first write.
func Open(path string) *DB {
	return &DB{path: path, session: rand.Uint32()}
}

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
// evidence, and reports whether it is the one that was kept. The trials of both,
// and those of PutTrials, are united in it. A damaged record is replaced.
func (db *DB) Put(r Record) (kept bool, err error) {
	if err := r.plausible(); err != nil {
		return false, err
	}
	err = db.update(func(tx *bbolt.Tx) error {
		kept, err = put(tx, r, r.supersedes)
		return err
	})
	return kept && err == nil, err
}

// Replace stores a record in any case, with the trials of the one that it replaces
// and those of PutTrials.
func (db *DB) Replace(r Record) error {
	if err := r.plausible(); err != nil {
		return err
	}
	return db.update(func(tx *bbolt.Tx) error {
		_, err := put(tx, r, func(Record) bool { return true })
		return err
	})
}

// put stores a record if it supersedes the one that is stored. The trials of both
// are kept.
func put(
	tx *bbolt.Tx, r Record, supersedes func(old Record) bool,
) (kept bool, err error) {
	k := r.Key.bytes()
	kept = true
	old, err := readRecord(k, tx.Bucket(bucketWinners).Get(k))
	if err == nil {
		kept = supersedes(old)
		if !kept {
			r, old = old, r
		}
		r.Trials = union(r.Trials, old.Trials)
	}
	unfinished, err := readTrials(k, tx.Bucket(bucketTrials).Get(k))
	if err == nil {
		r.Trials = union(r.Trials, unfinished)
	}
	if err := putJSON(tx, bucketWinners, k, r); err != nil {
		return false, err
	}
	return kept, tx.Bucket(bucketTrials).Delete(k)
}

// PutTrials keeps the trials of an unfinished race, so that it can be resumed. They
// are united with those that are stored, so that two tuners of one fusion lose
// nothing of each other's; damaged ones are replaced. Put moves them to the record.
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
	old, err := readTrials(k, tx.Bucket(bucketTrials).Get(k))
	if err == nil {
		ts = union(ts, old)
	}
	key, err := parseKey(k)
	if err != nil {
		return err
	}
	return putJSON(tx, bucketTrials, k, race{key, ts})
}

// Trials returns the trials that PutTrials and KeepTrials kept for a key; damaged
// ones are a *DamagedError.
func (db *DB) Trials(k Key) (ts []Trial, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		value := tx.Bucket(bucketTrials).Get(k.bytes())
		if value != nil {
			ts, err = readTrials(k.bytes(), value)
		}
		return err
	})
	for _, j := range db.journals() {
		if j.Key == k {
			ts = union(ts, j.Trials)
		}
	}
	return ts, err
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

// DeleteDamaged removes one damaged record or unfinished race, by the key that it
// is stored under. An entry that has become sound meanwhile stays.
func (db *DB) DeleteDamaged(d *DamagedError) error {
	return db.update(func(tx *bbolt.Tx) error {
		name := bucketWinners
		if d.Unfinished {
			name = bucketTrials
		}
		b := tx.Bucket(name)
		value := b.Get(d.stored)
		if value == nil || readEntry(name, d.stored, value) == nil {
			return nil
		}
		return b.Delete(d.stored)
	})
}

// Evidence returns all trials that are known of a key: those of its record and those
// of Trials. What is damaged is left out, with a *DamagedError.
func (db *DB) Evidence(k Key) ([]Trial, error) {
	ts, err := db.Trials(k)
	if errors.Is(err, ErrBusy) {
		return ts, err
	}
	r, found, recordErr := db.Get(k)
	if found {
		ts = union(ts, r.Trials)
	}
	return ts, errors.Join(err, recordErr)
}
