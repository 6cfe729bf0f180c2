package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"unsafe"
)

// A Snapshot is an immutable hash table of winners, read into memory. Lookups
// take no lock, allocate nothing and may come from any goroutine. Whatever happens
// to the file afterwards, a process keeps what it opened until it opens again. (A
// mapping of the file would be shared by processes, but one that is truncated or
// overwritten in its place would end them by SIGBUS and change their strings.)
//
// The file consists of the following parts; numbers are little-endian:
//
//	header  32 bytes: magic, log2 of the slots u32, records u32, bytes of the
//	        file u64, 0 u32, CRC-32C of the 28 bytes before it u32
//	slots   16 bytes each, probed linearly from the key's hash; at most half
//	        are taken: high half of the hash u32, position of the record u64,
//	        its length u32, 0 when free
//	record  CRC-32C of the rest u32, key (see Key.bytes), seconds f64, length
//	        of the safe context as a varint, safe context, plan
//
// All checksums are compared when the file is opened; a damaged record is then as if
// it was not there.
type Snapshot struct {
	data  []byte
	slots int // log2 of the number of slots
	count int // records
}

// A Hit is a winner in a snapshot. Its strings share the memory of the snapshot,
// and stay valid when that is closed.
type Hit struct {
	Plan    string  // text of the plan
	Seconds float64 // median of the winner
	Safe    string  // SafeText of the safe context it was measured in
}

// SafeText is the canonical text of a safe context: a JSON object with sorted
// names. A compiler computes its own once and compares it with Hit.Safe.
func SafeText(safe map[string]string) string {
	text, err := json.Marshal(safe)
	if err != nil || len(safe) == 0 { // maps of strings always marshal
		return "{}"
	}
	return string(text)
}

// SafeDiff lists how the safe context of the hit differs from another; see the
// function SafeDiff.
func (h Hit) SafeDiff(now map[string]string) []string {
	if h.Safe == SafeText(now) {
		return nil
	}
	var stored map[string]string
	err := json.Unmarshal([]byte(h.Safe), &stored)
	if err != nil {
		return []string{"the safe context it was measured in is not known"}
	}
	return SafeDiff(stored, now)
}

const (
	snapshotMagic      = "TWSNAP02" // the last two digits are the version
	snapshotHeaderSize = 32
	snapshotSlotSize   = 16
	maxSnapshotBytes   = 2 << 30 // of a file: about 8 million records
)

// little is the byte order of a snapshot.
var little = binary.LittleEndian

// Publish writes a snapshot of the database's winners to path, by renaming a
// complete file, and returns the number of records. Damaged records are left out,
// with a *LeftOutError. A file that is not a snapshot is not replaced, nor is one of
// more than twice as many records (ErrShrinks).
func (db *DB) Publish(path string) (n int, err error) {
	if err := checkReplaceable(path); err != nil {
		return 0, err
	}
	all, err := db.contents()
	if err != nil {
		return 0, err
	}
	if err := checkShrinking(path, len(all.records)); err != nil {
		return 0, err
	}
	return all.publish(path)
}

// PublishOver is Publish that replaces any regular file.
func (db *DB) PublishOver(path string) (n int, err error) {
	if err := checkRegularFile(path); err != nil {
		return 0, err
	}
	all, err := db.contents()
	if err != nil {
		return 0, err
	}
	return all.publish(path)
}

