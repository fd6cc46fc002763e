//go:build cgo

package service

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// attacker is a client that sends what it likes.
type attacker struct {
	*world
	raw  *comch.PipeEnd
	conn *secure.Conn // after authenticate
}

// attack connects without saying anything.
func (w *world) attack() *attacker {
	raw, _ := w.dial("b1:00.1")
	return &attacker{world: w, raw: raw}
}

// authenticate makes the handshake with the trusted key.
func (a *attacker) authenticate() *attacker {
	a.Helper()
	var err error
	a.conn, err = secure.Client(a.Context(), a.raw, secure.Config{Key: a.key, Verify: secure.AnyKey})
	must(a.T, err)
	return a
}

// greet exchanges the GREETINGs.
func (a *attacker) greet() *attacker {
	a.Helper()
	a.authenticate()
	a.send(greeting())
	if got := messageType(a.receive()); got != wire.TypeGreeting {
		a.Fatalf("got %v in place of a greeting", got)
	}
	return a
}

func greeting() []byte {
	return protocol.AppendGreeting(nil, protocol.Greeting{
		Versions: protocol.Supported, Software: "attacker",
	})
}

func (a *attacker) send(messages ...[]byte) {
	a.Helper()
	for _, each := range messages {
		if err := a.conn.Send(a.Context(), each); err != nil && !errors.Is(err, comch.ErrPeerLost) {
			a.Fatal(err)
		}
	}
}

func (a *attacker) receive() []byte {
	a.Helper()
	message, err := a.conn.Recv(a.Context())
	must(a.T, err)
	return message
}

func messageType(message []byte) wire.Type {
	return wire.Type(binary.LittleEndian.Uint32(message))
}

// mustBeEnded checks that the server ends the connection, with a final refusal that has this code as its last message;
// 0: with none.
func (a *attacker) mustBeEnded(code wire.AbortCode) {
	a.Helper()
	var last []byte
	for {
		message, err := a.conn.Recv(a.Context())
		if err != nil {
			mustBe(a.T, err, comch.ErrPeerLost)
			break
		}
		last = message
		if messageType(message) == wire.TypeRefused {
			must(a.T, a.raw.Close()) // the server waits for that
			break
		}
	}
	refusal, err := protocol.DecodeRefused(last)
	switch {
	case code == 0 && err == nil:
		a.Fatalf("refused: %v", refusal)
	case code != 0 && (err != nil || refusal.Code != code || !refusal.Final):
		a.Fatalf("the last message is %x (%v), want a final refusal with code %d", last, refusal, code)
	}
}

// copyMessage returns a COPY.
func copyMessage(
	direction protocol.CopyDirection, kind protocol.CopyKind, place protocol.Place, size uint64,
) []byte {
	return protocol.AppendCopy(nil, protocol.CopyRequest{Direction: direction, Kind: kind, Place: place, Size: size})
}

func pushMessage(path string) []byte {
	return copyMessage(protocol.CopyPush, protocol.CopyFile, protocol.Place{Share: "box", Path: path}, 1)
}

// excludeX is an item that excludes "x".
const excludeX = "\x02\x00\x00\x01x"

// listMessage returns a message with a list of elements, of which every one has these bytes.
func listMessage(t wire.Type, count int, element string) []byte {
	c := wire.Sending(nil, t)
	c.List(count)
	return append(c.Bytes(), strings.Repeat(element, count)...)
}

// heartbeat is a message of a native session.
func heartbeat() []byte {
	return binary.LittleEndian.AppendUint32(nil, uint32(wire.TypeHeartbeat))
}

