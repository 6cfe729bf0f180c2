// Package cache keeps winners and samples in a bbolt file that is opened for
// an instant, and publishes immutable snapshots for lookups. It is a leaf: it
// knows bytes and strings.
package cache

import (
	"iter"
	"time"
)

// A Key is the exact context of a winner (D11).
type Key struct {
	Fusion  [32]byte // fingerprint of the canonical fusion
	Device  string
	Backend string
	Codegen string // code-generation revision
}

// A Record is what is known about one key.
type Record struct {
	Key
	Name           string            // fusion name, for people
	Canonical      string            // canonical fusion text, so that a hash is never all there is
	Safe           map[string]string // safe context at measuring time: driver version, tool version, …
	Plan           string            // the winner, kernels.Plan text
	Default        string            // the default plan
	Seconds        float64           // median of the winner
	DefaultSeconds float64
	Regret         float64  // stated bound on the winner's regret among the tried plans, as a ratio ≥ 0
	Ties           []string // plans statistically equal to the winner
	Trials         []Trial  // everything tried, winner and default included
	Checked        bool
	When           time.Time
	By             string // tool and version
	Legal          int64  // legal plans there were
	Note           string
}

// A Trial is one plan that was tried: its samples, or why it failed.
type Trial struct {
	Plan      string
	Predicted float64   // seconds the cost model said
	Samples   []float64 // seconds, in the order measured
	Features  []byte    // the cost model's features, opaque here
	Failure   string    // "" or: rejected, wrong, implausible, timeout, error: …
	Detail    string
}

// A DB is a cache file, by path. It holds nothing open.
type DB struct{ path string }

// Open names a cache file; it is not touched before it is used.
func Open(path string) *DB { panic("cache room") }

// Get finds the record of k. A missing file is a miss; a damaged one an error.
func (db *DB) Get(k Key) (Record, bool, error) { panic("cache room") }

// Put stores r unless a record with the same key exists that is better by its
// own evidence (see doc.go); it reports whether r is the one kept.
func (db *DB) Put(r Record) (bool, error) { panic("cache room") }

// PutTrials keeps trials of an unfinished race, so that it can be resumed.
// Trials of the same plan replace each other. Put clears them.
func (db *DB) PutTrials(k Key, ts []Trial) error { panic("cache room") }

// Trials returns what PutTrials kept.
func (db *DB) Trials(k Key) ([]Trial, error) { panic("cache room") }

// All yields records in key order.
func (db *DB) All() iter.Seq2[Record, error] { panic("cache room") }
