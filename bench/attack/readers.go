//go:build unix

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tilewright/tilewright/cache"
)

// readerCount is the number of goroutines that read without a pause.
const readerCount = 64

// A crowd reads and writes one database and its snapshot at the same time.
type crowd struct {
	store
	mu sync.Mutex
	r  result
	// Reads of the database, and lookups in snapshots, each opened anew.
	gets, hits atomic.Int64
	// Runs of the command tune, with -force.
	tunes atomic.Int64
	// Writes of an unfinished race, and publications.
	puts, publishs atomic.Int64
}

// harm adds something bad, from any goroutine.
func (c *crowd) harm(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r.harm(format, args...)
}

// readAlongside lets 64 readers read while two tuners race by force and a writer
// stores and publishes.
func readAlongside(s *session) (result, error) {
	d, err := s.newStore("crowd.db")
	if err != nil {
		return result{}, err
	}
	c := &crowd{store: d}
	ctx, stop := context.WithTimeout(context.Background(), s.readers)
	defer stop()
	var all sync.WaitGroup
	for n := range readerCount {
		all.Go(func() { c.read(ctx, n) })
	}
	for _, fusion := range []string{smallFusion, otherFusion} {
		all.Go(func() {
			for ctx.Err() == nil {
				o := s.tilewright("tune", "-force", "-budget", "300ms", "-try", "4", "-db", d.path, fusion)
				c.tunes.Add(1)
				if o.code != 0 {
					c.harm("tune ends with status %d: %s", o.code, o.err)
				}
			}
		})
	}
	all.Go(func() { c.write(ctx) })
	all.Wait()
	if harm := d.harm(); harm != "" {
		c.harm("%s", harm)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(d.path), ".crowd.db*"))
	if len(left) > 0 {
		c.harm("left over: %s", strings.Join(left, " "))
	}
	c.r.tried = int(c.gets.Load() + c.hits.Load())
	c.r.note = fmt.Sprintf("%d reads and %d lookups in snapshots beside %d races, %d puts and %d publications",
		c.gets.Load(), c.hits.Load(), c.tunes.Load(), c.puts.Load(), c.publishs.Load())
	return c.r, err
}

// read reads a record, then a newly opened snapshot, again and again. The records
// do not change while the crowd is there, so that every answer is known.
func (c *crowd) read(ctx context.Context, n int) {
	db := cache.Open(c.path)
	want := record(n%c.records, 1)
	for ctx.Err() == nil {
		r, found, err := db.Get(want.Key)
		c.gets.Add(1)
		if !found || err != nil || r.Plan != want.Plan {
			c.harm("a reader: found is %t, the plan %q, %v", found, r.Plan, err)
			return
		}
		s, err := cache.OpenSnapshot(c.path + ".snapshot")
		if err != nil {
			c.harm("a reader of the snapshot: %v", err)
			return
		}
		c.hits.Add(1)
		var hit cache.Hit
		if found, err := s.Get(&want.Key, &hit); !found || string(hit.Plan) != want.Plan {
			c.harm("a lookup: found is %t, the plan %q, %v", found, hit.Plan, err)
		}
		if err := s.Close(); err != nil {
			c.harm("a snapshot: %v", err)
		}
	}
}

// write stores the samples of a race and publishes, again and again: each write
// makes every reader look the whole file over once more.
func (c *crowd) write(ctx context.Context) {
	db := cache.Open(c.path)
	race := record(storedRecords+1, 0)
	for n := 0; ctx.Err() == nil; n++ {
		race.Trials[0].Add(2e-3+float64(n)*1e-7, 0, 6+n)
		if err := db.PutTrials(race.Key, race.Trials); err != nil {
			c.harm("a writer: %v", err)
			return
		}
		c.puts.Add(1)
		if _, err := db.Publish(c.path + ".snapshot"); err != nil {
			c.harm("a publisher: %v", err)
			return
		}
		c.publishs.Add(1)
		time.Sleep(time.Millisecond)
	}
}
