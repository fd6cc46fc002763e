package ping

import (
	"context"
	"sync"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// controlWatch receives from the control channel in a goroutine of its own, while another one waits at a consumer. That
// one waits in the context that quiet returns, which ends when there is a message, and then calls await.
type controlWatch struct {
	ctx     context.Context
	stop    context.CancelFunc
	stopped chan struct{}
	next    chan []byte // has space for one; closed with err set

	mu       sync.Mutex
	err      error // why there is no message any more
	silent   context.Context
	announce context.CancelFunc // ends silent
}

// watchControl returns a controlWatch that ends with ctx, or by close.
func watchControl(ctx context.Context, conn comch.Conn) *controlWatch {
	ctx, stop := context.WithCancel(ctx)
	w := &controlWatch{ctx: ctx, stop: stop, stopped: make(chan struct{}), next: make(chan []byte, 1)}
	w.silent, w.announce = context.WithCancel(ctx)
	go w.run(conn)
	return w
}

func (w *controlWatch) run(conn comch.Conn) {
	defer close(w.stopped)
	for {
		message, err := conn.Recv(w.ctx)
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			close(w.next)
			w.wake()
			return
		}
		select {
		case w.next <- message:
			w.wake()
		case <-w.ctx.Done():
			return
		}
	}
}

// wake ends the context of quiet. The message is in next by then.
func (w *controlWatch) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.announce()
}

func (w *controlWatch) quiet() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silent
}

// await returns the next message, when it has been announced. The context of quiet is renewed before: the next message
// is announced after this one has made room for it. The end is announced for good, perhaps together with a message.
func (w *controlWatch) await(ctx context.Context) ([]byte, error) {
	select {
	case <-w.quiet().Done():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	w.mu.Lock()
	if w.err == nil {
		w.silent, w.announce = context.WithCancel(w.ctx)
	}
	w.mu.Unlock()
	select {
	case message, more := <-w.next:
		if !more {
			return nil, w.err
		}
		return message, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close ends the goroutine. What has not been taken is lost.
func (w *controlWatch) close() {
	w.stop()
	<-w.stopped
}
