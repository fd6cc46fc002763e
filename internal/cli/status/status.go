// Package status shows what the running daemon does.
package status

import (
	"context"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/daemon/status"
)

// Settings holds the settings of status.
type Settings struct {
	option.Logging
	Output     option.OutputForm
	Socket     string        // empty: the default one
	RuntimeDir string        // of the daemon; empty: the default one
	Watch      time.Duration // between two answers; 0: there is one
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	watch := option.Duration(option.AddedFlags, "watch", &s.Watch, "0", option.ParseLimit,
		"Print again at this interval until stopped, every 2s for --watch alone; 0 is once")
	watch.Bare, watch.FlagOnly, watch.JSON = "2s", true, option.JSONNone
	return append(s.LogOptions(),
		option.ParameterFile(),
		option.File(option.AddedFlags, "socket", "PATH", &s.Socket,
			"Socket of the daemon; default status.sock in its runtime directory"),
		option.Directory(option.ServeFlags, "runtime-dir", &s.RuntimeDir,
			"Runtime directory of the daemon; by default the one of this user, then /run/dma-copy"),
		option.Output(&s.Output, "Result as text, or as one JSON line, on stdout"),
		watch,
	)
}

// Command returns the command status.
func Command() root.Command {
	var s Settings
	return root.Command{
		Name:    "status",
		Summary: "Show what the running daemon does",
		About: `Asks the daemon (dma-copy serve) of this machine through its unix socket, and
prints its shares, connections, running copies, totals and last failures. Root
and the daemon's own user get an answer, others exit code 8. Ends with 7 if no
daemon is running.
`,
		Examples: `$ dma-copy status
$ dma-copy status -o json | jq .connections
$ dma-copy status --watch
`,
		Settings: &s,
		Run: func(ctx context.Context, streams root.Streams, _ []string, _ zerolog.Logger) error {
			if s.Watch == 0 {
				return show(ctx, streams, s)
			}
			return repeat(ctx, s.Watch, func() error {
				if streams.Terminal && s.Output != option.OutputJSON {
					_, _ = io.WriteString(streams.Stdout, clearScreen)
				}
				return show(ctx, streams, s)
			})
		},
	}
}

// clearScreen has a terminal show what follows alone.
const clearScreen = "\x1b[H\x1b[2J"

// repeat calls once at an interval, until the end of ctx, whose cause it returns, or an error.
func repeat(ctx context.Context, interval time.Duration, once func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := once()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// show asks the daemon once, and prints its answer.
func show(ctx context.Context, streams root.Streams, s Settings) error {
	ctx, cancel := context.WithTimeout(ctx, status.Timeout)
	defer cancel()
	doc, err := status.Fetch(ctx, status.Sockets(s.Socket, s.RuntimeDir, streams.Env.Get)...)
	if err != nil {
		return err
	}
	if s.Output == option.OutputJSON {
		return status.WriteJSON(streams.Stdout, doc)
	}
	return status.WriteText(streams.Stdout, doc, time.Local)
}
