package doca

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// endpoint serves one Comch server or client.
//
//	Send, Close, Connect ──► commands ──►┌─────┐──► ChannelSend, ChannelStop ...
//	Recv ◄── Connection.inbox ◄──────────│ run │◄── ChannelPoll
//	Accept ◄── arrivals ◄────────────────└─────┘
//
// One goroutine, run, calls DOCA, as DOCA requires of a progress engine and everything on it. It executes commands,
// polls, and sleeps until the notification handle or a command wakes it. State that belongs to run needs no lock but
// running.
type endpoint struct {
	abi      cabi.ABI
	config   ChannelConfig // with its defaults
	commands commands
	pollers  *pollers      // nil: only run calls DOCA
	finished chan struct{} // closed when run has returned; life.cause is valid from then on
	stalled  atomic.Bool   // run sleeps until a reader has emptied an inbox, or is about to
	owner    owner

	running     sync.Mutex   // held by run until it returns, from then on by a call or close; guards what follows
	channel     cabi.Channel // and everything of DOCA on it
	life        life
	connections connections
	sending     sendQueue
	events      []cabi.Event // of the last poll
}

// owner is the Server or Client of an endpoint. Its methods are called by run.
type owner interface {
	connected(c *Connection)

	// notConnected is called when DOCA has no connection for a context that runs. An error ends the endpoint.
	notConnected(reason error) error

	// idle is called when the context has become idle.
	idle()
}

func (d *Device) openEndpoint(rep cabi.Rep, name string, config ChannelConfig) (*endpoint, error) {
	if d.dev == nil {
		return nil, ErrClosed
	}
	config = config.withDefaults(d.info.Capabilities)
	channel, err := d.abi.ChannelOpen(cabi.ChannelConfig{
		Dev: d.dev, Rep: rep, Name: name,
		MaxMessage:   uint32(config.MaxMessage),
		ReceiveQueue: uint32(config.ReceiveQueue),
		Sends:        uint32(config.Sends),
	})
	if err != nil {
		return nil, err
	}
	waiter, err := newWaiter(d.abi.Handle(cabi.Progress(channel)))
	if err != nil {
		_ = d.abi.ChannelClose(channel)
		return nil, err
	}
	return newEndpoint(d.abi, channel, waiter, config), nil
}

func newEndpoint(abi cabi.ABI, channel cabi.Channel, waiter *waiter, config ChannelConfig) *endpoint {
	e := &endpoint{
		abi: abi, channel: channel, config: config, commands: commands{waiter: waiter}, finished: make(chan struct{}),
		connections: connections{open: map[cabi.Connection]*Connection{}},
		sending: sendQueue{limit: config.sendLimit(), inFlight: map[uint64]*send{},
			submit: func(to cabi.Connection, message []byte, tag uint64) error {
				return abi.ChannelSend(channel, to, message, tag)
			}},
	}
	if config.Polled {
		e.pollers = &pollers{e}
	}
	return e
}

// do has run call f. It reports false, and f is not called, if the endpoint has ended.
func (e *endpoint) do(f func()) bool {
	if !e.commands.add(f) {
		return false
	}
	if !e.pollers.try(e.progress) {
		e.commands.wake()
	}
	return true
}

// call returns the result of f, which run calls, or the caller itself once run has returned. It wakes run, which may
// sleep without notifications of what f has begun.
func (e *endpoint) call(f func() error) error {
	result := make(chan error, 1)
	if !e.do(func() { result <- protect(f) }) {
		e.running.Lock()
		defer e.running.Unlock()
		return protect(f)
	}
	e.commands.wake()
	return <-result
}

func (e *endpoint) run() {
	defer close(e.finished)
	e.running.Lock()
	defer e.running.Unlock()
	for !e.tryEnd() {
		if e.progress() {
			continue
		}
		if err := protect(e.sleep); err != nil {
			e.fail(err)
		}
	}
}

// progress executes commands and polls DOCA. It reports whether there were commands or events.
func (e *endpoint) progress() bool {
	executed := e.execute()
	return e.poll() || executed
}

