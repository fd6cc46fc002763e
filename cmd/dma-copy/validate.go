package main

import (
	"slices"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/placement"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// fileIsStream is the FILE that stands for stdin or stdout.
const fileIsStream = "-"

// defaultDigest costs little and, other than the stronger ones, is computed from pieces in any order.
const defaultDigest = digest.CRC32C

// validate checks what no single value of a copy can show: that the mandatory ones are there and that none contradict.
func (s copySettings) validate() error {
	switch {
	case s.File == "":
		return exit.Usagef("--file is missing: name the file to send or to create with -f FILE")
	case s.Role == roleHost && s.Representor != "":
		return exit.Usagef("--rep-pci %q conflicts with --role host: "+
			"only the DPU side has representors, so leave one of them out", s.Representor)
	case s.expects() && s.Digest > s.Expect.Algorithm():
		return exit.Usagef("--expect %s conflicts with --digest %s: the expected digest must be a %s",
			s.Expect, s.Digest, s.Digest)
	}
	if err := validatePlace(s.Place); err != nil {
		return err
	}
	return s.validateProtocol()
}

// validatePlace refuses a wish for both CPUs and a node.
func validatePlace(wish placement.Wish) error {
	if wish.Cores.Empty() || !wish.Node.HasNumber() {
		return nil
	}
	return exit.Usagef("--cores %s conflicts with --numa %s: both select the CPUs, so leave one of them out",
		quote.Bare(wish.Cores.String()), wish.Node)
}

// validateProtocol finds what the reference's protocol cannot do, where the user insists on it.
func (s copySettings) validateProtocol() error {
	if s.Protocol != protocolReference {
		return nil
	}
	const next = "that protocol does not support it, so leave one of them out"
	switch {
	case s.streams():
		return exit.Usagef("-f - conflicts with --protocol reference: %s", next)
	case s.expects():
		return exit.Usagef("--expect %s conflicts with --protocol reference: %s", s.Expect, next)
	}
	return nil
}

// expects tells whether only one content may be copied.
func (s copySettings) expects() bool { return s.Expect != digest.Sum{} }

// streams tells whether this side's end of the copy is stdin or stdout.
func (s copySettings) streams() bool { return s.File == fileIsStream }

// beyondReference names what was asked for and no peer gives that speaks the reference's protocol.
func (s copySettings) beyondReference() []string {
	var names []string
	for name, asked := range map[string]bool{
		"--verify readback": s.Verify == verifyReadback,
		"--preserve":        s.Preserve != preserved{},
		"--bwlimit":         s.Bandwidth > 0,
		"--digest":          s.Digest > defaultDigest,
	} {
		if asked {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
