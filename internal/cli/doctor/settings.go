package doctor

import (
	"net/netip"
	"slices"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/placement"
)

// Settings holds the settings of doctor.
type Settings struct {
	option.Logging
	Driver          device.Driver
	Device          string // as for a copy
	Representor     string // as for a copy
	Placement       placement.Wish
	Peer            bool          // also check for the other side, or with Probe try what needs it
	Probe           bool          // try what is assumed of the device
	Wait            time.Duration // for the other side, with Probe and Peer
	contact.Network               // checked with DriverUCX, TrafficClass also with Listen
	IdleTimeout     time.Duration // of copies, from which Network's acknowledgements are derived
	Keys            string
	Listen          netip.AddrPort // to be free; without a device none is checked then; not valid: not given
	Output          option.OutputForm
	Quiet           bool // print failures only
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(
		device.CommonOptions(&s.Logging, &s.Driver),
		[]option.Option{device.Option(&s.Device), device.Representor(&s.Representor)},
		device.PlacementOptions(&s.Placement),
		[]option.Option{option.Everyday(option.Switch(option.AddedFlags, "peer", &s.Peer,
			"Also check for the peer of -p's device, on the software device only: on hardware that would use up the "+
				"peer's waiting session. With --probe on both sides, also try what needs both")),
			option.Everyday(option.Switch(option.AddedFlags, "probe", &s.Probe,
				"Also try on the device each thing that this program assumes of it; writes nothing but its own "+
					"memory")),
			option.Duration(option.AddedFlags, "wait", &s.Wait, "30s", option.ParsePositiveDuration,
				"With --probe and --peer: timeout for the other side to run the same command").In(option.TopicLimits)},
		s.Network.Table(),
		[]option.Option{
			device.IdleTimeout(&s.IdleTimeout,
				"ucx: timeout of copies without progress, from which acknowledgements are derived"),
			option.Directory(option.AddedFlags, "keys", &s.Keys,
				"With --listen or ucx: directory of the keys to check").In(option.TopicTrust),
			option.Everyday(contact.ListenOption(&s.Listen,
				"Check that a daemon could listen there; without -p and -r no device is checked then")),
			option.Output(&s.Output, "Findings as text, or as one JSON object, on stdout"),
			option.Quiet(&s.Quiet, "Print findings with FAIL only"),
		},
	)
}
