package device

import (
	"slices"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Driver holds which driver to open, and how.
type Driver struct {
	Name       string       // DriverAuto, DriverDOCA, DriverSoft or connect.DriverUCX
	RequireHW  bool         // refuse anything but hardware
	LibraryDir string       // where DOCA's libraries are; empty: where they are usually installed
	LogLevel   option.Level // of the driver's own log
}

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

// Path is how the content of files is copied, or how a ping is sent.
type Path string

const (
	PathAuto Path = "auto" // by DMA if both sides can, otherwise over producers and consumers
	PathDMA  Path = "dma"
	PathFast Path = "fast"

	// Between machines, where auto is tls: the others are used only if both sides name them.
	PathTLS      Path = "tls" // a TLS connection for each lane
	PathTCP      Path = "tcp" // the same, without encryption after authentication
	PathMessages Path = "am"  // active messages of UCX
	PathRMA      Path = "rma" // remote memory access of UCX
)

// IdleTimeoutHelp is the help of IdleTimeout where it means no more than its name.
const IdleTimeoutHelp = "Timeout without progress"

// Table are the options that select the device and the peer behind it, and how long to wait for that peer.
func (r *Reach) Table() []option.Option {
	return append([]option.Option{
		Option(&r.Device), Representor(&r.Representor), RoleOption(&r.Role),
	}, r.TimeOptions()...)
}

// TimeOptions are how long to wait for the peer.
func (r *Reach) TimeOptions() []option.Option {
	return []option.Option{Wait(&r.Wait), Timeout(&r.Timeout), IdleTimeout(&r.IdleTimeout, IdleTimeoutHelp)}
}

const (
	DriverAuto = "auto"
	DriverDOCA = "doca"
	DriverSoft = "soft"
)

// CommonOptions are the options of every command that opens a driver.
func CommonOptions(log *option.Logging, driver *Driver) []option.Option {
	return append(GeneralOptions(log, driver), DriverOptions(driver)...)
}

// GeneralOptions are the options of every DOCA program, and the format of the log.
func GeneralOptions(log *option.Logging, driver *Driver) []option.Option {
	return append(log.LogOptions(), DriverLogOption(driver), option.ParameterFile())
}

// DriverLogOption is the level of the driver's own log.
func DriverLogOption(driver *Driver) option.Option {
	return option.Option{
		Group: option.DOCAFlags, Topic: option.TopicOutput, Name: option.SDKLogLevelName, Value: "LEVEL",
		Default: "40", JSON: option.JSONNumber, Words: option.LevelNames[:],
		Assign: option.Into(&driver.LogLevel, option.ParseLevel), Help: "The same for the driver's own messages",
	}
}

// DriverOptions select the driver.
func DriverOptions(s *Driver) []option.Option {
	return option.About(option.TopicDevice,
		option.Choice(option.AddedFlags, "driver", &s.Name, DriverAuto,
			"DOCA's libraries or the software device; auto is DOCA if it loads and finds a device. ucx: to other "+
				"machines, and fail if UCX does not load",
			DriverAuto, DriverDOCA, DriverSoft, string(connect.DriverUCX)),
		option.Switch(option.AddedFlags, "require-hw", &s.RequireHW,
			"Fail rather than use the software device; refused for other machines, which use no device"),
		option.Directory(option.AddedFlags, "doca-libdir", &s.LibraryDir,
			"Directory of DOCA's libraries; if not given, the loader's path and DOCA's own directories"))
}

// Option selects the device of this side.
func Option(device *string) option.Option {
	return option.Option{
		Group: option.ProgramFlags, Topic: option.TopicDevice, Everyday: true, Name: "pci-addr", Short: "p",
		Alias: "dev-pci", AliasShort: "d", Value: "DEVICE",
		JSON: option.JSONText, Find: findDevices, Assign: option.Into(device, option.ParseDevice),
		Help: "Device: PCI address, IB or net device name; needed only where more than one device fits",
	}
}

// Representor selects the host function of the other side, on the DPU.
func Representor(representor *string) option.Option {
	return option.Option{
		Group: option.ProgramFlags, Topic: option.TopicDevice, Everyday: true, Name: "rep-pci", Short: "r",
		Value: "DEVICE", JSON: option.JSONText, Find: findRepresentors,
		Assign: option.Into(representor, option.ParseRepresentor),
		Help:   "Host function of the other side, DPU only; PCI address, or VUID or net device name of its representor",
	}
}

// Representors is Representor of a command that serves several host functions.
func Representors(representors *[]string) option.Option {
	opt := Representor(nil)
	opt.JSON, opt.List = option.JSONList, opt.Name
	opt.Assign = option.Appending(representors, option.ParseRepresentor)
	opt.Help += "; may be repeated"
	return opt
}

// RoleOption selects which side this is.
func RoleOption(role *inventory.Role) option.Option {
	return option.Choice(option.AddedFlags, "role", role, inventory.RoleAuto,
		"Role of this side; auto is dpu where the device can be a server or -r is given", inventory.RoleAuto,
		inventory.RoleHost, inventory.RoleDPU).In(option.TopicDevice)
}

// Wait limits the wait for the peer.
func Wait(wait *time.Duration) option.Option {
	return option.Duration(option.AddedFlags, "wait", wait, "30s", option.ParsePositiveDuration,
		"Timeout for the peer to connect and be free; either side may start first").In(option.TopicLimits)
}

// Timeout limits the whole run.
func Timeout(limit *time.Duration) option.Option {
	return option.Duration(option.AddedFlags, "timeout", limit, "0", option.ParseLimit,
		"Timeout for the whole run; 0 is none").In(option.TopicLimits)
}

// IdleTimeout limits the time without progress.
func IdleTimeout(grace *time.Duration, help string) option.Option {
	return option.Duration(option.AddedFlags, "idle-timeout", grace, "30s", option.ParsePositiveDuration, help).
		In(option.TopicLimits)
}

// PathOption selects a path. Only some are offered; a path of the other kind is refused when the peer is known.
func PathOption(group option.Group, path *Path, help string, offered []Path) option.Option {
	opt := option.Choice(group, "path", path, PathAuto, help, WithAuto(EveryPath())...)
	opt.Words = option.Texts(WithAuto(offered)...)
	return opt.In(option.TopicDevice)
}

// PlacementOptions select the CPUs of the process.
func PlacementOptions(wish *placement.Wish) []option.Option {
	return option.About(option.TopicDevice, []option.Option{
		{Group: option.AddedFlags, Name: "numa", Value: "auto|off|NODE", Default: placement.NodeAuto,
			JSON:   option.JSONNumber,
			Assign: option.Into(&wish.Node, placement.ParseNode), Words: []string{placement.NodeAuto,
				placement.NodeOff},
			Help: "Pin the process to a NUMA node's CPUs, and so by default to its memory; auto is the node of the " +
				"device, if hardware"},
		{Group: option.AddedFlags, Name: "cores", Value: "LIST", JSON: option.JSONNumber,
			Assign: option.Into(&wish.Cores, placement.ParseList), Excludes: []string{"numa"},
			Help: "Pin the process to these CPUs, such as 0-3,8, instead of a node's"},
	}...)
}

// ValidateForDevice refuses a path that a device does not have.
func (p Path) ValidateForDevice() error {
	if !p.IsNetwork() {
		return nil
	}
	return exit.Usagef("--path %s is for daemons on other machines (ucx://HOST:PORT/SHARE/PATH): "+
		"over a device give auto, dma or fast", p)
}

// ValidateForNetwork refuses what only a device can do.
func (s Driver) ValidateForNetwork() error {
	if s.RequireHW {
		return exit.Usagef("--require-hw refuses the software device, and a connection with another machine uses no " +
			"device: leave it out, or insist on RDMA devices with --path rma")
	}
	return nil
}

// Options returns the options for doca.Open.
func (s Driver) Options() doca.Options {
	return doca.Options{
		Choice: doca.Choice(s.Name), RequireHardware: s.RequireHW, LibraryDir: s.LibraryDir, LogLevel: int(s.LogLevel),
	}
}

// NetworkPaths are the choices of --path between machines, DevicePaths the choices for a device.
var (
	DevicePaths  = []Path{PathDMA, PathFast}
	NetworkPaths = []Path{PathTLS, PathTCP, PathMessages, PathRMA}
)

// IsNetwork reports whether the path is one between machines.
func (p Path) IsNetwork() bool { return slices.Contains(NetworkPaths, p) }

// ValidateSide refuses a representor on the host.
func ValidateSide(role inventory.Role, representor string) error {
	if role != inventory.RoleHost || representor == "" {
		return nil
	}
	return exit.Usagef("--rep-pci %q conflicts with --role host: "+
		"only the DPU side has representors, so leave one of them out", representor)
}

// ValidatePlacement returns an error if the wish has both CPUs and a NUMA node.
func ValidatePlacement(wish placement.Wish) error {
	if wish.Cores.Empty() || !wish.Node.HasNumber() {
		return nil
	}
	return exit.Usagef("--cores %s conflicts with --numa %s: both select the CPUs, so leave one of them out",
		quote.Bare(wish.Cores.String()), wish.Node)
}

// ParsePathList parses the paths that a daemon permits. Nil is auto.
func ParsePathList(text string) ([]Path, error) {
	if text == string(PathAuto) {
		return nil, nil
	}
	return option.ParseList(option.ParseOneOf(EveryPath()...))(text)
}

// EveryPath returns all paths but auto.
func EveryPath() []Path { return slices.Concat(DevicePaths, NetworkPaths) }

// WithAuto returns the paths and the choice of one.
func WithAuto(paths []Path) []Path { return append([]Path{PathAuto}, paths...) }

// networkPaths are the paths of network connections by their names.
var networkPaths = map[Path]wire.Path{
	PathTLS: wire.PathTLS, PathMessages: wire.PathMessages, PathRMA: wire.PathRMA, PathTCP: wire.PathTCP,
}

// WirePaths returns the paths of network connections with some names.
func WirePaths(named []Path) (paths job.Paths) {
	for _, path := range named {
		paths |= job.PathsOf(networkPaths[path])
	}
	return paths
}
