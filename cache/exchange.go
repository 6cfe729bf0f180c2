package cache

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// Merge puts every record of another database into this one by the rule of Put,
// and joins the trials of unfinished races. If anything in the other is damaged,
// nothing is changed. It returns how many of the other's records were kept, and how
// many there were.
func (db *DB) Merge(from *DB) (kept, total int, err error) {
	all, err := from.intactRecords()
	if err != nil {
		return 0, 0, err
	}
	unfinished, err := from.unfinished()
	if err != nil {
		return 0, 0, err
	}
	if len(all)+len(unfinished) == 0 {
		return 0, 0, nil
	}
	err = db.update(func(tx *bbolt.Tx) error {
		if kept, err = putAll(tx, all); err != nil {
			return err
		}
		for _, u := range unfinished {
			if err := putTrials(tx, u.key, u.trials); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return kept, len(all), nil
}

// An unfinishedRace is the encoding of a key and what PutTrials kept for it.
type unfinishedRace struct {
	key    []byte
	trials []Trial
}

// unfinished reads all trials that PutTrials kept; one that is damaged is an error.
func (db *DB) unfinished() (all []unfinishedRace, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketTrials).ForEach(func(k, value []byte) error {
			ts, err := readTrials(k, value)
			if err != nil {
				return kindf(
					ErrDamaged, "the trials of key %x are damaged: %w",
					k[:min(8, len(k))], err,
				)
			}
			all = append(all, unfinishedRace{bytes.Clone(k), ts})
			return nil
		})
	})
	return all, err
}

// readTrials decodes and checks the trials of a key.
func readTrials(k, value []byte) (ts []Trial, err error) {
	if _, err := parseKey(k); err != nil {
		return nil, err
	}
	if err := readJSON(value, &ts); err != nil {
		return nil, err
	}
	return ts, plausible(ts)
}

// putAll stores records by the rule of Put and returns how many were kept.
func putAll(tx *bbolt.Tx, all []Record) (kept int, err error) {
	for _, r := range all {
		isKept, err := put(tx, r)
		if err != nil {
			return kept, fmt.Errorf("%s: %w", r.Name, err)
		}
		if isKept {
			kept++
		}
	}
	return kept, nil
}

// Export writes records as JSON lines, in key order: the same records give the
// same bytes. It writes all that are sound, and its error names the others.
func (db *DB) Export(w io.Writer) (n int, err error) {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	var damaged []error
	for r, err := range db.All() {
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		if err := enc.Encode(r); err != nil {
			return n, err
		}
		n++
	}
	return n, errors.Join(append(damaged, out.Flush())...)
}

// maxLine bounds the bytes of a line of an import. A record of thousands of trials
// is far smaller.
const maxLine = 64 << 20

// Import reads JSON lines as Export writes them and puts every record by the rule
// of Put. If a line is not a plausible record, nothing is changed.
func (db *DB) Import(r io.Reader) (kept, total int, err error) {
	all, err := readLines(r)
	if err != nil || len(all) == 0 {
		return 0, 0, err
	}
	err = db.update(func(tx *bbolt.Tx) error {
		kept, err = putAll(tx, all)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return kept, len(all), nil
}

// readLines reads a record a line; blank lines are skipped.
func readLines(r io.Reader) (all []Record, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	line := 0
	for in.Scan() {
		line++
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		r, err := readLine(in.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		all = append(all, r)
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: longer than %d MiB", line+1, maxLine>>20)
	}
	return all, in.Err()
}

// readLine reads one record and checks it.
func readLine(text []byte) (r Record, err error) {
	if !utf8.Valid(text) {
		return r, errors.New("not UTF-8")
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("not a record: %w", err)
	}
	return r, r.plausible()
}

// errTorn is reported by Verify only. It does not prevent reading or writing,
// because a power cut leaves a file like that, and then the transaction was never
// reported as done.
var errTorn = kindf(ErrDamaged, "one of the two pages that say what is current is damaged: what was stored last may be missing; the next write repairs the page")

// Verify checks the structure of the file, and of every record that its checksum
// is right, that it can be decoded, that it is stored under its own key and that its
// values are plausible. It returns the number of records and all errors.
func (db *DB) Verify() (n int, err error) {
	db.verified.Store(nil) // walk the file again
	all, errs, err := db.all()
	if err == nil {
		_, err = db.unfinished()
	}
	s := db.verified.Load()
	if s != nil && s.torn {
		errs = append(errs, fmt.Errorf("%s: %w", db.path, errTorn))
	}
	return len(all), errors.Join(errors.Join(errs...), err)
}
