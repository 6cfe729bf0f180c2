//go:build unix

package cache

import (
	"os"
	"runtime"
	"unsafe"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// mapFile maps a file of a size read-only. The mapping outlives the descriptor.
func mapFile(f *os.File, size int) (data []byte, unmap func([]byte) error, err error) {
	data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return data, unix.Munmap, err
}

// adviseHugePages asks Linux for pages of 2 MiB where the mapping of a large file can have
// them: without, a lookup in a file of more than the processor's tables of pages hold
// waits for those, too. The number is that of madvise(2).
func adviseHugePages(data []byte) {
	const hugePage = 14
	if runtime.GOOS == "linux" && len(data) >= hugeFrom {
		_ = unix.Madvise(data, hugePage) // an advice
	}
}

// forgetPages takes the pages of a database that were read out of the process's memory.
// They stay in the system's, and come back when they are read again.
func forgetPages(tx *bbolt.Tx) {
	info := tx.DB().Info()
	if info.Data == 0 {
		return
	}
	first := *(**byte)(unsafe.Pointer(&info.Data))
	data := unsafe.Slice(first, tx.Size())
	_ = unix.Madvise(data, unix.MADV_DONTNEED) // an advice
}
