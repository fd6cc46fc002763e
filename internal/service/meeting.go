package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// How a daemon and a command meet:
//
//	daemon on the DPU    offers negotiate.ServiceName to each of its host functions  ◄── command on the host
//	command on the DPU   offers negotiate.CommandName to its host function           ◄── daemon on the host
//
// The first has many connections at a time. Of the second there is one command at a time for a host function; others
// wait until it has ended.

// DaemonConfig is what a Daemon is made of.
type DaemonConfig struct {
	Server       *Server
	Device       *doca.Device
	Side         negotiate.Side // of Device
	Representors []string       // on the DPU: the host functions, as Device.OpenRepresentor takes them
	Connections  int            // on the DPU: of one function, 1 to doca's limit; 0: those of the Server's Limits
	Log          zerolog.Logger
}

// Daemon brings the commands that look for it to a Server.
type Daemon struct {
	config  DaemonConfig
	offers  []*offered // on the DPU
	finder  *comch.Finder
	serving sync.WaitGroup

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
	if c.Side == negotiate.Host {
		d.finder = comch.NewFinder(c.Device, negotiate.CommandName)
		d.finder.Refused = func(err error) { c.Log.Debug().Err(err).Msg("a command refused this daemon") }
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

func offerTo(device *doca.Device, function string, connections int) (*offered, error) {
	rep, err := device.OpenRepresentor(function)
	if err != nil {
		return nil, err
	}
	listener, err := comch.ListenMany(device, rep, negotiate.ServiceName, connections)
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
	if d.finder != nil {
		loops.Go(func() error { return d.find(running) })
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
		d.serving.Go(func() { d.serve(conn, o.function) })
	}
}

// find serves commands on the DPU one after the other, because only one at a time can offer the name.
func (d *Daemon) find(ctx context.Context) error {
	for {
		conn, err := d.finder.Find(ctx)
		if err != nil {
			return err
		}
		served := make(chan struct{})
		d.serving.Go(func() {
			defer close(served)
			d.serve(conn, d.config.Device.Info().PCIAddress)
		})
		select {
		case <-served:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (d *Daemon) serve(conn comch.Conn, function string) {
	err := d.config.Server.Serve(d.ctx, Incoming{
		Conn: conn, Memory: native.NewMemory(d.config.Device, conn), Function: function,
	})
	d.config.Log.Debug().Err(err).Str("function", function).Msg("connection ended")
}

// Close ends all connections and offers. Run must have returned. Closing twice is harmless.
func (d *Daemon) Close() error {
	d.cancel()
	d.serving.Wait()
	var errs []error
	for _, o := range d.offers {
		errs = append(errs, o.listener.Close(), o.representor.Close())
	}
	if d.finder != nil {
		errs = append(errs, d.finder.Close())
	}
	return errors.Join(errs...)
}

// Meeting is how a command reaches a daemon.
type Meeting struct {
	Device      *doca.Device
	Side        negotiate.Side // of Device
	Representor string         // on the DPU: the host function whose daemon is wanted
	Wait        time.Duration  // for the daemon to appear, and on the DPU also for other commands to end
}

// Dial connects to a daemon. Conn and Memory of the config are not used. Besides the errors of Connect there are those
// of comch.Dialer and comch.Offer.
func Dial(ctx context.Context, m Meeting, c ClientConfig) (*Client, error) {
	if m.Side == negotiate.DPU {
		return m.offer(ctx, c)
	}
	dialer := comch.NewDialer(m.Device, negotiate.ServiceName, comch.Within(m.Wait))
	conn, err := dialer.Dial(ctx)
	for err == nil {
		c.Conn, c.Memory = conn, native.NewMemory(m.Device, conn)
		client, connectErr := Connect(ctx, c)
		if connectErr == nil || !errors.Is(connectErr, errTurnedAway) && !errors.Is(connectErr, secure.ErrTimeout) {
			return client, connectErr
		}
		c.Log.Debug().Err(connectErr).Msg("the daemon may have too many connections, trying again")
		conn, err = dialer.Redial(ctx)
	}
	return nil, err
}

// offer waits for the daemon on the host.
func (m Meeting) offer(ctx context.Context, c ClientConfig) (*Client, error) {
	offer := comch.Offer{
		Device: m.Device, Representor: m.Representor, Name: negotiate.CommandName,
		Busy: func() {
			c.Log.Info().Str("representor", m.Representor).Msg("waiting for another command of dma-copy to end")
		},
	}
	conn, disconnect, err := offer.AcceptOne(ctx, comch.Within(m.Wait))
	if err != nil {
		return nil, err
	}
	c.Conn, c.Memory = conn, native.NewMemory(m.Device, conn)
	client, err := Connect(ctx, c)
	if err != nil {
		return nil, errors.Join(err, disconnect())
	}
	client.disconnect = sync.OnceValue(disconnect)
	return client, nil
}
