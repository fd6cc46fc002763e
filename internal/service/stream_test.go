//go:build cgo

package service

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// gated is a connection that sends a message of a native session only when the gate opens.
type gated struct {
	comch.Conn
	gate chan struct{}
	sent []wire.Type
}

// Send implements comch.Conn.
func (g *gated) Send(_ context.Context, message []byte) error {
	kind := messageType(message)
	if kind == wire.TypeHeartbeat {
		<-g.gate
	}
	g.sent = append(g.sent, kind)
	return nil
}

// copying returns the exchange of a command whose copy was accepted.
func copying(t *testing.T, conn comch.Conn) *exchange {
	t.Helper()
	limits := wire.Limits{MaxMessage: testMessage}
	command, err := protocol.New(protocol.Command, protocol.Greeting{}, limits)
	must(t, err)
	daemon, err := protocol.New(protocol.Daemon, protocol.Greeting{}, limits)
	must(t, err)
	daemon.Start()
	step, err := daemon.Receive(command.Start())
	must(t, err)
	_, err = command.Receive(step.Reply)
	must(t, err)
	request, err := command.Copy(nil, protocol.CopyRequest{
		Direction: protocol.CopyPush, Kind: protocol.CopyStream, Place: protocol.Place{Share: "box", Path: "a"},
	})
	must(t, err)
	_, err = daemon.Receive(request)
	must(t, err)
	accepted, err := daemon.Accept(nil, protocol.Accepted{Path: "a"})
	must(t, err)
	_, err = command.Receive(accepted)
	must(t, err)
	return newExchange(conn, command, closeTime, zerolog.Nop())
}

// A message that is being sent when the stream is closed leaves before its CLOSE, and none after it.
func TestCloseIsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, _ := comch.Pipe(testMessage)
		conn := &gated{Conn: end, gate: make(chan struct{})}
		s := newStream(t.Context(), copying(t, conn))
		sent := make(chan error, 1)
		go func() { sent <- s.Send(t.Context(), heartbeat()) }()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		synctest.Wait()
		close(conn.gate)
		must(t, <-sent)
		must(t, <-closed)
		mustBe(t, s.Send(t.Context(), heartbeat()), comch.ErrClosed)
		if !slices.Equal(conn.sent, []wire.Type{wire.TypeHeartbeat, wire.TypeClose}) {
			t.Errorf("the messages left as %v", conn.sent)
		}
	})
}

// A message whose context has ended is sent all the same, as the last one of a native session may be.
func TestSendAfterTheEndOfItsContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		end, _ := comch.Pipe(testMessage)
		conn := &gated{Conn: end, gate: make(chan struct{})}
		close(conn.gate)
		s := newStream(t.Context(), copying(t, conn))
		must(t, s.Send(ended, heartbeat()))
		must(t, s.Close())
		if len(conn.sent) != 2 {
			t.Errorf("only %v left", conn.sent)
		}
	}
}

// A side whose copy has failed waits for the end of its peer for the idle timeout, regardless of what the peer sends
// meanwhile.
func TestPeerThatDoesNotEndACopy(t *testing.T) {
	for name, then := range map[string][]byte{"silent": nil, "heartbeats": heartbeat()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end, _ := comch.Pipe(testMessage)
				conn := &brokenOff{Conn: end, then: then}
				conn.broken.Store(true)
				s := newStream(t.Context(), copying(t, conn))
				began := time.Now()
				mustBe(t, s.finish(errors.New("disk full")), errNoClose)
				if took := time.Since(began); took > s.exchange.idle+time.Second {
					t.Errorf("took %s, idle timeout %s", took, s.exchange.idle) // of virtual time
				}
			})
		})
	}
}
