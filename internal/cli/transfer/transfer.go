// Package transfer has push, pull and sync, which copy between this side and the shares of daemons.
package transfer

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/operations"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
)

const pushAbout = `Copies files and directories of this side into a share of a daemon (dma-copy
serve) on the other side. A PATH that ends with / is a directory to copy into,
and so is a share alone: SRC keeps its name there, a directory too. Any other
PATH is the name of the copy itself. SRC/. is the content of SRC. PEER is a name
in the configuration, and may be left out. A daemon on another machine (serve
--listen) is ucx://HOST[:PORT]/SHARE[/PATH], or such a name with an address.
ssh://[USER@]HOST[:PORT]/PATH is a file or directory of a machine that ssh logs
in to, where it starts dma-copy for this copy; /~/ begins the home directory.
- is stdin. A name of this side with a colon is written with ./ in front.

With --to the peers are those of a list, and the last argument names the share
without a peer. It may be left out if each line has a target of its own.
`

const pushExamples = `host$ dma-copy push image.bin :images/
host$ tar c photos | dma-copy push - dpu:inbox/photos.tar
host$ dma-copy push image.bin :images/ --to peers.txt
here$ dma-copy push image.bin ucx://lab.example/images/
here$ dma-copy push photos ssh://lab.example/srv/
`

const pullAbout = `Copies files and directories from a share of a daemon (dma-copy serve) on the
other side to this side. A DST that ends with /, or is . or .., is a directory
to copy into: the source keeps its name there, a directory too. Any other DST is
the name of the copy itself. PATH/. is the content of PATH. "*", "?", "[a-z]"
and "**" in PATH match names; write them in quotes. PEER is a name in the
configuration, and may be left out. A daemon on another machine (serve --listen)
is ucx://HOST[:PORT]/SHARE/PATH, or such a name with an address.
ssh://[USER@]HOST[:PORT]/PATH is a file or directory of a machine that ssh logs
in to, where it starts dma-copy for this copy; /~/ begins the home directory.
- is stdout. A name of this side with a colon is written with ./ in front.
`

const pullExamples = `host$ dma-copy pull :images/image.bin .
host$ dma-copy pull ':images/*.img' /srv/
dpu$  dma-copy pull -r b1:00.1 :inbox/photos.tar - | tar x
here$ dma-copy pull ucx://lab.example/images/image.bin .
here$ dma-copy pull ssh://lab.example/~/photos .
`

const syncAbout = `Makes DST the same as SRC, of which one is in a share of a daemon (dma-copy
serve): copies what is missing or differs, and replaces it. With --delete it
then deletes what SRC does not have, last, and only if everything was copied.
What a pattern, a size or a time leaves out is neither copied nor deleted, and a
symlink is deleted itself, not what it points to. The share is named as for push
and pull, also by ucx://HOST[:PORT]/SHARE[/PATH] or
ssh://[USER@]HOST[:PORT]/PATH, and a DST that ends with /, is . or .., or a
share alone, is a directory to copy into, as there: photos :backup/ makes
:backup/photos the same as photos.
`

const syncExamples = `host$ dma-copy sync --delete --max-delete 100 photos :backup/photos
host$ dma-copy sync --delete --dry-run :backup/photos photos
`

// PushCommand returns the command push.
func PushCommand() root.Command {
	c := transferCommand(Push, "Copy to a daemon",
		[]string{"SRC... [PEER]:SHARE[/PATH]", "SRC... [:SHARE[/PATH]] --to FILE"})
	c.About, c.Examples, c.Complete = pushAbout, pushExamples, pushArguments
	return c
}

// PullCommand returns the command pull.
func PullCommand() root.Command {
	c := transferCommand(Pull, "Copy from a daemon", []string{"[PEER]:SHARE/PATH... DST"})
	c.About, c.Examples, c.Complete = pullAbout, pullExamples, pullArguments
	return c
}

// SyncCommand returns the command sync.
func SyncCommand() root.Command {
	c := transferCommand(Sync, "Make a directory the same as another one",
		[]string{"SRC [PEER]:SHARE[/PATH]", "[PEER]:SHARE[/PATH] DST"})
	c.About, c.Examples, c.Complete = syncAbout, syncExamples, syncArguments
	return c
}

func transferCommand(kind Kind, summary string, takes []string) root.Command {
	s := &Settings{Kind: kind}
	return root.Command{
		Name: kind.String(), Summary: summary, Takes: takes, Settings: s,
		Run: func(ctx context.Context, streams root.Streams, args []string, log zerolog.Logger) error {
			root.IgnoreSIGPIPE()
			return runTransfer(ctx, streams, s, args, log)
		},
		Refused: copying.Refused(&s.Settings),
	}
}

