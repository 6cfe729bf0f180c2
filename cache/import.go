package cache

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// maxLine bounds the bytes of a line of an import. A record of thousands of trials
// is far smaller.
const maxLine = 64 << 20

// Import reads JSON lines as Export writes them and puts every record by the rule
// of Put; lines of one key are united with each other first, and the best of them is
// put. If a line is not a plausible record, or check refuses it, nothing is changed;
// a check may change the record, is called from several goroutines, and nil checks
// nothing. A line that nobody has edited since Export wrote it, of a record that was
// Checked, is not given to check, but is not Checked here. The memory that it needs is
// about three times the text.
func (db *DB) Import(
	r io.Reader, check func(*Record) error,
) (kept, total int, err error) {
	all, err := readLines(r, check)
	if err != nil || len(all) == 0 {
		return 0, 0, err
	}
	err = db.updateMany(all, func(tx *bbolt.Tx) error {
		kept, err = putAll(tx, all)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return kept, len(all), nil
}

// An entry is a record as it is stored. Records of an import are held like that,
// because decoded ones need several times the memory.
type entry struct {
	key, value []byte
}

// encode is the entry of a record.
func (r *Record) encode() (entry, error) {
	value, err := encodeJSON(r)
	return entry{r.Key.bytes(), value}, err
}

// lineBatchBytes is the text that a goroutine decodes at a time.
const lineBatchBytes = 1 << 18

// A lineBatch is a run of lines that one goroutine decodes.
type lineBatch struct {
	first   int // number of the first line
	lines   [][]byte
	entries []entry
	err     error // of the first line that is refused
}

// readLines reads a record a line, in as many goroutines as there are processors;
// blank lines are skipped.
func readLines(r io.Reader, check func(*Record) error) ([]entry, error) {
	var all []*lineBatch
	var workers sync.WaitGroup
	var refused atomic.Bool
	work := make(chan *lineBatch)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for b := range work {
				if b.decode(check); b.err != nil {
					refused.Store(true)
				}
			}
		})
	}
	err := splitLines(r, func(b *lineBatch) bool {
		all = append(all, b)
		work <- b
		return !refused.Load()
	})
	close(work)
	workers.Wait()
	var entries []entry
	for _, b := range all {
		if b.err != nil {
			return nil, b.err
		}
		entries = append(entries, b.entries...)
	}
	return entries, err
}

// splitLines yields the lines of a text in batches, until yield returns false.
func splitLines(r io.Reader, yield func(*lineBatch) bool) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	b := &lineBatch{first: 1}
	size := 0
	for in.Scan() {
		b.lines = append(b.lines, bytes.Clone(in.Bytes()))
		size += len(in.Bytes())
		if size < lineBatchBytes {
			continue
		}
		next := &lineBatch{first: b.first + len(b.lines)}
		if !yield(b) {
			return nil
		}
		b, size = next, 0
	}
	next := b.first + len(b.lines)
	if !yield(b) {
		return nil
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: longer than %d MiB", next, maxLine>>20)
	}
	return in.Err()
}

// decode makes the entries of a batch, up to the first line that is refused.
func (b *lineBatch) decode(check func(*Record) error) {
	var w winnerReader
	for k, text := range b.lines {
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		e, err := w.line(text, check)
		if err != nil {
			b.err = fmt.Errorf("line %d: %w", b.first+k, err)
			break
		}
		b.entries = append(b.entries, e)
	}
	b.lines = nil
}

// line is the entry of a line.
func (w *winnerReader) line(line []byte, check func(*Record) error) (entry, error) {
	text, ok := unedited(line)
	if !ok {
		return decodeLine(line, check)
	}
	var r Record
	if !w.scan(text, &r) || check != nil && !r.Checked {
		return decodeLine(text, check)
	}
	if err := r.plausible(); err != nil {
		return entry{}, err
	}
	if check != nil {
		rest := text[w.check+len("true"):]
		text = slices.Concat(text[:w.check], []byte("false"), rest)
	}
	return entry{r.Key.bytes(), withChecksum(text)}, nil
}

// decodeLine reads and checks one record.
func decodeLine(text []byte, check func(*Record) error) (entry, error) {
	var r Record
	if !utf8.Valid(text) {
		return entry{}, errors.New("not UTF-8")
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return entry{}, fmt.Errorf("not a record: %w", err)
	}
	if err := repeatedMember(text); err != nil {
		return entry{}, err
	}
	err := r.plausible()
	if err == nil && check != nil {
		err = check(&r)
	}
	if err != nil {
		return entry{}, err
	}
	return r.encode()
}

// sortedFill is how full pages become where keys come in order: the rest is for
// records that grow.
const sortedFill = 0.9

// putAll stores records by the rule of Put and returns how many were kept. It goes
// in the order of the keys: each insertion at a random place would move all that
// the transaction holds behind it.
func putAll(tx *bbolt.Tx, all []entry) (kept int, err error) {
	slices.SortStableFunc(all, func(a, b entry) int {
		return bytes.Compare(a.key, b.key)
	})
	tx.Bucket(bucketWinners).FillPercent = sortedFill
	for len(all) > 0 {
		n := 1
		for n < len(all) && bytes.Equal(all[n].key, all[0].key) {
			n++
		}
		isKept, err := putSame(tx, all[:n])
		if err != nil {
			return kept, err
		}
		if isKept {
			kept++
		}
		all = all[n:]
	}
	return kept, nil
}

// putSame stores records of one key. A single one that nothing is stored of is
// stored as it is.
func putSame(tx *bbolt.Tx, same []entry) (kept bool, err error) {
	k := same[0].key
	winners := tx.Bucket(bucketWinners)
	if len(same) == 1 && winners.Get(k) == nil &&
		tx.Bucket(bucketTrials).Get(k) == nil {
		return true, winners.Put(k, same[0].value)
	}
	records := make([]Record, len(same))
	for n, e := range same {
		if records[n], err = readRecord(k, e.value); err != nil {
			return false, err
		}
	}
	r := combine(records)
	return put(tx, r, r.supersedes)
}

// combine is the best of some records of one key, with the trials of all.
func combine(records []Record) Record {
	at := best(records)
	r := records[at]
	var others [][]Trial
	for k := range records {
		if k != at {
			others = append(others, records[k].Trials)
		}
	}
	r.Trials = union(r.Trials, others...)
	return r
}

// best is the position of the record that supersedes the others. The halves have
// their best first: so a long record is not compared with each of the others.
func best(records []Record) int {
	if len(records) == 1 {
		return 0
	}
	half := len(records) / 2
	first, second := best(records[:half]), half+best(records[half:])
	if records[second].supersedes(records[first]) {
		return second
	}
	return first
}

// updateMany is update for entries that may be far more than the file holds: the
// file is mapped once for all of them, because each larger mapping makes bbolt copy
// what the transaction holds.
func (db *DB) updateMany(all []entry, f func(*bbolt.Tx) error) error {
	size := 0
	for _, e := range all {
		size += len(e.key) + len(e.value)
	}
	o := bbolt.Options{Timeout: writeTimeout}
	if size > manyBytes {
		o.InitialMmapSize = 2 * size // pages are at least half full
		if info, err := os.Stat(db.path); err == nil {
			o.InitialMmapSize += int(info.Size())
		}
	}
	return db.updateWith(o, f)
}

// manyBytes is the size from which a mapping of its own is worth it; bbolt grows a
// file that is mapped beyond that in steps of 16 MiB.
const manyBytes = 16 << 20