// publish writes the snapshot of the sound records beside path and renames it.
func (all *contents) publish(path string) (n int, err error) {
	if err := checkFolder(path); err != nil {
		return 0, err
	}
	tmp, err := tempBeside(path)
	if err != nil {
		return 0, err
	}
	defer os.Remove(tmp.Name()) // fails once it is renamed
	_, err = tmp.Write(snapshotBytes(all.records))
	if err := finish(tmp, err); err != nil {
		return 0, err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return 0, err
	}
	syncFolder(path)
	sweep(path)
	return len(all.records), leftOut(all.damagedRecords())
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

// snapshotBytes is the file of the given records. Collisions go to the next free
// slot.
func snapshotBytes(all []Record) []byte {
	slots := bits.Len(uint(2*len(all) + 1)) // at most half full
	out := make([]byte, snapshotHeaderSize+snapshotSlotSize<<slots)
	for _, r := range all {
		at := len(out)
		out = appendRecord(out, &r)
		h := r.Key.hash()
		slot := h & (1<<slots - 1)
		entry := out[snapshotHeaderSize+slot*snapshotSlotSize:]
		for little.Uint32(entry[12:]) != 0 {
			slot = (slot + 1) & (1<<slots - 1)
			entry = out[snapshotHeaderSize+slot*snapshotSlotSize:]
		}
		little.PutUint32(entry, uint32(h>>32))
		little.PutUint64(entry[4:], uint64(at))
		little.PutUint32(
			entry[12:], uint32(len(out)-at),
		)
	}
	putHeader(out, slots, len(all), uint64(len(out)))
	return out
}

// putHeader writes the header in front of the slots.
func putHeader(out []byte, slots, records int, size uint64) {
	copy(out, snapshotMagic)
	little.PutUint32(out[8:], uint32(slots))
	little.PutUint32(out[12:], uint32(records))
	little.PutUint64(out[16:], size)
	sum := crc32.Checksum(out[:28], castagnoli)
	little.PutUint32(out[28:], sum)
}

// appendRecord appends the encoding of a record.
func appendRecord(out []byte, r *Record) []byte {
	at := len(out)
	safe := SafeText(r.Safe)
	out = append(out, 0, 0, 0, 0)
	out = append(out, r.Key.bytes()...)
	out = little.AppendUint64(out, math.Float64bits(r.Seconds))
	out = binary.AppendUvarint(out, uint64(len(safe)))
	out = append(out, safe...)
	out = append(out, r.Plan...)
	sum := crc32.Checksum(out[at+4:], castagnoli)
	little.PutUint32(out[at:], sum)
	return out
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

// OpenSnapshot reads a file that Publish wrote.
func OpenSnapshot(path string) (*Snapshot, error) {
	data, err := readSnapshot(path)
	if err != nil {
		return nil, err
	}
	s, err := newSnapshot(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// readSnapshot reads a file whose header is that of a snapshot.
func readSnapshot(path string) ([]byte, error) {
	if err := checkRegularFile(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, min(info.Size(), snapshotHeaderSize))
	_, err = io.ReadFull(f, head)
	if err == nil {
		_, err = checkHeader(head, info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	data := append(make([]byte, 0, info.Size()), head...)[:info.Size()]
	if _, err := io.ReadFull(f, data[len(head):]); err != nil {
		return nil, kindf(ErrDamaged, "%s: it was cut short while it was read: %w", path, err)
	}
	return data, nil
}

// newSnapshot is the snapshot of a whole file, which becomes its own.
func newSnapshot(data []byte) (*Snapshot, error) {
	s, err := checkHeader(data, int64(len(data)))
	if err != nil {
		return nil, err
	}
	s.data = data
	for slot := range uint64(1) << s.slots {
		if b, ok := s.record(slot); ok && !sound(b) {
			little.PutUint64(s.slot(slot)[4:], nowhere)
		}
	}
	return s, nil
}

// nowhere is the position of a damaged record: outside of every file. Its slot
// stays taken, so that the search for others goes past it.
const nowhere = math.MaxUint64

// slot is the entry of a slot.
func (s *Snapshot) slot(n uint64) []byte {
	return s.data[snapshotHeaderSize+n*snapshotSlotSize:][:snapshotSlotSize]
}

// record is the encoded record of a slot that is taken; it is false where that is
// outside of the file.
func (s *Snapshot) record(slot uint64) (b []byte, ok bool) {
	entry := s.slot(slot)
	at := little.Uint64(entry[4:])
	length := uint64(little.Uint32(entry[12:]))
	if at > uint64(len(s.data)) || length > uint64(len(s.data))-at {
		return nil, false
	}
	return s.data[at : at+length], length > 0
}

// sound compares the checksum of an encoded record.
func sound(b []byte) bool {
	return len(b) >= 4 && crc32.Checksum(b[4:], castagnoli) == little.Uint32(b)
}

// checkHeader reads the header of a snapshot, at the beginning of data; size is
// that of the whole file. The result has no data.
func checkHeader(data []byte, size int64) (*Snapshot, error) {
	if len(data) < snapshotHeaderSize ||
		string(data[:6]) != snapshotMagic[:6] {
		return nil, kindf(ErrForeign, "not a tilewright snapshot")
	}
	if version := data[6:8]; string(version) != snapshotMagic[6:] {
		return nil, kindf(ErrNewer, "a snapshot of version %q; this tilewright reads %s: publish it again", version, snapshotMagic[6:])
	}
	if crc32.Checksum(data[:28], castagnoli) != little.Uint32(data[28:]) {
		return nil, kindf(ErrDamaged, "the snapshot's header is damaged; publish it again")
	}
	s := &Snapshot{
		slots: int(little.Uint32(data[8:])),
		count: int(little.Uint32(data[12:])),
	}
	switch {
	case s.slots > 32 || little.Uint64(data[16:]) != uint64(size) ||
		size < snapshotHeaderSize+snapshotSlotSize<<s.slots:
		return nil, kindf(ErrDamaged, "the snapshot is cut short; publish it again")
	case size > maxSnapshotBytes:
		return nil, kindf(ErrForeign, "a snapshot of %d MiB; at most %d are read", size>>20, maxSnapshotBytes>>20)
	}
	return s, nil
}

// Len is the number of records.
func (s *Snapshot) Len() int { return s.count }

// Close gives the memory back. Afterwards every Get misses. A Get that another
// goroutine has begun must have returned.
func (s *Snapshot) Close() error {
	*s = Snapshot{}
	return nil
}

// Get finds the winner of k. A damaged record is a miss.
func (s *Snapshot) Get(k *Key) (Hit, bool) {
	if len(s.data) == 0 {
		return Hit{}, false
	}
	h := k.hash()
	mask := uint64(1)<<s.slots - 1
	for probe := uint64(0); probe <= mask; probe++ {
		slot := (h + probe) & mask
		entry := s.slot(slot)
		if little.Uint32(entry[12:]) == 0 {
			break
		}
		if little.Uint32(entry) != uint32(h>>32) {
			continue
		}
		if b, ok := s.record(slot); ok {
			if hit, same := k.match(b); same {
				return hit, true
			}
		}
	}
	return Hit{}, false
}

// match compares k with the key of an encoded record and, if they are equal,
// decodes the rest. It reads nothing outside of b, whatever b holds.
func (k *Key) match(b []byte) (Hit, bool) {
	if len(b) < 4+len(k.Fusion) ||
		string(b[4:4+len(k.Fusion)]) != string(k.Fusion[:]) {
		return Hit{}, false
	}
	b = b[4+len(k.Fusion):]
	for _, s := range k.names() {
		n, width := binary.Uvarint(b)
		if width <= 0 || n != uint64(len(s)) ||
			uint64(len(b)-width) < n ||
			string(b[width:width+len(s)]) != s {
			return Hit{}, false
		}
		b = b[width+len(s):]
	}
	if len(b) < 8 {
		return Hit{}, false
	}
	hit := Hit{Seconds: math.Float64frombits(little.Uint64(b))}
	n, width := binary.Uvarint(b[8:])
	b = b[8:]
	if width <= 0 || n > uint64(len(b)-width) {
		return Hit{}, false
	}
	b = b[width:]
	hit.Safe = unsafeString(b[:n])
	hit.Plan = unsafeString(b[n:])
	return hit, true
}

// unsafeString is a string that shares the bytes of b.
func unsafeString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}
