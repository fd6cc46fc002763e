package doca

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// broken is a channel whose polls panic, until the endpoint is to stop.
type broken struct {
	echo
	stopped bool
}

func (b *broken) ChannelPoll(cabi.Channel, int) ([]cabi.Event, error) {
	if b.stopped {
		return nil, nil
	}
	panic("a defect")
}

func (b *broken) ChannelStop(cabi.Channel) error {
	b.stopped = true
	return nil
}

func (b *broken) State(cabi.Progress) cabi.ContextState {
	if b.stopped {
		return cabi.Idle
	}
	return cabi.Running
}

func (*broken) ChannelClose(cabi.Channel) error { return nil }

// disconnecting is a channel that disconnects clients.
type disconnecting struct {
	echo
	disconnected []cabi.Connection
}

func (r *disconnecting) ChannelDisconnect(_ cabi.Channel, on cabi.Connection) error {
	r.disconnected = append(r.disconnected, on)
	return nil
}

func mustBeDefect(t *testing.T, err error) {
	t.Helper()
	d, is := errors.AsType[*defect](err)
	if !is {
		t.Fatalf("%v is no panic", err)
	}
	if value, stack := d.Panic(); value == nil || len(stack) == 0 {
		t.Errorf("the panic is %v at %s", value, stack)
	}
}

// A panic because of an event ends the connection of the event, and no other one of the endpoint.
func TestPanicEndsOneConnection(t *testing.T) {
	device := &disconnecting{}
	good := asleep(t, device)
	e := good.endpoint
	bad := newConnection(e, cabi.Connection(unsafe.Pointer(device)))
	bad.ofServer = true
	e.connections.open[bad.handle] = bad
	device.messages = []byte("hello")
	device.events = []cabi.Event{
		{Kind: cabi.Sent, Connection: bad.handle, Tag: 99}, // of which nothing was sent
		{Kind: cabi.Message, Connection: good.handle, Len: 5},
	}
	pollDevice(good)
	if got, _ := good.TryRecv(); string(got) != "hello" || good.hasEnded() || good.Failed() != nil {
		t.Errorf("received %q, ended: %t, %v", got, good.hasEnded(), good.Failed())
	}
	if !bad.hasEnded() || len(device.disconnected) != 1 || device.disconnected[0] != bad.handle {
		t.Errorf("ended: %t, disconnected: %v", bad.hasEnded(), device.disconnected)
	}
	mustBeDefect(t, bad.Failed())
	_, err := bad.Recv(t.Context())
	mustBeDefect(t, err)
}

// Any other panic of the driver ends the endpoint, as a failure of the device does.
func TestPanicEndsTheEndpoint(t *testing.T) {
	c := asleep(t, &broken{})
	go c.endpoint.run()
	<-c.endpoint.finished
	mustBeDefect(t, c.Failed())
	mustBeDefect(t, c.endpoint.finishCause())
	if c.endpoint.do(func() {}) {
		t.Error("it accepts a command")
	}
}

// What has panicked may do so again at the end of its connection. The others still end, and so does the endpoint.
func TestSecondPanicOfAConnection(t *testing.T) {
	device := &broken{}
	good := asleep(t, device)
	e := good.endpoint
	bad := newConnection(e, cabi.Connection(unsafe.Pointer(device)))
	close(bad.ended)
	e.connections.open[bad.handle] = bad
	go e.run()
	<-e.finished
	mustBeDefect(t, good.Failed())
	mustBeDefect(t, e.finishCause())
}

// A panic of a call on the driver is the error of the caller.
func TestPanicOfACall(t *testing.T) {
	c := asleep(t, &echo{})
	mustBeDefect(t, c.endpoint.call(func() error { panic("a defect") }))
	if c.hasEnded() {
		t.Error("it has ended a connection")
	}
}
