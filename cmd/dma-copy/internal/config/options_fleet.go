package config

import (
	"errors"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// MaxParallel bounds the copies of push to many peers at once: each has memory, file descriptors and threads.
const MaxParallel = 256

// defaultParallel is the number of copies at once without --fanout.
const defaultParallel = 8

// MaxFanout bounds the copies that one peer makes to others at once for push: they share its uplink.
const MaxFanout = 16

// options returns the options of push for many peers. A list for every push by a file or the environment would change
// what its arguments mean.
func (s *Fleet) options() []option {
	return []option{
		{group: AddedFlags, name: "to", value: "FILE", flagOnly: true, json: jsonNone,
			assign: into(&s.To, parsePath),
			help: "Copy to each peer in FILE, one per line: PEER,\nor PEER:SHARE[/PATH] with a target of its own;\n" +
				"- is stdin"},
		{group: AddedFlags, name: "parallel", value: "COUNT", fallback: "0", json: jsonNumber,
			assign: into(&s.Parallel, parseParallel),
			help:   "Peers of --to to copy to at once, at most 256;\n0 is 8, or with --fanout as many as that"},
		{group: AddedFlags, name: "fanout", value: "COUNT", fallback: "0", json: jsonNumber,
			assign: into(&s.Fanout, parseFanout),
			help: "Copies to other peers of --to that each peer\nwith the file makes at once, at most 16; their\n" +
				"daemons have to permit it (serve --relay-to)"},
	}
}

func parseFanout(text string) (int, error) {
	count, err := parseCount(text)
	if err != nil || count > MaxFanout {
		return 0, errors.New("not a count; give a whole number from 0 to 16, such as 1")
	}
	return count, nil
}

func parseParallel(text string) (int, error) {
	count, err := parseCount(text)
	if err != nil || count > MaxParallel {
		return 0, errors.New("not a count; give a whole number from 0 to 256, such as 16")
	}
	return count, nil
}

// AtOnce returns how many copies this side makes at once, 1 to MaxParallel. Peers that serve others have the file
// earlier if this side sends as few copies at once as they do.
func (s *Fleet) AtOnce() int {
	switch {
	case s.Parallel > 0:
		return s.Parallel
	case s.Fanout > 0:
		return s.Fanout
	default:
		return defaultParallel
	}
}

// ToPeers reports whether the command copies to the peers of a list.
func (s *Fleet) ToPeers() bool { return s.To != "" }

// setFleetPaths sets sources and target from the arguments of push with --to: the last one is a share without a peer,
// or there are sources only, and each peer has a target of its own.
func (s *Transfer) setFleetPaths(args []string) error {
	s.Sends = true
	for i, arg := range args {
		at, err := parsePlace("SRC", arg)
		switch {
		case err != nil:
			return err
		case !at.isPeer:
			s.Local = append(s.Local, at.local)
		case i < len(args)-1:
			return exit.Usagef("SRC %s is in a share: dma-copy push --to takes SRC... :SHARE[/PATH]", quote.Text(arg))
		case at.remote.Share == "":
			return exit.Usagef("DST %s: the share is missing; write :SHARE/PATH", quote.Text(arg))
		case at.remote != share.Remote{Share: at.remote.Share, Path: at.remote.Path}:
			return exit.Usagef("DST %s names a peer, and --to has the peers: write :SHARE/PATH", quote.Text(arg))
		default:
			s.Remote = append(s.Remote, at.remote)
		}
	}
	if len(s.Local) == 0 {
		return exit.Usagef("SRC is missing: dma-copy push --to takes SRC... :SHARE[/PATH]")
	}
	s.File = s.Local[0]
	return nil
}

// validateFleet refuses settings that cannot be used with many peers.
func (s *Transfer) validateFleet() error {
	if !s.ToPeers() {
		return nil
	}
	switch {
	case s.StreamArgument() != "":
		return exit.Usagef("SRC - conflicts with --to: a stream can be read only once, so name a file")
	case s.To == Stream && s.FilesFrom == Stream:
		return exit.Usagef("--to - conflicts with --files-from -: both read stdin, so name a file in one of them")
	case s.TrustFirst:
		return exit.Usagef("--trust-first conflicts with --to: trust the keys of the peers with dma-copy keys trust")
	case s.representorByFlag:
		return exit.Usagef("--rep-pci conflicts with --to: name the host function of each peer in the configuration")
	}
	return s.validateFanout()
}

// validateFanout refuses what peers that serve others do not do, or what would let them distribute another content.
func (s *Transfer) validateFanout() error {
	if s.Fanout == 0 {
		return nil
	}
	const next = "so leave one of them out"
	refused := func(option, why string) error {
		return exit.Usagef("--fanout conflicts with %s: %s, "+next, option, why)
	}
	algorithm := s.Digest
	if s.Expects() {
		algorithm = s.Expect.Algorithm()
	}
	weak := algorithm != digest.BLAKE3 && algorithm != digest.SHA256
	switch {
	case len(s.Local) > 1:
		return refused("several sources", "peers pass on a single file")
	case s.FilesFrom != "":
		return refused("--files-from", "peers pass on a single file")
	case s.Auth == AuthNone:
		return refused("--auth none", "a peer sends only to one that has proved its key")
	case s.AllowChanging:
		return refused("--allow-changing", "all peers get the same content")
	case s.Expects() && weak:
		return refused("--expect "+s.Expect.String(), "the content is checked by blake3 or sha256")
	case !s.autoDigest && !s.Expects() && weak:
		return refused("--digest "+s.Digest.String(), "the content is checked by blake3 or sha256")
	case s.Preserve.Owner || s.Preserve.Xattr:
		return refused("--preserve", "peers pass on content, mode and modification time")
	case s.Verify == VerifyReadback:
		return refused("--verify readback", "a peer does not ask another one for that")
	case s.IgnoreExisting:
		return refused("--ignore-existing", "all peers get the same content")
	case s.IfSame == SameError:
		return refused("--if-same error", "a peer does not ask another one for that")
	}
	return nil
}

// ForTarget returns the settings of the copy to one peer of the list.
func (s *Transfer) ForTarget(target share.Remote) *Transfer {
	one := *s
	one.Remote, one.Fleet = []share.Remote{target}, Fleet{}
	return &one
}
