package cache

import (
	"math"
	"runtime/debug"
	"sort"
)

// A Question is what Nearest looks for.
type Question struct {
	Key
	Structure
	// DeviceDistance says how far another device of the backend is from that of the
	// key, in the unit of Distance; infinite for one whose winners say nothing. Nil:
	// only winners of the same device answer.
	DeviceDistance func(device []byte) float64
}

// revisionDistance is what another revision of the code generator counts: as much as
// all extents being a quarter of an octave off.
const revisionDistance = 0.25

// kinExamined is how many records of a structure are compared, those with the nearest
// volumes: the rest of a long list is farther off.
const kinExamined = 24

// Nearest finds, among the records of the fusion's structure on the backend, the one
// with the smallest distance: the mean difference of the logarithms of the extents
// in octaves, revisionDistance for another revision of the code generator, and the
// distance of the device. Of equals the first by volume and device answers. What the
// record differs in, a caller sees by comparing its fields with the key; whether its
// plan is legal for the fusion the caller has to check.
func (s *Snapshot) Nearest(
	q *Question, hit *Hit,
) (found bool, distance float64, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			found, err = false, faultError(r)
		}
	}()
	return s.nearest(q, hit)
}

// nearest is Nearest without faults.
func (s *Snapshot) nearest(
	q *Question, hit *Hit,
) (found bool, distance float64, err error) {
	kin, found, err := s.kin(q)
	if !found || err != nil {
		return false, 0, err
	}
	hit.logs = q.appendLogs(hit.logs[:0])
	rows := kin.window(volume(hit.logs))
	distance = math.Inf(1)
	var nearest kinRow
	other := deviation{number: math.MaxUint32}
	for ; len(rows) > 0; rows = rows[kin.rowBytes:] {
		row := kinRow(rows[:kin.rowBytes])
		if number := row.origin(); number != other.number {
			other = s.deviation(q, number)
		}
		d := row.distance(hit.logs) + other.distance
		if d < distance {
			distance, nearest = d, row
		}
	}
	if nearest == nil {
		return false, 0, nil
	}
	err = s.readKin(nearest, kin.hash, hit)
	if err != nil {
		return false, 0, err
	}
	return true, distance, nil
}

// readKin reads the record of a row, which has to be of the structure.
func (s *Snapshot) readKin(row kinRow, structure uint64, hit *Hit) error {
	there, err := s.read(row.line(), hit)
	if err != nil {
		return err
	}
	seed := structure ^ u64(hit.Fusion[:], 0)
	if !there || hit.structure != structure || row.check() != row.digest(seed) {
		return errTableDamaged
	}
	return nil
}

// A deviation is how far the origins of a question and of records are apart.
type deviation struct {
	number   uint32 // of the records' origin
	distance float64
}

// deviation compares the origin of records with that of a question. It is infinite
// where records say nothing.
func (s *Snapshot) deviation(q *Question, number uint32) deviation {
	c := s.origin(number)
	if c == nil {
		return deviation{number, math.Inf(1)}
	}
	d := q.deviation(c.device, c.backend, c.codegen)
	return deviation{number, d}
}

// deviation is the distance of a backend, a device and a revision.
func (q *Question) deviation(
	device, backend, codegen []byte,
) (d float64) {
	if string(codegen) != q.Codegen {
		d = revisionDistance
	}
	switch {
	case string(backend) != q.Backend:
		return math.Inf(1)
	case string(device) == q.Device:
		return d
	case q.DeviceDistance == nil:
		return math.Inf(1)
	}
	return d + q.DeviceDistance(device)
}

// A structure's block has its hash, its print, the position of its rows in bytes, u64,
// how many they are, u32, and how many extents each of them has, u32. The seed of its digest is
// the number of its line. The position is that of the volumes of the rows, f32 in ascending
// order; the rows follow.
const (
	printAt   = 8
	rowsAt    = printAt + 32
	rowsTaken = rowsAt + 8
	extentsAt = rowsTaken + 4
)

