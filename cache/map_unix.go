//go:build unix

package cache

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file of a size read-only. The mapping outlives the descriptor.
func mapFile(f *os.File, size int) (data []byte, unmap func([]byte) error, err error) {
	data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return data, unix.Munmap, err
}
