package kernels

import (
	"fmt"
	"runtime/debug"
)

// uncheckedBytes is the size up to which memory is allocated without a check.
const uncheckedBytes = 256 << 20

// CheckFreeMemory returns an error if the machine does not have n bytes of free
// memory, because an allocation that fails would end the process.
func CheckFreeMemory(n int64) error {
	if n < uncheckedBytes || n <= freeMemory() {
		return nil
	}
	// The runtime returns unused memory to the system with a delay.
	debug.FreeOSMemory()
	if left := freeMemory(); n > left {
		return fmt.Errorf("%s of memory are needed, and this machine has %s left", gigabytes(n), gigabytes(left))
	}
	return nil
}

// gigabytes is a number of bytes for people.
func gigabytes(n int64) string { return fmt.Sprintf("%.3g GB", float64(n)/1e9) }
