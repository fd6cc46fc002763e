package doca

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// ChannelConfig configures one side of a control channel. Zero values mean the maximum of the device or a default.
type ChannelConfig struct {
	MaxMessage   int // bytes; both sides must use the same
	ReceiveQueue int // messages queued for Recv, per connection; by default DOCA queues 64 and the connection 1024
	Sends        int // messages in flight

	// Clients is for a Server whose clients must not hold each other up: the maximum number of connections at once. One
	// client more is disconnected at once, and so is a client that has sent more messages than its connection holds
	// unread: 2048 by default, or 16 before anything was sent to it. 0: any number of connections; if one of them is
	// not read, all wait, because DOCA cannot stop the messages of one client alone. A Client ignores it.
	Clients int
}

// endpoint drives one Comch server or client.
//
//	Send, Close, Connect ──► commands ──►┌────────────┐──► ChannelSend, ChannelStop ...
//	                                     │ the driver │
//	Recv ◄── Connection.inbox ◄──────────│ of DOCA    │◄── ChannelPoll
//	Accept ◄── arrivals ◄────────────────│            │
//	                                     └────────────┘
//
// One goroutine drives at a time, as DOCA requires of a progress engine and everything on it: run, or, while run
// sleeps, a caller that executes its own command and polls. That is cheaper than waking run.
//
// The states, with the context's in parentheses:
//
//	opened (Idle) ── start ──► started (Starting, Running) ── context idle: a client that failed or lost its
//	    │                          │                          connection ──► opened, may be started again
//	    │ stop, fail               │ stop, fail
//	    └──────────────► stopping (Stopping) ── idle, or drainTime over ──► finished ── close ──► freed
//
// Messages to one connection wait until the earlier ones to it are accepted or fail, not for those to others: each
// connection may have sendLimit messages in flight, so that a client that does not receive cannot use all tasks of the
// context, and the others take turns (see submitWaiting).
//
// stopBy is set from stopping on, finished is closed from finished on, and channel is nil once freed. A close that
// cannot free the channel can be repeated.
type endpoint struct {
	abi        cabi.ABI
	channel    cabi.Channel
	waiter     *waiter
	clients    int // as in ChannelConfig
	inboxCap   int
	queue      int // messages of a connection in DOCA
	sendLimit  int // messages in flight of one connection
	maxMessage int
	finished   chan struct{} // closed when run has returned; cause is valid from then on
	cause      error         // why run returned; nil if Close was called

	last     sync.Mutex // guards channel after run has returned
	closeErr error      // of the teardown by run, until a Close returns it

	stalled atomic.Bool // run sleeps until a reader has emptied an inbox, or is about to

	mu       sync.Mutex
	commands []func()
	closed   bool // the waiter is closed

	driving     sync.Mutex // held by the driver; guards what follows and all use of channel
	connections map[cabi.Connection]*Connection
	sends       map[uint64]*send  // submitted, by tag
	senders     []*Connection     // those with waiting messages, the next to submit first
	rejected    []cabi.Connection // no longer in connections, still to be disconnected by DOCA
	refusedEnds int               // AGAIN of disconnections that Close asked for
	strayEnds   int               // disconnection events of connections that this side had ended
	lastTag     uint64
	stopBy      time.Time    // zero until stopping
	idle        bool         // the context has stopped
	runEnded    bool         // run has returned or is about to
	stopErr     error        // the stop was refused and must be retried
	unconnected error        // why DOCA had no connection for the client when it ran; nil: it had, or none was started
	events      []cabi.Event // of the last poll
	onConnect   func(*Connection)
	onState     func(cabi.ContextState)
}

func (d *Device) openEndpoint(rep cabi.Rep, name string, config ChannelConfig) (*endpoint, error) {
	if d.dev == nil {
		return nil, ErrClosed
	}
	unread := config.unread()
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
	return &endpoint{
		abi: d.abi, channel: channel, waiter: waiter,
		clients: config.Clients, inboxCap: unread, queue: config.ReceiveQueue, sendLimit: config.sendLimit(),
		maxMessage: config.MaxMessage, finished: make(chan struct{}),
		connections: map[cabi.Connection]*Connection{},
		sends:       map[uint64]*send{},
	}, nil
}

func (c ChannelConfig) withDefaults(caps Capabilities) ChannelConfig {
	if c.MaxMessage == 0 {
		c.MaxMessage = int(caps.MaxMessage)
	}
	if c.ReceiveQueue == 0 {
		c.ReceiveQueue = min(max(defaultReceiveQueue, c.Clients*queuePerClient), int(caps.MaxReceiveQueue))
	}
	if c.Sends == 0 {
		c.Sends = min(max(defaultSends, c.Clients*sendsPerClient), int(caps.MaxSends))
	}
	return c
}

// unread returns how many messages a connection holds for Recv.
func (c ChannelConfig) unread() int {
	switch {
	case c.ReceiveQueue != 0:
		return c.ReceiveQueue
	case c.Clients > 0:
		return unreadOfClient
	default:
		return defaultUnread
	}
}

