// Package cache keeps winners and samples in a bbolt file that is opened for
// an instant, and publishes immutable snapshots for lookups. It is a leaf: it
// knows bytes and strings.
//
// bbolt locks its file against other processes while it is open, so nothing
// here holds it: every method opens, does one transaction, and closes. Two
// tuners and any number of readers can use one file. A compiler's hot path
// uses a Snapshot, which is mapped, lock-free and never changes.
//
// Put keeps the record with the better evidence: a checked one over an
// unchecked one; then the newer one, unless it has less than half as many
// samples as the one stored.
package cache

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// A Key is the exact context of a winner (D11).
type Key struct {
	Fusion  Fingerprint `json:"fusion"` // of the canonical fusion
	Device  string      `json:"device"`
	Backend string      `json:"backend"`
	Codegen string      `json:"codegen"` // code-generation revision
}

// A Fingerprint is a SHA-256; its text form is hexadecimal.
type Fingerprint [32]byte

// MarshalText writes 64 hexadecimal digits.
func (f Fingerprint) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, f[:]), nil }

// UnmarshalText reads them.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(f) {
		return fmt.Errorf("a fingerprint has %d hexadecimal digits, not %d", hex.EncodedLen(len(f)), len(text))
	}
	_, err := hex.Decode(f[:], text)
	return err
}

// A Record is what is known about one key. Times are seconds.
type Record struct {
	Key
	Name           string            `json:"name"`           // of the fusion, for people
	Canonical      string            `json:"canonical"`      // canonical fusion text, so that a hash is never all there is
	Safe           map[string]string `json:"safe"`           // safe context when measured: driver version and the like
	Plan           string            `json:"plan"`           // the winner, kernels.Plan text
	Default        string            `json:"default"`        // the default plan
	Seconds        float64           `json:"seconds"`        // median of the winner
	DefaultSeconds float64           `json:"defaultSeconds"` // median of the default
	Speedup        [3]float64        `json:"speedup"`        // of the winner over the default: median of paired ratios, low, high
	Regret         float64           `json:"regret"`         // upper bound on winner/best of the tried − 1, at 95 %
	Ties           []string          `json:"ties"`           // plans statistically equal to the winner
	Trials         []Trial           `json:"trials"`         // everything tried, winner and default included
	Checked        bool              `json:"checked"`        // the winner agreed with the reference
	Legal          int64             `json:"legal"`          // plans there were to choose from
	When           time.Time         `json:"when"`
	By             string            `json:"by"` // tool and version
	Note           string            `json:"note,omitempty"`
}

// A Trial is one plan that was tried: its samples, or why it failed.
type Trial struct {
	Plan      string          `json:"plan"`
	Predicted float64         `json:"predicted"`          // what the cost model said
	Samples   []float64       `json:"samples,omitempty"`  // in the order measured
	Blocks    []int           `json:"blocks,omitempty"`   // the block each sample was taken in; samples of one block are comparable
	Features  json.RawMessage `json:"features,omitempty"` // of the cost model, opaque here
	Dropped   bool            `json:"dropped,omitempty"`  // lost the race before its end
	Failure   string          `json:"failure,omitempty"`  // rejected, wrong, implausible, timeout, error
	Detail    string          `json:"detail,omitempty"`
}

// A DB is a cache file, by path. It holds nothing open.
type DB struct{ path string }

// Open names a cache file; it is not touched before it is used.
func Open(path string) *DB { return &DB{path} }

// Path is the file's name.
func (db *DB) Path() string { return db.path }

var (
	bucketMeta    = []byte("meta")
	bucketWinners = []byte("winners")
	bucketTrials  = []byte("trials")
	keySchema     = []byte("schema")
)

// Schema is the version of what is stored. A file with a newer one is refused.
const Schema = 1

// Get finds the record of k. A missing file is a miss; a damaged one an error.
func (db *DB) Get(k Key) (r Record, found bool, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		value := get(tx, bucketWinners, k.bytes())
		if value == nil {
			return nil
		}
		found = true
		return decode(value, &r)
	})
	return r, found && err == nil, err
}

// Put stores r unless the stored record of its key has better evidence; it
// reports whether r is the one kept. The trials of the loser are kept with the
// winner's, and those that PutTrials kept are cleared.
func (db *DB) Put(r Record) (kept bool, err error) {
	if err := r.plausible(); err != nil {
		return false, err
	}
	err = db.update(func(tx *bbolt.Tx) error {
		kept, err = put(tx, r)
		return err
	})
	return kept, err
}

