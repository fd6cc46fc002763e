package doca

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// port is what consumers and producers have in common: a context and its progress engine, which belong to one goroutine
// at a time, on a connection, whose goroutine opens, stops and closes them.
//
//	owner's goroutine ──► submit, poll, arm, sleep          (the port's engine)
//	                 └──► endpoint.call: open, stop, close (the channel's)
//
//	starting ── progress of port and channel ──► running ──┬─ close ─────────────────► stopping ──► closed
//	    └──────────── the connection ended ────────────────┴─ the connection ended ──► failed: tasks complete with an
//	                                                                                    error; close
type port struct {
	connection *Connection
	abi        cabi.ABI
	handle     cabi.Port // nil once closed
	waiter     *waiter   // nil if it could not be created; then the port is only closed
	id         uint32
	depth      int
}

// openPort opens a consumer over memory, or without memory a producer, unless the connection has ended.
func (c *Connection) openPort(memory cabi.Mmap, depth, immediate int) (*port, error) {
	if depth < 1 || depth > math.MaxInt32 {
		return nil, fmt.Errorf("%d messages in flight: %w", depth, CodeInvalidValue)
	}
	p := &port{connection: c, abi: c.endpoint.abi, depth: depth}
	err := c.endpoint.call(func() (err error) {
		if c.hasEnded() {
			return c.cause
		}
		p.handle, err = p.abi.PortOpen(c.handle, memory, uint32(depth), uint32(immediate))
		return err
	})
	if err != nil {
		return nil, err
	}
	if p.waiter, err = newWaiter(p.abi.Handle(cabi.Progress(p.handle))); err == nil {
		p.id, err = p.abi.PortID(p.handle)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// awaitRunning drives a starting port until it runs.
func (p *port) awaitRunning(ctx context.Context) error {
	for {
		switch p.state() {
		case cabi.Running:
			return nil
		case cabi.Idle, cabi.Stopping:
			return ErrDisconnected
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.waitEvent(ctx, func() bool { return p.changesState(cabi.Starting) }); err != nil {
			return err
		}
	}
}

// changesState polls once, and reports whether the state has changed.
func (p *port) changesState(from cabi.ContextState) bool {
	p.abi.PortPoll(p.handle, 1)
	return p.state() != from
}

// reap polls until poll has found something, nothing is in flight, or ctx ends.
func (p *port) reap(ctx context.Context, poll func() int) (int, error) {
	if p.handle == nil {
		return 0, ErrClosed
	}
	found := 0
	for spins := 0; ; spins++ {
		if found = poll(); found > 0 || p.inflight() == 0 {
			return found, nil
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if spins < idleSpins {
			continue
		}
		err := p.waitEvent(ctx, func() bool { found = poll(); return found > 0 || p.inflight() == 0 })
		if found > 0 || err != nil {
			return found, err
		}
	}
}

// waitEvent sleeps on the notification handle, unless poll, called after arming, finds something.
func (p *port) waitEvent(ctx context.Context, poll func() bool) error {
	if err := p.abi.Arm(cabi.Progress(p.handle)); errors.Is(err, CodeNotSupported) {
		if poll() {
			return nil
		}
		return p.pause() // a device without notifications
	} else if err != nil {
		return err
	}
	var err error
	if !poll() {
		err = p.sleep(ctx)
	}
	if clearErr := p.abi.Clear(cabi.Progress(p.handle)); err == nil {
		err = clearErr
	}
	return err
}

// sleep waits for the handle, ctx or the end of the connection, which not every device announces on the port's handle.
// After that end the device is about to notice it, so the sleep is short.
func (p *port) sleep(ctx context.Context) error {
	if p.connection.hasEnded() {
		return p.pause()
	}
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.connection.ended:
			cancel()
		case <-either.Done():
		}
	}()
	return p.waiter.waitWith(either)
}

func (p *port) pause() error { return p.waiter.wait(time.Now().Add(retryPause)) }

func (p *port) state() cabi.ContextState { return p.abi.State(cabi.Progress(p.handle)) }

// inflight returns the number of tasks in flight; 0 once closed.
func (p *port) inflight() int {
	if p.handle == nil {
		return 0
	}
	return p.abi.PortInflight(p.handle)
}

// failure returns nil for success, or the error of a failed task.
func (p *port) failure(op string, status cabi.Status) error {
	if status == cabi.Success {
		return nil
	}
	return &Error{Op: op, Code: status, Detail: p.abi.LastDetail()}
}

// close stops the port, waits until the device has released all memory, and frees it. Closing twice is harmless.
func (p *port) close() error {
	if p.handle == nil {
		return nil
	}
	if err := p.stop(); err != nil {
		return err
	}
	if err := p.drain(); err != nil {
		return err
	}
	if err := p.connection.endpoint.call(func() error { return p.abi.PortClose(p.handle) }); err != nil {
		return err
	}
	p.handle = nil
	if p.waiter == nil {
		return nil
	}
	return p.waiter.close()
}

// stop requests the stop. After AGAIN and IN_USE the context stops nevertheless, once it is progressed.
func (p *port) stop() error {
	err := p.connection.endpoint.call(func() error { return p.abi.Stop(cabi.Progress(p.handle)) })
	if errors.Is(err, CodeAgain) || errors.Is(err, CodeInUse) {
		return nil
	}
	return err
}

// drain waits until the port is idle, and repeats the stop if the first was refused with AGAIN.
func (p *port) drain() error {
	idle := func() bool { return p.state() == cabi.Idle }
	poll := func() bool {
		if p.state() == cabi.Running {
			_ = p.stop()
		}
		return len(p.abi.PortPoll(p.handle, p.depth)) > 0
	}
	if !awaitIdle(time.Now().Add(drainTime), idle, poll) {
		return fmt.Errorf("%d tasks in flight: %w", p.inflight(), ErrStillRunning)
	}
	return nil
}
