package cache

import (
	"math"
	"runtime/debug"
	"sort"

	"go.etcd.io/bbolt"
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
func (s *Snapshot) Nearest(q *Question, hit *Hit) (found bool, distance float64, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			found, err = false, faultError(r)
		}
	}()
	return s.nearest(q, hit)
}

// nearest is Nearest without faults.
func (s *Snapshot) nearest(q *Question, hit *Hit) (found bool, distance float64, err error) {
	kin := window(s.kin(structureHash(&q.Structure.Print, q.Backend)), float32(q.volume()))
	distance = math.Inf(1)
	var nearest []byte
	for ; len(kin) > 0; kin = kin[snapshotSlotSize:] {
		record, ok := s.part(little.Uint64(kin), little.Uint32(kin[8:]))
		if !ok {
			continue
		}
		if d := q.distanceTo(record); d < distance {
			distance, nearest = d, record
		}
	}
	if nearest == nil {
		return false, 0, nil
	}
	if !hit.copyOf(nearest) {
		return false, 0, errRecordDamaged
	}
	return true, distance, nil
}

// kin are the entries of a structure on a backend.
func (s *Snapshot) kin(hash uint64) []byte {
	if len(s.data) == 0 {
		return nil
	}
	mask := uint64(1)<<s.structures - 1
	entries := s.kinAt + snapshotSlotSize<<s.structures
	for probe := uint64(0); probe <= mask; probe++ {
		slot := s.data[s.kinAt+(hash+probe)&mask*snapshotSlotSize:][:snapshotSlotSize]
		n := uint64(little.Uint32(slot[12:]))
		if n == 0 {
			break
		}
		if little.Uint64(slot) != hash {
			continue
		}
		first := entries + uint64(little.Uint32(slot[8:]))*snapshotSlotSize
		if first > s.size || n > (s.size-first)/snapshotSlotSize {
			break
		}
		return s.data[first : first+n*snapshotSlotSize]
	}
	return nil
}

// window are the kinExamined entries with the volumes nearest to v: as many below as
// above where there are enough.
func window(kin []byte, v float32) []byte {
	n := len(kin) / snapshotSlotSize
	at := sort.Search(n, func(k int) bool {
		return math.Float32frombits(little.Uint32(kin[k*snapshotSlotSize+12:])) >= v
	})
	first := max(0, min(at-kinExamined/2, n-kinExamined))
	last := min(n, first+kinExamined)
	return kin[first*snapshotSlotSize : last*snapshotSlotSize]
}

// distanceTo is the distance of an encoded record; it is infinite where the record is
// of another structure or backend, or damaged.
func (q *Question) distanceTo(record []byte) float64 {
	if len(record) < namesAt || string(record[structureAt:fusionAt]) != string(q.Print[:]) {
		return math.Inf(1)
	}
	var device, backend, codegen, extents []byte
	b := record[namesAt:]
	for _, to := range [...]*[]byte{&device, &backend, &codegen, &extents} {
		var ok bool
		if *to, b, ok = cutText(b); !ok {
			return math.Inf(1)
		}
	}
	if string(backend) != q.Backend {
		return math.Inf(1)
	}
	d := q.Structure.distance(extents)
	if string(codegen) != q.Codegen {
		d += revisionDistance
	}
	if string(device) != q.Device {
		if q.DeviceDistance == nil {
			return math.Inf(1)
		}
		d += q.DeviceDistance(device)
	}
	return d
}

// Nearest is Snapshot.Nearest for a database. It reads all records, and returns the
// nearest one without its samples.
func (db *DB) Nearest(q *Question) (r Record, found bool, distance float64, err error) {
	distance = math.Inf(1)
	err = db.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketWinners).ForEach(func(k, value []byte) error {
			other, err := readWinner(k, value)
			if err != nil || other.Backend != q.Backend {
				return nil // a damaged record answers nothing
			}
			if d := q.distanceTo(appendRecord(nil, &other, StructureOf(other.Canonical))); d < distance {
				r, found, distance = other, true, d
			}
			return nil
		})
	})
	return r, found, distance, err
}

// structureHash is the hash of the slots of structures.
func structureHash(print *Fingerprint, backend string) uint64 {
	h := hashString(little.Uint64(print[:]), backend)
	return h ^ h>>29
}
