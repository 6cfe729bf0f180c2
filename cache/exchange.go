package cache

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"
)

// Merge puts every record of from into db by the rule of Put; trials of both
// sides are kept. It returns how many of from's records are now db's.
func (db *DB) Merge(from *DB) (kept, total int, err error) {
	var all []Record
	for r, err := range from.All() {
		if err != nil {
			return 0, 0, err
		}
		all = append(all, r)
	}
	return db.putAll(all)
}

// putAll stores records in one transaction: all or none.
func (db *DB) putAll(all []Record) (kept, total int, err error) {
	if len(all) == 0 {
		return 0, 0, nil
	}
	err = db.update(func(tx *bbolt.Tx) error {
		kept = 0
		for _, r := range all {
			mine, err := put(tx, r)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			if mine {
				kept++
			}
		}
		return nil
	})
	return kept, len(all), err
}

// Export writes records as JSON lines, in key order: the same records give the
// same bytes.
func (db *DB) Export(w io.Writer) (n int, err error) {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	for r, err := range db.All() {
		if err != nil {
			return n, err
		}
		if err := enc.Encode(r); err != nil {
			return n, err
		}
		n++
	}
	return n, out.Flush()
}

// maxLine bounds a line of an import; a record of thousands of trials is far
// smaller.
const maxLine = 64 << 20

// Import reads what Export wrote and puts every record by the rule of Put. A
// line that is not a plausible record refuses the whole import.
func (db *DB) Import(r io.Reader) (kept, total int, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	var all []Record
	for line := 1; in.Scan(); line++ {
		if len(in.Bytes()) == 0 {
			continue
		}
		var r Record
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return 0, 0, fmt.Errorf("line %d is not a record: %w", line, err)
		}
		if err := r.plausible(); err != nil {
			return 0, 0, fmt.Errorf("line %d: %w", line, err)
		}
		all = append(all, r)
	}
	if err := in.Err(); err != nil {
		return 0, 0, err
	}
	return db.putAll(all)
}

// Verify checks every record: its checksum, that it decodes, that its key is
// the one it is stored under and that it can be true. It returns how many there
// are and everything that is wrong.
func (db *DB) Verify() (n int, err error) {
	var wrong []error
	err = db.view(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			wrong = append(wrong, err)
		}
		return each(tx, bucketWinners, func(k, value []byte) error {
			n++
			if err := verifyRecord(k, value); err != nil {
				wrong = append(wrong, fmt.Errorf("record %x: %w", k[:min(8, len(k))], err))
			}
			return nil
		})
	})
	return n, errors.Join(append(wrong, err)...)
}

func verifyRecord(k, value []byte) error {
	var r Record
	if err := decode(value, &r); err != nil {
		return err
	}
	if string(r.Key.bytes()) != string(k) {
		return errors.New("it is stored under another key")
	}
	return r.plausible()
}
