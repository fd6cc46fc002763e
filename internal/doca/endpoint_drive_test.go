package doca

import (
	"context"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// echo is a channel that returns each message to its sender and has no notifications.
type echo struct {
	cabi.ABI
	events   []cabi.Event
	messages []byte
	armed    int
}

// Arm makes run poll again soon.
func (c *echo) Arm(cabi.Progress) error {
	c.armed++
	return &Error{Op: "doca_pe_request_notification", Code: CodeNotSupported}
}

func (*echo) State(cabi.Progress) cabi.ContextState { return cabi.Running }

func (c *echo) ChannelPoll(cabi.Channel, int) ([]cabi.Event, error) {
	events := c.events
	c.events = nil
	return events, nil
}

func (c *echo) ChannelSend(_ cabi.Channel, on cabi.Connection, message []byte, tag uint64) error {
	c.events = append(c.events, cabi.Event{Kind: cabi.Sent, Connection: on, Tag: tag},
		cabi.Event{Kind: cabi.Message, Connection: on, Offset: uint32(len(c.messages)), Len: uint32(len(message))})
	c.messages = append(c.messages, message...)
	return nil
}

func (c *echo) ChannelBytes(_ cabi.Channel, e *cabi.Event) cabi.ChannelMessage {
	return c.messages[e.Offset : e.Offset+e.Len]
}

// asleep returns a connection whose endpoint sleeps in run and has no wakeups.
func asleep(t *testing.T, abi cabi.ABI) *Connection {
	quiet, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWaiter(quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.close()
		_ = unix.Close(quiet)
	})
	config := ChannelConfig{MaxMessage: 64, ReceiveQueue: 4, Sends: 4, Polled: true}
	e := newEndpoint(abi, nil, w, config.withDefaults(Capabilities{}))
	c := newConnection(e, nil)
	e.connections.open[nil] = c
	return c
}

// pollDevice polls as a caller of TryRecv does.
func pollDevice(c *Connection) { c.endpoint.pollers.try(c.endpoint.poll) }

// woken reports whether run would wake.
func woken(c *Connection) bool {
	var count [8]byte
	n, _ := unix.Read(c.endpoint.commands.waiter.wakeup, count[:])
	return n > 0
}

// eager is a context that has ended, so that nothing waits.
type eager struct {
	context.Context
	t *testing.T
}

func (e eager) Done() <-chan struct{} {
	e.t.Error("the context of a sent message is waited for")
	return e.Context.Done()
}

func TestMessageThatIsTakenWaitsForNothing(t *testing.T) {
	if err := asleep(t, &echo{}).Send(eager{t.Context(), t}, []byte("hello")); err != nil {
		t.Fatal(err)
	}
}

// Without pollers, callers leave everything to run and wake it.
func TestOnlyRunCallsTheDevice(t *testing.T) {
	device := &echo{}
	c := asleep(t, device)
	c.endpoint.pollers = nil
	sendLater(c)
	if _, received := c.TryRecv(); received || len(device.messages) > 0 {
		t.Error("a caller used the device")
	}
	if !woken(c) {
		t.Error("run was not woken")
	}
	c.endpoint.progress()
	c.endpoint.progress()
	if got, _ := c.TryRecv(); string(got) != "hello" {
		t.Errorf("received %q", got)
	}
}

