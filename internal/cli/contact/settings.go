package contact

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// Contact holds how a command finds a daemon, and how the two prove who they are.
type Contact struct {
	Keys       string // directory of this side's key and of the trusted keys; empty: the default one
	Auth       AuthChoice
	TrustFirst bool         // trust the key of a daemon while none is trusted
	Peers      option.Peers // by the parameter files
	Network

	WaitGiven bool // --wait is not the default: a daemon may be started later

	deviceByFlag, RepresentorByFlag bool // these were named on the command line
}

// Network holds the settings of connections with other machines. A time or count of acknowledgements that is 0 follows
// from the idle timeout.
type Network struct {
	Encrypt      bool // file data must be encrypted
	ucx.Settings      // TrafficClass, 0 to 255, also applies to TCP; Reads and Transports are not set
}

// Places holds what the commands have that do something in shares, other than copies: ls, mkdir and rm.
type Places struct {
	Contact
	option.Logging
	device.Reach
	Output  option.OutputForm
	Started Started        // the zero value reads
	Remote  []share.Remote // the arguments, at least one after SetPaths, all at one daemon
}

// AuthChoice is how the peer of a service session is authenticated.
type AuthChoice string

const (
	AuthKeys AuthChoice = "keys" // its key must be trusted
	AuthNone AuthChoice = "none" // not at all
)

// Place is an argument that names a file on this side or in a share.
type Place struct {
	Local  string
	Remote share.Remote
	IsPeer bool // remote holds it
}

// Table returns the options of every command that talks to a daemon.
func (s *Contact) Table() []option.Option {
	return append(IdentityOptions(&s.Keys, &s.Auth), option.Switch(option.AddedFlags, "trust-first", &s.TrustFirst,
		"Trust the key of a daemon where none is trusted yet: compare its words with those that dma-copy keys show "+
			"prints on the other side").In(option.TopicTrust))
}

// Table returns the options of a copy.
func (n *Network) Table() []option.Option { return append(n.dataOptions(), n.TrafficClassOption()) }

// IdentityOptions select the keys of this side and whether the peer must have one that is trusted.
func IdentityOptions(keys *string, auth *AuthChoice) []option.Option {
	return option.About(option.TopicTrust,
		option.Directory(option.AddedFlags, "keys", keys,
			"Directory of this side's key and of the trusted keys, see dma-copy keys --help"),
		option.Choice(option.AddedFlags, "auth", auth, AuthKeys,
			"keys: the peer must have a trusted key; none: anybody may be the peer", AuthKeys, AuthNone))
}

// OutputOfChanges is the help of --output where shares are changed.
const OutputOfChanges = "text prints failures only; json is a line for each change or failure on stdout"

// PeerOptions are about the daemon of a command in shares.
func (s *Places) PeerOptions() []option.Option {
	return append([]option.Option{s.Network.TrafficClassOption()}, s.Contact.Table()...)
}

// ListenOption is the address at which a daemon serves other machines.
func ListenOption(listen *netip.AddrPort, help string) option.Option {
	return option.Text(option.ServeFlags, "listen", "ADDRESS:PORT", listen,
		option.ParseAs("an address", share.ParseListen), help)
}

// Limits of the options.
const (
	maxNetDevices = 16
	maxAckRetries = 6 // 7, the most that a device has, means to try for ever
	maxAckTimeout = 10 * time.Minute
	maxGIDIndex   = 255

	maxTrafficClass = 255
)

// dataOptions are about the data connections of copies between machines.
func (n *Network) dataOptions() []option.Option {
	return option.About(option.TopicNetwork, []option.Option{
		option.Switch(option.NativeFlags, "encrypt", &n.Encrypt,
			"ucx: fail rather than copy without encryption; permits --path tls only"),
		option.Text(option.AddedFlags, "net-devices", "LIST", &n.NetDevices, parseNetDevices,
			"ucx: network devices that UCX may use, such as mlx5_0:1,eth0; see devices --driver ucx"),
		option.Duration(option.AddedFlags, "ack-timeout", &n.AckTimeout, "0", parseAckTimeout,
			"ucx: time after which an RDMA device sends a packet again that is not acknowledged; 0 is derived from "+
				"--idle-timeout"),
		option.Count(option.AddedFlags, "ack-retries", &n.AckRetries, "0", 0, maxAckRetries,
			"ucx: how often, 1 to 6; 0 is derived from --idle-timeout"),
		{Group: option.AddedFlags, Name: "gid-index", Value: "auto|INDEX", Default: gidAuto, JSON: option.JSONNumber,
			Assign: option.Into(&n.GIDIndex, parseGIDIndex), Words: []string{gidAuto},
			Help: "ucx: entry of the RDMA device's GID table, for RoCE version and address"},
		option.Size(option.AddedFlags, "device-memory", &n.DeviceMemory, "0",
			"ucx: bytes of the RDMA device's own memory for each buffer of short messages; 0: UCX's choice"),
	}...)
}

