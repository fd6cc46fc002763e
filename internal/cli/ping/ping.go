// Package ping exchanges a text and measures round trips.
package ping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
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
		Refused: contact.Refused(&s.Output),
	}
}

func runPing(
	ctx context.Context, streams root.Streams, r *reporter, s Settings, log zerolog.Logger,
) (err error) {
	ctx, cancel := root.LimitTime(ctx, s.Timeout)
	defer cancel()
	if s.Daemon {
		return report.InRequest("ping", pingDaemon(ctx, streams, r, s, log))
	}
	on, err := device.Meet(ctx, s.Reach, "dma-copy ping", root.WaitOutput(streams, s.Output, s.Quiet, log), log)
	if err != nil {
		return err
	}
	defer on.End(&err)
	r.Begin(on.Path(s.Driver.Options()))
	summary, err := ping.Run(ctx, ping.Options{
		Meeting: ping.Meeting{
			Side: on.Side.Is, Device: on.Device, Representor: s.Representor, Wait: s.Wait, IdleTimeout: s.IdleTimeout,
			Log: log,
		},
		Text: s.Text, Count: s.Count, Size: s.Size, Path: copying.PathChoices[s.Path],
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

// Settings holds the settings of ping.
type Settings struct {
	contact.Contact
	Daemon bool         // the peer is a daemon, otherwise another ping
	Remote share.Remote // the daemon, without a share
	option.Logging
	device.Reach
	Text   string      // for the other side
	Count  uint32      // round trips, 1 to service.MaxPings
	Size   uint32      // bytes of a payload, at most service.MaxPingSize
	Path   device.Path // PathDMA: the control channel only
	Output option.OutputForm
	Quiet  bool // print no text
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(device.CommonOptions(&s.Logging, &s.Driver), s.Reach.Table(), []option.Option{
		option.Everyday(option.Text(option.AddedFlags, "text", "TEXT", &s.Text, parseText,
			"Text that the other side prints, at most 1024 bytes")),
		option.Everyday(option.Count(option.AddedFlags, "count", &s.Count, "100", 1, service.MaxPings,
			"Round trips of this side, 1 to 1000000; the other side has its own")),
		{Group: option.AddedFlags, Everyday: true, Name: "size", Value: "SIZE", Default: "64", JSON: option.JSONNumber,
			Assign: option.Into(&s.Size, parsePingSize),
			Help: "Bytes in each of them, compared when they are back; limited by the device's messages or, on the " +
				"fast path, by its buffers and to 4MiB"},
		device.PathOption(option.AddedFlags, &s.Path,
			"fast: over Comch producers and consumers, else over the control channel. auto is fast if the other side "+
				"wants it, dma and a daemon never", device.DevicePaths),
		option.Output(&s.Output, "Results as text, or as JSON lines, on stdout"),
		option.Quiet(&s.Quiet, "Print errors only, unless -o json is given"),
		s.Network.TrafficClassOption(),
	}, s.Contact.Table())
}

// SetPeer sets the daemon from the arguments of the command. Without one, the peer is another ping.
func (s *Settings) SetPeer(args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) > 1:
		return exit.Usagef("unexpected argument %s: dma-copy ping takes one PEER or none", quote.Text(args[1]))
	case s.Path == device.PathFast:
		return exit.Usagef("--path fast conflicts with PEER: a daemon answers over the control channel, " +
			"so leave one of them out")
	}
	peer, err := contact.ParsePeer(args[0])
	if err != nil {
		return err
	}
	s.Daemon, s.Remote = true, peer
	return device.ValidateSide(s.Role, s.Representor)
}

func parseText(text string) (string, error) {
	switch {
	case len(text) > service.MaxPingText:
		return "", fmt.Errorf("longer than %d bytes; give a shorter text", service.MaxPingText)
	case !utf8.ValidString(text):
		return "", errors.New("not UTF-8; give a text such as hello")
	}
	return text, nil
}

func parsePingSize(text string) (uint32, error) {
	size, err := option.ParseSize(text)
	if err == nil && size > service.MaxPingSize {
		err = errors.New("too large; give at most 4MiB")
	}
	return uint32(size), err
}
