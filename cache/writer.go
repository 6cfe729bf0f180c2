package cache

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// A snapshotWriter writes a snapshot: the index of the keys with the records in its
// slots, then the records that are longer than a slot, origins, structures, and the
// header. Until all records are known, their encodings are in the spool. In memory it
// keeps the extents of the records and 40 bytes of each.
type snapshotWriter struct {
	file   *os.File
	spool  *os.File
	spools *bufio.Writer
	out    *bufio.Writer // of what follows the slots
	at     uint64        // the end of the file, or of the spool
	err    error

	placed []placed // by key
	bySize [mostSlotLines + 1]int
	keys   index
	far    map[uint32]uint32 // lines of the records that are longer than their slots

	origins    map[originTexts]uint32
	originIn   []originTexts // by number
	seeds      []uint64      // of the records of an origin, by number
	structures map[structureKey]*structureIn
	logs       [][]uint32 // of extents, of at least logsOfChunk each
}

// A placed record is in the spool, and has a slot later.
type placed struct {
	fusion uint64 // its first 8 bytes
	at     uint64 // in the spool
	logs   uint64 // chunk and place in it
	size   uint32
	origin uint32
	slot   uint32
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
	rows    uint64 // their place in the file
}

// A member is a record of a structure.
type member struct {
	placed uint32
	volume float32
}

const logsOfChunk = 1 << 18

// Slots have as many lines as seven in eight of the records need, within these bounds.
const (
	leastSlotLines = 2
	mostSlotLines  = 16
)

// newSnapshotWriter is a writer to a file, by way of another one that is empty, too.
func newSnapshotWriter(file, spool *os.File) *snapshotWriter {
	return &snapshotWriter{
		file:       file,
		spool:      spool,
		spools:     bufio.NewWriterSize(spool, 1<<20),
		far:        map[uint32]uint32{},
		origins:    map[originTexts]uint32{},
		structures: map[structureKey]*structureIn{},
	}
}

// add adds a record. The order of records does not matter but for the revision.
func (w *snapshotWriter) add(x *storedRecord) {
	p := placed{
		fusion: u64(x.encoded, fusionAt),
		at:     w.at,
		logs:   w.keepLogs(x.logs),
		size:   uint32(len(x.encoded)),
		origin: w.number(x.origin),
	}
	put32(x.encoded, originAt, p.origin)
	w.join(x)
	w.placed = append(w.placed, p)
	lines := len(x.encoded) / lineBytes
	w.bySize[min(lines, mostSlotLines)]++
	if w.err == nil {
		_, w.err = w.spools.Write(x.encoded)
	}
	w.at += uint64(len(x.encoded))
}