// TrafficClassOption is for every command that connects to another machine.
func (n *Network) TrafficClassOption() option.Option {
	return option.Count(option.AddedFlags, "traffic-class", &n.TrafficClass, "0", 0, maxTrafficClass,
		"ucx: ToS byte of TCP and RDMA packets, which is 4 times the DSCP; 0 to 255. UCX over TCP does not set it "+
			"(--path am)").In(option.TopicNetwork)
}

// Loaded takes over what is not an option: the peers of the files, and what the command line named itself.
func (s *Contact) Loaded(l option.Loaded) {
	s.Peers, s.WaitGiven = l.Peers, !l.IsDefault("wait")
	s.deviceByFlag = l.Flags.Changed("pci-addr") || l.Flags.Changed("dev-pci")
	s.RepresentorByFlag = l.Flags.Changed("rep-pci")
}

// SetPlaces sets the arguments of a command, which does that with each; takes describes its arguments.
func (s *Places) SetPlaces(args []string, does, takes string) error {
	if len(args) == 0 {
		return exit.Usagef("PEER is missing: dma-copy %s", takes)
	}
	for _, arg := range args {
		at, err := ParsePlace("PATH", arg)
		switch {
		case err != nil:
			return err
		case !at.IsPeer:
			return exit.Usagef("PATH %s is on this side: dma-copy %s", quote.Text(arg), takes)
		case len(s.Remote) > 0 && at.Remote.Daemon() != s.Remote[0].Daemon():
			return exit.Usagef("the paths have different peers (%s and %s): %s each with a command of its own",
				quote.Text(s.Remote[0].Daemon()), quote.Text(at.Remote.Daemon()), does)
		}
		s.Remote = append(s.Remote, at.Remote)
	}
	var err error
	if s.Remote, err = share.Unite(s.Remote); err != nil {
		return exit.Usagef("%w", err)
	}
	return device.ValidateSide(s.Role, s.Representor)
}

// UsesPeers marks settings to which the peers of the parameter files belong.
func (s *Contact) UsesPeers() {}

// Choose returns the daemon at an address or of a name: its key, and the address, or the device and representor, by
// which this side reaches it. A device or representor on the command line comes first, then the peer's, then one that
// the command was given in any other way. An empty name means the only peer, or, where there are none, any daemon on
// the given device. A daemon at an address that a peer has must have the key of that peer.
func (s *Contact) Choose(at share.Remote, device, representor string) (option.Peer, error) {
	if at.Address != "" {
		return s.peerAt(at.Address), s.validateContact(at.Address)
	}
	known, name := slices.Sorted(maps.Keys(s.Peers)), at.Peer
	if name == "" && len(known) == 1 {
		name = known[0]
	}
	peer, found := s.Peers[name]
	switch {
	case name == "" && len(known) > 1 && !s.deviceByFlag:
		return option.Peer{}, exit.Usagef(
			"the peer is not named and the configuration has several: write %s in front of the :",
			phrase.Or(known))
	case name != "" && !found:
		return option.Peer{}, unknownPeer(name, known)
	}
	if peer.Address != "" {
		return peer, s.validateContact(peer.Address)
	}
	if s.deviceByFlag {
		peer.Device = device
	}
	if s.RepresentorByFlag {
		peer.Representor = representor
	}
	peer.Device, peer.Representor = cmp.Or(peer.Device, device), cmp.Or(peer.Representor, representor)
	return peer, nil
}

// peerAt returns the peer with the address, or one without a name.
func (s *Contact) peerAt(address string) option.Peer {
	for _, name := range slices.Sorted(maps.Keys(s.Peers)) {
		if s.Peers[name].Address == address {
			return s.Peers[name]
		}
	}
	return option.Peer{Address: address}
}

// ValidatePath refuses a path that a connection with another machine does not have, or that --encrypt does not permit.
func (n Network) ValidatePath(path device.Path) error {
	switch {
	case path != device.PathAuto && !path.IsNetwork():
		return exit.Usagef("--path %s is for devices: to another machine give auto, tls, tcp, am or rma", path)
	case n.Encrypt && path != device.PathAuto && path != device.PathTLS:
		return exit.Usagef("--encrypt conflicts with --path %s: only tls encrypts file data", path)
	}
	return nil
}

