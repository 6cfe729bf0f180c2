//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/tilewright/tilewright/cache"
)

// storedRecords is the number of records of a database that is damaged, and
// publishedRecords that of a snapshot.
const (
	storedRecords    = 10
	publishedRecords = 50
)

// record is a plausible record; of two versions the second supersedes the first.
func record(n, version int) cache.Record {
	text := fmt.Sprintf("p0 = f32[%d,64]{1,0} parameter(0)\nROOT r = f32[%d,64]{1,0} negate(p0)\n", n+1, n+1)
	r := cache.Record{
		Key: cache.Key{
			Fusion:  sha256.Sum256([]byte(text)),
			Device:  "cpu:attacked",
			Backend: "cpu",
			Codegen: "1",
		},
		Name:           fmt.Sprintf("fusion.%d", n),
		Canonical:      text,
		Safe:           map[string]string{"go": "1"},
		Plan:           fmt.Sprintf("64,%d", version+1),
		Default:        "16,16",
		Seconds:        1e-3,
		DefaultSeconds: 2e-3,
		Speedup:        [3]float64{2, 1.9, 2.1},
		Checked:        version > 0,
		When:           time.Unix(int64(n+version), 0).UTC(),
		By:             "attack",
	}
	for v := range 4 {
		x := cache.Trial{Plan: fmt.Sprintf("64,%d", v+1), Predicted: 1e-3}
		for b := range 6 {
			x.Add(1e-3+float64(100*n+10*v+b)*1e-7, 0, b)
		}
		r.Trials = append(r.Trials, x)
	}
	return r
}

// A base is a database as it is before it is damaged.
type base struct {
	// The file.
	data []byte
	// The records as they are stored, as JSON, and their plans before the last
	// write: answers from an earlier state of the file have those.
	now   [][]byte
	older []string
	// The key and the trials of an unfinished race.
	race cache.Record
}

// textOf is the JSON of a record.
func textOf(r cache.Record) []byte {
	text, err := json.Marshal(r)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// newBase makes a database of records that were written twice, and a race.
func newBase(path string) (*base, error) {
	db := cache.Open(path)
	b := &base{race: record(storedRecords, 0)}
	for version := range 2 {
		for n := range storedRecords {
			if _, err := db.Put(record(n, version)); err != nil {
				return nil, err
			}
		}
	}
	if err := db.PutTrials(b.race.Key, b.race.Trials); err != nil {
		return nil, err
	}
	for n := range storedRecords {
		r, _, err := db.Get(record(n, 0).Key)
		if err != nil {
			return nil, err
		}
		b.now = append(b.now, textOf(r))
		b.older = append(b.older, record(n, 0).Plan)
	}
	data, err := os.ReadFile(path)
	b.data = data
	return b, err
}

// pageSize is the size of a page of the database, in bytes.
const pageSize = 4096

// flip flips one to five bits; a third of the flips are in the heads of pages, where
// the structure is.
func flip(rng *rand.Rand, data []byte) (bad []byte, bits int) {
	bad = bytes.Clone(data)
	bits = 1 + rng.IntN(5)
	for range bits {
		at := rng.IntN(len(bad))
		if rng.IntN(3) == 0 {
			at = min(at/pageSize*pageSize+rng.IntN(96), len(bad)-1)
		}
		bad[at] ^= 1 << rng.IntN(8)
	}
	return bad, bits
}

// flipCounts are what happened to damaged databases.
type flipCounts struct {
	// Verify found nothing, and every answer was right: bits that nobody reads.
	unseen int
	// Verify refused the file, or it left out the damaged entries.
	whole, part int
	// Answers of a state before the last write.
	older int
}

// flipDatabases damages databases and asks them for everything.
func flipDatabases(s *session) (r result, err error) {
	b, err := newBase(
		filepath.Join(s.dir, "base.db"),
	)
	if err != nil {
		return r, err
	}
	rng := rand.New(
		rand.NewPCG(s.seed, 1),
	)
	path := filepath.Join(s.dir, "flipped.db")
	var c flipCounts
	for r.tried = range s.flips {
		bad, _ := flip(rng, b.data)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			return r, err
		}
		if text := b.examine(path, &c); text != "" {
			r.harm("number %d: %s", r.tried, text)
		}
	}
	r.tried = s.flips
	r.note = fmt.Sprintf(
		"%d unseen and harmless, %d the file refused, %d an entry left out, %d answers from before the last write, which verify says",
		c.unseen, c.whole, c.part, c.older,
	)
	return r, nil
}

