package cache

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"

	"go.etcd.io/bbolt"
)

// Publish writes a snapshot of the database's winners to path, by renaming a
// complete file, and returns the number of records. Damaged records are left out,
// with a *LeftOutError. A file that is not a snapshot is not replaced, nor is one of
// more than twice as many records (ErrShrinks). It needs the memory of two hundred
// bytes a record.
func (db *DB) Publish(path string) (n int, err error) {
	if err := checkReplaceable(path); err != nil {
		return 0, err
	}
	return db.publish(path, checkShrinking)
}

// PublishOver is Publish that replaces any regular file.
func (db *DB) PublishOver(path string) (n int, err error) {
	if err := checkRegularFile(path); err != nil {
		return 0, err
	}
	return db.publish(path, func(string, int) error { return nil })
}

// publish writes the snapshot of the sound records beside path and renames it, if
// check allows that for their number.
func (db *DB) publish(path string, check func(path string, records int) error) (n int, err error) {
	if err := checkFolder(path); err != nil {
		return 0, err
	}
	tmp, err := tempBeside(path)
	if err != nil {
		return 0, err
	}
	defer os.Remove(tmp.Name()) // fails once it is renamed
	n, damaged, err := db.writeTo(tmp, path)
	if err := finish(tmp, err); err != nil {
		return 0, err
	}
	if err := check(path, n); err != nil {
		return 0, err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return 0, err
	}
	syncFolder(path)
	sweep(path)
	return n, leftOut(damaged)
}

// writeTo writes a snapshot for a path and returns the number of its records and what is damaged.
func (db *DB) writeTo(f *os.File, path string) (n int, damaged []*DamagedError, err error) {
	spool, err := tempBeside(path)
	if err != nil {
		return 0, nil, err
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	w := newSnapshotWriter(f, spool)
	damaged, err = db.writeRecords(w)
	if err == nil {
		err = w.finish()
	}
	return len(w.placed), damaged, err
}

// checkReplaceable refuses a path where there is anything but a snapshot, above
// all a database.
func checkReplaceable(path string) error {
	if err := checkRegularFile(path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(snapshotMagic))
	n, err := io.ReadFull(f, head)
	if n > 0 && string(head[:6]) != snapshotMagic[:6] {
		return kindf(ErrForeign, "%s is there and is no tilewright snapshot; it is not replaced", path)
	}
	if err != nil && n > 0 && err != io.ErrUnexpectedEOF {
		return err
	}
	return nil
}

// checkShrinking refuses to replace a snapshot by one of fewer than half of its
// records.
func checkShrinking(path string, records int) error {
	old, err := OpenSnapshot(path)
	if err != nil {
		return nil // there is none, or it is damaged
	}
	defer old.Close()
	if 2*records < old.Len() {
		return kindf(ErrShrinks, "%s has %d records and would have %d", path, old.Len(), records)
	}
	return nil
}

// publishedAtOnce is how many records are read by the goroutines together.
const publishedAtOnce = 1 << 12

// writeRecords writes the sound records of the database in the order of their keys
// and returns what is damaged.
func (db *DB) writeRecords(w *snapshotWriter) (damaged []*DamagedError, err error) {
	p := newPublication(w)
	err = db.view(func(tx *bbolt.Tx) error {
		err := tx.Bucket(bucketWinners).ForEach(func(k, value []byte) error {
			p.collect(entry{k, value})
			if len(p.some) < publishedAtOnce {
				return nil
			}
			forgetPages(tx)
			return p.flush()
		})
		err = errors.Join(err, p.flush())
		p.written.Wait() // before the transaction ends
		return err
	})
	return p.damaged, errors.Join(err, p.err)
}

// A publication writes records, some at a time, while the next ones are collected.
type publication struct {
	w       *snapshotWriter
	readers chan *winnerReader
	some    []storedRecord // the next
	before  []storedRecord // those that are written
	written sync.WaitGroup
	damaged []*DamagedError
	err     error
}

func newPublication(w *snapshotWriter) *publication {
	n := runtime.GOMAXPROCS(0)
	p := &publication{w: w, readers: make(chan *winnerReader, n)}
	for range n {
		p.readers <- new(winnerReader)
	}
	return p
}

// collect adds a record to the next, in the memory of one that was written.
func (p *publication) collect(stored entry) {
	n := len(p.some)
	p.some = slices.Grow(p.some, 1)[:n+1]
	old := &p.some[n]
	*old = storedRecord{stored: stored, logs: old.logs[:0], encoded: old.encoded[:0]}
}

// flush begins to write the records that were collected.
func (p *publication) flush() error {
	p.written.Wait()
	p.some, p.before = p.before[:0], p.some
	if p.err == nil {
		p.written.Go(func() { p.err = p.write() })
		return nil
	}
	return p.err
}

// write reads records in as many goroutines as there are processors, and adds them in
// order.
func (p *publication) write() error {
	const piece = publishedAtOnce / 64
	err := inParallel(len(p.before), piece, func(first, end int) error {
		w := <-p.readers
		for k := first; k < end; k++ {
			p.before[k].read(w)
		}
		p.readers <- w
		return nil
	})
	for k := range p.before {
		x := &p.before[k]
		if x.damage != nil {
			p.damaged = append(p.damaged, x.damage)
			continue
		}
		p.w.add(x)
	}
	return errors.Join(err, p.w.err)
}

// A storedRecord is a record of the database and its encoding in a snapshot.
type storedRecord struct {
	stored  entry       // in the memory of the transaction
	print   Fingerprint // of its structure
	logs    []uint32    // of its extents
	kin     uint64      // hash of structure and backend
	origin  originTexts
	encoded []byte // without meaning for a damaged one
	damage  *DamagedError
}

// read encodes one record.
func (x *storedRecord) read(w *winnerReader) {
	r, err := w.winner(x.stored.key, x.stored.value)
	if err != nil {
		errors.As(err, &x.damage)
		return
	}
	x.encode(&r, w)
}

// encode makes the encoding of a record, and what it is found by.
func (x *storedRecord) encode(r *Record, w *winnerReader) {
	x.print = w.structures.read(r.Canonical).Print
	x.logs = w.structures.appendLogs(x.logs)
	x.kin = structureHash(&x.print, r.Backend)
	x.origin = originTexts{r.Device, r.Backend, r.Codegen, w.safeText, r.By}
	x.encoded = encodeRecord(x.encoded, r, x.kin)
}
