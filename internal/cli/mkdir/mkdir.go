// Package mkdir creates directories in a share of a daemon.
package mkdir

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
)

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
ucx://HOST[:PORT]/SHARE/PATH, or such a name with an address. -p is --parents
here, and not the device.
`,
		Examples: `host$ dma-copy mkdir -p :inbox/photos/2026
here$ dma-copy mkdir ucx://lab.example/inbox/photos
`,
		Settings: s,
		Complete: contact.CompleteInShares,
		Run: func(ctx context.Context, streams root.Streams, args []string, log zerolog.Logger) error {
			w := output.NewChanges(streams.Stdout, streams.Stderr, "created", s.Output, log)
			err := s.SetPaths(args)
			if err == nil {
				err = output.InRequest("mkdir", makeDirectories(ctx, streams, s, w, log))
			}
			return output.Ended(w, log, err)
		},
		Refused: contact.RefusedChanges("created", &s.Places),
	}
}

func makeDirectories(
	ctx context.Context, streams root.Streams, s *Settings, w *output.Changes, log zerolog.Logger,
) (err error) {
	ctx, cancel := root.LimitTime(ctx, s.Timeout)
	defer cancel()
	ctx, c, err := contact.ConnectShares(ctx, streams, &s.Places, w, log)
	if err != nil {
		return err
	}
	defer c.End(&err)
	for _, at := range s.Remote {
		err := c.Client.MakeDir(ctx, contact.PlaceOf(at), s.Parents)
		if err != nil && output.Unfinished(err) {
			return err
		}
		w.Changed(at, output.WithSide(c.Side.Is, err))
	}
	return w.End()
}
