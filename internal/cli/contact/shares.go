package contact

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/report"
)

// InShares carries out a command in the shares of one daemon within --timeout, unless its arguments were refused, and
// reports its error to w. request names it in the error of a lost connection.
func InShares(
	ctx context.Context, streams root.Streams, s *Places, request string, refused error, w interface {
		Begin(report.Path)
		Fail(error)
	}, log zerolog.Logger, run func(context.Context, *connect.Conn) error,
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
	return output.Ended(w, log, report.InRequest(request, err))
}

// Refused returns the root.Command.Refused of a command without another report than events.
func Refused(form *option.OutputForm) func(root.Streams, error) error {
	return func(streams root.Streams, err error) error {
		return output.Ended(output.NewEvents(streams.Stdout, *form, zerolog.Nop()), zerolog.Nop(), err)
	}
}

// reachForPlaces returns how a command that copies nothing reaches its daemon.
func reachForPlaces(s *Places) Reach {
	return Reach{Contact: s.Contact, Reach: s.Reach, Daemon: s.Remote[0], Started: s.Started}
}
