package doca

import (
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
// stopBy is set from stopping on, finished is closed from finished on, and channel is nil once freed. A close that
// cannot free the channel can be repeated.
type endpoint struct {
	abi        cabi.ABI
	channel    cabi.Channel
	waiter     *waiter
	inboxCap   int
	maxMessage int
	finished   chan struct{} // closed when run has returned; cause is valid from then on
	cause      error         // why run returned; nil if Close was called

	last     sync.Mutex // guards channel after run has returned
	closeErr error      // of the teardown by run, until a Close returns it

	pollers atomic.Int32 // number of pollers of all connections
	polls   atomic.Int64 // polls that they have made

	mu       sync.Mutex
	commands []func()
	stalled  bool // run sleeps until a reader has emptied an inbox
	closed   bool // the waiter is closed

	driving     sync.Mutex // held by the driver; guards what follows and all use of channel
	connections map[cabi.Connection]*Connection
	sends       map[uint64]*send  // submitted, by tag
	waiting     []*send           // not yet accepted by DOCA, in order
	rejected    []cabi.Connection // no longer in connections, still to be disconnected by DOCA
	lastTag     uint64
	stopBy      time.Time    // zero until stopping
	idle        bool         // the context has stopped
	runEnded    bool         // run has returned or is about to
	stopErr     error        // the stop was refused and must be retried
	events      []cabi.Event // of the last poll
	pollsSeen   int64        // polls at the last call of pollersActive
	onConnect   func(*Connection)
	onState     func(cabi.ContextState)
}

// send is one message in flight. Its result is delivered once.
type send struct {
	connection *Connection
	message    []byte
	result     chan error
}

func (d *Device) openEndpoint(rep cabi.Rep, name string, config ChannelConfig) (*endpoint, error) {
	if d.dev == nil {
		return nil, ErrClosed
	}
	unread := config.ReceiveQueue
	if unread == 0 {
		unread = defaultUnread
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
	waiter, err := newWaiter(d.abi.ChannelHandle(channel))
	if err != nil {
		_ = d.abi.ChannelClose(channel)
		return nil, err
	}
	return &endpoint{
		abi: d.abi, channel: channel, waiter: waiter, inboxCap: unread, maxMessage: config.MaxMessage,
		finished:    make(chan struct{}),
		connections: map[cabi.Connection]*Connection{},
		sends:       map[uint64]*send{},
	}, nil
}

func (c ChannelConfig) withDefaults(caps Capabilities) ChannelConfig {
	if c.MaxMessage == 0 {
		c.MaxMessage = int(caps.MaxMessage)
	}
	if c.ReceiveQueue == 0 {
		c.ReceiveQueue = min(defaultReceiveQueue, int(caps.MaxReceiveQueue))
	}
	if c.Sends == 0 {
		c.Sends = min(defaultSends, int(caps.MaxSends))
	}
	return c
}

// do calls f, or queues it for the goroutine that is driving. After run has returned f is not called, so callers also
// wait for finished.
func (e *endpoint) do(f func()) {
	if e.queueCommand(f) && !e.drive(e.runCommands) {
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
func (e *endpoint) drive(first func() bool) bool {
	if !e.driving.TryLock() {
		return false
	}
	defer e.driving.Unlock()
	if e.runEnded {
		return true
	}
	first()
	_, err := e.poll()
	if err != nil {
		e.fail(err)
	}
	if !e.stopBy.IsZero() || len(e.waiting) > 0 || len(e.rejected) > 0 || len(e.sends) > 0 && e.pollers.Load() > 0 {
		e.wake()
	}
	return true
}

// pollDevice polls DOCA unless another goroutine is driving.
func (e *endpoint) pollDevice() {
	e.polls.Add(1)
	e.drive(func() bool { return false })
}

// call is do, and returns the result of f. ErrClosed: run has returned without calling f.
func (e *endpoint) call(f func() error) error {
	result := make(chan error, 1)
	e.do(func() { result <- f() })
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
		if err := e.sleep(); err != nil {
			e.fail(err)
		}
	}
}

func (e *endpoint) takeCommands() []func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	commands := e.commands
	e.commands = nil
	return commands
}

func (e *endpoint) runCommands() bool {
	commands := e.takeCommands()
	for _, command := range commands {
		command()
	}
	return len(commands) > 0
}

// poll handles events of DOCA unless an inbox is full: then messages stay in DOCA's queue, which slows the peer down.
func (e *endpoint) poll() (moved bool, err error) {
	if e.inboxFull() {
		return false, nil
	}
	events, err := e.abi.ChannelPoll(e.channel, pollBatch)
	e.events = append(e.events[:0], events...) // a callback may move DOCA's array
	for i := range e.events {
		e.dispatch(&e.events[i])
	}
	e.rejectAgain()
	e.submitWaiting()
	return len(e.events) > 0, err
}

func (e *endpoint) inboxFull() bool {
	if !e.stopBy.IsZero() {
		return false
	}
	for _, c := range e.connections {
		if c.full() {
			return true
		}
	}
	return false
}

func (e *endpoint) dispatch(event *cabi.Event) {
	switch event.Kind {
	case cabi.Connected:
		e.connected(event)
	case cabi.Disconnected:
		e.disconnected(event.Connection, ErrDisconnected)
	case cabi.Message:
		if c := e.connections[event.Connection]; c != nil {
			c.deliver(append([]byte(nil), e.abi.ChannelBytes(e.channel, event)...))
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

func (e *endpoint) connected(event *cabi.Event) {
	if event.Status != cabi.Success {
		e.fail(&Error{Op: "doca_comch_client_get_connection", Code: event.Status})
		return
	}
	connection := newConnection(e, event.Connection)
	e.connections[event.Connection] = connection
	if e.onConnect != nil {
		e.onConnect(connection)
	}
}

func (e *endpoint) disconnected(handle cabi.Connection, cause error) {
	e.rejected = slices.DeleteFunc(e.rejected, func(rejected cabi.Connection) bool { return rejected == handle })
	if c := e.connections[handle]; c != nil {
		delete(e.connections, handle)
		c.end(cause)
		e.dropWaiting(c, cause)
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

func (e *endpoint) disconnectAll(cause error) {
	e.rejected = nil
	for handle := range e.connections {
		e.disconnected(handle, cause)
	}
}

func (e *endpoint) sent(event *cabi.Event) {
	s := e.sends[event.Tag]
	delete(e.sends, event.Tag)
	switch {
	case event.Status == cabi.Success:
		s.result <- nil
	case s.connection.cause != nil:
		s.result <- s.connection.cause // the connection ended before, perhaps by our Close
	default:
		s.result <- fmt.Errorf("%w: %s", ErrDisconnected, event.Status)
	}
}

func (e *endpoint) enqueue(s *send) {
	if e.connections[s.connection.handle] != s.connection {
		s.result <- s.connection.cause
		return
	}
	e.waiting = append(e.waiting, s)
	e.submitWaiting()
}

// submitWaiting submits messages to DOCA in order until one is refused.
func (e *endpoint) submitWaiting() {
	for len(e.waiting) > 0 && e.submit(e.waiting[0]) {
		e.waiting = e.waiting[1:]
	}
}

// submit reports whether the send is settled: accepted or failed, but not refused because the queue is full.
func (e *endpoint) submit(s *send) bool {
	e.lastTag++
	err := e.abi.ChannelSend(e.channel, s.connection.handle, s.message, e.lastTag)
	switch {
	case err == nil:
		e.sends[e.lastTag] = s
	case isAgain(err):
		return false
	default:
		s.result <- err
	}
	return true
}

func isAgain(err error) bool {
	failure, ok := err.(*Error)
	return ok && failure.Code == cabi.Again
}

func (e *endpoint) dropWaiting(c *Connection, cause error) {
	kept := e.waiting[:0]
	for _, s := range e.waiting {
		if s.connection == c {
			s.result <- cause
		} else {
			kept = append(kept, s)
		}
	}
	e.waiting = kept
}

// sleep waits for DOCA or a command. Events that arrived before DOCA was armed are found by another poll. While an
// inbox is full only a command can change anything, so DOCA is not armed.
func (e *endpoint) sleep() error {
	if e.setStalled() {
		return e.awaitReader()
	}
	if e.pollersActive() {
		return e.sleepForPollers()
	}
	if err := e.abi.ChannelArm(e.channel); errors.Is(err, CodeNotSupported) {
		return e.sleepUntil(time.Now().Add(retryPause)) // a driver without notifications
	} else if err != nil {
		return err
	}
	moved, err := e.poll()
	if err == nil && !moved {
		err = e.sleepUntil(e.wakeBy())
	}
	if clearErr := e.abi.ChannelClear(e.channel); err == nil {
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

// pollersActive reports whether pollers have polled since the last call, and so will see messages, and no send is in
// flight, whose completion pollers do not wait for. If not, it announces unread messages to waiting readers, because
// the pollers may be busy for long.
func (e *endpoint) pollersActive() bool {
	before := e.pollsSeen
	e.pollsSeen = e.polls.Load()
	if e.pollers.Load() > 0 && e.pollsSeen != before && len(e.sends) == 0 {
		return true
	}
	for _, c := range e.connections {
		if len(c.inbox) > 0 {
			c.announce()
		}
	}
	return false
}

// sleepForPollers sleeps without arming DOCA, so that no message wakes this process.
func (e *endpoint) sleepForPollers() error { return e.sleepUntil(time.Now().Add(pollerGrace)) }

// setStalled announces that run is about to sleep until a reader has emptied an inbox, and reports whether one is full.
// The lock orders it before or after every inboxDrained, so that one of the two sees the other.
func (e *endpoint) setStalled() bool {
	e.mu.Lock()
	e.stalled = true
	e.mu.Unlock()
	behind := e.inboxFull()
	if !behind {
		e.clearStalled()
	}
	return behind
}

func (e *endpoint) awaitReader() error {
	defer e.clearStalled()
	return e.sleepUntil(e.stopBy)
}

func (e *endpoint) clearStalled() {
	e.mu.Lock()
	e.stalled = false
	e.mu.Unlock()
}

// inboxDrained is called by readers after each message.
func (e *endpoint) inboxDrained() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stalled && !e.closed {
		e.waiter.wake()
	}
}

// wakeBy returns when run must poll again without a notification; zero: never.
func (e *endpoint) wakeBy() time.Time {
	refused := len(e.waiting) > 0 && len(e.sends) == 0 // and no completion will announce free space
	if e.stopBy.IsZero() && !refused && len(e.rejected) == 0 {
		return time.Time{}
	}
	return time.Now().Add(retryPause) // neither a stop nor its end is always announced
}
