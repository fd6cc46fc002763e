package doca

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// start starts the context. It fails once the endpoint is stopping, because nothing would stop the context again.
func (e *endpoint) start() error {
	if !e.stopBy.IsZero() {
		return e.finishCause()
	}
	return e.abi.ChannelStart(e.channel)
}

// stop begins the end of the endpoint, which has drainTime to become idle.
func (e *endpoint) stop() {
	if !e.stopBy.IsZero() {
		return
	}
	e.stopBy = time.Now().Add(drainTime)
	e.disconnectAll(ErrClosed)
	e.tryStop()
}

// tryStop requests the stop. DOCA refuses while consumers or producers run; their owners may be closing them.
func (e *endpoint) tryStop() {
	e.stopErr = protect(func() error { return e.abi.ChannelStop(e.channel) })
}

// fail ends the endpoint, because the driver itself failed.
func (e *endpoint) fail(err error) {
	e.cause = cmp.Or(e.cause, err)
	e.disconnectAll(err)
	e.stop()
}

func (e *endpoint) ended() bool {
	return !e.stopBy.IsZero() && (e.isIdle() || time.Now().After(e.stopBy))
}

func (e *endpoint) hasFinished() bool {
	select {
	case <-e.finished:
		return true
	default:
		return false
	}
}

// finishCause returns the error for callers that still wait after run has returned.
func (e *endpoint) finishCause() error {
	if e.cause != nil {
		return e.cause
	}
	return ErrClosed
}

func (e *endpoint) tearDown() error {
	e.disconnectAll(ErrClosed)
	for _, s := range e.sends {
		s.result <- ErrClosed
	}
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	waiterErr := e.waiter.close()
	return errors.Join(e.release(), waiterErr)
}

// release frees the channel if it is idle; otherwise the channel is kept.
func (e *endpoint) release() error {
	if e.channel == nil {
		return nil
	}
	if !e.isIdle() {
		return errors.Join(fmt.Errorf("control channel: %w", ErrStillRunning), e.stopErr)
	}
	if err := e.abi.ChannelClose(e.channel); err != nil {
		return err
	}
	e.channel = nil
	return nil
}

// close ends run and waits for it. A channel that could not be freed is tried again by every further close.
func (e *endpoint) close() error {
	e.do(e.stop)
	<-e.finished
	e.last.Lock()
	defer e.last.Unlock()
	if err := e.closeErr; err != nil {
		e.closeErr = nil
		return err
	}
	e.drain()
	return e.release()
}

// drain stops a device that did not stop in time. Its events are dropped, because nothing waits for them.
func (e *endpoint) drain() {
	if e.channel == nil {
		return
	}
	awaitIdle(e.isIdle, func() bool {
		e.tryStop()
		events, _ := e.abi.ChannelPoll(e.channel, pollBatch)
		return len(events) > 0
	})
}

// isIdle is called after the stop; from then on an idle context stays idle.
func (e *endpoint) isIdle() bool {
	e.idle = e.idle || e.abi.State(cabi.Progress(e.channel)) == cabi.Idle
	return e.idle
}

// afterRun calls f, which run would have called, after run has returned.
func (e *endpoint) afterRun(f func() error) error {
	e.last.Lock()
	defer e.last.Unlock()
	return f()
}

// disconnect is Close for the connection of a server. It retries while DOCA returns AGAIN.
func (e *endpoint) disconnect(c *Connection) error {
	for deadline := time.Now().Add(drainTime); ; {
		err := e.call(func() error { return e.tryDisconnect(c) })
		if err == ErrClosed {
			return nil // run ends all connections before it returns
		}
		if !isAgain(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// reject is disconnect for the driver, which must not wait: polls retry while DOCA returns AGAIN, or IN_USE because the
// owners of consumers and producers have not closed them yet. Until then the peer's messages are dropped, so that they
// cannot fill an inbox without a reader.
func (e *endpoint) reject(c *Connection, cause error) {
	e.disconnected(c.handle, cause)
	if c.ofServer {
		e.rejected = append(e.rejected, c.handle)
	}
}

func (e *endpoint) rejectAgain() {
	e.rejected = slices.DeleteFunc(e.rejected, func(handle cabi.Connection) bool {
		err := e.abi.ChannelDisconnect(e.channel, handle)
		return !errors.Is(err, CodeAgain) && !errors.Is(err, CodeInUse)
	})
}

// tryDisconnect ends the connection as soon as DOCA accepts the call: most devices raise no event on the calling side,
// and the event of others finds an unknown handle.
func (e *endpoint) tryDisconnect(c *Connection) error {
	if e.connections[c.handle] != c {
		return nil
	}
	if err := e.abi.ChannelDisconnect(e.channel, c.handle); err != nil {
		if isAgain(err) {
			e.refusedEnds++
		}
		return err
	}
	e.disconnected(c.handle, ErrClosed)
	return nil
}
