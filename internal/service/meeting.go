package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/doca"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// How a daemon and a command meet:
//
//	daemon on the DPU    offers protocol.ServerName to each of its host functions  ◄── command on the host
//	command on the DPU   offers one of protocol.CommandNames to its host function   ◄── daemon on the host
//
// The first has many connections at a time. The second has as many commands at a time for a host function as
// there are names; others wait until one has ended. The daemon looks for each of the names by itself, so that a command
// that is stopped delays none with another name.

// seldomFind is the longest time between two attempts of a daemon on the host to find a command with another name than
// the first, while none is connected: commands take the first free name.
const seldomFind = 10 * time.Second

// DaemonConfig is what a Daemon is made of.
type DaemonConfig struct {
	Server       *Server
	Device       *doca.Device
	Side         wire.Side // of Device
	Representors []string  // on the DPU: the host functions, as Device.OpenRepresentor takes them
	Connections  int       // on the DPU: of one function, 1 to doca's limit; 0: as the Server's Limits say
	Log          zerolog.Logger
}

// Daemon brings the commands that look for it to a Server.
type Daemon struct {
	config   DaemonConfig
	offers   []*offered      // on the DPU
	finders  []*comch.Finder // on the host, for each name of commands
	commands atomic.Int64    // that finders have found and that are connected
	serving  sync.WaitGroup

	ctx    context.Context // of connections
	cancel context.CancelFunc
}

// offered is the daemon's name on one host function.
type offered struct {
	function    string
	representor *doca.Representor
	listener    *comch.Listener
}

// OpenDaemon offers the service to the host functions of a DPU. An error that is doca.CodeAlreadyExist means that
// another daemon does so. On the host it only prepares to look for commands.
func OpenDaemon(c DaemonConfig) (*Daemon, error) {
	d := &Daemon{config: c}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if c.Side == wire.Host {
		d.newFinders()
		return d, nil
	}
	connections := c.Connections
	if connections == 0 {
		connections = c.Server.config.Limits.Connections + 1 + waitingHandshakes
	}
	for _, function := range c.Representors {
		o, err := offerTo(c.Device, function, connections)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.offers = append(d.offers, o)
	}
	return d, nil
}

func (d *Daemon) newFinders() {
	for i, name := range protocol.CommandNames() {
		finder := comch.NewFinder(d.config.Device, name)
		finder.Refused = func(err error) { d.config.Log.Debug().Err(err).Msg("a command refused this daemon") }
		finder.Interval = func() time.Duration {
			if i > 0 && d.commands.Load() == 0 {
				return seldomFind
			}
			return comch.FindInterval
		}
		d.finders = append(d.finders, finder)
	}
}

func offerTo(device *doca.Device, function string, connections int) (*offered, error) {
	rep, err := device.OpenRepresentor(function)
	if err != nil {
		return nil, err
	}
	listener, err := comch.ListenMany(device, rep, protocol.ServerName, connections)
	if errors.Is(err, doca.CodeAlreadyExist) {
		err = fmt.Errorf("another daemon already serves representor %s on %s: %w", function,
			device.Info().PCIAddress, err)
	}
	if err != nil {
		return nil, errors.Join(err, rep.Close())
	}
	return &offered{function: function, representor: rep, listener: listener}, nil
}

