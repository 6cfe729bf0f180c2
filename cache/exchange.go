package cache

import (
	"bufio"
	"encoding/json"
	"io"

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
	entries, err := encodeAll(all.records)
	if err != nil {
		return 0, 0, err
	}
	err = db.updateMany(entries, func(tx *bbolt.Tx) error {
		if kept, err = putAll(tx, entries); err != nil {
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
