package contact

import (
	"context"
	"path"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/share"
)

// ConnectShares connects to the daemon for a request that concerns its shares.
func ConnectShares(
	ctx context.Context, streams root.Streams, s *Places, w interface{ Begin(output.Path) }, log zerolog.Logger,
) (context.Context, *Conn, error) {
	daemon := reachForPlaces(s)
	daemon.Waits = root.WaitOutput(streams, s.Output, false, log)
	ctx, c, err := Connect(ctx, streams, daemon, log)
	if err == nil {
		w.Begin(c.Path)
	}
	return ctx, c, err
}

// RefusedChanges returns the command.refused of a command that changes shares.
func RefusedChanges(action string, s *Places) func(root.Streams, error) error {
	return func(streams root.Streams, err error) error {
		w := output.NewChanges(streams.Stdout, streams.Stderr, action, s.Output, zerolog.Nop())
		return output.Ended(w, zerolog.Nop(), err)
	}
}

// reachForPlaces returns how a command that copies nothing reaches its daemon.
func reachForPlaces(s *Places) Reach {
	return Reach{Contact: s.Contact, Reach: s.Reach, Daemon: s.Remote[0]}
}

// PlaceOf returns a place as a request names it.
func PlaceOf(r share.Remote) service.Place {
	return service.Place{Share: r.Share, Path: path.Clean("/" + r.Path)[1:]}
}
