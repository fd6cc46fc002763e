package main

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/ping"
)

func pingCommand() command {
	var s config.Ping
	return command{
		name:    "ping",
		summary: "Exchange a text and measure round trips",
		about: `Run it on both sides, as a copy. Each side prints the text of the other one,
then measures its own round trips and prints their minimum, median and 99th
percentile. The bytes that come back are compared with those that were sent. A
ping does not disturb copies, and needs dma-copy on both sides.

  host$ dma-copy ping -p b1:00.1 --text 'hello from the host'
  dpu$  dma-copy ping -p 03:00.1 -r b1:00.1 --path fast --size 4KiB
`,
		settings: &s,
		run: func(ctx context.Context, streams streams, _ []string, log zerolog.Logger) error {
			r := report.NewPing(streams.stdout, s, log)
			err := runPing(ctx, r, s, log)
			if err != nil {
				r.Fail(err)
			}
			report.LogReworded(log, err)
			return err
		},
		refused: func(streams streams, err error) error {
			report.NewPing(streams.stdout, s, zerolog.Nop()).Fail(err)
			return err
		},
	}
}

func runPing(ctx context.Context, r report.PingReporter, s config.Ping, log zerolog.Logger) error {
	ctx, cancel := limitTime(ctx, s.Timeout)
	defer cancel()
	chosen := inventory.Selection{Device: s.Device, Representor: s.Representor, Role: s.Role}
	return onDevice(s.Driver, chosen, log, func(on side) error {
		r.Begin(pathOf(on, s.Driver))
		summary, err := ping.Run(ctx, ping.Options{
			Side: on.side, Device: on.device, Representor: s.Representor, Text: s.Text, Count: s.Count, Size: s.Size,
			Path: pingPaths[s.Path], Wait: s.Wait, IdleTimeout: s.IdleTimeout, Log: log,
			Notify: r.Event, ExitCode: report.ExitCode,
		})
		if err != nil {
			return &report.SideError{Side: on.side, Err: err}
		}
		return r.Result(summary)
	})
}

var pingPaths = map[config.PathChoice]ping.PathChoice{
	config.PathAuto: ping.AnyPath, config.PathDMA: ping.OnlyControl, config.PathFast: ping.OnlyFast,
}
