package main

import (
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// settings is what one run was asked to do, after flags, the parameter file, the environment and the defaults have
// been merged and checked. It is a plain value: nothing in it refers back to where a value came from.
type settings struct {
	Device      string           // PCI address, IB or net device name; empty: the only device that fits
	Representor string           // representor of the host function, DPU side; empty: not given
	File        string           // the file to send or to create; never empty
	Role        role             // roleAuto leaves the choice to the device
	Driver      string           // driverAuto, driverDOCA or driverSoft
	RequireHW   bool             // refuse to move bytes by anything but hardware
	LibraryDir  string           // where DOCA's libraries are; empty: where they are usually installed
	Wait        time.Duration    // for the peer to appear; always positive
	Timeout     time.Duration    // for the whole run; 0 is no limit
	IdleTimeout time.Duration    // without progress; always positive
	Chunk       int64            // bytes per copy task; 0 is chosen from the device, whose limits are not checked here
	Depth       int              // copy tasks in flight; 0 is chosen from the device, whose limits are not checked here
	Overwrite   bool             // this side receives and may replace File
	Quiet       bool             // no summary
	Output      outputForm       // of devices; empty for what has one form only
	Peer        bool             // doctor also looks for the other side
	Digest      digest.Algorithm // of verify; never digest.None there
	Manifest    string           // that verify checks named files against; empty: not given
	NewManifest string           // that verify writes, "-" to stdout; empty: none
	LogLevel    logLevel         // the program's own log
	SDKLogLevel logLevel         // the driver's log
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

// validate checks what no single value of a copy can show: that the mandatory ones are there and that none contradict.
func (s settings) validate() error {
	if s.File == "" {
		return usagef("--file is missing: name the file to send or to create with -f FILE")
	}
	if s.Role == roleHost && s.Representor != "" {
		return usagef("--rep-pci %q does not go with --role host: "+
			"only the DPU side has representors, so leave one of them out", s.Representor)
	}
	return nil
}
