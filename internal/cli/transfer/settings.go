package transfer

import (
	"errors"
	"path"
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/operations"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Settings holds the settings of push, pull and sync: the copy settings that they have. All other copy settings are
// zero, except for File and Target, which are for one source.
type Settings struct {
	copying.Settings
	contact.Contact
	Kind      Kind     // decides which options there are, so it is set before they are loaded
	Sends     bool     // this side has the sources
	Local     []string // the sources of this side, or the only target; Stream is a standard stream
	Remote    []share.Remote
	Expanded  bool // Remote has the names that the patterns of a pull match, and no patterns
	Delete    bool // what the target has and the source lacks
	Force     bool // delete everything there is to delete, without a question
	MaxDelete int  // entries; 0, which cannot be given, is no limit
	Fleet
}

// Kind is which of the commands that copy between this side and a share is meant.
type Kind uint8

// The kinds.
const (
	Push Kind = iota // from this side into a share
	Pull             // from a share to this side
	Sync             // either, of one source, to make the target the same
)

// Fleet holds how push copies to many peers. Remote then is the target of those without one of their own, or empty.
type Fleet struct {
	To       string // file with the list of peers, Stream for stdin; empty: one peer
	Parallel int    // copies of this side at once, 1 to maxParallel
}

// Table returns the options of push for many peers. A list for every push by a file or the environment would change
// what its arguments mean.
func (s *Fleet) Table() []option.Option {
	return []option.Option{
		{Group: option.AddedFlags, Everyday: true, Name: "to", Value: "FILE", Offers: option.FileValues,
			FlagOnly: true, JSON: option.JSONNone,
			Assign: option.Into(&s.To, option.ParsePath), Excludes: []string{"trust-first", "rep-pci"},
			Help: "Copy to each peer in FILE, one per line: PEER, or PEER:SHARE[/PATH] with a target of its own; - " +
				"is stdin"},
		option.Count(option.AddedFlags, "parallel", &s.Parallel, "8", 1, maxParallel,
			"Peers of --to to copy to at once, at most 256"),
	}
}

// Table implements Settings. The direction is part of the command, and the other side is a daemon. sync always
// replaces what differs, so it has no option for that.
func (s *Settings) Table() []option.Option {
	path := device.PathOption(option.NativeFlags, &s.Path,
		"How file data is copied: by DMA or over Comch producers and consumers (fast); to another machine over TLS, "+
			"or if the daemon permits it without encryption: over TCP, by UCX's active messages (am) or by RDMA "+
			"(rma). auto is tls; over a device it is dma if both sides support it, otherwise fast", device.EveryPath())
	var own []option.Option
	switch s.Kind {
	case Push:
		own = append(s.ExistingOptions(copying.OneCommand), s.Fleet.Table()...)
	case Pull:
		own = s.ExistingOptions(copying.OneCommand)
	case Sync:
		own = s.deleteOptions()
	}
	return slices.Concat(device.GeneralOptions(&s.Logging, &s.Driver), s.EngineOptions(), s.PeerOptions(path),
		s.DemandOptions(), s.CommandOptions(copying.OneCommand),
		[]option.Option{copying.MakePathOption(&s.Options.MakePath)}, own,
		s.Contact.Table(), s.Network.Table())
}

func (s *Settings) deleteOptions() []option.Option {
	return []option.Option{
		{Group: option.AddedFlags, Everyday: true, Name: "delete", Default: "false", JSON: option.JSONForced,
			Assign: s.setDelete, Excludes: []string{"files-from"},
			Help: "After a copy without failures: delete from DST what SRC does not have, unless a pattern excludes " +
				"it. Refused at the root of a share, if SRC is empty, and for more than half of DST, except with " +
				"--max-delete or as --delete=force, which does not ask either"},
		option.Count(option.AddedFlags, "max-delete", &s.MaxDelete, "", 1, option.MaxCount,
			"Delete up to COUNT entries, and nothing if it were more"),
	}
}

// SetPaths sets sources and target from the arguments of the command.
func (s *Settings) SetPaths(args []string) error {
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
	var err error
	if s.Remote, err = share.Unite(s.Remote); err != nil {
		return exit.Usagef("%w", err)
	}
	return nil
}

// Validate checks the settings of the command against each other.
func (s *Settings) Validate() error {
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

// Ends returns the ends of each copy, for settings with one target. It refuses sources that cannot land there. Where a
// copy lands follows from the spelling of source and target alone: the same command means the same again, even after
// the first run has created something.
func (s *Settings) Ends() ([]operations.Ends, error) {
	sources, text, target := s.Local, "", ""
	if s.Sends {
		text, target = s.Remote[0].String(), s.Remote[0].Path
	} else {
		sources, text, target = nil, s.Local[0], s.Local[0]
		for _, remote := range s.Remote {
			sources = append(sources, remote.Share+"/"+remote.Path)
		}
	}
	isPattern := func(source string) bool { return s.Kind == Pull && !s.Expanded && share.IsPattern(source) }
	several := len(sources) > 1 || isPattern(sources[0])
	if err := operations.CheckTarget(text, target, sources[0], several); err != nil {
		return nil, err
	}
	var all []operations.Ends
	seen := map[string]bool{}
	for i, source := range sources {
		landed := operations.Landing(source, target)
		if seen[landed] && !isPattern(source) {
			return nil, exit.Usagef("two sources have the name %s in DST %s: copy them one by one",
				quote.Text(operations.NameOf(source)), quote.Text(text))
		}
		seen[landed] = true
		e := operations.Ends{Directory: operations.NameOf(source) == ""}
		if s.Sends {
			e.Local, e.Remote = source, s.Remote[0]
			e.Remote.Path = path.Clean("/" + landed)[1:]
		} else {
			e.Local, e.Remote = landed, s.Remote[i]
		}
		all = append(all, e)
	}
	return all, nil
}

// ValidateFor checks the settings against the kind of connection: with another machine, or over a device. Call it when
// the peer is known.
func (s *Settings) ValidateFor(network bool) error {
	if network {
		return s.Network.ValidatePath(s.Path)
	}
	if s.Encrypt {
		return exit.Usagef("--encrypt is for daemons on other machines: over a device, file data is authenticated " +
			"by its digest and not encrypted, so leave it out")
	}
	return s.Path.ValidateForDevice()
}

// ToPeers reports whether the command copies to the peers of a list.
func (s *Fleet) ToPeers() bool { return s.To != "" }

// setFleetPaths sets sources and target from the arguments of push with --to: the last one is a share without a peer,
// or there are sources only, and each peer has a target of its own.
func (s *Settings) setFleetPaths(args []string) error {
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
func (s *Settings) validateFleet() error {
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
func (s *Settings) ForTarget(target share.Remote) *Settings {
	one := *s
	one.Remote, one.Fleet = []share.Remote{target}, Fleet{}
	return &one
}

func (s *Settings) checkNumber(args []string) error {
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
func (k Kind) takes() string {
	return [...]string{
		"what to copy here and a share, as in SRC... :SHARE/PATH",
		"what to copy from a share and where to, as in :SHARE/PATH... DST",
		"SRC and DST, of which one is in a share, as in SRC :SHARE/PATH",
	}[k]
}

// checkPlace refuses an argument that is on the wrong side.
func (s *Settings) checkPlace(name, text string, isTarget bool, at contact.Place) error {
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
func (s *Settings) Peer() share.Remote {
	if s.ToPeers() {
		return share.Remote{}
	}
	return s.Remote[0]
}

// StreamArgument returns the argument that stands for a standard stream, or nothing.
func (s *Settings) StreamArgument() string {
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

// setDelete sets what --delete means.
func (s *Settings) setDelete(text string) (err error) {
	if s.Force = text == "force"; s.Force {
		s.Delete = true
		return nil
	}
	if s.Delete, err = option.ParseSwitch(text); err != nil {
		return errors.New("give nothing, or =force")
	}
	return nil
}

// String returns the name of the command.
func (k Kind) String() string { return [...]string{"push", "pull", "sync"}[k] }

// maxParallel bounds the copies of push to many peers at once: each has memory, file descriptors and threads.
const maxParallel = 256
