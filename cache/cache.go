// Package cache keeps winners and samples in a bbolt file that is opened for
// an instant, and publishes immutable snapshots for lookups. It is a leaf: it
// knows bytes and strings.
//
// bbolt locks its file against other processes while it is open, so nothing
// here holds it: every method opens, does one transaction, and closes. Two
// tuners and any number of readers can use one file. A compiler's hot path
// uses a Snapshot, which is mapped, lock-free and never changes.
//
// Records are JSON behind a CRC-32C: any bbolt tool shows them to a person,
// fields can be added, and flipped bits do not go unseen.
package cache

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"sync/atomic"
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
func (f Fingerprint) MarshalText() ([]byte, error) {
	return hex.AppendEncode(nil, f[:]), nil
}

// UnmarshalText reads them.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(f) {
		return fmt.Errorf(
			"a fingerprint has %d hexadecimal digits, not %d",
			hex.EncodedLen(len(f)), len(text),
		)
	}
	_, err := hex.Decode(f[:], text)
	return err
}

// A Record is what is known about one key. Times are seconds.
type Record struct {
	Key
	Name           string            `json:"name"`               // of the fusion, for people
	Canonical      string            `json:"canonical"`          // canonical fusion text, so that a hash is never all there is
	Safe           map[string]string `json:"safe"`               // safe context when measured: driver version and the like
	Plan           string            `json:"plan"`               // the winner, kernels.Plan text
	Default        string            `json:"default"`            // the default plan
	Seconds        float64           `json:"seconds"`            // median of the winner
	DefaultSeconds float64           `json:"defaultSeconds"`     // median of the default
	Speedup        [3]float64        `json:"speedup"`            // of the winner over the default: median of paired ratios, low, high
	Regret         float64           `json:"regret"`             // upper bound on winner/best of the tried − 1, at 95 %; −1: unknown
	Ties           []string          `json:"ties"`               // plans statistically equal to the winner
	Trials         []Trial           `json:"trials"`             // everything tried, winner and default included
	Checked        bool              `json:"checked"`            // the winner agreed with the reference
	Untimed        bool              `json:"untimed,omitempty"`  // the device cannot time: Seconds, DefaultSeconds and Speedup are the cost model's predictions
	Evidence       json.RawMessage   `json:"evidence,omitempty"` // what the device saw of its clock while it timed, opaque here (kernels.SampleQuality)
	Legal          int64             `json:"legal"`              // plans there were to choose from
	When           time.Time         `json:"when"`
	By             string            `json:"by"` // tool and version
	Note           string            `json:"note,omitempty"`
}

// A Trial is one plan that was tried: its samples, or why it failed.
type Trial struct {
	Plan      string          `json:"plan"`
	Predicted float64         `json:"predicted"`          // what the cost model said
	Samples   []float64       `json:"samples,omitempty"`  // in the order measured
	Clocks    []float64       `json:"clocks,omitempty"`   // of the device while each was taken, Hz, 0 where it is unknown; none: of none is it known
	Blocks    []int           `json:"blocks,omitempty"`   // the block each sample was taken in; samples of one block are comparable
	Features  json.RawMessage `json:"features,omitempty"` // of the cost model, opaque here
	Dropped   bool            `json:"dropped,omitempty"`  // lost the race before its end
	Failure   string          `json:"failure,omitempty"`  // rejected, wrong, implausible, timeout, error
	Detail    string          `json:"detail,omitempty"`
}

// Add adds a sample of a block, and the clock of the device meanwhile, in Hz; 0:
// unknown.
func (t *Trial) Add(seconds, hertz float64, block int) {
	t.Samples = append(t.Samples, seconds)
	t.Blocks = append(t.Blocks, block)
	if len(t.Clocks) > 0 || hertz > 0 {
		t.Clocks = append(
			append(
				t.Clocks,
				make([]float64, len(t.Samples)-1-len(t.Clocks))...,
			),
			hertz,
		)
	}
}

// clock is that of sample k, 0 where it is unknown.
func (t *Trial) clock(k int) float64 {
	if len(t.Clocks) == 0 {
		return 0
	}
	return t.Clocks[k]
}

// Median is the middle of the samples, in seconds; 0 when there are none.
func (t Trial) Median() float64 {
	n := len(t.Samples)
	if n == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(t.Samples))
	return (s[(n-1)/2] + s[n/2]) / 2
}

// A DB is a cache file, by path. It holds nothing open, and any number of
// goroutines may use it.
type DB struct {
	path     string
	verified atomic.Pointer[fileState] // the file as it was last found to be whole
}

// Open names a cache file; it is not touched before it is used.
func Open(path string) *DB { return &DB{path: path} }

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
		value := tx.Bucket(bucketWinners).Get(k.bytes())
		if found = value != nil; found {
			r, err = readRecord(k.bytes(), value)
		}
		return err
	})
	if err != nil {
		return Record{}, false, err
	}
	return r, found, nil
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
	return kept && err == nil, err
}

func put(tx *bbolt.Tx, r Record) (kept bool, err error) {
	k := r.Key.bytes()
	kept = true
	if value := tx.Bucket(bucketWinners).Get(k); value != nil {
		var old Record
		if err := readJSON(value, &old); err != nil {
			return false, fmt.Errorf("%w; remove it (`cache rm`) to store another", &DamagedError{
				Key: r.Key,
				Err: err,
			})
		}
		if kept = r.supersedes(old); kept {
			r.Trials = union(r.Trials, old.Trials)
		} else {
			old.Trials = union(old.Trials, r.Trials)
			r = old
		}
	}
	if err := putJSON(tx, bucketWinners, k, r); err != nil {
		return false, err
	}
	return kept, tx.Bucket(bucketTrials).Delete(k)
}

