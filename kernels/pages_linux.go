package kernels

import (
	"os"
	"syscall"
	"unsafe"
)

// hugePages has the pages of an array be large ones where the system has some, once
// they are touched: with pages of 4 KiB it depends on where they happen to be how fast
// memory passes (a copy varies by 1.4).
func hugePages(data []byte) {
	const (
		least        = 8 << 20 // bytes for which it matters
		madvHugePage = 14      // linux/include/uapi/asm-generic/mman-common.h
	)
	if len(data) < least {
		return
	}
	page := uintptr(os.Getpagesize())
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(data))) & (page - 1)
	whole := (uintptr(len(data)) - skip) &^ (page - 1)
	_ = syscall.Madvise(data[skip:skip+whole], madvHugePage) // a system without them says so
}
