package doca

import (
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// This file is how an endpoint starts, fails and ends.

// start is refused after the end has begun, for nobody would stop it any more.
func (e *endpoint) start() error {
	if !e.stopBy.IsZero() {
		return e.finishCause()
	}
	return e.abi.ChannelStart(e.channel)
}

// stop begins the end of the endpoint: it has drainTime to become idle.
func (e *endpoint) stop() {
	if !e.stopBy.IsZero() {
		return
	}
	e.stopBy = time.Now().Add(drainTime)
	e.disconnectAll(ErrClosed)
	e.tryStop()
}

// tryStop asks DOCA to stop. It refuses while consumers or producers run, whose owners may be closing them just now.
func (e *endpoint) tryStop() { e.stopErr = e.abi.ChannelStop(e.channel) }

// fail gives the endpoint up: the driver itself does not work.
func (e *endpoint) fail(err error) {
	if e.cause == nil {
		e.cause = err
	}
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

// finishCause is what somebody who still waits after the end of run gets.
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

// release frees what an idle context holds. A device that does not let go keeps it.
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

// close ends run and waits for it. What then could not be freed is tried again by every further close.
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

// drain has a device that did not stop in time stop after all. Nobody is left who would want to know what else happens.
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

// isIdle is asked after the stop, from which on a context that is idle stays so.
func (e *endpoint) isIdle() bool {
	e.idle = e.idle || e.abi.ChannelState(e.channel) == cabi.Idle
	return e.idle
}

// afterRun calls f where run was the one to do so, and has ended.
func (e *endpoint) afterRun(f func() error) error {
	e.last.Lock()
	defer e.last.Unlock()
	return f()
}
