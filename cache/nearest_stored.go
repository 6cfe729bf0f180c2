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

// Nearest is Snapshot.Nearest for a database. It reads all records, and returns the
// nearest one without its samples.
func (db *DB) Nearest(
	q *Question,
) (r Record, found bool, distance float64, err error) {
	distance = math.Inf(1)
	var w winnerReader
	err = db.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketWinners).ForEach(func(k, value []byte) error {
			other, err := w.winner(k, value)
			if err != nil || other.Backend != q.Backend {
				return nil // a damaged record answers nothing
			}
			structure := StructureOf(other.Canonical)
			d := q.Structure.distance(&structure)
			d += q.deviation([]byte(other.Device), []byte(other.Backend), []byte(other.Codegen))
			if d < distance {
				r, found, distance = other, true, d
			}
			return nil
		})
	})
	return r, found, distance, err
}
