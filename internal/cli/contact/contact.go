// Package contact has the options by which a command reaches a daemon, over a device or the network.
package contact

import (
	"cmp"
	"context"
	"fmt"
	"net"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Reach is how a command reaches a daemon.
type Reach struct {
	Contact
	device.Reach
	Daemon    share.Remote      // how the user names it
	Waits     output.WaitOutput // says that the daemon is awaited
	Bandwidth int64             // bytes per second; 0 is no limit
	Started   Started           // what a far side is started with, for a Daemon with a Login

	Validate func(network bool) error // checks the other settings; may be nil

	// For one of many daemons: open opens a device, nil if the driver is opened for this daemon alone; warned says that
	// what concerns all of them was logged.
	Open   func(chosen inventory.Selection) (*connect.Side, error)
	Warned bool
}

// Connect connects to the daemon. Errors have the side. The context is for the work until the end: requests for
// progress are answered by what the client waits for outside of a copy, unless that is nothing.
func Connect(ctx context.Context, streams root.Streams, r Reach, log zerolog.Logger) (
	context.Context, *connect.Conn, error,
) {
	c, err := r.connect(ctx, streams, log)
	if err != nil || r.Open != nil { // with many daemons there are only copies, whose reporter alone writes to stderr
		return ctx, c, err
	}
	ctx, stop := root.AnswerBefore(ctx, func() bool {
		waits := c.Client.Waits()
		if waits != "" {
			fmt.Fprintln(streams.Stderr, waits)
		}
		return waits != ""
	})
	c.OnEnd(func() error { stop(); return nil })
	return ctx, c, nil
}

// connect is Connect, without an answer to requests for progress.
func (r Reach) connect(ctx context.Context, streams root.Streams, log zerolog.Logger) (*connect.Conn, error) {
	d := connect.Daemon{
		Driver: r.Driver.Options(), KeyName: r.nameOfKey(),
		Trusted: func(name, words string) { output.WriteTrusted(streams.Stderr, name, words) },
		Waiting: func(wait report.Wait) func() { return output.Waiting(wait, r.Waits, root.ProgressRequests(ctx)) },
		Wait:    r.Wait, WaitGiven: r.WaitGiven, IdleTimeout: r.IdleTimeout, Bandwidth: r.Bandwidth,
		Encrypt: r.Encrypt, UCX: r.Settings, Open: r.Open, Warned: r.Warned,
	}
	if r.Daemon.Login != (share.Login{}) {
		return r.start(ctx, d, streams.Stderr, log)
	}
	peer, err := r.Choose(r.Daemon, r.Device, r.Representor)
	if err != nil {
		return nil, err
	}
	if err := r.check(peer.Address != ""); err != nil {
		return nil, err
	}
	if d.Identity, err = connect.Identify(r.keys(streams.Env, peer)); err != nil {
		return nil, err
	}
	d.Selection = inventory.Selection{Device: peer.Device, Representor: peer.Representor, Role: r.Role}
	d.Address = peer.Address
	return connect.Connect(ctx, d, log)
}

// keys returns the keys for a daemon.
func (s Contact) keys(env option.Environment, peer option.Peer) connect.Keys {
	return connect.Keys{
		Directory: s.Keys, Anonymous: s.Auth == AuthNone, TrustFirst: s.TrustFirst, Pinned: peer.Key,
		Origin: peer.Origin, Getenv: env.Get,
	}
}

// Identify reads the keys for any daemon, and warns of them.
func (s Contact) Identify(env option.Environment, log zerolog.Logger) error {
	id, err := connect.Identify(s.keys(env, option.Peer{}))
	if err == nil {
		id.WarnOfKeys(log)
	}
	return err
}

// check checks the settings when it is known what the daemon is reached over.
func (r Reach) check(network bool) error {
	err := connect.CheckDriver(r.Driver.Options())
	if network {
		err = r.Driver.ValidateForNetwork()
	}
	if err != nil || r.Validate == nil {
		return err
	}
	return r.Validate(network)
}

// nameOfKey returns the name under which --trust-first trusts the key of the daemon: the name of the peer, or of its
// machine.
func (r Reach) nameOfKey() string {
	host, _, err := net.SplitHostPort(r.Daemon.Address)
	if err != nil || share.CheckName(host) != nil {
		host = "daemon"
	}
	return cmp.Or(r.Daemon.Peer, host)
}
