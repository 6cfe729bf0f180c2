package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"runtime/debug"
	"strconv"
)

// A Snapshot is an immutable hash table of winners in a mapped file, which the
// processes of a machine share. Lookups take no lock, allocate nothing and may come
// from any goroutine. What is found is a copy, and its checksum is compared after it
// was made: whatever happens to the file under a reader, an answer is the stored one,
// a miss or an error, and nothing that was handed out changes. (A new snapshot is
// moved into the place of the old one, which stays as it is for those who have it
// open. Only a program that is not this one truncates or overwrites it in its place.)
//
// The file consists of the following parts; numbers are little-endian, and a text
// stands behind its length in bytes, a varint (unsigned LEB128):
//
//	header   64 bytes:
//	          0  magic "TWSNAP03"; the last two digits are the version
//	          8  log2 of the slots, u32
//	         12  records, u32
//	         16  bytes of the file, u64
//	         24  revision, u64: the first 8 bytes of the SHA-256 of all that follows
//	             the header
//	         32  log2 of the slots of structures, u32
//	         36  0
//	         40  position of the slots of structures, u64
//	         48  position of the slots, u64
//	         56  0
//	         60  CRC-32C of the 60 bytes before, u32
//	records  CRC-32C of the rest u32, 32 bytes of the structure's print, 32 bytes of
//	         the fingerprint, texts: device, backend, revision of the code generator,
//	         extents of the structure (varints); f64: seconds, seconds of the default,
//	         median, lower and upper end of the speed-up, regret; u64: seconds since
//	         1970; u8: checked 1, untimed 2, provisional 4; texts: plan, default, safe
//	         context, tool, and ties up to the end
//	slots    16 bytes each, probed linearly from the key's hash; at most half are
//	         taken: high half of the hash u32, position of the record u64, its length
//	         in bytes u32, 0 when free
//	slots of structures  16 bytes each, probed linearly from the hash of structure
//	         and backend, whole: hash u64, number of its first entry u32, of its
//	         entries u32, 0 when free
//	entries  16 bytes each, those of a structure by volume: position of the record
//	         u64, its length u32, volume (sum of log2 of the extents) f32
type Snapshot struct {
	header
	data  []byte
	unmap func([]byte) error
}

// A header is that of a snapshot.
type header struct {
	slots      int    // log2 of their number
	count      int    // records
	size       uint64 // of the file
	revision   uint64
	structures int    // log2 of the number of their slots
	kinAt      uint64 // position of the slots of structures
	slotsAt    uint64 // position of the slots
}

const (
	snapshotMagic      = "TWSNAP03"
	snapshotHeaderSize = 64
	snapshotSlotSize   = 16
	maxSnapshotBytes   = 1 << 36
)

// little is the byte order of a snapshot.
var little = binary.LittleEndian

// checksum is the CRC-32C.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// bytes is the encoded header.
func (h *header) bytes() []byte {
	out := make([]byte, snapshotHeaderSize)
	copy(out, snapshotMagic)
	little.PutUint32(out[8:], uint32(h.slots))
	little.PutUint32(out[12:], uint32(h.count))
	little.PutUint64(out[16:], h.size)
	little.PutUint64(out[24:], h.revision)
	little.PutUint32(out[32:], uint32(h.structures))
	little.PutUint64(out[40:], h.kinAt)
	little.PutUint64(out[48:], h.slotsAt)
	little.PutUint32(out[60:], checksum(out[:60]))
	return out
}

// readHeader reads the header of a snapshot, at the beginning of data; size is that
// of the whole file.
func readHeader(data []byte, size int64) (h header, err error) {
	const versionAt = len(snapshotMagic) - 2
	if len(data) < len(snapshotMagic) || string(data[:versionAt]) != snapshotMagic[:versionAt] {
		return h, kindf(ErrForeign, "not a tilewright snapshot")
	}
	if version := string(data[versionAt:len(snapshotMagic)]); version != snapshotMagic[versionAt:] {
		return h, kindf(ErrNewer, "a snapshot of version %q; this tilewright reads %s: publish it again", version, snapshotMagic[versionAt:])
	}
	if len(data) < snapshotHeaderSize || checksum(data[:60]) != little.Uint32(data[60:]) {
		return h, kindf(ErrDamaged, "the snapshot's header is damaged; publish it again")
	}
	h = header{
		slots:      int(little.Uint32(data[8:])),
		count:      int(little.Uint32(data[12:])),
		size:       little.Uint64(data[16:]),
		revision:   little.Uint64(data[24:]),
		structures: int(little.Uint32(data[32:])),
		kinAt:      little.Uint64(data[40:]),
		slotsAt:    little.Uint64(data[48:]),
	}
	return h, h.check(uint64(size))
}

