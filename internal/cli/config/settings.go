// Package config has the settings of each command and its options.
//
// It knows no command tree, opens no device and starts nothing: it returns values and errors, which carry the exit code
// for usage.
package config

import (
	"net/netip"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/placement"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Devices holds the settings of devices.
type Devices struct {
	option.Logging
	Driver device.Driver
	Output option.OutputForm
}

// Doctor holds the settings of doctor.
type Doctor struct {
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

// Ping holds the settings of ping.
type Ping struct {
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

// Bench holds the settings of bench.
type Bench struct {
	contact.Contact
	Daemon bool         // the peer is a daemon, otherwise another bench
	Remote share.Remote // the daemon, with the directory of the copy of File in a share if there is one
	option.Logging
	device.Reach
	Chunks []int64 // bytes
	Depths []int
	Lanes  []int
	Each   time.Duration // of a measurement
	Path   device.Path
	File   string // to be copied, too, on the DPU the directory for the copy; empty: none
	Plot   string // file; empty: none
	Output option.OutputForm
	Quiet  bool // print no text
}

// Verify holds the settings of verify.
type Verify struct {
	option.Logging
	Digest       digest.Algorithm // never digest.None
	Manifest     string           // to check named files against; empty: not given
	NewManifest  string           // to write, "-" to stdout; empty: none
	AllowOutside bool             // follow a manifest's entries out of its directory
	RelativeTo   string           // directory that names in NewManifest are relative to; empty: that of NewManifest
	Extra        bool             // files that the manifest does not list are failures
	Overwrite    bool             // NewManifest may be replaced
	Quiet        bool             // print failures only
	Output       option.OutputForm
}

// Version holds the settings of version.
type Version struct {
	option.Logging
	Driver device.Driver
	Output option.OutputForm
}
