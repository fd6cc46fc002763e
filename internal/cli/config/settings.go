// Package config has the settings of each command and its options.
//
// It knows no command tree, opens no device and starts nothing: it returns values and errors, which carry the exit code
// for usage.
package config

import (
	"net/netip"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/placement"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Reach holds how a command reaches the other side over a device.
type Reach struct {
	Driver      Driver
	Device      string         // PCI address, IB or net device name; empty: the only device that fits
	Representor string         // name of a representor, DPU side; empty: not given
	Role        inventory.Role // inventory.RoleAuto leaves the choice to the device
	Wait        time.Duration  // for the peer to appear and be free; always positive
	Timeout     time.Duration  // for the whole run; 0 is no limit
	IdleTimeout time.Duration  // without progress, or a message of the peer; always positive
}

// Copy holds the settings of a copy, which is what the program does without a command.
type Copy struct {
	option.Logging
	Reach
	output.Form
	Options    dmaxfer.Options // as far as they are settings of their own; the limits of devices are not checked here
	autoDigest bool            // Options.Digest was not chosen
	File       string          // the file to send or to create; never empty
	Path       PathChoice
	Placement  placement.Wish // CPUs or NUMA node to run on; not both
	With       string         // what both sides must be given; empty: nothing
	Filters    []FilterRule   // which entries of a tree this side sends; first match wins
	FilesFrom  string         // file with the paths that this side sends of a tree, Stream for stdin; empty: all
	Null       bool           // the paths in FilesFrom end with NUL bytes
	CPUProfile string         // file; empty: none
}

// Local holds the settings of local: those of a copy that it has, with the source as File. All others are zero.
type Local struct {
	Copy
	Target string // where the copy lands; Stream for stdout; never empty after SetPaths
}

// Devices holds the settings of devices.
type Devices struct {
	option.Logging
	Driver Driver
	Output option.OutputForm
}

// Doctor holds the settings of doctor.
type Doctor struct {
	option.Logging
	Driver      Driver
	Device      string // as for a copy
	Representor string // as for a copy
	Placement   placement.Wish
	Peer        bool          // also check for the other side, or with Probe try what needs it
	Probe       bool          // try what is assumed of the device
	Wait        time.Duration // for the other side, with Probe and Peer
	Network                   // checked with DriverUCX, TrafficClass also with Listen
	IdleTimeout time.Duration // of copies, from which Network's acknowledgements are derived
	Keys        string
	Listen      netip.AddrPort // to be free; without a device none is checked then; not valid: not given
	Output      option.OutputForm
	Quiet       bool // print failures only
}

// Ping holds the settings of ping.
type Ping struct {
	Contact
	Daemon bool         // the peer is a daemon, otherwise another ping
	Remote share.Remote // the daemon, without a share
	option.Logging
	Reach
	Text   string     // for the other side
	Count  uint32     // round trips, 1 to service.MaxPings
	Size   uint32     // bytes of a payload, at most service.MaxPingSize
	Path   PathChoice // PathDMA: the control channel only
	Output option.OutputForm
	Quiet  bool // print no text
}

// Bench holds the settings of bench.
type Bench struct {
	Contact
	Daemon bool         // the peer is a daemon, otherwise another bench
	Remote share.Remote // the daemon, with the directory of the copy of File in a share if there is one
	option.Logging
	Reach
	Chunks []int64 // bytes
	Depths []int
	Lanes  []int
	Each   time.Duration // of a measurement
	Path   PathChoice
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
	Driver Driver
	Output option.OutputForm
}

// Driver holds which driver to open, and how.
type Driver struct {
	Name       string       // DriverAuto, DriverDOCA, DriverSoft or DriverUCX
	RequireHW  bool         // refuse anything but hardware
	LibraryDir string       // where DOCA's libraries are; empty: where they are usually installed
	LogLevel   option.Level // of the driver's own log
}

// Options returns the options for doca.Open.
func (s Driver) Options() doca.Options {
	return doca.Options{
		Choice: doca.Choice(s.Name), RequireHardware: s.RequireHW, LibraryDir: s.LibraryDir, LogLevel: int(s.LogLevel),
	}
}

// PathChoice is how the content of files is copied, or how a ping is sent.
type PathChoice string

const (
	PathAuto PathChoice = "auto" // by DMA if both sides can, otherwise over producers and consumers
	PathDMA  PathChoice = "dma"
	PathFast PathChoice = "fast"

	// Between machines, where auto is tls: the others are used only if both sides name them.
	PathTLS      PathChoice = "tls" // a TLS connection for each lane
	PathTCP      PathChoice = "tcp" // the same, without encryption after authentication
	PathMessages PathChoice = "am"  // active messages of UCX
	PathRMA      PathChoice = "rma" // remote memory access of UCX
)

// FilterKind is what a FilterRule does with what it matches.
type FilterKind int

const (
	FilterInclude     FilterKind = iota // the entries that match Text are sent
	FilterExclude                       // they are not sent
	FilterExcludeFrom                   // Text is a file of patterns in the form of .gitignore
)

// FilterRule is one --include, --exclude or --exclude-from.
type FilterRule struct {
	Kind FilterKind
	Text string
}

const (
	DriverAuto = "auto"
	DriverDOCA = "doca"
	DriverSoft = "soft"
	DriverUCX  = "ucx" // none: connections with other machines, for which UCX must load
)