// Whatever a peer with a trusted key sends, its own connection ends with a reason, and others go on.
func TestHostileMessages(t *testing.T) {
	for _, test := range []struct {
		name   string
		attack func(a *attacker)
		code   wire.AbortCode
	}{
		{"garbage in place of the greeting", func(a *attacker) {
			a.authenticate().send([]byte("GET / HTTP/1.1\r\n\r\n"))
		}, wire.AbortProtocol},
		{"a short message", func(a *attacker) { a.greet().send([]byte{1}) }, wire.AbortProtocol},
		{"a request before the greeting", func(a *attacker) {
			a.authenticate().send(pushMessage("a"))
		}, wire.AbortProtocol},
		{"two greetings", func(a *attacker) { a.greet().send(greeting()) }, wire.AbortProtocol},
		{"another version", func(a *attacker) {
			other := protocol.Greeting{Versions: wire.Versions{Min: 200, Max: 201}}
			a.authenticate().send(protocol.AppendGreeting(nil, other))
		}, wire.AbortProtocol},
		{"a native message outside of a copy", func(a *attacker) {
			a.greet().send(heartbeat())
		}, wire.AbortProtocol},
		{"a CLOSE outside of a copy", func(a *attacker) {
			a.greet().send(wire.AppendEmpty(nil, wire.TypeClose))
		}, wire.AbortProtocol},
		{"a message of the daemon", func(a *attacker) {
			a.greet().send(protocol.AppendWorking(nil, 0))
		}, wire.AbortProtocol},
		{"a path with dots", func(a *attacker) {
			a.greet().send(pushMessage("../../etc/passwd"))
		}, wire.AbortProtocol},
		{"an absolute path", func(a *attacker) { a.greet().send(pushMessage("/etc/passwd")) }, wire.AbortProtocol},
		{"a path with a zero byte", func(a *attacker) {
			a.greet().send(pushMessage("a\x00b"))
		}, wire.AbortProtocol},
		{"a size beyond all files", func(a *attacker) {
			place := protocol.Place{Share: "box", Path: "a"}
			a.greet().send(copyMessage(protocol.CopyPush, protocol.CopyFile, place, 1<<63))
		}, wire.AbortProtocol},
		{"a length beyond the message", func(a *attacker) {
			message := pushMessage("a")
			message[12] = 0xff
			a.greet().send(message)
		}, wire.AbortProtocol},
		{"more patterns than possible", func(a *attacker) {
			message := listMessage(wire.TypeItems, 400, excludeX)
			a.greet().send(message, message, message)
		}, wire.AbortLimit},
		{"a second copy while one runs", func(a *attacker) {
			a.greet().send(pushMessage("a"), pushMessage("b"))
		}, wire.AbortProtocol},
		{"a list while a copy runs", func(a *attacker) {
			a.greet().send(pushMessage("a"), protocol.AppendList(nil, protocol.ListRequest{}))
		}, wire.AbortProtocol},
		{"native garbage in a copy", func(a *attacker) {
			a.greet().send(pushMessage("a"), heartbeat(), bytes.Repeat([]byte{0x21, 0, 0, 0}, 100))
			a.send([]byte("garbage"))
		}, wire.AbortProtocol},
		{"a copy that ends before it has begun, twice", func(a *attacker) {
			a.greet().send(pushMessage("a"), wire.AppendEmpty(nil, wire.TypeClose), wire.AppendEmpty(nil,
				wire.TypeClose))
		}, wire.AbortProtocol},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				bystander := w.alice()
				defer bystander.Close()
				a := w.attack()
				test.attack(a)
				a.mustBeEnded(test.code)
				w.mustServe(bystander)
				mustLack(w.T, w.remote, "/srv/box/a")
				mustLack(w.T, w.remote, "/srv/box/b")
				if got := w.observed.bugs; got != nil {
					w.Errorf("defects: %v", got)
				}
			})
		})
	}
}

// mustServe checks that the server still serves a client, and a new one.
func (w *world) mustServe(c *Client) {
	w.Helper()
	if _, err := c.RoundTrip(w.Context(), []byte("ping")); err != nil {
		w.Fatalf("an existing client: %v", err)
	}
	again := w.alice()
	defer again.Close()
	if _, err := again.RoundTrip(w.Context(), nil); err != nil {
		w.Fatalf("a new client: %v", err)
	}
}

// A copy that the peer closes at once has failed, and the connection serves the next request.
func TestCloseTooEarly(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		a := w.attack().greet()
		a.send(pushMessage("a"), wire.AppendEmpty(nil, wire.TypeClose))
		if got := messageType(a.receive()); got != wire.TypeAccepted {
			w.Fatalf("got %v", got)
		}
		for messageType(a.receive()) != wire.TypeClose {
		}
		a.send(protocol.AppendPing(nil, protocol.Ping{}))
		if got := messageType(a.receive()); got != wire.TypePong {
			w.Fatalf("got %v", got)
		}
		must(w.T, a.raw.Close())
		mustLack(w.T, w.remote, "/srv/box/a")
	})
}

