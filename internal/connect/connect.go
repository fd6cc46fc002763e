// Package connect opens this side's driver and device, and connects to a daemon over the device or the network.
package connect

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/release"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// Daemon is how this side reaches a daemon.
type Daemon struct {
	inventory.Selection              // the device; not used with an Address
	Address             string       // HOST:PORT of a daemon on another machine; empty: over a device
	Driver              doca.Options // that opens the device; with an Address only whether it is DriverUCX
	Identity            Identity
	KeyName             string                          // under which a key is trusted that Identity trusts from now on
	Trusted             func(name, words string)        // is told of such a key
	Waiting             func(report.Wait) (stop func()) // says that the daemon is awaited
	Wait                time.Duration                   // for the daemon to appear and be free; always positive
	WaitGiven           bool                            // the daemon may be started later
	IdleTimeout         time.Duration                   // without a message of the daemon; always positive
	Bandwidth           int64                           // bytes per second; 0 is no limit
	Encrypt             bool                            // between machines, file data must be encrypted
	UCX                 ucx.Settings                    // between machines; TrafficClass also applies to TCP

	// For one of many daemons: Open opens a device, nil if the driver is opened for this daemon alone; Warned says that
	// what concerns all of them was logged.
	Open   func(chosen inventory.Selection) (*Side, error)
	Warned bool
}

// Conn is a connection to a daemon.
type Conn struct {
	*Side
	Client *service.Client
	Path   report.Path // with the daemon as its Peer
	ends   []func() error
}

// Connect connects to a daemon and authenticates both sides. Errors have the side.
func Connect(ctx context.Context, d Daemon, log zerolog.Logger) (*Conn, error) {
	if !d.Warned {
		d.Identity.WarnOfKeys(log)
	}
	on, err := &Side{Is: wire.Client, Address: d.Address}, error(nil)
	switch {
	case d.Address != "":
	case d.Open != nil:
		on, err = d.Open(d.Selection)
	default:
		on, err = Open(d.Driver, d.Selection, log)
	}
	if err != nil {
		return nil, err
	}
	c := &Conn{Side: on}
	if err = c.authenticate(ctx, d, log); err != nil {
		c.End(&err)
		return nil, err
	}
	return c, nil
}

// OnEnd has End call a function after the connection was closed, the last one first.
func (c *Conn) OnEnd(end func() error) { c.ends = append(c.ends, end) }

// End closes the connection after work that ended with *err, to which it adds the side and the errors of the end.
func (c *Conn) End(err *error) {
	if c.Client != nil {
		*err = errors.Join(*err, CloseUnlessHung(*err, c.Client.Close))
	}
	for _, end := range slices.Backward(c.ends) {
		*err = errors.Join(*err, end())
	}
	*err = report.WithSide(c.Side.Is, *err)
	c.Side.End(err)
}

// authenticate meets the daemon and authenticates both sides.
func (c *Conn) authenticate(ctx context.Context, d Daemon, log zerolog.Logger) error {
	wait := report.WaitForDaemon(c.Side.Is, c.HostFunction(d.Representor), d.Address, d.Identity.Anonymous, d.Wait)
	stop := d.Waiting(wait)
	defer stop()
	client, err := c.meet(ctx, d, service.ClientConfig{
		Key: d.Identity.key, Verify: d.Identity.verify, Anonymous: d.Identity.Anonymous,
		Software: release.SoftwareName(), Name: MachineName(), User: UserName(), IdleTimeout: d.IdleTimeout, Log: log,
		Waiting: func(ahead int) { log.Info().Int("copies", ahead).Msg("waiting until other copies have ended") },
	})
	if err != nil {
		return withDaemonHint(err, wait, c.Device == nil)
	}
	c.Client, c.Path = client, c.Side.Path(d.Driver)
	known := client.Peer()
	grant, _ := d.Identity.trusted.Find(known.Key)
	c.Path.Peer = &report.Peer{
		Key: grant.Name, Fingerprint: known.Key.String(), Software: known.Software,
		Machine: known.Name, User: known.User,
		Authenticated: known.Authenticates && !d.Identity.Anonymous,
	}
	if trusted, err := d.Identity.remember(d.KeyName, known.Key); !trusted || err != nil {
		return err
	}
	d.Trusted(d.KeyName, known.Key.Words())
	return nil
}

// meet connects to the daemon over the device, or over the network.
func (c *Conn) meet(ctx context.Context, d Daemon, config service.ClientConfig) (*service.Client, error) {
	if c.Device == nil {
		config.Log.Info().Str("address", d.Address).Msg("connecting to the daemon")
		return d.dial(ctx, config)
	}
	config.Log.Info().Stringer("side", c.Is).Str("device", c.Device.Info().PCIAddress).Msg("waiting for the daemon")
	return service.Dial(ctx, service.Meeting{
		Device: c.Device, Side: c.Is, Representor: d.Representor, Wait: d.Wait,
	}, config)
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
	if err != nil || file == job.StreamName {
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
