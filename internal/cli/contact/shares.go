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

// InShares carries out a command in the shares of one daemon within --timeout, unless its arguments were refused, and
// reports its error to w. request names it in the error of a lost connection.
func InShares(
	ctx context.Context, streams root.Streams, s *Places, request string, refused error, w interface {
		Begin(output.Path)
		Fail(error)
	}, log zerolog.Logger, run func(context.Context, *Conn) error,
) error {
	if refused != nil {
		return output.Ended(w, log, refused)
	}
	ctx, cancel := root.LimitTime(ctx, s.Timeout)
	defer cancel()
	daemon := reachForPlaces(s)
	daemon.Waits = root.WaitOutput(streams, s.Output, false, log)
	ctx, c, err := Connect(ctx, streams, daemon, log)
	if err == nil {
		w.Begin(c.Path)
		err = run(ctx, c)
		c.End(&err)
	}
	return output.Ended(w, log, output.InRequest(request, err))
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
