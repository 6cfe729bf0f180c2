package cache

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"
)

// The contents of a file are its sound entries and its damaged ones.
type contents struct {
	records []Record
	races   []unfinishedRace
	damaged []*DamagedError
	rates   []error // of calibrations and packings
}

// An unfinishedRace is the encoding of a key and what PutTrials kept for it.
type unfinishedRace struct {
	key    []byte
	trials []Trial
}

// contents reads everything.
func (db *DB) contents() (all contents, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketWinners, bucketTrials} {
			if err := tx.Bucket(name).ForEach(func(k, value []byte) error {
				all.add(name, bytes.Clone(k), value)
				return nil
			}); err != nil {
				return err
			}
		}
		all.rates = append(verifyCalibrations(tx), verifyPackings(tx)...)
		return nil
	})
	return all, err
}

// entries are the sound records as they are stored, with the unfinished races and what is
// damaged.
func (db *DB) entries() (rest contents, all []entry, err error) {
	var w winnerReader
	err = db.view(func(tx *bbolt.Tx) error {
		err := tx.Bucket(bucketWinners).ForEach(func(k, value []byte) error {
			_, err := w.winner(k, value)
			var damaged *DamagedError
			if errors.As(err, &damaged) {
				rest.damaged = append(rest.damaged, damaged)
				return nil
			}
			all = append(all, entry{bytes.Clone(k), bytes.Clone(value)})
			return nil
		})
		if err != nil {
			return err
		}
		return tx.Bucket(bucketTrials).ForEach(func(k, value []byte) error {
			rest.add(bucketTrials, bytes.Clone(k), value)
			return nil
		})
	})
	return rest, all, err
}

// add reads one entry of a bucket.
func (all *contents) add(bucket, k, value []byte) {
	var err error
	if bytes.Equal(bucket, bucketTrials) {
		var ts []Trial
		if ts, err = readTrials(k, value); err == nil {
			all.races = append(all.races, unfinishedRace{k, ts})
		}
	} else {
		var r Record
		if r, err = readRecord(k, value); err == nil {
			all.records = append(all.records, r)
		}
	}
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		all.damaged = append(all.damaged, damaged)
	}
}

// damagedRecords are the damaged entries but for the unfinished races.
func (all *contents) damagedRecords() (records []*DamagedError) {
	for _, d := range all.damaged {
		if !d.Unfinished {
			records = append(records, d)
		}
	}
	return records
}

// All yields the sound records in the order of their keys, then every damaged one
// as a *DamagedError with a Record that has nothing but its key. It reads them
// before it yields the first: the file is not open while the caller works. Any
// other error is yielded last.
func (db *DB) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		all, err := db.contents()
		for _, r := range all.records {
			if !yield(r, nil) {
				return
			}
		}
		for _, d := range all.damagedRecords() {
			if !yield(Record{Key: d.Key}, d) {
				return
			}
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// Damaged lists the records and the unfinished races that cannot be read.
func (db *DB) Damaged() ([]*DamagedError, error) {
	all, err := db.contents()
	return all.damaged, err
}

// errTorn is reported by Verify only. It does not prevent reading or writing,
// because a power cut leaves a file like that, and then the transaction was never
// reported as done.
var errTorn = kindf(ErrDamaged, "one of the two pages that say what is current is damaged: what was stored last may be missing; the next write repairs the page")

// Verify checks the structure of the file, and of every record, calibration and unfinished race
// that its checksum is right, that it can be decoded, that it is stored under its
// own key and that its values are plausible. It returns the number of records and
// all errors.
func (db *DB) Verify() (n int, err error) {
	db.verified.Store(nil) // walk the file again
	all, err := db.contents()
	errs := append(db.damagedJournals(), leftOut(all.damaged))
	errs = append(errs, all.rates...)
	s := db.verified.Load()
	if s != nil && s.torn {
		errs = append(errs, fmt.Errorf("%s: %w", db.path, errTorn))
	}
	if misfit := s.misfitError(); misfit != nil {
		errs = append(errs, fmt.Errorf("%s: %w", db.path, misfit))
	}
	n = len(all.records) + len(all.damagedRecords())
	return n, errors.Join(append(errs, err)...)
}

// readEntry reports what is wrong with an entry of a bucket.
func readEntry(bucket, k, value []byte) (err error) {
	if bytes.Equal(bucket, bucketTrials) {
		_, err = readTrials(k, value)
	} else {
		_, err = readRecord(k, value)
	}
	return err
}

// readRecord decodes a record, checks it and compares its key with the one that it
// is stored under. Its error is a *DamagedError.
func readRecord(k, value []byte) (r Record, err error) {
	stored, err := parseKey(k)
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
	return r, nil
}

// readTrials decodes and checks the trials of a key. Its error is a *DamagedError.
func readTrials(k, value []byte) (ts []Trial, err error) {
	stored, err := parseKey(k)
	r := race{Key: stored}
	switch {
	case err != nil:
	case bytes.HasPrefix(value[min(4, len(value)):], []byte("[")):
		err = readJSON(value, &r.Trials) // an earlier form, without the key
	default:
		err = readJSON(value, &r)
	}
	if err == nil && r.Key != stored {
		err = errors.New("it holds the trials of another key")
	}
	if err == nil {
		ts = r.Trials
		err = plausible(ts)
	}
	if err != nil {
		damaged := newDamaged(k, stored, err)
		damaged.Unfinished = true
		return nil, damaged
	}
	return ts, nil
}

// newDamaged is the error of an entry. Of a key that cannot be parsed the first
// bytes stand for the fingerprint.
func newDamaged(k []byte, stored Key, err error) *DamagedError {
	if stored == (Key{}) {
		copy(stored.Fusion[:], k)
	}
	return &DamagedError{
		Key:    stored,
		Err:    err,
		stored: bytes.Clone(k),
	}
}
