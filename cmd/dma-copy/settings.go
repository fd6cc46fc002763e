package main

import (
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// settings is what one run was asked to do, after flags, the parameter file, the environment and the defaults have
// been merged and checked. It is a plain value: nothing in it refers back to where a value came from.
type settings struct {
	Device        string         // PCI address, IB or net device name; empty: the only device that fits
	Representor   string         // representor of the host function, DPU side; empty: not given
	File          string         // the file to send or to create; never empty
	Role          role           // roleAuto leaves the choice to the device
	Driver        string         // driverAuto, driverDOCA or driverSoft
	RequireHW     bool           // refuse to move bytes by anything but hardware
	LibraryDir    string         // where DOCA's libraries are; empty: where they are usually installed
	Wait          time.Duration  // for the peer to appear and be free; always positive
	Timeout       time.Duration  // for the whole run; 0 is no limit
	IdleTimeout   time.Duration  // without progress; always positive
	Chunk         int64          // bytes per copy task; 0 is chosen from the device, whose limits are not checked here
	Depth         int            // copy tasks in flight; 0 is chosen from the device, whose limits are not checked here
	Place         placement.Wish // CPUs or NUMA node to run on; not both
	Overwrite     bool           // this side receives and may replace File
	Backup        bool           // what is replaced is kept
	MaxDuration   time.Duration  // of the copy, from the agreement on; 0 is no limit
	MaxBytes      int64          // of the file; 0 is no limit
	MaxHoles      int64          // bytes of holes that have to be digested or read back; 0 is no limit
	Bandwidth     int64          // bytes per second; 0 is no limit
	Protocol      protocolChoice // protocolReference: the native one is not offered
	Quiet         bool           // no summary, and no progress unless it is progressAlways
	Progress      progressChoice
	Output        outputForm       // of a copy and of devices; empty for what has one form only
	Peer          bool             // doctor also looks for the other side
	Digest        digest.Algorithm // of a copy and of verify; never digest.None there
	Expect        digest.Sum       // the only content that may be copied; the zero one: any
	Verify        verification
	Durability    negotiate.Durability
	Sparse        sparseChoice
	Preserve      preserved      // besides mode and time
	NoResume      bool           // neither use nor leave a part of a file
	AllowChanging bool           // the source may change while it is read
	Manifest      string         // that verify checks named files against; empty: not given
	NewManifest   string         // that verify writes, "-" to stdout; empty: none
	AllowOutside  bool           // verify follows a manifest's entries out of its directory
	CPUProfile    string         // file; empty: none
	Bench         *benchSettings // of bench only; nil for what else there is
	LogLevel      logLevel       // the program's own log
	SDKLogLevel   logLevel       // the driver's log
}

// role is the side that this process plays.
type role string

const (
	roleAuto role = "auto"
	roleHost role = "host"
	roleDPU  role = "dpu"
)

// outputForm is the form of a command's result on stdout.
type outputForm string

const (
	outputText outputForm = "text"
	outputJSON outputForm = "json"
)

// protocolChoice is what is spoken with the peer.
type protocolChoice string

const (
	protocolAuto      protocolChoice = "auto"
	protocolReference protocolChoice = "reference"
)

// progressChoice is when the progress of a copy is shown.
type progressChoice string

const (
	progressAuto   progressChoice = "auto"
	progressNever  progressChoice = "never"
	progressAlways progressChoice = "always"
)

// verification is what a receiver compares with what the sender has read.
type verification string

const (
	verifyDigest   verification = "digest"   // what it was about to write
	verifyReadback verification = "readback" // and what the disk then has
)

// sparseChoice is what becomes of holes.
type sparseChoice string

const (
	sparseAuto  sparseChoice = "auto"
	sparseNever sparseChoice = "never"
)

// preserved is what the target keeps of the source if both sides want it.
type preserved struct {
	Owner bool
	Xattr bool
}

const (
	driverAuto = "auto"
	driverDOCA = "doca"
	driverSoft = "soft"
)

// logLevel is a log level on DOCA's scale, 10 to 70 in steps of ten.
type logLevel int

const (
	levelDisable  logLevel = 10
	levelCritical logLevel = 20
	levelError    logLevel = 30
	levelWarning  logLevel = 40
	levelInfo     logLevel = 50
	levelDebug    logLevel = 60
	levelTrace    logLevel = 70
)

// levelNames holds the names in order: the level of entry i is 10*(i+1).
var levelNames = [...]string{"DISABLE", "CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG", "TRACE"}

// String returns DOCA's name of the level.
func (l logLevel) String() string {
	if l < levelDisable || l > levelTrace || l%10 != 0 {
		return fmt.Sprintf("logLevel(%d)", int(l))
	}
	return levelNames[l/10-1]
}

// driverOptions says which driver to open, and how.
func (s settings) driverOptions() doca.Options {
	return doca.Options{
		Choice: doca.Choice(s.Driver), RequireHardware: s.RequireHW, LibraryDir: s.LibraryDir, LogLevel: int(s.SDKLogLevel),
	}
}
