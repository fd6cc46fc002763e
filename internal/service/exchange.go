package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// exchange sends and receives the messages of a service session, on either side. One goroutine receives at a time;
// several may send.
type exchange struct {
	conn comch.Conn    // to an authenticated peer
	idle time.Duration // for which the peer may take no message

	// sending is held from the choice of a message until it is sent, so that messages leave in the order in which the
	// session has allowed them. Messages of a native session have an order of their own, which a stream ends.
	sending *semaphore.Weighted // a mutex could not be waited for with a context

	mu      sync.Mutex // guards session and trace
	session *protocol.Session
	trace   job.Trace
}

func newExchange(conn comch.Conn, session *protocol.Session, idle time.Duration, log zerolog.Logger) *exchange {
	return &exchange{
		conn: conn, session: session, idle: idle, sending: semaphore.NewWeighted(1),
		trace: job.Trace{Log: log, Protocol: "service"},
	}
}

// encoding is a method of protocol.Session that appends the message to send.
type encoding func(session *protocol.Session, dst []byte) ([]byte, error)

// send sends the message that encode returns.
func (e *exchange) send(ctx context.Context, encode encoding) error {
	ctx, cancel := e.patient(ctx)
	defer cancel()
	if err := e.sending.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer e.sending.Release(1)
	message, err := e.encode(encode)
	if err != nil {
		return err
	}
	return e.deliver(ctx, message)
}

// deliver sends a message of the session. It logs one that the peer does not take in time.
func (e *exchange) deliver(ctx context.Context, message []byte) error {
	err := e.conn.Send(ctx, message)
	if errors.Is(err, errFull) {
		e.trace.Log.Warn().Msgf("%sa %s message has waited %s for the peer to take it",
			job.Stall, wire.TypeOf(message), job.Age(e.idle))
	}
	return err
}

func (e *exchange) encode(encode encoding) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	message, err := encode(e.session, nil)
	if err == nil {
		e.trace.Sent(message, e.session.State())
	}
	return message, err
}

// patient returns a context that ends when the peer takes no message for too long.
func (e *exchange) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.idle, errFull)
}

// receive waits for the next message of the peer. A peer that always has one does not hide the end of ctx.
func (e *exchange) receive(ctx context.Context) (protocol.Step, error) {
	if err := context.Cause(ctx); err != nil {
		return protocol.Step{}, err
	}
	message, err := e.conn.Recv(ctx)
	if err != nil {
		return protocol.Step{}, err
	}
	return e.take(ctx, message)
}

// take lets the session judge a message, and sends what it replies.
func (e *exchange) take(ctx context.Context, message []byte) (protocol.Step, error) {
	step, err := e.judge(message)
	if step.Reply == nil {
		return step, err
	}
	ctx, cancel := e.patient(ctx)
	defer cancel()
	if sendErr := e.deliver(ctx, step.Reply); err == nil {
		err = sendErr
	}
	return step, err
}

func (e *exchange) judge(message []byte) (protocol.Step, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	step, err := e.session.Receive(message)
	if step.Event != protocol.PeerNative { // which is that session's to log
		e.trace.Received(message, e.session.State())
	}
	if step.Reply != nil {
		e.trace.Sent(step.Reply, e.session.State())
	}
	return step, err
}

// native checks a message of this side's native session.
func (e *exchange) native(message []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.session.Native(message)
}

// preparing reports whether the command has sent ITEMS and no COPY.
func (e *exchange) preparing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.session.State() == protocol.Preparing
}

// disconnected returns what the end of the connection means; nil between two requests.
func (e *exchange) disconnected() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.session.Disconnected()
}
