package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Settings holds the settings of bench.
type Settings struct {
	contact.Contact
	Daemon bool         // the peer is a daemon, otherwise another bench
	Remote share.Remote // the daemon, without a share
	option.Logging
	device.Reach
	Chunks []int64 // bytes
	Depths []int
	Lanes  []int
	Each   time.Duration // of a measurement
	Path   device.Path
	Output option.OutputForm
	Quiet  bool // print no text
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	lists := func(name, value, fallback string, assign func(string) error, help string) option.Option {
		return option.Option{
			Group: option.AddedFlags, Everyday: true, Name: name, Value: value, Default: fallback,
			JSON: option.JSONText, Assign: assign, Help: help,
		}
	}
	return slices.Concat(device.CommonOptions(&s.Logging, &s.Driver), s.Reach.Table(), []option.Option{
		lists("chunks", "SIZE,...", "64KiB,256KiB,1MiB,2MiB", option.Into(&s.Chunks, option.ParseList(parseChunk)),
			"Bytes per DMA task, rounded down to a power of two"),
		lists("depths", "COUNT,...", "1,4,16,32", option.Into(&s.Depths,
			option.ParseList(option.ParseCount(1, wire.MaxDepth))),
			"Chunks in flight"),
		lists("lane-counts", "COUNT,...", "1,2", option.Into(&s.Lanes,
			option.ParseList(option.ParseCount(1, copying.MostLanes))),
			"Engines of each side, at most one for each chunk in flight"),
		option.Everyday(option.Duration(option.AddedFlags, "each", &s.Each, "200ms", parseMeasurement,
			"Time of one measurement, at most 5s; there are about a hundred by default")),
		device.PathOption(option.AddedFlags, &s.Path,
			"Measure this path only; auto is dma and fast over a device, and tls to another machine",
			device.EveryPath()),
		option.Output(&s.Output, "Results as text, or as one JSON object, on stdout"),
		option.Quiet(&s.Quiet, "Print errors only, unless -o json is given"),
		s.Network.TrafficClassOption(),
	}, s.Contact.Table())
}

// SetPeer sets the daemon from the arguments of the command. Without one, the peer is another bench.
func (s *Settings) SetPeer(args []string) error {
	switch {
	case len(args) == 0:
		return s.Path.ValidateForDevice()
	case len(args) > 1:
		return exit.Usagef("unexpected argument %s: dma-copy bench takes one PEER or none", quote.Text(args[1]))
	}
	peer, err := contact.ParsePeer(args[0])
	if err != nil {
		return err
	}
	s.Daemon, s.Remote = true, peer
	return device.ValidateSide(s.Role, s.Representor)
}

// ValidateFor checks the settings against the kind of connection, as Transfer.ValidateFor does.
func (s *Settings) ValidateFor(network bool) error {
	if network {
		return s.Network.ValidatePath(s.Path)
	}
	return s.Path.ValidateForDevice()
}

// longestMeasurement is half of what a daemon permits: a case may turn out slower than its first copies.
const longestMeasurement = 5 * time.Second

func parseMeasurement(text string) (time.Duration, error) {
	each, err := option.ParsePositiveDuration(text)
	if err == nil && each > longestMeasurement {
		return 0, fmt.Errorf("a measurement takes at most %s", longestMeasurement)
	}
	return each, err
}

// parseChunk accepts the sizes that a chunk can have.
func parseChunk(text string) (int64, error) {
	size, err := option.ParseSize(text)
	if err == nil && (size < wire.MinChunk || size > wire.MaxChunk) {
		return 0, fmt.Errorf("not a chunk; give 4KiB to 1GiB")
	}
	return size, err
}
