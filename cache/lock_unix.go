//go:build unix

package cache

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Locks. bbolt polls its lock every 50 ms, and a writer gets it when there is no
// reader at that moment, which with a few busy readers is never. acquire therefore
// takes bbolt's lock before bbolt does, polling every millisecond, and the folder's
// lock is a turnstile: a reader goes through it, locking and unlocking it at once,
// and a writer holds it until the readers that are in have left. While it waits no
// reader comes in, however many there are. The turnstile is a courtesy: the waits
// for it are short, and the consistency of the file rests on bbolt's lock alone.
const (
	lockRetryInterval   = time.Millisecond
	maxReaderFolderWait = time.Second
	maxWriterFolderWait = time.Second
)

// acquire takes the lock that bbolt is going to take on f. leave opens a writer's
// turnstile, to be called once bbolt has its lock. After the timeout bbolt runs into
// its own.
func acquire(f *os.File, exclusive bool, timeout time.Duration) (leave func()) {
	leave = func() {}
	dir, err := os.Open(filepath.Dir(f.Name()))
	switch {
	case err == nil && exclusive:
		leave = func() { dir.Close() } // releases its lock
		pollLock(dir, unix.LOCK_EX, min(timeout, maxWriterFolderWait))
	case err == nil:
		pollLock(dir, unix.LOCK_SH, min(timeout, maxReaderFolderWait))
		dir.Close()
	}
	if exclusive {
		pollLock(f, unix.LOCK_EX, timeout)
	} else {
		pollLock(f, unix.LOCK_SH, timeout)
	}
	return leave
}

// bboltTimeout is the time that bbolt polls the lock after acquire: slightly more
// than one of its intervals, so that it polls at least once.
func bboltTimeout(time.Duration) time.Duration { return 60 * time.Millisecond }

// pollLock polls a lock until it has it, the time is up, or the file system has no
// locks.
func pollLock(f *os.File, how int, timeout time.Duration) {
	for end := time.Now().Add(timeout); ; time.Sleep(lockRetryInterval) {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) &&
			!errors.Is(err, unix.EINTR) || time.Now().After(end) {
			return
		}
	}
}

// unlock releases bbolt's lock of a file that may still be mapped, in which case
// closing it would not release the lock.
func unlock(f *os.File) {
	unix.Flock(int(f.Fd()), unix.LOCK_UN)
}
