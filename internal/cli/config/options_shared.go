package config

import (
	"math"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/placement"
)

// commonOptions are those of every command that opens a driver.
func commonOptions(log *option.Logging, driver *Driver) []option.Option {
	return append(generalOptions(log, driver), driverOptions(driver)...)
}

// generalOptions are those of every DOCA program, and the format of the log.
func generalOptions(log *option.Logging, driver *Driver) []option.Option {
	return append(log.LogOptions(), driverLogOption(driver), option.ParameterFile())
}

func driverLogOption(driver *Driver) option.Option {
	return option.Option{
		Group: option.DOCAFlags, Name: option.SDKLogLevelName, Value: "LEVEL", Default: "40", JSON: option.JSONNumber,
		Words:  option.LevelNames[:],
		Assign: option.Into(&driver.LogLevel, option.ParseLevel), Help: "The same for the driver's own messages",
	}
}

func makePathOption(make *bool) option.Option {
	return option.Switch(option.AddedFlags, "mkpath", make, "Create missing directories above the target")
}

func driverOptions(s *Driver) []option.Option {
	return []option.Option{
		option.Choice(option.AddedFlags, "driver", &s.Name, DriverAuto,
			"DOCA's libraries or the software device; auto is DOCA if it loads and finds a device. ucx: to other "+
				"machines, and fail if UCX does not load", DriverAuto, DriverDOCA, DriverSoft, DriverUCX),
		option.Switch(option.AddedFlags, "require-hw", &s.RequireHW,
			"Fail rather than use the software device; refused for other machines, which use no device"),
		option.Directory(option.AddedFlags, "doca-libdir", &s.LibraryDir,
			"Directory of DOCA's libraries; if not given, the loader's path and DOCA's own directories"),
	}
}

func deviceOption(device *string) option.Option {
	return option.Option{
		Group: option.ProgramFlags, Name: "pci-addr", Short: "p", Alias: "dev-pci", AliasShort: "d", Value: "DEVICE",
		JSON: option.JSONText, Find: findDevices, Assign: option.Into(device, option.ParseDevice),
		Help: "Device: PCI address, IB or net device name; needed only where more than one device fits",
	}
}

func representorOption(representor *string) option.Option {
	return option.Option{
		Group: option.ProgramFlags, Name: "rep-pci", Short: "r", Value: "DEVICE",
		JSON: option.JSONText, Find: findRepresentors, Assign: option.Into(representor,
			option.ParseRepresentor),
		Help: "Host function of the other side, DPU only: PCI address, or VUID or net device name of its representor",
	}
}

// representorsOption is representorOption of a command that serves several host functions.
func representorsOption(representors *[]string) option.Option {
	opt := representorOption(nil)
	opt.JSON, opt.List = option.JSONList, opt.Name
	opt.Assign = option.Appending(representors, option.ParseRepresentor)
	opt.Help += "; may be repeated"
	return opt
}

func roleOption(role *inventory.Role) option.Option {
	return option.Choice(option.AddedFlags, "role", role, inventory.RoleAuto,
		"Role of this side; auto is dpu where the device can be a server or -r is given", inventory.RoleAuto,
		inventory.RoleHost, inventory.RoleDPU)
}

func waitOption(wait *time.Duration) option.Option {
	return option.Duration(option.AddedFlags, "wait", wait, "30s", option.ParsePositiveDuration,
		"Timeout for the peer to connect and be free; either side may start first")
}

func timeoutOption(limit *time.Duration) option.Option {
	return option.Duration(option.AddedFlags, "timeout", limit, "0", option.ParseLimit,
		"Timeout for the whole run; 0 is none")
}

func idleTimeoutOption(patience *time.Duration, help string) option.Option {
	return option.Duration(option.AddedFlags, "idle-timeout", patience, "30s", option.ParsePositiveDuration, help)
}

const idleTimeoutHelp = "Timeout without progress"

// Table select the device and the peer behind it, and how long to wait for that peer.
func (r *Reach) Table() []option.Option {
	return []option.Option{
		deviceOption(&r.Device), representorOption(&r.Representor), roleOption(&r.Role),
		waitOption(&r.Wait), timeoutOption(&r.Timeout), idleTimeoutOption(&r.IdleTimeout, idleTimeoutHelp),
	}
}

// pathOption selects a path. Only some are offered; a path of the other kind is refused when the peer is known.
func pathOption(group option.Group, path *PathChoice, help string, offered []PathChoice) option.Option {
	opt := option.Choice(group, "path", path, PathAuto, help, withAuto(everyPath())...)
	opt.Words = option.Texts(withAuto(offered)...)
	return opt
}

func maxEntriesOption(limit *int64, help string) option.Option {
	return option.Count(option.NativeFlags, "max-entries", limit, "0", 0, math.MaxInt64, help)
}

func bandwidthOption(rate *int64, help string) option.Option {
	opt := option.Size(option.NativeFlags, "bwlimit", rate, "0", help)
	opt.Value, opt.Assign = "RATE", option.Into(rate, option.ParseRate)
	return opt
}

// placementOptions select the CPUs of the process.
func placementOptions(wish *placement.Wish) []option.Option {
	return []option.Option{
		{Group: option.AddedFlags, Name: "numa", Value: "auto|off|NODE", Default: placement.NodeAuto,
			JSON:   option.JSONNumber,
			Assign: option.Into(&wish.Node, placement.ParseNode), Words: []string{placement.NodeAuto,
				placement.NodeOff},
			Help: "Pin the process to a NUMA node's CPUs, and so by default to its memory; auto is the node of the " +
				"device, if hardware"},
		{Group: option.AddedFlags, Name: "cores", Value: "LIST", JSON: option.JSONNumber,
			Assign: option.Into(&wish.Cores, placement.ParseList), Excludes: []string{"numa"},
			Help: "Pin the process to these CPUs, such as 0-3,8, instead of a node's"},
	}
}