// sendLimit divides the send tasks between the clients.
func (c ChannelConfig) sendLimit() int {
	if c.Clients == 0 {
		return c.Sends
	}
	return max(1, c.Sends/c.Clients)
}

// do calls f, or queues it for the goroutine that is driving. After run has returned f is not called, so callers also
// wait for finished.
func (e *endpoint) do(f func()) {
	if e.queueCommand(f) && !e.drive(func() { e.runCommands() }) {
		e.wake()
	}
}

// queueCommand queues f, and reports whether run has not returned yet.
func (e *endpoint) queueCommand(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.commands = append(e.commands, f)
	}
	return !e.closed
}

// wake ends the present sleep of run, or its next one.
func (e *endpoint) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.waiter.wake()
	}
}

// drive calls first and then polls DOCA. It reports false, and does nothing, if another goroutine is driving, which may
// not have seen what the caller wants. Work that only run does, or that must be retried, is left to run.
func (e *endpoint) drive(first func()) bool {
	if !e.driving.TryLock() {
		return false
	}
	defer e.driving.Unlock()
	if e.runEnded {
		return true
	}
	first()
	if _, err := e.poll(); err != nil {
		e.fail(err)
	}
	if !e.stopBy.IsZero() || e.mustRetry() {
		e.wake()
	}
	return true
}

// pollDevice polls DOCA unless another goroutine is driving.
func (e *endpoint) pollDevice() { e.drive(func() {}) }

// call is do, and returns the result of f. ErrClosed: run has returned without calling f. It wakes run, which may sleep
// without notifications of what f has begun.
func (e *endpoint) call(f func() error) error {
	result := make(chan error, 1)
	e.do(func() { result <- protect(f) })
	e.wake()
	return e.await(result, ErrClosed)
}

// await returns the result, or otherwise if run has returned without one.
func (e *endpoint) await(result <-chan error, otherwise error) error {
	select {
	case err := <-result:
		return err
	case <-e.finished:
	}
	select {
	case err := <-result:
		return err
	default:
		return otherwise
	}
}

func (e *endpoint) run() {
	defer close(e.finished)
	e.driving.Lock()
	defer e.driving.Unlock()
	for {
		moved := e.runCommands()
		polled, err := e.poll()
		if err != nil {
			e.fail(err)
		}
		if e.stopErr != nil {
			e.tryStop()
		}
		if e.ended() {
			e.runEnded = true
			e.closeErr = e.tearDown()
			return
		}
		if moved || polled {
			continue
		}
		if err := protect(e.sleep); err != nil {
			e.fail(err)
		}
	}
}

func (e *endpoint) runCommands() bool {
	e.mu.Lock()
	commands := e.commands
	e.commands = nil
	e.mu.Unlock()
	for _, command := range commands {
		if err := protect(func() error { command(); return nil }); err != nil {
			e.fail(err)
		}
	}
	return len(commands) > 0
}

// poll handles events of DOCA unless an inbox is full: then messages stay in DOCA's queue, which slows the peer down.
// Connections are rejected after all events of the poll, because one of these may be the end of the connection.
func (e *endpoint) poll() (moved bool, err error) {
	if e.inboxFull() {
		return false, nil
	}
	err = protect(func() error {
		events, err := e.abi.ChannelPoll(e.channel, pollBatch)
		e.events = append(e.events[:0], events...) // a callback may move DOCA's array
		moved = len(events) > 0
		for i := range e.events {
			e.handle(&e.events[i])
		}
		e.rejectAgain()
		e.submitWaiting()
		return err
	})
	return moved, err
}

// inboxFull reports whether DOCA must not be polled. Several clients would all wait for the reader of one, so those are
// not held back, see deliver.
func (e *endpoint) inboxFull() bool {
	if !e.stopBy.IsZero() || e.clients > 0 {
		return false
	}
	for _, c := range e.connections {
		if c.full() {
			return true
		}
	}
	return false
}

// handle is dispatch, of which a panic ends only the connection of the event, if it has one.
func (e *endpoint) handle(event *cabi.Event) {
	err := protect(func() error { e.dispatch(event); return nil })
	if err == nil {
		return
	}
	if c := e.connections[event.Connection]; c != nil {
		e.reject(c, err)
	} else {
		e.fail(err)
	}
}

func (e *endpoint) dispatch(event *cabi.Event) {
	switch event.Kind {
	case cabi.Connected:
		e.connected(event)
	case cabi.Disconnected:
		e.disconnected(event.Connection, ErrDisconnected)
	case cabi.Message:
		if c := e.connections[event.Connection]; c != nil {
			e.deliver(c, append([]byte(nil), e.abi.ChannelBytes(e.channel, event)...))
		}
	case cabi.Sent:
		e.sent(event)
	case cabi.StateChanged:
		e.stateChanged(event)
	case cabi.NewConsumer:
		if c := e.connections[event.Connection]; c != nil {
			c.peers.add(uint32(event.Tag))
		}
	case cabi.ExpiredConsumer:
		if c := e.connections[event.Connection]; c != nil {
			c.peers.remove(uint32(event.Tag))
		}
	}
}

