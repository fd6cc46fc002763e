package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/transfer"
	"github.com/dma-copy/dma-copy/internal/share"
)

func TestFleetPaths(t *testing.T) {
	for args, want := range map[string]struct {
		local  string
		remote []share.Remote
	}{
		"a :in":            {"a", []share.Remote{{Share: "in"}}},
		"a b/c :in/sub/":   {"a b/c", []share.Remote{{Share: "in", Path: "sub/"}}},
		"a":                {"a", nil},
		"a b images/ ./:x": {"a b images/ ./:x", nil},
	} {
		s, err := transferred(t, transfer.Push, "--to peers.txt --parallel 3", strings.Fields(args)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if !s.Sends || !slices.Equal(s.Local, strings.Fields(want.local)) || !slices.Equal(s.Remote, want.remote) ||
			s.To != "peers.txt" || s.Parallel != 3 || s.Peer() != (share.Remote{}) || s.File != s.Local[0] {
			t.Errorf("%s: %+v", args, s)
		}
		target := share.Remote{Peer: "one", Share: "x"}
		if one := s.ForTarget(target); one.Peer() != target || one.ToPeers() || !slices.Equal(one.Local, s.Local) {
			t.Errorf("%s: for one peer: %+v", args, one)
		}
	}
}

func TestRefusedFleet(t *testing.T) {
	mustRefuseTransfers(t, []refusedTransfer{
		{transfer.Push, "--to p", "", "SRC is missing: dma-copy push --to takes SRC... :SHARE[/PATH]"},
		{transfer.Push, "--to p", ":in", "SRC is missing: "},
		{transfer.Push, "--to p", ":in a", `SRC ":in" is in a share: `},
		{transfer.Push, "--to p", "a :in :out", `SRC ":in" is in a share: `},
		{transfer.Push, "--to p", "a dpu:in", `DST "dpu:in" names a peer, and --to has the peers: write :SHARE/PATH`},
		{transfer.Push, "--to p", "a :", `DST ":": the share is missing; write :SHARE/PATH`},
		{transfer.Push, "--to p", "a :in/../x", `SRC ":in/../x": `},
		{transfer.Push, "--to p", "- :in/x", "SRC - conflicts with --to: "},
		{transfer.Push, "--to - --files-from -", "a :in", "--to - conflicts with --files-from -: "},
		{transfer.Push, "--to p --trust-first", "a :in", "--trust-first conflicts with --to: "},
		{transfer.Push, "--to p -r b1:00.1", "a :in", "--rep-pci conflicts with --to: "},
		{transfer.Push, "--to p --expect crc32c:00000000", "a b",
			"--expect crc32c:00000000 conflicts with several sources: "},
		{transfer.Push, "--to p --files-from x", "a b", "--files-from conflicts with several sources: "},
		{transfer.Push, "--to p --parallel -1", "a :in", `--parallel "-1": give a whole number from 1 to 256`},
		{transfer.Push, "--to p --parallel 0", "a :in", `--parallel "0": give a whole `},
		{transfer.Push, "--to p --parallel 257", "a :in", `--parallel "257": give a whole `},
		{transfer.Push, "--to _", "a :in", `--to "": an empty name; `},
		{transfer.Pull, "--to p", ":in a", `unknown flag "--to": `},
		{transfer.Sync, "--parallel 2", "a :in", `unknown flag "--parallel": `},
	})
}

func TestCopiesAtOnce(t *testing.T) {
	for line, want := range map[string]int{"": 8, "--parallel 1": 1, "--parallel 256": 256} {
		s, err := transferred(t, transfer.Push, "--to p "+line, "a", ":in")
		if err != nil || s.Parallel != want {
			t.Errorf("%q: %d copies at once, want %d (%v)", line, s.Parallel, want, err)
		}
	}
}

// A list in the environment would turn the target of every push into a source.
func TestFleetListIsGivenByAFlagOnly(t *testing.T) {
	s := &transfer.Settings{Kind: transfer.Push}
	if err := load(s, map[string]string{"DMA_COPY_TO": "peers.txt", "DMA_COPY_PARALLEL": "4"}); err != nil {
		t.Fatal(err)
	}
	if s.ToPeers() || s.Parallel != 4 {
		t.Errorf("%+v", s.Fleet)
	}
}
