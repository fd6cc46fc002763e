package doca

import (
	"context"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// echo is a channel that returns each message to its sender, and announces nothing.
type echo struct {
	cabi.ABI
	events   []cabi.Event
	messages []byte
}

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

// asleep is a connection whose endpoint's run sleeps, and is woken by nothing.
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
	e := &endpoint{
		abi: abi, waiter: w, inboxCap: 4, maxMessage: 64, finished: make(chan struct{}),
		connections: map[cabi.Connection]*Connection{}, sends: map[uint64]*send{},
	}
	c := newConnection(e, nil)
	e.connections[nil] = c
	return c
}

// woken reports whether run would be.
func woken(c *Connection) bool {
	var count [8]byte
	n, _ := unix.Read(c.endpoint.waiter.wakeup, count[:])
	return n > 0
}

// received is a message that is there already, or empty.
func received(c *Connection) string {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	message, _ := c.Recv(ended)
	return string(message)
}

func TestCallersDriveWhileRunSleeps(t *testing.T) {
	c := asleep(t, &echo{})
	if err := c.Send(t.Context(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	c.Poll()
	if got := received(c); got != "hello" {
		t.Errorf("received %q", got)
	}
	if woken(c) {
		t.Error("run was woken for nothing")
	}
}

func TestRunIsWokenWhereSomebodyDrives(t *testing.T) {
	c := asleep(t, &echo{})
	e := c.endpoint
	e.driving.Lock()
	called := false
	e.do(func() { called = true })
	if called {
		t.Error("two drove at once")
	}
	if !woken(c) {
		t.Error("run was not woken for what the driver may not have seen")
	}
	e.driving.Unlock()
	if c.Poll(); called {
		t.Error("a look did what was asked of run")
	}
	e.do(func() {})
	if !called {
		t.Error("a command was forgotten")
	}
}

// full takes no message.
type full struct{ echo }

func (*full) ChannelSend(cabi.Channel, cabi.Connection, []byte, uint64) error {
	return &Error{Op: "doca_task_submit", Code: cabi.Again}
}

func TestRunIsWokenForWhatHasToBeTriedAgain(t *testing.T) {
	c := asleep(t, &full{})
	c.endpoint.do(func() { c.endpoint.enqueue(&send{connection: c, message: []byte("hello")}) })
	if !woken(c) {
		t.Error("nobody tries to send again")
	}
}

func TestNobodyDrivesWhatHasEnded(t *testing.T) {
	c := asleep(t, &echo{})
	c.endpoint.over, c.endpoint.closed = true, true
	c.endpoint.do(func() { t.Error("a command was called after the end") })
	c.endpoint.abi = nil // and is not to be asked
	c.Poll()
}