// deliver ends the connection, rather than lose a message, if there are more than it may hold.
func (e *endpoint) deliver(c *Connection, message []byte) {
	if e.clients > 0 && c.full() || !c.deliver(message) {
		const reason = "%w: the peer sent more than %d messages that were not read"
		e.reject(c, fmt.Errorf(reason, ErrDisconnected, c.unread()))
	}
}

func (e *endpoint) connected(event *cabi.Event) {
	if event.Status != cabi.Success {
		e.notConnected(&Error{Op: "doca_comch_client_get_connection", Code: event.Status})
		return
	}
	connection := newConnection(e, event.Connection)
	e.connections[event.Connection] = connection
	if e.onConnect != nil {
		e.onConnect(connection)
	}
}

// notConnected stops a client whose server has gone while it started, so that it can be started again. Any other error
// ends the endpoint.
func (e *endpoint) notConnected(err error) {
	if meansNoServer(err) {
		e.unconnected = err
		err = e.abi.ChannelStop(e.channel)
	}
	if err != nil {
		e.fail(err)
	}
}

func (e *endpoint) disconnected(handle cabi.Connection, cause error) {
	e.rejected = slices.DeleteFunc(e.rejected, func(rejected cabi.Connection) bool { return rejected == handle })
	if c := e.connections[handle]; c != nil {
		delete(e.connections, handle)
		c.end(cause)
		e.dropWaiting(c)
	} else {
		e.strayEnds++
	}
}

func (e *endpoint) stateChanged(event *cabi.Event) {
	if event.State == cabi.Stopping || event.State == cabi.Idle {
		e.disconnectAll(ErrDisconnected)
	}
	if e.onState != nil {
		e.onState(event.State)
	}
}

// disconnectAll ends all connections. One whose end panics, perhaps because of what has panicked before, does not keep
// the others from theirs.
func (e *endpoint) disconnectAll(cause error) {
	e.rejected = nil
	for handle := range e.connections {
		err := protect(func() error { e.disconnected(handle, cause); return nil })
		e.cause = cmp.Or(e.cause, err)
	}
}

// sleep waits for DOCA or a command. Events that arrived before DOCA was armed are found by another poll. While an
// inbox is full only a command can change anything, so DOCA is not armed.
func (e *endpoint) sleep() error {
	if full, err := e.awaitReader(); full {
		return err
	}
	if e.abi.State(cabi.Progress(e.channel)) == cabi.Idle {
		return e.sleepUntil(e.wakeBy()) // nothing happens before the next command
	}
	if err := e.abi.Arm(cabi.Progress(e.channel)); errors.Is(err, CodeNotSupported) {
		return e.sleepUntil(time.Now().Add(e.unarmedPause()))
	} else if err != nil {
		return err
	}
	moved, err := e.poll()
	if err == nil && !moved {
		err = e.sleepUntil(e.wakeBy())
	}
	if clearErr := e.abi.Clear(cabi.Progress(e.channel)); err == nil {
		err = clearErr
	}
	return err
}

// sleepUntil lets other goroutines drive until a wakeup, or until a time; zero: without limit.
func (e *endpoint) sleepUntil(until time.Time) error {
	e.driving.Unlock()
	defer e.driving.Lock()
	return e.waiter.wait(until)
}

// unarmedPause returns the pause between polls of a driver without notifications. It is longer without connections, so
// that a server without clients uses little CPU time.
func (e *endpoint) unarmedPause() time.Duration {
	if len(e.connections) > 0 || !e.wakeBy().IsZero() {
		return retryPause
	}
	return unconnectedPause
}

// awaitReader sleeps until a reader has emptied an inbox, and reports whether one is full. It announces the sleep
// before it looks, and inboxDrained looks for the announcement after a message was taken, so that one of them sees the
// other.
func (e *endpoint) awaitReader() (full bool, err error) {
	e.stalled.Store(true)
	defer e.stalled.Store(false)
	if !e.inboxFull() {
		return false, nil
	}
	return true, e.sleepUntil(e.stopBy)
}

// inboxDrained is called by readers after each message.
func (e *endpoint) inboxDrained() {
	if e.stalled.Load() {
		e.wake()
	}
}

// wakeBy returns when run must poll again without a notification; zero: never.
func (e *endpoint) wakeBy() time.Time {
	if e.stopBy.IsZero() && !e.mustRetry() {
		return time.Time{}
	}
	return time.Now().Add(retryPause) // neither a stop nor its end is always announced
}

// mustRetry reports whether DOCA has refused something for a reason whose end no event announces: a message of a
// connection without others in flight, or a disconnection.
func (e *endpoint) mustRetry() bool {
	refused := func(c *Connection) bool { return c.inFlight == 0 }
	return len(e.rejected) > 0 || slices.ContainsFunc(e.senders, refused)
}