// A peer that has sent its source and never its CLOSE does not keep its connection, nor another copy in the queue.
func TestPeerThatNeverCloses(t *testing.T) {
	inWorld(t, func(w *world) { w.config.Limits.Transfers = 1 }, func(w *world) {
		w.local.Put("/home/a", "content")
		bystander := w.alice()
		defer bystander.Close()
		a := w.attack().greet()
		a.send(pushMessage("b"))
		_, err := bystander.Push(w.Context(), w.copyOf("a", "box/a"))
		must(w.T, err)
		time.Sleep(10 * time.Minute)
		if got := w.server.Status(); len(got.Connections) != 0 {
			w.Errorf("there are connections: %+v", got.Connections)
		}
		a.mustBeEnded(wire.AbortPeer)
	})
}

// A peer that breaks the protocol of a copy and goes on sending keeps its connection no longer than a silent one.
func TestPeerThatGoesOnSending(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		a := w.attack().greet()
		a.send(pushMessage("b"), heartbeat()) // which is too short
		began := time.Now()
		for a.conn.Send(context.Background(), native.AppendBeat(nil, native.Beat{})) == nil {
			time.Sleep(100 * time.Millisecond)
		}
		w.serving.Wait()
		if took, idle := time.Since(began), w.server.config.Limits.IdleTimeout; took > idle+time.Second {
			w.Errorf("took %s, idle timeout %s", took, idle) // of virtual time
		}
		if got := w.server.Status(); got.Running != 0 || len(got.Connections) != 0 {
			w.Errorf("%d copies are running, and there are connections: %+v", got.Running, got.Connections)
		}
	})
}

// The server gives up peers that do not make their handshake, and serves one after the other.
func TestSlowHandshakes(t *testing.T) {
	for name, trickle := range map[string]func(a *attacker){
		"silent": func(*attacker) {},
		"trickling": func(a *attacker) {
			for a.raw.Send(context.Background(), []byte{22}) == nil {
				time.Sleep(time.Second)
			}
		},
		"flooding": func(a *attacker) {
			for a.raw.Send(context.Background(), make([]byte, testMessage)) == nil {
			}
		},
		"silent after the handshake": func(a *attacker) {
			_, err := secure.Client(context.Background(), a.raw, secure.Config{Key: a.key, Verify: secure.AnyKey})
			if err != nil && !errors.Is(err, secure.ErrTimeout) && !errors.Is(err, comch.ErrPeerLost) {
				a.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				attacks := make(chan struct{}, 3)
				for range cap(attacks) {
					a := w.attack()
					go func() {
						trickle(a)
						<-a.raw.Done()
						attacks <- struct{}{}
					}()
				}
				time.Sleep(time.Minute)
				for range cap(attacks) {
					<-attacks
				}
				w.alice().Close()
				if got := w.server.Status().Totals; got.Refused < 3 || got.Connections != 4 {
					w.Errorf("the totals are %+v", got)
				}
			})
		})
	}
}

// No more than some connections of a function wait for their handshake, and other functions do not notice.
func TestHandshakeQueue(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for range 1 + waitingHandshakes {
			w.attack()
		}
		time.Sleep(time.Second)
		extra := w.attack()
		<-extra.raw.Done()
		if got := w.server.Status().Pending; got != 1+waitingHandshakes {
			w.Errorf("%d connections wait", got)
		}
		c, err := w.connectAs(w.key, "b1:00.2")
		must(w.T, err)
		must(w.T, c.Close())
	})
}

// A peer that takes no messages ends its own connection only.
func TestPeerThatDoesNotRead(t *testing.T) {
	var log bytes.Buffer
	inWorld(t, func(w *world) { w.config.Log = zerolog.New(&log).Level(zerolog.WarnLevel) }, func(w *world) {
		bystander := w.alice()
		defer bystander.Close()
		a := w.attack().greet()
		for range 700 { // with two answers each, which are more than the connection holds
			a.send(protocol.AppendList(nil, protocol.ListRequest{Place: protocol.Place{Share: "box"}}))
		}
		time.Sleep(20 * time.Second)
		w.mustServe(bystander)
		select {
		case <-a.raw.Done():
			w.Error("the connection has ended early")
		default:
		}
		time.Sleep(time.Minute)
		select {
		case <-a.raw.Done():
		default:
			w.Error("the connection goes on")
		}
		line := job.Stall + "a LISTED message has waited 30.0s for the peer to take it"
		if !strings.Contains(log.String(), line) {
			w.Errorf("the log lacks %q:\n%s", line, log.String())
		}
		w.mustServe(bystander)
	})
}
