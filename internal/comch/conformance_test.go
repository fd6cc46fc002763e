package comch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// opener makes a connection whose ends the test closes.
type opener func(t *testing.T) (host, dpu comch.Conn)

func TestPipeConforms(t *testing.T) {
	testConn(t, func(*testing.T) (host, dpu comch.Conn) { return comch.Pipe(4080) })
}

// Tests of other packages use the pair in memory as a connection, so it has to be one.
func TestPairInMemoryConforms(t *testing.T) {
	testConn(t, func(*testing.T) (host, dpu comch.Conn) {
		return comchtest.NewPair(4080, comchtest.Faultless, comchtest.Faultless)
	})
}

// testConn is what every Conn does, whatever is under it, seen from either end.
func testConn(t *testing.T, open opener) {
	swapped := func(t *testing.T) (host, dpu comch.Conn) {
		host, dpu = open(t)
		return dpu, host
	}
	for name, open := range map[string]opener{"host": open, "dpu": swapped} {
		t.Run(name, func(t *testing.T) {
			for name, test := range map[string]func(*testing.T, comch.Conn, comch.Conn){
				"sizes":                      testSizes,
				"sizes refused":              testSizesRefused,
				"messages are copies":        testMessagesAreCopies,
				"order both ways":            testOrder,
				"contexts end waits":         testContexts,
				"close ends both":            testCloseEndsBoth,
				"close takes nothing back":   testCloseTakesNothingBack,
				"close unblocks":             testCloseUnblocks,
				"close of the peer unblocks": testPeerCloseUnblocks,
				"close of both":              testBothClose,
			} {
				t.Run(name, func(t *testing.T) {
					one, other := open(t)
					test(t, one, other)
					mustClose(t, one)
					mustClose(t, other)
				})
			}
		})
	}
}

func mustClose(t *testing.T, conn comch.Conn) {
	t.Helper()
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
}

// patient is a context that only ends a test that hangs.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func mustSend(t *testing.T, conn comch.Conn, message []byte) {
	t.Helper()
	if err := conn.Send(patient(t), message); err != nil {
		t.Fatalf("sending %d bytes: %v", len(message), err)
	}
}

func mustReceive(t *testing.T, conn comch.Conn, want []byte) {
	t.Helper()
	got, err := conn.Recv(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("received %d bytes that are not the %d sent", len(got), len(want))
	}
}

func mustBe(t *testing.T, err, want error) {
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
		mustSend(t, one, message)
		mustReceive(t, other, message)
	}
}

func testSizesRefused(t *testing.T, one, other comch.Conn) {
	mustBe(t, one.Send(patient(t), nil), doca.CodeInvalidValue)
	mustBe(t, one.Send(patient(t), make([]byte, one.MaxMessage()+1)), doca.CodeInvalidValue)
	mustSend(t, one, []byte("fine"))
	mustReceive(t, other, []byte("fine"))
}

func testMessagesAreCopies(t *testing.T, one, other comch.Conn) {
	message := []byte("first")
	mustSend(t, one, message)
	copy(message, "FIRST")
	first, err := other.Recv(patient(t))
	mustBe(t, err, nil)
	mustSend(t, one, []byte("other"))
	mustReceive(t, other, []byte("other"))
	if string(first) != "first" {
		t.Errorf("a message became %q after it was received", first)
	}
}

func testOrder(t *testing.T, one, other comch.Conn) {
	const count = 500
	ctx := patient(t)
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

var errEnough = errors.New("it was enough")

func testContexts(t *testing.T, one, other comch.Conn) {
	ctx, cancel := context.WithCancelCause(patient(t))
	result := make(chan error, 1)
	go func() {
		_, err := one.Recv(ctx)
		result <- err
	}()
	cancel(errEnough)
	mustBe(t, <-result, errEnough)
	fillUp(t, one)
	mustReceive(t, other, []byte("filling"))
}

// fillUp sends until a Send has to wait, and has its context end that.
func fillUp(t *testing.T, conn comch.Conn) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeoutCause(patient(t), 200*time.Millisecond, errEnough)
		err := conn.Send(ctx, []byte("filling"))
		cancel()
		if errors.Is(err, errEnough) {
			return
		}
		mustBe(t, err, nil)
	}
}

func mustHaveEnded(t *testing.T, conn comch.Conn, want error) {
	t.Helper()
	<-conn.Done()
	_, err := conn.Recv(patient(t))
	mustBe(t, err, want)
	mustBe(t, conn.Send(patient(t), []byte("late")), want)
}

func testCloseEndsBoth(t *testing.T, one, other comch.Conn) {
	for _, conn := range []comch.Conn{one, other} {
		select {
		case <-conn.Done():
			t.Error("ended before it was closed")
		default:
		}
	}
	mustClose(t, one)
	mustHaveEnded(t, one, comch.ErrClosed)
	mustHaveEnded(t, other, comch.ErrPeerLost)
}

func testCloseTakesNothingBack(t *testing.T, one, other comch.Conn) {
	for i := range 10 {
		mustSend(t, one, []byte{byte(i)})
	}
	mustClose(t, one)
	for i := range 10 {
		mustReceive(t, other, []byte{byte(i)})
	}
	mustHaveEnded(t, other, comch.ErrPeerLost)
}

// blocked is a Send and a Recv that only the end of the connection can end.
type blocked struct{ send, recv chan error }

func block(t *testing.T, conn comch.Conn) blocked {
	t.Helper()
	fillUp(t, conn)
	ctx := patient(t)
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
	mustBe(t, <-b.recv, because)
	if err := <-b.send; err != nil {
		mustBe(t, err, because)
	}
}

func testCloseUnblocks(t *testing.T, one, _ comch.Conn) {
	results := block(t, one)
	mustClose(t, one)
	results.mustEnd(t, comch.ErrClosed)
}

func testPeerCloseUnblocks(t *testing.T, one, other comch.Conn) {
	results := block(t, one)
	mustClose(t, other)
	results.mustEnd(t, comch.ErrPeerLost)
}

func testBothClose(t *testing.T, one, other comch.Conn) {
	results := make(chan error, 4)
	for _, conn := range []comch.Conn{one, other, one, other} {
		go func() { results <- conn.Close() }()
	}
	for range cap(results) {
		mustBe(t, <-results, nil)
	}
	<-one.Done()
	<-other.Done()
}
