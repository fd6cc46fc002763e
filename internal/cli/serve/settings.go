package serve

import (
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Settings holds the settings of serve: the copy settings that it has, for the daemon's side of each copy. All other
// copy settings are zero.
type Settings struct {
	copying.Settings
	contact.Network
	Listen            netip.AddrPort // for other machines; not valid: not given
	Paths             []device.Path  // that are permitted; nil: auto
	Shares            []share.Share  // at least one after Validate, with names that differ
	Representors      []string       // DPU side; empty: not given
	Keys              string         // as for a Contact
	Auth              contact.AuthChoice
	MaxConnections    int   // at once; at least one
	MaxKeyConnections int   // at once of one key; at least one
	MaxTransfers      int   // at once; at least one
	MaxMemory         int64 // bytes of the buffers of all connections; 0 is no limit
	DrainTimeout      time.Duration
	Metrics           string // address; empty: none
	StatusPage        bool   // at the address of Metrics; only with one, after Validate
	AuditLog          string // file, Stream for stderr; empty: none
	RuntimeDir        string // empty: the default one
	Socket            string // empty: the default one

	file   string // of --json
	reload func() (*Settings, error)
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(device.GeneralOptions(&s.Logging, &s.Driver), s.EngineOptions(), []option.Option{
		device.RoleOption(&s.Role),
		option.Quiet(&s.Quiet, "Print neither the ready line nor texts of pings"),
		option.Everyday(option.Rate(option.NativeFlags, "bwlimit", &s.Options.Bandwidth, "0",
			"Bandwidth limit of all copies together in bytes per second, such as 100MiB; 0 is no limit")).
			In(option.TopicLimits),
	}, s.DemandOptions(), s.shareOptions(), s.Network.Table(), contact.IdentityOptions(&s.Keys, &s.Auth),
		s.limitOptions(),
		s.watchOptions())
}

// shareOptions select what is served, and to whom.
func (s *Settings) shareOptions() []option.Option {
	return []option.Option{
		{Group: option.ServeFlags, Everyday: true, Name: "share", Value: "NAME=PATH[,RIGHTS]", JSON: option.JSONList,
			List:   "share",
			Assign: option.Appending(&s.Shares, option.ParseAs("a share", share.Parse)),
			Help: "Directory that peers may use, with ro (the default), wo or rw, nooverwrite, privileged, " +
				"max-bytes=SIZE and max-entries=COUNT; may be repeated"},
		device.Representors(&s.Representors),
		option.Everyday(contact.ListenOption(&s.Listen,
			"Serve other machines at this address, or at all with :PORT; the default port is 7483. Without -p and -r "+
				"no device is served then")),
		{Group: option.ServeFlags, Topic: option.TopicDevice, Name: "path", Value: "LIST",
			Default: string(device.PathAuto), JSON: option.JSONText,
			Assign: option.Into(&s.Paths, device.ParsePathList),
			Words:  option.Texts(device.WithAuto(device.EveryPath())...), Several: true,
			Help: "Permitted paths of file data, with commas: dma and fast of a device; tls, tcp, am and rma to " +
				"other machines. auto, and a list without any of a kind, is dma, fast and tls; tcp does not encrypt, " +
				"and am and rma are for machines that trust each other"},
	}
}

func (s *Settings) limitOptions() []option.Option {
	return option.About(option.TopicLimits,
		option.Count(option.ServeFlags, "max-connections", &s.MaxConnections, "64", 1, option.MaxCount,
			"Connections at once; more are refused"),
		option.Count(option.ServeFlags, "max-key-connections", &s.MaxKeyConnections, "16", 1, option.MaxCount,
			"The same of one key"),
		option.Count(option.ServeFlags, "max-transfers", &s.MaxTransfers, "4", 1, option.MaxCount,
			"Copies at once; more wait, and keys take turns"),
		option.Size(option.ServeFlags, "max-memory", &s.MaxMemory, "1GiB", "Buffers of all connections; 0 is no limit"),
		option.Duration(option.ServeFlags, "drain-timeout", &s.DrainTimeout, "30s", option.ParseLimit,
			"Time for running copies to end after SIGTERM; then they are stopped, and can be resumed"))
}

func (s *Settings) watchOptions() []option.Option {
	return []option.Option{
		option.Everyday(option.Text(option.ServeFlags, "metrics", "ADDRESS", &s.Metrics, parseMetrics,
			"Serve metrics for Prometheus on a loopback address such as 127.0.0.1:9469, or on unix:PATH")),
		option.Everyday(option.Switch(option.ServeFlags, "status-page", &s.StatusPage,
			"At the address of --metrics, also serve a page for browsers: peers, paths, rates, failures. Every user "+
				"of this machine can read a loopback address")),
		option.Everyday(option.File(option.ServeFlags, "audit-log", "FILE", &s.AuditLog,
			"Append a JSON line for each request; - is stderr")),
		option.Directory(option.ServeFlags, "runtime-dir", &s.RuntimeDir,
			"Directory of the lock that keeps a second daemon from starting, and of the socket; default "+
				"RUNTIME_DIRECTORY, else /run/dma-copy (root), else XDG_RUNTIME_DIR/dma-copy, else /tmp/dma-copy-UID"),
		option.File(option.AddedFlags, "socket", "PATH", &s.Socket,
			"Socket for dma-copy status; default status.sock in the runtime directory"),
	}
}

// Loaded lets Reload load the settings again.
func (s *Settings) Loaded(l option.Loaded) {
	s.file = l.ParameterFile
	s.reload = func() (*Settings, error) {
		var now Settings
		if err := l.Again(&now); err != nil {
			return nil, err
		}
		return &now, now.Validate()
	}
}

// Validate checks the settings of serve against each other.
func (s *Settings) Validate() error {
	names := map[string]bool{}
	for i, served := range s.Shares {
		var err error
		if s.Shares[i].Path, err = filepath.Abs(served.Path); err != nil {
			return exit.Usagef("share %s: %w", quote.Bare(served.Name), err)
		}
		if names[served.Name] {
			return exit.Usagef("--share %s is given twice: give each share a name of its own", quote.Bare(served.Name))
		}
		names[served.Name] = true
	}
	if len(s.Shares) == 0 {
		return exit.Usagef("--share is missing: name a directory that peers may use, as in --share inbox=/srv/inbox,rw")
	}
	for _, representor := range s.Representors {
		if err := device.ValidateSide(s.Role, representor); err != nil {
			return err
		}
	}
	if s.StatusPage && s.Metrics == "" {
		return exit.Usagef("--status-page needs an address: give --metrics 127.0.0.1:9469, or --metrics unix:PATH")
	}
	if err := s.validateNetwork(); err != nil {
		return err
	}
	s.ChooseDigest(s.Auth)
	return device.ValidatePlacement(s.Placement)
}

// ServesNetwork reports whether the daemon listens for other machines.
func (s *Settings) ServesNetwork() bool { return s.Listen.IsValid() }

// ServesDevice reports whether the daemon serves commands on the other side of a device. With --listen it does so only
// if a device is named.
func (s *Settings) ServesDevice() bool {
	return !s.ServesNetwork() || s.Device != "" || len(s.Representors) > 0
}

// DevicePath returns the path that the daemon permits over a device.
func (s *Settings) DevicePath() device.Path {
	if listed := intersection(s.Paths, device.DevicePaths); len(listed) == 1 {
		return listed[0]
	}
	return device.PathAuto
}

// NetworkPaths returns the paths that the daemon permits to other machines: tls unless others are listed.
func (s *Settings) NetworkPaths() []device.Path {
	listed := intersection(s.Paths, device.NetworkPaths)
	if s.Encrypt || len(listed) == 0 {
		return []device.Path{device.PathTLS}
	}
	return listed
}

// UsesUCX reports whether the daemon uses UCX: only for a path that is listed.
func (s *Settings) UsesUCX() bool {
	return s.ServesNetwork() && len(intersection(s.NetworkPaths(), []device.Path{device.PathMessages,
		device.PathRMA})) > 0
}

// validateNetwork checks what is about other machines.
func (s *Settings) validateNetwork() error {
	for _, path := range s.Paths {
		switch {
		case path.IsNetwork() && !s.ServesNetwork():
			return exit.Usagef("--path %s is for connections with other machines: give --listen ADDRESS:PORT, too",
				path)
		case !path.IsNetwork() && !s.ServesDevice():
			return exit.Usagef("--path %s is for devices, and --listen alone serves none: name one with -p, or leave "+
				"%[1]s out", path)
		case s.Encrypt && path.IsNetwork() && path != device.PathTLS:
			return exit.Usagef("--encrypt conflicts with --path %s: only tls encrypts file data", path)
		}
	}
	switch {
	case s.Encrypt && s.ServesDevice():
		return exit.Usagef("--encrypt conflicts with serving a device: file data over it is not encrypted, so serve " +
			"other machines (--listen) by a daemon of its own, or permit tls only with --path tls")
	case s.Driver.Name == string(connect.DriverUCX) && s.ServesDevice():
		return connect.CheckDriver(s.Driver.Options())
	case s.ServesNetwork() && !s.ServesDevice() && s.Driver.RequireHW:
		return s.Driver.ValidateForNetwork()
	case s.ServesNetwork() && s.Auth == contact.AuthNone && !s.Listen.Addr().IsLoopback():
		return exit.Usagef("--auth none with --listen %s would serve anybody on the network: listen on 127.0.0.1 or "+
			"[::1], or use keys", s.Listen)
	}
	return nil
}

// ParameterFile returns the path of the --json file, empty if there is none.
func (s *Settings) ParameterFile() string { return s.file }

// Reload returns the settings as they are now, by the same command line and environment and the files of today.
func (s *Settings) Reload() (*Settings, error) { return s.reload() }

// FileGroup returns the group of the parameter file that only serve reads.
func (s *Settings) FileGroup() string { return option.GroupServe }

func intersection(some, known []device.Path) []device.Path {
	return slices.DeleteFunc(slices.Clone(known), func(each device.Path) bool { return !slices.Contains(some, each) })
}

// unixAddress is how the address of a socket begins.
const unixAddress = "unix:"

// parseMetrics refuses addresses that other machines can reach.
func parseMetrics(text string) (string, error) {
	if path, is := strings.CutPrefix(text, unixAddress); is {
		path, err := option.ParsePath(path)
		return unixAddress + path, err
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return "", errors.New("not an address; give an IP address and a port such as 127.0.0.1:9469, or unix:PATH")
	}
	if !at.Addr().IsLoopback() {
		return "", errors.New("not a loopback address; give 127.0.0.1 or [::1] with a port, or unix:PATH")
	}
	return text, nil
}
