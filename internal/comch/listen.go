package comch

import (
	"context"
	"errors"
	"sync"

	"github.com/cenkalti/backoff/v5"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Listener accepts peers on the DPU. Safe for concurrent use.
type Listener struct {
	server *doca.Server

	mu     sync.Mutex
	turned chan struct{} // after AcceptOnly; closed when nobody is turned away any more
}

// Listen offers the server called name to the host function that rep stands for. An error that is doca.CodeAlreadyExist
// means that another process offers it already.
func Listen(device *doca.Device, rep *doca.Representor, name string) (*Listener, error) {
	server, err := device.Listen(rep, name, doca.ChannelConfig{})
	if err != nil {
		return nil, err
	}
	return &Listener{server: server}, nil
}

// ListenWhenFree is Listen, but waits for another process that offers the name to end. When the wait is over the error
// is still doca.CodeAlreadyExist; the cause of ctx when that ends first.
func ListenWhenFree(
	ctx context.Context, device *doca.Device, rep *doca.Representor, name string, wait Wait,
) (*Listener, error) {
	waiting, cancel := wait.context(ctx)
	defer cancel()
	var last error
	listener, err := backoff.Retry(waiting, func() (*Listener, error) {
		var listener *Listener
		listener, last = Listen(device, rep, name)
		if last != nil && !errors.Is(last, doca.CodeAlreadyExist) {
			return nil, backoff.Permanent(last)
		}
		return listener, last
	}, backoff.WithBackOff(retries(firstRetry)), backoff.WithMaxElapsedTime(0))
	if err != nil && ctx.Err() == nil {
		return nil, last
	}
	return listener, err
}

// Accept waits for the next peer. ErrPeerAbsent, ErrClosed, or the cause of ctx.
func (l *Listener) Accept(ctx context.Context, wait Wait) (Conn, error) {
	waiting, cancel := wait.context(ctx)
	defer cancel()
	established, err := l.server.Accept(waiting)
	if err != nil {
		return nil, translate(err)
	}
	return &connection{Connection: established, release: established.Close}, nil
}

// AcceptOnly does the same and from then on turns every other peer away at once, as the reference does. Call it once.
func (l *Listener) AcceptOnly(ctx context.Context, wait Wait) (Conn, error) {
	conn, err := l.Accept(ctx, wait)
	if err != nil {
		return nil, err
	}
	turned := make(chan struct{})
	l.mu.Lock()
	l.turned = turned
	l.mu.Unlock()
	go l.turnAway(turned)
	return conn, nil
}

// turnAway ends with the server.
func (l *Listener) turnAway(turned chan<- struct{}) {
	defer close(turned)
	for {
		extra, err := l.server.Accept(context.Background())
		if err != nil {
			return
		}
		_ = extra.Close() // it has no say in this session, and neither has how it ended
	}
}

// Close disconnects all peers. Closing twice is harmless.
func (l *Listener) Close() error {
	err := l.server.Close()
	l.mu.Lock()
	turned := l.turned
	l.mu.Unlock()
	if turned != nil {
		<-turned
	}
	return err
}