// Run brings commands to the Server until ctx ends. Their connections go on after it. It returns nil, or the error of
// the device that has ended it before ctx did.
func (d *Daemon) Run(ctx context.Context) error {
	loops, running := errgroup.WithContext(ctx)
	for _, o := range d.offers {
		loops.Go(func() error { return d.accept(running, o) })
	}
	for _, f := range d.finders {
		loops.Go(func() error { return d.find(running, f) })
	}
	err := loops.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// accept serves the commands of one host function, all at the same time.
func (d *Daemon) accept(ctx context.Context, o *offered) error {
	for {
		conn, err := o.listener.Accept(ctx, comch.Wait{})
		if err != nil {
			return err
		}
		d.serving.Go(func() { _ = d.serve(conn, o.function) })
	}
}

// find serves commands on the DPU that offer the name of a finder, one after the other.
func (d *Daemon) find(ctx context.Context, finder *comch.Finder) error {
	for {
		conn, err := finder.Find(ctx)
		if err != nil {
			return err
		}
		d.commands.Add(1)
		for _, other := range d.finders {
			if other != finder {
				other.RetrySoon()
			}
		}
		served := make(chan struct{})
		d.serving.Go(func() {
			defer close(served)
			defer d.commands.Add(-1)
			if d.serve(conn, d.config.Device.Info().PCIAddress) == nil {
				finder.RetrySoon() // not after a failure, so that a peer cannot keep the daemon busy without a key
			}
		})
		select {
		case <-served:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// serve returns why the connection ended; nil if the peer ended it between two requests.
func (d *Daemon) serve(conn comch.Conn, function string) error {
	err := d.config.Server.Serve(d.ctx, Incoming{
		Conn: conn, Memory: memoryOf(d.config.Device, d.config.Side, conn), Function: function, Side: d.config.Side,
	})
	d.config.Log.Debug().Err(err).Str("function", function).Msg("connection ended")
	return err
}

// memoryOf returns the memory of a connection over a device, which does not depend on who the peer is.
func memoryOf(device *doca.Device, side wire.Side, conn comch.Conn) func(*secure.Conn) window.Memory {
	return func(*secure.Conn) window.Memory { return window.NewMemory(device, side, conn) }
}

// Close ends all connections and offers. Run must have returned. Closing twice is harmless.
func (d *Daemon) Close() error {
	d.cancel()
	d.serving.Wait()
	var errs []error
	for _, o := range d.offers {
		errs = append(errs, o.listener.Close(), o.representor.Close())
	}
	for _, f := range d.finders {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Meeting is how a command reaches a daemon.
type Meeting struct {
	Device      *doca.Device
	Side        wire.Side     // of Device
	Representor string        // on the DPU: the host function whose daemon is wanted
	Wait        time.Duration // for the daemon to appear, and on the DPU also for other commands to end
	Name        string        // of the Comch server on the DPU; empty: protocol.ServerName
	Met         func()        // of ServeOne: called when there is a command
}

// Dial connects to a daemon. Conn and Memory of the config are not used. It returns the errors of Connect, comch.Dialer
// and comch.Offer, and ErrBusy.
func Dial(ctx context.Context, m Meeting, c ClientConfig) (*Client, error) {
	c = c.waiting(m.Wait)
	if m.Side == wire.DPU {
		return m.offer(ctx, c)
	}
	dialer := comch.NewDialer(m.Device, cmp.Or(m.Name, protocol.ServerName), comch.Within(m.Wait))
	conn, err := dialer.Dial(ctx)
	for err == nil {
		c.Conn, c.Memory = conn, memoryOf(m.Device, m.Side, conn)
		client, connectErr := Connect(ctx, c)
		late := errors.Is(connectErr, secure.ErrTimeout) && time.Until(c.until) <= 0
		if connectErr == nil || late || !passes(connectErr) {
			return client, connectErr
		}
		c.Log.Debug().Err(connectErr).Msg("the daemon may have too many connections, trying again")
		conn, err = dialer.Redial(ctx)
	}
	return nil, err
}

// ServeOne serves one command on the host, which looks for m.Name, to its end. It is called on the DPU, and
// fails as Serve and comch.Offer do.
func (s *Server) ServeOne(ctx context.Context, m Meeting) error {
	conn, disconnect, err := comch.Offer{
		Device: m.Device, Representor: m.Representor, Names: []string{m.Name},
		Busy: func() {
			s.config.Log.Info().Str("representor", m.Representor).Msg("waiting for another command like this to end")
		},
	}.AcceptOne(ctx, comch.Within(m.Wait))
	if err != nil {
		return err
	}
	m.Met()
	err = s.Serve(ctx, Incoming{
		Conn: conn, Memory: memoryOf(m.Device, m.Side, conn), Function: m.Representor, Side: m.Side,
	})
	return errors.Join(err, disconnect())
}

// offer waits for the daemon on the host.
func (m Meeting) offer(ctx context.Context, c ClientConfig) (*Client, error) {
	offer := comch.Offer{
		Device: m.Device, Representor: m.Representor, Names: protocol.CommandNames(),
		Busy: func() {
			c.Log.Info().Str("representor", m.Representor).
				Msg("waiting for one of the other commands of dma-copy to end")
		},
	}
	conn, disconnect, err := offer.AcceptOne(ctx, comch.Within(m.Wait))
	if errors.Is(err, doca.CodeAlreadyExist) {
		err = fmt.Errorf("%w (representor %s on %s)", ErrBusy, m.Representor, m.Device.Info().PCIAddress)
	}
	if err != nil {
		return nil, err
	}
	c.Conn, c.Memory = conn, memoryOf(m.Device, m.Side, conn)
	client, err := Connect(ctx, c)
	if err != nil {
		return nil, errors.Join(err, disconnect())
	}
	client.disconnect = sync.OnceValue(disconnect)
	return client, nil
}
