// Package ping exchanges a text and measures round trips.
package ping

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/ping"
)

// Command returns the command ping.
func Command() root.Command {
	var s Settings
	return root.Command{
		Name:    "ping",
		Summary: "Exchange a text and measure round trips",
		Takes:   []string{"[PEER]"},
		About: `Without PEER, run it on both sides, as a copy. Each side prints the text of the
other one, then measures its own round trips and prints their minimum, median
and 99th percentile. The bytes that come back are compared with those that were
sent. A ping does not disturb copies, and needs dma-copy on both sides.

With PEER, a daemon (dma-copy serve) answers, and prints the text. PEER is a
name in the configuration, or : for the only one, or ucx://HOST[:PORT] for a
daemon on another machine.
`,
		Examples: `host$ dma-copy ping : --text hello
host$ dma-copy ping -p b1:00.1 --text 'hello from the host'
dpu$  dma-copy ping -p 03:00.1 -r b1:00.1 --path fast --size 4KiB
here$ dma-copy ping ucx://lab.example
`,
		Complete: contact.CompletePeer,
		Settings: &s,
		Run: func(ctx context.Context, streams root.Streams, args []string, log zerolog.Logger) error {
			r := newReporter(streams.Stdout, s.Output, s.Quiet, log)
			err := s.SetPeer(args)
			if err == nil {
				err = runPing(ctx, streams, r, s, log)
			}
			return output.Ended(r, log, err)
		},
		Refused: func(streams root.Streams, err error) error {
			return output.Ended(newReporter(streams.Stdout, s.Output, s.Quiet, zerolog.Nop()), zerolog.Nop(), err)
		},
	}
}

func runPing(
	ctx context.Context, streams root.Streams, r *reporter, s Settings, log zerolog.Logger,
) (err error) {
	ctx, cancel := root.LimitTime(ctx, s.Timeout)
	defer cancel()
	if s.Daemon {
		return output.InRequest("ping", pingDaemon(ctx, streams, r, s, log))
	}
	on, err := device.Meet(ctx, s.Reach, "dma-copy ping", root.WaitOutput(streams, s.Output, s.Quiet, log), log)
	if err != nil {
		return err
	}
	defer on.End(&err)
	r.Begin(on.Path(s.Driver))
	summary, err := ping.Run(ctx, ping.Options{
		Meeting: ping.Meeting{
			Side: on.Side.Is, Device: on.Device, Representor: s.Representor, Wait: s.Wait, IdleTimeout: s.IdleTimeout,
			Log: log,
		},
		Text: s.Text, Count: s.Count, Size: s.Size, Path: pingPaths[s.Path],
		Notify: func(e ping.Event) { on.Met(); r.Event(e) },
	})
	if err != nil {
		return err
	}
	return r.Result(summary)
}

// pingDaemon exchanges texts with a daemon, then measures round trips.
func pingDaemon(
	ctx context.Context, streams root.Streams, r *reporter, s Settings, log zerolog.Logger,
) (err error) {
	ctx, c, err := contact.Connect(ctx, streams, contact.Reach{
		Contact: s.Contact, Reach: s.Reach, Daemon: s.Remote, Waits: root.WaitOutput(streams, s.Output, s.Quiet, log),
	}, log)
	if err != nil {
		return err
	}
	defer c.End(&err)
	if most := c.Client.MaxPing(); int(s.Size) > most {
		return exit.Usagef("--size %d: a message to the daemon has at most %d bytes; give less", s.Size, most)
	}
	r.Begin(c.Path)
	r.Event(ping.Connected{Version: int(c.Client.Peer().Version)})
	if s.Text != "" {
		answer, err := c.Client.Text(ctx, s.Text)
		if err != nil {
			return err
		}
		r.Event(ping.Text{From: c.Side.Is.Other(), Text: answer})
	}
	var payload []byte
	times := make([]time.Duration, s.Count)
	for i := range times {
		payload = ping.Payload(payload, int(s.Size), i)
		var err error
		if times[i], err = c.Client.RoundTrip(ctx, payload); err != nil {
			return err
		}
	}
	summary := ping.Summarize(times)
	summary.Size = len(payload)
	return r.Result(summary)
}

var pingPaths = map[device.Path]ping.PathChoice{
	device.PathAuto: ping.AnyPath, device.PathDMA: ping.OnlyControl, device.PathFast: ping.OnlyFast,
}
