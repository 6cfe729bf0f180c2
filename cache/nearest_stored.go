package cache

import (
	"math"

	"go.etcd.io/bbolt"
)

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
