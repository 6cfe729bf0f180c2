//go:build amd64 && !noasm

#include "textflag.h"

// A row of sums: x is the row's element of A, and Y8 the row of B that it is multiplied by.
// Products and sums are rounded one by one, so nothing is fused.
#define ROW(x, sums) \
	VBROADCASTSS x, Y9         \
	VMULPS       Y8, Y9, Y9    \
	VADDPS       Y9, sums, sums

// func add256(c *C, a *A, b *B)
//
// Two rounds have eight rows each: of C in Y0 to Y7, of A 64 bytes apart.
TEXT ·add256(SB), NOSPLIT, $0-24
	MOVQ c+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ $2, R8

rows:
	VMOVUPS 0(DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
	VMOVUPS 128(DI), Y4
	VMOVUPS 160(DI), Y5
	VMOVUPS 192(DI), Y6
	VMOVUPS 224(DI), Y7
	MOVQ    DX, BX
	MOVQ    $16, CX

term:
	VMOVUPS (BX), Y8
	ROW(0(SI), Y0)
	ROW(64(SI), Y1)
	ROW(128(SI), Y2)
	ROW(192(SI), Y3)
	ROW(256(SI), Y4)
	ROW(320(SI), Y5)
	ROW(384(SI), Y6)
	ROW(448(SI), Y7)
	ADDQ $4, SI
	ADDQ $32, BX
	DECQ CX
	JNZ  term

	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	ADDQ    $256, DI
	ADDQ    $448, SI
	DECQ    R8
	JNZ     rows
	VZEROUPPER
	RET
