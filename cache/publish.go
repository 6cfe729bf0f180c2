package cache

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"sync"

	"go.etcd.io/bbolt"
)

// Publish writes a snapshot of the database's winners to path, by renaming a
// complete file, and returns the number of records. Damaged records are left out,
// with a *LeftOutError. A file that is not a snapshot is not replaced, nor is one of
// more than twice as many records (ErrShrinks). It needs the memory of a hundred
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
	w := newSnapshotWriter(tmp)
	damaged, err := db.writeRecords(w)
	if err == nil {
		err = w.finish()
	}
	if err := finish(tmp, err); err != nil {
		return 0, err
	}
	if err := check(path, len(w.placed)); err != nil {
		return 0, err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return 0, err
	}
	syncFolder(path)
	sweep(path)
	return len(w.placed), leftOut(damaged)
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
	err = db.view(func(tx *bbolt.Tx) error {
		var some []storedRecord
		flush := func() error {
			damaged = append(damaged, readAll(some)...)
			for k := range some {
				if some[k].encoded != nil {
					w.add(&some[k])
				}
			}
			some = some[:0]
			return w.err
		}
		if err := tx.Bucket(bucketWinners).ForEach(func(k, value []byte) error {
			if some = append(some, storedRecord{stored: entry{k, value}}); len(some) < publishedAtOnce {
				return nil
			}
			return flush()
		}); err != nil {
			return err
		}
		return flush()
	})
	return damaged, err
}

// A storedRecord is a record of the database and its encoding in a snapshot.
type storedRecord struct {
	stored    entry // in the memory of the transaction
	hash      uint64
	structure uint64 // hash of structure and backend
	volume    float32
	encoded   []byte // nil for a damaged one
	damage    *DamagedError
}

// readAll encodes records, in as many goroutines as there are processors.
func readAll(some []storedRecord) (damaged []*DamagedError) {
	var workers sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for share := range n {
		workers.Go(func() {
			for k := share; k < len(some); k += n {
				some[k].read()
			}
		})
	}
	workers.Wait()
	for k := range some {
		if some[k].damage != nil {
			damaged = append(damaged, some[k].damage)
		}
	}
	return damaged
}

// A winnerOnly is a record of which samples and evidence are not read.
type winnerOnly struct {
	Record
	Trials   skipped `json:"trials"`
	Evidence skipped `json:"evidence"`
}

// A skipped value of JSON is checked for its form only.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }

// read encodes one record.
func (x *storedRecord) read() {
	r, err := readWinner(x.stored.key, x.stored.value)
	if err != nil {
		errors.As(err, &x.damage)
		return
	}
	x.encode(&r)
}

// encode makes the encoding of a record, and what it is found by.
func (x *storedRecord) encode(r *Record) {
	s := StructureOf(r.Canonical)
	x.hash = r.Key.hash()
	x.structure = structureHash(&s.Print, r.Backend)
	x.volume = float32(s.volume())
	x.encoded = appendRecord(nil, r, s)
}

// A placed record is in the file.
type placed struct {
	hash, structure, at uint64
	length              uint32
	volume              float32
}

// A snapshotWriter writes a snapshot: records, then what they are found by, then the
// header.
type snapshotWriter struct {
	file   io.ReadWriteSeeker
	out    *bufio.Writer
	at     uint64
	placed []placed
	err    error
}

func newSnapshotWriter(f io.ReadWriteSeeker) *snapshotWriter {
	w := &snapshotWriter{file: f, out: bufio.NewWriterSize(f, 1<<20)}
	w.write(make([]byte, snapshotHeaderSize))
	return w
}

// write appends to the file.
func (w *snapshotWriter) write(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
		w.at += uint64(len(b))
	}
}

// add appends a record.
func (w *snapshotWriter) add(x *storedRecord) {
	w.placed = append(w.placed, placed{x.hash, x.structure, w.at, uint32(len(x.encoded)), x.volume})
	w.write(x.encoded)
}

// finish writes the tables and the header.
func (w *snapshotWriter) finish() error {
	h := header{count: len(w.placed), slotsAt: w.at}
	var table []byte
	table, h.slots = w.slots()
	w.write(table)
	h.kinAt = w.at
	table, h.structures = w.kin()
	w.write(table)
	h.size = w.at
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err == nil {
		h.revision, w.err = w.digest()
	}
	if w.err == nil {
		_, w.err = w.file.Seek(0, io.SeekStart)
	}
	if w.err == nil {
		_, w.err = w.file.Write(h.bytes())
	}
	return w.err
}

// digest is the revision of what was written.
func (w *snapshotWriter) digest() (uint64, error) {
	if _, err := w.file.Seek(snapshotHeaderSize, io.SeekStart); err != nil {
		return 0, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, w.file); err != nil {
		return 0, err
	}
	return little.Uint64(sum.Sum(nil)), nil
}

// revisionOf is the revision of a file with the given bytes behind its header.
func revisionOf(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return little.Uint64(sum[:])
}

// slots is the table of the keys, and the logarithm of its slots. Collisions go to
// the next free slot.
func (w *snapshotWriter) slots() (table []byte, log int) {
	log = bits.Len(uint(2*len(w.placed) + 1)) // at most half full
	table = make([]byte, snapshotSlotSize<<log)
	for _, x := range w.placed {
		entry := freeSlot(table, x.hash, log)
		little.PutUint32(entry, uint32(x.hash>>32))
		little.PutUint64(entry[4:], x.at)
		little.PutUint32(entry[12:], x.length)
	}
	return table, log
}

// freeSlot is the first slot that is free from that of a hash on.
func freeSlot(table []byte, hash uint64, log int) []byte {
	for slot := hash; ; slot++ {
		entry := table[slot&(1<<log-1)*snapshotSlotSize:][:snapshotSlotSize]
		if little.Uint32(entry[12:]) == 0 {
			return entry
		}
	}
}

// kin is the table of the structures with the entries of their records behind it.
func (w *snapshotWriter) kin() (table []byte, log int) {
	slices.SortFunc(w.placed, func(a, b placed) int {
		return cmp.Or(
			cmp.Compare(a.structure, b.structure), cmp.Compare(a.volume, b.volume), cmp.Compare(a.at, b.at),
		)
	})
	structures := 0
	for k := range w.placed {
		if k == 0 || w.placed[k].structure != w.placed[k-1].structure {
			structures++
		}
	}
	log = bits.Len(uint(2*structures + 1))
	table = make([]byte, snapshotSlotSize<<log, snapshotSlotSize<<log+snapshotSlotSize*len(w.placed))
	for first := 0; first < len(w.placed); {
		last := first + 1
		for last < len(w.placed) && w.placed[last].structure == w.placed[first].structure {
			last++
		}
		slot := freeSlot(table[:snapshotSlotSize<<log], w.placed[first].structure, log)
		little.PutUint64(slot, w.placed[first].structure)
		little.PutUint32(slot[8:], uint32(first))
		little.PutUint32(slot[12:], uint32(last-first))
		first = last
	}
	for _, x := range w.placed {
		table = little.AppendUint64(table, x.at)
		table = little.AppendUint32(table, x.length)
		table = little.AppendUint32(table, math.Float32bits(x.volume))
	}
	return table, log
}

// readWinner is readRecord without samples: those are as their checksum says, and
// nobody looks at them here.
func readWinner(k, value []byte) (Record, error) {
	stored, err := parseKey(k)
	var r winnerOnly
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
	return r.Record, nil
}