// examine reads a damaged database, writes to it and reads it again. The result is
// the harm.
func (b *base) examine(path string, c *flipCounts) (harm string) {
	_, verified := cache.Open(path).Verify()
	before, harm := b.answers(path, verified, c)
	var left *cache.LeftOutError
	switch {
	case harm != "":
		return harm
	case verified == nil:
		c.unseen++
	case errors.As(verified, &left):
		c.part++
	default:
		c.whole++
	}
	if _, err := cache.Open(path).Put(record(storedRecords+1, 1)); err != nil {
		return ""
	}
	after, harm := b.answers(path, verified, &flipCounts{})
	if harm == "" && after < before {
		_, now := cache.Open(path).Verify()
		harm = fmt.Sprintf("writing loses %d entries; verify said %v, and then %v", before-after, verified, now)
	}
	return harm
}

// answers asks for every record and the race, and counts those that are found as
// they were stored. Where verify says nothing, all have to be.
func (b *base) answers(
	path string, verified error, c *flipCounts,
) (found int, harm string) {
	db := cache.Open(path)
	for n := range storedRecords {
		r, ok, err := db.Get(record(n, 0).Key)
		switch {
		case err == nil && ok && bytes.Equal(textOf(r), b.now[n]):
			found++
		case verified == nil:
			return found, fmt.Sprintf("record %d: found is %t, its plan %q, %v, and verify says nothing", n, ok, r.Plan, err)
		case ok && r.Plan != b.older[n] && r.Plan != record(n, 1).Plan:
			return found, fmt.Sprintf("record %d: the plan %q, which was never stored", n, r.Plan)
		case err == nil:
			c.older++
		}
	}
	ts, err := db.Trials(b.race.Key)
	switch {
	case err == nil && len(ts) == len(b.race.Trials):
		found++
	case verified == nil:
		return found, fmt.Sprintf("the race has %d plans, %v, and verify says nothing", len(ts), err)
	}
	return found, ""
}

// flipSnapshots damages snapshots and asks them for everything.
func flipSnapshots(s *session) (r result, err error) {
	db := cache.Open(
		filepath.Join(s.dir, "published.db"),
	)
	for n := range publishedRecords {
		if _, err := db.Put(record(n, 1)); err != nil {
			return r, err
		}
	}
	path := filepath.Join(s.dir, "published.snapshot")
	if _, err := db.Publish(path); err != nil {
		return r, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	rng := rand.New(
		rand.NewPCG(s.seed, 2),
	)
	refused, missed := 0, 0
	for range s.flips {
		bad, bits := flip(rng, data)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			return r, err
		}
		r.tried++
		snapshot, err := cache.OpenSnapshot(path)
		if err != nil {
			refused++
			continue
		}
		// Records share their device and safe context, so that one flipped bit may
		// make many lookups errors.
		errs, harm := askAll(snapshot)
		missed += errs
		if harm != "" {
			r.harm("number %d, %d bits: %s", r.tried, bits, harm)
		}
	}
	r.note = fmt.Sprintf("%d refused, %d lookups ended in an error, every other answer right", refused, missed)
	return r, nil
}

// askAll asks a snapshot for all records and counts the errors. Another answer than
// the stored one, or a miss without an error, is harm.
func askAll(s *cache.Snapshot) (errs int, harm string) {
	for n := range publishedRecords {
		want := record(n, 1)
		var hit cache.Hit
		found, err := s.Get(&want.Key, &hit)
		switch {
		case err != nil:
			errs++
		case !found:
			harm = fmt.Sprintf("record %d is missed without an error", n)
			return errs, harm
		case string(hit.Plan) != want.Plan ||
			hit.Seconds != want.Seconds ||
			hit.SafeDiff(want.Safe) != nil:
			// The digest of the record is compared before its key: this cannot be.
			harm = fmt.Sprintf("record %d is %+v", n, hit)
			return errs, harm
		}
	}
	return errs, ""
}
