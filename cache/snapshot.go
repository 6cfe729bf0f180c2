package cache

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"sync/atomic"
)

// A Snapshot is an immutable hash table of winners in a mapped file, which the
// processes of a machine share. Lookups take no lock, allocate nothing and may come
// from any goroutine. What is found is a copy, and its digest is compared after it
// was made: whatever happens to the file under a reader, an answer is the stored one,
// a miss or an error, and nothing that was handed out changes. (A new snapshot is
// moved into the place of the old one, which stays as it is for those who have it
// open. Only a program that is not this one truncates or overwrites it in its place.)
//
// docs/formats.md describes the file, which tilewright_snapshot.h reads in C: a header,
// the table by which a record is found, with the records in it, their origins, which they
// share, and the structures with the extents of their records.
type Snapshot struct {
	header
	data    []byte
	unmap   func([]byte) error
	origins []atomic.Pointer[origin] // those that were asked for, out of the file
}

// A header is that of a snapshot.
type header struct {
	size        uint64 // of the file, in bytes
	revision    uint64
	count       uint32 // records
	structCount uint32 // structures
	originCount uint32
	originIndex uint32 // line of the lines of the origins, u32 each
	keys        index  // of the records
	structures  index  // of the blocks of structures
}

const (
	maxSnapshotBytes = 1 << 36
	keysLine         = 1 // of the index of keys: behind the header
)

// bytes is the encoded header.
func (h *header) bytes() []byte {
	out := make([]byte, lineBytes)
	copy(out, snapshotMagic)
	put64(out, 8, h.size)
	put64(out, 16, h.revision)
	for k, n := range [...]uint32{
		h.count, h.structCount, h.originCount, h.originIndex,
		uint32(h.keys.seed), uint32(h.keys.slotLines),
		uint32(h.structures.pilots), uint32(h.structures.seed),
	} {
		put32(out, 24+4*k, n)
	}
	seal(out, 0)
	return out
}

// readHeader reads the header of a snapshot, at the beginning of data; size is that
// of the whole file.
func readHeader(data []byte, size int64) (h header, err error) {
	const versionAt = len(snapshotMagic) - 2
	if len(data) < len(snapshotMagic) ||
		string(data[:versionAt]) != snapshotMagic[:versionAt] {
		return h, kindf(ErrForeign, "not a tilewright snapshot")
	}
	version := string(data[versionAt:len(snapshotMagic)])
	if version != snapshotMagic[versionAt:] {
		return h, kindf(ErrNewer, "a snapshot of version %q; this tilewright reads %s: publish it again", version, snapshotMagic[versionAt:])
	}
	if len(data) < lineBytes || !sealed(data[:lineBytes], 0) {
		return h, kindf(ErrDamaged, "the snapshot's header is damaged; publish it again")
	}
	n := func(k int) uint32 {
		return u32(data, 24+4*k)
	}
	h = header{
		size:        u64(data, 8),
		revision:    u64(data, 16),
		count:       n(0),
		structCount: n(1),
		originCount: n(2),
		originIndex: n(3),
	}
	h.keys = indexOf(h.count, keysLine, n(4), n(5))
	h.structures = indexOf(h.structCount, n(6), n(7), 1)
	return h, h.check(uint64(size))
}

// check refuses a header whose parts do not fit a file of size bytes.
func (h *header) check(size uint64) error {
	origins := uint64(h.originIndex)*lineBytes + 4*uint64(h.originCount)
	tables := max(h.keys.end(), h.structures.end())
	switch {
	case size > maxSnapshotBytes:
		return kindf(ErrForeign, "a snapshot of %d MiB; at most %d are read", size>>20, maxSnapshotBytes>>20)
	case h.size != size || h.keys.slotLines == 0 || tables*lineBytes > size || origins > size:
		return kindf(ErrDamaged, "the snapshot is cut short; publish it again")
	}
	return nil
}

