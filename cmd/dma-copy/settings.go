package main

import (
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/bench"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// settings are those of one command: a struct that holds them after flags, the parameter file, the environment and the
// defaults have been merged and checked. Nothing in it refers back to where a value came from.
type settings interface {
	// options returns the table of the command, bound to the fields of the struct.
	options() []option

	// level returns the level of the program's own log.
	level() logLevel
}

// copySettings are those of a copy, which is what the program does without a command.
type copySettings struct {
	LogLevel      logLevel
	Driver        driverSettings
	Device        string         // PCI address, IB or net device name; empty: the only device that fits
	Representor   string         // representor of the host function, DPU side; empty: not given
	File          string         // the file to send or to create; never empty
	Role          role           // roleAuto leaves the choice to the device
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
	Output        outputForm
	Digest        digest.Algorithm
	Expect        digest.Sum // the only content that may be copied; the zero one: any
	Verify        verification
	Durability    negotiate.Durability
	Sparse        sparseChoice
	Preserve      preserved // besides mode and time
	NoResume      bool      // neither use nor leave a part of a file
	AllowChanging bool      // the source may change while it is read
	CPUProfile    string    // file; empty: none
}

// benchSettings are those of bench. An empty list is for the kind of measurement to fill.
type benchSettings struct {
	LogLevel   logLevel
	Driver     driverSettings
	Sizes      []int64
	Chunks     []int64
	Depths     []int
	Directions []bench.Direction
	Digests    []string
	Durability negotiate.Durability
	Tools      []string
	Runs       int // at least one
	Warmup     int
	Directory  string // empty: that for temporary files
	Model      string // empty: none
	Plot       string // empty: none
	Form       benchForm
	Quiet      bool // no progress
}

// devicesSettings are those of devices.
type devicesSettings struct {
	LogLevel logLevel
	Driver   driverSettings
	Output   outputForm
}

// doctorSettings are those of doctor.
type doctorSettings struct {
	LogLevel    logLevel
	Driver      driverSettings
	Device      string // as for a copy
	Representor string // as for a copy
	Place       placement.Wish
	Peer        bool // also check for the other side
}

// verifySettings are those of verify.
type verifySettings struct {
	LogLevel     logLevel
	Digest       digest.Algorithm // never digest.None
	Manifest     string           // to check named files against; empty: not given
	NewManifest  string           // to write, "-" to stdout; empty: none
	AllowOutside bool             // follow a manifest's entries out of its directory
	Overwrite    bool             // NewManifest may be replaced
	Quiet        bool             // print failures only
}

// versionSettings are those of version.
type versionSettings struct {
	LogLevel logLevel
	Driver   driverSettings
}

func (s *copySettings) level() logLevel    { return s.LogLevel }
func (s *benchSettings) level() logLevel   { return s.LogLevel }
func (s *devicesSettings) level() logLevel { return s.LogLevel }
func (s *doctorSettings) level() logLevel  { return s.LogLevel }
func (s *verifySettings) level() logLevel  { return s.LogLevel }
func (s *versionSettings) level() logLevel { return s.LogLevel }

// driverSettings say which driver to open, and how.
type driverSettings struct {
	Name       string   // driverAuto, driverDOCA or driverSoft
	RequireHW  bool     // refuse anything but hardware
	LibraryDir string   // where DOCA's libraries are; empty: where they are usually installed
	LogLevel   logLevel // of the driver's own log
}

// docaOptions returns the options for doca.Open.
func (s driverSettings) docaOptions() doca.Options {
	return doca.Options{
		Choice: doca.Choice(s.Name), RequireHardware: s.RequireHW, LibraryDir: s.LibraryDir, LogLevel: int(s.LogLevel),
	}
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
