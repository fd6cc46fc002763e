// Package contact connects a command to a daemon, over a device or the network, and has the options for it.
package contact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Reach is how a command reaches a daemon.
type Reach struct {
	Contact
	device.Reach
	Daemon    share.Remote      // how the user names it
	Waits     output.WaitOutput // says that the daemon is awaited
	Bandwidth int64             // bytes per second; 0 is no limit

	Validate func(network bool) error // checks the other settings; may be nil

	// For one of many daemons: open opens a device, nil if the driver is opened for this daemon alone; warned says that
	// what concerns all of them was logged.
	Open   func(chosen inventory.Selection) (*device.Side, error)
	Warned bool
}

// Conn is a command's connection to a daemon.
type Conn struct {
	*device.Side
	Client *service.Client
	Path   report.Path // with the daemon as its Peer
	stop   func()      // no longer answers requests for progress
}

// Connect connects to the daemon. Errors have the side. The context is that of the work until end: requests for
// progress are answered by what the client waits for outside of a copy, unless that is nothing.
func Connect(ctx context.Context, streams root.Streams, r Reach, log zerolog.Logger) (context.Context, *Conn, error) {
	peer, err := r.Choose(r.Daemon, r.Device, r.Representor)
	if err != nil {
		return ctx, nil, err
	}
	network := peer.Address != ""
	if err := r.check(network); err != nil {
		return ctx, nil, err
	}
	id, err := Identify(streams.Env, r.Contact, peer)
	if err != nil {
		return ctx, nil, err
	}
	if !r.Warned {
		WarnOfKeys(id, r.Auth, log)
	}
	chosen := inventory.Selection{Device: peer.Device, Representor: peer.Representor, Role: r.Role}
	on := &device.Side{Is: wire.Client, Address: peer.Address}
	switch {
	case network:
	case r.Open != nil:
		on, err = r.Open(chosen)
	default:
		on, err = device.Open(r.Driver, chosen, log)
	}
	if err != nil {
		return ctx, nil, err
	}
	c := &Conn{Side: on, stop: func() {}}
	if err = c.authenticate(ctx, r, peer, id, log); err == nil {
		err = id.remember(r.nameOfKey(), c.Client.Peer().Key, streams.Stderr)
	}
	if err != nil {
		c.End(&err)
		return ctx, nil, err
	}
	if r.Open == nil { // with many daemons there are only copies, and their reporter alone writes to stderr
		ctx, c.stop = root.AnswerBefore(ctx, func() bool {
			waits := c.Client.Waits()
			if waits != "" {
				fmt.Fprintln(streams.Stderr, waits)
			}
			return waits != ""
		})
	}
	return ctx, c, nil
}

// End closes the connection after work that ended with *err, to which it adds the side and the errors of the end.
func (c *Conn) End(err *error) {
	c.stop()
	if c.Client != nil {
		*err = errors.Join(*err, device.CloseUnlessHung(*err, c.Client.Close))
	}
	*err = report.WithSide(c.Side.Is, *err)
	c.Side.End(err)
}

// check checks the settings when it is known what the daemon is reached over.
func (r Reach) check(network bool) error {
	validateDriver := r.Driver.ValidateForDevice
	if network {
		validateDriver = r.Driver.ValidateForNetwork
	}
	if err := validateDriver(); err != nil || r.Validate == nil {
		return err
	}
	return r.Validate(network)
}

// authenticate meets the daemon and authenticates both sides.
func (c *Conn) authenticate(
	ctx context.Context, r Reach, peer option.Peer, id identification, log zerolog.Logger,
) error {
	wait := r.WaitFor(c.Side, peer)
	stop := output.Waiting(wait, r.Waits, root.ProgressRequests(ctx))
	defer stop()
	client, err := meet(ctx, c.Side, r, peer, service.ClientConfig{
		Key: id.key, Verify: id.verify, Anonymous: r.Auth == AuthNone, Software: root.SoftwareName(),
		Name: MachineName(), User: UserName(), IdleTimeout: r.IdleTimeout, Log: log,
		Waiting: func(ahead int) { log.Info().Int("copies", ahead).Msg("waiting until other copies have ended") },
	})
	if err != nil {
		return withDaemonHint(err, wait, c.Device == nil)
	}
	c.Client, c.Path = client, c.Side.Path(r.Driver)
	known := client.Peer()
	grant, _ := id.trusted.Find(known.Key)
	c.Path.Peer = &report.Peer{
		Key: grant.Name, Fingerprint: known.Key.String(), Software: known.Software,
		Machine: known.Name, User: known.User,
		Authenticated: known.Authenticates && r.Auth == AuthKeys,
	}
	return nil
}

// WaitFor describes the wait for the daemon.
func (r Reach) WaitFor(on *device.Side, peer option.Peer) report.Wait {
	return report.WaitForDaemon(on.Is, on.HostFunction(peer.Representor), peer.Address, r.Auth == AuthNone,
		r.Wait)
}

// meet connects to the daemon over the device, or over the network.
func meet(ctx context.Context, on *device.Side, r Reach, peer option.Peer, c service.ClientConfig) (*service.Client,
	error) {
	if on.Device == nil {
		c.Log.Info().Str("address", peer.Address).Msg("connecting to the daemon")
		return dial(ctx, peer.Address, r, c)
	}
	c.Log.Info().Stringer("side", on.Is).Str("device", on.Device.Info().PCIAddress).Msg("waiting for the daemon")
	return service.Dial(ctx, service.Meeting{
		Device: on.Device, Side: on.Is, Representor: peer.Representor, Wait: r.Wait,
	}, c)
}

// nameOfKey returns the name under which --trust-first trusts the key of the daemon: that of the peer, or that of its
// machine.
func (r Reach) nameOfKey() string {
	host, _, err := net.SplitHostPort(r.Daemon.Address)
	if err != nil || share.CheckName(host) != nil {
		host = "daemon"
	}
	return cmp.Or(r.Daemon.Peer, host)
}

// withDaemonHint says what is to be started where no peer has appeared.
func withDaemonHint(err error, wait report.Wait, overNetwork bool) error {
	if errors.Is(err, network.ErrNotListening) {
		next := "start it there, or give --wait to wait for it: " + wait.Start[0]
		return exit.Errorf(exit.Peer, next, "no daemon: %w", err)
	}
	if !errors.Is(err, comch.ErrPeerAbsent) {
		return err
	}
	next := wait.NextStep()
	if overNetwork {
		next = "check address and firewall, " + next
	}
	return exit.Errorf(exit.Peer, next, "no daemon: %w", err)
}

// PathForPeers returns the absolute path of a file, empty for a stream.
func PathForPeers(file string) string {
	path, err := filepath.Abs(file)
	if err != nil || file == option.Stream {
		return ""
	}
	return path
}

// MachineName returns the name of this machine for the peer, empty if it has none that can be sent.
func MachineName() string {
	name, _ := os.Hostname() // empty with an error
	return nameForPeers(name)
}

// UserName returns the name of the user of this process for the peer, empty if there is none that can be sent.
func UserName() string {
	account, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil {
		return ""
	}
	return nameForPeers(account.Username)
}

// nameForPeers returns a name if the service protocol can have it, which is printable ASCII, and otherwise nothing.
func nameForPeers(name string) string {
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if len(name) > wire.MaxSoftwareName || strings.ContainsFunc(name, unprintable) {
		return ""
	}
	return name
}
