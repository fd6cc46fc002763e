package digest

import "golang.org/x/sys/cpu"

var canFold = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42

// fold takes register, a CRC-32C before its last complement, on by p, whose length is a multiple of foldBlock and not 0.
//
//go:noescape
func fold(p []byte, register uint32) uint32

// foldCopy is fold, and copies p to target, which is as long, on the way: what it has taken into the CRC is what it has copied, whoever
// changes p meanwhile.
//
//go:noescape
func foldCopy(target, p []byte, register uint32) uint32
