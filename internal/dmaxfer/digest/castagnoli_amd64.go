package digest

import "golang.org/x/sys/cpu"

var canFold = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42

// fold continues register, a CRC-32C before its final complement, with p. The length of p must be a positive multiple
// of foldBlock.
//
//go:noescape
func fold(p []byte, register uint32) uint32

// foldCopy is fold, and copies p to target, which has the same length. Each byte is loaded once, so the CRC covers the
// copied bytes even if p changes meanwhile.
//
//go:noescape
func foldCopy(target, p []byte, register uint32) uint32
