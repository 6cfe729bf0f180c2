//go:build !unix

package cache

import (
	"os"
	"time"
)

// acquire leaves waiting to bbolt.
func acquire(*os.File, bool, time.Duration) (leave func()) {
	return func() {}
}

// bboltTimeout is how long bbolt asks for the lock: all the time there is.
func bboltTimeout(timeout time.Duration) time.Duration { return timeout }

// unlock gives back bbolt's lock of a file; closing it does.
func unlock(*os.File) {}
