package comchtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// Opener makes a connection whose ends the test closes.
type Opener func(t *testing.T) (host, dpu comch.Conn)

// TestConn checks what every Conn does, whatever is under it, seen from either end.
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
	result := make(chan error, 1)
	go func() {
		_, err := one.Recv(ctx)
		result <- err
	}()
	cancel(ErrEnough)
	MustBe(t, <-result, ErrEnough)
	fillUp(t, one, 1)
	MustReceive(t, other, []byte("filling"))
}

// fillUp sends until so many Sends in a row have to wait, and has their contexts end that. It returns how many messages
// it sent, including those that wait. Some of the waits may be for the system, which makes space later: a moment, or
// long on a busy machine.
func fillUp(t *testing.T, conn comch.Conn, inRow int) (count int) {
	t.Helper()
	for waits := 0; waits < inRow; count++ {
		ctx, cancel := context.WithTimeoutCause(Patient(t), 200*time.Millisecond, ErrEnough)
		err := conn.Send(ctx, []byte("filling"))
		cancel()
		if errors.Is(err, ErrEnough) {
			waits++
			continue
		}
		MustBe(t, err, nil)
		waits = 0
	}
	return count
}

// testCancelledMessagesArrive has contexts end before a Send has begun, while it waits, and while it waits for others.
func testCancelledMessagesArrive(t *testing.T, one, other comch.Conn) {
	count := fillUp(t, one, 6)
	ended, cancel := context.WithCancelCause(Patient(t))
	cancel(ErrEnough)
	MustBe(t, one.Send(ended, []byte("cancelled")), ErrEnough)
	waiting, cancel := context.WithCancelCause(Patient(t))
	results := make(chan error, 3)
	for range cap(results) {
		go func() { results <- one.Send(waiting, []byte("cancelled while waiting")) }()
	}
	select {
	case err := <-results:
		t.Errorf("a message was sent although the queue is full: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	cancel(ErrEnough)
	for range cap(results) {
		MustBe(t, <-results, ErrEnough)
	}
	last := make(chan error, 1)
	go func() { last <- one.Send(Patient(t), []byte("last")) }()
	for range count {
		MustReceive(t, other, []byte("filling"))
	}
	MustReceive(t, other, []byte("cancelled"))
	for range cap(results) {
		MustReceive(t, other, []byte("cancelled while waiting"))
	}
	MustReceive(t, other, []byte("last"))
	MustBe(t, <-last, nil)
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
type blocked struct{ send, recv chan error }

func block(t *testing.T, conn comch.Conn) blocked {
	t.Helper()
	fillUp(t, conn, 2)
	ctx := Patient(t)
	b := blocked{make(chan error, 1), make(chan error, 1)}
	go func() { b.send <- conn.Send(ctx, []byte("there is no space")) }()
	go func() {
		_, err := conn.Recv(ctx)
		b.recv <- err
	}()
	return b
}

// mustEnd checks that both ended because of that, unless the message was still sent while the connection closed.
func (b blocked) mustEnd(t *testing.T, because error) {
	t.Helper()
	MustBe(t, <-b.recv, because)
	if err := <-b.send; err != nil {
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
