package check

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// The resident set of a process counts a page as often as it is mapped, so that arrays of
// 7 GB which repeat half a gigabyte are 7 GB of it as soon as a kernel has gone through
// them. While such arrays exist, a releaser looks at it, and where it is too large takes
// the pages from their addresses; the next access maps them again. A kernel that
// goes through its arrays maps each block of 2 MiB once a run then, for a few microseconds.

// A releaser takes pages of pools from addresses in the background.
type releaser struct {
	stop chan struct{}
	done sync.WaitGroup
	err  error // of the system, known when it is done
}

// releaseInterval is the time between two looks at the resident set. Two cores map about
// 100 MB in it.
const releaseInterval = 10 * time.Millisecond

// releaseGrowth is what has to be mapped between two releases, so that a kernel which goes
// back and forth between blocks does not map them again in every interval.
const releaseGrowth = 512 << 20

// newReleaser begins to call release where the resident set is larger than limit, until it
// is closed or release fails.
func newReleaser(limit int64, release func() error) *releaser {
	r := &releaser{stop: make(chan struct{})}
	r.done.Go(func() {
		ticker := time.NewTicker(releaseInterval)
		defer ticker.Stop()
		least := int64(0) // the resident set after the last release
		for r.err == nil {
			select {
			case <-r.stop:
				return
			case <-ticker.C:
			}
			if residentBytes() > max(limit, least+releaseGrowth) {
				r.err = release()
				least = residentBytes()
			}
		}
	})
	return r
}

// close ends it, and is its error.
func (r *releaser) close() error {
	if r == nil {
		return nil
	}
	close(r.stop)
	r.done.Wait()
	return r.err
}

// residentBytes is the resident set of this process; 0 where the system does not tell.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var all, resident int64
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
