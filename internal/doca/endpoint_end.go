package doca

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// endpointState is how far the life of an endpoint is.
//
//	active ── stop, fail ──► stopping ── context idle, or drainTime over: run returns ──► ended ── close ──► freed
//
// While active the context may be started; when a client fails to connect, or loses its connection, its context becomes
// idle and may be started again. A close of an ended endpoint whose context is not idle fails and can be repeated.
type endpointState int

const (
	active endpointState = iota
	stopping
	ended
	freed
)

// life is the state of an endpoint, with what belongs to its end.
type life struct {
	state   endpointState
	stopBy  time.Time // from stopping on: when waiting for an idle context is given up
	stopErr error     // from stopping on: DOCA has refused the stop, which is retried; nil: it has not
	cause   error     // why it stops; nil: it does not, or Close was called
}

// start starts the context. It fails once the endpoint is stopping, because nothing would stop the context again.
func (e *endpoint) start() error {
	if e.life.state != active {
		return e.finishCause()
	}
	return e.abi.ChannelStart(e.channel)
}

// stop begins the end of the endpoint, which has drainTime to become idle.
func (e *endpoint) stop() {
	if e.life.state != active {
		return
	}
	e.life.state, e.life.stopBy = stopping, time.Now().Add(drainTime)
	e.disconnectAll(ErrClosed)
	e.tryStop()
}

// tryStop requests the stop. DOCA refuses while consumers or producers run; their owners may be closing them.
func (e *endpoint) tryStop() {
	e.life.stopErr = protect(func() error { return e.abi.ChannelStop(e.channel) })
}

// fail ends the endpoint, because the device or run itself failed.
func (e *endpoint) fail(err error) {
	e.life.cause = cmp.Or(e.life.cause, err)
	e.disconnectAll(err)
	e.stop()
}

// tryEnd is called by run. It retries a stop that DOCA has refused, and reports whether the endpoint has ended.
func (e *endpoint) tryEnd() bool {
	if e.life.state != stopping {
		return false
	}
	if e.life.stopErr != nil {
		e.tryStop()
	}
	if !e.contextIdle() && time.Now().Before(e.life.stopBy) {
		return false
	}
	e.life.state = ended
	e.disconnectAll(ErrClosed)
	e.sending.failAll(ErrClosed)
	e.commands.close()
	e.execute()
	return true
}

func (e *endpoint) contextIdle() bool { return e.abi.State(cabi.Progress(e.channel)) == cabi.Idle }

// finishCause returns the error for callers that still wait after run has returned.
func (e *endpoint) finishCause() error { return cmp.Or(e.life.cause, ErrClosed) }

// close ends run, waits for it, and frees the channel once its context is idle. If that does not happen in time, the
// channel is kept, and the next close waits again. Events are dropped, because nothing waits for them.
func (e *endpoint) close() error {
	e.do(e.stop)
	<-e.finished
	e.running.Lock()
	defer e.running.Unlock()
	if e.life.state == freed {
		return nil
	}
	idle := awaitIdle(e.life.stopBy, e.contextIdle, func() bool {
		e.tryStop()
		events, _ := e.abi.ChannelPoll(e.channel, pollBatch)
		return len(events) > 0
	})
	if !idle {
		e.life.stopBy = time.Now().Add(drainTime)
		return errors.Join(fmt.Errorf("control channel: %w", ErrStillRunning), e.life.stopErr)
	}
	if err := e.abi.ChannelClose(e.channel); err != nil {
		return err
	}
	e.channel, e.life.state = nil, freed
	trackClose(e.owner)
	return e.commands.waiter.close()
}
