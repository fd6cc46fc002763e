package comchtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// Opener makes a connection whose ends the test closes.
type Opener func(t *testing.T) (host, dpu comch.Conn)

// TestConn checks what every Conn does, over any channel, seen from either end.
func TestConn(t *testing.T, open Opener) {
	testConn(t, open, func(t *testing.T, test func(*testing.T)) { test(t) })
}

// TestConnInMemory is TestConn for connections that need nothing outside of this process. It runs in virtual time.
func TestConnInMemory(t *testing.T, open Opener) { testConn(t, open, synctest.Test) }

func testConn(t *testing.T, open Opener, run func(t *testing.T, test func(*testing.T))) {
	swapped := func(t *testing.T) (host, dpu comch.Conn) {
		host, dpu = open(t)
		return dpu, host
	}
	for name, open := range map[string]Opener{"host": open, "dpu": swapped} {
		t.Run(name, func(t *testing.T) {
			for name, test := range map[string]func(*testing.T, comch.Conn, comch.Conn){
				"sizes":                      testSizes,
				"sizes refused":              testSizesRefused,
				"messages are copies":        testMessagesAreCopies,
				"order both ways":            testOrder,
				"contexts end waits":         testContexts,
				"cancelled messages arrive":  testCancelledMessagesArrive,
				"close ends both":            testCloseEndsBoth,
				"close takes nothing back":   testCloseTakesNothingBack,
				"close unblocks":             testCloseUnblocks,
				"close of the peer unblocks": testPeerCloseUnblocks,
				"close of both":              testBothClose,
			} {
				t.Run(name, func(t *testing.T) {
					run(t, func(t *testing.T) {
						one, other := open(t)
						test(t, one, other)
						MustClose(t, one)
						MustClose(t, other)
					})
				})
			}
		})
	}
}

// MustClose closes a connection twice, without an error.
func MustClose(t *testing.T, conn comch.Conn) {
	t.Helper()
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
}

// Patient returns a context that ends a test that hangs, after a minute.
func Patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// MustSend sends a message.
func MustSend(t *testing.T, conn comch.Conn, message []byte) {
	t.Helper()
	if err := conn.Send(Patient(t), message); err != nil {
		t.Fatalf("sending %d bytes: %v", len(message), err)
	}
}

