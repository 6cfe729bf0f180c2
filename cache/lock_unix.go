//go:build unix

package cache

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Waiting for locks. bbolt asks again every 50 ms, and a writer gets in when
// nobody reads at that moment, which with a few busy readers is never. So
// before bbolt asks, acquire takes its lock, asking more often, and whoever
// writes bars the way meanwhile: a lock on the folder, which everybody must
// pass. That is a courtesy only; nobody waits long for it, and what keeps the
// file right is bbolt's lock alone.
const (
	lockRetryInterval   = time.Millisecond
	maxReaderFolderWait = 100 * time.Millisecond
	maxWriterFolderWait = time.Second
)

// acquire takes the lock that bbolt takes on f; leave lets others pass, once
// bbolt has it too. When time is up bbolt finds that out for itself.
func acquire(f *os.File, exclusive bool, timeout time.Duration) (leave func()) {
	leave = func() {}
	dir, err := os.Open(filepath.Dir(f.Name()))
	if err == nil {
		leave = func() { dir.Close() } // gives its lock back
		if exclusive {
			pollLock(dir, unix.LOCK_EX, maxWriterFolderWait)
		} else {
			pollLock(dir, unix.LOCK_SH, maxReaderFolderWait)
		}
	}
	if exclusive {
		pollLock(f, unix.LOCK_EX, timeout)
	} else {
		pollLock(f, unix.LOCK_SH, timeout)
	}
	return leave
}

// bboltTimeout is how long bbolt asks for the lock after acquire; one of its
// own intervals, so that it asks at least once.
func bboltTimeout(time.Duration) time.Duration { return 60 * time.Millisecond }

// pollLock asks for a lock until it is there, time is up, or there can be none.
func pollLock(f *os.File, how int, timeout time.Duration) {
	for end := time.Now().Add(timeout); ; time.Sleep(lockRetryInterval) {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) ||
			time.Now().After(end) {
			return
		}
	}
}

// unlock gives back bbolt's lock of a file that may still be mapped, in which
// case closing it would not.
func unlock(f *os.File) {
	unix.Flock(int(f.Fd()), unix.LOCK_UN)
}
