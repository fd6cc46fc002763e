package config

import (
	"errors"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// SetPaths sets sources and target from the arguments of the command.
func (s *Transfer) SetPaths(args []string) error {
	if s.ToPeers() {
		return s.setFleetPaths(args)
	}
	if err := s.checkNumber(args); err != nil {
		return err
	}
	for i, arg := range args {
		name, isTarget := "SRC", i == len(args)-1
		if isTarget {
			name = "DST"
		}
		at, err := contact.ParsePlace(name, arg)
		if err == nil {
			err = s.checkPlace(name, arg, isTarget, at)
		}
		if err != nil {
			return err
		}
		if at.IsPeer {
			s.Remote = append(s.Remote, at.Remote)
		} else {
			s.Local = append(s.Local, at.Local)
		}
	}
	s.File = s.Local[0]
	return nil
}

func (s *Transfer) checkNumber(args []string) error {
	switch {
	case len(args) == 0:
		return exit.Usagef("SRC and DST are missing: dma-copy %s takes %s", s.Kind, s.Kind.takes())
	case len(args) == 1:
		return exit.Usagef("DST is missing: dma-copy %s takes %s", s.Kind, s.Kind.takes())
	case len(args) > 2 && s.Kind == Sync:
		return exit.Usagef("unexpected argument %s: dma-copy sync takes %s", quote.Text(args[2]), Sync.takes())
	}
	return nil
}

// takes describes the arguments of the command in an error.
func (k TransferKind) takes() string {
	return [...]string{
		"what to copy here and a share, as in SRC... :SHARE/PATH",
		"what to copy from a share and where to, as in :SHARE/PATH... DST",
		"SRC and DST, of which one is in a share, as in SRC :SHARE/PATH",
	}[k]
}

// checkPlace refuses an argument that is on the wrong side.
func (s *Transfer) checkPlace(name, text string, isTarget bool, at contact.Place) error {
	if s.Kind == Sync && !isTarget {
		s.Sends = !at.IsPeer
	}
	if s.Kind == Push {
		s.Sends = true
	}
	switch wantsPeer := isTarget == s.Sends; {
	case at.IsPeer && at.Remote.Share == "":
		return exit.Usagef("%s %s: the share is missing; write %sSHARE/PATH, and see dma-copy ls %[3]s", name,
			quote.Text(text), at.Remote.Daemon())
	case at.IsPeer == wantsPeer:
		return nil
	case s.Kind == Sync:
		return exit.Usagef("SRC and DST are on the same side: write :SHARE/PATH for the one that is in a share")
	case wantsPeer:
		return exit.Usagef("%s %s is on this side: dma-copy %s takes %s", name, quote.Text(text), s.Kind,
			s.Kind.takes())
	default:
		return exit.Usagef("%s %s is in a share: dma-copy %s takes %s", name, quote.Text(text), s.Kind, s.Kind.takes())
	}
}

// Peer returns the daemon, as the Peer or Address of the first argument in a share; the zero Remote if there are many.
func (s *Transfer) Peer() share.Remote {
	if s.ToPeers() {
		return share.Remote{}
	}
	return s.Remote[0]
}

// Validate checks the settings of the command against each other.
func (s *Transfer) Validate() error {
	for _, remote := range s.Remote {
		if remote.Daemon() != s.Peer().Daemon() {
			return exit.Usagef("the sources have different peers (%s and %s): pull from each with a command of its own",
				quote.Text(s.Peer().Daemon()), quote.Text(remote.Daemon()))
		}
	}
	sources := len(s.Local)
	if !s.Sends {
		sources = len(s.Remote)
	}
	if err := s.validateFleet(); err != nil {
		return err
	}
	switch {
	case s.Kind == Sync && s.StreamArgument() != "":
		return exit.Usagef("%s conflicts with sync: a stream has nothing to compare with, so use push or pull",
			s.StreamArgument())
	case s.StreamArgument() != "" && sources > 1:
		return exit.Usagef("%s conflicts with several sources: a stream is one file, so copy them one by one",
			s.StreamArgument())
	case s.Options.Expect != nil && sources > 1:
		return exit.Usagef("--expect %s conflicts with several sources: copy them one by one", s.Options.Expect)
	case s.FilesFrom != "" && sources > 1:
		return exit.Usagef("--files-from conflicts with several sources: the paths are relative to one directory")
	case s.FilesFrom != "" && s.Delete:
		return exit.Usagef(
			"--files-from conflicts with --delete: all that the list lacks would be deleted, so leave one of them out")
	case s.MaxDelete > 0 && !s.Delete:
		return exit.Usagef("--max-delete limits what --delete deletes: give that too, or leave --max-delete out")
	}
	if err := device.ValidateSide(s.Role, s.Representor); err != nil {
		return err
	}
	s.ChooseDigest(s.Auth)
	if err := s.ValidateCommon(s.StreamArgument()); err != nil || s.ToPeers() {
		return err
	}
	_, err := s.Ends()
	return err
}

// StreamArgument returns the argument that stands for a standard stream, or nothing.
func (s *Transfer) StreamArgument() string {
	for _, local := range s.Local {
		if local == option.Stream && s.Sends {
			return "SRC -"
		}
		if local == option.Stream {
			return "DST -"
		}
	}
	return ""
}

// SetPaths sets what to list from the arguments of the command.
func (s *List) SetPaths(args []string) error {
	return s.SetPlaces(args, "list", "ls takes :, which lists the shares, or :SHARE/PATH")
}

// SetPaths sets what to create from the arguments of the command.
func (s *MakeDir) SetPaths(args []string) error {
	err := s.SetPlaces(args, "create", "mkdir takes :SHARE/PATH")
	for _, at := range s.Remote {
		if err == nil && contact.IsShare(at) {
			err = exit.Usagef("PATH %s is a share itself: name a directory in it, as in :SHARE/PATH",
				quote.Text(at.String()))
		}
	}
	return err
}

// SetPaths sets what to remove from the arguments of the command.
func (s *Remove) SetPaths(args []string) error {
	err := s.SetPlaces(args, "remove", "rm takes :SHARE/PATH")
	for _, at := range s.Remote {
		switch {
		case err != nil:
		case contact.IsShare(at):
			err = exit.Usagef("PATH %s is a share itself: to remove all that is in it, write %s",
				quote.Text(at.String()), quote.Text(at.Daemon()+at.Share+"/*"))
		case strings.HasSuffix(at.Path, "/."):
			err = exit.Usagef("PATH %s names the content of a directory: leave out /. or write /*",
				quote.Text(at.String()))
		}
	}
	return err
}

// SetPeer sets the daemon from the arguments of the command. Without one, the peer is another ping.
func (s *Ping) SetPeer(args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) > 1:
		return exit.Usagef("unexpected argument %s: dma-copy ping takes one PEER or none", quote.Text(args[1]))
	case s.Path == device.PathFast:
		return exit.Usagef("--path fast conflicts with PEER: a daemon answers over the control channel, " +
			"so leave one of them out")
	}
	peer, err := contact.ParsePeer(args[0])
	if err != nil {
		return err
	}
	s.Daemon, s.Remote = true, peer
	return device.ValidateSide(s.Role, s.Representor)
}

