//go:build !noasm

package gemm

import "syscall"

// permitTiles asks Linux (5.16 and later) for the permission to use the registers of AMX
// in this process, as Documentation/arch/x86/xstate.rst describes: arch_prctl with
// ARCH_REQ_XCOMP_PERM and the number of the state component of tile data.
func permitTiles() bool {
	const (
		archPrctl = 158
		request   = 0x1023
		tileData  = 18
	)
	_, _, err := syscall.RawSyscall(archPrctl, request, tileData, 0)
	return err == 0
}