// validateContact checks how a daemon on another machine is reached.
func (s *Contact) validateContact(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err // not reached: share.ParseAddress has made it
	}
	if s.deviceByFlag || s.RepresentorByFlag {
		return exit.Usagef("-p and -r name a device, and ucx://%s is on another machine: leave them out",
			quote.Bare(address))
	}
	if s.Auth == AuthNone && !isLoopback(host) {
		return exit.Usagef("--auth none with ucx://%s: anybody on the network could be the daemon, so it is for "+
			"127.0.0.1, [::1] and localhost only: use keys", quote.Bare(address))
	}
	return nil
}

// ParsePeer parses the name of a daemon, with or without a colon, or the address of one on another machine.
func ParsePeer(text string) (share.Remote, error) {
	if strings.HasPrefix(text, share.Scheme) {
		peer, _, err := share.ParseRemote(text)
		switch {
		case err != nil:
			return peer, exit.Usagef("PEER %w", err)
		case peer.Share != "":
			return peer, exit.Usagef("PEER %s: a daemon has no share here; write %s", quote.Text(text), peer.Daemon())
		}
		return peer, nil
	}
	name := strings.TrimSuffix(text, ":")
	if name != "" && share.CheckName(name) != nil {
		return share.Remote{}, exit.Usagef(
			"PEER %s: not a peer; give its name in the configuration, : for the only one, or ucx://HOST:PORT",
			quote.Text(text))
	}
	return share.Remote{Peer: name}, nil
}

// IsShare reports whether a place is a share itself.
func IsShare(at share.Remote) bool { return at.Path == "" || at.Path == "." }

func unknownPeer(name string, known []string) error {
	if guess := phrase.Nearest(name, known); guess != "" {
		return exit.Usagef("unknown peer %s: did you mean %q?", quote.Text(name), guess)
	}
	if len(known) > 0 {
		return exit.Usagef("unknown peer %s: the configuration has %s; a local path with a colon needs ./ in front",
			quote.Text(name), phrase.And(known))
	}
	return exit.Usagef("unknown peer %s: the configuration names no peers, so leave the name out, as in :share/path; "+
		"a local path with a colon needs ./ in front", quote.Text(name))
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback() || host == "localhost"
}

// netDevicePattern is UCX's pattern: an RDMA device with a port, or a network interface.
var netDevicePattern = option.Pattern(`[A-Za-z0-9_.-]{1,64}(?::[0-9]{1,3})?`)

func parseNetDevices(text string) ([]string, error) {
	names, err := option.ParseList(parseNetDevice)(text)
	if len(names) > maxNetDevices {
		return nil, fmt.Errorf("more than %d devices; give those that a copy may use", maxNetDevices)
	}
	return names, err
}

func parseNetDevice(text string) (string, error) {
	if !netDevicePattern().MatchString(text) {
		return "",
			errors.New("not a network device; give names such as mlx5_0:1,eth0 (see dma-copy devices --driver ucx)")
	}
	return text, nil
}

func parseAckTimeout(text string) (time.Duration, error) {
	timeout, err := option.ParseDuration(text)
	if err == nil && (timeout < 0 || timeout > maxAckTimeout) {
		return 0, fmt.Errorf("out of range; give at most %s, such as 100ms, or 0 to derive it", maxAckTimeout)
	}
	return timeout, err
}

// gidAuto leaves the choice of the GID to UCX.
const gidAuto = "auto"

func parseGIDIndex(text string) (*int, error) {
	if text == gidAuto {
		return nil, nil
	}
	index, err := option.ParseCount(0, maxGIDIndex)(text)
	return &index, err
}

// ParsePlace parses an argument that is called name in errors.
func ParsePlace(name, text string) (Place, error) {
	if err := root.RefuseSecureShell(text); err != nil {
		return Place{}, err
	}
	remote, isPeer, err := share.ParseRemote(text)
	if err != nil {
		return Place{}, exit.Usagef("%s %w", name, err) // it names the text
	}
	if isPeer {
		return Place{Remote: remote, IsPeer: true}, nil
	}
	local, err := option.ParsePath(text)
	if err != nil {
		return Place{}, exit.Usagef("%s %s: %w", name, quote.Text(text), err)
	}
	return Place{Local: local}, nil
}
