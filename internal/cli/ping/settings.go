package ping

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

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
