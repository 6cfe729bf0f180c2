//go:build !noasm

package gemm

import (
	"syscall"
	"unsafe"
)

// permitTiles asks Linux (5.16 and later) for the permission to use the registers of AMX
// in this process, as Documentation/arch/x86/xstate.rst describes: arch_prctl with
// ARCH_REQ_XCOMP_PERM and the number of the state component of tile data. From then on
// sigaltstack refuses stacks that a signal's frame with tiles does not fit, 8 KiB for
// example; a process that only prices is told what processes may have
// (ARCH_GET_XCOMP_SUPP), and stays as it is.
func permitTiles() bool {
	const (
		archPrctl = 158
		supported = 0x1021
		request   = 0x1023
		tileData  = 18
	)
	if !pricesOnly.Load() {
		_, _, err := syscall.RawSyscall(archPrctl, request, tileData, 0)
		return err == 0
	}
	var components uint64
	_, _, err := syscall.RawSyscall(
		archPrctl, supported,
		uintptr(unsafe.Pointer(&components)), 0,
	)
	return err == 0 && components>>tileData&1 == 1
}
