package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"unsafe"
)

// A Snapshot is an immutable table of winners, mapped into memory. Lookups
// take no lock, allocate nothing and may come from any goroutine; a new one is
// published beside it and moved into its place, so a process keeps what it
// opened until it opens again.
//
// The file: a 32-byte header (magic, slots, records, offset of the data, CRC-32C
// of the header), 2^slots entries of 16 bytes (hash, offset and length of the
// data, 0 when free) probed linearly, then for each record its key, seconds and
// plan. All numbers are little-endian.
type Snapshot struct {
	data  []byte
	slots int // log2
	count int
	unmap func() error
}

// A Hit is what a lookup finds.
type Hit struct {
	Plan    string  // points into the snapshot: valid until Close
	Seconds float64 // median of the winner
}

const (
	snapshotMagic  = "TWSNAP01"
	snapshotHeader = 32
	snapshotEntry  = 16
)

// Publish writes a snapshot of db's winners to path, by renaming a finished
// file. It returns the number of records.
func (db *DB) Publish(path string) (n int, err error) {
	var all []Record
	for r, err := range db.All() {
		if err != nil {
			return 0, err
		}
		all = append(all, r)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(tmp.Name()) // fails once it is renamed
	_, err = tmp.Write(snapshotBytes(all))
	if err = errors.Join(err, tmp.Sync(), tmp.Chmod(0o644), tmp.Close()); err != nil {
		return 0, err
	}
	return len(all), os.Rename(tmp.Name(), path)
}

func snapshotBytes(all []Record) []byte {
	slots := bits.Len(uint(2*len(all) + 1)) // at most half full
	start := snapshotHeader + snapshotEntry<<slots
	out := make([]byte, start)
	for _, r := range all {
		at := len(out)
		out = append(out, r.Key.bytes()...)
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(r.Seconds))
		out = append(out, r.Plan...)
		h := r.Key.hash()
		slot := h & (1<<slots - 1)
		entry := out[snapshotHeader+slot*snapshotEntry:]
		for binary.LittleEndian.Uint32(entry[12:]) != 0 {
			slot = (slot + 1) & (1<<slots - 1)
			entry = out[snapshotHeader+slot*snapshotEntry:]
		}
		binary.LittleEndian.PutUint32(entry, uint32(h>>32))
		binary.LittleEndian.PutUint64(entry[4:], uint64(at))
		binary.LittleEndian.PutUint32(entry[12:], uint32(len(out)-at))
	}
	copy(out, snapshotMagic)
	binary.LittleEndian.PutUint32(out[8:], uint32(slots))
	binary.LittleEndian.PutUint32(out[12:], uint32(len(all)))
	binary.LittleEndian.PutUint64(out[16:], uint64(len(out)))
	binary.LittleEndian.PutUint32(out[28:], crc32.Checksum(out[:28], castagnoli))
	return out
}

// hash mixes the fingerprint, which is uniform already, with the strings
// (FNV-1a).
func (k *Key) hash() uint64 {
	h := binary.LittleEndian.Uint64(k.Fusion[:])
	h = fnv(h, k.Device)
	h = fnv(h, k.Backend)
	h = fnv(h, k.Codegen)
	return h ^ h>>29
}

func fnv(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return (h ^ 0xff) * 0x100000001b3
}

// OpenSnapshot maps a file that Publish wrote. Close it when no Hit is in use.
func OpenSnapshot(path string) (*Snapshot, error) {
	data, unmap, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	s, err := newSnapshot(data)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), unmap())
	}
	s.unmap = unmap
	return s, nil
}

func newSnapshot(data []byte) (*Snapshot, error) {
	if len(data) < snapshotHeader || string(data[:8]) != snapshotMagic {
		return nil, errors.New("not a tilewright snapshot")
	}
	if crc32.Checksum(data[:28], castagnoli) != binary.LittleEndian.Uint32(data[28:]) {
		return nil, errors.New("the snapshot's header is damaged")
	}
	s := &Snapshot{data: data, slots: int(binary.LittleEndian.Uint32(data[8:])), count: int(binary.LittleEndian.Uint32(data[12:]))}
	if s.slots > 40 || binary.LittleEndian.Uint64(data[16:]) != uint64(len(data)) || len(data) < snapshotHeader+snapshotEntry<<s.slots {
		return nil, errors.New("the snapshot is cut short")
	}
	return s, nil
}

// Len is the number of records.
func (s *Snapshot) Len() int { return s.count }

// Close unmaps the file.
func (s *Snapshot) Close() error {
	if s.unmap == nil {
		return nil
	}
	return s.unmap()
}

// Get finds the winner of k. Damaged entries are misses.
func (s *Snapshot) Get(k *Key) (Hit, bool) {
	h := k.hash()
	mask := uint64(1)<<s.slots - 1
	for probe := uint64(0); probe <= mask; probe++ {
		entry := s.data[snapshotHeader+((h+probe)&mask)*snapshotEntry:][:snapshotEntry]
		length := binary.LittleEndian.Uint32(entry[12:])
		if length == 0 {
			return Hit{}, false
		}
		if binary.LittleEndian.Uint32(entry) != uint32(h>>32) {
			continue
		}
		at := binary.LittleEndian.Uint64(entry[4:])
		if at > uint64(len(s.data)) || uint64(length) > uint64(len(s.data))-at {
			return Hit{}, false
		}
		if hit, ok := k.match(s.data[at : at+uint64(length)]); ok {
			return hit, true
		}
	}
	return Hit{}, false
}

// match compares k with a record's key and reads what follows it.
func (k *Key) match(b []byte) (Hit, bool) {
	if len(b) < 32 || string(b[:32]) != unsafe.String(&k.Fusion[0], 32) {
		return Hit{}, false
	}
	b = b[32:]
	for _, s := range [...]string{k.Device, k.Backend, k.Codegen} {
		n, width := binary.Uvarint(b)
		if width <= 0 || n != uint64(len(s)) || uint64(len(b)-width) < n || string(b[width:width+len(s)]) != s {
			return Hit{}, false
		}
		b = b[width+len(s):]
	}
	if len(b) < 9 {
		return Hit{}, false
	}
	return Hit{Plan: unsafe.String(&b[8], len(b)-8), Seconds: math.Float64frombits(binary.LittleEndian.Uint64(b))}, true
}
