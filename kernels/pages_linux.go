package kernels

import (
	"os"
	"syscall"
	"unsafe"
)

// adviseHugePages asks the system to use large pages for an array, also for the pages
// that were touched already. With pages of 4 KiB, the bandwidth depends on which
// physical pages an array has (a copy varies by 1.4).
func adviseHugePages(data []byte) {
	const (
		least        = 2 << 20 // bytes for which it matters
		madvHugePage = 14      // linux/include/uapi/asm-generic/mman-common.h
		madvCollapse = 25      // … since Linux 6.1
	)
	if len(data) < least {
		return
	}
	page := uintptr(os.Getpagesize())
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(data))) & (page - 1)
	whole := (uintptr(len(data)) - skip) &^ (page - 1)
	if syscall.Madvise(data[skip:skip+whole], madvHugePage) == nil { // a system without them says so
		_ = syscall.Madvise(data[skip:skip+whole], madvCollapse)
	}
}
