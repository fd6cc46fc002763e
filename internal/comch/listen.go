package comch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cenkalti/backoff/v5"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Listener accepts peers on the DPU. It is safe for concurrent use.
type Listener struct {
	server   *doca.Server
	refusing sync.WaitGroup // the goroutine of AcceptOnly
}

// Listen offers the server called name to the host function of rep. An error that is doca.CodeAlreadyExist means that
// another process offers it.
func Listen(device *doca.Device, rep *doca.Representor, name string) (*Listener, error) {
	return ListenMany(device, rep, name, 0)
}

// ListenMany is Listen for a daemon, which has up to that many connections at once; none of them waits for the reader
// of another. A further peer is disconnected before anything is sent to it, which a Dialer reports as ErrTurnedAway
// once Redial has tried for its Wait. A peer that sends more messages than its connection holds unread is disconnected;
// see doca.ChannelConfig.Clients.
func ListenMany(device *doca.Device, rep *doca.Representor, name string, connections int) (*Listener, error) {
	server, err := device.Listen(rep, name, doca.ChannelConfig{Clients: connections, Polled: true})
	if err != nil {
		return nil, err
	}
	return &Listener{server: server}, nil
}

// Refused returns how many peers were disconnected at once because there were too many connections.
func (l *Listener) Refused() uint64 { return l.server.Rejected() }

// listenFirst is Listen with the first of the names that no process offers.
func listenFirst(device *doca.Device, rep *doca.Representor, names []string) (listener *Listener, err error) {
	for _, name := range names {
		if listener, err = Listen(device, rep, name); !errors.Is(err, doca.CodeAlreadyExist) {
			break
		}
	}
	return listener, err
}

// ListenWhenFree is Listen with the first of the names that is free. It waits while other processes offer all of them.
// If the wait is over first, the error is doca.CodeAlreadyExist; if ctx ends first, its cause.
func ListenWhenFree(
	ctx context.Context, device *doca.Device, rep *doca.Representor, names []string, wait Wait,
) (*Listener, error) {
	waiting, cancel := wait.context(ctx)
	defer cancel()
	var last error
	listener, err := backoff.Retry(waiting, func() (*Listener, error) {
		var listener *Listener
		listener, last = listenFirst(device, rep, names)
		if last != nil && !errors.Is(last, doca.CodeAlreadyExist) {
			return nil, backoff.Permanent(last)
		}
		return listener, last
	}, backoff.WithBackOff(Retries(firstRetry, lastRetry)), backoff.WithMaxElapsedTime(0))
	if err != nil && ctx.Err() == nil {
		return nil, last
	}
	return listener, err
}

// Offer is the server that a DPU offers to one host.
type Offer struct {
	Device      *doca.Device
	Representor string   // the host function, as Device.OpenRepresentor takes it
	Names       []string // of the server: the first that no other process offers is used
	Busy        func()   // called before a wait for a name to become free; nil: no wait, but an error
}

// AcceptOne offers the server, accepts the first host, and disconnects others until disconnect is called. It returns
// the errors of ListenWhenFree and Accept, or a *doca.Error.
func (o Offer) AcceptOne(ctx context.Context, wait Wait) (conn Conn, disconnect func() error, err error) {
	rep, err := o.Device.OpenRepresentor(o.Representor)
	if err != nil {
		return nil, nil, err
	}
	listener, err := o.listen(ctx, rep, wait)
	if err != nil {
		return nil, nil, errors.Join(err, rep.Close())
	}
	disconnect = func() error { return errors.Join(listener.Close(), rep.Close()) }
	conn, err = listener.AcceptOnly(ctx, wait)
	if err != nil {
		return nil, nil, errors.Join(err, disconnect())
	}
	return conn, disconnect, nil
}

func (o Offer) listen(ctx context.Context, rep *doca.Representor, wait Wait) (*Listener, error) {
	listener, err := listenFirst(o.Device, rep, o.Names)
	if errors.Is(err, doca.CodeAlreadyExist) && o.Busy != nil {
		o.Busy()
		listener, err = ListenWhenFree(ctx, o.Device, rep, o.Names, wait)
	}
	if errors.Is(err, doca.CodeAlreadyExist) {
		return nil, fmt.Errorf("another dma-copy already serves representor %s on %s: %w",
			o.Representor, o.Device.Info().PCIAddress, err)
	}
	return listener, err
}

// Accept waits for the next peer. Errors: ErrPeerAbsent, ErrClosed, the cause of ctx.
func (l *Listener) Accept(ctx context.Context, wait Wait) (Conn, error) {
	waiting, cancel := wait.context(ctx)
	defer cancel()
	established, err := l.server.Accept(waiting)
	if err != nil {
		return nil, translate(err)
	}
	return &connection{Connection: established, release: established.Close}, nil
}

// AcceptOnly is Accept, and from then on disconnects every other peer at once, as the reference does. It must be called
// once, and not during Close.
func (l *Listener) AcceptOnly(ctx context.Context, wait Wait) (Conn, error) {
	conn, err := l.Accept(ctx, wait)
	if err != nil {
		return nil, err
	}
	l.refusing.Go(l.refuseOthers)
	return conn, nil
}

// refuseOthers ends with the server.
func (l *Listener) refuseOthers() {
	for {
		extra, err := l.server.Accept(context.Background())
		if err != nil {
			return
		}
		_ = extra.Close() // its end does not affect this session
	}
}

// Close disconnects all peers, and ends Accept with ErrClosed. Closing twice is harmless.
func (l *Listener) Close() error {
	err := l.server.Close()
	l.refusing.Wait()
	return err
}
