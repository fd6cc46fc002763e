package network

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// Listener takes the connections of clients. Its methods are safe for concurrent use.
type Listener struct {
	listener  *net.TCPListener
	settings  Settings
	data      *tls.Config // of data connections
	admission *admission
	sessions  sessions

	accepted   chan *Control
	ctx        context.Context // until Close
	cancel     context.CancelCauseFunc
	goroutines sync.WaitGroup
	failed     chan struct{} // closed when err is set: no further connection is taken
	err        error
	closeOnce  sync.Once
	closeErr   error
}

// Listen takes connections at an address: "10.0.0.2:7447", "[::1]:7447", ":7447" for all addresses of the machine, or
// port 0 for a free one. Settings.Key must be the service's key. The caller calls Accept and Close.
func Listen(ctx context.Context, address string, s Settings) (*Listener, error) {
	if s.Key == nil {
		return nil, errors.New("a listener needs a key")
	}
	l := &Listener{
		settings: s, admission: newAdmission(), accepted: make(chan *Control), failed: make(chan struct{}),
	}
	var err error
	if l.data, err = secure.DataServer(s.Key, l.sessions.expect); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: s.control, KeepAlive: -1}
	config.SetMultipathTCP(false) // whose sockets Landlock does not restrict, and not all socket options reach
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	l.listener = listener.(*net.TCPListener)
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.goroutines.Go(l.run)
	return l, nil
}

// Address returns where the listener is, with its port.
func (l *Listener) Address() net.Addr { return l.listener.Addr() }

// Accept returns the next control connection, whose peer has not authenticated. The caller closes it. It fails with
// comch.ErrClosed after Close, the cause of ctx, or the error of the socket that has ended the listener.
func (l *Listener) Accept(ctx context.Context) (*Control, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.failed:
		return nil, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close takes no further connections, and closes those that Accept has not returned. It unblocks Accept. The others go
// on, without further data connections. Closing twice is harmless.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() {
		l.cancel(comch.ErrClosed)
		l.closeErr = l.listener.Close()
		l.goroutines.Wait()
	})
	return l.closeErr
}

// The pauses after a failure that another process can end, such as too many open files.
const firstPause, lastPause = 5 * time.Millisecond, time.Second

// run takes connections until the listener is closed or fails.
func (l *Listener) run() {
	pause := firstPause
	for {
		socket, err := l.listener.AcceptTCP()
		var temporary interface{ Temporary() bool }
		switch {
		case err == nil:
			pause = firstPause
			l.admit(socket)
			continue
		case l.ctx.Err() == nil && errors.As(err, &temporary) && temporary.Temporary():
			l.refused(nil, fmt.Errorf("accept a connection: %w", err))
			pause = l.wait(pause)
		default:
			l.err = cmp.Or(context.Cause(l.ctx), err)
			close(l.failed)
			return
		}
	}
}

// wait waits, and returns how long to wait next time.
func (l *Listener) wait(pause time.Duration) (next time.Duration) {
	select {
	case <-time.After(pause):
	case <-l.ctx.Done():
	}
	return min(2*pause, lastPause)
}

func (l *Listener) refused(peer net.Addr, reason error) {
	if l.settings.Refused != nil {
		l.settings.Refused(peer, reason)
	}
}

// admit begins with a connection if there are not too many.
func (l *Listener) admit(socket *net.TCPConn) {
	from, leave, err := l.admission.enter(socket.RemoteAddr())
	if err != nil {
		_ = socket.Close()
		l.refused(socket.RemoteAddr(), err)
		return
	}
	l.goroutines.Go(func() {
		if err := l.begin(socket, from, leave); err != nil {
			leave()
			_ = socket.Close()
			l.refused(socket.RemoteAddr(), err)
		}
	})
}

// errSlow is a peer that did not do a step in time.
var errSlow = fmt.Errorf("%w within %s", secure.ErrTimeout, helloTime)

// begin finds out what a connection is for, and hands it over. With an error, which may be a panic, it is the caller's.
func (l *Listener) begin(socket *net.TCPConn, from *source, leave func()) (err error) {
	defer job.Recover(&err)
	ctx, cancel := context.WithTimeoutCause(l.ctx, cmp.Or(l.settings.hello, helloTime), errSlow)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Unix(1, 0)) })
	read, data, err := readHello(socket)
	if !stop() { // the deadline may be set
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	if data {
		return l.acceptData(&resumed{socket, bytes.NewReader(read)}, from, leave)
	}
	control, err := newControl(socket, bytes.NewReader(read), &l.settings)
	if err != nil {
		return err
	}
	control.server, control.leave = l, leave
	select {
	case l.accepted <- control:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), control.Close())
	}
}