// OpenSnapshot maps a file that Publish wrote. Its header is checked, a record when
// it is looked up.
func OpenSnapshot(path string) (*Snapshot, error) {
	if err := checkRegularFile(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := openSnapshot(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// openSnapshot maps an open file.
func openSnapshot(f *os.File) (*Snapshot, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, min(info.Size(), lineBytes))
	if _, err := f.ReadAt(head, 0); err != nil && len(head) > 0 {
		return nil, err
	}
	h, err := readHeader(head, info.Size())
	if err != nil {
		return nil, err
	}
	if info.Size() > math.MaxInt {
		return nil, kindf(ErrForeign, "a snapshot of %d MiB is too large to be mapped", info.Size()>>20)
	}
	data, unmap, err := mapFile(f, int(info.Size()))
	adviseHugePages(data)
	return mapped(h, data, unmap), err
}

// newSnapshot is the snapshot of a whole file in memory.
func newSnapshot(data []byte) (*Snapshot, error) {
	h, err := readHeader(data, int64(len(data)))
	if err != nil {
		return nil, err
	}
	unmap := func([]byte) error { return nil }
	return mapped(h, data, unmap), nil
}

// mapped is the snapshot of a mapping.
func mapped(h header, data []byte, unmap func([]byte) error) *Snapshot {
	origins := make([]atomic.Pointer[origin], h.originCount)
	return &Snapshot{h, data, unmap, origins}
}

// A PinError is the error of a snapshot that is not of the revision that was asked
// for.
type PinError struct{ Path, Want, Found string }

func (e *PinError) Error() string {
	return fmt.Sprintf("%s is of revision %s, not %s", e.Path, e.Found, e.Want)
}

// OpenSnapshotAt opens a snapshot if it is of a revision, so that all processes of a
// job answer the same. Another revision is a *PinError.
func OpenSnapshotAt(path, revision string) (*Snapshot, error) {
	s, err := OpenSnapshot(path)
	if err != nil || s.Revision() == revision {
		return s, err
	}
	pin := &PinError{path, revision, s.Revision()}
	return nil, errors.Join(pin, s.Close())
}

// Len is the number of records.
func (s *Snapshot) Len() int { return int(s.count) }

// Revision names the contents: 16 hexadecimal digits. Snapshots of the same records
// have the same revision.
func (s *Snapshot) Revision() string {
	return fmt.Sprintf("%016x", s.revision)
}

// Close gives the mapping back. Afterwards every Get misses. A Get that another
// goroutine has begun must have returned.
func (s *Snapshot) Close() error {
	data, unmap := s.data, s.unmap
	*s = Snapshot{}
	if data == nil {
		return nil
	}
	return unmap(data)
}

// Errors of lookups in a snapshot that is not as it was published. They are made in
// advance, so that a lookup allocates nothing.
var (
	errCutShort      = kindf(ErrDamaged, "the snapshot was cut short while it was open; publish it again, and open it again")
	errRecordDamaged = kindf(ErrDamaged, "a record of the snapshot is damaged; publish it again")
	errTableDamaged  = kindf(ErrDamaged, "a table of the snapshot is damaged; publish it again")
)

// Get finds the record of a key and copies it to hit. A record that is damaged and
// may be that of the key, or a file that was cut short, is an error (ErrDamaged).
func (s *Snapshot) Get(k *Key, hit *Hit) (found bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			found, err = false, faultError(r)
		}
	}()
	return s.get(k, hit)
}

// faultError is the error of a fault in a mapping; it panics again for anything else.
func faultError(r any) error {
	if _, ok := r.(interface{ Addr() uintptr }); !ok {
		panic(r)
	}
	return errCutShort
}

// get is Get without faults.
func (s *Snapshot) get(k *Key, hit *Hit) (found bool, err error) {
	if len(s.data) == 0 {
		return false, nil
	}
	hash := mix(hit.asked.hashOf(k, s.keys.seed) ^ u64(k.Fusion[:], 0))
	there, err := s.read(s.keys.line(s.data, hash), hit)
	if err != nil {
		return false, err
	}
	if there && hit.Fusion == k.Fusion && hit.asked.by(hit.origin) {
		return true, nil
	}
	if !s.keys.sound(s.data, hash) {
		return false, errTableDamaged
	}
	return false, nil
}

// All yields the records, in no particular order, as Hit.Record has them. One that is
// damaged is an error (ErrDamaged) with an empty Record, after which the others follow.
func (s *Snapshot) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var hit Hit
		for slot := range s.keys.slotCount {
			there, err := s.slot(slot, &hit)
			if err != nil && !yield(Record{}, err) {
				return
			}
			if there && err == nil && !yield(hit.Record(), nil) {
				return
			}
		}
	}
}

// slot reads a slot of the index.
func (s *Snapshot) slot(n uint64, hit *Hit) (there bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = faultError(r)
		}
	}()
	return s.read(uint32(s.keys.lineOfSlot(n)), hit)
}

// Verify compares all checksums and the revision. It reads the whole file.
func (s *Snapshot) Verify() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = faultError(r)
		}
	}()
	if len(s.data) > 0 && revisionOf(s.data[lineBytes:]) != s.revision {
		return kindf(ErrDamaged, "the snapshot is not what was published as revision %s", s.Revision())
	}
	return nil
}

// ParseRevision checks the form of a revision: 16 hexadecimal digits.
func ParseRevision(text string) error {
	if _, err := strconv.ParseUint(text, 16, 64); err != nil || len(text) != 16 {
		return fmt.Errorf("%q is not a revision of a snapshot, which has 16 hexadecimal digits", text)
	}
	return nil
}
