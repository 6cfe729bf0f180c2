//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A held case is a command that runs while another process holds the database.
type held struct {
	// The arguments, with DB and FUSION as in writes.
	args string
	// How long the database is held, from before the command starts.
	time time.Duration
	// The status that the command must have.
	code int
}

// helds are the cases: a lookup waits 5 s, and a race goes on however long the
// database is held.
var helds = []held{
	{"cache ls -db DB", 2 * time.Second, 0},
	{"cache rm -db DB fusion.9x", 2 * time.Second, 1},
	{"cache verify -db DB", 30 * time.Second, 1},
	{"lookup -require exact -db DB FUSION", 2 * time.Second, 3},
	{"lookup -db DB FUSION", 30 * time.Second, 1},
	{"cache import -db DB /dev/null", 2 * time.Second, 0},
	{"tune -db DB -budget 500ms -try 4 FUSION", 2 * time.Second, 0},
	{"tune -db DB -budget 500ms -try 4 FUSION", 8 * time.Second, 0},
}

// holdLocks runs the cases at the same time, each with a database of its own.
func holdLocks(s *session) (r result, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for n, h := range helds {
		all.Go(func() {
			harm := s.hold(fmt.Sprintf("held%d.db", n), h)
			mu.Lock()
			defer mu.Unlock()
			r.tried++
			if harm != "" {
				r.harm("%s, held for %v: %s", h.args, h.time, harm)
			}
		})
	}
	all.Wait()
	r.note = "readers wait 5 s, races go on; no record was lost"
	return r, nil
}

// hold runs one case: the lock is taken here, on the file itself as bbolt takes it,
// and given back after the time or, if that is earlier, when the command has ended.
func (s *session) hold(name string, h held) (harm string) {
	d, err := s.newStore(name)
	if err != nil {
		return err.Error()
	}
	f, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err == nil {
		defer f.Close()
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return err.Error()
	}
	release := time.AfterFunc(h.time, func() { syscall.Flock(int(f.Fd()), syscall.LOCK_UN) })
	args := strings.NewReplacer("DB", d.path, "FUSION", smallFusion).Replace(h.args)
	o := s.tilewright(strings.Fields(args)...)
	if release.Stop() {
		syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	if harm := o.harm(); harm != "" {
		return harm
	}
	if o.code != h.code {
		return fmt.Sprintf("status %d, not %d: %s", o.code, h.code, o.err)
	}
	return d.harm()
}