// PutTrials keeps trials of an unfinished race, so that it can be resumed. They
// join those that are there, so two tuners at one fusion lose nothing of each
// other's. Put clears them.
func (db *DB) PutTrials(k Key, ts []Trial) error {
	if err := errors.Join(k.plausible(), plausible(ts)); err != nil {
		return err
	}
	return db.update(func(tx *bbolt.Tx) error {
		return putTrials(tx, k.bytes(), ts)
	})
}

func putTrials(tx *bbolt.Tx, k []byte, ts []Trial) error {
	if value := tx.Bucket(bucketTrials).Get(k); value != nil {
		old, err := readTrials(k, value)
		if err != nil {
			return fmt.Errorf("the stored trials of this key: %w; remove them (`cache rm`) to go on", err)
		}
		ts = union(ts, old)
	}
	return putJSON(tx, bucketTrials, k, ts)
}

// Trials returns what PutTrials kept.
func (db *DB) Trials(k Key) (ts []Trial, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		if value := tx.Bucket(bucketTrials).Get(k.bytes()); value != nil {
			ts, err = readTrials(k.bytes(), value)
		}
		return err
	})
	return ts, err
}

// All yields records in key order. It reads them all first: the file is not
// held open while the caller works. A record that is damaged comes as a
// *DamagedError beside a Record with nothing but its key, and the rest follow;
// any other error is the last thing.
func (db *DB) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		all, errs, err := db.all()
		for k, r := range all {
			if !yield(r, errs[k]) {
				return
			}
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

func (db *DB) all() (all []Record, errs []error, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketWinners).ForEach(func(k, value []byte) error {
			r, err := readRecord(k, value)
			all = append(all, r)
			errs = append(errs, err)
			return nil
		})
	})
	return all, errs, err
}

// intactRecords is all records; one damaged record is an error.
func (db *DB) intactRecords() ([]Record, error) {
	all, errs, err := db.all()
	return all, errors.Join(errors.Join(errs...), err)
}

// readRecord decodes a record and checks that it is the one its key says.
func readRecord(k, value []byte) (r Record, err error) {
	if r.Key, err = parseKey(k); err != nil {
		return r, &DamagedError{
			Err: fmt.Errorf("key %x: %w", k[:min(8, len(k))], err),
		}
	}
	stored := r.Key
	if err := readJSON(value, &r); err != nil {
		return Record{Key: stored},
			&DamagedError{Key: stored, Err: err}
	}
	if r.Key != stored {
		return Record{Key: stored},
			&DamagedError{Key: stored, Err: errors.New("it holds the record of another key")}
	}
	if err := r.plausible(); err != nil {
		return Record{Key: stored},
			&DamagedError{Key: stored, Err: err}
	}
	return r, nil
}

// A DamagedError is about one record; the others of its file are sound.
type DamagedError struct {
	Key Key // zero when the key itself is damaged
	Err error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf(
		"the record of fusion %x on %s is damaged: %v",
		e.Key.Fusion[:4],
		cmp.Or(e.Key.Device, "an unknown device"), e.Err,
	)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// Delete removes the record and the trials of k, damaged or not; it reports
// whether there were any.
func (db *DB) Delete(k Key) (found bool, err error) {
	if _, err := os.Stat(db.path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err = db.update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketWinners, bucketTrials} {
			b := tx.Bucket(name)
			found = found || b.Get(k.bytes()) != nil
			if err := b.Delete(k.bytes()); err != nil {
				return err
			}
		}
		return nil
	})
	return found && err == nil, err
}

// bytes encodes a key, injectively: the 32 bytes of the fingerprint, then each
// of device, backend and codegen with its length in bytes before it as a
// varint. Records of one fusion are therefore neighbours.
func (k *Key) bytes() []byte {
	b := append(
		make(
			[]byte,
			0,
			40+len(k.Device)+len(k.Backend)+len(k.Codegen),
		),
		k.Fusion[:]...,
	)
	for _, s := range [...]string{k.Device, k.Backend, k.Codegen} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// parseKey reads what bytes wrote and nothing else.
func parseKey(b []byte) (k Key, err error) {
	whole := b
	if len(b) < len(k.Fusion) {
		return k, errors.New("a key is cut short")
	}
	b = b[copy(k.Fusion[:], b):]
	for _, s := range [...]*string{&k.Device, &k.Backend, &k.Codegen} {
		n, width := binary.Uvarint(b)
		if width <= 0 || n > uint64(len(b)-width) {
			return Key{}, errors.New("a key is cut short")
		}
		*s, b = string(b[width:width+int(n)]),
			b[width+int(n):]
	}
	if !bytes.Equal(k.bytes(), whole) {
		return Key{}, errors.New("a key has bytes too many")
	}
	return k, nil
}

// SafeDiff lists the entries of the safe context that differ, sorted: a record
// measured under another driver is still a hit, but one that says so (D11).
func SafeDiff(stored, now map[string]string) []string {
	var diff []string
	for _, k := range slices.Sorted(maps.Keys(now)) {
		if stored[k] != now[k] {
			diff = append(
				diff,
				fmt.Sprintf(
					"%s: measured with %s, now %s",
					k, cmp.Or(stored[k], "none"),
					cmp.Or(now[k], "none"),
				),
			)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(stored)) {
		if _, ok := now[k]; !ok {
			diff = append(
				diff,
				fmt.Sprintf("%s: measured with %s, now none", k, cmp.Or(stored[k], "none")),
			)
		}
	}
	slices.Sort(diff)
	return diff
}
