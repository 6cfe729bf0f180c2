package cache

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"go.etcd.io/bbolt"
)

// Merge puts every record of another database into this one by the rule of Put,
// and joins the trials of unfinished races. What is damaged in the other is left
// out, with a *LeftOutError. It returns how many of the other's records were kept,
// and how many sound ones there were.
func (db *DB) Merge(from *DB) (kept, total int, err error) {
	all, entries, err := from.entries()
	if err != nil {
		return 0, 0, err
	}
	if len(entries)+len(all.races) == 0 {
		return 0, 0, leftOut(all.damaged)
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
	return kept, len(entries), leftOut(all.damaged)
}

// Export writes records as JSON lines, in key order: the same records give the
// same bytes. The last member of a line is a digest of those before it, by which Import
// sees that nobody has edited it. All that are sound are written; the others are a
// *LeftOutError.
func (db *DB) Export(w io.Writer) (n int, err error) {
	all, err := db.contents()
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriter(w)
	for k := range all.records {
		line, err := all.records[k].ExportLine()
		if err != nil {
			return n, err
		}
		_, _ = out.Write(line) // Flush has the error
		n++
	}
	if err := out.Flush(); err != nil {
		return n, err
	}
	return n, leftOut(all.damagedRecords())
}

// digestFormat ends a line of an export: the CRC-32C of what stands before it.
const (
	digestFormat = `,"digest":"%08x"}`
	digestBytes  = len(`,"digest":"01234567"}`)
)

// ExportLine is the line of a record in an export.
func (r *Record) ExportLine() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	text = text[:len(text)-1]
	sum := crc32.Checksum(text, castagnoli)
	return fmt.Appendf(text, digestFormat+"\n", sum), nil
}

// unedited is the text of a record in a line that is as ExportLine made it. It is a part
// of the line, which is changed.
func unedited(line []byte) (text []byte, ok bool) {
	at := len(line) - digestBytes
	if at < 0 {
		return nil, false
	}
	sum := crc32.Checksum(line[:at], castagnoli)
	end := fmt.Appendf(nil, digestFormat, sum)
	if !bytes.Equal(line[at:], end) {
		return nil, false
	}
	line[at] = '}'
	return line[:at+1], true
}
