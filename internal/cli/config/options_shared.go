package config

import (
	"math"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/placement"
)

const levelHelp = "10=DISABLE, 20=CRITICAL, 30=ERROR, 40=WARNING, 50=INFO, 60=DEBUG, 70=TRACE"

// commonOptions are those of every command that opens a driver.
func commonOptions(log *Logging, driver *Driver) []option {
	return append(generalOptions(log, driver), driverOptions(driver)...)
}

// generalOptions are those of every DOCA program, and the format of the log.
func generalOptions(log *Logging, driver *Driver) []option {
	return append(log.logOptions(), driverLogOption(driver), jsonOption())
}

func driverLogOption(driver *Driver) option {
	return option{
		group: DOCAFlags, name: sdkLogLevelName, value: "LEVEL", fallback: "40", json: jsonNumber, words: levelNames[:],
		assign: into(&driver.LogLevel, parseLevel), help: "The same for the driver's own messages",
	}
}

// The names of the options of the log, of which those of the levels depend on that of --quiet.
const (
	logLevelName    = "log-level"
	sdkLogLevelName = "sdk-log-level"
	quietName       = "quiet"
)

func (s *Logging) logOptions() []option {
	return []option{
		{group: DOCAFlags, name: logLevelName, short: "l", value: "LEVEL", fallback: "40", json: jsonNumber,
			words: levelNames[:], assign: into(&s.LogLevel, parseLevel),
			help: "Log level of the program, by number or name: " + levelHelp},
		choiceOption(AddedFlags, "log-format", &s.LogFormat, logAuto,
			"Log on stderr as lines of text or of JSON; auto is text on a terminal, else json",
			logAuto, LogText, LogJSON),
	}
}

// jsonOption names the parameter file, which is read before all others are merged.
func jsonOption() option {
	return option{
		group: DOCAFlags, name: "json", short: "j", value: "FILE", offers: FileValues, json: jsonNone,
		assign: func(string) error { return nil },
		help:   "Parameter file in DOCA's JSON form; may have comments and trailing commas",
	}
}

// outputOption is -o of the commands that write text or JSON; help says what is written, and where.
func outputOption(form *OutputForm, help string) option {
	return withLetter("o", choiceOption(AddedFlags, "output", form, OutputText, help, OutputText, OutputJSON))
}

func quietOption(quiet *bool, help string) option {
	return withLetter("q", switchOption(AddedFlags, quietName, quiet, help))
}

func makePathOption(make *bool) option {
	return switchOption(AddedFlags, "mkpath", make, "Create missing directories above the target")
}

func driverOptions(s *Driver) []option {
	return []option{
		choiceOption(AddedFlags, "driver", &s.Name, DriverAuto,
			"DOCA's libraries or the software device; auto is DOCA if it loads and finds a device. ucx: to "+
				"other machines, and fail if UCX does not load", DriverAuto, DriverDOCA, DriverSoft, DriverUCX),
		switchOption(AddedFlags, "require-hw", &s.RequireHW,
			"Fail rather than use the software device; refused for other machines, which use no device"),
		directoryOption(AddedFlags, "doca-libdir", &s.LibraryDir,
			"Directory of DOCA's libraries; if not given, the loader's path and DOCA's own directories"),
	}
}

func deviceOption(device *string) option {
	return option{
		group: ProgramFlags, name: "pci-addr", short: "p", alias: "dev-pci", aliasKey: "d", value: "DEVICE",
		json: jsonText, offers: DeviceValues, assign: into(device, parseDevice),
		help: "Device: PCI address, IB or net device name; needed only where more than one device fits",
	}
}

func representorOption(representor *string) option {
	return option{
		group: ProgramFlags, name: "rep-pci", short: "r", value: "DEVICE",
		json: jsonText, offers: RepresentorValues, assign: into(representor, parseRepresentor),
		help: "Host function of the other side, DPU only: PCI address, or VUID or net device name of its representor",
	}
}

// representorsOption is representorOption of a command that serves several host functions.
func representorsOption(representors *[]string) option {
	opt := representorOption(nil)
	opt.json, opt.list = jsonList, opt.name
	opt.assign = appending(representors, parseRepresentor)
	opt.help += "; may be repeated"
	return opt
}

func roleOption(role *Role) option {
	return choiceOption(AddedFlags, "role", role, RoleAuto,
		"Role of this side; auto is dpu where the device can be a server or -r is given", RoleAuto, RoleHost, RoleDPU)
}

func waitOption(wait *time.Duration) option {
	return durationOption(AddedFlags, "wait", wait, "30s", parsePositiveDuration,
		"Timeout for the peer to connect and be free; either side may start first")
}

func timeoutOption(limit *time.Duration) option {
	return durationOption(AddedFlags, "timeout", limit, "0", parseLimit, "Timeout for the whole run; 0 is none")
}

func idleTimeoutOption(patience *time.Duration, help string) option {
	return durationOption(AddedFlags, "idle-timeout", patience, "30s", parsePositiveDuration, help)
}

const idleTimeoutHelp = "Timeout without progress"

// options select the device and the peer behind it, and how long to wait for that peer.
func (r *Reach) options() []option {
	return []option{
		deviceOption(&r.Device), representorOption(&r.Representor), roleOption(&r.Role),
		waitOption(&r.Wait), timeoutOption(&r.Timeout), idleTimeoutOption(&r.IdleTimeout, idleTimeoutHelp),
	}
}

// pathOption selects a path. Only some are offered; a path of the other kind is refused when the peer is known.
func pathOption(group FlagGroup, path *PathChoice, help string, offered []PathChoice) option {
	opt := choiceOption(group, "path", path, PathAuto, help, withAuto(everyPath())...)
	opt.words = textsOf(withAuto(offered)...)
	return opt
}

func maxEntriesOption(limit *int64, help string) option {
	return countOption(NativeFlags, "max-entries", limit, "0", 0, math.MaxInt64, help)
}

func bandwidthOption(rate *int64, help string) option {
	opt := sizeOption(NativeFlags, "bwlimit", rate, "0", help)
	opt.value, opt.assign = "RATE", into(rate, parseRate)
	return opt
}

// placementOptions select the CPUs of the process.
func placementOptions(wish *placement.Wish) []option {
	return []option{
		{group: AddedFlags, name: "numa", value: "auto|off|NODE", fallback: placement.NodeAuto, json: jsonNumber,
			assign: into(&wish.Node, placement.ParseNode), words: []string{placement.NodeAuto, placement.NodeOff},
			help: "Pin the process to a NUMA node's CPUs, and so by default to its memory; auto is the node of the " +
				"device, if hardware"},
		{group: AddedFlags, name: "cores", value: "LIST", json: jsonNumber,
			assign: into(&wish.Cores, placement.ParseList),
			help:   "Pin the process to these CPUs, such as 0-3,8, instead of a node's"},
	}
}
