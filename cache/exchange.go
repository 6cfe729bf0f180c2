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

// Merge puts every record of from into db by the rule of Put, and joins the
// trials of unfinished races: all of it, or none when anything in from is
// damaged. It returns how many of from's records are now db's winners.
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

// An unfinishedRace is what PutTrials kept for a key.
type unfinishedRace struct {
	key    []byte
	trials []Trial
}

func (db *DB) unfinished() (all []unfinishedRace, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketTrials).ForEach(func(k, value []byte) error {
			ts, err := readTrials(k, value)
			if err != nil {
				return fmt.Errorf(
					"the trials of key %x are damaged: %w", k[:min(8, len(k))], err,
				)
			}
			all = append(all, unfinishedRace{bytes.Clone(k), ts})
			return nil
		})
	})
	return all, err
}

func readTrials(k, value []byte) (ts []Trial, err error) {
	if _, err := parseKey(k); err != nil {
		return nil, err
	}
	if err := readJSON(value, &ts); err != nil {
		return nil, err
	}
	return ts, plausible(ts)
}

// putAll stores records by the rule of Put.
func putAll(tx *bbolt.Tx, all []Record) (kept int, err error) {
	for _, r := range all {
		mine, err := put(tx, r)
		if err != nil {
			return kept, fmt.Errorf("%s: %w", r.Name, err)
		}
		if mine {
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

// maxLine bounds a line of an import, in bytes; a record of thousands of trials
// is far smaller.
const maxLine = 64 << 20

// Import reads what Export wrote and puts every record by the rule of Put.
// Nothing in it is trusted: a line that is not a plausible record refuses the
// whole import.
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

func readLine(text []byte) (r Record, err error) {
	if !utf8.Valid(text) {
		return r, errors.New("not UTF-8")
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("not a record: %w", err)
	}
	return r, r.plausible()
}

// errTorn is not in the way of anything else, since it is also what a power cut
// leaves, and then the transaction was never reported as done.
var errTorn = errors.New("one of the two pages that say what is current is damaged: what was stored last may be missing; the next write repairs the page")

// Verify checks the file's structure and every record: its checksum, that it
// decodes, that its key is the one it is stored under and that it can be true.
// It returns how many records there are and everything that is wrong.
func (db *DB) Verify() (n int, err error) {
	db.verified.Store(nil) // look again
	all, errs, err := db.all()
	if err == nil {
		_, err = db.unfinished()
	}
	s := db.verified.Load()
	if s != nil && s.torn {
		errs = append(
			errs, fmt.Errorf("%s: %w", db.path, errTorn),
		)
	}
	return len(all),
		errors.Join(errors.Join(errs...), err)
}
