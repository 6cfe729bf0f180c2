package cache

import (
	"bytes"
	"math"

	"go.etcd.io/bbolt"
)

// OfFusion are the records of a fusion, of all devices and revisions, in the order of
// their keys and without samples. Damaged ones are left out.
func (db *DB) OfFusion(print Fingerprint) (all []Record, err error) {
	var w winnerReader
	err = db.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketWinners).Cursor()
		k, value := c.Seek(print[:])
		for ; bytes.HasPrefix(k, print[:]); k, value = c.Next() {
			r, err := w.winner(k, value)
			if err == nil {
				all = append(all, r)
			}
		}
		return nil
	})
	return all, err
}

// Nearest is Snapshot.Nearest for a database: of equals the first by key answers. It
// returns the record without its samples. The first call reads all records, and those
// after it until somebody stores something only the one that they return.
func (db *DB) Nearest(
	q *Question,
) (r Record, found bool, distance float64, err error) {
	distance = math.Inf(1)
	err = db.view(func(tx *bbolt.Tx) error {
		all, err := db.structuresOf(tx)
		if err != nil {
			return err
		}
		var key *Key
		if key, distance = all.nearest(q); key == nil {
			return nil
		}
		var w winnerReader
		k := key.bytes()
		r, err = w.winner(k, tx.Bucket(bucketWinners).Get(k))
		found = err == nil // it was sound a moment before
		return err
	})
	return r, found, distance, err
}

// structuresOf are those that were read of the state that a transaction sees: no other
// process writes while it lasts, and every state has a pointer of its own in verified.
func (db *DB) structuresOf(tx *bbolt.Tx) (*structures, error) {
	state := db.verified.Load()
	known := db.structures.Load()
	if known != nil && state != nil && known.state == state {
		return known, nil
	}
	all := &structures{
		state: state,
		rows:  map[structureOn][]structureRow{},
	}
	var w winnerReader
	err := tx.Bucket(bucketWinners).ForEach(func(k, value []byte) error {
		r, err := w.winner(k, value)
		if err != nil {
			return nil // a damaged record answers nothing
		}
		structure := w.structures.read(r.Canonical)
		on := structureOn{structure.Print, r.Backend}
		row := structureRow{
			key:  r.Key,
			logs: w.structures.appendLogs(nil),
		}
		all.rows[on] = append(all.rows[on], row)
		return nil
	})
	if err == nil {
		db.structures.Store(all)
	}
	return all, err
}

// nearest is the key of the record with the smallest distance; nil if there is none.
func (s *structures) nearest(q *Question) (key *Key, distance float64) {
	distance = math.Inf(1)
	logs := q.appendLogs(nil)
	var last Key
	deviation := 0.0 // of last
	rows := s.rows[structureOn{q.Print, q.Backend}]
	for n := range rows {
		row := &rows[n]
		if len(row.logs) != len(logs) {
			continue
		}
		origin := row.key
		origin.Fusion = Fingerprint{}
		if origin != last {
			last = origin
			deviation = q.deviation(
				[]byte(last.Device),
				[]byte(last.Backend),
				[]byte(last.Codegen),
			)
		}
		d := row.distance(logs) + deviation
		if d < distance {
			key, distance = &row.key, d
		}
	}
	return key, distance
}

// distance is that of extents with the given logarithms, of which there are as many.
func (r *structureRow) distance(logs []uint32) float64 {
	sum := uint64(0)
	for k, log := range logs {
		sum += difference(log, r.logs[k])
	}
	return octaves(sum, len(logs))
}