// kinOf are the rows of a structure.
type kinOf struct {
	hash     uint64
	volumes  []byte
	rows     []byte
	rowBytes int
}

// kin finds the rows of the structure of a question.
func (s *Snapshot) kin(q *Question) (kin kinOf, found bool, err error) {
	if len(s.data) == 0 {
		return kin, false, nil
	}
	kin.hash = structureHash(&q.Print, q.Backend)
	hash := mix(kin.hash ^ s.structures.seed)
	line := s.structures.line(s.data, hash)
	b, ok := s.from(line)
	if ok && len(b) >= lineBytes {
		copied := *(*[lineBytes]byte)(b)
		block := copied[:]
		if !sealed(block, uint64(line)) {
			return kin, false, errTableDamaged
		}
		print := Fingerprint(block[printAt:])
		if u64(block, 0) == kin.hash && print == q.Print {
			return kin, kin.place(s.data, block, len(q.Extents)), nil
		}
	}
	if !s.structures.sound(s.data, hash) {
		return kin, false, errTableDamaged
	}
	return kin, false, nil
}

// place finds the rows that a block names; it is false where they have another number
// of extents than asked for.
func (k *kinOf) place(data, block []byte, extents int) bool {
	n := uint64(u32(block, rowsTaken))
	k.rowBytes = kinLogsAt + 4*extents
	at := u64(block, rowsAt)
	end := at + n*uint64(4+k.rowBytes)
	if u32(block, extentsAt) != uint32(extents) || at > uint64(len(data)) || end > uint64(len(data)) {
		return false
	}
	k.volumes, k.rows = data[at:at+4*n], data[at+4*n:end]
	return true
}

// window are the kinExamined rows with the volumes nearest to v: as many below as
// above where there are enough.
func (k *kinOf) window(v float32) []byte {
	n := len(k.volumes) / 4
	at := sort.Search(n, func(row int) bool {
		x := u32(k.volumes, 4*row)
		return math.Float32frombits(x) >= v
	})
	first := min(at-kinExamined/2, n-kinExamined)
	first = max(0, first)
	last := min(n, first+kinExamined)
	return k.rows[first*k.rowBytes : last*k.rowBytes]
}

// A kinRow is one record of a structure: its line, the number of its origin and a
// digest, u32 each, and the logarithms of its extents.
type kinRow []byte

const kinLogsAt = 12

func (r kinRow) line() uint32   { return u32(r, 0) }
func (r kinRow) origin() uint32 { return u32(r, 4) }
func (r kinRow) check() uint32  { return u32(r, 8) }

// appendKinRow appends a row of the given seed.
func appendKinRow(to []byte, line, origin uint32, logs []uint32, seed uint64) []byte {
	row := len(to)
	to = little.AppendUint32(to, line)
	to = little.AppendUint32(to, origin)
	to = little.AppendUint32(to, 0)
	for _, log := range logs {
		to = little.AppendUint32(to, log)
	}
	put32(to, row+8, kinRow(to[row:]).digest(seed))
	return to
}

// appendFloat32 appends a number.
func appendFloat32(to []byte, x float32) []byte {
	return little.AppendUint32(to, math.Float32bits(x))
}

// distance is that of extents with the given logarithms.
func (r kinRow) distance(logs []uint32) float64 {
	sum := uint64(0)
	r = r[kinLogsAt:][:4*len(logs)]
	for k, log := range logs {
		sum += difference(log, u32(r, 4*k))
	}
	return octaves(sum, len(logs))
}

// digest is a digest of all but the digest. Its seed, hash of the structure exclusive or
// the first 8 bytes of the fusion, ties the row to both.
func (r kinRow) digest(seed uint64) uint32 {
	h := mix(seed ^ u64(r, 0))
	for r = r[kinLogsAt:]; len(r) > 0; r = r[4:] {
		h = mix(h ^ uint64(u32(r, 0)))
	}
	return uint32(h >> 32)
}
