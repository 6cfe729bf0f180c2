package check

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The resident set of a process counts a page as often as it is mapped, so that arrays of
// 7 GB which repeat half a gigabyte are 7 GB of it as soon as a kernel has gone through
// them. While such arrays exist, a releaser looks at it, and where it is too large takes
// the pages from their addresses; the next access maps them again. A kernel that
// goes through its arrays maps each block of 2 MiB once a run then, for a few microseconds.
// It looks between two tile programs or two long products, when a kernel looks at the context of its run, so that
// what is mapped beyond the limit is what tile programs map in releaseInterval, and now
// and then besides, for a tile program that takes long.

// A releaser takes pages of pools from addresses.
type releaser struct {
	limit, growth int64
	release       func() error
	began         time.Time
	looked        atomic.Int64 // nanoseconds after began
	looking       atomic.Bool
	resident      func() int64 // bytes
	file          *os.File     // says how large the resident set is; may be nil
	stop          chan struct{}
	done          sync.WaitGroup

	mu    sync.Mutex
	least int64 // the resident set after the last release
	err   error // of the system
}

const (
	// releaseInterval is the least time between two looks at the resident set, each of
	// which takes one or two microseconds.
	releaseInterval = 200 * time.Microsecond
	// backgroundInterval is the time between two looks without a kernel that asks.
	backgroundInterval = 10 * time.Millisecond
)

// newReleaser begins to call release where the resident set is larger than limit and has
// grown since the last time, until it is closed or release fails.
func newReleaser(limit, growth int64, release func() error) *releaser {
	r := &releaser{
		limit:   limit,
		growth:  growth,
		release: release,
		began:   time.Now(),
		stop:    make(chan struct{}),

		resident: func() int64 { return 0 },
	}
	if file, err := os.Open("/proc/self/statm"); err == nil {
		r.file = file
		r.resident = func() int64 { return residentBytes(file) }
	}
	r.done.Go(func() {
		ticker := time.NewTicker(backgroundInterval)
		defer ticker.Stop()
		for {
			select {
			case <-r.stop:
				return
			case <-ticker.C:
				r.look()
			}
		}
	})
	return r
}

// look releases pages if there are too many, unless somebody has just looked. It waits for
// who is looking, so that nobody maps more while pages are released.
func (r *releaser) look() {
	now := int64(time.Since(r.began))
	if now-r.looked.Load() < int64(releaseInterval) && !r.looking.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now < r.looked.Load() {
		return // somebody has looked in the meantime
	}
	r.looking.Store(true)
	if r.err == nil && r.resident() > max(r.limit, r.least+r.growth) {
		r.err = r.release()
		r.least = r.resident()
	}
	r.looked.Store(int64(time.Since(r.began)))
	r.looking.Store(false)
}

// close ends it, and is its error.
func (r *releaser) close() error {
	if r == nil {
		return nil
	}
	close(r.stop)
	r.done.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		r.err = errors.Join(r.err, r.file.Close())
		r.resident = func() int64 { return 0 }
		r.file = nil
	}
	return r.err
}

// during is the context of a run of a kernel on arrays that repeat their pages. A nil
// releaser changes nothing.
func (r *releaser) during(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	return releasing{ctx, r}
}

// releasing is a context of which whoever looks at it lets pages be released.
type releasing struct {
	context.Context
	r *releaser
}

// releaserKey is the key of the releaser in a context.
type releaserKey struct{}

// Done looks at the resident set.
func (c releasing) Done() <-chan struct{} {
	c.r.look()
	return c.Context.Done()
}

// Value has the releaser, for contexts that are made of it.
func (c releasing) Value(key any) any {
	if key == (releaserKey{}) {
		return c.r
	}
	return c.Context.Value(key)
}

// stillReleasing is a context that was made of one of during, as that.
func stillReleasing(ctx context.Context) context.Context {
	r, _ := ctx.Value(releaserKey{}).(*releaser)
	return r.during(ctx)
}

// The garbage collector lets the heap grow by as much as lives before it collects, which is
// a gigabyte beside arrays of one. So while large arrays are held there is a limit of the
// heap: what is said to be held, and some room. Arrays hold no pointers, and to collect
// often takes little time beside them.

// heapSlack is the room for garbage and for everything else beside large arrays, and
// heapHeldFrom what is held from which on there is a limit.
const (
	heapSlack    = 3 << 26
	heapHeldFrom = 1 << 28
)

// heapBeside is what is held of the Go heap beside arrays that repeat their pages.
const heapBeside = 5<<27 - heapSlack

// A heapLimit is what all who hold large arrays hold together. It is state of the process,
// as the setting is that it changes.
type heapLimit struct {
	mu    sync.Mutex
	users int
	held  int64 // bytes
	was   int64 // the setting before
}

// heap is the limit of this process.
var heap heapLimit

// hold collects garbage and lets the heap grow to what is held, and some room, until release.
func (h *heapLimit) hold(bytes int64) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users++; h.users == 1 {
		h.was = debug.SetMemoryLimit(-1)
	}
	h.add(bytes)
	debug.FreeOSMemory()
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.users--
		h.add(-bytes)
	})
}

// add sets the limit for what is held with so many bytes more: that of before for nobody.
func (h *heapLimit) add(bytes int64) {
	h.held += bytes
	limit := h.was
	if h.users > 0 {
		limit = min(limit, h.held+heapSlack)
	}
	debug.SetMemoryLimit(limit)
}

// residentBytes is the resident set of this process by /proc/self/statm, the second number
// there, in pages; 0 where the system does not tell.
func residentBytes(statm *os.File) (bytes int64) {
	var text [128]byte
	n, _ := statm.ReadAt(text[:], 0) // it ends with io.EOF
	_, rest, _ := strings.Cut(string(text[:n]), " ")
	for _, digit := range rest {
		if digit < '0' || digit > '9' {
			break
		}
		bytes = 10*bytes + int64(digit-'0')
	}
	return bytes * int64(os.Getpagesize())
}
