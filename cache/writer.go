package cache

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"slices"
)

// A snapshotWriter writes a snapshot: records, then what they are found by, then the
// header. It keeps the extents of the records and 32 bytes of each.
type snapshotWriter struct {
	file io.ReadWriteSeeker
	out  *bufio.Writer
	at   uint64
	err  error

	placed     []placed
	origins    map[originTexts]uint32
	originIn   []originTexts // by number
	seeds      []uint64      // of the records of a origin, by number
	structures map[structureKey]*structureIn
	extents    [][]byte // varints, of at most extentsOfChunk bytes each
	logs       []uint32 // for reuse
}

// A placed record is in the file.
type placed struct {
	fusion  uint64 // its first 8 bytes
	extents uint64 // chunk and place in it
	line    uint32
	origin  uint32
}

// A structureKey is a structure on a backend.
type structureKey struct {
	print   Fingerprint
	backend string
}

// A structureIn is a structure of the file.
type structureIn struct {
	print   Fingerprint
	hash    uint64
	extents int
	members []member
}

// A member is a record of a structure.
type member struct {
	placed uint32
	volume float32
}

const extentsOfChunk = 1 << 20

func newSnapshotWriter(f io.ReadWriteSeeker) *snapshotWriter {
	w := &snapshotWriter{
		file:       f,
		out:        bufio.NewWriterSize(f, 1<<20),
		origins:    map[originTexts]uint32{},
		structures: map[structureKey]*structureIn{},
	}
	w.write(make([]byte, lineBytes))
	return w
}

// write appends to the file.
func (w *snapshotWriter) write(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
		w.at += uint64(len(b))
	}
}

// line is the number of the next line. What follows a part that does not fill its last
// line begins with the next.
func (w *snapshotWriter) line() uint32 {
	if over := w.at % lineBytes; over > 0 {
		w.write(make([]byte, lineBytes-over))
	}
	return uint32(w.at / lineBytes)
}

// add appends a record.
func (w *snapshotWriter) add(x *storedRecord) {
	number := w.number(x.origin)
	put32(x.encoded, originAt, number)
	seal(x.encoded, w.seeds[number])
	w.join(x, uint32(len(w.placed)))
	w.placed = append(w.placed, placed{
		u64(x.encoded, fusionAt), w.keepExtents(x.structure.Extents), w.line(), number,
	})
	w.write(x.encoded)
}

// number is that of a origin.
func (w *snapshotWriter) number(c originTexts) uint32 {
	number, ok := w.origins[c]
	if !ok {
		number = uint32(len(w.originIn))
		w.origins[c] = number
		w.originIn = append(w.originIn, c)
		block := c.encode(int(number))
		w.seeds = append(w.seeds, u64(block, len(block)-8))
	}
	return number
}

// join adds a record to its structure.
func (w *snapshotWriter) join(x *storedRecord, place uint32) {
	key := structureKey{x.structure.Print, x.origin[1]}
	s := w.structures[key]
	if s == nil {
		s = &structureIn{
			print:   x.structure.Print,
			hash:    x.kin,
			extents: len(x.structure.Extents),
		}
		w.structures[key] = s
	}
	w.logs = x.structure.appendLogs(w.logs[:0])
	m := member{place, volume(w.logs)}
	s.members = append(s.members, m)
}

// keepExtents keeps the extents of a record until its row is written.
func (w *snapshotWriter) keepExtents(extents []uint64) uint64 {
	need := len(extents) * binary.MaxVarintLen64
	last := len(w.extents) - 1
	if last < 0 || len(w.extents[last])+need > cap(w.extents[last]) {
		chunk := make([]byte, 0, max(extentsOfChunk, need))
		w.extents = append(w.extents, chunk)
		last++
	}
	at := len(w.extents[last])
	for _, n := range extents {
		w.extents[last] = binary.AppendUvarint(w.extents[last], n)
	}
	return uint64(last)<<32 | uint64(at)
}