// slotLines are the lines of a slot.
func (w *snapshotWriter) slotLines() uint32 {
	longer := len(w.placed)
	for lines, n := range w.bySize {
		longer -= n
		if lines >= leastSlotLines && 8*longer <= len(w.placed) {
			return uint32(lines)
		}
	}
	return mostSlotLines
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

// number is that of an origin.
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
func (w *snapshotWriter) join(x *storedRecord) {
	key := structureKey{x.print, x.origin[1]}
	s := w.structures[key]
	if s == nil {
		s = &structureIn{
			print:   x.print,
			hash:    x.kin,
			extents: len(x.logs),
		}
		w.structures[key] = s
	}
	s.members = append(s.members, member{uint32(len(w.placed)), volume(x.logs)})
}

// keepLogs keeps the logarithms of a record's extents until its row is written.
func (w *snapshotWriter) keepLogs(logs []uint32) uint64 {
	last := len(w.logs) - 1
	if last < 0 || cap(w.logs[last])-len(w.logs[last]) < len(logs) {
		room := max(logsOfChunk, len(logs))
		w.logs = append(w.logs, make([]uint32, 0, room))
		last++
	}
	at := len(w.logs[last])
	w.logs[last] = append(w.logs[last], logs...)
	return uint64(last)<<32 | uint64(at)
}

// logsAt are n logarithms that were kept.
func (w *snapshotWriter) logsAt(at uint64, n int) []uint32 {
	return w.logs[at>>32][uint32(at):][:n]
}

// finish writes the file.
func (w *snapshotWriter) finish() error {
	if w.err == nil {
		w.err = w.spools.Flush()
	}
	if w.err == nil {
		w.err = w.writeRecords()
	}
	if w.err != nil {
		return w.err
	}
	h := header{
		count:       uint32(len(w.placed)),
		structCount: uint32(len(w.structures)),
		originCount: uint32(len(w.originIn)),
		keys:        w.keys,
	}
	h.originIndex = w.writeOrigins()
	h.structures = w.writeStructures()
	h.size = uint64(w.line()) * lineBytes
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err == nil {
		h.revision, w.err = w.digest(h.size)
	}
	if w.err == nil {
		_, w.err = w.file.WriteAt(h.bytes(), 0)
	}
	return w.err
}

// writeRecords gives the records their slots, and writes the index of the keys, the
// records in it, and those that are longer than a slot.
func (w *snapshotWriter) writeRecords() error {
	f, err := w.keyIndex()
	if err != nil {
		return err
	}
	w.keys = f.index
	for k, slot := range f.placed {
		w.placed[k].slot = slot
	}
	spooled, unmap, err := w.mapSpool()
	if err != nil {
		return err
	}
	w.at = f.end() * lineBytes
	after := io.NewOffsetWriter(w.file, int64(w.at))
	w.out = bufio.NewWriterSize(after, 1<<20)
	for k := range w.placed {
		x := &w.placed[k]
		if uint64(x.size) > w.keys.slotLines*lineBytes {
			w.far[uint32(k)] = w.line()
			w.write(w.sealedRecord(x, spooled, nil))
		}
	}
	_, err = w.file.WriteAt(f.pilotLines(), keysLine*lineBytes)
	return errors.Join(err, w.writeSlots(spooled), unmap(spooled))
}

// mapSpool maps the spool, which is empty without a record.
func (w *snapshotWriter) mapSpool() (data []byte, unmap func([]byte) error, err error) {
	if w.at == 0 {
		return nil, func([]byte) error { return nil }, nil
	}
	return mapFile(w.spool, int(w.at))
}

// keyIndex is the index of the keys.
func (w *snapshotWriter) keyIndex() (*filling, error) {
	hashes := make([]uint64, len(w.originIn))
	seed := ^uint64(0)
	return newIndex(len(w.placed), keysLine, w.slotLines(), func(k int, s uint64) uint64 {
		if s != seed {
			seed = s
			for n, o := range w.originIn {
				hashes[n] = hashTexts(seed, o[0], o[1], o[2])
			}
		}
		x := &w.placed[k]
		return mix(hashes[x.origin] ^ x.fusion)
	})
}

// sealedRecord appends a record of the spool with its digest.
func (w *snapshotWriter) sealedRecord(x *placed, spooled, to []byte) []byte {
	at := len(to)
	end := x.at + uint64(x.size)
	to = append(to, spooled[x.at:end]...)
	seal(to[at:], w.seeds[x.origin])
	return to
}

// writeSlots writes all slots, in as many goroutines as there are processors.
func (w *snapshotWriter) writeSlots(spooled []byte) error {
	keyOf := make([]uint32, w.keys.slotCount)
	for slot := range keyOf {
		keyOf[slot] = noKey
	}
	for k := range w.placed {
		keyOf[w.placed[k].slot] = uint32(k)
	}
	first := w.keys.lineOfSlot(0) * lineBytes / hugePage
	pages := (w.keys.end()*lineBytes-1)/hugePage + 1 - first
	return inParallel(int(pages), 1, func(n, _ int) error {
		return w.writePage(first+uint64(n), keyOf, spooled)
	})
}

// writePage writes the slots that lie in a large page, or the parts of them that do.
func (w *snapshotWriter) writePage(page uint64, keyOf []uint32, spooled []byte) error {
	begin := w.keys.lineOfSlot(0) * lineBytes
	size := w.keys.slotLines * lineBytes
	from := max(begin, page*hugePage)
	to := min(w.keys.end()*lineBytes, (page+1)*hugePage)
	slot := (from - begin) / size
	lines := make([]byte, 0, to-from+2*size)
	before := from - begin - slot*size
	for ; begin+slot*size < to; slot++ {
		lines = w.appendSlot(lines, slot, keyOf[slot], spooled)
	}
	_, err := w.file.WriteAt(lines[before:][:to-from], int64(from))
	return err
}

// noKey is the number of the record of a slot without one.
const noKey = math.MaxUint32

// appendSlot appends a slot with the record of a number.
func (w *snapshotWriter) appendSlot(lines []byte, slot uint64, k uint32, spooled []byte) []byte {
	line := w.keys.lineOfSlot(slot)
	next := len(lines) + int(w.keys.slotLines)*lineBytes
	switch {
	case k == noKey:
		lines = append(lines, emptySlot(line, 0)...)
	case w.far[k] != 0:
		word := farBlock | uint64(w.far[k])<<32
		lines = append(lines, emptySlot(line, word)...)
	default:
		lines = w.sealedRecord(&w.placed[k], spooled, lines)
	}
	return append(lines, make([]byte, next-len(lines))...)
}

// inParallel calls f for pieces of the numbers below n, in as many goroutines as there
// are processors.
func inParallel(n, piece int, f func(first, end int) error) error {
	var workers sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, runtime.GOMAXPROCS(0))
	for worker := range errs {
		workers.Go(func() {
			for errs[worker] == nil {
				first := int(next.Add(int64(piece))) - piece
				if first >= n {
					return
				}
				errs[worker] = f(first, min(n, first+piece))
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
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

// writeStructures writes the rows of every structure, and their blocks with the index
// that finds them.
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
	blocks := make([][]byte, len(all))
	for k, s := range all {
		blocks[k] = w.structureBlock(s)
	}
	w.writeRows(all)
	f, err := newIndex(len(all), w.line(), 1, func(k int, seed uint64) uint64 {
		return mix(all[k].hash ^ seed)
	})
	if err != nil {
		w.err = cmp.Or(w.err, err)
		return index{}
	}
	w.write(f.pilotLines())
	w.writeLines(f, blocks)
	return f.index
}

// structureBlock is the block of a structure, whose rows get the next place.
func (w *snapshotWriter) structureBlock(s *structureIn) []byte {
	block := make([]byte, lineBytes)
	put64(block, 0, s.hash)
	copy(block[printAt:], s.print[:])
	put64(block, rowsAt, w.at)
	put32(block, rowsTaken, uint32(len(s.members)))
	put32(block, extentsAt, uint32(s.extents))
	s.rows = w.at
	row := 4 + kinLogsAt + 4*s.extents
	w.at += uint64(len(s.members) * row)
	return block
}

// writeLines writes blocks of a line to their slots.
func (w *snapshotWriter) writeLines(f *filling, blocks [][]byte) {
	bySlot := make([][]byte, f.slotCount)
	for k, slot := range f.placed {
		bySlot[slot] = blocks[k]
	}
	for slot, block := range bySlot {
		line := f.lineOfSlot(uint64(slot))
		if block == nil {
			w.write(emptySlot(line, 0))
			continue
		}
		seal(block, line)
		w.write(block)
	}
}

// writeRows writes the rows of structures to the places that they have, and goes behind
// them.
func (w *snapshotWriter) writeRows(all []*structureIn) {
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err == nil {
		w.err = inParallel(len(all), 1, func(k, _ int) error {
			_, err := w.file.WriteAt(w.rowsOf(all[k]), int64(all[k].rows))
			return err
		})
	}
	w.out.Reset(io.NewOffsetWriter(w.file, int64(w.at)))
}

// rowsOf are the volumes of a structure's records in ascending order, and their rows.
func (w *snapshotWriter) rowsOf(s *structureIn) (b []byte) {
	slices.SortFunc(s.members, func(a, b member) int {
		return cmp.Or(
			cmp.Compare(a.volume, b.volume),
			cmp.Compare(a.placed, b.placed),
		)
	})
	b = make([]byte, 0, len(s.members)*(4+kinLogsAt+4*s.extents))
	for _, m := range s.members {
		b = appendFloat32(b, m.volume)
	}
	for _, m := range s.members {
		x := &w.placed[m.placed]
		line := uint32(w.keys.lineOfSlot(uint64(x.slot)))
		logs := w.logsAt(x.logs, s.extents)
		b = appendKinRow(b, line, x.origin, logs, s.hash^x.fusion)
	}
	return b
}

// digest is the revision of what was written.
func (w *snapshotWriter) digest(size uint64) (uint64, error) {
	sum := sha256.New()
	body := io.NewSectionReader(w.file, lineBytes, int64(size)-lineBytes)
	_, err := io.CopyBuffer(sum, body, make([]byte, 1<<20))
	return little.Uint64(sum.Sum(nil)), err
}

// revisionOf is the revision of a file with the given bytes behind its header.
func revisionOf(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return little.Uint64(sum[:])
}
