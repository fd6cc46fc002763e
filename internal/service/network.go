package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// NetworkDaemon brings the commands of other machines to a Server. It can do so next to a Daemon of the same Server.
type NetworkDaemon struct {
	server   *Server
	listener *network.Listener
	settings network.Settings
	log      zerolog.Logger
	serving  sync.WaitGroup

	ctx    context.Context // of connections
	cancel context.CancelFunc
}

// ListenNetwork offers a Server to other machines, at an address of network.Listen. It sets the Key of the settings to
// the Server's, and their Log to log. It returns the errors of network.Listen.
func ListenNetwork(
	ctx context.Context, s *Server, address string, settings network.Settings, log zerolog.Logger,
) (*NetworkDaemon, error) {
	settings.Key, settings.Log = s.config.Key, log
	settings.Refused = s.refusing(settings.Refused)
	listener, err := network.Listen(ctx, address, settings)
	if err != nil {
		return nil, err
	}
	d := &NetworkDaemon{server: s, listener: listener, settings: settings, log: log}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d, nil
}

// refusing returns a network.Settings.Refused that also reports a panic. next may be nil.
func (s *Server) refusing(next func(net.Addr, error)) func(net.Addr, error) {
	return func(peer net.Addr, reason error) {
		s.bug(Session{Function: functionOf(peer), Connected: time.Now()}, reason)
		if next != nil {
			next(peer, reason)
		}
	}
}

// functionOf returns the Function of a connection from an address, which is nil where there was none.
func functionOf(peer net.Addr) string {
	if tcp, is := peer.(*net.TCPAddr); is {
		return tcp.AddrPort().Addr().Unmap().String()
	}
	return ""
}

// Address returns where the daemon listens: "10.0.0.2:7447".
func (d *NetworkDaemon) Address() string { return d.listener.Address().String() }

// Run brings commands to the Server until ctx ends. Their connections go on after it, and connections of further
// commands are closed at once. It returns nil, or the error of the listener that has ended it before ctx did.
func (d *NetworkDaemon) Run(ctx context.Context) error {
	for {
		control, err := d.listener.Accept(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			d.serving.Go(d.turnAway)
			return nil
		default:
			return fmt.Errorf("the listener has ended: %w", err)
		}
		d.serving.Go(func() { d.serve(control) })
	}
}

// turnAway closes the connections of further commands, which would otherwise wait for an answer. The listener goes on,
// because running copies may need data connections.
func (d *NetworkDaemon) turnAway() {
	for {
		control, err := d.listener.Accept(d.ctx)
		if err != nil {
			return
		}
		d.serving.Go(func() { _ = control.Close() })
	}
}

func (d *NetworkDaemon) serve(control *network.Control) {
	err := d.server.Serve(d.ctx, Incoming{
		Conn: control, Function: control.Address(), Side: wire.Server,
		Memory: func(authenticated *secure.Conn) window.Memory { return control.Memory(authenticated, d.settings) },
	})
	d.log.Debug().Err(err).Str("peer", control.Address()).Msg("connection ended")
}

// Close ends all connections and stops listening. Run must have returned. Closing twice is harmless.
func (d *NetworkDaemon) Close() error {
	d.cancel()
	d.serving.Wait()
	return d.listener.Close()
}

// NetworkMeeting is how a command reaches a daemon on another machine.
type NetworkMeeting struct {
	Address  string        // "HOST:PORT"
	Wait     time.Duration // for the daemon to appear, and to have a connection to spare
	Settings network.Settings
}

// DialNetwork connects to a daemon, again as long as it may wait and is turned away. Conn and Memory of the config are
// not used. It returns the errors of Connect and network.Dial.
func DialNetwork(ctx context.Context, m NetworkMeeting, c ClientConfig) (*Client, error) {
	c = c.waiting(m.Wait)
	pauses := comch.Retries(10*time.Millisecond, time.Second)
	var before error
	for turnedAway := 1; ; turnedAway++ {
		left := time.Until(c.until)
		client, err := m.dial(ctx, left, c)
		if before != nil && left < shortestDial && errors.Is(err, comch.ErrPeerAbsent) {
			err = before // it was there, and so little time does not show that it is gone
		}
		before = err
		switch {
		case err == nil || !passes(err):
			return client, err
		case time.Until(c.until) > 0:
		case errors.Is(err, ErrTurnedAway):
			return nil, fmt.Errorf("%w (%d times within %s)", ErrTurnedAway, turnedAway, m.Wait)
		default:
			return nil, err
		}
		c.Log.Debug().Err(err).Msg("the daemon may have too many connections, trying again")
		select {
		case <-time.After(min(pauses.NextBackOff(), time.Until(c.until))):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (m NetworkMeeting) dial(ctx context.Context, wait time.Duration, c ClientConfig) (*Client, error) {
	control, err := network.Dial(ctx, m.Address, max(wait, shortestDial), m.Settings)
	if err != nil {
		return nil, err
	}
	c.Conn = control
	settings := m.Settings
	settings.Log = c.Log
	c.Memory = func(authenticated *secure.Conn) window.Memory { return control.Memory(authenticated, settings) }
	return Connect(ctx, c)
}

// shortestDial is for the last attempt to connect.
const shortestDial = 100 * time.Millisecond
