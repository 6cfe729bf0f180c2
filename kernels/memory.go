package kernels

import (
	"fmt"
	"runtime/debug"
)

// uncheckedBytes is how many bytes are allocated without asking whether there is room.
const uncheckedBytes = 256 << 20

// CheckFreeMemory returns an error where this machine has no room for n more bytes: the
// runtime would end the process.
func CheckFreeMemory(n int64) error {
	if n < uncheckedBytes || n <= freeMemory() {
		return nil
	}
	debug.FreeOSMemory() // what nobody holds any more is not given back at once
	if left := freeMemory(); n > left {
		return fmt.Errorf("%s of memory are needed, and this machine has %s left", gigabytes(n), gigabytes(left))
	}
	return nil
}

func gigabytes(n int64) string { return fmt.Sprintf("%.3g GB", float64(n)/1e9) }