// check refuses a header whose tables do not fit a file of size bytes.
func (h *header) check(size uint64) error {
	switch {
	case size > maxSnapshotBytes:
		return kindf(ErrForeign, "a snapshot of %d MiB; at most %d are read", size>>20, maxSnapshotBytes>>20)
	case h.size != size || !h.holds(h.slotsAt, h.slots) || !h.holds(h.kinAt, h.structures):
		return kindf(ErrDamaged, "the snapshot is cut short; publish it again")
	}
	return nil
}

// holds reports whether 2^n slots fit the file behind a position.
func (h *header) holds(at uint64, n int) bool {
	return n <= 32 && at <= h.size && uint64(snapshotSlotSize)<<n <= h.size-at
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
	head := make([]byte, min(info.Size(), snapshotHeaderSize))
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
	return &Snapshot{h, data, unmap}, err
}

// newSnapshot is the snapshot of a whole file in memory.
func newSnapshot(data []byte) (*Snapshot, error) {
	h, err := readHeader(data, int64(len(data)))
	if err != nil {
		return nil, err
	}
	return &Snapshot{h, data, func([]byte) error { return nil }}, nil
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
	return nil, errors.Join(&PinError{path, revision, s.Revision()}, s.Close())
}

// Len is the number of records.
func (s *Snapshot) Len() int { return s.count }

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
	errCutShort      = kindf(ErrDamaged, "the snapshot was cut short while it was open; publish it again")
	errRecordDamaged = kindf(ErrDamaged, "a record of the snapshot is damaged; publish it again")
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
	h := k.hash()
	mask := uint64(1)<<s.slots - 1
	for probe := uint64(0); probe <= mask; probe++ {
		entry := s.data[s.slotsAt+(h+probe)&mask*snapshotSlotSize:][:snapshotSlotSize]
		length := little.Uint32(entry[12:])
		if length == 0 {
			break
		}
		if little.Uint32(entry) != uint32(h>>32) {
			continue
		}
		b, ok := s.part(little.Uint64(entry[4:]), length)
		if !ok || !hit.copyOf(b) {
			err = errRecordDamaged
			continue
		}
		if hit.is(k) {
			return true, nil
		}
	}
	return false, err
}

// part is a part of the file; it is false where that is outside.
func (s *Snapshot) part(at uint64, length uint32) (b []byte, ok bool) {
	if at > uint64(len(s.data)) || uint64(length) > uint64(len(s.data))-at {
		return nil, false
	}
	return s.data[at : at+uint64(length)], true
}

// is compares a hit with a key.
func (h *Hit) is(k *Key) bool {
	return h.Fusion == k.Fusion && string(h.Device) == k.Device &&
		string(h.Backend) == k.Backend && string(h.Codegen) == k.Codegen
}

// hash mixes the first 8 bytes of the fingerprint, which are uniform already, with
// the strings by FNV-1a. It is part of the file format.
func (k *Key) hash() uint64 {
	h := little.Uint64(k.Fusion[:])
	h = hashString(h, k.Device)
	h = hashString(h, k.Backend)
	h = hashString(h, k.Codegen)
	return h ^ h>>29
}

// hashString continues FNV-1a with a string and a byte that ends it.
func hashString(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return (h ^ 0xff) * 0x100000001b3
}

// Verify compares all checksums and the revision. It reads the whole file.
func (s *Snapshot) Verify() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = faultError(r)
		}
	}()
	if len(s.data) > 0 && revisionOf(s.data[snapshotHeaderSize:]) != s.revision {
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