// SetPeer sets the daemon from the arguments of the command. Without one, the peer is another bench.
func (s *Bench) SetPeer(args []string) error {
	switch {
	case len(args) == 0:
		return s.Path.ValidateForDevice()
	case len(args) > 1:
		return exit.Usagef("unexpected argument %s: dma-copy bench takes one PEER or none", quote.Text(args[1]))
	}
	s.Daemon = true
	var err error
	if s.File == "" {
		s.Remote, err = contact.ParsePeer(args[0])
	} else if s.Remote, _, err = share.ParseRemote(args[0]); err == nil && s.Remote.Share == "" {
		err = exit.Usagef("--file needs the directory of a share for the copy: give PEER as :SHARE or :SHARE/PATH")
	}
	if err != nil {
		return err
	}
	return device.ValidateSide(s.Role, s.Representor)
}

// ValidateFor checks the settings against the kind of connection, as Transfer.ValidateFor does.
func (s *Bench) ValidateFor(network bool) error {
	if network {
		return s.Network.ValidatePath(s.Path)
	}
	return s.Path.ValidateForDevice()
}

// Validate checks the settings of serve against each other.
func (s *Serve) Validate() error {
	names := map[string]bool{}
	for i, served := range s.Shares {
		var err error
		if s.Shares[i].Path, err = filepath.Abs(served.Path); err != nil {
			return exit.Usagef("share %s: %w", quote.Bare(served.Name), err)
		}
		if names[served.Name] {
			return exit.Usagef("--share %s is given twice: give each share a name of its own", quote.Bare(served.Name))
		}
		names[served.Name] = true
	}
	if len(s.Shares) == 0 {
		return exit.Usagef("--share is missing: name a directory that peers may use, as in --share inbox=/srv/inbox,rw")
	}
	for _, representor := range s.Representors {
		if err := device.ValidateSide(s.Role, representor); err != nil {
			return err
		}
	}
	if s.StatusPage && s.Metrics == "" {
		return exit.Usagef("--status-page needs an address: give --metrics 127.0.0.1:9469, or --metrics unix:PATH")
	}
	if err := s.validateNetwork(); err != nil {
		return err
	}
	s.ChooseDigest(s.Auth)
	return device.ValidatePlacement(s.Placement)
}

// unixAddress is how the address of a socket begins.
const unixAddress = "unix:"

// parseMetrics refuses addresses that other machines can reach.
func parseMetrics(text string) (string, error) {
	if path, is := strings.CutPrefix(text, unixAddress); is {
		path, err := option.ParsePath(path)
		return unixAddress + path, err
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return "", errors.New("not an address; give an IP address and a port such as 127.0.0.1:9469, or unix:PATH")
	}
	if !at.Addr().IsLoopback() {
		return "", errors.New("not a loopback address; give 127.0.0.1 or [::1] with a port, or unix:PATH")
	}
	return text, nil
}
