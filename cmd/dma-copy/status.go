package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/daemon/runtimedir"
	"github.com/dma-copy/dma-copy/internal/daemon/status"
)

// statusTimeout is how long a daemon may take to answer. It answers at once, unless it hangs or is stopped.
const statusTimeout = 10 * time.Second

func statusCommand() command {
	var s config.Status
	return command{
		name:    "status",
		summary: "Show what the running daemon does",
		about: `Asks the daemon (dma-copy serve) of this machine through its unix socket, and
prints its shares, connections, running copies, totals and last failures. Root
and the daemon's own user get an answer, others exit code 8. Ends with 7 if no
daemon is running.
`,
		examples: `$ dma-copy status
$ dma-copy status -o json | jq .connections
`,
		settings: &s,
		run: func(ctx context.Context, streams streams, _ []string, _ zerolog.Logger) error {
			ctx, cancel := context.WithTimeout(ctx, statusTimeout)
			defer cancel()
			doc, err := status.Fetch(ctx, statusSockets(s, streams)...)
			if err != nil {
				return err
			}
			if s.Output == option.OutputJSON {
				return status.WriteJSON(streams.stdout, doc)
			}
			return status.WriteText(streams.stdout, doc, time.Local)
		},
	}
}

// statusSockets returns the sockets on which a daemon may listen, in the order in which they are tried.
func statusSockets(s config.Status, streams streams) []string {
	switch {
	case s.Socket != "":
		return []string{s.Socket}
	case s.RuntimeDir != "":
		return []string{filepath.Join(s.RuntimeDir, status.SocketName)}
	}
	var sockets []string
	for _, directory := range runtimedir.Candidates(streams.env.Get, os.Geteuid()) {
		sockets = append(sockets, filepath.Join(directory, status.SocketName))
	}
	return sockets
}
