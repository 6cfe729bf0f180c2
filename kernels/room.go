package kernels

import (
	"fmt"
	"runtime/debug"
)

// freely is how many bytes are allocated without asking whether there is room.
const freely = 256 << 20

// Room returns an error where this machine has no room for n more bytes: the
// runtime would end the process.
func Room(n int64) error {
	if n < freely || n <= available() {
		return nil
	}
	debug.FreeOSMemory() // what nobody holds any more is not given back at once
	if left := available(); n > left {
		return fmt.Errorf("%s of memory are needed, and this machine has %s left", gigabytes(n), gigabytes(left))
	}
	return nil
}

func gigabytes(n int64) string { return fmt.Sprintf("%.3g GB", float64(n)/1e9) }
