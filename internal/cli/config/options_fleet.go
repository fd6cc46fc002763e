package config

import (
	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// MaxParallel bounds the copies of push to many peers at once: each has memory, file descriptors and threads.
const MaxParallel = 256

// Table returns the options of push for many peers. A list for every push by a file or the environment would change
// what its arguments mean.
func (s *Fleet) Table() []option.Option {
	return []option.Option{
		{Group: option.AddedFlags, Name: "to", Value: "FILE", Offers: option.FileValues, FlagOnly: true,
			JSON:   option.JSONNone,
			Assign: option.Into(&s.To, option.ParsePath), Excludes: []string{"trust-first", "rep-pci"},
			Help: "Copy to each peer in FILE, one per line: PEER, or PEER:SHARE[/PATH] with a target of its own; - " +
				"is stdin"},
		option.Count(option.AddedFlags, "parallel", &s.Parallel, "8", 1, MaxParallel,
			"Peers of --to to copy to at once, at most 256"),
	}
}

// ToPeers reports whether the command copies to the peers of a list.
func (s *Fleet) ToPeers() bool { return s.To != "" }

// setFleetPaths sets sources and target from the arguments of push with --to: the last one is a share without a peer,
// or there are sources only, and each peer has a target of its own.
func (s *Transfer) setFleetPaths(args []string) error {
	s.Sends = true
	for i, arg := range args {
		at, err := contact.ParsePlace("SRC", arg)
		switch {
		case err != nil:
			return err
		case !at.IsPeer:
			s.Local = append(s.Local, at.Local)
		case i < len(args)-1:
			return exit.Usagef("SRC %s is in a share: dma-copy push --to takes SRC... :SHARE[/PATH]", quote.Text(arg))
		case at.Remote.Share == "":
			return exit.Usagef("DST %s: the share is missing; write :SHARE/PATH", quote.Text(arg))
		case at.Remote != share.Remote{Share: at.Remote.Share, Path: at.Remote.Path}:
			return exit.Usagef("DST %s names a peer, and --to has the peers: write :SHARE/PATH", quote.Text(arg))
		default:
			s.Remote = append(s.Remote, at.Remote)
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
	case s.To == option.Stream && s.FilesFrom == option.Stream:
		return exit.Usagef("--to - conflicts with --files-from -: both read stdin, so name a file in one of them")
	case s.TrustFirst:
		return exit.Usagef("--trust-first conflicts with --to: trust the keys of the peers with dma-copy keys trust")
	case s.RepresentorByFlag:
		return exit.Usagef("--rep-pci conflicts with --to: name the host function of each peer in the configuration")
	}
	return nil
}

// ForTarget returns the settings of the copy to one peer of the list.
func (s *Transfer) ForTarget(target share.Remote) *Transfer {
	one := *s
	one.Remote, one.Fleet = []share.Remote{target}, Fleet{}
	return &one
}