// runTransfer carries out push, pull or sync and reports on it. Where the target is stdout, the events of -o json go to
// stderr.
func runTransfer(
	ctx context.Context, streams root.Streams, s *Settings, args []string, log zerolog.Logger,
) error {
	refused := s.SetPaths(args)
	if refused == nil {
		refused = s.Validate()
	}
	if s.ToPeers() {
		return pushToPeers(ctx, streams, s, refused, log)
	}
	if !s.Sends && s.StreamArgument() != "" {
		streams.Stdout = streams.Stderr
	}
	s.Options.Overwrite = s.Options.Overwrite || s.Kind == Sync
	uses := copying.OneStream(s.StreamArgument(), s.Sends)
	return copying.Run(ctx, streams, s.Settings, refused, uses, log, func(ctx context.Context,
		r report.Reporter) (err error) {
		daemon := reachOf(s)
		daemon.Waits = root.WaitOutput(streams, s.Output, r.Interval() == 0, log)
		ctx, c, err := contact.Connect(ctx, streams, daemon, log)
		if err != nil {
			return err
		}
		defer c.End(&err)
		t := copiesOf(ctx, c, s, r, log)
		if err := prepare(ctx, streams, t, s); err != nil {
			return err
		}
		return run(ctx, t, s)
	})
}

// reachOf returns how the command reaches its daemon.
func reachOf(s *Settings) contact.Reach {
	started := contact.Started{Path: s.Path}
	if s.Sends {
		started.Access, started.Create = share.ReadWrite, s.Options.MakePath && !s.DryRun
	}
	return contact.Reach{
		Contact: s.Contact, Reach: s.Reach, Daemon: s.Peer(), Bandwidth: s.Options.Bandwidth, Started: started,
		Validate: s.ValidateFor,
	}
}

// prepare sets what the copies of one command have in common.
func prepare(ctx context.Context, streams root.Streams, t *operations.Copies, s *Settings) (err error) {
	if t.MovesNothing() {
		return connect.ErrMovesNothing
	}
	t.Options = copying.Options(s.Settings, t.Device, t.Side.Is, streams.Local, t.Log)
	if !s.Sends {
		copying.PreserveAsUser(&t.Options, os.Geteuid(), t.Log)
	}
	if streams.Terminal && streams.Asks() && s.Output != option.OutputJSON {
		t.Confirm = func(ctx context.Context, question string, keepAlive func() error) (bool, error) {
			return root.Ask(ctx, streams.Stdin, streams.Stderr, question, keepAlive)
		}
	}
	if t.Rules, err = copying.Select(ctx, s.Settings, streams.Stdin, &t.Options); err != nil {
		return err
	}
	return placement.Apply(placement.ThisMachine, t.Near(), s.Placement, t.Log)
}

// copiesOf returns the copies of a command over a connection.
func copiesOf(
	ctx context.Context, c *connect.Conn, s *Settings, r report.Reporter, log zerolog.Logger,
) *operations.Copies {
	return &operations.Copies{
		Conn: c, Sends: s.Sends, Reporter: r, Asked: s.Asked(), Requests: root.ProgressRequests(ctx), Log: log,
		Guards: operations.Guards{Force: s.Force, MaxDelete: s.MaxDelete},
	}
}

// run makes the copies with the options and rules that are set.
func run(ctx context.Context, t *operations.Copies, s *Settings) error {
	if s.Kind == Pull {
		if err := expandSources(ctx, t.Conn, s); err != nil {
			return report.WithSide(t.Side.Is, err)
		}
	}
	all, err := s.Ends()
	if err != nil {
		return err
	}
	began := time.Now()
	if s.Delete {
		err = t.Mirror(ctx, all[0])
	} else {
		err = t.CopyAll(ctx, all)
	}
	t.Total.Elapsed = time.Since(began)
	if !t.Total.Worthy() || err != nil && exit.Code(err) != exit.SomeFailed {
		return err
	}
	return errors.Join(err, t.Reporter.Total(t.Total))
}

// expandSources puts what the patterns of a pull match in their place. By then the target is known to be a directory to
// copy into, however many entries there are.
func expandSources(ctx context.Context, c *connect.Conn, s *Settings) error {
	var all []share.Remote
	for _, source := range s.Remote {
		x, err := c.Expand(ctx, source, 0)
		if err != nil {
			return err
		}
		if x.Entries == nil {
			all = append(all, x.Base)
		}
		for _, e := range x.Entries {
			all = append(all, x.Remote(e))
		}
	}
	s.Remote, s.Expanded = all, true
	return nil
}

// pushArguments completes SRC... [PEER]:SHARE[/PATH].
func pushArguments(c root.Completer, before []string, word string) ([]string, root.Directive) {
	if len(before) == 0 && !contact.IsRemote(word) {
		return nil, root.Files
	}
	return contact.CompleteEither(c, word)
}

// pullArguments completes [PEER]:SHARE/PATH... DST.
func pullArguments(c root.Completer, before []string, word string) ([]string, root.Directive) {
	if len(before) == 0 {
		return contact.CompleteRemote(c, word)
	}
	return contact.CompleteEither(c, word)
}

// syncArguments completes SRC and DST. One of them is in a share.
func syncArguments(c root.Completer, before []string, word string) ([]string, root.Directive) {
	switch {
	case len(before) == 0:
		return contact.CompleteEither(c, word)
	case len(before) > 1:
		return nil, root.OnlyThese
	case contact.IsRemote(before[0]):
		return nil, root.Files
	default:
		return contact.CompleteRemote(c, word)
	}
}