// logsOf are the logarithms of extents that were kept.
func (w *snapshotWriter) logsOf(at uint64, n int) []uint32 {
	b := w.extents[at>>32][uint32(at):]
	w.logs = w.logs[:0]
	for range n {
		extent, width := binary.Uvarint(b)
		b = b[width:]
		w.logs = append(w.logs, logOf(extent))
	}
	return w.logs
}

// finish writes what records are found by, and the header.
func (w *snapshotWriter) finish() error {
	h := header{
		count:       uint32(len(w.placed)),
		structCount: uint32(len(w.structures)),
		originCount: uint32(len(w.originIn)),
	}
	h.originIndex = w.writeOrigins()
	h.keys = w.writeIndex(len(w.placed), func(k int, seed uint64) target {
		x := &w.placed[k]
		o := &w.originIn[x.origin]
		texts := hashTexts(seed, o[0], o[1], o[2])
		return target{mix(texts ^ x.fusion), x.line}
	})
	h.structures = w.writeStructures()
	h.size = uint64(w.line()) * lineBytes
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

// writeOrigins writes the blocks of the origins, and the index of their lines, whose
// own line it returns.
func (w *snapshotWriter) writeOrigins() uint32 {
	var index []byte
	for number, c := range w.originIn {
		index = little.AppendUint32(index, w.line())
		w.write(c.encode(number))
	}
	at := w.line()
	w.write(index)
	return at
}

// seedsTried is how many seeds are tried until the hashes have an index: two keys have
// the same hash of one seed hardly ever, and of two seeds if they are made for that.
const seedsTried = 16

// writeIndex writes the index of n targets.
func (w *snapshotWriter) writeIndex(
	n int, targetOf func(k int, seed uint64) target,
) index {
	line := w.line()
	targets := make([]target, n)
	for seed := range uint32(seedsTried) {
		for k := range targets {
			targets[k] = targetOf(k, uint64(seed))
		}
		x := indexOf(uint32(n), line, seed)
		lines, err := x.fill(targets)
		if err == nil {
			w.write(lines)
			return x
		}
	}
	w.err = cmp.Or(w.err, errNoIndex)
	return index{}
}

// writeStructures writes the rows of every structure, the blocks and their table.
func (w *snapshotWriter) writeStructures() index {
	all := make([]*structureIn, 0, len(w.structures))
	for _, s := range w.structures {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *structureIn) int {
		return cmp.Or(
			cmp.Compare(a.hash, b.hash),
			slices.Compare(a.print[:], b.print[:]),
		)
	})
	blocks := make([]byte, 0, len(all)*lineBytes)
	for _, s := range all {
		block := make([]byte, lineBytes)
		put64(block, 0, s.hash)
		copy(block[printAt:], s.print[:])
		put64(block, rowsAt, w.at)
		put32(block, rowsTaken, uint32(len(s.members)))
		put32(block, extentsAt, uint32(s.extents))
		w.writeRows(s)
		blocks = append(blocks, block...)
	}
	first := w.line()
	for k := range all {
		seal(blocks[k*lineBytes:][:lineBytes], uint64(first)+uint64(k))
	}
	w.write(blocks)
	return w.writeIndex(len(all), func(k int, seed uint64) target {
		hash := mix(all[k].hash ^ seed)
		return target{hash, first + uint32(k)}
	})
}

// writeRows writes the volumes of a structure's records in ascending order, and their
// rows.
func (w *snapshotWriter) writeRows(s *structureIn) {
	slices.SortFunc(s.members, func(a, b member) int {
		return cmp.Or(
			cmp.Compare(a.volume, b.volume),
			cmp.Compare(a.placed, b.placed),
		)
	})
	var b []byte
	for _, m := range s.members {
		b = appendFloat32(b[:0], m.volume)
		w.write(b)
	}
	for _, m := range s.members {
		x := &w.placed[m.placed]
		logs := w.logsOf(x.extents, s.extents)
		b = appendKinRow(b[:0], x.line, x.origin, logs, s.hash^x.fusion)
		w.write(b)
	}
}

// digest is the revision of what was written.
func (w *snapshotWriter) digest() (uint64, error) {
	if _, err := w.file.Seek(lineBytes, io.SeekStart); err != nil {
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