func (e *endpoint) execute() bool {
	commands := e.commands.take()
	for _, command := range commands {
		if err := protect(func() error { command(); return nil }); err != nil {
			e.fail(err)
		}
	}
	return len(commands) > 0
}

// poll handles events of DOCA unless an inbox is full: then messages stay in DOCA's queue, which slows the peer down.
// Connections are rejected after all events of the poll, because one of these may be the end of the connection.
func (e *endpoint) poll() (moved bool) {
	if e.inboxFull() {
		return false
	}
	err := protect(func() error {
		events, err := e.abi.ChannelPoll(e.channel, pollBatch)
		e.events = append(e.events[:0], events...) // a callback may move DOCA's array
		moved = len(events) > 0
		for i := range e.events {
			e.handle(&e.events[i])
		}
		e.rejectAgain()
		e.sending.submitWaiting()
		return err
	})
	if err != nil {
		e.fail(err)
	}
	return moved
}

// handle ends only the connection of an event that fails or panics, if the event has one.
func (e *endpoint) handle(event *cabi.Event) {
	err := protect(func() error { return e.dispatch(event) })
	if err == nil {
		return
	}
	if c := e.connections.open[event.Connection]; c != nil {
		e.reject(c, err)
	} else {
		e.fail(err)
	}
}

func (e *endpoint) dispatch(event *cabi.Event) error {
	switch event.Kind {
	case cabi.Connected:
		return e.connected(event)
	case cabi.Disconnected:
		e.disconnected(event.Connection, ErrDisconnected)
	case cabi.StateChanged:
		if event.State == cabi.Stopping || event.State == cabi.Idle {
			e.disconnectAll(ErrDisconnected)
		}
		if event.State == cabi.Idle {
			e.owner.idle()
		}
	case cabi.Sent:
		e.sending.sent(event)
	case cabi.Message:
		if c := e.connections.open[event.Connection]; c != nil {
			return e.deliver(c, append([]byte(nil), e.abi.ChannelBytes(e.channel, event)...))
		}
	case cabi.NewConsumer:
		if c := e.connections.open[event.Connection]; c != nil {
			c.peers.add(uint32(event.Tag))
		}
	case cabi.ExpiredConsumer:
		if c := e.connections.open[event.Connection]; c != nil {
			c.peers.remove(uint32(event.Tag))
		}
	}
	return nil
}

// sleep waits for DOCA or a command. Events that arrived before DOCA was armed are found by another poll.
func (e *endpoint) sleep() error {
	if full, err := e.awaitReader(); full {
		return err
	}
	if e.contextIdle() {
		return e.sleepUntil(e.wakeBy()) // nothing happens before the next command
	}
	if err := e.abi.Arm(cabi.Progress(e.channel)); errors.Is(err, CodeNotSupported) {
		return e.sleepUntil(time.Now().Add(e.unarmedPause()))
	} else if err != nil {
		return err
	}
	var err error
	if !e.poll() {
		err = e.sleepUntil(e.wakeBy())
	}
	if clearErr := e.abi.Clear(cabi.Progress(e.channel)); err == nil {
		err = clearErr
	}
	return err
}

// sleepUntil sleeps until a wakeup, or until a time; zero: without limit.
func (e *endpoint) sleepUntil(until time.Time) error {
	e.pollers.lend()
	defer e.pollers.takeBack()
	return e.commands.waiter.wait(until)
}

// wakeBy returns when run must poll again without a notification; zero: never.
func (e *endpoint) wakeBy() time.Time {
	if !e.mustRetry() {
		return time.Time{}
	}
	return time.Now().Add(retryPause)
}

// mustRetry reports whether run waits for something that no event announces: the end of a stop, or that DOCA accepts
// what it has refused.
func (e *endpoint) mustRetry() bool {
	return e.life.state != active || len(e.connections.rejected) > 0 || e.sending.refused()
}

// unarmedPause returns the pause between polls of a device without notifications. It is longer without connections, so
// that a server without clients uses little CPU time.
func (e *endpoint) unarmedPause() time.Duration {
	if len(e.connections.open) > 0 || e.mustRetry() {
		return retryPause
	}
	return unconnectedPause
}
