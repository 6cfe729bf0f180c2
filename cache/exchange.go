package cache

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// Merge puts every record of another database into this one by the rule of Put,
// and joins the trials of unfinished races. What is damaged in the other is left
// out, with a *LeftOutError. It returns how many of the other's records were kept,
// and how many sound ones there were.
func (db *DB) Merge(from *DB) (kept, total int, err error) {
	all, err := from.contents()
	if err != nil {
		return 0, 0, err
	}
	if len(all.records)+len(all.races) == 0 {
		return 0, 0, leftOut(all.damaged)
	}
	err = db.update(func(tx *bbolt.Tx) error {
		if kept, err = putAll(tx, all.records); err != nil {
			return err
		}
		for _, u := range all.races {
			if err := putTrials(tx, u.key, u.trials); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return kept, len(all.records), leftOut(all.damaged)
}

// putAll stores records by the rule of Put and returns how many were kept. It goes
// in the order of the keys: each insertion at a random place would move all that
// the transaction holds behind it.
func putAll(tx *bbolt.Tx, all []Record) (kept int, err error) {
	slices.SortStableFunc(all, func(a, b Record) int {
		return bytes.Compare(a.Key.bytes(), b.Key.bytes())
	})
	for _, r := range all {
		isKept, err := put(tx, r, r.supersedes)
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
// same bytes. It writes all that are sound; the others are a *LeftOutError.
func (db *DB) Export(w io.Writer) (n int, err error) {
	all, err := db.contents()
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	for _, r := range all.records {
		if err := enc.Encode(r); err != nil {
			return n, err
		}
		n++
	}
	if err := out.Flush(); err != nil {
		return n, err
	}
	return n, leftOut(all.damagedRecords())
}

// maxLine bounds the bytes of a line of an import. A record of thousands of trials
// is far smaller.
const maxLine = 64 << 20

// Import reads JSON lines as Export writes them and puts every record by the rule
// of Put. If a line is not a plausible record, or check refuses it, nothing is
// changed; a check may change the record, and nil checks nothing.
func (db *DB) Import(
	r io.Reader, check func(*Record) error,
) (kept, total int, err error) {
	all, err := readLines(r, check)
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
func readLines(
	r io.Reader, check func(*Record) error,
) (all []Record, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	line := 0
	for in.Scan() {
		line++
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		r, err := readLine(in.Bytes())
		if err == nil && check != nil {
			err = check(&r)
		}
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
