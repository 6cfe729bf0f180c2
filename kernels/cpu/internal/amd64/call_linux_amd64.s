//go:build !noasm

// func call(pc uintptr, args unsafe.Pointer)
//
// ABI0: everything but SP and BP is the callee's to use, and the wrapper that Go
// calls this through restores what it keeps in R14 and X15. Not NOSPLIT: the check of
// the stack is where a goroutine that does nothing but call can be stopped.
TEXT ·call(SB), 0, $0-16
	MOVQ pc+0(FP), AX
	MOVQ args+8(FP), DI
	CALL AX
	VZEROUPPER
	RET