// MustReceive receives the next message, which has to be the wanted one.
func MustReceive(t *testing.T, conn comch.Conn, want []byte) {
	t.Helper()
	got, err := conn.Recv(Patient(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("received %d bytes that are not the %d sent", len(got), len(want))
	}
}

// MustBe checks that an error is, or wraps, the wanted one; nil for none.
func MustBe(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

func testSizes(t *testing.T, one, other comch.Conn) {
	if one.MaxMessage() != other.MaxMessage() {
		t.Errorf("one end takes %d bytes, the other %d", one.MaxMessage(), other.MaxMessage())
	}
	for _, size := range []int{1, one.MaxMessage() - 1, one.MaxMessage()} {
		message := bytes.Repeat([]byte{byte(size)}, size)
		MustSend(t, one, message)
		MustReceive(t, other, message)
	}
}

func testSizesRefused(t *testing.T, one, other comch.Conn) {
	MustBe(t, one.Send(Patient(t), nil), doca.CodeInvalidValue)
	MustBe(t, one.Send(Patient(t), make([]byte, one.MaxMessage()+1)), doca.CodeInvalidValue)
	MustSend(t, one, []byte("fine"))
	MustReceive(t, other, []byte("fine"))
}

func testMessagesAreCopies(t *testing.T, one, other comch.Conn) {
	message := []byte("first")
	MustSend(t, one, message)
	copy(message, "FIRST")
	first, err := other.Recv(Patient(t))
	MustBe(t, err, nil)
	MustSend(t, one, []byte("other"))
	MustReceive(t, other, []byte("other"))
	if string(first) != "first" {
		t.Errorf("a message became %q after it was received", first)
	}
}

func testOrder(t *testing.T, one, other comch.Conn) {
	const count = 500
	ctx := Patient(t)
	sending := func(conn comch.Conn) error {
		for i := range count {
			if err := conn.Send(ctx, fmt.Append(nil, "message ", i)); err != nil {
				return err
			}
		}
		return nil
	}
	receiving := func(conn comch.Conn) error {
		for i := range count {
			got, err := conn.Recv(ctx)
			if want := fmt.Sprint("message ", i); err != nil || string(got) != want {
				return fmt.Errorf("got %q, %v; want %q", got, err, want)
			}
		}
		return nil
	}
	results := make(chan error, 4)
	for _, conn := range []comch.Conn{one, other} {
		go func() { results <- sending(conn) }()
		go func() { results <- receiving(conn) }()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// ErrEnough is the cause of a context that a test cancels.
var ErrEnough = errors.New("it was enough")

func testContexts(t *testing.T, one, other comch.Conn) {
	ctx, cancel := context.WithCancelCause(Patient(t))
	receiving := start(ctx, func(ctx context.Context) error {
		_, err := one.Recv(ctx)
		return err
	})
	<-receiving.waits
	overfill(t, one)
	sending := startSend(ctx, one, []byte("waiting"))
	<-sending.waits
	cancel(ErrEnough)
	MustBe(t, <-receiving.result, ErrEnough)
	MustBe(t, <-sending.result, ErrEnough)
	MustReceive(t, other, filling(one))
}

// call is a call that was started, and what it does: waits is closed when it waits for the end of its context too.
type call struct {
	waits  <-chan struct{}
	result <-chan error
}

func start(ctx context.Context, f func(context.Context) error) call {
	observed := &observedContext{Context: ctx, waits: make(chan struct{})}
	result := make(chan error, 1)
	go func() { result <- f(observed) }()
	return call{observed.waits, result}
}

func startSend(ctx context.Context, conn comch.Conn, message []byte) call {
	return start(ctx, func(ctx context.Context) error { return conn.Send(ctx, message) })
}

// observedContext tells when something waits for its end.
type observedContext struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

func (c *observedContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waits) })
	return c.Context.Done()
}

// overfull is more messages of the largest size than the queue of any connection has space for, with all that is below.
const overfull = 2000

// overfill sends so many that the last of them wait, and further ones, until the peer receives or the connection ends.
func overfill(t *testing.T, conn comch.Conn) {
	t.Helper()
	ctx, message := Patient(t), filling(conn)
	waiting := 0
	for range overfull {
		sending := startSend(ctx, conn, message)
		select {
		case err := <-sending.result:
			MustBe(t, err, nil)
		case <-sending.waits:
			waiting++
		}
	}
	if waiting == 0 {
		t.Fatalf("none of %d messages waits", overfull)
	}
}

// filling is what overfill sends.
func filling(conn comch.Conn) []byte { return bytes.Repeat([]byte{'f'}, conn.MaxMessage()) }

// testCancelledMessagesArrive has contexts end before a Send has begun, and while several wait.
func testCancelledMessagesArrive(t *testing.T, one, other comch.Conn) {
	overfill(t, one)
	ended, cancel := context.WithCancelCause(Patient(t))
	cancel(ErrEnough)
	MustBe(t, one.Send(ended, []byte("cancelled")), ErrEnough)
	waiting, cancel := context.WithCancelCause(Patient(t))
	var sending [3]call
	for i := range sending {
		sending[i] = startSend(waiting, one, []byte("cancelled while waiting"))
		<-sending[i].waits
	}
	cancel(ErrEnough)
	for _, s := range sending {
		MustBe(t, <-s.result, ErrEnough)
	}
	last := startSend(Patient(t), one, []byte("last"))
	for range overfull {
		MustReceive(t, other, filling(one))
	}
	MustReceive(t, other, []byte("cancelled"))
	for range sending {
		MustReceive(t, other, []byte("cancelled while waiting"))
	}
	MustReceive(t, other, []byte("last"))
	MustBe(t, <-last.result, nil)
}

// MustHaveEnded waits for the end of a connection, and checks that it is the cause of what Recv and Send return.
func MustHaveEnded(t *testing.T, conn comch.Conn, want error) {
	t.Helper()
	<-conn.Done()
	_, err := conn.Recv(Patient(t))
	MustBe(t, err, want)
	MustBe(t, conn.Send(Patient(t), []byte("late")), want)
}

func testCloseEndsBoth(t *testing.T, one, other comch.Conn) {
	for _, conn := range []comch.Conn{one, other} {
		select {
		case <-conn.Done():
			t.Error("ended before it was closed")
		default:
		}
	}
	MustClose(t, one)
	MustHaveEnded(t, one, comch.ErrClosed)
	MustHaveEnded(t, other, comch.ErrPeerLost)
}

func testCloseTakesNothingBack(t *testing.T, one, other comch.Conn) {
	for i := range 10 {
		MustSend(t, one, []byte{byte(i)})
	}
	MustClose(t, one)
	for i := range 10 {
		MustReceive(t, other, []byte{byte(i)})
	}
	MustHaveEnded(t, other, comch.ErrPeerLost)
}

// blocked is a Send and a Recv that only the end of the connection can end.
type blocked struct{ send, recv call }

func block(t *testing.T, conn comch.Conn) blocked {
	t.Helper()
	overfill(t, conn)
	ctx := Patient(t)
	b := blocked{
		send: startSend(ctx, conn, []byte("there is no space")),
		recv: start(ctx, func(ctx context.Context) error {
			_, err := conn.Recv(ctx)
			return err
		}),
	}
	<-b.send.waits
	<-b.recv.waits
	return b
}

// mustEnd checks that both ended because of that, unless the message was still sent while the connection closed.
func (b blocked) mustEnd(t *testing.T, because error) {
	t.Helper()
	MustBe(t, <-b.recv.result, because)
	if err := <-b.send.result; err != nil {
		MustBe(t, err, because)
	}
}

func testCloseUnblocks(t *testing.T, one, _ comch.Conn) {
	results := block(t, one)
	MustClose(t, one)
	results.mustEnd(t, comch.ErrClosed)
}

func testPeerCloseUnblocks(t *testing.T, one, other comch.Conn) {
	results := block(t, one)
	MustClose(t, other)
	results.mustEnd(t, comch.ErrPeerLost)
}

func testBothClose(t *testing.T, one, other comch.Conn) {
	results := make(chan error, 4)
	for _, conn := range []comch.Conn{one, other, one, other} {
		go func() { results <- conn.Close() }()
	}
	for range cap(results) {
		MustBe(t, <-results, nil)
	}
	<-one.Done()
	<-other.Done()
}
