#include "textflag.h"

// The factors that advance the two halves of 16 bytes by 256 bytes: x^(2048+32) and x^(2048-32) modulo the Castagnoli
// polynomial, with the bits reversed and shifted by one, as carry-less products of reversed numbers require. See Gopal
// et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009.
DATA factors<>+0(SB)/8, $0xdcb17aa4
DATA factors<>+8(SB)/8, $0xb9e02b86
GLOBL factors<>(SB), RODATA|NOPTR, $16

// Advances ACC by 256 bytes and adds the 64 bytes at OFFSET of the next block, after KEEP has processed them.
#define FOLD(ACC, OFFSET, LOW, HIGH, KEEP) \
	VPCLMULQDQ $0x00, Z8, ACC, LOW   \
	VPCLMULQDQ $0x11, Z8, ACC, HIGH  \
	VMOVDQU64  OFFSET(SI), ACC       \
	KEEP(ACC, OFFSET)                \
	VPTERNLOGQ $0x96, LOW, HIGH, ACC

#define FORGET(ACC, OFFSET)
#define STORE(ACC, OFFSET) VMOVDQU64 ACC, OFFSET(DI)

// Loads the first 256 bytes at SI and adds the CRC register in AX. VMOVD clears the rest of Z4.
#define BEGIN(KEEP) \
	VBROADCASTI32X4 factors<>(SB), Z8 \
	VMOVDQU64       0(SI), Z0         \
	VMOVDQU64       64(SI), Z1        \
	VMOVDQU64       128(SI), Z2       \
	VMOVDQU64       192(SI), Z3       \
	KEEP(Z0, 0)                       \
	KEEP(Z1, 64)                      \
	KEEP(Z2, 128)                     \
	KEEP(Z3, 192)                     \
	VMOVD           AX, X4            \
	VPXORQ          Z4, Z0, Z0

#define NEXT(KEEP) \
	FOLD(Z0, 0, Z4, Z5, KEEP)     \
	FOLD(Z1, 64, Z6, Z7, KEEP)    \
	FOLD(Z2, 128, Z9, Z10, KEEP)  \
	FOLD(Z3, 192, Z11, Z12, KEEP)

// Folds CX bytes at SI into 256 bytes at folded, which have the same remainder and include the CRC register. Then
// computes their CRC into AX. KEEP may use DI, which advances with SI.
#define FOLDED(KEEP) \
	BEGIN(KEEP)                     \
next:                                   \
	SUBQ $256, CX                   \
	JZ   done                       \
	ADDQ $256, SI                   \
	ADDQ $256, DI                   \
	NEXT(KEEP)                      \
	JMP  next                       \
done:                                   \
	VMOVDQU64 Z0, folded-256(SP)    \
	VMOVDQU64 Z1, folded-192(SP)    \
	VMOVDQU64 Z2, folded-128(SP)    \
	VMOVDQU64 Z3, folded-64(SP)     \
	VZEROUPPER                      \
	XORL      AX, AX                \
	LEAQ      folded-256(SP), SI    \
	MOVQ      $32, CX               \
divide:                                 \
	CRC32Q (SI), AX                 \
	ADDQ   $8, SI                   \
	DECQ   CX                       \
	JNZ    divide

// func fold(p []byte, register uint32) uint32
TEXT ·fold(SB), NOSPLIT, $256-36
	MOVQ p_base+0(FP), SI
	MOVQ p_len+8(FP), CX
	MOVL register+24(FP), AX
	FOLDED(FORGET)
	MOVL AX, ret+32(FP)
	RET

// func foldCopy(target, p []byte, register uint32) uint32
TEXT ·foldCopy(SB), NOSPLIT, $256-60
	MOVQ target_base+0(FP), DI
	MOVQ p_base+24(FP), SI
	MOVQ p_len+32(FP), CX
	MOVL register+48(FP), AX
	FOLDED(STORE)
	MOVL AX, ret+56(FP)
	RET
