package kernels

import (
	"os"
	"syscall"
	"unsafe"
)

// adviseHugePages has the pages of an array be large ones where the system has some, at once
// those that were touched before: with pages of 4 KiB it depends on where they happen to
// be how fast memory passes (a copy varies by 1.4).
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