func TestCallersDriveWhileRunSleeps(t *testing.T) {
	c := asleep(t, &echo{})
	if err := c.Send(t.Context(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.TryRecv(); string(got) != "hello" {
		t.Errorf("received %q", got)
	}
	if woken(c) {
		t.Error("run was woken for nothing")
	}
}

func TestRunIsWokenWhileAnotherGoroutineDrives(t *testing.T) {
	c := asleep(t, &echo{})
	e := c.endpoint
	e.running.Lock()
	called := false
	e.do(func() { called = true })
	if called {
		t.Error("two drove at once")
	}
	if !woken(c) {
		t.Error("run was not woken for what the other goroutine may not have seen")
	}
	e.running.Unlock()
	if _, received := c.TryRecv(); called || received {
		t.Error("a look did what was asked of run")
	}
	e.do(func() {})
	if !called {
		t.Error("a command was forgotten")
	}
}

// run may sleep without notifications until there is a command.
func TestRunIsWokenAfterACall(t *testing.T) {
	c := asleep(t, &echo{})
	_ = c.endpoint.call(func() error { return nil })
	if !woken(c) {
		t.Error("run does not learn what the call has begun")
	}
}

// full accepts no message.
type full struct{ echo }

func (*full) ChannelSend(cabi.Channel, cabi.Connection, []byte, uint64) error {
	return &Error{Op: "doca_task_submit", Code: cabi.Again}
}

func TestRunIsWokenForWhatHasToBeTriedAgain(t *testing.T) {
	c := asleep(t, &full{})
	c.endpoint.do(func() { c.endpoint.sending.enqueue(&send{connection: c, message: []byte("hello")}) })
	if !woken(c) {
		t.Error("the send is not retried")
	}
}

func TestEndedEndpointIsNotDriven(t *testing.T) {
	c := asleep(t, &echo{})
	c.endpoint.life.state = ended
	c.endpoint.do(func() { t.Error("a command was called after the end") })
	c.endpoint.abi = nil // and is not to be asked
	if _, received := c.TryRecv(); received {
		t.Error("a message came after the end")
	}
}

// announced takes the token, and reports whether there was one.
func announced(c *Connection) bool {
	select {
	case <-c.Arrived():
		return true
	default:
		return false
	}
}

func TestMessagesAreAnnounced(t *testing.T) {
	c := asleep(t, &echo{})
	if err := c.Send(t.Context(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if pollDevice(c); !announced(c) {
		t.Error("a message was not announced")
	}
}

// picky accepts as many messages as it has space for, and none to one connection.
type picky struct {
	echo
	space   int
	refused cabi.Connection
	sent    []cabi.Connection
}

func (p *picky) ChannelSend(_ cabi.Channel, to cabi.Connection, _ []byte, _ uint64) error {
	if p.space == 0 || p.refused != nil && to == p.refused {
		return &Error{Op: "doca_task_submit", Code: cabi.Again}
	}
	p.space--
	p.sent = append(p.sent, to)
	return nil
}

// another adds a connection to the endpoint of c.
func another(c *Connection) *Connection {
	added := newConnection(c.endpoint, cabi.Connection(new(int)))
	c.endpoint.connections.open[added.handle] = added
	return added
}

func sendLater(c *Connection) {
	s := &send{connection: c, message: []byte("hello"), result: make(chan error, 1)}
	c.endpoint.do(func() { c.endpoint.sending.enqueue(s) })
}

func TestConnectionsTakeTurns(t *testing.T) {
	device := &picky{}
	one := asleep(t, device)
	one.endpoint.sending.limit = 3
	other, third := another(one), another(one)
	for range 5 {
		sendLater(one)
	}
	sendLater(other)
	sendLater(third)
	sendLater(other)
	device.space = 100
	pollDevice(one)
	want := []cabi.Connection{
		one.handle, other.handle, third.handle, one.handle, other.handle, one.handle, // no more of the first at once
	}
	if !slices.Equal(device.sent, want) {
		t.Errorf("sent to %v, want %v", device.sent, want)
	}
	last := one.endpoint.sending.lastTag
	device.events = append(device.events, cabi.Event{Kind: cabi.Sent, Connection: one.handle, Tag: last})
	if pollDevice(one); len(device.sent) != len(want)+1 {
		t.Error("the end of a message does not begin the next")
	}
}

func TestRefusedMessageDelaysNoOtherConnection(t *testing.T) {
	device := &picky{space: 100}
	one := asleep(t, device)
	refused := another(one)
	device.refused = refused.handle
	sendLater(refused)
	if !woken(one) {
		t.Error("the send is not retried")
	}
	sendLater(one)
	if !slices.Equal(device.sent, []cabi.Connection{one.handle}) {
		t.Errorf("sent to %v, want only %v", device.sent, one.handle)
	}
	device.refused = nil
	if pollDevice(one); len(device.sent) != 2 {
		t.Error("the refused message was not sent later")
	}
}

// startable is a channel that can be started.
type startable struct{ echo }

func (*startable) ChannelStart(cabi.Channel) error { return nil }

// A connection that ended before Connect could return it is not returned by the next Connect.
func TestStartForgetsAnEarlierConnection(t *testing.T) {
	earlier := asleep(t, &startable{})
	c := &Client{endpoint: earlier.endpoint, attempts: make(chan attempt, 1)}
	c.connected(earlier)
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.attempts:
		t.Error("the earlier connection is still there")
	default:
	}
}

// stubborn is a channel that disconnects only at the last of a number of requests.
type stubborn struct {
	echo
	again, asked int
	code         cabi.Status // of the others
}

func (s *stubborn) ChannelDisconnect(cabi.Channel, cabi.Connection) error {
	s.asked++
	if s.asked < s.again {
		return &Error{Op: "doca_comch_server_disconnect", Code: s.code}
	}
	return nil
}

// rejecting returns a connection of a server that accepts no other, and the handle of a new one.
func rejecting(t *testing.T, abi cabi.ABI) (*Connection, cabi.Connection) {
	c := asleep(t, abi)
	s := &Server{endpoint: c.endpoint, arrivals: make(chan *Connection)}
	c.endpoint.owner = s
	return c, cabi.Connection(new(int))
}

// A rejected client that sends messages which are not read delays no other messages, and is disconnected.
func TestRejectedClientDelaysNoOther(t *testing.T) {
	for _, code := range []cabi.Status{cabi.Again, cabi.InUse} {
		t.Run(code.Error(), func(t *testing.T) { rejectedClientDelaysNoOther(t, code) })
	}
}

func rejectedClientDelaysNoOther(t *testing.T, code cabi.Status) {
	device := &stubborn{again: 5, code: code}
	c, other := rejecting(t, device)
	device.messages = []byte("hello")
	device.events = append(device.events, cabi.Event{Kind: cabi.Connected, Connection: other})
	for range c.endpoint.config.unread {
		device.events = append(device.events, cabi.Event{Kind: cabi.Message, Connection: other, Len: 5})
	}
	pollDevice(c)
	device.events = append(device.events, cabi.Event{Kind: cabi.Message, Len: 5})
	if got, _ := c.TryRecv(); string(got) != "hello" {
		t.Errorf("received %q", got)
	}
	for range device.again {
		pollDevice(c)
	}
	if device.asked != device.again || len(c.endpoint.connections.rejected) > 0 {
		t.Errorf("asked %d times to let the client go, want %d", device.asked, device.again)
	}
}

// A connection that has ended by itself is freed, so DOCA is not asked to disconnect it, even if its end is reported by
// the same poll.
func TestRejectedClientLeaves(t *testing.T) {
	for name, end := range map[string]func(cabi.Connection) cabi.Event{
		"client": func(c cabi.Connection) cabi.Event { return cabi.Event{Kind: cabi.Disconnected, Connection: c} },
		"server": func(cabi.Connection) cabi.Event { return cabi.Event{Kind: cabi.StateChanged, State: cabi.Stopping} },
	} {
		t.Run(name, func(t *testing.T) {
			device := &stubborn{again: 1000, code: cabi.Again}
			c, other := rejecting(t, device)
			device.events = append(device.events, cabi.Event{Kind: cabi.Connected, Connection: other}, end(other))
			pollDevice(c)
			pollDevice(c)
			if asked := device.asked; asked != 0 || len(c.endpoint.connections.rejected) > 0 {
				t.Errorf("asked %d times to disconnect, and %d are left", asked, len(c.endpoint.connections.rejected))
			}
		})
	}
}
