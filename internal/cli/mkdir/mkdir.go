// Package mkdir creates directories in a share of a daemon.
package mkdir

import (
	"context"
	"slices"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Settings holds the settings of mkdir.
type Settings struct {
	contact.Places
	Parents bool // those above a directory are created, too, and it may exist
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(device.CommonOptions(&s.Logging, &s.Driver), []option.Option{
		option.WithoutLetter(device.Option(&s.Device)), device.Representor(&s.Representor), device.RoleOption(&s.Role),
	}, s.TimeOptions(), []option.Option{
		option.Everyday(option.WithLetter("p", option.Switch(option.AddedFlags, "parents", &s.Parents,
			"Create missing directories above it, too; one that exists is no failure"))),
		option.Output(&s.Output, contact.OutputOfChanges),
	}, s.PeerOptions())
}

// SetPaths sets what to create from the arguments of the command.
func (s *Settings) SetPaths(args []string) error {
	s.Started = contact.Started{Access: share.ReadWrite, Create: s.Parents}
	err := s.SetPlaces(args, "create", "mkdir takes :SHARE/PATH")
	for _, at := range s.Remote {
		if err == nil && contact.IsShare(at) {
			err = exit.Usagef("PATH %s is a share itself: name a directory in it, as in :SHARE/PATH",
				quote.Text(at.String()))
		}
	}
	return err
}

// Command returns the command mkdir.
func Command() root.Command {
	s := new(Settings)
	return root.Command{
		Name:    "mkdir",
		Summary: "Create directories in a share of a daemon",
		Takes:   []string{"[PEER]:SHARE/PATH..."},
		About: `Creates directories in a share of a daemon (dma-copy serve), for which this
side's key must have the right to write. PEER is a name in the configuration,
and may be left out. A daemon on another machine is
ucx://HOST[:PORT]/SHARE/PATH, or such a name with an address, and one that ssh
starts ssh://[USER@]HOST[:PORT]/PATH. -p is --parents here, and not the device.
`,
		Examples: `host$ dma-copy mkdir -p :inbox/photos/2026
here$ dma-copy mkdir ucx://lab.example/inbox/photos
`,
		Settings: s,
		Complete: contact.CompleteInShares,
		Run: func(ctx context.Context, streams root.Streams, args []string, log zerolog.Logger) error {
			w := output.NewChanges(streams.Stdout, streams.Stderr, "created", s.Output, log)
			return contact.InShares(ctx, streams, &s.Places, "mkdir", s.SetPaths(args), w, log,
				func(ctx context.Context, c *connect.Conn) error { return makeDirectories(ctx, c, s, w) })
		},
		Refused: contact.Refused(&s.Output),
	}
}

func makeDirectories(ctx context.Context, c *connect.Conn, s *Settings, w *output.Changes) error {
	for _, at := range s.Remote {
		err := c.Client.MakeDir(ctx, connect.PlaceOf(at), s.Parents)
		if err != nil && report.Unfinished(err) {
			return err
		}
		w.Changed(at, report.WithSide(c.Side.Is, err))
	}
	return w.End()
}
