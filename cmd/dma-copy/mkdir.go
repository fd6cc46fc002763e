package main

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/output"
)

func mkdirCommand() command {
	s := new(config.MakeDir)
	return command{
		name:    "mkdir",
		summary: "Create directories in a share of a daemon",
		takes:   []string{"[PEER]:SHARE/PATH..."},
		about: `Creates directories in a share of a daemon (dma-copy serve), for which this
side's key must have the right to write. PEER is a name in the configuration,
and may be left out. A daemon on another machine is
ucx://HOST[:PORT]/SHARE/PATH, or such a name with an address. -p is --parents
here, and not the device.
`,
		examples: `host$ dma-copy mkdir -p :inbox/photos/2026
here$ dma-copy mkdir ucx://lab.example/inbox/photos
`,
		settings: s,
		complete: inShares,
		run: func(ctx context.Context, streams streams, args []string, log zerolog.Logger) error {
			w := output.NewChanges(streams.stdout, streams.stderr, "created", s.Output, log)
			err := s.SetPaths(args)
			if err == nil {
				err = output.InRequest("mkdir", makeDirectories(ctx, streams, s, w, log))
			}
			return ended(w, log, err)
		},
		refused: refusedChanges("created", &s.Places),
	}
}

func makeDirectories(
	ctx context.Context, streams streams, s *config.MakeDir, w *output.Changes, log zerolog.Logger,
) (err error) {
	ctx, cancel := limitTime(ctx, s.Timeout)
	defer cancel()
	ctx, c, err := connectShares(ctx, streams, &s.Places, w, log)
	if err != nil {
		return err
	}
	defer c.end(&err)
	for _, at := range s.Remote {
		err := c.client.MakeDir(ctx, placeOf(at), s.Parents)
		if err != nil && output.Unfinished(err) {
			return err
		}
		w.Changed(at, withSide(c.side.side, err))
	}
	return w.End()
}

// connectShares connects to the daemon for a request that concerns its shares.
func connectShares(
	ctx context.Context, streams streams, s *config.Places, w interface{ Begin(output.Path) }, log zerolog.Logger,
) (context.Context, *contact, error) {
	daemon := reachForPlaces(s)
	daemon.waits = waitOutput(streams, s.Output, false, log)
	ctx, c, err := connect(ctx, streams, daemon, log)
	if err == nil {
		w.Begin(c.path)
	}
	return ctx, c, err
}

// refusedChanges returns the command.refused of a command that changes shares.
func refusedChanges(action string, s *config.Places) func(streams, error) error {
	return func(streams streams, err error) error {
		w := output.NewChanges(streams.stdout, streams.stderr, action, s.Output, zerolog.Nop())
		return ended(w, zerolog.Nop(), err)
	}
}