func put(tx *bbolt.Tx, r Record) (kept bool, err error) {
	k := r.Key.bytes()
	kept = true
	if value := get(tx, bucketWinners, k); value != nil {
		var old Record
		if err := decode(value, &old); err != nil {
			return false, fmt.Errorf("the stored record of this key: %w", err)
		}
		if kept = r.beats(old); kept {
			r.Trials = union(r.Trials, old.Trials)
		} else {
			old.Trials = union(old.Trials, r.Trials)
			r = old
		}
	}
	if err := set(tx, bucketWinners, k, r); err != nil {
		return false, err
	}
	return kept, tx.Bucket(bucketTrials).Delete(k)
}

// beats is the rule of Put.
func (r Record) beats(old Record) bool {
	if r.Checked != old.Checked {
		return r.Checked
	}
	mine, theirs := r.evidence(), old.evidence()
	if 2*mine < theirs {
		return false
	}
	if 2*theirs < mine {
		return true
	}
	return cmp.Or(r.When.Compare(old.When), cmp.Compare(old.Plan, r.Plan)) >= 0
}

// evidence counts samples.
func (r Record) evidence() int {
	n := 0
	for _, t := range r.Trials {
		n += len(t.Samples)
	}
	return n
}

// union adds the trials of plans that a lacks, and for plans in both keeps the
// one with more samples.
func union(a, b []Trial) []Trial {
	out := slices.Clone(a)
	for _, t := range b {
		k := slices.IndexFunc(out, func(x Trial) bool { return x.Plan == t.Plan })
		switch {
		case k < 0:
			out = append(out, t)
		case len(t.Samples) > len(out[k].Samples):
			out[k] = t
		}
	}
	return out
}

// plausible refuses records that cannot be true.
func (r Record) plausible() error {
	switch {
	case r.Device == "" || r.Backend == "":
		return errors.New("a record needs a device and a backend")
	case r.Plan == "":
		return errors.New("a record needs a plan")
	case !(r.Seconds > 0) || math.IsInf(r.Seconds, 0):
		return fmt.Errorf("%v seconds is not a time", r.Seconds)
	}
	for _, t := range r.Trials {
		for _, s := range t.Samples {
			if !(s > 0) || math.IsInf(s, 0) {
				return fmt.Errorf("plan %s: %v seconds is not a time", t.Plan, s)
			}
		}
	}
	return nil
}

// PutTrials keeps trials of an unfinished race, so that it can be resumed: all
// of them, replacing what was kept for the key. Put clears them.
func (db *DB) PutTrials(k Key, ts []Trial) error {
	return db.update(func(tx *bbolt.Tx) error { return set(tx, bucketTrials, k.bytes(), ts) })
}

// Trials returns what PutTrials kept.
func (db *DB) Trials(k Key) (ts []Trial, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		if value := get(tx, bucketTrials, k.bytes()); value != nil {
			return decode(value, &ts)
		}
		return nil
	})
	return ts, err
}

// All yields records in key order. It reads them all first: the file is not
// held open while the caller works.
func (db *DB) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var all []Record
		err := db.view(func(tx *bbolt.Tx) error {
			return each(tx, bucketWinners, func(k, value []byte) error {
				var r Record
				if err := decode(value, &r); err != nil {
					return fmt.Errorf("record %x: %w", k[:min(8, len(k))], err)
				}
				all = append(all, r)
				return nil
			})
		})
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// Delete removes the record and the trials of k; it reports whether there was one.
func (db *DB) Delete(k Key) (found bool, err error) {
	err = db.update(func(tx *bbolt.Tx) error {
		found = get(tx, bucketWinners, k.bytes()) != nil
		return errors.Join(tx.Bucket(bucketWinners).Delete(k.bytes()), tx.Bucket(bucketTrials).Delete(k.bytes()))
	})
	return found, err
}

// bytes encodes a key: the fingerprint, then each string with its length as a
// varint before it.
func (k Key) bytes() []byte {
	b := append(make([]byte, 0, 40+len(k.Device)+len(k.Backend)+len(k.Codegen)), k.Fusion[:]...)
	for _, s := range []string{k.Device, k.Backend, k.Codegen} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// SafeDiff lists the entries of the safe context that differ, sorted: a record
// measured under another driver is still a hit, but one that says so.
func SafeDiff(stored, now map[string]string) []string {
	var diff []string
	for k, v := range now {
		if stored[k] != v {
			diff = append(diff, fmt.Sprintf("%s: measured with %s, now %s", k, cmp.Or(stored[k], "none"), v))
		}
	}
	slices.Sort(diff)
	return diff
}
